//! The way of a packet, for people and programs.

use super::{Culprit, CulpritKind, Gap, HopCulprits, Journey, JourneyHop, Offset, VisitedQueue};
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
    writeln!(out, "packet {}: {}", journey.digest, journey.packet)?;
    for (at, hop) in journey.hops.iter().enumerate() {
        if let Some(gap) = at.checked_sub(1).and_then(|before| journey.gaps.get(before)) {
            writeln!(out, "  {}", between(gap))?;
        }
        let what = hop.dropped.as_ref().map_or_else(
            || format!("waited {}", hop.wait()),
            |reason| format!("was dropped after {} ({reason})", hop.wait()),
        );
        let blame = if at == journey.blamed { ", the longest wait" } else { "" };
        let came = if hop.is_timed {
            format!("it came at {}", date_text(hop.enqueued))
        } else {
            format!("when is not known: its report came at {}", date_text(hop.dequeued))
        };
        // A table of departures has no backlog, and some switches report none.
        let behind = if hop.backlog.0 == 0 { String::new() } else { format!(" behind {}", hop.backlog) };
        writeln!(out, "{}: {what}{behind}{blame}; {came}", place(&hop.member, &hop.queue))?;
        write_culprits(hop, out)?;
    }
    if journey.alike > 0 {
        writeln!(out, "{} visits of packets that look the same were left out", count(journey.alike))?;
    }
    write_rest(&journey.missing, &journey.notes, out)
}

/// Writes what is missing.
pub fn write_rest(missing: &[String], notes: &[String], out: &mut dyn Write) -> io::Result<()> {
    if !missing.is_empty() {
        writeln!(out, "unknown: {}", missing.join(", "))?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "{note}"))
}

/// A number of packets.
pub fn packets_text(packets: u64) -> String {
    if packets == 1 { "1 packet".to_owned() } else { format!("{} packets", count(packets)) }
}

/// The host, and the switch and queue if there are any.
pub fn place(member: &str, queue: &VisitedQueue) -> String {
    let &VisitedQueue { switch, port, queue } = queue;
    let named = |what: &str, number: u64| if number == 0 { String::new() } else { format!(", {what} {number}") };
    let (switch, port) = (named("switch", switch.into()), named("port", port.into()));
    format!("{member}{switch}{port}{}", named("queue", queue.into()))
}

fn write_culprits(hop: &JourneyHop, out: &mut dyn Write) -> io::Result<()> {
    if !hop.is_timed {
        return writeln!(out, "    what made it wait is not known without its times");
    }
    let direct = if hop.dropped.is_some() { "were in the queue as it came" } else { "left while it waited" };
    write_kinds(&hop.culprits, direct, "as it came", out)?;
    if hop.queue.switch != 0 {
        writeln!(out, "    of the packets that the switch reported; others are not known")?;
    }
    Ok(())
}

/// Writes each kind of culprits, in the words of `queuescope why`: what the direct ones did, and when the original ones' levels stood.
pub fn write_kinds(culprits: &HopCulprits, direct_did: &str, then: &str, out: &mut dyn Write) -> io::Result<()> {
    let HopCulprits { direct, indirect, original, is_complete, .. } = culprits;
    let kinds = [
        ("Direct", direct_did.to_owned(), direct),
        ("Indirect", "left before that, since the queue was last empty".to_owned(), indirect),
        ("Original", format!("raised the queue to its levels {then}"), original),
    ];
    for (name, meaning, kind) in kinds {
        if kind.is_empty() {
            writeln!(out, "    {name} culprits: none ({meaning})")?;
            continue;
        }
        writeln!(out, "    {name} culprits ({meaning}):")?;
        for culprit in &kind.flows {
            writeln!(out, "      {}  {}, {}", culprit.flow, culprit.bytes, packets_text(culprit.packets))?;
        }
        if kind.others.0 > 0 {
            writeln!(out, "      other flows  {}", kind.others)?;
        }
    }
    if !is_complete {
        writeln!(
            out,
            "    the oldest packets since the queue was empty are not known: the last two lists rest on a part"
        )?;
    }
    Ok(())
}

