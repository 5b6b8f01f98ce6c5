//! The registers of P4air on a switch.

use super::{GROUPS, SwitchP4airParams};
use crate::p4air::LONG_LIVED;

/// A register of [`SwitchP4air`](super::SwitchP4air).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchRegister {
    /// Its name: letters and underscores.
    pub name: &'static str,
    /// What it holds, in a sentence without a final period.
    pub about: &'static str,
    /// The width of a word: 8, 16 or 32 bits.
    pub bits: u32,
    /// What has a word.
    pub of: RegisterOf,
}

/// What has a word of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisterOf {
    /// A flow.
    Flow,
    /// A port.
    Port,
    /// A group of flows on a port: the number of the port, and three bits.
    Group,
    /// A queue of a port.
    Queue,
}

/// The places of the registers.
pub(super) const RTT: usize = 0;
pub(super) const ROUND_END: usize = 1;
pub(super) const SENT: usize = 2;
pub(super) const SENT_BEFORE: usize = 3;
pub(super) const ABOVE: usize = 4;
pub(super) const GROUP: usize = 5;
pub(super) const QUEUE: usize = 6;
/// Of the first group; so are those below.
pub(super) const FLOWS: usize = 7;
pub(super) const ALL_FLOWS: usize = FLOWS + GROUPS;
pub(super) const NEWEST: usize = ALL_FLOWS + 1;
pub(super) const BOUNDS: usize = NEWEST + 1;
pub(super) const ROOM: usize = BOUNDS + GROUPS - 1;
pub(super) const GAINED: usize = ROOM + GROUPS;
pub(super) const DEPTH: usize = GAINED + 1;
pub(super) const DEPTH_BEFORE: usize = DEPTH + 1;
pub(super) const AGGRESSIVENESS: usize = DEPTH_BEFORE + 1;
pub(super) const SINCE_DECREASE: usize = AGGRESSIVENESS + 1;
pub(super) const PULSE_LEFT: usize = SINCE_DECREASE + 1;
pub(super) const PERIOD_LEFT: usize = PULSE_LEFT + 1;
pub(super) const PULSES: usize = PERIOD_LEFT + 1;

const fn of(of: RegisterOf, name: &'static str, bits: u32, about: &'static str) -> SwitchRegister {
    SwitchRegister { name, about, bits, of }
}

use RegisterOf::{Flow, Group, Port, Queue};

pub(super) const REGISTERS: [SwitchRegister; PULSES + 1] = [
    of(
        Flow,
        "round_trip_time",
        32,
        "The flow's round-trip time in units of 1024 ns; until it is known, the time of the SYN and bit 31",
    ),
    of(Flow, "round_end", 32, "When the flow's round trip ends, in units of 1024 ns"),
    of(Flow, "sent", 16, "Packets of the round trip"),
    of(Flow, "sent_before", 16, "Packets of the previous round trip"),
    of(Flow, "above_share", 8, "Whether the flow is above its share in this round trip"),
    of(Flow, "flow_group", 8, "The flow's group: 0 is short-lived"),
    of(Flow, "flow_queue", 8, "The flow's queue; 0 before it has one"),
    of(Port, "delay_based_flows", 16, "Delay-based flows"),
    of(Port, "loss_delay_flows", 16, "Loss-delay flows"),
    of(Port, "loss_based_flows", 16, "Loss-based flows"),
    of(Port, "model_based_flows", 16, "Model-based flows"),
    of(Port, "long_lived_flows", 16, "Long-lived flows"),
    of(Queue, "newest_flow", 32, "The newest flow of a queue, and bit 16; 0 if there is none"),
    of(Port, "first_loss_delay", 8, "The first queue of loss-delay flows"),
    of(Port, "first_loss_based", 8, "The first queue of loss-based flows"),
    of(Port, "first_model_based", 8, "The first queue of model-based flows"),
    of(
        Port,
        "delay_based_room",
        32,
        "Flows that still fit into the queues of delay-based flows, less one, with a sign",
    ),
    of(Port, "loss_delay_room", 32, "Flows that still fit into the queues of loss-delay flows, less one, with a sign"),
    of(Port, "loss_based_room", 32, "Flows that still fit into the queues of loss-based flows, less one, with a sign"),
    of(
        Port,
        "model_based_room",
        32,
        "Flows that still fit into the queues of model-based flows, less one, with a sign",
    ),
    of(
        Group,
        "gained_takes",
        16,
        "Flows that the gained queue still takes, and in bit 0 whether it is the last of its group",
    ),
    of(Flow, "depth", 16, "The deepest queue of the round trip, in packets"),
    of(Flow, "depth_before", 16, "The deepest queue of the previous round trip"),
    of(Flow, "aggressiveness", 8, "Round trips in a row in which the queue grew"),
    of(Flow, "since_decrease", 8, "Round trips since a decrease of the rate"),
    of(Flow, "pulse_left", 8, "Round trips in which a decrease still ends a pulse"),
    of(Flow, "period_left", 8, "Round trips in which a pulse still counts with the one before"),
    of(Flow, "pulses", 8, "Pulses of the rate"),
];

impl SwitchRegister {
    /// All registers: the 25 of the description that is placed, of which three are pairs.
    pub const ALL: [Self; PULSES + 1] = REGISTERS;
    /// The bit of `round_trip_time` that distinguishes the time of a SYN from a round-trip time.
    pub const SYN_MARK: u32 = 1 << 31;
    /// The bit of `newest_flow` that distinguishes a flow's number, which has up to 16 bits, from none.
    pub const FLOW_MARK: u32 = 1 << 16;

    /// The number of its words.
    pub fn entries(&self, params: &SwitchP4airParams) -> u64 {
        match self.of {
            Flow => 1 << params.flow_bits(),
            Port => SwitchP4airParams::PORTS,
            Group => SwitchP4airParams::PORTS << SwitchP4airParams::GROUP_BITS,
            Queue => SwitchP4airParams::PORTS << params.queue_bits(),
        }
    }

    /// The value of each word at the start.
    pub fn initial(&self, params: &SwitchP4airParams) -> u32 {
        let place = REGISTERS.iter().position(|it| it.name == self.name).unwrap_or(0);
        let queues = u32::from(params.p4air.queues);
        match place {
            RTT => params.default_rtt(),
            // Delay-based flows have all queues but one for each other group.
            BOUNDS..ROOM => queues - GROUPS as u32 + 1 + (place - BOUNDS) as u32,
            ROOM => queues - u32::from(LONG_LIVED) - GROUPS as u32,
            _ => 0,
        }
    }

    /// The largest word.
    pub(super) fn most(&self) -> u32 {
        u32::MAX >> (32 - self.bits)
    }
}
