//! All tests of the crate from outside, in one binary.

mod p4air;
mod placing;
mod rules;
mod table_one;
