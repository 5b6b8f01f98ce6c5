//! Queries over packets of a capture, a table of departures, or a folder.
//!
//! - [`Loaded`] is an input, in memory or in a folder ([`Held`]); a [`Question`] selects packets, and [`Held::each`] finds them.
//! - [`Selection`] is the content of an answer, built from [`SelectOptions`] as people write them. [`write_rows`] writes the answer as text, CSV
//!   or JSON; [`Parquet`] and [`Export`] write packets to files.
//! - [`parts`] computes the groups of some hosts' records as parts, which another process joins; [`write_groups`] writes the joined rows.
//! - [`QueueTimes`]: replaces the packets found by those that were in the same queue while they waited.
//!
//! ```
//! use queuescope_log::Schema;
//! use queuescope_recording::query::{Form, LoadOptions, Loaded, Question, SelectOptions, Selection, write_rows};
//!
//! # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
//! let capture = queuescope_ingest::open_capture(trace.as_ref())?;
//! let loaded = Loaded::capture(capture, trace.as_ref(), LoadOptions::default(), &mut |_bytes, _packets| ())?;
//! let mut options = SelectOptions::default();
//! options.group = Some("dst_ip".to_owned());
//! options.select = Some("sum(length),count".to_owned());
//! options.top = Some(3);
//! let selection = Selection::from_options(&options, Schema::packet())?;
//! let expression = queuescope_ingest::expression(Schema::packet(), "tcp and length > 1000B")?;
//! let question =
//!     Question { expression: &expression, from: 0, to: u64::MAX, needed: &selection.attributes(), company: None };
//! let mut out = Vec::new();
//! let found = write_rows(&selection, question, &loaded, Form::Csv, &mut out, &mut |note| eprintln!("note: {note}"))?;
//! assert!(found.packets > 0 && out.starts_with(b"dst_ip,"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod export;
mod held;
mod load;
mod parts;
mod queue_times;
mod rows;
mod select;
mod show;

pub use export::{Export, Parquet};
pub use held::{Held, Question, Seen};
pub use load::{LoadOptions, Loaded};
pub use parts::{PartLimits, PartQuestion, Parts, Records, parts};
pub use queue_times::QueueTimes;
pub use rows::Form;
pub use select::{Groups, SelectOptions, Selection};
pub use show::{Foot, Found, keys_text, share, write_attributes, write_foot, write_groups, write_plan, write_rows};
