//! The ConQuest AQM against exact counts, and its effect on flows.

use crate::pipelines::driver::{Log, Switch, headers, outlets, packet};
use proptest::prelude::*;
use queuescope_queue::{
    ActAt, ConQuestAqm, ConQuestAqmParams, ConQuestChange, Curve, DropReason, Egress, FlowLimit, HeldAction,
    HoldParams, Ingress, Limit, MarkReason, Pipeline, Port, Response, Step, Steps, WeightUnit,
};
use queuescope_sketch::{ConQuestParams, Estimator};
use queuescope_wire::{Backlog, Departure, Ecn, Nanos, Packet, QueueId};

const MS: u64 = 1_000_000;

/// At 8 Mb/s the link needs one window for a packet of 1000 bytes. So each window holds one packet, and all estimators
/// are exact.
fn exact_params() -> ConQuestAqmParams {
    let sketch = ConQuestParams {
        snapshots: 64,
        rows: 2,
        columns: 4096,
        window: Nanos(MS),
        ..ConQuestAqmParams::default().sketch
    };
    ConQuestAqmParams { sketch, tau: Nanos(3 * MS), threshold: 4.0, ..ConQuestAqmParams::default() }
}

fn capable(id: u64, flow: u32, size: u64) -> Packet {
    Packet { ecn: Ecn::Ect0, ..packet(id, flow, size) }
}

fn program(params: ConQuestAqmParams) -> ConQuestAqm {
    ConQuestAqm::new(params, &outlets(&[8_000_000, 8_000_000], 1)).unwrap()
}

fn switch(params: ConQuestAqmParams, rate: u64, limit: Limit, recirculation: u64) -> Switch<ConQuestAqm> {
    let ports = outlets(&[rate], 1);
    Switch::new(ConQuestAqm::new(params, &ports).unwrap(), &ports, 1, limit, Nanos(recirculation))
}

const UNITS: [WeightUnit; 5] = [
    WeightUnit::Packets,
    WeightUnit::Bytes,
    WeightUnit::ShareOfDeparted,
    WeightUnit::ShareOfDelay,
    WeightUnit::ShareOfQueue,
];

