//! Rows of round trips against a simple count over all packets, and the judgement of flows made by hand.

use proptest::prelude::*;
use queuescope_meter::{Behaviour, BehaviourParams, Behaviours, FlowRounds, Round};
use queuescope_wire::{ByteCount, Departure, Ecn, FlowId, Nanos, Packet};

const MS: u64 = 1_000_000;
const RTT: u64 = 40 * MS;

fn departure(at: u64, waited: u64, size: u64, ecn: Ecn) -> Departure {
    let packet = Packet { size: ByteCount(size), ecn, ..Packet::default() };
    Departure { packet, enqueued: Nanos(at), dequeued: Nanos(at + waited), ..Departure::default() }
}

/// A meter of one flow whose handshake took `RTT`, and which has just been given a place.
fn begun(params: BehaviourParams) -> (Behaviours, u64) {
    let mut meter = Behaviours::new(params);
    meter.departed(FlowId(0), &departure(0, 0, 60, Ecn::NotEct));
    for number in 1..u64::from(params.heavy) {
        meter.departed(FlowId(0), &departure(RTT + number, 0, 1_500, Ecn::NotEct));
    }
    (meter, RTT + u64::from(params.heavy) - 1)
}

proptest! {
    /// Each row has what arrived in its time, and drops are in the row of their arrival, also ahead of departures.
    #[test]
    fn rows_count_what_arrived_in_their_time(
        events in proptest::collection::vec((0..30 * MS, 0..90 * MS, 60..1_501u64, 0..4u8, any::<bool>()), 1..400)
    ) {
        let (mut meter, begin) = begun(BehaviourParams::default());
        let (mut now, mut departures, mut drops) = (begin, Vec::new(), Vec::new());
        for (gap, waited, size, ecn, is_dropped) in events {
            now += gap;
            if is_dropped {
                drops.push(now);
            } else {
                departures.push(departure(now, waited, size, Ecn::from_bits(ecn)));
            }
        }
        // A meter gets departures in order of departure, and drops when they happen.
        departures.sort_by_key(|departure| departure.dequeued);
        let (mut lost, mut ahead) = (drops.iter().peekable(), 0);
        let mut reached = 0;
        for departure in &departures {
            while let Some(at) = lost.next_if(|at| **at <= departure.dequeued.0) {
                meter.dropped(FlowId(0), Nanos(*at));
                ahead = ahead.max((at - begin) / RTT);
            }
            meter.departed(FlowId(0), departure);
            reached = reached.max((departure.enqueued.0 - begin) / RTT);
        }
        let flow = meter.flow(FlowId(0)).expect("it is heavy");
        prop_assert_eq!(flow.first(), 0);
        prop_assert_eq!(flow.missed(), 0);
        prop_assert_eq!(flow.rounds().len() as u64, reached);
        let seen = drops.len() - lost.count();
        for (number, row) in flow.rounds().enumerate() {
            let is_in = |at: u64| (at - begin) / RTT == number as u64;
            let here: Vec<_> = departures.iter().filter(|departure| is_in(departure.enqueued.0)).collect();
            prop_assert_eq!(row.packets as usize, here.len());
            prop_assert_eq!(u64::from(row.bytes), here.iter().map(|departure| departure.packet.size.0).sum::<u64>());
            prop_assert_eq!(usize::from(row.marks), here.iter().filter(|departure| departure.packet.ecn == Ecn::Ce).count());
            let expected: u64 = here.iter().map(|departure| departure.packet.size.0 * (departure.sojourn().0 >> 10)).sum();
            prop_assert!((f64::from(row.waited) - expected as f64).abs() <= 1e-4 * expected as f64 + 1.0);
            let longest = here.iter().map(|departure| departure.sojourn().0 >> 10).max().unwrap_or(0);
            prop_assert_eq!(u64::from(row.most_sojourn), longest);
            prop_assert_eq!(usize::from(row.drops), drops[..seen].iter().filter(|at| is_in(**at)).count());
        }
    }

    /// However flows come and go, no more than the given number has rows, and every heavy flow has some or is counted.
    #[test]
    fn the_number_of_flows_is_bounded(events in proptest::collection::vec((0..12u32, 0..5u8), 1..600)) {
        let params = BehaviourParams { flows: 3, heavy: 4, idle: Nanos(50 * MS) };
        let (mut meter, mut counts) = (Behaviours::new(params), [0u32; 12]);
        for (number, (flow, event)) in events.into_iter().enumerate() {
            if event == 0 {
                meter.forget(FlowId(flow));
                counts[flow as usize] = 0;
            } else {
                meter.departed(FlowId(flow), &departure(number as u64 * MS, 0, 1_500, Ecn::NotEct));
                counts[flow as usize] += 1;
            }
            let followed = (0..12).filter(|flow| meter.flow(FlowId(*flow)).is_some()).count();
            prop_assert!(followed <= params.flows);
            let light = (0..12).filter(|flow| counts[*flow as usize] < params.heavy && meter.flow(FlowId(*flow)).is_some());
            prop_assert_eq!(light.count(), 0);
            let heavy = counts.iter().filter(|count| **count >= params.heavy).count() as u64;
            let stats = meter.stats();
            prop_assert!(followed as u64 + stats.unfollowed + stats.replaced >= heavy);
        }
    }

    /// No rows make the judge fail, and numbers stay finite.
    #[test]
    fn any_rows_can_be_judged(rows in proptest::collection::vec((0..50u32, 0..60u32, 0..2_000u32, 0..3u16, 0..3u16), 0..300)) {
        let rounds: Vec<_> = rows.into_iter().map(|(packets, waited, total, drops, marks)| Round {
            packets,
            bytes: packets * 1_500,
            waited: (packets * 1_500) as f32 * waited as f32,
            least_sojourn: waited,
            most_sojourn: waited,
            total: total * 1_500,
            drops,
            marks,
        }).collect();
        for rtt in [None, Some(Nanos(RTT))] {
            let evidence = FlowRounds::from_rounds(rtt, 0, &rounds, [10, 5, 5]).judge().evidence;
            for value in [evidence.share, evidence.window, evidence.rate_variation, evidence.losses.ratio, evidence.marks.growth,
                evidence.backlog, evidence.periodicity, evidence.pulse_period] {
                prop_assert!(value.is_finite(), "{:?}", evidence);
            }
        }
    }
}

