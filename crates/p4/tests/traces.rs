//! Traces: what their frames say, read back bit by bit, is what the interpreter does.

use proptest::prelude::*;
use queuescope_p4::Gress;
use queuescope_p4::algorithms::{
    ConQuestLegacyParams, EXECUTABLE, codel_dp_with, conquest_defaults, conquest_legacy_with, conquest_with,
    ecn_sharp_dp_with, egress_pi_with, executable, p4air_with, pie_cp_with, pie_dp_with, step_with,
};
use queuescope_p4::ir::{
    Input, Interpreter, NOTES, PacketFate, PacketReport, ParsedFrame, SwitchProgram, TestBuild, Trace,
};
use queuescope_queue::{
    ActAt, CodelDpParams, ConQuestAqmParams, EcnSharpDpParams, EgressPiParams, FlowLimit, HeldAction, HoldParams,
    PieCpParams, PieDpParams, SwitchP4airParams,
};
use queuescope_sketch::{ConQuestParams, TappedConQuestParams};
use queuescope_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};

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

/// What a frame has.
#[derive(Debug, PartialEq)]
struct Contents {
    gress: Gress,
    inputs: BTreeMap<Input, u64>,
    fate: PacketFate,
    random: Vec<u64>,
    words: Vec<u64>,
    /// The packet behind the header of the test, of programs that read activity headers.
    carried: Vec<u8>,
}

fn contents(program: &SwitchProgram, random: usize, frame: &[u8]) -> Contents {
    assert_eq!(frame[12..14], [0x88, 0xb6]);
    let mut fields = Fields { frame, at: 0 };
    let mut inputs = BTreeMap::new();
    for input in [Input::Port, Input::Generated, Input::Ecn] {
        inputs.insert(input, fields.next(input.bits() as usize));
    }
    let [dropped, marked, at_ingress, fed_back] = [(); 4].map(|()| fields.next(1) == 1);
    let is_own = |input: &Input| !COMMON.contains(input) && !Input::OF_ACTIVITY.contains(input);
    let own = program.inputs().filter(is_own).collect::<BTreeSet<_>>();
    for input in [Input::Enqueued, Input::Dequeued].into_iter().chain(own) {
        inputs.insert(input, fields.next(input.bits() as usize));
    }
    assert_eq!(fields.next((8 - fields.at % 8) % 8), 0, "the rest of a byte");
    let has_queue = program.inputs().any(Input::is_note) || program.chooses_queues();
    let [recirculated, queue] = if has_queue { [1, 7].map(|bits| fields.next(bits)) } else { [0; 2] };
    let numbers = (0..random).map(|_| fields.next(32)).collect();
    let words = program.registers().iter().map(|register| fields.next(register.bits as usize)).collect();
    let reported = if program.is_off_path() { report(&mut fields) } else { None };
    let carried = frame[14 + fields.at / 8..].to_vec();
    assert_eq!(carried.is_empty(), !program.inputs().any(|input| Input::OF_ACTIVITY.contains(&input)));
    let gress = if at_ingress { Gress::Ingress } else { Gress::Egress };
    Contents {
        gress,
        inputs,
        fate: PacketFate {
            dropped,
            marked,
            fed_back,
            reported,
            recirculated: recirculated == 1,
            queue: (queue > 0).then_some(queue as u8),
            ..PacketFate::default()
        },
        random: numbers,
        words,
        carried,
    }
}

/// The report of a packet from a switch off the path.
fn report(fields: &mut Fields<'_>) -> Option<PacketReport> {
    let [reports, port] = [(); 2].map(|()| fields.next(16) as u16);
    let [delay, estimate] = [(); 2].map(|()| fields.next(32) as u32);
    assert!(reports < 2 && (reports == 1 || [port.into(), delay, estimate] == [0; 3]), "{reports}");
    (reports == 1).then_some(PacketReport { port, delay, estimate })
}

/// What a parser finds about the activity header of a packet that begins with an EtherType.
fn activity_header(carried: &[u8]) -> BTreeMap<Input, u64> {
    let found = match carried {
        [0x88, 0xb5, _, _, 0x88, 0xb5, ..] => (Input::Malformed, 1),
        [0x88, 0xb5, high, low, _, _, ..] => {
            let activity = (Input::Activity, u64::from(u16::from_be_bytes([*high, *low])));
            return BTreeMap::from([(Input::HasActivity, 1), activity]);
        }
        [0x88, 0xb5, ..] => (Input::Malformed, 1),
        _ => (Input::Malformed, 0),
    };
    BTreeMap::from([found])
}

