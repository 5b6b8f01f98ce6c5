//! Tests of the crate.

mod identity;