proptest! {
    /// A packet is marked if and only if it waited longer than tau and the exact weight of its flow (section 3.1) is at
    /// least w_T, for every unit and every estimator. tau and w_T are those in force at its departure.
    #[test]
    fn a_packet_is_marked_if_the_exact_weight_of_its_flow_reaches_the_threshold(
        arrivals in prop::collection::vec((0..3u64, 0..4u32), 0..150), estimator in 0..3usize, unit in 0..5usize,
        tau in 0..12u64, behind in 0..8u64, packets in 0..8u32,
        changes in prop::collection::vec((0..150u64, prop::option::of(0..12u64), prop::option::of(0..8u32)), 0..4)
    ) {
        let unit = UNITS[unit];
        let threshold = |packets: u32| match unit {
            WeightUnit::Packets => f64::from(packets),
            WeightUnit::Bytes => f64::from(packets * 1000),
            _ => f64::from(packets) / 8.0,
        };
        let changes: Vec<_> = changes
            .into_iter()
            .map(|(at, tau, packets)| ConQuestChange {
                at: Nanos(at * MS), tau: tau.map(|tau| Nanos(tau * MS)), threshold: packets.map(threshold)
            })
            .collect();
        let (tau, threshold) = (Nanos(tau * MS), threshold(packets));
        let params = ConQuestAqmParams {
            estimator: Estimator::ALL[estimator], unit, threshold, tau, behind: Nanos(behind * MS), changes: changes.clone(),
            ..exact_params()
        };
        // The last change before the time holds; of several at the same time, the last in the list.
        let mut in_order = changes;
        in_order.sort_by_key(|change| change.at);
        let at = |time: Nanos| {
            let made = in_order.iter().filter(|change| change.at <= time);
            made.fold((tau, threshold), |(tau, threshold), change| {
                (change.tau.unwrap_or(tau), change.threshold.unwrap_or(threshold))
            })
        };
        let mut switch = switch(params, 8_000_000, Limit::Packets(40), 1_000);
        let mut time = 0;
        for (id, (gap, flow)) in arrivals.iter().enumerate() {
            time += gap;
            switch.offer(Nanos(time * MS), 0, capable(id as u64, *flow, 1000), headers(0, 0));
        }
        switch.run_out();
        let sent = switch.log.sent.iter().map(|sent| sent.departure).collect::<Vec<_>>();
        let expected = sent.iter().filter(|packet| {
            let left_during_wait = |other: &&Departure| other.dequeued >= packet.enqueued && other.dequeued < packet.dequeued;
            let own = sent.iter().filter(left_during_wait).filter(|other| other.packet.flow == packet.packet.flow).count() as f64;
            let all = sent.iter().filter(left_during_wait).count() as f64;
            let weight = match unit {
                WeightUnit::Packets => own,
                WeightUnit::Bytes => own * 1000.0,
                WeightUnit::ShareOfDeparted => own / all,
                WeightUnit::ShareOfDelay => own * 1e6 / packet.sojourn().0 as f64,
                // Everything that the packet found leaves while it waits. If it found no packets in the queue, no flow
                // has a share.
                WeightUnit::ShareOfQueue if packet.backlog_in.packets == 0 => 0.0,
                WeightUnit::ShareOfQueue => own / packet.backlog_in.packets as f64,
            };
            let (tau, threshold) = at(packet.dequeued);
            // The link needs 1 ms for a packet, so `behind` in ms is a number of packets.
            packet.sojourn() > tau && packet.backlog_out.packets >= behind && weight >= threshold
        });
        let expected = expected.map(|packet| (packet.packet.id.0, MarkReason::FlowWeight, packet.dequeued));
        prop_assert_eq!(expected.collect::<Vec<_>>(), switch.log.marked.clone());
        let marked = sent.iter().filter(|departure| departure.packet.ecn == Ecn::Ce).count();
        prop_assert_eq!(marked, switch.log.marked.len());
        let stats = *switch.program.stats();
        prop_assert_eq!((stats.departed, stats.marked, stats.chosen), (sent.len() as u64, marked as u64, marked as u64));
    }
}

/// A burst of 8000 packets of flow 0 among 200 flows of five packets each, on the paper's link.
fn burst(params: ConQuestAqmParams) -> Switch<ConQuestAqm> {
    let mut switch = switch(params, 10_000_000_000, Limit::None, 700);
    let mut id = 0;
    for n in 0..8_000u64 {
        switch.offer(Nanos(n * 240), 0, capable(id, 0, 1500), headers(0, 0));
        id += 1;
        if n % 8 == 0 {
            switch.offer(Nanos(n * 240), 0, capable(id, 1 + (n / 40) as u32, 1500), headers(0, 0));
            id += 1;
        }
    }
    switch.run_out();
    switch
}

#[test]
fn the_heavy_flow_is_marked_and_small_flows_are_not() {
    for estimator in Estimator::ALL {
        let switch = burst(ConQuestAqmParams { estimator, ..ConQuestAqmParams::default() });
        let sent = &switch.log.sent;
        let late = sent.iter().filter(|sent| sent.departure.sojourn() > Nanos(4 * MS)).count();
        assert!(switch.log.marked.len() > late * 8 / 10, "{} of {late}", switch.log.marked.len());
        let marked = sent.iter().filter(|sent| sent.departure.packet.ecn == Ecn::Ce);
        assert!(marked.clone().all(|sent| sent.departure.packet.flow.0 == 0));
        assert_eq!(marked.count(), switch.log.marked.len());
    }
}

