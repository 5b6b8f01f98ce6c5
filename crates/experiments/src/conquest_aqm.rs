//! ConQuest in a closed loop (Chen et al., CoNEXT 2019, section 5.2): flows of a web rack at 20 % of 10 Gb/s, a burst
//! each second, and several schemes that mark packets.
//!
//! Where the paper is open:
//!
//! - *The round-trip time* is not stated. Two hosts at one switch have less than 100 us. But "the minimum queue size
//!   needed to allow a single TCP connection to reach line rate" was 4096 packets, which is what a halved window needs
//!   with 5 ms. Here it is 1 ms; both other values are among the conditions.
//! - *The baseline* marks "outgoing packets when the switch's queue length exceeds the threshold". So here it marks by
//!   the queue that a packet leaves behind. Packets that are not ECN-capable (SYNs) are not affected.
//! - *RED's* parameters are not stated. Here its thresholds are a third and the whole of the baseline's, with a
//!   probability of 0.1 at the upper one.
//! - *The linear and the squared probability* are 1 at twice `w_T`.
//! - *Buffers* of hosts have 64 MiB: with Linux's default of 4 MiB no flow fills 4096 packets of the queue.
//! - *Completion* is measured from the SYN until the receiver has everything.

mod bench;
mod findings;
mod measure;

use super::outcome::Outcome;
use super::plot::{Axis, Plot, line};
use super::results::{Point, Results, Values};
use crate::error::Result;
use crate::study::{Cell, Setting, Study};
use bench::{Bench, NO_HYSTART, Scheme, StandingQueueMark};

/// ConQuest's AQM.
pub struct ConQuestAqm;

impl Study for ConQuestAqm {
    fn name(&self) -> &'static str {
        "conquest-aqm"
    }

    fn source(&self) -> &'static str {
        "Chen et al., Fine-Grained Queue Measurement in the Data Plane, CoNEXT 2019, section 5.2"
    }

    fn remark(&self, small: bool) -> String {
        let twentieth =
            "The rate, all sizes and all thresholds in packets are a twentieth, and are called as in the full version.";
        if small { twentieth.to_owned() } else { String::new() }
    }

    fn cells(&self, small: bool) -> Vec<Cell> {
        let mut cells = Vec::new();
        let plan = Plan::new(small);
        for &tcp in plan.tcp {
            for megabytes in plan.megabytes.iter().filter(|it| **it >= BURST_MB || tcp == plan.tcp[0]) {
                for scheme in Scheme::MAIN {
                    plan.figure_10(&mut cells, tcp, *megabytes, scheme);
                }
            }
        }
        for tcp in plan.tcp.iter().filter(|it| !small || **it == plan.tcp[0]) {
            for scheme in Scheme::MAIN {
                plan.figure_11(&mut cells, tcp, scheme);
            }
        }
        if small {
            return cells;
        }
        plan.causes(&mut cells);
        for condition in conditions() {
            plan.condition(&mut cells, &condition);
        }
        for (_, choice) in StandingQueueMark::CHOICES {
            plan.choice(&mut cells, Scheme::Standing(choice));
        }
        for tcp in plan.tcp {
            for scheme in Scheme::OTHERS {
                plan.figure_10(&mut cells, tcp, BURST_MB, scheme);
            }
        }
        for scheme in Scheme::OTHERS {
            for megabytes in plan.megabytes.iter().filter(|megabytes| **megabytes != BURST_MB) {
                plan.figure_10(&mut cells, "newreno", *megabytes, scheme);
            }
        }
        cells
    }

    fn measure(&self, cell: &Cell, setting: &Setting<'_>) -> Result<Values> {
        measure::measure(cell, setting)
    }

    fn outcome(&self, results: &Results) -> Outcome {
        let by_size = |name, tcp: &'static str, value| Plot {
            name,
            title: format!("Flows of a web rack at 20 % of the link, a burst each second, {tcp}"),
            axes: [Axis::logarithmic(BURST), Axis::linear(value)],
            lines: lines(results, tcp, value),
        };
        let plots = vec![
            by_size("figure-10-median", "newreno", measure::MEDIAN),
            by_size("figure-10-median-in-bursts", "newreno", measure::MEDIAN_IN_BURSTS),
            by_size("figure-10-99", "newreno", measure::P99),
            by_size("figure-10-99.9", "newreno", measure::P999),
            figure_11(results),
        ];
        Outcome {
            plots,
            findings: findings::findings(results),
            tables: findings::tables(results),
            ..Outcome::default()
        }
    }
}