/// The inputs that are in each frame, whether or not the program reads them.
const COMMON: [Input; 5] = [Input::Port, Input::Generated, Input::Ecn, Input::Enqueued, Input::Dequeued];

/// Whether a program measures, and lets all packets pass.
fn is_measurement(program: &SwitchProgram) -> bool {
    program.name().starts_with("printqueue")
}

/// Runs the packets as they are sent, and compares the results with the packets as they come back.
fn check(program: &SwitchProgram, trace: &Trace) {
    let random = TestBuild::new(program).random();
    let mut interpreter = Interpreter::new(program, u64::MAX);
    let (mut generated, mut acts, mut reported) = (0, [0; 2], 0);
    // The registers of these have other indexes than the port.
    let is_by_port =
        !["conquest", "abc", "p4air"].iter().any(|name| program.name().starts_with(name)) && !is_measurement(program);
    for packet in &trace.packets {
        let sent = contents(program, random, &packet.sent);
        let is_undecided = sent.fate == PacketFate::default() && sent.words.iter().all(|word| *word == 0);
        assert!(is_undecided, "nothing is decided yet");
        let header = activity_header(&sent.carried);
        let input = |input| header.get(&input).or(sent.inputs.get(&input)).copied().unwrap_or(0);
        let is_before = program.is_off_path() || program.inputs().any(Input::is_note);
        assert_eq!(packet.time.0, input(if is_before { Input::Arrived } else { Input::Dequeued }));
        let mut drawn = sent.random.iter();
        let fate = interpreter.run_at(sent.gress, &input, &mut |_| *drawn.next().expect("there are enough"));
        let back = contents(program, random, &packet.expected);
        // No queue is queue 0 in the header; windows and notes are where inputs were.
        let queue = fate.queue.filter(|queue| *queue > 0);
        let in_header = PacketFate { pushed: None, stripped: false, queue, window: None, note: [0; NOTES], ..fate };
        let mut inputs = sent.inputs.clone();
        for (input, value) in &mut inputs {
            match (input, fate.window) {
                (Input::Note(slot), _) => *value = fate.note[usize::from(*slot)].into(),
                (Input::Window, Some([window, _])) => *value = window.into(),
                (Input::TcpChecksum, Some([_, checksum])) => *value = checksum.into(),
                _ => {}
            }
        }
        assert_eq!((back.fate, &back.inputs, &back.random), (in_header, &inputs, &sent.random));
        let carried = match fate.pushed {
            Some(activity) => [&[0x88, 0xb5], &activity.to_be_bytes()[..], &sent.carried].concat(),
            None if fate.stripped => sent.carried[4..].to_vec(),
            None => sent.carried.clone(),
        };
        assert_eq!(back.carried, carried);
        let word = |register| interpreter.words(register).expect("it is there")[input(Input::Port) as usize];
        if is_by_port {
            assert_eq!(back.words, (0..back.words.len()).map(word).collect::<Vec<_>>());
        }
        generated += usize::from(input(Input::Generated) == 1);
        if input(Input::Generated) == 0 {
            acts[0] += usize::from(fate.dropped);
            acts[1] += usize::from(fate.marked);
            reported += usize::from(fate.reported.is_some());
        }
    }
    assert_eq!((generated, acts, reported), (trace.generated, [trace.dropped, trace.marked], trace.reported));
}

