//! Egress PI compared with all other ways to manage a queue, without retuning: 1 to 100 Gb/s, round trips of 50 us to
//! 10 ms, 1 to 250 flows.
//!
//! - *The target* is 125 us everywhere, as in Kunze et al. (IM 2021). Two packets per flow is the smallest window that
//!   marks lead a congestion control to. If flows are many, the link slow and the round trip short, these windows need
//!   more.
//! - *The buffer* is 500 us, as theirs, or four times that need if it is larger.
//! - *A run* lasts six periods of CUBIC's fall and rise and 1000 round trips, where that is affordable. A third of it
//!   is warm-up: see [`OperatingPoint::times_ms`].
//! - *Others are tuned*: each has several settings. Egress PI is compared with the best of them that keeps the queue as
//!   short as Egress PI does at the same operating point.

mod contenders;
mod outcome;

use super::outcome::Outcome;
use super::results::{Results, Values};
use crate::error::Result;
use crate::study::{Cell, Setting, Study};
use contenders::Contender;

/// The comparison of Egress PI with the others.
pub struct EgressPi;

impl Study for EgressPi {
    fn name(&self) -> &'static str {
        "egress-pi"
    }

    fn source(&self) -> &'static str {
        "docs/explanation/egress-pi.md; what Kunze et al., IM 2021, section VIII, ask for"
    }

    fn cells(&self, small: bool) -> Vec<Cell> {
        let places = OperatingPoint::all(small).into_iter();
        let grid =
            places.flat_map(|place| Contender::all(small).into_iter().map(move |it| place.cell(GRID, &it, small)));
        let left_alone = OperatingPoint::of_left_alone(small).into_iter();
        let left_alone =
            left_alone.flat_map(|place| Contender::leaving_alone().map(|it| place.cell(LEFT_ALONE, &it, small)));
        grid.chain(left_alone).collect()
    }

    fn measure(&self, cell: &Cell, setting: &Setting<'_>) -> Result<Values> {
        let sim = cell.simulate(setting)?;
        let mut values = Values::new();
        let mut add = |name: &str, value: f64| values.insert(name.to_owned(), value);
        if let Some(link) = sim.links.iter().find(|link| link.name == sim.meter) {
            let goodput: f64 = sim.groups.iter().map(|group| group.goodput_bps).sum();
            add(GOODPUT, 100.0 * goodput / link.rate_bps as f64);
            add(DELAY, link.sojourn.mean_ns / 1e3);
            add(P99, link.sojourn.p99_ns as f64 / 1e3);
            add(LOSS, 100.0 * link.drop_rate);
        }
        for group in &sim.groups {
            add(JAIN, group.jain);
        }
        Ok(values)
    }

    fn outcome(&self, results: &Results) -> Outcome {
        outcome::outcome(results)
    }
}

const GRID: &str = "grid";
/// Packets that Egress PI leaves alone, which two of its parameters decide.
const LEFT_ALONE: &str = "left-alone";
const AQM: &str = "AQM";
const SETTING: &str = "setting";
const RATE: &str = "rate (Gb/s)";
const RTT: &str = "RTT (us)";
const FLOWS: &str = "flows";
const GOODPUT: &str = "goodput (%)";
const DELAY: &str = "mean delay (us)";
const P99: &str = "p99 delay (us)";
const LOSS: &str = "loss (%)";
const JAIN: &str = "fairness";

/// The target delay, in microseconds.
const TARGET_US: f64 = 125.0;

/// A link and its flows, for which a queue is managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OperatingPoint {
    gigabits: u64,
    rtt_us: u64,
    flows: u64,
}

/// The minimum length of a run in periods of CUBIC and in round trips, unless that is too short or too long. A third of
/// it is warm-up.
const PERIODS: f64 = 6.0;
const ROUND_TRIPS: f64 = 1_000.0;

