//! All tests of the crate from outside, in one binary.

mod common;
mod damage;
mod golden;
mod legacy;
mod pcapng;
mod round_trip;
mod zeros;
