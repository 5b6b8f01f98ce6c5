//! The exact culprits compared with the plain definitions, on random streams with many equal times, and on worked examples.

use crate::culprits_reference as reference;

use proptest::prelude::*;
use queuescope_meter::{Amount, Culprits, Departed, Dropped, LogError, QueueLog, Ranking};
use queuescope_wire::{Class, FlowId, Nanos, PacketId, Rate};
use reference::{Reference, arrival, of_drop};
use std::ops::Range;

fn departed(packet: u64, flow: u32, class: u8, size: u32, times: Range<u64>) -> Departed {
    let (enqueued, dequeued) = (Nanos(times.start), Nanos(times.end));
    Departed { packet: PacketId(packet), flow: FlowId(flow), class: Class(class), size, enqueued, dequeued }
}

fn log_of(departures: &[Departed], most: usize) -> QueueLog {
    let mut log = QueueLog::keeping(most);
    departures.iter().for_each(|departed| log.record(departed).unwrap());
    log
}

const A: FlowId = FlowId(0);
const B: FlowId = FlowId(1);
const V: FlowId = FlowId(2);

fn amounts(ranking: &Ranking<FlowId>) -> Vec<(FlowId, u64, u64)> {
    ranking.parts.iter().map(|(flow, amount)| (*flow, amount.packets, amount.bytes)).collect()
}

/// The worked example of docs/explanation/culprits.md: packets of 1000 bytes, one a millisecond. A's burst of four comes at 0. Then B just
/// keeps pace with the link, and V's packet comes at 5 ms.
fn worked_example() -> QueueLog {
    let ms = 1_000_000;
    let burst = (0..4).map(|n| departed(n, A.0, 0, 1000, 0..n * ms));
    let steady = (4..8).map(|n| departed(n, B.0, 0, 1000, (n - 3) * ms..n * ms));
    let victim = departed(8, V.0, 0, 1000, 5 * ms..8 * ms);
    let mut log = log_of(&burst.chain(steady).chain([victim]).collect::<Vec<_>>(), usize::MAX);
    let dropped = Dropped { packet: PacketId(9), flow: V, class: Class(0), size: 1000, at: Nanos(5 * ms) };
    log.record_drop(&dropped).unwrap();
    log
}

#[test]
fn the_three_kinds_have_different_culprits() {
    let log = worked_example();
    let culprits = log.of_packet(PacketId(8)).unwrap();
    assert_eq!(amounts(&culprits.direct), [(B, 3, 3000)], "B left while V waited");
    assert_eq!(amounts(&culprits.indirect), [(A, 4, 4000), (B, 1, 1000)], "all earlier departures");
    assert_eq!(amounts(&culprits.original), [(A, 3, 3000)], "but it was A's burst that raised the queue");
    let standing = culprits.standing;
    assert_eq!((standing.at, standing.since), (Nanos(5_000_000), Nanos(0)));
    assert_eq!((standing.backlog.packets, standing.backlog.bytes.0), (3, 3000));
    assert_eq!((culprits.victims.packets, culprits.victims.waited), (1, Nanos(3_000_000)));
    assert!(culprits.complete);

    let drops: Vec<_> = log.drops(Nanos(0)..Nanos::MAX).collect();
    assert_eq!(log.find_drop(PacketId(9)), Some(drops[0]));
    let culprits = log.of_drop(&drops[0]);
    assert_eq!(amounts(&culprits.direct), [(B, 3, 3000), (V, 1, 1000)], "V came just before");
    assert_eq!(amounts(&culprits.original), [(A, 3, 3000), (V, 1, 1000)]);

    let range = log.of_range(Nanos(1_000_000)..Nanos(3_000_000)).unwrap();
    assert_eq!(amounts(&range.direct), [(A, 2, 2000)]);
    assert_eq!(amounts(&range.indirect), [(A, 1, 1000)]);
    assert_eq!(amounts(&range.original), [(A, 3, 3000), (B, 1, 1000)], "deepest as B's first came, at 1 ms");
    assert_eq!(range.victims.packets, 4, "A's last two and B's first two");
}

