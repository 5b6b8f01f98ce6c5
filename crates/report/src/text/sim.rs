//! The results of a simulation, as text.

use super::{BOLD, DIM, NOTE, field, plain, reasons};
use crate::format::{count, duration, percent, rate};
use crate::model::{MachineLimit, RealTime, Sim, SimGroup, SimLink, SimTimes};
use std::io::{self, Write};

/// The column at which explanations of a row begin: left of the names, so that they fit a narrow terminal.
const INDENT: usize = 11;

/// Writes the scenario, then each link, then each group of flows. A scenario without a name is called by its `file`.
pub fn write(sim: &Sim, file: &str, out: &mut impl Write) -> io::Result<()> {
    if sim.name != file {
        field(out, "scenario", &plain(&sim.name))?;
    }
    if let Some(about) = &sim.about {
        field(out, "about", &plain(about))?;
    }
    let warmup = match sim.warmup_ns {
        0 => String::new(),
        warmup => format!(", the first {} of it warm-up", duration(warmup)),
    };
    field(
        out,
        "run",
        &format!("{}{warmup}; seed {}, {} packet hops", duration(sim.duration_ns), sim.seed, count(sim.hops)),
    )?;
    if let Some(real) = &sim.real_time {
        timing(real, out)?;
    }
    if !sim.links.is_empty() {
        writeln!(out)?;
        links(&sim.links, out)?;
    }
    if !sim.groups.is_empty() {
        writeln!(out)?;
        groups(&sim.groups, out)?;
    }
    Ok(())
}

/// Writes the timing accuracy of the link, and whether the machine limited it.
pub(super) fn timing(real: &RealTime, out: &mut impl Write) -> io::Result<()> {
    let [p50, p99, worst] = [real.error_p50_ns, real.error_p99_ns, real.error_worst_ns].map(duration);
    let [sleep, slept] = [real.sleep_p50_ns, real.sleep_p99_ns].map(duration);
    field(
        out,
        "timing",
        &format!(
            "packets late by {p50} (median), {p99} (99 %), {worst} (worst); sleeps here by {sleep}, {slept} (99 %)"
        ),
    )?;
    if let Some(why) = limited(real) {
        field(out, "warning", &format!("{NOTE}{LIMITED}:{NOTE:#} {why}"))?;
    }
    Ok(())
}

/// The message if the machine was slower than the link.
pub const LIMITED: &str = "this machine was the bottleneck at times, not the link";

/// The evidence that the machine and not the link was the bottleneck at times, if it was.
pub fn limited(real: &RealTime) -> Option<String> {
    if !real.is_limited_by_machine {
        return None;
    }
    let [packets, late, unread] = [real.packets, real.late_packets, real.unread_packets].map(count);
    let carried = real.machine_limit.as_ref().map(machine_limit).unwrap_or_default();
    Some(format!("{carried}{late} packets of {packets} more than 1 ms late, {unread} lost before the link"))
}

/// The load offered to a link, the load carried, and the state of the machine meanwhile.
fn machine_limit(held: &MachineLimit) -> String {
    let idle = held.idle_share.map_or(String::new(), |idle| format!(", processors were idle for {}", percent(idle)));
    format!(
        "{} was offered {} and carried {} in {} of {}, in which no link was full and this machine had no time left (moving \
         packets kept one thread busy for {} of it{idle}); ",
        plain(&held.link),
        rate(held.offered_bps),
        rate(held.carried_bps),
        duration(held.limited_ns),
        duration(held.active_ns),
        percent(held.busy_share)
    )
}

