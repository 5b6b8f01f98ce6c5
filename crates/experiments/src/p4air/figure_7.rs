//! Figure 7(d) and (e): fairness of many flows under P4air and three other schemes.
//!
//! Where the paper is open:
//!
//! - *The rate* is 1 Gb/s here, a tenth of the testbed's, because 10 Gb/s would take ten times as long to simulate. With
//!   128 flows and a round-trip time of 100 ms, which the paper does not state, each flow's share is 65 packets.
//! - *The buffer* is one bandwidth-delay product. The schemes with 32 queues give each queue an equal part of it.
//! - *Starts* are spread over the first second.
//! - *Different round-trip times*: "each link delay was configured to a multiple" of the difference. Here there are 32 round-trip
//!   times, from one to 32 times the difference, of eight flows each. With a difference of 1 ms, the rate is 10 Gb/s and the
//!   duration a tenth, so that a flow's share is 54 packets with both differences.
//! - *The duration* is not stated; the results state ours.

use super::{CONTROL, JAIN, data_of, delivered, jain, paper, program};
use crate::error::{Error, Result};
use crate::outcome::{Finding, Outcome, Table};
use crate::plot::{Axis, Line, Plot};
use crate::results::{Point, Results, Values};
use crate::study::Cell;
use queuescope_report::model::SweepMean;
use queuescope_sim::Simulation;
use std::fmt::Write as _;

pub const MIXES: &str = "figure-7e";
pub const RTTS: &str = "figure-7d";

/// How the link treats its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    P4air,
    Idle,
    DifferentQueues,
    NoAqm,
}

impl Scheme {
    /// In the paper's order.
    pub const ALL: [Self; 4] = [Self::P4air, Self::Idle, Self::DifferentQueues, Self::NoAqm];

    fn name(self) -> &'static str {
        match self {
            Self::P4air => "P4air",
            Self::Idle => "Idle P4air",
            Self::DifferentQueues => "Different Queues",
            Self::NoAqm => "No AQM",
        }
    }

    /// Its lines of `[link]`, for a buffer of this many packets.
    fn text(self, buffer: u64, queues: u64) -> String {
        let each = (buffer / queues).max(1);
        match self {
            Self::P4air => format!("limit = \"{each}packets\"\n\n[link.pipeline.p4air]\nqueues = {queues}\n"),
            Self::Idle => format!(
                "limit = \"{each}packets\"\n\n[link.pipeline.p4air]\nqueues = {queues}\n\n[link.pipeline.p4air.actions]\n\
                 delay-based = \"nothing\"\nloss-delay = \"nothing\"\nloss-based = \"nothing\"\nmodel-based = \"nothing\"\n"
            ),
            Self::DifferentQueues => {
                format!("limit = \"{each}packets\"\n\n[link.pipeline.hash-to-queues]\nqueues = {queues}\n")
            }
            Self::NoAqm => format!("limit = \"{buffer}packets\"\n"),
        }
    }
}

/// The controls of the mixes, in the paper's order, and those of 7(d).
const CONTROLS: [&str; 4] = ["cubic", "illinois", "bbr", "vegas"];

/// How much is run.
struct Plan {
    flows: u64,
    queues: u64,
    megabits: u64,
    duration_s: u64,
    warmup_s: u64,
    mix_seeds: u64,
    mixes: Vec<[u64; 4]>,
    rtt: RttPlan,
}

struct RttPlan {
    flows: u64,
    /// Different round-trip times.
    times: u64,
    /// The differences, in ms; with the first one, the rate is that of the mixes, with others inversely higher.
    differences_ms: &'static [u64],
    megabits: u64,
    duration_ms: u64,
    warmup_ms: u64,
    controls: usize,
    seeds: u64,
}

impl Plan {
    fn new(small: bool) -> Self {
        if small {
            let mixes = vec![[25, 25, 25, 25], [50, 0, 50, 0], [0, 0, 0, 100]];
            let rtt = RttPlan {
                flows: 8,
                times: 4,
                differences_ms: &[10],
                megabits: 25,
                duration_ms: 6_000,
                warmup_ms: 2_000,
                controls: 1,
                seeds: 1,
            };
            return Self { flows: 8, queues: 12, megabits: 60, duration_s: 8, warmup_s: 3, mix_seeds: 1, mixes, rtt };
        }
        let rtt = RttPlan {
            flows: 256,
            times: 32,
            differences_ms: &[10, 1],
            megabits: 1_000,
            duration_ms: 60_000,
            warmup_ms: 20_000,
            controls: 4,
            seeds: 1,
        };
        Self {
            flows: 128,
            queues: 32,
            megabits: 1_000,
            duration_s: 40,
            warmup_s: 15,
            mix_seeds: 1,
            mixes: mixes(),
            rtt,
        }
    }
}

