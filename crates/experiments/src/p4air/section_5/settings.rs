//! The settings: what is varied, and the scenario of each.

use super::{OPTION, PART, SECTION};
use crate::study::Cell;
use std::fmt::Write as _;

/// A part of the section, with its settings.
pub struct Part {
    pub name: &'static str,
    pub about: &'static str,
    pub settings: Vec<Setting>,
}

/// A row.
#[derive(Clone)]
pub struct Setting {
    pub name: String,
    /// The links in a row, from `s1` to `s2` and on.
    links: Vec<Link>,
    traffic: Traffic,
}

impl Setting {
    fn of_one_link(name: &str, queue: Queue, traffic: Traffic) -> Self {
        Self { name: name.to_owned(), links: vec![Link { rate: 100, queue }], traffic }
    }
}

/// What the link does with its flows, and how fast it is.
#[derive(Clone)]
struct Link {
    /// In percent of the plan's rate.
    rate: u64,
    queue: Queue,
}

#[derive(Clone)]
enum Queue {
    /// A discipline with the whole buffer.
    Discipline(&'static str),
    /// P4air with these keys, and with this part of the buffer for each queue; `None` for that of 32 queues.
    P4air { keys: String, parts: Option<u64> },
}

/// The flows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Traffic {
    /// Flows without end, over all links.
    Long,
    /// And shorter ones, which end at different times.
    Uneven,
    /// Flows without end over all links, and as many over each link alone.
    Crossing,
}

/// How much is run.
pub struct Plan {
    /// Of each control; the same for each part of the path with crossing traffic.
    pub flows: u64,
    queues: u64,
    pub megabits: u64,
    pub duration_s: u64,
    pub warmup_s: u64,
    pub seeds: u64,
    is_small: bool,
}

/// All controls, in equal numbers.
pub const CONTROLS: [&str; 4] = ["cubic", "illinois", "bbr", "vegas"];
/// The round-trip time of all flows.
pub const RTT_MS: u64 = 100;

impl Plan {
    pub fn new(small: bool) -> Self {
        if small {
            return Self { flows: 1, queues: 12, megabits: 20, duration_s: 6, warmup_s: 2, seeds: 1, is_small: true };
        }
        Self { flows: 32, queues: 32, megabits: 400, duration_s: 30, warmup_s: 10, seeds: 2, is_small: false }
    }

    pub fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for seed in 1..=self.seeds {
            for part in parts(self.is_small) {
                let cell = |setting: &Setting| {
                    let parameters = vec![(PART, part.name.to_owned()), (OPTION, setting.name.clone())];
                    Cell { figure: SECTION, parameters, seed, scenario: self.scenario(setting, seed) }
                };
                cells.extend(part.settings.iter().map(cell));
            }
        }
        cells
    }

    fn scenario(&self, setting: &Setting, seed: u64) -> String {
        let mut text = format!(
            "seed = {seed}\nduration = \"{}s\"\nwarmup = \"{}s\"\ntopology = \"graph\"\n\n[access]\nrate = \"10gbps\"\ndelay = \"1ms\"\n",
            self.duration_s, self.warmup_s
        );
        // Writing to a string does not fail, here and below.
        for (number, link) in (1..).zip(&setting.links) {
            _ = write!(
                text,
                "\n[[wires]]\nfrom = \"s{number}\"\nto = \"s{}\"\nrate = \"{}kbps\"\ndelay = \"10ms\"\n{}",
                number + 1,
                10 * self.megabits * link.rate,
                self.queue(&link.queue)
            );
        }
        let last = setting.links.len() + 1;
        for control in CONTROLS {
            match setting.traffic {
                Traffic::Long => self.flows(&mut text, control, control, (1, last), ""),
                Traffic::Uneven => {
                    self.flows(&mut text, control, control, (1, last), "");
                    // Half a share each for a third of the run, in three waves.
                    let bytes = self.megabits * 1_000_000 / 8 / (2 * 4 * 2 * self.flows) * self.duration_s / 3;
                    for wave in 0..3 {
                        let start = wave * self.duration_s / 4;
                        let more = format!("bytes = \"{bytes}B\"\nstart = \"{start}s\"\n");
                        self.flows(&mut text, &format!("{control}-wave-{wave}"), control, (1, last), &more);
                    }
                }
                Traffic::Crossing => {
                    self.flows(&mut text, &format!("{control}-through"), control, (1, last), "");
                    for first in 1..last {
                        self.flows(&mut text, &format!("{control}-on-{first}"), control, (first, first + 1), "");
                    }
                }
            }
        }
        text
    }

    fn flows(&self, text: &mut String, name: &str, control: &str, (from, to): (usize, usize), more: &str) {
        _ = write!(
            text,
            "\n[[flows]]\nname = \"{name}\"\ntcp = \"{control}\"\ncount = {}\nrtt = \"{RTT_MS}ms\"\nspread = \"1s\"\nfrom = \"s{from}\"\n\
             to = \"s{to}\"\n{more}",
            self.flows
        );
    }

    /// The keys of a wire's queue.
    fn queue(&self, queue: &Queue) -> String {
        let buffer = self.megabits * 1_000 * RTT_MS / (1_500 * 8);
        match queue {
            Queue::Discipline(name) => format!("limit = \"{buffer}packets\"\ndiscipline = \"{name}\"\n"),
            Queue::P4air { keys, parts } => {
                let each = (buffer / parts.unwrap_or(self.queues)).max(1);
                format!("limit = \"{each}packets\"\n\n[wires.pipeline.p4air]\nqueues = {}\n{keys}", self.queues)
            }
        }
    }
}

