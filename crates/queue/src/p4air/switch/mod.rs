//! P4air in integers, as the data plane of a switch computes it: registers that are accessed once for each packet, notes
//! that packets carry from one half of the pipeline to the other, and copies that go back.
//!
//! [`SwitchP4air`] stands for [`P4air`](super::P4air). The program `p4air` of `queuescope-p4` does the same, step for
//! step. `docs/explanation/p4air.md` states how far it is from the real one.

#[cfg(test)]
mod distance;
mod params;
mod registers;
mod returned;
#[cfg(test)]
mod tests;

use super::FlowAction;
pub use params::{SwitchP4airError, SwitchP4airParams, SwitchShift};
use registers::{
    ABOVE, AGGRESSIVENESS, ALL_FLOWS, BOUNDS, DEPTH, DEPTH_BEFORE, GAINED, GROUP, NEWEST, PERIOD_LEFT, PULSE_LEFT,
    PULSES, QUEUE, REGISTERS, ROUND_END, RTT, SENT, SENT_BEFORE, SINCE_DECREASE,
};
pub use registers::{RegisterOf, SwitchRegister};

/// P4air on all ports of a switch, with its registers.
///
/// ```
/// use queuescope_queue::{SwitchP4air, SwitchP4airParams, SwitchNote, SwitchPacket};
/// use queuescope_wire::Nanos;
///
/// let mut switch = SwitchP4air::new(SwitchP4airParams::default())?;
/// let mut note = SwitchNote::default();
/// // Data of a flow whose handshake was not seen, without TCP: it is an ant.
/// let packet = SwitchPacket { port: 3, arrived: Nanos(1 << 30), flow: 0x1234, has_data: true, ..SwitchPacket::default() };
/// let fate = switch.before_the_queue(&packet, &mut note, false);
/// assert_eq!((fate.queue, note.entry), (Some(0), 0x1234));
/// # Ok::<(), queuescope_queue::SwitchP4airError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchP4air {
    params: SwitchP4airParams,
    /// The words of each register, in the order of [`SwitchRegister::ALL`].
    words: Vec<Vec<u32>>,
}

/// What the program reads of a packet before the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchPacket {
    /// The port that it leaves by. The lowest seven bits count.
    pub port: u16,
    /// The port that it came in by: the flow's data leaves by it, if this is an ACK.
    pub arrival_port: u16,
    /// When it arrived.
    pub arrived: queuescope_wire::Nanos,
    /// The hash of its five-tuple, whose lowest bits are the flow's entry.
    pub flow: u32,
    /// The hash of the five-tuple of the other direction.
    pub reverse: u32,
    /// Whether it has data: all packets without TCP do.
    pub has_data: bool,
    /// The TCP header, if it has one.
    pub tcp: Option<SwitchTcp>,
}

/// What the program reads of a TCP header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchTcp {
    /// Whether it is a SYN.
    pub syn: bool,
    /// Whether it is an ACK.
    pub ack: bool,
    /// The receive window as it is in the header: not scaled.
    pub window: u16,
}

/// What a packet takes along to the half behind the queue, and what copies and recirculated packets bring back. It is all
/// zero when a packet arrives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchNote {
    /// The flow's entry.
    pub entry: u16,
    /// Packets in the round trip.
    pub sent: u16,
    /// If the round trip has ended, packets in the one before.
    pub before: u16,
    /// In a copy that moves a queue: flows for each queue.
    pub each: u16,
    /// The packet's place in the flow's round trip: 0 if it has no data, otherwise [`WITHIN`](Self::WITHIN) or [`ENDED`](Self::ENDED).
    pub round: u8,
    /// The flow's group: 0 if it is short-lived, then those of [`FlowGroup::LONG_LIVED`](queuescope_sketch::FlowGroup::LONG_LIVED).
    pub group: u8,
    /// The flow's queue.
    pub queue: u8,
    /// Whether it is the newest flow of its queue: 1 or 0.
    pub is_newest: u8,
    /// Why it comes back: one of [`SwitchRequest`].
    pub request: u8,
    /// The group or the queue that is requested.
    pub to: u8,
    /// The group that gives a queue.
    pub giver: u8,
    /// How often it has come back to be delayed.
    pub passes: u8,
}

