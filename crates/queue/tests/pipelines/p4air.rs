//! P4air: groups, queues and actions, step by step.

use crate::pipelines::driver::{Log, Switch, headers, outlets, packet};
use proptest::prelude::*;
use queuescope_queue::{
    ActEvery, ActOn, Assignment, DropReason, FlowAction, FlowTable, GroupActions, Headers, Ingress, Limit, Newest,
    P4air, P4airParams, Pipeline, Port, Queueing, RttFilter, RttSource, Scheduler, ShareForm, Start,
};
use queuescope_sketch::{FingerprintParams, FlowGroup, RatePattern};
use queuescope_tcp::{Flags, Segment, Timestamps};
use queuescope_wire::{ByteCount, Class, Ecn, FlowId, Nanos, Packet};

/// A tick of the switch's clock, 1024 ns.
const TICK: u64 = 1 << 10;
/// The round-trip time of all flows: 12 000 ticks, some 12 ms.
const RTT: u64 = 12_000 * TICK;

/// 1500-byte packets take 1 ms: 12 fill the link in a round trip.
const RATE: u64 = 12_000_000;

fn params() -> P4airParams {
    P4airParams { share: ShareForm::Exact, table: FlowTable::Exact, ..P4airParams::default() }
}

/// Port 0 is managed, and ACKs leave through port 1.
struct Bench {
    switch: Switch<P4air>,
    ids: u64,
}

impl Bench {
    fn new(params: P4airParams) -> Self {
        let ports = outlets(&[RATE, 1_000_000_000], 1);
        let program = P4air::new(params, &ports).unwrap();
        let queues = program.queues(Limit::Packets(1000)).queues.get();
        Self { switch: Switch::new(program, &ports, queues, Limit::Packets(1000), Nanos(1_000)), ids: 0 }
    }

    fn offer(&mut self, at: u64, port: u16, flow: u32, headers: Headers, size: u64) {
        self.switch.offer(Nanos(at), port, packet(self.ids, flow, size), headers);
        self.ids += 1;
    }

    /// The handshake of `flow` from `at` to `at + RTT`.
    fn open(&mut self, at: u64, flow: u32) {
        let segment = |flags| Headers {
            tcp: Some(Segment { flags, window: 1 << 20, ..Segment::default() }),
            ..headers(flow, 1000 + flow)
        };
        self.offer(at, 0, flow, segment(Flags::SYN), 60);
        self.offer(at + RTT, 0, flow, segment(Flags::ACK), 52);
    }

    /// `count` packets of data, spread over `time` from `at`.
    fn data(&mut self, at: u64, time: u64, count: u64, flow: u32) {
        for n in 0..count {
            let tcp = Segment { length: 1448, window: 1 << 20, flags: Flags::ACK, ..Segment::default() };
            self.offer(at + n * time / count, 0, flow, Headers { tcp: Some(tcp), ..headers(flow, 1000 + flow) }, 1500);
        }
    }

    fn run(&mut self, until: u64) {
        self.switch.run_until(Nanos(until));
    }

    fn group(&self, flow: u32) -> Option<FlowGroup> {
        self.switch.program.group(FlowId(flow))
    }

    /// The queues that the flow's packets left. While a flow moves, it has packets in both.
    fn queues(&self, flow: u32) -> Vec<u16> {
        let sent = self.switch.log.sent.iter().filter(|sent| sent.departure.packet.flow.0 == flow);
        let mut queues: Vec<u16> = sent.map(|sent| sent.departure.queue.0).collect();
        queues.sort_unstable();
        queues.dedup();
        queues
    }
}

#[test]
fn the_handshake_gives_the_round_trip_time() {
    let mut bench = Bench::new(params());
    bench.open(0, 1);
    bench.run(RTT);
    assert_eq!(bench.switch.program.rtt(FlowId(1)), Some(Nanos(RTT)));
    assert_eq!(bench.group(1), Some(FlowGroup::Mouse));
}

#[test]
fn slow_start_ends_at_the_share_and_one_packet_is_dropped() {
    let mut bench = Bench::new(params());
    bench.open(0, 1);
    // 12 packets fill the link, but a round trip begins with the ACK of the handshake.
    bench.data(RTT + TICK, RTT / 2, 11, 1);
    bench.run(2 * RTT - 1);
    assert_eq!((bench.group(1), bench.switch.log.dropped.len()), (Some(FlowGroup::Mouse), 0));
    bench.data(2 * RTT - 1, 1, 1, 1);
    bench.run(3 * RTT);
    assert_eq!(bench.group(1), Some(FlowGroup::DelayBased));
    assert_eq!(bench.switch.log.dropped_for(DropReason::SlowStart), 1);
    assert_eq!(bench.switch.program.stats().slow_start_share, 1);
}

#[test]
fn slow_start_also_ends_when_a_flow_sends_less_and_then_nothing_is_dropped() {
    let mut bench = Bench::new(params());
    bench.open(0, 1);
    for (round, count) in [(1, 8), (2, 10), (3, 9), (4, 1)] {
        bench.data(round * RTT + TICK, RTT / 2, count, 1);
    }
    bench.run(6 * RTT);
    assert_eq!(bench.group(1), Some(FlowGroup::DelayBased));
    assert_eq!((bench.switch.program.stats().slow_start_less, bench.switch.log.dropped.len()), (1, 0));
}

