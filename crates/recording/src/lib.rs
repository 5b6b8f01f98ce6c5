//! Records headers of packets, and what queues did to the packets, to folders, and finds them again.
//!
//! - [`into_folder`] opens a folder for frames and finishes it; [`Headers`] selects the frames to keep, [`KeepOptions`] has options of the folder, and
//!   [`Derived`] has the definitions to evaluate meanwhile.
//! - [`QueuedLog`] is a folder that records what a queue did to each packet. [`Outputs`] writes such a folder, an annotated capture and a table
//!   beside an analysis; [`SimulatedLog`] writes one for all links of a simulation, and [`HopLog`] one of what switches report.
//! - [`Unwritten`]: what could not be written. The measurement goes on, and counts it.
//!
//! [`query`] finds packets of folders, captures and tables, and computes functions over them.
//!
//! `queuescope-archive` defines the format of folders, and reads and writes their files.
//!
//! ```
//! use queuescope_ingest::CaptureInput;
//! use queuescope_recording::{Derived, Headers, KeepOptions, into_folder};
//!
//! # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("traffic");
//! let mut capture = CaptureInput::open(trace.as_ref(), None)?;
//! let mut headers = Headers::of(Some("tcp"), false, None)?;
//! let notes = Box::new(|note: &str| eprintln!("note: {note}"));
//! let (damage, kept) = into_folder(&folder, &KeepOptions::default(), &Derived::default(), notes, |folder| {
//!     headers.keep_all(&mut capture, folder, &mut |_bytes, _packets| ())
//! })?;
//! assert!(damage?.is_none() && kept.recorded.records > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod alarms;
mod annotate;
mod atomic_file;
mod attributes;
mod budget;
mod error;
mod folder;
mod headers;
mod hops;
mod keep_options;
mod outputs;
pub mod query;
mod queued;
mod recording;
mod simulated;
mod spool;
mod table_log;
mod telemetry;

pub use alarms::Alarms;
pub use atomic_file::AtomicFile;
pub use attributes::attributes;
pub use budget::CpuBudget;
pub use error::Error;
pub use folder::check_log;
pub use headers::{Headers, IntoFolder, Kept, into_folder};
pub use hops::{HopCounts, HopLog, HopOptions, HopReader, Occupancy, SwitchClock, SwitchHop};
pub use keep_options::{DefinitionsFile, Derived, KeepOptions};
pub use outputs::{Outputs, Written};
pub use queued::{PendingPackets, QueuedLog};
pub use recording::{Notes, Recorded, Recording, cut_off, kept_aside, missing};
pub use simulated::SimulatedLog;
pub use spool::{Spool, Unwritten};
pub use table_log::TableLog;
pub use telemetry::TelemetryTable;
