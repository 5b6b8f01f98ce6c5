//! Tests of the crate.

mod hops;
