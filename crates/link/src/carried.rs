//! Runs a scenario's network in real time, and adds to its report how exact that was.

use crate::border::BorderCounts;
use crate::error::Error;
use crate::held_back::HeldBack;
use crate::real_time::{PacketRoutes, RealTime};
use crate::testbed::NetworkEnd;
use crate::timing::Sleep;
use queuescope_ingest::notes::{noted, parser_notes};
use queuescope_queue::PipelineParams;
use queuescope_report::model::{self, Report, Skipped};
use queuescope_scenario::Scenario;
use queuescope_sim::Simulation;
use queuescope_wire::ByteCount;
use std::num::NonZero;
use std::{io, thread};

/// The machine held packets back if it did so for more than this part of the time: one tenth.
const HELD_BACK_PARTS: u64 = 10;
/// If more than this many packets in a thousand are more than a millisecond late, the machine is too slow.
const LATE_PER_MILLE: u64 = 10;

/// Adds a link's timing to a report on it. The flows of packets that were lost before the link are unknown, so the totals count them
/// as missed.
pub fn complete_report(report: &mut Report, sim: model::Sim) {
    let unread = sim.real_time.as_ref().map_or(0, |real| real.unread_packets);
    let others = report.others.iter_mut().map(|other| &mut other.report.totals);
    others.chain([&mut report.totals]).for_each(|totals| totals.miss_flows_of(unread));
    report.sim = Some(sim);
}

/// Sets up a scenario's network to run in real time. It parses TCP headers only if a switch program of the network reads them.
pub(crate) fn start_network<'a, W: PacketRoutes>(
    scenario: &Scenario,
    simulation: Simulation,
    routes: W,
    ends: &'a [NetworkEnd; 2],
    sleep: Sleep,
) -> RealTime<'a, W> {
    let real = RealTime::begin(simulation, routes, ends, sleep);
    let reads_tcp = |program: &PipelineParams| matches!(program, PipelineParams::AckWindow(_));
    let mut programs = scenario.network().links.into_iter().filter_map(|link| link.pipeline);
    if programs.any(|program| reads_tcp(&program)) { real.with_tcp_headers() } else { real }
}

/// Notes on packets that the link did not carry, or did not carry as it should.
pub(crate) fn notes<W: PacketRoutes>(real: &RealTime<'_, W>) -> impl Iterator<Item = Skipped> {
    let counts = real.counts();
    let none = noted("no_route", counts.no_route, "packets for an address that no host of the link has");
    let lost = noted("no_memory", counts.not_accepted, "packets that this machine had no memory for as they arrived");
    let uncut = noted(
        "not_segmented",
        counts.unsegmented,
        "super-packets that could not be segmented, and passed as one packet",
    );
    let unread = noted(
        "unreadable",
        counts.unreadable,
        "super-packets of a kind that cannot be read; lost. Switch off the offload that makes them (ethtool -K)",
    );
    let long = noted(
        "longer_than_mtu",
        counts.too_long,
        "packets that were longer than the MTU of the interface to which they went; dropped behind the queue",
    );
    let refused = real.border().into_iter().flat_map(|border| border_notes(border.counts()));
    [none, lost, uncut, unread, long].into_iter().flatten().chain(refused).chain(parser_notes(real.parser()))
}

/// Notes on frames that the border of an ABC domain refused.
fn border_notes(counts: BorderCounts) -> impl Iterator<Item = Skipped> {
    let BorderCounts { forged, cut_short, doubled, behind_tag } = counts;
    let notes = [
        noted("activity_forged", forged, "frames that brought an activity header from outside of the domain; dropped"),
        noted("activity_cut_short", cut_short, "frames that end within their activity header; dropped"),
        noted("activity_doubled", doubled, "frames with two activity headers; dropped"),
        noted("activity_behind_tag", behind_tag, "frames whose activity header is behind a VLAN tag; dropped"),
    ];
    notes.into_iter().flatten()
}

/// How exact a link was in time. Counts packets that were lost before the link too, because nobody read them in time.
pub(crate) fn timing_report<W: PacketRoutes>(
    real: &RealTime<'_, W>,
    ends: &[NetworkEnd; 2],
) -> Result<model::RealTime, Error> {
    let unread = ends.iter().map(NetworkEnd::unread).sum::<io::Result<u64>>();
    let unread = unread.map_err(Error::system("cannot read how many packets the interfaces of the link dropped"))?;
    let (timing, sleep) = (real.timing(), real.sleep());
    let [p50, p99, worst] = [50.0, 99.0, 100.0].map(|percentile| timing.percentile(percentile).0);
    let load = real.held_back();
    let is_held_back = load.held_back.0 > load.observed.0 / HELD_BACK_PARTS;
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
        machine_limit: held_back_report(&load, real.simulation()),
        is_limited_by_machine: unread > 0 || is_late || is_held_back,
    })
}

/// How much the machine held back; `None` if it did not.
fn held_back_report(load: &HeldBack, simulation: &Simulation) -> Option<model::MachineLimit> {
    let seconds = load.held_back.as_secs_f64();
    let per_second = |bytes: ByteCount| bytes.0 as f64 * 8.0 / seconds;
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    Some(model::MachineLimit {
        limited_ns: load.held_back.0,
        active_ns: load.observed.0,
        link: simulation.topology().link(load.link?).name.clone(),
        offered_bps: per_second(load.capacity),
        carried_bps: per_second(load.sent),
        busy_share: load.moving.as_secs_f64() / seconds,
        idle_share: load.idle.map(|idle| idle.as_secs_f64() / seconds / processors as f64),
    })
}
