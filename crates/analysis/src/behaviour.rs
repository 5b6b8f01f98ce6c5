//! How heavy flows behave, also those that have ended.

use crate::index::FlowIndex;
use queuescope_meter::{BehaviourParams, Behaviours, Judgement, Response};
use queuescope_report::model::{FlowBehaviour, Reaction};
use queuescope_wire::{Departure, FlowId, Nanos};
use std::collections::BTreeMap;

/// The meter of flows' behaviour, and its judgements of flows whose ids were freed.
#[derive(Debug)]
pub(crate) struct BehaviourMeter<K> {
    meter: Behaviours,
    ended: BTreeMap<K, Judgement>,
    /// Flows that ended when there were as many as are kept.
    unkept: u64,
}

/// The most judgements of ended flows that are kept.
const MOST_ENDED: usize = 4_096;

/// Why flows of a replayed capture are not judged.
pub(crate) const NOT_SEEN: &str = "not applicable: the senders did not see this queue";
/// Why flows are not judged that are not connections.
const COARSER: &str = "not applicable: the first granularity is not 5tuple";

impl<K: Ord + Clone> BehaviourMeter<K> {
    pub fn new() -> Self {
        Self { meter: Behaviours::new(BehaviourParams::default()), ended: BTreeMap::new(), unkept: 0 }
    }

    #[inline]
    pub fn departed(&mut self, flow: FlowId, departure: &Departure) {
        self.meter.departed(flow, departure);
    }

    pub fn dropped(&mut self, flow: FlowId, arrived: Nanos) {
        self.meter.dropped(flow, arrived);
    }

    /// A flow's id is freed.
    pub fn forget(&mut self, flow: FlowId, key: &K) {
        if let Some(rounds) = self.meter.flow(flow) {
            if self.ended.len() < MOST_ENDED {
                self.ended.insert(key.clone(), rounds.judge());
            } else {
                self.unkept += 1;
            }
        }
        self.meter.forget(flow);
    }

    /// The judgements of all flows that were followed, by key; and the number of heavy flows that were not, or of which nothing is known any more.
    pub fn finish<D: FlowIndex<Key = K>>(self, index: &D) -> (BTreeMap<K, FlowBehaviour>, u64) {
        let stats = self.meter.stats();
        let unjudged = stats.unfollowed + stats.replaced + self.unkept;
        let mut all = self.ended;
        for flow in index.flows(0) {
            if let Some(rounds) = self.meter.flow(flow) {
                all.insert(index.key(0, flow).clone(), rounds.judge());
            }
        }
        (all.into_iter().map(|(key, judgement)| (key, reported(&judgement))).collect(), unjudged)
    }
}

/// Why flows are not judged, if they are not: `reason` applies to the input, and flows must be connections.
pub(crate) fn not_judged(reason: Option<&'static str>, granularities: &[String]) -> Option<&'static str> {
    let is_flow = granularities.first().is_some_and(|first| matches!(first.as_str(), "5tuple" | "flow"));
    reason.or((!is_flow).then_some(COARSER))
}

fn reported(judgement: &Judgement) -> FlowBehaviour {
    let evidence = &judgement.evidence;
    let reaction = |response: &Response| Reaction {
        episodes: response.episodes,
        ratio: response.ratio,
        reduced_share: response.reduced,
        dip: response.dip,
        dipped_share: response.dipped,
        growth: response.growth,
    };
    FlowBehaviour {
        name: judgement.behaviour.name().to_owned(),
        rtt_ns: evidence.rtt.map(|rtt| rtt.0),
        round_trips: evidence.rounds,
        share: evidence.share,
        window_packets: evidence.window,
        rate_variation: evidence.rate_variation,
        drops: evidence.drops,
        drop_round_trips: evidence.drop_rounds,
        after_drops: reaction(&evidence.losses),
        drop_backlog_packets: evidence.loss_backlog,
        drop_delay_ns: evidence.loss_delay.0,
        surges: evidence.surges,
        surge: evidence.surge,
        ecn_share: evidence.capable,
        l4s_share: evidence.l4s,
        marked_share: evidence.marked_rounds,
        after_marks: reaction(&evidence.marks),
        uncaused_reductions: evidence.uncaused,
        quiet_round_trips: evidence.quiet_rounds,
        quiet_rise: evidence.quiet_rise,
        quiet_fall: evidence.quiet_fall,
        backlog_packets: evidence.backlog,
        high_backlog_packets: evidence.high_backlog,
        high_delay_ns: evidence.high_sojourn.0,
        busy_share: evidence.busy,
        pulses: evidence.pulses,
        pulse_period: evidence.pulse_period,
        pulse_regularity: evidence.pulse_regularity,
        periodicity: evidence.periodicity,
        period: evidence.period,
        floors: evidence.floors,
        floor_period_ns: evidence.floor_period.0,
        floor_regularity: evidence.floor_regularity,
    }
}