/// A strict priority: low (class 1) comes first, and waits for all of high (class 0) that comes later.
#[test]
fn a_strict_priority_shows_in_the_overtakers() {
    let log = log_of(
        &[
            departed(0, A.0, 1, 1000, 0..0),
            departed(2, B.0, 0, 1000, 500..1000),
            departed(3, B.0, 0, 1000, 1500..2000),
            departed(4, B.0, 0, 1000, 2500..3000),
            departed(1, V.0, 1, 1000, 100..4000),
        ],
        usize::MAX,
    );
    let low = log.find(PacketId(1)).unwrap();
    let culprits = log.of_departure(&low).unwrap();
    assert_eq!(culprits.direct.classes, [(Class(0), Amount { bytes: 3000, packets: 3 })]);
    assert_eq!(log.overtakers(&low).unwrap(), culprits.direct);
    assert_eq!(culprits.original.total.bytes, 0, "the queue was empty as it came");
    let sending = log.on_link(low.enqueued, Rate::from_bits_per_second(8_000_000_000).unwrap(), 0).unwrap();
    assert_eq!((sending.departed.packet, sending.remaining), (PacketId(0), Nanos(900)));
    let high = log.of_packet(PacketId(3)).unwrap();
    assert_eq!((high.direct.total.packets, high.indirect.total.packets), (0, 1), "high waited only for the link");
    assert_eq!(amounts(&high.original), [(V, 1, 1000)], "though low stood in the sum of the queue");
}

#[test]
fn records_that_cannot_be_stored_are_errors() {
    let mut log = log_of(&[departed(0, 0, 0, 1, 5..9)], usize::MAX);
    let early = log.record(&departed(1, 0, 0, 1, 2..8)).unwrap_err();
    assert!(early.to_string().contains("packet 1") && early.to_string().contains("before the last"), "{early}");
    let backwards = log.record(&Departed { dequeued: Nanos(11), ..departed(2, 0, 0, 1, 12..12) }).unwrap_err();
    assert_eq!(backwards, LogError::Backwards { packet: 2, enqueued: 12, dequeued: 11 });
    assert_eq!((log.len(), log.find(PacketId(2))), (1, None));
}

/// A packet that leaves at the very start of a range did not wait in it, but was part of the deepest queue.
#[test]
fn a_range_includes_departures_at_its_start() {
    let departures = [
        departed(0, A.0, 0, 4, 13..13),
        departed(1, A.0, 0, 1, 13..13),
        departed(2, B.0, 0, 2, 14..14),
        departed(3, V.0, 0, 0, 14..16),
    ];
    let during = Nanos(13)..Nanos(15);
    let all = log_of(&departures, usize::MAX).of_range(during.clone()).unwrap();
    assert_eq!((all.standing.at, all.standing.backlog.bytes.0, all.complete), (Nanos(13), 5, true));
    assert_eq!(amounts(&all.original), [(A, 2, 5)]);
    let some = log_of(&departures, 2).of_range(during.clone()).unwrap();
    assert_eq!((some.standing.at, some.standing.backlog.bytes.0, some.complete), (Nanos(14), 2, false));
    // The query of a flow is about the arrival of its longest packet: everything for that is remembered.
    let flow = log_of(&departures, 2).of_flows(|flow| flow == V, during.clone()).unwrap();
    assert!(flow.complete);
    assert_eq!(Some(flow), log_of(&departures, usize::MAX).of_flows(|flow| flow == V, during));
}

/// Packets through one server: `(gap, service, size, flow, class)` for each.
fn fifo() -> impl Strategy<Value = Vec<Departed>> {
    prop::collection::vec((0..4u64, 0..4u64, 0..6u32, 0..4u32, 0..2u8), 1..40).prop_map(|packets| {
        let (mut now, mut free) = (0, 0);
        let serve = |(n, (gap, service, size, flow, class))| {
            now += gap;
            let dequeued = now.max(free);
            free = dequeued + service;
            departed(n as u64, flow, class, size, now..dequeued)
        };
        packets.into_iter().enumerate().map(serve).collect()
    })
}

/// Departures in any order, with few distinct times and many packets.
fn disorder() -> impl Strategy<Value = Vec<Departed>> {
    let packets = prop::collection::vec((0..50u64, 0..12u64, 0..6u32, 0..4u32, 0..2u8), 1..40);
    packets.prop_map(|packets| {
        let packet = |(n, (enqueued, sojourn, size, flow, class))| {
            departed(n as u64, flow, class, size, enqueued..enqueued + sojourn)
        };
        let mut departures: Vec<_> = packets.into_iter().enumerate().map(packet).collect();
        departures.sort_by_key(|departed| departed.dequeued);
        departures
    })
}

