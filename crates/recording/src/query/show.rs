//! Writes an answer as text, CSV or JSON.

use super::held::{Held, Question, Seen};
use super::load::Loaded;
use super::select::{Groups, Selection};
use anstyle::Style;
use queuescope_log::{Attribute, AttributeId, Folding, Function, Group, Grouped, Kind, Number, Schema};
use queuescope_report::format::count;
use queuescope_report::json::{self, Line};
use queuescope_report::model::{Answer, Plan};
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::ops::ControlFlow;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Bytes of a usual line of CSV.
const LINE: usize = 256;
/// Rows from which the widths of columns are computed.
const LOOKED_AT: usize = 1000;

/// The format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A table for people.
    Text,
    /// CSV with a header line.
    Csv,
    /// JSON Lines.
    Json,
}

/// A value, with what is needed to format it.
enum Cell<'a> {
    Key(&'a Attribute, u128),
    /// A number of packets.
    Count(Number),
    /// A sum, or another result of a function.
    Number(Number),
    /// A point in time, and the time of the first packet.
    Time(u64, u64),
    /// The name of a flow.
    Name(&'a str),
    /// Bytes that cannot be compared.
    Bytes(&'a [u8]),
    /// A function of no packets; the flag says whether its column has numbers.
    Nothing(bool),
}

/// The result of a query.
#[derive(Debug)]
pub struct Found {
    /// The number of packets, up to the limit.
    pub packets: u64,
    /// Whether there are more.
    pub has_more: bool,
    /// What was read.
    pub seen: Seen,
}

/// Writes what `selection` selects of the packets of `question`. With CSV, `note` receives the notes.
///
/// # Errors
/// Returns the first write error.
pub fn write_rows(
    selection: &Selection,
    question: Question<'_>,
    loaded: &Loaded,
    form: Form,
    out: &mut dyn Write,
    note: &mut dyn FnMut(&str),
) -> io::Result<Found> {
    let schema = loaded.held.schema();
    let mut table = Table::new(names(selection, schema), form, out);
    let (mut found, mut stopped) = (0, false);
    let seen = match selection {
        Selection::Packets(attributes, limit) => {
            let most = limit.unwrap_or(u64::MAX);
            loaded.held.each(question, &mut |record| {
                stopped = found == most;
                if stopped {
                    return Ok(ControlFlow::Break(()));
                }
                found += 1;
                let cells: Vec<_> = attributes.iter().map(|id| of_record(*id, record, loaded)).collect();
                table.row(&cells).map(ControlFlow::Continue)
            })?
        }
        Selection::All(functions) => {
            let functions = counted(functions);
            let new = |_| Folding::new(schema, &functions);
            let (folding, seen) = loaded.held.collect(question, loaded.held.end().as_ref(), &functions, new)?;
            let mut values = folding.finish();
            found = values.pop().map_or(0, whole);
            let cell = |(value, function): (Number, &Function)| match function {
                Function::Min(id) | Function::Max(id) if found == 0 => {
                    Cell::Nothing(loaded.flow(*id, 0).is_none() && is_number(schema.attribute(*id).kind))
                }
                Function::Mean(_) if found == 0 => Cell::Nothing(true),
                _ => of_function(value, function, loaded),
            };
            table.row(&values.into_iter().zip(&functions).map(cell).collect::<Vec<_>>())?;
            seen
        }
        Selection::Groups(groups) => {
            let Groups { functions, top, .. } = groups;
            let by = groups.keys_of(loaded);
            let functions = counted(functions);
            let mut row = |(key, values): &Group| {
                let keys = key.iter().zip(&by).map(|(key, by)| of_key(by.attribute(), *key, loaded));
                let values = values.iter().zip(&functions[..functions.len() - 1]);
                let values = values.map(|(value, function)| of_function(*value, function, loaded));
                table.row(&keys.chain(values).collect::<Vec<_>>())
            };
            let mut highest: Vec<Group> = Vec::new();
            let seen = loaded.held.groups(question, &by, &functions, loaded.memory, &mut |mut grouped| {
                found += grouped.iter().filter_map(|(_, values)| values.last().copied()).map(whole).sum::<u64>();
                let Some(top) = top else { return grouped.iter().try_for_each(|group| row(&group)) };
                grouped.top(*top, 0);
                highest.extend(grouped.iter());
                Grouped::top_of(&mut highest, *top, 0);
                Ok(())
            })?;
            highest.iter().try_for_each(row)?;
            seen
        }
    };
    let found = Found { packets: found, has_more: stopped, seen };
    write_foot(&found, loaded, form, table.finish()?, note)?;
    Ok(found)
}

/// The functions, followed by the number of packets.
fn counted(functions: &[(String, Function)]) -> Vec<Function> {
    functions.iter().map(|(_, function)| function.clone()).chain([Function::Count]).collect()
}

fn whole(count: Number) -> u64 {
    match count {
        Number::Unsigned(count) => u64::try_from(count).unwrap_or(u64::MAX),
        _ => 0,
    }
}

/// Writes how many of how many packets were found, whether there are more than the limit, and the notes. With CSV,
/// `note` receives the notes.
///
/// # Errors
/// Returns the first write error.
pub fn write_foot(
    found: &Found,
    loaded: &Loaded,
    form: Form,
    out: &mut dyn Write,
    note: &mut dyn FnMut(&str),
) -> io::Result<()> {
    let Found { packets, has_more, seen } = found;
    let records = seen.records.map(|records| records + loaded.refused);
    let skipped = || loaded.skipped.iter().chain(&seen.skipped);
    let mut notes = skipped().map(|note| format!("{} {}", count(note.count), note.meaning));
    match form {
        Form::Json => json::write_line(
            &Line::Answer(Answer {
                input: loaded.name.clone(),
                format: loaded.format.clone(),
                first_ns: loaded.first.0,
                records,
                matched: *packets,
                skipped: skipped().map(|note| (note.reason.clone(), note.count)).collect(),
                damage: loaded.damage.clone().or_else(|| seen.damage.clone()),
            }),
            out,
        ),
        Form::Text => {
            let first = if *has_more { "the first " } else { "" };
            writeln!(out, "{DIM}{first}{} packets of {}{DIM:#}", share(*packets, records), loaded.name)?;
            notes.try_for_each(|note| writeln!(out, "{DIM}note: {note}{DIM:#}"))
        }
        Form::Csv => {
            // Notes go elsewhere, and come behind the rows.
            out.flush()?;
            notes.for_each(|text| note(&text));
            Ok(())
        }
    }
}

/// `3 of 18,949`; if the input could not be read completely, `3 of an unknown number of`.
pub fn share(found: u64, records: Option<u64>) -> String {
    let records = records.map_or_else(|| "an unknown number of".to_owned(), count);
    format!("{} of {records}", count(found))
}

fn names(selection: &Selection, schema: &Schema) -> Vec<String> {
    match selection {
        Selection::Packets(attributes, _) => attributes.iter().map(|id| schema.attribute(*id).name.clone()).collect(),
        Selection::All(functions) => functions.iter().map(|(name, _)| name.clone()).collect(),
        Selection::Groups(Groups { keys, functions, .. }) => {
            keys.iter().map(|(name, _)| name.clone()).chain(functions.iter().map(|(name, _)| name.clone())).collect()
        }
    }
}

fn of_record<'a>(id: AttributeId, record: &'a [u8], loaded: &'a Loaded) -> Cell<'a> {
    let schema = loaded.held.schema();
    let attribute = schema.attribute(id);
    if attribute.is_comparable() {
        of_key(id, schema.key(id, record), loaded)
    } else {
        Cell::Bytes(&record[attribute.place.offset as usize..attribute.place.end() as usize])
    }
}

fn of_key(id: AttributeId, key: u128, loaded: &Loaded) -> Cell<'_> {
    if let Some(name) = loaded.flow(id, key) {
        return Cell::Name(name);
    }
    match u64::try_from(key) {
        Ok(at) if loaded.is_moment(id) => Cell::Time(at, loaded.first.0),
        _ => Cell::Key(loaded.held.schema().attribute(id), key),
    }
}

/// A minimum or a maximum is a value of its attribute.
fn of_function<'a>(value: Number, function: &Function, loaded: &'a Loaded) -> Cell<'a> {
    match (function, value) {
        (Function::Min(id) | Function::Max(id), Number::Unsigned(key)) => of_key(*id, key, loaded),
        (Function::Count, _) => Cell::Count(value),
        _ => Cell::Number(value),
    }
}

