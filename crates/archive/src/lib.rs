//! Logs in folders: records that outlive their process.
//!
//! - [`Recorder`]: a [`Log`](queuescope_log::Log) whose records are written to a folder as they come, by a thread that
//!   follows the log's tail; [`Durability`] defines when a record counts as kept. One process at a time records to a folder.
//!   Another thread turns what was written into volumes in Parquet.
//! - [`History`]: queries over the records of a folder, also while another process records to it.
//! - [`AlertLines`]: reads alerts of triggers, while more may fire.
//! - [`compact`]: joins many small volumes into few; [`prune()`]: removes old records.
//! - [`Uploads`]: which volumes are in object storage; others are not removed.
//! - [`verify`]: checks every byte of a folder.
//!
//! `docs/reference/folders.md` describes the format.

#![allow(clippy::disallowed_methods, reason = "this crate is a door: it reads and writes folders")]

mod alerts;
mod archive;
mod archived;
mod aside;
mod catalogue;
mod compact;
mod definitions;
mod derived;
mod error;
#[cfg(test)]
mod faults;
mod folder;
#[cfg(test)]
mod full;
mod history;
mod journal;
mod left_out;
mod mark;
mod names;
mod prune;
mod reader;
mod recorder;
mod regular;
mod store;
mod strays;
mod there;
mod uploads;
mod volume;

pub use alerts::AlertLines;
pub use compact::{Compacted, Files, compact};
pub use definitions::definitions;
pub use derived::{Aggregates, aggregates};
pub use error::{Damage, FolderError};
pub use history::{ArchiveQuery, End, History, KeySink, Sources};
pub use left_out::{LeftOut, LeftOutFile};
pub use names::ALERTS;
pub use prune::{Held, Pruned, Retention, in_future, prune};
pub use reader::{FileReport, Part, State, Verified, is_recorded, schema, verify};
pub use recorder::{
    Durability, FinishError, Finished, Full, Installed, RecordError, Recorder, RecorderOptions, Recovery,
    VOLUME_RECORDS,
};
pub use regular::open_with;
pub use uploads::{SealedVolume, Uploads, VolumeFile};
