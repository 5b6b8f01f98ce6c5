//! Workloads: flows that start and end.

use super::{Files, Pair, TrafficSource, seed_of};
use crate::connection::Transport;
use crate::traffic::{Datagram, DatagramParams};
use crate::workload::{
    Arrivals, CaptureParams, Captured, CapturedPacket, Empirical, Interpolation, OnOff, Pairs, Sizes, Spacing, Span,
    Trains, UdpParams, UdpSource, Workload, WorkloadParams,
};
use crate::{BuildError, Speedup, seed};
use queuescope_scenario::{self as scenario, Capacity, Hop, Network, Scenario};
use queuescope_wire::{ByteCount, Class, Nanos, Rate};
use std::sync::Arc;

/// The name of a workload's transport in reports.
pub(super) fn transport_name(load: &scenario::Workload) -> String {
    match &load.arrivals {
        scenario::Arrivals::Poisson(_) | scenario::Arrivals::Incast(_) => format!("tcp {}", load.tcp.algorithm()),
        scenario::Arrivals::Bursts(_) | scenario::Arrivals::Datagrams(_) => "udp".to_owned(),
        scenario::Arrivals::Capture(_) => "udp, as captured".to_owned(),
    }
}

/// Adds a workload.
pub(super) fn add_workload(
    sources: &mut Vec<TrafficSource>,
    scenario: &Scenario,
    network: &Network,
    files: &Files,
    group: u32,
    load: &scenario::Workload,
    hosts: &[Pair],
) -> Result<(), BuildError> {
    let seed = seed_of(scenario, group);
    let class = Class(load.class);
    let senders: Vec<_> = hosts.iter().map(|(from, _)| from.0 as usize).collect();
    let receivers: Vec<_> = hosts.iter().map(|(_, to)| to.0 as usize).collect();
    let params = match &load.arrivals {
        scenario::Arrivals::Poisson(poisson) => {
            let sizes = sizes(&poisson.sizes)?;
            let arrivals = match poisson.intensity {
                scenario::Intensity::Load(share) => {
                    Arrivals::at_load(share, slowest(scenario, network, load), sizes.mean())
                }
                scenario::Intensity::Rate(rate) => Arrivals::Poisson { rate: rate.0 },
            };
            WorkloadParams::new(arrivals, Some(sizes), Pairs::Uniform { from: senders, to: receivers })
        }
        scenario::Arrivals::Incast(incast) => {
            WorkloadParams::incast(&senders, receivers[0], incast.bytes, incast.every, incast.jitter)?
        }
        scenario::Arrivals::Bursts(bursts) => {
            let rate = bursts.rate.unwrap_or(scenario.access.rate);
            let on = rate.time_for(ByteCount(bursts.packet.0.saturating_mul(u64::from(bursts.packets))));
            let off = bursts.every.saturating_sub(on);
            let off = if bursts.random { Span::Exponential(off) } else { Span::Fixed(off) };
            for (n, (from, to)) in (0..).zip(hosts) {
                let params = UdpParams {
                    rate,
                    size: bursts.packet,
                    spacing: Spacing::Even,
                    on_off: Some(OnOff { on: Span::Fixed(on), off }),
                    start: load.start,
                    until: load.stop,
                };
                let source = UdpSource::new(&params, seed::derive(seed, n))?;
                let params = DatagramParams { group, class, ..DatagramParams::new(*from, *to) };
                let datagrams = Box::new(source.map(Datagram::from));
                sources.push(TrafficSource::Datagrams { params, datagrams });
            }
            return Ok(());
        }
        scenario::Arrivals::Datagrams(datagrams) => {
            let slowest = slowest(scenario, network, load);
            let params = datagrams_of(datagrams, slowest, hosts.len())?;
            let pace = datagrams.pace.unwrap_or(scenario.access.rate);
            // Flows of a pair have a port each, as long as there are ports and numbers of flows.
            let flows = PORTS.min(FLOWS / hosts.len().max(1) as u32).max(1);
            for (n, (from, to)) in (0..).zip(hosts) {
                let pairs = Pairs::Fixed { from: from.0 as usize, to: to.0 as usize };
                let params = WorkloadParams { pairs, start: load.start, until: load.stop, ..params.clone() };
                let starts = Workload::new(&params, seed::derive(seed, n))?;
                let sent = Trains::new(starts, datagrams.packet, pace);
                let sent = sent.map(move |it| Datagram { flow: it.flow % flows, ..it });
                let params = DatagramParams { group, class, flows, ..DatagramParams::new(*from, *to) };
                sources.push(TrafficSource::Datagrams { params, datagrams: Box::new(sent) });
            }
            return Ok(());
        }
        scenario::Arrivals::Capture(capture) => {
            let packets = files.captures.get(&capture.file);
            let packets = packets.ok_or_else(|| BuildError::NoFile { path: capture.file.clone() })?;
            let speedup = Speedup::nearest(capture.speedup)?;
            add_capture(sources, group, load, speedup, packets, hosts[0]);
            return Ok(());
        }
    };
    let params = WorkloadParams { start: load.start, until: load.stop, ..params };
    let transport = Transport { tcp: load.stack, algorithm: load.tcp.into(), class, l4s: load.l4s, activity: None };
    let starts = Box::new(Workload::new(&params, seed)?);
    sources.push(TrafficSource::Flows { group, transport: Box::new(transport), stop: None, starts });
    Ok(())
}