impl SwitchNote {
    /// A value of [`round`](Self::round): the packet has data, and is within the round trip.
    pub const WITHIN: u8 = 1;
    /// A value of [`round`](Self::round): the packet ends the round trip.
    pub const ENDED: u8 = 2;
}

/// Why a copy or a packet comes back to the half before the queue: values of [`SwitchNote::request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum SwitchRequest {
    /// The flow changes its group.
    Group = 1,
    /// The flow has another queue of its group.
    Queue = 2,
    /// The flow takes the queue that its group has gained, if that still takes flows.
    Gained = 3,
    /// A queue moves to another group.
    Move = 4,
    /// The packet itself is delayed.
    Delay = 5,
}

/// What happens to a packet before the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwitchFate {
    /// The queue that it enters, if it does.
    pub queue: Option<u8>,
    /// Whether it is dropped. So is a copy that has done its work.
    pub dropped: bool,
    /// Whether a copy of it goes back, with the note.
    pub copied: bool,
    /// Whether the packet itself, or the copy, comes again, with the note.
    pub recirculated: bool,
    /// The receive window that is written into it.
    pub window: Option<u16>,
}

/// The groups of long-lived flows.
const GROUPS: usize = SwitchP4airParams::GROUPS as usize;
const SYN_MARK: u32 = SwitchRegister::SYN_MARK;
const FLOW_MARK: u32 = SwitchRegister::FLOW_MARK;
/// Times wrap: one that is less than this behind another is later.
const HALF: u32 = 1 << 31;

impl SwitchP4air {
    /// Creates the program. It knows no flow yet.
    ///
    /// # Errors
    /// Names the parameter that a switch cannot have, and why.
    pub fn new(params: SwitchP4airParams) -> Result<Self, SwitchP4airError> {
        params.check()?;
        let words = REGISTERS.iter().map(|it| vec![it.initial(&params); it.entries(&params) as usize]);
        Ok(Self { words: words.collect(), params })
    }

    /// The parameters.
    pub fn params(&self) -> &SwitchP4airParams {
        &self.params
    }

    /// The words of a register, by its place in [`SwitchRegister::ALL`].
    pub fn words(&self, register: usize) -> Option<&[u32]> {
        self.words.get(register).map(Vec::as_slice)
    }

    /// The group of a flow, as in [`SwitchNote::group`], and its queue; by the hash of its five-tuple.
    pub fn group_and_queue(&self, flow: u32) -> [u8; 2] {
        let entry = self.params.entry(flow);
        [GROUP, QUEUE].map(|register| self.words[register][usize::from(entry)] as u8)
    }

    /// A packet arrives, or comes back if `is_back`. A note that the program cannot have made changes nothing, and the packet ends there.
    pub fn before_the_queue(&mut self, packet: &SwitchPacket, note: &mut SwitchNote, is_back: bool) -> SwitchFate {
        if is_back {
            return self.returned(usize::from(packet.port & 0x7f), note);
        }
        let tcp = packet.tcp.unwrap_or_default();
        let is_own = packet.has_data || tcp.syn;
        let (hash, port) = if is_own { (packet.flow, packet.port) } else { (packet.reverse, packet.arrival_port) };
        (note.entry, note.round) = (self.params.entry(hash), 0);
        let (entry, port) = (usize::from(note.entry), usize::from(port & 0x7f));
        let now = (packet.arrived.0 >> 10) as u32;
        if tcp.syn {
            self.words[RTT][entry] = now | SYN_MARK;
            self.words[ROUND_END][entry] = now;
            self.words[SENT][entry] = 0;
            self.words[SENT_BEFORE][entry] = 0;
            return enqueue(SwitchP4airParams::ANTS);
        }
        let rtt = self.rtt(entry, now, packet.has_data);
        let group = self.words[GROUP][entry] as u8;
        note.group = group;
        let shift = self.params.shift(self.words[ALL_FLOWS][port] as u16, group == 0);
        if !packet.has_data {
            let is_above = self.words[ABOVE][entry] == 1;
            return self.lower_window(tcp, is_above, group, shift.window(rtt));
        }
        self.data(entry, port, (now, rtt, group, shift.share(rtt)), packet.tcp.is_some(), note)
    }

