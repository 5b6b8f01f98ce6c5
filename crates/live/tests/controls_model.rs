//! The programs of congestion controls, run without a kernel on a connection of their own, do what those of `queuescope-tcp` do.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests read the programs")]

use aya_obj::Object;
use proptest::prelude::*;
use queuescope_tcp::congestion::{Dctcp, DctcpParams, Illinois, IllinoisParams, NewRenoParams, VegasParams};
use queuescope_tcp::{Ack, AlgorithmParams, Congestion, CongestionControl, Controller, Phase};
use queuescope_wire::Nanos;
use rbpf::EbpfVmRaw;
use std::collections::BTreeMap;

/// A segment of the model, bytes.
const SEGMENT: u64 = 1000;

/// What programs see lies here: their arguments, what an ACK measured, and the connection.
const SAMPLE: usize = 64;
const CONNECTION: usize = 128;

/// Where in that, as `bpf/tcp.h` has it.
const STATE: usize = CONNECTION + 1;
const OWN: usize = CONNECTION + 8;
const WINDOW: usize = CONNECTION + 112;
const COUNT: usize = WINDOW + 4;
const CLAMP: usize = WINDOW + 8;
const THRESHOLD: usize = WINDOW + 12;
const PRIOR: usize = WINDOW + 16;
const ACKNOWLEDGED: usize = WINDOW + 20;
const NEXT: usize = WINDOW + 24;
const DELIVERED: usize = WINDOW + 32;
const MARKED: usize = WINDOW + 36;
const LIMITED: usize = WINDOW + 48;
const ECN: usize = WINDOW + 49;
const END: usize = WINDOW + 56;

/// Of `tcp_ca_state`, and of `tcp_ca_event`.
const OPEN: u8 = 0;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;
const LOST: u64 = 3;
/// No threshold yet.
const INFINITE: u32 = 0x7fff_ffff;

/// A connection and the programs of its congestion control, in the place of the kernel.
struct Connection {
    programs: BTreeMap<String, Vec<u8>>,
    memory: Vec<u8>,
}

impl Connection {
    /// One that is established, with so many segments as its window; all that is sent has a number of its own.
    fn new(control: &str, window: u32, next: u32) -> Self {
        let path = format!("{}/bpf/{control}.bpf.o", env!("CARGO_MANIFEST_DIR"));
        let mut object = Object::parse(&std::fs::read(path).expect("it is there")).expect("it is an object");
        // To itself: its connections are as it has them.
        let own = object.btf.clone().expect("it has types");
        object.relocate_btf(&own).expect("they are its own");
        let code = |insn: &aya_obj::generated::bpf_insn| {
            let word = [insn.code, insn.dst_reg() | insn.src_reg() << 4];
            [word.as_slice(), &insn.off.to_ne_bytes(), &insn.imm.to_ne_bytes()].concat()
        };
        let functions = object.functions.values();
        let programs = functions
            .map(|function| (function.name.clone(), function.instructions.iter().flat_map(code).collect::<Vec<u8>>()));
        let mut made = Self { programs: programs.collect(), memory: vec![0; END] };
        for (at, value) in [(WINDOW, window), (THRESHOLD, INFINITE), (CLAMP, u32::MAX), (NEXT, next)] {
            made.put(at, value);
        }
        (made.memory[LIMITED], made.memory[ECN]) = (1, 1);
        made.call("init", &[]);
        made
    }

