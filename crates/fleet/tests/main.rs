//! Tests of the crate.
#![allow(clippy::disallowed_methods, reason = "tests read and write files, and look at clocks")]

mod answer;
mod calls;
mod cut;
#[cfg(target_os = "linux")]
mod hosts;
mod identity;
mod journeys;
#[cfg(target_os = "linux")]
#[path = "../../live/tests/common/mod.rs"]
mod namespaces;
mod programs;
mod upload;