#[test]
fn a_share_is_the_link_divided_by_the_long_lived_flows() {
    let mut bench = Bench::new(params());
    for flow in 1..=3 {
        let start = u64::from(flow) * 10 * RTT;
        bench.open(start, flow);
        // The first flow fills the link, the second half of it, the third a third.
        bench.data(start + RTT + TICK, RTT / 2, 12 / u64::from(flow), flow);
        bench.run(start + 2 * RTT);
        assert_eq!(bench.group(flow), Some(FlowGroup::DelayBased), "{flow}");
    }
    assert_eq!(bench.switch.log.dropped_for(DropReason::SlowStart), 3);
}

/// A flow whose queue grows in each round trip.
fn growing(params: P4airParams, rounds: u64) -> Bench {
    let mut bench = Bench::new(params);
    bench.open(0, 1);
    bench.data(RTT + TICK, RTT / 2, 12, 1);
    // The link sends 12 a round trip: the queue grows by 3.
    for round in 2..2 + rounds {
        bench.data(round * RTT + TICK, RTT - 2 * TICK, 15, 1);
    }
    bench.run((4 + rounds) * RTT);
    bench
}

#[test]
fn a_flow_that_fills_the_queue_becomes_loss_delay_and_then_loss_based() {
    let idle = P4airParams { actions: GroupActions::IDLE, ..params() };
    for (rounds, group) in
        [(3, FlowGroup::DelayBased), (8, FlowGroup::LossDelay), (15, FlowGroup::LossDelay), (20, FlowGroup::LossBased)]
    {
        let bench = growing(idle.clone(), rounds);
        assert_eq!(bench.group(1), Some(group), "{rounds}");
        bench.switch.check();
    }
    let bench = growing(idle, 25);
    let groups: Vec<_> = bench.switch.program.moves().iter().map(|moved| moved.to).collect();
    assert_eq!(groups, [FlowGroup::DelayBased, FlowGroup::LossDelay, FlowGroup::LossBased]);
    assert_eq!(bench.switch.log.fed_back, 2, "each change at egress sends one copy to ingress");
    // The SYN is an ant. Mice, then one queue in each group; a queue goes to a group that is full.
    assert_eq!(bench.queues(1), [0, 1, 2, 28, 29]);
    assert_eq!(bench.switch.program.queues_of(Port(0), FlowGroup::LossBased), Some((29..31, 1)));
}

#[test]
fn the_newest_flow_of_a_queue_changes_its_group_first() {
    for newest in [Newest::OfQueue, Newest::OfGroup, Newest::Any] {
        // 6 queues are one for each group.
        let params = P4airParams { queues: 6, start: Start::Even, actions: GroupActions::IDLE, newest, ..params() };
        let mut bench = Bench::new(params);
        for flow in [1, 2] {
            bench.open(0, flow);
            bench.data(RTT + u64::from(flow) * TICK, RTT / 2, 12, flow);
        }
        // 16 packets a round trip on a link for 12.
        for round in 2..12 {
            for flow in [1, 2] {
                bench.data(round * RTT + u64::from(flow) * TICK, RTT - 4 * TICK, 8, flow);
            }
        }
        bench.run(13 * RTT);
        let moves = bench.switch.program.moves().iter().filter(|moved| moved.to == FlowGroup::LossDelay);
        let moves: Vec<_> = moves.map(|moved| (moved.flow.0, moved.at.0)).collect();
        let together = |moves: &[(u32, u64)]| moves.len() == 2 && moves[1].1 - moves[0].1 < RTT / 2;
        assert!(!moves.is_empty());
        assert_eq!(together(&moves), newest == Newest::Any, "{newest:?}: {moves:?}");
        assert!(newest == Newest::Any || moves[0].0 == 2, "{newest:?}: {moves:?}");
    }
}

#[test]
fn a_flow_whose_rate_pulses_becomes_model_based() {
    let mut bench = Bench::new(P4airParams { actions: GroupActions::IDLE, ..params() });
    bench.open(0, 1);
    bench.data(RTT + TICK, RTT / 2, 12, 1);
    for round in 2..60 {
        let count = match round % 8 {
            0 => 16,
            1 => 8,
            _ => 12,
        };
        bench.data(round * RTT + TICK, RTT - 2 * TICK, count, 1);
    }
    bench.run(62 * RTT);
    assert_eq!(bench.group(1), Some(FlowGroup::ModelBased));
    assert_eq!(bench.switch.program.stats().model_based, 1);
}

