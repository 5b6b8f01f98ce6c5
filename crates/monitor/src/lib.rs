//! The queue of a Linux interface, or of a link in user space, while it is watched.
//!
//! - [`Attached`] is an interface that the kernel looks at as [`WatchOptions`] say; [`Watch`] takes what it sees, and a [`Reporter`]
//!   hears what happens. These are made of what follows:
//! - [`Feed`] makes departures of what the kernel hands over, for an analysis.
//! - [`Acts`] acts on flows, as options or a file say, and notes what changes while it runs.
//! - [`FlowOwners`]: which process, container or service sends a flow.
//! - [`Metrics`] answers a monitoring system.
//! - `Watched` watches a link in user space: its queues, for meters and for a view (feature `link`).
//! - [`View`] is what a person sees meanwhile; [`Screen`] is the terminal that it is drawn on.
#![cfg(target_os = "linux")]

mod acts;
mod error;
mod feed;
#[cfg(feature = "link")]
mod link;
mod listen;
mod metrics;
mod owners;
mod stopped;
mod unwritten;
mod view;
mod watch;

pub use acts::{ActingBounds, ActingOptions, ActingStatus, Acts, Counts, Mode, Policy, PolicyReader};
pub use error::{ActError, MetricsError, ScreenError, ViewError, WatchError};
pub use feed::{Feed, Receivers};
#[cfg(feature = "link")]
pub use link::{Session, Shown, Watched};
pub use listen::Listen;
pub use metrics::Metrics;
pub use owners::FlowOwners;
pub use stopped::Stopped;
pub use unwritten::Unwritten;
pub use view::{Key, Screen, View, give_up};
pub use watch::{Attached, Reporter, Watch, WatchOptions};
