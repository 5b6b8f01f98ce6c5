//! Alerts of a folder that is recorded to, as they come.

use crate::error::Error;
use queuescope_archive::{ALERTS, open_with};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Reads the alerts of a folder as they come, a line of JSON each. Their file grows, and may not be there yet. A last line that is not
/// whole may be cut off, and another written in its place.
#[derive(Debug)]
pub struct Alerts {
    path: PathBuf,
    file: Option<File>,
    /// Whether those that are there at the first look are left out.
    from_now: bool,
    /// Where the line begins that comes next.
    at: u64,
}

/// Bytes that are read at once.
const AT_ONCE: u64 = 1 << 20;

impl Alerts {
    /// All alerts of a folder, from the first on.
    pub fn all(folder: &Path) -> Self {
        Self { path: folder.join(ALERTS), file: None, from_now: false, at: 0 }
    }

    /// Those that come after the first call of [`read`](Self::read).
    pub fn from_now(folder: &Path) -> Self {
        Self { from_now: true, ..Self::all(folder) }
    }

    /// Some whole lines that came since the last call; none if there are no more.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&mut self) -> Result<Vec<u8>, Error> {
        let lines = loop {
            let lines = self.more().map_err(Error::read(&self.path))?;
            self.at += lines.len() as u64;
            if !self.from_now || lines.is_empty() {
                break lines;
            }
        };
        self.from_now = false;
        Ok(lines)
    }

    fn more(&mut self) -> io::Result<Vec<u8>> {
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
    #![allow(clippy::disallowed_methods, reason = "tests open files")]
    use super::*;
    use std::io::Write;

    #[test]
    fn a_line_that_is_cut_off_is_not_read_with_the_next() {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        let add = |text: &[u8]| {
            let mut file = OpenOptions::new().append(true).open(file.path()).expect("it is there");
            file.write_all(text).expect("there is room");
        };
        // A shorter and a longer one in its place, before anybody looked.
        for (from_now, first, next) in [(false, &b"first\n"[..], &b"ab\n"[..]), (true, b"", b"another line\n")] {
            std::fs::write(file.path(), "first\nhalf a li").expect("there is room");
            let mut alerts = Alerts { path: file.path().to_owned(), from_now, ..Alerts::all(Path::new("")) };
            assert_eq!(alerts.read().expect("it is there"), first);
            OpenOptions::new().write(true).open(file.path()).and_then(|file| file.set_len(6)).expect("it is there");
            add(next);
            assert_eq!(alerts.read().expect("it is there"), next);
            assert_eq!(alerts.read().expect("it is there"), b"");
        }
    }
}
