//! A fleet whose hosts are those of a simulated network: each host has an agent that records what arrives, and all agents have one coordinator.

use super::networks::{Network, address};
use queuescope_archive::Recorder;
use queuescope_fleet::act::Order;
use queuescope_fleet::agent::{ActLimits, Actor, ActorError, Acts, Served, Touched};
use queuescope_fleet::coordinator::{
    ActionRecord, ActionState, AlertStore, Coordinator, CoordinatorOptions, ProgramStore, Programs,
};
use queuescope_fleet::protocol::Alert;
use queuescope_log::{Schema, packet};
use queuescope_recording::{Alarms, KeepOptions, Recording};
use queuescope_sim::{Journey, NodeId, Records, Telemetry};
use queuescope_wire::{ByteCount, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::channel;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

/// Longer than a busy machine takes for anything that tests wait for.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A step of simulated time.
const STEP: u64 = 1_000_000;

/// A control program of a test: its name, its recipe, and the values of its parameters.
pub struct Added<'a> {
    pub name: &'a str,
    pub recipe: &'a str,
    pub values: Vec<(&'a str, String)>,
}

/// What a run showed.
#[derive(Debug)]
pub struct Ran {
    /// Alerts that programs raised.
    pub raised: Vec<Alert>,
    /// Alerts of agents.
    pub of_agents: Vec<Alert>,
    /// Packets that all hosts recorded.
    pub packets: usize,
    /// What programs did on hosts, and what the actors of all hosts got.
    pub actions: Vec<ActionRecord>,
    pub orders: BTreeMap<String, Vec<Order>>,
}

impl Ran {
    /// What alerts of a name are about, each once.
    pub fn about(&self, trigger: &str) -> BTreeSet<&str> {
        self.raised.iter().filter(|alert| alert.trigger == trigger).map(|alert| alert.detail.as_str()).collect()
    }
}

/// The name of a host in the fleet.
pub fn host(node: NodeId) -> String {
    format!("host-{}", node.0)
}

/// The text about a pair of hosts in an alert.
pub fn pair((from, to): (NodeId, NodeId)) -> String {
    format!("src_ip {}, dst_ip {}", address(from), address(to))
}

/// The text of a recipe.
pub fn recipe(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../recipes/fleet/{name}.toml"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// When programs run, in nanoseconds of simulated time.
#[derive(Debug, Clone, Copy)]
pub enum Runs {
    /// After alerts, and then in this interval for as long.
    After { every: u64, during: u64 },
    /// In this interval.
    Every(u64),
}

impl Runs {
    /// Once after each alert.
    pub const ONCE: Self = Self::After { every: u64::MAX, during: 0 };
}

/// Packets that arrive at hosts until a time: the record of each, and its host, in the order of time.
pub struct Arrivals {
    pub hosts: Vec<NodeId>,
    pub records: Vec<(Nanos, NodeId, [u8; packet::SIZE])>,
    pub end: Nanos,
}

impl Arrivals {
    /// The packets that arrive in a network.
    pub fn of(network: Network) -> Self {
        let Network { mut simulation, end, hosts, others, .. } = network;
        let schema = Schema::packet();
        let [at, to] = ["ts", "dst_ip"].map(|name| schema.find(name).expect("packets have it"));
        let (mut fields, mut records) = (Records::default(), Vec::new());
        let arrived = |journey: &Journey<'_>| {
            if journey.dropped.is_none() {
                let record = *fields.fill(journey);
                let node = NodeId((schema.key(to, &record) & 0xff) as u32);
                records.push((Nanos(schema.key(at, &record) as u64), node, record));
            }
        };
        let mut telemetry = Telemetry::new(&simulation.topology().clone(), (), arrived);
        simulation.run_until(end, &mut telemetry);
        drop(telemetry);
        let hosts: BTreeSet<_> = hosts.iter().chain(&others).flat_map(|(from, to)| [*from, *to]).collect();
        Self { hosts: hosts.into_iter().collect(), records, end }
    }
}

/// Runs a network to its end with control programs.
pub fn run(network: Network, programs: &[Added<'_>], runs: Runs) -> Ran {
    play(&Arrivals::of(network), programs, runs)
}

/// Lets packets arrive at the hosts of a fleet with control programs.
pub fn play(arrivals: &Arrivals, programs: &[Added<'_>], runs: Runs) -> Ran {
    let folder = tempfile::tempdir().expect("there is room");
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("there are threads");
    let coordinator = coordinator(folder.path());
    let recordings: BTreeMap<_, _> = arrivals
        .hosts
        .iter()
        .map(|node| {
            let path = folder.path().join(host(*node));
            let notes = Box::new(|note: &str| panic!("{note}"));
            let mut keeping = KeepOptions::default();
            keeping.memory = ByteCount(160_000_000);
            let recording = Recording::open(&path, Schema::packet(), &keeping, None, notes);
            (*node, recording.unwrap_or_else(|error| panic!("{error}")))
        })
        .collect();
    let mut actors = BTreeMap::new();
    for (node, recording) in &recordings {
        let actor = FakeActor::default();
        actors.insert(host(*node), actor.clone());
        let shed = Arc::new(AtomicU64::new(0));
        let source = "a simulation".to_owned();
        let served = Served::new(recording.shared_recorder(), recording.path().to_owned(), source, shed);
        let limits = ActLimits { dry: false, ..ActLimits::default() };
        let served = served.acting(Acts::new(Box::new(actor), limits, Box::new(|_| ())));
        attach_served(&runtime, &coordinator, &host(*node), served);
    }
    let holding = coordinator.clone();
    runtime.spawn(async move { holding.hold_actions().await });
    if matches!(runs, Runs::After { .. }) {
        let coordinator = coordinator.clone();
        runtime.spawn(async move { coordinator.follow_programs().await });
    }
    for Added { name, recipe: file, values } in programs {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        coordinator.add_program(name, &recipe(file), values).unwrap_or_else(|error| panic!("{error}"));
    }
    until("all hosts have their definitions", || {
        let states = coordinator.programs();
        let members: Vec<_> = states.iter().flat_map(|state| &state.members).collect();
        assert!(members.iter().all(|member| member.error.is_empty()), "{members:?}");
        members.iter().all(|member| member.is_installed)
    });
    record(arrivals, &recordings, &coordinator, &runtime, runs);
    let alerts = coordinator.alerts().from(1, usize::MAX);
    let states = coordinator.programs();
    assert!(states.iter().all(|state| state.trouble.is_empty()), "{states:?}");
    until("hosts have replied about actions", || {
        coordinator.actions(usize::MAX).0.iter().all(|action| action.state != ActionState::Sent)
    });
    let (actions, _) = coordinator.actions(usize::MAX);
    let orders = actors.iter().map(|(name, actor)| (name.clone(), actor.orders())).collect();
    // Streams end with their tasks, which share the recorders.
    runtime.shutdown_timeout(PATIENCE);
    drop(coordinator);
    for recording in recordings.into_values() {
        recording.finish().unwrap_or_else(|error| panic!("{error}"));
    }
    let (of_agents, raised) = alerts.into_iter().partition(|alert| !alert.member.is_empty());
    Ran { raised, of_agents, packets: arrivals.records.len(), actions, orders }
}

/// A coordinator in a folder.
pub fn coordinator(folder: &Path) -> Coordinator {
    let alerts =
        AlertStore::open(&folder.join("alerts.jsonl"), AlertStore::KEPT).unwrap_or_else(|error| panic!("{error}"));
    let store = ProgramStore::open(&folder.join("programs")).unwrap_or_else(|error| panic!("{error}"));
    let programs = Programs::open(store).unwrap_or_else(|error| panic!("{error}"));
    // A machine that is busy with other tests may be late.
    let options = CoordinatorOptions { lease: Nanos(1_000_000_000), ..CoordinatorOptions::default() };
    Coordinator::new(options, 1, alerts, programs)
}

/// Connects a host's agent to the coordinator, without a network between them.
pub fn attach(runtime: &Runtime, coordinator: &Coordinator, name: &str, recorder: Arc<Recorder>, path: &Path) {
    let shed = Arc::new(AtomicU64::new(0));
    attach_served(runtime, coordinator, name, Served::new(recorder, path.to_owned(), "a simulation".to_owned(), shed));
}

fn attach_served(runtime: &Runtime, coordinator: &Coordinator, name: &str, served: Served) {
    let (session, come) = coordinator.attach(name, served.hello(), None).unwrap_or_else(|error| panic!("{error}"));
    let (go, mut from_agent) = channel(64);
    runtime.spawn(async move { served.session(ReceiverStream::new(come).map(Ok::<_, String>), go, || ()).await });
    let coordinator = coordinator.clone();
    runtime.spawn(async move {
        while let Some(message) = from_agent.recv().await {
            coordinator.receive(&session, message).await;
        }
    });
}

/// An actor that only notes its orders.
#[derive(Debug, Clone, Default)]
struct FakeActor(Arc<Mutex<Vec<Order>>>);

impl FakeActor {
    fn orders(&self) -> Vec<Order> {
        self.0.lock().expect("no test panics with it").clone()
    }
}

impl Actor for FakeActor {
    fn begin(&mut self, _: u64, order: &Order) -> Result<(), ActorError> {
        self.0.lock().expect("no test panics with it").push(*order);
        Ok(())
    }

    fn extend(&mut self, _: u64, _: Nanos) -> Result<(), ActorError> {
        Ok(())
    }

    fn end(&mut self, _: u64) -> Result<(), ActorError> {
        Ok(())
    }

    fn touched(&self, id: u64) -> Touched {
        Touched { touched: id, packets: id }
    }

    fn renew(&mut self) -> Result<(), ActorError> {
        Ok(())
    }
}

/// Hosts record what arrives, and look at their triggers after each step. Time stands still while programs run.
fn record(
    arrivals: &Arrivals,
    recordings: &BTreeMap<NodeId, Recording>,
    coordinator: &Coordinator,
    runtime: &Runtime,
    runs: Runs,
) {
    let failed = |error| panic!("{error}");
    let alarms_of = |recording| Alarms::with_installed(None, recording).unwrap_or_else(|error| panic!("{error}"));
    let mut alarms: Vec<_> = recordings.values().map(alarms_of).collect();
    let mut coming = arrivals.records.iter().peekable();
    let programs = coordinator.programs().len() as u64;
    let (mut fired, mut alerted, mut repeated) = (0, None, 0);
    for now in (0..=arrivals.end.0).step_by(STEP as usize) {
        while let Some((_, node, record)) = coming.next_if(|(at, ..)| at.0 <= now) {
            let recording = recordings.get(node).unwrap_or_else(|| panic!("{node:?} is no host"));
            recording.push(record).unwrap_or_else(failed);
        }
        recordings.values().for_each(|recording| recording.flush().unwrap_or_else(failed));
        alarms.iter_mut().for_each(|alarms| alarms.at(Nanos(now)).unwrap_or_else(failed));
        let run_all = || {
            for program in coordinator.programs() {
                assert!(runtime.block_on(coordinator.run_program(&program.name, Nanos(now))), "it can run");
            }
        };
        match runs {
            Runs::After { every, during } => {
                let new = alarms.iter().map(|alarms| alarms.fired).sum();
                if new > fired {
                    (fired, alerted) = (new, Some(now));
                    settle(coordinator, fired, repeated);
                } else if alerted.is_some_and(|at| (now - at).is_multiple_of(every) && now - at <= during) {
                    run_all();
                    repeated += programs;
                }
            }
            Runs::Every(every) if now > 0 && now.is_multiple_of(every) => run_all(),
            Runs::Every(_) => {}
        }
    }
}

/// Waits until the coordinator has all alerts of agents, and programs have run after them, beside the runs that were repeated.
fn settle(coordinator: &Coordinator, fired: u64, repeated: u64) {
    until("programs have run", || {
        let alerts = coordinator.alerts().from(1, usize::MAX);
        let of_agents = alerts.iter().filter(|alert| !alert.member.is_empty()).count() as u64;
        let runs: u64 = coordinator.programs().iter().map(|program| program.runs + program.joined).sum();
        of_agents == fired && runs == fired + repeated
    });
}

fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}
