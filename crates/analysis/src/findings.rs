//! The results of an analysis, and the report made of them.

use crate::analysis::AnalysisParams;
use crate::analysis::found::{Counts, FoundBurst, Meters};
use crate::behaviour::not_judged;
use crate::index::FlowIndex;
use crate::show::Show;
use crate::worst::{AT_MOST, Named, Worst};
use hdrhistogram::Histogram;
use queuescope_ingest::notes::{noted, unnamed};
use queuescope_ingest::records::Departures;
use queuescope_ingest::{PacketFilter, Source};
use queuescope_meter::{BurstCulprits, Picture, RateChange, Score, Share};
use queuescope_report::format::duration;
use queuescope_report::model;
use queuescope_report::model::{FlowBehaviour, Skipped};
use queuescope_sketch::ConQuest;
use queuescope_wire::{Backlog, ByteCount, Nanos, Rate};
use std::collections::BTreeMap;

/// The results of an analysis. They identify flows by id; [`report`](Self::report) gives them names.
#[derive(Debug)]
pub struct Findings<D: FlowIndex> {
    pub(crate) index: D,
    pub(crate) levels: Vec<Meters>,
    pub(crate) behaviours: BTreeMap<D::Key, FlowBehaviour>,
    /// Heavy flows that are not among these.
    pub(crate) unjudged: u64,
    pub(crate) sketch: ConQuest,
    pub(crate) scores: Vec<Score>,
    pub(crate) bursts: Vec<FoundBurst<D::Key>>,
    pub(crate) left_out: u64,
    pub(crate) picture: Option<Picture<D::Key>>,
    pub(crate) counts: Counts,
    pub(crate) delays: Histogram<u64>,
    /// Number of packets that were overtaken; and of the one that was overtaken by most, by how much, and its flow.
    pub(crate) overtaken: u64,
    pub(crate) most_overtaken: Option<(Nanos, D::Key)>,
    pub(crate) victims: Option<PacketFilter<Departures>>,
    pub(crate) params: AnalysisParams,
}

const FORGOTTEN: &str = "flows that were forgotten early, with the packets that left before, because memory for flows is limited: bursts still count their packets and bytes, but the report may not name these flows";

const UNJUDGED: &str =
    "flows whose behaviour is not known, because memory for it is limited: they have none in the list of culprits";

const AMONG_HEAVIEST: &str = "bursts with more flows than are remembered by name (the 256 heaviest at the first granularity, 40 at others): --show lists only flows among these";

const UNJOINED: &str =
    "packets that were part of a burst, but were forgotten before this was known: bursts do not count them";

const PERCENTILES: [f64; 5] = [50.0, 90.0, 99.0, 99.9, 100.0];

impl<D: FlowIndex> Findings<D> {
    /// Makes the report. Its times count from the first packet.
    pub fn report(self, mut source: Source) -> model::Report {
        let names = self.index.granularities();
        let namer = Namer { index: &self.index, params: &self.params, origin: source.span.0, names: &names };
        let bursts = self.bursts.iter().map(|found| namer.burst(found)).collect();
        let mut skipped = std::mem::take(&mut source.skipped);
        let truncated = self.counts.history_too_short;
        skipped.extend(
            (truncated > 0).then(|| Skipped {
                reason: "history_too_short".to_owned(),
                count: truncated,
                meaning: "packets waited longer than departures are remembered; their flows' parts cover only the remembered departures"
                    .to_owned(),
            }),
        );
        skipped.extend(noted("flows_forgotten", self.counts.forgotten, FORGOTTEN));
        skipped.extend(self.overtaken());
        skipped.extend(noted("burst_departures_forgotten", self.counts.unjoined, UNJOINED));
        skipped.extend(self.victims.as_ref().and_then(PacketFilter::note));
        skipped.extend(unnamed(self.counts.unnamed));
        skipped.extend(noted("flows_unjudged", self.unjudged, UNJUDGED));
        skipped.extend(noted("show_among_heaviest", self.crowded(), AMONG_HEAVIEST));
        skipped.extend(self.params.show.as_ref().and_then(|show| self.index.note(show, &names)));
        model::Report {
            totals: self.totals(&source),
            setup: self.setup(&names, &source),
            culprits: namer.overall(&self.bursts, &self.levels, &self.behaviours),
            sketch: self.scores(&names[0]),
            series: self.picture.as_ref().map(|picture| namer.series(picture)),
            bursts_omitted: self.left_out,
            input: source.input,
            tap: None,
            sim: None,
            others: Vec::new(),
            bursts,
            skipped,
        }
    }

