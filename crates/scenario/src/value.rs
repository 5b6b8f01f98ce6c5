//! Values: numbers with units, plain numbers, names. How each is read, written and described.

use crate::describe::Kind;
use crate::dom::{Node, Raw};
use crate::explain::{Written, quoted};
use crate::keys::{Bounded, Field};
use crate::link::mbps;
use crate::read::{Findings, shortened};
use queuescope_queue::Limit;
use queuescope_text::Problem;
use queuescope_text::{did_you_mean, nearest};
use queuescope_wire::{ByteCount, Granularity, Nanos, Rate};

/// How a kind of quantity is written.
pub(crate) struct Quantity {
    /// With its article.
    what: &'static str,
    /// Its units, of which a wrong one may be near.
    units: &'static [&'static str],
    examples: &'static [&'static str],
    pattern: Option<&'static str>,
}

impl Quantity {
    /// Reads text by its own reader, or tells of it.
    pub fn read<T>(
        &self,
        node: &Node,
        findings: &mut Findings,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let Raw::Text(text) = &node.value else {
            findings.problem(|| self.not_text(node));
            return None;
        };
        // A number alone would be read as bytes by some and as packets by others.
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
            // A saturated one is not what was written.
            Raw::Integer(number) if !self.units.is_empty() && *number != i128::MAX => {
                let unit = self.units.iter().find(|unit| self.examples[0].ends_with(*unit)).unwrap_or(&self.units[0]);
                ("a number without unit".to_owned(), format!("write it as text with its unit, as \"{number}{unit}\"; "))
            }
            Raw::Integer(_) | Raw::Float(_) if !self.units.is_empty() => {
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
        // Of bytes a second nothing is near: bits a second are eight times as many.
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

    pub fn kind(&self) -> Kind {
        let what = self.what.split_once(' ').map_or(self.what, |(_, what)| what);
        Kind::Text { what, examples: self.examples, pattern: self.pattern }
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

/// The same where the rest of the scenario is not known.
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

/// The largest unit in which a whole number says it.
fn in_units(value: u64, units: &[(&str, u64)]) -> String {
    let (unit, factor) =
        units.iter().rev().find(|(_, factor)| value.is_multiple_of(*factor) && value >= *factor).unwrap_or(&units[0]);
    format!("\"{}{unit}\"", value / factor)
}

/// Quantities with units: read by their own `FromStr`, written so that they read back exactly.
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
            fn kind() -> Kind {
                $quantity.kind()
            }
        }
        )*
    };
}

/// Why it could not be read, of an error that says what was written too, and gives examples.
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

/// How much a queue may hold, perhaps in units of what the path holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Buffer {
    /// As it says.
    Fixed(Limit),
    /// So many times the product of the link's rate and the longest round-trip time of the flows without queueing.
    Bdp(f64),
}

impl std::str::FromStr for Buffer {
    type Err = BufferError;

    fn from_str(text: &str) -> Result<Self, BufferError> {
        let trimmed = text.trim();
        let lower = trimmed.to_ascii_lowercase();
        let Some(number) = lower.strip_suffix("bdp") else {
            // A queue without a limit is one that says so; one of zero is none at all.
            return trimmed.parse().map(Self::Fixed).map_err(|error| BufferError(reason(trimmed, &error)));
        };
        match number.trim().parse::<f64>() {
            Ok(times) if times > 0.0 && times <= 1e6 => Ok(Self::Bdp(times)),
            Ok(_) => Err(BufferError("it is from above 0 to 1000000 times the product".to_owned())),
            Err(_) => Err(BufferError("it has no number".to_owned())),
        }
    }
}

/// Why a text is no [`Buffer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferError(String);

impl std::fmt::Display for BufferError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BufferError {}

/// So many a second; above zero.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Frequency(pub f64);

impl Bounded for Frequency {}

impl std::str::FromStr for Frequency {
    type Err = BufferError;

    fn from_str(text: &str) -> Result<Self, BufferError> {
        let (number, unit) =
            text.split_once('/').ok_or_else(|| BufferError("it does not say per what time".to_owned()))?;
        let number: f64 = number.trim().parse().map_err(|_| BufferError("it has no number".to_owned()))?;
        let number = match unit.trim() {
            "s" => number,
            "min" => number / 60.0,
            _ => return Err(BufferError("the time is not s or min".to_owned())),
        };
        if number.is_finite() && number > 0.0 {
            Ok(Self(number))
        } else {
            Err(BufferError("it is not above zero".to_owned()))
        }
    }
}

/// Names without parameters.
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
            fn kind() -> $crate::describe::Kind {
                $crate::describe::Kind::Text {
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
    let Raw::Text(text) = &node.value else {
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
