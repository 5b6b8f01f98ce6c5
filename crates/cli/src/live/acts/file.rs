//! The file that says what is done to flows. It is read again and again beside the packets, so nothing is opened that would hold
//! them up.

use crate::args::PolicyArgs;
use anyhow::{Context, Result, anyhow};
use rustix::fs::{Mode, OFlags, open};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes of a file, at most: all options that there are take a line or two.
const LONGEST: u64 = 64 << 10;

/// A file that may be changed, replaced, or gone for a time.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    /// What it held when it was looked at last, or why that could not be read.
    last: Result<String, String>,
}

impl PolicyFile {
    /// Reads it for the first time; what it asks for comes with it.
    ///
    /// # Errors
    /// If it cannot be read, is no regular file, is too long or no text, or means nothing.
    pub fn open(path: &Path) -> Result<(Self, PolicyArgs)> {
        let text = read(path).with_context(|| cannot_read(path))?;
        let policy = PolicyArgs::read(&text).with_context(|| cannot_act(path))?;
        Ok((Self { path: path.to_owned(), last: Ok(text) }, policy))
    }

    /// What it asks for, or why that is not known, if it is another than before. While it is not there, nothing changes.
    pub fn changed(&mut self) -> Option<Result<PolicyArgs>> {
        let now = match read(&self.path) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return None,
            // Who writes a file anew has it empty for a moment.
            Ok(text) if text.is_empty() => return None,
            now => now.map_err(|why| format!("{}: {why}", cannot_read(&self.path))),
        };
        if now == self.last {
            return None;
        }
        self.last = now;
        Some(match &self.last {
            Ok(text) => PolicyArgs::read(text).map_err(Into::into),
            Err(why) => Err(anyhow!("{why}")),
        })
    }
}

/// What failed if what the file asks for cannot be done.
pub fn cannot_act(path: &Path) -> String {
    format!("cannot act as {} says", path.display())
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

fn read(path: &Path) -> io::Result<String> {
    // Before it is opened, since that alone may do something to a device; and then what was opened, since it may be another by now.
    is_regular(&std::fs::metadata(path)?)?;
    let file = File::from(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    is_regular(&file.metadata()?)?;
    let mut text = String::new();
    // The length that it tells is not asked: it may grow, and files of the kernel have none.
    if file.take(LONGEST + 1).read_to_string(&mut text)? as u64 > LONGEST {
        return Err(io::Error::other("it is longer than 64 KiB; the options for acting are all that it may hold"));
    }
    Ok(text)
}

fn is_regular(data: &Metadata) -> io::Result<()> {
    if data.is_file() {
        return Ok(());
    }
    Err(io::Error::other("it is no regular file, and is read again and again; write the options to one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};
    use std::fs::{remove_file, write};

    fn refused(path: &Path) -> String {
        format!("{:#}", PolicyFile::open(path).map(drop).expect_err("it is refused"))
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&*pipe, folder.path(), Path::new("/dev/zero"), Path::new("/dev/stdin")] {
            // What tests are started with may be a file.
            if !path.is_file() {
                let why = refused(path);
                let expected = format!("cannot read {}: it is no regular file", path.display());
                assert!(why.starts_with(&expected), "{why}");
            }
        }
        assert!(refused(&folder.path().join("nowhere")).contains("No such file"));
    }

    #[test]
    fn what_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy");
        let long = |length: u64| format!("--drop{}", " ".repeat(length as usize - "--drop".len()));
        write(&path, long(LONGEST)).unwrap();
        assert!(PolicyFile::open(&path).unwrap().1.drop.is_some());
        write(&path, long(LONGEST + 1)).unwrap();
        let why = refused(&path);
        assert!(why.starts_with(&format!("cannot read {}: it is longer than 64 KiB", path.display())), "{why}");
        write(&path, b"--drop \xff").unwrap();
        assert!(refused(&path).contains("UTF-8"));
        write(&path, b"--nonsense").unwrap();
        assert!(refused(&path).starts_with(&format!("cannot act as {} says", path.display())));
    }

    #[test]
    fn each_change_is_told_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy");
        write(&path, "--drop").unwrap();
        let (mut file, policy) = PolicyFile::open(&path).unwrap();
        assert!(policy.drop.is_some() && file.changed().is_none());
        write(&path, "").unwrap();
        assert!(file.changed().is_none());
        remove_file(&path).unwrap();
        assert!(file.changed().is_none());
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(file.changed().is_some_and(|now| now.is_err_and(|why| why.to_string().contains("no regular file"))));
        assert!(file.changed().is_none());
        remove_file(&path).unwrap();
        write(&path, "--mark").unwrap();
        assert!(file.changed().is_some_and(|now| now.is_ok_and(|policy| policy.mark.is_some())));
        assert!(file.changed().is_none());
    }
}
