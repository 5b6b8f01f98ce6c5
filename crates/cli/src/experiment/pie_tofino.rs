//! The experiments with PIE on a switch (Kunze et al., IM 2021, section VII).
//!
//! - *Figure 5*: 100 Gb/s of datagrams before a link of 10 Gb/s for 5 s, then 5 Gb/s; nothing is dropped but by the full queue, and
//!   the probability is watched each 5 ms. It rises until it is 1, within a thousandth, and falls from the end of the overload until
//!   it is 0, within a thousandth. The two references mark instead of dropping, as the paper's were changed not to drop.
//! - *Figure 6*: 1 to 250 flows of CUBIC for 10 s, with a round-trip time of 350 us.
//!
//! The references are PIE as ns-3 has it, with the scaling of RFC 8033 and with that of ns-3 3.31. What the authors published
//! differs from what the paper states in three places; those are run as they are stated, and as they were published.

use super::plot::{Axis, Plot, line};
use super::results::{Point, Results, Values};
use super::tell::{Finding, Table, Told};
use super::{Cell, Study};
use anyhow::Result;
use queuescope_queue::PieGains;
use queuescope_report::model::Sim;

/// PIE on Tofino.
pub struct PieTofino;

impl Study for PieTofino {
    fn name(&self) -> &'static str {
        "pie-tofino"
    }

    fn source(&self) -> &'static str {
        "Kunze et al., Tofino + P4: A Strong Compound for AQM on High-Speed Networks?, IM 2021, section VII"
    }

    fn cells(&self, small: bool) -> Vec<Cell> {
        let seeds = 1..=if small { 1 } else { 30 };
        let flows: &[u32] = if small { &[10] } else { &[1, 2, 5, 10, 25, 50, 100, 250] };
        let mut cells = Vec::new();
        for algorithm in Algorithm::ALL {
            let name = algorithm.name().to_owned();
            for seed in seeds.clone() {
                let scenario = figure_5(algorithm, seed, if small { 20 } else { 100 });
                cells.push(Cell { figure: FIGURE_5, parameters: vec![(WHO, name.clone())], seed, scenario });
            }
            for count in flows {
                for seed in seeds.clone() {
                    let parameters = vec![(WHO, name.clone()), (FLOWS, count.to_string())];
                    let scenario = figure_6(algorithm, *count, seed, if small { 1 } else { 10 });
                    cells.push(Cell { figure: FIGURE_6, parameters, seed, scenario });
                }
            }
        }
        cells
    }

    fn confidence(&self) -> f64 {
        0.99
    }

    fn measure(&self, cell: &Cell) -> Result<Values> {
        let sim = cell.simulate()?;
        if cell.figure == FIGURE_5 {
            return Ok(times(&sim).into_iter().map(|(name, seconds)| (name.to_owned(), seconds)).collect());
        }
        let mut values =
            Values::from([(GOODPUT.to_owned(), sim.groups.iter().map(|group| group.goodput_bps).sum::<f64>() / 1e9)]);
        if let Some(link) = sim.links.iter().find(|link| link.name == sim.meter) {
            let times = &link.sojourn;
            let delays = [
                (DELAY, times.mean_ns),
                (P50, times.p50_ns as f64),
                (P95, times.p95_ns as f64),
                (P99, times.p99_ns as f64),
            ];
            values.extend(delays.map(|(name, ns)| (name.to_owned(), ns / 1e3)));
        }
        Ok(values)
    }

    fn tell(&self, results: &Results) -> Told {
        let plots = [("figure-6-goodput", GOODPUT), ("figure-6-delay", DELAY)].map(|(name, value)| Plot {
            name,
            title: "CUBIC flows for 10 s at 10 Gb/s, 350 us, a buffer of 500 us, target 125 us".to_owned(),
            axes: [Axis::logarithmic(FLOWS), Axis::linear(value)],
            lines: Algorithm::ALL.map(|it| line(it.name(), of(results, FIGURE_6, it), (FLOWS, value))).into(),
        });
        let findings = [rises_and_falls(results), many_flows(results)].concat();
        Told { plots: plots.into(), findings, tables: vec![table_5(results), table_6(results)], ..Told::default() }
    }
}

const FIGURE_5: &str = "figure-5";
const FIGURE_6: &str = "figure-6";
const WHO: &str = "algorithm";
const FLOWS: &str = "flows";
const RISE: &str = "rise (s)";
const FALL: &str = "fall (s)";
const GOODPUT: &str = "goodput (Gb/s)";
const DELAY: &str = "mean delay (us)";
const P50: &str = "p50 delay (us)";
const P95: &str = "p95 delay (us)";
const P99: &str = "p99 delay (us)";

