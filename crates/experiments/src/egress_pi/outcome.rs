//! The outcome of the comparison.

use super::contenders::{OURS, OURS_DROPS, OnASwitch, on_a_switch};
use super::{AQM, DELAY, FLOWS, GOODPUT, GRID, JAIN, LEFT_ALONE, LOSS, OperatingPoint, P99, RATE, RTT, SETTING};
use crate::outcome::{Finding, Outcome, Table};
use crate::plot::{Axis, Plot, line};
use crate::results::{Point, Results};
use std::collections::BTreeMap;

/// The largest mean delay relative to the need, and the least goodput relative to the best, as factors.
const LONGEST: f64 = 1.25;
const LEAST: f64 = 0.97;
/// Delays within this factor count as equal.
const SAME: f64 = 1.05;

/// All tables, plots and findings.
pub fn outcome(results: &Results) -> Outcome {
    let runs: Vec<_> = results.of(GRID).map(Run::new).collect();
    let mut places: BTreeMap<Key, Vec<&Run>> = BTreeMap::new();
    runs.iter().for_each(|run| places.entry(run.place).or_default().push(run));
    let places: Vec<_> = places.into_iter().filter_map(|(key, runs)| Comparison::new(key, &runs)).collect();
    let findings = vec![delay(&places), goodput(&places), drops(&places)];
    let mut tables = vec![by_contender(&runs, &places), by_place(&places)];
    tables.extend(left_alone(results));
    Outcome { plots: plots(results), findings, tables, ..Outcome::default() }
}

/// The effect of leaving fewer or more packets alone, if that was run.
fn left_alone(results: &Results) -> Option<Table> {
    let row = |point: &Point| {
        let run = Run::new(point);
        vec![shown(run.place), run.setting, format!("{:.1}", run.goodput), format!("{:.0}", run.delay)]
    };
    let rows: Vec<_> = results.of(LEFT_ALONE).map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "What Egress PI leaves alone: packets that waited less".to_owned(),
        columns: ["place", "below", GOODPUT, DELAY].map(str::to_owned).into(),
        rows,
    })
}

/// Rate in Gb/s, round-trip time in microseconds, flows.
type Key = (u64, u64, u64);

/// A simulation.
#[derive(Debug)]
struct Run {
    name: String,
    setting: String,
    place: Key,
    goodput: f64,
    delay: f64,
    p99: f64,
    loss: f64,
    fairness: f64,
}

/// What was run at an operating point.
#[derive(Debug)]
struct Comparison<'a> {
    place: Key,
    need: f64,
    ours: &'a Run,
    drops: &'a Run,
    /// The one with the most goodput among the others that keep the queue as short.
    best: Option<&'a Run>,
}

impl Run {
    fn new(point: &Point) -> Self {
        let mean = |value| point.mean(value).map_or(f64::NAN, |mean| mean.mean);
        let whole = |name| point.parameter(name).parse().unwrap_or(0);
        Self {
            name: point.parameter(AQM).to_owned(),
            setting: point.parameter(SETTING).to_owned(),
            place: (whole(RATE), whole(RTT), whole(FLOWS)),
            goodput: mean(GOODPUT),
            delay: mean(DELAY),
            p99: mean(P99),
            loss: mean(LOSS),
            fairness: mean(JAIN),
        }
    }

    fn whole_name(&self) -> String {
        whole_name(&self.name, &self.setting)
    }
}

fn whole_name(name: &str, setting: &str) -> String {
    if setting.is_empty() { name.to_owned() } else { format!("{name} ({setting})") }
}

fn place((gigabits, rtt_us, flows): Key) -> OperatingPoint {
    OperatingPoint { gigabits, rtt_us, flows }
}

fn need(key: Key) -> f64 {
    place(key).need_us()
}

fn shown((gigabits, rtt, flows): Key) -> String {
    format!("{gigabits} Gb/s, {rtt} us, {flows} flow{}", if flows == 1 { "" } else { "s" })
}