/// Sends a capture's packets, with as many flows as the capture has.
fn add_capture(
    sources: &mut Vec<TrafficSource>,
    group: u32,
    load: &scenario::Workload,
    speedup: Speedup,
    packets: &Arc<[CapturedPacket]>,
    (from, to): Pair,
) {
    let params = CaptureParams { start: load.start, speedup, ..CaptureParams::default() };
    let flows = packets.iter().map(|packet| packet.flow.0).max().map_or(1, |last| last.saturating_add(1));
    let datagrams = DatagramParams { group, class: Class(load.class), flows, ..DatagramParams::new(from, to) };
    let (all, until) = (Arc::clone(packets), load.stop.unwrap_or(Nanos::MAX));
    let open = move || {
        let all = Arc::clone(&all);
        Some((0..all.len()).map(move |n| all[n]))
    };
    let sent = Captured::new(params, open).take_while(move |packet| packet.at < until);
    let sent = sent.map(|packet| Datagram { at: packet.at, size: packet.size, flow: packet.flow.0 });
    sources.push(TrafficSource::Datagrams { params: datagrams, datagrams: Box::new(sent) });
}

/// Ports for a host's flows.
const PORTS: u32 = 64_512;
/// Numbers for the flows of a workload.
const FLOWS: u32 = 1 << 29;

/// The flows of datagrams of one of `pairs` pairs of hosts.
fn datagrams_of(datagrams: &scenario::Datagrams, slowest: Rate, pairs: usize) -> Result<WorkloadParams, BuildError> {
    let sizes = sizes(&datagrams.sizes)?;
    let rate = match datagrams.intensity {
        scenario::Intensity::Load(share) => share * slowest.bits_per_second() as f64 / (8.0 * sizes.mean()),
        scenario::Intensity::Rate(rate) => rate.0,
    } / pairs.max(1) as f64;
    let span = |time| if datagrams.random { Span::Exponential(time) } else { Span::Fixed(time) };
    let arrivals = if datagrams.off > Nanos::ZERO {
        let periods = OnOff { on: span(datagrams.on), off: span(datagrams.off) };
        Arrivals::Bursts { rate: rate / periods.share(), periods }
    } else {
        Arrivals::Poisson { rate }
    };
    Ok(WorkloadParams::new(arrivals, Some(sizes), Pairs::Fixed { from: 0, to: 1 }))
}

/// The rate of the slowest link of the network on a workload's path.
fn slowest(scenario: &Scenario, network: &Network, load: &scenario::Workload) -> Rate {
    let rate = |hop: &Hop| {
        let link = &network.links[hop.link];
        match (&link.capacity, hop.reverse) {
            (Capacity::Rate(rate), false) => Some(*rate),
            (_, true) => link.reverse_rate,
            (Capacity::Trace(_), false) => None,
        }
    };
    let route = network.route(&load.from, &load.to).unwrap_or_default();
    route.iter().filter_map(rate).min().unwrap_or(scenario.access.rate)
}

/// The distribution of flow sizes that a scenario names.
pub(super) fn sizes(sizes: &scenario::Sizes) -> Result<Sizes, BuildError> {
    Ok(match sizes {
        scenario::Sizes::Fixed(bytes) => Sizes::constant(*bytes)?,
        scenario::Sizes::Named(named) => {
            Sizes::named(named.name()).ok_or(BuildError::NoSizes { name: named.name() })?
        }
        scenario::Sizes::Points(points) => {
            let points: Vec<_> = points.iter().map(|(bytes, share)| (bytes.0 as f64, *share)).collect();
            Sizes::empirical(Empirical::new(&points, Interpolation::Linear)?)
        }
        scenario::Sizes::Lognormal(lognormal) => {
            Sizes::lognormal_with(lognormal.median.0 as f64, lognormal.mean.0 as f64)?
        }
    })
}
