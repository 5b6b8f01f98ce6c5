//! How much a queue may hold, and how a person writes that.

use queuescope_wire::{Backlog, ByteCount, Nanos, Rate, UnitError};
use std::fmt;
use std::str::FromStr;

/// How much a queue may hold. The packet that the link is sending has left the queue and does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Limit {
    /// As much as comes.
    #[default]
    None,
    /// So many bytes, with the new packet (as Linux's bfifo).
    Bytes(ByteCount),
    /// So many packets, with the new packet (as Linux's pfifo).
    Packets(u64),
    /// As much as the link sends in this time: a packet is dropped if what waits before it takes longer. It may wait
    /// longer itself by what is left of the packet that the link is sending; and nothing waits before one that finds
    /// the queue empty, which is admitted whatever the time.
    Time(Nanos),
}

impl Limit {
    /// Whether a packet of `size` finds room behind `backlog` on a link of `rate`.
    pub fn admits(self, backlog: Backlog, size: ByteCount, rate: Rate) -> bool {
        match self {
            Self::None => true,
            Self::Bytes(most) => backlog.bytes.0.saturating_add(size.0) <= most.0,
            Self::Packets(most) => backlog.packets < most,
            Self::Time(most) => rate.time_for(backlog.bytes) <= most,
        }
    }
}

/// A limit in whole numbers, so that no packet costs a division. [`Limit::admits`] says the same in plain words.
#[derive(Debug)]
pub(crate) struct Room {
    /// Packets, with the new one.
    packets: u64,
    /// Bytes, with the new packet's.
    bytes: u64,
    /// Bytes before the new packet.
    bytes_before: u64,
}

impl Room {
    pub fn new(limit: Limit, rate: Rate) -> Self {
        let mut room = Self { packets: u64::MAX, bytes: u64::MAX, bytes_before: u64::MAX };
        match limit {
            Limit::None => {}
            Limit::Packets(packets) => room.packets = packets,
            Limit::Bytes(bytes) => room.bytes = bytes.0,
            Limit::Time(time) => {
                // The most bytes whose time, rounded down, is no longer than that.
                let work = (u128::from(time.0) + 1) * u128::from(rate.bits_per_second());
                room.bytes_before = u64::try_from((work - 1) / 8_000_000_000).unwrap_or(u64::MAX);
            }
        }
        room
    }

    #[inline]
    pub fn admits(&self, backlog: Backlog, size: ByteCount) -> bool {
        backlog.packets < self.packets
            && backlog.bytes.0 <= self.bytes_before
            && backlog.bytes.0.saturating_add(size.0) <= self.bytes
    }

    /// Whether this much may wait: where what is too much is dropped later than on arrival. Of a limit in time, all
    /// that waits takes no longer than that, unless it is one packet.
    #[inline]
    pub fn holds(&self, backlog: Backlog) -> bool {
        backlog.packets <= self.packets
            && backlog.bytes.0 <= self.bytes
            && (backlog.bytes.0 <= self.bytes_before || backlog.packets <= 1)
    }
}

/// As a person writes it; [`FromStr`] reads it back.
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

/// Written `none`, `250ms`, `64KiB`, `1000 bytes`, `100 packets`. A size ends in an upper-case B, as a [`ByteCount`] does.
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
                .map_err(|_| LimitError { text: text.to_owned(), why: format!("'{number}' is no number of {what}") })
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

/// A limit that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a queue limit: {why} (for example 250ms, 64KiB, 1000packets or none)")]
pub struct LimitError {
    text: String,
    why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_a_limit_holds_is_what_it_admitted() {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        let holds = |limit, packets, bytes| Room::new(limit, rate).holds(Backlog { packets, bytes: ByteCount(bytes) });
        assert!(holds(Limit::None, u64::MAX, u64::MAX));
        assert!(holds(Limit::Packets(2), 2, 3000) && !holds(Limit::Packets(2), 3, 3));
        assert!(holds(Limit::Bytes(ByteCount(100)), 3, 100) && !holds(Limit::Bytes(ByteCount(100)), 1, 101));
        let millisecond = Limit::Time(Nanos(1_000_000));
        assert!(holds(millisecond, 2, 125) && !holds(millisecond, 2, 126) && holds(millisecond, 1, 1500));
    }

    #[test]
    fn a_time_limit_counts_what_waits_before_the_packet() {
        let rate = Rate::from_bits_per_second(1_000_000).unwrap();
        let backlog = |bytes| Backlog { packets: 1, bytes: ByteCount(bytes) };
        let limit = Limit::Time(Nanos(1_000_000));
        assert!(limit.admits(backlog(125), ByteCount(1500), rate));
        assert!(!limit.admits(backlog(126), ByteCount(40), rate));
    }
}