/// A flow of `group` that sends twice its share in each of `rounds` round trips: a second flow is there to halve it.
fn above_share(actions: GroupActions, act_every: ActEvery, rounds: u64) -> Bench {
    let mut bench = Bench::new(P4airParams { actions, act_every, ..params() });
    for flow in [1, 2] {
        bench.open(0, flow);
        bench.data(RTT + u64::from(flow) * TICK, RTT / 2, 12, flow);
    }
    for round in 2..2 + rounds {
        bench.data(round * RTT + TICK, RTT - 4 * TICK, 12, 1);
        bench.data(round * RTT + 2 * TICK, RTT - 4 * TICK, 1, 2);
        let ack = Segment { ack: 1, window: 1 << 20, flags: Flags::ACK, ..Segment::default() };
        for flow in [1, 2] {
            bench.offer(
                round * RTT + RTT - 3 * TICK,
                1,
                1000 + flow,
                Headers { tcp: Some(ack), ..headers(9, flow) },
                52,
            );
        }
    }
    bench.run((4 + rounds) * RTT);
    bench
}

#[test]
fn actions_apply_once_in_a_round_trip_or_to_each_packet_above_the_share() {
    let drop = GroupActions::all(FlowAction::Drop);
    let bench = above_share(drop, ActEvery::RoundTrip, 3);
    assert_eq!(bench.switch.log.dropped_for(DropReason::FairShare), 3);
    // The share is 6 of the 12.
    let bench = above_share(drop, ActEvery::Packet, 3);
    assert_eq!(bench.switch.log.dropped_for(DropReason::FairShare), 3 * 6);
    assert_eq!(bench.switch.program.stats().above_share, 3);
    assert!(
        bench
            .switch
            .log
            .dropped
            .iter()
            .all(|dropped| { dropped.packet.flow.0 == 1 || dropped.reason == DropReason::SlowStart })
    );
    let bench = above_share(GroupActions::IDLE, ActEvery::Packet, 3);
    assert_eq!(bench.switch.log.dropped_for(DropReason::FairShare), 0);
    assert_eq!(bench.switch.program.stats().above_share, 3);
}

#[test]
fn a_delayed_packet_passes_ingress_as_often_as_configured_and_is_counted_once() {
    let bench = above_share(GroupActions::all(FlowAction::Delay), ActEvery::RoundTrip, 3);
    assert_eq!(bench.switch.log.recirculated, 3 * 8);
    assert_eq!(bench.switch.program.stats().delayed, 3);
    let all = bench.switch.log.sent.iter().filter(|sent| sent.departure.packet.flow.0 == 1).count();
    let dropped = bench.switch.log.dropped.len();
    assert_eq!(all + dropped, 2 + 12 + 3 * 12 + usize::from(dropped == 2), "nothing is lost or sent twice");
    bench.switch.check();
}

#[test]
fn the_receive_window_is_lowered_to_the_share_of_a_flow_that_is_above_it() {
    let bench = above_share(GroupActions::all(FlowAction::Window), ActEvery::RoundTrip, 3);
    let windows = |flow: u32| -> Vec<u64> {
        let acks = bench.switch.log.sent.iter().filter(|sent| sent.departure.packet.flow.0 == 1000 + flow);
        acks.map(|sent| sent.headers.tcp.unwrap().window).collect()
    };
    assert_eq!(windows(1), [6 * 1500; 3]);
    assert_eq!(windows(2), [1 << 20; 3]);
    assert_eq!(bench.switch.program.stats().lowered, 3);
}

#[test]
fn shares_by_shift_are_at_most_twice_the_exact_ones() {
    // 12 packets fill the link: a shift of 19 for 1 ms, which is 23 packets.
    for (sensitivity, share) in [(0, 23), (1, 11), (2, 5)] {
        let mut bench = Bench::new(P4airParams { share: ShareForm::Shift { sensitivity }, ..params() });
        bench.open(0, 1);
        bench.data(RTT + TICK, RTT / 2, share - 1, 1);
        bench.run(2 * RTT - 1);
        assert_eq!(bench.group(1), Some(FlowGroup::Mouse), "{sensitivity}");
        bench.data(2 * RTT - 1, 1, 1, 1);
        bench.run(2 * RTT);
        assert_eq!(bench.group(1), Some(FlowGroup::DelayBased), "{sensitivity}");
    }
}

#[test]
fn flows_without_tcp_are_ants_until_they_fill_their_share() {
    let mut bench = Bench::new(params());
    for n in 0..20 {
        bench.offer(n * 50_000_000, 0, 7, headers(7, 1007), 1500);
    }
    bench.run(2_000_000_000);
    assert_eq!((bench.group(7), bench.queues(7)), (Some(FlowGroup::Ant), vec![0]));
    // A flood: the default round trip of 100 ms takes 100 packets.
    for n in 0..150 {
        bench.offer(3_000_000_000 + n * 100_000, 0, 8, headers(8, 1008), 1500);
    }
    bench.run(4_000_000_000);
    assert_eq!(bench.group(8), Some(FlowGroup::DelayBased));
    assert_eq!(bench.switch.log.dropped_for(DropReason::SlowStart), 0);
}

