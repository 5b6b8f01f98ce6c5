//! The rounds of a flow as series of numbers, and what can be seen in them.

use super::{FlowRounds, Response, Round};
use queuescope_wire::Nanos;

/// The rounds after slow start.
pub(super) struct Series {
    /// The length of a round.
    length: Nanos,
    /// The mean size of a packet, in bytes.
    size: f64,
    rows: Vec<Round>,
    /// Packets that arrived in each round; those, and dropped ones; and the window: those, and the flow's own backlog.
    rate: Vec<f64>,
    offered: Vec<f64>,
    window: Vec<f64>,
    /// The round-trip time with queueing, in rounds.
    rtt: Vec<f64>,
}

/// The longest time without losses and marks.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    pub rounds: u32,
    /// By how much the window grew and shrank in it, each summed up, over its mean.
    pub rise: f64,
    pub fall: f64,
    pub busy: f64,
    pub backlog: f64,
    pub high_backlog: f64,
    pub high_sojourn: Nanos,
}

/// Pulses of the rate.
#[derive(Debug, Default)]
pub(super) struct Pulses {
    pub count: u32,
    pub period: f64,
    pub regularity: f64,
}

/// Slow start lasts at most this many rounds, and this many after its first loss.
const SLOW_START: usize = 20;
const AFTER_LOSS: usize = 6;
/// The least window, in packets, in which a relative change can be seen.
const LEAST_WINDOW: f64 = 6.0;
/// The end of a time without losses that is the steady state.
const STEADY_ROUNDS: usize = 100;
/// A smaller window after a loss, over the one before, is a reduction.
const REDUCED: f64 = 0.93;