const FIGURE_10: &str = "figure-10";
const FIGURE_11: &str = "figure-11";
const CONDITIONS: &str = "conditions";
const CHOICES: &str = "choices";
const TCP: &str = "tcp";
const SCHEME: &str = "marks";
const BURST: &str = "burst (MB)";
const CHANGED: &str = "changed";

/// The burst of figure 11 and of all figures with a single burst size.
const BURST_MB: u64 = 50;
/// The largest burst size.
const LARGEST_MB: u64 = 100;

/// The cells to run.
struct Plan {
    bench: Bench,
    tcp: &'static [&'static str],
    megabytes: &'static [u64],
    seeds: u64,
}

impl Plan {
    fn new(small: bool) -> Self {
        match small {
            true => Self { bench: Bench::SMALL, tcp: &["newreno", "dctcp"], megabytes: &[BURST_MB], seeds: 1 },
            false => Self {
                bench: Bench::FULL,
                tcp: &["newreno", "cubic", "vegas", "dctcp", "bbr"],
                megabytes: &[1, 10, BURST_MB, LARGEST_MB],
                seeds: 3,
            },
        }
    }

    fn figure_10(&self, cells: &mut Vec<Cell>, tcp: &str, megabytes: u64, scheme: Scheme) {
        for seed in 1..=self.seeds {
            let parameters = vec![(TCP, tcp.to_owned()), (SCHEME, scheme.name()), (BURST, megabytes.to_string())];
            let scenario = self.bench.scenario(tcp, scheme, megabytes * 1_000_000, seed);
            cells.push(Cell { figure: FIGURE_10, parameters, seed, scenario });
        }
    }

    /// One seed is enough for figure 11.
    fn figure_11(&self, cells: &mut Vec<Cell>, tcp: &str, scheme: Scheme) {
        let parameters = vec![(TCP, tcp.to_owned()), (SCHEME, scheme.name())];
        let bench = Bench { sampled: Some(1), ..self.bench };
        let scenario = bench.scenario(tcp, scheme, BURST_MB * 1_000_000, 1);
        cells.push(Cell { figure: FIGURE_11, parameters, seed: 1, scenario });
    }

    /// Cells that show why some congestion controls gain more than others, with the largest bursts.
    fn causes(&self, cells: &mut Vec<Cell>) {
        for scheme in [Scheme::TAIL, Scheme::PAPER] {
            self.figure_10(cells, NO_HYSTART, LARGEST_MB, scheme);
        }
        self.figure_10(cells, "dctcp", LARGEST_MB, Scheme::EARLY_TAIL);
        self.figure_10(cells, "newreno", BURST_MB, Scheme::LOWER);
    }

    fn condition(&self, cells: &mut Vec<Cell>, condition: &Condition) {
        for scheme in &condition.schemes {
            for seed in 1..=self.seeds {
                let parameters = vec![(CHANGED, condition.changed.to_owned()), (SCHEME, scheme.name())];
                let scenario = condition.bench.scenario("newreno", *scheme, BURST_MB * 1_000_000, seed);
                cells.push(Cell { figure: CONDITIONS, parameters, seed, scenario });
            }
        }
    }

    fn choice(&self, cells: &mut Vec<Cell>, scheme: Scheme) {
        for seed in 1..=self.seeds {
            let scenario = self.bench.scenario("newreno", scheme, BURST_MB * 1_000_000, seed);
            cells.push(Cell { figure: CHOICES, parameters: vec![(SCHEME, scheme.name())], seed, scenario });
        }
    }
}

