//! The report as text for a terminal: the result first, then the bursts with their culprits, then notes.
//!
//! Flow names are last on their lines, so that a narrow terminal cuts no number. Styles are ANSI sequences; the
//! caller's stream removes them if the output is not a terminal.

mod aqm;
mod compare;
mod sim;
mod sweep;
mod tap;
mod why;

use crate::format::{bound, bytes, count, duration, percent, plain, rate};
use crate::model::{AS_IT_WAS, Burst, Culprit, Culprits, Group, NO_METER, NotShown, Report, Skipped};
use anstyle::{AnsiColor, Style};
use std::collections::BTreeMap;
use std::io::{self, Write};

pub use aqm::write as write_aqm_comparison;
pub use compare::write as write_comparison;
pub use sim::{LIMITED, limited};
pub use sweep::write as write_sweep;
pub use why::write as write_why;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const HOT: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// The most bursts in the text: those with the longest delays. JSON and HTML show all that were kept.
pub const MOST_BURSTS: usize = 10;
/// The most culprits in the text.
const MOST_CULPRITS: usize = 3;
const MOST_OVERALL: usize = 5;
/// Flows with this share of the bytes or packets are always listed.
const HEAVY: f64 = 0.1;
/// Shown in place of flows if --show or --ramped excludes all.
const NO_MATCH: &str = "no flow matches";
/// The most groups in the text that overlap others. It shows all that do not.
const MOST_OVERLAPPING: usize = 4;

/// Writes the report as text, always with ANSI styles. To write it to a file or a log, remove them: the crate `anstream` has
/// `StripStream`, which removes all styles, and `AutoStream`, which removes them unless its output is a terminal.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let input = &report.input;
    if input.name == input.format {
        writeln!(out, "{BOLD}{}{BOLD:#}", input.name)?;
    } else {
        writeln!(out, "{BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}", input.name, input.format)?;
    }
    let Some(sim) = &report.sim else { return findings(report, false, out) };
    sim::write(sim, &input.name, out)?;
    if sim.meter == NO_METER {
        return notes(&report.skipped, None, out);
    }
    let first = [(&sim.meter, report)].into_iter();
    for (link, report) in first.chain(report.others.iter().map(|other| (&other.link, &other.report))) {
        let from = duration(report.input.first_ns);
        let from = format!("{DIM}times count from its first packet, {from} into the run{DIM:#}");
        writeln!(out, "\n{BOLD}The queue of {}{BOLD:#}  {from}", plain(link))?;
        findings(report, true, out)?;
    }
    Ok(())
}

/// Writes the results for a queue.
fn findings(report: &Report, simulated: bool, out: &mut impl Write) -> io::Result<()> {
    head(report, simulated, out)?;
    bursts(report, out)?;
    overall(report, out)?;
    foot(report, out)
}

