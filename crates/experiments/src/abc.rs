//! ABC's experiments (Menth et al., Future Internet 2019, section 6): two clients upload over one link.
//!
//! - *The link* is that of the paper's software switch, which sends 4170 packets a second, whatever their size. Here it
//!   has 50.04 Mb/s, and a packet has 1500 bytes, of which 1448 are payload. This also holds for UDP, whose packets
//!   would be 24 bytes smaller.
//! - *Delays*: 5 ms one way on each of the two links; here 2.5 ms at each end and 5 ms in between.
//! - *Constant rates* are rates of payload. Each packet is delayed by a random part of its gap: two synchronous clocks
//!   would always meet a full queue in the same order.
//! - *TCP* is CUBIC as in Linux, without ECN.
//! - *Fast*: figures 4 to 6 on a link ten times as fast, with ten times the buffer, the thresholds and gamma: more than
//!   the paper's software switch could do.

mod causes;
mod domain;

use super::outcome::{Finding, Outcome, Table};
use super::plot::{Axis, Plot, line};
use super::results::{Point, Results, Values};
use crate::error::Result;
use crate::study::{Cell, Setting, Study};
use queuescope_report::model::SimGroup;
use std::fmt::Write;

/// ABC.
pub struct Abc;

impl Study for Abc {
    fn name(&self) -> &'static str {
        "abc"
    }

    fn source(&self) -> &'static str {
        "Menth et al., Activity-Based Congestion Management, Future Internet 2019, section 6"
    }

    fn cells(&self, small: bool) -> Vec<Cell> {
        let (rates, flows): (&[u32], &[u32]) = match small {
            true => (&[20, 40, 80], &[1, 8]),
            false => (&[5, 10, 20, 30, 35, 38, 40, 42, 45, 50, 60, 80, 100], &[1, 2, 4, 8, 16, 32, 64]),
        };
        let size = Size { seeds: if small { 2 } else { 10 }, seconds: if small { 10 } else { 300 } };
        let mut cells = Vec::new();
        size.figures(&mut cells, &PAPER, rates, flows);
        let step = if small { 5 } else { 1 };
        for (name, changed) in variants().into_iter().step_by(step) {
            let parameter = ("changed", name.as_str());
            let mut add = |figure, clients: &_| {
                size.add(&mut cells, figure, 1, parameter, Program::Abc(changed), clients);
            };
            add(SENSITIVITY, &[tcp(16), tcp(1)]);
            add(SENSITIVITY_UDP, &[constant(100), tcp(1)]);
        }
        let size = if small { Size { seeds: 1, seconds: 5 } } else { size };
        domain::cells(size, &mut cells);
        causes::cells(size, &mut cells);
        if !small {
            // At more than 600 Mb/s, real hosts would send more than two processors can handle.
            let size = Size { seeds: 3, seconds: 20 };
            size.figures(&mut cells, &FAST, &[10, 20, 30, 40, 50, 60], &[1, 4, 16, 64]);
        }
        cells
    }

    fn measure(&self, cell: &Cell, setting: &Setting<'_>) -> Result<Values> {
        let sim = cell.simulate(setting)?;
        let named = |group: &SimGroup| {
            let name = &group.name;
            [(format!("{name} goodput (Mb/s)"), goodput(group)), (format!("{name} timeouts"), group.timeouts as f64)]
        };
        let busy = sim.links.iter().find(|link| link.name == sim.meter).map_or(f64::NAN, |link| link.utilisation);
        Ok(sim.groups.iter().flat_map(named).chain([("utilisation".to_owned(), busy)]).collect())
    }

    fn outcome(&self, results: &Results) -> Outcome {
        let (mut plots, mut findings) = (Vec::new(), Vec::new());
        let was_run = |link: &&Link| link.figures.iter().any(|figure| results.of(figure).next().is_some());
        for link in [&PAPER, &FAST].into_iter().filter(was_run) {
            let [figure_4, figure_5, figure_6] = link.figures;
            let constant = format!("Client 0 and 1 at constant rates, client 1 at {} Mb/s", 40 * link.times);
            plots.push(plot(results, figure_4, R0, &constant));
            plots.push(plot(results, figure_5, FLOWS, "Client 0 with several TCP flows, client 1 with one"));
            plots.push(plot(results, figure_6, R0, "Client 0 at a constant rate, client 1 with one TCP flow"));
            findings.extend([of_figure_4, of_figure_5, of_figure_6].iter().flat_map(|of| of(results, link)));
        }
        findings.extend(domain::findings(results));
        Outcome { plots, findings, tables: vec![sensitivity(results), causes::table(results)], ..Outcome::default() }
    }
}