impl OperatingPoint {
    fn all(small: bool) -> Vec<Self> {
        if small {
            return [1, 4].map(|flows| Self { gigabits: 1, rtt_us: 350, flows }).into();
        }
        let mut places = Vec::new();
        for gigabits in [1, 10, 100] {
            for rtt_us in [50, 350, 2_000, 10_000] {
                places.extend([1, 10, 50, 250].map(|flows| Self { gigabits, rtt_us, flows }));
            }
        }
        places
    }

    /// Where leaving packets alone matters: a single flow, some flows, and many with small windows.
    fn of_left_alone(small: bool) -> Vec<Self> {
        let places = [(350, 1), (2_000, 50), (10_000, 250)].map(|(rtt_us, flows)| Self { gigabits: 1, rtt_us, flows });
        if small { Vec::new() } else { places.into() }
    }

    fn cell(self, figure: &'static str, contender: &Contender, small: bool) -> Cell {
        let [name, setting] = [contender.name, &contender.setting].map(str::to_owned);
        let parameters = vec![
            (AQM, name),
            (SETTING, setting),
            (RATE, self.gigabits.to_string()),
            (RTT, self.rtt_us.to_string()),
            (FLOWS, self.flows.to_string()),
        ];
        Cell { figure, parameters, seed: 1, scenario: self.scenario(contender, small) }
    }

    /// How long CUBIC takes to regain what it gives up for a mark, in seconds: 0.3 of its window, by the cubic curve or
    /// as Reno (RFC 9438, sections 4.2 and 4.3), whichever is earlier.
    fn period_s(self) -> f64 {
        let rtt_s = self.rtt_us as f64 / 1e6;
        let window = self.gigabits as f64 * 1e9 * rtt_s / (1500.0 * 8.0) / self.flows as f64;
        let given_up = 0.3 * window;
        (given_up / 0.4).cbrt().min(given_up * rtt_s / 0.53)
    }

    /// The simulated time and the warm-up in it, in milliseconds. The bounds keep all operating points together within
    /// an hour on two cores.
    fn times_ms(self, small: bool) -> (f64, f64) {
        let (least, most) = match self.gigabits {
            _ if small => return (1_300.0, 900.0),
            1 => (6_000.0, 48_000.0),
            10 => (2_400.0, 12_000.0),
            _ => (1_200.0, 1_200.0),
        };
        let wanted = (PERIODS * self.period_s()).max(ROUND_TRIPS * self.rtt_us as f64 / 1e6);
        let duration = (1e3 * wanted).clamp(least, most).ceil();
        (duration, (duration / 3.0).floor())
    }

    /// How many of CUBIC's periods count.
    fn periods(self) -> f64 {
        let (duration, warmup) = self.times_ms(false);
        (duration - warmup) / 1e3 / self.period_s()
    }

    /// The shortest queue that gives every flow two packets in the network, or the target if that is longer, in
    /// microseconds: packets that are not in flight for the round-trip time are in the queue.
    fn need_us(self) -> f64 {
        let sent_us = (2 * 1500 * 8 * self.flows) as f64 / (self.gigabits * 1000) as f64;
        TARGET_US.max(sent_us - self.rtt_us as f64)
    }

    fn scenario(self, contender: &Contender, small: bool) -> String {
        let Self { gigabits, rtt_us, flows } = self;
        let (duration, warmup) = self.times_ms(small);
        let limit = (4.0 * self.need_us()).ceil();
        let (access, between) = (rtt_us * 1000 / 8, rtt_us * 1000 / 4);
        format!(
            "duration = \"{duration}ms\"\nwarmup = \"{warmup}ms\"\n\n[access]\nrate = \"{}gbps\"\ndelay = \"{access}ns\"\n\n[link]\n\
             rate = \"{gigabits}gbps\"\ndelay = \"{between}ns\"\nlimit = \"{limit}us\"\n{}\n[[flows]]\nname = \"flows\"\n\
             tcp = \"cubic\"\ncount = {flows}\necn = {}\nspread = \"10ms\"\n",
            4 * gigabits,
            contender.text,
            contender.ecn
        )
    }
}
