//! What the kernel keeps of flows, and what it counts (`bpf/p4air.h`).

use queuescope_wire::{Family, FlowKey, Nanos};
use std::array::from_fn;

/// The kind of a flow: short-lived, or one of four kinds of congestion control (section III-A of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum P4airGroup {
    /// A flow without TCP that is below its share.
    Ant,
    /// A TCP flow in slow start, or one that carries ACKs only.
    Mouse,
    /// It backs off when the queue grows. Every long-lived flow begins here.
    DelayBased,
    /// It backs off when packets are lost, and slows down when the queue grows.
    LossDelay,
    /// It backs off only when packets are lost.
    LossBased,
    /// It sends at a rate that it has measured.
    ModelBased,
}

impl P4airGroup {
    /// All groups, in the order of the kernel's numbers.
    pub const ALL: [Self; 6] =
        [Self::Ant, Self::Mouse, Self::DelayBased, Self::LossDelay, Self::LossBased, Self::ModelBased];
    /// The groups of long-lived flows.
    pub const LONG_LIVED: [Self; 4] = [Self::DelayBased, Self::LossDelay, Self::LossBased, Self::ModelBased];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ant => "ant",
            Self::Mouse => "mouse",
            Self::DelayBased => "delay-based",
            Self::LossDelay => "loss-delay",
            Self::LossBased => "loss-based",
            Self::ModelBased => "model-based",
        }
    }
}

/// A flow of P4air.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct P4airFlow {
    /// Its addresses, ports and protocol.
    pub key: FlowKey,
    /// Its group.
    pub group: P4airGroup,
    /// Its queue among those of long-lived flows; none for ants and mice, and until its first packet in its group.
    pub queue: Option<u32>,
    /// Its round-trip time, by its handshake; none until it is known.
    pub rtt: Option<Nanos>,
    /// Packets of data on the wire.
    pub packets: u64,
    /// Packets that were dropped or delayed, and ACKs whose window was lowered; in a dry run, those that would have been.
    pub acted: u64,
    /// Round trips that ended.
    pub rounds: u32,
    /// Round trips in a row in which its queue grew.
    pub aggressiveness: u32,
    /// Pulses of its rate.
    pub pulses: u8,
    /// When a packet of it last came, by `CLOCK_MONOTONIC`.
    pub last: Nanos,
}

/// Flows in a line of the table.
const WAYS: usize = 8;
/// The words of `struct flow`, and of `struct line`.
const FLOW: usize = 17;
pub(super) const LINE: usize = WAYS + WAYS * FLOW;

impl P4airFlow {
    /// The flows of a line that have not ended.
    pub(super) fn of_line(words: &[u64; LINE]) -> impl Iterator<Item = Self> {
        let (digests, flows) = words.split_at(WAYS);
        let flows = flows.as_chunks::<FLOW>().0;
        digests.iter().zip(flows).filter(|(digest, _)| **digest != 0).filter_map(|(_, words)| Self::from_words(words))
    }

    fn from_words(words: &[u64; FLOW]) -> Option<Self> {
        let [last, packets, acted, rate, _, pulses, growth, rounds, _, state, _, rest @ ..] = *words;
        let byte = |word: u64, number: u32| (word >> (8 * number)) as u8;
        let (group, queue) = (byte(state, 0), byte(state, 2));
        let has_ended = byte(state, 5) != 0;
        let group = *P4airGroup::ALL.get(usize::from(group))?;
        let rtt = rate as u32;
        (!has_ended).then_some(Self {
            key: key(&rest),
            group,
            queue: (queue < 64).then_some(u32::from(queue)),
            rtt: (rtt > 0).then_some(Nanos(u64::from(rtt) << 10)),
            packets,
            acted,
            rounds: rounds as u32,
            aggressiveness: (growth >> 32) as u32,
            pulses: byte(pulses, 0),
            last: Nanos(last),
        })
    }
}