#[test]
fn frames_are_what_the_interpreter_does_and_algorithms_act_on_some() {
    // The control plane writes PIE_CP's probability, the threshold of ConQuest is 512 packets, and P4air's shares are large at 10 Gb/s.
    let is_quiet = |program: &SwitchProgram| {
        ["pie-cp", "p4air"].contains(&program.name())
            || program.name().starts_with("conquest")
            || is_measurement(program)
    };
    let lower = |action| {
        let act_at = ActAt::Ingress(HoldParams { action, ..HoldParams::default() });
        conquest_with(&ConQuestAqmParams { threshold: 3.0, act_at, ..conquest_defaults() }).expect("it fits")
    };
    let limit = HeldAction::Limit(FlowLimit { interval: Nanos(3_000_000), burst: 2 });
    let conquest = [HeldAction::Respond, HeldAction::Drop, limit, HeldAction::Reroute].map(lower);
    // At 100 Mb/s, a flow's share is a few packets.
    let p4air = SwitchP4airParams { rate: "100mbps".parse().expect("a rate"), ..SwitchP4airParams::default() };
    let lower = conquest.into_iter().chain([legacy(), p4air_with(&p4air).expect("it fits")]);
    for (number, program) in executable().expect("the defaults fit").into_iter().chain(lower).enumerate() {
        let trace = Trace::new(&program, 1, 500);
        check(&program, &trace);
        let acts = trace.dropped + trace.marked + trace.reported;
        if is_quiet(&program) && number < EXECUTABLE.len() {
            continue;
        }
        // Most of these packets wait longer than the thresholds of the step and of ECN#. The edge refuses all activities here.
        let most = match program.name() {
            "step" | "ecn-sharp-dp" => 450,
            "abc-edge" => 300,
            _ => 250,
        };
        // The flows of P4air are in slow start for most of these packets.
        let least = if program.name() == "p4air" { 10 } else { 20 };
        assert!((least..most).contains(&acts), "{}: {acts} of {} packets", program.name(), trace.packets.len());
        assert_eq!(trace, Trace::new(&program, 1, 500), "it depends on the seed alone");
        assert_ne!(trace, Trace::new(&program, 2, 500));
    }
}

/// ConQuest beside a router, with short windows and a low threshold.
fn legacy() -> SwitchProgram {
    let usual = ConQuestLegacyParams::default();
    let sketch = ConQuestParams { window: Nanos(1 << 17), ..usual.tapped.sketch.clone() };
    let tapped = TappedConQuestParams { sketch, tau: Nanos(10_000), threshold: 1_000, ..usual.tapped };
    conquest_legacy_with(&ConQuestLegacyParams { tapped, ..usual }).expect("it fits")
}

/// The programs whose parameters are drawn for traces.
const DRAWN: [&str; 6] = ["egress-pi", "pie-dp", "pie-cp", "codel-dp", "ecn-sharp-dp", "step"];
/// The others have traces with their defaults, and some with other parameters, in the test above only: to make their tables or registers takes long. `equal` draws the parameters of all of them but `abc-strip` and `printqueue-monitor`, without frames.
const NOT_DRAWN: [&str; 14] = [
    "red-egress",
    "pie-table",
    "conquest",
    "conquest-stands",
    "conquest-ingress",
    "conquest-feedback",
    "conquest-legacy",
    "abc-edge",
    "abc-core",
    "abc-core-median",
    "abc-strip",
    "p4air",
    "printqueue-windows",
    "printqueue-monitor",
];

#[test]
fn each_program_is_drawn_or_named() {
    let all: BTreeSet<_> = DRAWN.into_iter().chain(NOT_DRAWN).collect();
    assert_eq!(all, EXECUTABLE.into_iter().collect());
}

proptest! {
    /// With any parameters that a scenario takes, for the programs of [`DRAWN`].
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
        let pie_cp = PieCpParams { target, period: update, act, ..PieCpParams::default() };
        let codel_dp = CodelDpParams { target, ecn: act, ..CodelDpParams::default() };
        let ecn_sharp_dp = EcnSharpDpParams { instant_target: calm, persistent_target: target, ..EcnSharpDpParams::default() };
        let programs = [
            egress_pi_with(&egress_pi),
            pie_dp_with(&pie_dp),
            pie_cp_with(&pie_cp),
            codel_dp_with(&codel_dp),
            ecn_sharp_dp_with(&ecn_sharp_dp),
            step_with(short),
        ];
        for (program, name) in programs.into_iter().zip(DRAWN) {
            let program = program.expect("they fit");
            prop_assert_eq!(program.name(), name);
            check(&program, &Trace::new(&program, seed, 200));
        }
    }

    /// Frames that are cut anywhere have the fields that are there, and zero in place of the others.
    #[test]
    fn frames_are_parsed_as_far_as_they_go(
        frame in prop::collection::vec(any::<u8>(), 0..80),
        ether_type in prop::sample::select(vec![[8u8, 0], [0x86, 0xdd], [0x81, 0], [8, 6]]),
        cut in 0usize..80,
    ) {
        let mut frame = frame;
        if let Some(place) = frame.get_mut(12..14) {
            place.copy_from_slice(&ether_type);
        }
        let (whole, cut) = (ParsedFrame::new(&frame), ParsedFrame::new(&frame[..cut.min(frame.len())]));
        for input in Input::ALL {
            prop_assert!([0, whole.input(input)].contains(&cut.input(input)), "{}", input.name());
            prop_assert!(whole.input(input) < 1 << input.bits());
        }
    }
}
