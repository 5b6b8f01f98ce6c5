//! All integration tests of the crate, in one binary.

mod browser;
#[path = "common/chromium.rs"]
mod chromium;
mod compare;
mod html;
mod plots;
#[path = "common/plotted.rs"]
mod plotted;
#[path = "common/sample.rs"]
#[allow(missing_docs, reason = "shared with the example")]
mod sample;
mod sweep;
#[path = "common/swept.rs"]
mod swept;
mod text;
