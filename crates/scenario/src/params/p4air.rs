//! The keys of P4air. In a scenario, it manages the ports whose queues have it.

use super::{STEP, TIME};
use crate::keys::{KeyVisitor, Table, choice, fields};
use crate::value::names;
use queuescope_queue::{
    ActEvery, ActOn, Assignment, FlowAction, FlowTable, GroupActions, Newest, P4airParams, Queueing, RttFilter,
    RttSource, ShareForm, Start,
};
use queuescope_sketch::{FingerprintParams, RatePattern, Rise};
use queuescope_wire::{ByteCount, Nanos};

pub(crate) fn p4air<K: KeyVisitor>(params: &mut P4airParams, keys: &mut K) {
    keys.within(
        "queues",
        &mut params.queues,
        6..=4096,
        "The number of queues of each port; two are for short-lived flows. Each group has at least one, also those of mark and scalable.",
    );
    keys.key("fingerprint", &mut params.fingerprint, "How flows are classified by their congestion control.");
    keys.key("table", &mut params.table, "Where flows are kept.");
    keys.key("newest", &mut params.newest, "Which flow moves to another group when a queue grows.");
    keys.key("start", &mut params.start, "How queues are divided before there are flows.");
    keys.key("assignment", &mut params.assignment, "Which queue of its group a flow gets.");
    keys.key("queueing", &mut params.queueing, "How groups share the link.");
    keys.key("rtt", &mut params.rtt, "Where round-trip times come from.");
    keys.within(
        "mark",
        &mut params.mark.0,
        0..=63,
        "The class (DSCP) that marks the packets of long-lived flows; flows that come with it are in a group of shaped flows. 0 for no marks.",
    );
    keys.key("scalable", &mut params.scalable, "Whether flows that send ECT(1) have a group of their own.");
    keys.key("share", &mut params.share, "How a flow's share of the link in a round trip is computed.");
    keys.within(
        "packet",
        &mut params.packet,
        ByteCount(64)..=ByteCount(65_536),
        "The size of a packet, in which shares are counted.",
    );
    keys.key("actions", &mut params.actions, "What is done to flows above their share.");
    keys.key("act-on", &mut params.act_on, "When a flow is above its share.");
    keys.key("act-every", &mut params.act_every, "How often.");
    keys.within("delay-passes", &mut params.delay_passes, 0..=4095, "How often a packet is recirculated to delay it.");
    keys.within(
        "least-window",
        &mut params.least_window,
        ByteCount(1)..=ByteCount(1 << 30),
        "The lowest receive window that is written.",
    );
    keys.within(
        "idle",
        &mut params.idle,
        STEP,
        "A flow without a packet for this long has ended. One with a FIN has ended at once.",
    );
    keys.within(
        "rank-interval",
        &mut params.rank_interval,
        Nanos(1_000_000)..=*STEP.end(),
        "How often the places of round-trip times are computed, with assignment = \"by-rtt\".",
    );
}

fields!(tables: FingerprintParams, GroupActions; choices:);

impl Table for FingerprintParams {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.within(
            "loss-delay-after",
            &mut self.loss_delay_after,
            1..=255,
            "Round trips of a growing queue after which a delay-based flow becomes loss-delay: m_LD.",
        );
        keys.within(
            "loss-based-after",
            &mut self.loss_based_after,
            1..=255,
            "Round trips of a growing queue after which a loss-delay flow becomes loss-based: m_PL.",
        );
        keys.within(
            "model-based-after",
            &mut self.model_based_after,
            1..=255,
            "Pulses of the rate after which a flow becomes model-based: m_M.",
        );
        keys.key(
            "restarts",
            &mut self.restarts,
            "Whether the count of round trips starts again when a flow changes its group.",
        );
        keys.key(
            "rise",
            &mut self.rise,
            "By how much the deepest queue of a round trip exceeds that of the previous one when the queue grows.",
        );
        keys.within("reduction-shift", &mut self.reduction_shift, 0..=31, "The right shift of the previous count of packets: with fewer packets by that many, a flow has reduced its rate.");
        keys.key("pattern", &mut self.pattern, "What counts towards `model-based-after`.");
        keys.within(
            "least-change",
            &mut self.least_change,
            0..=1_000_000,
            "The fewest packets by which the rate must change for what `pattern` counts.",
        );
        keys.within(
            "pulse",
            &mut self.pulse,
            1..=255,
            "The most round trips from the increase of a pulse to its decrease.",
        );
        keys.within(
            "settled",
            &mut self.settled,
            0..=255,
            "The fewest round trips without a decrease before the increase of a pulse.",
        );
        keys.within(
            "period",
            &mut self.period,
            0..=255,
            "The most round trips between two pulses that count together; 0 for any number.",
        );
        keys.key(
            "repeated-syn-restarts",
            &mut self.repeated_syn_restarts,
            "Whether the round-trip time is measured from the last SYN of a flow, and not from the first.",
        );
        keys.within(
            "default-rtt",
            &mut self.default_rtt,
            Nanos(1_000)..=*TIME.end(),
            "The round-trip time of a flow whose handshake was not seen.",
        );
    }
}

