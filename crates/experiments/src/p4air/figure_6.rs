//! Figure 6: the group of one flow that is alone on a link, as the thresholds of the fingerprint vary.
//!
//! The link sends 1000 packets a second and its queue holds 100, as for figure 3; no action is applied. While one
//! threshold varies, the others are the paper's choice ([`CHOSEN`]).
//!
//! Where the paper is open:
//!
//! - *Ten round-trip times* "from 50 ms to 150 ms with a step of 10 ms" are eleven. All eleven run.
//! - *Ten runs* of a time differ on the paper's testbed by its noise. A simulated flow alone repeats itself, so runs
//!   differ here by the seed, by up to half a millisecond of the round-trip time, which is as much as the paper's
//!   figure 7(a) finds, and by when they start, up to a tenth of a second. Both are spread evenly over the runs.
//! - *The duration* is 600 round trips: the paper's latest mean is in round trip 556.

use super::paper::{self, CHOSEN, Control, TUNINGS, Threshold, Tuning};
use super::{CONTROL, data_of, needed_program};
use crate::error::{Error, Result};
use crate::outcome::{Finding, Outcome, Table};
use crate::plot::{Axis, Line, Plot};
use crate::results::{Point, Results, Values};
use crate::study::Cell;
use queuescope_report::model::SweepMean;
use queuescope_sim::Simulation;
use queuescope_sketch::FlowGroup;

/// The figure of the cells with the paper's choice of thresholds.
pub const CHOICE: &str = "figure-6";

/// The round-trip times, in ms.
const RTTS: [u64; 11] = [50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150];

/// How much is run.
struct Plan {
    controls: Vec<&'static Control>,
    /// The runs with the paper's choice, and with each other value of a threshold: equally many of each round-trip time.
    runs: [u64; 2],
    /// The number of a threshold's values that are skipped after each.
    skipped: usize,
    round_trips: u64,
}

impl Plan {
    fn new(small: bool) -> Self {
        let rtts = RTTS.len() as u64;
        if small {
            let few = ["cubic", "bbr", "vegas"];
            let controls = Control::existing().filter(|control| few.contains(&control.tcp)).collect();
            Self { controls, runs: [2, 1], skipped: 2, round_trips: 200 }
        } else {
            Self { controls: Control::existing().collect(), runs: [10 * rtts, 3 * rtts], skipped: 0, round_trips: 600 }
        }
    }
}

/// What readers must know about the runs.
pub fn remark(small: bool) -> String {
    let Plan { runs: [choice, other], round_trips, .. } = Plan::new(small);
    format!(
        "Figure 6: {round_trips} round trips; {choice} runs of each control with the paper's thresholds and {other} with others, where \
         the paper has 100 runs of each."
    )
}

pub fn cells(small: bool) -> Vec<Cell> {
    let plan = Plan::new(small);
    let mut cells = Vec::new();
    for control in &plan.controls {
        for run in 1..=plan.runs[0] {
            cells.push(cell(&plan, CHOICE, control, CHOSEN, run));
        }
        for tuning in &TUNINGS {
            for value in tuning.values.iter().step_by(1 + plan.skipped) {
                let mut thresholds = CHOSEN;
                thresholds[tuning.threshold as usize] = *value;
                for run in 1..=plan.runs[1] {
                    cells.push(cell(&plan, tuning.figure, control, thresholds, run));
                }
            }
        }
    }
    cells
}

