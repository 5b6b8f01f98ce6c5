//! Writes an answer as text, CSV or JSON.

use super::cell::Values;
use super::held::{Held, Question, Seen};
use super::load::Loaded;
use super::rows::{Form, Table};
use super::select::{Groups, Selection};
use anstyle::Style;
use queuescope_log::{Folding, Function, Group, Grouped, Number, Schema};
use queuescope_report::format::count;
use queuescope_report::json::{self, Line};
use queuescope_report::model::{Answer, ClockError, Plan};
use queuescope_wire::{Distinct, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;

pub(super) const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The result of a query.
#[derive(Debug)]
pub struct Found {
    /// The number of packets, up to the limit.
    pub packets: u64,
    /// Whether there are more.
    pub has_more: bool,
    /// The columns that have estimates.
    pub estimates: BTreeSet<String>,
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
    let values = Values::of(loaded);
    let mut table = Table::new(selection.names(schema), form, out);
    let (mut found, mut stopped, mut estimates) = (0, false, BTreeSet::new());
    let seen = match selection {
        Selection::Packets(attributes, limit) => {
            let most = limit.unwrap_or(u64::MAX);
            loaded.held.each(question, &mut |record| {
                stopped = found == most;
                if stopped {
                    return Ok(ControlFlow::Break(()));
                }
                found += 1;
                let cells: Vec<_> = attributes.iter().map(|id| values.of_record(*id, record)).collect();
                table.row(&cells).map(ControlFlow::Continue)
            })?
        }
        Selection::All(functions) => {
            let functions = counted(functions);
            let new = |_| Folding::new(schema, &functions);
            let (folding, seen) = loaded.held.collect(question, loaded.held.end().as_ref(), &functions, new)?;
            let mut all = folding.finish();
            found = all.pop().map_or(0, whole);
            let all = (Vec::new(), all);
            estimates.extend(selection.estimates(&all).map(str::to_owned));
            table.row(&values.of_group(selection, &all, found))?;
            seen
        }
        Selection::Groups(groups) => {
            let Groups { functions, top, .. } = groups;
            let by = groups.keys_of(loaded);
            let functions = counted(functions);
            let mut row = |group: &Group| {
                estimates.extend(selection.estimates(group).map(str::to_owned));
                table.row(&values.of_group(selection, group, 1))
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
    let found = Found { packets: found, has_more: stopped, estimates, seen };
    write_foot(&found, loaded, form, table.finish()?, note)?;
    Ok(found)
}

/// Writes rows that were computed: groups, each with at least one packet, or a row without keys of all `packets` packets. Rows of one input and of
/// several look the same, except that text has points in time as dates here.
///
/// # Errors
/// Returns the first write error.
pub fn write_groups(
    selection: &Selection,
    groups: &[Group],
    packets: u64,
    schema: &Schema,
    form: Form,
    out: &mut dyn Write,
) -> io::Result<()> {
    let values = Values::of_several(schema);
    let mut table = Table::new(selection.names(schema), form, out);
    groups.iter().try_for_each(|group| table.row(&values.of_group(selection, group, packets)))?;
    table.finish().map(|_| ())
}

/// The keys of a group with their names, on one line: `src_ip 10.0.0.4, dst_ip 10.0.0.6`.
pub fn keys_text(selection: &Selection, group: &Group, schema: &Schema) -> String {
    let cells = Values::of_several(schema).of_group(selection, group, 1);
    let keys = selection.names(schema).into_iter().zip(cells).take(group.0.len());
    keys.map(|(name, cell)| format!("{name} {}", cell.text())).collect::<Vec<_>>().join(", ")
}

/// The functions, followed by the number of packets.
pub(super) fn counted(functions: &[(String, Function)]) -> Vec<Function> {
    functions.iter().map(|(_, function)| function.clone()).chain([Function::Count]).collect()
}

pub(super) fn whole(count: Number) -> u64 {
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
    let Found { packets, has_more, estimates, seen } = found;
    let records = seen.records.map(|records| records + loaded.refused);
    let skipped = || loaded.skipped.iter().chain(&seen.skipped);
    let first = if *has_more { "the first " } else { "" };
    let foot = Foot {
        head: format!("{first}{} packets of {}", share(*packets, records), loaded.name),
        notes: skipped().map(|note| format!("{} {}", count(note.count), note.meaning)).collect(),
        input: loaded.name.clone(),
        format: loaded.format.clone(),
        first: loaded.first,
        records,
        packets: *packets,
        skipped: skipped().map(|note| (note.reason.clone(), note.count)).collect(),
        damage: loaded.damage.clone().or_else(|| seen.damage.clone()),
        estimates: estimates.clone(),
        clocks: BTreeMap::new(),
    };
    foot.write(form, out, note)
}

/// What stands below the rows of an answer.
#[derive(Debug, Clone, Default)]
pub struct Foot {
    /// How many packets of which were found, for people.
    pub head: String,
    /// Notes, for people.
    pub notes: Vec<String>,
    /// The name of the input.
    pub input: String,
    /// The format of the input.
    pub format: String,
    /// When the first packet came; zero if that is not known.
    pub first: Nanos,
    /// Total number of packets; `None` if it could not be read.
    pub records: Option<u64>,
    /// The number of packets found.
    pub packets: u64,
    /// What was skipped or is missing, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Why the answer is incomplete, if it is.
    pub damage: Option<String>,
    /// The columns that have estimates ([`Selection::estimates`]).
    pub estimates: BTreeSet<String>,
    /// Of several hosts, how far the clock of each is ahead of one clock, if that matters.
    pub clocks: BTreeMap<String, ClockError>,
}

impl Foot {
    /// Writes it. With CSV, `note` receives the notes.
    ///
    /// # Errors
    /// Returns the first write error.
    pub fn write(mut self, form: Form, out: &mut dyn Write, note: &mut dyn FnMut(&str)) -> io::Result<()> {
        if !self.estimates.is_empty() {
            let columns = self.estimates.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let above = count(Distinct::EXACT_VALUES);
            let percent = Distinct::STANDARD_ERROR * 100.0;
            self.notes
                .push(format!("{columns}: values above {above} are estimates with a standard error of {percent:.2} %"));
        }
        match form {
            Form::Json => json::write_line(
                &Line::Answer(Answer {
                    input: self.input,
                    format: self.format,
                    first_ns: self.first.0,
                    records: self.records,
                    matched: self.packets,
                    skipped: self.skipped,
                    damage: self.damage,
                    standard_errors: self.estimates.into_iter().map(|name| (name, Distinct::STANDARD_ERROR)).collect(),
                    clocks: self.clocks,
                }),
                out,
            ),
            Form::Text => {
                writeln!(out, "{DIM}{}{DIM:#}", self.head)?;
                self.notes.iter().try_for_each(|note| writeln!(out, "{DIM}note: {note}{DIM:#}"))
            }
            Form::Csv => {
                // Notes go elsewhere, and come behind the rows.
                out.flush()?;
                self.notes.iter().for_each(|text| note(text));
                Ok(())
            }
        }
    }
}

/// `3 of 18,949`; if the input could not be read completely, `3 of an unknown number of`.
pub fn share(found: u64, records: Option<u64>) -> String {
    let records = records.map_or_else(|| "an unknown number of".to_owned(), count);
    format!("{} of {records}", count(found))
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
