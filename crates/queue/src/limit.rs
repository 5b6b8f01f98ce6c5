//! The limit of a queue, and its text form.

use crate::Outlet;
use queuescope_wire::{Backlog, ByteCount, Nanos, UnitError};
use std::fmt;
use std::str::FromStr;

/// How much a queue may hold. The packet that the link is sending has left the queue and does not count. Bytes are
/// those of the packets in the queue. A time is measured on the link, including what it adds to each packet.
///
/// ```
/// use queuescope_queue::{Limit, Outlet};
/// use queuescope_wire::{Backlog, ByteCount, QueueId};
///
/// let limit: Limit = "10ms".parse()?;
/// let outlet = Outlet { rate: "12mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let backlog = |packets| Backlog { packets, bytes: ByteCount(1500 * packets) };
/// assert!(limit.admits(backlog(10), ByteCount(1500), &outlet), "10 packets take 10 ms");
/// assert!(!limit.admits(backlog(11), ByteCount(1500), &outlet));
/// assert_eq!("100 packets".parse(), Ok(Limit::Packets(100)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    #[default]
    None,
    /// This many bytes, including the new packet (as Linux's bfifo).
    Bytes(ByteCount),
    /// This many packets, including the new packet (as Linux's pfifo).
    Packets(u64),
    /// What the link sends in this time. A packet is dropped if the backlog ahead of it takes longer. The packet itself
    /// may wait slightly longer, by the rest of the packet that the link is sending. A packet that finds the queue
    /// empty is always admitted.
    Time(Nanos),
}

impl Limit {
    /// Whether a packet of `size` may join `backlog` in a queue that feeds this link.
    pub fn admits(self, backlog: Backlog, size: ByteCount, outlet: &Outlet) -> bool {
        match self {
            Self::None => true,
            Self::Bytes(most) => backlog.bytes.0.saturating_add(size.0) <= most.0,
            Self::Packets(most) => backlog.packets < most,
            Self::Time(most) => outlet.time_for(backlog) <= most,
        }
    }
}

/// A limit as integers, so that no packet costs a division. [`Limit::admits`] is the plain definition.
#[derive(Debug)]
pub(crate) struct CompiledLimit {
    /// Packets, including the new one.
    packets: u64,
    /// Bytes, including the new packet.
    bytes: u64,
    /// Bytes ahead of the new packet, including what the link adds.
    bytes_before: u64,
    /// Bytes that the link adds to each packet.
    overhead: u32,
}

impl CompiledLimit {
    pub fn new(limit: Limit, outlet: &Outlet) -> Self {
        let &Outlet { rate, overhead, .. } = outlet;
        let mut room = Self { packets: u64::MAX, bytes: u64::MAX, bytes_before: u64::MAX, overhead };
        match limit {
            Limit::None => {}
            Limit::Packets(packets) => room.packets = packets,
            Limit::Bytes(bytes) => room.bytes = bytes.0,
            Limit::Time(time) => {
                // The most bytes whose time, rounded down, does not exceed the limit.
                let work = (u128::from(time.0) + 1) * u128::from(rate.bits_per_second());
                room.bytes_before = u64::try_from((work - 1) / 8_000_000_000).unwrap_or(u64::MAX);
            }
        }
        room
    }

    #[inline]
    pub fn admits(&self, backlog: Backlog, size: ByteCount) -> bool {
        backlog.packets < self.packets
            && backlog.on_link(self.overhead).0 <= self.bytes_before
            && backlog.bytes.0.saturating_add(size.0) <= self.bytes
    }

    /// Whether the queue may hold this backlog, for disciplines that drop after the arrival. For a limit in time, the
    /// whole backlog must not take longer than that, unless it is one packet.
    #[inline]
    pub fn holds(&self, backlog: Backlog) -> bool {
        backlog.packets <= self.packets
            && backlog.bytes.0 <= self.bytes
            && (backlog.on_link(self.overhead).0 <= self.bytes_before || backlog.packets <= 1)
    }
}

/// The text form, which [`FromStr`] parses.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Bytes(bytes) => f.pad(&format!("{} bytes", bytes.0)),
            Self::Packets(packets) => f.pad(&format!("{packets} packets")),
            Self::Time(time) => f.pad(&format!("{} ns", time.0)),
        }
    }
}

/// Accepts `none`, `250ms`, `64KiB`, `1000 bytes`, `100 packets`. A size ends in an upper-case B, like a [`ByteCount`].
impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let trimmed = text.trim();
        if trimmed == "none" {
            return Ok(Self::None);
        }
        let number = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ').trim_end();
        let digits = |what: &str| {
            number
                .parse()
                .map_err(|_| LimitError { text: text.to_owned(), why: format!("'{number}' is not a number of {what}") })
        };
        match trimmed[number.len()..].trim() {
            "packet" | "packets" | "pkt" | "pkts" | "p" => digits("packets").map(Self::Packets),
            "byte" | "bytes" => digits("bytes").map(|bytes| Self::Bytes(ByteCount(bytes))),
            "" => Err(LimitError { text: text.to_owned(), why: "it has no unit".to_owned() }),
            unit => {
                let error = |error: UnitError| LimitError { text: text.to_owned(), why: error.why };
                if unit.ends_with(['B', 'b']) {
                    trimmed.parse().map(Self::Bytes).map_err(error)
                } else {
                    trimmed.parse().map(Self::Time).map_err(error)
                }
            }
        }
    }
}

