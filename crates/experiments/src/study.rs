//! The parts of an experiment: a study of a paper, and its cells.

use super::outcome::Outcome;
use super::results::{Results, Values};
use crate::error::{Error, Result};
use queuescope_report::model::{Sim, Skipped};
use queuescope_report::text::{LIMITED, limited};
use queuescope_run::summary::About as Whole;
use queuescope_run::{ScenarioRun, Simulated, World};
use queuescope_scenario::Scenario;
use queuescope_sim::{Files, Simulation};
use std::collections::BTreeMap;

/// A paper's experiments.
pub trait Study: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// The paper.
    fn source(&self) -> &'static str;
    /// What else readers must know about the runs, in a sentence; may be empty.
    fn remark(&self, _small: bool) -> String {
        String::new()
    }
    /// Whether its cells also run on real hosts, one at a time so that they have the machine to themselves.
    fn is_real(&self) -> bool {
        false
    }
    /// All cells, in order; few and short ones if `small`.
    fn cells(&self, small: bool) -> Vec<Cell>;
    /// The confidence of the intervals of means over seeds.
    fn confidence(&self) -> f64 {
        0.95
    }
    /// Runs a cell and returns its measured values.
    ///
    /// # Errors
    /// Fails if it cannot be run.
    fn measure(&self, cell: &Cell, setting: &Setting<'_>) -> Result<Values>;
    /// The outcome of the results.
    fn outcome(&self, results: &Results) -> Outcome;
}

/// The first line of the scenario of a cell that is not simulated.
pub const ON_REAL_HOSTS: &str = "# On real hosts.\n";

/// The environment of experiments.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The world of real hosts, if there is one.
    pub real: Option<&'a dyn World>,
    /// Receives remarks while cells run.
    pub note: &'a (dyn Fn(&str) + Sync),
}

impl<'a> Setting<'a> {
    /// The world of real hosts.
    ///
    /// # Errors
    /// Fails if there is none.
    pub(crate) fn real_hosts(&self) -> Result<&'a dyn World> {
        self.real.ok_or(Error::NoRealHosts)
    }
}

/// A single run.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The figure or table that it belongs to.
    pub figure: &'static str,
    /// The varied parameters, by name.
    pub parameters: Vec<(&'static str, String)>,
    pub seed: u64,
    /// The complete scenario: everything that its values depend on; what is not simulated is in comments.
    pub scenario: String,
}

impl Cell {
    pub fn parameters(&self) -> BTreeMap<String, String> {
        self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// Parses its scenario.
    pub fn parsed(&self) -> Result<Scenario> {
        Ok(Scenario::parse(self.figure, &self.scenario, &[])?)
    }

    /// Runs its scenario.
    pub fn simulate(&self, setting: &Setting<'_>) -> Result<Sim> {
        self.run_in(self.world(setting)?, setting)
    }

    /// Runs its scenario in a given world.
    pub fn run_in(&self, world: &dyn World, setting: &Setting<'_>) -> Result<Sim> {
        Ok(self.ran_in(world, setting)?.summary())
    }

    /// Runs its scenario and returns the simulation, for values that a report lacks.
    pub fn simulation(&self, setting: &Setting<'_>) -> Result<Simulation> {
        Ok(self.whole(setting)?.0)
    }

    /// Runs its scenario and returns the simulation with its description, for groups of flows.
    pub fn whole(&self, setting: &Setting<'_>) -> Result<(Simulation, Whole)> {
        let ScenarioRun { simulation, about, .. } = self.ran_in(self.world(setting)?, setting)?;
        Ok((simulation, about))
    }

    /// The world in which it is to run.
    fn world<'a>(&self, setting: &Setting<'a>) -> Result<&'a dyn World> {
        if self.scenario.starts_with(ON_REAL_HOSTS) { setting.real_hosts() } else { Ok(&Simulated) }
    }

    fn ran_in(&self, world: &dyn World, setting: &Setting<'_>) -> Result<ScenarioRun> {
        let ran = world.run(&self.parsed()?, &Files::default())?;
        for Skipped { reason, count, meaning } in &ran.skipped {
            (setting.note)(&format!("{}: {count} {reason}: {meaning}", self.name()));
        }
        if let Some(why) = ran.real_time.as_ref().and_then(limited) {
            (setting.note)(&format!("{}: {LIMITED}: {why}", self.name()));
        }
        Ok(ran)
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        let values: Vec<_> = self.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        format!("{}, {}, seed {}", self.figure, values.join(", "), self.seed)
    }
}
