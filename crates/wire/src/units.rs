//! Units: time in nanoseconds, rates in bits per second, sizes in bytes; parsing and display.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// A point in time or a span, in nanoseconds. Points count from an origin that the source of packets chooses
/// (for captures, the Unix epoch).
///
/// ```
/// use queuescope_wire::Nanos;
///
/// let interval: Nanos = "1.5ms".parse()?;
/// assert_eq!(interval, Nanos(1_500_000));
/// assert_eq!((interval + Nanos(500)).to_string(), "1.50 ms");
/// assert_eq!(Nanos(10).saturating_sub(interval), Nanos::ZERO);
/// assert!("1.5".parse::<Nanos>().is_err(), "the unit is required");
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The largest time (584 years).
    pub const MAX: Self = Self(u64::MAX);

    /// `self - other`, or zero where that would be negative.
    #[inline]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `self + other`, or the largest time.
    #[inline]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// In seconds, for display and plots.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

/// Shown with three or four significant digits in a suitable unit: `0 s`, `640 ns`, `12.8 µs`, `1.25 ms`, `3.50 s`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("0 s"),
            n @ 1..1_000 => f.pad(&format!("{n} ns")),
            n => f.pad(&scaled(n as f64, &[(1e3, "µs"), (1e6, "ms"), (1e9, "s")])),
        }
    }
}

impl Nanos {
    /// Parses a retention time, which may also be in hours and days: `12h`, `7d`.
    ///
    /// # Errors
    /// Returns an error if `text` is not a time.
    pub fn read_long(text: &str) -> Result<Self, UnitError> {
        quantity(text, &TIMES, "a time", "7d, 12h, 30min").map(Self)
    }
}

/// Parses `250ms`, `1.5 s`, `10us`, `100ns`, `2min`.
impl FromStr for Nanos {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        // Zero needs no unit.
        if text.trim() == "0" {
            return Ok(Self::ZERO);
        }
        quantity(text, &TIMES[..SHORT], "a time", "250ms, 1.5s, 10us").map(Self)
    }
}

/// Units of time, in nanoseconds.
const TIMES: [(&str, u64); 11] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("min", 60_000_000_000),
    // In retention times, `m` can only mean minutes.
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
/// The number of units, from the first on, that are short enough for queues.
const SHORT: usize = 8;

/// A rate in bits per second; never zero.
///
/// ```
/// use queuescope_wire::{ByteCount, Nanos, Rate};
///
/// let link: Rate = "10gbps".parse()?;
/// assert_eq!(link.bits_per_second(), 10_000_000_000);
/// assert_eq!(link.time_for(ByteCount(1250)), Nanos(1_000));
/// assert_eq!(link.bytes_in(Nanos(1_000_000)), ByteCount(1_250_000));
/// assert_eq!(link.to_string(), "10.0 Gb/s");
/// assert_eq!(Rate::from_bits_per_second(0), None);
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `bits` per second; none for zero.
    pub fn from_bits_per_second(bits: u64) -> Option<Self> {
        (bits > 0).then_some(Self(bits))
    }

    /// In bits per second.
    pub fn bits_per_second(self) -> u64 {
        self.0
    }

    /// How long `size` takes at this rate, rounded down.
    pub fn time_for(self, size: ByteCount) -> Nanos {
        let nanos = u128::from(size.0) * 8 * 1_000_000_000 / u128::from(self.0);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes the link sends in `time` at this rate.
    pub fn bytes_in(self, time: Nanos) -> ByteCount {
        let bytes = u128::from(time.0) * u128::from(self.0) / 8_000_000_000;
        ByteCount(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

/// Shown with three or four significant digits: `10.0 Gb/s`, `250 kb/s`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = &[(1.0, "b/s"), (1e3, "kb/s"), (1e6, "Mb/s"), (1e9, "Gb/s"), (1e12, "Tb/s")];
        f.pad(&scaled(self.0 as f64, units))
    }
}

/// Parses `10gbps`, `1.5 Mbit/s`, `250kb/s`, `64000bps`, in any case: a lower-case b is a bit in every spelling.
impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const EXAMPLES: &str = "10gbps, 1.5Mbit/s, 64000bps";
        const UNITS: &[(&str, u64)] =
            &[("", 1), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000)];
        let trimmed = text.trim();
        if trimmed.ends_with("B/s") || trimmed.ends_with("Bps") {
            let why = "the unit is in bytes, and a rate is in bits".to_owned();
            return Err(UnitError { what: "a rate", text: text.to_owned(), why, examples: EXAMPLES });
        }
        let lower = trimmed.to_ascii_lowercase();
        let stem = ["bits/s", "bit/s", "b/s", "bps", "bit"].iter().find_map(|suffix| lower.strip_suffix(suffix));
        let Some(stem) = stem else {
            let why = "it has no unit of bits per second".to_owned();
            return Err(UnitError { what: "a rate", text: text.to_owned(), why, examples: EXAMPLES });
        };
        let bits =
            quantity(stem, UNITS, "a rate", EXAMPLES).map_err(|error| UnitError { text: text.to_owned(), ..error })?;
        Self::from_bits_per_second(bits).ok_or_else(|| UnitError {
            what: "a rate",
            text: text.to_owned(),
            why: "a link at zero bits per second sends nothing".to_owned(),
            examples: EXAMPLES,
        })
    }
}

