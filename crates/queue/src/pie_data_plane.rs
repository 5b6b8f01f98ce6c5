//! The common part of PIE_DP and PIE_TABLE (Kunze et al., IM 2021, sections VI.C and VI.D): registers of a port,
//! sampled by generated packets, and drops behind the queue. The two differ in the rule by which a sample changes the
//! probability.

use crate::counters::counters;
use crate::pie_switch::{delay_register, fraction};
use crate::random::Random;
use crate::update_clock::UpdateClock;
use crate::{DropReason, Egress, Headers, PieStep, Pipeline, Port, Sink};
use queuescope_wire::{Departure, Nanos};

/// PIE in the data plane, on every port of a switch: [`PieDp`](crate::PieDp) or [`PieTable`](crate::PieTable).
///
/// ```
/// use queuescope_queue::{Egress, Headers, Host, PieDp, PieDpParams, Pipeline, Port};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{Departure, FlowId, Nanos, Packet};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let mut program = PieDp::new(PieDpParams::default(), 1, 1);
/// for n in 0..20_000 {
///     // Packets wait for 400 us, with a target of 125 us.
///     let (enqueued, now) = (Nanos(n * 12_000), Nanos(n * 12_000 + 400_000));
///     while program.next_timer().is_some_and(|due| due <= now) {
///         program.on_timer(now);
///     }
///     let mut departure = Departure { packet: Packet::default(), enqueued, dequeued: now, ..Departure::default() };
///     let mut headers = Headers::plain(Host(1), Host(2), FlowId(9));
///     let _: Egress = program.egress(Port(0), &mut departure, &mut headers, &mut NoSink);
/// }
/// println!("{} packets were dropped", program.stats().early);
/// assert!(program.stats().early > 0);
/// ```
#[derive(Debug)]
pub struct PieDataPlane<R> {
    pub(crate) rule: R,
    act: bool,
    ports: Vec<PieRegisters>,
    clock: UpdateClock,
    random: Random,
    stats: PieDataPlaneStats,
}

/// The rule by which a sample changes the probability.
pub trait UpdateRule {
    /// `delay` is the sojourn time of the last packet that left, `sampled` the one that the previous sample read; both
    /// in the unit of the delay register.
    fn step(&self, delay: u16, sampled: u16) -> PieStep;
}

/// The counters of PIE in the data plane, for all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieDataPlaneStats {
    /// Packets that arrived at egress.
    pub offered: u64,
    /// Packets that were dropped there.
    pub early: u64,
    /// Generated packets, each counted once for all ports.
    pub updates: u64,
}

counters!(PieDataPlaneStats { offered, early, updates });

/// The registers of a port.
#[derive(Debug, Clone, Copy, Default)]
struct PieRegisters {
    probability: u32,
    /// The sojourn time of the last packet.
    delay: u16,
    /// The delay that the last update read.
    sampled: u16,
    /// The random number drawn for the previous packet.
    random: u32,
}

impl<R> PieDataPlane<R> {
    /// Starts with all registers at 0. The generator sends a packet each `update`. Packets are dropped only if `act` is
    /// set.
    pub(crate) fn with_rule(rule: R, update: Nanos, act: bool, ports: u16, seed: u64) -> Self {
        Self {
            rule,
            act,
            ports: vec![PieRegisters::default(); usize::from(ports)],
            clock: UpdateClock::new(update, None),
            random: Random::new(seed),
            stats: PieDataPlaneStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &PieDataPlaneStats {
        &self.stats
    }

    /// The drop probability of `port`, where 2^32 - 1 is one; `None` for a port that does not exist.
    pub fn probability_register(&self, port: Port) -> Option<u32> {
        self.ports.get(usize::from(port.0)).map(|port| port.probability)
    }
}

impl<R: UpdateRule> Pipeline for PieDataPlane<R> {
    #[inline]
    fn egress(
        &mut self,
        port: Port,
        departure: &mut Departure,
        _headers: &mut Headers,
        _sink: &mut impl Sink,
    ) -> Egress {
        let Some(port) = self.ports.get_mut(usize::from(port.0)) else { return Egress::Send };
        self.clock.wake(departure.dequeued);
        self.stats.offered += 1;
        let drop = port.leave(departure.sojourn(), self.random.bits());
        if drop && self.act {
            self.stats.early += 1;
            return Egress::Drop(DropReason::Early);
        }
        Egress::Send
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.clock.next()
    }

    fn on_timer(&mut self, _now: Nanos) {
        self.stats.updates += 1;
        let mut changed = false;
        for port in &mut self.ports {
            changed |= port.sample(&self.rule, self.random.bits());
        }
        if changed { self.clock.tick() } else { self.clock.rest() }
    }

    fn drop_probability(&self, port: Port) -> Option<f64> {
        self.probability_register(port).map(fraction)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

impl PieRegisters {
    /// Records that a packet leaves after `sojourn`. Returns whether to drop it.
    #[inline]
    fn leave(&mut self, sojourn: Nanos, drawn: u32) -> bool {
        self.delay = delay_register(sojourn);
        self.probability > std::mem::replace(&mut self.random, drawn)
    }

    /// Processes a generated packet. Returns whether any register except the random one has changed.
    #[inline]
    fn sample(&mut self, rule: &impl UpdateRule, drawn: u32) -> bool {
        let before = (self.probability, self.sampled);
        self.probability = rule.step(self.delay, self.sampled).apply(self.probability);
        self.sampled = self.delay;
        self.random = drawn;
        before != (self.probability, self.sampled)
    }
}
