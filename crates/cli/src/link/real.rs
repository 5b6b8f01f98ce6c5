//! The hosts of a scenario, which are real ones, over its network in real time.

use super::shown::Shown;
use super::watched::Watched;
use super::{begun, notes, real_time, report_on};
use crate::args::Link;
use crate::expressions::of_scenario;
use crate::outcome::Outcome;
use crate::outputs::{Outputs, Written};
use crate::paths::check_outputs;
use crate::queued::QueuedLog;
use crate::sim::metered;
use crate::views::Views;
use anyhow::{Context, Result, anyhow, bail};
use queuescope_analysis::Asked;
use queuescope_ingest::Stop;
use queuescope_ingest::notes::noted;
use queuescope_link::hosts::{self, DCTCP_PORT, Hosts, Load, PORT};
use queuescope_link::{End, Running, Watcher, Way, Ways, sleep_exactly};
use queuescope_live::traffic::{DatagramSender, Ended, Failure, LARGEST, Start};
use queuescope_queue::{Activity, Host};
use queuescope_report::model::{self, NO_METER, Report, Skipped};
use queuescope_run::summary::{self, About};
use queuescope_run::{Error, Ran, ScenarioFile, World, metered_link};
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{
    Built, Choice, DatagramRecord, EntranceParams, Files, FlowRecord, NodeId, Progress, Simulation, TrafficSource,
    build_without_traffic, connection_key, files_of, traffic_of,
};
use queuescope_tcp::Algorithm;
use queuescope_wire::{Class, FlowKey, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// How often is looked what went wrong.
const LOOK: Nanos = Nanos(100_000_000);
/// What is said of a flow before its bytes.
const SAID: u64 = 8;

/// Runs it.
pub fn run(args: &Link, path: &Path) -> Result<Outcome> {
    let output = &args.output;
    let asked = super::asked(args, path.display().to_string())?;
    check_outputs(args.scenario.as_ref(), [&output.html, &output.parquet, &args.pcapng])?;
    let file = ScenarioFile::read(path, args.set.iter().map(Override::new))?;
    let scenario = file.scenario().map_err(of_scenario)?;
    if !scenario.sweep.is_empty() {
        bail!(
            "a sweep is not run on real hosts: choose one of its cells by --set, and leave it away by --set sweep={{}}"
        );
    }
    let (files, skipped) = file.files(files_of(&scenario))?;
    let stop = super::stop(args)?;
    let log = QueuedLog::open(&args.queued)?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(args.pcapng.as_deref(), output.parquet.as_deref(), log)?;
    let name = &asked.name;
    let show = |meter: &str| super::shown(args, &format!("{meter}: {name}"), &stop);
    let run = (&scenario, &files, skipped);
    let (report, written) = run_scenario((&asked, args.meter.as_deref()), run, outputs, (&stop, show))?;
    views.write(report, &written.ended_by(Some(&stop)))
}

/// Runs a scenario on real hosts: what was found, and what was recorded.
fn run_scenario(
    (asked, wanted): (&Asked, Option<&str>),
    (scenario, files, mut skipped): (&Scenario, &Files, Vec<Skipped>),
    outputs: Outputs,
    (stop, show): (&Stop, impl Fn(&str) -> Result<Option<Shown>>),
) -> Result<(Report, Written)> {
    let built = build_without_traffic(scenario, files)?;
    let (simulation, links) = (&built.simulation, &built.meters);
    let meters = metered(asked, wanted, scenario, (simulation, links), outputs)?;
    let meter = meters.first.name().unwrap_or(NO_METER).to_owned();
    let shown = show(&meter)?;
    let mut watched = Watched::new(meters, shown, |_, is_over| Ok(stop.is_asked() || is_over));
    let Ran { simulation, about, real_time, skipped: left_out } = carry(scenario, files, built, (&mut watched, stop))?;
    skipped.extend(left_out);
    let (report, outputs) = watched.finish()?.report(asked, &simulation, skipped);
    let recorded = outputs.finish()?;
    let about = About { meter, ..about }.named(&report.input.name);
    Ok((report_on(report, model::Sim { real_time, ..summary::of(&simulation, about) }), recorded))
}

/// The world of real hosts and real time.
#[derive(Debug, Clone, Copy)]
pub struct RealHosts;

impl World for RealHosts {
    fn run(&self, scenario: &Scenario, files: &Files) -> Result<Ran, Error> {
        run_unwatched(scenario, files).map_err(|why| Error::World(why.into()))
    }
}

fn run_unwatched(scenario: &Scenario, files: &Files) -> Result<Ran> {
    let stop = Stop::on_signals()?;
    let ran = carry(scenario, files, build_without_traffic(scenario, files)?, (&mut Unwatched(&stop), &stop))?;
    if stop.is_asked() { Err(anyhow!("stopped by a signal")) } else { Ok(ran) }
}

/// Nobody but who wants an end.
struct Unwatched<'a>(&'a Stop);

