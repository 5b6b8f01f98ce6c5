//! Writes a capture beside a measurement, and counts the packets that could not be written.
//!
//! Its file always ends with a whole block of pcapng: an incompletely written block is cut off. Once there is room, writing continues
//! behind it, so a disk that was full for a time costs the packets of that time.

use crate::error::cannot_write;
use queuescope_ingest::notes::noted;
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Bytes that are written at once.
const FULL: usize = 1 << 16;
/// The type of a block with a packet. Other blocks describe the blocks behind them, so they are kept until they can be written.
const PACKET: u32 = 6;

/// Takes blocks of pcapng, each written as a whole.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    file: File,
    /// The offset of the next block; `None` if it is not a regular file, so a block cannot be cut off.
    at: Option<u64>,
    /// Whole blocks that are not written yet.
    buffer: Vec<u8>,
    /// Whether to go on when the file cannot be written.
    goes_on: bool,
    /// What is missing; and whether nothing more can be written.
    lost: Option<Unwritten>,
    is_over: bool,
}

/// What is missing from an output, because it could not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwritten {
    /// The name of the output in reports.
    pub what: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// The number of missing packets, where that is known.
    pub packets: u64,
    /// The bytes that they would have taken there, where that is known.
    pub bytes: u64,
    /// The first error of the system.
    pub why: String,
}

impl Spool {
    /// Writes to a new file.
    pub fn new(path: &Path, file: File) -> Self {
        let at = file.metadata().is_ok_and(|data| data.is_file()).then_some(0);
        Self::to(path, file, at)
    }

    /// Writes to a file with other writers, such as standard output.
    pub fn shared(path: &Path, file: File) -> Self {
        Self::to(path, file, None)
    }

    fn to(path: &Path, file: File, at: Option<u64>) -> Self {
        let buffer = Vec::with_capacity(FULL);
        Self { path: path.to_owned(), file, at, buffer, goes_on: false, lost: None, is_over: false }
    }

    /// From now on, packets that cannot be written are counted, and are not an error; but a pipe without a reader is one.
    pub fn go_on(&mut self) {
        self.goes_on = true;
    }

    /// What is missing, once something could not be written.
    pub fn unwritten(&self) -> Option<&Unwritten> {
        self.lost.as_ref()
    }

    fn put(&mut self) -> io::Result<()> {
        let (written, result) = if self.is_over { (0, Ok(())) } else { self.write_out() };
        if written == self.buffer.len() && result.is_ok() {
            self.at = self.at.map(|at| at + written as u64);
            self.buffer.clear();
            return Ok(());
        }
        match result {
            Err(why) if !self.goes_on || why.kind() == ErrorKind::BrokenPipe => return Err(why),
            Err(why) => self.lose(written, &why),
            Ok(()) => self.lose(0, &io::Error::other("nothing more can be written")),
        }
        Ok(())
    }

    /// The number of bytes written, and the error that ended it.
    fn write_out(&mut self) -> (usize, io::Result<()>) {
        if let Some(at) = self.at
            && let Err(why) = self.file.seek(SeekFrom::Start(at))
        {
            return (0, Err(why));
        }
        let mut written = 0;
        while written < self.buffer.len() {
            match self.file.write(&self.buffer[written..]) {
                Ok(0) => return (written, Err(ErrorKind::WriteZero.into())),
                Ok(count) => written += count,
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => return (written, Err(why)),
            }
        }
        (written, Ok(()))
    }

    /// Some bytes were written, and the rest could not be: its packets are lost.
    fn lose(&mut self, written: usize, why: &io::Error) {
        let lost = self.lost.get_or_insert_with(|| Unwritten::new("pcapng", &self.path, why));
        let (mut at, mut kept, mut whole) = (0, Vec::new(), 0);
        while let Some(block) = block(&self.buffer[at..]) {
            at += block.len();
            if at <= written {
                whole = at;
            } else if u32::from_le_bytes([block[0], block[1], block[2], block[3]]) == PACKET {
                lost.packets += 1;
                lost.bytes += block.len() as u64;
            } else {
                kept.extend_from_slice(block);
            }
        }
        match &mut self.at {
            Some(end) => {
                *end += whole as u64;
                // If that fails, too, a reader finds an incomplete block at the end.
                let _ = self.file.set_len(*end);
            }
            // No reader could find the next block behind an incomplete one.
            None => self.is_over = true,
        }
        self.buffer = kept;
    }
}

impl Write for Spool {
    /// Takes a whole block.
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + block.len() > FULL && !self.buffer.is_empty() {
            self.put()?;
        }
        self.buffer.extend_from_slice(block);
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() { Ok(()) } else { self.put() }
    }
}

impl Unwritten {
    /// For an output that could not be written at all; nothing is counted yet.
    pub fn new(what: &'static str, path: &Path, why: &impl ToString) -> Self {
        Self { what, path: path.to_owned(), packets: 0, bytes: 0, why: why.to_string() }
    }

    /// The path and the reason, in one line.
    pub fn line(&self) -> String {
        format!("{}: {}", self.path.display(), self.why)
    }

