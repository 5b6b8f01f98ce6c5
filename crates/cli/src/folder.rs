//! `queuescope log`: shows what a folder holds, checks it, and makes it smaller.

use crate::args::{Export, Folder, FolderArgs, KeepArgs};
use crate::export;
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anstyle::Style;
use anyhow::{Result, bail};
use queuescope_archive::{
    Aggregates, Compacted, FileReport, Files, FolderError, Part, Pruned, Retention, State, Verified, aggregates,
    compact, definitions, in_future, prune, schema, verify,
};
use queuescope_log::{Definitions, Function, Kind, Number, Schema};
use queuescope_recording::{check_log, cut_off, kept_aside, missing};
use queuescope_report::format::{count, duration};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

const BOLD: Style = Style::new().bold();

/// Runs `log`.
///
/// # Errors
/// Fails if the folder cannot be read or written, or has no log.
pub fn run(what: &Folder) -> Result<Outcome> {
    let (Folder::Info(FolderArgs { folder })
    | Folder::Verify(FolderArgs { folder })
    | Folder::Compact(FolderArgs { folder })
    | Folder::Keep(KeepArgs { folder, .. })
    | Folder::Export(Export { folder, .. })) = what;
    check_log(folder)?;
    match what {
        Folder::Info(args) => run_info(args),
        Folder::Verify(args) => run_verify(args),
        Folder::Compact(args) => run_compact(args),
        Folder::Keep(args) => run_keep(args),
        Folder::Export(args) => export::run(args),
    }
}

/// Runs `log info`.
fn run_info(args: &FolderArgs) -> Result<Outcome> {
    let verified = verify(&args.folder)?;
    let records = verified.files.iter().map(|file| file.records).sum();
    let damage = damage(&verified, &args.folder);
    // For a damaged folder, print the damage, and no aggregates.
    let known = if damage.is_none() { Some(aggregates(&args.folder, verified.end)?) } else { None };
    let known = known.map(|known| Ok::<_, anyhow::Error>((known, definitions(&args.folder)?))).transpose()?;
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
            write_contents(&verified, out)?;
            write_missing(&verified, &args.folder, out)?;
            known.iter().try_for_each(|(known, definitions)| write_aggregates(known, definitions, out))
        },
    )?;
    Ok(Outcome::from_damage(damage))
}

/// Writes the values of aggregates.
fn write_aggregates(known: &Aggregates, definitions: &Definitions, out: &mut dyn Write) -> io::Result<()> {
    for (name, number) in &known.values {
        let definition = definitions.aggregates().iter().find(|definition| definition.name == *name);
        let of = definition.map_or(&Function::Count, |definition| &definition.function);
        writeln!(out, "{name:<8} {}", value(*number, of, definitions.schema()))?;
    }
    if !known.kept && !known.values.is_empty() {
        writeln!(
            out,
            "         (computed from the records, because aggregates.json is missing or out of date: a recording is in progress or was killed, or the file was deleted)"
        )?;
    }
    Ok(())
}

/// A value with its unit: a minimum or a maximum is a value of its attribute.
fn value(value: Number, function: &Function, schema: &Schema) -> String {
    let text = match value {
        Number::Unsigned(value) => count(u64::try_from(value).unwrap_or(u64::MAX)),
        Number::Signed(value) => value.to_string(),
        Number::Float(value) => format!("{value:.3}"),
    };
    match (function, value) {
        (Function::Count, _) => format!("{text} records"),
        (Function::Min(id) | Function::Max(id), Number::Unsigned(key)) => match u64::try_from(key) {
            Ok(at) if schema.time() == Some(*id) => utc(at),
            _ => schema.attribute(*id).text_of(key),
        },
        (Function::Sum(id) | Function::Mean(id) | Function::Deviation(id), _) => match schema.attribute(*id).kind {
            Kind::Size => format!("{text} bytes"),
            Kind::Time => duration(value.to_f64() as u64),
            _ => text,
        },
        _ => text,
    }
}

