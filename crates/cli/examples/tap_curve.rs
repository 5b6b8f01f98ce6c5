//! How exact ConQuest is when it sees a router only through taps: the curve of the paper's figure 13.
//!
//! `cargo run --release -p queuescope-cli --example tap_curve -- CAPTURE RATE LIMIT [SNAPSHOTS]`
//!
//! The capture passes a FIFO. Taps with clocks of their own capture two of the three links into it, and the link out of it.
//! The captures are matched, and the departures go through ConQuest with the parameters of the paper's prototype: four snapshots of
//! two rows and 64 columns, a window of a quarter of the longest delay, and a tau of an eighth. SNAPSHOTS is another number of them, each
//! with its part of the longest delay. The truth comes from the queue
//! itself. A flow contributes if it has at least alpha of the queue. A packet is reported if its estimate is at least a threshold, in
//! multiples of alpha, of what left according to the taps while the packet waited.
//!
//! Then the same packets come to a switch that runs `conquest-legacy`, whose taps have one clock, and whose windows are a power of two. It is run by the
//! interpreter.

#[path = "../tests/tap/pair.rs"]
mod tap_pair;
#[path = "../tests/tap/switch.rs"]
mod tap_through_switch;

use anyhow::{Context, Result, bail};
use queuescope_meter::tap::{Arrived, Clock, TapDeparture, TapOutput, TapPacket, TapParams};
use queuescope_meter::{ExactMeter, History, PastDeparture, Recent};
use queuescope_p4::algorithms::{ConQuestLegacyParams, conquest_legacy_with};
use queuescope_p4::ir::{Input, ParsedFrame};
use queuescope_queue::Limit;
use queuescope_sketch::{ConQuest, ConQuestParams, Estimator, Expiry, TappedConQuestParams};
use queuescope_wire::parse::InvariantParams;
use queuescope_wire::{ByteCount, FlowTable, Granularity, Nanos, Rate};
use std::collections::BTreeMap;
use std::path::Path;
use tap_pair::{Pair, PairParams, TAPPED, Truth};
use tap_through_switch::{processed, through_switch};

const ALPHAS: [f64; 6] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3];
/// The threshold of a report, in multiples of alpha.
const THRESHOLDS: [f64; 9] = [0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0];
/// The snapshots of the paper's prototype.
const SNAPSHOTS: usize = 4;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [capture, rate, limit, snapshots @ ..] = args.as_slice() else {
        bail!("usage: tap_curve CAPTURE RATE LIMIT [SNAPSHOTS]")
    };
    let (rate, limit): (Rate, Limit) = (rate.parse()?, limit.parse()?);
    let snapshots = snapshots.first().map_or(Ok(SNAPSHOTS), |number| number.parse())?;
    let pair_params = PairParams {
        rate,
        limit,
        behind: Clock::new(Nanos(1_000_000_000), 400_000_000, 20.0),
        second: Clock::new(Nanos(1_000_000_000), -300_000_000, -7.0),
        resolution: 1,
        snaplens: (96, 90),
        elsewhere: 10,
        most: usize::MAX,
    };
    let pair = Pair::make(Path::new(capture), pair_params)?;
    let invariant = InvariantParams { reach: pair.reach(), ..InvariantParams::default() };
    let mut log = Log { egress: pair.egress.iter().map(|record| (record.time, record.id)).collect(), seen: Vec::new() };
    let max_delay = Nanos(4 * longest(&pair.truth).0.max(1_000_000));
    let matcher = pair.tap(TapParams { max_delay, ..TapParams::default() }, &invariant, &mut log);
    for (link, estimate) in matcher.clocks().into_iter().flatten().enumerate() {
        println!(
            "link {link}: drift {:.4} ppm, {} of {} stretches",
            estimate.clock.drift_ppm(),
            estimate.supporting,
            estimate.stretches
        );
    }
    for (name, count, meaning) in matcher.stats().iter().filter(|(_, count, _)| *count > 0) {
        println!("{count:>8} {name}: {meaning}");
    }
    let possible = pair.truth.iter().filter(|truth| truth.link < TAPPED && truth.dequeued.is_some()).count();
    println!("{possible} packets passed a tapped link and the queue");
    curves(&pair.truth, &log.seen, snapshots);
    let one_clock = PairParams { behind: Clock::default(), second: Clock::default(), ..pair_params };
    curves_of_a_switch(&Pair::make(Path::new(capture), one_clock)?, snapshots)
}

