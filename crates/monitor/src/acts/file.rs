//! The policy file. The thread that handles packets rereads it, so it never opens anything that could block.

use super::{Policy, PolicyReader};
use crate::error::ActError;
use rustix::fs::{Mode, OFlags, open};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum size of a policy file in bytes; all options for acting fit in a line or two.
const LONGEST: u64 = 64 << 10;

/// The policy file, which may be changed, replaced or removed at any time.
#[derive(Debug)]
pub struct PolicyFile {
    path: PathBuf,
    reader: PolicyReader,
    /// The content at the last read.
    last: FileRead,
}

/// What a policy file asks for.
#[derive(Debug)]
pub enum PolicyContent {
    /// An action.
    Policy(Box<Policy>),
    /// `off`: no action.
    Off,
    /// The file is empty or names no action.
    Nothing,
    /// The file does not exist.
    Missing,
    /// The file cannot be read or is invalid; the text is the reason.
    Unclear(String),
}

/// One reading of the file: its text and modification time, or why there is none.
#[derive(Debug, PartialEq)]
enum FileRead {
    Text(String, Option<SystemTime>),
    Missing,
    Unreadable(String),
}

impl PolicyFile {
    /// Opens the file and parses its content.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is not a regular file, is too long, is not UTF-8, or is invalid.
    pub fn open(path: &Path, reader: PolicyReader) -> Result<(Self, PolicyContent), ActError> {
        let (text, written) = read(path).map_err(|why| ActError::Read { path: path.to_owned(), why })?;
        let content = PolicyContent::parse(&text, reader).map_err(|why| cannot_act(path, ActError::Policy(why)))?;
        Ok((Self { path: path.to_owned(), reader, last: FileRead::Text(text, written) }, content))
    }

    /// The content, if the file was written, replaced or removed since the last call.
    pub fn changed(&mut self) -> Option<PolicyContent> {
        let now = match read(&self.path) {
            Ok((text, written)) => FileRead::Text(text, written),
            Err(why) if why.kind() == io::ErrorKind::NotFound => FileRead::Missing,
            Err(why) => FileRead::Unreadable(format!("cannot read {}: {why}", self.path.display())),
        };
        if now == self.last {
            return None;
        }
        self.last = now;
        Some(match &self.last {
            FileRead::Text(text, _) => PolicyContent::parse(text, self.reader).unwrap_or_else(PolicyContent::Unclear),
            FileRead::Missing => PolicyContent::Missing,
            FileRead::Unreadable(why) => PolicyContent::Unclear(why.clone()),
        })
    }
}

impl PolicyContent {
    fn parse(text: &str, reader: PolicyReader) -> Result<Self, String> {
        let policy = reader(text)?;
        Ok(match (policy.off, &policy.acting) {
            (true, _) => Self::Off,
            (false, Some(_)) => Self::Policy(Box::new(policy)),
            (false, None) => Self::Nothing,
        })
    }
}

/// The error for a policy file whose action is impossible.
pub fn cannot_act(path: &Path, why: ActError) -> ActError {
    ActError::File { path: path.to_owned(), why: Box::new(why) }
}

fn read(path: &Path) -> io::Result<(String, Option<SystemTime>)> {
    // Checked by path first, because merely opening a device can have effects. Checked again after opening, because the path may lead
    // to another file by then.
    is_regular(&std::fs::metadata(path)?)?;
    let file = File::from(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?);
    let opened = file.metadata()?;
    is_regular(&opened)?;
    let mut text = String::new();
    // The file's length is not trusted: the file may grow, and files in /proc have length 0.
    if file.take(LONGEST + 1).read_to_string(&mut text)? as u64 > LONGEST {
        return Err(io::Error::other("longer than 64 KiB; a policy file holds only the options for acting"));
    }
    // Not every file system records modification times.
    Ok((text, opened.modified().ok()))
}

