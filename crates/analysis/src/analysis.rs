//! The analysis of departures and drops, from any source.

mod bursts;
mod exact;
pub(crate) mod found;
mod lane;
mod listening;
mod params;
mod watcher;

use crate::analysis::found::{Counts, FoundBurst, Meters};
use crate::analysis::lane::{Passing, SketchLane};
use crate::behaviour::{BehaviourMeter, not_judged};
use crate::delays::DelayCounts;
pub use params::{ALPHA, AnalysisParams, DEPARTURES, MOST_BURSTS, Scale, SketchOptions};
use queuescope_ingest::records::{as_departure, without_flow};
pub use watcher::Watcher;

use crate::findings::{self, Findings};
use crate::index::FlowIndex;
use crate::worst::WorstMeter;
use queuescope_ingest::PacketFilter;
use queuescope_ingest::records::Departures;
use queuescope_meter::{
    BurstFollower, BurstTracker, Contribution, DepthSeries, DistinctFlows, ExactMeter, History, MaxDelay, Overtaking,
    PastDeparture, Ramps, Recent, Score, WindowSums,
};
use queuescope_queue::{Dropped, MarkReason, Sink};
use queuescope_report::model;
use queuescope_sim::Output;
use queuescope_sketch::ParamsError;
use queuescope_wire::{Backlog, Departure, FlowId, Nanos, Packet};

/// The analysis of one stream of departures and drops.
#[derive(Debug)]
pub struct Analysis<D: FlowIndex, W> {
    index: D,
    params: AnalysisParams,
    /// Counts, from 1, how often flow ids were freed.
    era: u32,
    recent: Recent,
    levels: Vec<Meters>,
    /// The sketch, which counts flows of the first granularity.
    sketch: SketchLane,
    /// Whether the exact meters are up to date. They are only while they are needed.
    exact: bool,
    /// Whether they are sums of what is remembered: in a FIFO that forgets nothing early.
    by_sums: bool,
    /// The longest delay that the sketches' windows cover.
    covered: Nanos,
    bursts: BurstTracker<D::Key>,
    /// Number of bursts that have ended, including those that were not kept.
    closed: u64,
    kept: Vec<FoundBurst<D::Key>>,
    /// Bursts that have ended and were not returned by `ended` yet.
    ended: Vec<FoundBurst<D::Key>>,
    /// Only bursts with a longer wait than this are kept.
    least_kept: Nanos,
    /// The longest delays of bursts so far, longest first, as many as the text shows.
    longest: Vec<Nanos>,
    /// Number of bursts that were not kept; and the numbers and longest delays of those that may end up below tau, so that
    /// they are no bursts.
    left_out: u64,
    perhaps_left_out: Vec<(u64, Nanos)>,
    series: Option<DepthSeries<D::Key>>,
    max_delay: Option<MaxDelay>,
    ramps: Ramps,
    /// Fewer bytes of a flow in a window cannot be a jump: a hundredth of what the link sends.
    least_ramp: u64,
    worst: Option<WorstMeter<D::Key>>,
    behaviours: Option<BehaviourMeter<D::Key>>,
    watcher: W,
    counts: Counts,
    delays: DelayCounts,
    /// The flow of the current packet at each granularity, and the part that the flow has of the queue.
    flows: Vec<FlowId>,
    parts: Vec<Contribution>,
    last_enqueued: Nanos,
    /// Packets before this number have been added to a burst, or will never be part of one, except those that the burst
    /// tracker holds.
    joined: u64,
    victims: Option<PacketFilter<Departures>>,
    /// Detects packets that are overtaken, if the queue may not be a FIFO; and by how much the most overtaken packet was,
    /// with its flow.
    order: Option<Overtaking>,
    overtaken: Option<(Nanos, D::Key)>,
    /// Whether the departure time of the next packet was changed, so that it does not show the order.
    is_moved: bool,
}

/// Buckets in the picture of the whole input, and of a burst; and the number of bursts with a picture.
const BUCKETS: usize = 1_200;
const BURST_BUCKETS: usize = 240;
const BURST_PICTURES: usize = 60;
/// Number of culprits that are remembered for a burst, at the first granularity and at each further one. The culprits over
/// all bursts are chosen from them. The report lists fewer.
const MOST_CULPRITS: usize = 256;
const MOST_COARSER_CULPRITS: usize = 40;
/// Number of flows in a picture.
const FLOWS_DRAWN: usize = 12;
/// Number of flows up to which distinct flows are counted exactly.
const DISTINCT_EXACTLY: usize = 1 << 17;

