//! Figure 1: Jain's index of two flows that share a link of 100 Mb/s.
//!
//! Where the paper is open:
//!
//! - *The buffer* is 0.5, 1 or 2 bandwidth-delay products in 1(a). It is one of 100 ms in 1(b).
//! - *The round-trip time* of 1(a) is stated as 100 ms. 25 ms run too, because they explain the paper's values better; the results
//!   name the setting that is nearest. Those of 1(b) are 100 ms, and that and the difference.
//! - *The duration* is 100 s, of which 20 s are warm-up. Both flows start within the first 100 ms, at random.
//! - *The kernel's TCP* has the matrix of 1(a) for six controls, in shorter runs, because they take as long as they last. Without
//!   `--real` the same runs are simulated.
//! - *Noise*: small packets at random times take 0.2 % of the link. An emulation is never without disturbances; a simulation without
//!   them locks some pairs into a pattern in which one flow meets every drop.

use super::{CONTROL, JAIN, delivered, jain, paper};
use crate::error::Result;
use crate::outcome::{Finding, Outcome, Table};
use crate::plot::{Axis, Plot, line};
use crate::results::{Point, Results, Values};
use crate::study::Cell;
use paper::Control;
use queuescope_sim::Simulation;
use queuescope_sketch::FlowGroup;
use std::fmt;

pub const PAIRS: &str = "figure-1a";
/// The pairs that are compared with the kernel's TCP.
pub const KERNEL: &str = "figure-1a-kernel";
pub const RTTS: &str = "figure-1b";

const OTHER: &str = "other congestion control";
const BUFFER: &str = "buffer (BDP)";
const RTT: &str = "RTT (ms)";
const DIFFERENCE: &str = "RTT difference (ms)";

/// How much is run.
struct Plan {
    controls: Vec<&'static Control>,
    megabits: u64,
    duration_s: u64,
    warmup_s: u64,
    /// Round-trip times of 1(a), in ms, and buffers in percent of their bandwidth-delay product.
    rtts_ms: &'static [u64],
    buffers: &'static [u64],
    /// Differences of round-trip times, in ms. The paper has another value without a difference: that of 1(a).
    differences_ms: Vec<u64>,
    seeds: u64,
    kernel: KernelPlan,
}

/// How much of 1(a) is compared with the kernel's TCP.
struct KernelPlan {
    controls: &'static [&'static str],
    duration_s: u64,
    warmup_s: u64,
}

impl Plan {
    fn new(small: bool) -> Self {
        if small {
            let few = ["cubic", "bbr", "vegas"];
            return Self {
                controls: Control::existing().filter(|control| few.contains(&control.tcp)).collect(),
                megabits: 10,
                duration_s: 12,
                warmup_s: 4,
                rtts_ms: &[RTT_MS],
                buffers: &[50, 100],
                differences_ms: vec![20, 100],
                seeds: 1,
                kernel: KernelPlan { controls: &["cubic", "bbr"], duration_s: 4, warmup_s: 1 },
            };
        }
        Self {
            controls: Control::existing().collect(),
            megabits: 100,
            duration_s: 100,
            warmup_s: 20,
            rtts_ms: &[RTT_MS, 25],
            buffers: &[50, 100, 200],
            differences_ms: (1..=paper::RTT_FAIRNESS.len() as u64).map(|row| row * STEP_MS).collect(),
            seeds: 1,
            kernel: KernelPlan {
                controls: &["cubic", "newreno", "illinois", "westwood", "vegas", "bbr"],
                duration_s: 60,
                warmup_s: 20,
            },
        }
    }
}

/// The step of the differences in the paper.
const STEP_MS: u64 = 20;
const RTT_MS: u64 = 100;

/// What readers must know about the runs.
pub fn remark(small: bool) -> String {
    let Plan { megabits, duration_s, warmup_s, seeds, kernel, .. } = Plan::new(small);
    let s = if seeds == 1 { "run" } else { "runs" };
    format!(
        "Figure 1: {megabits} Mb/s for {duration_s} s, of which {warmup_s} s are warm-up ({} and {} s for comparison \
         with the kernel's TCP); {seeds} {s} of each.",
        kernel.duration_s, kernel.warmup_s
    )
}

pub fn cells(small: bool) -> Vec<Cell> {
    let plan = Plan::new(small);
    (1..=plan.seeds).flat_map(|seed| plan.cells(seed)).collect()
}

