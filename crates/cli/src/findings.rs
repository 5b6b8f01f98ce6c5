//! What an analysis found, with ids; and the report of it, with names.

use crate::analysis::{Counts, Meters};
use crate::door::Door;
use crate::source::Source;
use hdrhistogram::Histogram;
use queuescope_meter::{Blamed, Burst, Picture, Score, Share, Tau};
use queuescope_report::model;
use queuescope_sketch::ConQuest;
use queuescope_wire::{Nanos, Rate};
use std::collections::BTreeMap;

/// What an analysis found.
#[derive(Debug)]
pub struct Findings<D: Door> {
    pub(crate) door: D,
    pub(crate) levels: Vec<Meters>,
    pub(crate) sketch: ConQuest,
    pub(crate) scores: Vec<Score>,
    pub(crate) bursts: Vec<Burst<D::Key>>,
    pub(crate) left_out: u64,
    pub(crate) picture: Option<Picture<D::Key>>,
    pub(crate) counts: Counts,
    pub(crate) delays: Histogram<u64>,
    pub(crate) tau: Tau,
}

const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

impl<D: Door> Findings<D> {
    /// The report. Times in it count from the first packet.
    pub fn report(self, source: Source, window_source: String, alpha: f64) -> model::Report {
        let origin = source.span.0;
        let names = self.door.granularities();
        let namer = Namer { door: &self.door, origin, names: &names, alpha };
        let bursts =
            self.bursts.iter().enumerate().map(|(index, burst)| namer.burst(index as u64 + 1, burst)).collect();
        let mut skipped = source.skipped;
        let truncated = self.counts.history_too_short;
        skipped.extend(
            (truncated > 0).then(|| model::Skipped {
                reason: "history_too_short".to_owned(),
                count: truncated,
                meaning: "packets waited longer than departures are remembered; their flows' parts cover only what is"
                    .to_owned(),
            }),
        );
        model::Report {
            totals: self.totals(source.packets, source.bytes, source.span, source.super_packets, source.rate),
            setup: self.setup(
                &names,
                alpha,
                source.rate,
                (source.limit, source.speedup, source.overhead),
                window_source,
            ),
            culprits: namer.overall(&self.bursts),
            sketch: self.scores(&names[0]),
            series: self.picture.as_ref().map(|picture| namer.series(picture)),
            bursts_left_out: self.left_out,
            input: source.input,
            tap: None,
            bursts,
            skipped,
        }
    }

    fn totals(
        &self,
        packets: u64,
        bytes: u64,
        span: (Nanos, Nanos),
        super_packets: u64,
        rate: Option<Rate>,
    ) -> model::Totals {
        let counts = &self.counts;
        let duration = span.1.saturating_sub(span.0);
        let seconds = duration.as_secs_f64();
        // The link is there from the first packet until it has sent the last.
        let sending = |rate: Rate| {
            let tail = counts.last.saturating_sub(span.0).max(duration).as_secs_f64();
            let busy = counts.departed.bytes.0 as f64 * 8.0 / rate.bits_per_second() as f64;
            if busy > 0.0 { (busy / tail.max(busy)).min(1.0) } else { 0.0 }
        };
        model::Totals {
            packets,
            bytes,
            flows: self
                .levels
                .iter()
                .zip(self.door.granularities())
                .map(|(level, granularity)| {
                    let (flows, exact) = level.distinct.count();
                    model::FlowCount { granularity, flows, exact }
                })
                .collect(),
            duration_ns: duration.0,
            departed_packets: counts.departed.packets,
            departed_bytes: counts.departed.bytes.0,
            drops: counts.drops.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            offered_bps: (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds),
            utilisation: rate.map(sending),
            waited_share: counts.waited as f64 / (counts.departed.packets - counts.passed).max(1) as f64,
            delay_percentiles: PERCENTILES
                .iter()
                .map(|&percentile| {
                    let delay = if percentile >= 100.0 {
                        counts.longest.0
                    } else {
                        self.delays.value_at_percentile(percentile)
                    };
                    (percentile, delay.min(counts.longest.0))
                })
                .collect(),
            peak_delay_ns: counts.longest.0,
            peak_depth_bytes: counts.peak.bytes.0,
            peak_depth_packets: counts.peak.packets,
            flows_in_queue_mean: (counts.hit > 0).then(|| counts.flows_met as f64 / counts.hit as f64),
            super_packets,
        }
    }