/// Writes the times, the files, the indexes, and what was removed or lost.
fn write_contents(verified: &Verified, out: &mut dyn Write) -> io::Result<()> {
    if let Some((first, last)) = verified.times {
        let apart = duration(last - first);
        writeln!(out, "times    {} to {}, {apart} from the first to the last", utc(first), utc(last))?;
    }
    let (volumes, mut journals): (Vec<_>, Vec<_>) = verified.files.iter().partition(|file| file.is_volume());
    // Damaged files of other kinds are in the list too.
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
    if verified.removed > 0 {
        writeln!(out, "removed  {} records, because of their age or the size of the folder", count(verified.removed))?;
    }
    write_lost(verified, out)?;
    let mut kept = verified.files.iter().filter(|file| file.state == State::Kept);
    kept.try_for_each(|file| writeln!(out, "{} ({} bytes), {KEPT}", file.path.display(), count(file.bytes)))
}

/// Writes what is known to be lost.
fn write_lost(verified: &Verified, out: &mut dyn Write) -> io::Result<()> {
    let records = verified.files.iter().map(|file| file.lost).sum();
    let of_records =
        "records: the disk was too slow when they came, or they were missing when the recording was continued";
    let of_alerts = "bytes of alerts, which were missing when the recording was continued";
    let lost = [(records, of_records), (verified.alerts_lost, of_alerts)];
    let mut lost = lost.into_iter().filter(|(number, _)| *number > 0);
    lost.try_for_each(|(number, what)| writeln!(out, "lost     {} {what}", count(number)))
}

/// The state of files that nothing reads.
const KEPT: &str =
    "kept aside: a journal that was restored or renamed, or data that lay behind damage; nothing reads it";

