//! The interpreter against the types of `queuescope-queue`: decisions and registers, packet by packet.

mod egress_pi;