fn streams() -> impl Strategy<Value = Vec<Departed>> {
    prop_oneof![fifo(), disorder()]
}

fn check_facts(culprits: &Culprits<FlowId>, reference: &Reference, moment: reference::Arrival) {
    assert_eq!(culprits.standing.at.0, moment.0);
    assert_eq!(culprits.standing.backlog.bytes.0, reference.depth(moment));
    assert_eq!(culprits.standing.backlog.packets, reference.standing(moment).count() as u64);
    assert_eq!(culprits.standing.since, reference.since(moment));
    assert_eq!(culprits.original, reference.original(moment));
    assert_eq!(culprits.original.total.bytes, culprits.standing.backlog.bytes.0, "each level has an owner");
    assert!(culprits.complete);
}

fn check_set(culprits: Option<Culprits<FlowId>>, reference: &Reference, victims: &[usize], during: &Range<Nanos>) {
    assert_eq!(culprits.is_some(), !victims.is_empty());
    let Some(culprits) = culprits else { return };
    assert_eq!(culprits.direct, reference.rank_of(&reference.direct_of_all(victims, during)));
    assert_eq!(culprits.indirect, reference.rank_of(&reference.indirect_of_all(victims, during)));
    assert_eq!(culprits.victims.packets, victims.len() as u64);
    let victims = || victims.iter().map(|v| &reference.0[*v]);
    assert_eq!(culprits.victims.bytes, victims().map(|v| u64::from(v.size)).sum::<u64>());
    let waited = victims().map(|v| (v.dequeued.min(during.end) - v.enqueued.max(during.start)).0).sum();
    assert_eq!(culprits.victims.waited, Nanos(waited));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn culprits_of_a_packet_match_the_definition(departures in streams()) {
        let (log, reference) = (log_of(&departures, usize::MAX), Reference(&departures));
        for (index, victim) in departures.iter().enumerate() {
            prop_assert_eq!(log.find(victim.packet), Some(*victim));
            let culprits = log.of_packet(victim.packet).unwrap();
            prop_assert_eq!(&culprits.direct, &reference.rank_of(&reference.direct(index)));
            prop_assert_eq!(log.direct(victim).unwrap(), culprits.direct.clone());
            let indirect = reference.indirect(arrival(victim), victim.enqueued.0);
            prop_assert_eq!(&culprits.indirect, &reference.rank_of(&indirect));
            prop_assert_eq!(culprits.victims.longest, Some(*victim));
            check_facts(&culprits, &reference, arrival(victim));
            let later = reference.direct(index).into_iter().filter(|j| arrival(&departures[*j]) > arrival(victim));
            prop_assert_eq!(log.overtakers(victim), Some(reference.rank_of(&later.collect::<Vec<_>>())));
        }
    }

    /// In a FIFO queue, the departures while a packet waited are the backlog that it met.
    #[test]
    fn in_a_fifo_direct_culprits_are_the_backlog(departures in fifo()) {
        let log = log_of(&departures, usize::MAX);
        for victim in &departures {
            let culprits = log.of_packet(victim.packet).unwrap();
            let Amount { bytes, packets } = culprits.direct.total;
            let backlog = culprits.standing.backlog;
            prop_assert_eq!((bytes, packets), (backlog.bytes.0, backlog.packets));
            prop_assert_eq!(log.overtakers(victim).unwrap().total, Amount::default());
        }
    }

    #[test]
    fn culprits_of_a_drop_match_the_definition(departures in streams(), times in prop::collection::vec(0..70u64, 0..6)) {
        let (mut log, reference) = (log_of(&departures, usize::MAX), Reference(&departures));
        let mut times = times;
        times.sort_unstable();
        for (n, at) in times.into_iter().enumerate() {
            // Some come before others of the same nanosecond, some after.
            let packet = PacketId(if n % 2 == 0 { 15 } else { 100 + n as u64 });
            let dropped = Dropped { packet, flow: FlowId(9), class: Class(1), size: 7, at: Nanos(at) };
            log.record_drop(&dropped).unwrap();
            prop_assert_eq!(log.drops(Nanos(at)..Nanos(at + 1)).last(), Some(dropped));
            let (culprits, moment) = (log.of_drop(&dropped), of_drop(&dropped));
            let standing = reference::rank(reference.standing(moment).map(|j| (j, u64::from(j.size))));
            prop_assert_eq!(&culprits.direct, &standing);
            let indirect = if standing.total.packets > 0 { reference.indirect(moment, at) } else { Vec::new() };
            prop_assert_eq!(&culprits.indirect, &reference.rank_of(&indirect));
            check_facts(&culprits, &reference, moment);
        }
    }

    #[test]
    fn culprits_of_flows_and_ranges_match_the_definition(
        departures in streams(), from in 0..70u64, length in prop_oneof![0..20u64, Just(1000)], flow in 0..4u32
    ) {
        let (log, reference) = (log_of(&departures, usize::MAX), Reference(&departures));
        let during = Nanos(from)..Nanos(from + length);
        let range = log.of_range(during.clone());
        if let Some(culprits) = &range {
            check_facts(culprits, &reference, reference.deepest(&during));
        }
        check_set(range, &reference, &reference.victims(|_| true, &during), &during);

        let own = |other: FlowId| other.0 == flow;
        let (flows, victims) = (log.of_flows(own, during.clone()), reference.victims(own, &during));
        let sojourn = |v: &Departed| v.dequeued - v.enqueued;
        let longest = victims.iter().map(|v| departures[*v]).reduce(|a, b| if sojourn(&b) > sojourn(&a) { b } else { a });
        prop_assert_eq!(log.longest_wait(own, during.clone()), longest);
        if let (Some(culprits), Some(longest)) = (&flows, &longest) {
            prop_assert_eq!(culprits.victims.longest, Some(*longest));
            check_facts(culprits, &reference, arrival(longest));
        }
        check_set(flows, &reference, &victims, &during);

        // Victims that differ only in their numbers.
        let is_victim = |packet: PacketId| packet.0 % 4 == u64::from(flow);
        let victims = reference.victims(|_| true, &during);
        let victims: Vec<_> = victims.into_iter().filter(|v| is_victim(departures[*v].packet)).collect();
        let chosen = log.of_victims(|departed| is_victim(departed.packet), during.clone());
        check_set(chosen, &reference, &victims, &during);
    }

    /// A log that forgets marks answers as incomplete if that matters: an answer that it calls complete is the same as with a log that forgets
    /// nothing.
    #[test]
    fn incomplete_answers_are_marked(
        departures in streams(), most in 1..30usize, from in 0..60u64, length in 0..30u64, flow in 0..4u32
    ) {
        let (all, some) = (log_of(&departures, usize::MAX), log_of(&departures, most));
        let forgotten = departures.len().saturating_sub(most);
        prop_assert_eq!((some.len(), some.forgotten()), (departures.len() - forgotten, forgotten as u64));
        for victim in &departures[forgotten..] {
            let culprits = some.of_packet(victim.packet).unwrap();
            if culprits.complete {
                prop_assert_eq!(Some(culprits), all.of_packet(victim.packet));
            } else {
                prop_assert!(forgotten > 0);
            }
        }
        let during = Nanos(from)..Nanos(from + length);
        if let Some(culprits) = some.of_range(during.clone()).filter(|culprits| culprits.complete) {
            prop_assert_eq!(Some(culprits), all.of_range(during.clone()));
        }
        let own = |other: FlowId| other.0 == flow;
        if let Some(culprits) = some.of_flows(own, during.clone()).filter(|culprits| culprits.complete) {
            prop_assert_eq!(Some(culprits), all.of_flows(own, during.clone()));
        }
        let dropped = Dropped { packet: PacketId(15), flow: FlowId(9), class: Class(1), size: 7, at: Nanos(from) };
        let culprits = some.of_drop(&dropped);
        if culprits.complete {
            prop_assert_eq!(culprits, all.of_drop(&dropped));
        }
    }

    /// The parts of a coarser label are the sums of its flows, however they are computed.
    #[test]
    fn coarser_labels_are_sums(departures in streams()) {
        let log = log_of(&departures, usize::MAX);
        let coarse: Vec<_> = departures.iter().map(|d| Departed { flow: FlowId(d.flow.0 / 2), ..*d }).collect();
        let coarse = log_of(&coarse, usize::MAX);
        for victim in &departures {
            let (fine, coarse) = (log.of_packet(victim.packet).unwrap(), coarse.of_packet(victim.packet).unwrap());
            let by = fine.by(|flow| FlowId(flow.0 / 2));
            prop_assert_eq!((by.direct, by.indirect, by.original), (coarse.direct, coarse.indirect, coarse.original));
        }
    }
}
