//! The overhead of a link: bytes that it sends with each packet but that its queue does not hold. For scenarios and
//! captures.

use crate::describe::ValueKind;
use crate::dom::{Node, TomlValue};
use crate::explain::{Written, quoted};
use crate::keys::Field;
use crate::read::{Findings, shortened};
use queuescope_text::Problem;
use queuescope_wire::{ByteCount, grouped};
use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// Bytes that the link sends with each packet but that its queue does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// No overhead. The queue holds whole packets: IP packets in a scenario, frames of a capture.
    None,
    /// The overhead of Ethernet: preamble (8), frame check sequence (4) and gap (12). If the queue holds IP packets,
    /// also the header (14). For a capture, the queue holds frames of at least 60 bytes; a header is added if the
    /// capture has none.
    Ethernet,
    /// This number of bytes, at most [`Overhead::MOST`]. The queue holds whole packets.
    Bytes(u32),
}

/// Preamble, frame check sequence and gap.
const AROUND_FRAME: u32 = 8 + 4 + 12;
/// The header of an Ethernet frame, and the smallest frame without its frame check sequence.
const HEADER: u32 = 14;
const LEAST_FRAME: u32 = 60;
/// The valid forms, for help texts.
const FORMS: &str = "use none, ethernet, or a number of bytes up to 256, such as 38B";

impl Overhead {
    /// The largest overhead in bytes, the same as of the shaper CAKE (`overhead` in tc-cake(8)). Headers and trailers
    /// of a packet, including those of tunnels, are smaller.
    pub const MOST: u32 = 256;

    /// A description of overheads and their forms, for help texts.
    pub const ABOUT: &str = "Bytes that the link sends with each packet but that the queue does not hold: none; ethernet (preamble, frame \
                             check sequence, gap: 24 bytes around a frame of at least 60; if the queue holds IP packets, 38 with the \
                             header); or a number of bytes up to 256, such as 38B. The overhead takes time on the link, and no room \
                             in the queue, whose bytes (limits, quanta, thresholds) do not include it.";

    /// The bytes that the link adds to each frame of a capture, in addition to [`in_queue`](Self::in_queue).
    pub fn on_frame(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Ethernet => AROUND_FRAME,
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The bytes that the link adds to each IP packet of a scenario. Short frames are not padded.
    pub fn on_ip_packet(self) -> u32 {
        match self {
            Self::Ethernet => HEADER + AROUND_FRAME,
            Self::None | Self::Bytes(_) => self.on_frame(),
        }
    }

    /// The bytes that the queue holds of a frame of `size` bytes, of which `link_header` come before the network
    /// header.
    pub fn in_queue(self, size: u32, link_header: u16, has_ethernet_header: bool) -> u32 {
        match self {
            Self::None | Self::Bytes(_) => size,
            Self::Ethernet if has_ethernet_header => size.max(LEAST_FRAME),
            Self::Ethernet => size.saturating_sub(u32::from(link_header)).saturating_add(HEADER).max(LEAST_FRAME),
        }
    }
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Ethernet => f.pad("ethernet"),
            Self::Bytes(bytes) => f.pad(&format!("{bytes} bytes")),
        }
    }
}

/// Accepts `none`, `ethernet`, `38B`, `38`.
impl FromStr for Overhead {
    type Err = OverheadError;

    fn from_str(text: &str) -> Result<Self, OverheadError> {
        let error = |why: String| OverheadError { text: text.to_owned(), why };
        match text.trim() {
            "none" => return Ok(Self::None),
            "ethernet" => return Ok(Self::Ethernet),
            name if !name.contains(|c: char| c.is_ascii_digit()) => {
                return Err(error("the name is unknown".to_owned()));
            }
            _ => {}
        }
        let why = |why: &str| error(why.split("; units are").next().unwrap_or(why).to_owned());
        match text.parse::<ByteCount>().map_err(|error| why(&error.why))? {
            ByteCount(0) => Ok(Self::None),
            ByteCount(bytes) => match u32::try_from(bytes) {
                Ok(bytes) if bytes <= Self::MOST => Ok(Self::Bytes(bytes)),
                _ => Err(error(format!(
                    "it is more than {} bytes, the most that a link adds to a packet",
                    grouped(Self::MOST.into())
                ))),
            },
        }
    }
}

/// A text that is not an overhead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverheadError {
    text: String,
    why: String,
}

