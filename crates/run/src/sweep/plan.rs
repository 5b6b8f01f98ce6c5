//! The plan of a sweep: what is swept, and the keys of all cells. It stands beside the results, so that they can be joined.

use super::key::{FORMAT, READABLE, is_key};
use super::store::About;
use queuescope_report::decimal;
use queuescope_report::model::{Skipped, SweepParameter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a sweep consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Of the form of results.
    pub format: u32,
    /// Of the program.
    pub version: String,
    /// The scenario's name, or that of its file.
    pub name: String,
    /// What it is about.
    pub about: Option<String>,
    /// The whole scenario with its sweep.
    pub scenario: String,
    /// The first seed.
    #[serde(with = "decimal")]
    pub seed: u64,
    /// How many.
    pub seeds: u32,
    /// The link that figures are about, if it is not the one that the scenario says.
    pub meter: Option<String>,
    /// What is swept.
    pub parameters: Vec<SweepParameter>,
    /// What was remarkable in the files that the scenario names.
    pub skipped: Vec<Skipped>,
    /// The keys of all cells, in order.
    pub cells: Vec<String>,
}

impl Plan {
    /// Why this cannot be a plan, if it cannot.
    pub fn problem(&self) -> Option<String> {
        if !READABLE.contains(&self.format) {
            return Some(format!("it is of format {}, and this version reads up to {FORMAT}", self.format));
        }
        let values = self.parameters.iter().map(|parameter| parameter.values.len() as u64);
        let cells = values.fold(u64::from(self.seeds), u64::saturating_mul);
        if cells == 0 || cells != self.cells.len() as u64 || !self.cells.iter().all(|key| is_key(key)) {
            return Some("its cells are not those of its values and seeds".to_owned());
        }
        None
    }

    /// In what two plans differ, if they are not of the same sweep.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let told = [
            (self.version != other.version, "they were run by different versions of queuescope"),
            (self.parameters != other.parameters, "what is swept differs"),
            ((self.seed, self.seeds) != (other.seed, other.seeds), "their seeds differ"),
            (self.meter != other.meter, "they were run with different --meter"),
            (self.scenario != other.scenario, "their scenarios differ"),
            (self.cells != other.cells, "the files that their scenarios name differ"),
        ];
        told.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }

    /// How many cells there are.
    pub fn count(&self) -> u64 {
        self.cells.len() as u64
    }

    /// The combination of values that a cell is of, by its number.
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

    /// What a cell's file says beside the result.
    pub fn about(&self, cell: u64) -> About {
        let version = self.version.clone();
        About { version, number: cell, seed: self.seed(cell), parameters: self.parameters(cell) }
    }

    /// A cell as messages name it.
    pub fn name(&self, cell: u64) -> String {
        let (values, seed) = (self.combination(cell), format!("seed {}", self.seed(cell)));
        match (values.is_empty(), self.seeds) {
            (true, _) => seed,
            (false, 1) => values,
            (false, _) => format!("{values}, {seed}"),
        }
    }

    /// The combination of values that a cell is of, as messages name it.
    pub fn combination(&self, cell: u64) -> String {
        let paths = self.parameters.iter().map(|parameter| parameter.path.as_str());
        let values: Vec<_> =
            paths.zip(self.values(self.row(cell))).map(|(path, value)| format!("{path}={value}")).collect();
        values.join(", ")
    }
}

/// A value as a person writes it: TOML, but text without its quotes.
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
    fn what_is_no_plan_is_found() {
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
    fn text_is_shown_without_quotes_where_it_can_be() {
        assert_eq!(
            ["\"10mbps\"", "10", "[\"a\", \"b\"]", "\"a\\\"b\""].map(shown),
            ["10mbps", "10", "[\"a\", \"b\"]", "\"a\\\"b\""]
        );
    }
}