#[test]
fn a_threshold_by_share_finds_the_same_flow() {
    for unit in [WeightUnit::ShareOfDeparted, WeightUnit::ShareOfDelay, WeightUnit::ShareOfQueue] {
        let switch = burst(ConQuestAqmParams { unit, threshold: 0.25, ..ConQuestAqmParams::default() });
        let late = switch.log.sent.iter().filter(|sent| sent.departure.sojourn() > Nanos(2 * MS));
        let heavy = late.filter(|sent| sent.departure.packet.flow.0 == 0);
        assert!(heavy.clone().count() > 3_000 && heavy.count() == switch.log.marked.len(), "{unit:?}");
    }
}

/// The queue rises to about 7000 packets and drains after the last arrival. With a `behind` of 2 ms, the packets of the
/// heavy flow are marked except at the end, while less than 2 ms is in the queue: 1667 packets of 1500 bytes.
#[test]
fn packets_that_leave_a_short_queue_behind_are_not_marked() {
    let share = |behind| ConQuestAqmParams {
        unit: WeightUnit::ShareOfQueue,
        threshold: 0.5,
        behind,
        ..ConQuestAqmParams::default()
    };
    let [without_behind, with_behind] = [Nanos::ZERO, Nanos(2 * MS)].map(|behind| burst(share(behind)).log.marked);
    let last: Vec<_> = without_behind.iter().filter(|mark| !with_behind.contains(mark)).collect();
    assert!(
        with_behind.len() > 3_000 && last.len().abs_diff(1667 * 8 / 9) < 20,
        "{} and {}",
        with_behind.len(),
        last.len()
    );
    assert!(last.iter().all(|(_, _, at)| with_behind.iter().all(|(_, _, before)| before < at)));
}

/// A steady stream in which every second packet is of flow 1 and has a sojourn time of 20 windows. So the weight of
/// flow 1 is 10 packets of 20.
struct SteadyStream {
    program: ConQuestAqm,
    log: Log,
    time: u64,
}

impl SteadyStream {
    fn new(params: ConQuestAqmParams) -> Self {
        let mut steady = Self { program: program(params), log: Log::default(), time: 100 };
        let (tau, curve) = (steady.program.params().tau, steady.program.params().curve.clone());
        steady.program.set_tau(Nanos::MAX);
        for _ in 0..40 {
            steady.pass(Ecn::Ect0);
        }
        steady.program.set_tau(tau);
        steady.program.set_curve(curve);
        steady
    }

    /// Passes the next packet of each flow. Returns the decision on the packet of flow 1, and its codepoint after it.
    fn pass(&mut self, ecn: Ecn) -> (Egress, Ecn) {
        let mut last = None;
        for flow in [0, 1] {
            self.time += 1;
            let mut departure = Departure {
                packet: Packet { ecn: if flow == 1 { ecn } else { Ecn::NotEct }, ..packet(self.time, flow, 1000) },
                queue: QueueId(0),
                enqueued: Nanos((self.time - if flow == 1 { 20 } else { 0 }) * MS),
                dequeued: Nanos(self.time * MS),
                backlog_in: Backlog::default(),
                backlog_out: Backlog::default(),
            };
            let verdict = self.program.egress(Port(0), &mut departure, &mut headers(0, 0), &mut self.log);
            last = Some((verdict, departure.packet.ecn));
        }
        last.unwrap()
    }
}

#[test]
fn packets_are_marked_with_the_probability_of_the_curve() {
    let step = |from, probability| Step { from, probability };
    let steps = Steps::new([step(5.0, 0.9), step(10.0, 0.35), step(11.0, 0.8)]).unwrap();
    let cases = [
        (Curve::Threshold, 10.0, 1.0),
        (Curve::Threshold, 10.5, 0.0),
        (Curve::Linear { full: 8.0 }, 4.0, 0.75),
        (Curve::Linear { full: 100.0 }, 8.0, 0.02),
        (Curve::Linear { full: 5.0 }, 12.0, 0.0),
        (Curve::Squared { full: 8.0 }, 4.0, 0.5625),
        (Curve::Squared { full: 6.0 }, 8.0, 1.0 / 9.0),
        (Curve::Steps(steps), 1e9, 0.35),
    ];
    const PACKETS: u32 = 20_000;
    for (curve, threshold, probability) in cases {
        let mut steady = SteadyStream::new(ConQuestAqmParams { threshold, curve: curve.clone(), ..exact_params() });
        let marked = (0..PACKETS).filter(|_| steady.pass(Ecn::Ect0).1 == Ecn::Ce).count();
        let mean = probability * f64::from(PACKETS);
        let deviation = (mean * (1.0 - probability)).sqrt();
        assert!((marked as f64 - mean).abs() <= 4.0 * deviation, "{curve:?}: {marked}, not {mean}");
        assert_eq!(steady.log.marked.len(), marked);
    }
}

