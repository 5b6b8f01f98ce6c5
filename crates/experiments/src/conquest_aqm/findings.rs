//! The outcome.

use super::bench::{NO_HYSTART, Scheme};
use super::measure::{
    BURST_MEAN, DELAY, IN_BURSTS, LARGE_MEAN, LARGE_P99, LOAD, MARKED, MARKED_BURST, MEDIAN, MEDIAN_IN_BURSTS, NOISY,
    P90, P99, P99_IN_BURSTS, P999, QUEUE_LONGEST, QUEUE_MEAN, QUEUE_P90, UNFINISHED,
};
use super::{BURST, CHANGED, CHOICES, CONDITIONS, FIGURE_10, FIGURE_11, SCHEME, TCP, of};
use crate::outcome::{Finding, Table};
use crate::results::{Point, Results, value_at};
use queuescope_p4::algorithms::{Snapshots, conquest, conquest_standing};
use queuescope_p4::{Fit, Grade, Program, Target};
use std::fmt::Write;

/// The change of the median with ConQuest, as the paper states it.
const PAPER: [(&str, &str); 5] =
    [("newreno", "-6.9 %"), ("cubic", "-7.3 %"), ("vegas", "-1.6 %"), ("dctcp", "-0.56 %"), ("bbr", "no change")];

/// The paper's statements beside ours.
pub fn findings(results: &Results) -> Vec<Finding> {
    [load(results), medians(results), tails(results), better(results), vec![on_a_switch(results)], queues(results)]
        .concat()
}

/// The run with the largest bursts.
fn largest<'a>(results: &'a Results, tcp: &'a str, scheme: Scheme) -> Option<&'a Point> {
    of(results, tcp, scheme).max_by(|one, other| one.number(BURST).total_cmp(&other.number(BURST)))
}

fn smallest<'a>(results: &'a Results, tcp: &'a str, scheme: Scheme) -> Option<&'a Point> {
    of(results, tcp, scheme).min_by(|one, other| one.number(BURST).total_cmp(&other.number(BURST)))
}

/// The size of bursts, in MB.
fn size(point: Option<&Point>) -> f64 {
    point.map_or(f64::NAN, |point| point.number(BURST))
}

/// By how many percent one value is larger than the other, run by run with the same seed.
fn change(one: Option<&Point>, other: Option<&Point>, value: &str) -> f64 {
    let (Some(one), Some(other)) = (one, other) else { return f64::NAN };
    let pairs = one.runs.iter().filter_map(|(seed, values)| {
        let (_, others) = other.runs.iter().find(|(it, _)| it == seed)?;
        Some(100.0 * (values.get(value)? / others.get(value)? - 1.0))
    });
    let (count, sum) = pairs.fold((0.0, 0.0), |(count, sum), change| (count + 1.0, sum + change));
    sum / count
}

fn percent(change: f64) -> String {
    // A value that rounds to zero has no sign.
    let rounded = (change * 100.0).round() / 100.0;
    if rounded == 0.0 { "0.00 %".to_owned() } else { format!("{rounded:+.2} %") }
}

fn load(results: &Results) -> Vec<Finding> {
    let point = largest(results, "newreno", Scheme::TAIL);
    let runs = point.map_or(&[][..], |point| &point.runs);
    let loads: Vec<_> = runs.iter().filter_map(|(_, values)| values.get(LOAD)).map(|it| format!("{it:.1}")).collect();
    let why = format!("the arrival rate is solved from the mean of the sizes; by seed {} %", loads.join(", "));
    vec![Finding::of_mean(FIGURE_10, "load of the workload (%)", 20.0, point, LOAD, why)]
}

/// The median with ConQuest compared with the baseline.
fn medians(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (tcp, paper) in PAPER {
        let (with, without) = (largest(results, tcp, Scheme::PAPER), largest(results, tcp, Scheme::TAIL));
        let Some(point) = with else { continue };
        let changed = |value| percent(change(with, without, value));
        let megabytes = point.number(BURST);
        findings.push(Finding::of_words(
            FIGURE_10,
            format!("{tcp}: the median of all flows with ConQuest against tail ECN, bursts of {megabytes} MB"),
            paper,
            changed(MEDIAN),
            format!(
                "of the {:.1} % that start before the link can have sent a burst, in whichever run, it changes by {}; with 1 ms of \
                 noise that of all by {}{}",
                value_at(without, IN_BURSTS),
                changed(MEDIAN_IN_BURSTS),
                changed(NOISY),
                cause(results, tcp)
            ),
        ));
    }
    for scheme in [Scheme::TAIL, Scheme::Red, Scheme::PAPER] {
        let (from, to) = (smallest(results, "newreno", scheme), largest(results, "newreno", scheme));
        if size(from) < size(to) {
            findings.push(Finding::of_words(
                FIGURE_10,
                format!("{}: the median of flows in bursts from {} to {} MB (us)", scheme.name(), size(from), size(to)),
                if scheme == Scheme::PAPER { "hardly grows" } else { "grows" },
                format!("{:.0} to {:.0}", value_at(from, MEDIAN_IN_BURSTS), value_at(to, MEDIAN_IN_BURSTS)),
                format!("of all flows {:.0} to {:.0}", value_at(from, MEDIAN), value_at(to, MEDIAN)),
            ));
        }
    }
    findings
}

