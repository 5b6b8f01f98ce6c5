//! Culprits at the ports of a simulated router, compared with a search of the whole file for each packet.

use crate::culprits_reference as reference;
use crate::culprits_router_parts as router;

use queuescope_meter::{Amount, Departed, QueueLog, Ranking};
use queuescope_wire::{Class, FlowId, Nanos, Rate};
use reference::{Reference, arrival};
use router::{BYTE_TIME, Odd, Port};
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let directory = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/tappair"));
    let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let is_router = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("ns3-router-rxtx-") && name.ends_with(".csv.xz")
    };
    let mut files: Vec<_> = entries.filter(is_router).collect();
    files.sort();
    if files.is_empty() {
        eprintln!("skipped: there are no router tables at {}", directory.display());
    }
    files
}

/// The ports of all files, with names.
fn ports() -> Vec<(String, Port)> {
    let mut all = Vec::new();
    for file in files() {
        let Some(ports) = router::ports(&file) else {
            eprintln!("skipped: {}: the program xz cannot read it", file.display());
            continue;
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.extend(ports.into_iter().map(|(port, data)| (format!("{name}, port {port} ({})", data.discipline), data)));
    }
    all
}

fn log_of(departures: &[Departed]) -> QueueLog {
    let mut log = QueueLog::new();
    departures.iter().for_each(|departed| log.record(departed).unwrap());
    log
}

/// For every `every`-th packet: all packets of the port that started while it waited.
fn check_by_brute_force(name: &str, departures: &[Departed], every: usize) -> QueueLog {
    let (log, reference) = (log_of(departures), Reference(departures));
    for (index, victim) in departures.iter().enumerate().step_by(every) {
        let wait = victim.enqueued..victim.dequeued;
        let left = departures.iter().filter(|other| wait.contains(&other.dequeued));
        let truth = reference::rank(left.map(|other| (other, u64::from(other.size))));
        assert_eq!(log.direct(victim), Some(truth), "{name}: {victim:?}");
        // The other queries about a packet, for a few packets: the search is slow.
        if index % 1024 == 1000 {
            let culprits = log.of_departure(victim).unwrap();
            let before = reference.indirect(arrival(victim), victim.enqueued.0);
            assert_eq!(culprits.indirect, reference.rank_of(&before), "{name}: {victim:?}");
            let standing = reference.standing(arrival(victim)).count() as u64;
            assert_eq!(culprits.standing.backlog.packets, standing, "{name}: {victim:?}");
            assert_eq!(culprits.original.total.bytes, reference.depth(arrival(victim)), "{name}: {victim:?}");
        }
    }
    log
}

#[test]
fn direct_culprits_match_the_file() {
    for (name, port) in ports().into_iter().filter(|(_, port)| ["FIFO", "SP"].contains(&port.discipline.as_str())) {
        assert_eq!(port.odd.overlapped, 0, "{name}: one packet at a time");
        let log = check_by_brute_force(&name, &port.departures, 1);
        let deepest = log.of_range(Nanos(0)..Nanos::MAX).map_or(0, |culprits| culprits.standing.backlog.packets);
        let Odd { started_early, ambiguous, .. } = port.odd;
        println!(
            "{name}: {} packets, {deepest} deep, {started_early} started within a microsecond before they came, \
             the order of {ambiguous} pairs is within a microsecond",
            port.departures.len()
        );
        if port.discipline == "FIFO" {
            for victim in &port.departures {
                assert_eq!(log.overtakers(victim).unwrap().total.packets, 0, "{name}: {victim:?}");
            }
        }
    }
}

/// The packets of a class, and the bytes that left while they waited.
#[derive(Debug, Default)]
struct ClassWait {
    higher: u64,
    all: u64,
    overtaken_by: u64,
}

fn class_waits(log: &QueueLog, departures: &[Departed], every: usize) -> Vec<ClassWait> {
    let mut waits: Vec<_> = (0..8).map(|_| ClassWait::default()).collect();
    let higher = |ranking: &Ranking<FlowId>, class: Class| -> u64 {
        ranking.classes.iter().filter(|(other, _)| *other < class).map(|(_, Amount { bytes, .. })| *bytes).sum()
    };
    for victim in departures.iter().step_by(every) {
        let (direct, overtakers) = (log.direct(victim).unwrap(), log.overtakers(victim).unwrap());
        let wait = &mut waits[usize::from(victim.class.0)];
        wait.higher += higher(&direct, victim.class);
        wait.all += direct.total.bytes;
        wait.overtaken_by += overtakers.total.bytes;
        assert_eq!(higher(&overtakers, victim.class), overtakers.total.bytes, "only higher classes overtake");
    }
    waits
}

/// The high class causes the low class's waits (ConQuest section 3.6), where the router's scheduler had a choice. Behind the scheduler is
/// the interface's own FIFO queue of a hundred packets, in which no class has priority.
#[test]
fn a_strict_priority_port_shows_the_higher_classes() {
    for (name, port) in ports().into_iter().filter(|(_, port)| port.discipline == "SP") {
        let waits = class_waits(&log_of(&port.departures), &port.departures, 1);
        let Some((class, lowest)) = waits.iter().enumerate().rev().find(|(_, wait)| wait.overtaken_by > 0) else {
            eprintln!("skipped: {name}: no packet overtook another, the link was never busy for long enough");
            continue;
        };
        println!("{name}: class {class}: {lowest:?}");
        assert!(lowest.higher * 10 >= lowest.all * 9, "{name}: class {class}: {lowest:?}");
    }
}

/// The same arrivals at a slower link with strict priority and no queue behind it: a packet waits only for its own class or higher
/// ones, and the lowest class waits for the others.
#[test]
fn the_same_arrivals_at_a_slower_strict_priority_port() {
    for (name, port) in ports().into_iter().filter(|(_, port)| port.discipline == "SP" && port.departures.len() > 1000)
    {
        let departures = strict_priority(&port.departures, 2 * BYTE_TIME);
        let log = check_by_brute_force(&name, &departures, 8);
        let waits = class_waits(&log, &departures, 8);
        let rate = Rate::from_bits_per_second(10_000_000).unwrap();
        for victim in departures.iter().step_by(8) {
            let direct = log.direct(victim).unwrap();
            assert!(direct.classes.iter().all(|(class, _)| *class <= victim.class), "{name}: {victim:?}");
            // The culprits explain the whole sojourn time.
            let on_link = log.on_link(victim.enqueued, rate, 0).map_or(0, |on_link| on_link.remaining.0);
            assert_eq!(victim.sojourn().0, on_link + direct.total.bytes * 2 * BYTE_TIME, "{name}: {victim:?}");
        }
        println!("{name}, at 10 Mb/s: {waits:?}");
        assert!(waits[7].higher * 4 >= waits[7].all * 3, "{name}: {:?}", waits[7]);
        assert_eq!(waits[0].higher + waits[0].overtaken_by, 0);
    }
}

/// Sends the packets over a link of `byte_time` nanoseconds a byte, always from the highest class that waits.
fn strict_priority(packets: &[Departed], byte_time: u64) -> Vec<Departed> {
    let mut coming = packets.to_vec();
    coming.sort_by_key(|departed| std::cmp::Reverse(departed.packet));
    let (mut waiting, mut left, mut free) = (Vec::<Departed>::new(), Vec::new(), 0);
    while !(coming.is_empty() && waiting.is_empty()) {
        while let Some(packet) = coming.pop_if(|next| waiting.is_empty() || next.enqueued.0 <= free) {
            free = if waiting.is_empty() { free.max(packet.enqueued.0) } else { free };
            waiting.push(packet);
        }
        let (next, _) = waiting.iter().enumerate().min_by_key(|(_, packet)| (packet.class, packet.packet)).unwrap();
        let packet = waiting.remove(next);
        left.push(Departed { dequeued: Nanos(free), ..packet });
        free += u64::from(packet.size) * byte_time;
    }
    left
}
