//! The congestion control programs, run without a kernel on a simulated connection, behave like those of `queuescope-tcp`.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests read the programs")]

mod bbr3;
mod prague;

use aya_obj::Object;
use proptest::prelude::*;
use queuescope_tcp::congestion::{
    BicParams, Dctcp, DctcpParams, HighSpeedParams, HtcpParams, HyblaParams, Illinois, IllinoisParams, LolaParams,
    NewRenoParams, ScalableParams, VegasParams, VenoParams, Westwood, WestwoodParams, YeahParams,
};
use queuescope_tcp::{Ack, AlgorithmParams, Congestion, CongestionControl, Controller, Phase};
use queuescope_wire::Nanos;
use rbpf::EbpfVmRaw;
use std::cell::Cell;
use std::collections::BTreeMap;

/// A segment of the model, bytes.
const SEGMENT: u64 = 1000;

/// Layout of the programs' memory: their arguments, the sample of an ACK, and the connection.
const SAMPLE: usize = 64;
const CONNECTION: usize = 128;

/// Offsets of the fields of `bpf/tcp.h` in that memory.
const PACING: usize = CONNECTION + 8;
const MOST_PACING: usize = CONNECTION + 16;
const STATE: usize = CONNECTION + 24;
const OWN: usize = CONNECTION + 32;
const WINDOW: usize = CONNECTION + 136;
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
const SRTT: usize = WINDOW + 52;
const MSS: usize = WINDOW + 56;
const TIME: usize = WINDOW + 64;
const FOUND_LOST: usize = WINDOW + 72;
const APP_LIMITED: usize = WINDOW + 88;
const END: usize = WINDOW + 96;

/// Values of `tcp_ca_state` and of `tcp_ca_event`.
const OPEN: u8 = 0;
const REDUCED: u8 = 2;
const RECOVERY: u8 = 3;
const LOSS: u8 = 4;
const COMPLETE_CWR: u64 = 2;
const LOST: u64 = 3;
/// The threshold before any loss.
const INFINITE: u32 = 0x7fff_ffff;

thread_local! {
    /// What the kernel's clock shows, in nanoseconds.
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    /// Draws a random number for a program.
    static RANDOM: Cell<fn() -> u64> = const { Cell::new(|| 0) };
}

/// A connection and the programs of its congestion control, in place of the kernel.
struct Connection {
    programs: BTreeMap<String, Vec<u8>>,
    memory: Vec<u8>,
    /// Sequence numbers for each segment.
    unit: u32,
}

impl Connection {
    /// An established connection with a window of `window` segments; `next` is the sequence number of the next segment.
    fn new(control: &str, window: u32, next: u32) -> Self {
        Self::established(control, window, next, 0, 1)
    }

    /// The same, with the round-trip time of the handshake in microseconds, and segments of `unit` sequence numbers.
    fn established(control: &str, window: u32, next: u32, rtt: u32, unit: u32) -> Self {
        let path = format!("{}/bpf/{control}.bpf.o", env!("CARGO_MANIFEST_DIR"));
        let mut object = Object::parse(&std::fs::read(path).expect("it is there")).expect("it is an object");
        // Relocates the object to its own types, which is the layout of this test's connection.
        let own = object.btf.clone().expect("it has types");
        object.relocate_btf(&own).expect("they are its own");
        let code = |insn: &aya_obj::generated::bpf_insn| {
            let word = [insn.code, insn.dst_reg() | insn.src_reg() << 4];
            [word.as_slice(), &insn.off.to_ne_bytes(), &insn.imm.to_ne_bytes()].concat()
        };
        let functions = object.functions.values();
        let programs = functions
            .map(|function| (function.name.clone(), function.instructions.iter().flat_map(code).collect::<Vec<u8>>()));
        let mut connection = Self { programs: programs.collect(), memory: vec![0; END], unit };
        for (at, value) in [
            (WINDOW, window),
            (THRESHOLD, INFINITE),
            (CLAMP, u32::MAX),
            (NEXT, next * unit),
            (MSS, unit),
            (SRTT, 8 * rtt),
        ] {
            connection.put(at, value);
        }
        (connection.memory[LIMITED], connection.memory[ECN]) = (1, 1);
        connection.memory[MOST_PACING..MOST_PACING + 8].fill(0xff);
        connection.call("init", &[]);
        connection
    }