fn links(links: &[SimLink], out: &mut impl Write) -> io::Result<()> {
    // Few links lose packets: otherwise, omit the column.
    let is_lossy = links.iter().any(|link| link.lost_packets > 0);
    let lost = |text: String| if is_lossy { format!("  {text:>8}") } else { String::new() };
    writeln!(
        out,
        "  {BOLD}{:>10}  {:>7}  {:>9} {:>9} {:>9}  {:>8}{}  {:>8}  link{BOLD:#}",
        "rate",
        "busy",
        "delay",
        "95 %",
        "99 %",
        "dropped",
        lost("lost".to_owned()),
        "marked"
    )?;
    for link in links {
        writeln!(
            out,
            "  {:>10}  {:>7}  {}  {:>8}{}  {:>8}  {} {DIM}{}{DIM:#}",
            rate(link.rate_bps as f64),
            percent(link.utilisation),
            times(&link.sojourn),
            share(link.drop_rate),
            lost(share(link.loss_rate)),
            share(link.mark_rate),
            plain(&link.name),
            plain(&link.discipline)
        )?;
        for group in &link.groups {
            writeln!(
                out,
                "  {:>10}  {:>7}  {}  {:>8}{}  {:>8}    {DIM}{}{DIM:#}",
                "",
                "",
                times(&group.sojourn),
                share(group.drop_rate),
                lost(share(group.loss_rate)),
                share(group.mark_rate),
                plain(&group.name)
            )?;
        }
        for (what, packets) in [("dropped", &link.drops), ("marked", &link.marks)] {
            if !packets.is_empty() {
                writeln!(out, "{:INDENT$}{DIM}{what}: {}{DIM:#}", "", reasons(packets))?;
            }
        }
        if link.lost_packets > 0 {
            let lost = count(link.lost_packets);
            writeln!(out, "{:INDENT$}{DIM}lost: {lost} on the link, after the queue{DIM:#}", "")?;
        }
        if link.wasted_ns > 0 {
            let wasted = duration(link.wasted_ns);
            writeln!(out, "{:INDENT$}{DIM}{wasted} of link time lost to drops behind the queue{DIM:#}", "")?;
        }
    }
    Ok(())
}

fn groups(groups: &[SimGroup], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "  {BOLD}{:>7}  {:>10}  {:>10} {:>10}  {:>6}  {:>9}  {:>7}  group{BOLD:#}",
        "flows", "goodput", "least", "most", "Jain", "last rtt", "resent"
    )?;
    for group in groups {
        // The least, the most and the fairness need at least one flow.
        let each = |text: String| if group.flows > 0 { text } else { "-".to_owned() };
        writeln!(
            out,
            "  {:>7}  {:>10}  {:>10} {:>10}  {:>6}  {:>9}  {:>7}  {} {DIM}{}{DIM:#}",
            count(group.flows),
            rate(group.goodput_bps),
            each(rate(group.least_lifetime_goodput_bps)),
            each(rate(group.most_lifetime_goodput_bps)),
            each(format!("{:.3}", group.jain)),
            group.rtt_ns.map_or_else(|| "-".to_owned(), |rtt| duration(rtt.round() as u64)),
            count(group.retransmissions),
            plain(&group.name),
            plain(&group.transport)
        )?;
        finished(group, out)?;
    }
    // More than a rounding error, which may occur in a group of one flow.
    let is_above =
        |group: &SimGroup| group.flows > 0 && group.most_lifetime_goodput_bps > group.goodput_bps * 1.000_001;
    if groups.iter().any(is_above) {
        let what = "goodput is over the run, least and most over the lifetime of a flow";
        writeln!(out, "{:INDENT$}{DIM}{what}{DIM:#}", "")?;
    }
    Ok(())
}

/// Writes how many of the flows with an end reached it, and their completion times.
fn finished(group: &SimGroup, out: &mut impl Write) -> io::Result<()> {
    if group.finished == 0 {
        return Ok(());
    }
    let took = group.completion.filter(|took| took.count > 0);
    let after = match took {
        Some(took) if took.count == group.finished => String::new(),
        Some(took) => format!(", {} after the warm-up", count(took.count)),
        None => ", none after the warm-up".to_owned(),
    };
    writeln!(out, "{:INDENT$}{DIM}{} of them finished{after}{DIM:#}", "", count(group.finished))?;
    let Some(took) = took else { return Ok(()) };
    writeln!(
        out,
        "{:INDENT$}{DIM}completion time: mean {}, median {}, 95 % {}, 99 % {}{DIM:#}",
        "",
        duration(took.mean_ns.round() as u64),
        duration(took.p50_ns),
        duration(took.p95_ns),
        duration(took.p99_ns)
    )
}

fn times(times: &SimTimes) -> String {
    if times.count == 0 {
        return format!("{:>9} {:>9} {:>9}", "-", "-", "-");
    }
    let mean = duration(times.mean_ns.round() as u64);
    format!("{mean:>9} {:>9} {:>9}", duration(times.p95_ns), duration(times.p99_ns))
}

/// A share, which is often small.
pub(super) fn share(share: f64) -> String {
    match share {
        0.0 => "-".to_owned(),
        share if share < 0.000_95 => format!("{:.3} %", share * 100.0),
        share if share < 0.0095 => format!("{:.2} %", share * 100.0),
        share => percent(share),
    }
}
