//! Hosts that saw something: a question chooses them before the program's own question goes to them.
//!
//! Confluo chooses the hosts that it asks by the metadata of switches: those whose packets passed a switch (NSDI 2019, section 5.1).

use super::Hosts;
use super::read::LONGEST;
use crate::answer::{Asked, Texts};
use queuescope_log::Schema;
use queuescope_text::{Problem, did_you_mean, quoted};
use queuescope_wire::Nanos;
use toml::{Spanned, Value};

/// The hosts that a question goes to.
#[derive(Debug, Clone, Default)]
pub struct AskedHosts {
    /// By their names.
    pub named: Hosts,
    /// Of these, only those that saw something.
    pub saw: Option<Saw>,
}

/// What hosts saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saw {
    /// The question goes to a host if packets of it match this expression,
    pub expression: String,
    /// among those of this time before the moment of the run; none: the time of the run.
    pub last: Option<Nanos>,
}

/// The keys of the table.
const KEYS: [&str; 3] = ["saw", "names", "last"];
/// What hosts can be.
const HELP: &str =
    "hosts = [\"web-*\"], or hosts = { saw = \"hops >= 1 and switch_1 == 3\", names = [\"web-*\"], last = \"1s\" }";

/// Reads the hosts of a question: names, or a table.
pub(super) fn read_hosts(text: &str, written: Option<Spanned<Value>>, problems: &mut Vec<Problem>) -> AskedHosts {
    let Some(written) = written else { return AskedHosts::default() };
    let span = written.span();
    let wrong = |message: String| Problem::new(message).at(span.clone(), "here").help(HELP);
    let mut table = match written.get_ref() {
        Value::Table(table) => table.clone(),
        value => {
            let named = names(value);
            if named.is_none() {
                problems.push(wrong("hosts are a list of names, or a table with `saw`".to_owned()));
            }
            return AskedHosts { named: named.unwrap_or_default(), saw: None };
        }
    };
    let named = match table.remove("names") {
        None => Some(Hosts::default()),
        Some(value) => names(&value),
    };
    let Some(named) = named else {
        problems.push(wrong("`names` is a list of names".to_owned()));
        return AskedHosts::default();
    };
    let last = match table.remove("last") {
        None => None,
        Some(Value::String(last)) => match last.parse::<Nanos>() {
            Ok(last) if last > Nanos::ZERO && last <= LONGEST => Some(last),
            Ok(_) => {
                problems.push(wrong(format!("`last` is longer than 0 and at most {LONGEST}")));
                None
            }
            Err(why) => {
                problems.push(wrong(why.to_string()));
                None
            }
        },
        Some(_) => {
            problems.push(wrong("`last` is a time, such as \"1s\"".to_owned()));
            None
        }
    };
    let saw = table.remove("saw");
    if let Some((key, _)) = table.iter().next() {
        let problem = Problem::new(format!("hosts have no key `{}`", quoted(key))).at(span.clone(), "here");
        problems.push(problem.help(did_you_mean(key, KEYS.into_iter()).unwrap_or_else(|| HELP.to_owned())));
        return AskedHosts::default();
    }
    let Some(Value::String(expression)) = saw else {
        problems.push(wrong("a table of hosts has `saw`, an expression".to_owned()));
        return AskedHosts::default();
    };
    if let Err(why) =
        Asked::new(&Texts { expression: &expression, select: "count", ..Texts::default() }, Schema::packet())
    {
        let place = text.get(span.clone()).and_then(|part| part.find(&expression)).filter(|_| !expression.is_empty());
        let place = place.map_or(span.clone(), |at| span.start + at..span.start + at + expression.len());
        let problem = Problem::new(format!("`saw` is an expression about captured packets (`packet`): {why}"));
        problems.push(problem.at(place, "this expression"));
    }
    AskedHosts { named, saw: Some(Saw { expression, last }) }
}

fn names(value: &Value) -> Option<Hosts> {
    let names = value.as_array()?.iter().map(|name| Some(name.as_str()?.to_owned()));
    names.collect::<Option<Vec<_>>>().map(Hosts::new)
}
