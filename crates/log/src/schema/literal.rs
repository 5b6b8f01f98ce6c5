//! Values as text: text to keys, and keys to text.

use super::{Attribute, Kind, Reader, begins_as_date, low_bits, parse_date};
use queuescope_text::quoted;
use queuescope_wire::{ByteCount, Nanos, UnitError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Attribute {
    /// The key of a value that is given as text: one of the attribute's named values, or the notation of its kind.
    ///
    /// # Errors
    /// Returns why the text is not a value of the attribute.
    pub fn key_of(&self, text: &str) -> Result<u128, String> {
        match self.values.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
            Some((_, key)) => Ok(*key),
            None => self.literal(text),
        }
    }

    fn literal(&self, text: &str) -> Result<u128, String> {
        let why = |what: &str| format!("'{}' is not {what}", quoted(text));
        match self.kind {
            Kind::Unsigned => self.in_range(integer(text).ok_or_else(|| why(self.kind.describe()))?, text),
            Kind::Signed => self.signed(text),
            Kind::Float => self.float(text),
            Kind::Size => match integer(text) {
                Some(bytes) => self.in_range(bytes, text),
                None => {
                    let size: ByteCount = text.parse().map_err(|error| format!("{error}"))?;
                    self.in_range(u128::from(size.0), text)
                }
            },
            Kind::Time => match integer(text) {
                Some(nanos) => self.in_range(nanos, text),
                None if begins_as_date(text) => match parse_date(text) {
                    Ok(time) => self.in_range(u128::from(time.0), text),
                    Err(error) => Err(error.to_string()),
                },
                None => text.parse::<Nanos>().map(|time| u128::from(time.0)).map_err(|error| format!("{error}")),
            },
            Kind::Ipv4 => match text.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => Ok(u128::from(address.to_bits())),
                _ => Err(why("an IPv4 address, as 10.1.3.7")),
            },
            Kind::Ipv6 => match text.parse::<IpAddr>() {
                Ok(IpAddr::V6(address)) => Ok(address.to_bits()),
                _ => Err(why("an IPv6 address, as 2001:db8::1")),
            },
            Kind::Address => match text.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => Ok(address.to_ipv6_mapped().to_bits()),
                Ok(IpAddr::V6(address)) => Ok(address.to_bits()),
                Err(_) => Err(why("an address, as 10.1.3.7 or 2001:db8::1")),
            },
            Kind::Mac => mac(text).ok_or_else(|| why("a MAC address, as 02:00:5e:10:00:01")),
            Kind::Bytes => self.bytes(text).ok_or_else(|| {
                why(&format!("{} bytes, written in hexadecimal as 0x with two digits for each", self.place.bits / 8))
            }),
        }
    }

    fn in_range(&self, number: u128, text: &str) -> Result<u128, String> {
        if number <= self.highest_key() {
            return Ok(number);
        }
        Err(format!("'{}' is more than `{}` can be: at most {}", quoted(text), self.name, self.highest_key()))
    }

    fn signed(&self, text: &str) -> Result<u128, String> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let Some(number) = integer(digits) else {
            return Err(format!("'{}' is not {}", quoted(text), self.kind.describe()));
        };
        let zero = (self.highest_key() >> 1) + 1;
        let key = if negative { zero.checked_sub(number) } else { zero.checked_add(number) };
        key.filter(|key| *key <= self.highest_key()).ok_or_else(|| {
            let bits = self.place.bits;
            format!("'{}' is not within `{}`, which has {bits} bits with the sign", quoted(text), self.name)
        })
    }

    fn float(&self, text: &str) -> Result<u128, String> {
        let reader = Reader::new(self.kind, self.place, 0);
        let bits = match self.place.bits {
            32 => text.parse::<f32>().ok().filter(|n| !n.is_nan()).map(|n| u128::from(n.to_bits())),
            _ => text.parse::<f64>().ok().filter(|n| !n.is_nan()).map(|n| u128::from(n.to_bits())),
        };
        bits.map(|bits| reader.key_of_bits(bits)).ok_or_else(|| format!("'{}' is not a number", quoted(text)))
    }

    /// Bytes in hexadecimal, all of them.
    fn bytes(&self, text: &str) -> Option<u128> {
        let digits = text.strip_prefix("0x")?;
        let all = digits.len() == self.place.bits as usize / 4 && digits.bytes().all(|c| c.is_ascii_hexdigit());
        if all { u128::from_str_radix(digits, 16).ok() } else { None }
    }

    /// The text of the value with this key; [`Attribute::key_of`] returns the key again, except for NaN.
    pub fn text_of(&self, key: u128) -> String {
        match self.values.iter().find(|(_, value)| *value == key) {
            Some((name, _)) => name.clone(),
            None => self.literal_of(key),
        }
    }

    /// The value with this key in the notation of its kind.
    pub(crate) fn literal_of(&self, key: u128) -> String {
        match self.kind {
            Kind::Unsigned => key.to_string(),
            Kind::Signed => {
                let zero = (self.highest_key() >> 1) + 1;
                if key < zero { format!("-{}", zero - key) } else { (key - zero).to_string() }
            }
            Kind::Float => {
                let bits = Reader::new(self.kind, self.place, 0).bits_of_key(key);
                if self.place.bits == 32 {
                    format!("{:?}", f32::from_bits(bits as u32))
                } else {
                    format!("{:?}", f64::from_bits(bits as u64))
                }
            }
            Kind::Size => format!("{key}B"),
            Kind::Time => {
                let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
                let unit = units.iter().find(|(factor, _)| key > 0 && key.is_multiple_of(*factor));
                unit.map_or_else(|| format!("{key}ns"), |(factor, unit)| format!("{}{unit}", key / factor))
            }
            Kind::Ipv4 => Ipv4Addr::from_bits(key as u32).to_string(),
            Kind::Ipv6 => Ipv6Addr::from_bits(key).to_string(),
            Kind::Address => {
                let address = Ipv6Addr::from_bits(key);
                address.to_ipv4_mapped().map_or_else(|| address.to_string(), |address| address.to_string())
            }
            Kind::Mac => {
                let bytes = (key as u64).to_be_bytes();
                bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
            }
            Kind::Bytes => format!("0x{key:0digits$x}", digits = self.place.bits as usize / 4),
        }
    }

    /// An offset given as text, for a sum: an amount of the attribute's kind.
    pub(crate) fn amount_of(&self, text: &str) -> Result<i128, String> {
        let unit = |amount: Result<u64, UnitError>| amount.map(i128::from).map_err(|error| error.to_string());
        match (self.kind, integer(text)) {
            (Kind::Time | Kind::Size, Some(amount)) if u64::try_from(amount).is_err() => {
                Err(format!("'{}' is too large", quoted(text)))
            }
            (_, Some(amount)) => i128::try_from(amount).map_err(|_| format!("'{}' is too large", quoted(text))),
            (Kind::Time, None) => unit(text.parse::<Nanos>().map(|time| time.0)),
            (Kind::Size, None) => unit(text.parse::<ByteCount>().map(|size| size.0)),
            _ => Err(format!("'{}' is not a whole number", quoted(text))),
        }
    }
}