    fn get(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.memory[at..at + 4].try_into().expect("four bytes"))
    }

    fn put(&mut self, at: usize, value: u32) {
        self.memory[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    /// Sets the time of the last ACK.
    fn set_time(&mut self, now: Nanos) {
        self.memory[TIME..TIME + 8].copy_from_slice(&(now.0 / 1_000).to_ne_bytes());
    }

    /// Calls a program with the connection and further arguments, and returns its result. A program that a control lacks does nothing.
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
        machine.register_helper(5, |_, _, _, _, _| CLOCK.get()).expect("it can be");
        machine.register_helper(7, |_, _, _, _, _| RANDOM.get()()).expect("it can be");
        machine.execute_program(&mut self.memory).unwrap_or_else(|error| panic!("{name}: {error}")) as u32
    }

    fn state(&mut self, state: u8) {
        self.call("set_state", &[u64::from(state)]);
        self.memory[STATE] = self.memory[STATE] & !0x1f | state;
    }

    /// An ACK for `acked` segments, of which `marked` were marked; `next` is the next sequence number to be sent.
    fn ack(&mut self, acked: u32, marked: u32, rtt: u32, next: u32) {
        let reached = self.get(ACKNOWLEDGED) + acked * self.unit;
        for (at, more) in [(DELIVERED, acked), (MARKED, marked)] {
            self.put(at, self.get(at) + more);
        }
        self.put(ACKNOWLEDGED, reached);
        self.put(NEXT, next * self.unit);
        self.put(SRTT, 8 * rtt);
        self.put(SAMPLE, acked);
        self.put(SAMPLE + 4, rtt);
        let sample = self.memory.as_ptr() as u64 + SAMPLE as u64;
        self.call("pkts_acked", &[sample]);
        self.call("in_ack_event", &[0]);
    }

    /// Lets the control grow the window, as the kernel does after an ACK.
    fn grow(&mut self, acked: u32) {
        self.call("cong_avoid", &[u64::from(self.get(ACKNOWLEDGED)), u64::from(acked)]);
    }

    /// A loss was detected; unlike in the kernel, the window is reduced to the threshold at once.
    fn lose(&mut self) {
        self.put(PRIOR, self.get(WINDOW));
        let threshold = self.call("ssthresh", &[]);
        self.put(THRESHOLD, threshold);
        self.put(COUNT, 0);
        self.state(RECOVERY);
        self.put(WINDOW, self.get(THRESHOLD));
    }

    /// The last loss was repaired.
    fn repaired(&mut self) {
        if self.memory[STATE] & 0x1f == RECOVERY {
            self.call("cwnd_event", &[COMPLETE_CWR]);
        }
        self.state(OPEN);
    }

    /// The retransmission timer expired.
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

/// An event of a connection.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// An ACK for at most this many segments, the round-trip time in microseconds, and whether the window limited the sender.
    Ack(u32, u32, bool),
    Lost,
    Expired,
}

/// Steps in which the window limits the sender with this probability. (Linux's Vegas checks this where it behaves like Reno; the model
/// does not.)
fn steps(limits: f64) -> impl Strategy<Value = Vec<Step>> {
    steps_with(limits, prop_oneof![Just(10_000u32), 10_000..10_400u32, 10_000..30_000u32])
}

/// The same with other round-trip times, in microseconds.
fn steps_with(limits: f64, rtt: impl Strategy<Value = u32>) -> impl Strategy<Value = Vec<Step>> {
    let ack =
        (1..4u32, rtt, prop::bool::weighted(limits)).prop_map(|(acked, rtt, limited)| Step::Ack(acked, rtt, limited));
    prop::collection::vec(prop_oneof![200 => ack, 2 => Just(Step::Lost), 1 => Just(Step::Expired)], 1..800)
}