/// The round-trip time of the mixes.
const RTT_MS: u64 = 100;

/// All shares of four controls in steps of 25 %.
fn mixes() -> Vec<[u64; 4]> {
    let steps = || (0..=4u64).rev();
    let mut mixes = Vec::new();
    for one in steps() {
        for two in steps() {
            for three in steps() {
                mixes.extend(
                    (one + two + three <= 4).then(|| [one, two, three, 4 - one - two - three].map(|part| 25 * part)),
                );
            }
        }
    }
    mixes
}

/// What readers must know about the runs.
pub fn remark(small: bool) -> String {
    let Plan { flows, megabits, duration_s, warmup_s, mix_seeds, mixes, rtt, .. } = Plan::new(small);
    let RttPlan { flows: many, duration_ms, warmup_ms, seeds, .. } = rtt;
    let s = |seeds| if seeds == 1 { "run" } else { "runs" };
    format!(
        "Figure 7(e): {} mixes of {flows} flows at {megabits} Mb/s for {duration_s} s, of which {warmup_s} s are warm-up; {mix_seeds} {} of \
         each, the paper has 4. Figure 7(d): {many} flows, {} s and {} s of warm-up (a tenth with 1 ms); {seeds} {} of each, the \
         paper has 4.",
        mixes.len(),
        s(mix_seeds),
        duration_ms / 1_000,
        warmup_ms / 1_000,
        s(seeds),
    )
}

pub fn cells(small: bool) -> Vec<Cell> {
    let plan = Plan::new(small);
    let mut cells = Vec::new();
    for seed in 1..=plan.mix_seeds {
        for mix in &plan.mixes {
            cells.extend(Scheme::ALL.map(|scheme| plan.mix(*mix, scheme, seed)));
        }
    }
    for seed in 1..=plan.rtt.seeds {
        for difference in plan.rtt.differences_ms {
            for control in CONTROLS.iter().take(plan.rtt.controls) {
                cells.extend(Scheme::ALL.map(|scheme| plan.rtts(control, *difference, scheme, seed)));
            }
        }
    }
    cells
}

const SCHEME: &str = "scheme";
const DIFFERENCE: &str = "difference (ms)";

impl Plan {
    fn mix(&self, mix: [u64; 4], scheme: Scheme, seed: u64) -> Cell {
        let buffer = self.megabits * 1_000 * RTT_MS / (1_500 * 8);
        let mut scenario = format!(
            "seed = {seed}\nduration = \"{}s\"\nwarmup = \"{}s\"\n\n[access]\nrate = \"10gbps\"\ndelay = \"1ms\"\n\n[link]\nrate = \
             \"{}mbps\"\ndelay = \"10ms\"\n{}",
            self.duration_s,
            self.warmup_s,
            self.megabits,
            scheme.text(buffer, self.queues)
        );
        for (control, percent) in CONTROLS.iter().zip(mix).filter(|(_, percent)| *percent > 0) {
            let count = self.flows * percent / 100;
            // Writing to a string does not fail.
            _ = write!(
                scenario,
                "\n[[flows]]\nname = \"{control}\"\ntcp = \"{control}\"\ncount = {count}\nrtt = \"{RTT_MS}ms\"\nspread = \"1s\"\n"
            );
        }
        let shares = CONTROLS.into_iter().zip(mix.map(|percent| percent.to_string()));
        let parameters = [(SCHEME, scheme.name().to_owned())].into_iter().chain(shares).collect();
        Cell { figure: MIXES, parameters, seed, scenario }
    }

    fn rtts(&self, control: &str, difference_ms: u64, scheme: Scheme, seed: u64) -> Cell {
        let rtt = &self.rtt;
        let times = rtt.differences_ms[0] / difference_ms;
        let megabits = rtt.megabits * times;
        // The mean round-trip time is (times + 1) / 2 differences.
        let buffer = megabits * 1_000 * difference_ms * (rtt.times + 1) / (2 * 1_500 * 8);
        let mut scenario = format!(
            "seed = {seed}\nduration = \"{}ms\"\nwarmup = \"{}ms\"\n\n[access]\nrate = \"{}mbps\"\ndelay = \"100us\"\n\n[link]\nrate = \
             \"{megabits}mbps\"\ndelay = \"100us\"\n{}",
            rtt.duration_ms / times,
            rtt.warmup_ms / times,
            4 * megabits,
            scheme.text(buffer, self.queues)
        );
        for number in 1..=rtt.times {
            // Writing to a string does not fail.
            _ = write!(
                scenario,
                "\n[[flows]]\nname = \"{control}-{number}\"\ntcp = \"{control}\"\ncount = {}\nrtt = \"{}ms\"\nspread = \"{}ms\"\n",
                rtt.flows / rtt.times,
                number * difference_ms,
                1_000 / times
            );
        }
        let parameters = vec![
            (SCHEME, scheme.name().to_owned()),
            (DIFFERENCE, difference_ms.to_string()),
            (CONTROL, control.to_owned()),
        ];
        Cell { figure: RTTS, parameters, seed, scenario }
    }
}

