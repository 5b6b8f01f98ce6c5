//! Links of a varying rate compared with simple models: mahimahi's queue, opportunity by opportunity, and an
//! integral of steps in exact fractions.

use proptest::prelude::*;
use queuescope_sim::{RateTrace, Transmitter, Varying};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::collections::VecDeque;

const MS: u64 = 1_000_000;
const OPPORTUNITY: u64 = 1504;

/// The outcome of a packet: when it was dequeued, and when its last byte was sent.
type Sent = (u64, u64);

/// A FIFO before a link, driven as `Replay` drives it.
fn fifo(trace: &RateTrace, arrivals: &[(u64, u64)]) -> Vec<Sent> {
    let (mut link, mut queue, mut sent) = (Varying::new(trace.clone()), VecDeque::new(), Vec::new());
    let mut serve = |link: &mut Varying, size: u64| {
        let start = link.free_at().0;
        link.send(ByteCount(size));
        sent.push((start, link.finished_at().0));
    };
    for (now, size) in arrivals {
        while link.free_at().0 < *now
            && let Some(size) = queue.pop_front()
        {
            serve(&mut link, size);
        }
        if queue.is_empty() {
            link.wait_until(Nanos(*now));
        }
        queue.push_back(*size);
    }
    queue.into_iter().for_each(|size| serve(&mut link, size));
    sent
}

/// The same, opportunity by opportunity, as in mahimahi.
fn opportunity_by_opportunity(millis: &[u64], arrivals: &[(u64, u64)]) -> Vec<Sent> {
    let (mut arrivals, mut queue) = (arrivals.iter().peekable(), VecDeque::new());
    let (mut sent, mut in_transit) = (Vec::new(), None::<(u64, u64)>);
    let period = millis[millis.len() - 1];
    for now in (0..).flat_map(|round| millis.iter().map(move |ms| (round * period + ms) * MS)) {
        while let Some((_, size)) = arrivals.next_if(|(at, _)| *at <= now) {
            queue.push_back(*size);
        }
        let mut budget = OPPORTUNITY;
        while budget > 0 {
            let Some((start, left)) = in_transit.take().or_else(|| queue.pop_front().map(|size| (now, size))) else {
                break;
            };
            let part = left.min(budget);
            budget -= part;
            if part == left {
                sent.push((start, now));
            } else {
                in_transit = Some((start, left - part));
            }
        }
        if arrivals.peek().is_none() && queue.is_empty() && in_transit.is_none() {
            return sent;
        }
    }
    unreachable!("a trace repeats without end")
}

fn opportunities() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![Just(0), 0..30u64], 1..20).prop_filter_map("some time", |gaps| {
        let sum = |now: &mut u64, gap: u64| {
            *now += gap;
            Some(*now)
        };
        let times: Vec<_> = gaps.into_iter().scan(0, sum).collect();
        times.last().is_some_and(|last| *last > 0).then_some(times)
    })
}

fn mahimahi(millis: &[u64]) -> RateTrace {
    let lines: Vec<_> = millis.iter().map(u64::to_string).collect();
    RateTrace::mahimahi(&lines.join("\n")).unwrap()
}

/// Arrivals, many of them at whole milliseconds or at the same time.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let gap = prop_oneof![Just(0), 0..3 * MS, (0..20u64).prop_map(|ms| ms * MS), 0..200 * MS];
    let size = prop_oneof![1..1_600u64, Just(OPPORTUNITY), Just(752), 1..20_000u64];
    prop::collection::vec((gap, size), 1..60).prop_map(|packets| {
        let sum = |now: &mut u64, (gap, size): (u64, u64)| {
            *now += gap;
            Some((*now, size))
        };
        packets.into_iter().scan(0, sum).collect()
    })
}

/// A trace of steps, as a list of changes; some rates are zero, and some are coprime to everything.
fn changes() -> impl Strategy<Value = (Vec<(Nanos, u64)>, Option<Nanos>)> {
    let rate = prop_oneof![Just(0), Just(8_000_000_000), Just(7_000_000_001), 1..2_000_000_000u64, Just(1 << 63)];
    let lengths = prop::collection::vec((1..5_000u64, rate), 1..8);
    (lengths, any::<bool>()).prop_filter_map("a trace", |(lengths, repeats)| {
        let sum = |now: &mut u64, (length, rate): (u64, u64)| {
            *now += length;
            Some((Nanos(*now - length), rate))
        };
        let all: u64 = lengths.iter().map(|(length, _)| length).sum();
        let changes: Vec<_> = lengths.into_iter().scan(0, sum).collect();
        let period = repeats.then_some(Nanos(all));
        RateTrace::from_changes(&changes, period).is_ok().then_some((changes, period))
    })
}

