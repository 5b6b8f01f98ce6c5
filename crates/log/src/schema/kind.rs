//! Kinds of attributes: the order of their bytes, and how their values are written.

use std::fmt;

/// The kind of an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An unsigned whole number, of 1 to 128 bits.
    Unsigned,
    /// A whole number in two's complement, of 1 to 16 bytes.
    Signed,
    /// A floating-point number (IEEE 754), of 4 or 8 bytes. Sorted in total order, except that zero has only one
    /// sign; so NaN is above infinity, or below minus infinity if its sign is set.
    Float,
    /// A number of bytes: an unsigned number that can be written `1500B`, `64KiB`.
    Size,
    /// Nanoseconds, 8 bytes: a duration, or a time since an origin that the records' source chooses. Written `250us`,
    /// `1.5s`.
    Time,
    /// An IPv4 address, 4 bytes.
    Ipv4,
    /// An IPv6 address, 16 bytes.
    Ipv6,
    /// An address of either family, 16 bytes; IPv4 is mapped (`::ffff:10.0.0.1`, RFC 4291 section 2.5.5.2).
    Address,
    /// A MAC address, 6 bytes.
    Mac,
    /// Any bytes. Up to 16 can be compared; longer ones are only stored.
    Bytes,
}

/// A kind with its size in bits, as schemas write it: `u16`, `i32`, `f64`, `size32`, `time`, `ipv4`, `bytes12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sized {
    pub kind: Kind,
    pub bits: u32,
}

/// The kinds as they are written, for help.
pub(super) const KINDS: &str = "u1 to u128, i8 to i128, f32, f64, size8 to size64, time, ipv4, ipv6, address, mac, \
                                and bytes with their number, as bytes12";

impl Sized {
    /// Reads a kind, or returns why it is not one.
    pub fn read(text: &str) -> Result<Self, String> {
        let of = |kind, bits| Ok(Self { kind, bits });
        match text {
            "time" => return of(Kind::Time, 64),
            "ipv4" => return of(Kind::Ipv4, 32),
            "ipv6" => return of(Kind::Ipv6, 128),
            "address" => return of(Kind::Address, 128),
            "mac" => return of(Kind::Mac, 48),
            _ => {}
        }
        let digits = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
        let (stem, number) = text.split_at(digits);
        let Ok(count) = number.parse::<u32>() else { return Err("there is no kind of this name".to_owned()) };
        let (kind, bits) = match stem {
            "u" if (1..=128).contains(&count) => (Kind::Unsigned, count),
            "i" if (8..=128).contains(&count) && count % 8 == 0 => (Kind::Signed, count),
            "f" if matches!(count, 32 | 64) => (Kind::Float, count),
            "size" if (8..=64).contains(&count) && count % 8 == 0 => (Kind::Size, count),
            "bytes" if (1..=super::MOST_BYTES as u32).contains(&count) => (Kind::Bytes, count * 8),
            "u" => return Err("an unsigned number has 1 to 128 bits".to_owned()),
            "i" => return Err("a signed number has 1 to 16 whole bytes: 8 to 128 bits".to_owned()),
            "f" => return Err("a floating-point number has 32 or 64 bits".to_owned()),
            "size" => return Err("a size has 1 to 8 whole bytes: 8 to 64 bits".to_owned()),
            "bytes" => return Err(format!("bytes are 1 to {}", super::MOST_BYTES)),
            _ => return Err("there is no kind of this name".to_owned()),
        };
        Ok(Self { kind, bits })
    }
}

/// In the notation of schemas.
impl fmt::Display for Sized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits;
        match self.kind {
            Kind::Unsigned => write!(f, "u{bits}"),
            Kind::Signed => write!(f, "i{bits}"),
            Kind::Float => write!(f, "f{bits}"),
            Kind::Size => write!(f, "size{bits}"),
            Kind::Time => f.write_str("time"),
            Kind::Ipv4 => f.write_str("ipv4"),
            Kind::Ipv6 => f.write_str("ipv6"),
            Kind::Address => f.write_str("address"),
            Kind::Mac => f.write_str("mac"),
            Kind::Bytes => write!(f, "bytes{}", bits / 8),
        }
    }
}

impl Kind {
    /// What a value of this kind is, for messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Unsigned => "a whole number",
            Self::Signed => "a whole number, perhaps below zero",
            Self::Float => "a number",
            Self::Size => "a size",
            Self::Time => "a time",
            Self::Ipv4 => "an IPv4 address",
            Self::Ipv6 => "an IPv6 address",
            Self::Address => "an IPv4 or IPv6 address",
            Self::Mac => "a MAC address",
            Self::Bytes => "bytes",
        }
    }

    /// Whether an offset can be added to its values.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Unsigned | Self::Signed | Self::Float | Self::Size | Self::Time)
    }

    /// Whether its keys are its bits, so that a mask of bits makes sense.
    pub(crate) fn has_bits(self) -> bool {
        !matches!(self, Self::Signed | Self::Float)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_as_they_are_read() {
        for text in "u1 u12 u128 i8 i128 f32 f64 size8 size64 time ipv4 ipv6 address mac bytes1 bytes4096".split(' ') {
            assert_eq!(Sized::read(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn invalid_kinds_are_refused_with_the_reason() {
        for (text, why) in [
            ("u0", "1 to 128 bits"),
            ("u129", "1 to 128 bits"),
            ("i12", "whole bytes"),
            ("f16", "32 or 64"),
            ("size65", "whole bytes"),
            ("bytes4097", "1 to 4096"),
            ("u", "no kind of this name"),
            ("string8", "no kind of this name"),
            ("u99999999999", "no kind of this name"),
            ("", "no kind of this name"),
        ] {
            assert!(Sized::read(text).unwrap_err().contains(why), "{text}");
        }
    }
}
