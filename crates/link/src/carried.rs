//! A scenario's network in real time, and what a report says of it.

use crate::error::Error;
use crate::machine_limit::MachineLimit;
use crate::real_time::{RealTime, Ways};
use crate::testbed::End;
use crate::timing::Sleep;
use queuescope_ingest::notes::{noted, parser_notes};
use queuescope_queue::PipelineParams;
use queuescope_report::model::{self, Report, Skipped};
use queuescope_scenario::Scenario;
use queuescope_sim::Simulation;
use queuescope_wire::ByteCount;
use std::num::NonZero;
use std::{io, thread};

/// Packets are held back at times if they are for more than one of so many parts of the time.
const HELD_BACK_PARTS: u64 = 10;
/// More packets than this in a thousand that are late by more than a millisecond are the machine's doing.
const LATE_PER_MILLE: u64 = 10;

/// Adds to a report on a link how exact it was: packets that were lost before it are of flows that nobody knows.
pub fn complete_report(report: &mut Report, sim: model::Sim) {
    let unread = sim.real_time.as_ref().map_or(0, |real| real.unread_packets);
    let others = report.others.iter_mut().map(|other| &mut other.report.totals);
    others.chain([&mut report.totals]).for_each(|totals| totals.miss_flows_of(unread));
    report.sim = Some(sim);
}

/// The network of a scenario in real time. It reads TCP headers where there is a program that does.
pub(crate) fn begun<'a, W: Ways>(
    scenario: &Scenario,
    simulation: Simulation,
    ways: W,
    ends: &'a [End; 2],
    sleep: Sleep,
) -> RealTime<'a, W> {
    let real = RealTime::begin(simulation, ways, ends, sleep);
    let reads = |program: &PipelineParams| matches!(program, PipelineParams::AckWindow(_));
    let mut programs = scenario.network().links.into_iter().filter_map(|link| link.pipeline);
    if programs.any(|program| reads(&program)) { real.with_tcp_headers() } else { real }
}

/// What a link did not carry, or not as it was meant.
pub(crate) fn notes<W: Ways>(real: &RealTime<'_, W>) -> impl Iterator<Item = Skipped> {
    let counts = real.counts();
    let none = noted("no_way", counts.no_way, "packets for an address that no host of the link has");
    let lost = noted("not_taken", counts.not_taken, "packets that this machine had no memory for as they arrived");
    let uncut = noted("uncut", counts.uncut, "super-packets that could not be cut, and went through as one packet");
    none.into_iter().chain(lost).chain(uncut).chain(parser_notes(real.parser()))
}

/// How exact a link was; packets may have been lost before it, since they were not read in time.
pub(crate) fn real_time<W: Ways>(real: &RealTime<'_, W>, ends: &[End; 2]) -> Result<model::RealTime, Error> {
    let unread = ends.iter().map(End::unread).sum::<io::Result<u64>>();
    let unread = unread.map_err(Error::system("cannot tell what the interfaces of the link lost"))?;
    let (timing, sleep) = (real.timing(), real.sleep());
    let [p50, p99, worst] = [50.0, 99.0, 100.0].map(|percentile| timing.percentile(percentile).0);
    let seen = real.machine_limit();
    let is_held_back = seen.time.0 > seen.of.0 / HELD_BACK_PARTS;
    let is_late = timing.late() * 1_000 > timing.packets() * LATE_PER_MILLE;
    Ok(model::RealTime {
        packets: timing.packets(),
        error_p50_ns: p50,
        error_p99_ns: p99,
        error_worst_ns: worst,
        late_packets: timing.late(),
        sleep_p50_ns: sleep.p50.0,
        sleep_p99_ns: sleep.p99.0,
        unread_packets: unread,
        machine_limit: machine_limit(&seen, real.simulation()),
        is_limited_by_machine: unread > 0 || is_late || is_held_back,
    })
}

/// What the machine held back, if it did.
fn machine_limit(seen: &MachineLimit, simulation: &Simulation) -> Option<model::MachineLimit> {
    let seconds = seen.time.as_secs_f64();
    let per_second = |bytes: ByteCount| bytes.0 as f64 * 8.0 / seconds;
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    Some(model::MachineLimit {
        limited_ns: seen.time.0,
        active_ns: seen.of.0,
        link: simulation.topology().link(seen.link?).name.clone(),
        offered_bps: per_second(seen.able),
        carried_bps: per_second(seen.sent),
        busy_share: seen.moving.as_secs_f64() / seconds,
        idle_share: seen.idle.map(|idle| idle.as_secs_f64() / seconds / processors as f64),
    })
}