/// A change that shows why a congestion control gains less or more than another.
fn cause(results: &Results, tcp: &str) -> String {
    match tcp {
        "cubic" => {
            let [with, without] = [Scheme::PAPER, Scheme::TAIL].map(|scheme| largest(results, NO_HYSTART, scheme));
            with.map_or_else(String::new, |_| {
                format!("; without HyStart that in bursts by {}", percent(change(with, without, MEDIAN_IN_BURSTS)))
            })
        }
        "dctcp" => {
            let early = largest(results, tcp, Scheme::EARLY_TAIL);
            early.map_or_else(String::new, |_| {
                let changed = change(largest(results, tcp, Scheme::PAPER), early, MEDIAN_IN_BURSTS);
                format!("; that in bursts against {} by {}", Scheme::EARLY_TAIL.name(), percent(changed))
            })
        }
        _ => String::new(),
    }
}

/// The slowest flows.
fn tails(results: &Results) -> Vec<Finding> {
    let at = |scheme| largest(results, "newreno", scheme);
    let mut findings = Vec::new();
    for (name, value, paper) in [("90 %", P90, "slightly less"), ("99 %", P99, "more"), ("99.9 %", P999, "more")] {
        findings.push(Finding::of_words(
            FIGURE_10,
            format!(
                "newreno: {name} of all flows with ConQuest against tail ECN, bursts of {} MB",
                size(at(Scheme::PAPER))
            ),
            paper,
            percent(change(at(Scheme::PAPER), at(Scheme::TAIL), value)),
            format!(
                "{:.0} and {:.0} us; against RED {}{}",
                value_at(at(Scheme::PAPER), value),
                value_at(at(Scheme::TAIL), value),
                percent(change(at(Scheme::PAPER), at(Scheme::Red), value)),
                with_papers_estimator(results, value)
            ),
        ));
    }
    findings.extend(penalties(results));
    findings
}

/// The same with the paper's estimator, if that was run.
fn with_papers_estimator(results: &Results, value: &str) -> String {
    let tail = of(results, "newreno", Scheme::TAIL).find(|point| point.number(BURST) == super::BURST_MB as f64);
    let inner = condition(results, super::PLACED, Scheme::PAPER);
    inner.map_or_else(String::new, |inner| {
        let (changed, megabytes) = (percent(change(Some(inner), tail, value)), super::BURST_MB);
        format!("; against tail with the paper's estimator, bursts of {megabytes} MB {changed}")
    })
}

/// The point of a scheme under a changed condition.
fn condition<'a>(results: &'a Results, changed: &str, scheme: Scheme) -> Option<&'a Point> {
    let mut points = results.of(CONDITIONS);
    points.find(|point| point.parameter(CHANGED) == changed && point.parameter(SCHEME) == scheme.name())
}

/// What marks cost the large flows themselves, and what they save the others: compared with runs in which the
/// workload's packets cannot be marked, with sizes that end and with sizes that do not.
fn penalties(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ends = |scheme| of(results, "newreno", scheme).find(|point| point.number(BURST) == super::BURST_MB as f64);
    for (sizes, without_marks) in [("", super::BURSTS_ONLY), (super::ENDLESS, super::ENDLESS_BURSTS_ONLY)] {
        for scheme in [Scheme::PAPER, Scheme::LOWER, Scheme::STANDING] {
            let with = if sizes.is_empty() { ends(scheme) } else { condition(results, sizes, scheme) };
            let (Some(_), without @ Some(_)) = (with, condition(results, without_marks, scheme)) else { continue };
            let changed = |value| percent(change(with, without, value));
            let megabytes = super::BURST_MB;
            let comma = if sizes.is_empty() { "" } else { ", " };
            findings.push(Finding::of_words(
                CONDITIONS,
                format!(
                    "{}: 99 % of flows above 1 MB, against the same where only bursts can be marked, bursts of {megabytes} MB{comma}{sizes}",
                    scheme.name()
                ),
                if scheme == Scheme::PAPER { "the largest flows are penalised" } else { "-" },
                changed(LARGE_P99),
                format!("on average {}; 99 % of all flows {}, 99.9 % {}", changed(LARGE_MEAN), changed(P99), changed(P999)),
            ));
        }
    }
    findings
}

/// The effect of the better marking function.
fn better(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (tcp, _) in PAPER {
        let [tail, red, paper, ours] = Scheme::MAIN.map(|scheme| largest(results, tcp, scheme));
        if ours.is_none() {
            continue;
        }
        let against = |value| {
            let [tail, red, paper] = [tail, red, paper].map(|it| percent(change(ours, it, value)));
            format!("{tail}, {red}, {paper}")
        };
        findings.push(Finding::of_words(
            FIGURE_10,
            format!(
                "{tcp}: 99 % of all flows with marks for a standing queue against tail, RED, ConQuest, bursts of {} MB",
                size(ours)
            ),
            "-",
            against(P99),
            format!(
                "99.9 % {}; 99 % of flows above 1 MB {}; bursts take {}",
                against(P999),
                against(LARGE_P99),
                against(BURST_MEAN)
            ),
        ));
    }
    findings
}