fn head(report: &Report, simulated: bool, out: &mut impl Write) -> io::Result<()> {
    let (setup, totals) = (&report.setup, &report.totals);
    let flows: Vec<_> = totals
        .flows
        .iter()
        .map(|flows| {
            let bound = flows.bound();
            format!("{bound}{} {}", count(flows.flows), plural_granularity(&flows.granularity, flows.flows))
        })
        .collect();
    field(
        out,
        "input",
        &format!(
            "{} packets, {} in {}; {}",
            count(totals.packets),
            bytes(totals.bytes),
            duration(totals.duration_ns),
            flows.join(", ")
        ),
    )?;
    match (setup.rate_bps, totals.utilisation) {
        _ if simulated => {}
        _ if report.tap.is_some() => {
            let at = setup.rate_bps.map_or(String::new(), |rate_bps| format!(" at {}", rate(rate_bps as f64)));
            let busy = totals.utilisation.map_or(String::new(), |busy| format!(", link {} busy", percent(busy)));
            field(out, "queue", &format!("that of a router, seen from outside{at}{busy}"))?;
        }
        (Some(rate_bps), Some(utilisation)) if setup.limit == AS_IT_WAS => {
            let (rate, busy) = (rate(rate_bps as f64), percent(utilisation));
            field(out, "queue", &format!("departures from elsewhere at {rate}, link {busy} busy"))?;
        }
        (Some(rate_bps), Some(utilisation)) => {
            let limit =
                if setup.limit == "none" { "without a limit".to_owned() } else { format!("of {}", setup.limit) };
            let speedup =
                if setup.speedup == "1" { String::new() } else { format!(", sent {}x faster", setup.speedup) };
            field(
                out,
                "queue",
                &format!(
                    "{} {limit} at {}; {}{speedup}, link {} busy",
                    setup.aqm.as_deref().map_or("FIFO".into(), plain),
                    rate(rate_bps as f64),
                    totals.offered_bps.map_or("all at once".to_owned(), |offered| format!("{} offered", rate(offered))),
                    percent(utilisation)
                ),
            )?;
        }
        _ if report.input.format == "interface" => field(out, "queue", "that of the interface")?,
        _ => field(out, "queue", "departures from elsewhere")?,
    }
    if let Some(tap) = &report.tap {
        tap::write(tap, out)?;
    }
    filters(report, out)?;
    let percentiles: Vec<_> = totals
        .delay_percentiles
        .iter()
        .map(
            |(p, delay)| {
                if *p >= 100.0 { format!("max {}", duration(*delay)) } else { format!("p{p} {}", duration(*delay)) }
            },
        )
        .collect();
    // Without packets there is no delay.
    if totals.victims.is_none_or(|victims| victims.packets > 0) {
        field(out, "delay", &percentiles.join("   "))?;
    }
    field(
        out,
        "depth",
        &format!(
            "up to {}, up to {} packet{}; {} of {} waited{}",
            bytes(totals.peak_depth_bytes),
            count(totals.peak_depth_packets),
            plural(totals.peak_depth_packets),
            percent(totals.waited_share),
            if totals.victims.is_some() { "victims" } else { "packets" },
            totals.flows_in_queue_mean.map_or(String::new(), |flows| format!(
                "; packets of bursts met {flows:.1} flows by {} in the queue on average",
                setup.granularities.first().map_or("flow", String::as_str)
            ))
        ),
    )?;
    let dropped: u64 = totals.drops.values().sum();
    if dropped > 0 {
        let of = if totals.drops_unfiltered {
            "of all packets of the queue, including those that --input excludes".to_owned()
        } else {
            format!("{} of packets", percent(dropped as f64 / (dropped + totals.departed_packets) as f64))
        };
        field(out, "drops", &format!("{HOT}{}{HOT:#} ({of})", reasons(&totals.drops)))?;
    }
    let marked: u64 = totals.marks.values().sum();
    if marked > 0 {
        let share = percent(marked as f64 / totals.departed_packets.max(1) as f64);
        field(out, "marks", &format!("{} ({share} of packets)", reasons(&totals.marks)))?;
    }
    Ok(())
}

/// Writes which packets are examined, and which flows are listed, if not all.
fn filters(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if let (Some(victims), Some(findings)) = (&report.setup.victims_filter, &report.totals.victims) {
        let dropped = match findings.dropped {
            None if !report.totals.drops.is_empty() => ", and how many of them were dropped is unknown".to_owned(),
            None | Some(0) => String::new(),
            Some(dropped) => format!(", {} more dropped", count(dropped)),
        };
        let theirs = match (findings.packets, findings.dropped) {
            (0, Some(dropped @ 1..)) => format!("{} matched, all dropped", packets(dropped)),
            (0, None) if !report.totals.drops.is_empty() => "no packet that left the queue matched".to_owned(),
            (0, _) => "no packet matched".to_owned(),
            (some, _) => format!(
                "{}, {}{dropped}; delays and bursts are of victims; shares are of the whole queue",
                packets(some),
                bytes(findings.bytes)
            ),
        };
        field(out, "victims", &format!("{}: {theirs}", plain(victims)))?;
    }
    match &report.setup.show_filter {
        Some(show) => field(out, "show", &format!("{}: other flows are not shown, but counted", plain(show))),
        None => Ok(()),
    }
}

fn bursts(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let tau = duration(report.setup.tau_ns);
    if report.bursts.is_empty() {
        let whose = if report.totals.victims.is_some() { "victim" } else { "packet" };
        writeln!(out, "\n{BOLD}No bursts:{BOLD:#} no {whose} waited {tau} ({}).", report.setup.tau_source)?;
        let dropped: u64 = report.totals.drops.values().sum();
        return if dropped == 0 {
            Ok(())
        } else {
            writeln!(out, "Packets were dropped, though: a lower --tau shows when, and who filled the queue.")
        };
    }
    let all = report.bursts.len() as u64 + report.bursts_omitted;
    let shown = longest(&report.bursts, MOST_BURSTS);
    let which = if (shown.len() as u64) < all {
        match shown.len() {
            1 => "; the one with the longest delay".to_owned(),
            shown => format!("; the {shown} with the longest delays"),
        }
    } else {
        String::new()
    };
    writeln!(
        out,
        "\n{BOLD}{} burst{}{BOLD:#} with delays of {tau} or more ({}){which}:\n",
        count(all),
        plural(all),
        report.setup.tau_source
    )?;
    headings(out)?;
    let ramps = shown.iter().any(|burst| has_ramps(burst));
    match &*report.bursts {
        [only] => burst(&with_behaviours(only, &report.culprits), ramps, out),
        _ => shown.iter().try_for_each(|shown| burst(shown, ramps, out)),
    }
}

