//! Who did what: a line of JSON for each call that changes something, asks for packets, or is refused.

use crate::clock;
use crate::locked::lock;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The length of the file from which another is begun, and the number of earlier ones that stay.
const LONGEST: u64 = 64 << 20;
const KEPT: usize = 4;
/// The most characters of each text in a line.
const TEXT: usize = 1_024;

/// The log of calls. It is written before a call is answered.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    longest: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    length: u64,
}

/// A call.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct AuditEntry<'a> {
    /// The caller's name; empty: it has no certificate.
    pub name: &'a str,
    /// Its role.
    pub role: &'a str,
    /// The call.
    pub call: &'a str,
    /// What it is about: a name, or the text of a question.
    pub about: &'a str,
    /// Why it was refused or failed, if it was.
    pub error: Option<&'a str>,
}

/// An entry as a line.
#[derive(Serialize)]
struct Line<'a> {
    at_ns: u64,
    #[serde(flatten)]
    entry: AuditEntry<'a>,
}

impl AuditLog {
    /// Opens the file, or makes it. Only its owner can read it.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::with(path, LONGEST)
    }

    fn with(path: &Path, longest: u64) -> io::Result<Self> {
        let file = opened(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), longest, state: Mutex::new(State { file, length }) })
    }

    /// Adds a line. Long texts are shortened.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn add(&self, entry: AuditEntry<'_>) -> io::Result<()> {
        let [name, role, call, about] = [entry.name, entry.role, entry.call, entry.about].map(shortened);
        let error = entry.error.map(shortened);
        let entry = AuditEntry { name: &name, role: &role, call: &call, about: &about, error: error.as_deref() };
        let mut line = serde_json::to_vec(&Line { at_ns: clock::wall().0, entry })?;
        line.push(b'\n');
        let mut state = lock(&self.state);
        if state.length + line.len() as u64 > self.longest && state.length > 0 {
            self.begin_another(&mut state)?;
        }
        if let Err(why) = state.file.write_all(&line) {
            // A part of the line must not stand in front of the next.
            let _ = state.file.set_len(state.length);
            return Err(why);
        }
        state.length += line.len() as u64;
        Ok(())
    }

    /// Renames the file and the earlier ones, of which the oldest is lost.
    fn begin_another(&self, state: &mut State) -> io::Result<()> {
        let earlier = |number: usize| self.path.with_extension(format!("{number}.jsonl"));
        for number in (1..KEPT).rev() {
            match fs::rename(earlier(number), earlier(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, earlier(1))?;
        *state = State { file: opened(&self.path)?, length: 0 };
        Ok(())
    }
}

fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).open(path)
}

fn shortened(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_json_whatever_the_texts_are_and_files_are_limited() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let log = AuditLog::with(&path, 2_000).unwrap();
        let long = "x".repeat(5_000);
        let texts = ["", "a \"quoted\"\nline", "\u{1b}[31m", &long];
        for number in 0..100 {
            let about = texts[number % texts.len()];
            log.add(AuditEntry { name: "ana", call: "query", about, ..AuditEntry::default() }).unwrap();
        }
        let mut files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert_eq!(files.len(), 1 + KEPT, "{files:?}");
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.len() <= 2_000 && text.ends_with('\n'), "{}", file.display());
            for line in text.lines() {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!((&value["name"], &value["call"]), (&"ana".into(), &"query".into()));
                assert!(texts.iter().any(|text| text.starts_with(value["about"].as_str().unwrap())));
            }
        }
        // Another process goes on in the same file.
        drop(log);
        let before = fs::metadata(&path).unwrap().len();
        AuditLog::with(&path, 100_000).unwrap().add(AuditEntry::default()).unwrap();
        assert!(fs::metadata(&path).unwrap().len() > before);
    }
}