/// The steps of a trace one after another, round after round: start, end and rate.
fn unrolled(changes: &[(Nanos, u64)], period: Option<Nanos>) -> impl Iterator<Item = (u128, u128, u128)> {
    let end = move |index: usize| {
        changes.get(index + 1).map(|(start, _)| *start).or(period).map_or(u128::MAX, |end| end.0.into())
    };
    let rounds = if period.is_some() { u64::MAX } else { 1 };
    let length = period.map_or(0, |period| u128::from(period.0));
    (0..rounds).flat_map(move |round| {
        let before = u128::from(round) * length;
        let step = move |(index, (start, rate)): (usize, &(Nanos, u64))| {
            (before + u128::from(start.0), before.saturating_add(end(index)), u128::from(*rate))
        };
        changes.iter().enumerate().map(step)
    })
}

/// A time as whole nanoseconds and a fraction.
type Exact = (u128, (u128, u128));

/// When `bits` that start at `from` are sent, step by step.
fn integral(changes: &[(Nanos, u64)], period: Option<Nanos>, from: Exact, bytes: u64) -> Exact {
    let mut work = u128::from(bytes) * 8_000_000_000;
    let (mut whole, mut fraction) = from;
    for (start, end, rate) in unrolled(changes, period) {
        if end <= whole || rate == 0 {
            continue;
        }
        if start > whole {
            (whole, fraction) = (start, (0, 1));
        }
        // The fraction belongs to the rate that continues, or is zero.
        let begun = if fraction.0 == 0 { 0 } else { fraction.0 * rate / fraction.1 };
        let there = (end - whole).saturating_mul(rate) - begun;
        if work <= there {
            let done = work + begun;
            return (whole + done / rate, (done % rate, rate));
        }
        work -= there;
        (whole, fraction) = (end, (0, 1));
    }
    unreachable!("a trace goes on")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn opportunities_send_as_mahimahi_does(millis in opportunities(), arrivals in arrivals()) {
        let sent = fifo(&mahimahi(&millis), &arrivals);
        prop_assert_eq!(sent, opportunity_by_opportunity(&millis, &arrivals));
    }

    #[test]
    fn opportunities_are_found_wherever_one_looks(
        millis in opportunities(), moments in prop::collection::vec(0..500u64, 1..20)
    ) {
        let trace = mahimahi(&millis);
        let period = millis[millis.len() - 1];
        let all: Vec<_> = (0..600).flat_map(|round| millis.iter().map(move |ms| round * period + ms)).collect();
        for pair in moments.windows(2) {
            let at = Nanos(pair[0] * MS);
            let next = all.iter().find(|ms| **ms >= pair[0]).unwrap();
            prop_assert_eq!(trace.next_opportunity(at), Nanos(next * MS));
            let later = all.iter().find(|ms| **ms > pair[0]).unwrap();
            prop_assert_eq!(trace.next_opportunity(Nanos(at.0 + 1)), Nanos(later * MS));
            let (from, to) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            let count = all.iter().filter(|ms| (from..to).contains(ms)).count() as u64;
            prop_assert_eq!(trace.capacity(Nanos(from * MS)..Nanos(to * MS)), ByteCount(count * OPPORTUNITY));
        }
    }

    #[test]
    fn steps_send_as_their_integral_says(
        (changes, period) in changes(),
        packets in prop::collection::vec((prop::option::of(0..20_000u64), 0..4_000u64), 1..40)
    ) {
        let trace = RateTrace::from_changes(&changes, period).unwrap();
        let mut link = Varying::new(trace.clone());
        let (mut free, mut last) = ((0, (0, 1)), 0);
        for (idle, size) in packets {
            if let Some(idle) = idle {
                let now = link.free_at().0 + idle;
                link.wait_until(Nanos(now));
                if u128::from(now) > free.0 {
                    free = (u128::from(now), (0, 1));
                }
                let finish = trace.finish_of(ByteCount(size), Nanos(now));
                let alone = match size {
                    0 => u128::from(trace.next_opportunity(Nanos(now)).0),
                    _ => integral(&changes, period, (u128::from(now), (0, 1)), size).0,
                };
                prop_assert_eq!(u128::from(finish.0), alone);
            }
            link.send(ByteCount(size));
            if size > 0 {
                free = integral(&changes, period, free, size);
                prop_assert_eq!(u128::from(link.finished_at().0), free.0);
            }
            // It is free when there is a rate, and not later than that.
            prop_assert!(link.free_at() >= link.finished_at());
            prop_assert_eq!(link.free_at(), trace.next_opportunity(link.finished_at()));
            prop_assert!(link.free_at().0 >= last);
            last = link.free_at().0;
        }
    }

    #[test]
    fn one_step_is_a_transmitter(
        rate in 1..u64::MAX, packets in prop::collection::vec((0..5_000u64, 0..1u64 << 33), 1..40)
    ) {
        let mut plain = Transmitter::new(Rate::from_bits_per_second(rate).unwrap());
        for period in [None, Some(Nanos(777))] {
            let mut link = Varying::new(RateTrace::from_changes(&[(Nanos(0), rate)], period).unwrap());
            for (gap, size) in &packets {
                let now = Nanos(plain.free_at().0.saturating_sub(2_000).saturating_add(*gap));
                for _ in 0..2 {
                    plain.wait_until(now);
                    link.wait_until(now);
                    plain.send(ByteCount(*size));
                    link.send(ByteCount(*size));
                    prop_assert_eq!(link.free_at(), plain.free_at());
                    prop_assert_eq!(link.finished_at(), plain.free_at());
                }
            }
            plain = Transmitter::new(Rate::from_bits_per_second(rate).unwrap());
        }
    }

    #[test]
    fn capacity_is_the_integral((changes, period) in changes(), from in 0..50_000u64, length in 0..50_000u64) {
        let trace = RateTrace::from_changes(&changes, period).unwrap();
        let (start, stop) = (u128::from(from), u128::from(from + length));
        let steps = unrolled(&changes, period).take_while(|(begin, ..)| *begin < stop);
        let work: u128 = steps.map(|(begin, end, rate)| end.min(stop).saturating_sub(begin.max(start)) * rate).sum();
        prop_assert_eq!(trace.capacity(Nanos(from)..Nanos(from + length)).0, (work / 8_000_000_000) as u64);
    }

    #[test]
    fn no_text_is_too_strange(text in "([0-9]{1,3}(ms|s|mbps|\\.)?[ ,\t\n]?|repeat|\\PC){0,30}") {
        let _ = (RateTrace::mahimahi(&text), RateTrace::steps(&text));
    }
}

