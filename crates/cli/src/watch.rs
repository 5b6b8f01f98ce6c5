//! `queuescope watch`: triggers as they fire.

use crate::alarms::ALERTS;
use crate::args::Watch;
use crate::outcome::{Outcome, print};
use anyhow::{Context, Result};
use queuescope_archive::{is_recorded, schema};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::thread;
use std::time::Duration;

/// How long is waited before another look.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs `watch`.
///
/// # Errors
/// If it is no folder of a log, or cannot be read.
pub fn run(args: &Watch) -> Result<Outcome> {
    schema(&args.folder)?;
    let mut failed = None;
    let mut tell = |out: &mut dyn Write| {
        follow(args, out).or_else(|error| match error.downcast::<io::Error>() {
            Ok(error) => Err(error),
            Err(error) => {
                failed = Some(error);
                Ok(())
            }
        })
    };
    print(true, &mut tell, |_| Ok(()))?;
    failed.map_or(Ok(Outcome::Whole), Err)
}

#[expect(clippy::disallowed_methods, reason = "the command reads a file that grows, and waits for that")]
fn follow(args: &Watch, out: &mut dyn Write) -> Result<()> {
    let path = args.folder.join(ALERTS);
    let (mut file, mut first, mut rest) = (None, true, Vec::new());
    loop {
        // Asked before reading, so that what was written before the end is read.
        let recorded = is_recorded(&args.folder)?;
        if file.is_none() {
            file = match File::open(&path) {
                Ok(mut opened) => {
                    if first && !args.all {
                        opened.seek(SeekFrom::End(0))?;
                    }
                    Some(opened)
                }
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            };
        }
        first = false;
        if let Some(file) = &mut file {
            file.read_to_end(&mut rest).with_context(|| format!("cannot read {}", path.display()))?;
            // A line may not be whole yet.
            let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            out.write_all(&rest[..whole])?;
            out.flush()?;
            rest.drain(..whole);
        }
        if !recorded {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}
