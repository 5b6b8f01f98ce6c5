//! `queuescope record`: records the headers of a capture in a folder.

use crate::args::Record;
use crate::expressions::recording_error;
use crate::outcome::{Outcome, print};
use crate::progress::Progress;
use crate::terminal::note;
use anyhow::Result;
use queuescope_ingest::notes::file_notes;
use queuescope_ingest::records::{Frames, Records};
use queuescope_ingest::{CaptureInput, Stop, length};
use queuescope_recording::{Headers, Recorded, into_folder};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use std::io::{self, Write};

/// Runs `record`.
///
/// # Errors
/// Fails if the input cannot be read, if the expression is invalid, if the folder cannot be recorded to, or if packets could
/// not be kept.
pub fn run(args: &Record) -> Result<Outcome> {
    let mut headers = Headers::of(args.recorded.chosen.as_deref(), args.recorded.inner, args.sample)?;
    let stop = Stop::on_signals()?;
    let (keeping, derived) = (args.keeping.options(Frames::schema())?, args.derived.options()?);
    let mut arriving = CaptureInput::open(&args.file, Some(&stop))?;
    let progress = Progress::new(length(&args.file));
    let kept = into_folder(&args.log, &keeping, &derived, Box::new(note), |folder| {
        headers.keep_all(&mut arriving, folder, &mut |read, packets| progress.update(read, packets))
    });
    progress.finish();
    let (damage, kept) = kept.map_err(recording_error)?;
    let notes = headers
        .left_out()
        .chain(kept.notes())
        .chain(file_notes(&arriving.reader))
        .chain(headers.notes())
        .chain(stop.note());
    let notes: Vec<_> = notes.collect();
    print(false, |_| Ok(()), |out| write_summary(args, &kept.recorded, &notes, out))?;
    Ok(Outcome::from_damage(damage?.or_else(|| kept.recorded.damage())))
}

fn write_summary(args: &Record, recorded: &Recorded, notes: &[Skipped], out: &mut dyn Write) -> io::Result<()> {
    let recovery = &recorded.recovery;
    let before = match recovery.records {
        0 => String::new(),
        before => format!(", after the {} already there", count(before)),
    };
    writeln!(
        out,
        "{} packets of {} recorded to {}{before}",
        count(recorded.records),
        args.file.display(),
        recorded.path.display()
    )?;
    notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
}