impl Table for GroupActions {
    fn fresh() -> Self {
        Self::default()
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("delay-based", &mut self.delay_based, "The action on delay-based flows.");
        keys.key("loss-delay", &mut self.loss_delay, "The action on loss-delay flows.");
        keys.key("loss-based", &mut self.loss_based, "The action on loss-based flows.");
        keys.key("model-based", &mut self.model_based, "The action on model-based flows.");
        keys.key("scalable", &mut self.scalable, "The action on scalable flows.");
    }
}

choice! {
    FlowTable, "table of flows", keys;
    "hashed", "Registers that are found by a hash; flows with the same hash are one flow.",
        Self::default(), Self::Hashed { entries, seed } => {
            keys.within("entries", entries, 1..=1 << 24, "The number of registers.");
            keys.within("seed", seed, 0..=i64::MAX as u64, "The seed of the hash function.");
        };
    "exact", "One entry for each flow, without collisions.", Self::Exact, Self::Exact => {};
}

choice! {
    ShareForm, "form of a share", keys;
    "shift", "The round-trip time shifted right, as a switch computes it.",
        Self::Shift { sensitivity: 0 }, Self::Shift { sensitivity } => {
            keys.within("sensitivity", sensitivity, -16..=16, "Added to the shift: a higher value makes the share smaller.");
        };
    "parts", "The sum of two such parts, at most a third above the exact quotient.", Self::Parts, Self::Parts => {};
    "exact", "The exact quotient.", Self::Exact, Self::Exact => {};
}

choice! {
    Rise, "rise of a queue", keys;
    "of-previous", "More than the previous depth shifted right.",
        Self::OfPrevious { shift: 7 }, Self::OfPrevious { shift } => {
            keys.within("shift", shift, 0..=31, "The right shift of the previous depth.");
        };
    "packets", "A number of packets.", Self::Packets(1), Self::Packets(count) => {
        keys.within("count", count, 1..=1_000_000, "The number of packets.");
    };
}

choice! {
    ActOn, "reason of actions", keys;
    "share", "The flow sent more than its share of the link in a round trip.", Self::Share, Self::Share => {};
    "delay", "A packet of the flow waited longer than a target in the round trip.",
        Self::Delay { target: Nanos(20_000_000) }, Self::Delay { target } => {
            keys.within("target", target, TIME, "The longest queueing delay without an action.");
        };
}

choice! {
    RttSource, "source of round-trip times", keys;
    "handshake", "From the SYN to the next packet of the flow.", Self::Handshake, Self::Handshake => {};
    "timestamps", "The handshake, then TCP timestamps in both directions.",
        Self::Timestamps(RttFilter::Least), Self::Timestamps(filter) => {
            keys.key("filter", filter, "What becomes of samples.");
        };
    "sequence", "The handshake, then sequence numbers of data and their ACKs for the part of the path behind the switch.",
        Self::Sequence(RttFilter::Least), Self::Sequence(filter) => {
            keys.key("filter", filter, "What becomes of samples.");
        };
    "less-queueing", "The handshake, less the time that it waited in the queues of switches with this program.",
        Self::LessQueueing, Self::LessQueueing => {};
}

choice! {
    RttFilter, "filter of round-trip times", keys;
    "least", "The least sample so far.", Self::Least, Self::Least => {};
    "smoothed", "A moving average.", Self::Smoothed { shift: 3 }, Self::Smoothed { shift } => {
        keys.within("shift", shift, 0..=31, "The right shift of the difference that a sample adds.");
    };
}

names! {
    Newest, "a flow to move": "of-queue" = Newest::OfQueue, "of-group" = Newest::OfGroup, "any" = Newest::Any;
    Start, "a division of queues": "new-flows" = Start::NewFlows, "even" = Start::Even;
    Assignment, "an assignment of queues": "in-turn" = Assignment::InTurn, "counted" = Assignment::Counted, "by-rtt" = Assignment::ByRtt;
    Queueing, "a form of queueing": "divided" = Queueing::Divided, "weighted" = Queueing::Weighted;
    ActEvery, "a frequency of actions": "round-trip" = ActEvery::RoundTrip, "packet" = ActEvery::Packet;
    FlowAction, "an action":
        "nothing" = FlowAction::Nothing, "drop" = FlowAction::Drop, "delay" = FlowAction::Delay, "mark" = FlowAction::Mark,
        "window" = FlowAction::Window;
    RatePattern, "a pattern of rates": "increases" = RatePattern::Increases, "pulses" = RatePattern::Pulses;
}