impl Watcher for Unwatched<'_> {
    fn look(&mut self, _now: Nanos) -> Running {
        if self.0.is_asked() { Running::Over } else { Running::On }
    }
}

/// Carries what the hosts of a scenario send over its network.
fn carry(scenario: &Scenario, files: &Files, built: Built, (watcher, stop): (&mut impl Watcher, &Stop)) -> Result<Ran> {
    let Built { mut simulation, groups, meters, hosts } = built;
    let (_, meter) = metered_link(None, &simulation, &meters)?;
    let Planned { load, kept } = Planned::of(scenario, files, &hosts)?;
    let ways = ways(scenario, &mut simulation, &hosts)?;
    let [senders, receivers] = ends(scenario, &hosts)?;
    let sleep = sleep_exactly().context("cannot wake up when it is time")?;
    let sending = Hosts::begin(&senders, &receivers, load)?;
    let ends = [senders, receivers];
    let mut real = begun(scenario, simulation, ways, &ends, sleep);
    real.run(scenario.duration, LOOK, stop.waker(), watcher)?;
    if stop.is_asked() {
        stop.obey();
    }
    let sent = sending.end()?;
    let told = real_time(&real, &ends)?;
    let skipped = notes(&real).chain(failures(&sent)).collect();
    let mut simulation = real.into_simulation();
    kept.tell(&sent, &mut simulation);
    Ok(Ran { simulation, about: About::of(scenario, meter, groups), real_time: Some(told), skipped })
}

/// Flows that failed, by why they did.
fn failures(sent: &hosts::Outcome) -> impl Iterator<Item = Skipped> + use<> {
    let mut counts = BTreeMap::new();
    for flow in &sent.flows {
        match flow.result {
            // They are as long as they were to be.
            Ok(_) | Err(Failure::Stopped | Failure::Unfinished) => {}
            Err(failure) => *counts.entry((failure.name(), failure.meaning())).or_insert(0) += 1,
        }
    }
    counts.into_iter().filter_map(|((name, meaning), count)| noted(name, count, meaning))
}

/// What is to be sent, and what is to be known of it afterwards.
struct Planned {
    load: Load,
    kept: Kept,
}

/// What reports know of flows and datagrams, beside what became of them.
struct Kept {
    warmup: Nanos,
    /// The group and the hosts of each source of datagrams, and where they come from.
    datagrams: Vec<(u32, [Host; 2], SocketAddr)>,
}

