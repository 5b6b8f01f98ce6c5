//! The ConQuest snapshots (Chen et al., CoNEXT 2019, section 3): estimates of how much of a key passed in any recent
//! interval, in a few kilobytes.
//!
//! Time is divided into windows. Each of the last few windows has a Count-Min Sketch of what passed in it. An estimate
//! for `[from, to)` uses the windows that the interval touches. There is no notion of a queue here: a key is a digest,
//! a weight is bytes or packets, and the caller passes the time.
//!
//! - [`ConQuest`]: the snapshots. [`ConQuestParams`]: their dimensions, which can be fitted to a delay and a memory.
//! - [`Ideal`]: the same windows without collisions, for comparison. [`Snapshots`]: the trait that both implement.
//! - [`Jump`]: how much more of a key passed in the newest complete window than in the one before.
//! - [`Estimator`]: which windows count for an interval, and how much.
//! - [`Expiry`]: how old counts are removed.
//! - [`CountMin`]: a single snapshot.
//!
//! For intervals long ago:
//!
//! - [`Windows`]: which flows passed in any interval of the past; the resolution decreases with age. [`WindowsParams`]: its
//!   dimensions. [`Passed`]: the estimate for an interval.
//!
//! As PrintQueue's switch has them:
//!
//! - [`CellWindows`]: time windows of cells that each keep one packet. [`DepthStack`]: the flow that last brought the queue to each depth.
//!
//! For a router that a switch sees through taps:
//!
//! - [`TappedConQuest`]: matches packets before and behind the router, and runs ConQuest on those that leave.
//!
//! For flows and their congestion controls:
//!
//! - [`Fingerprint`]: the group of congestion controls that a flow belongs to, as P4air finds it (Turkovic and Kuipers,
//!   ICNP 2020). [`SendingRate`] and [`QueueGrowth`] are its halves before and behind a queue.

mod conquest;
mod count_min;
mod estimator;
mod fingerprint;
mod hash;
mod params;
mod printqueue;
mod tapped;
mod windows;

pub use conquest::{ConQuest, ConQuestStats, Ideal, Jump};
pub use count_min::CountMin;
pub use estimator::{Estimator, EstimatorError, Snapshots};
pub use fingerprint::{
    Fingerprint, FingerprintParams, FlowGroup, QueueGrowth, RatePattern, Rise, RoundTrip, SendingRate, SlowStartEnd,
    Ticks,
};
pub use params::{ConQuestParams, Expiry, ParamsError, Passes, Weights};
pub use printqueue::{CellWindows, CellWindowsParams, DepthStack, DepthStackParams, PrintQueueError, Raised};
pub use tapped::{TappedConQuest, TappedConQuestParams, TappedError, TappedStats, Verdict};
pub use windows::{Passed, Share, Windows, WindowsError, WindowsParams, WindowsStats};
