//! Control programs as people write them, in TOML.

use super::acts::{ActTable, read_acts};
use super::condition::{Condition, Named};
use super::saw::read_hosts;
use super::{Ask, Hosts, Install, Program, Raise, Run};
use crate::answer::{Asked, Texts};
use queuescope_log::{
    AggregateTable, Definitions, FilterTable, Schema, Tables, TextError, TriggerTable, fill_parameters, name_problem,
    toml_problem,
};
use queuescope_text::{Problem, did_you_mean, quoted};
use queuescope_wire::Nanos;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;
use toml::{Spanned, Value};

/// The format of programs. It grows when a key gets another name or meaning; new keys do not change it.
const FORMAT: u64 = 1;
/// The longest text, in bytes.
const LONGEST_TEXT: usize = 1 << 18;
/// How long to wait for each host, if the program does not say.
const WITHIN: Nanos = Nanos(1_000_000_000);
/// The shortest interval of runs, and the longest wait for a host.
const SHORTEST: Nanos = Nanos(10_000_000);
pub(super) const LONGEST: Nanos = Nanos(60_000_000_000);
/// The most characters of a description.
const ABOUT: usize = 200;
/// The most questions and alerts.
const MOST: usize = 32;

/// A program as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: Option<Spanned<u64>>,
    #[serde(default)]
    about: String,
    /// Read earlier.
    #[serde(default, rename = "parameters")]
    _parameters: IgnoredAny,
    #[serde(default)]
    install: Vec<InstallTable>,
    run: Option<Spanned<RunTable>>,
    #[serde(default)]
    ask: Vec<Spanned<AskTable>>,
    #[serde(default)]
    raise: Vec<RaiseTable>,
    #[serde(default)]
    act: Vec<ActTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InstallTable {
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    index: Vec<Spanned<String>>,
    #[serde(default)]
    filter: Vec<FilterTable>,
    #[serde(default)]
    aggregate: Vec<AggregateTable>,
    #[serde(default)]
    trigger: Vec<TriggerTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunTable {
    #[serde(default)]
    on: Vec<Spanned<String>>,
    every: Option<Spanned<String>>,
    during: Option<Spanned<String>>,
    last: Option<Spanned<String>>,
    settle: Option<Spanned<String>>,
    #[serde(default)]
    cut: bool,
    within: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskTable {
    name: Spanned<String>,
    hosts: Option<Spanned<Value>>,
    filter: Option<Spanned<String>>,
    #[serde(default)]
    expression: String,
    #[serde(default = "count")]
    select: String,
    #[serde(default)]
    group: String,
    top: Option<u64>,
}

/// The functions of a question that names none.
fn count() -> String {
    "count".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RaiseTable {
    name: Spanned<String>,
    condition: Spanned<String>,
}

impl Program {
    /// Reads a program. Its parameters have the given values, or their defaults; `name` names the text in errors.
    ///
    /// # Errors
    /// Returns what is wrong with the text, and where.
    pub fn parse(name: &str, text: &str, values: &[(&str, &str)]) -> Result<Self, TextError> {
        if text.len() > LONGEST_TEXT {
            let problem = format!("the program has {} bytes, and at most {LONGEST_TEXT} are read", text.len());
            return Err(TextError::new(name, "", vec![Problem::new(problem)]));
        }
        let text = &*fill_parameters(name, text, values)?;
        let file: File =
            toml::from_str(text).map_err(|found| TextError::new(name, text, vec![toml_problem(&found)]))?;
        let mut problems = Vec::new();
        if let Some(format) = file.format.filter(|format| *format.get_ref() != FORMAT) {
            let problem = Problem::new(format!("the program is of format {}", format.get_ref()));
            let label = format!("this version of queuescope reads format {FORMAT}");
            problems.push(problem.at(format.span(), label).help("use a newer version of queuescope"));
        }
        let mut installs = Vec::new();
        for InstallTable { hosts, index, filter, aggregate, trigger } in file.install {
            let mut definitions = Definitions::new(Schema::packet());
            definitions.add_tables(name, text, Tables { index, filter, aggregate, trigger })?;
            installs.push(Install { hosts: Hosts::new(hosts), definitions });
        }
        let run = file.run.and_then(|run| read_run(text, run, &installs, &mut problems));
        let asks = read_asks(text, file.ask, &installs, &mut problems);
        // Without its question, a condition would be wrong twice.
        let raises = if problems.is_empty() { read_raises(text, file.raise, &asks, &mut problems) } else { Vec::new() };
        too_many(file.act.len(), "actions", &mut problems);
        let acts =
            if problems.is_empty() { read_acts(text, file.act, &asks, &raises, &mut problems) } else { Vec::new() };
        if run.is_none() && !asks.is_empty() && problems.is_empty() {
            let problem = Problem::new("the program has questions, and does not say when to ask them");
            problems.push(problem.help("add a table: [run] with every = \"1s\", or on = [\"the name of a trigger\"]"));
        }
        if installs.is_empty() && asks.is_empty() && problems.is_empty() {
            problems.push(Problem::new("the program does nothing: it has neither [[install]] nor [[ask]]"));
        }
        if !problems.is_empty() {
            return Err(TextError::new(name, text, problems));
        }
        Ok(Self { about: one_line(&file.about), installs, run, asks, raises, acts })
    }
}

/// A text on one line, without what controls a terminal or the direction of text, and not too long.
fn one_line(text: &str) -> String {
    let is_direction =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = text.chars().filter(|c| !is_direction(*c)).map(|c| if c.is_control() { ' ' } else { c });
    shown.take(ABOUT).collect()
}

fn read_run(text: &str, run: Spanned<RunTable>, installs: &[Install], problems: &mut Vec<Problem>) -> Option<Run> {
    let span = run.span();
    let RunTable { on, every, during, last, settle, cut, within } = run.into_inner();
    let mut time = |written: Option<Spanned<String>>, valid| check_time(text, written.as_ref(), valid, problems);
    let (every, last) = (time(every, SHORTEST.0..=u64::MAX), time(last, 1..=u64::MAX));
    let during_at = during.as_ref().map(|during| inside(text, during));
    let during = time(during, 0..=u64::MAX).unwrap_or(Nanos::ZERO);
    let settle = time(settle, 0..=LONGEST.0).unwrap_or(Nanos::ZERO);
    let within = time(within, 1_000_000..=LONGEST.0).unwrap_or(WITHIN);
    let triggers: BTreeSet<_> = installs
        .iter()
        .flat_map(|install| install.definitions.triggers())
        .map(|trigger| trigger.name.as_str())
        .collect();
    for name in &on {
        if !triggers.contains(name.get_ref().as_str()) {
            let problem = Problem::new(format!("the program installs no trigger `{}`", quoted(name.get_ref())));
            let help = did_you_mean(name.get_ref(), triggers.iter().copied());
            problems.push(problem.at(inside(text, name), "here").help_if(help));
        }
    }
    if let Some(place) = during_at.filter(|_| on.is_empty() || every.is_none()) {
        let problem = Problem::new("`during` repeats runs after alerts").at(place, "here");
        problems.push(problem.help("add on = [\"the name of a trigger\"] and every = \"100ms\""));
    }
    if on.is_empty() && every.is_none() && problems.is_empty() {
        let problem = Problem::new("[run] does not say when").at(span, "here");
        problems.push(problem.help("add every = \"1s\", or on = [\"the name of a trigger\"]"));
    }
    Some(Run { on: on.into_iter().map(Spanned::into_inner).collect(), every, during, last, settle, cut, within })
}

fn read_asks(
    text: &str,
    tables: Vec<Spanned<AskTable>>,
    installs: &[Install],
    problems: &mut Vec<Problem>,
) -> Vec<Ask> {
    too_many(tables.len(), "questions", problems);
    let filters: BTreeSet<_> =
        installs.iter().flat_map(|install| install.definitions.filters()).map(|filter| filter.name.as_str()).collect();
    let mut asks: Vec<Ask> = Vec::new();
    for table in tables {
        let span = table.span();
        let AskTable { name, hosts, filter, expression, select, group, top } = table.into_inner();
        check_name(&name, "question", asks.iter().map(|ask| ask.name.as_str()), problems);
        if let Some(filter) = filter.as_ref().filter(|filter| !filters.contains(filter.get_ref().as_str())) {
            let problem = Problem::new(format!("the program installs no filter `{}`", quoted(filter.get_ref())));
            let help = did_you_mean(filter.get_ref(), filters.iter().copied());
            problems.push(problem.at(inside(text, filter), "here").help_if(help));
        }
        let filter = filter.map(Spanned::into_inner);
        let hosts = read_hosts(text, hosts, problems);
        let texts = Texts { expression: &expression, select: &select, group: &group, top };
        match Asked::new(&texts, Schema::packet()) {
            Ok(asked) => {
                let (name, asked) = (name.into_inner(), Arc::new(asked));
                asks.push(Ask { name, hosts, filter, expression, select, group, top, asked });
            }
            Err(why) => {
                let problem = Problem::new(format!("the question `{}`: {why}", quoted(name.get_ref())));
                problems.push(problem.at(span, "this question"));
            }
        }
    }
    asks
}

fn read_raises(text: &str, tables: Vec<RaiseTable>, asks: &[Ask], problems: &mut Vec<Problem>) -> Vec<Raise> {
    too_many(tables.len(), "alerts", problems);
    let questions: Vec<_> = asks.iter().map(|ask| Named { name: &ask.name, asked: &ask.asked }).collect();
    let mut raises: Vec<Raise> = Vec::new();
    for RaiseTable { name, condition } in tables {
        check_name(&name, "alert", raises.iter().map(|raise| raise.name.as_str()), problems);
        let place = inside(text, &condition);
        let is_verbatim = text.get(place.clone()) == Some(condition.get_ref());
        match Condition::read(condition.get_ref(), &questions) {
            Ok(condition) => raises.push(Raise { name: name.into_inner(), condition }),
            Err(problem) => problems.push(problem.moved(|span| {
                let span = if is_verbatim { place.start + span.start..place.start + span.end } else { place.clone() };
                span.into()
            })),
        }
    }
    raises
}

/// A time in a range.
pub(super) fn check_time(
    text: &str,
    written: Option<&Spanned<String>>,
    valid: RangeInclusive<u64>,
    problems: &mut Vec<Problem>,
) -> Option<Nanos> {
    let written = written?;
    let place = inside(text, written);
    match written.get_ref().parse::<Nanos>() {
        Ok(time) if valid.contains(&time.0) => return Some(time),
        Ok(_) => {
            let (least, most) = (Nanos(*valid.start()), Nanos(*valid.end()));
            let help =
                if most.0 == u64::MAX { format!("use {least} or more") } else { format!("use {least} to {most}") };
            problems.push(Problem::new("this time is not possible").at(place, "here").help(help));
        }
        Err(why) => problems.push(Problem::new(why.to_string()).at(place, "here")),
    }
    None
}

fn too_many(count: usize, what: &str, problems: &mut Vec<Problem>) {
    if count > MOST {
        problems.push(Problem::new(format!("the program has {count} {what}; at most {MOST} are possible")));
    }
}

fn check_name<'a>(
    name: &Spanned<String>,
    what: &str,
    mut others: impl Iterator<Item = &'a str>,
    problems: &mut Vec<Problem>,
) {
    if let Err(why) = name_problem(name.get_ref()) {
        let message = format!("'{}' cannot name a {what}: {why}", quoted(name.get_ref()));
        problems.push(Problem::new(message).at(name.span(), "not possible"));
    } else if others.any(|other| other == name.get_ref()) {
        problems
            .push(Problem::new(format!("there are two {what}s `{}`", name.get_ref())).at(name.span(), "the second"));
    }
}

/// The place of a text within its quotes.
pub(super) fn inside(text: &str, written: &Spanned<String>) -> Range<usize> {
    let span = written.span();
    let found = text.get(span.clone()).and_then(|quoted| quoted.find(written.get_ref().as_str()));
    match found {
        Some(at) if !written.get_ref().is_empty() => span.start + at..span.start + at + written.get_ref().len(),
        _ => span,
    }
}
