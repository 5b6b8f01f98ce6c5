//! All integration tests of the crate, in one binary.

mod common;
mod damage;
mod golden;
mod legacy;
mod pcapng;
mod round_trip;
mod times;
mod zeros;
