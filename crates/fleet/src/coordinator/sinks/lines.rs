//! Lines at the end of a file, or on standard output.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Where lines go.
#[derive(Debug)]
pub(super) enum Lines {
    /// A file, which is opened again when another file has its path: rotation renames it.
    File {
        /// Its path.
        path: PathBuf,
        /// The open file.
        file: Option<File>,
    },
    /// Standard output.
    Output,
}

impl Lines {
    /// A file, which is opened now to find mistakes.
    ///
    /// # Errors
    /// Fails if it is not a regular file, or cannot be opened.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let mut lines = Self::File { path, file: None };
        lines.reopen()?;
        Ok(lines)
    }

    /// Writes whole lines, and waits for the disk.
    ///
    /// # Errors
    /// Fails if they cannot be written. Then the file has none of them, unless the disk fails as well.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        self.reopen()?;
        match self {
            Self::File { file: Some(file), .. } => {
                let before = file.metadata()?.len();
                file.write_all(lines).and_then(|()| file.sync_data()).inspect_err(|_| {
                    // A part of a line must not stand in front of the next.
                    let _ = file.set_len(before);
                })
            }
            Self::File { file: None, .. } => Err(io::ErrorKind::NotFound.into()),
            Self::Output => {
                let mut out = io::stdout().lock();
                out.write_all(lines).and_then(|()| out.flush())
            }
        }
    }

    /// Opens the file if none is open, or if its path has another file now.
    fn reopen(&mut self) -> io::Result<()> {
        let Self::File { path, file } = self else { return Ok(()) };
        let there = match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            there => Some(there?),
        };
        let which = |of: &Metadata| (of.dev(), of.ino());
        if let (Some(open), Some(there)) = (file.as_ref(), &there)
            && which(&open.metadata()?) == which(there)
        {
            return Ok(());
        }
        *file = None;
        // A pipe without a reader would not open.
        if there.is_some_and(|there| !there.is_file()) {
            return Err(io::Error::other("it is not a regular file; use jsonl:- for standard output"));
        }
        let mut opened = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        end_line(&mut opened)?;
        *file = Some(opened);
        Ok(())
    }
}

/// Ends a last line that a crash cut short.
fn end_line(file: &mut File) -> io::Result<()> {
    if file.metadata()?.len() == 0 {
        return Ok(());
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    if last == *b"\n" { Ok(()) } else { file.write_all(b"\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn lines_are_added() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        Lines::open(path.clone()).unwrap().write(b"1\n").unwrap();
        Lines::open(path.clone()).unwrap().write(b"2\n3\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"1\n2\n3\n");
    }

    #[test]
    fn a_file_that_was_renamed_or_removed_is_opened_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("a"), dir.path().join("a.1"));
        let mut lines = Lines::open(path.clone()).unwrap();
        lines.write(b"1\n").unwrap();
        fs::rename(&path, &old).unwrap();
        lines.write(b"2\n").unwrap();
        assert_eq!((fs::read(&old).unwrap(), fs::read(&path).unwrap()), (b"1\n".to_vec(), b"2\n".to_vec()));
        fs::remove_file(&path).unwrap();
        lines.write(b"3\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"3\n");
        // Rotation by copying and truncation.
        fs::write(&path, "").unwrap();
        lines.write(b"4\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"4\n");
    }

    #[test]
    fn a_line_without_an_end_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "{\"number\":1").unwrap();
        Lines::open(path.clone()).unwrap().write(b"2\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{\"number\":1\n2\n");
    }

    #[test]
    fn what_is_not_a_regular_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = Lines::open(dir.path().to_owned()).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
        assert!(Lines::open(dir.path().join("no/such")).is_err());
    }
}
