//! Egress PI: a squared PI controller that a switch can run behind its queues, with integers, shifts and additions only.
//!
//! Our own, after PI2 (De Schepper et al., CoNEXT 2016) and with what Kunze et al. (IM 2021, sections IV and VIII) found a
//! switch to lack: it multiplies nothing, scales nothing, reaches each register once for a packet, needs no packets from a
//! generator, none fed back, no control plane, and nothing at ingress. Each packet that leaves
//!
//! 1. reads its own time in the queue, in units of 1024 ns, up to 8.4 ms;
//! 2. asks a register with the time of the last update whether another is due, which makes it the update's;
//! 3. if so, leaves its delay in a second register, and takes away the one that was there;
//! 4. if so, forms `((delay - target) << alpha) + ((delay - before) << beta)`, where the first delay is 1 ms at most; and
//!    0 otherwise;
//! 5. adds that to a third register, the probability p', which stops at its ends, and reads it;
//! 6. is chosen if two random numbers are both below p': by chance p' squared. One of a scalable congestion control (ECT(1)) is
//!    chosen if half of one is: by 2 p'. One that waited less than `calm` is left alone; where p' is an
//!    eighth or more, one that waited less than `short`.
//!
//! What is chosen is marked, or dropped if it cannot be: then by no more than a quarter, p' counting as a half at most.
//!
//! The square is what makes up for the scaling: how much a change of p' moves a queue does not depend on p'. So the gains follow
//! from the longest round trip alone (RFC 9332, appendix A.1), and are powers of two.
//!
//! The register of p' is signed: all bits from the least to the most, so that a saturating addition stops at 0 and at 1.

use crate::counters::counters;
use crate::pie_switch::QUEUE;
use crate::random::Random;
use crate::{DropReason, Egress, Headers, MarkReason, Pipeline, Port, Sink, TailDropParams};
use queuescope_wire::{Departure, Ecn, Nanos};

/// Of p', above which nothing more is dropped.
const HALF: u32 = u32::MAX / 2;

/// What Egress PI is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EgressPiParams {
    /// The queue of each port, which the driver keeps: 500 us, as Kunze et al. have it.
    pub queue: TailDropParams,
    /// The delay to be held: 125 us, as theirs.
    pub target: Nanos,
    /// How long after an update the next packet makes another: 125 us, as theirs nearly.
    pub update: Nanos,
    /// The left shift of the distance to the target: 9, an alpha of 0.116 Hz. RFC 9332's rule, 0.1 update / rtt^2, has 0.125 Hz
    /// for round trips up to 10 ms.
    pub alpha_shift: u32,
    /// The left shift of the change of the delay: 17, a beta of 29.8 Hz. RFC 9332's rule, 0.3 / rtt, has 30 Hz.
    pub beta_shift: u32,
    /// Packets that waited less are left alone while p' is below an eighth, so that a probability that is still falling takes no window from flows whose queue is
    /// gone: 94 us, three quarters of the target. With 31 us a single flow at 1 Gb/s and 350 us has 6 % less goodput
    /// (docs/explanation/egress-pi.md).
    pub calm: Nanos,
    /// The same from an eighth on: 31 us, a quarter of the target. Many flows of small windows over a long round trip need marks before
    /// the queue is long again.
    pub short: Nanos,
}

impl EgressPiParams {
    /// The longest delay that is told from longer ones, in units of 1024 ns: 8.4 ms. Its shift by 17 stays within 31 bits.
    pub const LONGEST: u32 = (1 << 13) - 1;

    /// The longest delay of which the distance to the target is told, in the same: 1 ms. What a long queue of a short while adds to p'
    /// is taken back no faster than 0.12 in a second.
    pub const FAR: u32 = (1 << 10) - 1;

    /// Of p', an eighth, from which on many are marked: windows are of a few packets.
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
#[derive(Debug)]
pub struct EgressPi {
    params: EgressPiParams,
    ports: Vec<Registers>,
    random: Random,
    stats: EgressPiStats,
}

/// What Egress PI counted, on all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EgressPiStats {
    /// Packets that came to egress.
    pub offered: u64,
    /// Packets that were chosen.
    pub chosen: u64,
    /// Of those: packets that were marked.
    pub marked: u64,
    /// Packets that were marked before.
    pub marked_before: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that made an update.
    pub updates: u64,
}

counters!(EgressPiStats { offered, chosen, marked, marked_before, dropped, updates });

/// The registers of a port. Each is reached once for a packet.
#[derive(Debug, Clone, Copy)]
struct Registers {
    /// When the last update was.
    updated: u32,
    /// The delay that it saw.
    delay: u32,
    /// p': 0 at the least number, 1 at the greatest.
    probability: i32,
}

impl EgressPi {
    /// With p' = 0.
    pub fn new(params: EgressPiParams, ports: u16, seed: u64) -> Self {
        let fresh = Registers { updated: 0, delay: 0, probability: i32::MIN };
        Self {
            params,
            ports: vec![fresh; usize::from(ports)],
            random: Random::new(seed),
            stats: EgressPiStats::default(),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &EgressPiStats {
        &self.stats
    }

    /// The probability p' of a port, from 0 to 1; none of a port that is not there.
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

    /// That with which packets of classic congestion controls are marked: p' squared.
    fn drop_probability(&self, port: Port) -> Option<f64> {
        self.base_probability(port).map(|base| base * base)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

impl Registers {
    /// Whether an update is due; if so, this is its time.
    #[inline]
    fn due(&mut self, now: u32, period: u32) -> bool {
        let due = now.wrapping_sub(self.updated) >= period;
        if due {
            self.updated = now;
        }
        due
    }

    /// By how much an update changes p'. The delay takes the place of the one before.
    #[inline]
    fn change(&mut self, delay: u32, params: &EgressPiParams) -> i32 {
        let before = std::mem::replace(&mut self.delay, delay);
        let change = (delay.cast_signed() - before.cast_signed()) << params.beta_shift;
        let distance =
            delay.min(EgressPiParams::FAR).cast_signed() - units(params.target).min(EgressPiParams::FAR).cast_signed();
        (distance << params.alpha_shift) + change
    }

    /// p' after a change.
    #[inline]
    fn add(&mut self, change: i32) -> i32 {
        self.probability = self.probability.saturating_add(change);
        self.probability
    }
}

/// The number that is compared with p': the larger of two random ones, or half of one.
#[inline]
fn number(ecn: Ecn, [one, other]: [u32; 2]) -> u32 {
    if ecn == Ecn::Ect1 { one / 2 } else { one.max(other) }
}

/// The same bits in the same order, from 0.
#[inline]
fn unsigned(signed: i32) -> u32 {
    signed.cast_unsigned() ^ (1 << 31)
}

/// A time in units of 1024 ns: bits 41 to 10 of a timestamp.
#[inline]
fn units(time: Nanos) -> u32 {
    (time.0 >> 10) as u32
}
