use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

fn alert(member: &str, store: u64, sequence: u64) -> Alert {
    let (trigger, member) = (format!("t{sequence}"), member.to_owned());
    Alert { member, store, sequence, trigger, at: 5, value: 1.5, packets: 2, ..Alert::default() }
}

/// What an alert says of its origin.
fn origin(alert: &Alert) -> (String, u64, u64) {
    (alert.member.clone(), alert.store, alert.sequence)
}

/// What happens to a store.
#[derive(Debug, Clone)]
enum Event {
    /// The next alert of a member's store comes, or one that came before.
    Comes { member: u8, store: u64, again: bool },
    /// The coordinator raises some.
    Raises(usize),
    /// It is opened again, after a crash that left part of a line.
    Opened { torn: bool },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => (0..3u8, 0..3u64, any::<bool>()).prop_map(|(member, store, again)| Event::Comes { member, store, again }),
        2 => (1..4usize).prop_map(Event::Raises),
        1 => any::<bool>().prop_map(|torn| Event::Opened { torn }),
    ];
    prop::collection::vec(event, 0..80)
}

proptest! {
    /// A plain list, of which readers see the end.
    #[test]
    fn the_newest_are_kept_and_each_is_stored_once(events in events(), keep in 1..20usize) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("alerts.jsonl");
        let mut store = AlertStore::open(&path, keep).unwrap();
        let (mut all, mut next, mut raised) = (Vec::new(), BTreeMap::<(u8, u64), u64>::new(), 0);
        for event in events {
            match event {
                Event::Comes { member, store: of, again } => {
                    let sequence = next.entry((member, of)).or_insert(1);
                    if again {
                        // An old one changes nothing; a sequence of 0 is never new.
                        store.store(alert(&format!("m{member}"), of, *sequence - 1)).unwrap();
                    } else {
                        let new = alert(&format!("m{member}"), of, *sequence);
                        *sequence += 1;
                        all.push(origin(&new));
                        store.store(new).unwrap();
                    }
                }
                Event::Raises(number) => {
                    let results = store.raise(vec![Alert::default(); number]);
                    prop_assert!(results.len() == number && results.iter().all(Result::is_ok));
                    all.extend((0..number).map(|_| { raised += 1; (String::new(), 0, raised) }));
                }
                Event::Opened { torn } => {
                    drop(store);
                    if torn {
                        let mut text = fs::read(&path).unwrap();
                        text.extend(b"{\"number\":9,\"mem");
                        fs::write(&path, text).unwrap();
                    }
                    store = AlertStore::open(&path, keep).unwrap();
                }
            }
            let kept = store.from(0, usize::MAX);
            prop_assert_eq!(*store.count().borrow(), all.len() as u64);
            prop_assert_eq!(kept.len(), keep.min(all.len()));
            prop_assert_eq!(kept.iter().map(origin).collect::<Vec<_>>(), &all[all.len() - kept.len()..]);
            let numbers: Vec<u64> = kept.iter().map(|alert| alert.number).collect();
            prop_assert_eq!(numbers, (store.first()..=all.len() as u64).collect::<Vec<_>>());
            let lines = fs::read_to_string(&path).unwrap().lines().filter(|line| line.starts_with("{\"number\"")).count();
            prop_assert!(lines <= 2 * keep, "{lines} lines, of which {keep} are kept");
            for ((member, of), next) in &next {
                prop_assert_eq!(store.last_of(&format!("m{member}"), *of), next - 1);
            }
        }
    }
}

#[test]
fn alerts_that_come_together_are_all_stored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("alerts.jsonl");
    let store = AlertStore::open(&path, 1_000).unwrap();
    let stored = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for member in 0..8 {
            let (store, stored) = (&store, &stored);
            scope.spawn(move || {
                for sequence in 1..=50 {
                    store.store(alert(&format!("m{member}"), 1, sequence)).unwrap();
                    // What is stored is seen: this alert, and all that were stored before.
                    let before = stored.fetch_add(1, Ordering::SeqCst);
                    let seen = store.from(0, usize::MAX).len() as u64;
                    assert!(seen > before, "{seen}");
                }
            });
        }
    });
    let before: Vec<_> = store.from(1, usize::MAX).iter().map(origin).collect();
    assert_eq!(before.len(), 400);
    drop(store);
    let again = AlertStore::open(&path, 1_000).unwrap();
    assert_eq!(again.from(1, usize::MAX).iter().map(origin).collect::<Vec<_>>(), before);
}

#[test]
fn a_full_disk_loses_nothing_that_was_stored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("alerts.jsonl");
    let store = AlertStore::open(&path, 10).unwrap();
    store.store(alert("a", 1, 1)).unwrap();
    // A file that takes nothing, as on a full disk.
    let full = fs::OpenOptions::new().append(true).open("/dev/full").unwrap();
    let file = lock(&store.file).replace_file(full);
    let failed = store.store(alert("a", 1, 2)).unwrap_err().to_string();
    assert!(failed.contains("cannot write") && failed.contains("space"), "{failed}");
    assert!(store.raise(vec![Alert::default(); 2]).iter().all(Result::is_err));
    assert_eq!((store.from(1, 9).len(), *store.count().borrow(), store.last_of("a", 1)), (1, 1, 1));
    lock(&store.file).replace_file(file);
    store.store(alert("a", 1, 2)).unwrap();
    drop(store);
    let again = AlertStore::open(&path, 10).unwrap();
    assert_eq!(again.from(1, 9).iter().map(|alert| alert.sequence).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_member_with_many_folders_is_remembered_by_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("alerts.jsonl");
    let store = AlertStore::open(&path, 2).unwrap();
    (1..100).for_each(|folder| store.store(alert("a", folder, 7)).unwrap());
    drop(store);
    let again = AlertStore::open(&path, 2).unwrap();
    let known: Vec<u64> = (1..100).filter(|folder| again.last_of("a", *folder) == 7).collect();
    assert!(known.len() < 30 && known.ends_with(&[97, 98, 99]), "{known:?}");
}

#[test]
fn lines_that_are_no_alerts_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("alerts.jsonl");
    for (text, line) in
        [("\n", 1), ("{}\n", 1), ("{\"removed\":-1}\n", 1), ("\0\0\0\n", 1), ("{\"removed\":3,\"last\":[]}\n[]\n", 2)]
    {
        fs::write(&path, text).unwrap();
        let error = AlertStore::open(&path, 10).unwrap_err().to_string();
        assert!(error.contains(&format!("line {line}, is no alert")), "{error}");
    }
}