/// A number of bytes.
///
/// ```
/// use queuescope_wire::ByteCount;
///
/// let buffer: ByteCount = "64KiB".parse()?;
/// assert_eq!(buffer, ByteCount(65_536));
/// assert_eq!((buffer - ByteCount(1_536)).to_string(), "64.0 kB");
/// let error = "64kb".parse::<ByteCount>().unwrap_err();
/// println!("{error}"); // kb could mean bits
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteCount(pub u64);

impl Add for ByteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for ByteCount {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for ByteCount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl SubAssign for ByteCount {
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

/// Shown with three or four significant digits in decimal units: `64 B`, `1.50 kB`, `12.5 MB`.
impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n @ 0..1_000 => f.pad(&format!("{n} B")),
            n => f.pad(&scaled(n as f64, &[(1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")])),
        }
    }
}

/// Parses `65536`, `64KiB`, `1.5MB`, `10k`, `100 bytes`; a number without unit is bytes. The case does not matter,
/// except that of the B: a lower-case b is a bit in rates, so `64kb` could mean an eighth of `64kB`, and is an error.
impl FromStr for ByteCount {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const EXAMPLES: &str = "64KiB, 1.5MB, 65536";
        const UNITS: &[(&str, u64)] = &[
            ("", 1),
            ("B", 1),
            ("byte", 1),
            ("bytes", 1),
            ("k", 1_000),
            ("M", 1_000_000),
            ("G", 1_000_000_000),
            ("T", 1_000_000_000_000),
            ("kB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
        ];
        let trimmed = text.trim();
        let start = trimmed.find(|c: char| c.is_alphabetic()).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(start);
        let known = |unit: &str| UNITS.iter().map(|(name, _)| *name).find(|name| name.eq_ignore_ascii_case(unit));
        let Some(known) = known(unit) else { return quantity(trimmed, UNITS, "a size", EXAMPLES).map(Self) };
        if known.ends_with('B') && unit.ends_with('b') {
            let stem = known.trim_end_matches('B');
            let why = format!("'{unit}' may be {stem}bit or {known}, which is eight times as much");
            return Err(UnitError { what: "a size", text: text.to_owned(), why, examples: EXAMPLES });
        }
        let read = quantity(&format!("{number}{known}"), UNITS, "a size", EXAMPLES);
        read.map(Self).map_err(|error| UnitError { text: text.to_owned(), ..error })
    }
}

/// A quantity that could not be parsed.
///
/// ```
/// use queuescope_wire::Rate;
///
/// let error = "10 parsecs".parse::<Rate>().unwrap_err();
/// println!("{error}");
/// assert_eq!((error.what, error.text.as_str()), ("a rate", "10 parsecs"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not {what}: {why} (for example {examples})")]
pub struct UnitError {
    /// The expected quantity.
    pub what: &'static str,
    /// The text as written.
    pub text: String,
    /// Why it is not such a quantity.
    pub why: String,
    /// Examples of such quantities.
    pub examples: &'static str,
}

/// Converts a decimal number with a unit to a whole number of the smallest unit. Fails if that is not exact.
fn quantity(text: &str, units: &[(&str, u64)], what: &'static str, examples: &'static str) -> Result<u64, UnitError> {
    let error = |why: String| UnitError { what, text: text.to_owned(), why, examples };
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return Err(error("it is below zero".to_owned()));
    }
    let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].replace('_', ""), trimmed[split..].trim());
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let known: Vec<_> =
            units.iter().map(|(name, _)| *name).filter(|name| name.is_ascii() && !name.is_empty()).collect();
        let why = if unit.is_empty() { "it has no unit".to_owned() } else { format!("the unit '{unit}' is unknown") };
        return Err(error(format!("{why}; units are {}", known.join(", "))));
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(error("it has no number".to_owned()));
    }
    let too_large = || error("it is too large".to_owned());
    let digits = |digits: &str| -> Result<u128, UnitError> {
        if digits.len() > 30 {
            return Err(too_large());
        }
        if digits.is_empty() { Ok(0) } else { digits.parse().map_err(|_| error("the number is malformed".to_owned())) }
    };
    // 10^18 * 2^30 fits in 128 bits, so neither product below can overflow.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(error("it has more digits than can be kept exactly".to_owned()));
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let (whole, fraction) = (digits(whole)?, digits(fraction)?);
    let scaled = whole.checked_mul(scale).and_then(|whole| whole.checked_add(fraction));
    let total = scaled.and_then(|scaled| scaled.checked_mul(u128::from(factor))).ok_or_else(too_large)?;
    if total % scale != 0 {
        return Err(error("it is finer than the smallest unit".to_owned()));
    }
    u64::try_from(total / scale).map_err(|_| too_large())
}