impl<'a> Comparison<'a> {
    fn new(place: Key, runs: &[&'a Run]) -> Option<Self> {
        let named = |name: &str| runs.iter().copied().find(|run| run.name == name);
        let (ours, drops) = (named(OURS)?, named(OURS_DROPS)?);
        let others = runs.iter().copied().filter(|run| run.name != OURS && run.name != OURS_DROPS);
        let best = others
            .filter(|run| run.delay <= SAME * ours.delay)
            .max_by(|one, other| one.goodput.total_cmp(&other.goodput));
        Some(Self { place, need: need(place), ours, drops, best })
    }

    /// Our goodput relative to the best, if another one keeps the queue as short.
    fn share(&self) -> Option<f64> {
        self.best.map(|best| self.ours.goodput / best.goodput)
    }
}

/// The operating point at which a value is highest.
fn most<'a, 'b>(
    places: &'a [Comparison<'b>],
    value: impl Fn(&Comparison<'b>) -> f64,
) -> Option<(&'a Comparison<'b>, f64)> {
    places.iter().map(|place| (place, value(place))).max_by(|one, other| one.1.total_cmp(&other.1))
}

fn delay(places: &[Comparison]) -> Finding {
    let ratio = |place: &Comparison| place.ours.delay / place.need;
    let held = places.iter().filter(|place| ratio(place) <= LONGEST).count();
    let why = most(places, ratio)
        .map_or(String::new(), |(place, ratio)| format!("the longest is {ratio:.2} of it: {}", shown(place.place)));
    Finding {
        figure: GRID,
        what: "places with a mean delay of at most 1.25 max(125 us, two packets a flow)".to_owned(),
        paper: places.len().to_string(),
        ours: held.to_string(),
        difference: None,
        why,
    }
}

fn goodput(places: &[Comparison]) -> Finding {
    let beside: Vec<_> = places.iter().filter_map(|place| Some((place, place.share()?))).collect();
    let near = beside.iter().filter(|(_, share)| *share >= LEAST).count();
    let mut why =
        beside.iter().min_by(|one, other| one.1.total_cmp(&other.1)).map_or(String::new(), |(place, share)| {
            let best = place.best.map_or("-".to_owned(), Run::whole_name);
            format!("the least is {:.1} % of the best, {best}: {}", 100.0 * share, shown(place.place))
        });
    let alone = places.len() - beside.len();
    if alone > 0 {
        why.push_str(&format!("; in {alone} more no other is as short"));
    }
    Finding {
        figure: GRID,
        what: "places with a goodput within 3 % of the best of those that hold the queue as short".to_owned(),
        paper: beside.len().to_string(),
        ours: near.to_string(),
        difference: None,
        why,
    }
}

fn drops(places: &[Comparison]) -> Finding {
    let lost = |place: &Comparison| 1.0 - place.drops.goodput / place.ours.goodput;
    let mean = places.iter().map(lost).sum::<f64>() / places.len() as f64;
    let why = most(places, lost)
        .map_or(String::new(), |(place, lost)| format!("the most is {:.1} %: {}", 100.0 * lost, shown(place.place)));
    Finding {
        figure: GRID,
        what: "goodput that drops in place of marks cost, on average (%)".to_owned(),
        paper: "stated".to_owned(),
        ours: format!("{:.1}", 100.0 * mean),
        difference: None,
        why,
    }
}

/// A row for each way and setting.
fn by_contender(runs: &[Run], places: &[Comparison]) -> Table {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for run in runs {
        let name = (run.name.as_str(), run.setting.as_str());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let row = |(name, setting): (&str, &str)| {
        let own: Vec<_> = runs.iter().filter(|run| run.name == name && run.setting == setting).collect();
        let mean = |value: &dyn Fn(&Run) -> f64| own.iter().map(|run| value(run)).sum::<f64>() / own.len() as f64;
        let longest = own.iter().map(|run| run.delay / need(run.place)).fold(0.0, f64::max);
        let held = own.iter().filter(|run| run.delay <= LONGEST * need(run.place)).count();
        let least = own.iter().map(|run| run.fairness).fold(f64::INFINITY, f64::min);
        let [stages, memory, least_switch] = match on_a_switch(name) {
            OnASwitch::Fits { stages, memory, least } => {
                [stages.to_string(), memory.to_string(), if least { "yes" } else { "no" }.to_owned()]
            }
            OnASwitch::DoesNotFit => ["does not fit", "", "no"].map(str::to_owned),
            OnASwitch::NotDescribed => ["not described", "", ""].map(str::to_owned),
        };
        vec![
            whole_name(name, setting),
            stages,
            memory,
            least_switch,
            format!("{:.1}", mean(&|run| run.goodput)),
            held.to_string(),
            format!("{longest:.1}"),
            format!("{:.1}", mean(&|run| run.p99 / need(run.place))),
            format!("{:.2}", mean(&|run| run.loss)),
            format!("{:.3}", mean(&|run| run.fairness)),
            format!("{least:.2}"),
        ]
    };
    Table {
        title: format!(
            "All {} places: stages and memory of a Tofino, and whether the least of switches runs it; delays over \
             max(125 us, two packets a flow)",
            places.len()
        ),
        columns: [
            AQM,
            "stages",
            "SRAM blocks",
            "least switch",
            "mean goodput (%)",
            "places held",
            "longest mean delay",
            "mean p99",
            "mean loss (%)",
            "mean fairness",
            "least",
        ]
        .map(str::to_owned)
        .into(),
        rows: names.into_iter().map(row).collect(),
    }
}

/// A row for each operating point.
fn by_place(places: &[Comparison]) -> Table {
    let row = |beside: &Comparison| {
        let Comparison { place: key, need, ours, drops, best } = beside;
        let (gigabits, rtt, flows) = key;
        vec![
            gigabits.to_string(),
            rtt.to_string(),
            flows.to_string(),
            Some(place(*key).periods())
                .filter(|periods| *periods < 100.0)
                .map_or("> 100".to_owned(), |periods| format!("{periods:.1}")),
            format!("{need:.0}"),
            format!("{:.1}", ours.goodput),
            format!("{:.0}", ours.delay),
            format!("{:.0}", ours.p99),
            format!("{:.3}", ours.loss),
            format!("{:.3}", ours.fairness),
            best.map_or("-".to_owned(), |best| format!("{:.1}", best.goodput)),
            best.map_or("none is as short".to_owned(), Run::whole_name),
            format!("{:.1}", drops.goodput),
            format!("{:.0}", drops.delay),
            format!("{:.3}", drops.loss),
        ]
    };
    Table {
        title: "Egress PI in each place; beside it the best that holds the queue as short, and itself with drops. \
                Periods: how many of CUBIC's falls and rises count; with less than two the start of the flows decides"
            .to_owned(),
        columns: [
            RATE,
            RTT,
            FLOWS,
            "periods",
            "need (us)",
            GOODPUT,
            DELAY,
            P99,
            LOSS,
            JAIN,
            "best (%)",
            "who",
            "drops: goodput (%)",
            "delay (us)",
            "loss (%)",
        ]
        .map(str::to_owned)
        .into(),
        rows: places.iter().map(row).collect(),
    }
}

/// Plots over the number of flows, at 350 us.
fn plots(results: &Results) -> Vec<Plot> {
    const NAMES: [(&str, &str, &str); 3] = [
        ("1", "delay-1gbps", "goodput-1gbps"),
        ("10", "delay-10gbps", "goodput-10gbps"),
        ("100", "delay-100gbps", "goodput-100gbps"),
    ];
    const LINES: [&str; 6] = [OURS, "step", "CoDel", "PIE", "PI2", "PIE_DP"];
    let mut plots = Vec::new();
    for (rate, delay, goodput) in NAMES {
        let here = |point: &&Point| point.parameter(RATE) == rate && point.parameter(RTT) == "350";
        if results.of(GRID).filter(here).count() == 0 {
            continue;
        }
        for (name, value, upwards) in
            [(delay, DELAY, Axis::logarithmic(DELAY)), (goodput, GOODPUT, Axis::linear(GOODPUT))]
        {
            let lines = LINES.iter().filter_map(|way| {
                let own = || results.of(GRID).filter(here).filter(|point| point.parameter(AQM) == *way);
                // If there are several settings, the one in the middle.
                let mut settings: Vec<_> = own().map(|point| point.parameter(SETTING)).collect();
                settings.dedup();
                let first = settings.first()?;
                let setting = settings.iter().find(|setting| setting.ends_with("125us")).unwrap_or(first);
                let points = own().filter(|point| point.parameter(SETTING) == *setting);
                Some(line(whole_name(way, setting), points, FLOWS, value))
            });
            plots.push(Plot {
                name,
                title: format!("CUBIC at {rate} Gb/s and 350 us"),
                axes: [Axis::logarithmic(FLOWS), upwards],
                lines: lines.collect(),
            });
        }
    }
    plots
}
