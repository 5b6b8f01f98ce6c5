//! The report as JSON Lines: one object a line, each with its `kind`; the last is a `summary`.
//!
//! The schema is `docs/report.schema.json`; a test holds it against these types, and what the command writes against it.

use crate::model::{
    Acting, Alert, Answer, AqmComparison, AqmReplay, AqmSetup, Burst, Comparison, Culprits, FlowCount, Input,
    OtherQueue, Plan, Report, Setup, Sim, SketchScore, Sweep, SweepCell, SwitchFit, Tap, Totals, Why,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(title = "queuescope report line")]
pub enum Line {
    /// First: what was read, and how it was analysed.
    Analysis {
        /// Version of the program.
        version: String,
        /// What was read.
        input: Input,
        /// How it was analysed.
        setup: Box<Setup>,
    },
    /// Second, of `queuescope tap`: how packets were matched before and behind the router, and by which clocks.
    Tap(Box<Tap>),
    /// Second, of `queuescope sim`: what was simulated, and what became of links and flows.
    Sim(Box<Sim>),
    /// A burst, in order of time.
    Burst(Box<Burst>),
    /// Of `queuescope live`, when it happens: acting on flows has stopped, went on, or is another.
    Acting(Acting),
    /// The bursts and the summary that follow are of another queue of the same simulation.
    Queue {
        /// The link behind it.
        link: String,
        /// Time of its first packet, since the start of the simulation.
        first_ns: u64,
        /// How it was analysed.
        setup: Box<Setup>,
    },
    /// A cell of a sweep, in order.
    SweepCell(Box<SweepCell>),
    /// Last, of a sweep: each combination of values over its seeds.
    Sweep(Box<Sweep>),
    /// The only line of `queuescope compare`: a scenario in both worlds.
    Comparison(Box<Comparison>),
    /// Of `queuescope analyze --compare-aqm`: what a discipline does with the packets of the capture.
    AqmReplay(Box<AqmReplay>),
    /// Last, of `queuescope analyze --compare-aqm`: what all disciplines have in common.
    AqmComparison(Box<AqmSetup>),
    /// A line of `queuescope watch`: a trigger fired.
    Alert(Alert),
    /// The only line of `queuescope why`: the culprits of a victim or a moment.
    Why(Box<Why>),
    /// Of `queuescope p4 fit`: an algorithm on a switch.
    Fit(Box<SwitchFit>),
    /// Of `queuescope query`: a packet, a group of packets or all of them.
    Row {
        /// What was selected, by its name; numbers beyond 64 bits, addresses and bytes as text.
        values: serde_json::Map<String, serde_json::Value>,
    },
    /// Last, of `queuescope query`.
    Answer(Answer),
    /// The only line of `queuescope query --explain`.
    Plan(Plan),
    /// Last, of each queue: counts and extremes over the whole input.
    Summary(Box<Summary>),
}

/// Counts and extremes over the whole input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// Packets read.
    pub packets: u64,
    /// Their bytes, as the queue holds them: without what the link adds (`overhead_bytes` of the setup).
    pub bytes: u64,
    /// Flows seen at the first granularity.
    pub flows: u64,
    /// Bursts found.
    pub bursts: u64,
    /// Packets or events that were skipped, cut short or put right, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// The damage that ended the input early, if any.
    pub damage: Option<String>,
    /// Flows seen, for each granularity.
    pub flows_by_granularity: Vec<FlowCount>,
    /// The other counts and extremes.
    pub totals: Totals,
    /// The culprits over all bursts, for each granularity.
    pub culprits: Vec<Culprits>,
    /// How right the sketch was.
    pub sketch: Vec<SketchScore>,
}

/// Writes the report as JSON Lines.
///
/// # Errors
/// Those of `out`.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    write_first(report, out)?;
    if let Some(tap) = &report.tap {
        line(&Line::Tap(Box::new(tap.clone())), out)?;
    }
    if let Some(sim) = &report.sim {
        line(&Line::Sim(Box::new(sim.clone())), out)?;
    }
    found(report, out)?;
    for OtherQueue { link, report } in &report.others {
        let (first_ns, setup) = (report.input.first_ns, Box::new(report.setup.clone()));
        line(&Line::Queue { link: link.clone(), first_ns, setup }, out)?;
        found(report, out)?;
    }
    Ok(())
}

