//! PIE_DP and PIE_TABLE.

use super::{Leaving, NoSink, same_numbers, wandering};
use proptest::prelude::*;
use queuescope_p4::algorithms::{pie_dp_with, pie_table_with};
use queuescope_p4::ir::{Input, Interpreter, SwitchProgram};
use queuescope_queue::{
    Egress, Headers, Host, LONGEST_PIE_TARGET, PieDp, PieDpParams, PieTable, PieTableLayout, PieTableParams, Pipeline,
    Port, Trend,
};
use queuescope_wire::{FlowId, Nanos};

const PORTS: u16 = 4;

/// How many packets differ, and how many were dropped. Generated packets come when the Rust type has its updates, for one port after the other.
fn compare<P: Pipeline>(
    program: &SwitchProgram,
    mut rust: P,
    probability: impl Fn(&P, Port) -> Option<u32>,
    seed: u64,
    packets: impl Iterator<Item = Leaving>,
) -> (usize, usize) {
    let (mut interpreter, mut random) = (Interpreter::new(program, u64::from(PORTS)), same_numbers(seed));
    let (mut different, mut drops) = (0, 0);
    for packet in packets {
        while rust.next_timer().is_some_and(|due| due <= packet.now) {
            rust.on_timer(packet.now);
            for port in 0..PORTS {
                let input = |input| match input {
                    Input::Port => u64::from(port),
                    Input::Generated => 1,
                    _ => 0,
                };
                interpreter.run(&input, &mut random);
            }
        }
        let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
        let sent = rust.egress(Port(packet.port), &mut packet.departure(), headers, &mut NoSink);
        let fate = interpreter.run(&|input| packet.input(input), &mut random);
        let words = interpreter.words(2).expect("there are four registers");
        let rust_words = (0..PORTS).filter_map(|port| probability(&rust, Port(port)));
        let is_same = rust_words.eq(words.iter().map(|word| *word as u32));
        different += usize::from(fate.dropped != (sent != Egress::Send) || !is_same);
        drops += usize::from(fate.dropped);
    }
    (different, drops)
}

fn compare_dp(params: PieDpParams, seed: u64, count: usize) -> (usize, usize) {
    let program = pie_dp_with(&params).expect("they fit");
    let rust = PieDp::new(params, PORTS, seed);
    compare(&program, rust, PieDp::probability_register, seed, wandering(seed, count))
}

fn compare_table(params: PieTableParams, seed: u64, count: usize) -> (usize, usize) {
    let program = pie_table_with(&params).expect("they fit");
    let rust = PieTable::new(params, PORTS, seed);
    compare(&program, rust, PieTable::probability_register, seed, wandering(seed, count))
}

#[test]
fn decisions_and_registers_are_those_of_the_rust_types() {
    for seed in 1..=3 {
        for (different, drops) in [
            compare_dp(PieDpParams::default(), seed, crate::packets()),
            compare_table(PieTableParams::default(), seed, crate::packets()),
        ] {
            assert!(different == 0 && drops > 1_000, "seed {seed}: {different} differ, {drops} drops");
        }
    }
}

/// Registers have 16 bits: the Rust types take longer targets for the longest, and no program has them.
#[test]
fn targets_that_no_register_has_are_refused() {
    let why = "the parameter target: must be at most 65.535 ms: its register has 16 bits";
    for (target, fits) in [(LONGEST_PIE_TARGET, true), (Nanos(65_535_000), true), (Nanos(65_535_001), false)] {
        let dp = pie_dp_with(&PieDpParams { target, ..PieDpParams::default() }).map(|_| ());
        let table = pie_table_with(&PieTableParams { target, ..PieTableParams::default() }).map(|_| ());
        for (name, made) in [("pie-dp", dp), ("pie-table", table)] {
            let error = (!fits).then(|| format!("the program {name}: {why}"));
            assert_eq!(made.err().map(|error| error.to_string()), error);
        }
    }
}

fn trend() -> impl Strategy<Value = Trend> {
    prop_oneof![Just(Trend::AsStated), Just(Trend::AsPublished)]
}

proptest! {
    /// With any parameters that a scenario takes.
    #[test]
    fn any_shifts_give_the_same(
        target in 0..=LONGEST_PIE_TARGET.0,
        update in 1_000u64..2_000_000,
        alpha_shift in 0u32..=31,
        beta_shift in 0u32..=31,
        trend in trend(),
        act in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let [target, update] = [target, update].map(Nanos);
        let params = PieDpParams { target, update, alpha_shift, beta_shift, trend, act, ..PieDpParams::default() };
        prop_assert_eq!(compare_dp(params, seed, 2_000).0, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// The same with tables.
    #[test]
    fn any_tables_give_the_same(
        target in prop_oneof![0u64..3_000, 0..=LONGEST_PIE_TARGET.0],
        max_delay in 1_000u64..600_000,
        update in 1_000u64..2_000_000,
        as_published in any::<bool>(),
        trend in trend(),
        act in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let layout = if as_published { PieTableLayout::AsPublished } else { PieTableLayout::AsStated };
        let [target, max_delay, update] = [target, max_delay, update].map(Nanos);
        let params = PieTableParams { target, max_delay, update, layout, trend, act, ..PieTableParams::default() };
        prop_assert_eq!(compare_table(params, seed, 2_000).0, 0);
    }
}
