//! All tests of the crate from outside, in one binary.

mod any_text;
mod common;
mod errors;
mod scenarios;
