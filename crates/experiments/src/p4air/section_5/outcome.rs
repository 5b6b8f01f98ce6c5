//! The outcome of section V: what the paper says, and a table for each part.

use super::settings::{Part, parts};
use super::{DELAY, FULLEST, GROUPED, OPTION, PART, REORDERED, RTT_ERROR, SECTION, SHAPED, USED};
use crate::outcome::{Finding, Outcome, Table};
use crate::p4air::JAIN;
use crate::results::{Point, Results};

pub fn outcome(results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    if results.of(SECTION).next().is_none() {
        return outcome;
    }
    outcome.findings.extend(STATEMENTS.iter().filter_map(|statement| statement.finding(results)));
    outcome.tables.extend(parts(false).iter().map(|part| table(results, part)));
    outcome
}

/// A statement of the paper, and the settings that it is about: an option, and the same without it.
struct Statement {
    what: &'static str,
    paper: &'static str,
    part: &'static str,
    option: &'static str,
    without: &'static str,
    value: &'static str,
}

const STATEMENTS: [Statement; 6] = [
    Statement {
        what: "V: weighted queues",
        paper: "all groups get their fair share",
        part: "one link",
        option: "weighted queues",
        without: "P4air",
        value: JAIN,
    },
    Statement {
        what: "V: actions by queueing delay instead of the BDP",
        paper: "possible",
        part: "one link",
        option: "act on a delay of 20 ms",
        without: "P4air",
        value: JAIN,
    },
    Statement {
        what: "V: flows of queues counted",
        paper: "all queues process a similar amount of flows",
        part: "uneven ends",
        option: "flows of queues counted",
        without: "P4air",
        value: FULLEST,
    },
    Statement {
        what: "V: an AQM before it (CoDel at 105 %)",
        paper: "may lead to misclassification",
        part: "behind another AQM",
        option: "before it: CoDel at 105 %",
        without: "before it: 10 times the rate",
        value: GROUPED,
    },
    Statement {
        what: "V: round-trip times from timestamps, if another switch delays the handshake",
        paper: "an accurate estimate",
        part: "behind another AQM",
        option: "before it: tail drop at 105 %, RTT by timestamps",
        without: "before it: tail drop at 105 %",
        value: RTT_ERROR,
    },
    Statement {
        what: "V: a few P4air switches (the first of two)",
        paper: "might benefit the network greatly",
        part: "two bottlenecks",
        option: "P4air at the first",
        without: "P4air at none",
        value: JAIN,
    },
];

impl Statement {
    fn finding(&self, results: &Results) -> Option<Finding> {
        let point = |setting| results.of(SECTION).find(|point| is(point, self.part, setting));
        let (with, without) = (point(self.option)?, point(self.without)?);
        let digits = digits(self.value);
        let ours = format!(
            "{}: {}; without: {}",
            self.value,
            with.shown(self.value, digits),
            without.shown(self.value, digits)
        );
        let why = format!("{}, {}, and {}", self.part, self.option, self.without);
        Some(Finding::of_words(SECTION, self.what.to_owned(), self.paper, ours, why))
    }
}

fn is(point: &Point, part: &str, setting: &str) -> bool {
    point.parameter(PART) == part && point.parameter(OPTION) == setting
}

/// The measured values, and how many digits each needs.
const VALUES: [&str; 8] = [JAIN, DELAY, USED, REORDERED, GROUPED, SHAPED, RTT_ERROR, FULLEST];

fn digits(value: &str) -> usize {
    match value {
        JAIN | FULLEST => 2,
        REORDERED => 3,
        USED | DELAY | RTT_ERROR => 1,
        _ => 0,
    }
}

/// The settings of a part, in the order of their cells.
fn table(results: &Results, part: &Part) -> Table {
    let points = results.of(SECTION).filter(|point| point.parameter(PART) == part.name);
    let row = |point: &Point| {
        let values = VALUES.iter().map(|value| point.shown(value, digits(value)));
        [point.parameter(OPTION).to_owned()].into_iter().chain(values).collect()
    };
    Table {
        title: format!("Section V: {}", part.about),
        columns: [OPTION].into_iter().chain(VALUES).map(str::to_owned).collect(),
        rows: points.map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_statement_is_about_settings_that_are_run() {
        for statement in &STATEMENTS {
            let parts = parts(false);
            let part = parts.iter().find(|part| part.name == statement.part).unwrap();
            for setting in [statement.option, statement.without] {
                assert!(part.settings.iter().any(|own| own.name == setting), "{setting}");
            }
        }
    }
}
