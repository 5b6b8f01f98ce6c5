//! ConQuest.

use super::{Leaving, NoSink, same_numbers, wandering};
use proptest::prelude::*;
use queuescope_p4::Gress;
use queuescope_p4::algorithms::conquest_with;
use queuescope_p4::ir::{Input, Interpreter, PacketFate, Polynomial, SwitchProgram};
use queuescope_queue::{
    ActAt, ConQuestAqm, ConQuestAqmParams, Curve, Egress, FlowLimit, Headers, HeldAction, HoldParams, Host, Ingress,
    Outlet, Pipeline, Port, Response, Step, Steps, WeightUnit,
};
use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, Passes, Weights};
use queuescope_wire::{Ecn, FlowId, Nanos, QueueId};
use std::sync::LazyLock;

/// What a switch can do, in the dimensions of section 5.2.
fn switch() -> ConQuestAqmParams {
    let sketch = ConQuestParams {
        snapshots: 4,
        rows: 2,
        columns: 64,
        window: Nanos(1 << 21),
        expiry: Expiry::Clean { passes: Passes::None },
        weights: Weights::Fine,
        seed: 0,
    };
    ConQuestAqmParams { sketch, estimator: Estimator::Inner, threshold: 40.0, ..ConQuestAqmParams::default() }
}

/// The hashes of the Rust type for 64 columns.
fn its_columns(polynomial: Polynomial, input: &dyn Fn(Input) -> u64) -> u64 {
    static SKETCH: LazyLock<ConQuest> = LazyLock::new(|| {
        let params = ConQuestParams { rows: 4, columns: 64, ..switch().sketch };
        ConQuest::new(params).expect("it is valid")
    });
    let row = Polynomial::ALL.iter().position(|it| *it == polynomial).expect("it is one of them");
    SKETCH.columns(ConQuestAqm::key(flow(input))).nth(row).expect("there are four rows") as u64
}

/// The same, where the last two hashes are those of the ingress: the entry and the flow itself.
fn its_registers(polynomial: Polynomial, input: &dyn Fn(Input) -> u64) -> u64 {
    static AQM: LazyLock<ConQuestAqm> = LazyLock::new(|| {
        let params = ConQuestAqmParams { act_at: ActAt::Ingress(hold(Nanos(0))), ..switch() };
        ConQuestAqm::new(params, &[outlet(1)]).expect("it is valid")
    });
    match polynomial {
        Polynomial::CastagnoliD => AQM.register_of(Port(0), flow(input)) as u64,
        Polynomial::Autosar => flow(input).0.into(),
        _ => its_columns(polynomial, input),
    }
}

/// The flow, which is in the source.
fn flow(input: &dyn Fn(Input) -> u64) -> FlowId {
    FlowId(input(Input::Source) as u32 & 0xff_ffff)
}

/// Few registers, so that flows take them from each other.
fn hold(hold: Nanos) -> HoldParams {
    HoldParams { hold, registers: 16, action: HeldAction::Respond }
}

/// The same with another action.
fn acting(action: HeldAction) -> ActAt {
    ActAt::Ingress(HoldParams { action, ..hold(Nanos(100_000)) })
}

fn outlet(seed: u64) -> Outlet {
    Outlet { rate: "10gbps".parse().expect("a rate"), overhead: 0, queue: QueueId(0), seed }
}

/// How many packets were dropped, marked, within a limit, and put into the queue of held flows.
type Acts = [u64; 4];