/// A run. Its number chooses the round-trip time, in turn, and what differs among the runs of one.
fn cell(plan: &Plan, figure: &'static str, control: &Control, thresholds: [u8; 3], run: u64) -> Cell {
    let rtt_ms = RTTS[(run - 1) as usize % RTTS.len()];
    // Multiples of the golden ratio, and of the square root of two, are spread evenly over the interval.
    let spread = |step: u64, range: u64| run * step % 1_000_000 * range / 1_000_000;
    let rtt_us = rtt_ms * 1_000 - 500 + spread(618_034, 1_001);
    let start_us = spread(414_214, 100_000);
    let duration_us = start_us + plan.round_trips * rtt_us;
    let [loss_delay, loss_based, model_based] = thresholds;
    let scenario = format!(
        "seed = {run}\nduration = \"{duration_us}us\"\n\n[access]\nrate = \"1gbps\"\ndelay = \"1ms\"\n\n[link]\nrate = \"12mbps\"\n\
         delay = \"10ms\"\nlimit = \"100packets\"\n\n[link.pipeline.p4air.actions]\ndelay-based = \"nothing\"\nloss-delay = \"nothing\"\n\
         loss-based = \"nothing\"\nmodel-based = \"nothing\"\n\n[link.pipeline.p4air.fingerprint]\nloss-delay-after = {loss_delay}\n\
         loss-based-after = {loss_based}\nmodel-based-after = {model_based}\n\n[[flows]]\nname = \"flow\"\ntcp = \"{}\"\nrtt = \
         \"{rtt_us}us\"\nstart = \"{start_us}us\"\n",
        control.tcp
    );
    let mut parameters = vec![(CONTROL, control.name.to_owned())];
    let symbols = [Threshold::LossDelay, Threshold::LossBased, Threshold::ModelBased].map(Threshold::symbol);
    parameters.extend(symbols.into_iter().zip(thresholds.map(|value| value.to_string())));
    Cell { figure, parameters, seed: run, scenario }
}

/// The round-trip time that the switch found in the handshake, in ms.
const RTT: &str = "RTT (ms)";

/// Whether the flow ever entered a group, in percent.
fn entered(group: FlowGroup) -> String {
    format!("entered {} (%)", group.name())
}

/// In which of its round trips.
fn round(group: FlowGroup) -> String {
    format!("round trip of {}", group.name())
}

/// Whether the flow ended in a group, in percent.
fn ended(group: FlowGroup) -> String {
    format!("ended {} (%)", group.name())
}

/// Which groups the flow entered and when, and in which one it ended.
pub fn measure(cell: &Cell, simulation: &Simulation) -> Result<Values> {
    let program = needed_program(simulation)?;
    let flows = simulation.flows();
    let flow = flows.first().map(data_of).ok_or_else(|| Error::lacks(format!("{}: there is no flow", cell.name())))?;
    let last = program.group(flow);
    let percent = |is_so: bool| if is_so { 100.0 } else { 0.0 };
    let mut values = Values::new();
    for group in FlowGroup::LONG_LIVED {
        let first = program.moves().iter().find(|change| change.flow == flow && change.to == group);
        values.insert(entered(group), percent(first.is_some()));
        values.insert(ended(group), percent(last == Some(group)));
        values.extend(first.map(|change| (round(group), f64::from(change.round))));
    }
    values.extend(program.rtt(flow).map(|rtt| (RTT.to_owned(), rtt.as_secs_f64() * 1e3)));
    Ok(values)
}

pub fn outcome(results: &Results) -> Outcome {
    let mut outcome = Outcome { findings: verdicts(results), ..Outcome::default() };
    outcome.tables.extend(choice(results));
    for tuning in &TUNINGS {
        if results.of(tuning.figure).next().is_none() {
            continue;
        }
        outcome.findings.extend([percents(results, tuning), rounds(results, tuning)]);
        let group = tuning.threshold.group();
        let [first, second] = tuning.letters;
        let (name, symbol) = (group.name(), tuning.threshold.symbol());
        let title = |letter, what: &str| {
            format!("Figure 6({letter}): {what} {name} group, by {symbol}; ours / the paper's (difference)")
        };
        outcome.tables.push(table(
            results,
            tuning,
            title(first, "percentage of flows that entered the"),
            |point, paper| compared(point.mean(&entered(group)), Some(paper.0), 0),
        ));
        outcome.tables.push(table(
            results,
            tuning,
            title(second, "mean round trip in which flows entered the"),
            |point, paper| compared(point.mean(&round(group)), paper.1, 1),
        ));
        outcome.plots.push(plot(results, tuning));
    }
    outcome
}

