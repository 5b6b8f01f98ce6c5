//! Names of files of a folder that error messages also use.

/// Is locked by the process that records, and notes how far it has written.
pub(crate) const LOCK: &str = "lock";
/// The saved values of aggregates.
pub(crate) const AGGREGATES: &str = "aggregates.json";
/// The alerts of triggers, one per line. The process that records writes them.
pub const ALERTS: &str = "alerts.jsonl";
/// The volumes that object storage has, and those on their way there.
pub(crate) const UPLOADS: &str = "uploads.jsonl";
/// What a recording left out, and when. The process that records writes it.
pub(crate) const LEFT_OUT: &str = "left_out.jsonl";