/// The same through a switch. It counts the lengths of IP packets, so the truth is in those, too: in bytes of frames, flows of small packets have a
/// larger share.
fn curves_of_a_switch(pair: &Pair, snapshots: usize) -> Result<()> {
    let longest = longest(&pair.truth);
    let tau = Nanos(longest.0 / 8);
    let left: Option<Vec<_>> = pair
        .egress
        .iter()
        .map(|record| {
            let truth = pair.truth[record.id];
            Some((ip_length(&record.data), truth.digest, Some(truth.enqueued), truth.dequeued?))
        })
        .collect();
    let true_parts = exact(&left.context("a packet left that did not leave")?);
    for estimator in [Estimator::Inner, Estimator::Outer] {
        let usual = ConQuestLegacyParams::default();
        // The power of two that is nearest to a snapshot's part of the longest delay.
        let part = (longest.0 / snapshots as u64).max(1);
        let window = [1 << part.ilog2(), 2 << part.ilog2()].into_iter().min_by_key(|it| part.abs_diff(*it));
        let sketch = ConQuestParams { window: Nanos(window.unwrap_or(1)), snapshots, ..usual.tapped.sketch.clone() };
        // All packets with a delay are reported, so that each has an estimate.
        let (max_delay, none) = (Nanos(longest.0 * 2), Nanos::ZERO);
        let tapped = TappedConQuestParams { sketch, estimator, max_delay, tau: none, threshold: 0, ..usual.tapped };
        let params = ConQuestLegacyParams { tapped, ..usual };
        let program = conquest_legacy_with(&params)?;
        let switched = through_switch(&program, &params, &processed(pair, &params));
        let tapped: Vec<_> = pair
            .egress
            .iter()
            .map(|record| {
                let from = switched.delays.get(&record.id).map(|delay| record.time - *delay);
                (ip_length(&record.data), pair.truth[record.id].digest, from, record.time)
            })
            .collect();
        let estimates: Vec<_> =
            pair.egress.iter().map(|record| switched.estimates.get(&record.id).map(|it| u64::from(*it))).collect();
        println!(
            "\n### conquest-legacy, {estimator}, {snapshots} snapshots of 2 rows and 64 columns, window {}\n",
            params.tapped.sketch.window
        );
        println!(
            "Fates of the packets: {:?}. {} of those without a place look like the packet that has it.\n",
            switched.fates, switched.repeated
        );
        curve(&true_parts, &exact(&tapped), &estimates, &tapped, tau);
    }
    Ok(())
}

/// What the program counts of a frame.
fn ip_length(frame: &[u8]) -> u32 {
    ParsedFrame::new(frame).input(Input::IpLength) as u32
}

fn longest(truth: &[Truth]) -> Nanos {
    truth.iter().filter_map(|truth| Some(truth.dequeued? - truth.enqueued)).max().unwrap_or_default()
}

/// The departures according to the taps, each with the packet's index.
struct Log {
    egress: BTreeMap<Nanos, usize>,
    seen: Vec<(usize, TapDeparture)>,
}

impl TapOutput for Log {
    fn departed(&mut self, departure: &TapDeparture) {
        self.seen.push((self.egress[&departure.seen.time], *departure));
    }

    fn lost(&mut self, _packet: &TapPacket, _link: usize, _enqueued: Nanos) {}
}

/// A part of the queue in bytes: that of a packet's own flow, and the whole.
type Part = (u64, u64);

/// The exact part of each packet's flow. Departures are in order: size, flow, from, to.
fn exact(departures: &[(u32, u64, Option<Nanos>, Nanos)]) -> Vec<Option<Part>> {
    let (mut flows, mut meter) = (FlowTable::<u64>::with_limit(usize::MAX), ExactMeter::new());
    let mut recent = Recent::new(History::Fifo);
    let part = |&(size, digest, from, to): &(u32, u64, Option<Nanos>, Nanos)| {
        let (flow, _): (_, bool) = flows.intern(&digest, digest, to);
        let part = from.map(|from| {
            recent.advance(from);
            meter.forget_before(from);
            (meter.own(flow, from), recent.backlog_since(from).bytes.0)
        });
        recent.record(PastDeparture { flow, size, enqueued: from.unwrap_or(to), dequeued: to });
        meter.record(flow, size, to);
        part
    };
    departures.iter().map(part).collect()
}