/// A link, with ABC's parameters for it.
struct Link {
    /// The names of figures 4, 5 and 6 on it.
    figures: [&'static str; 3],
    /// How many times faster than the paper's link it is.
    times: u32,
    /// The start of its findings. The paper's figures, multiplied by `times`, are shown beside them.
    named: &'static str,
}

const PAPER: Link = Link { figures: ["figure-4", "figure-5", "figure-6"], times: 1, named: "" };
const FAST: Link =
    Link { figures: ["figure-4-fast", "figure-5-fast", "figure-6-fast"], times: 10, named: "ten times as fast, " };
const SENSITIVITY: &str = "sensitivity-tcp";
const SENSITIVITY_UDP: &str = "sensitivity-udp";
/// The varied parameters.
const R0: &str = "R0 (Mb/s)";
const FLOWS: &str = "flows";
/// Names of goodputs in [`Values`].
const HEAVY: &str = "client 0 goodput (Mb/s)";
const LIGHT: &str = "client 1 goodput (Mb/s)";
const TIMEOUTS: &str = "client 1 timeouts";

/// Bytes of payload in a packet, and of the whole packet.
const PAYLOAD: f64 = 1448.0;
const PACKET: f64 = 1500.0;

/// A client's goodput, in the paper's payload. The simulation counts everything in a datagram after its UDP header.
fn goodput(group: &SimGroup) -> f64 {
    let payload = if group.transport == "udp" { PAYLOAD / (PACKET - 28.0) } else { 1.0 };
    group.goodput_bps * payload / 1e6
}

#[derive(Debug, Clone, Copy)]
struct Size {
    seeds: u64,
    seconds: u64,
}

/// What manages the queue.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Program {
    None,
    Abc(Parameters),
}

/// ABC's parameters; the default is the paper's.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parameters {
    gamma: f64,
    least: f64,
    base: f64,
    /// Packets that the queue holds; also the link's limit.
    buffer: u32,
    /// M_AM and M_AA, in ms.
    meter_memory: u64,
    average_memory: u64,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::None => "no",
            Self::Abc(_) => "yes",
        }
    }

    fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Abc(Parameters { gamma, least, base, buffer, meter_memory, average_memory }) => format!(
                "[link.pipeline.abc]\nmemory = \"{meter_memory}ms\"\nqueue-length = {{ counted = {{ buffer = {buffer} }} }}\n\
                 aqm = {{ gamma = {gamma:?}, least = {least:?}, base = {base:?}, memory = \"{average_memory}ms\" }}\n"
            ),
        }
    }
}

impl Parameters {
    const PAPER: Self =
        Self { gamma: 16.0, least: 6.0, base: 20.0, buffer: 24, meter_memory: 3000, average_memory: 300 };

    /// The parameters for a link `times` times faster, with as many times the buffer.
    fn at(self, times: u32) -> Self {
        let scaled = |packets: f64| packets * f64::from(times);
        let (gamma, least, base) = (scaled(self.gamma), scaled(self.least), scaled(self.base));
        Self { gamma, least, base, buffer: self.buffer * times, ..self }
    }
}

/// Variants that change one parameter at a time.
fn variants() -> Vec<(String, Parameters)> {
    let paper = Parameters::PAPER;
    let mut variants = vec![("nothing".to_owned(), paper)];
    variants.extend([4.0, 8.0, 32.0, 64.0].map(|gamma| (format!("gamma {gamma}"), Parameters { gamma, ..paper })));
    variants.extend([0.0, 3.0, 12.0].map(|least| (format!("Q_min {least}"), Parameters { least, ..paper })));
    variants.extend([10.0, 15.0, 23.0].map(|base| (format!("Q_base {base}"), Parameters { base, ..paper })));
    let of_meter = |meter_memory| (format!("M_AM {meter_memory} ms"), Parameters { meter_memory, ..paper });
    variants.extend([300, 1_000, 10_000].map(of_meter));
    let of_average = |average_memory| (format!("M_AA {average_memory} ms"), Parameters { average_memory, ..paper });
    variants.extend([30, 100, 1_000, 3_000].map(of_average));
    variants
}

/// When a client starts, in ms. It depends on the seed: nothing else in TCP is random.
fn start(seed: u64, number: u64) -> u64 {
    (seed * 7919 + number * 104_729) % 100
}

