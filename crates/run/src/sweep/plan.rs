//! The plan of a sweep: its parameters, and the keys of all cells. It is stored with the results, so that they can be merged.

use super::key::{FORMAT, READABLE, is_key};
use super::store::About;
use queuescope_report::decimal;
use queuescope_report::model::{Skipped, SweepParameter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The plan of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of the format of results.
    pub format: u32,
    /// The version of queuescope.
    pub version: String,
    /// The scenario's name, or that of its file.
    pub name: String,
    /// The scenario's description.
    pub about: Option<String>,
    /// The text of the whole scenario, with its sweep.
    pub scenario: String,
    /// The first seed.
    #[serde(with = "decimal")]
    pub seed: u64,
    /// The number of seeds.
    pub seeds: u32,
    /// The link that the figures are about, if it is not that of the scenario.
    pub meter: Option<String>,
    /// The parameters, each with its values.
    pub parameters: Vec<SweepParameter>,
    /// Notes on the files that the scenario names.
    pub skipped: Vec<Skipped>,
    /// The keys of all cells, in order.
    pub cells: Vec<String>,
}

impl Plan {
    /// Why this plan is not valid; `None` if it is.
    pub fn problem(&self) -> Option<String> {
        if !READABLE.contains(&self.format) {
            return Some(format!(
                "its format is {}, and this version of queuescope reads up to {FORMAT}: use a newer version",
                self.format
            ));
        }
        let values = self.parameters.iter().map(|parameter| parameter.values.len() as u64);
        let cells = values.fold(u64::from(self.seeds), u64::saturating_mul);
        if cells == 0 || cells != self.cells.len() as u64 || !self.cells.iter().all(|key| is_key(key)) {
            return Some(
                "the number of its cells does not match its values and seeds, or a key is malformed".to_owned(),
            );
        }
        None
    }

    /// How two plans differ; `None` if they are of the same sweep.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let checks = [
            (self.version != other.version, "they were run by different versions of queuescope"),
            (self.parameters != other.parameters, "their parameters differ"),
            ((self.seed, self.seeds) != (other.seed, other.seeds), "their seeds differ"),
            (self.meter != other.meter, "they were run with different --meter"),
            (self.cells != other.cells && self.scenario != other.scenario, "their scenarios differ"),
            (self.cells != other.cells, "the files that their scenarios name differ"),
        ];
        checks.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }

    /// The number of cells.
    pub fn count(&self) -> u64 {
        self.cells.len() as u64
    }

    /// The index of the combination of values that a cell belongs to.
    pub fn row(&self, cell: u64) -> u64 {
        cell / u64::from(self.seeds)
    }

    /// The seed of a cell.
    pub fn seed(&self, cell: u64) -> u64 {
        queuescope_scenario::Sweep { seeds: self.seeds, values: Vec::new() }.seed_of(cell, self.seed)
    }

    /// The values of a combination, in the order of the parameters.
    pub fn values(&self, row: u64) -> Vec<String> {
        let mut rest = row;
        let mut values: Vec<_> = self
            .parameters
            .iter()
            .rev()
            .map(|SweepParameter { values, .. }| {
                let value = values[(rest % values.len() as u64) as usize].clone();
                rest /= values.len() as u64;
                value
            })
            .collect();
        values.reverse();
        values
    }

    /// The values of a cell, by their paths.
    pub fn parameters(&self, cell: u64) -> BTreeMap<String, String> {
        let paths = self.parameters.iter().map(|parameter| parameter.path.clone());
        paths.zip(self.values(self.row(cell))).collect()
    }

    /// The facts that a cell's file states besides the result.
    pub fn about(&self, cell: u64) -> About {
        let version = self.version.clone();
        About { version, number: cell, seed: self.seed(cell), parameters: self.parameters(cell) }
    }

    /// The name of a cell in messages.
    pub fn name(&self, cell: u64) -> String {
        let (values, seed) = (self.combination(cell), format!("seed {}", self.seed(cell)));
        match (values.is_empty(), self.seeds) {
            (true, _) => seed,
            (false, 1) => values,
            (false, _) => format!("{values}, {seed}"),
        }
    }

    /// The combination of values of a cell, as text for messages.
    pub fn combination(&self, cell: u64) -> String {
        let paths = self.parameters.iter().map(|parameter| parameter.path.as_str());
        let values: Vec<_> =
            paths.zip(self.values(self.row(cell))).map(|(path, value)| format!("{path}={value}")).collect();
        values.join(", ")
    }
}

/// A value as a user writes it: TOML, but strings without their quotes.
pub fn shown(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    inner.filter(|inner| !inner.contains(['"', '\\'])).unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_scenario::Sweep;

    fn plan() -> Plan {
        let list = |path: &str, values: &[&str]| SweepParameter {
            path: path.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        Plan {
            format: FORMAT,
            version: "1".to_owned(),
            name: String::new(),
            about: None,
            scenario: String::new(),
            seed: i64::MAX as u64,
            seeds: 2,
            meter: None,
            parameters: vec![list("a", &["1", "2"]), list("b", &["x", "y", "z"])],
            skipped: Vec::new(),
            cells: (0..12).map(|n| format!("{n:032x}")).collect(),
        }
    }

    #[test]
    fn cells_have_the_values_that_the_scenario_gives_them() {
        let plan = plan();
        assert_eq!(plan.problem(), None);
        let values = plan.parameters.iter().map(|it| (it.path.clone(), it.values.clone())).collect();
        let sweep = Sweep { seeds: plan.seeds, values };
        for cell in sweep.cells(plan.seed) {
            let mut expected: Vec<_> =
                plan.parameters(cell.index).into_iter().map(|(path, value)| format!("{path}={value}")).collect();
            expected.push(format!("seed={}", plan.seed(cell.index)));
            assert_eq!(cell.overrides.into_iter().map(|it| it.text).collect::<Vec<_>>(), expected);
        }
        assert_eq!(plan.name(3), format!("a=1, b=y, seed {}", 0));
    }

    #[test]
    fn invalid_plans_are_found() {
        let broken: [fn(&mut Plan); 5] = [
            |plan| plan.format += 1,
            |plan| plan.seeds = 0,
            |plan| plan.parameters[0].values.clear(),
            |plan| drop(plan.cells.pop()),
            |plan| plan.cells[0].push('/'),
        ];
        for damage in broken {
            let mut plan = plan();
            damage(&mut plan);
            assert!(plan.problem().is_some());
        }
    }

    #[test]
    fn text_is_shown_without_quotes_where_possible() {
        assert_eq!(
            ["\"10mbps\"", "10", "[\"a\", \"b\"]", "\"a\\\"b\""].map(shown),
            ["10mbps", "10", "[\"a\", \"b\"]", "\"a\\\"b\""]
        );
    }
}
