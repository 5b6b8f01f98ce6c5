//! Watches the queue of a Linux interface, or of a link in user space.
//!
//! - [`Attached`] is an interface with the probe attached as [`WatchOptions`] say. [`Watch`] analyses what the probe reports, and informs a
//!   [`Reporter`]. Both use the following:
//! - [`Feed`] converts packets that the kernel hands over to departures for an analysis.
//! - [`Acts`] acts on flows, as options or a file request, and records changes while it runs.
//! - [`P4airWatch`] runs P4air on the interface.
//! - [`FlowOwners`] finds the process, container or service that sends a flow.
//! - [`Metrics`] serves metrics to a monitoring system.
//! - `WatchedLink` watches the queues of a link in user space, for meters and for a view (feature `link`).
//! - [`View`] is the live display of a queue; [`Screen`] is the terminal that it is drawn on.
#![cfg(target_os = "linux")]

mod acts;
mod error;
mod feed;
#[cfg(feature = "link")]
mod link;
mod listen;
mod metrics;
mod owners;
mod p4air;
mod stopped;
mod unwritten;
mod view;
mod watch;

pub use acts::{ActingBounds, ActingOptions, ActingStatus, Acts, Counts, Mode, Policy, PolicyReader, flows};
pub use error::{ActError, ExemptError, MetricsError, P4airWatchError, ScreenError, ViewError, WatchError};
pub use feed::{Feed, Receivers};
#[cfg(feature = "link")]
pub use link::{LinkView, Session, WatchedLink};
pub use listen::Listen;
pub use metrics::{MetricFamily, Metrics, MetricsServer, metrics_text};
pub use owners::FlowOwners;
pub use p4air::{P4airOptions, P4airStatus, P4airWatch};
pub use stopped::Stopped;
pub use unwritten::Unwritten;
pub use view::{Key, Screen, View, give_up};
pub use watch::{Attached, Reporter, Watch, WatchOptions};