/// How many packets differ, and what happened to them. Where generated packets clean, they come at the end of each window that
/// has too few packets.
fn compare(
    program: &SwitchProgram,
    params: &ConQuestAqmParams,
    seed: u64,
    packets: impl Iterator<Item = Leaving>,
) -> (usize, Acts) {
    let mut rust = ConQuestAqm::new(params.clone(), &[outlet(seed)]).expect("they are valid");
    let hash = if params.act_at == ActAt::Egress { its_columns } else { its_registers };
    let (mut interpreter, mut random) = (Interpreter::new(program, 1 << 16).with_hash(hash), same_numbers(seed));
    let (window, columns) = (params.sketch.window.0, params.sketch.columns as u64);
    let generated = params.sketch.expiry == Expiry::Clean { passes: Passes::Generated };
    let (mut different, mut acts, mut now, mut cleaned) = (0, [0; 4], None, 0);
    for packet in packets {
        let packet = Leaving { port: 0, ..packet };
        let number = packet.now.0 / window;
        for past in now.unwrap_or(number)..number {
            for _ in cleaned..if generated { columns } else { 0 } {
                let input = |input| match input {
                    Input::Generated => 1,
                    Input::Dequeued => past * window,
                    _ => 0,
                };
                let fate = interpreter.run(&input, &mut random);
                assert!(
                    fate == PacketFate { dropped: true, ..PacketFate::default() },
                    "generated packets go no further"
                );
            }
            cleaned = 0;
        }
        (now, cleaned) = (Some(number), cleaned + 1);
        let at_ingress = before_the_queue(&mut rust, &mut interpreter, packet, false);
        different += usize::from(at_ingress[0] != at_ingress[1] || !has_the_time_of(&rust, &interpreter, packet.flow));
        let mut departure = packet.departure();
        let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
        let egress = rust.egress(Port(0), &mut departure, headers, &mut NoSink);
        let chosen = PacketFate {
            dropped: matches!(egress, Egress::Drop(_)),
            marked: departure.packet.ecn != packet.ecn,
            fed_back: egress == Egress::SendAndFeedBack,
            ..PacketFate::default()
        };
        let mut fate = interpreter.run(&|input| packet.input(input), &mut random);
        fate.marked &= packet.ecn != Ecn::Ce;
        if chosen.fed_back {
            let [one, other] = before_the_queue(&mut rust, &mut interpreter, packet, true);
            assert!(one == other && one.dropped, "a copy that comes back goes no further");
        }
        different += usize::from(fate != chosen || !counts_are_those_of(&rust, &interpreter, params, packet.flow));
        for fate in [at_ingress[0], fate] {
            acts[0] += u64::from(fate.dropped);
            acts[1] += u64::from(fate.marked);
            acts[3] += u64::from(fate.queue == Some(0));
        }
    }
    acts[2] = rust.stats().within_limit;
    different +=
        (0..params.sketch.columns).filter(|column| !column_is_that_of(&rust, &interpreter, params, *column)).count();
    (different, acts)
}

/// What happens to a packet before the queue, by the Rust type and by the program. It comes when it leaves, since only the times of arrivals
/// matter.
fn before_the_queue(
    rust: &mut ConQuestAqm,
    ours: &mut Interpreter<'_>,
    packet: Leaving,
    fed_back: bool,
) -> [PacketFate; 2] {
    let mut own = packet.departure().packet;
    let headers = &mut Headers { fed_back, ..Headers::plain(Host(1), Host(2), FlowId(9)) };
    let ingress = rust.ingress(Port(0), &mut own, headers, packet.now, &mut NoSink);
    let dropped = !matches!(ingress, Ingress::Enqueue(_));
    let reroutes = matches!(rust.params().act_at, ActAt::Ingress(HoldParams { action: HeldAction::Reroute, .. }));
    let queue = match ingress {
        Ingress::Enqueue(queue) if reroutes => Some(queue as u8),
        _ => None,
    };
    let input = |input| match input {
        Input::Arrived => packet.now.0,
        Input::FedBack => fed_back.into(),
        input => packet.input(input),
    };
    let mut fate = ours.run_at(Gress::Ingress, &input, &mut |_bits| 0);
    fate.marked &= packet.ecn != Ecn::Ce;
    [PacketFate { dropped, marked: own.ecn != packet.ecn, queue, ..PacketFate::default() }, fate]
}

/// Whether the time of a flow's limit is the same, modulo 2^32. It is in the last register, if there is one.
fn has_the_time_of(rust: &ConQuestAqm, ours: &Interpreter<'_>, flow: u32) -> bool {
    let ActAt::Ingress(HoldParams { action: HeldAction::Limit(_), .. }) = rust.params().act_at else { return true };
    let register = rust.register_of(Port(0), FlowId(flow));
    let last = (0..).map_while(|register| ours.words(register)).last().expect("there are registers");
    rust.limit_time(register).map(|time| time.0 & u64::from(u32::MAX)) == last.get(register).copied()
}

