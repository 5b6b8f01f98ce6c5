//! `queuescope watch`: triggers as they fire.

use crate::args::Watch;
use crate::outcome::{Outcome, told};
use crate::paths::check_log;
use anyhow::{Context, Result};
use queuescope_archive::{AlertLines, is_recorded, schema};
use std::io::{self, ErrorKind, Write};
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
    let mut alerts = AlertLines::of(&args.folder, !args.all);
    let mut out = io::stdout().lock();
    loop {
        // Asked before reading, so that what was written before the end is read.
        let recorded = is_recorded(&args.folder)?;
        let lines = alerts.more().with_context(|| format!("cannot read {}", alerts.path().display()))?;
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
