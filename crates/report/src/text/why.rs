//! The answer of `queuescope why` as text: the victim, the queue at its arrival, then each kind of culprits.

use super::{BOLD, DIM, HOT, NO_MATCH, field, headed, more_groups, more_of, named, notes, plain};
use crate::format::{bytes, count, duration, moment, percent};
use crate::model::{Group, OnLink, Part, Parts, Ranked, Why};
use std::io::{self, Write};

/// Flows of the first granularity and of each further one in the text; JSON has more.
const MOST_FLOWS: usize = 5;
const MOST_COARSER: usize = 3;

/// Writes the answer as text.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(why: &Why, out: &mut impl Write) -> io::Result<()> {
    let input = &why.input;
    writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", input.name, input.format)?;
    field(out, "asked", &plain(&why.question))?;
    if let Some(show) = &why.show_filter {
        field(out, "show", &format!("{}: other flows are not shown, but counted", plain(show)))?;
    }
    victims(why, out)?;
    queue(why, out)?;
    let (direct, original) = match (&why.victim, why.packets) {
        (Some(victim), _) if victim.delay_ns.is_none() => ("were in the queue as it came", "as it came"),
        (_, 0) => ("were in the queue", "then"),
        (_, 1) => ("left while it waited", "as it came"),
        _ => ("left while they waited", "then"),
    };
    kind("Direct culprits", direct, &why.direct, out)?;
    kind("Indirect culprits", "left before that, since the queue was last empty", &why.indirect, out)?;
    let original = format!("raised the queue to its levels {original}");
    kind("Original culprits", &original, &why.original, out)?;
    if !why.skipped.is_empty() || input.damage.is_some() {
        writeln!(out)?;
    }
    notes(&why.skipped, input.damage.as_deref(), out)
}

fn victims(why: &Why, out: &mut impl Write) -> io::Result<()> {
    let Some(victim) = &why.victim else {
        return if why.packets == 0 && why.depth_packets == 0 {
            field(out, "victim", "none: no packet waited then")
        } else {
            Ok(())
        };
    };
    if why.packets > 1 {
        let (packets, waited) = (super::packets(why.packets), duration(why.total_delay_ns));
        field(out, "victims", &format!("{packets}, {}, that waited {waited} together", bytes(why.bytes)))?;
    }
    if why.drops > 0 && victim.delay_ns.is_some() {
        let was = if why.drops == 1 { " was" } else { "s were" };
        field(out, "drops", &format!("{HOT}{}{HOT:#} packet{was} dropped; --packet explains one", count(why.drops)))?;
    }
    let fate = match victim.delay_ns {
        Some(waited) => format!("waited {HOT}{}{HOT:#}", duration(waited)),
        None => format!("was {HOT}dropped{HOT:#}"),
    };
    let which = if why.packets > 1 { "longest" } else { "victim" };
    let (number, size) = (count(victim.packet), bytes(victim.bytes));
    field(out, which, &format!("packet {number}, {size}: came at {}, {fate}", moment(victim.arrived_ns)))?;
    field(out, "", &plain(&victim.flow))
}

fn queue(why: &Why, out: &mut impl Write) -> io::Result<()> {
    if why.depth_packets == 0 {
        field(out, "queue", &format!("empty at {}", moment(why.at_ns)))?;
    } else {
        let standing =
            format!("{} in {} at {}", bytes(why.depth_bytes), super::packets(why.depth_packets), moment(why.at_ns));
        let since = duration(why.at_ns.saturating_sub(why.since_ns));
        field(out, "queue", &format!("{standing}; not empty for {since}, since {}", moment(why.since_ns)))?;
    }
    if let Some(OnLink { flow, bytes: size, remaining_ns }) = &why.on_link {
        field(
            out,
            "link",
            &format!("{} left to send of {} of {}", duration(*remaining_ns), bytes(*size), plain(flow)),
        )?;
    }
    Ok(())
}

fn kind(name: &str, meaning: &str, ranked: &Ranked, out: &mut impl Write) -> io::Result<()> {
    if ranked.bytes == 0 {
        return writeln!(out, "\n{BOLD}{name}:{BOLD:#} none {DIM}({meaning}){DIM:#}");
    }
    let packets = ranked.packets.map_or(String::new(), |packets| format!(" in {}", super::packets(packets)));
    let size = bytes(ranked.bytes);
    writeln!(out, "\n{BOLD}{name}:{BOLD:#} {size}{packets} {DIM}({meaning}){DIM:#}\n")?;
    writeln!(out, "{DIM}{:>16}  {:>9}  {:>9}  {:>9}{DIM:#}", "", "share", "bytes", "packets")?;
    for (position, parts) in ranked.by.iter().enumerate() {
        let most = if position == 0 { MOST_FLOWS } else { MOST_COARSER };
        flows(parts, most, out)?;
        if position == 0 {
            let listed: Vec<_> = parts.flows.iter().take(most).map(|part| part.flow.as_str()).collect();
            groups(&ranked.groups, &listed, out)?;
        }
    }
    let mut heading = "class";
    for class in &ranked.classes {
        let (share, size, packets) = (percent(class.share), bytes(class.bytes), count(class.packets));
        writeln!(out, "{DIM}{heading:>16}{DIM:#}  {share:>9}  {size:>9}  {packets:>9}  class {}", class.class)?;
        heading = "";
    }
    Ok(())
}

fn flows(parts: &Parts, most: usize, out: &mut impl Write) -> io::Result<()> {
    let mut heading = parts.granularity.as_str();
    let shown = &parts.flows[..most.min(parts.flows.len())];
    for Part { flow, bytes: size, packets, share } in shown {
        let (share, size, packets) = (percent(*share), bytes(*size), packets.map_or(String::new(), count));
        writeln!(out, "{DIM}{heading:>16}{DIM:#}  {share:>9}  {size:>9}  {packets:>9}  {}", plain(flow))?;
        heading = "";
    }
    if shown.is_empty() && parts.flows_total > 0 {
        writeln!(out, "{DIM}{heading:>16}  {:>9}  {:>9}  {:>9}  {NO_MATCH}{DIM:#}", "", "", "")?;
    }
    let others = parts.flows_total.saturating_sub(shown.len() as u64);
    if others > 0 {
        let rest = 1.0 - shown.iter().map(|part| part.share).sum::<f64>();
        let plural = super::others(others, parts.not_shown.as_ref());
        writeln!(
            out,
            "{:>16}  {DIM}{:>9}  {:>9}  {:>9}  {} {plural}{DIM:#}",
            "",
            percent(rest.max(0.0)),
            "",
            "",
            count(others)
        )?;
    }
    Ok(())
}

fn groups(groups: &[Group], listed: &[&str], out: &mut impl Write) -> io::Result<()> {
    for (heading, group) in headed(groups, listed) {
        let (share, size, packets) = (percent(group.share), bytes(group.bytes), count(group.packets));
        writeln!(
            out,
            "{DIM}{heading:>16}{DIM:#}  {share:>9}  {size:>9}  {packets:>9}  {BOLD}{}{BOLD:#}{}",
            named(group),
            more_of(group)
        )?;
    }
    more_groups(groups, out)
}
