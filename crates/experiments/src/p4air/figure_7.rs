//! Figure 7(d) and (e): fairness of many flows under P4air and three other schemes.
//!
//! Where the paper is open:
//!
//! - *The rate* is 625 Mb/s here, a sixteenth of the testbed's, because 10 Gb/s would take 16 times as long to simulate. A
//!   switch computes shares with powers of two, and a sixteenth does not change their rounding: with 128 flows, the computed
//!   share is 1.17 times the exact one, at 10 Gb/s as here. At 1 Gb/s it would be 0.73 times. With a round-trip time of
//!   100 ms, which the paper does not state, a flow's share is 41 packets, and 47 as computed.
//! - *The buffer* is one bandwidth-delay product. The schemes with 32 queues give each queue an equal part of it.
//! - *The action on delay-based flows* is the receive window, which "offered the biggest performance boost" (section IV-C),
//!   and not recirculation, which delays a packet by microseconds. No control reacts to so little, so a flow that is
//!   alone in the group takes all that others leave.
//! - *Starts* are spread over the first second.
//! - *Different round-trip times*: "each link delay was configured to a multiple" of the difference. Here there are 32 round-trip
//!   times, from one to 32 times the difference, of eight flows each. The rate is 1.25 Gb/s, and with a difference of 1 ms the testbed's 10 Gb/s
//!   for an eighth of the duration. A flow's mean share is 67 packets with 10 ms and 54 with 1 ms.
//! - *The duration* is not stated; the results state ours. Flows are measured once they are in their groups: most BBR flows
//!   are after 25 s.

mod outcome;

use super::{CONTROL, JAIN, data_of, delivered, jain, paper, program};
use crate::error::{Error, Result};
use crate::results::Values;
use crate::study::Cell;
pub use outcome::outcome;
use queuescope_sim::Simulation;
use std::fmt::Write as _;

pub const MIXES: &str = "figure-7e";
pub const RTTS: &str = "figure-7d";

/// How the link treats its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    P4air,
    Idle,
    DifferentQueues,
    NoAqm,
}

impl Scheme {
    /// In the paper's order.
    pub const ALL: [Self; 4] = [Self::P4air, Self::Idle, Self::DifferentQueues, Self::NoAqm];

    fn name(self) -> &'static str {
        match self {
            Self::P4air => "P4air",
            Self::Idle => "Idle P4air",
            Self::DifferentQueues => "Different Queues",
            Self::NoAqm => "No AQM",
        }
    }

    /// Its lines of `[link]`, for a buffer of this many packets.
    fn text(self, buffer: u64, queues: u64) -> String {
        let each = (buffer / queues).max(1);
        match self {
            Self::P4air => format!(
                "limit = \"{each}packets\"\n\n[link.pipeline.p4air]\nqueues = {queues}\n\n[link.pipeline.p4air.actions]\n\
                 delay-based = \"window\"\n"
            ),
            Self::Idle => format!(
                "limit = \"{each}packets\"\n\n[link.pipeline.p4air]\nqueues = {queues}\n\n[link.pipeline.p4air.actions]\n\
                 delay-based = \"nothing\"\nloss-delay = \"nothing\"\nloss-based = \"nothing\"\nmodel-based = \"nothing\"\n"
            ),
            Self::DifferentQueues => {
                format!("limit = \"{each}packets\"\n\n[link.pipeline.hash-to-queues]\nqueues = {queues}\n")
            }
            Self::NoAqm => format!("limit = \"{buffer}packets\"\n"),
        }
    }
}

/// The controls of the mixes, in the paper's order, and those of 7(d).
pub const CONTROLS: [&str; 4] = ["cubic", "illinois", "bbr", "vegas"];

/// How much is run.
struct Plan {
    flows: u64,
    queues: u64,
    megabits: u64,
    duration_s: u64,
    warmup_s: u64,
    mix_seeds: u64,
    mixes: Vec<[u64; 4]>,
    rtt: RttPlan,
}

struct RttPlan {
    flows: u64,
    /// Different round-trip times.
    times: u64,
    /// The differences, in ms, each with the factor of the rate, by which durations are divided.
    differences_ms: &'static [(u64, u64)],
    megabits: u64,
    duration_ms: u64,
    warmup_ms: u64,
    controls: usize,
    seeds: u64,
}