    /// The round-trip time: what the handshake took, from the first packet of data on. Before that, the word is the time of the SYN with bit 31 set. A handshake in which 31
    /// bits of time wrap, every 37 minutes, leaves it wrong until the next SYN.
    fn rtt(&mut self, entry: usize, now: u32, has_data: bool) -> u32 {
        let word = &mut self.words[RTT][entry];
        if has_data && *word >= SYN_MARK {
            *word = (now | SYN_MARK).wrapping_sub(*word);
        }
        *word
    }

    /// A packet of data.
    fn data(
        &mut self,
        entry: usize,
        port: usize,
        (now, rtt, group, share): (u32, u32, u8, u32),
        is_tcp: bool,
        note: &mut SwitchNote,
    ) -> SwitchFate {
        let end = &mut self.words[ROUND_END][entry];
        let ended = now.wrapping_sub(*end) < HALF;
        if ended {
            *end = now.wrapping_add(rtt);
        }
        let sent = &mut self.words[SENT][entry];
        let packets = if ended { std::mem::replace(sent, 1) } else { self.count(SENT, entry) };
        let before = if ended { std::mem::replace(&mut self.words[SENT_BEFORE][entry], packets) } else { 0 };
        (note.sent, note.before) = (packets as u16, before as u16);
        note.round = if ended { SwitchNote::ENDED } else { SwitchNote::WITHIN };
        if group == 0 {
            let is_full = !ended && packets >= share;
            if is_full || ended && is_tcp && packets < before {
                (note.request, note.to) = (SwitchRequest::Group as u8, 1);
            }
            return SwitchFate {
                copied: note.request > 0,
                dropped: is_full && is_tcp,
                ..enqueue(if is_tcp { SwitchP4airParams::MICE } else { SwitchP4airParams::ANTS })
            };
        }
        let is_over = !ended && packets > share;
        if ended || is_over {
            self.words[ABOVE][entry] = u32::from(is_over);
        }
        self.find_queue(entry, port, group, note);
        let fate = enqueue(note.queue);
        match self.params.action(group) {
            FlowAction::Drop if is_over => SwitchFate { dropped: true, copied: note.request > 0, ..fate },
            FlowAction::Delay if is_over && self.params.p4air.delay_passes > 0 => {
                (note.request, note.passes) = (SwitchRequest::Delay as u8, 0);
                SwitchFate { recirculated: true, ..fate }
            }
            _ => SwitchFate { copied: note.request > 0, ..fate },
        }
    }

    /// Adds one to a word; at most 65 535 or 255.
    fn count(&mut self, register: usize, entry: usize) -> u32 {
        let word = &mut self.words[register][entry];
        *word = word.saturating_add(1).min(REGISTERS[register].most());
        *word
    }

    /// The flow's queue, and whether a copy must write another one.
    fn find_queue(&mut self, entry: usize, port: usize, group: u8, note: &mut SwitchNote) {
        let bounds = [0, 1, 2].map(|n| self.words[BOUNDS + n][port] as u8);
        let all = [SwitchP4airParams::LONG_LIVED, bounds[0], bounds[1], bounds[2], self.params.p4air.queues as u8];
        let [first, end] = [0, 1].map(|next| all[usize::from(group).clamp(1, GROUPS) - 1 + next]);
        let other = first.wrapping_add(self.params.place(end.wrapping_sub(first), note.entry));
        let gained = self.words[GAINED][port << 3 | usize::from(group)];
        let gained_queue = if gained & 1 == 1 { end.wrapping_sub(1) } else { first };
        let stored = self.words[QUEUE][entry] as u8;
        let is_inside = stored >= first && stored < end;
        note.queue = if is_inside { stored } else { other };
        if gained > 1 && stored != gained_queue {
            (note.request, note.to) = (SwitchRequest::Gained as u8, gained_queue);
        } else if !is_inside {
            (note.request, note.to) = (SwitchRequest::Queue as u8, other);
        }
        let mark = FLOW_MARK | entry as u32;
        let place = self.params.place_of_queue(port, note.queue);
        let newest = &mut self.words[NEWEST][place];
        if *newest == 0 {
            *newest = mark;
        }
        note.is_newest = u8::from(*newest == mark);
    }

