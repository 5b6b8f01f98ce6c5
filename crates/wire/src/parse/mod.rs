//! Captured frames to flow keys: link, network and transport headers.
//!
//! Every frame occupied the queue, whatever it carries, so [`Parser::parse`] never fails: a frame that it cannot fully
//! read gets the best possible key, and [`ParseStats`] counts it. Lengths come from the headers and the record, never
//! from the number of captured bytes.
//!
//! - `link`: Ethernet with VLAN tags, MPLS and PPPoE; raw IP; Linux cooked v1 and v2; BSD loopback.
//! - `network`: IPv4 with options, IPv6 with extension headers, fragments (`fragments` stores their flows).
//! - `transport`: the ports of TCP, UDP, UDP-Lite, SCTP and DCCP.
//! - `tunnel`: GRE, VXLAN and IP in IP, to the inner flow on request.
//! - `plain`: a fast path for the most common frames.
//! - `offload`: super-packets of segmentation offload, and the packets they become.
//! - `invariant`: the parts of a packet that a router does not change.
//! - `place`: where the transport header is, for telemetry inserted behind it.

pub(crate) mod bytes;
mod fragments;
mod invariant;
mod link;
mod network;
mod offload;
mod place;
mod plain;
mod stats;
mod transport;
mod tunnel;

pub use invariant::{Fingerprint, InvariantParams, Nat, NoFingerprint, Reach, Strength};
pub use link::{LLC, VLAN_TAGS};
pub use offload::Segments;
pub(crate) use place::Place;
pub use stats::ParseStats;

use crate::{Ecn, FlowKey};
use fragments::Fragments;
use link::{Link, Payload};
use network::{Chain, Fragment, Network, Trouble};
use transport::{TCP, Transport, UDP};

/// The most nested tunnels that the parser follows.
const MOST_TUNNELS: usize = 4;

/// Parses frames one after another. Later fragments get the flow of their first fragment.
///
/// ```
/// use queuescope_wire::Granularity;
/// use queuescope_wire::parse::{LinkType, Parser, Tunnel};
///
/// // An IPv4 header of a UDP datagram from 10.0.0.1:53 to 10.0.0.2:4000, without a link header.
/// let packet = [
///     0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
///     0, 53, 0x0f, 0xa0, 0, 8, 0, 0, // UDP
/// ];
/// let mut parser = Parser::new(Tunnel::Outer);
/// let frame = parser.parse(LinkType::RawIp, 28, &packet);
/// assert_eq!(Granularity::FiveTuple.name(&frame.key), "10.0.0.1:53 > 10.0.0.2:4000 udp");
/// assert_eq!((frame.size, frame.headers), (28, 28));
///
/// parser.parse(LinkType::RawIp, 28, &packet[..8]);
/// assert_eq!((parser.stats().frames, parser.stats().cut_before_network_header), (2, 1));
/// ```
#[derive(Debug)]
pub struct Parser {
    tunnel: Tunnel,
    fragments: Fragments,
    stats: ParseStats,
}

/// The link-layer header type of a frame, as the capture states it.
///
/// ```
/// use queuescope_wire::parse::LinkType;
///
/// assert_eq!(LinkType::from_dlt(1), LinkType::Ethernet);
/// assert_eq!(LinkType::from_dlt(113), LinkType::LinuxSll);
/// assert_eq!(LinkType::from_dlt(4711), LinkType::Other(4711));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// Ethernet II or IEEE 802.3.
    Ethernet,
    /// IPv4 or IPv6, no link header.
    RawIp,
    /// Linux cooked capture, version 1.
    LinuxSll,
    /// Linux cooked capture, version 2.
    LinuxSll2,
    /// BSD loopback, address family in the byte order of the host.
    Null,
    /// OpenBSD loopback, address family in network byte order.
    Loop,
    /// Any other type, by its number in capture files.
    Other(u32),
}

/// Which flow a tunnelled packet belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Tunnel {
    /// The flow of the tunnel: the outermost IP header is the key.
    #[default]
    Outer,
    /// The flow of the innermost readable packet. VLAN, DSCP and ECN are still those of the outermost header, since
    /// queues see those.
    Inner,
}

/// What the parser found in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The flow of the frame, with all known fields.
    pub key: FlowKey,
    /// The ECN field of the outermost IP header.
    pub ecn: Ecn,
    /// Bytes on the wire at layer 2, without preamble and frame check sequence: the record's original length, or the
    /// length that the headers state if that is larger.
    pub size: u32,
    /// Bytes from the network header to the end of its payload, as the header states it, without padding. The rest of
    /// the frame if the header states no length, or if there is no network header.
    pub network_length: u32,
    /// Bytes before the network header.
    pub link_header: u16,
    /// Bytes before the payload of the innermost transport header that was parsed (through tunnels too).
    pub headers: u16,
    /// Whether segmentation offload could have produced it: TCP or UDP over IP, and not a fragment.
    pub splittable: bool,
}