/// A client at a constant rate of payload, in Mb/s.
fn constant(rate: u32) -> String {
    let bits = (f64::from(rate) * 1e6 * PACKET / PAYLOAD).round();
    format!("udp = {{ rate = \"{bits}bps\", spacing = \"jittered\" }}\n")
}

/// A client with `flows` TCP flows.
fn tcp(flows: u32) -> String {
    format!("tcp = \"cubic\"\ncount = {flows}\nhosts = 1\n")
}

impl Size {
    /// Figures 4 to 6 on a link: client 0 with these rates, scaled from the paper's link, and with these numbers of
    /// flows.
    fn figures(self, cells: &mut Vec<Cell>, link: &Link, rates: &[u32], flows: &[u32]) {
        let [figure_4, figure_5, figure_6] = link.figures;
        let rates = || rates.iter().map(|rate| rate * link.times);
        for program in [Program::None, Program::Abc(Parameters::PAPER.at(link.times))] {
            let mut add = |figure, name, value: u32, clients: &_| {
                self.add(cells, figure, link.times, (name, &value.to_string()), program, clients);
            };
            rates().for_each(|rate| add(figure_4, R0, rate, &[constant(rate), constant(40 * link.times)]));
            flows.iter().for_each(|count| add(figure_5, FLOWS, *count, &[tcp(*count), tcp(1)]));
            rates().for_each(|rate| add(figure_6, R0, rate, &[constant(rate), tcp(1)]));
        }
    }

    /// A point of a figure at a parameter's value, on a link `times` times faster than the paper's.
    fn add(
        self,
        cells: &mut Vec<Cell>,
        figure: &'static str,
        times: u32,
        parameter: (&'static str, &str),
        program: Program,
        clients: &[String; 2],
    ) {
        for seed in 1..=self.seeds {
            let mut scenario = format!(
                "seed = {seed}\nduration = \"{}s\"\n\n[access]\nrate = \"{}mbps\"\ndelay = \"2.5ms\"\n\n[link]\n\
                 rate = \"{}kbps\"\ndelay = \"5ms\"\nlimit = \"{}packets\"\n{}",
                self.seconds,
                100 * times,
                50_040 * times,
                24 * times,
                program.text()
            );
            for (number, client) in clients.iter().enumerate() {
                // Writing to a string does not fail.
                let start = start(seed, number as u64);
                _ = write!(scenario, "\n[[flows]]\nname = \"client {number}\"\nstart = \"{start}ms\"\n{client}");
            }
            let parameters = vec![("ABC", program.name().to_owned()), (parameter.0, parameter.1.to_owned())];
            cells.push(Cell { figure, parameters, seed, scenario });
        }
    }
}

fn plot(results: &Results, figure: &'static str, x: &'static str, title: &str) -> Plot {
    let mut lines = Vec::new();
    for with in ["no", "yes"] {
        for (client, value) in [HEAVY, LIGHT].into_iter().enumerate() {
            let points = results.of(figure).filter(|point| point.parameter("ABC") == with);
            let name = format!("client {client}, {} ABC", if with == "yes" { "with" } else { "without" });
            lines.push(line(name, points, x, value));
        }
    }
    Plot { name: figure, title: title.to_owned(), axes: [Axis::linear(x), Axis::linear("goodput (Mb/s)")], lines }
}

/// The points of a figure with or without ABC.
fn points<'a>(results: &'a Results, figure: &'a str, with: &'a str) -> impl Iterator<Item = &'a Point> {
    results.of(figure).filter(move |point| point.parameter("ABC") == with)
}

