//! The ConQuest snapshots (Chen et al., CoNEXT 2019, section 3): how much of a key passed in any recent stretch of
//! time, in a few kilobytes.
//!
//! Time is divided in windows. Each of the last few windows has a Count-Min Sketch of what passed in it; a question
//! about `[from, to)` is answered from the windows that it touches. There is no notion of a queue here: a key is a
//! digest, a weight is bytes or packets, and time comes in.
//!
//! - [`ConQuest`]: the snapshots; [`ConQuestParams`] its dimensions, which can be fitted to a delay and a memory.
//! - [`Ideal`]: the same without collisions, for comparison; [`Snapshots`] is what both can be asked.
//! - [`Jump`]: how much more of a key passed in the newest whole window than in the one before.
//! - [`Estimator`]: which windows count for a question, and how much.
//! - [`Expiry`]: how old counts go away.
//! - [`CountMin`]: a snapshot by itself.
//!
//! Beside them, for questions long afterwards:
//!
//! - [`Windows`]: who passed in any interval of the past, the more coarsely the longer ago; [`WindowsParams`] its
//!   dimensions, and [`Passed`] an answer.

mod conquest;
mod count_min;
mod estimator;
mod hash;
mod params;
mod windows;

pub use conquest::{ConQuest, ConQuestStats, Ideal, Jump};
pub use count_min::CountMin;
pub use estimator::{Estimator, EstimatorError, Snapshots};
pub use params::{ConQuestParams, Expiry, ParamsError, Passes, Weights};
pub use windows::{Passed, Share, Windows, WindowsError, WindowsParams, WindowsStats};
