//! `queuescope`: which flows are filling a queue, and what to do about them.

fn main() {}