/// Steps in which the delay stays the same for hundreds of ACKs, so that round trips end with queues of all lengths.
fn long_steps() -> impl Strategy<Value = Vec<Step>> {
    let rtt = prop_oneof![2 => Just(10_000u32), 2 => 10_000..11_500u32, 2 => 10_000..60_000u32];
    let run = (rtt, 1..4u32, 1..400usize, prop::bool::weighted(0.95), prop::option::weighted(0.1, any::<bool>()));
    prop::collection::vec(run, 1..30).prop_map(|runs| {
        let each = |(rtt, acked, acks, limited, end)| {
            let end = Option::map(end, |expired: bool| if expired { Step::Expired } else { Step::Lost });
            std::iter::repeat_n(Step::Ack(acked, rtt, limited), acks).chain(end)
        };
        runs.into_iter().flat_map(each).collect()
    })
}

/// Round-trip times with a queue of none to 20 ms, in microseconds: LoLa's thresholds are 0.5, 1 and 5 ms.
fn lola_delays() -> impl Strategy<Value = u32> {
    prop_oneof![10_000..10_400u32, 10_400..11_000u32, 11_000..30_000u32]
}

/// Runs of ACKs: their number, the segments of each, and the round-trip time. Some runs are longer than a round trip without a queue.
/// They begin with a long queue, so that rounding to microseconds is a small part of the largest delay.
fn runs() -> impl Strategy<Value = Vec<(usize, u32, u32)>> {
    let rtt = prop_oneof![10_000..10_200u32, 10_000..60_000u32];
    prop::collection::vec((1..200usize, 1..4u32, rtt), 1..40)
        .prop_map(|runs| [vec![(1, 1, 60_000), (1, 1, 10_000)], runs].concat())
}

/// Losses after runs of ACKs at a steady rate: the number of ACKs, how many tenths more than one segment each acknowledges, and the
/// round-trip time in microseconds. Windows are larger than those of `steps`.
fn epochs() -> impl Strategy<Value = Vec<Step>> {
    let rtt = prop_oneof![Just(11_500u32), 11_001..20_000u32, 30_000..60_000u32];
    let tenths = prop_oneof![3 => 0..20u32, 2 => 10..13u32];
    prop::collection::vec((1..400u32, tenths, rtt), 2..12).prop_map(|epochs| {
        let acks = |(acks, tenths, rtt): (u32, u32, u32)| {
            let reached = move |ack: u32| ack + ack * tenths / 10;
            let acks = (0..acks).map(move |ack| Step::Ack(reached(ack + 1) - reached(ack), rtt, true));
            acks.chain([Step::Lost])
        };
        epochs.into_iter().flat_map(acks).collect()
    })
}

