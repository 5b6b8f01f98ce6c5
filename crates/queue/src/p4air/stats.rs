//! The counters of P4air.

use crate::counters::counters;

/// The counters of P4air, for all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct P4airStats {
    /// Packets of tracked flows that came to ingress.
    pub tracked: u64,
    /// Packets without TCP data or of no known flow, which count as ants.
    pub ants: u64,
    /// Packets whose flow found the entry of another active flow.
    pub collisions: u64,
    /// Flows whose slow start ended because they sent less.
    pub slow_start_less: u64,
    /// Flows whose slow start ended at their share of the link.
    pub slow_start_share: u64,
    /// Flows that became loss-delay.
    pub loss_delay: u64,
    /// Flows that became loss-based.
    pub loss_based: u64,
    /// Flows that became model-based.
    pub model_based: u64,
    /// Copies that came back to ingress with a new group, or with a delay above the target.
    pub fed_back: u64,
    /// Queues that moved from one group to another.
    pub queues_moved: u64,
    /// Flows that changed their queue within their group.
    pub requeued: u64,
    /// Round trips in which a long-lived flow was above its share.
    pub above_share: u64,
    /// Packets that the actions dropped.
    pub dropped: u64,
    /// Packets that the actions marked.
    pub marked: u64,
    /// Packets that the actions delayed.
    pub delayed: u64,
    /// ACKs whose window the actions lowered.
    pub lowered: u64,
    /// Flows that ended, with a FIN or idle.
    pub ended: u64,
}

counters!(P4airStats {
    tracked,
    ants,
    collisions,
    slow_start_less,
    slow_start_share,
    loss_delay,
    loss_based,
    model_based,
    fed_back,
    queues_moved,
    requeued,
    above_share,
    dropped,
    marked,
    delayed,
    lowered,
    ended,
});
