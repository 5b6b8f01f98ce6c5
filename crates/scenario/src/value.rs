//! Values: numbers with units, plain numbers, names. Reads, writes and describes them.

use crate::describe::ValueKind;
use crate::dom::{Node, TomlValue};
use crate::explain::{Written, quoted};
use crate::keys::{Bounded, Field};
use crate::link::mbps;
use crate::read::{Findings, shortened};
use queuescope_queue::Limit;
use queuescope_text::Problem;
use queuescope_text::{did_you_mean, nearest};
use queuescope_wire::{ByteCount, Granularity, Nanos, Rate};

/// The notation of a kind of quantity.
pub(crate) struct Quantity {
    /// Its name in messages, with an article.
    what: &'static str,
    /// Its units, from which suggestions are made.
    units: &'static [&'static str],
    examples: &'static [&'static str],
    pattern: Option<&'static str>,
}

impl Quantity {
    /// Reads text with `parse`, or reports a problem.
    pub fn read<T>(
        &self,
        node: &Node,
        findings: &mut Findings,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let TomlValue::Text(text) = &node.value else {
            findings.problem(|| self.not_text(node));
            return None;
        };
        // A number without a unit is ambiguous: bytes or packets.
        let bare = !self.units.is_empty() && text.trim() != "0" && text.trim().ends_with(|c: char| c.is_ascii_digit());
        let result = if bare { Err("it has no unit".to_owned()) } else { parse(text) };
        match result {
            Ok(value) => Some(value),
            Err(why) => {
                findings.problem(|| {
                    Problem::new(format!("'{}' is not {}", shortened(text), self.what))
                        .at(node.place.clone(), why.clone())
                        .help(self.help(text))
                });
                None
            }
        }
    }

    fn not_text(&self, node: &Node) -> Problem {
        let (label, help) = match &node.value {
            // A saturated number is not the number in the file.
            TomlValue::Integer(number) if !self.units.is_empty() && *number != i128::MAX => {
                let unit = self.units.iter().find(|unit| self.examples[0].ends_with(*unit)).unwrap_or(&self.units[0]);
                ("a number without unit".to_owned(), format!("write it as text with its unit, as \"{number}{unit}\"; "))
            }
            TomlValue::Integer(_) | TomlValue::Float(_) if !self.units.is_empty() => {
                ("a number without unit".to_owned(), String::new())
            }
            _ => (format!("this is {}", node.kind()), String::new()),
        };
        Problem::new(format!("{} is written as text", self.what))
            .at(node.place.clone(), label)
            .help(format!("{help}{}", self.help("")))
    }

    fn help(&self, text: &str) -> String {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '_')).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let near = nearest(unit.trim(), self.units.iter().copied()).filter(|near| *near != unit.trim());
        // No suggestion for bytes per second, because bits per second are eight times as many.
        let of_bytes = unit.ends_with("B/s") || unit.ends_with("Bps");
        let near = near.filter(|_| !number.is_empty() && number.len() < 20 && !of_bytes);
        let near = near.map(|near| format!("did you mean \"{number}{near}\"? ")).unwrap_or_default();
        let units = match self.units {
            [] => String::new(),
            units => format!("units are {}; ", units.join(", ")),
        };
        let examples: Vec<_> = self.examples.iter().map(|example| format!("\"{example}\"")).collect();
        format!("{near}{units}for example {}", examples.join(", "))
    }

    pub fn kind(&self) -> ValueKind {
        let what = self.what.split_once(' ').map_or(self.what, |(_, what)| what);
        ValueKind::Text { what, examples: self.examples, pattern: self.pattern }
    }
}

const TIME: Quantity = Quantity {
    what: "a time",
    units: &["ns", "us", "ms", "s", "min"],
    examples: &["15ms", "1.5s", "10us"],
    pattern: Some(r"^\s*(0|[0-9._]+\s*(ns|us|µs|μs|ms|s|sec|min))\s*$"),
};

const RATE: Quantity = Quantity {
    what: "a rate",
    units: &["bps", "kbps", "mbps", "gbps", "tbps"],
    examples: &["10mbps", "2.5gbps", "64kbps"],
    pattern: Some(r"^\s*[0-9._]+\s*[kKmMgGtT]?([bB][iI][tT][sS]?|b|B[pP])(/[sS]|[pP]?[sS])?\s*$"),
};

