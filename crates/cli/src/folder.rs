//! `queuescope log`: what a folder has, whether it is whole, and making it smaller.

use crate::args::{Folder, FolderArgs, KeepArgs};
use crate::outcome::{Outcome, print};
use crate::query::export;
use anstyle::Style;
use anyhow::{Result, bail};
use queuescope_archive::{
    Aggregates, Compacted, FileReport, Files, Keep, Part, State, Taken, Verified, aggregates, compact, keep, schema,
    verify,
};
use queuescope_log::Number;
use queuescope_report::format::{count, duration};
use std::collections::BTreeMap;
use std::io::{self, Write};

const BOLD: Style = Style::new().bold();

/// Runs `log`.
///
/// # Errors
/// If the folder cannot be read or written, or is no log.
pub fn run(what: &Folder) -> Result<Outcome> {
    match what {
        Folder::Info(args) => info(args),
        Folder::Verify(args) => checked(args),
        Folder::Compact(args) => compacted(args),
        Folder::Keep(args) => kept(args),
        Folder::Export(args) => export(args),
    }
}

/// What is whole of it.
fn info(args: &FolderArgs) -> Result<Outcome> {
    let verified = verify(&args.folder)?;
    let records = verified.files.iter().map(|file| file.records).sum();
    let damage = damage(&verified);
    // What is wrong with them is told as damage.
    let known = aggregates(&args.folder).ok().flatten();
    print(
        false,
        |_| Ok(()),
        |out| {
            writeln!(
                out,
                "{BOLD}{}{BOLD:#}: {} records of {}",
                args.folder.display(),
                count(records),
                verified.schema.name()
            )?;
            contents(&verified, out)?;
            worked_out(known.as_ref(), out)
        },
    )?;
    Ok(Outcome::of(damage))
}

/// What aggregates were when recording ended.
fn worked_out(known: Option<&Aggregates>, out: &mut dyn Write) -> io::Result<()> {
    known.iter().flat_map(|known| &known.values).try_for_each(|(name, value)| match value {
        Number::Unsigned(value) => writeln!(out, "{name:<8} {}", count(u64::try_from(*value).unwrap_or(u64::MAX))),
        Number::Signed(value) => writeln!(out, "{name:<8} {value}"),
        Number::Float(value) => writeln!(out, "{name:<8} {value:.3}"),
    })
}

/// Times, files, and what is not there any more.
fn contents(verified: &Verified, out: &mut dyn Write) -> io::Result<()> {
    if let Some((first, last)) = verified.times {
        let apart = duration(last - first);
        writeln!(out, "times    {} to {}, {apart} from the first to the last", utc(first), utc(last))?;
    }
    let (volumes, mut journals): (Vec<_>, Vec<_>) = verified.files.iter().partition(|file| file.is_volume());
    // What else is damaged is told, and no journal.
    journals.retain(|file| file.path.extension().is_some_and(|end| end == "journal"));
    for (name, files) in [("volumes", &volumes), ("journals", &journals)] {
        let sum = |of: fn(&FileReport) -> u64| files.iter().map(|file| of(file)).sum::<u64>();
        let (records, bytes) = (sum(|file| file.records), sum(|file| file.bytes));
        let each = if records > 0 { format!(", {:.1} a record", bytes as f64 / records as f64) } else { String::new() };
        writeln!(
            out,
            "{name:<8} {}, {} records, {} bytes{each}",
            count(files.len() as u64),
            count(records),
            count(bytes)
        )?;
    }
    let mut indexes = BTreeMap::new();
    for name in volumes.iter().flat_map(|file| &file.indexes) {
        *indexes.entry(name).or_insert(0) += 1;
    }
    let indexes: Vec<_> = indexes.into_iter().map(|(name, of)| format!("{name} of {}", count(of))).collect();
    writeln!(out, "indexes  {}", if indexes.is_empty() { "none".to_owned() } else { indexes.join(", ") })?;
    let lost = verified.files.iter().map(|file| file.lost).sum();
    let missing = [
        (verified.removed, "removed", "records, since they were old or too many"),
        (lost, "lost", "records, since the disk could not keep up when they came"),
    ];
    let mut missing = missing.into_iter().filter(|(number, ..)| *number > 0);
    missing.try_for_each(|(number, name, why)| writeln!(out, "{name:<8} {} {why}", count(number)))
}

/// A moment by the calendar, to the second: `2026-11-22 16:06:30 UTC`.
fn utc(nanos: u64) -> String {
    let time = chrono::DateTime::from_timestamp((nanos / 1_000_000_000) as i64, 0);
    time.map_or_else(|| duration(nanos), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Few files of many.
fn compacted(args: &FolderArgs) -> Result<Outcome> {
    let Compacted { before, after } = compact(&args.folder)?;
    print(
        false,
        |_| Ok(()),
        |out| {
            for (when, Files { files, bytes }) in [("before", before), ("after", after)] {
                writeln!(out, "{when:<6}  {:>9} files  {:>16} bytes", count(files), count(bytes))?;
            }
            Ok(())
        },
    )?;
    Ok(Outcome::Whole)
}

/// Old records taken away.
fn kept(args: &KeepArgs) -> Result<Outcome> {
    if args.age.is_some() && schema(&args.folder)?.time().is_none() {
        bail!("the records of {} have no time, so that none is old; give --size", args.folder.display());
    }
    let wanted = Keep { age: args.age.map(|age| age.0), bytes: args.size.map(|size| size.0) };
    let Taken { volumes, records, bytes } = keep(&args.folder, wanted)?;
    let (volumes, records, bytes) = (count(volumes), count(records), count(bytes));
    print(false, |_| Ok(()), |out| writeln!(out, "taken away: volumes {volumes}, records {records}, bytes {bytes}"))?;
    Ok(Outcome::Whole)
}

/// Every file, and how it ends.
fn checked(args: &FolderArgs) -> Result<Outcome> {
    let verified = verify(&args.folder)?;
    print(false, |_| Ok(()), |out| files(&verified, out))?;
    Ok(Outcome::of(damage(&verified)))
}

fn files(verified: &Verified, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{BOLD}{:<30}  {:>14}  {:>16}  state{BOLD:#}", "file", "records", "bytes")?;
    for file in &verified.files {
        let name = file.path.file_name().unwrap_or_default().display().to_string();
        let state = match &file.state {
            State::Closed => "whole".to_owned(),
            State::Open => "whole, not closed: it is recorded to, or who did was stopped".to_owned(),
            State::Torn(Part { bytes, records: 0, .. }) => format!("{} bytes at its end are not whole", count(*bytes)),
            State::Torn(Part { bytes, records, .. }) => {
                format!("{} bytes at its end are not whole; {} packets among them are", count(*bytes), count(*records))
            }
            State::Damaged(damage) => match damage.at {
                Some((offset, _)) => format!("damaged at byte {}: {}", count(offset), damage.why),
                None => format!("damaged: {}", damage.why),
            },
        };
        writeln!(out, "{name:<30}  {:>14}  {:>16}  {state}", count(file.records), count(file.bytes))?;
    }
    Ok(())
}

/// What is not as it was written. An end that is not whole may be one that is being written.
fn damage(verified: &Verified) -> Option<String> {
    let damaged = verified.files.iter().find_map(|file| match &file.state {
        State::Damaged(damage) => Some(damage.to_string()),
        _ => None,
    });
    damaged.or_else(|| {
        let torn = verified.files.iter().find(|file| matches!(file.state, State::Torn(_)))?;
        Some(format!("{} ends within a record that was being written", torn.path.display()))
    })
}