fn is_regular(data: &Metadata) -> io::Result<()> {
    if data.is_file() {
        return Ok(());
    }
    Err(io::Error::other("must be a regular file, because it is reread: write the options to one"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acts::ActingBounds;
    use queuescope_live::{Acting, Action};
    use queuescope_queue::Response;
    use rustix::fs::{CWD, FileType, mknodat};
    use std::fs::{remove_file, write};

    /// Reads `off`, `--drop` and `--mark`, and rejects options that it does not know.
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

    fn open(path: &Path) -> Result<(PolicyFile, PolicyContent), ActError> {
        PolicyFile::open(path, reader)
    }

    fn refused(path: &Path) -> String {
        let error = open(path).map(drop).expect_err("the file is invalid");
        let cause = std::error::Error::source(&error).map(|why| format!(": {why}")).unwrap_or_default();
        format!("{error}{cause}")
    }

    fn drops(policy: &Policy) -> bool {
        policy.acting.as_ref().is_some_and(|acting| acting.action == Action::Respond(Response::Drop))
    }

    #[test]
    fn only_a_regular_file_is_accepted_and_nothing_blocks() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for path in [&*pipe, folder.path(), Path::new("/dev/zero"), Path::new("/dev/stdin")] {
            // The standard input of the tests may be a file.
            if !path.is_file() {
                let why = refused(path);
                let expected = format!("cannot read {}: must be a regular file", path.display());
                assert!(why.starts_with(&expected), "{why}");
            }
        }
        assert!(refused(&folder.path().join("missing")).contains("No such file"));
    }

    #[test]
    fn a_file_that_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy");
        let long = |length: u64| format!("--drop{}", " ".repeat(length as usize - "--drop".len()));
        write(&path, long(LONGEST)).unwrap();
        assert!(matches!(open(&path).unwrap().1, PolicyContent::Policy(policy) if drops(&policy)));
        write(&path, long(LONGEST + 1)).unwrap();
        let why = refused(&path);
        assert!(why.starts_with(&format!("cannot read {}: longer than 64 KiB", path.display())), "{why}");
        write(&path, b"--drop \xff").unwrap();
        assert!(refused(&path).contains("UTF-8"));
        write(&path, b"--nonsense").unwrap();
        assert!(refused(&path).starts_with(&format!("cannot act as {} says", path.display())));
    }

    #[test]
    fn each_change_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy");
        write(&path, "--drop").unwrap();
        let (mut file, content) = open(&path).unwrap();
        assert!(matches!(content, PolicyContent::Policy(policy) if drops(&policy)) && file.changed().is_none());
        let mut content = |text: &str| {
            write(&path, text).unwrap();
            let content = file.changed().unwrap_or_else(|| panic!("{text} is a change"));
            assert!(file.changed().is_none(), "{text}");
            content
        };
        for nothing in ["", " \n", "# --drop\n", "--never tcp"] {
            assert!(matches!(content(nothing), PolicyContent::Nothing), "{nothing}");
        }
        assert!(matches!(content("off"), PolicyContent::Off));
        assert!(matches!(content("off\n--drop --for-real"), PolicyContent::Off));
        assert!(matches!(content("--drop --for-real"), PolicyContent::Policy(_)));
        for unclear in ["--dro", "offf", "--drop --threshold"] {
            assert!(matches!(content(unclear), PolicyContent::Unclear(_)), "{unclear}");
        }
        assert!(matches!(content("--mark"), PolicyContent::Policy(_)));
        remove_file(&path).unwrap();
        assert!(matches!(file.changed(), Some(PolicyContent::Missing)) && file.changed().is_none());
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(matches!(file.changed(), Some(PolicyContent::Unclear(why)) if why.contains("must be a regular file")));
        assert!(file.changed().is_none());
        remove_file(&path).unwrap();
        write(&path, "--mark").unwrap();
        assert!(matches!(file.changed(), Some(PolicyContent::Policy(policy)) if !drops(&policy)));
        // The same text with another modification time.
        File::options().write(true).open(&path).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(matches!(file.changed(), Some(PolicyContent::Policy(_))) && file.changed().is_none());
    }
}
