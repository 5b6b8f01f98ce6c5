//! ABC's experiments (Menth et al., Future Internet 2019, section 6): two clients that upload over one link.
//!
//! - *The link* is that of the paper's software switch, which drains 4170 packets a second, whatever their size. Here it has
//!   50.04 Mb/s, and a packet 1500 bytes, of which 1448 are payload: for UDP too, whose packets would be 24 bytes smaller.
//! - *Delays*: 5 ms one way on each of the two links, here 2.5 ms at each end and 5 ms between.
//! - *Constant rates* are those of the payload. Packets are each late by a random part of their gap: two clocks that keep the
//!   beat of each other would meet a full queue in the same turn for ever.
//! - *TCP* is CUBIC as Linux has it, without ECN.

mod causes;
mod domain;

use super::plot::{Axis, Plot, line};
use super::results::{Point, Results, Values};
use super::tell::{Finding, Table, Told};
use super::{Cell, Study};
use anyhow::Result;
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
        for with in [Program::None, Program::DEFAULT] {
            for rate in rates {
                let clients = &[constant(f64::from(*rate)), constant(40.0)];
                size.add(&mut cells, FIGURE_4, ("R0 (Mb/s)", &rate.to_string()), with, clients);
            }
            for count in flows {
                size.add(&mut cells, FIGURE_5, ("flows", &count.to_string()), with, &[tcp(*count), tcp(1)]);
            }
            for rate in rates {
                let clients = &[constant(f64::from(*rate)), tcp(1)];
                size.add(&mut cells, FIGURE_6, ("R0 (Mb/s)", &rate.to_string()), with, clients);
            }
        }
        let step = if small { 5 } else { 1 };
        for (name, changed) in variants().into_iter().step_by(step) {
            let parameter = ("changed", name.as_str());
            size.add(&mut cells, SENSITIVITY, parameter, Program::Abc(changed), &[tcp(16), tcp(1)]);
            size.add(&mut cells, SENSITIVITY_UDP, parameter, Program::Abc(changed), &[constant(100.0), tcp(1)]);
        }
        let size = if small { Size { seeds: 1, seconds: 5 } } else { size };
        domain::cells(size, &mut cells);
        causes::cells(size, &mut cells);
        cells
    }

    fn measure(&self, cell: &Cell) -> Result<Values> {
        let sim = cell.simulate()?;
        let named = |group: &SimGroup| {
            let name = &group.name;
            [(format!("{name} goodput (Mb/s)"), goodput(group)), (format!("{name} timeouts"), group.timeouts as f64)]
        };
        let busy = sim.links.iter().find(|link| link.name == sim.meter).map_or(f64::NAN, |link| link.utilisation);
        Ok(sim.groups.iter().flat_map(named).chain([("utilisation".to_owned(), busy)]).collect())
    }

    fn tell(&self, results: &Results) -> Told {
        let plots = vec![
            plot(results, FIGURE_4, ("R0 (Mb/s)", "Client 0 and 1 at constant rates, client 1 at 40 Mb/s")),
            plot(results, FIGURE_5, ("flows", "Client 0 with so many TCP flows, client 1 with one")),
            plot(results, FIGURE_6, ("R0 (Mb/s)", "Client 0 at a constant rate, client 1 with one TCP flow")),
        ];
        let findings = [figure_4, figure_5, figure_6, domain::findings].iter().flat_map(|findings| findings(results));
        let findings = findings.collect();
        Told { plots, findings, tables: vec![sensitivity(results), causes::table(results)], ..Told::default() }
    }
}

const FIGURE_4: &str = "figure-4";
const FIGURE_5: &str = "figure-5";
const FIGURE_6: &str = "figure-6";
const SENSITIVITY: &str = "sensitivity-tcp";
const SENSITIVITY_UDP: &str = "sensitivity-udp";
/// Goodputs, as [`Values`] has them.
const HEAVY: &str = "client 0 goodput (Mb/s)";
const LIGHT: &str = "client 1 goodput (Mb/s)";
const TIMEOUTS: &str = "client 1 timeouts";

/// Payload of a packet, and its bytes.
const PAYLOAD: f64 = 1448.0;
const PACKET: f64 = 1500.0;

/// What the clients get, in the paper's payload. The simulation counts all of a datagram behind its UDP header.
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

/// ABC's parameters; the paper's are the default.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Parameters {
    gamma: f64,
    least: f64,
    base: f64,
    /// M_AM and M_AA, in ms.
    meter_memory: u64,
    average_memory: u64,
}

impl Program {
    const DEFAULT: Self = Self::Abc(Parameters::PAPER);

    fn name(self) -> &'static str {
        match self {
            Self::None => "no",
            Self::Abc(_) => "yes",
        }
    }

    fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::Abc(Parameters { gamma, least, base, meter_memory, average_memory }) => format!(
                "[link.pipeline.abc]\nmemory = \"{meter_memory}ms\"\n\
                 aqm = {{ gamma = {gamma:?}, least = {least:?}, base = {base:?}, memory = \"{average_memory}ms\" }}\n"
            ),
        }
    }
}

impl Parameters {
    const PAPER: Self = Self { gamma: 16.0, least: 6.0, base: 20.0, meter_memory: 3000, average_memory: 300 };
}

/// One parameter after the other.
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

/// When a client starts, in ms. It differs by the seed: TCP has no other chance.
fn start(seed: u64, number: u64) -> u64 {
    (seed * 7919 + number * 104_729) % 100
}

/// A client at a constant rate of payload, in Mb/s.
fn constant(rate: f64) -> String {
    let bits = (rate * 1e6 * PACKET / PAYLOAD).round();
    format!("udp = {{ rate = \"{bits}bps\", spacing = \"jittered\" }}\n")
}

