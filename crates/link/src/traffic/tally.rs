//! Reports the results of flows: each as a line of JSON, and all in a table.

use super::plan::TrafficPlan;
use hdrhistogram::Histogram;
use queuescope_ingest::notes::noted;
use queuescope_live::traffic::{Ended, Failure, Sent, Served};
use queuescope_live::{Control, Controls};
use queuescope_report::format::{bytes, count, duration, rate};
use queuescope_report::json::FORMAT_VERSION;
use queuescope_report::model::Skipped;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;

/// A flow that starts later than this counts as late, nanoseconds.
const LATE: u64 = 1_000_000;

/// The results of all flows.
#[derive(Debug)]
pub struct Tally {
    names: Vec<String>,
    congestion: Vec<String>,
    /// Those of the congestion controls that queuescope loaded into the kernel.
    programs: Vec<&'static str>,
    failed: BTreeMap<Failure, u64>,
    late: u64,
    latest: u64,
    bytes: u64,
    retransmitted: u64,
    with_ecn: u64,
    completed: u64,
    /// Completion times in nanoseconds, by kind and size.
    times: BTreeMap<(usize, u64), Histogram<u64>>,
}

impl Tally {
    /// No flows yet. `congestion` has the names of the congestion controls, and `controls` those that the kernel lacked.
    pub fn new(plan: &TrafficPlan, congestion: Vec<String>, controls: &Controls) -> Self {
        Self {
            names: plan.names().map(str::to_owned).collect(),
            congestion,
            programs: controls.all().map(Control::name).collect(),
            failed: BTreeMap::new(),
            late: 0,
            latest: 0,
            bytes: 0,
            retransmitted: 0,
            with_ecn: 0,
            completed: 0,
            times: BTreeMap::new(),
        }
    }

    /// Adds a flow that has ended.
    pub fn add(&mut self, flow: &Ended) {
        self.late += u64::from(flow.late.0 > LATE);
        self.latest = self.latest.max(flow.late.0);
        match flow.result {
            Ok(completed) => {
                self.completed += 1;
                self.bytes += flow.start.bytes;
                self.retransmitted += u64::from(completed.retransmitted);
                self.with_ecn += u64::from(completed.ecn);
                let times = self.times.entry((flow.start.class, bucket(flow.start.bytes)));
                times.or_insert_with(completion_times).saturating_record(completed.took.0.max(1));
            }
            Err(why) => *self.failed.entry(why).or_default() += 1,
        }
    }