impl Frame {
    /// What was captured of the payload of the innermost transport header, without padding. `data` is what was captured of
    /// this frame.
    ///
    /// ```
    /// use queuescope_wire::parse::{LinkType, Parser, Tunnel};
    ///
    /// let packet = [
    ///     0x45, 0, 0, 31, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    ///     0, 53, 0x0f, 0xa0, 0, 11, 0, 0, 1, 2, 3, // UDP and its payload
    ///     0, 0, 0, // padding
    /// ];
    /// let frame = Parser::new(Tunnel::Outer).parse(LinkType::RawIp, 34, &packet);
    /// assert_eq!(frame.payload(&packet), [1, 2, 3]);
    /// ```
    pub fn payload<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        let end = usize::from(self.link_header).saturating_add(self.network_length as usize);
        let packet = data.get(..end).unwrap_or(data);
        packet.get(usize::from(self.headers)..).unwrap_or_default()
    }
}

impl LinkType {
    /// From the number in a capture file (<https://www.tcpdump.org/linktypes.html>). The numbers of raw IP differ by
    /// system.
    pub fn from_dlt(number: u32) -> Self {
        match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            108 => Self::Loop,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            other => Self::Other(other),
        }
    }
}

impl Parser {
    /// A parser with empty counters.
    pub fn new(tunnel: Tunnel) -> Self {
        Self { tunnel, fragments: Fragments::new(), stats: ParseStats::default() }
    }

    /// The counters so far.
    pub fn stats(&self) -> &ParseStats {
        &self.stats
    }

    /// Parses a frame of `original_len` bytes on the wire, of which `data` was captured.
    #[inline(always)]
    pub fn parse(&mut self, link: LinkType, original_len: u32, data: &[u8]) -> Frame {
        self.stats.frames += 1;
        match plain::read(link, original_len, data) {
            Some(frame) => frame,
            None => self.parse_any(link, original_len, data),
        }
    }

    /// Parses any frame, header by header.
    #[inline(never)]
    fn parse_any(&mut self, link: LinkType, original_len: u32, data: &[u8]) -> Frame {
        let link = Link::read(link, data);
        if !matches!(link.payload, Payload::Ip | Payload::PerhapsIp) {
            return self.without_network(&link, original_len, None);
        }
        if let Some(frame) = plain::packet(original_len, data, link.at, link.vlan) {
            return frame;
        }
        self.parse_packet(&link, original_len, data)
    }

    /// Parses any frame from its network header on, header by header.
    fn parse_packet(&mut self, link: &Link, original_len: u32, data: &[u8]) -> Frame {
        let network = match Network::read(data, link.at) {
            Ok(network) => network,
            Err(trouble) => return self.without_network(link, original_len, Some(trouble)),
        };
        let claimed = network.claimed.map_or(0, |length| length.saturating_add(link.at as u32));
        if claimed > original_len {
            if link.payload == Payload::PerhapsIp {
                return self.without_network(&Link { payload: Payload::Other, ..*link }, original_len, None);
            }
            self.stats.length_corrected += 1;
        }
        let size = original_len.max(claimed);
        let network_length = network.claimed.unwrap_or_else(|| size.saturating_sub(link.at as u32));
        self.stats.length_from_record += u64::from(network.claimed.is_none() && network.chain != Chain::Bad);
        let payload = network.payload(data, link.at);
        let (key, transport) = self.flow(&network, payload, size.min(network_length.saturating_add(link.at as u32)));
        let mut frame = Frame {
            key: FlowKey { vlan: link.vlan, ..key },
            ecn: network.ecn,
            size,
            network_length,
            link_header: short(link.at),
            headers: short(transport.end),
            splittable: is_splittable(&network),
        };
        if tunnel::is_tunnel(network.protocol, &transport) {
            self.follow_tunnel(&mut frame, network, transport, payload);
        }
        if let Fragment::First(datagram) = network.fragment
            && !transport.missing
        {
            self.fragments.remember(&network, datagram, frame.key);
        }
        frame
    }

    /// The flow of a network packet without regard to fragments, and its transport header. `end` is where the packet
    /// ends on the wire.
    #[inline]
    fn flow(&mut self, network: &Network, payload: &[u8], end: u32) -> (FlowKey, Transport) {
        let transport = Transport::new(network, payload);
        let key = FlowKey {
            src: network.src,
            dst: network.dst,
            src_port: transport.src_port,
            dst_port: transport.dst_port,
            protocol: network.protocol,
            dscp: network.dscp,
            family: network.family,
            ..FlowKey::default()
        };
        let plain = network.chain == Chain::Whole && network.fragment == Fragment::Whole && !transport.missing;
        (
            if plain { key } else { self.irregular(network, transport.missing, payload.len() >= end as usize, key) },
            transport,
        )
    }