fn curves(truth: &[Truth], seen: &[(usize, TapDeparture)], snapshots: usize) {
    let longest = longest(truth);
    let (tau, window) = (Nanos(longest.0 / 8), Nanos(longest.0.div_ceil(snapshots as u64).max(1)));
    // The egress capture has all departures, in their order.
    let left: Vec<_> = seen
        .iter()
        .filter_map(|(id, _)| {
            let truth = truth[*id];
            Some((truth.size, truth.digest, Some(truth.enqueued), truth.dequeued?))
        })
        .collect();
    let true_parts = exact(&left);
    let tapped: Vec<_> = seen
        .iter()
        .map(|(_, departure)| {
            let from = match departure.arrived {
                Arrived::Seen { enqueued, .. } => Some(enqueued),
                _ => None,
            };
            let digest = Granularity::FiveTuple.project(&departure.seen.key).digest();
            (departure.seen.size, digest, from, departure.dequeued)
        })
        .collect();
    let tap_parts = exact(&tapped);
    let fitted = ConQuestParams::fit(longest, ByteCount(65_536), snapshots, Some(2), Expiry::Tag).expect("it fits");
    println!("\nlongest delay {longest}, tau {tau}, window {window}");
    let name = |what: &str| println!("\n### {what}\n");
    name("exact counts of what the taps saw");
    let exactly: Vec<_> = tap_parts.iter().map(|part| part.map(|(own, _)| own)).collect();
    curve(&true_parts, &tap_parts, &exactly, &tapped, tau);
    for estimator in Estimator::ALL {
        name(&format!("{estimator}, {snapshots} snapshots of 2 rows and 64 columns"));
        let params = ConQuestParams { window, columns: 64, ..fitted.clone() };
        let mut sketch = ConQuest::new(params).expect("the dimensions are possible");
        let estimate = |&(size, digest, from, to): &(u32, u64, Option<Nanos>, Nanos)| match from {
            Some(from) => Some(sketch.observe(digest, size, from, to, estimator)),
            // Section 6.2: without an arrival there is no query, but the packet was in the queue.
            None => {
                sketch.record(digest, size, to);
                None
            }
        };
        let estimates: Vec<_> = tapped.iter().map(estimate).collect();
        curve(&true_parts, &tap_parts, &estimates, &tapped, tau);
    }
}

/// Precision and recall of the reports on packets that were matched and waited at least tau.
fn curve(
    truth: &[Option<Part>],
    known: &[Option<Part>],
    estimates: &[Option<u64>],
    tapped: &[(u32, u64, Option<Nanos>, Nanos)],
    tau: Nanos,
) {
    println!("| alpha | {} |", THRESHOLDS.map(|factor| format!("{factor} alpha")).join(" | "));
    println!("| ---: |{}", " ---: |".repeat(THRESHOLDS.len()));
    for alpha in ALPHAS {
        let cell = |factor: f64| {
            let (mut right, mut wrong, mut missed) = (0u64, 0u64, 0u64);
            for (((truth, known), estimate), (_, _, from, to)) in truth.iter().zip(known).zip(estimates).zip(tapped) {
                let (Some(truth), Some(known), Some(estimate), Some(from)) = (truth, known, estimate, from) else {
                    continue;
                };
                if *to - *from < tau {
                    continue;
                }
                let contributes = truth.1 > 0 && truth.0 as f64 >= alpha * truth.1 as f64;
                let reported = known.1 > 0 && *estimate as f64 >= factor * alpha * known.1 as f64;
                right += u64::from(contributes && reported);
                wrong += u64::from(!contributes && reported);
                missed += u64::from(contributes && !reported);
            }
            let percent = |of: u64| match right + of {
                0 => "-".to_owned(),
                all => format!("{:.1}", right as f64 / all as f64 * 100.0),
            };
            format!("{} / {}", percent(wrong), percent(missed))
        };
        println!("| {} % | {} |", alpha * 100.0, THRESHOLDS.map(cell).join(" | "));
    }
}
