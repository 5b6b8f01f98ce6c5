//! The way of a packet, for people and programs.

use super::{Journey, JourneyHop};
use queuescope_log::date_text;
use queuescope_report::format::count;
use queuescope_wire::Nanos;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes the way of a packet: a paragraph for each hop, or one line of JSON.
///
/// # Errors
/// Returns the first write error.
pub fn write_journey(journey: &Journey, is_json: bool, out: &mut dyn Write) -> io::Result<()> {
    if is_json {
        return writeln!(out, "{}", as_json(journey));
    }
    writeln!(out, "{}", journey.packet)?;
    let mut before: Option<&JourneyHop> = None;
    for (at, hop) in journey.hops.iter().enumerate() {
        if let Some(before) = before {
            writeln!(out, "  {}", between(before, hop))?;
        }
        before = Some(hop);
        let what = hop.dropped.as_ref().map_or_else(
            || format!("waited {}", hop.wait()),
            |reason| format!("was dropped after {} ({reason})", hop.wait()),
        );
        let blame = if at == journey.blamed { ", the longest wait" } else { "" };
        let (member, queue) = (&hop.member, hop.queue);
        let queue = if queue == 0 { String::new() } else { format!(", queue {queue}") };
        writeln!(out, "{member}{queue}: {what} behind {}{blame}; it came at {}", hop.backlog, date_text(hop.enqueued))?;
        for culprit in &hop.culprits {
            writeln!(out, "    {}  {}, {} packets", culprit.flow, culprit.bytes, count(culprit.packets))?;
        }
        if hop.others.0 > 0 {
            writeln!(out, "    other flows  {}", hop.others)?;
        }
    }
    if journey.alike > 0 {
        writeln!(out, "{} visits of packets that look the same were left out", count(journey.alike))?;
    }
    if !journey.missing.is_empty() {
        writeln!(out, "unknown: {}", journey.missing.join(", "))?;
    }
    Ok(())
}

/// The time between two hops: links, hosts that record nothing, and the difference of two clocks.
fn between(before: &JourneyHop, hop: &JourneyHop) -> String {
    if hop.enqueued >= before.dequeued {
        let apart = Nanos(hop.enqueued.0 - before.dequeued.0);
        format!("about {apart} later, on links and where nothing is recorded:")
    } else {
        let apart = Nanos(before.dequeued.0 - hop.enqueued.0);
        format!("{apart} earlier: the clocks of the two hosts differ")
    }
}

fn as_json(journey: &Journey) -> Value {
    let hops = journey.hops.iter().map(|hop| {
        let culprits = hop
            .culprits
            .iter()
            .map(|culprit| json!({ "flow": culprit.flow, "bytes": culprit.bytes.0, "packets": culprit.packets }));
        json!({
            "host": hop.member, "queue": hop.queue, "enqueued_ns": hop.enqueued.0.to_string(),
            "dequeued_ns": hop.dequeued.0.to_string(), "wait_ns": hop.wait().0, "backlog_bytes": hop.backlog.0,
            "dropped": hop.dropped, "culprits": culprits.collect::<Vec<_>>(), "others_bytes": hop.others.0,
        })
    });
    json!({
        "packet": journey.packet, "hops": hops.collect::<Vec<_>>(), "blamed": journey.blamed,
        "alike": journey.alike, "missing": journey.missing,
    })
}