/// A key from the words whose digest the kernel computes.
fn key(words: &[u64; 6]) -> FlowKey {
    let wide = |low: u64, high: u64| u128::from(low) | u128::from(high) << 64;
    let family = match (words[5] >> 16) & 3 {
        1 => Family::V4,
        2 => Family::V6,
        _ => Family::Link,
    };
    FlowKey {
        src: wide(words[0], words[1]),
        dst: wide(words[2], words[3]),
        src_port: words[4] as u16,
        dst_port: (words[4] >> 16) as u16,
        protocol: words[5] as u8,
        family,
        ..FlowKey::default()
    }
}

/// What P4air has counted; a super-packet is one packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct P4airCounters {
    /// Packets of flows in the table.
    pub tracked: u64,
    /// Packets of TCP or UDP without an entry: ACKs of flows that were not seen, and flows without room.
    pub ants: u64,
    /// Packets that are not plain TCP or UDP over IP, such as ARP, fragments, and packets with VLAN tags or extension headers. They pass with the ants.
    pub other: u64,
    /// Times that a flow found no room in the table.
    pub full: u64,
    /// Slow starts that ended because the flow sent less.
    pub slow_start_less: u64,
    /// Slow starts that ended because the flow filled its share.
    pub slow_start_share: u64,
    /// Round trips of flows above their share.
    pub above_share: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that would have been dropped.
    pub would_drop: u64,
    /// Packets that went to the queue that is served last.
    pub delayed: u64,
    /// Packets that would have gone there.
    pub would_delay: u64,
    /// ACKs whose receive window was lowered.
    pub lowered: u64,
    /// ACKs whose receive window would have been lowered.
    pub would_lower: u64,
    /// Packets of flows that are never acted on, which would have been reached.
    pub exempt: u64,
    /// ACKs whose window was not lowered because its scale was not seen in a handshake.
    pub unscaled: u64,
    /// Flows that moved to each of [`P4airGroup::LONG_LIVED`].
    pub moves: [u64; 4],
    /// Flows that changed their queue within their group.
    pub requeued: u64,
    /// Flows that ended: with a FIN or RST, or after ten seconds without a packet.
    pub ended: u64,
    /// Changes that were left to a later packet because another processor was making one.
    pub deferred: u64,
    /// Packets on the wire that were seen to leave a queue.
    pub left: u64,
    /// Bulks of which some packets were not seen to leave.
    pub bulk: u64,
}

impl P4airCounters {
    pub(super) const WORDS: usize = 24;

    /// What became of packets of flows above their share, and of ACKs whose window was lowered, by the names of reports and metrics.
    pub fn outcomes(&self) -> [(&'static str, u64); 7] {
        [
            ("dropped", self.dropped),
            ("would_drop", self.would_drop),
            ("delayed", self.delayed),
            ("would_delay", self.would_delay),
            ("lowered", self.lowered),
            ("would_lower", self.would_lower),
            ("exempt", self.exempt),
        ]
    }

    /// Sums the counters of all processors.
    pub(super) fn from_processors(processors: &[[u64; Self::WORDS]]) -> Self {
        let words: [u64; Self::WORDS] = from_fn(|word| processors.iter().map(|words| words[word]).sum());
        let [tracked, ants, other, full, slow_start_less, slow_start_share, above_share, rest @ ..] = words;
        let [dropped, would_drop, delayed, would_delay, lowered, would_lower, exempt, unscaled, rest @ ..] = rest;
        let [a, b, c, d, requeued, ended, deferred, left, bulk] = rest;
        Self {
            tracked,
            ants,
            other,
            full,
            slow_start_less,
            slow_start_share,
            above_share,
            dropped,
            would_drop,
            delayed,
            would_delay,
            lowered,
            would_lower,
            exempt,
            unscaled,
            moves: [a, b, c, d],
            requeued,
            ended,
            deferred,
            left,
            bulk,
        }
    }
}