    /// Writes a flow as a line of JSON.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn flow(&self, flow: &Ended, out: &mut dyn Write) -> io::Result<()> {
        let done = flow.result.as_ref().ok();
        let line = json!({
            "format_version": FORMAT_VERSION,
            "kind": "flow",
            "number": flow.number,
            "class": self.names[flow.start.class],
            "start_ns": flow.start.at.0.to_string(),
            "late_ns": flow.late.0,
            "bytes": flow.start.bytes.to_string(),
            "congestion": self.congestion.get(flow.start.congestion),
            "completion_ns": done.map(|done| done.took.0),
            "retransmissions": done.map(|done| done.retransmitted),
            "min_rtt_ns": done.map(|done| done.min_rtt.0),
            "ecn": done.map(|done| done.ecn),
            "failed": flow.result.err().map(Failure::name),
        });
        writeln!(out, "{line}")
    }

    /// Flows that did not complete.
    pub fn failed(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Writes the summary as a line of JSON.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn summary_json(&self, sent: &Sent, out: &mut dyn Write) -> io::Result<()> {
        let classes: Vec<Value> = self
            .rows()
            .map(|(name, size, times)| {
                json!({
                    "class": name,
                    "from_bytes": size,
                    "to_bytes": size.saturating_mul(10).max(1_000),
                    "flows": times.len(),
                    "p50_ns": times.value_at_quantile(0.5),
                    "p90_ns": times.value_at_quantile(0.9),
                    "p99_ns": times.value_at_quantile(0.99),
                    "max_ns": times.max(),
                })
            })
            .collect();
        let failed: Vec<Value> = self
            .failures()
            .map(|why| json!({"reason": why.reason, "count": why.count, "meaning": why.meaning}))
            .collect();
        let line = json!({
            "format_version": FORMAT_VERSION,
            "kind": "summary",
            "flows": sent.flows,
            "completed": self.completed,
            "failed": failed,
            "late": self.late,
            "max_late_ns": self.latest,
            "bytes": self.bytes.to_string(),
            "retransmissions": self.retransmitted,
            "with_ecn": self.with_ecn,
            "duration_ns": sent.took.0.to_string(),
            "max_open": sent.most_open,
            "congestion": self.congestion,
            "programs": self.programs,
            "stopped": sent.stopped,
            "classes": classes,
        });
        writeln!(out, "{line}")
    }

    /// Writes the summary of flows to the server `to` as text.
    ///
    /// # Errors
    /// Returns the error of the write.
    pub fn summary(&self, to: SocketAddr, sent: &Sent, out: &mut dyn Write) -> io::Result<()> {
        let seconds = sent.took.as_secs_f64().max(1e-9);
        writeln!(out, "{} flows to {to} in {}", count(sent.flows), duration(sent.took.0))?;
        writeln!(
            out,
            "{} completed: {}, {}; {} retransmissions; {} with ECN; {} at once at most; {}",
            count(self.completed),
            bytes(self.bytes),
            rate(self.bytes as f64 * 8.0 / seconds),
            count(self.retransmitted),
            count(self.with_ecn),
            sent.most_open,
            self.controls(),
        )?;
        let width = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
        writeln!(
            out,
            "\n{:width$} {:>17} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "kind", "bytes", "flows", "p50", "p90", "p99", "max"
        )?;
        for (name, size, times) in self.rows() {
            let at = |share| duration(times.value_at_quantile(share));
            writeln!(
                out,
                "{name:width$} {:>17} {:>9} {:>9} {:>9} {:>9} {:>9}",
                sizes(size),
                count(times.len()),
                at(0.5),
                at(0.9),
                at(0.99),
                duration(times.max()),
            )?;
        }
        let late = format!("flows that started more than 1 ms late, up to {}", duration(self.latest));
        let notes = self.failures().chain(noted("late", self.late, &late)).chain(noted(
            "stopped",
            sent.stopped.into(),
            "signal to stop came before all flows had started and ended",
        ));
        let notes: Vec<_> = notes.collect();
        if !notes.is_empty() {
            writeln!(out)?;
        }
        notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
    }

    /// The names of the congestion controls, with a remark on those that the kernel lacked.
    fn controls(&self) -> String {
        let names = self.congestion.iter().map(|name| match self.programs.contains(&name.as_str()) {
            true => format!("{name} (a program in the kernel)"),
            false => name.clone(),
        });
        names.collect::<Vec<_>>().join(", ")
    }

    fn failures(&self) -> impl Iterator<Item = Skipped> {
        self.failed.iter().filter_map(|(why, count)| noted(why.name(), *count, why.meaning()))
    }

    /// By kind and size: the kind, the smallest size, and the times.
    fn rows(&self) -> impl Iterator<Item = (&str, u64, &Histogram<u64>)> {
        self.times.iter().map(|((kind, size), times)| (self.names[*kind].as_str(), *size, times))
    }
}

/// Writes what a server received as text.
///
/// # Errors
/// Returns the error of the write.
pub fn served(served: &Served, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{} complete flows, {} in all", count(served.flows), bytes(served.bytes))?;
    notes(served).try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
}

/// Writes what a server received as a line of JSON.
///
/// # Errors
/// Returns the error of the write.
pub fn served_json(served: &Served, out: &mut dyn Write) -> io::Result<()> {
    let Served { flows, bytes, short, broken, foreign, idle, refused, unfinished } = served;
    let line = json!({
        "format_version": FORMAT_VERSION, "kind": "served", "flows": flows, "bytes": bytes.to_string(), "short": short, "broken": broken,
        "unknown_protocol": foreign, "idle": idle,
        "refused": refused, "unfinished": unfinished,
    });
    writeln!(out, "{line}")
}

fn notes(served: &Served) -> impl Iterator<Item = Skipped> {
    let notes = [
        noted("short", served.short, "flows that ended before all their bytes arrived"),
        noted("broken", served.broken, "connections that broke"),
        noted("unknown_protocol", served.foreign, "connections of programs that are not queuescope traffic"),
        noted("idle", served.idle, "connections that were closed because they were idle (--idle)"),
        noted(
            "refused",
            served.refused,
            "connections that were refused because there were too many (--flows, ulimit -n)",
        ),
        noted("unfinished", served.unfinished, "connections that were open at the end"),
    ];
    notes.into_iter().flatten()
}

/// Sizes are grouped by powers of ten, from a kilobyte on. Returns the smallest size of the group.
fn bucket(bytes: u64) -> u64 {
    if bytes < 1_000 { 0 } else { 10u64.pow(bytes.ilog10()) }
}

fn sizes(least: u64) -> String {
    if least == 0 { "below 1 kB".to_owned() } else { format!("{} to {}", bytes(least), bytes(least * 10)) }
}

/// A histogram of times up to an hour, with a precision of 0.1 %.
fn completion_times() -> Histogram<u64> {
    let most = 3_600_000_000_000;
    Histogram::new_with_bounds(1_000, most, 3).expect("these bounds are allowed")
}
