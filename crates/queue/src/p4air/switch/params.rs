//! The parameters of P4air on a switch.

use crate::p4air::{
    ANTS, ActEvery, ActOn, Assignment, FlowAction, FlowTable, LONG_LIVED, MICE, Newest, P4airParams, Queueing,
    RttSource, ShareForm, Start,
};
use queuescope_sketch::{FlowGroup, RatePattern, Rise};
use queuescope_wire::{Class, Rate};

/// The parameters of [`SwitchP4air`](super::SwitchP4air).
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchP4airParams {
    /// Those of the real program. A switch cannot have all values. Its ports are all ports.
    pub p4air: P4airParams,
    /// The rate of each link: 10 Gb/s, as in the paper's testbed.
    pub rate: Rate,
    /// The scale of receive windows, as a power of two (RFC 7323): that of all flows, because no register holds it. 7, which
    /// Linux has by default.
    pub window_scale: u32,
}

/// A parameter that a switch cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("P4air on a switch: {key} {why}")]
pub struct SwitchP4airError {
    /// The key of the parameter in a scenario.
    pub key: &'static str,
    /// What is possible, and why.
    pub why: &'static str,
}

/// How far round-trip times are shifted to be a flow's share of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchShift {
    /// To the right, to be packets; to the left if it is negative. From units of 1024 ns.
    pub share: i32,
    /// The same to be the two parts of a receive window, whose sum it is.
    pub window: [i32; 2],
}

impl Default for SwitchP4airParams {
    fn default() -> Self {
        let rate = Rate::from_bits_per_second(10_000_000_000).expect("it is above zero");
        Self { p4air: P4airParams::default(), rate, window_scale: 7 }
    }
}

/// The most flows: their numbers have 16 bits.
const MOST_FLOWS: u32 = 1 << 16;
/// The bits of the hash that choose a queue within a group.
const TURN_BITS: u32 = 7;
/// The largest scale of windows.
const MOST_SCALE: u32 = 8;

impl SwitchP4airParams {
    /// The ports that have words: those of a pipe of a Tofino, and more.
    pub const PORTS: u64 = 128;
    /// The deepest queue that is counted, in packets.
    pub const DEEPEST: u32 = 4095;
    /// The groups of long-lived flows: numbers from 1 on.
    pub const GROUPS: u8 = 4;
    /// The bits of a group's number in the entry of a register.
    pub const GROUP_BITS: u32 = 3;
    /// The bits of the number of a group's queues.
    pub const COUNT_BITS: u32 = 5;
    /// The queue of ants.
    pub const ANTS: u8 = ANTS as u8;
    /// The queue of mice.
    pub const MICE: u8 = MICE as u8;
    /// The first queue of long-lived flows.
    pub const LONG_LIVED: u8 = LONG_LIVED as u8;