/// A whole number: decimal, hexadecimal after `0x`, binary after `0b`; underscores between digits are ignored.
pub(crate) fn integer(text: &str) -> Option<u128> {
    let (digits, radix) = match text.get(..2) {
        Some("0x" | "0X") => (&text[2..], 16),
        Some("0b" | "0B") => (&text[2..], 2),
        _ => (text, 10),
    };
    // `from_str_radix` would accept a sign.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    u128::from_str_radix(&digits, radix).ok()
}

/// Six bytes in hexadecimal with colons.
fn mac(text: &str) -> Option<u128> {
    let mut key = 0;
    let mut count = 0;
    for part in text.split(':') {
        let valid = (1..=2).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_hexdigit());
        key = key << 8 | u128::from(u8::from_str_radix(part, 16).ok().filter(|_| valid)?);
        count += 1;
        if count > 6 {
            return None;
        }
    }
    (count == 6).then_some(key)
}

impl Attribute {
    /// The mask and value of an address in which some parts are `*`: `192.*.*.1`, `02:00:*:*:*:*`.
    pub(crate) fn wildcard(&self, text: &str) -> Result<(u128, u128), String> {
        let expected = |parts, separator, example: &str| {
            let count = text.split(separator).count();
            if count == parts {
                return Ok(());
            }
            Err(format!("'{}' has {count} parts and not {parts}, as {example} has", quoted(text)))
        };
        let v4 = |text: &str| -> Result<(u128, u128), String> {
            expected(4, '.', "192.*.*.1")?;
            parts(text, '.', 8, 10)
        };
        match self.kind {
            Kind::Ipv4 => v4(text),
            Kind::Address if !text.contains(':') => {
                let (mask, value) = v4(text)?;
                Ok((!low_bits(32) | mask, Ipv4Addr::from_bits(value as u32).to_ipv6_mapped().to_bits()))
            }
            Kind::Ipv6 | Kind::Address => {
                expected(8, ':', "2001:db8:*:*:*:*:*:1")?;
                parts(text, ':', 16, 16)
            }
            Kind::Mac => {
                expected(6, ':', "02:00:*:*:*:*")?;
                parts(text, ':', 8, 16)
            }
            _ => Err(format!("`{}` is {}, and only addresses have parts", self.name, self.kind.describe())),
        }
    }

