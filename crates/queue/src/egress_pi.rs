//! Egress PI: a squared PI controller that a switch can run behind its queues, with integers, shifts and additions
//! only.
//!
//! This is queuescope's own algorithm, after PI2 (De Schepper et al., CoNEXT 2016) and within what a switch can do
//! according to Kunze et al. (IM 2021, sections IV and VIII). It needs no multiplication and no scaling, reaches each
//! register once per packet, and needs no generated packets, no feedback, no control plane, and nothing at ingress.
//! Each packet that leaves
//!
//! 1. reads its own time in the queue, in units of 1024 ns, up to 8.4 ms;
//! 2. checks in a register with the time of the last update whether another update is due, and if so stores its own
//!    time there;
//! 3. if so, stores its delay in a second register, and reads the delay that was there;
//! 4. if so, forms `((delay - target) << alpha) + ((delay - before) << beta)`, where the first delay is at most 1 ms;
//!    otherwise 0;
//! 5. adds that to a third register, the probability p', which saturates at its ends, and reads it;
//! 6. is chosen if two random numbers are both below p', that is, with probability p' squared. A packet of a scalable
//!    congestion control (ECT(1)) is chosen if half of one random number is below p', that is, with 2 p'. A packet that
//!    waited less than `calm` is left alone; where p' is an eighth or more, one that waited less than `short`.
//!
//! A chosen packet is marked, or dropped if it cannot be marked. A drop has a probability of at most a quarter, because
//! p' counts as at most a half there.
//!
//! The square replaces the scaling: the effect of a change of p' on a queue does not depend on p'. So the gains follow
//! from the longest round-trip time alone (RFC 9332, appendix A.1), and are powers of two.
//!
//! The register of p' is signed and uses all bits from the lowest to the highest value, so that a saturating addition
//! stops at 0 and at 1.

use crate::counters::counters;
use crate::pie_switch::{QUEUE, units};
use crate::random::Random;
use crate::{DropReason, Egress, Headers, MarkReason, Pipeline, Port, Sink, TailDropParams};
use queuescope_wire::{Departure, Ecn, Nanos};

/// The value of p' above which the drop probability does not grow.
const HALF: u32 = u32::MAX / 2;

/// The parameters of Egress PI.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EgressPiParams {
    /// The queue of each port, which the driver keeps: 500 us, as in Kunze et al.
    pub queue: TailDropParams,
    /// The target delay: 125 us, as in Kunze et al.
    pub target: Nanos,
    /// The time after an update when the next packet makes another one: 125 us, close to theirs.
    pub update: Nanos,
    /// The left shift of the distance to the target: 9, an alpha of 0.116 Hz. RFC 9332's rule, 0.1 update / rtt^2,
    /// gives 0.125 Hz for round-trip times up to 10 ms.
    pub alpha_shift: u32,
    /// The left shift of the change of the delay: 17, a beta of 29.8 Hz. RFC 9332's rule, 0.3 / rtt, gives 30 Hz.
    pub beta_shift: u32,
    /// Packets that waited less than this are left alone while p' is below an eighth, so that a probability that is
    /// still falling does not reduce the windows of flows whose queue is gone: 94 us, three quarters of the target.
    /// With 31 us a single flow at 1 Gb/s and 350 us has 6 % less goodput (docs/explanation/egress-pi.md).
    pub calm: Nanos,
    /// The same while p' is an eighth or more: 31 us, a quarter of the target. Many flows with small windows over a
    /// long round trip need marks before the queue is long again.
    pub short: Nanos,
}

impl EgressPiParams {
    /// The longest delay that the register distinguishes, in units of 1024 ns: 8.4 ms. Shifted by 17 it stays within 31
    /// bits.
    pub const LONGEST: u32 = (1 << 13) - 1;

    /// The longest delay that counts for the distance to the target, in the same unit: 1 ms. p' takes back what a short
    /// burst of a long queue added no faster than 0.12 per second.
    pub const FAR: u32 = (1 << 10) - 1;

    /// The value of p' of an eighth. From there on many packets are marked, because windows are of a few packets.
    pub const MANY: u32 = 1 << 29;
}

impl Default for EgressPiParams {
    fn default() -> Self {
        Self {
            queue: QUEUE,
            target: Nanos(125_000),
            update: Nanos(125_000),
            alpha_shift: 9,
            beta_shift: 17,
            calm: Nanos(94_000),
            short: Nanos(31_000),
        }
    }
}

/// Egress PI on every port of a switch.
///
/// ```
/// use queuescope_queue::{EgressPi, EgressPiParams, Headers, Host, Pipeline, Port};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{ByteCount, Departure, Ecn, FlowId, Nanos, Packet, PacketId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let mut program = EgressPi::new(EgressPiParams::default(), 1, 1);
/// for n in 0..100_000 {
///     // For more than a second, packets wait 500 us: four times the target.
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ecn: Ecn::Ect0, ..Packet::default() };
///     let (enqueued, dequeued) = (Nanos(12_000 * n), Nanos(12_000 * n + 500_000));
///     let mut departure = Departure { packet, enqueued, dequeued, ..Departure::default() };
///     program.egress(Port(0), &mut departure, &mut Headers::plain(Host(1), Host(2), FlowId(9)), &mut NoSink);
/// }
/// println!("p' is {:?} after {} updates", program.base_probability(Port(0)), program.stats().updates);
/// assert!(program.base_probability(Port(0)) > Some(0.2));
/// assert!(program.stats().marked > 0);
/// ```
#[derive(Debug)]
pub struct EgressPi {
    params: EgressPiParams,
    ports: Vec<EgressPiRegisters>,
    random: Random,
    stats: EgressPiStats,
}