impl Plan {
    fn new(small: bool) -> Self {
        if small {
            let mixes = vec![[25, 25, 25, 25], [50, 0, 50, 0], [0, 0, 0, 100]];
            let rtt = RttPlan {
                flows: 8,
                times: 4,
                differences_ms: &[(10, 1)],
                megabits: 25,
                duration_ms: 6_000,
                warmup_ms: 2_000,
                controls: 1,
                seeds: 1,
            };
            return Self { flows: 8, queues: 12, megabits: 78, duration_s: 8, warmup_s: 3, mix_seeds: 1, mixes, rtt };
        }
        let rtt = RttPlan {
            flows: 256,
            times: 32,
            differences_ms: &[(10, 1), (1, 8)],
            megabits: 1_250,
            duration_ms: 60_000,
            warmup_ms: 20_000,
            controls: 4,
            seeds: 2,
        };
        Self { flows: 128, queues: 32, megabits: 625, duration_s: 50, warmup_s: 30, mix_seeds: 2, mixes: mixes(), rtt }
    }
}

/// The round-trip time of the mixes.
const RTT_MS: u64 = 100;

/// All shares of four controls in steps of 25 %.
pub fn mixes() -> Vec<[u64; 4]> {
    let steps = || (0..=4u64).rev();
    let mut mixes = Vec::new();
    for one in steps() {
        for two in steps() {
            for three in steps() {
                mixes.extend(
                    (one + two + three <= 4).then(|| [one, two, three, 4 - one - two - three].map(|part| 25 * part)),
                );
            }
        }
    }
    mixes
}

/// What readers must know about the runs.
pub fn remark(small: bool) -> String {
    let Plan { flows, megabits, duration_s, warmup_s, mix_seeds, mixes, rtt, .. } = Plan::new(small);
    let RttPlan { flows: many, duration_ms, warmup_ms, seeds, .. } = rtt;
    let s = |seeds| if seeds == 1 { "run" } else { "runs" };
    format!(
        "Figure 7(e): {} mixes of {flows} flows at {megabits} Mb/s for {duration_s} s, of which {warmup_s} s are warm-up; {mix_seeds} {} of \
         each, the paper has 4. Figure 7(d): {many} flows, {} s and {} s of warm-up (an eighth with 1 ms); {seeds} {} of each, the \
         paper has 4.",
        mixes.len(),
        s(mix_seeds),
        duration_ms / 1_000,
        warmup_ms / 1_000,
        s(seeds),
    )
}

pub fn cells(small: bool) -> Vec<Cell> {
    let plan = Plan::new(small);
    let mut cells = Vec::new();
    for seed in 1..=plan.mix_seeds {
        for mix in &plan.mixes {
            cells.extend(Scheme::ALL.map(|scheme| plan.mix(*mix, scheme, seed)));
        }
    }
    for seed in 1..=plan.rtt.seeds {
        for (difference, times) in plan.rtt.differences_ms {
            for control in CONTROLS.iter().take(plan.rtt.controls) {
                cells.extend(Scheme::ALL.map(|scheme| plan.rtts(control, [*difference, *times], scheme, seed)));
            }
        }
    }
    cells
}

const SCHEME: &str = "scheme";
const DIFFERENCE: &str = "difference (ms)";

impl Plan {
    fn mix(&self, mix: [u64; 4], scheme: Scheme, seed: u64) -> Cell {
        let buffer = self.megabits * 1_000 * RTT_MS / (1_500 * 8);
        let mut scenario = format!(
            "seed = {seed}\nduration = \"{}s\"\nwarmup = \"{}s\"\n\n[access]\nrate = \"10gbps\"\ndelay = \"1ms\"\n\n[link]\nrate = \
             \"{}mbps\"\ndelay = \"10ms\"\n{}",
            self.duration_s,
            self.warmup_s,
            self.megabits,
            scheme.text(buffer, self.queues)
        );
        for (control, percent) in CONTROLS.iter().zip(mix).filter(|(_, percent)| *percent > 0) {
            let count = self.flows * percent / 100;
            // Writing to a string does not fail.
            _ = write!(
                scenario,
                "\n[[flows]]\nname = \"{control}\"\ntcp = \"{control}\"\ncount = {count}\nrtt = \"{RTT_MS}ms\"\nspread = \"1s\"\n"
            );
        }
        let shares = CONTROLS.into_iter().zip(mix.map(|percent| percent.to_string()));
        let parameters = [(SCHEME, scheme.name().to_owned())].into_iter().chain(shares).collect();
        Cell { figure: MIXES, parameters, seed, scenario }
    }

