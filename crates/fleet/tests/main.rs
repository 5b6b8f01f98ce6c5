//! Tests of the crate.

mod answer;
mod calls;
mod cut;
#[cfg(target_os = "linux")]
mod hosts;
mod identity;
#[cfg(target_os = "linux")]
#[path = "../../live/tests/common/mod.rs"]
mod namespaces;
