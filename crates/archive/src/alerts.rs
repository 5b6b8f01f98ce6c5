//! The alerts of a folder, read while others may come.

use crate::names::ALERTS;
use crate::regular::open_with;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The lines of a folder's alerts, a file that grows and may not be there yet. A last line that is not whole may be cut off, and another
/// written in its place.
#[derive(Debug)]
pub struct AlertLines {
    path: PathBuf,
    file: Option<File>,
    /// Whether those that are there at the first look are left out.
    from_now: bool,
    /// Where the line begins that comes next.
    at: u64,
}

/// Bytes that are read at once.
const AT_ONCE: u64 = 1 << 20;

impl AlertLines {
    /// All alerts of a folder, or those that come from the first look on.
    pub fn of(folder: &Path, from_now: bool) -> Self {
        Self { path: folder.join(ALERTS), file: None, from_now, at: 0 }
    }

    /// Their file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Some whole lines that came since the last call; none if there are no more.
    ///
    /// # Errors
    /// If the file cannot be read.
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
        // A shorter and a longer one in its place, before anybody looked.
        for (from_now, first, next) in [(false, &b"first\n"[..], &b"ab\n"[..]), (true, b"", b"another line\n")] {
            std::fs::write(&file, "first\nhalf a li").expect("there is room");
            let mut alerts = AlertLines::of(folder.path(), from_now);
            assert_eq!(alerts.more().expect("it is there"), first);
            OpenOptions::new().write(true).open(&file).and_then(|file| file.set_len(6)).expect("it is there");
            add(next);
            assert_eq!(alerts.more().expect("it is there"), next);
            assert_eq!(alerts.more().expect("it is there"), b"");
        }
    }
}
