//! All tests of the crate from outside, in one binary.

mod aqm;
mod tap;
