//! One report, many views: text for a terminal, JSON Lines for programs, HTML for people.
//!
//! [`model::Report`] holds everything that an analysis found; [`text`], [`json`] and [`html`] only show it.

pub mod format;
#[cfg(feature = "html")]
pub mod html;
pub mod json;
pub mod model;
pub mod text;
