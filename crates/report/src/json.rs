//! The report as JSON Lines: one object per line, each with the `format_version` of its fields and its `kind`; the last one is a
//! `summary`.
//!
//! The schema is `docs/report.schema.json`. A test compares it with these types and with the command's output.

use crate::decimal::{self, Decimal};
use crate::model::{
    Acting, Alert, Answer, AqmComparison, AqmReplay, AqmSetup, Burst, Comparison, Culprits, FlowCount, Input,
    OtherQueue, P4air, Plan, Report, Setup, Sim, SketchScore, Sweep, SweepCell, SwitchCompiled, SwitchFit, Tap, Totals,
    Why,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The version of the format of JSON lines. It grows when a field gets another name, type or meaning; new fields do not
/// change it. Older lines have no `format_version`: they are of format 1. [`Line`] reads both.
pub const FORMAT_VERSION: u32 = 2;

/// One line of the output.
///
/// ```
/// use queuescope_report::json::Line;
///
/// // A line of `queuescope query --json`.
/// let line: Line = serde_json::from_str(r#"{"kind": "row", "values": {"dst_port": 443, "delay": 1200}}"#)?;
/// let Line::Row { values } = line else { return Err("another kind of line".into()) };
/// println!("waited {} ns", values["delay"]);
/// assert_eq!(values["delay"], 1200);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schemars(title = "queuescope report line")]
pub enum Line {
    /// First line: the input, and how it was analysed.
    Analysis {
        /// Version of the program.
        version: String,
        /// The input.
        input: Input,
        /// How it was analysed.
        setup: Box<Setup>,
    },
    /// Second line of `queuescope tap`: how packets were matched before and behind the router, and the clocks of the
    /// captures.
    Tap(Box<Tap>),
    /// Second line of `queuescope sim`: the scenario, and the results of its links and flows.
    Sim(Box<Sim>),
    /// A burst. Bursts are in order of time.
    Burst(Box<Burst>),
    /// Of `queuescope live`, when it happens: acting on flows stopped, resumed or changed.
    Acting(Acting),
    /// Of `queuescope live --p4air`, when flows or queues have moved, when it begins or stops acting, and at the end: the groups of flows and their
    /// queues.
    P4air(Box<P4air>),
    /// The following bursts and summary are of another queue of the same simulation.
    Queue {
        /// The link of the queue.
        link: String,
        /// Time of its first packet, since the start of the simulation.
        #[serde(with = "decimal")]
        #[schemars(with = "Decimal")]
        first_ns: u64,
        /// How it was analysed.
        setup: Box<Setup>,
    },
    /// A cell of a sweep. Cells are in order.
    SweepCell(Box<SweepCell>),
    /// Last line of a sweep: each combination of values over its seeds.
    Sweep(Box<Sweep>),
    /// The only line of `queuescope compare`: a scenario simulated and on real hosts.
    Comparison(Box<Comparison>),
    /// Of `queuescope analyze --compare-aqm`: the result of one discipline for the capture.
    AqmReplay(Box<AqmReplay>),
    /// Last line of `queuescope analyze --compare-aqm`: what all disciplines have in common.
    AqmComparison(Box<AqmSetup>),
    /// A line of `queuescope watch`: a trigger fired.
    Alert(Alert),
    /// The only line of `queuescope why`: the culprits of a victim or a moment.
    Why(Box<Why>),
    /// Of `queuescope p4 fit`: the fit of an algorithm on a switch.
    Fit(Box<SwitchFit>),
    /// Of `queuescope p4 report`: what the compiler gave a program, beside the placer.
    Compiled(Box<SwitchCompiled>),
    /// Of `queuescope query`: a packet, a group of packets, or all packets.
    Row {
        /// The selected values by name. Strings: addresses, bytes, sums, and integers of attributes with more than 53
        /// bits, such as points in time.
        values: serde_json::Map<String, Value>,
    },
    /// Last line of `queuescope query`.
    Answer(Answer),
    /// The only line of `queuescope query --explain`.
    Plan(Plan),
    /// Last line of each queue: counts and extremes over the whole input.
    Summary(Box<Summary>),
}

/// Counts and extremes over the whole input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    /// Packets read.
    pub packets: u64,
    /// Their bytes in the queue, without link overhead (`overhead_bytes` of the setup).
    #[serde(with = "decimal")]
    #[schemars(with = "Decimal")]
    pub bytes: u64,
    /// Number of flows at the first granularity.
    pub flows: u64,
    /// Number of bursts.
    pub bursts: u64,
    /// Packets or events that were skipped, cut short or corrected, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// The damage that ended the input early, if any.
    pub damage: Option<String>,
    /// Number of flows, for each granularity.
    pub flows_by_granularity: Vec<FlowCount>,
    /// The other counts and extremes.
    pub totals: Totals,
    /// The culprits over all bursts, for each granularity.
    pub culprits: Vec<Culprits>,
    /// Accuracy of the sketch.
    pub sketch: Vec<SketchScore>,
}

