//! The parameters of P4air.

use super::shares::GROUPS;
use super::{Assignment, FlowTable, RttSource, ShareForm, Start};
use crate::{Port, TailDropParams};
use queuescope_sketch::{FingerprintParams, FlowGroup};
use queuescope_wire::{ByteCount, Class, Nanos};

/// The parameters of [`P4air`](super::P4air).
#[derive(Debug, Clone, PartialEq)]
pub struct P4airParams {
    /// The ports that the program manages. Flows whose data leaves through one of them share the rate of its link. The
    /// program sees the ACKs of these flows on all ports.
    pub ports: Vec<Port>,
    /// Queues of each port: 32, as in the paper's table I. At least 6: two for short-lived flows and one for each other
    /// group, of which there are two more with [`mark`](Self::mark) and [`scalable`](Self::scalable). Fewer count as that.
    pub queues: u16,
    /// The queue of each port, which the driver keeps. The limit holds for each queue. No limit by default.
    pub queue: TailDropParams,
    /// How flows are classified by their congestion control.
    pub fingerprint: FingerprintParams,
    /// Where flows are kept.
    pub table: FlowTable,
    /// Which flow moves to another group when a queue grows.
    pub newest: Newest,
    /// How queues are divided before there are flows.
    pub start: Start,
    /// Which queue of its group a flow gets.
    pub assignment: Assignment,
    /// How groups share the link.
    pub queueing: Queueing,
    /// Where round-trip times come from.
    pub rtt: RttSource,
    /// The class (DSCP) by which switches with this program mark the packets of long-lived flows. A flow whose packets
    /// come with it is in the group of shaped flows. Class 0, the default: there are neither marks nor that group.
    pub mark: Class,
    /// Whether flows that send ECT(1) have a group of their own, that of scalable flows (RFC 9331); false by default.
    pub scalable: bool,
    /// How a flow's share of the link in a round trip is computed.
    pub share: ShareForm,
    /// The size of a packet, in which shares are counted: 1500 bytes.
    pub packet: ByteCount,
    /// What is done to flows above their share. [`GroupActions::IDLE`] is the paper's Idle P4air.
    pub actions: GroupActions,
    /// When a flow is above its share.
    pub act_on: ActOn,
    /// How often.
    pub act_every: ActEvery,
    /// How often a packet is recirculated to delay it: 8.
    pub delay_passes: u16,
    /// The lowest receive window that the program writes: two segments of 1448 bytes, below which a sender waits for
    /// delayed ACKs.
    pub least_window: ByteCount,
    /// A flow without a packet for this long has ended: 10 s.
    pub idle: Nanos,
    /// How often the places of round-trip times are computed: every 500 ms; at least 1 ms ([`Assignment::ByRtt`]).
    pub rank_interval: Nanos,
}

/// Which flow moves to another group when a queue grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newest {
    /// The one that was assigned last to that queue.
    OfQueue,
    /// The one that was assigned last to its group on that port: the paper's words.
    OfGroup,
    /// Any flow that sees the queue grow.
    Any,
}

/// How the groups of a port share its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queueing {
    /// [`P4airParams::queues`] queues, served in turn, are divided among the groups (section III-B).
    Divided,
    /// Each group has one queue, whose weight is the number of its flows (section V, "Weighted queuing algorithms"): its turn
    /// is that many packets of [`P4airParams::packet`]. Ants and mice have their queue and weight, too. The limit of a port
    /// holds for each of these queues.
    Weighted,
}

/// When a flow is above its share, so that actions apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActOn {
    /// When it has sent more than its share of the link in a round trip (section III-C).
    Share,
    /// When one of its packets waited longer than `target` in the round trip (section V: "queuing delay instead of BDP").
    /// The delay is known behind the queue, so a copy of the first such packet in a round trip goes back to ingress.
    Delay {
        /// The queueing delay.
        target: Nanos,
    },
}

/// How often actions apply to a flow above its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActEvery {
    /// Once in each round trip.
    RoundTrip,
    /// To each packet.
    Packet,
}

