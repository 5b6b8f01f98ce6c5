//! INT headers in captured packets, and the flow that a packet has without them.

use super::{IntHeader, IntHeaders, MalformedInt, Next, Truncated};
use crate::Family;
use crate::parse::bytes::{be16, chunk};
use crate::parse::{Frame, LinkType, Parser, Place, Tunnel};

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes of a UDP header, and of a TCP header without options.
const UDP_HEADER: usize = 8;
const TCP_HEADER: usize = 20;
/// Bytes of the probe marker.
const PROBE: usize = 8;

/// How packets with INT headers are marked (INT section 5.7.2): by one of these, which the network's operator chooses.
///
/// ```
/// use queuescope_wire::telemetry::{DscpMark, Marks};
///
/// // INT has no assigned port: each network has its own.
/// let by_port = Marks { udp_port: Some(5000), ..Marks::default() };
/// let by_dscp = Marks { dscp: Some(DscpMark { value: 0x17, mask: 0x3f }), ..Marks::default() };
/// assert_ne!(by_port, by_dscp);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// The UDP destination port of packets with INT headers.
    pub udp_port: Option<u16>,
    /// The DSCP of packets with INT headers.
    pub dscp: Option<DscpMark>,
    /// The 64 bits behind TCP or UDP, before the shim.
    pub probe: Option<u64>,
    /// Whether INT headers come before the options of TCP instead of behind them.
    pub before_tcp_options: bool,
}

/// A DSCP, or bits of it, that marks packets with INT headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DscpMark {
    /// The bits that are set in such packets.
    pub value: u8,
    /// The bits that count: 0x3f for a whole DSCP.
    pub mask: u8,
}

/// Parses packets that may have INT headers behind TCP or UDP.
///
/// The packet is parsed as it was before they were inserted: with its own UDP port (NPT 1), its own transport header
/// (NPT 2) and its own length. Its DSCP stays as captured, since queues see that. Checksums are not verified. Only the
/// outermost packet is searched for INT headers, and only its first ones are read.
///
/// ```
/// use queuescope_wire::Granularity;
/// use queuescope_wire::parse::{LinkType, Tunnel};
/// use queuescope_wire::telemetry::{IntHeader, IntParser, Marks};
///
/// // UDP to port 5000, which marks INT. The original port is 4000.
/// let packet = [
///     0x45, 0, 0, 54, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
///     0, 53, 0x13, 0x88, 0, 34, 0, 0, // UDP
///     0x14, 5, 0x0f, 0xa0, 0x20, 0, 2, 7, 0x90, 0, 0, 0, 0, 0, 0, 0, // INT-MD: node and queue
///     0, 0, 0, 8, 1, 0, 0, 40, // node 8, queue 1
///     0xca, 0xfe, // payload
/// ];
/// let mut parser = IntParser::new(Marks { udp_port: Some(5000), ..Marks::default() }, Tunnel::Outer);
/// let parsed = parser.parse(LinkType::RawIp, Some(54), &packet);
/// assert_eq!(Granularity::FiveTuple.name(&parsed.frame.key), "10.0.0.1:53 > 10.0.0.2:4000 udp");
/// // 30 bytes of its own, and 24 of INT.
/// assert_eq!((parsed.frame.size, parsed.added), (30, 24));
/// let Some(IntHeader::Md(md)) = parsed.int?.map(|headers| headers.header) else { return Ok(()) };
/// assert_eq!(md.hops().next().and_then(|hop| hop.queue_occupancy), Some(40));
/// # Ok::<(), queuescope_wire::telemetry::MalformedInt>(())
/// ```
#[derive(Debug)]
pub struct IntParser {
    marks: Marks,
    parser: Parser,
    stats: IntStats,
    /// The current packet without INT.
    original: Vec<u8>,
}

/// A packet, with the INT headers that were found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntPacket<'a> {
    /// The packet without INT headers. If they are malformed, the packet as it is.
    pub frame: Frame,
    /// The INT headers, if the packet is marked.
    pub int: Result<Option<IntHeaders<'a>>, MalformedInt>,
    /// Bytes that INT added to the packet, as the headers state them.
    pub added: u32,
}

/// Counts of packets by their INT headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IntStats {
    /// Packets parsed.
    pub packets: u64,
    /// Packets with headers of INT-MD.
    pub md: u64,
    /// Packets with headers of INT-MX.
    pub mx: u64,
    /// Packets with INT headers that are not read: destination, or reserved types.
    pub unread: u64,
    /// Packets of which less than their INT headers was captured: hops, and perhaps the ports, are missing.
    pub cut: u64,
    /// Packets that are marked, and whose INT headers are malformed.
    pub malformed: u64,
}

impl IntParser {
    /// A parser for packets that are marked in this way. `tunnel` selects the flow of tunnelled packets.
    pub fn new(marks: Marks, tunnel: Tunnel) -> Self {
        Self { marks, parser: Parser::new(tunnel), stats: IntStats::default(), original: Vec::new() }
    }

    /// The parser of packets, for its counters.
    pub fn parser(&self) -> &Parser {
        &self.parser
    }

    /// The counters so far.
    pub fn stats(&self) -> &IntStats {
        &self.stats
    }

