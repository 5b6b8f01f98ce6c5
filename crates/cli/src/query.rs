//! `queuescope query`: finds the packets of a capture, a table of departures or a recorded folder that match an expression,
//! and computes figures of them.

use crate::args::Query;
use crate::expressions::{attributes, expression, rendered};
use crate::outcome::{Outcome, print};
use crate::paths::check_outputs;
use crate::progress::Progress;
use crate::source::open_table;
use anyhow::{Result, anyhow, bail};
use queuescope_archive::History;
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{length, open_capture};
use queuescope_log::{Dnf, Schema};
use queuescope_pcap::{CaptureReader, OpenError};
use queuescope_recording::query::{
    Form, Held, LoadOptions, Loaded, Parquet, Question, QueueTimes, SelectOptions, Selection, write_attributes,
    write_foot, write_plan, write_rows,
};
use queuescope_table::DepartureReader;
use std::io::{self, Write};
use std::path::Path;

/// Runs `query`.
///
/// # Errors
/// Fails if the input cannot be read, if the expression or another option is invalid, or if an output cannot be written.
pub fn run(args: &Query) -> Result<Outcome> {
    let folder = args.file.as_deref().filter(|path| path.is_dir()).map(History::open).transpose()?;
    let schema = &match &folder {
        Some(_) if args.table.departures => {
            bail!("--departures is for tables; a folder stores the kind of its records. Leave it out")
        }
        Some(_) if args.index.is_some() => {
            bail!("--index is for inputs that are read into memory; a folder has the indexes that it was recorded with")
        }
        Some(_) if args.inner => {
            bail!("--inner is for captures; a folder has the addresses that it was recorded with (record --inner)")
        }
        Some(history) => history.schema().clone(),
        None if args.table.departures => Schema::departure().clone(),
        None => Schema::packet().clone(),
    };
    if args.attributes {
        print(false, |_| Ok(()), |out| write_attributes(schema, out))?;
        return Ok(Outcome::Complete);
    }
    let Some(file) = &args.file else { return Err(anyhow!("name a file")) };
    // Check the query before anything is read.
    args.times.check()?;
    let expression = expression(schema, args.expression.as_deref().unwrap_or_default())?;
    let selection = Selection::from_options(&select_options(args), schema).map_err(|error| rendered(&error))?;
    let company = args.in_queue.then(|| QueueTimes::new(schema)).transpose()?;
    let indexes = attributes("--index", args.index.as_deref(), schema)?;
    if args.table.departures {
        Unknown::OF_TABLE
            .check(expression.attributes().into_iter().chain(selection.attributes()).chain(indexes.iter().copied()))?;
    }
    check_outputs([file], [&args.parquet])?;
    // Open the input before creating the output: if it fails, an older file must stay.
    let opened = Opened::open(file, args, folder)?;
    let parquet = parquet(args, &selection, schema)?;
    let loaded = opened.load(file, args)?;
    if let Held::Memory(log) = &loaded.held {
        indexes.into_iter().for_each(|index| _ = log.add_index(index));
    }
    answer(args, &loaded, &selection, company, &expression, parquet).map(Outcome::from_damage)
}

/// What to select, from the arguments.
fn select_options(args: &Query) -> SelectOptions {
    let mut options = SelectOptions::default();
    options.select.clone_from(&args.select);
    options.group.clone_from(&args.group);
    options.top = args.top;
    options.limit = args.limit;
    options
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
        let mut options = LoadOptions::default();
        options.memory = args.memory.unwrap_or(options.memory);
        options.inner = args.inner;
        let progress = if file.is_dir() { Progress::hidden() } else { Progress::new(length(file)) };
        let mut update = |read, packets| progress.update(read, packets);
        let loaded = match self {
            Self::Folder(history) => {
                Loaded::folder(*history, file).map(|loaded| args.memory.into_iter().fold(loaded, Loaded::with_memory))
            }
            Self::Capture(reader) => Loaded::capture(reader, file, options, &mut update),
            Self::Table(reader) => Loaded::table(reader, file, options, &mut update),
        };
        progress.finish();
        Ok(loaded?)
    }
}

/// Creates the Parquet file of `--parquet`, if it is given, so that an output that cannot be written fails before the work
/// is done.
fn parquet(args: &Query, selection: &Selection, schema: &Schema) -> Result<Option<Parquet>> {
    let Some(path) = &args.parquet else { return Ok(None) };
    let Selection::Packets(attributes, limit) = selection else {
        bail!("--parquet writes packets; for figures use --csv");
    };
    Ok(Some(Parquet::create(path, attributes, *limit, schema)?))
}

/// Prints the result. Returns the damage of the input, if any.
fn answer(
    args: &Query,
    loaded: &Loaded,
    selection: &Selection,
    mut company: Option<QueueTimes>,
    expression: &Dnf,
    parquet: Option<Parquet>,
) -> Result<Option<String>> {
    let mut needed = if args.explain { Vec::new() } else { selection.attributes() };
    needed.extend(company.iter().flat_map(QueueTimes::attributes));
    let (from, to) = args.times.range(loaded);
    let question = Question { expression, from, to, needed: &needed, company: None };
    let mut damage = loaded.damage.clone();
    let mut before = Vec::new();
    let question = match &mut company {
        None => question,
        Some(company) => {
            let found = company.find(&loaded.held, question)?;
            damage = damage.or(found.damage);
            before = found.steps;
            before.push("then, for the packets that were in a queue with those:".to_owned());
            company.question(&needed)
        }
    };
    let (form, note) = (form(args), &mut |note: &str| anstream::eprintln!("note: {note}"));
    if let Some(parquet) = parquet {
        let found = parquet.write(loaded, question)?;
        printed(args.json, &mut |out| write_foot(&found, loaded, form, out, note))?;
        return Ok(damage.or(found.seen.damage));
    }
    printed(args.json || args.csv, &mut |out| {
        let seen = if args.explain {
            write_plan(&loaded.held, question, &before, args.json, out)?
        } else {
            write_rows(selection, question, loaded, form, out, note)?.seen
        };
        damage = damage.take().or(seen.damage);
        Ok(())
    })?;
    Ok(damage)
}

/// The format of rows that the arguments choose.
fn form(args: &Query) -> Form {
    match (args.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    }
}

/// Prints output that is written by the same function as data and as styled text.
fn printed(as_data: bool, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    // `print` calls only one of its two arguments.
    let write = std::cell::RefCell::new(write);
    let once = |out: &mut dyn Write| (write.borrow_mut())(out);
    print(as_data, once, once)
}