const IDLE: &str = "\n[wires.pipeline.p4air.actions]\ndelay-based = \"nothing\"\nloss-delay = \"nothing\"\nloss-based = \"nothing\"\n\
                    model-based = \"nothing\"\n";
const TIMESTAMPS: &str = "rtt = \"timestamps\"\n";
const SMOOTHED: &str = "rtt = { timestamps = { filter = \"smoothed\" } }\n";
const SEQUENCE: &str = "rtt = \"sequence\"\n";
const LESS_QUEUEING: &str = "rtt = \"less-queueing\"\n";
const COUNTED: &str = "assignment = \"counted\"\n";
const MARKED: &str = "mark = 1\n";

/// The class that [`MARKED`] sets is that of no flow in the scenarios.
pub fn parts(is_small: bool) -> Vec<Part> {
    let parts = vec![one_link(), uneven(), behind(), two_bottlenecks()];
    if !is_small {
        return parts;
    }
    // The first setting is the one to compare with, and the last one has the option of its part.
    let few = |part: Part| {
        let settings = part.settings;
        let chosen = [0, settings.len() / 2, settings.len() - 1].map(|place| settings[place].clone());
        Part { settings: chosen.into(), ..part }
    };
    parts.into_iter().map(few).collect()
}

fn one_link() -> Part {
    let delay = |ms: u64| format!("act-on = {{ delay = {{ target = \"{ms}ms\" }} }}\n");
    let one = |name: &str, queue: Queue| Setting::of_one_link(name, queue, Traffic::Long);
    Part {
        name: "one link",
        about: "weighted queues, delay instead of the share, and round-trip times, on one link",
        settings: vec![
            one("P4air", p4air("")),
            one("Idle P4air", p4air(IDLE)),
            one("No AQM", Queue::Discipline("tail-drop")),
            one("act on a delay of 5 ms", p4air(&delay(5))),
            one("act on a delay of 20 ms", p4air(&delay(20))),
            one("act on a delay of 50 ms", p4air(&delay(50))),
            one("RTT by timestamps, least", p4air(TIMESTAMPS)),
            one("RTT by timestamps, smoothed", p4air(SMOOTHED)),
            one("RTT by sequence numbers, least", p4air(SEQUENCE)),
            one("weighted queues", weighted("")),
            one("weighted queues, idle", weighted(IDLE)),
            one("weighted queues, by delay of 20 ms", weighted(&delay(20))),
        ],
    }
}

