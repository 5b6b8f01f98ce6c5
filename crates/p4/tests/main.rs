//! All tests of the crate from outside, in one binary.

mod bmv2;
mod building;
mod compiled;
mod equal;
mod frames;
mod p4air;
mod p4air_control;
mod placing;
mod printed;
mod rules;
mod table_one;
mod taps;
mod traces;

/// The packets of a comparison: `QUEUESCOPE_PACKETS`, or fewer by default.
#[allow(clippy::disallowed_methods, reason = "the environment asks for more packets")]
fn packets() -> usize {
    std::env::var("QUEUESCOPE_PACKETS").ok().and_then(|count| count.parse().ok()).unwrap_or(100_000)
}