    /// Counts what is irregular about a network packet, and finds the flow of a later fragment. `captured` states
    /// whether all of it was captured.
    #[cold]
    fn irregular(&mut self, network: &Network, missing: bool, captured: bool, key: FlowKey) -> FlowKey {
        self.stats.first_fragments += u64::from(matches!(network.fragment, Fragment::First(_)));
        match (network.chain, network.fragment) {
            (Chain::Bad, _) => self.stats.bad_ip_header += 1,
            (Chain::TooLong, _) => self.stats.extensions_not_followed += 1,
            (Chain::Whole, Fragment::Later(datagram)) => match self.fragments.recall(network, datagram) {
                Some(first_fragment) => {
                    self.stats.later_fragments_matched += 1;
                    return FlowKey { dscp: network.dscp, ..first_fragment };
                }
                None => self.stats.later_fragments_unmatched += 1,
            },
            _ if missing && captured => self.stats.short_transport += 1,
            _ if missing => self.stats.cut_before_ports += 1,
            _ => {}
        }
        key
    }

    /// A frame without a readable network header.
    #[cold]
    fn without_network(&mut self, link: &Link, original_len: u32, trouble: Option<Trouble>) -> Frame {
        // If IP was only a guess, it does not count as a bad header.
        let trouble = trouble.filter(|trouble| *trouble != Trouble::Bad || link.payload == Payload::Ip);
        let claimed = match (link.payload, trouble) {
            (Payload::Unsupported, _) => {
                self.stats.unsupported_link += 1;
                None
            }
            (_, Some(Trouble::Bad)) => {
                self.stats.bad_ip_header += 1;
                None
            }
            (_, Some(Trouble::Cut { claimed })) => {
                self.stats.cut_before_network_header += 1;
                claimed.filter(|_| link.payload == Payload::Ip).map(|length| length.saturating_add(link.at as u32))
            }
            (Payload::Cut, _) => {
                self.stats.cut_before_network_header += 1;
                None
            }
            _ => {
                self.stats.non_ip += 1;
                None
            }
        };
        let size = original_len.max(claimed.unwrap_or(0));
        self.stats.length_corrected += u64::from(size > original_len);
        let key = FlowKey {
            src: u128::from(link.src),
            dst: u128::from(link.dst),
            vlan: link.vlan,
            ethertype: link.ethertype,
            ..FlowKey::default()
        };
        Frame {
            key,
            ecn: Ecn::NotEct,
            size,
            network_length: size.saturating_sub(link.at as u32),
            link_header: short(link.at),
            headers: short(link.at),
            splittable: false,
        }
    }

    /// Parses what is inside a tunnel: for the headers that segmentation repeats and, if requested, for the key.
    #[cold]
    fn follow_tunnel(&mut self, frame: &mut Frame, outer: Network, transport: Transport, payload: &[u8]) {
        let (mut outer, mut transport, mut payload) = (outer, transport, payload);
        let mut fragment = false;
        for depth in 0..=MOST_TUNNELS {
            if !tunnel::is_tunnel(outer.protocol, &transport) || !outer.starts_payload() {
                return;
            }
            let link = tunnel::inside(outer.protocol, payload, transport.end);
            let inner = match link.payload {
                Payload::Ip | Payload::PerhapsIp if depth < MOST_TUNNELS => Network::read(payload, link.at).ok(),
                _ => None,
            };
            let Some(inner) = inner else {
                self.stats.tunnels_not_followed += 1;
                return;
            };
            self.stats.tunnels += u64::from(depth == 0);
            fragment |= outer.fragment != Fragment::Whole;
            payload = inner.payload(payload, link.at);
            transport = match self.tunnel {
                Tunnel::Outer => Transport::new(&inner, payload),
                Tunnel::Inner => self.inner_flow(&mut frame.key, &inner, link.at, payload),
            };
            frame.headers = short(transport.end);
            frame.splittable = is_splittable(&inner) && !fragment;
            outer = inner;
        }
    }

    /// Replaces the key by the flow of an inner packet.
    fn inner_flow(&mut self, key: &mut FlowKey, inner: &Network, at: usize, payload: &[u8]) -> Transport {
        let end = inner.claimed.map_or(u32::MAX, |length| length.saturating_add(at as u32));
        let (flow, transport) = self.flow(inner, payload, end);
        *key = FlowKey { vlan: key.vlan, dscp: key.dscp, ..flow };
        if let Fragment::First(datagram) = inner.fragment
            && !transport.missing
        {
            self.fragments.remember(inner, datagram, *key);
        }
        transport
    }
}

/// Whether a packet with this header can be the result of merging by offload.
#[inline]
fn is_splittable(network: &Network) -> bool {
    matches!(network.protocol, TCP | UDP) && network.fragment == Fragment::Whole && network.chain == Chain::Whole
}

/// An offset within a frame, or the largest that fits.
#[inline]
fn short(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}