    /// Checks that a switch can have the parameters.
    ///
    /// # Errors
    /// Names the first that it cannot have.
    pub fn check(&self) -> Result<(), SwitchP4airError> {
        let it = &self.p4air;
        let fingerprint = &it.fingerprint;
        let entries = match it.table {
            FlowTable::Hashed { entries, .. } => entries,
            FlowTable::Exact => 0,
        };
        let rules = [
            (matches!(it.queues, 8 | 16 | 32), "queues", "must be 8, 16 or 32: a switch divides by slices of bits"),
            (
                entries.is_power_of_two() && (1 << TURN_BITS..=MOST_FLOWS).contains(&entries),
                "table.hashed.entries",
                "must be a power of two from 128 to 65536, because an entry is a slice of a hash",
            ),
            (
                it.newest == Newest::OfQueue,
                "newest",
                "must be of-queue: a register holds the newest flow of each queue",
            ),
            (it.start == Start::NewFlows, "start", "must be new-flows"),
            (
                it.assignment == Assignment::InTurn,
                "assignment",
                "must be in-turn: the switch has no register for the flows of each queue",
            ),
            (it.queueing == Queueing::Divided, "queueing", "must be divided: a switch's weights do not follow flows"),
            (it.rtt == RttSource::Handshake, "rtt", "must be handshake: no register holds other round-trip times"),
            (it.mark == Class(0), "mark", "must be 0: the switch has four groups"),
            (!it.scalable, "scalable", "must be false: the switch has four groups"),
            (matches!(it.share, ShareForm::Shift { .. }), "share", "must be a shift: a switch cannot divide"),
            (
                FlowGroup::LONG_LIVED.iter().all(|group| it.actions.of(*group) != FlowAction::Mark),
                "actions",
                "must not be mark: the switch's program marks no packets",
            ),
            (it.act_on == ActOn::Share, "act-on", "must be share"),
            (it.act_every == ActEvery::Packet, "act-every", "must be packet"),
            (it.delay_passes <= 255, "delay-passes", "must be at most 255: a note has 8 bits for it"),
            ((64..=1 << 14).contains(&it.packet.0), "packet", "must be 64 to 16384 bytes"),
            (it.least_window.0 < 1 << 16, "least-window", "must be below 65536 bytes"),
            (self.window_scale <= MOST_SCALE, "window-scale", "must be 0 to 8"),
            (
                matches!(fingerprint.rise, Rise::OfPrevious { shift: 1..=11 }),
                "fingerprint.rise",
                "must be a shift of 1 to 11",
            ),
            ((1..=15).contains(&fingerprint.reduction_shift), "fingerprint.reduction-shift", "must be 1 to 15"),
            (fingerprint.pattern == RatePattern::Pulses, "fingerprint.pattern", "must be pulses"),
            (fingerprint.restarts, "fingerprint.restarts", "must be true: the register's unit starts the count again"),
            (
                fingerprint.repeated_syn_restarts,
                "fingerprint.repeated-syn-restarts",
                "must be true: each SYN starts the measurements of its flow",
            ),
            (fingerprint.least_change < 1 << 15, "fingerprint.least-change", "must be below 32768"),
            (fingerprint.default_rtt.0 >> 10 < 1 << 20, "fingerprint.default-rtt", "must be below 1.07 s"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, key, why)) => Err(SwitchP4airError { key, why }),
            None => Ok(()),
        }
    }

    /// The bits that number the flows.
    pub fn flow_bits(&self) -> u32 {
        match self.p4air.table {
            FlowTable::Hashed { entries, .. } => entries.max(2).ilog2(),
            FlowTable::Exact => 16,
        }
    }

    /// The bits that number the queues of a port.
    pub fn queue_bits(&self) -> u32 {
        u32::from(self.p4air.queues).max(2).ilog2()
    }

    /// The entry of a flow, by its hash.
    pub fn entry(&self, hash: u32) -> u16 {
        (hash & ((1 << self.flow_bits()) - 1)) as u16
    }

    /// The bits of a flow's entry that choose its queue within its group.
    pub const fn turn_bits() -> u32 {
        TURN_BITS
    }

    /// The most queues of a group: each other group has one.
    pub fn most_queues(&self) -> u8 {
        (self.p4air.queues - LONG_LIVED - (FlowGroup::LONG_LIVED.len() as u16 - 1)) as u8
    }

    /// The queue of a flow within a group of `queues` queues, from 0. Copies that come back at the same time may give a group more than it can have, or take
    /// its last one: the table has no entry for these, so flows take its first.
    pub fn place(&self, queues: u8, entry: u16) -> u8 {
        let queues = queues & ((1 << Self::COUNT_BITS) - 1);
        let turn = entry & ((1 << TURN_BITS) - 1);
        if queues > self.most_queues() { 0 } else { ((u16::from(queues) * turn) >> TURN_BITS) as u8 }
    }

    /// The entry of a queue of a port.
    pub(super) fn place_of_queue(&self, port: usize, queue: u8) -> usize {
        let bits = self.queue_bits();
        port << bits | usize::from(queue) & ((1 << bits) - 1)
    }

    /// The action on a group, as in [`SwitchNote::group`](super::SwitchNote::group).
    pub fn action(&self, group: u8) -> FlowAction {
        let group = usize::from(group).checked_sub(1).and_then(|group| FlowGroup::LONG_LIVED.get(group));
        group.map_or(FlowAction::Nothing, |group| self.p4air.actions.of(*group))
    }

    /// The growing round trips after which a group's flow moves on; 255 if it does not.
    pub fn limit(&self, group: u8) -> u32 {
        match group {
            1 => self.p4air.fingerprint.loss_delay_after.max(1).into(),
            2 => self.p4air.fingerprint.loss_based_after.max(1).into(),
            _ => 255,
        }
    }

    /// The round-trip time of a flow whose handshake was not seen, in units of 1024 ns; at least 1.
    pub fn default_rtt(&self) -> u32 {
        (self.p4air.fingerprint.default_rtt.0 >> 10).max(1) as u32
    }

    /// By which power of two a depth is divided to be the least rise.
    pub fn rise_shift(&self) -> u32 {
        match self.p4air.fingerprint.rise {
            Rise::OfPrevious { shift } => shift.into(),
            Rise::Packets(_) => 7,
        }
    }

    /// The round trips in which two pulses count together; as many as 8 bits count if there is no limit.
    pub fn period(&self) -> u32 {
        match self.p4air.fingerprint.period {
            0 => 255,
            period => period.into(),
        }
    }

    /// The lowest receive window that is written, as it is in a header.
    pub fn least_window(&self) -> u32 {
        (self.p4air.least_window.0 as u32).div_ceil(1 << self.window_scale)
    }

    /// The shift for a share among `flows` long-lived flows. `joins`: the flow is not yet one of them.
    pub fn shift(&self, flows: u16, joins: bool) -> SwitchShift {
        let packet_time = self.rate.time_for(self.p4air.packet).0.max(1);
        let between = packet_time.saturating_mul((u64::from(flows) + u64::from(joins)).max(1));
        let sensitivity = match self.p4air.share {
            ShareForm::Shift { sensitivity } => i32::from(sensitivity),
            ShareForm::Parts | ShareForm::Exact => 0,
        };
        // Round-trip times are in units of 2^10 ns.
        let share = between.ilog2() as i32 + sensitivity - 10;
        let scale = self.window_scale as i32;
        let parts = self.packet_shifts().map(|part| (share - part + scale).clamp(-31, 31));
        SwitchShift { share: share.clamp(-31, 31), window: parts }
    }

    /// The powers of two whose sum is closest to the bytes of a packet: 1024 and 512 for 1500.
    fn packet_shifts(&self) -> [i32; 2] {
        let all = (1..15).flat_map(|high| (0..high).map(move |low| [high, low]));
        let distance = |[high, low]: &[i32; 2]| ((1u64 << high) + (1 << low)).abs_diff(self.p4air.packet.0);
        all.min_by_key(distance).unwrap_or([10, 9])
    }
}

impl SwitchShift {
    /// The share of a flow with this round-trip time, in packets.
    pub fn share(&self, rtt: u32) -> u32 {
        shifted(rtt, self.share)
    }

    /// The receive window for the share, as it is in a header.
    pub fn window(&self, rtt: u32) -> u32 {
        let [one, other] = self.window.map(|by| shifted(rtt, by));
        one.saturating_add(other)
    }
}

/// Bits that are moved out of 32 are lost.
fn shifted(value: u32, right: i32) -> u32 {
    if right < 0 { value << right.unsigned_abs() } else { value >> right }
}
