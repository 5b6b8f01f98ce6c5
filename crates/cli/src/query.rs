//! `queuescope query`: which packets of a capture, of a table of departures, or of what was recorded to a folder, by an
//! expression, and what is worked out of them.

mod ask;
mod company;
mod export;
mod held;
mod load;
mod show;

use crate::args::Query;
use crate::beside::Beside;
use crate::expressions::{attributes, expression};
use crate::outcome::{Outcome, print};
use crate::paths::{cannot_write, check_outputs};
use crate::source::open_table;
use anyhow::{Context, Result, anyhow, bail};
use ask::Asked;
use company::Company;
pub(crate) use export::run as export;
use held::{Held, Question, Seen};
use load::Loaded;
use queuescope_archive::History;
use queuescope_ingest::open_capture;
use queuescope_ingest::records::Unknown;
use queuescope_log::{AttributeId, Dnf, Schema, arrow};
use queuescope_pcap::{CaptureReader, OpenError};
use queuescope_table::{BatchWriter, DepartureReader};
use queuescope_wire::Nanos;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Runs `query`.
///
/// # Errors
/// If nothing could be done: no input, an expression that means nothing, or an answer that cannot be written.
pub fn run(args: &Query) -> Result<Outcome> {
    let folder = args.file.as_deref().filter(|path| path.is_dir()).map(History::open).transpose()?;
    let schema = &match &folder {
        Some(_) if args.table.departures => bail!("--departures is of tables; a folder knows what its records are"),
        Some(_) if args.index.is_some() => {
            bail!("--index is of what is read into memory; a folder has the indexes that it was recorded with")
        }
        Some(_) if args.inner => {
            bail!("--inner is of captures; a folder has the addresses that it was recorded with (record --inner)")
        }
        Some(_) if args.memory.is_some() => {
            bail!("--memory is of what is read into memory; a folder is read part by part, whatever its size")
        }
        Some(history) => history.schema().clone(),
        None if args.table.departures => Schema::departure().clone(),
        None => Schema::packet().clone(),
    };
    if args.attributes {
        print(false, |_| Ok(()), |out| show::attributes(schema, out))?;
        return Ok(Outcome::Whole);
    }
    let Some(file) = &args.file else { return Err(anyhow!("name a file")) };
    // What is wrong with the question is told before anything is read.
    check_times(args.from, args.to)?;
    let expression = expression(schema, args.expression.as_deref().unwrap_or_default())?;
    let asked = Asked::of(args, schema)?;
    let company = args.in_queue.then(|| Company::new(schema)).transpose()?;
    let indexes = attributes("--index", args.index.as_deref(), schema)?;
    if args.table.departures {
        Unknown::OF_TABLE
            .check(expression.attributes().into_iter().chain(asked.attributes()).chain(indexes.iter().copied()))?;
    }
    check_outputs([file], [&args.parquet])?;
    // What cannot be read must not cost an older file.
    let opened = Opened::open(file, args, folder)?;
    let parquet = Parquet::create(args, &asked, schema)?;
    let loaded = opened.load(file, args)?;
    if let Held::Memory(log) = &loaded.held {
        indexes.into_iter().for_each(|index| _ = log.add_index(index));
    }
    answer(args, &loaded, (&asked, company), &expression, parquet).map(Outcome::of)
}

/// Refuses times between which there is nothing.
fn check_times(from: Option<Nanos>, to: Option<Nanos>) -> Result<()> {
    match (from, to) {
        (Some(from), Some(to)) if from >= to => bail!("--from {from} --to {to} ends before it begins, or as it does"),
        _ => Ok(()),
    }
}

/// A time as records have it, or none.
fn at(time: Option<Nanos>, none: u64, loaded: &Loaded) -> u64 {
    time.map_or(none, |time| loaded.first.saturating_add(time).0)
}

/// An input that could be opened.
enum Opened {
    Folder(Box<History>),
    Capture(CaptureReader),
    Table(DepartureReader),
}

impl Opened {
    fn open(file: &Path, args: &Query, folder: Option<History>) -> Result<Self> {
        if let Some(history) = folder {
            return Ok(Self::Folder(Box::new(history)));
        }
        if args.table.departures {
            return open_table(file, &args.table).map(Self::Table);
        }
        let hint = |error| match error {
            OpenError::NotCapture { .. } => anyhow!("{error}; a table of departures is read with --departures"),
            error => error.into(),
        };
        open_capture(file).map(Self::Capture).map_err(hint)
    }

