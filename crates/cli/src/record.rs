//! `queuescope record`: the headers of a capture into a folder.

use crate::alarms::{Alarms, wanted};
use crate::args::Record;
use crate::arriving::Arriving;
use crate::capture::{file_notes, noted, parser_notes};
use crate::chosen::Chosen;
use crate::outcome::{Outcome, print};
use crate::progress::Progress;
use crate::recording::{Recorded, Recording};
use crate::records::{Frames, Records};
use crate::source::length;
use crate::stop::Stop;
use anyhow::{Result, bail};
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
    let chosen = Chosen::<Frames>::of(args.chosen.as_deref())?;
    let stop = Stop::on_signals()?;
    let arriving = Arriving::open(&args.file, Some(&stop))?;
    let definitions = wanted(&args.log, Frames::schema(), &args.derived)?;
    let recording = Recording::open(&args.log, Frames::schema(), &args.keeping, Some(&definitions))?;
    let mut alarms = Alarms::of(&recording, &definitions)?;
    let mut passing = Passing {
        arriving,
        chosen,
        parser: Parser::new(if args.inner { Tunnel::Inner } else { Tunnel::Outer }),
        sampling: args.sample.map(|one_of| Sampling::new(1.0 / one_of as f64, 0)).transpose()?,
        unsampled: 0,
    };
    let progress = Progress::new(length(&args.file));
    let ended = passing.all(&recording, alarms.as_mut(), &progress);
    // What was read is kept, whatever went wrong behind it.
    let looked = if ended.is_ok() { alarms.as_mut().map_or(Ok(()), Alarms::finish) } else { Ok(()) };
    let fired = alarms.map_or(0, |alarms| alarms.fired);
    let finished = recording.finish();
    progress.finish();
    let (damage, recorded) = match (ended.and_then(|damage| looked.map(|()| damage)), finished) {
        (damage, Ok(recorded)) => (damage, recorded),
        (Ok(None), Err(error)) => return Err(error),
        (Ok(Some(damage)), Err(error)) => bail!("{error:#}; and {damage}"),
        (Err(error), Err(other)) => bail!("{error:#}; and {other:#}"),
    };
    let left_out = passing.chosen.as_ref().and_then(Chosen::note);
    let notes = left_out
        .into_iter()
        .chain(recorded.short())
        .chain(noted("fired", fired, "times a trigger fired; queuescope watch --all tells them"))
        .chain(noted("unsampled", passing.unsampled, "packets left out by --sample"))
        .chain(file_notes(&passing.arriving.reader))
        .chain(parser_notes(&passing.parser))
        .chain(stop.note());
    let notes: Vec<_> = notes.collect();
    print(false, |_| Ok(()), |out| tell(args, &recorded, &notes, out))?;
    Ok(Outcome::of(damage?.or_else(|| recorded.damage())))
}

/// Packets on their way from a capture to a folder.
struct Passing {
    arriving: Arriving,
    chosen: Option<Chosen<Frames>>,
    parser: Parser,
    sampling: Option<Sampling>,
    unsampled: u64,
}

impl Passing {
    /// All of them: what is wrong with the capture.
    fn all(
        &mut self,
        recording: &Recording,
        mut alarms: Option<&mut Alarms<'_>>,
        progress: &Progress,
    ) -> Result<Option<String>> {
        let Self { arriving, chosen, parser, sampling, unsampled } = self;
        let (mut frames, mut read) = (Frames::default(), 0u64);
        loop {
            if read.is_multiple_of(UPDATE) {
                progress.update(arriving.reader.input_read(), read);
            }
            if arriving.may_wait() {
                recording.flush()?;
            }
            let frame = match arriving.reader.next_record() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(arriving.damage(error).map(|error| error.to_string())),
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
                    *unsampled += 1;
                }
            }
        }
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
        args.log.display()
    )?;
    notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
}