    /// The inverse of [`Attribute::wildcard`], if the mask consists of whole parts.
    pub(crate) fn text_of_wildcard(&self, mask: u128, value: u128) -> Option<String> {
        let mapped = |word: u128| Ipv6Addr::from_bits(word).to_ipv4_mapped().is_some();
        match self.kind {
            Kind::Ipv4 => text_of_parts(mask, value, 4, 8, '.', |part| part.to_string()),
            Kind::Address if mask | low_bits(32) == u128::MAX && mapped(value) => {
                text_of_parts(mask & low_bits(32), value & low_bits(32), 4, 8, '.', |part| part.to_string())
            }
            Kind::Ipv6 | Kind::Address => text_of_parts(mask, value, 8, 16, ':', |part| format!("{part:x}")),
            Kind::Mac => text_of_parts(mask, value, 6, 8, ':', |part| format!("{part:02x}")),
            _ => None,
        }
    }
}

fn parts(text: &str, separator: char, bits: u32, radix: u32) -> Result<(u128, u128), String> {
    let mut found = (0, 0);
    for part in text.split(separator) {
        let digits = !part.is_empty() && part.bytes().all(|c| c.is_ascii_hexdigit());
        let (mask, value) = match u128::from_str_radix(part, radix) {
            _ if part == "*" => (0, 0),
            Ok(value) if digits && value <= low_bits(bits) => (low_bits(bits), value),
            _ => return Err(format!("'{}' in '{}' is not a part of an address", quoted(part), quoted(text))),
        };
        found = (found.0 << bits | mask, found.1 << bits | value);
    }
    Ok(found)
}

