//! Which flows fill a queue: bursts, culprits and delays, found in the departures from the queue, and the report of them.
//! - [`Analyzer`] is the short way: it makes a report of a capture or of departures.
//! - [`Analysis`] processes departures and drops as they come, from any source. Its result is [`Findings`], which make a
//!   report. A [`Watcher`] is called for each packet; a [`FlowIndex`] assigns ids to flows.
//! - [`AnalysisOptions`] are the options of an analysis that do not depend on the queue. [`Meters`] analyse the queues of a
//!   simulated network.
//! - [`Show`] decides which flows a report lists.
//! - [`why`] explains what made a packet, a flow, or the packets of a time range wait.
//!
//! ```no_run
//! # use queuescope_analysis as queuescope;
//! use queuescope::Analyzer;
//! use std::fs::File;
//!
//! let report = Analyzer::new("100mbps".parse()?).by(["5tuple".parse()?]).run(File::open("trace.pcap.gz")?)?;
//! for burst in &report.bursts {
//!     println!("{} ns at most, for {} ns", burst.peak_delay_ns, burst.length_ns);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod analysis;
mod analyzer;
mod behaviour;
mod delays;
mod findings;
mod index;
mod lasting;
mod metered;
mod options;
mod show;
mod tally;
pub mod why;
mod worst;

pub use analysis::{ALPHA, Analysis, AnalysisParams, DEPARTURES, Scale, SketchOptions, Watcher};
pub use analyzer::{Analyzer, Error};
pub use findings::Findings;
pub use index::{FLOWS, FlowIndex, name_digest};
pub use lasting::Lasting;
pub use metered::{Known, Metered, MeteringOptions, Meters, WantedMeters};
pub use options::AnalysisOptions;
pub use show::{Show, ShowError};
pub use tally::Tally;