impl Plan {
    fn cells(&self, seed: u64) -> Vec<Cell> {
        let duration_s = [self.duration_s, self.warmup_s];
        let mut cells = self.pairs(PAIRS, &self.controls, duration_s, seed);
        for one in &self.controls {
            for difference in &self.differences_ms {
                let parameters = vec![(CONTROL, one.name.to_owned()), (DIFFERENCE, difference.to_string())];
                let scenario = self.scenario([one, one], [RTT_MS, RTT_MS + difference], 100, duration_s, seed);
                cells.push(Cell { figure: RTTS, parameters, seed, scenario });
            }
        }
        let compared = self.controls.iter().filter(|control| self.kernel.controls.contains(&control.tcp));
        let compared: Vec<_> = compared.copied().collect();
        cells.extend(self.pairs(KERNEL, &compared, [self.kernel.duration_s, self.kernel.warmup_s], seed));
        cells
    }

    /// All pairs of controls, with all round-trip times and buffers.
    fn pairs(&self, figure: &'static str, controls: &[&'static Control], duration_s: [u64; 2], seed: u64) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (number, one) in controls.iter().enumerate() {
            for other in &controls[number..] {
                let settings = self.rtts_ms.iter().flat_map(|rtt| self.buffers.iter().map(|buffer| (*rtt, *buffer)));
                for (rtt_ms, percent) in settings {
                    let parameters = vec![
                        (CONTROL, one.name.to_owned()),
                        (OTHER, other.name.to_owned()),
                        (RTT, rtt_ms.to_string()),
                        (BUFFER, (percent as f64 / 100.0).to_string()),
                    ];
                    let scenario = self.scenario([one, other], [rtt_ms; 2], percent, duration_s, seed);
                    cells.push(Cell { figure, parameters, seed, scenario });
                }
            }
        }
        cells
    }

    /// The buffer is in percent of the bandwidth-delay product of the first flow. The duration includes the warm-up, which
    /// follows it.
    fn scenario(
        &self,
        controls: [&Control; 2],
        rtts_ms: [u64; 2],
        percent: u64,
        [duration_s, warmup_s]: [u64; 2],
        seed: u64,
    ) -> String {
        let buffer = self.megabits * 1_000 * rtts_ms[0] * percent / (100 * 1_500 * 8);
        let flow = |name: &str, control: &Control, rtt_ms: u64| {
            format!(
                "\n[[flows]]\nname = \"{name}\"\ntcp = \"{}\"\nrtt = \"{rtt_ms}ms\"\nspread = \"{RTT_MS}ms\"\n",
                control.tcp
            )
        };
        format!(
            "seed = {seed}\nduration = \"{duration_s}s\"\nwarmup = \"{warmup_s}s\"\n\n[access]\nrate = \"1gbps\"\ndelay = \
             \"1ms\"\n\n[link]\nrate = \"{}mbps\"\ndelay = \"10ms\"\nlimit = \"{buffer}packets\"\n{}{}\n[[flows]]\nname = \
             \"noise\"\nudp = {{ rate = \"{}kbps\", packet = \"100B\", spacing = \"poisson\" }}\n",
            self.megabits,
            flow("one", controls[0], rtts_ms[0]),
            flow("other", controls[1], rtts_ms[1]),
            2 * self.megabits
        )
    }
}

/// The share of the first flow, in percent.
const SHARE: &str = "first flow's share (%)";

/// Fairness, and which flow had more.
pub fn measure(simulation: &Simulation) -> Result<Values> {
    let mut all = delivered(simulation);
    // Without the noise.
    all.retain(|(group, _)| *group < 2);
    let shares: Vec<f64> = all.iter().map(|(_, bytes)| *bytes).collect();
    let first: f64 = all.iter().filter(|(group, _)| *group == 0).map(|(_, bytes)| bytes).sum();
    Ok(Values::from([(JAIN.to_owned(), jain(&shares)), (SHARE.to_owned(), 100.0 * first / shares.iter().sum::<f64>())]))
}

pub fn outcome(results: &Results) -> Outcome {
    let mut outcome = Outcome::default();
    for figure in [PAIRS, KERNEL] {
        let mut settings: Vec<Setting<'_>> = Vec::new();
        for setting in results.of(figure).map(|point| Setting::new(figure, point)) {
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        let best = settings.iter().copied().min_by(|one, other| one.apart(results).total_cmp(&other.apart(results)));
        let Some(best) = best else { continue };
        outcome.findings.push(nearest(results, &settings, best));
        outcome.findings.push(close(results, &settings, best));
        outcome.findings.extend([true, false].map(|within| groups(results, best, within)));
        outcome.findings.push(starved(results, best));
        outcome.tables.push(matrix(results, best));
    }
    if results.of(RTTS).next().is_some() {
        outcome.findings.push(rtts(results));
        outcome.tables.push(by_difference(results));
        let lines = Control::existing().map(|control| line(control.name, rtts_of(results, control), DIFFERENCE, JAIN));
        outcome.plots.push(Plot {
            name: "figure-1b",
            title: "Fairness of two flows of one congestion control, by the difference of their round-trip times"
                .to_owned(),
            axes: [Axis::linear(DIFFERENCE), Axis::linear(JAIN)],
            lines: lines.filter(|line| !line.points.is_empty()).collect(),
        });
    }
    outcome
}

fn named(name: &str) -> Option<&'static Control> {
    Control::existing().find(|control| control.name == name)
}

