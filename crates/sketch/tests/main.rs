//! All tests of the crate from outside, in one binary.

mod accuracy;
mod jump;
mod printqueue;
mod snapshots;
mod tapped;
mod windows;
