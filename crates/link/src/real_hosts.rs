//! The hosts of a scenario, which are real ones, over its network in real time.

mod planned;

use crate::carried::{begun, notes, real_time};
use crate::error::Error;
use crate::hosts::{Hosts, Outcome};
use crate::real_time::{Running, Watcher, Way, Ways};
use crate::testbed::End;
use crate::timing::sleep_exactly;
use planned::{Planned, ip};
use queuescope_ingest::Stop;
use queuescope_ingest::notes::noted;
use queuescope_live::traffic::Failure;
use queuescope_queue::Activity;
use queuescope_report::model::Skipped;
use queuescope_run::summary::About;
use queuescope_run::{Ran, World, metered_link};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, EntranceParams, Files, NodeId, Simulation, build_without_traffic};
use queuescope_wire::{Class, FlowKey, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// How often is looked what went wrong.
const LOOK: Nanos = Nanos(100_000_000);

/// The world of real hosts and real time.
#[derive(Debug, Clone, Copy)]
pub struct RealHosts;

impl World for RealHosts {
    fn run(&self, scenario: &Scenario, files: &Files) -> Result<Ran, queuescope_run::Error> {
        run_unwatched(scenario, files).map_err(|why| queuescope_run::Error::World(Box::new(why)))
    }
}

fn run_unwatched(scenario: &Scenario, files: &Files) -> Result<Ran, Error> {
    let stop = Stop::on_signals()?;
    let built = build_without_traffic(scenario, files)?;
    let ran = RealHosts::carry(scenario, files, built, &stop, &mut Unwatched(&stop))?;
    if stop.is_requested() { Err(Error::Stopped) } else { Ok(ran) }
}

/// Watches nothing, and ends when a signal asks for it.
struct Unwatched<'a>(&'a Stop);

impl Watcher for Unwatched<'_> {
    fn look(&mut self, _now: Nanos) -> Running {
        if self.0.is_requested() { Running::Over } else { Running::On }
    }
}

impl RealHosts {
    /// Carries what the hosts of a scenario send over its network, which was `built` without traffic.
    ///
    /// # Errors
    /// If this user may not, the kernel lacks a congestion control, or something goes wrong meanwhile.
    pub fn carry(
        scenario: &Scenario,
        files: &Files,
        built: Built,
        stop: &Stop,
        watcher: &mut impl Watcher,
    ) -> Result<Ran, Error> {
        let Built { mut simulation, groups, meters, hosts } = built;
        let (_, meter) = metered_link(None, &simulation, &meters)?;
        let Planned { load, kept } = Planned::of(scenario, files, &hosts)?;
        let ways = ways(scenario, &mut simulation, &hosts)?;
        let [senders, receivers] = ends(scenario, &hosts)?;
        let sleep = sleep_exactly().map_err(Error::system("cannot wake up when it is time"))?;
        let sending = Hosts::begin(&senders, &receivers, load)?;
        let ends = [senders, receivers];
        let mut real = begun(scenario, simulation, ways, &ends, sleep);
        real.run(scenario.duration, LOOK, stop.waker(), watcher)?;
        if stop.is_requested() {
            stop.obey();
        }
        let sent = sending.end()?;
        let exact = real_time(&real, &ends)?;
        let skipped = notes(&real).chain(failures(&sent)).collect();
        let mut simulation = real.into_simulation();
        kept.record(&sent, &mut simulation);
        Ok(Ran { simulation, about: About::of(scenario, meter, groups), real_time: Some(exact), skipped })
    }
}

/// Flows that failed, by why they did.
fn failures(sent: &Outcome) -> impl Iterator<Item = Skipped> + use<> {
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

/// The ways between hosts, by their addresses.
struct ByAddress(BTreeMap<(u128, u128), Way>);

impl Ways for ByAddress {
    fn way(&self, _from: usize, key: &FlowKey) -> Option<&Way> {
        self.0.get(&(key.src, key.dst))
    }
}

/// There and back between all hosts of all groups.
fn ways(scenario: &Scenario, simulation: &mut Simulation, hosts: &[Vec<(NodeId, NodeId)>]) -> Result<ByAddress, Error> {
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
                let mut way = |hosts, activity, to| -> Result<Way, Error> {
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

/// The namespaces of the senders and of the receivers.
fn ends(scenario: &Scenario, hosts: &[Vec<(NodeId, NodeId)>]) -> Result<[End; 2], Error> {
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
        return Err(Error::TooManyHosts { hosts: most, most: HOSTS });
    }
    let near = End::of_hosts(senders.iter().copied(), receivers.iter().map(|(to, ecn)| (*to, *ecn)))?;
    let far = End::of_hosts(receivers.keys().copied(), senders.iter().map(|from| (*from, false)))?;
    Ok([near, far])
}
