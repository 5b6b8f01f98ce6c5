//! The queue monitor compared with a plain log of all departures.

use proptest::prelude::*;
use queuescope_meter::{MonitorParams, QueueMonitor};
use queuescope_sketch::{Share, WindowsParams};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};
use std::collections::BTreeMap;

/// A FIFO queue that sends a byte each nanosecond, from gaps between arrivals, flows, and sizes.
fn fifo(packets: &[(u64, u32, u64)]) -> Vec<Departure> {
    let (mut now, mut free) = (1_000, 0);
    let mut departures: Vec<Departure> = Vec::new();
    for (number, &(gap, flow, size)) in packets.iter().enumerate() {
        now += gap;
        let start = now.max(free);
        free = start + size;
        let waiting = departures.iter().filter(|departure| departure.dequeued.0 >= now);
        let backlog_in = waiting.fold(Backlog::default(), |sum, departure| Backlog {
            packets: sum.packets + 1,
            bytes: sum.bytes + departure.packet.size,
        });
        departures.push(Departure {
            packet: Packet {
                id: PacketId(number as u64),
                flow: FlowId(flow),
                size: ByteCount(size),
                class: Class(0),
                ecn: Ecn::NotEct,
            },
            queue: QueueId(0),
            enqueued: Nanos(now),
            dequeued: Nanos(start),
            backlog_in,
            backlog_out: Backlog::default(),
        });
    }
    departures
}

/// Windows of a nanosecond, levels of a byte, and room for everything: every answer is exact.
fn precise(tau: u64) -> MonitorParams {
    MonitorParams {
        tau: Nanos(tau),
        windows: WindowsParams { cell: Nanos(1), windows: 512, flows: 16, levels: 2, seed: 1 },
        staged: 8,
        levels: 1 << 14,
        step: 1,
        periods: 256,
        parts: 4_096,
        shares: 1 << 15,
    }
}

fn monitored(params: MonitorParams, departures: &[Departure]) -> QueueMonitor {
    let mut monitor = QueueMonitor::new(params).unwrap();
    departures.iter().for_each(|departure| monitor.departed(departure));
    monitor
}

fn ranked(items: impl Iterator<Item = (FlowId, u64)>) -> Vec<Share> {
    let mut sums = BTreeMap::new();
    items.for_each(|(flow, bytes)| *sums.entry(flow).or_insert(0) += bytes);
    let mut shares: Vec<_> = sums.into_iter().map(|(flow, bytes)| Share { flow, bytes }).collect();
    shares.sort_by_key(|share| (std::cmp::Reverse(share.bytes), share.flow));
    shares
}

fn left_in(period: &[Departure], from: Nanos, to: Nanos) -> Vec<Share> {
    let inside = period.iter().filter(|departure| (from..to).contains(&departure.dequeued));
    ranked(inside.map(|departure| (departure.packet.flow, departure.packet.size.0)))
}

/// For each byte of the backlog that a packet met, the flow that raised the queue to it.
fn original(period: &[Departure], victim: usize) -> Vec<Share> {
    let mut stack = Vec::new();
    for departure in &period[..victim] {
        stack.truncate(departure.backlog_in.bytes.0 as usize);
        stack.resize(stack.len() + departure.packet.size.0 as usize, departure.packet.flow);
    }
    stack.truncate(period[victim].backlog_in.bytes.0 as usize);
    ranked(stack.into_iter().map(|flow| (flow, 1)))
}