impl Planned {
    fn of(scenario: &Scenario, files: &Files, hosts: &[Vec<(NodeId, NodeId)>]) -> Result<Self> {
        let (mut flows, mut congestion, mut datagrams, mut kept) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let until = scenario.duration;
        let mut port = 0;
        for source in traffic_of(scenario, files, hosts)? {
            match source {
                TrafficSource::Flows { group, transport, stop, starts } => {
                    let algorithm = match &transport.algorithm {
                        Choice::BuiltIn(params) => params.algorithm(),
                        Choice::Custom(control) => bail!("the kernel has no congestion control '{}'", control.name()),
                    };
                    let port = if algorithm == Algorithm::Dctcp { DCTCP_PORT } else { PORT };
                    let name = kernel_name(algorithm);
                    let place = congestion.iter().position(|known| known == name).unwrap_or_else(|| {
                        congestion.push(name.to_owned());
                        congestion.len() - 1
                    });
                    let stop = stop.unwrap_or(Nanos::MAX);
                    let starts = starts.take_while(move |start| start.at < until).map(move |start| Start {
                        at: start.at,
                        bytes: start.bytes.map_or(LARGEST, |bytes| bytes.saturating_sub(SAID)),
                        class: group as usize,
                        congestion: place,
                        ends: Some((address(start.from as u32, 0), address(start.to as u32, port))),
                        stop,
                    });
                    flows.push(starts.peekable());
                }
                TrafficSource::Datagrams { params, datagrams: times } => {
                    // Each has a port of its own: several may be at one host.
                    let from = address(params.from.0, FIRST_DATAGRAM + port);
                    port = (port + 1) % (u16::MAX - FIRST_DATAGRAM);
                    kept.push((params.group, [Host(params.from.0), Host(params.to.0)], from));
                    datagrams.push(DatagramSender {
                        ends: (from, address(params.to.0, PORT)),
                        ecn: params.ecn,
                        datagrams: Box::new(times.map(|it| (it.at, it.size))),
                    });
                }
            }
        }
        let warmup = scenario.warmup;
        let merged = Merged { flows, number: 0 };
        let load = Load { congestion, flows: Box::new(merged), datagrams, warmup };
        Ok(Self { load, kept: Kept { warmup, datagrams: kept } })
    }
}

/// The first port of those who send datagrams.
const FIRST_DATAGRAM: u16 = 20_000;

/// Flows of all groups, in order of time, each from a port of its own: that which it has in a simulation.
struct Merged<I: Iterator<Item = Start>> {
    flows: Vec<std::iter::Peekable<I>>,
    number: u64,
}

impl<I: Iterator<Item = Start>> Iterator for Merged<I> {
    type Item = Start;

    fn next(&mut self) -> Option<Start> {
        let heads = self.flows.iter_mut().enumerate().filter_map(|(n, flows)| Some((flows.peek()?.at, n)));
        let (_, first) = heads.min()?;
        let mut start = self.flows[first].next()?;
        if let Some((from, _)) = &mut start.ends {
            from.set_port(connection_key([Host(0); 2], self.number).src_port);
        }
        self.number += 1;
        Some(start)
    }
}

impl Kept {
    /// What became of flows and datagrams, for the report.
    fn tell(&self, sent: &hosts::Outcome, simulation: &mut Simulation) {
        for flow in &sent.flows {
            simulation.add_record(self.record(flow));
        }
        for ((group, hosts, from), sent_here) in self.datagrams.iter().zip(&sent.sent) {
            let delivered = sent.came.get(from).copied().unwrap_or_default();
            simulation.add_datagram_record(DatagramRecord {
                group: *group,
                hosts: *hosts,
                sent: *sent_here,
                delivered,
            });
        }
    }

    fn record(&self, flow: &Ended) -> FlowRecord {
        let host = |at: &SocketAddr| match at {
            SocketAddr::V4(at) => Host(u32::from(*at.ip()) & 0xff_ffff),
            SocketAddr::V6(_) => Host(0),
        };
        let hosts = flow.start.ends.map_or([Host(0); 2], |(from, to)| [host(&from), host(&to)]);
        let started = flow.start.at.saturating_add(flow.late);
        let [midway, end] = flow.progress.map(|progress| Progress {
            delivered: progress.acked.saturating_sub(SAID),
            retransmissions: u64::from(progress.retransmitted),
            timeouts: u64::from(progress.timeouts),
        });
        // What the receiver answers is under way for half a round trip.
        let finished = flow
            .result
            .as_ref()
            .ok()
            .map(|done| started.saturating_add(done.took).saturating_sub(Nanos(done.min_rtt.0 / 2)));
        let has_begun = started < self.warmup;
        let ended = finished.unwrap_or(flow.start.stop);
        FlowRecord {
            number: flow.number,
            group: flow.start.class as u32,
            key: connection_key(hosts, flow.number),
            hosts,
            started,
            finished,
            bytes: (flow.start.bytes < LARGEST).then_some(flow.start.bytes + SAID),
            in_warmup: if has_begun && ended <= self.warmup { end } else { midway },
            delivered: end.delivered,
            retransmissions: end.retransmissions,
            timeouts: end.timeouts,
            smoothed_rtt: Some(flow.progress[1].rtt).filter(|rtt| *rtt > Nanos::ZERO),
        }
    }
}