    /// The bytes of the last packet in which INT headers were found, without these. Checksums are not corrected.
    pub fn without_int(&self) -> &[u8] {
        &self.original
    }

    /// Parses the start of a packet from a report. Its size is that in its headers.
    pub fn parse_truncated<'a>(&mut self, packet: &Truncated<'a>) -> IntPacket<'a> {
        self.parse(packet.link, None, packet.bytes)
    }

    /// Parses a frame of `original_len` bytes on the wire, of which `data` was captured. Without `original_len`, the
    /// length is that in its headers.
    pub fn parse<'a>(&mut self, link: LinkType, original_len: Option<u32>, data: &'a [u8]) -> IntPacket<'a> {
        self.stats.packets += 1;
        let place = Place::find(link, original_len, data);
        let end = place.and_then(|place| place.end).unwrap_or(data.len());
        let length = original_len.unwrap_or_else(|| u32::try_from(end).unwrap_or(u32::MAX));
        let found = place.map_or(Ok(None), |place| self.marks.find(&place, data));
        match found {
            Ok(Some(found)) => {
                self.count(&found.headers);
                found.without(data, &mut self.original);
                let added = u32::try_from(found.inserted.len()).unwrap_or(u32::MAX);
                let frame = self.parser.parse(link, length.saturating_sub(added), &self.original);
                IntPacket { frame, int: Ok(Some(found.headers)), added }
            }
            Ok(None) => IntPacket { frame: self.parser.parse(link, length, data), int: Ok(None), added: 0 },
            Err(why) => {
                self.stats.malformed += 1;
                IntPacket { frame: self.parser.parse(link, length, data), int: Err(why), added: 0 }
            }
        }
    }

    fn count(&mut self, headers: &IntHeaders) {
        match headers.header {
            IntHeader::Md(_) => self.stats.md += 1,
            IntHeader::Mx(_) => self.stats.mx += 1,
            IntHeader::Destination(_) | IntHeader::Unread { .. } => self.stats.unread += 1,
        }
        self.stats.cut += u64::from(headers.missing > 0);
    }
}

/// INT headers that were found in a packet.
struct Found<'a> {
    place: Place,
    headers: IntHeaders<'a>,
    /// The bytes that INT inserted into the packet.
    inserted: std::ops::Range<usize>,
}

impl Marks {
    /// Finds the INT headers of a packet; none if it is not marked.
    fn find<'a>(&self, place: &Place, data: &'a [u8]) -> Result<Option<Found<'a>>, MalformedInt> {
        // Behind the packet's end there is only padding.
        let packet = place.end.and_then(|end| data.get(..end)).unwrap_or(data);
        let Place { protocol, transport, .. } = *place;
        let payload = match protocol {
            UDP => transport + UDP_HEADER,
            TCP if self.before_tcp_options => transport + TCP_HEADER,
            TCP => {
                let words = packet.get(transport + 12).map_or(0, |byte| usize::from(byte >> 4));
                transport + (words * 4).max(TCP_HEADER)
            }
            _ => return Ok(None),
        };
        let by_port = protocol == UDP && self.udp_port.is_some() && be16(packet, transport + 2) == self.udp_port;
        let by_dscp = self.dscp.is_some_and(|mark| place.dscp & mark.mask == mark.value & mark.mask);
        let probe = self.probe.map(u64::to_be_bytes);
        let by_probe = probe.is_some() && chunk::<PROBE>(packet, payload).copied() == probe;
        let shim = match (by_port || by_dscp, by_probe) {
            (true, _) => payload,
            (false, true) => payload + PROBE,
            (false, false) => return Ok(None),
        };
        let headers = IntHeaders::read(packet.get(shim..).unwrap_or_default())?;
        let end = shim + headers.length();
        if let Some(packet_end) = place.end.filter(|&packet_end| end > packet_end) {
            return Err(MalformedInt::TooLong { end, packet: packet_end });
        }
        let inserted = match headers.next {
            // The UDP header was inserted, too.
            Next::Transport { .. } if protocol == UDP => transport..end,
            _ => payload..end,
        };
        Ok(Some(Found { place: *place, headers, inserted }))
    }
}

impl Found<'_> {
    /// Writes the packet without INT headers to `original`, as a sink would forward it, except for checksums.
    fn without(&self, data: &[u8], original: &mut Vec<u8>) {
        let Self { place, headers, inserted } = self;
        original.clear();
        original.extend_from_slice(data.get(..inserted.start).unwrap_or(data));
        original.extend_from_slice(data.get(inserted.end..).unwrap_or_default());
        if place.end.is_some() {
            let length_at = place.network + if place.family == Family::V4 { 2 } else { 4 };
            if let Some(length) = be16(original, length_at) {
                let added = u16::try_from(inserted.len()).unwrap_or(u16::MAX);
                put(original, length_at, &length.saturating_sub(added).to_be_bytes());
            }
        }
        match headers.next {
            Next::UdpPayload { port } if place.protocol == UDP => {
                put(original, place.transport + 2, &port.to_be_bytes());
            }
            Next::Transport { protocol } if place.protocol == UDP => put(original, place.protocol_at, &[protocol]),
            _ => {}
        }
    }
}

/// Replaces the bytes at `at`, if there are any.
fn put(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(old) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..new.len())) {
        old.copy_from_slice(new);
    }
}
