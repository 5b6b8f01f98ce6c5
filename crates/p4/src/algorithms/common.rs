//! Ports, the sojourn time and decisions by chance, which several algorithms have.

use crate::{Field, Op, Program};

/// Ports with their own queues that a program is made for.
pub(crate) const PORTS: u64 = 64;

/// The words of a register with one for each port of a pipe: a Tofino has 72 there.
pub(crate) const PIPE_PORTS: u64 = 128;

/// The bits of a port's number within its pipe.
pub(crate) const PORT_BITS: u32 = PIPE_PORTS.ilog2();

/// The sojourn time of a packet, in nanoseconds.
pub(crate) fn sojourn_time(program: &mut Program) -> Field {
    let entered = program.leaving("time of entering the queue", 48);
    let left = program.leaving("time of leaving the queue", 48);
    program.simple("sojourn = left - entered", &[entered, left], 32)
}

/// A decision by a probability: whether a random number with as many bits is below it.
pub(crate) fn by_chance(program: &mut Program, probability: Field) -> Field {
    let random = program.compute("random number", Op::Random, &[], 32);
    program.compare("random < probability", &[random, probability])
}