/// The address of a host: as in the captures of a simulation.
fn ip(host: u32) -> Ipv4Addr {
    Ipv4Addr::from(10 << 24 | host & 0xff_ffff)
}

fn address(host: u32, port: u16) -> SocketAddr {
    SocketAddr::from((ip(host), port))
}

/// The ways between hosts, by their addresses.
struct ByAddress(BTreeMap<(u128, u128), Way>);

impl Ways for ByAddress {
    fn way(&self, _from: usize, key: &FlowKey) -> Option<&Way> {
        self.0.get(&(key.src, key.dst))
    }
}

/// There and back between all hosts of all groups.
fn ways(scenario: &Scenario, simulation: &mut Simulation, hosts: &[Vec<(NodeId, NodeId)>]) -> Result<ByAddress> {
    let mut ways = BTreeMap::new();
    let flows = scenario.flows.iter().map(|flows| (flows.class, flows.activity, flows.l4s));
    let classes = flows.chain(scenario.workloads.iter().map(|load| (load.class, None, load.l4s)));
    let number = |node: NodeId| u128::from(u32::from(ip(node.0)));
    for (group, ((class, activity, l4s), hosts)) in (0..).zip(classes.zip(hosts)) {
        let activity = activity.map(|activity| Activity::nearest(activity, Activity::FRACTION_BITS));
        // Flows of a group have their own; in a workload anybody sends to anybody.
        let is_workload = group as usize >= scenario.flows.len();
        for (place, (from, _)) in hosts.iter().enumerate() {
            let others = if is_workload { &hosts[..] } else { &hosts[place..=place] };
            for to in others.iter().map(|(_, to)| *to) {
                let mut way = |hosts, activity, to| -> Result<Way> {
                    let params = EntranceParams { hosts, group, class: Class(class), activity };
                    Ok(Way { entrance: simulation.entrance(params)?, to, l4s })
                };
                ways.insert((number(*from), number(to)), way((*from, to), activity, 1)?);
                ways.insert((number(to), number(*from)), way((to, *from), None, 0)?);
            }
        }
    }
    Ok(ByAddress(ways))
}

/// Hosts at an end: the kernel takes the longer for another address, the more there are.
const HOSTS: usize = 1 << 14;

/// The namespaces of those who send and of those who take.
fn ends(scenario: &Scenario, hosts: &[Vec<(NodeId, NodeId)>]) -> Result<[End; 2]> {
    let flows = scenario.flows.iter().map(|flows| flows.stack.ecn);
    let ecn = flows.chain(scenario.workloads.iter().map(|load| load.stack.ecn));
    let (mut senders, mut receivers) = (BTreeSet::new(), BTreeMap::new());
    for (hosts, ecn) in hosts.iter().zip(ecn) {
        for (from, to) in hosts {
            senders.insert(ip(from.0));
            receivers.insert(ip(to.0), ecn);
        }
    }
    let most = senders.len().max(receivers.len());
    if most > HOSTS {
        bail!(
            "{most} hosts at an end of the link are more than the {HOSTS} that there can be; flows share hosts where `hosts` says \
             how many they have"
        );
    }
    let near = End::of_hosts(senders.iter().copied(), receivers.iter().map(|(to, ecn)| (*to, *ecn)))?;
    let far = End::of_hosts(receivers.keys().copied(), senders.iter().map(|from| (*from, false)))?;
    Ok([near, far])
}

/// What the kernel calls a congestion control.
fn kernel_name(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::NewReno => "reno",
        Algorithm::Cubic => "cubic",
        Algorithm::Bbr => "bbr",
        Algorithm::Vegas => "vegas",
        Algorithm::Illinois => "illinois",
        Algorithm::Dctcp => "dctcp",
    }
}