impl Cell<'_> {
    fn text(&self) -> String {
        match self {
            Self::Key(attribute, key) => attribute.text_of(*key),
            Self::Time(at, first) => since(*at, *first),
            Self::Name(name) => printable(name),
            Self::Number(number) | Self::Count(number) => match number {
                Number::Unsigned(number) => number.to_string(),
                Number::Signed(number) => number.to_string(),
                Number::Float(number) => format!("{number:.3}"),
            },
            Self::Bytes(bytes) => hex(bytes),
            Self::Nothing(_) => "-".to_owned(),
        }
    }

    fn is_number(&self) -> bool {
        match self {
            Self::Key(attribute, _) => is_number(attribute.kind),
            Self::Number(_) | Self::Count(_) | Self::Time(..) => true,
            Self::Nothing(is_number) => *is_number,
            Self::Bytes(_) | Self::Name(_) => false,
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Key(attribute, key) if is_number(attribute.kind) => {
                let value = Number::of_key(attribute, *key);
                if attribute.place.bits > EXACT_BITS { decimal(value) } else { number(value) }
            }
            Self::Key(attribute, key) => attribute.text_of(*key).into(),
            Self::Count(value) => number(*value),
            Self::Number(value) => decimal(*value),
            Self::Time(at, _) => at.to_string().into(),
            Self::Name(name) => (*name).into(),
            Self::Bytes(bytes) => hex(bytes).into(),
            Self::Nothing(_) => Value::Null,
        }
    }

    /// The CSV form: numbers without units.
    fn plain(&self) -> String {
        let number = match self {
            Self::Key(attribute, key) if is_number(attribute.kind) => Some(Number::of_key(attribute, *key)),
            Self::Count(number) | Self::Number(number) => Some(*number),
            _ => None,
        };
        // Most cells are whole numbers.
        match number {
            Some(Number::Unsigned(number)) => return number.to_string(),
            Some(Number::Signed(number)) => return number.to_string(),
            _ => {}
        }
        match self.json() {
            Value::String(text) => text,
            Value::Null => String::new(),
            other => other.to_string(),
        }
    }
}