/// The event that the model gets for an ACK.
fn model_ack(acked: u32, marked: u32, rtt: u32, reached: u32, next: u32, phase: Phase, limited: bool) -> Ack {
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

/// Runs program and model, and compares them after each step: windows must be equal, thresholds may differ by one segment.
fn compare(
    control: &str,
    params: &AlgorithmParams,
    steps: &[Step],
    measured: impl Fn(u32) -> u32,
) -> Result<(), TestCaseError> {
    compare_with(control, params, steps, measured, Nanos(1_000_000), |_| 0)
}

/// The same with this time between steps. Windows may differ by `apart` of the model's, in segments, and thresholds by one more.
fn compare_with(
    control: &str,
    params: &AlgorithmParams,
    steps: &[Step],
    measured: impl Fn(u32) -> u32,
    between: Nanos,
    apart: impl Fn(u64) -> u64,
) -> Result<(), TestCaseError> {
    CLOCK.set(0);
    let rtt =
        steps.iter().find_map(|step| if let Step::Ack(_, rtt, _) = step { Some(*rtt) } else { None }).unwrap_or(0);
    let mut kernel = Connection::established(control, 10, 0, rtt, 1);
    let mut model = Controller::new(params, SEGMENT as u32, 10 * SEGMENT, 0);
    model.on_established(Some(Nanos(u64::from(rtt) * 1_000)), Nanos(0));
    let (mut reached, mut next, mut now, mut phase) = (0, 10, Nanos(0), Phase::Open);
    // The sequence number whose acknowledgement ends the recovery.
    let mut repaired = 0;
    for (number, step) in steps.iter().enumerate() {
        now = now + between;
        CLOCK.set(now.0);
        kernel.set_time(now);
        kernel.put(NEXT, next);
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
                    kernel.repaired();
                    model.on_recovered(now);
                }
                // Prevents slow start from using the recent maximum of segments in flight.
                kernel.put(WINDOW + 44, 0);
                if phase != Phase::Recovery {
                    kernel.grow(acked);
                }
                model.on_ack(&model_ack(acked, 0, rtt, reached, next, phase, limited), now);
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
        let window = model.window() / SEGMENT;
        prop_assert!(found[0].abs_diff(window) <= apart(window), "step {}: {:?} {} {}", number, step, found[0], window);
        // Linux computes three quarters of a window as a half plus a quarter, each rounded down.
        let more = 1 + apart(model_threshold);
        prop_assert!(found[1].abs_diff(model_threshold) <= more, "step {}: {:?} {}", number, found, model_threshold);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn vegas_has_the_same_windows(steps in steps(1.0)) {
        // The program adds a microsecond to each sample, as Linux does.
        compare("vegas", &AlgorithmParams::Vegas(VegasParams::linux()), &steps, |rtt| rtt - 1)?;
    }

    #[test]
    fn veno_has_the_same_windows(steps in steps(0.9)) {
        compare("veno", &AlgorithmParams::Veno(VenoParams::linux()), &steps, |rtt| rtt - 1)?;
    }

    #[test]
    fn yeah_has_the_same_windows(steps in long_steps()) {
        compare("yeah", &AlgorithmParams::Yeah(YeahParams::linux()), &steps, |rtt| rtt - 1)?;
    }

    /// With times of 10 to 30 ms, and of 50 to 150.
    #[test]
    fn hybla_has_the_same_windows(steps in steps(0.9), times in prop_oneof![Just(1), Just(5)]) {
        let longer = |step: &Step| match *step {
            Step::Ack(most, rtt, limited) => Step::Ack(most, times * rtt, limited),
            other => other,
        };
        let steps: Vec<_> = steps.iter().map(longer).collect();
        compare("hybla", &AlgorithmParams::Hybla(HyblaParams::linux()), &steps, |rtt| rtt)?;
    }

    /// Sequence numbers are bytes here. An ACK may acknowledge nothing new.
    #[test]
    fn westwood_has_the_same_windows(
        steps in prop::collection::vec((0..20_000u32, 0..4u32, 1..80_000u32, 0..200u32), 1..600), rtt in 1..80_000u32,
    ) {
        let unit = SEGMENT as u32;
        CLOCK.set(0);
        let mut kernel = Connection::established("westwood", 10, 10, rtt, unit);
        let mut model = Westwood::new(WestwoodParams::linux(), unit, 10 * SEGMENT, 0);
        model.on_established(Some(Nanos(u64::from(rtt) * 1_000)), Nanos(0));
        let (mut reached, mut next, mut phase) = (0, 10, Phase::Open);
        for (number, (later, acked, rtt, event)) in steps.into_iter().enumerate() {
            CLOCK.set(CLOCK.get() + u64::from(later) * 1_000);
            let now = Nanos(CLOCK.get());
            let congestion = Congestion { in_flight: 0, lost: SEGMENT, delivered: 0, next: u64::from(next) * SEGMENT };
            if phase != Phase::Open && event < 50 {
                kernel.repaired();
                model.on_recovered(now);
                phase = Phase::Open;
            } else if phase == Phase::Open && event < 4 {
                kernel.lose();
                model.on_congestion(&congestion, now);
                phase = Phase::Recovery;
            } else if phase == Phase::Open && event < 6 {
                kernel.expire();
                model.on_timeout(&congestion, now);
                phase = Phase::Loss;
            }
            reached += acked;
            next = next.max(reached + 10);
            kernel.ack(acked, 0, rtt, next);
            let mut ack = model_ack(acked, 0, rtt, reached, next, phase, true);
            if acked == 0 {
                // It reported a segment out of order.
                kernel.put(DELIVERED, kernel.get(DELIVERED) + 1);
                kernel.call("in_ack_event", &[0]);
                ack.delivered = SEGMENT;
            }
            kernel.put(WINDOW + 44, 0);
            if phase != Phase::Recovery && acked > 0 {
                kernel.grow(acked);
            }
            model.on_ack(&ack, now);
            let found = [WINDOW, THRESHOLD].map(|at| u64::from(kernel.get(at)));
            prop_assert_eq!(f64::from(kernel.get(OWN)), model.bandwidth() / 8_000.0, "step {}", number);
            prop_assert_eq!(found[0], model.window() / SEGMENT, "step {}", number);
            let threshold = model.slow_start_threshold();
            prop_assert_eq!(found[1], if threshold == u64::MAX { u64::from(INFINITE) } else { threshold / SEGMENT });
        }
    }

    #[test]
    fn dctcp_without_marks_is_reno(steps in steps(0.9)) {
        compare("dctcp", &AlgorithmParams::NewReno(NewRenoParams::linux()), &steps, |rtt| rtt)?;
    }

    #[test]
    fn hstcp_has_the_same_windows(steps in steps(0.9)) {
        compare("hstcp", &AlgorithmParams::HighSpeed(HighSpeedParams::linux()), &steps, |rtt| rtt)?;
    }

    #[test]
    fn scalable_has_the_same_windows(steps in steps(0.9)) {
        compare("scalable", &AlgorithmParams::Scalable(ScalableParams::linux()), &steps, |rtt| rtt)?;
    }

    /// A time between steps that lets alpha rise; round-trip times that let beta follow them.
    #[test]
    fn htcp_has_the_same_windows(
        steps in steps_with(0.9, prop_oneof![Just(12_000u32), 11_001..14_000u32, 8_000..150_000u32]), between in 0..40_000_000u64,
    ) {
        compare_with("htcp", &AlgorithmParams::Htcp(HtcpParams::linux()), &steps, |rtt| rtt, Nanos(between), |_| 0)?;
    }

    #[test]
    fn htcp_has_the_same_windows_at_steady_rates(steps in epochs(), between in 1_000_000..10_000_000u64) {
        compare_with("htcp", &AlgorithmParams::Htcp(HtcpParams::linux()), &steps, |rtt| rtt, Nanos(between), |_| 0)?;
    }

    #[test]
    fn hstcp_and_bic_have_the_same_larger_windows(steps in epochs()) {
        compare("hstcp", &AlgorithmParams::HighSpeed(HighSpeedParams::linux()), &steps, |rtt| rtt)?;
        compare("bic", &AlgorithmParams::Bic(BicParams::linux()), &steps, |rtt| rtt)?;
    }

    /// The program's time is in whole milliseconds.
    #[test]
    fn bic_has_the_same_windows(steps in steps(0.9), between in 0..40u64) {
        compare_with("bic", &AlgorithmParams::Bic(BicParams::linux()), &steps, |rtt| rtt, Nanos(between * 1_000_000), |_| 0)?;
    }

    /// Thresholds are whole segments for the kernel; the program keeps their fractions.
    #[test]
    fn lola_has_the_same_windows_on_random_delays(steps in steps_with(0.9, lola_delays()), between in 500_000..2_000_000u64) {
        let between = Nanos(between / 1_000 * 1_000);
        compare_with("lola", &AlgorithmParams::Lola(LolaParams::linux()), &steps, |rtt| rtt, between, |_| 1)?;
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
            model.on_ack(&model_ack(acked, marked, 10_000, reached, next, Phase::Open, false), Nanos(0));
            // The program's alpha is a whole number of 1/1024, and each window of data may round it down by one.
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
            // The window limits neither of them, so it stays constant.
            kernel.memory[LIMITED] = 0;
            kernel.put(THRESHOLD, 2);
            kernel.ack(acked, 0, rtt, next);
            kernel.grow(acked);
            model.on_ack(&model_ack(acked, 0, rtt, reached, next, Phase::Open, false), Nanos(0));
            let [alpha, beta] = [(OWN + 24, 128.0), (OWN + 28, 64.0)].map(|(at, units)| f64::from(kernel.get(at)) / units);
            // The smallest alpha is 38/128, and all values are rounded down.
            prop_assert!((alpha - model.alpha()).abs() < 0.02 * model.alpha() + 2.0 / 128.0, "{} {}", alpha, model.alpha());
            prop_assert!((beta - model.beta()).abs() < 2.0 / 64.0, "{} {}", beta, model.beta());
            let threshold = kernel.call("ssthresh", &[]);
            prop_assert!((f64::from(threshold) - f64::from(window) * (1.0 - beta)).abs() <= 1.0, "{} {}", threshold, beta);
            next = reached + window;
        }
    }
}

