//! The records in the kernel's maps (`bpf/count.h`, `bpf/probe.bpf.c`): departures, counters and slices.

use queuescope_wire::{Ecn, Nanos};
use std::array::from_fn;

/// A packet that left a queue, or was dropped there; a super-packet is several packets on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left<'a> {
    /// The enqueue time by `CLOCK_MONOTONIC`; the dequeue time if it is unknown.
    pub enqueued: Nanos,
    /// Whether the enqueue time is known. It is not if the packet came before the probe, or the qdisc has overwritten the time.
    pub is_stamped: bool,
    /// The dequeue time by `CLOCK_MONOTONIC`; the time of the drop if it was dropped.
    pub dequeued: Nanos,
    /// Whether the qdisc, or a classifier after the probe, dropped it: only with [`ProbeParams::drops`](crate::ProbeParams::drops). The digest, the shares
    /// and the backlog are 0 then.
    pub is_dropped: bool,
    /// The bits of ECN with which it left: only with [`ProbeParams::drops`](crate::ProbeParams::drops).
    pub ecn: Option<Ecn>,
    /// The digest of the flow's key.
    pub digest: u64,
    /// Bytes of the flow that left while the packet waited; 0 if that is not known.
    pub flow: u64,
    /// Bytes of all flows that left meanwhile.
    pub all: u64,
    /// Bytes on the wire.
    pub bytes: u32,
    /// The number of packets on the wire.
    pub packets: u32,
    /// Bytes in the queue after the packet left.
    pub backlog: u32,
    /// Packets in the queue after the packet left.
    pub length: u32,
    /// The index of the queue.
    pub queue: u32,
    /// Whether `headers` begins with Ethernet.
    pub framed: bool,
    /// Whether the flow contributes to congestion.
    pub contributing: bool,
    /// The first bytes of the packet, or of an earlier one of its flow ([`Headers`](crate::Headers)), up to 128.
    pub headers: &'a [u8],
}

/// Counts over all packets of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were enqueued, exactly; a super-packet counts as one.
    pub stamped: u64,
    /// The bytes of these.
    pub stamped_bytes: u64,
    /// The same packets, counted on the wire.
    pub came: u64,
    /// Packets that were seen to leave; a super-packet counts as one.
    pub seen: u64,
    /// The same packets, counted on the wire.
    pub packets: u64,
    /// The bytes of these on the wire.
    pub bytes: u64,
    /// Packets on the wire whose sojourn time was longer than tau.
    pub congested: u64,
    /// Those of them whose flow contributed.
    pub contributing: u64,
    /// Packets on the wire without an enqueue time: they came before the probe, or the time was overwritten. Their sojourn time counts as 0.
    pub unstamped: u64,
    /// Packets that are not IP, among those whose flow was identified.
    pub other: u64,
    /// Times that more packets left at once than the probe examines.
    pub bulk: u64,
    /// Packets, and drops that were to be handed over, for which the ring had no room.
    pub untold: u64,
    /// Packets on the wire that the qdisc, or a classifier after the probe, dropped.
    pub dropped: u64,
    /// The same packets by [reason](Counters::REASONS).
    pub drops: [u64; Counters::REASONS.len()],
    /// The same packets as the qdisc counts them (`tc -s`): a super-packet that it drops whole is one.
    pub tc_drops: u64,
    /// Packets on the wire that the qdisc marked: they came without a CE mark and left with one (RFC 3168).
    pub marked: u64,
    /// Congested packets on the wire of which it is unknown how much of their flow left meanwhile, so that they do not count as contributing:
    /// they came as the queue began to build, or their flow lost its place in the table to others.
    pub unjudged: u64,
    /// Packets that were not handed over and left the queue empty; a super-packet counts as one. No packet that is handed over waited
    /// for them, so their flow is not identified.
    pub alone: u64,
    /// Packets that the device returned to the queue and that left again; they count as leaving at the first time.
    pub requeued: u64,
    /// The same, but without the kernel running the probe when they left again.
    pub requeued_unseen: u64,
    /// Packets on the wire that left according to the qdisc itself, when it was last [compared](crate::Probe::compare); 0 if the interface has no
    /// queue.
    pub departures: u64,
    /// The sum of the sojourn times of all packets on the wire.
    pub delay: Nanos,
    /// A histogram of sojourn times of packets on the wire. Bucket `i` counts times below [`Counters::bound`] of `i` and not below that of
    /// `i - 1`. The last bucket counts all longer ones.
    pub delays: [u64; Counters::DELAYS],
}

