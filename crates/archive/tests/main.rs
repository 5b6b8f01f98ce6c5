//! All tests of the crate from outside, in one binary.

mod archive;
mod aside;
mod common;
mod folders;
mod gone;
mod hostile;
mod killed;
mod missing;
mod prune;
mod small_disk;
mod uploads;
