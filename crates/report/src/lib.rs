//! The report and its views: text for a terminal, JSON Lines for programs, HTML for people.
//!
//! [`model::Report`] holds all results of an analysis; [`text`], [`json`] and [`html`] only display it.

pub mod decimal;
pub mod format;
#[cfg(feature = "html")]
pub mod html;
pub mod json;
pub mod model;
pub mod text;
