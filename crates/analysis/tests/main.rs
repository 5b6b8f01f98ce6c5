//! All integration tests of the crate, in one binary.

#[cfg(target_os = "linux")]
mod ahead;