/// The sums over 67 ms of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// The start of the slice by `CLOCK_MONOTONIC`.
    pub start: Nanos,
    /// Packets on the wire.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Packets on the wire whose sojourn time was longer than tau.
    pub congested: u64,
    /// The sum of the sojourn times of packets on the wire.
    pub delay_sum: Nanos,
    /// The longest sojourn time.
    pub delay_max: Nanos,
    /// The largest backlog in bytes.
    pub backlog_max: u32,
    /// The largest backlog in packets.
    pub length_max: u32,
}

impl Counters {
    pub(super) const WORDS: usize = 19 + Self::REASONS.len() + Self::DELAYS;
    /// The reasons for drops, from the kernel's `enum skb_drop_reason`. `qdisc` stands for any other reason.
    pub const REASONS: [&str; 9] = [
        "qdisc",
        "over limit",
        "congested",
        "cake flood",
        "fq band limit",
        "fq horizon limit",
        "fq flow limit",
        "dualpi2 step",
        // A classifier of the qdisc, or one before it and after the probe.
        "classifier",
    ];
    /// The number of buckets of the histogram.
    pub const DELAYS: usize = 32;

    /// The upper bound of bucket `place` of [`delays`](Self::delays): 1024 ns, doubled for each further bucket.
    pub fn bound(place: usize) -> Nanos {
        Nanos(1024 << place.min(Self::DELAYS))
    }

    /// Packets on the wire that were not seen to leave or be dropped: they are in the queue, or the kernel ran no program when they left. At
    /// least this many: packets that were in the queue before the probe, and were seen to leave, may make up for others in the first
    /// count, and those that left after the last comparison in the second.
    pub fn unseen(&self) -> u64 {
        let by_arrivals = self.came.saturating_sub(self.packets + self.dropped);
        by_arrivals.max(self.departures.saturating_sub(self.packets))
    }

    /// Sums the counters of all processors.
    pub(super) fn from_processors(processors: &[[u64; Self::WORDS]]) -> Self {
        let words: [u64; Self::WORDS] = from_fn(|word| processors.iter().map(|words| words[word]).sum());
        let [stamped, stamped_bytes, came, seen, packets, bytes, congested, contributing, delay, alone, rest @ ..] =
            words;
        let [unstamped, other, bulk, untold, requeued, requeued_unseen, marked, unjudged, rest @ ..] = rest;
        let [qdisc, limit, congestion, flood, band, horizon, flow, step, classifier, tc_drops, delays @ ..] = rest;
        let drops = [qdisc, limit, congestion, flood, band, horizon, flow, step, classifier];
        Self {
            stamped,
            stamped_bytes,
            came,
            seen,
            packets,
            bytes,
            congested,
            contributing,
            unstamped,
            other,
            bulk,
            untold,
            dropped: drops.iter().sum(),
            drops,
            tc_drops,
            marked,
            unjudged,
            alone,
            requeued,
            requeued_unseen,
            departures: 0,
            delay: Nanos(delay),
            delays,
        }
    }
}

impl Slice {
    /// The last is not used.
    pub(super) const WORDS: usize = 8;
    /// The number of slices that the kernel keeps per queue.
    pub(super) const KEPT: u32 = 64;
    /// The length of a slice, as a power of two of nanoseconds.
    const SHIFT: u32 = 26;

    pub(super) fn from_words(words: &[u64; Self::WORDS]) -> Self {
        let [number, packets, bytes, congested, delay_sum, delay_max, maxima, _] = *words;
        Self {
            start: Nanos(number << Self::SHIFT),
            packets,
            bytes,
            congested,
            delay_sum: Nanos(delay_sum),
            delay_max: Nanos(delay_max),
            backlog_max: maxima as u32,
            length_max: (maxima >> 32) as u32,
        }
    }
}