/// A time as a date, to the second: `2026-11-22 16:06:30 UTC`.
fn utc(nanos: u64) -> String {
    let time = chrono::DateTime::from_timestamp((nanos / 1_000_000_000) as i64, 0);
    time.map_or_else(|| duration(nanos), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Runs `log compact`.
fn run_compact(args: &FolderArgs) -> Result<Outcome> {
    let Compacted { before, after, cut, kept } = compact(&args.folder)?;
    cut.iter().for_each(|cut| note(&cut_off(cut)));
    kept.iter().for_each(|kept| note(&kept_aside(kept)));
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
    Ok(Outcome::Complete)
}

/// Runs `log keep`.
fn run_keep(args: &KeepArgs) -> Result<Outcome> {
    if args.age.is_some() && schema(&args.folder)?.time().is_none() {
        bail!("the records of {} have no time, so --for cannot apply; give --size", args.folder.display());
    }
    let wanted = Retention { age: args.age.map(|age| age.0), bytes: args.size.map(|size| size.0) };
    let Pruned { volumes, records, bytes, left, held } = prune(&args.folder, wanted)?;
    let (volumes, records, bytes) = (count(volumes), count(records), count(bytes));
    // For damaged files this is unknown. They may be what the user deletes here, so it is not an error.
    let future = in_future(&args.folder).unwrap_or_else(|error| {
        note(&format!("cannot count the records with times in the future: {error}"));
        0
    });
    print(
        false,
        |_| Ok(()),
        |out| {
            writeln!(out, "deleted: volumes {volumes}, records {records}, bytes {bytes}")?;
            if future > 0 {
                let future = count(future);
                writeln!(
                    out,
                    "records with times more than a day in the future: {future}; age is not counted from them"
                )?;
            }
            if held.volumes > 0 {
                let (volumes, bytes) = (count(held.volumes), count(held.bytes));
                writeln!(out, "kept because they wait to be uploaded: volumes {volumes}, bytes {bytes}")?;
            }
            match wanted.bytes.filter(|most| left - held.bytes > *most) {
                Some(_) => writeln!(out, "the newest volume is always kept: it has {} bytes", count(left - held.bytes)),
                None => Ok(()),
            }
        },
    )?;
    Ok(Outcome::Complete)
}

/// Runs `log verify`.
fn run_verify(args: &FolderArgs) -> Result<Outcome> {
    let verified = match verify(&args.folder) {
        // Without the catalogue it is not known which files belong to the folder.
        Err(FolderError::Damaged(damage)) => return Ok(Outcome::Damaged(damage.to_string())),
        verified => verified?,
    };
    print(false, |_| Ok(()), |out| files(&verified, &args.folder, out))?;
    Ok(Outcome::from_damage(damage(&verified, &args.folder)))
}

/// The path of a file within its folder.
fn within(file: &FileReport, folder: &Path) -> String {
    file.path.strip_prefix(folder).unwrap_or(&file.path).display().to_string()
}

/// Writes how many records were written and are in no file.
fn write_missing(verified: &Verified, folder: &Path, out: &mut dyn Write) -> io::Result<()> {
    if verified.missing > 0 { writeln!(out, "{}", missing(folder, verified.missing)) } else { Ok(()) }
}

fn files(verified: &Verified, folder: &Path, out: &mut dyn Write) -> io::Result<()> {
    let width = verified.files.iter().map(|file| within(file, folder).len()).max().unwrap_or(0);
    writeln!(out, "{BOLD}{:<width$}  {:>14}  {:>16}  state{BOLD:#}", "file", "records", "bytes")?;
    for file in &verified.files {
        let name = within(file, folder);
        let state = match &file.state {
            State::Closed => "intact".to_owned(),
            State::Open => "intact, not closed: a process records to it, or was killed while recording".to_owned(),
            State::Torn(part) => torn_end(part),
            State::Kept => KEPT.to_owned(),
            State::Damaged(damage) => match damage.at {
                Some((offset, _)) => format!("damaged at byte {}: {}", count(offset), damage.why),
                // The damage may be in another file of the volume.
                None if damage.path == file.path => format!("damaged: {}", damage.why),
                None => {
                    format!("damaged, {}: {}", damage.path.file_name().unwrap_or_default().display(), damage.why)
                }
            },
        };
        writeln!(out, "{name:<width$}  {:>14}  {:>16}  {state}", count(file.records), count(file.bytes))?;
    }
    write_lost(verified, out)?;
    write_missing(verified, folder, out)
}

/// The state of a journal with a torn end.
fn torn_end(Part { bytes, records, .. }: &Part) -> String {
    let whole = match records {
        0 => String::new(),
        _ => format!(" with {} whole packets, which are kept aside", count(*records)),
    };
    format!("torn end, {} bytes{whole}: cut off by the next recording", count(*bytes))
}

/// A message about the first damage, if any. A torn end of the last journal, which a killed process leaves, is not damage:
/// no whole record is missing then.
fn damage(verified: &Verified, folder: &Path) -> Option<String> {
    let damaged = verified.files.iter().filter_map(|file| match &file.state {
        State::Damaged(damage) => Some(damage.to_string()),
        _ => None,
    });
    let lacks = (verified.missing > 0).then(|| missing(folder, verified.missing));
    let mut damaged = damaged.chain(lacks);
    let first = damaged.next()?;
    let others = damaged.count() as u64;
    Some(if others > 0 { format!("{first} ({} more)", count(others)) } else { first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_end_is_described() {
        let mut part = Part { path: "a.journal".into(), offset: 40, bytes: 5_355_765, records: 28_669, end: 50_000 };
        let with =
            "torn end, 5,355,765 bytes with 28,669 whole packets, which are kept aside: cut off by the next recording";
        assert_eq!(torn_end(&part), with);
        part.records = 0;
        assert_eq!(torn_end(&part), "torn end, 5,355,765 bytes: cut off by the next recording");
    }
}
