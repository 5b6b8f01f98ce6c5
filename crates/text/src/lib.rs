//! What is wrong with a text that a user wrote, shown in it under a caret.
//!
//! - [`Problem`]: one thing that is wrong, the [`Place`]s it is at, and what helps.
//! - [`TextError`]: all of them, with the [`Source`]s that they are in, as a person reads them.
//! - [`nearest`], [`did_you_mean`]: the right name that a wrong one is near to.
//! - [`quoted`]: a word from outside as a message may hold it.

mod cut;
mod error;
mod near;
mod problem;

pub use error::{Source, TextError};
pub use near::{did_you_mean, nearest};
pub use problem::{Place, Problem, quoted};
