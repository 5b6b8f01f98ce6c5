//! All tests of the crate from outside, in one binary.

mod near;
mod shown;