/// A change of something that the paper leaves open, and the schemes for which it matters.
struct Condition {
    changed: &'static str,
    bench: Bench,
    schemes: Vec<Scheme>,
}

/// Everything that the paper leaves open, changed one at a time.
fn conditions() -> [Condition; 9] {
    let bench = Bench::FULL;
    let of = |changed, bench, schemes: &[Scheme]| Condition { changed, bench, schemes: schemes.to_vec() };
    let (endless, own) = (Bench { truncated: false, ..bench }, [Scheme::PAPER, Scheme::LOWER, Scheme::STANDING]);
    let far = Scheme::MAIN.into_iter().chain([Scheme::Standing(StandingQueueMark::BEHIND_ONLY)]);
    let far =
        Condition { changed: "round-trip time 5 ms", bench: Bench { rtt_us: 5000, ..bench }, schemes: far.collect() };
    [
        of(PLACED, Bench { placed: true, ..bench }, &[Scheme::PAPER]),
        of(PLACED_NEAR, Bench { placed: true, rtt_us: 100, ..bench }, &[Scheme::PAPER]),
        of(NEAR, Bench { rtt_us: 100, ..bench }, &Scheme::MAIN),
        of(BURSTS_ONLY, Bench { marks_workload: false, ..bench }, &own),
        of("hosts' buffers of 4 MiB", Bench { buffers: None, ..bench }, &Scheme::MAIN),
        Condition {
            changed: ENDLESS,
            bench: endless,
            schemes: Scheme::MAIN.into_iter().chain([Scheme::LOWER]).collect(),
        },
        of(ENDLESS_BURSTS_ONLY, Bench { marks_workload: false, ..endless }, &own),
        of(
            "baselines mark on arrival, and drop SYNs",
            Bench { at_egress: false, ..bench },
            &[Scheme::TAIL, Scheme::Red],
        ),
        far,
    ]
}

const NEAR: &str = "round-trip time 0.1 ms";
const PLACED: &str = "the paper's estimator";
const PLACED_NEAR: &str = "the paper's estimator, 0.1 ms";
const BURSTS_ONLY: &str = "only bursts can be marked";
const ENDLESS: &str = "sizes without an end";
const ENDLESS_BURSTS_ONLY: &str = "sizes without an end, only bursts can be marked";

/// The points of a scheme with a congestion control.
fn of<'a>(results: &'a Results, tcp: &'a str, scheme: Scheme) -> impl Iterator<Item = &'a Point> {
    let name = scheme.name();
    results.of(FIGURE_10).filter(move |point| point.parameter(TCP) == tcp && point.parameter(SCHEME) == name)
}

/// A line for each scheme that ran with all burst sizes, in ascending order.
fn lines(results: &Results, tcp: &str, value: &str) -> Vec<super::plot::Line> {
    let mut lines: Vec<_> = Scheme::MAIN
        .into_iter()
        .chain(Scheme::OTHERS)
        .map(|scheme| line(scheme.name(), of(results, tcp, scheme), BURST, value))
        .filter(|line| !line.points.is_empty())
        .collect();
    lines.iter_mut().for_each(|line| line.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
    lines
}

/// The queue around one burst.
fn figure_11(results: &Results) -> Plot {
    let series = |point: &Point| {
        let names = point.runs.iter().flat_map(|(_, values)| values.keys());
        let points = names.filter_map(|name| Some((measure::series_at(name)?, point.mean(name)?)));
        super::plot::Line { name: point.parameter(SCHEME).to_owned(), points: points.collect() }
    };
    let points = results.of(FIGURE_11).filter(|point| point.parameter(TCP) == "newreno");
    Plot {
        name: "figure-11-queue",
        title: format!("The queue around a burst of {BURST_MB} MB, newreno"),
        axes: [Axis::linear("time from the burst's start (ms)"), Axis::linear("queue (packets)")],
        lines: points.map(series).collect(),
    }
}
