//! What an experiment is made of: a study of a paper, and its cells.

use super::results::{Results, Values};
use super::tell::Told;
use crate::sim::tell::{About as Whole, tell as tell_whole};
use crate::terminal::note;
use crate::world::{Ran, World};
use anyhow::Result;
use queuescope_report::model::{Sim, Skipped};
use queuescope_report::text::{LIMITED, limited};
use queuescope_scenario::Scenario;
use queuescope_sim::{Files, Simulation};
use std::collections::BTreeMap;

/// A paper's experiments.
pub trait Study: Sync {
    /// As on the command line.
    fn name(&self) -> &'static str;
    /// The paper.
    fn source(&self) -> &'static str;
    /// What else is to be known of what was run, in a sentence; empty if there is nothing.
    fn remark(&self, _small: bool) -> String {
        String::new()
    }
    /// Whether its cells run on real hosts, too, which share the machine's time with nobody.
    fn is_real(&self) -> bool {
        false
    }
    /// All cells, in order; few and short ones if it is to be small.
    fn cells(&self, small: bool) -> Vec<Cell>;
    /// Of the intervals of means over seeds.
    fn confidence(&self) -> f64 {
        0.95
    }
    /// Runs a cell: what is measured of it.
    ///
    /// # Errors
    /// If it cannot be run.
    fn measure(&self, cell: &Cell) -> Result<Values>;
    /// What it amounts to.
    fn tell(&self, results: &Results) -> Told;
}

/// How the scenario of a cell begins that is not simulated.
pub const ON_REAL_HOSTS: &str = "# On real hosts.\n";

/// What is run once.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The figure or table that it is for.
    pub figure: &'static str,
    /// What is varied, by name.
    pub parameters: Vec<(&'static str, String)>,
    pub seed: u64,
    /// The whole scenario: all that its values depend on, what is not simulated as comments.
    pub scenario: String,
}

impl Cell {
    pub fn parameters(&self) -> BTreeMap<String, String> {
        self.parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    /// Its scenario.
    pub fn parsed(&self) -> Result<Scenario> {
        Ok(Scenario::parse(self.figure, &self.scenario, &[])?)
    }

    /// Simulates its scenario.
    pub fn simulate(&self) -> Result<Sim> {
        self.run_in(self.world())
    }

    /// Runs its scenario in a world.
    pub fn run_in(&self, world: World) -> Result<Sim> {
        let Ran { simulation, about, real_time, .. } = self.ran_in(world)?;
        Ok(Sim { real_time, ..tell_whole(&simulation, about) })
    }

    /// Simulates its scenario: for what a report does not tell.
    pub fn simulation(&self) -> Result<Simulation> {
        Ok(self.ran()?.simulation)
    }

    /// Simulates its scenario: with what it is about, for who asks for groups of flows.
    pub fn whole(&self) -> Result<(Simulation, Whole)> {
        let Ran { simulation, about, .. } = self.ran()?;
        Ok((simulation, about))
    }

    /// Where it is to run.
    pub fn world(&self) -> World {
        if self.scenario.starts_with(ON_REAL_HOSTS) { World::Real } else { World::Simulated }
    }

    /// Runs its scenario there.
    pub fn ran(&self) -> Result<Ran> {
        self.ran_in(self.world())
    }

    pub fn ran_in(&self, world: World) -> Result<Ran> {
        let ran = world.run(&self.parsed()?, &Files::default())?;
        for Skipped { reason, count, meaning } in &ran.skipped {
            note(&format!("{}: {count} {reason}: {meaning}", self.name()));
        }
        if let Some(why) = ran.real_time.as_ref().and_then(limited) {
            note(&format!("{}: {LIMITED}: {why}", self.name()));
        }
        Ok(ran)
    }

    /// As messages name it.
    pub fn name(&self) -> String {
        let values: Vec<_> = self.parameters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        format!("{}, {}, seed {}", self.figure, values.join(", "), self.seed)
    }
}