impl<D: FlowIndex, W: Watcher> Analysis<D, W> {
    /// Creates an analysis. `index` assigns flow ids; `watcher` is called for each packet.
    ///
    /// # Errors
    /// Fails if the dimensions of the sketch are invalid.
    pub fn new(index: D, params: AnalysisParams, watcher: W) -> Result<Self, ParamsError> {
        let count = index.granularities().len();
        let distinct = || DistinctFlows::new(DISTINCT_EXACTLY);
        let meters = || Meters {
            sums: WindowSums::new(),
            exact: ExactMeter::new(),
            distinct: distinct(),
            in_bursts: distinct(),
        };
        let culprits = |level| if level == 0 { MOST_CULPRITS } else { MOST_COARSER_CULPRITS };
        let most_culprits: Vec<_> = (0..count).map(culprits).collect();
        let is_judged = not_judged(params.not_judged, &index.granularities()).is_none();
        Ok(Self {
            index,
            era: 1,
            recent: Recent::new(params.history),
            exact: false,
            covered: params.sketch.span(),
            levels: (0..count).map(|_| meters()).collect(),
            by_sums: params.history == History::Fifo && params.most_flows.is_none(),
            sketch: SketchLane::new(
                params.sketch.clone(),
                params.estimators.iter().map(|estimator| Score::new(*estimator, params.alpha)).collect(),
            )?,
            bursts: BurstTracker::new(&most_culprits, params.pictures.then_some((BURST_BUCKETS, FLOWS_DRAWN))),
            closed: 0,
            kept: Vec::new(),
            ended: Vec::new(),
            least_kept: Nanos::ZERO,
            longest: Vec::new(),
            left_out: 0,
            perhaps_left_out: Vec::new(),
            series: None,
            max_delay: params.across_classes.map(MaxDelay::new),
            ramps: Ramps::new(params.sketch.window),
            least_ramp: params.least_ramp(params.sketch.window),
            worst: params.details.then(|| WorstMeter::new(params.tau.value())),
            behaviours: is_judged.then(BehaviourMeter::new),
            watcher,
            counts: Counts::default(),
            delays: DelayCounts::default(),
            flows: vec![FlowId(0); count],
            parts: vec![Contribution::default(); count],
            last_enqueued: Nanos::ZERO,
            joined: 0,
            victims: params.victims.clone(),
            // With the longest recent delay, all queues are analysed together, whatever their order.
            order: (params.history != History::Fifo && params.across_classes.is_none())
                .then(|| Overtaking::new(params.order_tolerance)),
            overtaken: None,
            is_moved: false,
            params,
        })
    }

    /// Frees flows if there are too many at `now`: idle ones, or if that is not enough, the oldest.
    fn make_room(&mut self, now: Nanos) {
        let has_most = |analysis: &Self| analysis.params.most_flows.filter(|most| analysis.index.live() >= *most);
        if !self.index.is_full() && has_most(self).is_none() {
            return;
        }
        // Waiting and remembered packets use ids. Packets of a FIFO leave in the order in which they came, so none of these
        // came before the oldest remembered packet. In other queues, flows are interned as their packets leave.
        let before = match (self.params.history, self.recent.oldest()) {
            (History::Fifo, Some(oldest)) => oldest.enqueued.min(self.last_enqueued),
            (History::Fifo, None) => self.last_enqueued,
            (_, Some(oldest)) => oldest.dequeued,
            (_, None) => Nanos::ZERO,
        };
        self.free_flows(before);
        if has_most(self).is_some() {
            self.decide_held();
        }
        let Some(most) = has_most(self) else { return };
        let had = self.index.live();
        loop {
            self.recent.forget_half();
            self.free_flows(self.recent.oldest().map_or(now, |oldest| oldest.dequeued));
            // Free more than needed, so that this is not repeated soon.
            if self.recent.is_empty() || self.index.live() <= most - most / 4 {
                break;
            }
        }
        self.counts.forgotten += (had - self.index.live()) as u64;
    }