fn text_of_parts(
    mask: u128,
    value: u128,
    count: u32,
    bits: u32,
    separator: char,
    show: impl Fn(u128) -> String,
) -> Option<String> {
    let mut text = String::new();
    let mut any = false;
    for index in (0..count).rev() {
        let (mask, value) = (mask >> (index * bits) & low_bits(bits), value >> (index * bits) & low_bits(bits));
        match mask {
            0 if value == 0 => {
                text.push('*');
                any = true;
            }
            mask if mask == low_bits(bits) => text.push_str(&show(value)),
            _ => return None,
        }
        if index > 0 {
            text.push(separator);
        }
    }
    // Without a star it would be read as an address.
    any.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::super::{Order, Place};
    use super::*;
    use proptest::prelude::*;

    fn of(kind: Kind, bits: u32) -> Attribute {
        let place = Place { offset: 0, bit: 0, bits, order: Order::Big };
        let (name, values) = ("x".to_owned(), vec![("TCP".to_owned(), 6)]);
        Attribute { name, aliases: vec![], kind, place, view: false, values, doc: String::new() }
    }

    #[test]
    fn values_are_written_as_people_write_them() {
        for (kind, bits, text, key) in [
            (Kind::Unsigned, 16, "80", 80),
            (Kind::Unsigned, 16, "0xffff", 0xffff),
            (Kind::Unsigned, 16, "0b101", 5),
            (Kind::Unsigned, 32, "1_000_000", 1_000_000),
            (Kind::Unsigned, 8, "tcp", 6),
            (Kind::Signed, 8, "-128", 0),
            (Kind::Signed, 8, "127", 255),
            (Kind::Float, 64, "1.5", u128::from(1.5f64.to_bits() | 1 << 63)),
            (Kind::Float, 64, "-0", 1 << 63),
            (Kind::Size, 32, "100B", 100),
            (Kind::Size, 32, "1.5kB", 1500),
            (Kind::Time, 64, "1.5ms", 1_500_000),
            (Kind::Time, 64, "17", 17),
            (Kind::Ipv4, 32, "10.1.3.2", 0x0a01_0302),
            (Kind::Ipv6, 128, "::1", 1),
            (Kind::Address, 128, "10.1.3.2", 0xffff_0a01_0302),
            (Kind::Mac, 48, "02:0:5e:10:00:01", 0x0200_5e10_0001),
            (Kind::Bytes, 24, "0x00ff10", 0x00_ff10),
        ] {
            assert_eq!(of(kind, bits).key_of(text), Ok(key), "{text}");
        }
    }

    #[test]
    fn invalid_values_are_refused_with_the_reason() {
        for (kind, bits, text, why) in [
            (Kind::Unsigned, 16, "65536", "at most 65535"),
            (Kind::Unsigned, 16, "-1", "not a whole number"),
            (Kind::Unsigned, 16, "0x", "not a whole number"),
            (Kind::Unsigned, 16, "+1", "not a whole number"),
            (Kind::Unsigned, 16, "", "not a whole number"),
            (Kind::Signed, 8, "128", "not within `x`"),
            (Kind::Signed, 128, "-340282366920938463463374607431768211455", "not within `x`"),
            (Kind::Float, 32, "nan", "not a number"),
            (Kind::Size, 8, "1kB", "at most 255"),
            (Kind::Size, 32, "1kb", "eight times"),
            (Kind::Time, 64, "1 fortnight", "unit"),
            (Kind::Ipv4, 32, "::1", "IPv4"),
            (Kind::Ipv6, 128, "1.2.3.4", "IPv6"),
            (Kind::Mac, 48, "02:00:5e:10:00", "MAC"),
            (Kind::Mac, 48, "02:00:5e:10:00:+1", "MAC"),
            (Kind::Bytes, 24, "0xff", "3 bytes"),
        ] {
            let error = of(kind, bits).key_of(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn wildcards_are_masks_of_whole_parts() {
        assert_eq!(of(Kind::Ipv4, 32).wildcard("192.*.*.1"), Ok((0xff00_00ff, 0xc000_0001)));
        assert_eq!(of(Kind::Mac, 48).wildcard("02:*:*:*:*:f"), Ok((0xff00_0000_00ff, 0x0200_0000_000f)));
        let mapped = of(Kind::Address, 128).wildcard("192.*.*.1").unwrap();
        assert_eq!(mapped, (!low_bits(32) | 0xff00_00ff, 0xffff_c000_0001));
        for wrong in ["192.*.1", "192.*.*.256", "192.1*.*.1", "192.*.*.", "192.*.*.+1"] {
            assert!(of(Kind::Ipv4, 32).wildcard(wrong).is_err(), "{wrong}");
        }
        assert!(of(Kind::Unsigned, 32).wildcard("1.*.*.1").is_err());
    }

    fn kinds() -> impl Strategy<Value = Attribute> {
        use Kind::*;
        let whole = [(Ipv4, 32), (Ipv6, 128), (Address, 128), (Mac, 48), (Time, 64), (Size, 40), (Bytes, 72)];
        let numbers =
            [(Unsigned, 1), (Unsigned, 12), (Unsigned, 128), (Signed, 8), (Signed, 128), (Float, 32), (Float, 64)];
        prop::sample::select([&whole[..], &numbers[..]].concat()).prop_map(|(kind, bits)| of(kind, bits))
    }

    proptest! {
        #[test]
        fn keys_are_read_as_they_are_written(attribute in kinds(), key in any::<u128>(), shift in 0..128u32) {
            let key = key >> shift & attribute.highest_key();
            let text = attribute.text_of(key);
            if !text.contains("NaN") {
                let again = attribute.key_of(&text);
                // Minus zero has a bit pattern but no key.
                prop_assert!(again == Ok(key) || text == "-0.0", "{text}: {again:?}");
            }
        }

        #[test]
        fn wildcards_are_read_as_they_are_written(attribute in kinds(), mask in any::<u8>(), value in any::<u128>()) {
            let part = if matches!(attribute.kind, Kind::Ipv6 | Kind::Address) { 16 } else { 8 };
            let mask = (0..8u32).filter(|at| mask >> at & 1 == 1).fold(0, |found, at| found | low_bits(part) << (at * part));
            let mask = mask & attribute.highest_key();
            if let Some(text) = attribute.text_of_wildcard(mask, value & mask) {
                prop_assert_eq!(attribute.wildcard(&text), Ok((mask, value & mask)), "{}", text);
            }
        }

        #[test]
        fn any_text_is_a_value_or_not(attribute in kinds(), text in "\\PC{0,12}") {
            let _ = (attribute.key_of(&text), attribute.wildcard(&text), attribute.amount_of(&text));
        }
    }
}