/// A client with so many TCP flows.
fn tcp(flows: u32) -> String {
    format!("tcp = \"cubic\"\ncount = {flows}\nhosts = 1\n")
}

impl Size {
    fn add(
        self,
        cells: &mut Vec<Cell>,
        figure: &'static str,
        (name, value): (&'static str, &str),
        program: Program,
        clients: &[String; 2],
    ) {
        for seed in 1..=self.seeds {
            let mut scenario = format!(
                "seed = {seed}\nduration = \"{}s\"\n\n[access]\nrate = \"100mbps\"\ndelay = \"2.5ms\"\n\n[link]\n\
                 rate = \"50040kbps\"\ndelay = \"5ms\"\nlimit = \"24packets\"\n{}",
                self.seconds,
                program.text()
            );
            for (number, client) in clients.iter().enumerate() {
                // Writing to a string does not fail.
                let start = start(seed, number as u64);
                _ = write!(scenario, "\n[[flows]]\nname = \"client {number}\"\nstart = \"{start}ms\"\n{client}");
            }
            let parameters = vec![("ABC", program.name().to_owned()), (name, value.to_owned())];
            cells.push(Cell { figure, parameters, seed, scenario });
        }
    }
}

fn plot(results: &Results, figure: &'static str, (x, title): (&'static str, &str)) -> Plot {
    let mut lines = Vec::new();
    for with in ["no", "yes"] {
        for (client, value) in [HEAVY, LIGHT].into_iter().enumerate() {
            let points = results.of(figure).filter(|point| point.parameter("ABC") == with);
            let name = format!("client {client}, {} ABC", if with == "yes" { "with" } else { "without" });
            lines.push(line(name, points, (x, value)));
        }
    }
    Plot { name: figure, title: title.to_owned(), axes: [Axis::linear(x), Axis::linear("goodput (Mb/s)")], lines }
}

/// The points of a figure with or without ABC.
fn points<'a>(results: &'a Results, figure: &'a str, with: &'a str) -> impl Iterator<Item = &'a Point> {
    results.of(figure).filter(move |point| point.parameter("ABC") == with)
}

/// Shares without ABC are in proportion to rates; with it they cross where the rates do.
fn figure_4(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    let rate = |point: &Point| point.number("R0 (Mb/s)");
    let full = |point: &&Point| rate(point) + 40.0 > 50.0;
    let most_off = points(results, FIGURE_4, "no")
        .filter(full)
        .map(|point| {
            let (heavy, light) = (point.value(HEAVY), point.value(LIGHT));
            (heavy / (heavy + light) - rate(point) / (rate(point) + 40.0)).abs()
        })
        .fold(0.0, f64::max);
    findings.push(Finding {
        figure: FIGURE_4,
        what: "without ABC, client 0's share".to_owned(),
        paper: "R0 / (R0 + R1)".to_owned(),
        ours: format!("within {most_off:.3}"),
        difference: None,
        why: "tail drop takes from each what it sends".to_owned(),
    });
    let with: Vec<_> = points(results, FIGURE_4, "yes").collect();
    // At equal rates both get the same, but for chance.
    let leads = |point: &&&Point| point.value(HEAVY) > 0.95 * point.value(LIGHT);
    let last = with.iter().filter(leads).map(|point| rate(point)).fold(0.0, f64::max);
    let first = with.iter().filter(|point| rate(point) > last && !leads(point)).map(|point| rate(point));
    let first = first.fold(f64::INFINITY, f64::min);
    findings.push(Finding {
        figure: FIGURE_4,
        what: "with ABC, client 0 has no less than client 1 up to, and less from (R0, Mb/s)".to_owned(),
        paper: "40".to_owned(),
        ours: format!("{last}, {first}"),
        difference: None,
        why: "the lines cross between these points".to_owned(),
    });
    findings
}

/// The light client's goodput stays near a half, whatever the number of the other's flows.
fn figure_5(results: &Results) -> Vec<Finding> {
    let mut findings = Vec::new();
    for point in points(results, FIGURE_5, "yes") {
        let flows = point.parameter("flows");
        let why = format!(
            "a half of the link is 24.2; without ABC the one flow gets {:.1}",
            points(results, FIGURE_5, "no")
                .find(|it| it.parameter("flows") == flows)
                .map_or(f64::NAN, |it| it.value(LIGHT))
        );
        let what = format!("client 1's goodput beside {flows} flow{} (Mb/s)", if flows == "1" { "" } else { "s" });
        findings.push(Finding::of_mean(FIGURE_5, &what, 25.0, (Some(point), LIGHT), why));
    }
    findings
}

/// A client at a constant rate gets no more than a ceiling.
fn figure_6(results: &Results) -> Vec<Finding> {
    let most = points(results, FIGURE_6, "yes").map(|point| (point.value(HEAVY), point.number("R0 (Mb/s)")));
    let (most, at) = most.fold((f64::NEG_INFINITY, 0.0), |best, it| if it.0 > best.0 { it } else { best });
    let end = points(results, FIGURE_6, "yes").last();
    let without = points(results, FIGURE_6, "no").last();
    let shown = |value, digits| without.map_or("-".to_owned(), |point| point.shown(value, digits));
    vec![
        Finding::of_mean(
            FIGURE_6,
            "client 0's goodput at the highest rate (Mb/s)",
            32.0,
            (end, HEAVY),
            format!("its most is {most:.1}, at {at} Mb/s; what moves it is in the table below"),
        ),
        Finding {
            figure: FIGURE_6,
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
