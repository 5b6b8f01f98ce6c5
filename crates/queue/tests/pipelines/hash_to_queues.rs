//! The program that spreads flows over the queues of a port.

use crate::pipelines::driver::{Switch, headers, outlets, packet};
use proptest::prelude::*;
use queuescope_queue::{HashToQueues, HashToQueuesParams, Limit};
use queuescope_wire::{FlowId, Nanos, QueueId};
use std::collections::BTreeMap;

/// A flow that sends ten times its share affects only flows in its own queue. Round robin gives the other queues their
/// share.
#[test]
fn a_flood_fills_only_its_own_queue() {
    let program = HashToQueues::new(HashToQueuesParams { queues: 4, seed: 3, ..HashToQueuesParams::default() });
    let flows = [0, 1, 2, 3].map(|queue| (0..).find(|flow| program.queue(FlowId(*flow)) == queue).unwrap());
    let ports = outlets(&[12_000_000], 4);
    let mut switch = Switch::new(program, &ports, 4, Limit::Packets(10), Nanos(1_000));
    // The link sends 1000 packets a second. Flow 0 sends 2500 a second, the others 200 each.
    let mut id = 0;
    for step in 0..25_000u64 {
        let time = Nanos(step * 400_000);
        switch.offer(time, 0, packet(id, flows[0], 1500), headers(0, 0));
        id += 1;
        if step % 25 < 6 && step % 2 == 0 {
            let flow = flows[1 + (step % 25 / 2) as usize];
            for _ in 0..2 {
                switch.offer(time, 0, packet(id, flow, 1500), headers(0, 0));
                id += 1;
            }
        }
    }
    switch.run_out();
    assert!(switch.log.dropped.iter().all(|dropped| dropped.packet.flow.0 == flows[0]));
    assert_eq!(flows[1..].iter().map(|flow| switch.log.sent_of(*flow)).collect::<Vec<_>>(), [2000; 3]);
    let flood = switch.log.sent_of(flows[0]);
    assert!((4_000..4_020).contains(&flood), "{flood}");
    let spread = switch.program.stats().spread;
    assert_eq!(spread, id);
}

proptest! {
    /// All packets of a flow enter one queue and keep their order.
    #[test]
    fn a_flow_keeps_its_queue_and_its_order(
        arrivals in prop::collection::vec((0..2_000u64, 0..20u32, 40..1500u64), 0..200), queues in 1..9u16, seed in any::<u64>()
    ) {
        let program = HashToQueues::new(HashToQueuesParams { queues, seed, ..HashToQueuesParams::default() });
        let ports = outlets(&[10_000_000_000], queues);
        let mut switch = Switch::new(program, &ports, queues, Limit::Packets(5), Nanos(1_000));
        let mut time = 0;
        for (id, (gap, flow, size)) in arrivals.iter().enumerate() {
            time += gap;
            switch.offer(Nanos(time), 0, packet(id as u64, *flow, *size), headers(0, 0));
        }
        switch.run_out();
        let mut seen = BTreeMap::<u32, (u64, QueueId)>::new();
        for sent in &switch.log.sent {
            let departure = sent.departure;
            let before = seen.insert(departure.packet.flow.0, (departure.packet.id.0, departure.queue));
            prop_assert!(before.is_none_or(|(id, queue)| id < departure.packet.id.0 && queue == departure.queue));
            prop_assert_eq!(departure.queue.0, switch.program.queue(departure.packet.flow));
        }
    }
}