/// When the overload ends, in nanoseconds.
const OVERLOAD: u64 = 5_000_000_000;
/// Of the probability, what counts for nothing.
const NEARLY: f64 = 0.001;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Cp,
    Dp,
    Table,
    CpPublished,
    DpPublished,
    TablePublished,
    Rfc,
    Ns3,
}

impl Algorithm {
    const ALL: [Self; 8] = [
        Self::Cp,
        Self::Dp,
        Self::Table,
        Self::CpPublished,
        Self::DpPublished,
        Self::TablePublished,
        Self::Rfc,
        Self::Ns3,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Cp => "PIE_CP",
            Self::Dp => "PIE_DP",
            Self::Table => "PIE_TABLE",
            Self::CpPublished => "PIE_CP as published",
            Self::DpPublished => "PIE_DP as published",
            Self::TablePublished => "PIE_TABLE as published",
            Self::Rfc => "PIE, RFC scaling",
            Self::Ns3 => "PIE, ns-3 3.31 scaling",
        }
    }

    /// The lines of `[link]` that say what manages the queue, and whether it may drop.
    fn text(self, act: bool) -> String {
        let program = |name: &str, more: &str| format!("[link.pipeline.{name}]\nact = {act}\n{more}");
        match self {
            Self::Cp => program("pie-cp", ""),
            Self::CpPublished => program("pie-cp", "decay = \"as-published\"\n"),
            Self::Dp => program("pie-dp", ""),
            Self::DpPublished => program("pie-dp", "trend = \"as-published\"\n"),
            Self::Table => program("pie-table", ""),
            Self::TablePublished => program("pie-table", "layout = \"as-published\"\ntrend = \"as-published\"\n"),
            Self::Rfc => reference("rfc", act),
            Self::Ns3 => reference("ns3-old", act),
        }
    }
}

/// PIE as ns-3 has it, with the paper's gains.
fn reference(scaling: &str, act: bool) -> String {
    let PieGains { alpha, beta } = PieGains::tofino();
    // Above 1 nothing is dropped, whatever the probability.
    let mark_below = if act { "\"none\"" } else { "2.0" };
    format!(
        "[link.discipline.pie]\ntarget = \"125us\"\nupdate = \"117187ns\"\nalpha = {alpha:?}\nbeta = {beta:?}\nscaling = \"{scaling}\"\n\
         derandomise = false\nburst = \"ns3\"\nshort-queue = {{ packets = {{ count = 2 }} }}\nmark-below = {mark_below}\n"
    )
}

fn figure_5(algorithm: Algorithm, seed: u64, gigabits: u32) -> String {
    format!(
        "seed = {seed}\nduration = \"20s\"\n\n[access]\nrate = \"100gbps\"\ndelay = \"1us\"\n\n[link]\nrate = \"10gbps\"\n\
         delay = \"1us\"\nlimit = \"500us\"\n{}\n[[flows]]\nname = \"overload\"\nudp = {{ rate = \"{}gbps\", spacing = \"jittered\" }}\n\
         ecn = true\nstop = \"{OVERLOAD}ns\"\n\n[[flows]]\nname = \"half\"\nudp = {{ rate = \"5gbps\", spacing = \"jittered\" }}\n\
         ecn = true\n\n[record]\ninterval = \"5ms\"\n",
        algorithm.text(false),
        gigabits - 5
    )
}

fn figure_6(algorithm: Algorithm, flows: u32, seed: u64, seconds: u32) -> String {
    format!(
        "seed = {seed}\nduration = \"{seconds}s\"\n\n[access]\nrate = \"25gbps\"\ndelay = \"50us\"\n\n[link]\nrate = \"10gbps\"\n\
         delay = \"75us\"\nlimit = \"500us\"\n{}\n[[flows]]\nname = \"flows\"\ntcp = \"cubic\"\ncount = {flows}\nspread = \"10ms\"\n",
        algorithm.text(true)
    )
}

/// When the probability had risen, and how long it took to fall; neither if it did not.
fn times(sim: &Sim) -> Vec<(&'static str, f64)> {
    let probability = |sample: &queuescope_report::model::SimSample| sample.links.first()?.drop_probability;
    let mut samples = sim.samples.iter().filter_map(|sample| Some((sample.at_ns, probability(sample)?)));
    let risen = samples.find(|(_, probability)| *probability >= 1.0 - NEARLY).map(|(at, _)| at);
    let fallen =
        samples.find(|(at, probability)| *at >= OVERLOAD && *probability <= NEARLY).map(|(at, _)| at - OVERLOAD);
    let seconds = |ns: u64| ns as f64 / 1e9;
    [(RISE, risen.map(seconds)), (FALL, fallen.map(seconds))]
        .into_iter()
        .filter_map(|(name, seconds)| Some((name, seconds?)))
        .collect()
}