fn is_number(kind: Kind) -> bool {
    matches!(kind, Kind::Unsigned | Kind::Signed | Kind::Float | Kind::Size | Kind::Time)
}

/// The widest integers that are JSON numbers: readers that take them for doubles have these exactly.
const EXACT_BITS: u32 = 53;

/// An integer of at most [`EXACT_BITS`], or a fraction, as a JSON number.
fn number(number: Number) -> Value {
    let exact = match number {
        Number::Unsigned(number) => u64::try_from(number).ok().map(Value::from),
        Number::Signed(number) => i64::try_from(number).ok().map(Value::from),
        Number::Float(number) => Some(Value::from(number)),
    };
    exact.unwrap_or_else(|| decimal(number))
}

/// An integer as a string of its digits; a fraction as a JSON number.
fn decimal(number: Number) -> Value {
    match number {
        Number::Unsigned(number) => number.to_string().into(),
        Number::Signed(number) => number.to_string().into(),
        Number::Float(number) => Value::from(number),
    }
}

/// A name from a file, with escapes so that it cannot control the terminal.
fn printable(name: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(escaped).collect()
}

/// Seconds since the first packet.
fn since(at: u64, first: u64) -> String {
    let (sign, apart) = if at < first { ("-", first - at) } else { ("", at - first) };
    format!("{sign}{}.{:09}s", apart / 1_000_000_000, apart % 1_000_000_000)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// Formats and writes rows.
struct Table<'a> {
    names: Vec<String>,
    form: Form,
    out: &'a mut dyn Write,
    /// The first rows, until the widths are known.
    waiting: Vec<Vec<(String, bool)>>,
    widths: Vec<usize>,
}