const USED: &str = "utilisation (%)";
const DELAY: &str = "mean delay (ms)";
/// Flows that end in the group that the paper puts their control in.
const GROUPED: &str = "in their group (%)";

/// Fairness, utilisation, the delay in the queue, and the flows that P4air put into their group.
pub fn measure(cell: &Cell, simulation: &Simulation) -> Result<Values> {
    let link = simulation.measured().next().ok_or_else(|| Error::lacks("no link is measured"))?;
    let scenario = cell.parsed()?;
    let capacity = simulation.topology().link(link).rate.capacity(simulation.warmup()..simulation.now());
    let shares: Vec<f64> = delivered(simulation).into_iter().map(|(_, bytes)| bytes).collect();
    let stats = simulation.link(link);
    let delay = stats.sojourn().and_then(|times| times.mean()).unwrap_or(f64::NAN);
    let mut values = Values::from([
        (JAIN.to_owned(), jain(&shares)),
        (DELAY.to_owned(), delay / 1e6),
        (USED.to_owned(), 100.0 * stats.sent.bytes.0 as f64 / capacity.0 as f64),
    ]);
    if let Some(program) = program(simulation) {
        let flows = simulation.flows();
        let grouped = flows.iter().filter(|flow| {
            let name = scenario.flows.get(flow.group as usize).map_or("", |group| group.name.as_str());
            let tcp = name.split('-').next().unwrap_or_default();
            let control = paper::CONTROLS.iter().find(|control| control.tcp == tcp);
            control.is_some_and(|control| program.group(data_of(flow)) == Some(control.group))
        });
        values.insert(GROUPED.to_owned(), 100.0 * grouped.count() as f64 / flows.len() as f64);
    }
    Ok(values)
}

pub fn outcome(results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    if results.of(MIXES).next().is_some() {
        outcome.findings.extend(Scheme::ALL.map(|scheme| mean_of_mixes(results, scheme)));
        outcome.findings.push(best_in_mixes(results));
        outcome.tables.extend([distribution(results), by_mix(results)]);
        outcome.plots.push(plot(results));
    }
    if results.of(RTTS).next().is_some() {
        outcome.findings.extend(Scheme::ALL.map(|scheme| mean_of_rtts(results, scheme)));
        outcome.tables.push(by_rtt(results));
    }
    outcome
}

/// The points of a scheme.
fn of<'a>(results: &'a Results, figure: &'static str, scheme: Scheme) -> impl Iterator<Item = &'a Point> {
    results.of(figure).filter(move |point| point.parameter(SCHEME) == scheme.name())
}

/// The fairness of each mix under a scheme, in ascending order.
fn fairness(results: &Results, scheme: Scheme) -> Vec<f64> {
    let mut all: Vec<_> = of(results, MIXES, scheme).map(|point| point.value(JAIN)).collect();
    all.retain(|value| value.is_finite());
    all.sort_by(f64::total_cmp);
    all
}

/// What the paper prints for a scheme, in ascending order.
fn printed(scheme: Scheme) -> Vec<f64> {
    let mut all = paper::MIXES[scheme as usize].to_vec();
    all.sort_by(f64::total_cmp);
    all
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The value below which a share of sorted values is, between the two nearest ones.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len().max(1) - 1) as f64;
    let at = |place: f64| sorted.get(place as usize).copied().unwrap_or(f64::NAN);
    let (low, high) = (at(place.floor()), at(place.ceil()));
    low + (high - low) * place.fract()
}