/// mahimahi's own example of a constant rate: one opportunity per millisecond is 12 Mb/s.
#[test]
fn one_line_is_a_constant_rate() {
    let trace = RateTrace::mahimahi("1\n").unwrap();
    assert_eq!((trace.mean_rate().bits_per_second(), trace.period()), (12_032_000, Some(Nanos(MS))));
    assert_eq!(trace.next_opportunity(Nanos(0)), Nanos(MS));
    // 752 bytes, then 1504, then 1504: the second is sent in halves.
    let sent = fifo(&trace, &[(0, 752), (0, OPPORTUNITY), (0, 752), (5 * MS, 1), (5 * MS + 1, 1)]);
    assert_eq!(sent, [(MS, MS), (MS, 2 * MS), (2 * MS, 2 * MS), (5 * MS, 5 * MS), (6 * MS, 6 * MS)]);
}

/// 10 Mb/s, then 2 Mb/s from 1 s on, an outage from 2 s on, and 10 Mb/s again from 3 s on.
#[test]
fn a_packet_is_as_fast_as_the_rate_it_meets() {
    let trace = RateTrace::steps("0s 10mbps\n1s 2mbps\n2s 0\n3s repeat").unwrap();
    let s = |ms: u64| Nanos(ms * MS);
    assert_eq!(trace.mean_rate().bits_per_second(), 4_000_000);
    assert_eq!(trace.finish_of(ByteCount(1_250), s(500)), s(501));
    assert_eq!(trace.finish_of(ByteCount(1_250), s(1_500)), s(1_505));
    assert_eq!(trace.finish_of(ByteCount(2_500), s(999)), s(1_005), "half at each rate");
    assert_eq!(trace.finish_of(ByteCount(2_500), s(1_995)), s(3_001), "half on each side of the outage");
    assert_eq!(trace.finish_of(ByteCount(1_250), s(1_995)), s(2_000), "just before it");
    assert_eq!(trace.finish_of(ByteCount(1_500_000_000), s(0)), s(3_000_000 - 1_000), "a thousand rounds");
    assert_eq!(trace.next_opportunity(s(2_000)), s(3_000));
    let mut link = Varying::new(trace.clone());
    link.wait_until(s(1_995));
    link.send(ByteCount(1_250));
    assert_eq!((link.finished_at(), link.free_at()), (s(2_000), s(3_000)), "none is taken from the queue in an outage");
    assert_eq!(trace.capacity(s(500)..s(4_000)), ByteCount(625_000 + 250_000 + 1_250_000));
    let stays = RateTrace::steps("0s 10mbps\n1s 2mbps").unwrap();
    assert_eq!((stays.mean_rate().bits_per_second(), stays.period()), (2_000_000, None));
}

