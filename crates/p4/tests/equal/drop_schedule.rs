//! CoDel_DP and ECN#_DP.

use super::{Leaving, NoSink, wandering};
use proptest::prelude::*;
use queuescope_p4::algorithms::{codel_dp_with, ecn_sharp_dp_with};
use queuescope_p4::ir::{Interpreter, PacketFate, SwitchProgram};
use queuescope_queue::{
    CodelDp, CodelDpParams, EcnSharpDp, EcnSharpDpParams, Egress, Headers, Host, Pipeline, Port, ScheduledDrops,
};
use queuescope_wire::{Ecn, FlowId, Nanos};

/// How many packets differ in their fate or the registers of their port, and the packets that were dropped and marked.
fn compare<P: Pipeline>(
    program: &SwitchProgram,
    mut rust: P,
    registers: impl Fn(&P, Port) -> Option<ScheduledDrops>,
    packets: impl Iterator<Item = Leaving>,
) -> (usize, [u32; 2]) {
    let mut interpreter = Interpreter::new(program, 4);
    let (mut different, mut acts) = (0, [0; 2]);
    for packet in packets {
        let (mut departure, port) = (packet.departure(), Port(packet.port));
        let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
        let dropped = rust.egress(port, &mut departure, headers, &mut NoSink) != Egress::Send;
        let chosen = PacketFate { dropped, marked: departure.packet.ecn != packet.ecn, ..PacketFate::default() };
        let mut fate = interpreter.run(&|input| packet.input(input), &mut |_bits| 0);
        // To mark what is marked changes nothing.
        fate.marked &= packet.ecn != Ecn::Ce;
        let word =
            |register| interpreter.words(register).and_then(|words| words.get(usize::from(packet.port)).copied());
        let words = registers(&rust, port).map(|it| [u64::from(it.last_below), u64::from(it.count)]);
        different += usize::from(fate != chosen || words.map(|it| it.map(Some)) != Some([word(0), word(1)]));
        acts[0] += u32::from(fate.dropped);
        acts[1] += u32::from(fate.marked);
    }
    (different, acts)
}

fn codel(params: CodelDpParams, packets: impl Iterator<Item = Leaving>) -> (usize, [u32; 2]) {
    let program = codel_dp_with(&params).expect("they fit");
    compare(&program, CodelDp::new(params, 4), CodelDp::registers, packets)
}

fn ecn_sharp(params: EcnSharpDpParams, packets: impl Iterator<Item = Leaving>) -> (usize, [u32; 2]) {
    let program = ecn_sharp_dp_with(&params).expect("they fit");
    compare(&program, EcnSharpDp::new(params, 4), EcnSharpDp::registers, packets)
}

#[test]
fn decisions_and_registers_are_those_of_the_rust_types() {
    for seed in 1..=3 {
        let (different, acts) = codel(CodelDpParams::default(), wandering(seed, crate::packets()));
        assert!(different == 0 && acts.iter().all(|count| *count > 100), "CoDel_DP, {seed}: {different}, {acts:?}");
        let (different, acts) = ecn_sharp(EcnSharpDpParams::default(), wandering(seed, crate::packets()));
        assert!(different == 0 && acts[1] > 1_000, "ECN#_DP, {seed}: {different}, {acts:?}");
    }
}

/// Packets of one port that leave each 100 us, and waited for this long, except the first.
fn standing(sojourn: u64, packets: u64) -> impl Iterator<Item = Leaving> {
    wandering(1, packets as usize).zip(0..).map(move |(packet, number)| Leaving {
        port: 0,
        now: Nanos(100_000 * number + sojourn),
        sojourn: Nanos(if number == 0 { 0 } else { sojourn }),
        ..packet
    })
}

#[test]
fn a_table_that_ends_just_below_a_power_of_two_is_the_same() {
    // Its end, in units of the key, would take one bit more.
    let params = CodelDpParams { interval: Nanos(5_855 << 10), ..CodelDpParams::default() };
    let (different, acts) = codel(params, standing(1_000_000, 5_000));
    assert!(different == 0 && acts[0] + acts[1] > 700, "{different}, {acts:?}");
}

#[test]
fn a_queue_that_stands_for_longer_than_the_table_is_the_same() {
    // The table ends after 112 ms.
    let (different, acts) = codel(CodelDpParams::default(), standing(1_000_000, 20_000));
    assert!(different == 0 && acts[0] + acts[1] > 5_000, "{different}, {acts:?}");
}

proptest! {
    /// With any parameters that a scenario takes.
    #[test]
    fn any_parameters_give_the_same(
        target in 0u64..20_000_000,
        instant in 0u64..20_000_000,
        interval in prop_oneof![1_024u64..5_000_000, 1_024u64..48_000_000_000],
        ecn: bool,
        stands: bool,
        seed in any::<u64>(),
    ) {
        let packets = || -> Box<dyn Iterator<Item = Leaving>> {
            if stands { Box::new(standing(target, 2_000)) } else { Box::new(wandering(seed, 2_000)) }
        };
        let [target, instant, interval] = [target, instant, interval].map(Nanos);
        let params = CodelDpParams { target, interval, ecn, ..CodelDpParams::default() };
        prop_assert_eq!(codel(params, packets()).0, 0);
        let params = EcnSharpDpParams {
            instant_target: instant,
            persistent_target: target,
            persistent_interval: interval,
            ..EcnSharpDpParams::default()
        };
        prop_assert_eq!(ecn_sharp(params, packets()).0, 0);
    }
}