fn mean_of_mixes(results: &Results, scheme: Scheme) -> Finding {
    let (ours, paper) = (fairness(results, scheme), printed(scheme));
    let within = |values: &[f64]| format!("{:.2} to {:.2}", quantile(values, 0.0), quantile(values, 1.0));
    let others = |value: &str, digits: usize| {
        let values: Vec<_> = of(results, MIXES, scheme).map(|point| point.value(value)).collect();
        format!("{:.digits$}", mean(&values))
    };
    let grouped = if matches!(scheme, Scheme::P4air | Scheme::Idle) {
        format!("; {} % of flows in their group", others(GROUPED, 0))
    } else {
        String::new()
    };
    let why = format!(
        "{} mixes, {}; the paper's 37 values, {}; utilisation {} %, mean delay {} ms{grouped}",
        ours.len(),
        within(&ours),
        within(&paper),
        others(USED, 1),
        others(DELAY, 1)
    );
    let what = format!("7(e): {}, mean fairness of all mixes", scheme.name());
    two_digits(MIXES, what, mean(&paper), mean(&ours), why)
}

/// Compares two indices, which need two digits.
fn two_digits(figure: &'static str, what: String, paper: f64, ours: f64, why: String) -> Finding {
    let [paper_shown, ours_shown] = [paper, ours].map(|value| format!("{value:.2}"));
    Finding { figure, what, paper: paper_shown, ours: ours_shown, difference: Some(ours / paper - 1.0), why }
}

/// In how many mixes P4air is fairer than each other scheme. The paper's columns are the same mixes in each row.
fn best_in_mixes(results: &Results) -> Finding {
    let ours: Vec<Vec<f64>> =
        Scheme::ALL.map(|scheme| of(results, MIXES, scheme).map(|point| point.value(JAIN)).collect()).into();
    let wins = |own: &[f64], other: &[f64]| own.iter().zip(other).filter(|(own, other)| own >= other).count();
    let against = |rows: &[&[f64]]| {
        let others = Scheme::ALL.iter().zip(rows).skip(1);
        let shown = others.map(|(scheme, row)| format!("{} in {}", scheme.name(), wins(rows[0], row)));
        shown.collect::<Vec<_>>().join(", ")
    };
    let rows: Vec<&[f64]> = ours.iter().map(Vec::as_slice).collect();
    let printed: Vec<&[f64]> = paper::MIXES.iter().map(<[f64; 37]>::as_slice).collect();
    let (count, of_paper) = (rows[0].len(), against(&printed));
    let what = "7(e): mixes in which P4air is at least as fair as each other scheme".to_owned();
    Finding::of_words(
        MIXES,
        what,
        &format!("{of_paper} of 37"),
        format!("{} of {count}", against(&rows)),
        String::new(),
    )
}

const QUANTILES: [(&str, f64); 5] =
    [("least", 0.0), ("quarter", 0.25), ("median", 0.5), ("three quarters", 0.75), ("most", 1.0)];

/// The distribution of fairness over the mixes, ours and the paper's.
fn distribution(results: &Results) -> Table {
    let row = |scheme: Scheme| {
        let (ours, paper) = (fairness(results, scheme), printed(scheme));
        let pair = |ours: f64, paper: f64| format!("{ours:.2} / {paper:.2} ({:+.2})", ours - paper);
        let quantiles = QUANTILES.iter().map(|(_, share)| pair(quantile(&ours, *share), quantile(&paper, *share)));
        let all = [scheme.name().to_owned()].into_iter().chain(quantiles);
        all.chain([pair(mean(&ours), mean(&paper))]).collect()
    };
    let names = QUANTILES.iter().map(|(name, _)| (*name).to_owned());
    Table {
        title: "Figure 7(e): fairness over all mixes; ours / the paper's 37 values (difference)".to_owned(),
        columns: [SCHEME.to_owned()].into_iter().chain(names).chain(["mean".to_owned()]).collect(),
        rows: Scheme::ALL.map(row).into(),
    }
}

/// Each mix under each scheme, ours only.
fn by_mix(results: &Results) -> Table {
    let shares = |point: &Point| CONTROLS.map(|control| point.parameter(control).to_owned());
    let rows = of(results, MIXES, Scheme::P4air).map(|mix| {
        let shown = |value: &'static str, digits: usize| {
            Scheme::ALL.map(|scheme| {
                let point = of(results, MIXES, scheme).find(|point| shares(point) == shares(mix));
                point.map_or_else(|| "-".to_owned(), |point| point.shown(value, digits))
            })
        };
        let [used, _, _, no_aqm] = shown(USED, 0);
        let [delay, _, _, no_aqm_delay] = shown(DELAY, 0);
        let more = [used, no_aqm, delay, no_aqm_delay, mix.shown(GROUPED, 0)];
        shares(mix).into_iter().chain(shown(JAIN, 2)).chain(more).collect()
    });
    let percents = CONTROLS.map(|control| format!("{control} (%)"));
    let schemes = Scheme::ALL.map(|scheme| scheme.name().to_owned());
    let more = [
        "utilisation, P4air (%)",
        "No AQM (%)",
        "mean delay, P4air (ms)",
        "No AQM (ms)",
        "flows in their group, P4air (%)",
    ];
    Table {
        title: "Figure 7(e): fairness of each mix under each scheme, and more; ours".to_owned(),
        columns: percents.into_iter().chain(schemes).chain(more.map(str::to_owned)).collect(),
        rows: rows.collect(),
    }
}