/// Whether the counts of a flow are the same in all snapshots.
fn counts_are_those_of(rust: &ConQuestAqm, ours: &Interpreter<'_>, params: &ConQuestAqmParams, flow: u32) -> bool {
    let sketch = rust.snapshots(Port(0)).expect("there is a port");
    let columns: Vec<_> = sketch.columns(ConQuestAqm::key(FlowId(flow))).collect();
    (0..params.sketch.snapshots).all(|snapshot| {
        columns.iter().enumerate().all(|(row, column)| {
            let words = ours.words(1 + snapshot * params.sketch.rows + row).expect("a register for each row");
            sketch.counter(snapshot, row, *column).map(u64::from) == words.get(*column).copied()
        })
    })
}

fn column_is_that_of(rust: &ConQuestAqm, ours: &Interpreter<'_>, params: &ConQuestAqmParams, column: usize) -> bool {
    let sketch = rust.snapshots(Port(0)).expect("there is a port");
    (0..params.sketch.snapshots).all(|snapshot| {
        (0..params.sketch.rows).all(|row| {
            let words = ours.words(1 + snapshot * params.sketch.rows + row).expect("a register for each row");
            sketch.counter(snapshot, row, column).map(u64::from) == words.get(column).copied()
        })
    })
}

#[test]
fn decisions_and_registers_are_those_of_the_rust_type() {
    let limit = FlowLimit { interval: Nanos(60_000), burst: 2 };
    for (act_at, happens) in [
        (ActAt::Egress, [true, true, false, false]),
        (acting(HeldAction::Respond), [true, true, false, false]),
        (acting(HeldAction::Drop), [true, false, false, false]),
        (acting(HeldAction::Limit(limit)), [true, false, true, false]),
        (acting(HeldAction::Reroute), [false, false, false, true]),
    ] {
        let params = ConQuestAqmParams { act_at, ..switch() };
        let program = conquest_with(&params).expect("a switch can do this");
        for seed in 1..=3 {
            let (different, acts) = compare(&program, &params, seed, wandering(seed, crate::packets()));
            let acts_as_it_should = acts.iter().zip(happens).all(|(count, happens)| (*count > 1_000) == happens);
            assert!(different == 0 && acts_as_it_should, "{act_at:?}, seed {seed}: {different}, {acts:?}");
        }
    }
}

/// A flow that was fed back once is let alone when the hold is over, also where times of 32 bits are far apart.
#[test]
fn a_hold_ends() {
    let hold = Nanos(2_000_000);
    let params = ConQuestAqmParams { act_at: ActAt::Ingress(self::hold(hold)), ..switch() };
    let program = conquest_with(&params).expect("a switch can do this");
    let mut interpreter = Interpreter::new(&program, 16);
    let mut is_acted_on = |time: u64, fed_back: bool| {
        let input = |input| match input {
            Input::Arrived => time,
            Input::FedBack => fed_back.into(),
            Input::Ecn => 2,
            _ => 7,
        };
        interpreter.run_at(Gress::Ingress, &input, &mut |_bits| 0).marked
    };
    let began = 10_000_000_000;
    is_acted_on(began, true);
    let later: Vec<_> =
        [0, 1, 1_999_999, 2_000_000, 500_000_000, 2_147_483_648, 2_200_000_000, 3_000_000_000, 4_290_000_000]
            .into_iter()
            .filter(|time| is_acted_on(began + time, false))
            .collect();
    assert_eq!(later, [0, 1, 1_999_999]);
}