/// Without ABC, shares are proportional to rates. With it, they cross where the rates do.
fn of_figure_4(results: &Results, link: &Link) -> Vec<Finding> {
    let ([figure, ..], times) = (link.figures, f64::from(link.times));
    let mut findings = Vec::new();
    let rate = |point: &Point| point.number(R0);
    let full = |point: &&Point| rate(point) + 40.0 * times > 50.0 * times;
    let most_off = points(results, figure, "no")
        .filter(full)
        .map(|point| {
            let (heavy, light) = (point.value(HEAVY), point.value(LIGHT));
            (heavy / (heavy + light) - rate(point) / (rate(point) + 40.0 * times)).abs()
        })
        .fold(0.0, f64::max);
    findings.push(Finding {
        figure,
        what: "without ABC, client 0's share".to_owned(),
        paper: "R0 / (R0 + R1)".to_owned(),
        ours: format!("within {most_off:.3}"),
        difference: None,
        why: "tail drop takes from each what it sends".to_owned(),
    });
    let with: Vec<_> = points(results, figure, "yes").collect();
    // At equal rates both get the same, apart from randomness.
    let leads = |point: &&&Point| point.value(HEAVY) > 0.95 * point.value(LIGHT);
    let last = with.iter().filter(leads).map(|point| rate(point)).fold(0.0, f64::max);
    let first = with.iter().filter(|point| rate(point) > last && !leads(point)).map(|point| rate(point));
    let first = first.fold(f64::INFINITY, f64::min);
    findings.push(Finding {
        figure,
        what: format!("{}with ABC, client 0 has no less than client 1 up to, and less from (R0, Mb/s)", link.named),
        paper: (40 * link.times).to_string(),
        ours: format!("{last}, {first}"),
        difference: None,
        why: "the lines cross between these points".to_owned(),
    });
    findings
}

/// The light client's goodput stays near a half, whatever the other's number of flows.
fn of_figure_5(results: &Results, link: &Link) -> Vec<Finding> {
    let ([_, figure, _], times) = (link.figures, f64::from(link.times));
    let mut findings = Vec::new();
    for point in points(results, figure, "yes") {
        let flows = point.parameter(FLOWS);
        let without = points(results, figure, "no").find(|it| it.parameter(FLOWS) == flows);
        let why = format!(
            "a half of the link is {}; without ABC the one flow gets {:.1}",
            24.2 * times,
            without.map_or(f64::NAN, |it| it.value(LIGHT))
        );
        let what = format!(
            "{}client 1's goodput beside {flows} flow{} (Mb/s)",
            link.named,
            if flows == "1" { "" } else { "s" }
        );
        findings.push(Finding::of_mean(figure, &what, 25.0 * times, Some(point), LIGHT, why));
    }
    findings
}

/// The goodput of a client at a constant rate has a ceiling.
fn of_figure_6(results: &Results, link: &Link) -> Vec<Finding> {
    let [.., figure] = link.figures;
    let most = points(results, figure, "yes").map(|point| (point.value(HEAVY), point.number(R0)));
    let (most, at) = most.fold((f64::NEG_INFINITY, 0.0), |best, it| if it.0 > best.0 { it } else { best });
    let end = points(results, figure, "yes").last();
    let without = points(results, figure, "no").last();
    let shown = |value, digits| without.map_or("-".to_owned(), |point| point.shown(value, digits));
    vec![
        Finding::of_mean(
            figure,
            &format!("{}client 0's goodput at the highest rate (Mb/s)", link.named),
            32.0 * f64::from(link.times),
            end,
            HEAVY,
            format!("its most is {most:.1}, at {at} Mb/s; what moves it is in the table below"),
        ),
        Finding {
            figure,
            what: "without ABC, client 1's goodput at the highest rate (Mb/s)".to_owned(),
            paper: "hardly any".to_owned(),
            ours: shown(LIGHT, 2),
            difference: None,
            why: format!("its timer expired {} times in a run", shown(TIMEOUTS, 0)),
        },
    ]
}

/// What the results depend on.
fn sensitivity(results: &Results) -> Table {
    let beside = |figure, changed: &str| {
        let point = results.of(figure).find(|point| point.parameter("changed") == changed);
        let shown = |value: &str, factor: f64| {
            let said = |point: &Point| format!("{:.1}{}", factor * point.value(value), point.of_runs(value));
            point.filter(|point| point.mean(value).is_some()).map_or("-".to_owned(), said)
        };
        [shown(LIGHT, 1.0), shown("utilisation", 100.0)]
    };
    let row = |point: &Point| {
        let changed = point.parameter("changed");
        let [by_flows, by_udp] = [SENSITIVITY, SENSITIVITY_UDP].map(|figure| beside(figure, changed));
        [changed.to_owned()].into_iter().chain(by_flows).chain(by_udp).collect()
    };
    Table {
        title: "Client 1 with one TCP flow beside 16 flows, and beside 100 Mb/s: on what its goodput depends"
            .to_owned(),
        columns: ["changed", "16 flows (Mb/s)", "busy (%)", "100 Mb/s (Mb/s)", "busy (%)"].map(str::to_owned).to_vec(),
        rows: results.of(SENSITIVITY).map(row).collect(),
    }
}
