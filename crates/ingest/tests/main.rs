//! All integration tests of the crate, in one binary.

mod aqm;
mod read_error;
mod tap;
mod times;
