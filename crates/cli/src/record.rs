//! `queuescope record`: the headers of a capture into a folder.

use crate::args::Record;
use crate::headers::{Headers, IntoFolder, into_folder};
use crate::outcome::{Outcome, print};
use crate::progress::Progress;
use crate::recording::Recorded;
use anyhow::Result;
use queuescope_ingest::notes::file_notes;
use queuescope_ingest::{Arriving, Stop, length};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use std::io::{self, Write};

/// Packets between updates of the progress.
const UPDATE: u64 = 65_536;

/// Runs `record`.
///
/// # Errors
/// If nothing could be done: no input, an expression that means nothing, no folder; or if packets could not be kept.
pub fn run(args: &Record) -> Result<Outcome> {
    let mut headers = Headers::of(args.chosen.as_deref(), args.inner, args.sample)?;
    let stop = Stop::on_signals()?;
    let mut arriving = Arriving::open(&args.file, Some(&stop))?;
    let progress = Progress::new(length(&args.file));
    let kept = into_folder(&args.log, &args.keeping, &args.derived, |folder| {
        all(&mut arriving, &mut headers, folder, &progress)
    });
    progress.finish();
    let (damage, kept) = kept?;
    let notes = headers
        .left_out()
        .chain(kept.notes())
        .chain(file_notes(&arriving.reader))
        .chain(headers.notes())
        .chain(stop.note());
    let notes: Vec<_> = notes.collect();
    print(false, |_| Ok(()), |out| tell(args, &kept.recorded, &notes, out))?;
    Ok(Outcome::of(damage?.or_else(|| kept.recorded.damage())))
}

/// All packets of a capture: what is wrong with it.
fn all(
    arriving: &mut Arriving,
    headers: &mut Headers,
    folder: &mut IntoFolder<'_>,
    progress: &Progress,
) -> Result<Option<String>> {
    let mut read = 0u64;
    loop {
        if read.is_multiple_of(UPDATE) {
            progress.update(arriving.reader.input_read(), read);
        }
        if arriving.may_wait() {
            folder.flush()?;
        }
        let frame = match arriving.reader.next_record() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(arriving.damage(error).map(|error| error.to_string())),
        };
        read += 1;
        headers.keep(&frame, folder)?;
    }
}

fn tell(args: &Record, recorded: &Recorded, notes: &[Skipped], out: &mut dyn Write) -> io::Result<()> {
    let recovery = &recorded.recovery;
    let before = if recovery.records > 0 { format!(", behind {}", count(recovery.records)) } else { String::new() };
    writeln!(
        out,
        "{} packets of {} recorded to {}{before}",
        count(recorded.records),
        args.file.display(),
        recorded.path.display()
    )?;
    notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
}
