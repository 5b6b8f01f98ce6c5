//! FQ-CoDel: the properties that RFC 8290 states for flows.

use crate::disciplines::harness::rate;
use proptest::prelude::*;
use queuescope_queue::{
    CodelFlavour, Discipline, Dropped, FqCodel, FqCodelParams, Limit, MarkReason, Outlet, Placement, Sink,
};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};
use std::num::NonZeroU16;

#[derive(Default)]
struct Drops(Vec<u32>);

impl Sink for Drops {
    fn dropped(&mut self, dropped: &Dropped) {
        self.0.push(dropped.packet.flow.0);
    }

    fn marked(&mut self, _packet: &Packet, _reason: MarkReason, _now: Nanos) {}
}

fn queue(params: FqCodelParams) -> FqCodel {
    FqCodel::new(params, Outlet { overhead: 0, rate: rate(), queue: QueueId(0), seed: 1 })
}

fn packet(id: u64, flow: u32, size: u64) -> Packet {
    Packet { id: PacketId(id), flow: FlowId(flow), size: ByteCount(size), class: Class(0), ecn: Ecn::NotEct }
}

/// A flow that sends less than a quantum per round is served before flows with a standing queue.
#[test]
fn a_sparse_flow_is_served_first() {
    let mut queue = queue(FqCodelParams::default());
    let mut drops = Drops::default();
    for id in 0..300 {
        queue.enqueue(packet(id, (id % 3) as u32, 1500), Nanos(0), &mut drops);
    }
    // After a quantum each, their queues are in the list of old queues.
    for _ in 0..6 {
        queue.dequeue(Nanos(0), &mut drops);
    }
    for round in 1..20u64 {
        let now = Nanos(round * 40_000_000);
        queue.enqueue(packet(1000 + round, 9, 100), now, &mut drops);
        let left: Vec<_> = (0..4).map(|_| queue.dequeue(now, &mut drops).unwrap().packet.flow.0).collect();
        assert_eq!(left[0], 9, "{left:?} in round {round}");
    }
    assert!(!drops.0.is_empty() && !drops.0.contains(&9), "{:?}", drops.0);
}

/// A flow cannot stay in the list of new queues by emptying its queue again and again: before it becomes new again, all
/// old queues have had a turn (section 4.2).
#[test]
fn a_queue_that_empties_repeatedly_starves_nobody() {
    let mut queue = queue(FqCodelParams { quantum: ByteCount(1000), ..FqCodelParams::default() });
    let mut drops = Drops::default();
    for id in 0..100 {
        queue.enqueue(packet(id, 0, 1000), Nanos(0), &mut drops);
    }
    let mut served = [0; 2];
    for id in 100..200 {
        // Flow 1 always has one packet when its turn comes.
        queue.enqueue(packet(id, 1, 1000), Nanos(0), &mut drops);
        for _ in 0..2 {
            served[queue.dequeue(Nanos(0), &mut drops).unwrap().packet.flow.index()] += 1;
        }
    }
    assert_eq!(served, [100, 100]);
}

#[test]
fn overload_costs_the_flow_that_causes_it() {
    let mut queue = queue(FqCodelParams { limit: Limit::Packets(100), ..FqCodelParams::default() });
    let mut drops = Drops::default();
    for id in 0..10_000u64 {
        // One packet in ten belongs to one of four other flows.
        let flow = if id % 10 == 9 { 1 + (id / 10 % 4) as u32 } else { 0 };
        queue.enqueue(packet(id, flow, 1000), Nanos(id), &mut drops);
        if id % 2 == 0 {
            queue.dequeue(Nanos(id), &mut drops);
        }
    }
    assert!(drops.0.len() > 4_000 && drops.0.iter().all(|&flow| flow == 0));
}