/// How far below the paper's percentage ours may be.
const TOLERANCE: f64 = 5.0;

/// For each control, whether as many flows end in the paper's group as in the paper.
fn verdicts(results: &Results) -> Vec<Finding> {
    let verdict = |control: &'static Control, point: &Point| {
        let (paper, ours) = (paper::in_its_group(control), point.value(&ended(control.group)));
        let others = FlowGroup::LONG_LIVED.into_iter().filter(|group| *group != control.group);
        let others = others.map(|group| (group, point.value(&ended(group)))).filter(|(_, percent)| *percent > 0.0);
        let others: Vec<_> = others.map(|(group, percent)| format!("{} {percent:.0} %", group.name())).collect();
        let others = if others.is_empty() { String::new() } else { format!("; the others end {}", others.join(", ")) };
        let reached =
            if ours >= paper - TOLERANCE { "as in the paper, to 5 points" } else { "fewer than in the paper" };
        let why = format!("{reached}; runs: {}{others}", point.runs.len());
        let what = format!("{} ends {} (% of runs)", control.name, control.group.name());
        Finding::of_numbers(CHOICE, &what, paper, ours, why)
    };
    let points = results.of(CHOICE);
    points.filter_map(|point| Some(verdict(control_of(point)?, point))).collect()
}

fn control_of(point: &Point) -> Option<&'static Control> {
    Control::existing().find(|control| control.name == point.parameter(CONTROL))
}

/// In which group flows end with the paper's thresholds, and when they entered those before.
fn choice(results: &Results) -> Option<Table> {
    let row = |point: &Point| {
        let ended = FlowGroup::LONG_LIVED.map(|group| point.shown(&ended(group), 0));
        let rounds = FlowGroup::LONG_LIVED.map(|group| point.shown(&round(group), 1));
        [point.parameter(CONTROL).to_owned()].into_iter().chain(ended).chain(rounds).collect()
    };
    let rows: Vec<_> = results.of(CHOICE).map(row).collect();
    let names = FlowGroup::LONG_LIVED.map(FlowGroup::name);
    let ended = names.map(|name| format!("{name} (%)"));
    let rounds = names.map(|name| format!("{name} at round trip"));
    (!rows.is_empty()).then(|| Table {
        title: "The groups in which flows end with the thresholds 4, 12, 4, and the mean round trips in which they enter them"
            .to_owned(),
        columns: [CONTROL.to_owned()].into_iter().chain(ended).chain(rounds).collect(),
        rows,
    })
}

/// The points of a tuning, with their control, the value of its threshold, and what the paper has for both.
fn points<'a>(
    results: &'a Results,
    tuning: &'static Tuning,
) -> impl Iterator<Item = (&'a Point, &'static Control, u8, (f64, Option<f64>))> {
    results.of(tuning.figure).filter_map(|point| {
        let (control, value) = (control_of(point)?, point.parameter(tuning.threshold.symbol()).parse().ok()?);
        Some((point, control, value, tuning.paper(control, value)))
    })
}

/// How far the percentages of a tuning are from the paper's.
fn percents(results: &Results, tuning: &'static Tuning) -> Finding {
    let name = entered(tuning.threshold.group());
    let apart: Vec<_> = points(results, tuning)
        .map(|(point, control, value, (paper, _))| (point.value(&name) - paper, control.name, value))
        .filter(|(apart, ..)| apart.is_finite())
        .collect();
    let all = apart.len().max(1) as f64;
    let mean = apart.iter().map(|(apart, ..)| apart.abs()).sum::<f64>() / all;
    let near = apart.iter().filter(|(apart, ..)| apart.abs() <= TOLERANCE).count();
    let worst = apart.iter().max_by(|one, other| one.0.abs().total_cmp(&other.0.abs()));
    let symbol = tuning.threshold.symbol();
    let worst = worst.map_or_else(String::new, |(apart, control, value)| {
        format!("; the largest difference is {apart:+.0}: {control}, {symbol} = {value}")
    });
    let what = format!("6({}): points to the paper's percentage, on average", tuning.letters[0]);
    let why = format!("{near} of {} are within 5 points{worst}", apart.len());
    Finding::of_words(tuning.figure, what, "0", format!("{mean:.1}"), why)
}