const SIZE: Quantity = Quantity {
    what: "a size",
    units: &["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"],
    examples: &["64KiB", "1500B", "1.5MB"],
    pattern: Some(r"^\s*(0|[0-9._]+\s*([kKmMgG]|([kKmMgG][iI]?)?B|[bB][yY][tT][eE][sS]?))\s*$"),
};

const BUFFER: Quantity = Quantity {
    what: "a limit",
    units: &["packets", "bytes", "B", "kB", "MB", "KiB", "MiB", "us", "ms", "s", "bdp"],
    examples: &["100packets", "64KiB", "250ms", "1bdp", "none"],
    pattern: Some(r"^\s*(none|[0-9._]+\s*[A-Za-zµμ]+)\s*$"),
};

/// A limit where `bdp` is not possible, because the rest of the scenario is not known.
const LIMIT: Quantity = Quantity {
    what: "a limit",
    units: &["packets", "bytes", "B", "kB", "MB", "KiB", "MiB", "us", "ms", "s"],
    examples: &["100packets", "64KiB", "250ms", "none"],
    pattern: BUFFER.pattern,
};

const PER_SECOND: Quantity = Quantity {
    what: "a frequency",
    units: &["/s", "/min"],
    examples: &["2000/s", "0.5/s", "30/min"],
    pattern: Some(r"^\s*[0-9._]+\s*/\s*(s|min)\s*$"),
};

const GRANULARITY: Quantity = Quantity {
    what: "a granularity",
    units: &[],
    examples: &["5tuple", "conn", "src-dst", "src", "dst/24"],
    pattern: None,
};

/// Writes a value in the largest unit in which it is a whole number.
fn in_units(value: u64, units: &[(&str, u64)]) -> String {
    let (unit, factor) =
        units.iter().rev().find(|(_, factor)| value.is_multiple_of(*factor) && value >= *factor).unwrap_or(&units[0]);
    format!("\"{}{unit}\"", value / factor)
}

/// Implements [`Field`] for quantities with units, which are read by `FromStr` and written so that they read back
/// exactly.
macro_rules! quantities {
    ($($type:ty, $quantity:expr, $blank:expr, $write:expr;)*) => {
        $(impl Field for $type {
            fn blank() -> Self {
                $blank
            }
            fn read(&mut self, node: &Node, findings: &mut Findings) {
                let read = $quantity.read(node, findings, |text| text.parse().map_err(|error| reason(text, &error)));
                if let Some(value) = read {
                    *self = value;
                }
            }
            fn write(&self) -> Written {
                let write: fn(&Self) -> String = $write;
                Written::Inline(write(self))
            }
            fn kind() -> ValueKind {
                $quantity.kind()
            }
        }
        )*
    };
}

/// The reason in an error's message, without the quoted text and the examples around it.
fn reason(text: &str, error: &impl std::error::Error) -> String {
    let whole = error.to_string();
    let why =
        whole.strip_prefix(&format!("'{text}' is not ")).and_then(|rest| rest.split_once(": ")).map(|(_, why)| why);
    let why = why.unwrap_or(&whole);
    why.split(" (for example").next().unwrap_or(why).split("; units are").next().unwrap_or(why).to_owned()
}

