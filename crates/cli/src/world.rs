//! The two worlds that a scenario can be run in.

use crate::sim::tell::About;
use crate::sim::{metered_link, too_many_packets};
use anyhow::{Result, bail};
use queuescope_report::model::{RealTime, Skipped};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, Simulation, build};

/// A world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum World {
    /// Everything is simulated, as fast as it goes.
    #[default]
    Simulated,
    /// Hosts are real ones, and so is the time.
    Real,
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

impl World {
    /// Runs a scenario in it, without an analysis of its queues.
    ///
    /// # Errors
    /// If it cannot be; in the real world also if this user may not, or something goes wrong meanwhile.
    pub fn run(self, scenario: &Scenario, files: &Files) -> Result<Ran> {
        match self {
            Self::Simulated => simulate(scenario, files),
            #[cfg(target_os = "linux")]
            Self::Real => crate::link::run_unwatched(scenario, files),
            #[cfg(not(target_os = "linux"))]
            Self::Real => bail!("real hosts are namespaces of Linux"),
        }
    }
}

fn simulate(scenario: &Scenario, files: &Files) -> Result<Ran> {
    let Built { mut simulation, groups, meters, .. } = build(scenario, files)?;
    // What is kept does not depend on which link the summary is about.
    let (_, meter) = metered_link(None, &simulation, &meters)?;
    simulation.run_until(scenario.duration, &mut ());
    if simulation.is_full() {
        bail!("{}", too_many_packets(&simulation));
    }
    Ok(Ran { simulation, about: About::of(scenario, meter, groups), real_time: None, skipped: Vec::new() })
}
