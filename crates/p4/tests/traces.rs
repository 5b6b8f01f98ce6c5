//! Traces: what their frames say, read back bit by bit, is what the interpreter does.

use proptest::prelude::*;
use queuescope_p4::algorithms::{egress_pi_with, executable, pie_dp_with};
use queuescope_p4::ir::{Input, Interpreter, SwitchProgram, TestBuild, Trace};
use queuescope_queue::{EgressPiParams, PieDpParams};
use queuescope_wire::Nanos;

/// Reads fields of some bits behind the header of Ethernet.
struct Fields<'a> {
    frame: &'a [u8],
    at: usize,
}

impl Fields<'_> {
    fn next(&mut self, bits: usize) -> u64 {
        let from = self.at;
        self.at += bits;
        (from..self.at).fold(0, |value, bit| value << 1 | u64::from(self.frame[14 + bit / 8] >> (7 - bit % 8) & 1))
    }
}

/// The inputs, the decisions, the random numbers and the words of the registers.
type Contents = ([u64; 5], [u64; 2], Vec<u64>, Vec<u64>);

fn contents(program: &SwitchProgram, random: usize, frame: &[u8]) -> Contents {
    assert_eq!(frame[12..14], [0x88, 0xb6]);
    let mut fields = Fields { frame, at: 0 };
    let [port, generated, ecn] = [9, 1, 2].map(|bits| fields.next(bits));
    let decisions = [1, 1].map(|bits| fields.next(bits));
    assert_eq!(fields.next(2), 0);
    let [enqueued, dequeued] = [48, 48].map(|bits| fields.next(bits));
    let numbers = (0..random).map(|_| fields.next(32)).collect();
    let words = program.registers().iter().map(|register| fields.next(register.bits as usize)).collect();
    assert_eq!(fields.at, (frame.len() - 14) * 8);
    ([port, generated, ecn, enqueued, dequeued], decisions, numbers, words)
}

/// Runs the packets as they are sent, and compares the results with the packets as they come back.
fn check(program: &SwitchProgram, trace: &Trace) {
    let random = TestBuild::new(program).random();
    let mut interpreter = Interpreter::new(program, u64::MAX);
    let (mut generated, mut acts) = (0, [0; 2]);
    for packet in &trace.packets {
        let (inputs, decided, numbers, words) = contents(program, random, &packet.sent);
        assert!(decided == [0; 2] && words.iter().all(|word| *word == 0), "nothing is decided yet");
        let input = |input| match input {
            Input::Port => inputs[0],
            Input::Generated => inputs[1],
            Input::Ecn => inputs[2],
            Input::Enqueued => inputs[3],
            Input::Dequeued => inputs[4],
        };
        assert_eq!(packet.time.0, inputs[4]);
        let mut drawn = numbers.iter();
        let fate = interpreter.run(&input, &mut |_| *drawn.next().expect("there are enough"));
        let chosen = [fate.dropped, fate.marked].map(u64::from);
        let after =
            (0..words.len()).map(|register| interpreter.words(register).expect("it is there")[inputs[0] as usize]);
        assert_eq!(contents(program, random, &packet.expected), (inputs, chosen, numbers, after.collect()));
        generated += usize::from(inputs[1] == 1);
        if inputs[1] == 0 {
            acts[0] += usize::from(fate.dropped);
            acts[1] += usize::from(fate.marked);
        }
    }
    assert_eq!((generated, acts), (trace.generated, [trace.dropped, trace.marked]));
}

#[test]
fn frames_are_what_the_interpreter_does_and_algorithms_act_on_some() {
    for program in executable().expect("the defaults fit") {
        let trace = Trace::new(&program, 1, 500);
        check(&program, &trace);
        let acts = trace.dropped + trace.marked;
        assert!((20..250).contains(&acts), "{}: {acts} of {} packets", program.name(), trace.packets.len());
        assert_eq!(trace, Trace::new(&program, 1, 500), "it depends on the seed alone");
        assert_ne!(trace, Trace::new(&program, 2, 500));
    }
}

proptest! {
    /// With any parameters that a scenario takes.
    #[test]
    fn any_parameters_give_valid_traces(
        [target, calm, short] in [0u64..8_000_000, 0u64..20_000_000, 0u64..20_000_000],
        update in 1_000u64..2_000_000,
        [alpha_shift, beta_shift] in [0u32..=16, 0u32..=17],
        act in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let [target, calm, short, update] = [target, calm, short, update].map(Nanos);
        let egress_pi = EgressPiParams { target, update, alpha_shift, beta_shift, calm, short, ..EgressPiParams::default() };
        let pie_dp = PieDpParams { target, update, alpha_shift, beta_shift, act, ..PieDpParams::default() };
        for program in [egress_pi_with(&egress_pi), pie_dp_with(&pie_dp)] {
            let program = program.expect("they fit");
            check(&program, &Trace::new(&program, seed, 200));
        }
    }
}
