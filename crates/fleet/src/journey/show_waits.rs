//! Why packets waited in each queue, for people and programs.

use super::show::{culprits_json, packets_text, place, write_kinds, write_rest};
use super::{QueueWaits, Waits};
use crate::answer::clock_text;
use queuescope_log::date_text;
use queuescope_wire::ByteCount;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes why packets waited: a paragraph for each queue, or one line of JSON.
///
/// # Errors
/// Returns the first write error.
pub fn write_waits(waits: &Waits, is_json: bool, out: &mut dyn Write) -> io::Result<()> {
    if is_json {
        return writeln!(out, "{}", as_json(waits));
    }
    writeln!(out, "{}", waits.question)?;
    if waits.queues.is_empty() {
        writeln!(out, "no queue had packets then, as far as it is recorded")?;
    }
    for (at, queue) in waits.queues.iter().enumerate() {
        write_queue(queue, waits.blamed == Some(at), out)?;
    }
    if waits.untimed > 0 {
        let untimed = packets_text(waits.untimed);
        writeln!(out, "{untimed} not in this: switches reported how long they waited, and not when")?;
    }
    write_rest(&waits.missing, &waits.notes, out)
}

fn write_queue(queue: &QueueWaits, is_blamed: bool, out: &mut dyn Write) -> io::Result<()> {
    let QueueWaits { packets, bytes, waited, longest, drops, at, backlog, culprits, part, clock, .. } = queue;
    let mut what = Vec::new();
    if *packets > 0 {
        let blame = if is_blamed { ", the longest wait of all queues" } else { "" };
        let (packets, bytes) = (packets_text(*packets), ByteCount(*bytes));
        what.push(format!("{packets}, {bytes}, waited {waited} together{blame}"));
    } else if backlog.packets > 0 {
        let blame = if is_blamed { ", most of all queues" } else { "" };
        what.push(format!("{} in {}{blame}", backlog.bytes, packets_text(backlog.packets)));
    }
    if *drops > 0 {
        let were = if *drops == 1 { "was" } else { "were" };
        what.push(format!("{} {were} dropped", packets_text(*drops)));
    }
    writeln!(out, "{}: {}", place(&queue.member, &queue.queue), what.join("; "))?;
    if let Some(longest) = longest {
        let asked = longest.digest.map_or_else(String::new, |digest| format!("; its way: --packet {digest}"));
        writeln!(out, "    longest: {}, came at {}{asked}", longest.wait, date_text(longest.enqueued))?;
        let since = at.saturating_sub(culprits.since);
        let standing = format!("{} in {}", backlog.bytes, packets_text(backlog.packets));
        writeln!(out, "    queue at {}: {standing}, not empty for {since}", date_text(*at))?;
    }
    let [direct, original] = match packets {
        0 => ["were in the queue", "then"],
        1 => ["left while it waited", "as it came"],
        _ => ["left while they waited", "then"],
    };
    write_kinds(culprits, direct, original, out)?;
    if let Some((from, to)) = part {
        let (from, to) = (date_text(*from), date_text(*to));
        writeln!(
            out,
            "    only from {from} to {to}, around the longest wait: more packets left than are read; give a shorter time"
        )?;
    }
    match clock {
        Some(clock) => writeln!(out, "    by its clock, which is {}", clock_text(clock)),
        None => writeln!(out, "    by its clock; how far it is off is not known"),
    }
}

fn as_json(waits: &Waits) -> Value {
    let queues = waits.queues.iter().map(|queue| {
        let mut json = json!({
            "host": queue.member, "switch": queue.queue.switch, "port": queue.queue.port, "queue": queue.queue.queue,
            "clock_ahead_ns": queue.clock.as_ref().map(|clock| [clock.least, clock.most]),
            "packets": queue.packets, "bytes": queue.bytes, "waited_ns": queue.waited.0, "drops": queue.drops,
            "longest": queue.longest.as_ref().map(|longest| json!({
                "packet": longest.digest.map(|digest| digest.to_string()),
                "enqueued_ns": longest.enqueued.0.to_string(), "wait_ns": longest.wait.0,
            })),
            "at_ns": queue.at.0.to_string(), "backlog_bytes": queue.backlog.bytes.0, "backlog_packets": queue.backlog.packets,
            "part_ns": queue.part.map(|(from, to)| [from.0.to_string(), to.0.to_string()]),
        });
        if let (Some(all), Value::Object(culprits)) = (json.as_object_mut(), culprits_json(&queue.culprits)) {
            all.extend(culprits);
        }
        json
    });
    json!({
        "question": waits.question, "queues": queues.collect::<Vec<_>>(), "blamed": waits.blamed, "untimed": waits.untimed,
        "missing": waits.missing, "notes": waits.notes,
    })
}