/// What was found in a queue.
fn found(report: &Report, out: &mut impl Write) -> io::Result<()> {
    report.bursts.iter().try_for_each(|burst| write_burst(burst, out))?;
    write_summary(report, out)
}

/// Writes the first line of a report: what was read, and how it is analysed. Who tells bursts as they end writes the other lines
/// with [`write_burst`] and [`write_summary`].
///
/// # Errors
/// Those of `out`.
pub fn write_first(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let first = Line::Analysis {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        input: report.input.clone(),
        setup: Box::new(report.setup.clone()),
    };
    line(&first, out)
}

/// Writes a burst as a JSON line.
///
/// # Errors
/// Those of `out`.
pub fn write_burst(burst: &Burst, out: &mut impl Write) -> io::Result<()> {
    line(&Line::Burst(Box::new(Burst { series: None, ..burst.clone() })), out)
}

/// Writes what happened to acting on flows as a JSON line.
///
/// # Errors
/// Those of `out`.
pub fn write_acting(acting: &Acting, out: &mut impl Write) -> io::Result<()> {
    line(&Line::Acting(acting.clone()), out)
}

/// Writes the last line of a report about one queue.
///
/// # Errors
/// Those of `out`.
pub fn write_summary(report: &Report, out: &mut impl Write) -> io::Result<()> {
    line(&Line::Summary(Box::new(summary(report))), out)
}

/// Writes the answer to `why` as a JSON line.
///
/// # Errors
/// Those of `out`.
pub fn write_why(why: &Why, out: &mut impl Write) -> io::Result<()> {
    line(&Line::Why(Box::new(why.clone())), out)
}

/// Writes whether an algorithm fits a switch as a JSON line.
///
/// # Errors
/// Those of `out`.
pub fn write_fit(fit: SwitchFit, out: &mut impl Write) -> io::Result<()> {
    line(&Line::Fit(Box::new(fit)), out)
}

/// Writes a cell of a sweep as a JSON line.
///
/// # Errors
/// Those of `out`.
pub fn write_sweep_cell(cell: SweepCell, out: &mut impl Write) -> io::Result<()> {
    line(&Line::SweepCell(Box::new(cell)), out)
}

/// Writes the summary of a sweep as a JSON line: the last.
///
/// # Errors
/// Those of `out`.
pub fn write_sweep(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    line(&Line::Sweep(Box::new(sweep.clone())), out)
}

/// Writes a comparison of both worlds as a JSON line: the only one.
///
/// # Errors
/// Those of `out`.
pub fn write_comparison(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    line(&Line::Comparison(Box::new(comparison.clone())), out)
}

/// Writes a capture behind several disciplines as JSON lines: each, and what they have in common.
///
/// # Errors
/// Those of `out`.
pub fn write_aqm_comparison(comparison: &AqmComparison, out: &mut impl Write) -> io::Result<()> {
    comparison.replays.iter().try_for_each(|replay| line(&Line::AqmReplay(Box::new(replay.clone())), out))?;
    line(&Line::AqmComparison(Box::new(comparison.setup.clone())), out)
}

/// The JSON schema of a line, as text.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Line);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

fn summary(report: &Report) -> Summary {
    Summary {
        packets: report.totals.packets,
        bytes: report.totals.bytes,
        flows: report.totals.flows.first().map_or(0, |count| count.flows),
        bursts: report.bursts.len() as u64 + report.bursts_left_out,
        skipped: report.skipped.iter().map(|skipped| (skipped.reason.clone(), skipped.count)).collect(),
        damage: report.input.damage.clone(),
        flows_by_granularity: report.totals.flows.clone(),
        totals: report.totals.clone(),
        culprits: report.culprits.clone(),
        sketch: report.sketch.clone(),
    }
}

fn line(line: &Line, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
