//! Reads the alerts of a folder while more may be written.

use crate::names::ALERTS;
use crate::regular::open_with;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads the lines of a folder's alert file, which grows and may not exist yet. The writer may cut off an incomplete last line and
/// write another in its place.
#[derive(Debug)]
pub struct AlertLines {
    path: PathBuf,
    file: Option<File>,
    /// Skip the alerts that are there at the first read.
    from_now: bool,
    /// Offset of the next line in the file.
    at: u64,
}

/// The most bytes that one call reads.
const AT_ONCE: u64 = 1 << 20;

impl AlertLines {
    /// Reads all alerts of a folder, or with `from_now` only those written after the first read.
    pub fn new(folder: &Path, from_now: bool) -> Self {
        Self { path: folder.join(ALERTS), file: None, from_now, at: 0 }
    }

    /// The path of the alert file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file was opened.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Whether the file that was read is not at its path any more, or is shorter than what was read of it. Then [`more`](Self::more) returns what was
    /// written to the earlier file only.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn is_replaced(&self) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let opened = file.metadata()?;
        match fs::metadata(&self.path) {
            Ok(now) => Ok((opened.dev(), opened.ino()) != (now.dev(), now.ino()) || now.len() < self.at),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// The next call of [`more`](Self::more) begins at the start of the file again.
    pub fn again(&mut self) {
        self.at = 0;
    }

    /// Complete lines that were written since the last call; empty if there are none.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn more(&mut self) -> io::Result<Vec<u8>> {
        let lines = loop {
            let lines = self.read()?;
            self.at += lines.len() as u64;
            if !self.from_now || lines.is_empty() {
                break lines;
            }
        };
        self.from_now = false;
        Ok(lines)
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let file = match &mut self.file {
            Some(file) => file,
            None => match open_with(&self.path, OpenOptions::new().read(true)) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                opened => self.file.insert(opened?),
            },
        };
        file.seek(SeekFrom::Start(self.at))?;
        let mut lines = Vec::new();
        file.take(AT_ONCE).read_to_end(&mut lines)?;
        lines.truncate(lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_line_that_is_cut_off_is_not_read_with_the_next() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join(ALERTS);
        let add = |text: &[u8]| {
            let mut file = OpenOptions::new().append(true).open(&file).expect("it is there");
            file.write_all(text).expect("there is room");
        };
        // A shorter and a longer line replace the incomplete one before the next read.
        for (from_now, first, next) in [(false, &b"first\n"[..], &b"ab\n"[..]), (true, b"", b"another line\n")] {
            fs::write(&file, "first\nhalf a li").expect("there is room");
            let mut alerts = AlertLines::new(folder.path(), from_now);
            assert_eq!(alerts.more().expect("it is there"), first);
            OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(6)).expect("it is there");
            add(next);
            assert_eq!(alerts.more().expect("it is there"), next);
            assert_eq!(alerts.more().expect("it is there"), b"");
        }
    }

    #[test]
    fn a_file_that_was_cut_replaced_or_removed_is_noticed() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join(ALERTS);
        let read = || {
            let mut alerts = AlertLines::new(folder.path(), false);
            alerts.more().expect("it can be read");
            alerts
        };
        let is_replaced = |alerts: &AlertLines| alerts.is_replaced().expect("it can be looked at");
        assert!(!is_replaced(&read()) && !read().is_open(), "there is no file yet");
        fs::write(&file, "first\nhalf").expect("there is room");
        let alerts = read();
        assert!(alerts.is_open() && !is_replaced(&alerts));
        // The incomplete line is cut off, and the file grows.
        fs::write(&file, "first\n").expect("there is room");
        assert!(!is_replaced(&alerts));
        fs::write(&file, "first\nsecond\n").expect("there is room");
        assert!(!is_replaced(&alerts));
        fs::write(&file, "half").expect("there is room");
        assert!(is_replaced(&alerts), "it is shorter");
        fs::write(&file, "first\nsecond\n").expect("there is room");
        let alerts = read();
        fs::rename(&file, folder.path().join("earlier")).expect("it is there");
        assert!(is_replaced(&alerts), "it is gone");
        fs::write(&file, "first\nsecond\nthird\n").expect("there is room");
        assert!(is_replaced(&alerts), "it is another one");
    }
}