/// What the better marking function costs a switch, and its effect there compared with the paper's own program.
fn on_a_switch(results: &Results) -> Finding {
    let placed = |snapshots| Snapshots { snapshots, ..Snapshots::default() };
    let mut why = format!("the paper's with 4 snapshots: {}", stages(&conquest(placed(4))));
    let paper = condition(results, super::PLACED, Scheme::PAPER);
    let ours = of(results, "newreno", Scheme::STANDING).find(|point| point.number(BURST) == super::BURST_MB as f64);
    if paper.is_some() && ours.is_some() {
        let changed = |value| percent(change(ours, paper, value));
        // Writing to a string does not fail.
        _ = write!(
            why,
            "; against that with its own estimator, newreno, bursts of {} MB: 99 % of all flows {}, 99.9 % {}, 99 % of flows above 1 \
             MB {}, bursts take {}",
            super::BURST_MB,
            changed(P99),
            changed(P999),
            changed(LARGE_P99),
            changed(BURST_MEAN)
        );
    }
    let what = "marks for a standing queue, as they are run here, with 8 snapshots: stages of a Tofino".to_owned();
    Finding::of_words("switch", what, "-", stages(&conquest_standing(placed(8))), why)
}

/// How many stages a program takes.
fn stages(program: &Program) -> String {
    let target = Target::tofino();
    let fit = Fit::new(program, &target);
    match &fit.placement {
        Some(placement) if fit.grade() == Grade::Feasible => {
            format!("{} of {}", placement.stages.len(), target.stages)
        }
        _ => "does not fit".to_owned(),
    }
}

/// Figure 11.
fn queues(results: &Results) -> Vec<Finding> {
    let at = |scheme: Scheme| {
        let mut points = results.of(FIGURE_11);
        points.find(|point| point.parameter(TCP) == "newreno" && point.parameter(SCHEME) == scheme.name())
    };
    let says = [
        (Scheme::TAIL, "filled up to the threshold, then oscillates"),
        (Scheme::PAPER, "short, with spikes"),
        (Scheme::STANDING, "-"),
    ];
    let outcome = |(scheme, paper): (Scheme, &str)| {
        let point = at(scheme);
        Finding::of_words(
            FIGURE_11,
            format!(
                "{}: the queue in the first {} ms of a burst of {} MB, on average and at the longest (packets)",
                scheme.name(),
                super::BURST_MB * 8 / 10,
                super::BURST_MB
            ),
            paper,
            format!("{:.0}, {:.0}", value_at(point, QUEUE_MEAN), value_at(point, QUEUE_LONGEST)),
            format!(
                "90 % of the time up to {:.0}; the burst takes {:.1} ms; {:.1} % of its packets are marked, {:.2} % of the others'",
                value_at(point, QUEUE_P90),
                value_at(point, BURST_MEAN),
                value_at(point, MARKED_BURST),
                value_at(point, MARKED)
            ),
        )
    };
    says.map(outcome).into()
}

/// All schemes, and what they depend on.
pub fn tables(results: &Results) -> Vec<Table> {
    let columns = [
        MEDIAN,
        MEDIAN_IN_BURSTS,
        P99_IN_BURSTS,
        P90,
        P99,
        P999,
        LARGE_MEAN,
        LARGE_P99,
        BURST_MEAN,
        DELAY,
        MARKED,
        MARKED_BURST,
        UNFINISHED,
    ];
    let table = |title: &str, figure: &'static str, names: &[&str], keep: &dyn Fn(&Point) -> bool| Table {
        title: title.to_owned(),
        columns: names.iter().chain(&columns).map(|name| (*name).to_owned()).collect(),
        rows: results
            .of(figure)
            .filter(|point| keep(point))
            .map(|point| {
                let shown = |value: &str| {
                    let digits = if value.contains("(us)") || value == UNFINISHED { 0 } else { 1 };
                    point.shown(value, digits)
                };
                let names = names.iter().map(|name| point.parameter(name).to_owned());
                names.chain(columns.map(shown)).collect()
            })
            .collect(),
    };
    let fifty = |point: &Point| point.number(BURST) == super::BURST_MB as f64;
    let mut tables = vec![table("Figure 10, bursts of 50 MB", FIGURE_10, &[TCP, SCHEME], &fifty)];
    let other = table("Figure 10, other bursts", FIGURE_10, &[TCP, SCHEME, BURST], &|point| !fifty(point));
    let open = table("What the paper leaves open: newreno, bursts of 50 MB", CONDITIONS, &[CHANGED, SCHEME], &|_| true);
    let choices = table("What the better mark depends on: newreno, bursts of 50 MB", CHOICES, &[SCHEME], &|_| true);
    tables.extend([other, open, choices].into_iter().filter(|table| !table.rows.is_empty()));
    tables
}