#[test]
fn a_flow_that_has_ended_leaves_its_share_to_the_others() {
    let mut bench = Bench::new(params());
    bench.open(0, 1);
    bench.data(RTT + TICK, RTT / 2, 12, 1);
    bench.run(2 * RTT);
    assert_eq!(bench.switch.program.queues_of(Port(0), FlowGroup::DelayBased).map(|(_, flows)| flows), Some(1));
    let fin = Segment { flags: Flags::FIN | Flags::ACK, window: 1 << 20, ..Segment::default() };
    bench.offer(2 * RTT, 0, 1, Headers { tcp: Some(fin), ..headers(1, 1001) }, 52);
    bench.run(2 * RTT);
    // At once, although packets that are sent again may still come, and find their queue.
    assert_eq!(bench.switch.program.queues_of(Port(0), FlowGroup::DelayBased).map(|(_, flows)| flows), Some(0));
    let queues = bench.queues(1);
    bench.data(2 * RTT + TICK, RTT, 30, 1);
    bench.offer(3 * RTT + TICK, 0, 1, Headers { tcp: Some(fin), ..headers(1, 1001) }, 52);
    bench.run(4 * RTT);
    assert_eq!((bench.queues(1), bench.switch.program.stats().ended), (queues, 1));
    assert_eq!(bench.switch.program.in_queues(Port(0)).map(|counts| counts.iter().sum()), Some(0));
    bench.run(20_000_000_000);
    assert_eq!(bench.group(1), None);
    assert_eq!(bench.switch.program.queues_of(Port(0), FlowGroup::DelayBased).map(|(_, flows)| flows), Some(0));
    assert_eq!(bench.switch.program.next_timer(), None, "an empty table needs no timer");
}

/// The control plane may remove a flow while one of its packets is recirculated.
#[test]
fn a_delayed_packet_whose_flow_has_ended_is_enqueued() {
    let ports = outlets(&[RATE], 1);
    let params = P4airParams { actions: GroupActions::all(FlowAction::Delay), ..params() };
    let mut program = P4air::new(params, &ports).unwrap();
    let enter = |program: &mut P4air, at: u64, tcp: Segment| {
        let mut headers = Headers { tcp: Some(tcp), ..headers(1, 1001) };
        let verdict = program.ingress(Port(0), &mut packet(at, 1, 1500), &mut headers, Nanos(at), &mut Log::default());
        (verdict, headers)
    };
    enter(&mut program, 0, Segment { flags: Flags::SYN, ..Segment::default() });
    let data = Segment { length: 1448, flags: Flags::ACK, ..Segment::default() };
    for at in (RTT..RTT + 20 * TICK).step_by(TICK as usize) {
        enter(&mut program, at, data);
    }
    let delayed = (2..20).find_map(|n| {
        let (verdict, headers) = enter(&mut program, 2 * RTT + n * TICK, data);
        (verdict == Ingress::Recirculate).then_some(headers)
    });
    let mut headers = delayed.expect("it sends more than its share");
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..data };
    let (verdict, _) = enter(&mut program, 2 * RTT + 20 * TICK, fin);
    assert!(matches!(verdict, Ingress::Enqueue(_)), "what a flow sends after its end has no actions");
    let timer = program.next_timer().expect("flows are swept");
    program.on_timer(timer);
    assert_eq!(program.group(FlowId(1)), None);
    let last =
        (0..8).map(|_| program.ingress(Port(0), &mut packet(0, 1, 1500), &mut headers, timer, &mut Log::default()));
    assert!(last.last().is_some_and(|verdict| matches!(verdict, Ingress::Enqueue(_))));
}

#[test]
fn flows_with_the_same_hash_are_one_flow_on_a_switch() {
    let mut bench = Bench::new(P4airParams { table: FlowTable::Hashed { entries: 1, seed: 0 }, ..params() });
    bench.open(0, 1);
    bench.open(TICK, 2);
    bench.data(RTT + 2 * TICK, RTT / 2, 6, 1);
    bench.data(RTT + 3 * TICK, RTT / 2, 6, 2);
    bench.run(2 * RTT);
    // Neither has filled the link; together they have.
    assert_eq!((bench.group(1), bench.group(2)), (Some(FlowGroup::DelayBased), Some(FlowGroup::DelayBased)));
    assert!(bench.switch.program.stats().collisions > 0);
}

#[test]
fn a_port_that_does_not_exist_is_an_error() {
    let error = P4air::new(P4airParams { ports: vec![Port(3)], ..params() }, &outlets(&[RATE], 1)).unwrap_err();
    assert_eq!(error.to_string(), "P4air cannot manage port 3: the switch has 1 ports, numbered from 0");
}

/// A flow whose packets wait for each other in `rounds` round trips, although it never sends its share.
fn late(target: u64, rounds: u64) -> Bench {
    let actions = GroupActions::all(FlowAction::Drop);
    let act_on = ActOn::Delay { target: Nanos(target) };
    let mut bench = Bench::new(P4airParams { actions, act_on, act_every: ActEvery::RoundTrip, ..params() });
    bench.open(0, 1);
    bench.data(RTT + TICK, RTT / 2, 12, 1);
    // In the first quarter of each round trip, so that packets wait for each other.
    for round in 2..2 + rounds {
        bench.data(round * RTT + TICK, RTT / 4, 8, 1);
    }
    bench.run((4 + rounds) * RTT);
    bench
}

