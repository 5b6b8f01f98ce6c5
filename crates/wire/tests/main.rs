//! All integration tests of the crate, in one binary.

mod common;
mod invariant;
mod parse_captures;
mod parse_frames;
mod parse_layers;
mod telemetry;