fn uneven() -> Part {
    let one = |name: &str, queue: Queue| Setting::of_one_link(name, queue, Traffic::Uneven);
    Part {
        name: "uneven ends",
        about: "flows that end at different times: queues by number of flows",
        settings: vec![
            one("P4air", p4air("")),
            one("No AQM", Queue::Discipline("tail-drop")),
            one("weighted queues", weighted("")),
            one("flows of queues counted", p4air(COUNTED)),
        ],
    }
}

fn behind() -> Part {
    let two = |name: String, first: Queue, rate: u64, keys: &str| Setting {
        name,
        links: vec![Link { rate, queue: first }, Link { rate: 100, queue: p4air(keys) }],
        traffic: Traffic::Long,
    };
    let mut settings = vec![two("before it: 10 times the rate".to_owned(), Queue::Discipline("tail-drop"), 1_000, "")];
    for (shown, discipline) in
        [("tail drop", "tail-drop"), ("CoDel", "codel"), ("PIE", "pie"), ("FQ-CoDel", "fq-codel")]
    {
        for rate in [105, 90] {
            let name = format!("before it: {shown} at {rate} %");
            settings.push(two(name, Queue::Discipline(discipline), rate, ""));
        }
    }
    for (shown, keys) in [("timestamps", TIMESTAMPS), ("sequence numbers", SEQUENCE)] {
        let name = format!("before it: tail drop at 105 %, RTT by {shown}");
        settings.push(two(name, Queue::Discipline("tail-drop"), 105, keys));
    }
    Part { name: "behind another AQM", about: "P4air behind another queue", settings }
}

fn two_bottlenecks() -> Part {
    let tail_drop = || Queue::Discipline("tail-drop");
    let setting = |name: &str, queues: [Queue; 2]| Setting {
        name: name.to_owned(),
        links: queues.map(|queue| Link { rate: 100, queue }).into(),
        traffic: Traffic::Crossing,
    };
    let both = |name: &str, keys: &str| setting(name, [p4air(keys), p4air(keys)]);
    Part {
        name: "two bottlenecks",
        about: "a parking lot of two links, with P4air at one of them or at both",
        settings: vec![
            both("P4air at both", ""),
            setting("P4air at none", [tail_drop(), tail_drop()]),
            setting("P4air at the first", [p4air(""), tail_drop()]),
            setting("P4air at the second", [tail_drop(), p4air("")]),
            both("both, RTT by timestamps", TIMESTAMPS),
            both("both, RTT less queueing", LESS_QUEUEING),
            setting("both, weighted queues", [weighted(""), weighted("")]),
            both("both, shaped flows marked", MARKED),
        ],
    }
}

fn p4air(keys: &str) -> Queue {
    Queue::P4air { keys: keys.to_owned(), parts: None }
}

/// Each of the four queues that have long-lived flows has a quarter of the buffer.
fn weighted(keys: &str) -> Queue {
    Queue::P4air { keys: format!("queueing = \"weighted\"\n{keys}"), parts: Some(CONTROLS.len() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scenario_is_valid_and_each_setting_has_its_own_name() {
        for small in [true, false] {
            let cells = Plan::new(small).cells();
            let names: std::collections::BTreeSet<_> = cells.iter().map(Cell::name).collect();
            assert_eq!(names.len(), cells.len());
            for cell in &cells {
                cell.parsed().unwrap_or_else(|error| panic!("{}: {error}", cell.name()));
            }
        }
    }

    #[test]
    fn two_bottlenecks_have_as_many_flows_over_both_as_over_each() {
        let plan = Plan::new(false);
        let cells = plan.cells();
        let cell = cells.iter().find(|cell| cell.parameters[0].1 == "two bottlenecks").unwrap();
        let scenario = cell.parsed().unwrap();
        let flows = |from: &str, to: &str| -> u64 {
            scenario
                .flows
                .iter()
                .filter(|flows| (&*flows.from, &*flows.to) == (from, to))
                .map(|flows| u64::from(flows.count))
                .sum()
        };
        let all = 4 * plan.flows;
        assert_eq!([flows("s1", "s2"), flows("s2", "s3"), flows("s1", "s3")], [all; 3]);
    }
}
