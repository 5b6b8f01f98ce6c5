//! Shared by several tests and the benchmark.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod captures;
pub mod reference;
