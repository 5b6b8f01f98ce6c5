//! The parameters of disciplines, switch programs and congestion controls: their keys, and nothing else. What they are by
//! default, the crates say that they are from.

mod congestion;
mod discipline;

pub(crate) use congestion::{Control, counts_marks};
pub(crate) use discipline::with_limit;