#[test]
fn actions_can_follow_the_delay_in_the_queue_instead_of_the_share() {
    // Eight packets of 1 ms in 3 ms: the last one waits some 5 ms. The share of 12 is never reached. The delay is known when
    // the packet has left: all packets of the round trip have come by then, so the action is in the next one.
    let bench = late(3_000_000, 5);
    assert_eq!(bench.switch.program.stats().fed_back, 5, "one report in a round trip");
    assert_eq!(bench.switch.log.dropped_for(DropReason::FairShare), 4, "once in each round trip but the first");
    assert_eq!(bench.switch.program.stats().above_share, 4);
    bench.switch.check();
    let bench = late(20_000_000, 4);
    assert_eq!(bench.switch.log.dropped_for(DropReason::FairShare), 0);
}

#[test]
fn weighted_groups_have_one_queue_each_with_the_weight_of_its_flows() {
    let mut bench = Bench::new(P4airParams { queueing: Queueing::Weighted, actions: GroupActions::IDLE, ..params() });
    let weights = |bench: &Bench| [0, 1, 2, 3, 4, 5].map(|queue| bench.switch.program.weight(Port(0), queue));
    let held = bench.switch.program.queues(Limit::None);
    assert_eq!((held.queues.get(), held.scheduler), (6, Scheduler::Deficit { quantum: ByteCount(1500) }));
    for flow in 1..=3 {
        bench.open(0, flow);
    }
    bench.offer(0, 0, 7, headers(7, 1007), 1500);
    bench.run(RTT);
    assert_eq!(weights(&bench), [1, 3, 0, 0, 0, 0]);
    // Flow 1 fills the queue of its group, and moves on.
    bench.data(RTT + TICK, RTT / 2, 12, 1);
    for round in 2..12 {
        bench.data(round * RTT + TICK, RTT - 2 * TICK, 15, 1);
    }
    bench.run(3 * RTT);
    assert_eq!(weights(&bench), [1, 2, 1, 0, 0, 0]);
    bench.run(13 * RTT);
    assert_eq!(weights(&bench), [1, 2, 0, 1, 0, 0]);
    assert_eq!(bench.queues(1), [0, 1, 2, 3], "its SYN does not wait behind mice");
    assert_eq!(bench.switch.program.stats().queues_moved, 0);
    // All weights count the known flows once.
    assert_eq!(weights(&bench).iter().sum::<u32>(), bench.switch.program.flows());
}

#[test]
fn queues_have_equal_weights_unless_groups_are_weighted() {
    let bench = growing(params(), 8);
    assert!((0..32).all(|queue| bench.switch.program.weight(Port(0), queue) == 1));
}

#[test]
fn a_flow_that_comes_with_the_mark_is_shaped_and_packets_of_long_lived_flows_leave_with_it() {
    let mut bench = Bench::new(P4airParams { mark: Class(9), actions: GroupActions::IDLE, ..params() });
    bench.open(0, 1);
    bench.open(0, 2);
    bench.data(RTT + TICK, RTT / 2, 4, 1);
    bench.run(2 * RTT);
    let classes = |bench: &Bench, flow: u32| -> Vec<u8> {
        let sent = bench.switch.log.sent.iter().filter(|sent| sent.departure.packet.flow.0 == flow);
        sent.map(|sent| sent.departure.packet.class.0).collect()
    };
    assert_eq!((bench.group(1), classes(&bench, 1)), (Some(FlowGroup::Mouse), vec![0; 6]), "mice are not marked");
    // Flow 2 comes marked: it is shaped at once, whatever it does then.
    for n in 0..60 {
        let tcp = Some(Segment { length: 1448, flags: Flags::ACK, ..Segment::default() });
        let packet = Packet { class: Class(9), ..packet(1_000 + n, 2, 1500) };
        let at = Nanos(2 * RTT + n * RTT / 15);
        bench.switch.offer(at, Port(0).0, packet, Headers { tcp, ..headers(2, 1002) });
    }
    bench.data(2 * RTT + 2 * TICK, RTT / 2, 12, 1);
    bench.run(8 * RTT);
    assert_eq!(bench.group(2), Some(FlowGroup::Shaped));
    assert_eq!(bench.switch.program.queues_of(Port(0), FlowGroup::Shaped).map(|(_, flows)| flows), Some(1));
    assert_eq!(bench.switch.program.stats().loss_delay, 0);
    // The other flow is long-lived now, and its packets leave with the mark.
    assert_eq!(bench.group(1), Some(FlowGroup::DelayBased));
    assert_eq!(classes(&bench, 1).last(), Some(&9));
    assert_eq!(
        bench.queues(2),
        [0, 1, 30],
        "its SYN, the rest of its handshake, then the queue that the full group has received"
    );
}

#[test]
fn without_a_mark_there_is_no_group_of_shaped_flows() {
    let bench = growing(params(), 8);
    assert!(bench.switch.log.sent.iter().all(|sent| sent.departure.packet.class == Class(0)));
    let shaped = bench.switch.program.queues_of(Port(0), FlowGroup::Shaped);
    assert_eq!(shaped.map(|(queues, flows)| (queues.len(), flows)), Some((0, 0)));
}