/// The time between two hops: links, hosts that record nothing, and the difference of two clocks.
fn between(gap: &Gap) -> String {
    const WHERE: &str = "on links and where nothing is recorded";
    let shown = Nanos(gap.shown.unsigned_abs());
    let by_clocks = if gap.shown < 0 { format!("{shown} earlier") } else { format!("about {shown} later") };
    let Some((there, back)) = gap.packets else { return format!("{shown} later, {WHERE}:") };
    match (gap.least, gap.most) {
        (Some(least), Some(most)) => {
            let (middle, half) = (Nanos(least.0 + (most.0 - least.0) / 2), Nanos((most.0 - least.0).div_ceil(2)));
            format!("{middle} later, give or take {half}, {WHERE}; {}:", ahead(gap.offset))
        }
        _ if !gap.offset.is_possible() => {
            format!(
                "{by_clocks} by the two clocks; packets that passed both contradict each other, so one clock was set:"
            )
        }
        _ if there + back > 0 => {
            format!("{by_clocks}, if the two clocks agree (packets passed both in one direction only):")
        }
        _ => format!("{by_clocks} by the two clocks; nothing shows how far they differ:"),
    }
}

/// How far the second clock is ahead, or behind.
fn ahead(offset: Offset) -> String {
    let (Some(least), Some(most)) = (offset.least, offset.most) else { return String::new() };
    let (middle, half) = (least + (most - least) / 2, Nanos((most - least).unsigned_abs().div_ceil(2)));
    let (apart, side) = (Nanos(middle.unsigned_abs()), if middle < 0 { "behind" } else { "ahead" });
    format!("the second clock is {apart} {side}, give or take {half}")
}

fn as_json(journey: &Journey) -> Value {
    let hops = journey.hops.iter().map(|hop| {
        let mut json = json!({
            "host": hop.member, "switch": hop.queue.switch, "port": hop.queue.port, "queue": hop.queue.queue,
            "enqueued_ns": hop.enqueued.0.to_string(), "dequeued_ns": hop.dequeued.0.to_string(), "timed": hop.is_timed,
            "wait_ns": hop.wait().0, "backlog_bytes": hop.backlog.0, "dropped": hop.dropped,
        });
        if let (Some(all), Value::Object(culprits)) = (json.as_object_mut(), culprits_json(&hop.culprits)) {
            all.extend(culprits);
        }
        json
    });
    let gaps = journey.gaps.iter().map(|gap| {
        json!({
            "shown_ns": gap.shown.to_string(), "least_ns": gap.least.map(|time| time.0), "most_ns": gap.most.map(|time| time.0),
            "clock_ahead_least_ns": gap.offset.least.map(|ahead| ahead.to_string()),
            "clock_ahead_most_ns": gap.offset.most.map(|ahead| ahead.to_string()),
            "packets": gap.packets.map(|(there, back)| [there, back]),
        })
    });
    json!({
        "packet": journey.packet, "digest": journey.digest.to_string(), "hops": hops.collect::<Vec<_>>(), "gaps": gaps.collect::<Vec<_>>(),
        "blamed": journey.blamed, "alike": journey.alike, "missing": journey.missing, "notes": journey.notes,
    })
}

/// Each kind of culprits, for programs.
pub fn culprits_json(culprits: &HopCulprits) -> Value {
    let HopCulprits { direct, indirect, original, since, is_complete } = culprits;
    json!({
        "culprits": flows(direct), "others_bytes": direct.others.0,
        "indirect": flows(indirect), "indirect_others_bytes": indirect.others.0,
        "original": flows(original), "original_others_bytes": original.others.0,
        "busy_since_ns": since.0.to_string(), "complete": is_complete,
    })
}

fn flows(kind: &CulpritKind) -> Vec<Value> {
    let flow = |one: &Culprit| json!({ "flow": one.flow, "bytes": one.bytes.0, "packets": one.packets });
    kind.flows.iter().map(flow).collect()
}
