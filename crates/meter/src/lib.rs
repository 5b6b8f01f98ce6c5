//! Measurements of departures: exact ground truth, bursts and their culprits, and the accuracy of a sketch.
//!
//! Everything here reads one stream of [`queuescope_wire::Departure`]s, in order of departure, and needs memory in proportion to what is
//! in the queue, not to what passes.
//!
//! - [`Recent`]: the departures that a query can still be about.
//! - [`ExactMeter`]: the exact part of the queue that was a packet's own flow (ConQuest definition 3.1).
//! - [`Tau`] and [`BurstTracker`]: the times when a queue is congested, and the flows that filled it.
//! - [`BurstFlowSums`]: bytes per flow over a burst, in bounded memory; [`Heavy`]: the heaviest of many flows.
//! - [`QueueLog`]: the exact culprits of any packet, drop, flow or time range in the past.
//! - [`QueueMonitor`]: the same approximately, in fixed memory, while the stream runs.
//! - [`Overtaking`]: whether there is more than one queue, by the order of departure.
//! - [`Ramps`]: the flows whose rate jumped before and during a burst.
//! - [`Score`]: precision and recall of an estimator, compared with the exact meter.
//! - [`ExactDepartures`]: all departures with their exact results, to compare many sketches with.
//! - [`MaxDelay`]: the range of a query across traffic classes (ConQuest section 3.6).
//! - [`DepthSeries`]: queue depth over time by flow, for a picture.
//! - [`group()`]: the few keys that explain a burst when no single flow does.
//! - [`tap`]: departures of a router from captures before and behind it.
//! - [`DistinctFlows`]: the number of flows, exact while it is small.
//! - [`Behaviours`]: which kind of congestion control each heavy flow has.

mod behaviour;
mod burst_flow_sums;
mod bursts;
mod culprits;
mod distinct;
mod exact;
mod exact_departures;
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
mod window_sums;

pub use behaviour::{
    Behaviour, BehaviourParams, BehaviourStats, Behaviours, Evidence, FinerKind, FlowRounds, Judgement, ROUNDS,
    Response, Round,
};
pub use burst_flow_sums::{BurstCulprits, BurstFlowSums, BurstFlows};
pub use bursts::{Burst, BurstFollower, BurstTracker, DetailedDeparture, HeldDepartures};
pub use culprits::{Amount, Culprits, Departed, Dropped, LogError, OnLink, QueueLog, QueueSnapshot, Ranking, Victims};
pub use distinct::DistinctFlows;
pub use exact::{Contribution, ExactMeter};
pub use exact_departures::{ExactDepartures, QueuedFlows, Truth};
pub use group::{Explosion, Group, GroupParams, Grouped, Pattern, Sampled, Subnet, Weight, group};
pub use heavy::{Heavy, Share};
pub use max_delay::MaxDelay;
pub use monitor::{BusyPeriod, MonitorError, MonitorParams, MonitorStats, QueueMonitor, Ranked, Worst};
pub use order::Overtaking;
pub use ramps::{Ramps, RateChange};
pub use rank::nearest_rank;
pub use recent::{History, PastDeparture, Recent};
pub use retired::Unit;
pub use score::Score;
pub use series::{DepthSeries, Part, Picture};
pub use tau::Tau;
pub use window_sums::WindowSums;
