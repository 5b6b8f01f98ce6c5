//! Runs a scenario with real hosts, over its network in real time.

mod planned;

use crate::carried::{notes, start_network, timing_report};
use crate::error::Error;
use crate::hosts::{Hosts, Outcome};
use crate::real_time::{PacketRoute, PacketRoutes, RunState, Watcher};
use crate::testbed::NetworkEnd;
use crate::timing::sleep_exactly;
use planned::{PlannedLoad, ip};
use queuescope_ingest::Stop;
use queuescope_ingest::notes::noted;
use queuescope_live::traffic::Failure;
use queuescope_queue::Activity;
use queuescope_report::model::Skipped;
use queuescope_run::summary::About;
use queuescope_run::{ScenarioRun, World, metered_link};
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, EntranceParams, Files, NodeId, Simulation, build_without_traffic};
use queuescope_wire::{Class, FlowKey, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// How often to check whether something failed.
const CHECK_INTERVAL: Nanos = Nanos(100_000_000);

/// The world in which hosts and time are real.
#[derive(Debug, Clone, Copy)]
pub struct RealHosts;

impl World for RealHosts {
    fn run(&self, scenario: &Scenario, files: &Files) -> Result<ScenarioRun, queuescope_run::Error> {
        run_unwatched(scenario, files).map_err(|why| queuescope_run::Error::World(Box::new(why)))
    }
}

fn run_unwatched(scenario: &Scenario, files: &Files) -> Result<ScenarioRun, Error> {
    let stop = Stop::on_signals()?;
    let built = build_without_traffic(scenario, files)?;
    let ran = RealHosts::carry(scenario, files, built, &stop, &mut Unwatched(&stop))?;
    if stop.is_requested() { Err(Error::Stopped) } else { Ok(ran) }
}

/// A watcher that only ends the run when a signal requests it.
struct Unwatched<'a>(&'a Stop);

impl Watcher for Unwatched<'_> {
    fn look(&mut self, _now: Nanos) -> RunState {
        if self.0.is_requested() { RunState::Over } else { RunState::On }
    }
}

impl RealHosts {
    /// Carries what the hosts of a scenario send over its network. `built` is that network without traffic.
    ///
    /// # Errors
    /// Fails if this user lacks the rights, the kernel lacks a congestion control, or the run fails.
    pub fn carry(
        scenario: &Scenario,
        files: &Files,
        built: Built,
        stop: &Stop,
        watcher: &mut impl Watcher,
    ) -> Result<ScenarioRun, Error> {
        let Built { mut simulation, groups, meters, hosts } = built;
        let (_, meter) = metered_link(None, &simulation, &meters)?;
        let PlannedLoad { load, records } = PlannedLoad::new(scenario, files, &hosts)?;
        let routes = all_routes(scenario, &mut simulation, &hosts)?;
        let [senders, receivers] = ends(scenario, &hosts)?;
        let sleep = sleep_exactly().map_err(Error::system("cannot set the timer slack of the thread"))?;
        let sending = Hosts::start(&senders, &receivers, load)?;
        let ends = [senders, receivers];
        let mut real = start_network(scenario, simulation, routes, &ends, sleep);
        real.run(scenario.duration, CHECK_INTERVAL, stop.waker(), watcher)?;
        if stop.is_requested() {
            stop.obey();
        }
        let sent = sending.end()?;
        let exact = timing_report(&real, &ends)?;
        let skipped = notes(&real).chain(failures(&sent)).collect();
        let mut simulation = real.into_simulation();
        records.record(&sent, &mut simulation);
        Ok(ScenarioRun { simulation, about: About::new(scenario, meter, groups), real_time: Some(exact), skipped })
    }
}

/// Counts flows that failed, by the reason.
fn failures(sent: &Outcome) -> impl Iterator<Item = Skipped> + use<> {
    let mut counts = BTreeMap::new();
    for flow in &sent.flows {
        match flow.result {
            // The scenario ended them, as planned.
            Ok(_) | Err(Failure::Stopped | Failure::Unfinished) => {}
            Err(failure) => *counts.entry((failure.name(), failure.meaning())).or_insert(0) += 1,
        }
    }
    counts.into_iter().filter_map(|((name, meaning), count)| noted(name, count, meaning))
}

/// Ways between hosts, by source and destination address.
struct AddressRoutes(BTreeMap<(u128, u128), PacketRoute>);

impl PacketRoutes for AddressRoutes {
    fn way(&self, _from: usize, key: &FlowKey) -> Option<&PacketRoute> {
        self.0.get(&(key.src, key.dst))
    }
}

/// The routes in both directions between all hosts of all groups.
fn all_routes(
    scenario: &Scenario,
    simulation: &mut Simulation,
    hosts: &[Vec<(NodeId, NodeId)>],
) -> Result<AddressRoutes, Error> {
    let mut routes = BTreeMap::new();
    let flows = scenario.flows.iter().map(|flows| (flows.class, flows.activity, flows.l4s));
    let classes = flows.chain(scenario.workloads.iter().map(|load| (load.class, None, load.l4s)));
    let number = |node: NodeId| u128::from(u32::from(ip(node.0)));
    for (group, ((class, activity, l4s), hosts)) in (0..).zip(classes.zip(hosts)) {
        let activity = activity.map(|activity| Activity::nearest(activity, Activity::FRACTION_BITS));
        // A flow of a group has its own pair of hosts; in a workload every host sends to every other.
        let is_workload = group as usize >= scenario.flows.len();
        for (index, (from, _)) in hosts.iter().enumerate() {
            let others = if is_workload { &hosts[..] } else { &hosts[index..=index] };
            for to in others.iter().map(|(_, to)| *to) {
                let mut way = |hosts, activity, to| -> Result<PacketRoute, Error> {
                    let params = EntranceParams { hosts, group, class: Class(class), activity };
                    Ok(PacketRoute { entrance: simulation.entrance(params)?, to, l4s })
                };
                routes.insert((number(*from), number(to)), way((*from, to), activity, 1)?);
                routes.insert((number(to), number(*from)), way((to, *from), None, 0)?);
            }
        }
    }
    Ok(AddressRoutes(routes))
}

/// The limit of hosts at one end: the more addresses there are, the longer the kernel takes to add another.
const HOSTS: usize = 1 << 14;

/// Makes the namespaces of the senders and of the receivers.
fn ends(scenario: &Scenario, hosts: &[Vec<(NodeId, NodeId)>]) -> Result<[NetworkEnd; 2], Error> {
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
    let near = NetworkEnd::with_hosts(senders.iter().copied(), receivers.iter().map(|(to, ecn)| (*to, *ecn)))?;
    let far = NetworkEnd::with_hosts(receivers.keys().copied(), senders.iter().map(|from| (*from, false)))?;
    Ok([near, far])
}