/// Writes the report as JSON Lines.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write(report: &Report, out: &mut impl Write) -> io::Result<()> {
    write_first(report, out)?;
    if let Some(tap) = &report.tap {
        write_line(&Line::Tap(Box::new(tap.clone())), out)?;
    }
    if let Some(sim) = &report.sim {
        write_line(&Line::Sim(Box::new(sim.clone())), out)?;
    }
    write_findings(report, out)?;
    for OtherQueue { link, report } in &report.others {
        let (first_ns, setup) = (report.input.first_ns, Box::new(report.setup.clone()));
        write_line(&Line::Queue { link: link.clone(), first_ns, setup }, out)?;
        write_findings(report, out)?;
    }
    Ok(())
}

/// Writes the bursts and the summary of a queue.
fn write_findings(report: &Report, out: &mut impl Write) -> io::Result<()> {
    report.bursts.iter().try_for_each(|burst| write_burst(burst, out))?;
    write_summary(report, out)
}

/// Writes the first line of a report: the input, and how it is analysed. To write bursts as they end, use
/// [`write_burst`] and [`write_summary`] for the other lines.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_first(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let first = Line::Analysis {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        input: report.input.clone(),
        setup: Box::new(report.setup.clone()),
    };
    write_line(&first, out)
}

/// Writes a burst as a JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_burst(burst: &Burst, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Burst(Box::new(Burst { series: None, ..burst.clone() })), out)
}

/// Writes a change of acting on flows as a JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_acting(acting: &Acting, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Acting(acting.clone()), out)
}

/// Writes the state of P4air as a JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_p4air(p4air: P4air, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::P4air(Box::new(p4air)), out)
}

/// Writes the last line of a report about one queue.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_summary(report: &Report, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Summary(Box::new(summary(report))), out)
}

/// Writes the answer to `why` as a JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_why(why: &Why, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Why(Box::new(why.clone())), out)
}

/// Writes the fit of an algorithm on a switch as a JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_fit(fit: SwitchFit, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Fit(Box::new(fit)), out)
}

/// Writes what the compiler gave a program as a JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_compiled(compiled: SwitchCompiled, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Compiled(Box::new(compiled)), out)
}

/// Writes a cell of a sweep as a JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_sweep_cell(cell: SweepCell, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::SweepCell(Box::new(cell)), out)
}

/// Writes the summary of a sweep as its last JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_sweep(sweep: &Sweep, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Sweep(Box::new(sweep.clone())), out)
}

/// Writes a comparison of simulation and real hosts as its only JSON line.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_comparison(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    write_line(&Line::Comparison(Box::new(comparison.clone())), out)
}

/// Writes a comparison of disciplines for one capture as JSON lines: one for each, and one for what they have in
/// common.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_aqm_comparison(comparison: &AqmComparison, out: &mut impl Write) -> io::Result<()> {
    comparison.replays.iter().try_for_each(|replay| write_line(&Line::AqmReplay(Box::new(replay.clone())), out))?;
    write_line(&Line::AqmComparison(Box::new(comparison.setup.clone())), out)
}

/// Writes a line with its format.
///
/// # Errors
/// Returns the first error of `out`.
pub fn write_line(line: &Line, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
    #[derive(Serialize)]
    struct Versioned<'a> {
        format_version: u32,
        #[serde(flatten)]
        line: &'a Line,
    }
    serde_json::to_writer(&mut *out, &Versioned { format_version: FORMAT_VERSION, line })?;
    out.write_all(b"\n")
}

/// The JSON schema of a line, as text.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(Line);
    for kind in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        let description = "Version of the format of this line.";
        kind["properties"]["format_version"] =
            json!({ "description": description, "type": "integer", "const": FORMAT_VERSION });
        if let Some(required) = kind["required"].as_array_mut() {
            required.insert(0, "format_version".into());
        }
    }
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    text
}

fn summary(report: &Report) -> Summary {
    Summary {
        packets: report.totals.packets,
        bytes: report.totals.bytes,
        flows: report.totals.flows.first().map_or(0, |count| count.flows),
        bursts: report.bursts.len() as u64 + report.bursts_omitted,
        skipped: report.skipped.iter().map(|skipped| (skipped.reason.clone(), skipped.count)).collect(),
        damage: report.input.damage.clone(),
        flows_by_granularity: report.totals.flows.clone(),
        totals: report.totals.clone(),
        culprits: report.culprits.clone(),
        sketch: report.sketch.clone(),
    }
}
