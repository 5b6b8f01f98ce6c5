//! `queuescope query`: which packets of a capture, of a table of departures, or of what was recorded to a folder, by an
//! expression, and what is worked out of them.

mod ask;
mod load;
mod show;

use crate::args::Query;
use crate::chosen::expression;
use crate::files::check_outputs;
use crate::outcome::{Outcome, print};
use crate::outputs::{cannot_write, create};
use crate::records::Rows;
use crate::source::{open_capture, open_table};
use anyhow::{Context, Error, Result, anyhow, bail};
use ask::Asked;
use load::Loaded;
pub(crate) use load::{over_memory, too_much};
use queuescope_log::{AttributeId, Dnf, Schema, arrow};
use queuescope_pcap::{CaptureReader, OpenError};
use queuescope_table::{BatchWriter, DepartureReader};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Runs `query`.
///
/// # Errors
/// If nothing could be done: no input, an expression that means nothing, or an answer that cannot be written.
pub fn run(args: &Query) -> Result<Outcome> {
    let folder = args.file.as_deref().filter(|path| path.is_dir()).map(queuescope_archive::schema).transpose()?;
    let schema = match &folder {
        Some(_) if args.table.departures => bail!("--departures is of tables; a folder knows what its records are"),
        Some(schema) => schema,
        None if args.table.departures => Schema::departure(),
        None => Schema::packet(),
    };
    if args.attributes {
        print(false, |_| Ok(()), |out| show::attributes(schema, out))?;
        return Ok(Outcome::Whole);
    }
    let Some(file) = &args.file else { return Err(anyhow!("name a file")) };
    // What is wrong with the question is told before anything is read.
    if let (Some(from), Some(to)) = (args.from, args.to)
        && from >= to
    {
        bail!("--from {from} --to {to} ends before it begins, or as it does");
    }
    let expression = expression(schema, args.expression.as_deref().unwrap_or_default())?;
    let asked = Asked::of(args, schema)?;
    let indexes = ask::attributes("--index", args.index.as_deref(), schema)?;
    if args.table.departures {
        Rows::check(expression.attributes().into_iter().chain(asked.attributes()).chain(indexes.iter().copied()))?;
    }
    check_outputs([file], [&args.parquet])?;
    // What cannot be read must not cost an older file.
    let opened = Opened::open(file, args, folder.as_ref())?;
    let parquet = Parquet::create(args, &asked, schema)?;
    let loaded = opened.load(file, args)?;
    for index in indexes {
        loaded.log.add_index(index);
    }
    answer(args, &loaded, &asked, &expression, parquet)?;
    Ok(Outcome::of(loaded.damage))
}

/// An input that could be opened.
enum Opened<'a> {
    Folder(&'a Schema),
    Capture(CaptureReader),
    Table(DepartureReader),
}

impl<'a> Opened<'a> {
    fn open(file: &Path, args: &Query, folder: Option<&'a Schema>) -> Result<Self> {
        if let Some(schema) = folder {
            return Ok(Self::Folder(schema));
        }
        if args.table.departures {
            return open_table(file, &args.table).map(Self::Table);
        }
        let hint = |error: Error| match error.downcast_ref() {
            Some(OpenError::NotCapture { .. }) => anyhow!("{error}; a table of departures is read with --departures"),
            _ => error,
        };
        open_capture(file).map(Self::Capture).map_err(hint)
    }

    fn load(self, file: &Path, args: &Query) -> Result<Loaded> {
        match self {
            Self::Folder(schema) => load::folder(file, args, schema),
            Self::Capture(reader) => load::capture(reader, file, args),
            Self::Table(reader) => load::table(reader, file, args),
        }
    }
}

/// A Parquet file of packets, and which of their attributes it has.
struct Parquet<'a> {
    path: &'a Path,
    attributes: &'a [AttributeId],
    limit: u64,
    writer: BatchWriter<BufWriter<File>>,
}

/// Rows that are handed to it at once.
const ROWS: usize = 8192;

impl<'a> Parquet<'a> {
    /// Begins the file that was asked for, so that what cannot be written fails before the work is done.
    fn create(args: &'a Query, asked: &'a Asked, schema: &Schema) -> Result<Option<Self>> {
        let Some(path) = &args.parquet else { return Ok(None) };
        let Asked::Packets(attributes, limit) = asked else {
            bail!("--parquet has packets; of sums write --csv");
        };
        let columns = arrow::columns(schema, attributes);
        let writer = BatchWriter::new(BufWriter::new(create(path)?), columns).with_context(|| cannot_write(path))?;
        Ok(Some(Self { path, attributes, limit: limit.unwrap_or(u64::MAX), writer }))
    }

    /// Writes what a query finds; how many packets.
    fn write(mut self, query: &queuescope_log::Query<'_>, schema: &Schema) -> Result<u64> {
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let mut found = 0;
        for batch in arrow::Batches::new(query.matched().take(limit), schema, self.attributes, ROWS) {
            let batch = batch?;
            found += batch.num_rows() as u64;
            self.writer.write(&batch).with_context(|| cannot_write(self.path))?;
        }
        let mut out = self.writer.finish().with_context(|| cannot_write(self.path))?;
        out.flush().with_context(|| cannot_write(self.path))?;
        Ok(found)
    }
}

fn answer(args: &Query, loaded: &Loaded, asked: &Asked, expression: &Dnf, parquet: Option<Parquet<'_>>) -> Result<()> {
    let snapshot = loaded.log.snapshot();
    let mut query = snapshot.query().matching(expression);
    if let Some(from) = args.from {
        query = query.from(loaded.first.saturating_add(from).0);
    }
    if let Some(to) = args.to {
        query = query.to(loaded.first.saturating_add(to).0);
    }
    if args.explain {
        let found = query.matched().count();
        return print(
            args.json,
            |out| show::explained_json(&query.explain(), found, out),
            |out| show::explained(&query.explain(), found, out),
        );
    }
    let form = show::Form::of(args);
    if let Some(parquet) = parquet {
        let limit = parquet.limit;
        let found = parquet.write(&query, loaded.log.schema())?;
        let stopped = found == limit && query.matched().count() > found;
        return print(
            args.json,
            |out| show::foot((found, stopped), loaded, form, out),
            |out| show::foot((found, stopped), loaded, form, out),
        );
    }
    print(
        args.json || args.csv,
        |out| show::rows(asked, &query, loaded, form, out),
        |out| show::rows(asked, &query, loaded, form, out),
    )
}