/// Rows of a flow: in each round its packets, how many of its own wait on average, and drops.
fn flow(rows: impl IntoIterator<Item = (f64, f64, u16)>) -> FlowRounds {
    let rounds: Vec<_> = rows
        .into_iter()
        .map(|(packets, backlog, drops)| {
            let bytes = (packets * 1_500.0) as u32;
            let sojourn = (backlog / packets.max(1.0) * RTT as f64 / 1024.0) as u32;
            Round {
                packets: packets as u32,
                bytes,
                waited: (backlog * 1_500.0 * RTT as f64 / 1024.0) as f32,
                least_sojourn: sojourn,
                most_sojourn: sojourn,
                total: bytes,
                drops,
                marks: 0,
            }
        })
        .collect();
    FlowRounds::from_rounds(Some(Nanos(RTT)), 0, &rounds, [1, 0, 0])
}

#[test]
fn a_sawtooth_with_losses_is_loss_driven() {
    // A link of 100 packets in a round trip, and a queue of as many: from 200 in flight to 100, and a packet more in each round.
    let rows = (0..400).map(|round| {
        let tooth = round % 50;
        let window = match tooth {
            0..=2 => 200.0,
            3 => 150.0,
            _ => 100.0 + f64::from(tooth) * 2.0,
        };
        (100.0, window - 100.0, u16::from(tooth == 0))
    });
    let judgement = flow(rows).judge();
    assert_eq!(judgement.behaviour, Behaviour::LossDriven, "{judgement:?}");
}