/// The departures of each busy period.
fn busy_periods(departures: &[Departure]) -> impl Iterator<Item = &[Departure]> {
    departures.chunk_by(|last, next| next.enqueued <= last.dequeued)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// With room for everything, every answer equals that of the log.
    #[test]
    fn answers_match_a_log_while_nothing_is_approximate(
        packets in prop::collection::vec((0..60u64, 0..12u32, 1..60u64), 1..250), tau in 1..80u64
    ) {
        let departures = fifo(&packets);
        let monitor = monitored(precise(tau), &departures);
        let periods: Vec<_> = busy_periods(&departures).collect();
        let over = &periods[..periods.len() - 1];
        let mut remembered = monitor.periods();
        let mut congested = 0;
        for period in over {
            let victim = (0..period.len()).rev().max_by_key(|place| period[*place].sojourn()).unwrap();
            let (came, left) = (period[victim].enqueued, period[victim].dequeued);
            if period[victim].sojourn() < Nanos(tau) {
                prop_assert!(monitor.period_at(came).is_none());
                continue;
            }
            congested += 1;
            let kept = remembered.next().unwrap();
            prop_assert_eq!((kept.start, kept.end), (period[0].enqueued, period[period.len() - 1].dequeued));
            prop_assert_eq!((kept.victim_came, kept.victim_left), (came, left));
            prop_assert_eq!(kept.packets, period.len() as u64);
            for departure in *period {
                let direct = monitor.left_in(departure.enqueued, departure.dequeued);
                prop_assert_eq!(direct.flows, left_in(period, departure.enqueued, departure.dequeued));
                let indirect = monitor.indirect(departure.enqueued).unwrap();
                prop_assert_eq!(indirect.flows, left_in(period, Nanos(0), departure.enqueued));
            }
            let worst = monitor.worst(came).unwrap();
            prop_assert_eq!(worst.direct.flows, left_in(period, came, left));
            prop_assert_eq!(worst.indirect.flows, left_in(period, Nanos(0), came));
            prop_assert_eq!(worst.original.flows, original(period, victim));
            prop_assert_eq!(worst.original.bytes, period[victim].backlog_in.bytes.0);
        }
        prop_assert!(remembered.next().is_none());
        let stats = monitor.stats();
        prop_assert_eq!((stats.departures, stats.periods), (departures.len() as u64, periods.len() as u64));
        prop_assert_eq!((stats.congested, stats.disordered), (congested, 0));
        // The current period is known, too, congested or not.
        let lasting = periods[periods.len() - 1];
        let indirect = monitor.indirect(lasting[lasting.len() - 1].enqueued).unwrap();
        prop_assert_eq!(indirect.flows, left_in(lasting, Nanos(0), lasting[lasting.len() - 1].enqueued));
    }

    /// Departures in any order cause no panic, and the memory stays the same.
    #[test]
    fn departures_in_any_order_are_accepted(
        departures in prop::collection::vec((any::<(u64, u64, u64, u64, u32)>(), any::<bool>()), 1..300), tau in 0..9u64
    ) {
        let params = MonitorParams {
            tau: Nanos(tau),
            windows: WindowsParams { cell: Nanos(7), windows: 4, flows: 3, levels: 3, seed: 1 },
            staged: 4,
            levels: 5,
            step: 100,
            periods: 3,
            parts: 4,
            shares: 13,
        };
        let mut monitor = QueueMonitor::new(params.clone()).unwrap();
        let template = fifo(&[(0, 0, 1)])[0];
        for ((enqueued, dequeued, size, backlog, flow), small) in departures {
            let bound = if small { 1_000 } else { u64::MAX };
            let mut departure = template;
            departure.enqueued = Nanos(enqueued % bound);
            departure.dequeued = Nanos(dequeued % bound);
            departure.packet.size = ByteCount(size % bound);
            departure.packet.flow = FlowId(flow % 10);
            departure.backlog_in.bytes = ByteCount(backlog % bound);
            monitor.departed(&departure);
            monitor.left_in(departure.enqueued, departure.dequeued);
            monitor.indirect(departure.enqueued);
            monitor.worst(departure.enqueued);
            monitor.worst_so_far();
            prop_assert_eq!(monitor.memory(), params.memory());
        }
    }
}

#[test]
fn periods_that_are_short_for_their_age_are_forgotten_first() {
    // Nine short periods of three packets, with a long one of twenty in the middle.
    let period = |packets: u64| (0..packets).map(|n| (if n == 0 { 10_000 } else { 0 }, n as u32, 50));
    let lengths = [3, 3, 3, 3, 20, 3, 3, 3, 3, 3];
    let packets: Vec<_> = lengths.into_iter().flat_map(period).collect();
    let monitor = monitored(MonitorParams { periods: 3, ..precise(10) }, &fifo(&packets));
    let kept: Vec<_> = monitor.periods().map(|period| period.packets).collect();
    // The last period is still open.
    assert_eq!(kept, [20, 3, 3]);
    let long = *monitor.periods().next().unwrap();
    let worst = monitor.worst(long.start).unwrap();
    assert_eq!(worst.direct.flows.len(), 19, "its culprits moved with it");
    assert_eq!(worst.direct.bytes, 19 * 50);
}

#[test]
fn an_uncongested_queue_takes_no_room_and_long_uncongested_periods_are_counted() {
    let calm: Vec<_> = (0..100).map(|n| (100, n % 5, 50)).collect();
    let stats = monitored(precise(10), &fifo(&calm)).stats();
    assert_eq!((stats.recorded, stats.periods), (0, 100));
    // The next packet comes when one leaves: the queue is never empty, and no packet waits as long as tau.
    let mut steady: Vec<_> = (0..100).map(|n| (50, n % 5, 50)).collect();
    steady.push((10_000, 0, 50));
    let monitor = monitored(precise(51), &fifo(&steady));
    let stats = monitor.stats();
    assert_eq!((stats.overlong, stats.congested), (u64::from(stats.periods == 2), 0), "{stats:?}");
}

#[test]
fn the_default_stays_within_a_megabyte_and_reaches_back_ten_seconds() {
    let params = MonitorParams::default();
    assert!(params.memory() <= ByteCount(1_000_000), "{}", params.memory());
    assert!(params.windows.reach() >= Nanos(10_000_000_000), "{}", params.windows.reach());
    assert_eq!(QueueMonitor::new(params.clone()).unwrap().memory(), params.memory());
}

#[test]
fn invalid_dimensions_are_refused_with_the_valid_range() {
    let refused = |params: MonitorParams| QueueMonitor::new(params).unwrap_err().to_string();
    let few = MonitorParams { shares: 100, parts: 100, ..MonitorParams::default() };
    assert_eq!(refused(few), "a monitor cannot have 100 culprits that are kept; choose 300 to 16777216");
    assert!(refused(MonitorParams { periods: 0, ..MonitorParams::default() }).contains("0 busy periods"));
    let mut flat = MonitorParams::default();
    flat.windows.levels = 0;
    assert_eq!(refused(flat), "the number of levels must be 1 to 48, not 0");
}