/// Four packets more than the share of flow 1 in each of four round trips, of which every fourth has the second value.
fn l4s_flow(ecn: [Ecn; 2]) -> Bench {
    let mut bench = Bench::new(P4airParams { scalable: true, ..params() });
    bench.open(0, 1);
    bench.data(RTT + TICK, RTT / 2, 12, 1);
    for n in 0..4 * 16 {
        let tcp = Some(Segment { length: 1448, flags: Flags::ACK, ..Segment::default() });
        let packet = Packet { ecn: ecn[usize::from(n % 4 == 3)], ..packet(1_000 + n, 1, 1500) };
        let at = Nanos(2 * RTT + 2 * TICK + n * RTT / 16);
        bench.switch.offer(at, Port(0).0, packet, Headers { tcp, ..headers(1, 1001) });
    }
    bench.run(8 * RTT);
    bench
}

#[test]
fn an_l4s_flow_is_scalable_and_marked_above_its_share() {
    let bench = l4s_flow([Ecn::Ect1; 2]);
    let stats = bench.switch.program.stats();
    assert_eq!(bench.group(1), Some(FlowGroup::Scalable));
    let sent = || bench.switch.log.sent.iter();
    let marked = sent().filter(|sent| sent.departure.packet.ecn == Ecn::Ce).count() as u64;
    // In each round trip but the last, twelve packets are its share, and the one that ends it is not judged.
    assert!((9..=16).contains(&marked), "{marked}");
    assert_eq!((stats.marked, stats.dropped), (marked, 0));
    let (queues, flows) = bench.switch.program.queues_of(Port(0), FlowGroup::Scalable).unwrap();
    assert_eq!(flows, 1);
    assert!(queues.contains(&bench.queues(1).last().copied().unwrap()));
    assert_eq!(stats.loss_delay, 0, "a growing queue does not move it");
}

#[test]
fn packets_that_cannot_be_marked_are_dropped() {
    let bench = l4s_flow([Ecn::Ect1, Ecn::NotEct]);
    let stats = bench.switch.program.stats();
    assert!(stats.marked > 0 && stats.dropped > 0, "{stats:?}");
    assert_eq!(bench.switch.log.dropped_for(DropReason::FairShare) as u64, stats.dropped);
    assert!(bench.switch.log.sent.iter().all(|sent| sent.departure.packet.ecn != Ecn::Ect0));
}

#[test]
fn without_the_group_ect1_changes_nothing() {
    let mut bench = Bench::new(params());
    bench.open(0, 1);
    bench.data(RTT + TICK, RTT / 2, 12, 1);
    let tcp = Some(Segment { length: 1448, flags: Flags::ACK, ..Segment::default() });
    let packet = Packet { ecn: Ecn::Ect1, ..packet(1_000, 1, 1500) };
    bench.switch.offer(Nanos(2 * RTT + 2 * TICK), Port(0).0, packet, Headers { tcp, ..headers(1, 1001) });
    bench.run(4 * RTT);
    assert_eq!(bench.group(1), Some(FlowGroup::DelayBased));
    let scalable = bench.switch.program.queues_of(Port(0), FlowGroup::Scalable);
    assert_eq!(scalable.map(|(queues, flows)| (queues.len(), flows)), Some((0, 0)));
}

/// Twelve flows of three round-trip times, which come in turn, and 6 queues for them.
#[test]
fn flows_of_one_round_trip_time_share_queues() {
    let assignment = Assignment::ByRtt;
    let params =
        P4airParams { queues: 11, assignment, rank_interval: Nanos(RTT), actions: GroupActions::IDLE, ..params() };
    let mut bench = Bench::new(params);
    let times = [1, 4, 2];
    for flow in 1..=12u32 {
        let rtt = times[flow as usize % 3] * RTT;
        let start = u64::from(flow) * 20 * TICK;
        let segment = |flags| Headers {
            tcp: Some(Segment { flags, window: 1 << 20, ..Segment::default() }),
            ..headers(flow, 1000 + flow)
        };
        bench.offer(start, 0, flow, segment(Flags::SYN), 60);
        bench.offer(start + rtt, 0, flow, segment(Flags::ACK), 52);
    }
    for flow in 1..=12 {
        bench.data(5 * RTT + TICK, RTT / 2, 48, flow);
    }
    bench.run(80 * RTT);
    for flow in 1..=12 {
        assert_eq!(bench.group(flow), Some(FlowGroup::DelayBased), "{flow}");
        bench.data(80 * RTT + TICK, RTT / 2, 1, flow);
    }
    bench.run(81 * RTT);
    let program = &bench.switch.program;
    let (queues, flows) = program.queues_of(Port(0), FlowGroup::DelayBased).unwrap();
    assert_eq!((queues.len(), flows), (6, 12));
    assert_eq!(program.in_queues(Port(0)).unwrap(), [2, 2, 2, 2, 2, 2, 0, 0, 0]);
    let last = |flow: u32| {
        let mut sent = bench.switch.log.sent.iter().filter(|sent| sent.departure.packet.flow.0 == flow);
        usize::from(sent.next_back().unwrap().departure.queue.0 - 2)
    };
    for flow in 1..=12u32 {
        // Two queues for each time, the shortest first.
        assert_eq!(last(flow) / 2, [0, 2, 1][flow as usize % 3], "{flow}");
    }
    // Until the flows have gone, the places are computed again and again.
    assert!(program.next_timer().is_some());
    bench.run(80 * RTT + 30_000_000_000);
    assert_eq!((bench.switch.program.flows(), bench.switch.program.next_timer()), (0, None));
}