    fn load(self, file: &Path, args: &Query) -> Result<Loaded> {
        match self {
            Self::Folder(history) => load::folder(*history, file),
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
    writer: BatchWriter<BufWriter<Beside>>,
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
        Self::begin(path, attributes, limit.unwrap_or(u64::MAX), schema).map(Some)
    }

    /// Begins a file of some attributes, and of so many packets at most.
    fn begin(path: &'a Path, attributes: &'a [AttributeId], limit: u64, schema: &Schema) -> Result<Self> {
        let columns = arrow::columns(schema, attributes);
        let writer = BatchWriter::new(BufWriter::new(Beside::create(path)?), columns);
        let writer = writer.with_context(|| cannot_write(path))?;
        Ok(Self { path, attributes, limit, writer })
    }

    /// Writes what is found: how many packets, whether there are more than were asked for, and what was seen.
    fn write(mut self, held: &Held, question: Question<'_>) -> Result<((u64, bool), Seen)> {
        let mut batches = arrow::Batches::new(held.schema(), self.attributes, ROWS);
        let (mut found, mut stopped) = (0, false);
        let writer = &mut self.writer;
        let seen = held.each(question, &mut |record| {
            stopped = found == self.limit;
            if stopped {
                return Ok(ControlFlow::Break(()));
            }
            found += 1;
            if let Some(batch) = batches.push(record).map_err(io::Error::other)? {
                writer.write(&batch).map_err(io::Error::other)?;
            }
            Ok(ControlFlow::Continue(()))
        });
        let seen = seen.with_context(|| cannot_write(self.path))?;
        if let Some(batch) = batches.rest()? {
            self.writer.write(&batch).with_context(|| cannot_write(self.path))?;
        }
        let out = self.writer.finish().with_context(|| cannot_write(self.path))?;
        out.into_inner().with_context(|| cannot_write(self.path))?.put()?;
        Ok(((found, stopped), seen))
    }
}

/// Answers; what could not be read is the answer of this.
fn answer(
    args: &Query,
    loaded: &Loaded,
    (asked, mut company): (&Asked, Option<Company>),
    expression: &Dnf,
    parquet: Option<Parquet<'_>>,
) -> Result<Option<String>> {
    let mut needed = if args.explain { Vec::new() } else { asked.attributes() };
    needed.extend(company.iter().flat_map(Company::attributes));
    let at = |time, none| at(time, none, loaded);
    let question =
        Question { expression, from: at(args.from, 0), to: at(args.to, u64::MAX), needed: &needed, company: None };
    let form = show::Form::of(args);
    let mut damage = loaded.damage.clone();
    let everything = Dnf::all();
    let mut before = Vec::new();
    let question = match &mut company {
        None => question,
        Some(company) => {
            let found = loaded.held.each_at(question, &mut |position, record| {
                company.found(position, record);
                Ok(ControlFlow::Continue(()))
            })?;
            damage = damage.or(found.damage);
            before = found.steps;
            before.push("then, for those that were in a queue with what was found:".to_owned());
            let from = company.from();
            Question { expression: &everything, from, to: u64::MAX, company: Some(company), ..question }
        }
    };
    let mut tell = |out: &mut dyn Write| -> io::Result<()> {
        let seen = if args.explain {
            show::explained(&loaded.held, question, &before, args.json, out)?
        } else {
            show::rows(asked, question, loaded, form, out)?.1
        };
        damage = damage.take().or(seen.damage);
        Ok(())
    };
    if let Some(parquet) = parquet {
        let (found, seen) = parquet.write(&loaded.held, question)?;
        print(
            args.json,
            |out| show::foot(found, loaded, &seen, form, out),
            |out| show::foot(found, loaded, &seen, form, out),
        )?;
        return Ok(damage.or(seen.damage));
    }
    // Only one of the two is called.
    let tell = std::cell::RefCell::new(&mut tell);
    let once = |out: &mut dyn Write| (tell.borrow_mut())(out);
    print(args.json || args.csv, once, once)?;
    Ok(damage)
}