/// What 1(a) varies: the round-trip time and the buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Setting<'a> {
    figure: &'static str,
    rtt: &'a str,
    buffer: &'a str,
}

impl<'a> Setting<'a> {
    fn new(figure: &'static str, point: &'a Point) -> Self {
        Self { figure, rtt: point.parameter(RTT), buffer: point.parameter(BUFFER) }
    }

    /// Its pairs: both controls, our index and the paper's.
    fn pairs(self, results: &'a Results) -> impl Iterator<Item = ([&'static Control; 2], f64, f64)> {
        results.of(self.figure).filter(move |point| Setting::new(self.figure, point) == self).filter_map(|point| {
            let (one, other) = (named(point.parameter(CONTROL))?, named(point.parameter(OTHER))?);
            Some(([one, other], point.mean(JAIN)?.mean, paper::PAIRS[one.column()][other.column()]))
        })
    }

    /// The mean difference from the paper's values.
    fn apart(self, results: &'a Results) -> f64 {
        mean(self.pairs(results).map(|(_, ours, paper)| (ours - paper).abs()))
    }

    /// The share of pairs whose index is within [`CLOSE`] of the paper's.
    fn close(self, results: &'a Results) -> f64 {
        mean(self.pairs(results).map(|(_, ours, paper)| f64::from((ours - paper).abs() <= CLOSE)))
    }
}

impl fmt::Display for Setting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms and {} BDP", self.rtt, self.buffer)
    }
}

/// How near an index must be to the paper's to count as the same.
const CLOSE: f64 = 0.1;

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count)
}

