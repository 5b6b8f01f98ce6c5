//! The worlds in which a scenario can run.

use crate::error::Error;
use crate::links::{check_room, metered_link};
use crate::summary::{About, summarise};
use queuescope_report::model::{RealTime, Sim, Skipped};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, Simulation, build};

/// Where a scenario runs: in simulation, or with real hosts in real time.
pub trait World: Sync {
    /// Runs a scenario with the files that it names, without an analysis of its queues.
    ///
    /// # Errors
    /// Fails if the scenario cannot be run. A real world also fails if this user lacks the rights.
    fn run(&self, scenario: &Scenario, files: &Files) -> Result<ScenarioRun, Error>;
}

/// The result of a scenario's run.
#[derive(Debug)]
pub struct ScenarioRun {
    /// The network after the run, with the records of flows and links.
    pub simulation: Simulation,
    /// Other facts for the report.
    pub about: About,
    /// How exact timing was in the real world; `None` in simulation.
    pub real_time: Option<RealTime>,
    /// Notes on packets that were left out or not carried as they should be.
    pub skipped: Vec<Skipped>,
}

impl ScenarioRun {
    /// Summarises the run for a report.
    pub fn summary(self) -> Sim {
        Sim { real_time: self.real_time, ..summarise(&self.simulation, self.about) }
    }
}

/// The world in which everything is simulated, as fast as the machine can.
///
/// ```
/// use queuescope_run::{ScenarioFile, Simulated, World};
/// use queuescope_sim::files_of;
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bufferbloat.toml");
/// let file = ScenarioFile::read(path.as_ref(), ["duration=2s".into(), "warmup=0s".into()])?;
/// let scenario = file.scenario()?;
/// let (files, _skipped) = file.files(files_of(&scenario))?;
/// let summary = Simulated.run(&scenario, &files)?.summary();
/// for link in &summary.links {
///     println!("{}: {} packets", link.name, link.sent_packets);
/// }
/// assert!(summary.links.iter().any(|link| link.sent_packets > 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulated;

impl World for Simulated {
    fn run(&self, scenario: &Scenario, files: &Files) -> Result<ScenarioRun, Error> {
        let Built { mut simulation, groups, meters, .. } = build(scenario, files)?;
        // The stored result does not depend on the link that the summary is about.
        let (_, meter) = metered_link(None, &simulation, &meters)?;
        simulation.run_until(scenario.duration, &mut ());
        check_room(&simulation)?;
        Ok(ScenarioRun { simulation, about: About::new(scenario, meter, groups), real_time: None, skipped: Vec::new() })
    }
}