/// A text that is not a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a queue limit: {why} (for example 250ms, 64KiB, 1000packets or none)")]
pub struct LimitError {
    text: String,
    why: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_wire::{QueueId, Rate};

    fn outlet(rate: u64, overhead: u32) -> Outlet {
        Outlet { rate: Rate::from_bits_per_second(rate).unwrap(), overhead, queue: QueueId(0), seed: 0 }
    }

    #[test]
    fn limits_read_and_show() {
        for (text, limit) in [
            ("none", Limit::None),
            ("250ms", Limit::Time(Nanos(250_000_000))),
            ("1 s", Limit::Time(Nanos(1_000_000_000))),
            ("10µs", Limit::Time(Nanos(10_000))),
            ("64KiB", Limit::Bytes(ByteCount(65_536))),
            ("1.5MB", Limit::Bytes(ByteCount(1_500_000))),
            ("1000 bytes", Limit::Bytes(ByteCount(1000))),
            ("100packets", Limit::Packets(100)),
            ("0 packets", Limit::Packets(0)),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
            assert_eq!(limit.to_string().parse(), Ok(limit), "{text}");
        }
        for text in ["", "100", "-1packets", "1.5packets", "packets", "lots", "5 furlongs", "None", "é"] {
            assert!(text.parse::<Limit>().is_err(), "{text}");
        }
        let error = "64kb".parse::<Limit>().unwrap_err().to_string();
        assert!(error.contains("'kb' may be kbit or kB"), "{error}");
    }

    #[test]
    fn a_limit_holds_what_it_admitted() {
        let outlet = outlet(1_000_000, 0);
        let holds = |limit, packets, bytes| {
            CompiledLimit::new(limit, &outlet).holds(Backlog { packets, bytes: ByteCount(bytes) })
        };
        assert!(holds(Limit::None, u64::MAX, u64::MAX));
        assert!(holds(Limit::Packets(2), 2, 3000) && !holds(Limit::Packets(2), 3, 3));
        assert!(holds(Limit::Bytes(ByteCount(100)), 3, 100) && !holds(Limit::Bytes(ByteCount(100)), 1, 101));
        let millisecond = Limit::Time(Nanos(1_000_000));
        assert!(holds(millisecond, 2, 125) && !holds(millisecond, 2, 126) && holds(millisecond, 1, 1500));
    }

    #[test]
    fn a_time_limit_counts_what_waits_before_the_packet() {
        let outlet = outlet(1_000_000, 0);
        let backlog = |bytes| Backlog { packets: 1, bytes: ByteCount(bytes) };
        let limit = Limit::Time(Nanos(1_000_000));
        assert!(limit.admits(backlog(125), ByteCount(1500), &outlet));
        assert!(!limit.admits(backlog(126), ByteCount(40), &outlet));
    }

    #[test]
    fn overhead_takes_time_on_the_link_and_no_room_in_the_queue() {
        let outlet = outlet(1_000_000, 38);
        let backlog = |packets| Backlog { packets, bytes: ByteCount(1500 * packets) };
        let most = |limit: Limit| (0..).find(|packets| !limit.admits(backlog(*packets), ByteCount(1500), &outlet));
        assert_eq!(most(Limit::Bytes(ByteCount(15_000))), Some(10));
        // Ten packets take 10 * 1538 bytes of time on the link.
        let ten = Nanos(10 * 1538 * 8_000);
        assert_eq!([most(Limit::Time(ten)), most(Limit::Time(Nanos(ten.0 - 1)))], [Some(11), Some(10)]);
    }

    proptest! {
        /// The integer form agrees with the plain definition.
        #[test]
        fn the_compiled_limit_agrees_with_the_definition(
            limit in prop_oneof![
                Just(Limit::None),
                (0..40_000u64).prop_map(|bytes| Limit::Bytes(ByteCount(bytes))),
                (0..30u64).prop_map(Limit::Packets),
                (0..40_000_000u64).prop_map(|time| Limit::Time(Nanos(time))),
            ],
            rate in prop_oneof![Just(7_777_777u64), 1_000_000..1_000_000_000u64],
            overhead in prop_oneof![Just(0u32), Just(38), 0..1000u32],
            (packets, bytes, size) in (0..30u64, 0..40_000u64, 0..2000u64),
        ) {
            let (outlet, size) = (outlet(rate, overhead), ByteCount(size));
            let backlog = Backlog { packets, bytes: ByteCount(bytes) };
            prop_assert_eq!(CompiledLimit::new(limit, &outlet).admits(backlog, size), limit.admits(backlog, size, &outlet));
        }
    }
}