/// ns-3 searches its queues in the order of their first packets, and a later queue loses only if it has more bytes.
/// Flow 1 has the first packet; flow 0 is served next.
#[test]
fn of_equally_fat_queues_ns3_drops_from_the_one_that_had_its_first_packet_first() {
    let dropped_flows = |flavour| {
        let mut queue = queue(FqCodelParams { limit: Limit::Packets(4), flavour, ..FqCodelParams::default() });
        let mut drops = Drops::default();
        let mut enqueue = |queue: &mut FqCodel, flow| queue.enqueue(packet(0, flow, 1000), Nanos(0), &mut drops);
        for flow in [1, 0, 1, 0] {
            enqueue(&mut queue, flow);
        }
        // Flow 1 sends two packets and uses up its quantum. Flow 0 sends one and keeps a third of its quantum.
        for flow in [1, 1, 0] {
            assert_eq!(queue.dequeue(Nanos(0), &mut Drops::default()).unwrap().packet.flow, FlowId(flow));
        }
        for flow in [1, 1, 0, 2] {
            enqueue(&mut queue, flow);
        }
        drops.0
    };
    assert_eq!(dropped_flows(CodelFlavour::Ns3), [1]);
    assert_eq!([CodelFlavour::Rfc, CodelFlavour::Linux].map(dropped_flows), [[0], [0]]);
}

/// At the end of a transmission ns-3's traffic control requests a packet once more, which makes the queues inactive. A
/// flow that sends after that counts as new; one that sends before does not.
#[test]
fn with_ns3_an_idle_link_makes_the_queues_inactive() {
    let mut drops = Drops::default();
    for (flavour, polls) in [(CodelFlavour::Rfc, false), (CodelFlavour::Linux, false), (CodelFlavour::Ns3, true)] {
        let mut queue = queue(FqCodelParams { flavour, ..FqCodelParams::default() });
        assert!(!queue.polls_when_empty());
        queue.enqueue(packet(0, 0, 100), Nanos(0), &mut drops);
        queue.enqueue(packet(1, 1, 1514), Nanos(0), &mut drops);
        queue.dequeue(Nanos(0), &mut drops).unwrap();
        assert!(!queue.polls_when_empty(), "one packet is in the queue");
        queue.dequeue(Nanos(0), &mut drops).unwrap();
        assert_eq!(queue.polls_when_empty(), polls);
        if polls {
            assert!(queue.dequeue(Nanos(0), &mut drops).is_none());
            assert!(!queue.polls_when_empty(), "the empty queue has been polled");
        }
        queue.enqueue(packet(2, 0, 100), Nanos(0), &mut drops);
        assert_eq!(queue.stats().new_flows, if polls { 3 } else { 2 });
    }
}

#[test]
fn flows_placed_by_number_do_not_share_a_queue() {
    let active = |placement| {
        let queues = NonZeroU16::new(16).unwrap();
        let mut queue = queue(FqCodelParams { queues, placement, ..FqCodelParams::default() });
        for flow in 100..116 {
            queue.enqueue(packet(0, flow, 1000), Nanos(0), &mut Drops::default());
        }
        // The seventeenth flow shares the queue of the first.
        queue.enqueue(packet(0, 116, 1000), Nanos(0), &mut Drops::default());
        queue.stats().new_flows
    };
    assert_eq!(active(Placement::Number), 16);
    assert!(active(Placement::Hash) < 16, "{}", active(Placement::Hash));
}

proptest! {
    /// While two flows have packets, their sent bytes differ by at most two quanta and two packets. No packet waits
    /// long enough for CoDel to drop.
    #[test]
    fn flows_with_packets_get_equal_bytes(
        quantum in 100..3000u64, sizes in prop::collection::vec((40..1500u64, 40..1500u64), 120)
    ) {
        let mut queue = queue(FqCodelParams { quantum: ByteCount(quantum), ..FqCodelParams::default() });
        let mut drops = Drops::default();
        let mut waiting = [0u32; 2];
        for (first, second) in sizes {
            queue.enqueue(packet(0, 0, first), Nanos(0), &mut drops);
            queue.enqueue(packet(0, 1, second), Nanos(0), &mut drops);
            waiting = waiting.map(|waiting| waiting + 1);
        }
        let mut sent = [0i64; 2];
        while waiting[0] > 0 && waiting[1] > 0 {
            let left = queue.dequeue(Nanos(0), &mut drops).unwrap().packet;
            sent[left.flow.index()] += left.size.0 as i64;
            waiting[left.flow.index()] -= 1;
            prop_assert!((sent[0] - sent[1]).unsigned_abs() <= 2 * quantum + 2 * 1500);
        }
    }
}