impl Series {
    pub(super) fn new(flow: &FlowRounds) -> Self {
        let mut rows: Vec<Round> = flow.rounds().copied().collect();
        if flow.first() == 0 {
            let lost = rows.iter().position(|row| row.drops > 0 || row.marks > 0);
            let start = lost.map_or(SLOW_START, |lost| (lost + AFTER_LOSS).min(SLOW_START));
            rows.drain(..start.min(rows.len()));
        }
        let length = flow.length();
        let (packets, bytes) =
            rows.iter().fold((0.0, 0.0), |sum, row| (sum.0 + f64::from(row.packets), sum.1 + f64::from(row.bytes)));
        let size = if packets > 0.0 { bytes / packets } else { 1.0 };
        let rate: Vec<f64> = rows.iter().map(|row| f64::from(row.bytes) / size).collect();
        let backlog = |row: &Round| row.backlog(length) / size;
        let mut waited = 0.0;
        let rtt = rows.iter().map(|row| {
            if row.packets > 0 {
                waited = row.sojourn() / length.0 as f64;
            }
            1.0 + waited
        });
        Self {
            rtt: rtt.collect(),
            offered: rate.iter().zip(&rows).map(|(rate, row)| rate + f64::from(row.drops)).collect(),
            window: rate.iter().zip(&rows).map(|(rate, row)| rate + backlog(row)).collect(),
            length,
            size,
            rate,
            rows,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn share(&self) -> f64 {
        let sum = |of: fn(&Round) -> u32| self.rows.iter().map(|row| f64::from(of(row))).sum::<f64>();
        sum(|row| row.bytes) / sum(|row| row.total).max(1.0)
    }

    pub(super) fn median_window(&self) -> f64 {
        quantile(&self.window, 0.5)
    }

    pub(super) fn rate_variation(&self) -> f64 {
        let mean = mean(&self.offered);
        let variance = self.offered.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>() / self.len() as f64;
        libm::sqrt(variance) / mean.max(1e-9)
    }

    pub(super) fn drops(&self) -> (u64, u32) {
        let rounds = self.rows.iter().filter(|row| row.drops > 0).count();
        (self.rows.iter().map(|row| u64::from(row.drops)).sum(), rounds as u32)
    }

    pub(super) fn marked_rounds(&self) -> f64 {
        self.rows.iter().filter(|row| row.marks > 0).count() as f64 / self.len() as f64
    }

    /// How the window answers losses, or marks. Episodes with the other kind nearby count for losses only.
    pub(super) fn response(&self, marks: bool) -> Response {
        let is_cause = |row: &Round| if marks { row.marks > 0 } else { row.drops > 0 };
        let (mut ratios, mut growths, mut dips, mut after_last) = (Vec::new(), Vec::new(), Vec::new(), None::<f64>);
        let mut at = 0;
        while let Some(first) = (at..self.len()).find(|number| is_cause(&self.rows[*number])) {
            let mut last = first;
            // The sender learns of a loss after a round trip, and has answered it after another one.
            let answered = |last: usize| last + (2.0 * self.rtt[last]).ceil() as usize;
            loop {
                let end = (answered(last) + 2).min(self.len() - 1);
                let Some(next) = (last + 1..=end).rev().find(|number| is_cause(&self.rows[*number])) else { break };
                last = next;
            }
            at = last + 1;
            let after = answered(last) + 1;
            let before = mean(&self.window[first.saturating_sub(2)..=first]);
            if let Some(after_last) = after_last.filter(|_| before >= LEAST_WINDOW) {
                growths.push(libm::log(f64::max(before / after_last, 0.1)));
            }
            after_last = None;
            let Some(then) = self.window.get(after..after + 3) else { break };
            let then = mean(then).max(0.5);
            let other = |row: &Round| if marks { row.drops > 0 } else { false };
            if before < LEAST_WINDOW || self.rows[first..after].iter().any(other) {
                continue;
            }
            ratios.push(libm::log(then / before));
            let pairs = self.window[last + self.rtt[last] as usize..after + 2].windows(2).map(mean);
            dips.push(pairs.fold(f64::MAX, f64::min).max(0.5) / before);
            after_last = Some(then);
        }
        Response {
            episodes: ratios.len() as u32,
            ratio: if ratios.is_empty() { 1.0 } else { libm::exp(mean(&ratios)) },
            dip: if dips.is_empty() { 1.0 } else { quantile(&dips, 0.5) },
            dipped: part(&dips, |dip| dip <= REDUCED),
            reduced: part(&ratios, |ratio| libm::exp(ratio) <= REDUCED),
            growth: if growths.is_empty() { 1.0 } else { libm::exp(mean(&growths)) },
        }
    }

    /// The flow's own median backlog, in packets, and the delay of its packets, in ns, in rounds with losses.
    pub(super) fn at_losses(&self) -> (f64, f64) {
        let lossy = || self.rows.iter().filter(|row| row.drops > 0 && row.packets > 0);
        let backlogs: Vec<f64> = lossy().map(|row| row.backlog(self.length) / self.size).collect();
        let sojourns: Vec<f64> = lossy().map(|row| f64::from(row.most_sojourn) * 1024.0).collect();
        (quantile(&backlogs, 0.5), quantile(&sojourns, 0.5))
    }

    /// How much of a window's growth between two losses is in the last rounds before the second: the median, and the number of pairs of
    /// losses that are far enough apart.
    pub(super) fn surge(&self) -> (u32, f64) {
        const LAST: usize = 6;
        let (mut shares, mut last) = (Vec::new(), None::<usize>);
        for number in (0..self.len()).filter(|number| self.rows[*number].drops > 0) {
            let from = last.map(|last| last + (2.0 * self.rtt[last]).ceil() as usize + 1);
            last = Some(number);
            let Some(from) = from.filter(|from| from + 3 * LAST <= number) else { continue };
            let (low, high) = (mean(&self.window[from..from + 3]), mean(&self.window[number - 1..=number]));
            let before = mean(&self.window[number - LAST - 2..number - LAST]);
            if low >= LEAST_WINDOW && high >= 1.08 * low {
                shares.push((high - before) / (high - low));
            }
        }
        (shares.len() as u32, quantile(&shares, 0.5))
    }

    /// Reductions of the window without a cause before.
    pub(super) fn uncaused(&self) -> u32 {
        let (mut count, mut at) = (0, 3);
        while at + 5 < self.len() {
            let before = mean(&self.window[at - 2..=at]);
            let after = mean(&self.window[at + 2..=at + 4]);
            if before >= LEAST_WINDOW && after <= 0.9 * before && self.is_quiet(at, at + 4) {
                count += 1;
                at += 6;
            } else {
                at += 1;
            }
        }
        count
    }

    /// Whether rounds `from..=to`, and those that could have caused what happens there, have no losses and marks.
    fn is_quiet(&self, from: usize, to: usize) -> bool {
        let earlier = (3.0 * self.rtt[from]).ceil() as usize + 1;
        self.rows[from.saturating_sub(earlier)..=to].iter().all(|row| row.drops == 0 && row.marks == 0)
    }

    /// The longest time without losses and marks.
    pub(super) fn quiet(&self) -> Quiet {
        let (mut best, mut from) = (0..0, 0);
        for (number, row) in self.rows.iter().enumerate() {
            if row.drops > 0 || row.marks > 0 {
                from = number + 1;
            } else if number + 1 - from > best.len() {
                best = from..number + 1;
            }
        }
        // What follows a loss is its answer, not the steady state.
        let settled = best.start + (best.len() / 4).min(12);
        let rows = &self.rows[settled.max(best.end.saturating_sub(STEADY_ROUNDS))..best.end];
        if rows.is_empty() {
            return Quiet::default();
        }
        let (rise, fall) = changes(&self.window[settled..best.end]);
        let backlogs: Vec<f64> = rows.iter().map(|row| row.backlog(self.length) / self.size).collect();
        let sojourns: Vec<f64> = rows.iter().map(Round::sojourn).collect();
        Quiet {
            rounds: (best.end - settled) as u32,
            rise,
            fall,
            busy: rows.iter().filter(|row| row.packets > 0 && row.least_sojourn > 0).count() as f64 / rows.len() as f64,
            backlog: quantile(&backlogs, 0.5),
            high_backlog: quantile(&backlogs, 0.9),
            high_sojourn: Nanos(quantile(&sojourns, 0.9) as u64),
        }
    }

    /// Pulses: a steady rate without losses, a step above it, and within some round trips a fall below it. Losses that the step causes
    /// may be part of it.
    pub(super) fn pulses(&self) -> Pulses {
        const STEADY: f64 = 0.06;
        const UP: f64 = 1.11;
        const DOWN: f64 = 0.92;
        let (mut found, mut at) = (Vec::new(), 5);
        while at + 4 < self.len() {
            let base = quantile(&self.rate[at - 5..at], 0.5);
            let noise = (STEADY * base).max(1.5);
            let steady = self.rate[at - 4..at].iter().all(|rate| (rate - base).abs() <= noise);
            let up = |number: usize| self.rate[number] >= (base * UP).max(base + 3.0);
            let down = |number: &usize| self.rate[*number] <= (base * DOWN).min(base - 3.0);
            if base < LEAST_WINDOW || !steady || !up(at) || !self.is_quiet(at - 1, at - 1) {
                at += 1;
                continue;
            }
            let fall = (at + 1..(at + 9).min(self.len())).find(down);
            if let Some(fall) = fall {
                found.push(at);
                at = fall + 1;
            } else {
                at += 1;
            }
        }
        let distances: Vec<f64> = found.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let period = if distances.is_empty() { 0.0 } else { quantile(&distances, 0.5) };
        Pulses {
            count: found.len() as u32,
            period,
            regularity: part(&distances, |distance| (distance - period).abs() <= (0.25 * period).max(1.0)),
        }
    }

    /// The autocorrelation of the rate at the lag of 5 to 24 rounds where that is highest, and that lag.
    pub(super) fn periodicity(&self) -> (f64, f64) {
        let deviation: Vec<f64> = (0..self.len())
            .map(|number| {
                let around = &self.rate[number.saturating_sub(8)..(number + 9).min(self.len())];
                let base = quantile(around, 0.5);
                if base < LEAST_WINDOW || !self.is_quiet(number, number) {
                    0.0
                } else {
                    (self.rate[number] / base - 1.0).clamp(-0.5, 0.5)
                }
            })
            .collect();
        let power = deviation.iter().map(|deviation| deviation * deviation).sum::<f64>();
        if power <= 0.0 || self.len() < 60 {
            return (0.0, 0.0);
        }
        let at =
            |lag: usize| deviation.iter().zip(&deviation[lag..]).map(|(one, other)| one * other).sum::<f64>() / power;
        let all: Vec<f64> = (0..26).map(at).collect();
        let peaks = (5..25).filter(|lag| all[*lag] >= all[lag - 1] && all[*lag] >= all[lag + 1]);
        let best = peaks.max_by(|one, other| all[*one].total_cmp(&all[*other]));
        best.map_or((0.0, 0.0), |lag| (all[lag], lag as f64))
    }

    /// Floors of the window, the median time between them in seconds, and the share of such times that are a timer of BBR.
    pub(super) fn floors(&self) -> (u32, f64, f64) {
        let (mut found, mut at) = (Vec::<usize>::new(), 8);
        let millis = |rounds: usize| rounds as u64 * self.length.0 / 1_000_000;
        while at + 4 < self.len() {
            let base = quantile(&self.window[at - 8..at - 1], 0.5);
            let low = |number: &usize| self.window[*number] <= 0.62 * base;
            // Packets that come in bursts make windows of single rounds uneven.
            let steady = self.window[at - 6..at].iter().all(|window| (0.75 * base..1.4 * base).contains(window));
            let is_start = base >= 2.0 * LEAST_WINDOW && low(&at) && steady && self.is_quiet(at, at);
            let end = is_start.then(|| (at + 1..self.len()).find(|number| !low(number))).flatten();
            let Some(end) = end else {
                at += 1;
                continue;
            };
            let rounds = end - at;
            // 200 ms or a round trip with queueing, whichever is longer, and the way down and up.
            let is_right = millis(rounds) >= 120 && (millis(rounds) <= 450 || rounds <= 5);
            let soon = &self.window[end..(end + 4).min(self.len())];
            let returned = soon.iter().any(|window| *window >= 0.8 * base);
            let silent = self.rows[at..end].iter().filter(|row| row.packets == 0).count();
            if is_right && returned && silent * 2 <= rounds && self.is_quiet(at, end - 1) {
                found.push(at);
            }
            at = end + 1;
        }
        let seconds = self.length.as_secs_f64();
        let distances: Vec<f64> = found.windows(2).map(|pair| (pair[1] - pair[0]) as f64 * seconds).collect();
        // 5 or 10 s, some 200 ms for the probe and a round trip, or two such times.
        let is_timer = |distance: f64| {
            [5.0, 10.0, 15.2].into_iter().any(|timer| (timer..timer + 0.6 + seconds).contains(&distance))
        };
        (found.len() as u32, quantile(&distances, 0.5), part(&distances, is_timer))
    }
}

/// By how much values grow and shrink from five to the next five, each summed up, over their mean.
fn changes(values: &[f64]) -> (f64, f64) {
    let means: Vec<f64> = values.chunks_exact(5).map(mean).collect();
    let (mut rise, mut fall) = (0.0, 0.0);
    for pair in means.windows(2) {
        rise += (pair[1] - pair[0]).max(0.0);
        fall += (pair[0] - pair[1]).max(0.0);
    }
    let whole = mean(values).max(1e-9);
    (rise / whole, fall / whole)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The share of values for which something holds; 0 of none.
fn part(values: &[f64], holds: impl Fn(f64) -> bool) -> f64 {
    values.iter().filter(|value| holds(**value)).count() as f64 / values.len().max(1) as f64
}

/// The value that a share of the values is at most; 0 of none.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get((share * sorted.len().saturating_sub(1) as f64).round() as usize).copied().unwrap_or(0.0)
}