/// The end of the range of times, and the highest rates.
#[test]
fn time_ends() {
    let fast = RateTrace::from_changes(&[(Nanos(0), u64::MAX), (Nanos(3), 1)], Some(Nanos(4))).unwrap();
    for trace in [RateTrace::mahimahi("7").unwrap(), fast, RateTrace::from_changes(&[(Nanos(0), 1)], None).unwrap()] {
        let mut link = Varying::new(trace.clone());
        link.wait_until(Nanos(u64::MAX - 1));
        for _ in 0..3 {
            link.send(ByteCount(u64::MAX));
            link.wait_until(Nanos::MAX);
        }
        assert_eq!((link.free_at(), link.finished_at()), (Nanos::MAX, Nanos::MAX));
        assert!(trace.capacity(Nanos(0)..Nanos::MAX) > ByteCount(0));
    }
}

/// The examples in `data/linktrace` agree with their README.
#[test]
fn the_examples_are_read() {
    let handover = RateTrace::steps(include_str!("../../../data/linktrace/handover.rates")).unwrap();
    assert_eq!((handover.period(), handover.mean_rate().bits_per_second()), (Some(Nanos(20_000 * MS)), 23_570_000));
    let bursty = RateTrace::mahimahi(include_str!("../../../data/linktrace/bursty.mahimahi")).unwrap();
    assert_eq!((bursty.period(), bursty.mean_rate().bits_per_second()), (Some(Nanos(60 * MS)), 4_010_666));
}

/// The text of a real trace, if the file exists.
fn real(name: &str) -> Option<String> {
    let path = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/linktrace")).join(name);
    if !path.exists() {
        eprintln!("skipped: real link traces: there is no {}", path.display());
        return None;
    }
    let Some(output) =
        std::process::Command::new("xz").arg("-dc").arg(&path).output().ok().filter(|o| o.status.success())
    else {
        eprintln!("skipped: {}: no program xz reads it", path.display());
        return None;
    };
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Real cellular links, kept busy: each opportunity is used, and a queue that is never empty sends what mahimahi's
/// model sends.
#[test]
fn real_traces_are_sent_as_mahimahi_does() {
    // Opportunities and milliseconds, as counted by other programs.
    let traces = [
        ("ATT-LTE-driving-2016.down.xz", 45_604, 120_002),
        ("ATT-LTE-driving-2016.up.xz", 19_101, 120_002),
        ("TMobile-UMTS-driving.down.xz", 156_262, 928_424),
        ("Verizon-EVDO-driving.down.xz", 46_065, 1_062_016),
        ("Verizon-LTE-short.down.xz", 58_655, 140_000),
        ("Verizon-LTE-short.up.xz", 69_367, 140_000),
        ("nyc-downlink-3g-with-cross-subway.xz", 57_217, 137_985),
    ];
    for (name, count, last) in traces {
        let Some(text) = real(name) else { continue };
        let trace = RateTrace::mahimahi(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let rate = count * OPPORTUNITY * 8_000 / last;
        assert_eq!((trace.period(), trace.mean_rate().bits_per_second()), (Some(Nanos(last * MS)), rate), "{name}");
        let millis: Vec<_> = text.lines().map(|line| line.parse::<u64>().unwrap()).collect();
        // Two rounds of 1400-byte packets, all at once, and then one every 20 ms.
        let all = 2 * count * OPPORTUNITY / 1_400;
        let arrivals: Vec<_> = (0..all + 20_000).map(|n| (n.saturating_sub(all) * 20 * MS, 1_400)).collect();
        let sent = fifo(&trace, &arrivals);
        assert_eq!(sent, opportunity_by_opportunity(&millis, &arrivals), "{name}");
        assert!(
            sent[all as usize - 1].1 <= 2 * last * MS && sent[all as usize].1 >= 2 * last * MS - 1_000 * MS,
            "{name}"
        );
    }
}