    fn get(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.memory[at..at + 4].try_into().expect("four bytes"))
    }

    fn put(&mut self, at: usize, value: u32) {
        self.memory[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Calls a program with the connection and what else there is; what it answers. One that a control has not got does nothing.
    fn call(&mut self, name: &str, more: &[u64]) -> u32 {
        let Some(program) = self.programs.get(name) else { return 0 };
        let here = self.memory.as_ptr() as u64;
        let arguments = std::iter::once(here + CONNECTION as u64).chain(more.iter().copied());
        for (at, argument) in arguments.enumerate() {
            self.memory[8 * at..8 * at + 8].copy_from_slice(&argument.to_ne_bytes());
        }
        let mut machine = EbpfVmRaw::new(Some(program)).unwrap_or_else(|error| panic!("{name}: {error}"));
        for helper in [49, 116] {
            machine.register_helper(helper, |_, _, _, _, _| 0).expect("it can be");
        }
        machine.execute_program(&mut self.memory).unwrap_or_else(|error| panic!("{name}: {error}")) as u32
    }

    fn state(&mut self, state: u8) {
        self.call("set_state", &[u64::from(state)]);
        self.memory[STATE] = self.memory[STATE] & !0x1f | state;
    }

    /// An ACK for so many segments, of which some were marked, after which `next` is the next number.
    fn ack(&mut self, acked: u32, marked: u32, rtt: u32, next: u32) {
        let reached = self.get(ACKNOWLEDGED) + acked;
        for (at, more) in [(DELIVERED, acked), (MARKED, marked)] {
            self.put(at, self.get(at) + more);
        }
        self.put(ACKNOWLEDGED, reached);
        self.put(NEXT, next);
        self.put(SAMPLE, acked);
        self.put(SAMPLE + 4, rtt);
        let sample = self.memory.as_ptr() as u64 + SAMPLE as u64;
        self.call("pkts_acked", &[sample]);
        self.call("in_ack_event", &[0]);
    }

    /// The window grows with that, as the kernel lets it.
    fn grow(&mut self, acked: u32) {
        self.call("cong_avoid", &[u64::from(self.get(ACKNOWLEDGED)), u64::from(acked)]);
    }

    /// A loss was found: the window is reduced to the threshold at once here.
    fn lose(&mut self) {
        self.put(PRIOR, self.get(WINDOW));
        let threshold = self.call("ssthresh", &[]);
        self.put(THRESHOLD, threshold);
        self.put(COUNT, 0);
        self.state(RECOVERY);
        self.put(WINDOW, self.get(THRESHOLD));
    }

    /// The retransmission timer has expired.
    fn expire(&mut self) {
        self.put(PRIOR, self.get(WINDOW));
        let threshold = self.call("ssthresh", &[]);
        self.put(THRESHOLD, threshold);
        self.call("cwnd_event", &[LOST]);
        self.put(WINDOW, 1);
        self.put(COUNT, 0);
        self.state(LOSS);
    }
}

/// What happens to a connection.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// An ACK for up to so many segments after so many microseconds, and whether the window was what kept more from being sent.
    Ack(u32, u32, bool),
    Lost,
    Expired,
}

/// The window limits with this probability. (Linux's Vegas asks for that where it does as Reno, the model does not.)
fn steps(limits: f64) -> impl Strategy<Value = Vec<Step>> {
    let rtt = prop_oneof![Just(10_000u32), 10_000..10_400u32, 10_000..30_000u32];
    let ack =
        (1..4u32, rtt, prop::bool::weighted(limits)).prop_map(|(acked, rtt, limited)| Step::Ack(acked, rtt, limited));
    prop::collection::vec(prop_oneof![200 => ack, 2 => Just(Step::Lost), 1 => Just(Step::Expired)], 1..800)
}

/// ACKs, segments of each and their round trip: some for round trips long without a queue. A long queue comes first, so that whole
/// microseconds are a small part of it.
fn runs() -> impl Strategy<Value = Vec<(usize, u32, u32)>> {
    let rtt = prop_oneof![10_000..10_200u32, 10_000..60_000u32];
    prop::collection::vec((1..200usize, 1..4u32, rtt), 1..40)
        .prop_map(|runs| [vec![(1, 1, 60_000), (1, 1, 10_000)], runs].concat())
}

