//! The interpreter against the types of `queuescope-queue`: decisions and registers, packet by packet.

mod abc;
mod conquest;
mod conquest_legacy;
mod conquest_stands;
mod drop_schedule;
mod egress_pi;
mod p4air;
mod pie_cp;
mod pie_data_plane;
mod printqueue;
mod red;
mod step;

use queuescope_p4::ir::{Leaving, wandering};
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_wire::{Nanos, Packet};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// A sink that counts nothing: `egress` returns what happens.
struct NoSink;

impl Sink for NoSink {
    fn dropped(&mut self, _: &Dropped) {}
    fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
}

/// The numbers that a Rust type with this seed draws.
fn same_numbers(seed: u64) -> impl FnMut(u32) -> u64 {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    move |_bits| u64::from(random.next_u32())
}