    /// Frees flows that were last seen before a time.
    fn free_flows(&mut self, before: Nanos) {
        self.era = self.era.checked_add(1).expect("flows were freed fewer than 2^32 times");
        let (bursts, watcher, ramps, worst) = (&mut self.bursts, &mut self.watcher, &mut self.ramps, &mut self.worst);
        let behaviours = &mut self.behaviours;
        self.index.expire(before, |level, flow, key| {
            bursts.forget(level, flow, key);
            if level == 0 {
                ramps.forget(flow);
                if let Some(worst) = worst {
                    worst.forget(flow, key);
                }
                if let Some(behaviours) = behaviours {
                    behaviours.forget(flow, key);
                }
                watcher.forget(flow);
            }
        });
    }

    /// Ends the analysis. Returns its results and the watcher.
    pub fn finish(mut self) -> (Findings<D>, W) {
        while self.bursts.is_open() {
            self.cut();
        }
        self.thin_out();
        self.kept.sort_unstable_by_key(|found| found.number);
        self.number();
        // Packets that did not wait were only counted. Most are of this kind.
        let idle = self.counts.departed.packets - self.counts.passed - self.counts.waited;
        let mut delays = self.delays.histogram();
        delays.saturating_record_n(0, idle);
        let (sketch, scores) = self.sketch.finish();
        let (behaviours, unjudged) = self.behaviours.map(|meter| meter.finish(&self.index)).unwrap_or_default();
        let findings = Findings {
            left_out: self.left_out + self.perhaps_left_out.len() as u64,
            picture: self.series.map(|series| series.finish(FLOWS_DRAWN)),
            bursts: self.kept,
            behaviours,
            unjudged,
            index: self.index,
            levels: self.levels,
            sketch,
            scores,
            counts: self.counts,
            delays,
            overtaken: self.order.map_or(0, |order| order.overtaken()),
            most_overtaken: self.overtaken,
            victims: self.victims,
            params: self.params,
        };
        (findings, self.watcher)
    }

    /// Counts packets that left after a short wait, and of which nothing else is known. They count as not having waited if
    /// they are `examined`, that is, victims.
    pub fn left_at_once(&mut self, packets: Backlog, examined: bool) {
        self.counts.departed.packets += packets.packets;
        self.counts.departed.bytes += packets.bytes;
        self.counts.passed += if examined { 0 } else { packets.packets };
    }

    /// Adds drops at unknown times in `[from, to]` to the bursts. They are not counted by reason here.
    pub fn lost(&mut self, from: Nanos, to: Nanos, packets: u64) {
        self.bursts.dropped(from, to, packets);
    }

    /// States that no departure before `now` will follow. Ends a burst that no later packet can be part of.
    pub fn nothing_before(&mut self, now: Nanos) {
        while self.bursts.is_over(now, self.params.tau.value()) {
            self.cut();
        }
    }

    /// Makes [`ended`](Self::ended) return bursts from now on.
    pub fn hand_out_bursts(&mut self) {
        self.params.hands_out = true;
    }

    /// The current value of tau: the least delay at which the queue is congested.
    pub fn tau(&self) -> Nanos {
        self.params.tau.value()
    }

    /// The bursts that ended since the last call, if [`hands_out`](AnalysisParams::hands_out) is set. Their times count from
    /// `origin`.
    pub fn ended(&mut self, origin: Nanos) -> Vec<model::Burst> {
        let ended = std::mem::take(&mut self.ended);
        findings::bursts(&self.index, &self.params, &ended, origin)
    }

    /// The watcher.
    pub fn watcher(&mut self) -> &mut W {
        &mut self.watcher
    }

    /// Processes a packet whose arrival was not seen. It takes part in the queue of others, but its own waiting is not
    /// examined (ConQuest, section 6.2). Its `enqueued` must be its `dequeued`.
    pub fn passed(&mut self, departure: &Departure) {
        let (packet, now) = (departure.packet, departure.dequeued);
        // Packets that are still in the queue may have come at any time before.
        self.advance(Nanos::ZERO);
        self.decide_before_forgetting();
        self.counts.departed.packets += 1;
        self.counts.departed.bytes += packet.size;
        self.counts.passed += 1;
        self.counts.last = self.counts.last.max(now);
        self.project(packet.flow);
        self.sketch(departure, now, false);
        self.remember(departure);
        if let Some(worst) = &mut self.worst {
            worst.departed(departure, self.flows[0]);
        }
        let index = &self.index;
        self.watcher.departed(departure, self.flows[0], None, || index.name(0, index.key(0, self.flows[0])));
    }