    /// A note on packets that were overtaken, and what to do about it.
    fn overtaken(&self) -> Option<Skipped> {
        let (by, key) = self.most_overtaken.as_ref()?;
        let (by, whose) = (duration(by.0), self.index.name(0, key));
        let meaning = format!(
            "packets left after others that had come later (by up to {by}, of {whose}): there is more than one queue, such as classes. A \
             burst lasts while packets of any of them wait, and shares are of all queues together. Depths and flows' parts are what left while a packet waited, so they count packets that overtook it, and not packets before it that were still in the queue when it left. To analyse one queue alone, choose its packets with --input, such as 'class == 1' or 'dst_port == 443'"
        );
        noted("overtaken", self.overtaken, &meaning)
    }

    /// Number of bursts with more flows than `--show` can choose from.
    fn crowded(&self) -> u64 {
        let is_crowded = |blamed: &BurstCulprits<D::Key>| blamed.flows > blamed.top.len() as u64;
        let crowded = self.bursts.iter().filter(|found| found.burst.blamed.iter().any(is_crowded));
        if self.params.show.is_some() { crowded.count() as u64 } else { 0 }
    }

    fn totals(&self, source: &Source) -> model::Totals {
        let &Source { packets, bytes, span, super_packets, rate, on_link, .. } = source;
        let counts = &self.counts;
        let duration = span.1.saturating_sub(span.0);
        let seconds = duration.as_secs_f64();
        let came =
            Backlog { packets: counts.departed.packets + counts.drops.values().sum::<u64>(), bytes: ByteCount(bytes) };
        // Utilisation counts from the first packet until the link has sent the last.
        let sending = |rate: Rate| {
            let tail = counts.last.saturating_sub(span.0).max(duration).as_secs_f64();
            let busy = counts.departed.on_link(on_link).0 as f64 * 8.0 / rate.bits_per_second() as f64;
            if busy > 0.0 { (busy / tail.max(busy)).min(1.0) } else { 0.0 }
        };
        model::Totals {
            packets,
            bytes,
            flows: self
                .levels
                .iter()
                .zip(self.index.granularities())
                .map(|(level, granularity)| {
                    let (flows, exact) = level.distinct.count();
                    model::FlowCount { granularity, flows, exact, unknown_packets: 0 }
                })
                .collect(),
            duration_ns: duration.0,
            departed_packets: counts.departed.packets,
            departed_bytes: counts.departed.bytes.0,
            drops_unfiltered: false,
            marks: counts.marks.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            drops: counts.drops.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            offered_bps: (seconds > 0.0).then(|| came.on_link(on_link).0 as f64 * 8.0 / seconds),
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
            flows_in_queue_mean: (counts.flows_met > 0).then(|| counts.flows_met as f64 / counts.hit as f64),
            super_packets,
            victims: self.victims.is_some().then_some(model::VictimCount {
                packets: counts.victims.packets,
                bytes: counts.victims.bytes.0,
                dropped: source.knows_drops.then_some(counts.victims_dropped),
            }),
        }
    }

    fn setup(&self, names: &[String], source: &Source) -> model::Setup {
        let (sketch, params) = (self.sketch.params(), &self.params);
        model::Setup {
            rate_bps: source.rate.map(Rate::bits_per_second),
            aqm: source.aqm.clone(),
            limit: source.limit.clone(),
            speedup: source.speedup.clone(),
            overhead: source.overhead.clone(),
            overhead_bytes: source.on_link,
            inner: source.inner,
            split_gso: source.split_gso,
            granularities: names.to_vec(),
            tau_ns: params.tau.value().0,
            tau_source: params.tau.to_string(),
            alpha: params.alpha,
            input_filter: source.only.clone(),
            victims_filter: self.victims.as_ref().map(|victims| victims.text().to_owned()),
            show_filter: params.show.as_ref().map(|show| show.text().to_owned()),
            behaviour: not_judged(params.not_judged, names).map(str::to_owned),
            sketch: model::SketchSetup {
                snapshots: sketch.snapshots,
                rows: sketch.rows,
                columns: sketch.columns,
                window_ns: sketch.window.0,
                window_source: if params.window_grows { "chosen" } else { "given" }.to_owned(),
                expiry: sketch.expiry.to_string(),
                bytes: sketch.memory().0,
            },
        }
    }

