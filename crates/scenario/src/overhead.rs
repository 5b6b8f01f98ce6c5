//! What a link sends with each packet beyond what its queue holds: one type for scenarios and captures.

use crate::describe::Kind;
use crate::dom::{Node, Raw};
use crate::explain::{Written, quoted};
use crate::keys::Field;
use crate::read::{Findings, shortened};
use queuescope_text::Problem;
use queuescope_wire::{ByteCount, grouped};
use std::error::Error;
use std::fmt;
use std::str::FromStr;

/// What the link sends with each packet beyond what the queue holds of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overhead {
    /// Nothing. The queue holds packets as they are: IP packets of a scenario, frames of a capture.
    None,
    /// That of Ethernet: preamble (8), frame check sequence (4) and gap (12), and the header (14) where the queue holds IP packets. Of
    /// a capture it holds frames, with a header where the capture has none, and of at least 60 bytes.
    Ethernet,
    /// So many bytes, at most [`Overhead::MOST`]. The queue holds packets as they are.
    Bytes(u32),
}

/// Preamble, frame check sequence and gap.
const AROUND_FRAME: u32 = 8 + 4 + 12;
/// The header of an Ethernet frame, and the least that a frame has without its frame check sequence.
const HEADER: u32 = 14;
const LEAST_FRAME: u32 = 60;
/// How it is written.
const FORMS: &str = "use none, ethernet, or a number of bytes up to 256, such as 38B";

impl Overhead {
    /// The most bytes there can be, as for the shaper CAKE (`overhead` in tc-cake(8)): headers and trailers of a packet, those of tunnels
    /// among them, are less.
    pub const MOST: u32 = 256;

    /// What it is and how it is written, for whoever is to choose one.
    pub const ABOUT: &str = "What the link sends with each packet beyond what the queue holds of it: none; ethernet (preamble, frame check \
                             sequence, gap: 24 bytes around a frame of at least 60; where the queue holds IP packets, 38 with the \
                             header); or a number of bytes up to 256, such as 38B. It takes time on the link, and no room in the \
                             queue, whose bytes (limits, quanta, thresholds) are without it.";

    /// The bytes that the link adds to each frame of a capture, as [`in_queue`](Self::in_queue) has it.
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

    /// What the queue holds of a frame of `size` bytes, of which `link_header` stand before the network header.
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

/// Written `none`, `ethernet`, `38B`, `38`.
impl FromStr for Overhead {
    type Err = OverheadError;

    fn from_str(text: &str) -> Result<Self, OverheadError> {
        let error = |why: String| OverheadError { text: text.to_owned(), why };
        match text.trim() {
            "none" => return Ok(Self::None),
            "ethernet" => return Ok(Self::Ethernet),
            name if !name.contains(|c: char| c.is_ascii_digit()) => {
                return Err(error("there is no such name".to_owned()));
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

/// What is no overhead.
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
            Raw::Text(text) => text.to_string(),
            Raw::Integer(number) => number.to_string(),
            _ => {
                return findings.problem(|| {
                    Problem::new("an overhead is a text or a whole number")
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

    fn kind() -> Kind {
        let text = Kind::Text {
            what: "`none`, `ethernet`, size",
            examples: &["none", "ethernet", "38B"],
            pattern: Some(r"^\s*(none|ethernet|[0-9._]+\s*([kK]([iI]?B)?|B|[bB][yY][tT][eE][sS]?)?)\s*$"),
        };
        Kind::AnyOf(vec![text, Kind::Integer])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    #[test]
    fn that_of_ethernet_is_that_of_the_wire() {
        // What the queue holds, and what the link sends.
        let both = |overhead: Overhead, size, link_header, has_ethernet_header| {
            let held = overhead.in_queue(size, link_header, has_ethernet_header);
            (held, held + overhead.on_frame())
        };
        assert_eq!(both(Overhead::Ethernet, 1514, 14, true), (1514, 1538));
        assert_eq!(both(Overhead::Ethernet, 42, 14, true), (60, 84));
        assert_eq!(both(Overhead::Ethernet, 1500, 0, false), (1514, 1538));
        assert_eq!(both(Overhead::Bytes(24), 100, 14, true), (100, 124));
        assert_eq!(both(Overhead::None, 100, 14, true), (100, 100));
        assert_eq!(1500 + Overhead::Ethernet.on_ip_packet(), 1538);
    }

    /// As a text by itself, and as a scenario has it: the same values, and the same reasons.
    #[test]
    fn a_scenario_has_the_same_forms() {
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
            let found = in_scenario(&format!("\"{text}\"")).expect("it is one");
            assert_eq!(found, overhead, "{text}");
            let Written::Inline(written) = overhead.write() else { panic!("it is inline") };
            assert_eq!(in_scenario(&written).expect("it reads back"), overhead, "{text}");
        }
        assert_eq!(in_scenario("38").expect("it is one"), Overhead::Bytes(38));
        for (text, why) in [
            ("257", "more than 256 bytes"),
            ("38KB", "more than 256 bytes"),
            ("99999999999999999999B", "too large"),
            ("-1", "below zero"),
            ("38b", "bit or B"),
            ("3 stones", "unit 'stones' is unknown"),
            ("Ethernet", "no such name"),
            ("", "no such name"),
        ] {
            let error = text.parse::<Overhead>().expect_err(text).to_string();
            assert!(error.contains(why) && error.ends_with(FORMS), "{error}");
            let error = in_scenario(&format!("\"{text}\"")).expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
        assert!(in_scenario("true").is_err() && in_scenario("-1").is_err() && in_scenario("0.5").is_err());
    }
}
