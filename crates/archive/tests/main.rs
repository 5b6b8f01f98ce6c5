//! All tests of the crate from outside, in one binary.

mod archive;
mod aside;
mod common;
mod folders;
mod gone;
mod hostile;
mod keep;
mod killed;
mod missing;
mod small_disk;
