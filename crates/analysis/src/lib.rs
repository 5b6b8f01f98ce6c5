//! Which flows fill a queue: bursts, culprits and delays of whatever departs from it, and the report of that.
//!
//! - [`Analyzer`] is the short way: a capture or a table in, a report out.
//! - [`Analysis`] learns from departures and drops as they come, wherever they come from; [`Findings`] are what it found, and
//!   make a report. A [`Watcher`] sees each packet beside it; a [`FlowIndex`] hands out ids for flows.
//! - [`AnalysisOptions`] are what somebody asks of a queue, whichever it is. [`Meters`] analyse the queues of a simulated network.
//! - [`Show`] says which flows a report lists.
//! - [`why`] explains what made a packet, a flow, or packets of a stretch of time wait.
//!
//! ```no_run
//! use queuescope_analysis::Analyzer;
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