fn nearest(results: &Results, settings: &[Setting<'_>], best: Setting<'_>) -> Finding {
    let shown = settings.iter().map(|setting| format!("{setting}: {:.3}", setting.apart(results)));
    let worst = best.pairs(results).max_by(|one, other| (one.1 - one.2).abs().total_cmp(&(other.1 - other.2).abs()));
    let worst = worst.map_or_else(String::new, |([one, other], ours, paper)| {
        format!("; the largest difference is {:+.2}: {} with {}", ours - paper, one.name, other.name)
    });
    let what = "1(a): mean difference of the index from the paper's, by round-trip time and buffer".to_owned();
    let ours = shown.collect::<Vec<_>>().join(", ");
    Finding::of_words(
        best.figure,
        what,
        "0; 100 ms, and a buffer that is not stated",
        ours,
        format!("{best} is nearest{worst}"),
    )
}

fn close(results: &Results, settings: &[Setting<'_>], best: Setting<'_>) -> Finding {
    let shown = settings.iter().map(|setting| format!("{setting}: {:.0}", 100.0 * setting.close(results)));
    let what = format!("1(a): percent of pairs within {CLOSE} of the paper's index");
    let ours = shown.collect::<Vec<_>>().join(", ");
    Finding::of_words(best.figure, what, "100", ours, format!("{} pairs", best.pairs(results).count()))
}

/// The mean index of pairs within a group, or of pairs from two groups.
fn groups(results: &Results, setting: Setting<'_>, within: bool) -> Finding {
    let chosen = || setting.pairs(results).filter(|([one, other], ..)| (one.group == other.group) == within);
    let what = if within { "within a group" } else { "from two groups" };
    let (paper, ours) = (mean(chosen().map(|(.., paper)| paper)), mean(chosen().map(|(_, ours, _)| ours)));
    let [paper_shown, ours_shown] = [paper, ours].map(|value| format!("{value:.2}"));
    Finding {
        figure: setting.figure,
        what: format!("1(a): mean index of pairs {what}"),
        paper: paper_shown,
        ours: ours_shown,
        difference: Some(ours / paper - 1.0),
        why: format!("{} pairs, {setting}", chosen().count()),
    }
}

/// How often a control that reacts to losses leaves little to BBR, Vegas or LoLa, or the reverse.
fn starved(results: &Results, setting: Setting<'_>) -> Finding {
    const UNFAIR: f64 = 0.7;
    let reacts = |control: &Control| matches!(control.group, FlowGroup::LossBased | FlowGroup::LossDelay);
    let mixed: Vec<_> = setting.pairs(results).filter(|([one, other], ..)| reacts(one) != reacts(other)).collect();
    let below = |index: fn(&([&Control; 2], f64, f64)) -> f64| mixed.iter().filter(|pair| index(pair) < UNFAIR).count();
    let fair = mixed.iter().filter(|(_, ours, _)| *ours >= UNFAIR);
    let fair: Vec<_> =
        fair.map(|([one, other], ours, _)| format!("{} with {} {ours:.2}", one.name, other.name)).collect();
    let why =
        if fair.is_empty() { format!("{setting}") } else { format!("{setting}; the others: {}", fair.join(", ")) };
    Finding::of_words(
        setting.figure,
        format!("1(a): pairs below {UNFAIR} of those of a loss-based or loss-delay control with BBR, Vegas or LoLa"),
        &format!("{} of {}", below(|(.., paper)| *paper), mixed.len()),
        format!("{} of {}", below(|(_, ours, _)| *ours), mixed.len()),
        why,
    )
}

fn compared(ours: f64, paper: f64) -> String {
    format!("{ours:.2} / {paper:.2} ({:+.2})", ours - paper)
}

/// The matrix of the nearest setting. It is symmetric, so half of it is empty.
fn matrix(results: &Results, setting: Setting<'_>) -> Table {
    let controls: Vec<_> =
        Control::existing().filter(|it| setting.pairs(results).any(|([one, _], ..)| one.tcp == it.tcp)).collect();
    let rows = controls.iter().map(|one| {
        let cells = controls.iter().map(|other| {
            let pair = setting.pairs(results).find(|([a, b], ..)| a.tcp == one.tcp && b.tcp == other.tcp);
            pair.map_or_else(String::new, |(_, ours, paper)| compared(ours, paper))
        });
        [one.name.to_owned()].into_iter().chain(cells).collect()
    });
    let names = controls.iter().map(|control| control.name.to_owned());
    let part = if setting.figure == KERNEL { "runs for the kernel's TCP, " } else { "" };
    Table {
        title: format!("Figure 1(a): fairness of two flows, {part}{setting}; ours / the paper's (difference)"),
        columns: [CONTROL.to_owned()].into_iter().chain(names).collect(),
        rows: rows.collect(),
    }
}

/// The paper's value for a control and a difference.
fn printed(control: &Control, point: &Point) -> f64 {
    let row = (point.number(DIFFERENCE) / STEP_MS as f64).round() as usize;
    row.checked_sub(1).and_then(|row| paper::RTT_FAIRNESS.get(row)).map_or(f64::NAN, |row| row[control.column()])
}

fn rtts_of<'a>(results: &'a Results, control: &'static Control) -> impl Iterator<Item = &'a Point> {
    results.of(RTTS).filter(move |point| point.parameter(CONTROL) == control.name)
}

fn rtts(results: &Results) -> Finding {
    let apart = |control: &'static Control| -> Vec<f64> {
        rtts_of(results, control).map(|point| point.value(JAIN) - printed(control, point)).collect()
    };
    let all: Vec<_> = Control::existing().map(|control| (control, apart(control))).collect();
    let absolute = mean(all.iter().flat_map(|(_, apart)| apart).map(|apart| apart.abs()));
    let shown = all.iter().filter(|(_, apart)| !apart.is_empty());
    let shown = shown.map(|(control, apart)| format!("{} {:+.2}", control.name, mean(apart.iter().copied())));
    let what = "1(b): mean difference of the index from the paper's".to_owned();
    let why = format!("with its sign, by control: {}", shown.collect::<Vec<_>>().join(", "));
    Finding::of_words(RTTS, what, "0", format!("{absolute:.3}"), why)
}

fn by_difference(results: &Results) -> Table {
    let controls: Vec<_> = Control::existing().filter(|control| rtts_of(results, control).next().is_some()).collect();
    let mut differences: Vec<_> = results.of(RTTS).map(|point| point.parameter(DIFFERENCE)).collect();
    differences.sort_by_key(|difference| difference.parse::<u64>().unwrap_or(0));
    differences.dedup();
    let rows = differences.into_iter().map(|difference| {
        let cells = controls.iter().map(|control| {
            let point = rtts_of(results, control).find(|point| point.parameter(DIFFERENCE) == difference);
            point.map_or_else(String::new, |point| compared(point.value(JAIN), printed(control, point)))
        });
        [difference.to_owned()].into_iter().chain(cells).collect()
    });
    let names = controls.iter().map(|control| control.name.to_owned());
    Table {
        title: "Figure 1(b): fairness of two flows of one congestion control; ours / the paper's (difference)"
            .to_owned(),
        columns: [DIFFERENCE.to_owned()].into_iter().chain(names).collect(),
        rows: rows.collect(),
    }
}