impl fmt::Display for OverheadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not an overhead: {}; {FORMS}", self.text, self.why)
    }
}

impl Error for OverheadError {}

impl Field for Overhead {
    fn blank() -> Self {
        Self::None
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        let text = match &node.value {
            TomlValue::Text(text) => text.to_string(),
            TomlValue::Integer(number) => number.to_string(),
            _ => {
                return findings.problem(|| {
                    Problem::new("an overhead is text or a whole number")
                        .at(node.place.clone(), format!("this is {}", node.kind()))
                        .help(FORMS)
                });
            }
        };
        match text.parse() {
            Ok(overhead) => *self = overhead,
            Err(OverheadError { text, why }) => findings.problem(|| {
                Problem::new(format!("'{}' is not an overhead", shortened(&text)))
                    .at(node.place.clone(), why)
                    .help(FORMS)
            }),
        }
    }

    fn write(&self) -> Written {
        Written::Inline(match self {
            Self::Bytes(bytes) => quoted(&format!("{bytes}B")),
            other => quoted(&other.to_string()),
        })
    }

    fn kind() -> ValueKind {
        let text = ValueKind::Text {
            what: "`none`, `ethernet`, size",
            examples: &["none", "ethernet", "38B"],
            pattern: Some(r"^\s*(none|ethernet|[0-9._]+\s*([kK]([iI]?B)?|B|[bB][yY][tT][eE][sS]?)?)\s*$"),
        };
        ValueKind::AnyOf(vec![text, ValueKind::Integer])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn ethernet_overhead_gives_the_size_on_the_wire() {
        // The bytes in the queue, and the bytes on the link.
        let both = |overhead: Overhead, size, link_header, has_ethernet_header| {
            let in_queue = overhead.in_queue(size, link_header, has_ethernet_header);
            (in_queue, in_queue + overhead.on_frame())
        };
        assert_eq!(both(Overhead::Ethernet, 1514, 14, true), (1514, 1538));
        assert_eq!(both(Overhead::Ethernet, 42, 14, true), (60, 84));
        assert_eq!(both(Overhead::Ethernet, 1500, 0, false), (1514, 1538));
        assert_eq!(both(Overhead::Bytes(24), 100, 14, true), (100, 124));
        assert_eq!(both(Overhead::None, 100, 14, true), (100, 100));
        assert_eq!(1500 + Overhead::Ethernet.on_ip_packet(), 1538);
    }

    /// A text alone and the key of a scenario have the same values and the same errors.
    #[test]
    fn text_and_scenario_have_the_same_forms() {
        let in_scenario = |value: &str| {
            let text = format!("[link]\noverhead = {value}\n[[flows]]\n");
            Scenario::parse("test", &text, &[]).map(|scenario| scenario.link.overhead)
        };
        let forms = [
            ("none", Overhead::None),
            ("0", Overhead::None),
            ("0B", Overhead::None),
            ("ethernet", Overhead::Ethernet),
            ("38", Overhead::Bytes(38)),
            ("38B", Overhead::Bytes(38)),
            (" 38 bytes ", Overhead::Bytes(38)),
            ("0.2kB", Overhead::Bytes(200)),
            ("256", Overhead::Bytes(256)),
        ];
        for (text, overhead) in forms {
            assert_eq!(text.parse(), Ok(overhead), "{text}");
            let found = in_scenario(&format!("\"{text}\"")).expect("it is an overhead");
            assert_eq!(found, overhead, "{text}");
            let Written::Inline(written) = overhead.write() else { panic!("it is inline") };
            assert_eq!(in_scenario(&written).expect("it reads back"), overhead, "{text}");
        }
        assert_eq!(in_scenario("38").expect("it is an overhead"), Overhead::Bytes(38));
        for (text, why) in [
            ("257", "more than 256 bytes"),
            ("38KB", "more than 256 bytes"),
            ("99999999999999999999B", "too large"),
            ("-1", "below zero"),
            ("38b", "bit or B"),
            ("3 stones", "unit 'stones' is unknown"),
            ("Ethernet", "the name is unknown"),
            ("", "the name is unknown"),
        ] {
            let error = text.parse::<Overhead>().expect_err(text).to_string();
            assert!(error.contains(why) && error.ends_with(FORMS), "{error}");
            let error = in_scenario(&format!("\"{text}\"")).expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(in_scenario("true").is_err() && in_scenario("-1").is_err() && in_scenario("0.5").is_err());
    }
}
