//! What departures tell: exact ground truth, bursts and their culprits, and how right a sketch was.
//!
//! Everything here reads the one stream of [`queuescope_wire::Departure`]s, in order of departure, and keeps memory
//! bounded by what is in the queue, not by what passes.
//!
//! - [`Recent`]: the departures that a question can still be about.
//! - [`ExactMeter`]: how much of the queue a packet's own flow was, exactly (ConQuest definition 3.1).
//! - [`Tau`] and [`BurstTracker`]: when a queue is congested, from when to when, and who filled it then.
//! - [`Blame`]: bytes per flow over a burst, in bounded memory; [`Heavy`]: the heaviest of many.
//! - [`QueueLog`]: the culprits of any packet, drop, flow or stretch of time in the past, exactly.
//! - [`QueueMonitor`]: the same approximately, in a memory that is fixed, while the stream runs.
//! - [`Overtaking`]: whether there is more than one queue, by the order of departure.
//! - [`Ramps`]: whose rate jumped before and in a burst.
//! - [`Score`]: precision and recall of an estimator against the exact meter.
//! - [`Truths`]: all departures with the truth about each, to hold many sketches against.
//! - [`MaxDelay`]: the range to ask about across traffic classes (ConQuest section 3.6).
//! - [`DepthSeries`]: queue depth over time by flow, for a picture.
//! - [`group()`]: the few keys that explain a burst when no single flow does.
//! - [`tap`]: departures of a router that is seen from outside only, by captures before and behind it.
//! - [`DistinctFlows`]: how many flows there were, exactly while they are few.

mod blame;
mod bursts;
mod culprits;
mod distinct;
mod exact;
mod group;
mod heavy;
mod losses;
mod max_delay;
mod monitor;
mod order;
mod ramps;
mod rank;
mod recent;
mod retired;
mod score;
mod series;
pub mod tap;
mod tau;
mod truths;

pub use blame::{Blame, Blamed, BurstFlows};
pub use bursts::{Burst, BurstTracker, Follower, Held, Waited};
pub use culprits::{Amount, Culprits, Departed, Dropped, LogError, OnLink, QueueLog, Ranking, Standing, Victims};
pub use distinct::DistinctFlows;
pub use exact::{Contribution, ExactMeter};
pub use group::{Explosion, Group, GroupParams, Grouped, Pattern, Sampled, Subnet, Weight, group};
pub use heavy::{Heavy, Share};
pub use max_delay::MaxDelay;
pub use monitor::{BusyPeriod, MonitorError, MonitorParams, MonitorStats, QueueMonitor, Ranked, Worst};
pub use order::Overtaking;
pub use ramps::{Jump, Ramps};
pub use rank::nearest_rank;
pub use recent::{History, Past, Recent};
pub use retired::Unit;
pub use score::Score;
pub use series::{DepthSeries, Part, Picture};
pub use tau::Tau;
pub use truths::{Crowd, Truth, Truths};
