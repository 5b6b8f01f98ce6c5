//! In-band Network Telemetry (INT): what switches measure of a packet at each hop.
//!
//! A switch reports its identifier, interfaces, queue and the times of a packet in one of two ways. Either it sends a
//! report with its own measurements to a collector (INT-XD, INT-MX), or it adds them to the packet, and the last switch
//! reports the stack of all hops (INT-MD). Both are read here, as P4.org's Applications Working Group specifies them:
//!
//! - *Telemetry Report Format Specification*, version 2.0 (2020-10-08), called **TRF** in this documentation;
//! - *In-band Network Telemetry (INT) Dataplane Specification*, version 2.1 (2020-11-11), called **INT**.
//!
//! The parts:
//!
//! - [`Reports`]: the payload of a UDP datagram from a switch, as an iterator over [`TelemetryReport`]s.
//! - [`IntHeaders`]: the headers behind TCP or UDP, with the stack of an [`IntMd`] as an iterator over [`Hop`]s.
//! - [`IntParser`]: finds these headers in a packet, and returns the flow that the packet has without them.
//!
//! Nothing is copied: reports and hops borrow the bytes that they were read from. Fields have the specification's units,
//! which are often the switch's own; see [`Hop`].
//!
//! Not read: earlier versions (their headers differ), IOAM reports (TRF has no format for them yet), and INT in GRE,
//! VXLAN-GPE or Geneve headers (INT sections 5.7.1, 5.7.3, 5.7.4). [`IntMd::read`] reads the headers of these
//! from the byte behind their shim on.
//!
//! ```
//! use queuescope_wire::parse::Tunnel;
//! use queuescope_wire::telemetry::{Hop, IntParser, Main, Marks, Reports};
//! use queuescope_wire::Granularity;
//!
//! // Switch 7 reports a packet, with its interfaces and queue, and the packet's first headers.
//! let payload = [
//!     0x20, 0x00, 0x00, 0x2a, 0, 0, 0, 7, // version 2, sequence number 42, node 7
//!     0x14, 11, 2, 0x60, // INT with an IPv4 packet, 11 words, of which 2 are metadata; congested, tracked
//!     0x50, 0x00, 0, 0, 0, 0, 0, 0, // metadata: interfaces; queue
//!     0, 3, 0, 5, 2, 0, 0x10, 0x00, // interfaces 3 and 5; queue 2 with an occupancy of 4096
//!     0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0x0f, 0xa0, 0, 8, 0, 0,
//! ];
//! let mut packets = IntParser::new(Marks::default(), Tunnel::Outer);
//! for report in Reports::read(&payload)? {
//!     let report = report?;
//!     let Main::Int(own) = report.main else { continue };
//!     assert_eq!((own.hop.node, own.hop.egress_interface), (Some(7), Some(5)));
//!     assert_eq!((own.hop.queue, own.hop.queue_occupancy), (Some(2), Some(4096)));
//!     assert!(report.flags.congested && !report.flags.dropped);
//!     let packet = report.packet()?.ok_or("no packet")?;
//!     let flow = packets.parse_truncated(&packet).frame.key;
//!     assert_eq!(Granularity::FiveTuple.name(&flow), "10.0.0.1:53 > 10.0.0.2:4000 udp");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod hop;
mod instructions;
mod int;
mod packet;
mod report;
mod reports;
mod tlv;

pub use error::{MalformedInt, MalformedReport};
pub use hop::{DropReason, Hop};
pub use instructions::Instructions;
pub use int::{Hops, IntHeader, IntHeaders, IntMd, IntMx, Next};
pub use packet::{DscpMark, IntPacket, IntParser, IntStats, Marks};
pub use report::{Exported, Flags, Inner, Main, TelemetryReport, Truncated};
pub use reports::{GroupHeader, Reports};
pub use tlv::{Tlv, TlvContents, Tlvs};

/// Bytes of a word, in which lengths are counted.
const WORD: usize = 4;