/// The distributions of fairness over the mixes.
fn plot(results: &Results) -> Plot {
    let line = |name: String, values: Vec<f64>| {
        let all = values.len() as f64;
        let share = |number: usize| SweepMean { mean: 100.0 * number as f64 / all, half_width: None, cells: 1 };
        Line { name, points: (1..).zip(values).map(|(number, value)| (value, share(number))).collect() }
    };
    let ours = Scheme::ALL.map(|scheme| line(scheme.name().to_owned(), fairness(results, scheme)));
    let papers = Scheme::ALL.map(|scheme| line(format!("{}, the paper", scheme.name()), printed(scheme)));
    Plot {
        name: "figure-7e",
        title: "Fairness of many flows in mixes of four congestion controls".to_owned(),
        axes: [Axis::linear(JAIN), Axis::linear("mixes with no more (%)")],
        lines: ours.into_iter().chain(papers).collect(),
    }
}

/// What the paper has for a difference, a control and a scheme.
fn printed_rtts(difference: &str, control: &str, scheme: Scheme) -> f64 {
    let column = CONTROLS.iter().position(|own| *own == control).unwrap_or(0);
    paper::RTT_DIFFERENCES[scheme as usize][column + if difference == "1" { 0 } else { CONTROLS.len() }]
}

fn mean_of_rtts(results: &Results, scheme: Scheme) -> Finding {
    let points: Vec<_> = of(results, RTTS, scheme).collect();
    let ours: Vec<_> = points.iter().map(|point| point.value(JAIN)).collect();
    let printed = |point: &&Point| printed_rtts(point.parameter(DIFFERENCE), point.parameter(CONTROL), scheme);
    let paper: Vec<_> = points.iter().map(printed).collect();
    let used = mean(&points.iter().map(|point| point.value(USED)).collect::<Vec<_>>());
    let what = format!("7(d): {}, mean fairness of {} settings", scheme.name(), points.len());
    two_digits(RTTS, what, mean(&paper), mean(&ours), format!("utilisation {used:.1} %"))
}

/// Fairness of each control with each difference, by scheme.
fn by_rtt(results: &Results) -> Table {
    let rows = of(results, RTTS, Scheme::P4air).map(|first| {
        let own = [DIFFERENCE, CONTROL].map(|name| first.parameter(name).to_owned());
        let cells = Scheme::ALL.map(|scheme| {
            let same = |point: &&Point| {
                [DIFFERENCE, CONTROL].iter().all(|name| point.parameter(name) == first.parameter(name))
            };
            let ours = of(results, RTTS, scheme).find(same).map_or(f64::NAN, |point| point.value(JAIN));
            let paper = printed_rtts(&own[0], &own[1], scheme);
            format!("{ours:.2} / {paper:.2} ({:+.2})", ours - paper)
        });
        own.into_iter().chain(cells).collect()
    });
    let schemes = Scheme::ALL.map(|scheme| scheme.name().to_owned());
    Table {
        title: "Figure 7(d): fairness of flows with different round-trip times; ours / the paper's (difference)"
            .to_owned(),
        columns: [DIFFERENCE, CONTROL].map(str::to_owned).into_iter().chain(schemes).collect(),
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_35_mixes_of_all_flows() {
        let mixes = mixes();
        assert_eq!(mixes.iter().collect::<BTreeSet<_>>().len(), 35);
        assert!(mixes.iter().all(|mix| mix.iter().sum::<u64>() == 100));
    }

    #[test]
    fn a_quantile_is_between_its_neighbours() {
        let sorted = [1.0, 2.0, 4.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|share| quantile(&sorted, share)), [1.0, 1.5, 2.0, 4.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    /// The paper's text: P4air is the fairest on average, with all of its figure's values.
    #[test]
    fn the_papers_schemes_are_in_order() {
        let means = Scheme::ALL.map(|scheme| mean(&printed(scheme)));
        assert!(means.is_sorted_by(|one, next| one > next), "{means:?}");
        assert_eq!(printed_rtts("10", "bbr", Scheme::P4air), 0.83);
        assert_eq!(printed_rtts("1", "vegas", Scheme::NoAqm), 0.88);
    }
}
