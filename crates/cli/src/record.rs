//! `queuescope record`: the headers of a capture into a folder.

use crate::alarms::{Alarms, wanted};
use crate::args::Record;
use crate::capture::{file_notes, noted, parser_notes};
use crate::chosen::Chosen;
use crate::outcome::{Outcome, print};
use crate::progress::Progress;
use crate::recording::{Recorded, Recording};
use crate::records::{Frames, Records};
use crate::source::{length, open_capture};
use anyhow::Result;
use queuescope_log::Sampling;
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::io::{self, Write};

/// Packets between updates of the progress.
const UPDATE: u64 = 65_536;

/// Runs `record`.
///
/// # Errors
/// If nothing could be done: no input, an expression that means nothing, no folder; or if packets could not be kept.
pub fn run(args: &Record) -> Result<Outcome> {
    let mut chosen = Chosen::<Frames>::of(args.chosen.as_deref())?;
    let mut reader = open_capture(&args.file)?;
    let definitions = wanted(&args.log, Frames::schema(), &args.derived)?;
    let recording = Recording::open(&args.log, Frames::schema(), &args.keeping, Some(&definitions))?;
    let mut alarms = Alarms::of(&recording, &definitions)?;
    let mut parser = Parser::new(if args.inner { Tunnel::Inner } else { Tunnel::Outer });
    let progress = Progress::new(length(&args.file));
    let mut sampling = args.sample.map(|one_of| Sampling::new(1.0 / one_of as f64, 0)).transpose()?;
    let (mut frames, mut read, mut unsampled) = (Frames::default(), 0u64, 0u64);
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
            if let Some(alarms) = &mut alarms {
                alarms.at(time.unwrap_or_default())?;
            }
            if sampling.as_mut().is_none_or(Sampling::keeps) {
                recording.push(frames.fill(&frame, time, &parsed))?;
            } else {
                unsampled += 1;
            }
        }
    };
    let fired = alarms.map(Alarms::finish).transpose()?;
    let recorded = recording.finish()?;
    progress.finish();
    let left_out = chosen.as_ref().and_then(Chosen::note);
    let notes = left_out
        .into_iter()
        .chain(recorded.short())
        .chain(noted("fired", fired.unwrap_or_default(), "times a trigger fired; queuescope watch --all tells them"))
        .chain(noted("unsampled", unsampled, "packets left out by --sample"))
        .chain(file_notes(&reader))
        .chain(parser_notes(&parser));
    let notes: Vec<_> = notes.collect();
    print(false, |_| Ok(()), |out| tell(args, &recorded, &notes, out))?;
    Ok(Outcome::of(damage.or_else(|| recorded.damage())))
}

fn tell(args: &Record, recorded: &Recorded, notes: &[Skipped], out: &mut dyn Write) -> io::Result<()> {
    let recovery = &recorded.recovery;
    if let Some(cut) = &recovery.cut {
        let behind = match cut.records {
            0 => String::new(),
            records => {
                format!("; {} packets were among them, behind others that a loss of power broke", count(records))
            }
        };
        writeln!(
            out,
            "{} bytes at the end of {} were not whole, and were cut off: who recorded last was stopped{behind}",
            count(cut.bytes),
            cut.path.display()
        )?;
    }
    let before = if recovery.records > 0 { format!(", behind {}", count(recovery.records)) } else { String::new() };
    writeln!(
        out,
        "{} packets of {} recorded to {}{before}",
        count(recorded.records),
        args.file.display(),
        args.log.display()
    )?;
    notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
}
