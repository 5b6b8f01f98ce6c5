//! Records one of the networks of the cookbook: `recipe NAME FOLDER [SEED]`. The packets that its hosts receive are recorded in
//! the folder, for `queuescope query`, and alerts of its triggers are printed. The names are in `network`; `NAME-clean` is the same
//! network without the fault.

#![allow(clippy::disallowed_methods, reason = "recipes are read from their files")]

#[allow(dead_code, reason = "tests need more of it")]
#[path = "../../sim/tests/recipes/networks.rs"]
mod networks;

use networks::Network;
use queuescope_archive::{Durability, Full, Recorder, RecorderOptions, Retention};
use queuescope_log::{Number, Schema};
use queuescope_sim::{Journey, Records, Telemetry};
use queuescope_wire::Nanos;
use std::error::Error;
use std::path::Path;

fn network(name: &str, seed: u64) -> Option<Network> {
    let (name, fault) = name.strip_suffix("-clean").map_or((name, true), |name| (name, false));
    Some(match name {
        "path-conformance" => networks::stray(seed, fault, &networks::checks(10)),
        "packet-loss" => networks::loss(seed, fault),
        "several-losses" => networks::losses(seed, fault),
        "outcast" => networks::outcast(seed, fault),
        "incast" => networks::incast(seed, fault),
        "traffic-matrix" => networks::matrix(seed, fault),
        _ => return None,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [name, folder, seed @ ..] = arguments.as_slice() else { return Err("recipe NAME FOLDER [SEED]".into()) };
    let seed = seed.first().map_or(Ok(0), |seed| seed.parse())?;
    let Network { mut simulation, definitions, end, .. } =
        network(name, seed).ok_or_else(|| format!("there is no network {name}"))?;
    let options = RecorderOptions {
        memory: 256 << 20,
        full: Full::Wait,
        durability: Durability::Relaxed,
        journal_records: 1 << 16,
        archive: false,
        indexes: Vec::new(),
        keep: Retention::default(),
    };
    let (recorder, _) = Recorder::open(Path::new(folder), Schema::packet(), options)?;
    let defined = definitions.apply(recorder.log())?;
    let mut monitor = defined.monitor(recorder.log())?;
    let (mut records, mut failed) = (Records::default(), None);
    let arrived = |journey: &Journey<'_>| {
        if journey.dropped.is_none() {
            failed = recorder.append(records.fill(journey)).err().or(failed.take());
        }
    };
    let topology = simulation.topology().clone();
    let mut telemetry = Telemetry::new(&topology, (), arrived);
    for now in (0..=end.0).step_by(1_000_000) {
        simulation.run_until(Nanos(now), &mut telemetry);
        monitor.pass(now, |name, alert| {
            if alert.new {
                let value = match alert.value {
                    Number::Unsigned(value) => value.to_string(),
                    other => format!("{other:?}"),
                };
                println!("{}: {name}, {value}", Nanos(alert.at));
            }
        });
    }
    drop(telemetry);
    drop(monitor);
    if let Some(error) = failed {
        return Err(error.into());
    }
    println!("{} packets in {folder}", recorder.finish()?.records);
    Ok(())
}
