//! What the kernel tells, as it lies in its maps (`bpf/count.h`, `bpf/probe.bpf.c`).

use queuescope_wire::Nanos;
use std::array::from_fn;

/// A packet that left a queue, perhaps several on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left<'a> {
    /// When it came, and when it left, by `CLOCK_MONOTONIC`.
    pub enqueued: Nanos,
    /// When it left.
    pub dequeued: Nanos,
    /// The digest of its flow's key.
    pub digest: u64,
    /// How many bytes of its flow left while it waited, as the sketch has it.
    pub flow: u64,
    /// How many bytes of all.
    pub all: u64,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Packets on the wire that it was made into.
    pub packets: u32,
    /// Bytes that it left behind in the queue.
    pub backlog: u32,
    /// Packets that it left behind.
    pub length: u32,
    /// The number of its queue.
    pub queue: u32,
    /// Whether its headers begin with those of Ethernet.
    pub framed: bool,
    /// Whether its flow contributes to congestion.
    pub contributing: bool,
    /// Its first bytes, up to 128.
    pub headers: &'a [u8],
}

/// What is counted of all packets of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// That came to the queue, exactly; super-packets as such.
    pub stamped: u64,
    /// Their bytes.
    pub stamped_bytes: u64,
    /// The same on the wire.
    pub came: u64,
    /// That left it and were seen; super-packets as such.
    pub seen: u64,
    /// The same on the wire,
    pub packets: u64,
    /// and their bytes there.
    pub bytes: u64,
    /// Packets on the wire that waited for longer than tau.
    pub congested: u64,
    /// Those of them whose flow contributed.
    pub contributing: u64,
    /// That came before the probe did, or whose time something else has overwritten: they count as not having waited.
    pub unstamped: u64,
    /// That are not IP, of those that were asked whose they are.
    pub other: u64,
    /// Times that more left at once than are looked at.
    pub bulk: u64,
    /// That were to be told, and there was no room.
    pub untold: u64,
    /// Packets on the wire that the qdisc dropped, or a classifier behind the probe.
    pub dropped: u64,
    /// The same by [reason](Counters::REASONS).
    pub drops: [u64; Counters::REASONS.len()],
    /// Packets on the wire that the qdisc marked: they came to it without CE (RFC 3168), and left it with that.
    pub marked: u64,
    /// That were not told and left nothing in the queue behind them; super-packets as such. No packet that is told waited for them, so
    /// they are not asked whose they are, and are not in the sketch.
    pub alone: u64,
    /// That the device gave back and that left once more; they count as having left at first.
    pub requeued: u64,
    /// The same, but the kernel ran nothing when they left once more.
    pub requeued_unseen: u64,
    /// How long all packets on the wire waited, in sum.
    pub delay: Nanos,
    /// Packets on the wire by how long they waited: less than [`Counters::bound`] of their place, and not less than that of the one before.
    /// In the last are all that waited for longer.
    pub delays: [u64; Counters::DELAYS],
}

/// What was summed up of a queue over 67 ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// When it began, by `CLOCK_MONOTONIC`.
    pub start: Nanos,
    /// Packets on the wire.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Packets on the wire that waited for longer than tau.
    pub congested: u64,
    /// How long packets on the wire waited, in all,
    pub delay_sum: Nanos,
    /// and at most.
    pub delay_max: Nanos,
    /// The most bytes in the queue.
    pub backlog_max: u32,
    /// The most packets.
    pub length_max: u32,
}

/// Bytes of the numbers before the headers of an event.
const NUMBERS: usize = 64;

impl<'a> Left<'a> {
    /// Of an event's bytes, if they are one's.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let (numbers, headers) = bytes.split_first_chunk::<NUMBERS>()?;
        let word = |at: usize| numbers[at..].first_chunk().copied().map_or(0, u64::from_ne_bytes);
        let half = |at: usize| numbers[at..].first_chunk().copied().map_or(0, u32::from_ne_bytes);
        let captured = u16::from_ne_bytes([numbers[60], numbers[61]]);
        Some(Self {
            enqueued: Nanos(word(0)),
            dequeued: Nanos(word(8)),
            digest: word(16),
            flow: word(24),
            all: word(32),
            bytes: half(40),
            packets: half(44),
            backlog: half(48),
            length: half(52),
            queue: half(56),
            framed: numbers[62] != 0,
            contributing: numbers[63] != 0,
            headers: headers.get(..usize::from(captured))?,
        })
    }
}

impl Counters {
    pub(super) const WORDS: usize = 17 + Self::REASONS.len() + Self::DELAYS;
    /// Why a qdisc or a classifier drops, as the kernel tells (`enum skb_drop_reason`), as far as it does: `qdisc` is any reason.
    pub const REASONS: [&str; 9] = [
        "qdisc",
        "over limit",
        "congested",
        "cake flood",
        "fq band limit",
        "fq horizon limit",
        "fq flow limit",
        "dualpi2 step",
        // One of the qdisc, or before it and behind the probe.
        "classifier",
    ];
    /// Bounds of delays that are told apart.
    pub const DELAYS: usize = 32;

    /// The bound of a place in [`delays`](Self::delays): 1024 ns, doubled for each place behind the first.
    pub fn bound(place: usize) -> Nanos {
        Nanos(1024 << place.min(Self::DELAYS))
    }

    /// Packets on the wire that came and were neither seen to leave nor dropped: in the queue still, or left out by the kernel.
    pub fn unseen(&self) -> u64 {
        self.came.saturating_sub(self.packets + self.dropped)
    }

    /// The sums of what each processor has counted.
    pub(super) fn of(processors: &[[u64; Self::WORDS]]) -> Self {
        let words: [u64; Self::WORDS] = from_fn(|word| processors.iter().map(|words| words[word]).sum());
        let [stamped, stamped_bytes, came, seen, packets, bytes, congested, contributing, rest @ ..] = words;
        let [unstamped, other, bulk, untold, alone, requeued, requeued_unseen, marked, rest @ ..] = rest;
        let [qdisc, limit, congestion, flood, band, horizon, flow, step, classifier, delay, delays @ ..] = rest;
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
            marked,
            alone,
            requeued,
            requeued_unseen,
            delay: Nanos(delay),
            delays,
        }
    }
}

impl Slice {
    pub(super) const WORDS: usize = 7;
    /// Slices of a queue that there are.
    pub(super) const KEPT: u32 = 64;
    /// The length of one, as a power of two of nanoseconds.
    const SHIFT: u32 = 26;

    pub(super) fn of(words: &[u64; Self::WORDS]) -> Self {
        let [number, packets, bytes, congested, delay_sum, delay_max, maxima] = *words;
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
