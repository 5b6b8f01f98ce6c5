//! Runs cells, and stores the rounds of their flows.

use crate::cells::{Cell, Set};
use crate::stored::{path, write};
use anyhow::{Context, Result, anyhow};
use queuescope_meter::{BehaviourParams, Behaviours, FlowRounds};
use queuescope_queue::{Dropped, Headers};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, InFlight, LinkId, Observer, build};
use queuescope_wire::{Departure, FlowId};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Runs all cells of a set that are not in the folder yet.
pub fn all(folder: &Path, set: Set, threads: usize) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let (cells, began) = (set.cells(), Instant::now());
    let (next, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || -> Result<()> {
        while let Some((number, cell)) = nth(&cells, next.fetch_add(1, Ordering::Relaxed)) {
            let path = path(folder, cell);
            if path.exists() {
                continue;
            }
            let rounds = run(cell).with_context(|| format!("cell {number} cannot run:\n{}", cell.scenario))?;
            // A run that is stopped meanwhile leaves no half file.
            let part = path.with_extension("part");
            fs::write(&part, write(&rounds)).and_then(|()| fs::rename(&part, &path))?;
            if ran.fetch_add(1, Ordering::Relaxed) % 50 == 49 {
                eprintln!("cell {number} of {}, {:.0} s", cells.len(), began.elapsed().as_secs_f64());
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| anyhow!("a thread failed"))?)
    })?;
    let seconds = began.elapsed().as_secs_f64();
    println!("{} cells, of which {} were run, in {seconds:.0} s", cells.len(), ran.into_inner());
    Ok(())
}

/// The cells in an order in which the first ones are of all kinds, so that an unfinished grid is a fair sample.
fn nth(cells: &[Cell], nth: usize) -> Option<(usize, &Cell)> {
    /// A prime, so that each cell has its turn.
    const STEP: usize = 7_919;
    let number = (nth < cells.len()).then(|| nth * STEP % cells.len())?;
    cells.get(number).map(|cell| (number, cell))
}

/// Runs a cell; returns the rounds of its flows, in order.
fn run(cell: &Cell) -> Result<Vec<Option<FlowRounds>>> {
    let scenario = Scenario::parse("cell", &cell.scenario, &[])?;
    let Built { mut simulation, meters, .. } = build(&scenario, &Files::default())?;
    let link = *meters.first().context("no link is measured")?;
    let mut watched = Watched { link, meter: Behaviours::new(BehaviourParams::default()) };
    simulation.run_until(scenario.duration, &mut watched);
    Ok((0..cell.flows.len()).map(|group| watched.meter.flow(FlowId(group as u32)).cloned()).collect())
}

/// Passes what happens at one link on; each group has one flow.
struct Watched {
    link: LinkId,
    meter: Behaviours,
}

impl Observer for Watched {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, _headers: &Headers) {
        if link == self.link {
            self.meter.departed(FlowId(packet.group), departure);
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, _headers: &Headers) {
        if link == self.link {
            self.meter.dropped(FlowId(packet.group), dropped.enqueued.unwrap_or(dropped.at));
        }
    }
}
