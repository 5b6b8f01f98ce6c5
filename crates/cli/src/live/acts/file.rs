//! The file that says what is done to flows. It is read again and again beside the packets, so nothing is opened that would hold
//! them up.

use crate::args::Written;
use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags, open};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes of a file, at most: all options that there are take a line or two.
const LONGEST: u64 = 64 << 10;

/// A file that may be changed, replaced, or gone.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    /// How it was when it was looked at last.
    last: Found,
}

/// What a file says.
#[derive(Debug)]
pub enum Says {
    /// This is to be done.
    Policy(Box<Written>),
    /// Nothing is to be done.
    Off,
    /// Nothing at all.
    Nothing,
    /// It is not there.
    Missing,
    /// It cannot be read, or not be understood, for this reason.
    Unclear(String),
}

/// A file at one time: its text and when that was written, or why there is none.
#[derive(Debug, PartialEq)]
enum Found {
    Text(String, Option<SystemTime>),
    Missing,
    Unreadable(String),
}

impl PolicyFile {
    /// Reads it for the first time; what it says comes with it.
    ///
    /// # Errors
    /// If it cannot be read, is no regular file, is too long or no text, or means nothing.
    pub fn open(path: &Path) -> Result<(Self, Says)> {
        let (text, written) = read(path).with_context(|| cannot_read(path))?;
        let says = Says::of(&text).with_context(|| cannot_act(path))?;
        Ok((Self { path: path.to_owned(), last: Found::Text(text, written) }, says))
    }

    /// What it says, if it was written, replaced or taken away since it was looked at last.
    pub fn changed(&mut self) -> Option<Says> {
        let now = match read(&self.path) {
            Ok((text, written)) => Found::Text(text, written),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Found::Missing,
            Err(why) => Found::Unreadable(format!("{}: {why}", cannot_read(&self.path))),
        };
        if now == self.last {
            return None;
        }
        self.last = now;
        Some(match &self.last {
            Found::Text(text, _) => Says::of(text).unwrap_or_else(|why| Says::Unclear(format!("{why:#}"))),
            Found::Missing => Says::Missing,
            Found::Unreadable(why) => Says::Unclear(why.clone()),
        })
    }
}

impl Says {
    fn of(text: &str) -> Result<Self> {
        let written = Written::read(text)?;
        Ok(match (&written.off, written.policy.acting()) {
            (Some(_), _) => Self::Off,
            (None, Some(_)) => Self::Policy(Box::new(written)),
            (None, None) => Self::Nothing,
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

fn read(path: &Path) -> io::Result<(String, Option<SystemTime>)> {
    // Before it is opened, since that alone may do something to a device; and then what was opened, since it may be another by now.
    is_regular(&std::fs::metadata(path)?)?;
    let file = File::from(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    let opened = file.metadata()?;
    is_regular(&opened)?;
    let mut text = String::new();
    // The length that it tells is not asked: it may grow, and files of the kernel have none.
    if file.take(LONGEST + 1).read_to_string(&mut text)? as u64 > LONGEST {
        return Err(io::Error::other("it is longer than 64 KiB; the options for acting are all that it may hold"));
    }
    // Not every file system knows when.
    Ok((text, opened.modified().ok()))
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
        assert!(matches!(PolicyFile::open(&path).unwrap().1, Says::Policy(written) if written.policy.drop.is_some()));
        write(&path, long(LONGEST + 1)).unwrap();
        let why = refused(&path);
        assert!(why.starts_with(&format!("cannot read {}: it is longer than 64 KiB", path.display())), "{why}");
        write(&path, b"--drop \xff").unwrap();
        assert!(refused(&path).contains("UTF-8"));
        write(&path, b"--nonsense").unwrap();
        assert!(refused(&path).starts_with(&format!("cannot act as {} says", path.display())));
    }

    #[test]
    fn each_change_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy");
        write(&path, "--drop").unwrap();
        let (mut file, says) = PolicyFile::open(&path).unwrap();
        assert!(matches!(says, Says::Policy(written) if written.policy.drop.is_some()) && file.changed().is_none());
        let mut says = |text: &str| {
            write(&path, text).unwrap();
            let says = file.changed().unwrap_or_else(|| panic!("{text} is another"));
            assert!(file.changed().is_none(), "{text}");
            says
        };
        for nothing in ["", " \n", "# --drop\n", "--never tcp"] {
            assert!(matches!(says(nothing), Says::Nothing), "{nothing}");
        }
        assert!(matches!(says("off"), Says::Off));
        assert!(matches!(says("off\n--drop --for-real"), Says::Off));
        assert!(matches!(says("--drop --for-real"), Says::Policy(_)));
        for unclear in ["--dro", "offf", "--drop --threshold", "--drop --never 'tcp"] {
            assert!(matches!(says(unclear), Says::Unclear(_)), "{unclear}");
        }
        assert!(matches!(says("--mark"), Says::Policy(_)));
        remove_file(&path).unwrap();
        assert!(matches!(file.changed(), Some(Says::Missing)) && file.changed().is_none());
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(file.changed(), Some(Says::Unclear(why)) if why.contains("no regular file")));
        assert!(file.changed().is_none());
        remove_file(&path).unwrap();
        write(&path, "--mark").unwrap();
        assert!(matches!(file.changed(), Some(Says::Policy(written)) if written.policy.mark.is_some()));
        // The same once more, later.
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(matches!(file.changed(), Some(Says::Policy(_))) && file.changed().is_none());
    }
}