/// What is done to a flow above its share, by its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupActions {
    /// To delay-based flows.
    pub delay_based: FlowAction,
    /// To loss-delay flows.
    pub loss_delay: FlowAction,
    /// To loss-based flows.
    pub loss_based: FlowAction,
    /// To model-based flows.
    pub model_based: FlowAction,
    /// To scalable flows.
    pub scalable: FlowAction,
}

/// What is done to a flow above its share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowAction {
    /// Nothing.
    Nothing,
    /// A packet is dropped.
    Drop,
    /// A packet is recirculated before it enters the queue.
    Delay,
    /// The receive window in its ACKs is lowered to its share.
    Window,
    /// A packet is marked (CE), or dropped if it is not ECN-capable.
    Mark,
}

impl Default for P4airParams {
    fn default() -> Self {
        Self {
            ports: vec![Port(0)],
            queues: 32,
            queue: TailDropParams::default(),
            fingerprint: FingerprintParams::default(),
            table: FlowTable::default(),
            newest: Newest::OfQueue,
            start: Start::NewFlows,
            assignment: Assignment::InTurn,
            queueing: Queueing::Divided,
            rtt: RttSource::Handshake,
            mark: Class(0),
            scalable: false,
            share: ShareForm::Shift { sensitivity: 0 },
            packet: ByteCount(1500),
            actions: GroupActions::default(),
            act_on: ActOn::Share,
            act_every: ActEvery::Packet,
            delay_passes: 8,
            least_window: ByteCount(2 * 1448),
            idle: Nanos(10_000_000_000),
            rank_interval: Nanos(500_000_000),
        }
    }
}

impl P4airParams {
    /// A fairer P4air on the same switch: queues by group and by round-trip time, a group of L4S flows that are marked, a finer
    /// share, and pulses that are as slow as those of BBRv3, which probes every two to three seconds for some round trips.
    /// Delay-based flows have their receive window lowered, as model-based ones.
    ///
    /// ```
    /// use queuescope_queue::{Assignment, P4airParams};
    ///
    /// assert_eq!(P4airParams::by_rtt().assignment, Assignment::ByRtt);
    /// ```
    pub fn by_rtt() -> Self {
        Self {
            assignment: Assignment::ByRtt,
            scalable: true,
            share: ShareForm::Parts,
            fingerprint: FingerprintParams { pulse: 4, period: 255, ..FingerprintParams::default() },
            actions: GroupActions { delay_based: FlowAction::Window, ..GroupActions::default() },
            ..Self::default()
        }
    }

    /// Whether packets of long-lived flows are marked.
    pub(super) fn marks(&self) -> bool {
        self.mark != Class(0)
    }

    /// Which groups of long-lived flows there are, by [`FlowGroup::long_lived`].
    pub(super) fn groups(&self) -> [bool; GROUPS] {
        [true, true, true, true, self.marks(), self.scalable]
    }

    /// How many.
    pub(super) fn long_lived_groups(&self) -> u16 {
        self.groups().into_iter().map(u16::from).sum()
    }
}

impl Default for GroupActions {
    fn default() -> Self {
        Self {
            delay_based: FlowAction::Delay,
            loss_delay: FlowAction::Drop,
            loss_based: FlowAction::Drop,
            model_based: FlowAction::Window,
            scalable: FlowAction::Mark,
        }
    }
}

impl GroupActions {
    /// No actions: flows are grouped, and each group has its own queues.
    pub const IDLE: Self = Self::all(FlowAction::Nothing);

    /// The same action for each group.
    pub const fn all(action: FlowAction) -> Self {
        Self { delay_based: action, loss_delay: action, loss_based: action, model_based: action, scalable: action }
    }

    pub(super) fn of(&self, group: FlowGroup) -> FlowAction {
        match group {
            FlowGroup::Ant | FlowGroup::Mouse | FlowGroup::Shaped => FlowAction::Nothing,
            FlowGroup::DelayBased => self.delay_based,
            FlowGroup::LossDelay => self.loss_delay,
            FlowGroup::LossBased => self.loss_based,
            FlowGroup::ModelBased => self.model_based,
            FlowGroup::Scalable => self.scalable,
        }
    }
}