/// A handshake whose SYN-ACK passes at half of its time, and that took three round trips because a queue delayed it.
fn delayed_handshake(rtt: RttSource, queueing: [u32; 2]) -> Bench {
    let mut bench = Bench::new(P4airParams { rtt, ..params() });
    let segment = |flags, stamps: [u32; 2]| Segment {
        flags,
        window: 1 << 20,
        ack: 1,
        timestamps: Some(Timestamps { value: stamps[0], echo: stamps[1] }),
        ..Segment::default()
    };
    let to = |tcp, queueing| Headers { tcp: Some(tcp), queueing, ..headers(1, 1001) };
    let back = |tcp, queueing| Headers { tcp: Some(tcp), queueing, ..headers(1001, 1) };
    bench.offer(0, 0, 1, to(segment(Flags::SYN, [1, 0]), 0), 60);
    bench.offer(2 * RTT, 1, 1001, back(segment(Flags::SYN | Flags::ACK, [2, 1]), queueing[0]), 60);
    bench.offer(3 * RTT, 0, 1, to(segment(Flags::ACK, [3, 2]), queueing[1]), 52);
    // Then data, its ACK after three quarters of a round trip, and the data that the ACK releases.
    let data = |value, echo, seq| Segment { seq, length: 1448, ..segment(Flags::ACK, [value, echo]) };
    bench.offer(4 * RTT, 0, 1, to(data(4, 2, 1), 0), 1500);
    bench.offer(4 * RTT + RTT * 3 / 4, 1, 1001, back(Segment { ack: 1449, ..segment(Flags::ACK, [5, 4]) }, 0), 52);
    bench.offer(5 * RTT, 0, 1, to(data(6, 5, 1449), 0), 1500);
    bench.run(6 * RTT);
    bench
}

#[test]
fn round_trip_times_can_come_from_later_packets_or_from_other_switches() {
    let rtt = |source, queueing| delayed_handshake(source, queueing).switch.program.rtt(FlowId(1));
    assert_eq!(rtt(RttSource::Handshake, [0, 0]), Some(Nanos(3 * RTT)));
    assert_eq!(rtt(RttSource::Timestamps(RttFilter::Least), [0, 0]), Some(Nanos(RTT)));
    // A quarter of the difference of two round trips.
    let smoothed = RttSource::Timestamps(RttFilter::Smoothed { shift: 2 });
    assert_eq!(rtt(smoothed, [0, 0]), Some(Nanos(3 * RTT - RTT / 2)));
    // Three quarters behind the switch, and a round trip of the handshake before it.
    assert_eq!(rtt(RttSource::Sequence(RttFilter::Least), [0, 0]), Some(Nanos(RTT + RTT * 3 / 4)));
    // The switch behind this one reports a round trip, the one before half of one.
    let reported = [RTT as u32, (RTT / 2) as u32];
    assert_eq!(rtt(RttSource::LessQueueing, reported), Some(Nanos(RTT + RTT / 2)));
    assert_eq!(rtt(RttSource::Handshake, reported), Some(Nanos(3 * RTT)));
}

/// What switches add up: data waits here, and the ACKs of its flow carry that to the switches before.
#[test]
fn packets_carry_what_they_waited_and_acks_what_their_flow_waited() {
    let mut bench = Bench::new(P4airParams { rtt: RttSource::LessQueueing, ..params() });
    bench.open(0, 1);
    // Three packets at once: they wait 0, 1 and 2 ms.
    for _ in 0..3 {
        let tcp = Some(Segment { length: 1448, flags: Flags::ACK, ..Segment::default() });
        bench.offer(2 * RTT, 0, 1, Headers { tcp, queueing: 7, ..headers(1, 1001) }, 1500);
    }
    let ack = Some(Segment { ack: 1, flags: Flags::ACK, ..Segment::default() });
    bench.offer(3 * RTT, 1, 1001, Headers { tcp: ack, queueing: 5, ..headers(1001, 1) }, 52);
    bench.run(4 * RTT);
    let sums: Vec<u32> = bench.switch.log.sent.iter().map(|sent| sent.headers.queueing).collect();
    assert_eq!(sums, [0, 0, 7, 1_000_007, 2_000_007, 2_000_005]);
}