#[test]
fn changed_parameters_hold_from_the_next_packet_on() {
    let mut steady = SteadyStream::new(exact_params());
    assert_eq!(steady.pass(Ecn::Ect0).1, Ecn::Ce);
    steady.program.set_threshold(10.5);
    assert_eq!(steady.pass(Ecn::Ect0).1, Ecn::Ect0);
    steady.program.set_threshold(10.0);
    assert_eq!(steady.pass(Ecn::Ect1).1, Ecn::Ce);
    steady.program.set_tau(Nanos(20 * MS));
    assert_eq!(steady.pass(Ecn::Ect0).1, Ecn::Ect0);
    steady.program.set_tau(Nanos(20 * MS - 1));
    assert_eq!(steady.pass(Ecn::Ect0).1, Ecn::Ce);
    steady.program.set_curve(Curve::Steps(Steps::default()));
    assert_eq!(steady.pass(Ecn::Ect0).1, Ecn::Ect0);
    assert_eq!(steady.program.params().tau, Nanos(20 * MS - 1));
}

#[test]
fn a_response_depends_on_the_ecn_codepoint() {
    use {DropReason::FlowWeight, Ecn::*, Egress::*};
    let table = [
        (Response::MarkOrDrop, NotEct, (Drop(FlowWeight), NotEct)),
        (Response::MarkOrDrop, Ect1, (Send, Ce)),
        (Response::MarkOrDrop, Ce, (Send, Ce)),
        (Response::MarkOnly, NotEct, (Send, NotEct)),
        (Response::MarkOnly, Ect0, (Send, Ce)),
        (Response::Drop, Ect0, (Drop(FlowWeight), Ect0)),
        (Response::Drop, Ce, (Drop(FlowWeight), Ce)),
    ];
    for (response, ecn, expected) in table {
        let mut steady = SteadyStream::new(ConQuestAqmParams { response, ..exact_params() });
        assert_eq!(steady.pass(ecn), expected, "{response:?} {ecn:?}");
        let stats = *steady.program.stats();
        assert_eq!((stats.congested, stats.chosen), (1, 1));
        assert_eq!(stats.marked + stats.dropped + stats.marked_before + stats.spared, 1);
        assert_eq!(stats.marked, steady.log.marked.len() as u64);
    }
}

#[test]
fn each_port_has_its_own_state() {
    let mut steady = SteadyStream::new(exact_params());
    let mut departure = Departure {
        packet: capable(0, 1, 1000),
        queue: QueueId(1),
        enqueued: Nanos((steady.time - 20) * MS),
        dequeued: Nanos(steady.time * MS),
        backlog_in: Backlog::default(),
        backlog_out: Backlog::default(),
    };
    for port in [1, 7] {
        let verdict = steady.program.egress(Port(port), &mut departure, &mut headers(0, 0), &mut steady.log);
        assert_eq!((verdict, departure.packet.ecn), (Egress::Send, Ecn::Ect0));
    }
    assert!(steady.program.sketch_stats(Port(1)).is_some() && steady.program.sketch_stats(Port(7)).is_none());
}