/// The counters of Egress PI, for all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EgressPiStats {
    /// Packets that came to egress.
    pub offered: u64,
    /// Packets that were chosen.
    pub chosen: u64,
    /// Of those, packets that were marked.
    pub marked: u64,
    /// Of those, packets that carried CE already.
    pub marked_before: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that made an update.
    pub updates: u64,
}

counters!(EgressPiStats { offered, chosen, marked, marked_before, dropped, updates });

/// The registers of a port. Each packet accesses each register once.
#[derive(Debug, Clone, Copy)]
struct EgressPiRegisters {
    /// The time of the last update.
    updated: u32,
    /// The delay that it stored.
    delay: u32,
    /// p': the lowest number is 0, the highest is 1.
    probability: i32,
}

impl EgressPi {
    /// All ports start with p' = 0.
    pub fn new(params: EgressPiParams, ports: u16, seed: u64) -> Self {
        let fresh = EgressPiRegisters { updated: 0, delay: 0, probability: i32::MIN };
        Self {
            params,
            ports: vec![fresh; usize::from(ports)],
            random: Random::new(seed),
            stats: EgressPiStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &EgressPiStats {
        &self.stats
    }

    /// The probability p' of a port, from 0 to 1; `None` for a port that does not exist.
    pub fn base_probability(&self, port: Port) -> Option<f64> {
        let port = self.ports.get(usize::from(port.0))?;
        Some(f64::from(unsigned(port.probability)) / f64::from(u32::MAX))
    }

    /// Whether a packet is chosen.
    #[inline]
    fn chooses(&mut self, port: Port, departure: &Departure) -> bool {
        let Some(registers) = self.ports.get_mut(usize::from(port.0)) else { return false };
        let delay = units(departure.sojourn()).min(EgressPiParams::LONGEST);
        let due = registers.due(units(departure.dequeued), units(self.params.update));
        let change = if due { registers.change(delay, &self.params) } else { 0 };
        let base = registers.add(change);
        self.stats.updates += u64::from(due);
        let ecn = departure.packet.ecn;
        let number = number(ecn, [self.random.bits(), self.random.bits()]);
        let base = unsigned(base);
        let calm = if base < EgressPiParams::MANY { self.params.calm } else { self.params.short };
        let spared = delay < units(calm);
        let too_much = number > HALF && ecn == Ecn::NotEct;
        number < base && !spared && !too_much
    }
}

impl Pipeline for EgressPi {
    #[inline]
    fn egress(
        &mut self,
        port: Port,
        departure: &mut Departure,
        _headers: &mut Headers,
        sink: &mut impl Sink,
    ) -> Egress {
        self.stats.offered += 1;
        if !self.chooses(port, departure) {
            return Egress::Send;
        }
        self.stats.chosen += 1;
        let packet = &mut departure.packet;
        match packet.ecn {
            Ecn::NotEct => {
                self.stats.dropped += 1;
                return Egress::Drop(DropReason::Early);
            }
            Ecn::Ce => self.stats.marked_before += 1,
            Ecn::Ect0 | Ecn::Ect1 => {
                packet.ecn = Ecn::Ce;
                self.stats.marked += 1;
                sink.marked(packet, MarkReason::Early, departure.dequeued);
            }
        }
        Egress::Send
    }

    /// p' squared: the probability with which packets of classic congestion controls are marked.
    fn drop_probability(&self, port: Port) -> Option<f64> {
        self.base_probability(port).map(|base| base * base)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

impl EgressPiRegisters {
    /// Whether an update is due. If so, it stores its time.
    #[inline]
    fn due(&mut self, now: u32, period: u32) -> bool {
        let due = now.wrapping_sub(self.updated) >= period;
        if due {
            self.updated = now;
        }
        due
    }

    /// How much an update changes p'. Stores the delay.
    #[inline]
    fn change(&mut self, delay: u32, params: &EgressPiParams) -> i32 {
        let before = std::mem::replace(&mut self.delay, delay);
        let change = (delay.cast_signed() - before.cast_signed()) << params.beta_shift;
        let distance =
            delay.min(EgressPiParams::FAR).cast_signed() - units(params.target).min(EgressPiParams::FAR).cast_signed();
        (distance << params.alpha_shift) + change
    }

    /// Adds a change to p'. Returns the result.
    #[inline]
    fn add(&mut self, change: i32) -> i32 {
        self.probability = self.probability.saturating_add(change);
        self.probability
    }
}

/// The number to compare with p': the larger of two random numbers, or half of one.
#[inline]
fn number(ecn: Ecn, [one, other]: [u32; 2]) -> u32 {
    if ecn == Ecn::Ect1 { one / 2 } else { one.max(other) }
}

/// The same bits in the same order, shifted to start at 0.
#[inline]
fn unsigned(signed: i32) -> u32 {
    signed.cast_unsigned() ^ (1 << 31)
}
