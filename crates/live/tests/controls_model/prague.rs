//! Prague: increase, average and reductions, with marks, losses and timeouts.

use super::{
    ACKNOWLEDGED, CLOCK, Connection, INFINITE, LIMITED, NEXT, OPEN, OWN, PRIOR, RECOVERY, REDUCED, SEGMENT, THRESHOLD,
    WINDOW, model_ack,
};
use proptest::prelude::*;
use queuescope_tcp::congestion::{Prague, PragueParams};
use queuescope_tcp::{Congestion, CongestionControl, Phase};
use queuescope_wire::Nanos;

/// An event of a connection.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// An ACK for at most this many segments, whether they were marked, the round-trip time in microseconds, and whether the window limited the
    /// sender.
    Ack(u32, bool, u32, bool),
    Lost,
    Expired,
}

/// A connection of the program and of the model. What the sender does is computed from the program's window.
struct Pair {
    kernel: Connection,
    model: Prague,
    reached: u32,
    next: u32,
    now: Nanos,
    phase: Phase,
    /// The sequence number whose acknowledgement ends the phase.
    until: u32,
}

impl Pair {
    fn new() -> Self {
        CLOCK.set(0);
        let model = Prague::new(PragueParams::linux(), SEGMENT as u32, 10 * SEGMENT, 0);
        let kernel = Connection::established("prague", 10, 0, 10_000, 1);
        Self { kernel, model, reached: 0, next: 10, now: Nanos(0), phase: Phase::Open, until: 0 }
    }

    fn congestion(&self, lost: u64) -> Congestion {
        let in_flight = u64::from(self.next - self.reached) * SEGMENT;
        Congestion { in_flight, lost, delivered: 0, next: u64::from(self.next) * SEGMENT }
    }

    /// The phase begins: unlike in the kernel, the window is reduced to the threshold at once.
    fn enter(&mut self, phase: Phase, state: u8) {
        // The kernel does not call the control again while a mark is answered.
        if self.phase == Phase::Open {
            self.kernel.put(PRIOR, self.kernel.get(WINDOW));
            let threshold = self.kernel.call("ssthresh", &[]);
            self.kernel.put(THRESHOLD, threshold);
        }
        self.kernel.state(state);
        self.kernel.put(WINDOW, self.kernel.get(THRESHOLD));
        (self.phase, self.until) = (phase, self.next);
    }

    fn step(&mut self, step: Step, between: Nanos) {
        self.now = self.now + between;
        CLOCK.set(self.now.0);
        self.kernel.set_time(self.now);
        self.kernel.put(NEXT, self.next);
        match step {
            Step::Ack(most, marks, rtt, limited) => self.ack(most, marks, rtt, limited),
            Step::Lost if matches!(self.phase, Phase::Open | Phase::Reduced) => {
                self.enter(Phase::Recovery, RECOVERY);
                self.model.on_congestion(&self.congestion(SEGMENT), self.now);
            }
            Step::Expired if self.phase == Phase::Open => {
                self.kernel.expire();
                self.model.on_timeout(&self.congestion(SEGMENT), self.now);
                (self.phase, self.until) = (Phase::Loss, self.next);
            }
            Step::Lost | Step::Expired => {}
        }
    }

    fn ack(&mut self, most: u32, marks: bool, rtt: u32, limited: bool) {
        let acked = most.min(self.next - self.reached);
        let marked = if marks { acked } else { 0 };
        self.reached += acked;
        self.kernel.memory[LIMITED] = u8::from(limited);
        if self.phase != Phase::Open && self.reached >= self.until {
            self.phase = Phase::Open;
            self.kernel.state(OPEN);
            self.model.on_recovered(self.now);
        }
        self.kernel.ack(acked, marked, rtt, self.next);
        self.kernel.put(WINDOW + 44, 0);
        match self.phase {
            Phase::Recovery => {}
            Phase::Reduced => self.kernel.put(WINDOW, self.kernel.get(THRESHOLD)),
            _ => self.kernel.grow(acked),
        }
        let ack = model_ack(acked, marked, rtt, self.reached, self.next, self.phase, limited);
        self.model.on_ack(&ack, self.now);
        if marks && self.phase == Phase::Open {
            self.enter(Phase::Reduced, REDUCED);
            self.model.on_congestion(&self.congestion(0), self.now);
        }
        self.next = (self.reached + self.kernel.get(WINDOW)).max(self.next).max(self.reached + 1);
    }

    /// Averages differ by rounding, and windows by less than a segment, because thresholds are whole segments.
    fn compare(&self) -> Result<(), TestCaseError> {
        let alpha = f64::from(self.kernel.get(OWN + 36)) / f64::from(1 << 20);
        prop_assert!((alpha - self.model.alpha()).abs() < 1e-4, "{} {}", alpha, self.model.alpha());
        let (found, window) = (self.kernel.get(WINDOW), self.model.window() as f64 / SEGMENT as f64);
        prop_assert!((f64::from(found) - window).abs() <= 1.5, "at {}: {} {}", self.reached, found, window);
        let threshold = self.model.slow_start_threshold();
        if threshold == u64::MAX {
            prop_assert_eq!(self.kernel.get(THRESHOLD), INFINITE);
        } else {
            let (found, threshold) = (self.kernel.get(THRESHOLD), threshold as f64 / SEGMENT as f64);
            prop_assert!((f64::from(found) - threshold).abs() <= 1.5, "at {}: {} {}", self.reached, found, threshold);
        }
        Ok(())
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let rtt = prop_oneof![Just(10_000u32), 10_000..40_000u32];
    let ack = (1..4u32, prop::bool::weighted(0.05), rtt, prop::bool::weighted(0.95));
    let ack = ack.prop_map(|(acked, marks, rtt, limited)| Step::Ack(acked, marks, rtt, limited));
    prop::collection::vec(prop_oneof![300 => ack, 2 => Just(Step::Lost), 1 => Just(Step::Expired)], 1..800)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn prague_has_the_same_windows(steps in steps()) {
        let mut pair = Pair::new();
        for step in steps {
            pair.step(step, Nanos(1_000_000));
            pair.compare()?;
        }
    }
}

/// 500 round trips after slow start, the increase of a connection with 10 ms is scaled by (10 / 25)^2, and marks reduce once in 25 ms.
#[test]
fn prague_no_longer_depends_on_the_round_trip_time_after_500_of_them() {
    let mut pair = Pair::new();
    let mut step = |marks: bool| {
        pair.step(Step::Ack(1, marks, 10_000, true), Nanos(500_000));
        pair.compare().unwrap_or_else(|why| panic!("{why}"));
        (pair.model.is_independent(), pair.model.stats().early_marks, pair.kernel.get(ACKNOWLEDGED))
    };
    let mut acks = 0;
    while !step(acks % 120 == 119).0 {
        acks += 1;
        assert!(acks < 200_000, "the transition ends");
    }
    let (_, early, _) = (0..20_000).map(|ack| step(ack % 10 == 9)).last().expect("there are some");
    assert!(early > 0, "marks came within the reference round-trip time");
}