/// The only burst, whose culprits are those over all bursts: only these have behaviours.
fn with_behaviours(only: &Burst, overall: &[Culprits]) -> Burst {
    let mut burst = only.clone();
    for (culprits, overall) in burst.culprits.iter_mut().zip(overall) {
        for culprit in &mut culprits.flows {
            let same = overall.flows.iter().find(|same| same.flow == culprit.flow);
            culprit.behaviour = same.and_then(|same| same.behaviour.clone());
        }
    }
    burst
}

/// Writes a burst of the report with its culprits, when it has ended. Before the first burst, writes the column
/// headings.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_burst(ended: &Burst, out: &mut impl Write) -> io::Result<()> {
    if ended.number == 1 {
        headings(out)?;
    }
    burst(ended, has_ramps(ended), out)
}

fn headings(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{DIM}{:>7}  {:>9}  {:>9}  {:>10}  {:>9}  {:>9}  {:>9}{DIM:#}",
        "burst", "start", "length", "peak delay", "depth", "hit", "drops"
    )
}

fn has_ramps(burst: &Burst) -> bool {
    let mut culprits = burst.culprits.iter().flat_map(|culprits| &culprits.flows);
    culprits.any(|culprit| culprit.new || culprit.ramp.is_some())
}

fn burst(burst: &Burst, ramps: bool, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{BOLD}{:>7}{BOLD:#}  {:>9}  {:>9}  {HOT}{:>10}{HOT:#}  {:>9}  {:>9}  {:>9}",
        burst.number,
        duration(burst.start_ns),
        duration(burst.length_ns),
        duration(burst.peak_delay_ns),
        bytes(burst.peak_depth_bytes),
        count(burst.packets_over_tau),
        count(burst.drops)
    )?;
    let mut first = true;
    let gap = if ramps { 12 } else { 0 };
    for culprits in &burst.culprits {
        let mut granularity = culprits.granularity.as_str();
        let shown = shown_of(culprits, MOST_CULPRITS, burst.packets);
        for culprit in &shown {
            let trend = if ramps { format!("{:>10}  ", trend(culprit)) } else { String::new() };
            let group = burst.groups.iter().find(|group| first && group.description == culprit.flow);
            writeln!(
                out,
                "{DIM}{granularity:>16}{DIM:#}  {:>9}  {NOTE}{trend}{NOTE:#}{}{}",
                percent(culprit.share),
                whose(culprit),
                group.map(more_of).unwrap_or_default()
            )?;
            granularity = "";
        }
        if shown.is_empty() && culprits.flows_total > 0 {
            writeln!(out, "{DIM}{granularity:>16}  {:>9}  {:gap$}{NO_MATCH}{DIM:#}", "", "")?;
        }
        more(culprits, &shown, &" ".repeat(18), gap, out)?;
        if culprits.share_error > 0.0 {
            let error = bound(culprits.share_error);
            writeln!(
                out,
                "{:>16}  {DIM}{:>9}  not all flows were tracked: shares of flows are ±{error}{DIM:#}",
                "", ""
            )?;
        }
        if first {
            let shown: Vec<_> = shown.iter().map(|culprit| culprit.flow.as_str()).collect();
            groups(&burst.groups, &shown, gap, out)?;
        }
        first = false;
    }
    Ok(())
}

fn overall(report: &Report, out: &mut impl Write) -> io::Result<()> {
    if report.bursts.len() < 2 {
        return Ok(());
    }
    for culprits in &report.culprits {
        let which = match report.bursts_omitted {
            0 => "all bursts".to_owned(),
            _ => format!("the {} bursts with the longest delays", count(report.bursts.len() as u64)),
        };
        let error = match culprits.share_error {
            0.0 => String::new(),
            error => format!(" (from the heaviest flows of each: a share may be larger by up to {})", bound(error)),
        };
        writeln!(out, "\n{BOLD}Who filled the queue over {which}{BOLD:#}, by {}{error}:\n", culprits.granularity)?;
        writeln!(out, "{DIM}{:>9}  {:>9}  {:>9}  {:>12}  flow{DIM:#}", "share", "bytes", "packets", "held at most")?;
        let packets = report.bursts.iter().map(|burst| burst.packets).sum();
        let shown = shown_of(culprits, MOST_OVERALL, packets);
        for culprit in &shown {
            writeln!(
                out,
                "{:>9}  {:>9}  {:>9}  {:>12}  {}",
                percent(culprit.share),
                bytes(culprit.bytes),
                count(culprit.packets),
                bytes(culprit.peak_bytes),
                whose(culprit)
            )?;
        }
        if culprits.flows.is_empty() && culprits.flows_total > 0 {
            writeln!(out, "{:>46}  {DIM}{NO_MATCH}{DIM:#}", "")?;
        }
        more(culprits, &shown, "", 37, out)?;
    }
    Ok(())
}