    /// A packet without data: an ACK of a flow in the other direction.
    fn lower_window(&self, tcp: SwitchTcp, is_above: bool, group: u8, limit: u32) -> SwitchFate {
        let limit = limit.max(self.params.least_window());
        let acts = tcp.ack && is_above && self.params.action(group) == FlowAction::Window;
        let window = (acts && u32::from(tcp.window) > limit).then_some(limit as u16);
        SwitchFate { window, ..enqueue(SwitchP4airParams::MICE) }
    }

    /// A packet leaves the queue, in which it found `depth` packets. Returns whether a copy goes back, with the note. A note that the program cannot
    /// have made changes nothing.
    pub fn behind_the_queue(&mut self, depth: u32, note: &mut SwitchNote) -> bool {
        let (entry, fingerprint) = (usize::from(note.entry), self.params.p4air.fingerprint);
        if note.round == 0 || !self.may_have_made(note) {
            return false;
        }
        if note.group == 0 {
            for register in [DEPTH, DEPTH_BEFORE, AGGRESSIVENESS, SINCE_DECREASE, PULSE_LEFT, PERIOD_LEFT, PULSES] {
                self.words[register][entry] = 0;
            }
            return false;
        }
        let found = depth.min(SwitchP4airParams::DEEPEST);
        let deepest = &mut self.words[DEPTH][entry];
        if note.round == SwitchNote::WITHIN {
            *deepest = (*deepest).max(found);
            return false;
        }
        let deepest = std::mem::replace(deepest, found);
        let depth_before = std::mem::replace(&mut self.words[DEPTH_BEFORE][entry], deepest);
        let has_grown = deepest > depth_before + (depth_before >> self.params.rise_shift());
        let (sent, before) = (u32::from(note.sent), u32::from(note.before));
        let is_reduced = saturated(sent + (before >> fingerprint.reduction_shift)) < before;
        let is_limit = self.aggressiveness(entry, note.group, has_grown && !(note.group == 1 && is_reduced));
        let is_pulsing = self.pulses(entry, sent, before) >= u32::from(fingerprint.model_based_after.max(1));
        let to = if is_pulsing && note.group < 4 {
            4
        } else if is_limit && note.is_newest == 1 && note.group < 3 {
            note.group + 1
        } else {
            return false;
        };
        (note.request, note.to) = (SwitchRequest::Group as u8, to);
        true
    }

    /// Counts round trips with a growing queue. Returns whether the group's limit is reached; the count starts again then.
    fn aggressiveness(&mut self, entry: usize, group: u8, has_grown: bool) -> bool {
        let limit = self.params.limit(group);
        let word = &mut self.words[AGGRESSIVENESS][entry];
        let is_limit = has_grown && *word >= limit - 1;
        *word = if has_grown && !is_limit { (*word + 1).min(255) } else { 0 };
        is_limit
    }

    /// BwEst: pulses of the rate so far.
    fn pulses(&mut self, entry: usize, sent: u32, before: u32) -> u32 {
        let fingerprint = self.params.p4air.fingerprint;
        let change = (before >> 3).max(fingerprint.least_change.max(1));
        let has_increased = before > 0 && sent >= saturated(before + change);
        let has_decreased = before >= saturated(sent + change);
        let settled = if has_decreased {
            self.words[SINCE_DECREASE][entry] = 0;
            0
        } else {
            self.count(SINCE_DECREASE, entry)
        };
        let pulse = &mut self.words[PULSE_LEFT][entry];
        let had_increase = match (has_increased && settled > u32::from(fingerprint.settled), has_decreased) {
            (true, _) => {
                *pulse = fingerprint.pulse.into();
                false
            }
            (false, true) => std::mem::take(pulse) > 0,
            (false, false) => {
                *pulse = pulse.saturating_sub(1);
                false
            }
        };
        let period = &mut self.words[PERIOD_LEFT][entry];
        if !had_increase {
            *period = period.saturating_sub(1);
            return self.words[PULSES][entry];
        }
        if std::mem::replace(period, self.params.period()) > 0 {
            return self.count(PULSES, entry);
        }
        self.words[PULSES][entry] = 1;
        1
    }
}

/// A sum of 16 bits.
fn saturated(sum: u32) -> u32 {
    sum.min(0xffff)
}

fn enqueue(queue: u8) -> SwitchFate {
    SwitchFate { queue: Some(queue), ..SwitchFate::default() }
}