/// How early flows enter a group relative to the paper's.
fn rounds(results: &Results, tuning: &'static Tuning) -> Finding {
    let name = round(tuning.threshold.group());
    let ratios: Vec<f64> = points(results, tuning)
        .filter_map(|(point, .., (_, paper))| Some(point.mean(&name)?.mean / paper?))
        .filter(|ratio| *ratio > 0.0)
        .collect();
    let count = ratios.len();
    let ours = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count as f64).exp();
    let (least, most) =
        ratios.iter().fold((f64::MAX, 0.0), |(least, most): (f64, f64), it| (least.min(*it), most.max(*it)));
    let what = format!("6({}): our round trip over the paper's, geometric mean", tuning.letters[1]);
    if count == 0 {
        return Finding::of_words(
            tuning.figure,
            what,
            "1",
            "-".to_owned(),
            "no flow entered the group in both".to_owned(),
        );
    }
    let why = format!("{count} values that both have, {least:.2} to {most:.2}");
    Finding::of_words(tuning.figure, what, "1", format!("{ours:.2}"), why)
}

/// Ours, the paper's, and the difference.
fn compared(ours: Option<SweepMean>, paper: Option<f64>, digits: usize) -> String {
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"));
    let ours = ours.map(|mean| mean.mean);
    let difference = ours.zip(paper).map_or_else(String::new, |(ours, paper)| format!(" ({:+.digits$})", ours - paper));
    format!("{} / {}{difference}", shown(ours), shown(paper))
}

/// A row for each control and a column for each value of the threshold.
fn table(
    results: &Results,
    tuning: &'static Tuning,
    title: String,
    cell: impl Fn(&Point, (f64, Option<f64>)) -> String,
) -> Table {
    let symbol = tuning.threshold.symbol();
    let mut values: Vec<u8> = points(results, tuning).map(|(_, _, value, _)| value).collect();
    values.sort_unstable();
    values.dedup();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for control in Control::existing() {
        let of =
            |wanted: &u8| points(results, tuning).find(|(_, own, value, _)| own.tcp == control.tcp && value == wanted);
        let cells: Vec<_> = values
            .iter()
            .map(|value| of(value).map_or_else(String::new, |(point, .., paper)| cell(point, paper)))
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            rows.push([control.name.to_owned()].into_iter().chain(cells).collect());
        }
    }
    let columns = [CONTROL.to_owned()].into_iter().chain(values.iter().map(|value| format!("{symbol} = {value}")));
    Table { title, columns: columns.collect(), rows }
}

/// The percentage of flows that entered the group, by threshold, with a line for each control.
fn plot(results: &Results, tuning: &'static Tuning) -> Plot {
    let (group, symbol) = (tuning.threshold.group(), tuning.threshold.symbol());
    let name = entered(group);
    let line = |control: &'static Control| {
        let own = points(results, tuning).filter(|(_, own, ..)| own.tcp == control.tcp);
        let points = own.filter_map(|(point, _, value, _)| {
            // Shares of runs have no interval of a mean.
            Some((f64::from(value), SweepMean { half_width: None, ..point.mean(&name)? }))
        });
        Line { name: control.name.to_owned(), points: points.collect() }
    };
    let lines = Control::existing().map(line).filter(|line| !line.points.is_empty());
    Plot {
        name: tuning.figure,
        title: format!("Flows that entered the {} group, alone on a link of 1000 packets/s", group.name()),
        axes: [Axis::linear(symbol), Axis::linear("flows (%)")],
        lines: lines.collect(),
    }
}