    /// Decides which bursts held packets are part of, as no later packet can show it.
    #[cold]
    fn decide_held(&mut self) {
        while self.bursts.holds_waited() {
            self.cut();
        }
    }

    /// The same, if held packets are about to be forgotten.
    #[inline]
    fn decide_before_forgetting(&mut self) {
        if self.order.is_some() && self.bursts.is_open() && self.recent.first() >= self.joined {
            self.decide_held();
        }
    }

    /// Sets the current flow to `flow`, at all granularities.
    fn project(&mut self, flow: FlowId) {
        for (number, own) in self.flows.iter_mut().enumerate() {
            *own = self.index.project(number, flow);
        }
    }

    /// Stores a departure of the current flow, for later packets that waited behind it.
    fn remember(&mut self, departure: &Departure) {
        let (flow, size) = (departure.packet.flow, departure.packet.size.0 as u32);
        let (enqueued, dequeued) = (departure.enqueued, departure.dequeued);
        self.ramps.came(self.flows[0], size, enqueued, self.least_ramp);
        if self.exact && self.by_sums {
            self.levels.iter_mut().zip(&self.flows).for_each(|(level, flow)| level.sums.add(*flow, size));
        } else if self.exact {
            let oldest = self.recent.oldest().map_or(dequeued, |past| past.dequeued);
            for (level, flow) in self.levels.iter_mut().zip(&self.flows) {
                level.exact.forget_before(oldest);
                level.exact.record(*flow, size, dequeued);
            }
        }
        self.recent.record(PastDeparture { flow, size, enqueued, dequeued });
    }

    /// Whether a packet's own waiting is examined.
    fn is_victim(&mut self, departure: &Departure) -> bool {
        let Some(victims) = &mut self.victims else { return true };
        let key = self.index.whole(departure.packet.flow);
        self.counts.unnamed += u64::from(key.is_none());
        let is_victim = victims.holds(&without_flow(departure), &key.unwrap_or_default());
        if is_victim {
            self.counts.victims.packets += 1;
            self.counts.victims.bytes += departure.packet.size;
        }
        is_victim
    }

    /// Checks whether others overtook a packet, which shows that there is more than one queue.
    fn watch_order(&mut self, departure: &Departure) {
        let is_moved = std::mem::take(&mut self.is_moved);
        let Some(order) = self.order.as_mut().filter(|_| !is_moved) else { return };
        let Some(by) = order.departed(departure.enqueued, departure.dequeued) else { return };
        if self.overtaken.as_ref().is_none_or(|(most, _)| by > *most) {
            let flow = self.index.project(0, departure.packet.flow);
            self.overtaken = Some((by, self.index.key(0, flow).clone()));
        }
    }

    /// Counts what does not depend on the flow of a departure.
    fn count(&mut self, departure: &Departure, is_victim: bool) {
        let counts = &mut self.counts;
        let sojourn = departure.sojourn();
        counts.departed.packets += 1;
        counts.departed.bytes += departure.packet.size;
        counts.peak.packets = counts.peak.packets.max(departure.backlog_in.packets);
        counts.peak.bytes = counts.peak.bytes.max(departure.backlog_in.bytes);
        counts.last = counts.last.max(departure.dequeued);
        if !is_victim {
            counts.passed += 1;
        } else if sojourn > Nanos::ZERO {
            counts.waited += 1;
            counts.longest = counts.longest.max(sojourn);
            self.delays.record(sojourn.0);
        }
        self.last_enqueued = departure.enqueued;
    }

    /// The delay that is examined for a packet, and the tau that applies to it.
    fn waited(&mut self, departure: &Departure) -> (Nanos, Nanos) {
        let waited = match &mut self.max_delay {
            Some(register) => register.update(departure.sojourn(), departure.dequeued),
            None => departure.sojourn(),
        };
        if waited > self.covered && self.params.window_grows {
            self.widen(waited);
        }
        (waited, self.params.tau.update(waited))
    }

