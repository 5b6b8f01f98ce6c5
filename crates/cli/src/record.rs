//! `queuescope record`: the headers of a capture into a folder.

use crate::args::Record;
use crate::capture::{file_notes, parser_notes};
use crate::chosen::Chosen;
use crate::outcome::{Outcome, print};
use crate::progress::Progress;
use crate::query::{over_memory, too_much};
use crate::records::{Frames, Records};
use crate::source::{length, open_capture};
use anyhow::Result;
use queuescope_archive::{Recorder, RecorderOptions, Recovery, VOLUME_RECORDS};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::io::{self, Write};

/// Packets that are appended at once.
const BATCH: usize = 256;
/// Packets between updates of the progress.
const UPDATE: u64 = 65_536;

/// Runs `record`.
///
/// # Errors
/// If nothing could be done: no input, an expression that means nothing, no folder; or if packets could not be kept.
pub fn run(args: &Record) -> Result<Outcome> {
    let mut chosen = Chosen::<Frames>::of(args.chosen.as_deref())?;
    let mut reader = open_capture(&args.file)?;
    let schema = Frames::schema();
    let size = schema.record_size();
    let records = (args.memory.0 / size as u64).max(1);
    let options = RecorderOptions {
        records,
        durability: args.durability.into(),
        journal_records: VOLUME_RECORDS,
        archive: true,
        indexes: Vec::new(),
    };
    let (recorder, recovery) = Recorder::open(&args.log, schema, options)?;
    let mut parser = Parser::new(if args.inner { Tunnel::Inner } else { Tunnel::Outer });
    let progress = Progress::new(length(&args.file));
    let (mut frames, mut batch) = (Frames::default(), Vec::with_capacity(BATCH * size));
    let (mut read, mut refused) = (0u64, 0);
    let damage = loop {
        if read.is_multiple_of(UPDATE) {
            progress.update(reader.input_read(), read);
        }
        let frame = match reader.next_record() {
            Ok(Some(frame)) => frame,
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        read += 1;
        let time = frames.time(&frame);
        let parsed = parser.parse(LinkType::from_dlt(frame.link), frame.original_len, frame.data);
        if chosen.as_mut().is_none_or(|chosen| chosen.holds(&frame, time, parsed)) {
            batch.extend_from_slice(frames.fill(&frame, time, &parsed));
        }
        if batch.len() == BATCH * size {
            refused += recorder.append(&batch)?.refused;
            batch.clear();
        }
    };
    refused += recorder.append(&batch)?.refused;
    let kept = recorder.finish()?;
    progress.finish();
    let left_out = chosen.as_ref().and_then(Chosen::note);
    let notes =
        left_out.into_iter().chain(over_memory(refused)).chain(file_notes(&reader)).chain(parser_notes(&parser));
    let notes: Vec<_> = notes.collect();
    print(false, |_| Ok(()), |out| tell(args, kept, &recovery, &notes, out))?;
    Ok(Outcome::of(damage.or_else(|| too_much(refused))))
}

fn tell(args: &Record, kept: u64, recovery: &Recovery, notes: &[Skipped], out: &mut dyn Write) -> io::Result<()> {
    if let Some(cut) = &recovery.cut {
        writeln!(
            out,
            "{} bytes at the end of {} were not whole, and were cut off: who recorded last was stopped",
            count(cut.bytes),
            cut.path.display()
        )?;
    }
    let before = if recovery.records > 0 { format!(", behind {}", count(recovery.records)) } else { String::new() };
    writeln!(
        out,
        "{} packets of {} recorded to {}{before}",
        count(kept - recovery.records),
        args.file.display(),
        args.log.display()
    )?;
    notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
}
