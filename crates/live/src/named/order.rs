//! An order about a flow, as the kernel stores it (`struct order` of `bpf/named.bpf.c`).

use queuescope_wire::{ByteCount, Nanos, Rate};
use std::array::from_fn;
use std::net::IpAddr;

/// What to do with the packets of a flow, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowOrder {
    /// The flow.
    pub flow: FlowMatch,
    /// What to do.
    pub action: FlowAction,
    /// When it ends, by `CLOCK_MONOTONIC`.
    pub until: Nanos,
    /// Dry run: outcomes are counted, and no packet is changed.
    pub dry: bool,
}

/// What packets of a flow have in common. A part that is `None` can have any value. Ports are those of the first fragment; later fragments have
/// none, as 0.
///
/// ```
/// use queuescope_live::FlowMatch;
///
/// let flow = FlowMatch { src: "10.0.0.1".parse().ok(), protocol: Some(6), ..FlowMatch::default() };
/// assert!(flow.dst_port.is_none());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowMatch {
    /// The source address.
    pub src: Option<IpAddr>,
    /// The destination address.
    pub dst: Option<IpAddr>,
    /// The source port.
    pub src_port: Option<u16>,
    /// The destination port.
    pub dst_port: Option<u16>,
    /// The number of the transport protocol.
    pub protocol: Option<u8>,
}

/// What to do with the packets of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowAction {
    /// Mark those that are ECN-capable.
    Mark,
    /// Drop all.
    Drop,
    /// Drop those above a rate.
    Limit {
        /// The rate, in bytes on the wire.
        rate: Rate,
        /// The size of the bucket. A packet passes if any tokens are left, even if they are fewer than its bytes. At most four seconds of the
        /// rate.
        burst: ByteCount,
    },
}

/// What became of the packets of a flow; a super-packet counts as one. In a dry run, what would have become of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Packets of the flow. Each has one of the outcomes from `spared` to `dropped`.
    pub met: u64,
    /// Within the limit.
    pub spared: u64,
    /// Marked.
    pub marked: u64,
    /// To be marked, but already marked.
    pub marked_before: u64,
    /// To be marked, but not ECN-capable, or truncated within the header.
    pub unmarkable: u64,
    /// Dropped, also because they were above the limit.
    pub dropped: u64,
    /// Packets that lists of flows except; they are not in `met`.
    pub exempt: u64,
}

impl Default for FlowOrder {
    /// A dry run of marking every packet, which ended at the beginning of time.
    fn default() -> Self {
        Self { flow: FlowMatch::default(), action: FlowAction::Mark, until: Nanos(0), dry: true }
    }
}

impl FlowOrder {
    /// The size of `struct order` in words.
    pub(super) const WORDS: usize = 16;

    /// The words of `struct order`, with another end.
    pub(super) fn words(&self, until: Nanos) -> [u64; Self::WORDS] {
        let (value, mask) = self.flow.words();
        let (action, cost, burst) = match self.action {
            FlowAction::Mark => (1, 0, 0),
            FlowAction::Drop => (2, 0, 0),
            // At a very low rate, a packet of any size takes hours; the exact time does not matter.
            FlowAction::Limit { rate, burst } => {
                let cost = (8_000_000_000 << 16) / rate.bits_per_second().max(1_000);
                (3, cost, rate.time_for(burst).0.min(4_000_000_000))
            }
        };
        let tail = [cost, burst, action | u64::from(self.dry) << 32];
        from_fn(|word| match word {
            0 => until.0,
            1..7 => value[word - 1],
            7..13 => mask[word - 7],
            _ => tail[word - 13],
        })
    }
}

impl FlowMatch {
    /// The bits of `struct known` that are compared, and their mask: low halves first.
    fn words(&self) -> ([u64; 6], [u64; 6]) {
        let address = |address: Option<IpAddr>| {
            let bits = address.map(|address| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
                IpAddr::V6(address) => address.to_bits(),
            });
            (bits.unwrap_or(0), bits.map_or(0, |_| u128::MAX))
        };
        let part = |value: Option<u64>, width: u32, at: u32| {
            (value.unwrap_or(0) << at, value.map_or(0, |_| ((1 << width) - 1) << at))
        };
        let ([src, src_mask], [dst, dst_mask]) = (<[_; 2]>::from(address(self.src)), <[_; 2]>::from(address(self.dst)));
        let parts = [
            part(self.src_port.map(u64::from), 16, 0),
            part(self.dst_port.map(u64::from), 16, 16),
            part(self.protocol.map(u64::from), 8, 32),
        ];
        let (rest, rest_mask) = parts.iter().fold((0, 0), |all, one| (all.0 | one.0, all.1 | one.1));
        let words =
            |src: u128, dst: u128, rest| [src as u64, (src >> 64) as u64, dst as u64, (dst >> 64) as u64, rest, 0];
        (words(src, dst, rest), words(src_mask, dst_mask, rest_mask))
    }
}

impl FlowOutcome {
    /// The size of `struct outcome` in words.
    pub(super) const WORDS: usize = 7;

    /// Packets that were changed or dropped, or would be.
    pub fn touched(&self) -> u64 {
        self.marked + self.dropped
    }

    /// Sums the counters of all processors.
    pub(super) fn from_processors(processors: &[[u64; Self::WORDS]]) -> Self {
        let words: [u64; Self::WORDS] = from_fn(|word| processors.iter().map(|words| words[word]).sum());
        let [met, spared, marked, marked_before, unmarkable, dropped, exempt] = words;
        Self { met, spared, marked, marked_before, unmarkable, dropped, exempt }
    }
}
