//! What several tests and the benchmark share.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod captures;
pub mod reference;
