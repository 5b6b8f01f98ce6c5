//! Runs a network, puts deliveries into a log, and checks triggers each millisecond.

use crate::recipes::networks::Network;
use queuescope_log::{Alert, Function, GroupKey, Log, Memory, NamedMonitor, Number, Options, Schema};
use queuescope_sim::{Journey, NodeId, Records, Simulation, Telemetry};
use queuescope_wire::Nanos;
use std::net::Ipv4Addr;

/// The results of a run.
pub struct Seen {
    pub log: Log,
    pub simulation: Simulation,
    /// The names of triggers that fired, and when each first did.
    pub alerts: Vec<(String, Nanos)>,
}

/// Runs a network to its end. All hosts put their deliveries into one log.
pub fn watch(network: Network) -> Seen {
    let Network { mut simulation, definitions, end, look, .. } = network;
    let log = log();
    let defined = definitions.apply(&log).unwrap_or_else(|error| panic!("{error}"));
    let mut alerts: Vec<(String, Nanos)> = Vec::new();
    let mut monitor = defined.monitor(&log).unwrap_or_else(|error| panic!("{error}"));
    run(&mut simulation, (end, look), 0, (&log, &mut monitor), |name, alert| {
        if !alerts.iter().any(|(known, _)| known == name) {
            alerts.push((name.to_owned(), Nanos(alert.at)));
        }
    });
    drop(monitor);
    Seen { log, simulation, alerts }
}

/// An empty log.
pub fn log() -> Log {
    let options = Options { records: 1 << 19, memory: Memory::Lazy };
    Log::new(Schema::packet().clone(), options).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a simulation to its end, puts deliveries into a log, and passes on alerts, with `later` added
/// to the simulation's times.
pub fn run(
    simulation: &mut Simulation,
    (end, look): (Nanos, Nanos),
    later: u64,
    (log, monitor): (&Log, &mut NamedMonitor<'_>),
    mut notify: impl FnMut(&str, Alert),
) {
    let mut records = Records::default();
    let arrived = |journey: &Journey<'_>| {
        if journey.dropped.is_none() {
            assert_eq!(log.append(records.fill(journey)).refused, 0, "the log is large enough");
        }
    };
    let mut telemetry = Telemetry::new(&simulation.topology().clone(), (), arrived);
    for now in (0..=end.0).step_by(look.0 as usize) {
        simulation.run_until(Nanos(now), &mut telemetry);
        monitor.pass(now + later, &mut notify);
    }
}

impl Seen {
    /// Functions over groups of the records that match an expression, in an interval of time.
    pub fn ask(
        &self,
        expression: &str,
        span: (u64, u64),
        keys: &[&str],
        functions: &[&str],
    ) -> Vec<(Vec<u128>, Vec<u64>)> {
        let (log, schema) = (&self.log, self.log.schema());
        let scope = log.scope();
        let read = scope.parse(expression).unwrap_or_else(|error| panic!("{error}"));
        let dnf = read.dnf(&scope).unwrap_or_else(|error| panic!("{error}"));
        let key = |name: &&str| GroupKey::Attribute(schema.find(name).unwrap_or_else(|| panic!("no {name}")));
        let keys: Vec<_> = keys.iter().map(key).collect();
        let function = |text: &&str| Function::read(text, schema).unwrap_or_else(|_| panic!("no {text}"));
        let functions: Vec<_> = functions.iter().map(function).collect();
        let snapshot = log.snapshot();
        let query = snapshot.query().matching(&dnf).from(span.0).to(span.1);
        let groups = query.matched().group(&keys, &functions);
        let whole = |number: Number| match number {
            Number::Unsigned(number) => number as u64,
            other => panic!("{other:?} is not whole"),
        };
        groups.iter().map(|(keys, values)| (keys, values.into_iter().map(whole).collect())).collect()
    }

    /// The names of the triggers that fired.
    pub fn names(&self) -> Vec<&str> {
        self.alerts.iter().map(|(name, _)| name.as_str()).collect()
    }
}

/// The host with an address, by the address's key.
pub fn host(key: u128) -> NodeId {
    NodeId(Ipv4Addr::from_bits(key as u32).octets()[3].into())
}

/// The number of seeds for each recipe: 100, or the value of the environment variable.
pub fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("QUEUESCOPE_SEEDS").ok().and_then(|count| count.parse().ok());
    0..count.unwrap_or(100)
}