/// The burst with drops at egress, compared with drops at ingress.
#[test]
fn a_flow_that_was_fed_back_is_dropped_at_ingress_until_its_hold_ends() {
    let hold = Nanos(MS / 2);
    let params = ConQuestAqmParams { response: Response::Drop, ..ConQuestAqmParams::default() };
    let behind = burst(params.clone());
    let act_at = ActAt::Ingress(HoldParams { hold, ..HoldParams::default() });
    let mut before = burst(ConQuestAqmParams { act_at, tau: Nanos(MS / 2), ..params.clone() });

    let dropped = &before.log.dropped;
    assert!(dropped.len() > 500, "{}", dropped.len());
    for dropped in dropped {
        assert_eq!((dropped.packet.flow.0, dropped.reason), (0, DropReason::FlowWeight));
        assert_eq!((dropped.enqueued, dropped.link_time), (None, Nanos::ZERO));
    }
    assert!(behind.log.dropped.iter().all(|dropped| dropped.link_time == Nanos(1_200) && dropped.packet.flow.0 == 0));
    let stats = *before.program.stats();
    assert_eq!((stats.fed_back, stats.chosen), (before.log.fed_back, before.log.fed_back));
    assert_eq!((stats.dropped, stats.collisions), (dropped.len() as u64, 0));
    // Each dropped packet arrived within the hold time after a packet of its flow that had waited too long, and not
    // before the copy of that packet had returned to ingress.
    let late = before.log.sent.iter().map(|sent| sent.departure).filter(|left| left.sojourn() > Nanos(MS / 2));
    let late = late.filter(|left| left.packet.flow.0 == 0).map(|left| left.dequeued).collect::<Vec<_>>();
    for dropped in dropped {
        let fed_back = |left: &Nanos| (Nanos(700)..=Nanos(700) + hold).contains(&dropped.at.saturating_sub(*left));
        assert!(late.iter().any(fed_back), "{:?}", dropped.at);
    }

    // Long after the last copy, a packet of the flow passes.
    let quiet = *late.last().unwrap() + Nanos(100 * MS);
    before.offer(quiet, 0, capable(100_000, 0, 1500), headers(0, 0));
    before.run_out();
    assert_eq!(before.log.sent.last().unwrap().departure.packet.id.0, 100_000);
}

#[test]
fn with_one_register_only_the_last_flow_is_held() {
    let act_at = ActAt::Ingress(HoldParams { hold: Nanos(MS), registers: 0, action: HeldAction::Respond });
    let mut program = program(ConQuestAqmParams { act_at, ..exact_params() });
    let mut log = Log::default();
    let mut arrive = |flow: u32, time: u64, fed_back: bool| {
        let mut packet = capable(time, flow, 1000);
        let mut headers = headers(0, 0);
        headers.fed_back = fed_back;
        program.ingress(Port(0), &mut packet, &mut headers, Nanos(time), &mut log);
        packet.ecn == Ecn::Ce
    };
    arrive(1, 10, true);
    assert!(arrive(1, 11, false) && !arrive(2, 12, false));
    arrive(2, 13, true);
    assert!(arrive(2, 14, false) && !arrive(1, 15, false));
    assert!(!arrive(2, 13 + MS, false));
    assert_eq!((program.stats().collisions, program.stats().fed_back, program.stats().marked), (1, 2, 2));
}

/// Packets of flow 0 each 0.12 ms, and of flow 1 each 1.2 ms, through a link that sends one each 0.12 ms, for half a second. Returns the packets of each flow that
/// were sent, and the time that those of flow 1 waited on average, in ns.
fn two_flows(action: Option<HeldAction>, hold: Nanos) -> (Switch<ConQuestAqm>, [usize; 2], u64) {
    let sketch = ConQuestParams { window: Nanos(MS), ..ConQuestAqmParams::default().sketch };
    let act_at =
        action.map_or(ActAt::Egress, |action| ActAt::Ingress(HoldParams { hold, action, ..HoldParams::default() }));
    // Without an action, no packet is chosen.
    let threshold = if action.is_some() { 20.0 } else { 1e9 };
    let params = ConQuestAqmParams { sketch, tau: Nanos(3 * MS), threshold, act_at, ..ConQuestAqmParams::default() };
    let ports = outlets(&[100_000_000], 2);
    let program = ConQuestAqm::new(params, &ports).unwrap();
    let queues = program.queues(Limit::Packets(100)).queues.get();
    let mut switch = Switch::new(program, &ports, queues, Limit::Packets(100), Nanos(2_000));
    for n in 0..4_000u64 {
        switch.offer(Nanos(n * 120_000), 0, packet(n, 0, 1500), headers(0, 0));
        if n % 10 == 5 {
            switch.offer(Nanos(n * 120_000 + 60_000), 0, packet(10_000 + n, 1, 1500), headers(0, 0));
        }
    }
    switch.run_out();
    let of = |flow| switch.log.sent.iter().filter(move |sent| sent.departure.packet.flow.0 == flow);
    let waited = of(1).map(|sent| sent.departure.sojourn().0).sum::<u64>() / of(1).count() as u64;
    let sent = [of(0).count(), of(1).count()];
    (switch, sent, waited)
}

