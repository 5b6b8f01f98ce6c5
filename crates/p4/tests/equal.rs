//! The interpreter against the types of `queuescope-queue`: decisions and registers, packet by packet.

mod egress_pi;
mod pie_data_plane;

use queuescope_p4::ir::Input;
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_wire::{ByteCount, Departure, Ecn, Nanos, Packet};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A sink that counts nothing: `egress` returns what happens.
struct NoSink;

impl Sink for NoSink {
    fn dropped(&mut self, _: &Dropped) {}
    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

/// A packet that leaves.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    port: u16,
    /// When it leaves.
    now: Nanos,
    sojourn: Nanos,
    ecn: Ecn,
}

impl Leaving {
    /// As the Rust types take it.
    fn departure(self) -> Departure {
        let packet = Packet { size: ByteCount(1500), ecn: self.ecn, ..Packet::default() };
        let enqueued = Nanos(self.now.0 - self.sojourn.0);
        Departure { packet, enqueued, dequeued: self.now, ..Departure::default() }
    }

    /// As a program takes it.
    pub fn input(self, input: Input) -> u64 {
        match input {
            Input::Port => u64::from(self.port),
            Input::Enqueued => self.now.0 - self.sojourn.0,
            Input::Dequeued => self.now.0,
            Input::Generated => 0,
            Input::Ecn => u64::from(self.ecn.bits()),
        }
    }
}

/// Packets of four ports, whose sojourn times wander so that probabilities take all values.
pub fn wandering(seed: u64, count: usize) -> impl Iterator<Item = Leaving> {
    let mut random = Pcg64Mcg::seed_from_u64(seed ^ 0x5eed);
    let (mut level, mut now) = (100_000u64, 10_000_000_000);
    (0..count).map(move |_| {
        let bits = random.next_u64();
        let step = bits % 40_000;
        level =
            (level + step).saturating_sub(bits >> 20 & 0x7fff).min(30_000_000) + u64::from(bits >> 60 == 0) * 90_000;
        if bits >> 52 & 0xff == 0 {
            level /= 8;
        }
        now += bits >> 24 & 0x3fff;
        let ecn = Ecn::from_bits((bits >> 50 & 3) as u8);
        Leaving { port: (bits >> 40 & 3) as u16, now: Nanos(now), sojourn: Nanos(level), ecn }
    })
}

/// The numbers that a Rust type with this seed draws.
fn same_numbers(seed: u64) -> impl FnMut(u32) -> u64 {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    move |_bits| u64::from(random.next_u32())
}
