//! `queuescope log`: what a folder has, and whether it is whole.

use crate::args::{Folder, FolderArgs};
use crate::outcome::{Outcome, print};
use anstyle::Style;
use anyhow::Result;
use queuescope_archive::{State, Verified, verify};
use queuescope_report::format::{count, duration};
use std::io::{self, Write};

const BOLD: Style = Style::new().bold();

/// Runs `log`.
///
/// # Errors
/// If the folder cannot be read, or is no log.
pub fn run(what: &Folder) -> Result<Outcome> {
    match what {
        Folder::Info(args) => info(args),
        Folder::Verify(args) => checked(args),
    }
}

/// What is whole of it.
fn info(args: &FolderArgs) -> Result<Outcome> {
    let verified = verify(&args.folder)?;
    let records = verified.files.iter().map(|file| file.records).sum();
    let damage = damage(&verified);
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
            if let Some((first, last)) = verified.times {
                writeln!(out, "times    {} from the first to the last", duration(last - first))?;
            }
            let bytes: u64 = verified.files.iter().map(|file| file.bytes).sum();
            writeln!(out, "files    {}, {} bytes", verified.files.len(), count(bytes))
        },
    )?;
    Ok(Outcome::of(damage))
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
            State::Torn(bytes) => format!("{} bytes at its end are not whole", count(*bytes)),
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
