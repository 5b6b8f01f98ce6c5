//! Sinks that run: threads, positions on the disk, restarts.

use super::super::{PreparedSinks, SinkOptions, SinkReport, Sinks};
use super::server::{Behaviour, Got, PATIENCE, serve};
use crate::agent::Backoff;
use crate::coordinator::{AlertStore, Coordinator, CoordinatorOptions, ProgramStore, Programs};
use crate::protocol::Alert;
use queuescope_wire::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Instant;
use tempfile::TempDir;

const OK: Behaviour = Behaviour::Say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");

/// A coordinator without connections.
struct Home {
    dir: TempDir,
    coordinator: Coordinator,
    stored: u64,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let alerts = AlertStore::open(&dir.path().join("alerts.jsonl"), AlertStore::KEPT).unwrap();
        let programs = Programs::open(ProgramStore::open(&dir.path().join("programs")).unwrap()).unwrap();
        Self { coordinator: Coordinator::new(CoordinatorOptions::default(), 1, alerts, programs), dir, stored: 0 }
    }

    fn positions(&self) -> PathBuf {
        self.dir.path().join("sinks")
    }

    /// Stores an alert of a trigger.
    fn fires(&mut self, trigger: &str) {
        self.stored += 1;
        let (member, trigger) = ("web-1".to_owned(), trigger.to_owned());
        let alert = Alert { member, trigger, store: 1, sequence: self.stored, at: self.stored, ..Alert::default() };
        self.coordinator.alerts().store(alert).unwrap();
    }

    fn start(&self, sinks: &[String], folder: &Path) -> Sinks {
        let options = SinkOptions {
            sinks: sinks.iter().map(|sink| sink.parse().unwrap()).collect(),
            backoff: Backoff::between(Nanos(1), Nanos(1_000)),
            ..SinkOptions::default()
        };
        self.coordinator.start_sinks(PreparedSinks::new(options).unwrap(), folder, "c0ffee").unwrap()
    }

    /// Waits until all sinks are done with this alert.
    fn reaches(&self, number: u64, sinks: usize) {
        let begun = Instant::now();
        while self.coordinator.sinks().iter().filter(|report| report.position == number).count() < sinks {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.coordinator.sinks());
            thread::yield_now();
        }
    }

    fn report(&self) -> SinkReport {
        let [report] = &self.coordinator.sinks()[..] else { panic!("there is one sink") };
        report.clone()
    }
}

fn next(got: &Receiver<Got>) -> Got {
    got.recv_timeout(PATIENCE).expect("a request comes")
}

#[test]
fn alerts_are_sent_as_they_come_and_once_over_restarts() {
    let (mut home, (address, got)) = (Home::new(), serve(&[OK]));
    let sinks = [format!("webhook:http://{address}/")];
    home.fires("before");
    for trigger in ["a", "b", "c"] {
        let running = home.start(&sinks, &home.positions());
        home.fires(trigger);
        assert_eq!(next(&got).numbers(), [home.stored]);
        home.reaches(home.stored, 1);
        assert!(running.stop());
        assert_eq!(home.report().stats.sent, 1);
    }
    home.fires("d");
    home.fires("d");
    home.fires("e");
    let running = home.start(&sinks, &home.positions());
    assert_eq!(next(&got).numbers(), [5, 7], "6 repeats 5");
    home.reaches(7, 1);
    assert!(running.stop());
    assert_eq!(home.report().stats.repeats, 1);
    let running = home.start(&sinks, &home.positions());
    assert!(running.stop());
    assert!(got.try_recv().is_err(), "nothing is sent again");
}

