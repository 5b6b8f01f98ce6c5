//! Logs in folders: records that outlive their process.
//!
//! - [`Recorder`]: a [`Log`](queuescope_log::Log) whose records are written to a folder as they come, by a thread that
//!   follows the log's tail; [`Durability`] says when they count as kept. One process records to a folder at a time.
//! - [`read`]: what a folder holds, as a log in memory; also while another process records to it.
//! - [`verify`]: every byte of a folder looked at.
//!
//! `docs/folders.md` has the format.

#![allow(clippy::disallowed_methods, reason = "this crate is a door: it reads and writes folders")]

mod error;
#[cfg(test)]
mod faults;
mod folder;
mod journal;
mod reader;
mod recorder;

pub use error::{Damage, FolderError};
pub use reader::{FileReport, Found, Part, State, Verified, read, schema, verify};
pub use recorder::{Durability, RecordError, Recorder, RecorderOptions, Recovery};