    fn rtts(&self, control: &str, [difference_ms, times]: [u64; 2], scheme: Scheme, seed: u64) -> Cell {
        let rtt = &self.rtt;
        let megabits = rtt.megabits * times;
        // The mean round-trip time is (times + 1) / 2 differences.
        let buffer = megabits * 1_000 * difference_ms * (rtt.times + 1) / (2 * 1_500 * 8);
        let mut scenario = format!(
            "seed = {seed}\nduration = \"{}ms\"\nwarmup = \"{}ms\"\n\n[access]\nrate = \"{}mbps\"\ndelay = \"100us\"\n\n[link]\nrate = \
             \"{megabits}mbps\"\ndelay = \"100us\"\n{}",
            rtt.duration_ms / times,
            rtt.warmup_ms / times,
            4 * megabits,
            scheme.text(buffer, self.queues)
        );
        for number in 1..=rtt.times {
            // Writing to a string does not fail.
            _ = write!(
                scenario,
                "\n[[flows]]\nname = \"{control}-{number}\"\ntcp = \"{control}\"\ncount = {}\nrtt = \"{}ms\"\nspread = \"{}ms\"\n",
                rtt.flows / rtt.times,
                number * difference_ms,
                1_000 / times
            );
        }
        let parameters = vec![
            (SCHEME, scheme.name().to_owned()),
            (DIFFERENCE, difference_ms.to_string()),
            (CONTROL, control.to_owned()),
        ];
        Cell { figure: RTTS, parameters, seed, scenario }
    }
}

pub const USED: &str = "utilisation (%)";
pub const DELAY: &str = "mean delay (ms)";
/// Flows that end in the group that the paper puts their control in.
const GROUPED: &str = "in their group (%)";

/// Fairness, utilisation, and the delay in the queue.
pub fn of_link(simulation: &Simulation) -> Result<Values> {
    let link = simulation.measured().next().ok_or_else(|| Error::lacks("no link is measured"))?;
    let capacity = simulation.topology().link(link).rate.capacity(simulation.warmup()..simulation.now());
    let shares: Vec<f64> = delivered(simulation).into_iter().map(|(_, bytes)| bytes).collect();
    let stats = simulation.link(link);
    let delay = stats.sojourn().and_then(|times| times.mean()).unwrap_or(f64::NAN);
    Ok(Values::from([
        (JAIN.to_owned(), jain(&shares)),
        (DELAY.to_owned(), delay / 1e6),
        (USED.to_owned(), 100.0 * stats.sent.bytes.0 as f64 / capacity.0 as f64),
    ]))
}

/// The same, and the flows that P4air put into their group.
pub fn measure(cell: &Cell, simulation: &Simulation) -> Result<Values> {
    let scenario = cell.parsed()?;
    let mut values = of_link(simulation)?;
    if let Some(program) = program(simulation) {
        let flows = simulation.flows();
        let grouped = flows.iter().filter(|flow| {
            let name = scenario.flows.get(flow.group as usize).map_or("", |group| group.name.as_str());
            let tcp = name.split('-').next().unwrap_or_default();
            let control = paper::CONTROLS.iter().find(|control| control.tcp == tcp);
            control.is_some_and(|control| program.group(data_of(flow)) == Some(control.group))
        });
        values.insert(GROUPED.to_owned(), 100.0 * grouped.count() as f64 / flows.len() as f64);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn there_are_35_mixes_of_all_flows() {
        let mixes = mixes();
        assert_eq!(mixes.iter().collect::<BTreeSet<_>>().len(), 35);
        assert!(mixes.iter().all(|mix| mix.iter().sum::<u64>() == 100));
    }
}
