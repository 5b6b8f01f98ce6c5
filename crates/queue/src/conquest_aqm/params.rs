//! The parameters of the ConQuest AQM.

use super::Curve;
use crate::{Limit, TailDropParams};
use queuescope_sketch::{ConQuestParams, Estimator, Expiry, Weights};
use queuescope_wire::Nanos;

/// The parameters of the ConQuest AQM. Defaults are those of the paper's section 5.2, except where a field names
/// another source.
#[derive(Debug, Clone, PartialEq)]
pub struct ConQuestAqmParams {
    /// The snapshots of each port. By default h = 4, R = 2, C = 2048, T = 2 ms, with tags instead of cleaning.
    pub sketch: ConQuestParams,
    /// Which windows count. [`Estimator::Overlap`] by default; the paper uses [`Estimator::Inner`].
    pub estimator: Estimator,
    /// The unit of weights.
    pub unit: WeightUnit,
    /// `tau`: packets that waited no longer than this are left alone. 2 ms by default.
    pub tau: Nanos,
    /// The shortest backlog behind a leaving packet, as the time that the link needs for it. With a shorter backlog the
    /// AQM leaves packets alone. Zero by default, as in the paper.
    pub behind: Nanos,
    /// `w_T`, in `unit`. 512 packets by default.
    pub threshold: f64,
    /// The probability with which a packet is chosen, as a function of its flow's weight.
    pub curve: Curve,
    /// What happens to a chosen packet.
    pub response: Response,
    /// Where that happens.
    pub act_at: ActAt,
    /// Changes of `tau` and `threshold` at given times, as a control plane would make them. None by default.
    pub changes: Vec<ConQuestChange>,
    /// The queue of each port, which the driver keeps. 16384 packets by default.
    pub queue: TailDropParams,
}

/// A change of parameters at run time. A field that is `None` keeps its value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConQuestChange {
    /// When the change takes effect. Of several changes at one time the last one holds.
    pub at: Nanos,
    /// The new `tau`.
    pub tau: Option<Nanos>,
    /// The new `w_T`, in the same unit.
    pub threshold: Option<f64>,
}

/// The unit of a flow's weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightUnit {
    /// Packets of the flow.
    Packets,
    /// Bytes of the flow.
    Bytes,
    /// Bytes of the flow over the bytes of all flows in the same windows, by the same estimator. Both lose the same to
    /// the rounding to windows. From 0 to 1; collisions may make it larger.
    ShareOfDeparted,
    /// Bytes of the flow over the bytes that the link sends in the packet's delay. It needs no second count, but the
    /// rate must be known, and it is too low when the link sends below its rate.
    ShareOfDelay,
    /// Packets of the flow over all packets that the packet found in the queue, which a switch provides itself. From 0
    /// to 1; collisions may make it larger.
    ShareOfQueue,
}

/// What happens to a chosen packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Response {
    /// It is marked if it is ECN-capable, else dropped.
    MarkOrDrop,
    /// It is marked if it is ECN-capable, else left alone.
    MarkOnly,
    /// It is dropped.
    Drop,
}

/// Where the AQM acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActAt {
    /// On the chosen packet, as it leaves the queue. A drop here wastes the packet's time on the link.
    Egress,
    /// On later packets of the flow, before the queue (section 4.2, "act on future packets"). The chosen packet itself
    /// is left alone.
    Ingress(HoldParams),
}

/// How long and where ingress remembers flows that were fed back, and what happens to their packets there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldParams {
    /// How long it acts on a flow after the last feedback.
    pub hold: Nanos,
    /// Registers of the array, found by hash; 0 counts as 1. A register holds the newest flow with that hash. A
    /// collision makes ingress forget a flow early; it never makes it act on another flow.
    pub registers: u32,
    /// What happens to packets of these flows. [`HeldAction::Respond`] by default.
    pub action: HeldAction,
}

/// What happens before the queue to packets of a flow that was fed back. The paper names the last three (section 4.2): "by re-routing,
/// rate-limiting, or dropping its packets".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HeldAction {
    /// What [`ConQuestAqmParams::response`] says.
    #[default]
    Respond,
    /// They are dropped.
    Drop,
    /// They pass at most at a rate. The others are dropped.
    Limit(FlowLimit),
    /// They enter another queue of the port: queue 0, while all other packets enter queue 1. The queues are
    /// served in turn, so that packets of a flow may overtake one another when its hold begins or ends.
    Reroute,
}

/// The rate at which packets of a flow pass.
///
/// It is a virtual clock, as in the generic cell rate algorithm (ITU-T I.371): each packet that passes moves the flow's time on by `interval`, and a
/// packet passes if that time is at most `burst - 1` intervals ahead. It counts packets, not bytes, because a switch does not multiply lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowLimit {
    /// The time from one packet to the next at this rate.
    pub interval: Nanos,
    /// The packets that may pass at once; 0 counts as 1.
    pub burst: u32,
}

impl FlowLimit {
    /// How far the time of a flow may be ahead when a packet passes.
    pub fn tolerance(&self) -> Nanos {
        Nanos(self.interval.0.saturating_mul(u64::from(self.burst.saturating_sub(1))))
    }
}

impl Default for ConQuestAqmParams {
    fn default() -> Self {
        Self {
            sketch: ConQuestParams {
                snapshots: 4,
                rows: 2,
                columns: 2048,
                window: Nanos(2_000_000),
                expiry: Expiry::Tag,
                weights: Weights::default(),
                seed: 0,
            },
            estimator: Estimator::Overlap,
            unit: WeightUnit::Packets,
            tau: Nanos(2_000_000),
            behind: Nanos::ZERO,
            threshold: 512.0,
            curve: Curve::Threshold,
            response: Response::MarkOrDrop,
            act_at: ActAt::Egress,
            changes: Vec::new(),
            queue: TailDropParams { limit: Limit::Packets(16_384) },
        }
    }
}

/// The hold is the default `tau`, about the time in which the queue drains. 1024 registers of 12 bytes, or of 16 with a limit.
impl Default for HoldParams {
    fn default() -> Self {
        Self { hold: Nanos(2_000_000), registers: 1024, action: HeldAction::default() }
    }
}

/// A packet each 12 us: 1 Gb/s of packets of 1500 bytes, a tenth of the link in section 5.2. Ours.
impl Default for FlowLimit {
    fn default() -> Self {
        Self { interval: Nanos(12_000), burst: 8 }
    }
}