quantities! {
    Nanos, TIME, Nanos::ZERO, |time| match time.0 {
        0 => "\"0s\"".to_owned(),
        time => in_units(time, &[("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)]),
    };
    Rate, RATE, mbps(10), |rate| in_units(
        rate.bits_per_second(),
        &[("bps", 1), ("kbps", 1_000), ("mbps", 1_000_000), ("gbps", 1_000_000_000), ("tbps", 1_000_000_000_000)],
    );
    ByteCount, SIZE, ByteCount(0), |size| in_units(
        size.0,
        &[("B", 1), ("kB", 1_000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20)],
    );
    Granularity, GRANULARITY, Granularity::FiveTuple, |granularity| quoted(&granularity.to_string());
    Buffer, BUFFER, Buffer::Fixed(Limit::None), |buffer| match buffer {
        Buffer::Bdp(times) => format!("\"{times}bdp\""),
        Buffer::Fixed(Limit::None) => "\"none\"".to_owned(),
        Buffer::Fixed(Limit::Packets(packets)) => format!("\"{packets}packets\""),
        Buffer::Fixed(Limit::Bytes(bytes)) => bytes.write().inline(),
        Buffer::Fixed(Limit::Time(time)) => time.write().inline(),
    };
    Limit, LIMIT, Limit::None, |limit| Buffer::Fixed(*limit).write().inline();
    Frequency, PER_SECOND, Frequency(1.0), |frequency| format!("\"{}/s\"", frequency.0);
}

impl Bounded for Nanos {}
impl Bounded for Rate {}
impl Bounded for ByteCount {}

/// The limit of a queue: absolute, or in units of the bandwidth-delay product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Buffer {
    /// This limit.
    Fixed(Limit),
    /// A multiple of the product of the link's rate and the longest round-trip time of the flows without queueing.
    Bdp(f64),
}

impl std::str::FromStr for Buffer {
    type Err = BufferError;

    fn from_str(text: &str) -> Result<Self, BufferError> {
        let trimmed = text.trim();
        let lower = trimmed.to_ascii_lowercase();
        let Some(number) = lower.strip_suffix("bdp") else {
            // Anything else is an absolute limit; no limit is written `none`.
            return trimmed.parse().map(Self::Fixed).map_err(|error| BufferError(reason(trimmed, &error)));
        };
        match number.trim().parse::<f64>() {
            Ok(times) if times > 0.0 && times <= 1e6 => Ok(Self::Bdp(times)),
            Ok(_) => Err(BufferError("it must be above 0 and at most 1000000 times the product".to_owned())),
            Err(_) => Err(BufferError("it has no number".to_owned())),
        }
    }
}

/// The reason why a text is not a [`Buffer`] or a [`Frequency`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferError(String);

impl std::fmt::Display for BufferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BufferError {}

/// A number of events per second; above zero.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Frequency(pub f64);

impl Bounded for Frequency {}

impl std::str::FromStr for Frequency {
    type Err = BufferError;

    fn from_str(text: &str) -> Result<Self, BufferError> {
        let (number, unit) = text.split_once('/').ok_or_else(|| BufferError("it has no unit of time".to_owned()))?;
        let number: f64 = number.trim().parse().map_err(|_| BufferError("it has no number".to_owned()))?;
        let number = match unit.trim() {
            "s" => number,
            "min" => number / 60.0,
            _ => return Err(BufferError("the unit of time must be s or min".to_owned())),
        };
        if number.is_finite() && number > 0.0 {
            Ok(Self(number))
        } else {
            Err(BufferError("it must be above zero".to_owned()))
        }
    }
}

/// Implements [`Field`] for enums whose values are names without parameters.
macro_rules! names {
    ($($type:ty, $what:literal: $($name:literal = $value:expr),+;)*) => {
        $(impl $crate::keys::Field for $type {
            fn blank() -> Self {
                [$($value),+][0]
            }
            fn read(&mut self, node: &$crate::dom::Node, findings: &mut $crate::read::Findings) {
                if let Some(value) = $crate::value::one_named(node, findings, $what, &[$(($name, $value)),+]) {
                    *self = value;
                }
            }
            fn write(&self) -> $crate::explain::Written {
                let name = [$(($name, $value)),+].iter().find(|(_, value)| value == self).map_or("", |(name, _)| name);
                $crate::explain::Written::Inline($crate::explain::quoted(name))
            }
            fn kind() -> $crate::describe::ValueKind {
                $crate::describe::ValueKind::Text {
                    what: concat!("one of ", $("`", $name, "` "),+),
                    examples: &[$($name),+],
                    pattern: Some(concat!("^(", $("|", $name),+, ")$")),
                }
            }
        })*
    };
}
pub(crate) use names;

pub(crate) fn one_named<T: Copy>(node: &Node, findings: &mut Findings, what: &str, names: &[(&str, T)]) -> Option<T> {
    let known = names.iter().map(|(name, _)| *name);
    let help = || format!("there are {}", known.clone().collect::<Vec<_>>().join(", "));
    let TomlValue::Text(text) = &node.value else {
        findings.problem(|| {
            Problem::new(format!("{what} is a name"))
                .at(node.place.clone(), format!("this is {}", node.kind()))
                .help(help())
        });
        return None;
    };
    let found = names.iter().find(|(name, _)| name == text).map(|(_, value)| *value);
    if found.is_none() {
        findings.problem(|| {
            let near = did_you_mean(text, known.clone()).map(|near| format!("{near} ")).unwrap_or_default();
            Problem::new(format!("'{}' is not {what}", shortened(text)))
                .at(node.place.clone(), "unknown name")
                .help(format!("{near}{}", help()))
        });
    }
    found
}
