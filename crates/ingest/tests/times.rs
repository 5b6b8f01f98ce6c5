//! Wrong times in a capture change the fate of no other packet.

use crate::aqm::{capture, replay};
use queuescope_ingest::{OpenedCapture, Source};
use queuescope_queue::Limit;
use queuescope_wire::{Departure, Nanos, PacketId};
use std::io::Cursor;

/// Departures of packets of 1500 bytes at these times (µs) through 10 Mb/s and a queue of 20 packets, the number of drops, and the source.
fn departures(times: &[u64]) -> (Vec<Departure>, usize, Source) {
    let file = capture(times.iter().map(|at| (*at, 1, 1_500, 0)));
    let capture = OpenedCapture::from_reader(Cursor::new(file), "made", "10mbps".parse().unwrap(), None).unwrap();
    let (log, source) = replay(capture, None, Limit::Packets(20));
    (log.departures, log.drops.len(), source)
}

/// What happens to a packet, without the backlog that it leaves behind: that depends on the next packet.
fn fate(departure: &Departure) -> (PacketId, Nanos, Nanos) {
    (departure.packet.id, departure.enqueued, departure.dequeued)
}

fn count(source: &Source, reason: &str) -> u64 {
    source.skipped.iter().find(|note| note.reason == reason).map_or(0, |note| note.count)
}

/// 8 Mb/s: the link never has a queue.
fn steady() -> Vec<u64> {
    (0..500).map(|n| 1_700_000_000_000_000 + n * 1_500).collect()
}

#[test]
fn one_wrong_time_moves_one_packet() {
    let right = departures(&steady());
    assert_eq!((right.0.len(), right.1), (500, 0));
    for (wrong, outliers) in [(4_000_000_000_000_000, 1), (0, 1)] {
        let mut times = steady();
        times[100] = wrong;
        let (departures, drops, source) = departures(&times);
        assert_eq!((departures.len(), drops), (500, 0));
        let differing: Vec<_> = (0..500).filter(|n| fate(&departures[*n]) != fate(&right.0[*n])).collect();
        // The packet arrives with that before it, and leaves behind it.
        assert_eq!(differing, [100]);
        assert_eq!(departures[100].enqueued, departures[99].enqueued);
        assert_eq!((count(&source, "time_outliers"), count(&source, "time_ran_back")), (outliers, 0));
    }
}

#[test]
fn a_fraction_that_is_no_fraction_moves_one_packet() {
    // The helper writes the remainder of a second, so the field is overwritten: record 100, behind the file header.
    let mut file = capture(steady().into_iter().map(|at| (at, 1, 1_500, 0)));
    let record = 24 + 100 * (16 + 28);
    file[record + 4..record + 8].copy_from_slice(&u32::MAX.to_le_bytes());
    let capture = OpenedCapture::from_reader(Cursor::new(file), "made", "10mbps".parse().unwrap(), None).unwrap();
    let (log, source) = replay(capture, None, Limit::Packets(20));
    let (right, ..) = departures(&steady());
    let differing: Vec<_> = (0..500).filter(|n| fate(&log.departures[*n]) != fate(&right[*n])).collect();
    assert_eq!(differing, [100]);
    assert_eq!((log.drops.len(), count(&source, "time_out_of_range"), count(&source, "time_ran_back")), (0, 1, 0));
}

#[test]
fn a_clock_that_is_set_back_keeps_the_traffic() {
    let mut times = steady();
    times[250..].iter_mut().for_each(|at| *at -= 3_600_000_000);
    let (departures, drops, source) = departures(&times);
    assert_eq!((departures.len(), drops), (500, 0));
    let gaps = departures[251..].windows(2).map(|pair| (pair[1].enqueued - pair[0].enqueued).0);
    assert!(gaps.into_iter().all(|gap| gap == 1_500_000));
    assert_eq!((count(&source, "clock_steps"), count(&source, "time_ran_back")), (1, 0));
    let note = source.skipped.iter().find(|note| note.reason == "clock_steps").unwrap();
    let step = Nanos(3_600_000_000_000 - 1_500_000);
    assert!(note.meaning.contains(&format!("by up to {step}")), "{}", note.meaning);
}

#[test]
fn a_gap_stays_a_gap() {
    let mut times = steady();
    times[250..].iter_mut().for_each(|at| *at += 3_600_000_000);
    let (departures, _, source) = departures(&times);
    assert_eq!((departures[250].enqueued - departures[249].enqueued).0, 3_600_001_500_000);
    assert_eq!((count(&source, "clock_steps"), count(&source, "time_outliers")), (0, 0));
}
