//! All tests of the crate from outside, in one binary.

mod arrow;
mod columns;
mod common;
mod definitions;
mod definitions_errors;
mod distinct;
mod edges;
mod errors;
mod expressions;
mod log;
mod parameters;
mod parts;
mod queries;
mod queued;
mod records;
mod release;
mod release_edges;
mod release_stress;
#[path = "common/rising.rs"]
mod rising;
mod schemas;
mod stress;
mod tcpdump;
mod triggers;