fn of<'a>(results: &'a Results, figure: &'static str, algorithm: Algorithm) -> impl Iterator<Item = &'a Point> {
    results.of(figure).filter(move |point| point.parameter(WHO) == algorithm.name())
}

fn mean(point: Option<&Point>, value: &str) -> f64 {
    point.and_then(|point| point.mean(value)).map_or(f64::NAN, |mean| mean.mean)
}

/// The algorithms from the shortest time to the longest.
fn order(results: &Results, value: &str, algorithms: [Algorithm; 5]) -> String {
    let mut times = algorithms.map(|it| (mean(of(results, FIGURE_5, it).next(), value), it.name()));
    times.sort_by(|one, other| one.0.total_cmp(&other.0));
    times.map(|(_, name)| name).join(" < ")
}

fn rises_and_falls(results: &Results) -> Vec<Finding> {
    use Algorithm::{Cp, CpPublished, Dp, DpPublished, Ns3, Rfc, TablePublished};
    let stated = [Cp, Dp, Algorithm::Table, Rfc, Ns3];
    let published = [CpPublished, DpPublished, TablePublished, Rfc, Ns3];
    let mut findings = Vec::new();
    for (what, value, paper) in [
        ("order of rise times", RISE, "PIE_TABLE < PIE_DP < both references < PIE_CP"),
        ("order of fall times", FALL, "PIE_CP < reference, both far below PIE_TABLE < PIE_DP"),
    ] {
        for (how, algorithms) in [("stated", stated), ("published", published)] {
            findings.push(Finding {
                figure: FIGURE_5,
                what: format!("{what}, as {how}"),
                paper: paper.to_owned(),
                ours: order(results, value, algorithms),
                difference: None,
                why: "times are in the table below".to_owned(),
            });
        }
    }
    findings
}

/// At the most flows.
fn many_flows(results: &Results) -> Vec<Finding> {
    let says = [
        (Algorithm::Cp, "near line rate", "above the target of 125"),
        (Algorithm::Dp, "about 50 %", "well below it"),
        (Algorithm::Table, "almost none", "well below it"),
    ];
    let mut findings = Vec::new();
    for (algorithm, goodput, delay) in says {
        let last = of(results, FIGURE_6, algorithm).last();
        let flows = last.map_or("-", |point| point.parameter(FLOWS));
        let name = algorithm.name();
        findings.push(Finding {
            figure: FIGURE_6,
            what: format!("goodput of {name} with {flows} flows (Gb/s)"),
            paper: goodput.to_owned(),
            ours: format!("{:.2}", mean(last, GOODPUT)),
            difference: None,
            why: format!(
                "references: {:.2} and {:.2}",
                mean(of(results, FIGURE_6, Algorithm::Rfc).last(), GOODPUT),
                mean(of(results, FIGURE_6, Algorithm::Ns3).last(), GOODPUT)
            ),
        });
        findings.push(Finding {
            figure: FIGURE_6,
            what: format!("mean delay of {name} with {flows} flows (us)"),
            paper: delay.to_owned(),
            ours: format!("{:.0}", mean(last, DELAY)),
            difference: None,
            why: format!(
                "references: {:.0} and {:.0}",
                mean(of(results, FIGURE_6, Algorithm::Rfc).last(), DELAY),
                mean(of(results, FIGURE_6, Algorithm::Ns3).last(), DELAY)
            ),
        });
    }
    findings
}

fn table_5(results: &Results) -> Table {
    let shown = |point: Option<&Point>, value| match point.and_then(|point| point.mean(value)) {
        Some(mean) => format!("{:.3} ± {:.3}", mean.mean, mean.half_width.unwrap_or(0.0)),
        None => "-".to_owned(),
    };
    let row = |it: Algorithm| {
        let point = || of(results, FIGURE_5, it).next();
        vec![it.name().to_owned(), shown(point(), RISE), shown(point(), FALL)]
    };
    Table {
        title: "Figure 5: times in which the probability rises to 1 and falls to 0 (-: it does not)".to_owned(),
        columns: [WHO, RISE, FALL].map(str::to_owned).into(),
        rows: Algorithm::ALL.map(row).into(),
    }
}

fn table_6(results: &Results) -> Table {
    let row = |point: &Point| {
        let shown = |value: &str, digits: usize| {
            point.mean(value).map_or("-".to_owned(), |mean| format!("{:.digits$}", mean.mean))
        };
        vec![
            point.parameter(WHO).to_owned(),
            point.parameter(FLOWS).to_owned(),
            shown(GOODPUT, 2),
            shown(DELAY, 0),
            shown(P95, 0),
            shown(P99, 0),
        ]
    };
    Table {
        title: "Figure 6".to_owned(),
        columns: [WHO, FLOWS, GOODPUT, DELAY, P95, P99].map(str::to_owned).into(),
        rows: results.of(FIGURE_6).map(row).collect(),
    }
}