#[test]
fn failures_are_tried_again_and_noted_once() {
    let busy = Behaviour::Say("HTTP/1.1 503 Service Unavailable\r\n\r\n");
    let (address, got) = serve(&[busy.clone(), Behaviour::CloseAtOnce, busy, OK]);
    let mut home = Home::new();
    let running = home.start(&[format!("webhook:http://{address}/")], &home.positions());
    home.fires("a");
    let bodies: Vec<_> = (0..3).map(|_| next(&got)).collect();
    assert!(bodies.iter().all(|got| got.field("idempotency-key") == bodies[0].field("idempotency-key")));
    home.reaches(1, 1);
    assert!(running.stop());
    let report = home.report();
    assert_eq!((report.stats.sent, report.stats.retried, report.is_failing), (1, 3, false));
    let troubles: Vec<_> = std::iter::from_fn(|| home.coordinator.trouble()).collect();
    assert_eq!(troubles.len(), 2, "{troubles:?}");
    assert!(troubles[0].ends_with("took no alerts, and is tried again: it answered 503"), "{troubles:?}");
    assert!(troubles[1].contains("takes alerts again: 3 attempts failed"), "{troubles:?}");
}

/// A copy of the folder while the receiver has the request and has not answered is what SIGKILL leaves at that moment.
#[test]
fn what_was_not_confirmed_before_a_kill_comes_again_and_then_no_more() {
    let (address, got) = serve(&[Behaviour::Hang, OK]);
    let mut home = Home::new();
    let sinks = [format!("webhook:http://{address}/")];
    let killed = home.start(&sinks, &home.positions());
    home.fires("a");
    let first = next(&got);
    let copy = home.dir.path().join("copy");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(home.positions()).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    drop(killed);
    let again = home.start(&sinks, &copy);
    let second = next(&got);
    assert_eq!((second.numbers(), second.field("idempotency-key")), (vec![1], first.field("idempotency-key")));
    home.reaches(1, 1);
    assert!(again.stop());
    let third = home.start(&sinks, &copy);
    home.fires("b");
    assert_eq!(next(&got).numbers(), [2]);
    home.reaches(2, 1);
    assert!(third.stop());
}

#[test]
fn a_sink_that_hangs_delays_no_other() {
    let ((hanging, asked), (address, got)) = (serve(&[Behaviour::Hang]), serve(&[OK]));
    let mut home = Home::new();
    let file = home.dir.path().join("sent.jsonl");
    let sinks = [
        format!("webhook:http://{hanging}/"),
        format!("webhook:http://{address}/"),
        format!("jsonl:{}", file.display()),
    ];
    let running = home.start(&sinks, &home.positions());
    home.fires("a");
    next(&asked);
    assert_eq!(next(&got).numbers(), [1]);
    for trigger in ["b", "c"] {
        home.fires(trigger);
        assert_eq!(next(&got).numbers(), [home.stored]);
    }
    home.reaches(3, 2);
    drop(running);
    let positions: Vec<_> = home.coordinator.sinks().iter().map(|report| report.position).collect();
    assert_eq!(positions, [0, 3, 3]);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 3);
}

#[test]
fn a_position_that_cannot_be_saved_is_noted_and_nothing_else_stops() {
    let (mut home, (address, got)) = (Home::new(), serve(&[OK]));
    let running = home.start(&[format!("webhook:http://{address}/")], &home.positions());
    fs::remove_dir_all(home.positions()).unwrap();
    for trigger in ["a", "b"] {
        home.fires(trigger);
        assert_eq!(next(&got).numbers(), [home.stored]);
        home.reaches(home.stored, 1);
    }
    assert!(running.stop());
    let trouble = home.coordinator.trouble().expect("there is one");
    assert!(trouble.contains("cannot write") && trouble.contains("gets some alerts again"), "{trouble}");
    assert_eq!(home.coordinator.trouble(), None, "it is noted once");
}

#[test]
fn a_damaged_position_stops_the_start() {
    let home = Home::new();
    let sinks = [format!("jsonl:{}", home.dir.path().join("sent.jsonl").display())];
    assert!(home.start(&sinks, &home.positions()).stop());
    let file = fs::read_dir(home.positions()).unwrap().next().unwrap().unwrap().path();
    fs::write(&file, "{").unwrap();
    let options = SinkOptions { sinks: vec![sinks[0].parse().unwrap()], ..SinkOptions::default() };
    let error =
        home.coordinator.start_sinks(PreparedSinks::new(options).unwrap(), &home.positions(), "c0ffee").unwrap_err();
    assert!(error.to_string().contains("remove it"), "{error}");
}
