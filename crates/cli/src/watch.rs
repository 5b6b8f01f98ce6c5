//! `queuescope watch`: prints alerts as triggers fire.

use crate::args::Watch;
use crate::outcome::{Outcome, ignore_closed_pipe};
use anyhow::{Context, Result};
use queuescope_archive::{AlertLines, is_recorded, schema};
use queuescope_recording::check_log;
use std::io::{self, ErrorKind, Write};
use std::time::Duration;

/// Time between two reads of the alerts.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs `watch`.
///
/// # Errors
/// Fails if the folder has no log, or cannot be read.
pub fn run(args: &Watch) -> Result<Outcome> {
    check_log(&args.folder)?;
    schema(&args.folder)?;
    let mut alerts = AlertLines::new(&args.folder, !args.all);
    let mut out = io::stdout().lock();
    loop {
        // Check before reading, so that alerts that were written before the recording ended are read.
        let recorded = is_recorded(&args.folder)?;
        let lines = alerts.more().with_context(|| format!("cannot read {}", alerts.path().display()))?;
        let written = out.write_all(&lines).and_then(|()| out.flush());
        let is_closed = written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
        ignore_closed_pipe(written)?;
        // If there were lines, more may have come meanwhile.
        let is_done = lines.is_empty() && (!recorded || is_closed_within(PAUSE));
        if is_closed || is_done {
            return Ok(Outcome::Complete);
        }
    }
}

/// Waits for `pause`, and returns whether standard output is closed. Without this check, a closed pipe would go unnoticed
/// until a trigger fires.
#[cfg(unix)]
fn is_closed_within(pause: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let out = io::stdout();
    // No events are requested: poll always reports errors and hang-ups.
    let mut out = [PollFd::new(&out, PollFlags::empty())];
    let pause = Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
    _ = poll(&mut out, Some(&pause));
    out[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Waits for `pause`. On systems other than Unix, a closed pipe is noticed only when something is printed.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "it waits for another process")]
fn is_closed_within(pause: Duration) -> bool {
    std::thread::sleep(pause);
    false
}