    fn scores(&self, granularity: &str) -> Vec<model::SketchScore> {
        let score = |score: &Score| model::SketchScore {
            granularity: granularity.to_owned(),
            estimator: score.estimator.to_string(),
            queries: score.asked,
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

/// Bursts as a report lists them. Their times count from `origin`.
pub(crate) fn bursts<D: FlowIndex>(
    index: &D,
    params: &AnalysisParams,
    bursts: &[FoundBurst<D::Key>],
    origin: Nanos,
) -> Vec<model::Burst> {
    let namer = Namer { index, params, origin, names: &index.granularities() };
    bursts.iter().map(|found| namer.burst(found)).collect()
}

/// Turns keys into names, and times into offsets from `origin`.
struct Namer<'a, D> {
    index: &'a D,
    params: &'a AnalysisParams,
    origin: Nanos,
    names: &'a [String],
}

/// Number of flows that are listed if none is above alpha.
const AT_LEAST: usize = 3;

impl<D: FlowIndex> Namer<'_, D> {
    fn burst(&self, found: &FoundBurst<D::Key>) -> model::Burst {
        let burst = &found.burst;
        let blamed = burst.blamed.iter().zip(self.names).enumerate();
        // Rate jumps are known only at the first granularity.
        let ramps = |level: usize| (level == 0).then_some(found.ramps.as_slice());
        model::Burst {
            number: found.number,
            start_ns: self.offset(burst.start),
            length_ns: burst.end.saturating_sub(burst.start).0,
            peak_delay_ns: burst.peak_delay.0,
            peak_at_ns: self.offset(burst.peak_at),
            peak_depth_bytes: burst.peak_backlog.bytes.0,
            peak_depth_packets: burst.peak_backlog.packets,
            tau_ns: burst.tau.0,
            packets_over_tau: burst.hit,
            packets: burst.packets,
            bytes: burst.bytes,
            drops: burst.drops,
            culprits: blamed
                .map(|(level, (blamed, name))| self.culprits(level, name, blamed, burst.bytes, ramps(level), None))
                .collect(),
            groups: found.groups.clone(),
            worst: found.worst.as_ref().map(|worst| self.worst(worst)),
            series: burst.picture.as_ref().map(|picture| self.series(picture)),
        }
    }

    /// The culprits over all bursts, from those of each.
    fn overall(
        &self,
        bursts: &[FoundBurst<D::Key>],
        levels: &[Meters],
        behaviours: &BTreeMap<D::Key, FlowBehaviour>,
    ) -> Vec<model::Culprits> {
        let total: u64 = bursts.iter().map(|found| found.burst.bytes).sum();
        let level = |(level, granularity): (usize, &String)| {
            let mut sums = BTreeMap::<&D::Key, Share>::new();
            for (key, share) in bursts.iter().flat_map(|found| &found.burst.blamed[level].top) {
                let sum = sums.entry(key).or_default();
                *sum = sum.and(*share);
            }
            let (flows, _) = levels[level].in_bursts.count();
            let mut top: Vec<_> = sums.into_iter().map(|(key, share)| (key.clone(), share)).collect();
            // Stable: ties stay in the order of their keys.
            top.sort_by_key(|(_, share)| std::cmp::Reverse(share.bytes));
            let blamed = || bursts.iter().map(|found| &found.burst.blamed[level]);
            let unlisted = blamed().map(|blamed| blamed.unlisted).sum();
            let error = unlisted + blamed().map(|blamed| blamed.error).sum::<u64>();
            // Flows are judged over the whole input, at the first granularity.
            let behaviours = (level == 0).then_some(behaviours);
            let blamed = BurstCulprits { top, flows, error, unlisted };
            self.culprits(level, granularity, &blamed, total, None, behaviours)
        };
        self.names.iter().enumerate().map(level).collect()
    }

    fn worst(&self, worst: &Worst<D::Key>) -> model::Worst {
        model::Worst {
            since_ns: self.offset(worst.since),
            direct: self.ranked(&worst.direct),
            indirect: self.ranked(&worst.indirect),
            original: worst.original.as_ref().map(|original| self.ranked(original)),
        }
    }

    fn ranked(&self, named: &Named<D::Key>) -> model::Ranked {
        let share = |bytes: u64| if named.bytes > 0 { bytes as f64 / named.bytes as f64 } else { 0.0 };
        let lists = |key: &Option<D::Key>| match key {
            Some(key) => self.lists(0, key),
            None => self.filters(0).is_none(),
        };
        let listed: Vec<_> = named.flows.iter().filter(|(key, _)| lists(key)).collect();
        let heavy = listed.iter().take_while(|(_, bytes)| share(*bytes) >= self.params.alpha).count();
        let part = |(key, bytes): &&(Option<D::Key>, u64)| model::Part {
            flow: key.as_ref().map_or("a flow that ended long before".to_owned(), |key| self.index.name(0, key)),
            bytes: *bytes,
            packets: None,
            share: share(*bytes),
        };
        let flows: Vec<_> = listed.iter().take(heavy.clamp(AT_LEAST, AT_MOST)).map(part).collect();
        model::Ranked {
            bytes: named.bytes,
            packets: None,
            by: vec![model::Parts {
                granularity: self.names[0].clone(),
                not_shown: self.not_shown(0, named.flows_total, named.bytes, flows.iter().map(|part| part.bytes)),
                flows,
                flows_total: named.flows_total,
            }],
            groups: Vec::new(),
            classes: Vec::new(),
        }
    }

    fn culprits(
        &self,
        level: usize,
        granularity: &str,
        blamed: &BurstCulprits<D::Key>,
        total: u64,
        ramps: Option<&[(D::Key, RateChange)]>,
        behaviours: Option<&BTreeMap<D::Key, FlowBehaviour>>,
    ) -> model::Culprits {
        let share = |bytes: u64| if total > 0 { bytes as f64 / total as f64 } else { 0.0 };
        let listed: Vec<_> = blamed.top.iter().filter(|(key, _)| self.lists(level, key)).collect();
        let heavy = listed.iter().take_while(|(_, part)| share(part.bytes) >= self.params.alpha).count();
        let jump = |key: &D::Key| ramps?.iter().find(|(other, _)| other == key).map(|(_, jump)| *jump);
        let ramp = |key: &D::Key| match jump(key)? {
            RateChange::Ramped(factor) => Some(factor),
            RateChange::New => None,
        };
        let wanted = |key: &D::Key| ramps.is_none() || self.params.ramped.is_none_or(|least| ramp(key) >= Some(least));
        let flows = listed.iter().take(if heavy > 0 { heavy } else { AT_LEAST });
        let flows = flows.filter(|(key, _)| wanted(key)).take(AT_MOST);
        let flows: Vec<_> = flows
            .map(|(key, part)| model::Culprit {
                flow: self.index.name(level, key),
                bytes: part.bytes,
                packets: part.packets,
                share: share(part.bytes),
                peak_bytes: part.peak,
                ramp: ramp(key),
                new: jump(key) == Some(RateChange::New),
                owner: None,
                behaviour: behaviours.and_then(|all| all.get(key)).cloned(),
            })
            .collect();
        model::Culprits {
            granularity: granularity.to_owned(),
            not_shown: self.not_shown(level, blamed.flows, total, flows.iter().map(|culprit| culprit.bytes)),
            flows,
            flows_total: blamed.flows,
            culprits_total: heavy as u64,
            share_error: share(blamed.error),
        }
    }

    /// What is not listed of `flows` flows with `bytes` bytes, if a filter chooses among them. `listed` are the bytes of the
    /// listed flows.
    fn not_shown(
        &self,
        level: usize,
        flows: u64,
        bytes: u64,
        listed: impl ExactSizeIterator<Item = u64>,
    ) -> Option<model::NotShown> {
        self.filters(level).map(|_| model::NotShown::beside(flows, bytes, listed))
    }

    /// The filter for flows of a granularity, if there is one that can be applied.
    fn filters(&self, level: usize) -> Option<&Show> {
        self.params.show.as_ref().filter(|show| self.index.can_show(show, level))
    }

    /// Whether a flow passes the filter.
    fn lists(&self, level: usize, key: &D::Key) -> bool {
        self.filters(level).is_none_or(|show| self.index.shows(show, level, key))
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
                .filter(|part| self.lists(0, &part.key))
                .map(|part| model::SeriesFlow { flow: self.index.name(0, &part.key), mean_bytes: part.mean.clone() })
                .collect(),
        }
    }

    fn offset(&self, time: Nanos) -> u64 {
        time.saturating_sub(self.origin).0
    }
}