    #[cold]
    fn widen(&mut self, waited: Nanos) {
        while waited > self.covered {
            self.sketch.widen();
            let covered = self.sketch.params().span();
            if covered <= self.covered {
                // The window has its largest size: longer waits are extrapolated, and it is not widened again.
                self.covered = Nanos::MAX;
                break;
            }
            self.covered = covered;
        }
        let window = self.sketch.params().window;
        self.ramps.widen(window);
        self.least_ramp = self.params.least_ramp(window);
    }

    /// Records the packet in the sketch. If the packet was `hit` by congestion, the sketch's estimates are compared with the exact part.
    #[inline]
    fn sketch(&mut self, departure: &Departure, from: Nanos, hit: bool) {
        let digest = self.index.digest(0, self.flows[0]);
        let (size, now) = (departure.packet.size.0 as u32, departure.dequeued);
        self.sketch.pass(Passing { digest, now, from, part: self.parts[0], size, judged: hit });
    }
}

impl<D: FlowIndex, W: Watcher> Sink for Analysis<D, W> {
    fn dropped(&mut self, dropped: &Dropped) {
        let Dropped { at, reason, packet, queue, enqueued, .. } = *dropped;
        if let Some(victims) = &mut self.victims {
            let key = self.index.whole(packet.flow).unwrap_or_default();
            let left = as_departure(packet, queue, enqueued.unwrap_or(at), at);
            self.counts.victims_dropped += u64::from(victims.holds_uncounted(&without_flow(&left), &key));
        }
        *self.counts.drops.entry(reason).or_default() += 1;
        self.bursts.dropped(at, at, 1);
        if let Some(series) = &mut self.series {
            series.dropped(at, 1);
        }
        let flow = self.index.project(0, packet.flow);
        if let Some(behaviours) = &mut self.behaviours {
            behaviours.dropped(flow, enqueued.unwrap_or(at));
        }
        self.watcher.dropped(dropped, flow);
    }

    fn marked(&mut self, _packet: &Packet, reason: MarkReason, _now: Nanos) {
        *self.counts.marks.entry(reason).or_default() += 1;
    }
}

impl<D: FlowIndex, W: Watcher> Output for Analysis<D, W> {
    fn departed(&mut self, departure: &Departure) {
        let is_victim = self.is_victim(departure);
        let (waited, tau) = self.waited(departure);
        let from = departure.dequeued.saturating_sub(waited);
        self.watch_order(departure);
        if self.order.is_none() && self.bursts.ends_with(waited, from, tau) {
            self.close_burst();
        }
        let goes_on = match self.order {
            None => self.bursts.is_open(),
            Some(_) => self.bursts.goes_on_at_once(waited, from, tau),
        };
        if goes_on && self.joined < self.recent.recorded() {
            self.join_passed(self.recent.recorded());
        }
        self.advance(from);
        self.decide_before_forgetting();
        let filled;
        let departure = if self.params.backlog_is_known {
            departure
        } else {
            filled = Departure { backlog_in: self.recent.backlog_since(departure.enqueued), ..*departure };
            &filled
        };
        self.count(departure, is_victim);
        self.project(departure.packet.flow);
        let hit = waited >= tau && is_victim;
        let congested = hit || self.bursts.is_open();
        if congested || self.watcher.wants_parts() {
            self.measure_exact(departure, from);
        } else {
            self.clear_exact();
        }
        if hit {
            self.counts.hit += 1;
            // Where packets leave in any order, more is remembered than what was in the queue.
            if !matches!(self.params.history, History::Departures(_)) {
                self.counts.flows_met += self.flows_in_window();
            }
        }
        self.sketch(departure, from, hit);
        if congested {
            self.follow(departure, is_victim, from, tau);
        }
        let (index, size) = (&self.index, departure.packet.size.0 as u32);
        if let Some(worst) = &mut self.worst {
            worst.departed(departure, self.flows[0]);
        }
        if self.params.pictures {
            let series = self.series.get_or_insert_with(|| DepthSeries::new(departure.enqueued, BUCKETS));
            series.departed(index.key(0, self.flows[0]), size, departure.enqueued, departure.dequeued);
        }
        if let Some(behaviours) = &mut self.behaviours {
            behaviours.departed(self.flows[0], departure);
        }
        self.remember(departure);
        let (index, part) = (&self.index, Some(self.parts[0]));
        self.watcher.departed(departure, self.flows[0], part, || index.name(0, index.key(0, self.flows[0])));
    }
}
