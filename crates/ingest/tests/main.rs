//! All integration tests of the crate, in one binary.

mod aqm;
mod tap;
mod times;
