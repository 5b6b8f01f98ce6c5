//! Tests of the crate.

mod answer;
