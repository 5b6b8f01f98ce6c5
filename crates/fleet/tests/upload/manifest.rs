//! The objects of a cut.

use super::{Log, runtime, target};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use queuescope_archive::Uploads;
use queuescope_fleet::upload::{CutManifest, Missing};
use std::sync::Arc;

/// A cut as the command prints it.
fn cut(log: &Log, position: u64) -> String {
    let folder = Uploads::open(&log.path, "memory:///fleet").expect("it is a log").store();
    format!(
        "{{\"cut\":7,\"void\":null,\"members\":[{{\"host\":\"web-1\",\"state\":\"here\",\"position\":{position},\"clock_ns\":1,\
         \"folder\":\"{folder:016x}\",\"schema\":\"timed\"}}],\"frozen_within_ns\":1,\"thawed_within_ns\":1}}"
    )
}

#[test]
fn a_manifest_lists_the_objects_before_the_position_and_what_is_missing() {
    let (mut log, runtime) = (Log::new(), runtime());
    log.record(45);
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let target = target(Arc::clone(&store));
    let make = |position: u64| runtime.block_on(CutManifest::make(&cut(&log, position), &target)).expect("it is a cut");
    let nothing = make(23);
    assert!(!nothing.is_complete);
    assert_eq!(nothing.hosts[0].missing, [Missing { first: 0, end: 23, records: 23 }]);
    runtime.block_on(log.uploader(Arc::clone(&store)).pass()).expect("it works");
    let whole = make(23);
    assert!(whole.is_complete && whole.cut == 7);
    let host = &whole.hosts[0];
    let positions: Vec<_> = host.objects.iter().map(|object| (object.first, object.end, object.records)).collect();
    assert_eq!((positions, host.position), (vec![(0, 10, 10), (10, 20, 10), (20, 30, 10)], Some(23)));
    assert!(host.objects[0].object.starts_with("memory:///fleet/timed/host=web-1/date=1970-01-01/"), "{host:?}");
    assert_eq!(make(10).hosts[0].objects.len(), 1, "the position is behind the last record");
    assert_eq!(make(0).hosts[0].objects.len(), 0);
    // More was recorded than is uploaded.
    assert_eq!(make(50).hosts[0].missing, [Missing { first: 45, end: 50, records: 5 }]);
    // One object was removed.
    let removed = host.objects[1].object.strip_prefix("memory:///").expect("it is there");
    runtime.block_on(store.delete(&removed.into())).expect("it is there");
    assert_eq!(make(45).hosts[0].missing, [Missing { first: 10, end: 20, records: 10 }]);
}

#[test]
fn a_missing_day_of_some_records_is_noticed() {
    let (mut log, runtime) = (Log::new(), runtime());
    // A record each ten minutes: the last volume has records of two days.
    log.record(150);
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let target = target(Arc::clone(&store));
    runtime.block_on(log.uploader(Arc::clone(&store)).pass()).expect("it works");
    let make = || runtime.block_on(CutManifest::make(&cut(&log, 150), &target)).expect("it is a cut");
    let objects = make().hosts[0].objects.clone();
    let of_two_days: Vec<_> = objects.iter().filter(|object| (object.first, object.end) == (140, 150)).collect();
    assert_eq!(of_two_days.len(), 2, "{objects:?}");
    assert!(make().is_complete);
    let removed = of_two_days[0].object.strip_prefix("memory:///").expect("it is there");
    runtime.block_on(store.delete(&removed.into())).expect("it is there");
    let records = of_two_days[0].records;
    assert_eq!(make().hosts[0].missing, [Missing { first: 140, end: 150, records }]);
}

#[test]
fn what_is_no_cut_is_refused_and_absent_hosts_are_named() {
    let (log, runtime) = (Log::new(), runtime());
    drop(log);
    let target = target(Arc::new(InMemory::new()));
    let make = |text: &str| runtime.block_on(CutManifest::make(text, &target));
    let folder = "\"folder\":\"0000000000000001\"";
    for (text, why) in [
        (String::new(), "this is not a cut"),
        (
            "{\"cut\":1,\"void\":\"the lease of a ended\",\"members\":[]}".to_owned(),
            "it is void (the lease of a ended)",
        ),
        ("{\"cut\":1,\"members\":[{\"host\":\"../a\",\"position\":1}]}".to_owned(), "this is not a cut"),
        ("{\"cut\":1,\"members\":[{\"host\":\"a\",\"position\":1}]}".to_owned(), "the folder of a is missing or wrong"),
        (
            format!("{{\"cut\":1,\"members\":[{{\"host\":\"a\",\"position\":1,{folder}}}]}}"),
            "the schema of a is missing",
        ),
        (
            format!("{{\"cut\":1,\"members\":[{{\"host\":\"a\",\"position\":1,{folder},\"schema\":\"../..\"}}]}}"),
            "the schema of a is missing or wrong",
        ),
    ] {
        let error = make(&text).expect_err(&text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let absent = make("{\"cut\":1,\"members\":[{\"host\":\"a\",\"position\":null}]}").expect("it is a cut");
    assert!(!absent.is_complete && absent.hosts[0].host == "a" && absent.hosts[0].position.is_none());
}
