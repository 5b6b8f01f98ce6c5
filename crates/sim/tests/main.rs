//! All tests of the crate from outside, in one binary.

mod chains;
mod common;
mod datagrams;
// It has its own workspace, and `make extension` tests it there. Here it is compiled as part of the tests, which see only the public parts of this crate.
#[path = "extension/src/lib.rs"]
mod extension;
mod flows;
mod grid;
mod held_back;
mod loss;
mod ns3;
mod outside;
mod overhead;
mod p4air;
mod programs;
mod recipes;
mod record;
mod sizes;
mod trace;