impl<'a> Table<'a> {
    fn new(names: Vec<String>, form: Form, out: &'a mut dyn Write) -> Self {
        let widths = names.iter().map(String::len).collect();
        Self { names, form, out, waiting: Vec::new(), widths }
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        match self.form {
            Form::Json => {
                let values: Map<_, _> = self.names.iter().cloned().zip(cells.iter().map(Cell::json)).collect();
                json::write_line(&Line::Row { values }, self.out)
            }
            Form::Csv => {
                if !self.names.is_empty() {
                    let names = std::mem::take(&mut self.names);
                    csv_line(names.iter().map(String::as_str), self.out)?;
                }
                let cells: Vec<_> = cells.iter().map(Cell::plain).collect();
                csv_line(cells.iter().map(String::as_str), self.out)
            }
            Form::Text => {
                let cells: Vec<_> = cells.iter().map(|cell| (cell.text(), cell.is_number())).collect();
                if self.names.is_empty() {
                    return self.write(&cells);
                }
                self.waiting.push(cells);
                if self.waiting.len() == LOOKED_AT { self.begin() } else { Ok(()) }
            }
        }
    }

    /// Writes the names and the rows that waited.
    fn begin(&mut self) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        for row in &waiting {
            for (width, (text, _)) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(text.len());
            }
        }
        let is_number =
            |column: usize| waiting.first().and_then(|row| row.get(column)).is_some_and(|(_, number)| *number);
        let names: Vec<_> = std::mem::take(&mut self.names)
            .into_iter()
            .enumerate()
            .map(|(column, name)| (name, is_number(column)))
            .collect();
        write!(self.out, "{BOLD}")?;
        self.write(&names)?;
        write!(self.out, "{BOLD:#}")?;
        waiting.iter().try_for_each(|row| self.write(row))
    }

    fn write(&mut self, row: &[(String, bool)]) -> io::Result<()> {
        let mut text = String::new();
        for ((cell, is_number), width) in row.iter().zip(&self.widths) {
            let gap = if text.is_empty() { "" } else { "  " };
            text += &if *is_number { format!("{gap}{cell:>width$}") } else { format!("{gap}{cell:<width$}") };
        }
        writeln!(self.out, "{}", text.trim_end())
    }

    fn finish(mut self) -> io::Result<&'a mut dyn Write> {
        match self.form {
            Form::Text if !self.names.is_empty() => self.begin()?,
            Form::Csv if !self.names.is_empty() => csv_line(self.names.iter().map(String::as_str), self.out)?,
            _ => {}
        }
        Ok(self.out)
    }
}

fn csv_line<'a>(cells: impl Iterator<Item = &'a str>, out: &mut dyn Write) -> io::Result<()> {
    // Not to `out` itself: the writer would flush it at the end of each line.
    let mut writer = csv::WriterBuilder::new().buffer_capacity(LINE).from_writer(Vec::with_capacity(LINE));
    writer.write_record(cells)?;
    let line = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    out.write_all(&line)
}

/// Writes the steps by which packets are found, behind the step `before`, and their number; returns what was read.
///
/// # Errors
/// Returns the first write error.
pub fn write_plan(
    held: &Held,
    question: Question<'_>,
    before: &[String],
    as_json: bool,
    out: &mut dyn Write,
) -> io::Result<Seen> {
    let mut found = 0;
    let seen = held.each(question, &mut |_| {
        found += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    if as_json {
        let steps = before.iter().chain(&seen.steps).cloned().collect();
        json::write_line(&Line::Plan(Plan { steps, records: seen.records, matched: found }), out)?;
    } else {
        before.iter().chain(&seen.steps).try_for_each(|step| writeln!(out, "{step}"))?;
        writeln!(out, "{BOLD}{} packets{BOLD:#}", share(found, seen.records))?;
    }
    Ok(seen)
}

/// Writes the attributes of a schema, one per line.
///
/// # Errors
/// Returns the first write error.
pub fn write_attributes(schema: &Schema, out: &mut dyn Write) -> io::Result<()> {
    for (_, attribute) in schema.iter() {
        let aliases =
            if attribute.aliases.is_empty() { String::new() } else { format!(" ({})", attribute.aliases.join(", ")) };
        let name = format!("{}{aliases}", attribute.name);
        writeln!(out, "{BOLD}{name:<36}{BOLD:#}  {}", attribute.doc)?;
    }
    Ok(())
}
