//! All tests of the crate from outside, in one binary.

mod disciplines;
mod pie;
mod pipelines;