fn any_params() -> impl Strategy<Value = P4airParams> {
    let action = prop_oneof![
        Just(FlowAction::Nothing),
        Just(FlowAction::Drop),
        Just(FlowAction::Delay),
        Just(FlowAction::Mark),
        Just(FlowAction::Window)
    ];
    let fingerprint = (any::<[u8; 8]>(), any::<bool>(), any::<u32>()).prop_map(|(bytes, increases, rtt)| {
        let [ld, pl, m, reduction, pulse, settled, period, least] = bytes;
        FingerprintParams {
            loss_delay_after: ld,
            loss_based_after: pl,
            model_based_after: m,
            reduction_shift: reduction,
            least_change: least.into(),
            repeated_syn_restarts: !increases,
            pulse,
            settled,
            period,
            pattern: if increases { RatePattern::Increases } else { RatePattern::Pulses },
            default_rtt: Nanos(rtt.into()),
            ..FingerprintParams::default()
        }
    });
    let table = prop_oneof![
        Just(FlowTable::Exact),
        (0u32..9, any::<u64>()).prop_map(|(entries, seed)| FlowTable::Hashed { entries, seed })
    ];
    let share = prop_oneof![
        Just(ShareForm::Exact),
        Just(ShareForm::Parts),
        any::<i8>().prop_map(|sensitivity| ShareForm::Shift { sensitivity })
    ];
    let assignment = prop_oneof![Just(Assignment::InTurn), Just(Assignment::Counted), Just(Assignment::ByRtt)];
    let newest = prop_oneof![Just(Newest::OfQueue), Just(Newest::OfGroup), Just(Newest::Any)];
    let filter = || prop_oneof![Just(RttFilter::Least), any::<u8>().prop_map(|shift| RttFilter::Smoothed { shift })];
    let rtt = prop_oneof![
        Just(RttSource::Handshake),
        filter().prop_map(RttSource::Timestamps),
        filter().prop_map(RttSource::Sequence),
        Just(RttSource::LessQueueing),
    ];
    let act_on =
        prop_oneof![Just(ActOn::Share), (0u64..1 << 25).prop_map(|target| ActOn::Delay { target: Nanos(target) })];
    let section_5 = (rtt, act_on, any::<[bool; 2]>(), 0u8..3, assignment, 0u64..1 << 28);
    (
        fingerprint,
        table,
        share,
        newest,
        [action.clone(), action.clone(), action.clone(), action.clone(), action],
        any::<[bool; 2]>(),
        (0u16..40, 0u16..20, 0u64..3000, any::<u32>()),
        section_5,
    )
        .prop_map(
            |(fingerprint, table, share, newest, actions, [even, packet], (queues, passes, size, idle), section_5)| {
                let (rtt, act_on, [scalable, is_weighted], mark, assignment, rank_interval) = section_5;
                let [delay_based, loss_delay, loss_based, model_based, of_scalable] = actions;
                P4airParams {
                    queues,
                    fingerprint,
                    table,
                    share,
                    newest,
                    start: if even { Start::Even } else { Start::NewFlows },
                    actions: GroupActions { delay_based, loss_delay, loss_based, model_based, scalable: of_scalable },
                    scalable,
                    rank_interval: Nanos(rank_interval),
                    act_every: if packet { ActEvery::Packet } else { ActEvery::RoundTrip },
                    delay_passes: passes,
                    packet: ByteCount(size),
                    idle: Nanos(idle.into()),
                    rtt,
                    act_on,
                    assignment,
                    queueing: if is_weighted { Queueing::Weighted } else { Queueing::Divided },
                    mark: Class(mark),
                    ..P4airParams::default()
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Damaged headers and absurd parameters: every packet is sent, dropped or queued once, and flows are counted in the
    /// group that they are in, in the queue that they are in, and in the weights of queues.
    #[test]
    fn any_headers_and_parameters_are_safe(
        params in any_params(),
        packets in proptest::collection::vec((any::<u8>(), 0u32..12, 0u64..1 << 28, 0u64..9000, any::<[u32; 3]>(), any::<bool>()), 1..300),
    ) {
        let is_weighted = params.queueing == Queueing::Weighted;
        let mut bench = Bench::new(params);
        let mut now = 0;
        for (flags, flow, later, size, [seq, ack, window], tcp) in packets {
            now += later;
            let segment = Segment {
                seq: seq.into(),
                ack: ack.into(),
                window: window.into(),
                length: if flags & 0x40 == 0 { size as u32 } else { 0 },
                flags: Flags::from_bits(flags),
                timestamps: (ack % 3 > 0).then_some(Timestamps { value: seq, echo: window }),
                ..Segment::default()
            };
            let headers = Headers { tcp: tcp.then_some(segment), queueing: seq, ..headers(flow, (flow + 3) % 12) };
            let packet = Packet { ecn: Ecn::from_bits(window as u8), ..packet(bench.ids, flow, size) };
            bench.switch.offer(Nanos(now), (flags >> 7).into(), packet, headers);
            bench.ids += 1;
        }
        bench.run(now + 1_000_000_000);
        bench.switch.check();
        let program = &bench.switch.program;
        for group in FlowGroup::LONG_LIVED {
            let (queues, flows) = program.queues_of(Port(0), group).unwrap();
            prop_assert!(!queues.is_empty());
            prop_assert!(flows <= 12);
        }
        // The program compares the registers with the table. A flow has a queue once one of its packets has needed one.
        let in_queues: u32 = program.in_queues(Port(0)).unwrap().iter().sum();
        let long: u32 = FlowGroup::ALL.iter().filter_map(|group| Some(program.queues_of(Port(0), *group)?.1)).sum();
        prop_assert!(in_queues <= long);
        if is_weighted {
            let queues = program.queues(Limit::None).queues.get();
            let weights: u32 = (0..queues).map(|queue| program.weight(Port(0), queue)).sum();
            prop_assert_eq!(weights, program.flows());
        }
    }
}
