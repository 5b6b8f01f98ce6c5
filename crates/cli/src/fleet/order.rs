//! What `fleet cut --order` prints: packets of a cut that violate the order of hosts.

use queuescope_fleet::violations::Violations;
use queuescope_report::format::count;
use queuescope_wire::Nanos;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Packets that were recorded so long before or after a cut are looked at.
pub const AROUND: Nanos = Nanos(100_000_000);

/// Time until hosts have recorded these.
pub const SETTLE: Nanos = Nanos(200_000_000);

/// Writes the counts for people.
///
/// # Errors
/// Returns the first write error.
pub fn write(found: &Violations, out: &mut dyn Write) -> io::Result<()> {
    let violated: u64 = found.violated.values().sum();
    writeln!(
        out,
        "order: {} of {} packets that several hosts recorded within {AROUND} of the cut violate it",
        count(violated),
        count(found.packets)
    )?;
    for ((has, lacks), packets) in &found.violated {
        let packets = count(*packets);
        writeln!(
            out,
            "  {has} has {packets} in the cut that passed {lacks} before, where they were recorded behind the cut"
        )?;
    }
    if found.undecided > 0 {
        let undecided = count(found.undecided);
        writeln!(
            out,
            "  {undecided} are on one side of the cut at one host and on the other at another, and which saw them first is not known"
        )?;
    }
    if found.alike > 0 {
        writeln!(out, "  {} were left out: a host has several that look alike", count(found.alike))?;
    }
    found.missing.iter().try_for_each(|host| writeln!(out, "  without {host}"))
}

/// The counts for programs.
pub fn json(found: &Violations) -> Value {
    let violated = found.violated.iter();
    let violated = violated.map(|((has, lacks), packets)| json!({ "has": has, "lacks": lacks, "packets": packets }));
    json!({
        "packets": found.packets, "violated": violated.collect::<Vec<_>>(), "undecided": found.undecided, "alike": found.alike,
        "missing": found.missing,
    })
}