/// What the model is told of an ACK.
fn told(acked: u32, marked: u32, rtt: u32, reached: u32, next: u32, phase: Phase, limited: bool) -> Ack {
    let bytes = |segments: u32| u64::from(segments) * SEGMENT;
    let in_flight = bytes(next - reached);
    Ack {
        acked: bytes(acked),
        delivered: bytes(acked),
        in_flight_before: in_flight + bytes(acked),
        in_flight,
        unacknowledged: bytes(reached),
        next: bytes(next),
        left_last: bytes(next),
        rtt: Some(Nanos(u64::from(rtt) * 1_000)),
        smoothed_rtt: Nanos(u64::from(rtt) * 1_000),
        phase,
        window: 0,
        marked: bytes(marked),
        counted: Some(bytes(acked)),
        window_limited: limited,
        rate: None,
    }
}

/// Runs both: windows after each step are the same, thresholds to a segment.
fn both(
    control: &str,
    params: &AlgorithmParams,
    steps: &[Step],
    measured: impl Fn(u32) -> u32,
) -> Result<(), TestCaseError> {
    let mut kernel = Connection::new(control, 10, 0);
    let mut model = Controller::new(params, SEGMENT as u32, 10 * SEGMENT, 0);
    let (mut reached, mut next, mut now, mut phase) = (0, 10, Nanos(0), Phase::Open);
    // Losses are repaired when this is acknowledged.
    let mut repaired = 0;
    for (number, step) in steps.iter().enumerate() {
        now = now + Nanos(1_000_000);
        let in_flight = u64::from(next - reached) * SEGMENT;
        let congestion = Congestion { in_flight, lost: SEGMENT, delivered: 0, next: u64::from(next) * SEGMENT };
        match *step {
            Step::Ack(most, rtt, limited) => {
                let acked = most.min(next - reached);
                reached += acked;
                let sent = (reached + kernel.get(WINDOW)).max(next);
                kernel.memory[LIMITED] = u8::from(limited);
                kernel.ack(acked, 0, measured(rtt), next);
                if phase != Phase::Open && reached >= repaired {
                    phase = Phase::Open;
                    kernel.state(OPEN);
                    model.on_recovered(now);
                }
                // Slow start counts all that were sent of late, too.
                kernel.put(WINDOW + 44, 0);
                if phase != Phase::Recovery {
                    kernel.grow(acked);
                }
                model.on_ack(&told(acked, 0, rtt, reached, next, phase, limited), now);
                next = sent.max(reached + 1);
            }
            Step::Lost if phase == Phase::Open => {
                kernel.lose();
                model.on_congestion(&congestion, now);
                (phase, repaired) = (Phase::Recovery, next);
            }
            Step::Expired if phase == Phase::Open => {
                kernel.expire();
                model.on_timeout(&congestion, now);
                (phase, repaired) = (Phase::Loss, next);
            }
            Step::Lost | Step::Expired => {}
        }
        let model_threshold = match model.slow_start_threshold() {
            u64::MAX => u64::from(INFINITE),
            bytes => bytes / SEGMENT,
        };
        let found = [WINDOW, THRESHOLD].map(|at| u64::from(kernel.get(at)));
        prop_assert_eq!(found[0], model.window() / SEGMENT, "step {}: {:?}", number, step);
        // Three quarters of a window are a half and a quarter, each cut to whole segments, in Linux.
        prop_assert!(found[1].abs_diff(model_threshold) <= 1, "step {}: {:?} {}", number, found, model_threshold);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn vegas_has_the_same_windows(steps in steps(1.0)) {
        // The program adds a microsecond, as Linux does.
        both("vegas", &AlgorithmParams::Vegas(VegasParams::linux()), &steps, |rtt| rtt - 1)?;
    }

    #[test]
    fn dctcp_without_marks_is_reno(steps in steps(0.9)) {
        both("dctcp", &AlgorithmParams::NewReno(NewRenoParams::linux()), &steps, |rtt| rtt)?;
    }

    #[test]
    fn dctcp_has_the_same_average(acks in prop::collection::vec((1..4u32, 0..4u32), 1..600), window in 10..200u32) {
        let mut kernel = Connection::new("dctcp", window, window);
        let mut model = Dctcp::new(DctcpParams::linux(), SEGMENT as u32, u64::from(window) * SEGMENT, 0);
        let (mut reached, mut next) = (0, window);
        for (acked, marked) in acks {
            let marked = marked.min(acked);
            reached += acked;
            kernel.ack(acked, marked, 10_000, next);
            model.on_ack(&told(acked, marked, 10_000, reached, next, Phase::Open, false), Nanos(0));
            // In whole parts of 1024, and each window of data may lose one.
            let alpha = f64::from(kernel.get(OWN + 12)) / 1024.0;
            prop_assert!((alpha - model.alpha()).abs() < 0.03, "{} {}", alpha, model.alpha());
            let (before, threshold) = (kernel.get(WINDOW), kernel.call("ssthresh", &[]));
            let left = (f64::from(before) * (1.0 - alpha / 2.0)).max(2.0);
            prop_assert!((f64::from(threshold) - left).abs() <= 1.0, "{} {}", threshold, left);
            next = reached + window;
        }
    }

    #[test]
    fn illinois_follows_the_delay_as_the_model(runs in runs()) {
        let window = 100;
        let mut kernel = Connection::new("illinois", window, 0);
        let mut model = Illinois::new(IllinoisParams::linux(), SEGMENT as u32, u64::from(window) * SEGMENT, 0);
        let (mut reached, mut next) = (0, window);
        for (acked, rtt) in runs.into_iter().flat_map(|(acks, acked, rtt)| std::iter::repeat_n((acked, rtt), acks)) {
            reached += acked;
            // The window limits neither, so that it stays.
            kernel.memory[LIMITED] = 0;
            kernel.put(THRESHOLD, 2);
            kernel.ack(acked, 0, rtt, next);
            kernel.grow(acked);
            model.on_ack(&told(acked, 0, rtt, reached, next, Phase::Open, false), Nanos(0));
            let [alpha, beta] = [(OWN + 24, 128.0), (OWN + 28, 64.0)].map(|(at, units)| f64::from(kernel.get(at)) / units);
            // Alpha's smallest is 38 parts of 128, and all is cut to whole ones.
            prop_assert!((alpha - model.alpha()).abs() < 0.02 * model.alpha() + 2.0 / 128.0, "{} {}", alpha, model.alpha());
            prop_assert!((beta - model.beta()).abs() < 2.0 / 64.0, "{} {}", beta, model.beta());
            let threshold = kernel.call("ssthresh", &[]);
            prop_assert!((f64::from(threshold) - f64::from(window) * (1.0 - beta)).abs() <= 1.0, "{} {}", threshold, beta);
            next = reached + window;
        }
    }
}

/// Where no packet waits, each round trip adds ten segments; a loss then takes an eighth.
#[test]
fn illinois_grows_by_ten_where_nobody_waits() {
    let mut kernel = Connection::new("illinois", 100, 0);
    kernel.put(THRESHOLD, 50);
    let mut windows = vec![100];
    for _ in 0..3 {
        let window = kernel.get(WINDOW);
        let next = kernel.get(ACKNOWLEDGED) + window;
        for _ in 0..window {
            kernel.ack(1, 0, 10_000, next);
            kernel.grow(1);
        }
        windows.push(kernel.get(WINDOW));
    }
    assert_eq!(windows, [100, 109, 118, 127]);
    kernel.lose();
    assert_eq!(kernel.get(WINDOW), 127 - 127 / 8);
}

/// What a kernel takes for the answer where it left out a run is put right with the next ACK.
#[test]
fn what_was_not_answered_is_made_up_for() {
    for (control, left) in [("vegas", 20), ("illinois", 20), ("dctcp", 20)] {
        let mut kernel = Connection::new(control, 40, 40);
        kernel.put(PRIOR, 40);
        kernel.put(THRESHOLD, 2_165_326_096);
        kernel.memory[STATE] |= RECOVERY - 1;
        kernel.ack(1, 0, 10_000, 50);
        assert_eq!(kernel.get(THRESHOLD), left, "{control}");
        // That was left out, too.
        kernel.put(WINDOW, 2_165_326_096);
        kernel.put(WINDOW + 40, 30);
        kernel.ack(1, 0, 10_000, 50);
        assert_eq!(kernel.get(WINDOW), 30, "{control}");
    }
}
