//! ConQuest's mark for a standing queue.

use super::{Leaving, NoSink, wandering};
use proptest::prelude::*;
use queuescope_p4::algorithms::{conquest_stands_defaults, conquest_stands_with};
use queuescope_p4::ir::{Input, Interpreter, PacketFate, Polynomial, SwitchProgram};
use queuescope_queue::{ConQuestAqm, ConQuestAqmParams, Egress, Headers, Host, Outlet, Pipeline, Port, Response};
use queuescope_sketch::{ConQuest, ConQuestParams, Expiry, Passes};
use queuescope_wire::{Backlog, ByteCount, Ecn, FlowId, Nanos, QueueId};
use std::sync::LazyLock;

/// The length of all packets. At 8 Gb/s, the link sends one in as many nanoseconds.
const SIZE: u64 = 1_000;

/// What a switch can do, with few columns; the packets behind a packet that is marked become a time at this rate.
fn switch(behind: u32) -> ConQuestAqmParams {
    let usual = conquest_stands_defaults();
    let expiry = Expiry::Clean { passes: Passes::None };
    let sketch = ConQuestParams { columns: 64, expiry, ..usual.sketch };
    ConQuestAqmParams { sketch, behind: Nanos(u64::from(behind) * SIZE), ..usual }
}

/// The hashes of the Rust type for 64 columns.
fn its_columns(polynomial: Polynomial, input: &dyn Fn(Input) -> u64) -> u64 {
    static SKETCH: LazyLock<ConQuest> = LazyLock::new(|| {
        let params = ConQuestParams { rows: 4, ..switch(0).sketch };
        ConQuest::new(params).expect("it is valid")
    });
    let row = Polynomial::ALL.iter().position(|it| *it == polynomial).expect("it is one of them");
    let flow = FlowId(input(Input::Source) as u32 & 0xff_ffff);
    SKETCH.columns(ConQuestAqm::key(flow)).nth(row).expect("there are four rows") as u64
}

/// How many packets differ, and how many were dropped and marked.
fn compare(
    program: &SwitchProgram,
    params: &ConQuestAqmParams,
    packets: impl Iterator<Item = Leaving>,
) -> (usize, [u32; 2]) {
    let outlet = Outlet { rate: "8gbps".parse().expect("a rate"), overhead: 0, queue: QueueId(0), seed: 1 };
    let mut rust = ConQuestAqm::new(params.clone(), &[outlet]).expect("they are valid");
    let mut interpreter = Interpreter::new(program, 1 << 16).with_hash(its_columns);
    let (mut different, mut acts) = (0, [0; 2]);
    for packet in packets {
        // Some find few packets, so that flows have about half of them.
        let found = if packet.size % 4 == 0 { packet.sojourn.0 / 1_000_000 } else { u64::from(packet.size % 64) };
        let behind = u64::from(packet.size / 4 % 32);
        let backlog = |packets: u64| Backlog { packets, bytes: ByteCount(packets * SIZE) };
        let mut departure = packet.departure();
        (departure.backlog_in, departure.backlog_out) = (backlog(found), backlog(behind));
        let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
        let egress = rust.egress(Port(0), &mut departure, headers, &mut NoSink);
        let chosen = PacketFate {
            dropped: matches!(egress, Egress::Drop(_)),
            marked: departure.packet.ecn != packet.ecn,
            ..PacketFate::default()
        };
        let input = |input| match input {
            Input::QueueLength => found,
            Input::LengthBehind => behind,
            input => packet.input(input),
        };
        let mut fate = interpreter.run(&input, &mut |_bits| 0);
        fate.marked &= packet.ecn != Ecn::Ce;
        different += usize::from(fate != chosen);
        acts[0] += u32::from(fate.dropped);
        acts[1] += u32::from(fate.marked);
    }
    let sketch = rust.snapshots(Port(0)).expect("there is a port");
    let (rows, columns) = (params.sketch.rows, params.sketch.columns);
    for snapshot in 0..params.sketch.snapshots {
        for row in 0..rows {
            let words = interpreter.words(1 + snapshot * rows + row).expect("a register for each row");
            let same =
                |column: &usize| sketch.counter(snapshot, row, *column).map(u64::from) == words.get(*column).copied();
            different += (0..columns).filter(|column| !same(column)).count();
        }
    }
    (different, acts)
}

#[test]
fn decisions_and_registers_are_those_of_the_rust_type() {
    let params = switch(8);
    let program = conquest_stands_with(&params, 8).expect("a switch can do this");
    for seed in 1..=3 {
        let (different, acts) = compare(&program, &params, wandering(seed, crate::packets()));
        assert!(different == 0 && acts.iter().all(|count| *count > 1_000), "seed {seed}: {different}, {acts:?}");
    }
}

#[test]
fn what_a_switch_cannot_have_is_refused() {
    let usual = switch(0);
    for (params, behind, key) in [
        (ConQuestAqmParams { threshold: 0.25, ..usual.clone() }, 1, "threshold"),
        (usual.clone(), 1 << 19, "behind-packets"),
        (ConQuestAqmParams { tau: Nanos(1 << 31), ..usual.clone() }, 1, "tau"),
    ] {
        let error = conquest_stands_with(&params, behind).expect_err("it is refused").to_string();
        assert!(error.starts_with(&format!("the program conquest-stands: the parameter {key}: ")), "{error}");
    }
    assert!(conquest_stands_with(&usual, (1 << 19) - 1).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// With any parameters that the program takes.
    #[test]
    fn any_parameters_give_the_same(
        snapshots in prop::sample::select(vec![4usize, 8, 16]),
        rows in 1usize..=4,
        window in 16u32..=24,
        tau in 0u64..8_000_000,
        behind in 0u32..40,
        response in prop::sample::select(vec![Response::MarkOrDrop, Response::MarkOnly, Response::Drop]),
        seed in any::<u64>(),
    ) {
        let usual = switch(behind);
        let sketch = ConQuestParams { snapshots, rows, window: Nanos(1 << window), ..usual.sketch.clone() };
        let params = ConQuestAqmParams { sketch, tau: Nanos(tau), response, ..usual };
        let program = conquest_stands_with(&params, behind).expect("a switch can do this");
        prop_assert_eq!(compare(&program, &params, wandering(seed, 2_000)).0, 0);
    }
}
