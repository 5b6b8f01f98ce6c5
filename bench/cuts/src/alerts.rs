//! From a trigger to the coordinator: how long an alert takes.

use crate::agent::connection;
use crate::hosts::Fleet;
use hdrhistogram::Histogram;
use queuescope_fleet::agent::Served;
use queuescope_log::{Definitions, Schema, packet};
use queuescope_recording::{Alarms, KeepOptions, Recording};
use queuescope_wire::{ByteCount, Nanos};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// The period and window of the trigger, in nanoseconds.
const PERIOD: u64 = 1_000_000;
/// Time between two alerts, so that each finds everything at rest.
const REST: Duration = Duration::from_millis(2);

/// Raises alerts one after another, over a connection on loopback. A trigger is looked at when its time has come; the clock begins there.
pub fn measure(alerts: usize) {
    let fleet = Fleet::start(0);
    let folder = fleet.dir.path().join("agent-0");
    let schema = Schema::packet();
    let mut definitions = Definitions::new(schema);
    let text = "[[aggregate]]\nname = \"n\"\nfunction = \"count\"\n\n[[trigger]]\nname = \"packets\"\ncondition = \"n > 0\"\n\
                period = \"1ms\"\nwindow = \"1ms\"\n";
    definitions.add_text("the benchmark", text).unwrap_or_else(|error| panic!("{error}"));
    let mut keeping = KeepOptions::default();
    keeping.memory = ByteCount(160_000_000);
    let notes = Box::new(|note: &str| eprintln!("{note}"));
    let recording = Recording::open(&folder.join("log"), schema, &keeping, Some(&definitions), notes);
    let recording = recording.unwrap_or_else(|error| panic!("{error}"));
    let served = Served::new(
        recording.shared_recorder(),
        recording.path().to_owned(),
        "a benchmark".to_owned(),
        Arc::new(AtomicU64::new(0)),
    );
    let connection = connection(&folder, &fleet.address);
    fleet.runtime.spawn(async move {
        let Err(why) = served.serve(&connection, &|_event| ()).await;
        panic!("{why}");
    });
    fleet.wait_for(1);
    let alarms = Alarms::from_definitions(&recording, &definitions).unwrap_or_else(|error| panic!("{error}"));
    let mut alarms = alarms.expect("there is a trigger");
    let new = || Histogram::<u64>::new(3).expect("three digits");
    let (mut evaluated, mut stored) = (new(), new());
    let count = fleet.coordinator.alerts().count();
    let ts = schema.find("ts").expect("packets have a time");
    let reader = schema.reader(ts);
    let mut record = [0; packet::SIZE];
    for round in 1..=alerts as u64 {
        let window = 4 * round * PERIOD;
        reader.write(&mut record, u128::from(window + PERIOD / 2));
        recording.push(&record).unwrap_or_else(|error| panic!("{error}"));
        std::thread::sleep(REST);
        let begun = Instant::now();
        alarms.at(Nanos(window + PERIOD)).unwrap_or_else(|error| panic!("{error}"));
        let written = begun.elapsed();
        while *count.borrow() < round {
            assert!(begun.elapsed() < Duration::from_secs(10), "the alert does not come");
            std::thread::yield_now();
        }
        let came = begun.elapsed();
        evaluated.record(written.as_nanos() as u64).expect("any value fits");
        stored.record(came.as_nanos() as u64).expect("any value fits");
        // Without packets the condition does not hold: the next packet raises another alert.
        alarms.at(Nanos(window + 3 * PERIOD)).unwrap_or_else(|error| panic!("{error}"));
    }
    for (what, times) in [("evaluated and written by the host", &evaluated), ("stored by the coordinator", &stored)] {
        let us = |at| times.value_at_quantile(at) as f64 / 1e3;
        println!("{what}: median {:.0} us, 90 % {:.0}, 99 % {:.0}", us(0.5), us(0.9), us(0.99));
    }
}
