//! Errors in a text that a user wrote, shown in that text with a caret below the position; the nearest correct name.
//!
//! - [`Problem`]: one error, its [`Place`]s, and a hint.
//! - [`TextError`]: all problems, with the [`Source`]s that they are in, for display.
//! - [`nearest`], [`did_you_mean`]: the correct name that is most similar to a wrong one.
//! - [`quoted`]: untrusted text, safe to show in a message.

mod cut;
mod error;
mod near;
mod problem;

pub use error::{Source, TextError};
pub use near::{did_you_mean, nearest};
pub use problem::{Place, Problem, quoted};