/// Queueing delays that lead through all states of LoLa, then a loss, and then a timeout.
#[test]
fn lola_has_the_same_windows() {
    let levels = |levels: &[(u32, usize)]| {
        let acks = levels.iter().flat_map(|&(rtt, acks)| (0..acks).map(move |ack| (rtt + ack as u32 % 7 * 20, ack)));
        acks.map(|(rtt, ack)| Step::Ack(1 + ack as u32 % 3, rtt, ack % 16 > 0)).collect::<Vec<_>>()
    };
    let first = levels(&[(10_000, 100), (12_500, 200), (10_000, 500), (11_500, 600), (16_500, 400), (10_000, 300)]);
    let [second, third] = [levels(&[(10_100, 300)]), levels(&[(10_000, 300)])];
    let steps = [first, vec![Step::Lost], second, vec![Step::Expired], third].concat();
    let params = AlgorithmParams::Lola(LolaParams::linux());
    compare_with("lola", &params, &steps, |rtt| rtt, Nanos(1_000_000), |_| 1).unwrap_or_else(|why| panic!("{why}"));
}

/// With an empty queue each round trip adds ten segments, and a loss then takes an eighth.
#[test]
fn illinois_grows_by_ten_segments_with_an_empty_queue() {
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

/// The table of the program is that of the model, also for windows that no flow of these tests reaches.
#[test]
fn hstcp_has_the_same_table() {
    let params = HighSpeedParams::linux();
    let mut kernel = Connection::new("hstcp", 100, 0);
    kernel.put(THRESHOLD, 2);
    for window in (3..100_000).step_by(7) {
        kernel.put(WINDOW, window);
        kernel.put(COUNT, 0);
        kernel.grow(1);
        assert_eq!(f64::from(kernel.get(COUNT)), params.increase(f64::from(window)), "{window}");
        let taken = (f64::from(window) * params.decrease(f64::from(window))) as u32;
        assert_eq!(kernel.call("ssthresh", &[]), window - taken, "{window}");
    }
}

/// Acknowledges segments one by one in congestion avoidance, with the times of these round trips, and compares after each.
fn compare_rounds(control: &str, params: &AlgorithmParams, rtts: &[(u32, u32)], lose: bool) {
    let first = rtts[0].1;
    let mut kernel = Connection::established(control, 10, 0, first, 1);
    let mut model = Controller::new(params, SEGMENT as u32, 10 * SEGMENT, 0);
    model.on_established(Some(Nanos(u64::from(first) * 1_000)), Nanos(0));
    let (mut reached, mut repairs) = (0, false);
    for (rounds, rtt) in rtts {
        for _ in 0..*rounds {
            let window = kernel.get(WINDOW);
            for _ in 0..window {
                reached += 1;
                kernel.ack(1, 0, *rtt, reached + window);
                kernel.put(WINDOW + 44, 0);
                if std::mem::take(&mut repairs) {
                    kernel.repaired();
                    model.on_recovered(Nanos(0));
                }
                kernel.grow(1);
                let ack = model_ack(1, 0, rtt + 1, reached, reached + window, Phase::Open, true);
                model.on_ack(&ack, Nanos(0));
                assert_eq!(u64::from(kernel.get(WINDOW)), model.window() / SEGMENT, "{control} {rtt}");
            }
        }
        if let Controller::Yeah(yeah) = &model {
            assert_eq!(f64::from(kernel.get(OWN + 28)), yeah.competitor(), "{rtt}");
        }
        let window = kernel.get(WINDOW);
        let congestion = Congestion { in_flight: u64::from(window) * SEGMENT, lost: SEGMENT, delivered: 0, next: 0 };
        if lose {
            kernel.lose();
            model.on_congestion(&congestion, Nanos(0));
            repairs = true;
            assert_eq!(u64::from(kernel.get(WINDOW)), model.window() / SEGMENT, "{control} {rtt}");
        }
    }
}

/// Rounds enough for what counts them: 16 with a queue, 51 without one, between long queues and losses.
#[test]
fn yeah_counts_round_trips_as_the_model() {
    let yeah = AlgorithmParams::Yeah(YeahParams::linux());
    let long =
        [(4, 10_000), (3, 30_000), (30, 12_000), (2, 60_000), (60, 10_000), (10, 30_000), (60, 13_000), (1, 90_000)];
    compare_rounds("yeah", &yeah, &long, false);
    let losses = [
        (4, 10_000),
        (30, 12_000),
        (15, 12_000),
        (17, 12_000),
        (30, 10_000),
        (30, 10_000),
        (60, 10_000),
        (40, 10_500),
        (14, 12_000),
    ];
    compare_rounds("yeah", &yeah, &losses, true);
}

/// All eighths of rho, and windows so large that an ACK adds nothing.
#[test]
fn hybla_adds_the_same_for_all_eighths() {
    let hybla = AlgorithmParams::Hybla(HyblaParams::linux());
    for eighths in 8..48 {
        let rtt = eighths * 25_000 / 8 + 5;
        compare_rounds("hybla", &hybla, &[(2, rtt), (3, rtt)], true);
    }
    compare_rounds("hybla", &hybla, &[(9, 10_000), (5, 10_000)], true);
}

/// Where the kernel skipped a run and used a random value as the result, the next ACK corrects it.
#[test]
fn the_next_ack_corrects_a_skipped_run() {
    for (control, left) in [
        ("vegas", 20),
        ("illinois", 20),
        ("dctcp", 20),
        ("hybla", 20),
        // None of its own segments wait: a fifth, or an eighth.
        ("veno", 32),
        ("yeah", 35),
        ("westwood", 20),
        ("hstcp", 20),
        ("scalable", 35),
        ("htcp", 20),
        ("bic", 31),
        ("lola", 28),
        ("prague", 20),
    ] {
        for found in [2_165_326_096, 0] {
            let mut kernel = Connection::new(control, 40, 40);
            kernel.put(PRIOR, 40);
            kernel.put(THRESHOLD, found);
            kernel.memory[STATE] |= RECOVERY - 1;
            kernel.ack(1, 0, 10_000, 50);
            assert_eq!(kernel.get(THRESHOLD), left, "{control} after {found}");
            // The kernel skipped that ACK's run, too.
            kernel.put(WINDOW, found);
            kernel.put(WINDOW + 40, 30);
            kernel.ack(1, 0, 10_000, 50);
            assert_eq!(kernel.get(WINDOW), 30, "{control} after {found}");
        }
    }
}