/// Where times of 32 bits wrap, a flow that comes back after any time has its burst, and no more.
#[test]
fn a_limit_knows_times_of_long_ago() {
    let limit = FlowLimit { interval: Nanos(1_000_000), burst: 3 };
    let action = HeldAction::Limit(limit);
    let params =
        ConQuestAqmParams { act_at: ActAt::Ingress(HoldParams { action, ..hold(Nanos(2_000_000)) }), ..switch() };
    let program = conquest_with(&params).expect("a switch can do this");
    let later = [
        2_000_000,
        2_000_001,
        2_999_999,
        3_000_000,
        2_147_483_647,
        2_147_483_648,
        2_150_000_000,
        3_000_000_000,
        4_290_000_000,
    ];
    for later in later.into_iter().chain([4_294_967_296, 4_294_967_297, 5_000_000_000, 1 << 40]) {
        let mut rust = ConQuestAqm::new(params.clone(), &[outlet(1)]).expect("it is valid");
        let mut ours = Interpreter::new(&program, 1 << 16).with_hash(its_registers);
        let leaving = |time| Leaving { now: Nanos(time), ..wandering(1, 1).next().expect("there is one") };
        let began = 10_000_000_000;
        for time in [began, began + later] {
            let fates = before_the_queue(&mut rust, &mut ours, leaving(time), true);
            assert_eq!(fates[0], fates[1]);
            for after in [0, 0, 0, 0, 500_000, 1_000_000, 1_000_000, 1_999_999] {
                let [one, other] = before_the_queue(&mut rust, &mut ours, leaving(time + after), false);
                // Within 3 ms of a wrap, the program takes a time of long ago for one that is ahead.
                let wraps = time != began && later.abs_diff(1 << 32) < 4_000_000;
                assert!(one == other || wraps, "{later} later, after {after}: {one:?}, {other:?}");
            }
        }
    }
}

fn curve() -> impl Strategy<Value = Curve> {
    let steps = prop::collection::btree_map(0u32..60_000, 0.0f64..=1.0, 1..8).prop_map(|steps| {
        let steps: Vec<_> =
            steps.into_iter().map(|(from, probability)| Step { from: from.into(), probability }).collect();
        Curve::Steps(Steps::new(steps).expect("they are in order"))
    });
    prop_oneof![Just(Curve::Threshold), steps]
}

fn action() -> impl Strategy<Value = HeldAction> {
    let limit = (0u64..400_000, 0u32..5)
        .prop_map(|(interval, burst)| HeldAction::Limit(FlowLimit { interval: Nanos(interval), burst }));
    prop_oneof![2 => Just(HeldAction::Respond), 1 => Just(HeldAction::Drop), 3 => limit, 1 => Just(HeldAction::Reroute)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// With any parameters that the program takes, where packets clean and where generated ones help.
    #[test]
    fn any_parameters_give_the_same(
        snapshots in prop::sample::select(vec![4usize, 8, 16]),
        rows in 1usize..=4,
        window in 16u32..=24,
        generated in any::<bool>(),
        bytes in any::<bool>(),
        tau in 0u64..8_000_000,
        threshold in 0.0f64..200.0,
        curve in curve(),
        held in prop::option::of(0u64..5_000_000),
        response in prop::sample::select(vec![Response::MarkOrDrop, Response::MarkOnly, Response::Drop]),
        action in action(),
        seed in any::<u64>(),
    ) {
        let passes = if generated { Passes::Generated } else { Passes::None };
        let window = Nanos(1 << window);
        let act_at = held.map_or(ActAt::Egress, |time| ActAt::Ingress(HoldParams { action, ..hold(Nanos(time)) }));
        let response = if held.is_none() || action == HeldAction::Respond { response } else { Response::MarkOrDrop };
        let rows = if held.is_some() { rows.min(2) } else { rows };
        let sketch = ConQuestParams { snapshots, rows, window, expiry: Expiry::Clean { passes }, ..switch().sketch };
        let (unit, threshold) = if bytes { (WeightUnit::Bytes, threshold * 700.0) } else { (WeightUnit::Packets, threshold) };
        // Beside steps, a threshold has no effect and is refused.
        let threshold = if curve == Curve::Threshold { threshold } else { ConQuestAqmParams::default().threshold };
        let params = ConQuestAqmParams { sketch, unit, tau: Nanos(tau), threshold, curve, response, act_at, ..switch() };
        let program = conquest_with(&params).expect("a switch can do this");
        prop_assert_eq!(compare(&program, &params, seed, wandering(seed, 2_000)).0, 0);
    }
}
