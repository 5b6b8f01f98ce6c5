//! What a program does on hosts after its alerts: `[[act]]`.

use super::read::{check_time, inside};
use super::{Ask, Hosts, Raise};
use crate::act::{Action, AddressBlock, Flow, LONGEST};
use queuescope_text::{Problem, did_you_mean, quoted};
use queuescope_wire::Nanos;
use serde::Deserialize;
use std::str::FromStr;
use toml::{Spanned, Value};

/// The most actions a minute, and at the same time, that a program can allow, and what it allows if it does not say.
const MOST_PER_MINUTE: u32 = 600;
const PER_MINUTE: u32 = 6;
const MOST_AT_ONCE: u32 = 64;
const AT_ONCE: u32 = 8;
/// The shortest time of an action.
const SHORTEST: Nanos = Nanos(1_000_000);

/// An action on the flows that an alert is about.
#[derive(Debug, Clone)]
pub struct Act {
    /// The index of the alert.
    pub after: usize,
    /// The hosts that act.
    pub hosts: Hosts,
    /// What they do.
    pub action: Action,
    /// For how long.
    pub time: Nanos,
    /// The most actions in a minute.
    pub per_minute: u32,
    /// The most actions at the same time.
    pub most: u32,
    /// Each address of a flow must be in one of these; empty: any address.
    pub only: Vec<AddressBlock>,
    /// Whether hosts only count packets.
    pub dry: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActTable {
    after: Spanned<String>,
    hosts: Spanned<Vec<String>>,
    #[serde(rename = "do")]
    action: Spanned<String>,
    #[serde(rename = "for")]
    time: Spanned<String>,
    per_minute: Option<Spanned<i64>>,
    most: Option<Spanned<i64>>,
    #[serde(default)]
    only: Vec<Spanned<String>>,
    dry: Option<Spanned<Value>>,
}

impl Act {
    /// Whether all addresses of a flow are among those that may be acted on.
    pub fn allows(&self, flow: &Flow) -> bool {
        self.only.is_empty() || flow.addresses().all(|address| self.only.iter().any(|block| block.contains(address)))
    }
}

pub(super) fn read_acts(
    text: &str,
    tables: Vec<ActTable>,
    asks: &[Ask],
    raises: &[Raise],
    problems: &mut Vec<Problem>,
) -> Vec<Act> {
    let mut acts = Vec::new();
    for table in tables {
        let ActTable { after, hosts, action, time, per_minute, most, only, dry } = table;
        let before = problems.len();
        let raise = find(text, &after, asks, raises, problems);
        if hosts.get_ref().is_empty() {
            let problem = Problem::new("an action names its hosts").at(hosts.span(), "none");
            problems.push(problem.help("hosts = [\"web-*\"]; [\"*\"] is all hosts"));
        }
        let action = parsed::<Action>(text, &action, problems);
        let time = check_time(text, Some(&time), SHORTEST.0..=LONGEST.0, problems);
        let per_minute = number(per_minute, PER_MINUTE, MOST_PER_MINUTE, problems);
        let most = number(most, AT_ONCE, MOST_AT_ONCE, problems);
        let dry = is_dry(dry, problems);
        let only: Vec<_> = only.iter().filter_map(|block| parsed::<AddressBlock>(text, block, problems)).collect();
        if let (Some(after), Some(action), Some(time)) = (raise, action, time)
            && problems.len() == before
        {
            let hosts = Hosts::new(hosts.into_inner());
            acts.push(Act { after, hosts, action, time, per_minute, most, only, dry });
        }
    }
    acts
}

/// The alert of an action, whose groups must be flows.
fn find(
    text: &str,
    after: &Spanned<String>,
    asks: &[Ask],
    raises: &[Raise],
    problems: &mut Vec<Problem>,
) -> Option<usize> {
    let (name, place) = (after.get_ref(), inside(text, after));
    let Some(index) = raises.iter().position(|raise| raise.name == *name) else {
        let problem = Problem::new(format!("the program raises no alert `{}`", quoted(name)));
        let help = did_you_mean(name, raises.iter().map(|raise| raise.name.as_str()));
        problems.push(problem.at(place, "here").help_if(help));
        return None;
    };
    let Some(question) = raises[index].condition.question() else {
        let problem =
            Problem::new(format!("the alert `{name}` is about all groups, and names no flow")).at(place, "here");
        problems.push(problem.help("act after an alert about each group: sent > 10MB"));
        return None;
    };
    let asked = &asks[question].asked;
    if let Err(why) = Flow::check_keys(asked.keys(), asked.schema()) {
        let problem = Problem::new(format!("the groups of `{name}` are not flows: {why}")).at(place, "here");
        let help = format!("let the question `{}` have group = \"src_ip,dst_ip\" or the like", asks[question].name);
        problems.push(problem.help(help));
        return None;
    }
    Some(index)
}

fn parsed<T: FromStr>(text: &str, written: &Spanned<String>, problems: &mut Vec<Problem>) -> Option<T>
where
    T::Err: ToString,
{
    let parsed = written.get_ref().parse();
    parsed.map_err(|why: T::Err| problems.push(Problem::new(why.to_string()).at(inside(text, written), "here"))).ok()
}

/// Whether it is a dry run, which it is if nothing is said. A parameter can only be in a string.
fn is_dry(written: Option<Spanned<Value>>, problems: &mut Vec<Problem>) -> bool {
    let Some(written) = written else { return true };
    match written.get_ref() {
        Value::Boolean(dry) => *dry,
        Value::String(text) if text == "true" => true,
        Value::String(text) if text == "false" => false,
        _ => {
            problems.push(Problem::new("`dry` is true or false").at(written.span(), "here"));
            true
        }
    }
}

/// A number from 1 to `most`, or `otherwise` if none is written.
fn number(written: Option<Spanned<i64>>, otherwise: u32, most: u32, problems: &mut Vec<Problem>) -> u32 {
    let Some(written) = written else { return otherwise };
    match u32::try_from(*written.get_ref()) {
        Ok(number) if (1..=most).contains(&number) => number,
        _ => {
            let problem = Problem::new("this number is not possible").at(written.span(), "here");
            problems.push(problem.help(format!("use 1 to {most}")));
            otherwise
        }
    }
}
