//! The file that says what is done to flows. It is read again and again beside the packets, so nothing is opened that would hold
//! them up.

use super::{Policy, PolicyReader};
use crate::error::ActError;
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
    reader: PolicyReader,
    /// How it was when it was looked at last.
    last: Found,
}

/// What a file says.
#[derive(Debug)]
pub enum Says {
    /// This is to be done.
    Policy(Box<Policy>),
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
    pub fn open(path: &Path, reader: PolicyReader) -> Result<(Self, Says), ActError> {
        let (text, written) = read(path).map_err(|why| ActError::Read { path: path.to_owned(), why })?;
        let says = Says::of(&text, reader).map_err(|why| cannot_act(path, ActError::Policy(why)))?;
        Ok((Self { path: path.to_owned(), reader, last: Found::Text(text, written) }, says))
    }

    /// What it says, if it was written, replaced or taken away since it was looked at last.
    pub fn changed(&mut self) -> Option<Says> {
        let now = match read(&self.path) {
            Ok((text, written)) => Found::Text(text, written),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Found::Missing,
            Err(why) => Found::Unreadable(format!("cannot read {}: {why}", self.path.display())),
        };
        if now == self.last {
            return None;
        }
        self.last = now;
        Some(match &self.last {
            Found::Text(text, _) => Says::of(text, self.reader).unwrap_or_else(Says::Unclear),
            Found::Missing => Says::Missing,
            Found::Unreadable(why) => Says::Unclear(why.clone()),
        })
    }
}

impl Says {
    fn of(text: &str, reader: PolicyReader) -> Result<Self, String> {
        let policy = reader(text)?;
        Ok(match (policy.off, &policy.acting) {
            (true, _) => Self::Off,
            (false, Some(_)) => Self::Policy(Box::new(policy)),
            (false, None) => Self::Nothing,
        })
    }
}

/// What failed if what the file asks for cannot be done.
pub fn cannot_act(path: &Path, why: ActError) -> ActError {
    ActError::File { path: path.to_owned(), why: Box::new(why) }
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
    use crate::acts::ActingBounds;
    use queuescope_live::{Acting, Action};
    use queuescope_queue::Response;
    use rustix::fs::{CWD, FileType, mknodat};
    use std::fs::{remove_file, write};

    /// Reads `off`, and `--drop` or `--mark` with any options, but none whose name begins otherwise.
    fn reader(text: &str) -> Result<Policy, String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
        let known = ["off", "--drop", "--mark", "--for-real", "--never", "tcp"];
        if let Some(other) = words.iter().find(|word| !known.contains(word)) {
            return Err(format!("unexpected argument '{other}'"));
        }
        let action = |action| Acting { action: Action::Respond(action), ..Acting::default() };
        let acting = match () {
            () if words.contains(&"--drop") => Some(action(Response::Drop)),
            () if words.contains(&"--mark") => Some(action(Response::MarkOnly)),
            () => None,
        };
        Ok(Policy { off: words.contains(&"off"), acting, bounds: ActingBounds::default() })
    }

    fn open(path: &Path) -> Result<(PolicyFile, Says), ActError> {
        PolicyFile::open(path, reader)
    }

    fn refused(path: &Path) -> String {
        let error = open(path).map(drop).expect_err("it is refused");
        let cause = std::error::Error::source(&error).map(|why| format!(": {why}")).unwrap_or_default();
        format!("{error}{cause}")
    }

    fn drops(policy: &Policy) -> bool {
        policy.acting.as_ref().is_some_and(|acting| acting.action == Action::Respond(Response::Drop))
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
        assert!(matches!(open(&path).unwrap().1, Says::Policy(policy) if drops(&policy)));
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
        let (mut file, says) = open(&path).unwrap();
        assert!(matches!(says, Says::Policy(policy) if drops(&policy)) && file.changed().is_none());
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
        for unclear in ["--dro", "offf", "--drop --threshold"] {
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
        assert!(matches!(file.changed(), Some(Says::Policy(policy)) if !drops(&policy)));
        // The same once more, later.
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(matches!(file.changed(), Some(Says::Policy(_))) && file.changed().is_none());
    }
}