/// A flow that is held has what its limit leaves it, and the other flow does not wait for its queue, as it does without the program.
#[test]
fn a_limit_keeps_the_queue_for_the_other_flow() {
    let (_, [heavy, light], waited) = two_flows(None, Nanos::ZERO);
    assert!(heavy > 3_500 && light > 380 && waited > 8 * MS, "{heavy} and {light} packets, {waited} ns");
    // At most 5000 packets per second: 60 % of the link.
    let limit = FlowLimit { interval: Nanos(200_000), burst: 4 };
    let (switch, [limited, light], waited) = two_flows(Some(HeldAction::Limit(limit)), Nanos(1_000 * MS));
    assert!((2_400..2_700).contains(&limited) && light == 400 && waited < MS, "{limited}, {light}, {waited} ns");
    let stats = *switch.program.stats();
    assert!(stats.within_limit > 2_000 && stats.rerouted == 0, "{stats:?}");
    assert!(switch.log.dropped.iter().all(|dropped| dropped.packet.flow.0 == 0 && dropped.enqueued.is_none()));
    assert_eq!(stats.dropped, switch.log.dropped.len() as u64);
}

/// A flow that is held enters queue 0, and all others queue 1, where none waits for it for longer than a packet takes.
#[test]
fn a_rerouted_flow_waits_in_its_own_queue() {
    let (switch, [heavy, light], waited) = two_flows(Some(HeldAction::Reroute), Nanos(20 * MS));
    assert!(heavy > 3_300 && light == 400 && waited < MS, "{heavy} and {light} packets, {waited} ns");
    let aside = switch.log.sent.iter().filter(|sent| sent.departure.queue == QueueId(0));
    assert!(aside.clone().all(|sent| sent.departure.packet.flow.0 == 0), "only the heavy flow is there");
    let stats = *switch.program.stats();
    // Those that the queue has no room for were put there, too.
    assert!(aside.count() > 3_000 && stats.rerouted > 3_000 && stats.dropped == 0, "{stats:?}");
}

#[test]
fn a_dropped_flow_is_dropped_whatever_its_codepoint() {
    let act_at = ActAt::Ingress(HoldParams { action: HeldAction::Drop, ..HoldParams::default() });
    let mut program = program(ConQuestAqmParams { act_at, ..exact_params() });
    let mut log = Log::default();
    let mut arrive = |ecn, fed_back| {
        let mut packet = Packet { ecn, ..packet(1, 1, 1000) };
        let mut headers = headers(0, 0);
        headers.fed_back = fed_back;
        (program.ingress(Port(0), &mut packet, &mut headers, Nanos(10), &mut log), packet.ecn)
    };
    assert_eq!(arrive(Ecn::Ect0, false), (Ingress::Enqueue(0), Ecn::Ect0));
    arrive(Ecn::Ect0, true);
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ce] {
        assert_eq!(arrive(ecn, false), (Ingress::Drop(DropReason::FlowWeight), ecn));
    }
    assert_eq!((program.stats().dropped, program.stats().marked), (3, 0));
}
