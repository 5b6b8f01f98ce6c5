//! `queuescope log export`: writes the records of a folder to a file, with all their attributes.

use crate::args;
use crate::expressions::expression;
use crate::outcome::{Outcome, print};
use crate::paths::check_outputs;
use anyhow::Result;
use queuescope_archive::History;
use queuescope_recording::query::{Export, Loaded, Question, share};
use queuescope_report::format::count;
use std::io::Write;

/// Runs `log export`.
///
/// # Errors
/// Fails if the folder has no log, if the expression is invalid, or if the file cannot be written.
pub fn run(args: &args::Export) -> Result<Outcome> {
    let history = History::open(&args.folder)?;
    let schema = history.schema().clone();
    args.times.check()?;
    let expression = expression(&schema, args.expression.as_deref().unwrap_or_default())?;
    check_outputs([&args.folder], [&Some(args.file.clone())])?;
    let attributes: Vec<_> = schema.iter().map(|(id, _)| id).collect();
    let export = Export::create(&args.file, &attributes, &schema)?;
    let loaded = Loaded::folder(history, &args.folder)?;
    let (from, to) = args.times.range(&loaded);
    let question = Question { expression: &expression, from, to, needed: &attributes, company: None };
    let mut is_noted = false;
    let found = export.write(&loaded, question, &mut |note| {
        anstream::eprintln!("note: {note}");
        is_noted = true;
    })?;
    let write_summary = |out: &mut dyn Write| {
        let (folder, file) = (args.folder.display(), args.file.display());
        writeln!(out, "{} records of {folder} written to {file}", share(found.packets, found.seen.records))?;
        let mut notes = found.seen.skipped.iter().filter(|_| !is_noted);
        notes.try_for_each(|note| writeln!(out, "note: {} {}", count(note.count), note.meaning))
    };
    print(false, |_| Ok(()), write_summary)?;
    Ok(Outcome::from_damage(found.seen.damage))
}
