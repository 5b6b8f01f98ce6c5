//! Whatever fails, and wherever the process is killed: the store has each record once, and what is confirmed is there.

use super::store::{Fault, Faulty};
use super::{Log, objects, runtime};
use object_store::ObjectStore;
use object_store::memory::InMemory;
use proptest::prelude::*;
use queuescope_archive::{Retention, Uploads, compact, prune};
use queuescope_fleet::upload::VolumeObject;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The objects that are confirmed: all volumes but those that wait.
fn confirmed(log: &Log) -> BTreeSet<VolumeObject> {
    let mut uploads = Uploads::open(&log.path, "memory:///fleet").expect("it is a log");
    let store = uploads.store();
    let waiting = uploads.waiting().expect("it is whole");
    let waiting: BTreeSet<_> =
        waiting.iter().map(|volume| VolumeObject::of(volume, "timed", &super::host(), store)).collect();
    drop(uploads);
    log.volumes().into_keys().filter(|object| !waiting.contains(object)).collect()
}

#[test]
fn a_fault_at_any_call_costs_nothing() {
    let runtime = runtime();
    let mut most = 0;
    for fault in Fault::ALL {
        for at in 0.. {
            let mut log = Log::new();
            log.record(20);
            let memory = Arc::new(InMemory::new());
            let faulty = Faulty::new(Arc::clone(&memory), fault, at);
            let mut uploader = log.uploader(Arc::new(faulty.clone()));
            let passed = runtime.block_on(uploader.pass());
            drop(uploader);
            let is_over = faulty.calls() <= at;
            assert!(passed.is_ok() || !is_over, "{fault:?} at {at}: {passed:?}");
            // What is confirmed is there, whole.
            let (volumes, confirmed) = (log.volumes(), confirmed(&log));
            let there = runtime.block_on(objects(&*memory));
            for object in &confirmed {
                assert_eq!(there.get(object), volumes.get(object), "{fault:?} at {at}: {object}");
            }
            assert!(there.keys().all(|object| volumes.contains_key(object)), "{fault:?} at {at}");
            // The next start completes it.
            let store: Arc<dyn ObjectStore> = Arc::clone(&memory) as _;
            runtime.block_on(log.uploader(store).pass()).unwrap_or_else(|error| panic!("{fault:?} at {at}: {error}"));
            assert_eq!(runtime.block_on(objects(&*memory)), volumes, "{fault:?} at {at}");
            if is_over {
                most = most.max(at);
                break;
            }
        }
    }
    assert!(most > 10, "several calls for each volume, in parts: {most}");
}

#[test]
fn it_tries_again_until_the_store_is_back() {
    let mut log = Log::new();
    log.record(10);
    let memory = Arc::new(InMemory::new());
    let faulty = Faulty::new(Arc::clone(&memory), Fault::Before, 2);
    let (mut uploader, runtime) = (log.uploader(Arc::new(faulty)), runtime());
    let (status, events) = (uploader.status(), std::sync::Mutex::new(Vec::new()));
    runtime.block_on(async {
        let report = |event| events.lock().expect("nothing panics").push(format!("{event:?}"));
        let is_done = async {
            while status.counts().confirmed == 0 || status.counts().trouble.is_some() {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
            // One more look, which reports the recovery.
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        };
        tokio::select! {
            never = uploader.run(&report) => match never {},
            () = is_done => {}
        }
    });
    let (counts, events) = (status.counts(), events.into_inner().expect("nothing panics"));
    assert_eq!((counts.retries, counts.confirmed, counts.waiting), (1, 1, 0));
    assert!(events[0].contains("as the test wants") && events[1] == "Recovered" && events.len() == 2, "{events:?}");
}

/// What happens to a folder and its store.
#[derive(Debug, Clone)]
enum Step {
    Record(u64),
    Upload(Fault, usize),
    Compact,
    Prune,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1u64..25).prop_map(Step::Record),
        4 => (prop::sample::select(Fault::ALL.to_vec()), 0usize..25).prop_map(|(fault, at)| Step::Upload(fault, at)),
        1 => Just(Step::Compact),
        1 => Just(Step::Prune),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// After any sequence of faults, kills, joins and removals, and one upload without a fault, the store has each record once.
    #[test]
    fn the_store_has_each_record_once(steps in prop::collection::vec(step(), 1..10)) {
        let (mut log, memory, runtime) = (Log::new(), Arc::new(InMemory::new()), runtime());
        log.record(5);
        drop(Uploads::open(&log.path, "memory:///fleet").expect("it is a log"));
        for step in steps {
            match step {
                Step::Record(records) => log.record(records),
                Step::Upload(fault, at) => {
                    let faulty = Faulty::new(Arc::clone(&memory), fault, at);
                    // Whether it fails depends on the number of calls.
                    let _ = runtime.block_on(log.uploader(Arc::new(faulty)).pass());
                }
                Step::Compact => drop(compact(&log.path).expect("it is whole")),
                Step::Prune => drop(prune(&log.path, Retention { age: None, bytes: Some(0) }).expect("it is whole")),
            }
        }
        runtime.block_on(log.uploader(Arc::clone(&memory) as _).pass()).expect("nothing fails");
        let there = runtime.block_on(objects(&*memory));
        let mut next = 0;
        let mut stretches: Vec<_> = there.keys().map(|object| (object.first, object.end)).collect();
        stretches.sort_unstable();
        stretches.dedup();
        for (first, end) in stretches {
            prop_assert_eq!(first, next, "a gap, or records that are there twice");
            next = end;
        }
        prop_assert_eq!(next, log.records);
        prop_assert_eq!(there.keys().map(|object| object.records).sum::<u64>(), log.records);
        for (object, bytes) in log.volumes() {
            prop_assert_eq!(there.get(&object), Some(&bytes), "{}", object);
        }
    }
}
