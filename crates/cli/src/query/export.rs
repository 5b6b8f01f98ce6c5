//! `queuescope log export`: the records of a folder to a file, with all their attributes.

use super::ask::Asked;
use super::held::Question;
use super::show::{self, Form, of};
use super::{Parquet, at, check_times, load};
use crate::args::Export;
use crate::beside::Beside;
use crate::expressions::expression;
use crate::outcome::{Outcome, print};
use crate::paths::{cannot_write, check_outputs};
use anyhow::{Context, Result, bail};
use queuescope_archive::History;
use queuescope_log::AttributeId;
use queuescope_report::format::count;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs `log export`.
///
/// # Errors
/// If nothing could be done: no log, an expression that means nothing, or a file that cannot be written.
pub fn run(args: &Export) -> Result<Outcome> {
    let history = History::open(&args.folder)?;
    let schema = history.schema().clone();
    check_times(args.from, args.to)?;
    let expression = expression(&schema, args.expression.as_deref().unwrap_or_default())?;
    check_outputs([&args.folder], [&Some(args.file.clone())])?;
    let attributes: Vec<_> = schema.iter().map(|(id, _)| id).collect();
    let output = Output::create(&args.file, &attributes, &schema)?;
    let loaded = load::folder(history, &args.folder)?;
    let (from, to) = (at(args.from, 0, &loaded), at(args.to, u64::MAX, &loaded));
    let question = Question { expression: &expression, from, to, needed: &attributes, company: None };
    let (asked, mut is_told) = (Asked::Packets(attributes.clone(), None), false);
    let ((found, _), seen) = match output {
        Output::Parquet(parquet) => parquet.write(&loaded.held, question)?,
        Output::Rows(form, mut out) => {
            // As CSV, what is remarkable is told while it is written.
            is_told = form == Form::Csv;
            let told = show::rows(&asked, question, &loaded, form, &mut out);
            let told = told.with_context(|| cannot_write(&args.file))?;
            out.into_inner().with_context(|| cannot_write(&args.file))?.put()?;
            told
        }
    };
    let tell = |out: &mut dyn Write| {
        let (folder, file) = (args.folder.display(), args.file.display());
        writeln!(out, "{} records of {folder} written to {file}", of(found, seen.records))?;
        let mut notes = seen.skipped.iter().filter(|_| !is_told);
        notes.try_for_each(|note| writeln!(out, "note: {} {}", count(note.count), note.meaning))
    };
    print(false, |_| Ok(()), tell)?;
    Ok(Outcome::of(seen.damage))
}

/// A file of records, as its name ends.
enum Output<'a> {
    Parquet(Box<Parquet<'a>>),
    Rows(Form, BufWriter<Beside>),
}

impl<'a> Output<'a> {
    fn create(path: &'a Path, attributes: &'a [AttributeId], schema: &queuescope_log::Schema) -> Result<Self> {
        let rows = |form| Ok(Self::Rows(form, BufWriter::new(Beside::create(path)?)));
        match path.extension().and_then(|end| end.to_str()) {
            Some("parquet") => {
                Parquet::begin(path, attributes, u64::MAX, schema).map(|parquet| Self::Parquet(Box::new(parquet)))
            }
            Some("csv") => rows(Form::Csv),
            Some("jsonl") => rows(Form::Json),
            _ => {
                bail!("{}: its name does not say as what; let it end with .parquet, .csv or .jsonl", cannot_write(path))
            }
        }
    }
}
