//! `queuescope watch`: triggers as they fire.

use crate::args::Watch;
use crate::outcome::{Outcome, told};
use crate::paths::check_log;
use anyhow::{Context, Result};
use queuescope_archive::{ALERTS, is_recorded, open_with, schema};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::Duration;

/// How long is waited before another look.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs `watch`.
///
/// # Errors
/// If it is no folder of a log, or cannot be read.
pub fn run(args: &Watch) -> Result<Outcome> {
    check_log(&args.folder)?;
    schema(&args.folder)?;
    let mut alerts = Alerts { path: args.folder.join(ALERTS), file: None, from_now: !args.all, at: 0 };
    let mut out = io::stdout().lock();
    loop {
        // Asked before reading, so that what was written before the end is read.
        let recorded = is_recorded(&args.folder)?;
        let lines = alerts.next()?;
        let written = out.write_all(&lines).and_then(|()| out.flush());
        let is_closed = written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        told(written)?;
        // Perhaps there are more lines.
        let is_done = lines.is_empty() && (!recorded || is_closed_within(PAUSE));
        if is_closed || is_done {
            return Ok(Outcome::Whole);
        }
    }
}

/// The lines of a file that grows, and that may not be there yet. A last one that is not whole may be cut off, and another
/// written in its place.
struct Alerts {
    path: PathBuf,
    file: Option<File>,
    /// Whether those that are there at the first look are not told.
    from_now: bool,
    /// Where the line begins that comes next.
    at: u64,
}

/// Bytes that are read at once.
const AT_ONCE: u64 = 1 << 20;

impl Alerts {
    /// Some whole lines that came since it was asked before; none if there are no more.
    fn next(&mut self) -> Result<Vec<u8>> {
        let lines = loop {
            let lines = self.read().with_context(|| format!("cannot read {}", self.path.display()))?;
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

/// Waits, and tells whether nobody reads what is printed any more: nobody would write to them before a trigger fires.
#[cfg(unix)]
fn is_closed_within(pause: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let out = io::stdout();
    // No event is asked for: errors are always told.
    let mut out = [PollFd::new(&out, PollFlags::empty())];
    let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
    _ = poll(&mut out, Some(&pause));
    out[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Waits. Elsewhere than on Unix, that nobody reads is seen when something is printed.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "it waits for others")]
fn is_closed_within(pause: Duration) -> bool {
    std::thread::sleep(pause);
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests open files")]
    use super::*;

    #[test]
    fn a_line_that_is_cut_off_is_not_told_with_the_next() {
        let file = tempfile::NamedTempFile::new().expect("there is room");
        let add = |text: &[u8]| {
            let mut file = OpenOptions::new().append(true).open(file.path()).expect("it is there");
            file.write_all(text).expect("there is room");
        };
        // A shorter and a longer one in its place, before anybody looked.
        for (from_now, first, next) in [(false, &b"first\n"[..], &b"ab\n"[..]), (true, b"", b"another line\n")] {
            std::fs::write(file.path(), "first\nhalf a li").expect("there is room");
            let mut alerts = Alerts { path: file.path().to_owned(), file: None, from_now, at: 0 };
            assert_eq!(alerts.next().expect("it is there"), first);
            OpenOptions::new().write(true).open(file.path()).and_then(|file| file.set_len(6)).expect("it is there");
            add(next);
            assert_eq!(alerts.next().expect("it is there"), next);
            assert_eq!(alerts.next().expect("it is there"), b"");
        }
    }
}