fn foot(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let sketch = &report.setup.sketch;
    writeln!(out)?;
    for score in report.sketch.iter().filter(|score| score.queries > 0) {
        let share = |value: Option<f64>| value.map_or("none".to_owned(), percent);
        field(
            out,
            "sketch",
            &format!(
                "{} by {}: precision {}, recall {} at {} of the queue; mean error {}",
                score.estimator,
                score.granularity,
                share(score.precision),
                share(score.recall),
                percent(report.setup.alpha),
                bytes(score.mean_error_bytes.unwrap_or(0.0).round() as u64)
            ),
        )?;
    }
    let heading = if report.sketch.iter().any(|score| score.queries > 0) { "" } else { "sketch" };
    field(
        out,
        heading,
        &format!(
            "{DIM}{} snapshots of {} ({}), {} rows x {} columns, {}, {}{DIM:#}",
            sketch.snapshots,
            duration(sketch.window_ns),
            sketch.window_source,
            sketch.rows,
            sketch.columns,
            sketch.expiry,
            bytes(sketch.bytes)
        ),
    )?;
    notes(&report.skipped, report.input.damage.as_deref(), out)
}

fn notes(skipped: &[Skipped], damage: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    for Skipped { reason, count: times, meaning } in skipped {
        field(out, "note", &format!("{NOTE}{} {reason}{NOTE:#}: {meaning}", count(*times)))?;
    }
    if let Some(damage) = damage {
        field(out, "damage", &format!("{HOT}{damage}{HOT:#}"))?;
    }
    Ok(())
}

fn field(out: &mut impl Write, name: &str, value: &str) -> io::Result<()> {
    writeln!(out, "{DIM}{name:>8}{DIM:#}  {value}")
}

/// The bursts with the longest delays, in order of time.
fn longest(bursts: &[Burst], most: usize) -> Vec<&Burst> {
    let mut shown: Vec<_> = bursts.iter().collect();
    shown.sort_by_key(|burst| std::cmp::Reverse(burst.peak_delay_ns));
    shown.truncate(most);
    shown.sort_by_key(|burst| burst.number);
    shown
}

/// The flows to list: `most` of them, and all that are heavy among these `packets`. A line that says that there is one more
/// flow can as well name it.
fn shown_of(culprits: &Culprits, most: usize, packets: u64) -> Vec<&Culprit> {
    let is_heavy = |flow: &Culprit| flow.share >= HEAVY || flow.packets as f64 >= HEAVY * packets as f64;
    let is_one_more = culprits.flows.len() == most + 1 && culprits.flows_total == most as u64 + 1;
    let flows = culprits.flows.iter().enumerate();
    flows.filter(|(place, flow)| *place < most || is_one_more || is_heavy(flow)).map(|(_, flow)| flow).collect()
}

fn more(culprits: &Culprits, shown: &[&Culprit], indent: &str, gap: usize, out: &mut impl Write) -> io::Result<()> {
    let more_culprits = culprits.culprits_total.saturating_sub(shown.len() as u64);
    let rest = culprits.flows_total.saturating_sub(shown.len() as u64);
    let share = 1.0 - shown.iter().map(|culprit| culprit.share).sum::<f64>();
    if rest == 0 {
        return Ok(());
    }
    let other = others(rest, culprits.not_shown.as_ref());
    // The heaviest of them are in JSON and HTML.
    let more_culprits = match more_culprits {
        0 => String::new(),
        1 if rest == 1 => ", also a culprit: see JSON or HTML".to_owned(),
        all if all == rest => ", all of them also culprits: see JSON or HTML".to_owned(),
        1 => ", 1 of them also a culprit: see JSON or HTML".to_owned(),
        some => format!(", {} of them also culprits: see JSON or HTML", count(some)),
    };
    let share = percent(share.max(0.0));
    writeln!(out, "{indent}{DIM}{share:>9}  {:gap$}{} {other}{more_culprits}{DIM:#}", "", count(rest))
}