    /// A note for the user while the run goes on.
    pub fn news(&self) -> Skipped {
        let meaning =
            format!("{}: {}; measuring goes on, and what is not in it is counted", cannot_write(&self.path), self.why);
        Skipped { reason: format!("{}_unwritten", self.what), count: 1, meaning }
    }

    /// The same for a report.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        let path = self.path.display();
        let packets = format!("packets that are not in {path}: {}", self.why);
        let bytes = format!("bytes that these packets would have taken in {path}");
        let packets = noted(&format!("{}_unwritten", self.what), self.packets, &packets);
        packets.into_iter().chain(noted(&format!("{}_unwritten_bytes", self.what), self.bytes, &bytes))
    }

    /// A part is not all.
    pub fn damage(&self) -> String {
        format!("{}: {}; {} packets are not in it", cannot_write(&self.path), self.why, count(self.packets))
    }
}

/// The first of some whole blocks.
fn block(blocks: &[u8]) -> Option<&[u8]> {
    let length = blocks.get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)?;
    blocks.get(..length as usize).filter(|block| block.len() >= 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_pcap::{CaptureReader, PcapngWriter};
    use queuescope_wire::Nanos;

    /// Writes packets with their numbers as time; each takes the given number of bytes.
    fn write(writer: &mut PcapngWriter<Spool>, numbers: std::ops::Range<u64>, bytes: usize) {
        for number in numbers {
            writer.packet(0, Nanos(number), bytes as u32, &vec![7; bytes], None).expect("it goes on");
        }
    }

    fn read(path: &Path) -> Vec<u64> {
        let mut reader = CaptureReader::open(path).expect("it is a capture");
        let mut found = Vec::new();
        while let Some(record) = reader.next_record().expect("it is whole") {
            found.push(record.time.expect("it has one").0);
        }
        found
    }

    /// A small file system, as long as it lives.
    #[cfg(target_os = "linux")]
    mod full {
        use std::path::{Path, PathBuf};
        use std::process::Command;

        pub struct Disk(PathBuf);

        impl Disk {
            pub fn new(at: &Path, kibibytes: u32) -> Option<Self> {
                let size = format!("size={kibibytes}k");
                let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
                mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
            }

            pub fn resize(&self, kibibytes: u32) {
                let size = format!("remount,size={kibibytes}k");
                assert!(Command::new("mount").args(["-o", &size]).arg(&self.0).status().unwrap().success());
            }
        }

        impl Drop for Disk {
            fn drop(&mut self) {
                let _ = Command::new("umount").arg(&self.0).status();
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_does_not_fit_is_counted_and_the_rest_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let Some(disk) = full::Disk::new(folder.path(), 512) else {
            println!(
                "skipped: what_does_not_fit_is_counted_and_the_rest_can_be_read: only root can mount a file system"
            );
            return;
        };
        for bytes in [1, 60, 1400, 70_000] {
            let path = folder.path().join(bytes.to_string());
            let mut spool = Spool::new(&path, File::create(&path).unwrap());
            spool.go_on();
            let mut writer = PcapngWriter::new(spool, "a test").unwrap();
            writer.interface(1, 0).unwrap();
            let fits = 600_000 / bytes as u64;
            write(&mut writer, 0..fits, bytes);
            writer.flush().unwrap();
            let first = read(&path);
            assert!(!first.is_empty() && (first.len() as u64) < fits, "{bytes}: {}", first.len());
            disk.resize(65_536);
            write(&mut writer, fits..fits + 100, bytes);
            let spool = writer.finish().unwrap();
            let lost = spool.unwritten().cloned().expect("not all fit");
            // An open file takes its room.
            drop(spool);
            assert!(lost.why.contains("No space left"), "{lost:?}");
            let found = read(&path);
            assert_eq!(found.len() as u64 + lost.packets, fits + 100, "{bytes}");
            assert!(found.starts_with(&first) && found.ends_with(&(fits..fits + 100).collect::<Vec<_>>()), "{bytes}");
            let taken = lost.bytes / lost.packets;
            assert!(taken >= bytes as u64 + 32 && taken < bytes as u64 + 36, "{taken}");
            std::fs::remove_file(&path).unwrap();
            disk.resize(512);
        }
    }

    #[test]
    fn what_nothing_can_be_written_to_is_given_up() {
        let path = Path::new("/dev/full");
        let Ok(file) = File::options().write(true).open(path) else { return };
        let mut writer = PcapngWriter::new(Spool::new(path, file), "a test").unwrap();
        writer.interface(1, 0).unwrap();
        let file = File::options().write(true).open(path).unwrap();
        assert!(PcapngWriter::new(Spool::new(path, file), "a test").unwrap().flush().is_err(), "it does not go on yet");
        writer.get_mut().go_on();
        write(&mut writer, 0..1000, 1000);
        let spool = writer.finish().unwrap();
        assert_eq!(spool.unwritten().map(|lost| lost.packets), Some(1000));
    }
}