/// A value with three or four significant digits in the largest unit it reaches.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let index = units.iter().rposition(|(factor, _)| value >= *factor * 0.9995).unwrap_or(0);
    let (factor, name) = units[index];
    let value = value / factor;
    let decimals = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_exactly() {
        assert_eq!("10gbps".parse(), Ok(Rate(10_000_000_000)));
        assert_eq!("1.5 Mbit/s".parse(), Ok(Rate(1_500_000)));
        assert_eq!("0.000001gbps".parse(), Ok(Rate(1_000)));
        assert_eq!("250ms".parse(), Ok(Nanos(250_000_000)));
        assert_eq!("1.6us".parse(), Ok(Nanos(1_600)));
        assert_eq!(Nanos::read_long("1.5d"), Ok(Nanos(129_600_000_000_000)));
        assert_eq!(Nanos::read_long("90min"), Nanos::read_long("1.5h"));
        assert_eq!("64KiB".parse(), Ok(ByteCount(65_536)));
        assert_eq!("1_000".parse(), Ok(ByteCount(1_000)));
    }

    #[test]
    fn a_text_that_is_not_a_quantity_says_why() {
        let why = |text: &str| text.parse::<Rate>().unwrap_err().why;
        assert!(why("10").contains("no unit"));
        assert!(why("10 GB/s").contains("bytes"));
        assert!(why("0bps").contains("zero"));
        assert!(why("10xbps").contains("'x' is unknown"));
        assert!(why("gbps").contains("no number"));
        assert!(why("1.2.3gbps").contains("malformed"));
        assert!(why("99999999999999999999tbps").contains("too large"));
        assert!("-1ms".parse::<Nanos>().unwrap_err().why.contains("below zero"));
        assert!(why("-5mbps").contains("below zero"));
        assert_eq!("0".parse(), Ok(Nanos::ZERO));
        assert_eq!("100 bytes".parse(), Ok(ByteCount(100)));
        assert!("0.5ns".parse::<Nanos>().unwrap_err().why.contains("finer"));
        assert!("1h".parse::<Nanos>().is_err() && Nanos::read_long("7").is_err());
        assert!("5".parse::<Nanos>().unwrap_err().why.contains("no unit"));
        assert!("".parse::<ByteCount>().is_err());
    }

    #[test]
    fn a_size_whose_b_may_be_a_bit_is_refused() {
        for (text, bytes) in [
            ("64kB", 64_000),
            ("64KB", 64_000),
            ("64 kB", 64_000),
            ("64KiB", 65_536),
            ("64kiB", 65_536),
            ("1.5MB", 1_500_000),
            ("2GiB", 2 << 30),
            ("1.5TB", 1_500_000_000_000),
            ("10k", 10_000),
            ("10K", 10_000),
            ("3m", 3_000_000),
            ("100B", 100),
            ("100 Bytes", 100),
            (" 7 ", 7),
        ] {
            assert_eq!(text.parse(), Ok(ByteCount(bytes)), "{text}");
        }
        for (text, readings) in [
            ("64kb", "'kb' may be kbit or kB,"),
            ("64 kb", "'kb' may be kbit or kB,"),
            ("64Kb", "'Kb' may be kbit or kB,"),
            ("1.5mb", "'mb' may be Mbit or MB,"),
            ("1Gb", "'Gb' may be Gbit or GB,"),
            ("64kib", "'kib' may be Kibit or KiB,"),
            ("64Mib", "'Mib' may be Mibit or MiB,"),
            ("100b", "'b' may be bit or B,"),
        ] {
            let error = text.parse::<ByteCount>().unwrap_err();
            assert_eq!((error.text.as_str(), error.why.split_inclusive(',').next()), (text, Some(readings)), "{text}");
        }
        assert!("64xb".parse::<ByteCount>().unwrap_err().why.contains("'xb' is unknown"));
        assert!("64kbit".parse::<ByteCount>().unwrap_err().why.contains("'kbit' is unknown"));
        assert!("é".parse::<ByteCount>().is_err() && "b".parse::<ByteCount>().is_err());
    }

    #[test]
    fn quantities_are_shown_in_the_unit_that_suits() {
        let times = [0, 640, 12_800, 1_250_000, 999_999, 3_500_000_000, 250_000_000_000];
        let shown: Vec<_> = times.map(|n| Nanos(n).to_string()).into();
        assert_eq!(shown, ["0 s", "640 ns", "12.8 µs", "1.25 ms", "1.00 ms", "3.50 s", "250 s"]);
        assert_eq!(Rate(10_000_000_000).to_string(), "10.0 Gb/s");
        assert_eq!(ByteCount(1_500).to_string(), "1.50 kB");
    }

    #[test]
    fn time_and_bytes_at_a_rate() {
        let rate = Rate(10_000_000_000);
        assert_eq!(rate.time_for(ByteCount(1_500)), Nanos(1_200));
        assert_eq!(rate.bytes_in(Nanos(1_200)), ByteCount(1_500));
        assert_eq!(rate.time_for(ByteCount(u64::MAX)), Nanos(14_757_395_258_967_641_292));
    }
}
