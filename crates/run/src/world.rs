//! The worlds that a scenario can be run in.

use crate::error::Error;
use crate::links::{check_room, metered_link};
use crate::summary::{About, of};
use queuescope_report::model::{RealTime, Sim, Skipped};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, Simulation, build};

/// Where a scenario is run: simulated, or by real hosts in real time.
pub trait World: Sync {
    /// Runs a scenario with the files that it names, without an analysis of its queues.
    ///
    /// # Errors
    /// If it cannot be; in a real world also if this user may not, or something goes wrong meanwhile.
    fn run(&self, scenario: &Scenario, files: &Files) -> Result<Ran, Error>;
}

/// What came of a scenario in a world.
#[derive(Debug)]
pub struct Ran {
    /// The network, with what became of everything.
    pub simulation: Simulation,
    /// What a report says of it beside that.
    pub about: About,
    /// How exact it was in the real world.
    pub real_time: Option<RealTime>,
    /// What did not go as it was meant.
    pub skipped: Vec<Skipped>,
}

impl Ran {
    /// What a report says of it.
    pub fn summary(self) -> Sim {
        Sim { real_time: self.real_time, ..of(&self.simulation, self.about) }
    }
}

/// The world in which everything is simulated, as fast as it goes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

impl World for Simulated {
    fn run(&self, scenario: &Scenario, files: &Files) -> Result<Ran, Error> {
        let Built { mut simulation, groups, meters, .. } = build(scenario, files)?;
        // What is kept does not depend on which link the summary is about.
        let (_, meter) = metered_link(None, &simulation, &meters)?;
        simulation.run_until(scenario.duration, &mut ());
        check_room(&simulation)?;
        Ok(Ran { simulation, about: About::of(scenario, meter, groups), real_time: None, skipped: Vec::new() })
    }
}