#[test]
fn a_short_steady_backlog_without_losses_is_delay_based() {
    let rows = (0..400).map(|round| (100.0, 3.0 + f64::from(round / 40 % 2), 0));
    let judgement = flow(rows).judge();
    assert_eq!(judgement.behaviour, Behaviour::DelayBased, "{judgement:?}");
}

#[test]
fn regular_pulses_are_model_based() {
    let rows = (0..400).map(|round| match round % 8 {
        0 => (125.0, 12.0, 0),
        1 => (76.0, 12.0, 0),
        _ => (100.0, 0.5, 0),
    });
    let judgement = flow(rows).judge();
    assert_eq!(judgement.behaviour, Behaviour::ModelBased, "{judgement:?}");
}

#[test]
fn a_constant_window_without_losses_is_too_little_evidence() {
    // The application or the receiver may limit it.
    for backlog in [0.0, 40.0] {
        let judgement = flow((0..400).map(|_| (100.0, backlog, 0))).judge();
        assert_eq!(judgement.behaviour, Behaviour::TooLittleEvidence, "{judgement:?}");
    }
}

#[test]
fn a_short_flow_is_too_little_evidence() {
    let judgement = flow((0..60).map(|_| (100.0, 3.0, 0))).judge();
    assert_eq!(judgement.behaviour, Behaviour::TooLittleEvidence);
}

#[test]
fn a_heavy_flow_takes_the_place_of_a_light_one_that_has_just_ended() {
    let params = BehaviourParams { flows: 2, heavy: 4, idle: Nanos(10_000 * MS) };
    let mut meter = Behaviours::new(params);
    let mut now = 0;
    let mut send = |meter: &mut Behaviours, flow, count| {
        for _ in 0..count {
            now += MS;
            meter.departed(FlowId(flow), &departure(now, 0, 1_500, Ecn::NotEct));
        }
    };
    send(&mut meter, 0, 10);
    send(&mut meter, 1, 100);
    send(&mut meter, 2, 31);
    assert!(meter.flow(FlowId(2)).is_none(), "both places are taken");
    assert_eq!(meter.stats().unfollowed, 1);
    send(&mut meter, 2, 1);
    // It has 32 packets, and the lightest flow had six since it got its place.
    assert!(meter.flow(FlowId(2)).is_some() && meter.flow(FlowId(0)).is_none());
    assert_eq!((meter.stats().unfollowed, meter.stats().replaced), (0, 1));
    assert!(meter.flow(FlowId(1)).is_some());
}

#[test]
fn a_connection_without_its_handshake_that_has_the_link_to_itself_is_not_unresponsive() {
    let rows = |drops_each: usize| {
        let rounds: Vec<_> = (0..300)
            .map(|round| Round {
                packets: 100,
                bytes: 150_000,
                waited: 1e6,
                least_sojourn: 10,
                most_sojourn: 20,
                total: 150_000,
                drops: u16::from(round % drops_each == 0),
                marks: 0,
            })
            .collect();
        FlowRounds::from_rounds(None, 0, &rounds, [1, 0, 0]).judge().behaviour
    };
    assert_eq!(rows(30), Behaviour::TooLittleEvidence);
    // What is lost in each round is not answered.
    assert_eq!(rows(1), Behaviour::Unresponsive);
}

#[test]
fn cuts_of_the_window_without_a_loss_here_do_not_make_a_flow_delay_based() {
    // A loss elsewhere halves a window of 100 packets every 60 rounds, and the queue is never full.
    let rows = (0..400).map(|round| {
        let window = 60.0 + f64::from(round % 60);
        (f64::min(window, 100.0), f64::max(window - 100.0, 0.0), 0)
    });
    assert_eq!(flow(rows).judge().behaviour, Behaviour::TooLittleEvidence);
}