    fn setup(
        &self,
        names: &[String],
        alpha: f64,
        rate: Option<Rate>,
        (limit, speedup, overhead): (String, String, String),
        window_source: String,
    ) -> model::Setup {
        let sketch = self.sketch.params();
        model::Setup {
            rate_bps: rate.map(Rate::bits_per_second),
            limit,
            speedup,
            overhead,
            granularities: names.to_vec(),
            tau_ns: self.tau.value().0,
            tau_source: self.tau.to_string(),
            alpha,
            sketch: model::SketchSetup {
                snapshots: sketch.snapshots,
                rows: sketch.rows,
                columns: sketch.columns,
                window_ns: sketch.window.0,
                window_source,
                expiry: sketch.expiry.to_string(),
                bytes: sketch.memory().0,
            },
        }
    }

    fn scores(&self, granularity: &str) -> Vec<model::SketchScore> {
        let score = |score: &Score| model::SketchScore {
            granularity: granularity.to_owned(),
            estimator: score.estimator.to_string(),
            asked: score.asked,
            true_positives: score.true_positives,
            false_positives: score.false_positives,
            false_negatives: score.false_negatives,
            precision: score.precision(),
            recall: score.recall(),
            mean_error_bytes: score.mean_error(),
        };
        self.scores.iter().map(score).collect()
    }
}

/// Turns keys into names and times into offsets.
struct Namer<'a, D> {
    door: &'a D,
    origin: Nanos,
    names: &'a [String],
    alpha: f64,
}

/// Flows that are told although they are below alpha, where none is above it.
const AT_LEAST: usize = 3;

/// Flows that are told, however many are above alpha.
const AT_MOST: usize = 12;

impl<D: Door> Namer<'_, D> {
    fn burst(&self, number: u64, burst: &Burst<D::Key>) -> model::Burst {
        let blamed = burst.blamed.iter().zip(self.names).enumerate();
        model::Burst {
            number,
            start_ns: self.offset(burst.start),
            length_ns: burst.end.saturating_sub(burst.start).0,
            peak_delay_ns: burst.peak_delay.0,
            peak_at_ns: self.offset(burst.peak_at),
            peak_depth_bytes: burst.peak_backlog.bytes.0,
            peak_depth_packets: burst.peak_backlog.packets,
            packets_hit: burst.hit,
            packets: burst.packets,
            bytes: burst.bytes,
            drops: burst.drops,
            culprits: blamed.map(|(level, (blamed, name))| self.culprits(level, name, blamed, burst.bytes)).collect(),
            series: burst.picture.as_ref().map(|picture| self.series(picture)),
        }
    }

    /// The culprits over all bursts, from those of each.
    fn overall(&self, bursts: &[Burst<D::Key>]) -> Vec<model::Culprits> {
        let total: u64 = bursts.iter().map(|burst| burst.bytes).sum();
        let level = |(level, granularity): (usize, &String)| {
            let mut sums = BTreeMap::<&D::Key, Share>::new();
            for (key, share) in bursts.iter().flat_map(|burst| &burst.blamed[level].top) {
                let sum = sums.entry(key).or_default();
                *sum = sum.and(*share);
            }
            let flows = sums.len() as u64;
            let mut top: Vec<_> = sums.into_iter().map(|(key, share)| (key.clone(), share)).collect();
            // Stable: ties stay in the order of their keys.
            top.sort_by_key(|(_, share)| std::cmp::Reverse(share.bytes));
            self.culprits(level, granularity, &Blamed { top, flows }, total)
        };
        self.names.iter().enumerate().map(level).collect()
    }

    fn culprits(&self, level: usize, granularity: &str, blamed: &Blamed<D::Key>, total: u64) -> model::Culprits {
        let share = |bytes: u64| if total > 0 { bytes as f64 / total as f64 } else { 0.0 };
        let heavy = blamed.top.iter().take_while(|(_, part)| share(part.bytes) >= self.alpha).count();
        let flows = blamed.top.iter().take(if heavy > 0 { heavy.min(AT_MOST) } else { AT_LEAST });
        model::Culprits {
            granularity: granularity.to_owned(),
            flows: flows
                .map(|(key, part)| model::Culprit {
                    flow: self.door.name(level, key),
                    bytes: part.bytes,
                    packets: part.packets,
                    share: share(part.bytes),
                    peak_bytes: part.peak,
                })
                .collect(),
            flows_total: blamed.flows,
        }
    }

    fn series(&self, picture: &Picture<D::Key>) -> model::Series {
        model::Series {
            start_ns: self.offset(picture.start),
            bucket_ns: picture.width.0,
            mean_bytes: picture.mean.clone(),
            peak_delay_ns: picture.peak_delay.iter().map(|delay| delay.0).collect(),
            drops: picture.drops.clone(),
            flows: picture
                .parts
                .iter()
                .map(|part| model::SeriesFlow { flow: self.door.name(0, &part.key), mean_bytes: part.mean.clone() })
                .collect(),
        }
    }

    fn offset(&self, time: Nanos) -> u64 {
        time.saturating_sub(self.origin).0
    }
}
