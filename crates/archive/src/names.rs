//! Names of files of a folder that errors know, too.

/// How far was written, and who records.
pub(crate) const LOCK: &str = "lock";
/// What is known of aggregates.
pub(crate) const AGGREGATES: &str = "aggregates.json";
/// The alerts of triggers, a line each: who records writes them.
pub const ALERTS: &str = "alerts.jsonl";