/// The label of `rest` flows that the text does not list: an expression excludes them, or there is no room for all.
fn others(rest: u64, not_shown: Option<&NotShown>) -> String {
    match (rest, not_shown) {
        (rest, Some(not_shown)) if not_shown.flows >= rest => "not shown".to_owned(),
        (_, Some(not_shown)) => format!("others, {} of them not shown", count(not_shown.flows)),
        (1, None) => "other".to_owned(),
        (_, None) => "others".to_owned(),
    }
}

/// Writes what flows have in common, below the flows that are `listed`.
fn groups(groups: &[Group], listed: &[&str], gap: usize, out: &mut impl Write) -> io::Result<()> {
    for (heading, group) in headed(groups, listed) {
        let share = percent(group.share);
        writeln!(
            out,
            "{DIM}{heading:>16}{DIM:#}  {share:>9}  {:gap$}{BOLD}{}{BOLD:#}{}",
            "",
            named(group),
            more_of(group)
        )?;
    }
    more_groups(groups, out)
}

/// The groups to show, and the label before each. A single flow that is listed is not repeated.
fn headed<'a>(groups: &'a [Group], listed: &[&str]) -> impl Iterator<Item = (&'static str, &'a Group)> {
    let overlapping = groups.iter().filter(|group| group.overlaps).take(MOST_OVERLAPPING).enumerate();
    let overlapping = overlapping.map(|(place, group)| (if place == 0 { "overlapping" } else { "" }, group));
    let rows =
        groups.iter().filter(|group| !group.overlaps && !listed.contains(&group.description.as_str())).enumerate();
    rows.map(|(place, group)| (if place == 0 { "in common" } else { "" }, group)).chain(overlapping)
}

/// Writes the number of groups that are not shown.
fn more_groups(groups: &[Group], out: &mut impl Write) -> io::Result<()> {
    match groups.iter().filter(|group| group.overlaps).count().saturating_sub(MOST_OVERLAPPING) {
        0 => Ok(()),
        more => {
            writeln!(out, "{:>16}  {DIM}{:>9}  and {more} more that overlap these: see JSON or HTML{DIM:#}", "", "")
        }
    }
}

/// What flows have in common, with the kind of attack or overload, if any.
fn named(group: &Group) -> String {
    group.explosion.as_ref().map_or(String::new(), |explosion| format!("{explosion}: ")) + &group.description
}

/// The share of packets, if it adds information to that of bytes, and the errors of the shares.
fn more_of(group: &Group) -> String {
    let good_to = |error: f64| if error > 0.0 { format!(" ±{}", bound(error)) } else { String::new() };
    let bytes = if group.share_error > 0.0 { format!("; share{}", good_to(group.share_error)) } else { String::new() };
    if group.packets_share < 0.1 || group.packets_share < 1.5 * group.share {
        return bytes;
    }
    format!("{bytes}; {}{} of the packets", percent(group.packets_share), good_to(group.packets_share_error))
}

/// The flow, the process that sends it, and how it behaves, if known.
fn whose(culprit: &Culprit) -> String {
    let mut line = plain(&culprit.flow);
    if let Some(owner) = &culprit.owner {
        line += &format!("  {owner}");
    }
    if let Some(behaviour) = culprit.behaviour.as_ref().filter(|behaviour| behaviour.is_named()) {
        line += &format!("  {}", plain(&behaviour.name));
    }
    line
}

/// `new`, `ramped 4x`, `ramped 2.5x`, or nothing.
fn trend(culprit: &Culprit) -> String {
    match culprit.ramp {
        _ if culprit.new => "new".to_owned(),
        Some(factor) if factor < 9.95 => {
            let text = format!("{factor:.1}");
            format!("ramped {}x", text.strip_suffix(".0").unwrap_or(&text))
        }
        Some(factor) => format!("ramped {factor:.0}x"),
        None => String::new(),
    }
}

/// Packets dropped or marked, by reason.
fn reasons(packets: &BTreeMap<String, u64>) -> String {
    packets.iter().map(|(reason, n)| format!("{} {}", count(*n), plain(reason))).collect::<Vec<_>>().join(", ")
}

fn plural_granularity(granularity: &str, flows: u64) -> String {
    format!("flow{} by {granularity}", plural(flows))
}

fn packets(n: u64) -> String {
    format!("{} packet{}", count(n), plural(n))
}

fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}
