//! The parts of a packet that a router does not change: a digest that matches copies of a packet before and after a
//! router.
//!
//! ConQuest's section 6.2 hashes the IPv4 identification and, for TCP, the sequence and acknowledgement numbers; it
//! does not describe IPv6 and UDP. Here a [`Fingerprint`] covers
//!
//! - IP: addresses, protocol, length, identification (IPv4, or an IPv6 fragment header's), fragment offset;
//! - TCP: ports, sequence and acknowledgement, flags, options (not of SYNs, whose MSS routers clamp), payload;
//! - UDP, UDP-Lite: ports and payload, which for QUIC, RTP and DNS starts with bytes that differ from packet to packet;
//! - SCTP: ports, tag, chunks; ICMP: type, code, payload; all others: the payload.
//!
//! It does not cover what a router changes or may change: the link layer, TTL or hop limit, DSCP and ECN, the IPv6 flow
//! label (RFC 6437 section 3 permits that), IP options, hop-by-hop and routing headers, the IPv4 header checksum, TCP's
//! window. Transport checksums are included only if requested: in a capture on the sending host they are not yet
//! computed.
//!
//! Captures may be cut, at different lengths on both sides. A fingerprint therefore covers at most
//! [`InvariantParams::reach`] bytes from the network header on, which both captures must have ([`Reach`] determines
//! it). A packet of which less was captured has no fingerprint.

use super::Frame;
use super::bytes::{be16, chunk};
use super::network::{Fragment, Network};
use super::transport::{TCP, UDP};
use crate::Family;

const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;
/// TCP flags (RFC 9293 section 3.1).
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
/// Payloads of at least this many bytes usually differ from packet to packet; shorter ones are often equal.
const DISTINCTIVE_PAYLOAD: usize = 8;
/// Bytes of an IPv6 fragment header.
const FRAGMENT_HEADER: usize = 8;

/// What a fingerprint covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvariantParams {
    /// What network address translation changes between the captures.
    pub nat: Nat,
    /// Bytes from the network header on that are covered: at most what both captures have of every packet.
    pub reach: u16,
    /// Whether transport checksums are included. They distinguish payloads that were not captured. Requires that
    /// neither NAT nor offloading to a network card is between the captures. Ignored unless `nat` is [`Nat::None`].
    pub checksums: bool,
}

/// What network address translation changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Nat {
    /// Nothing: there is no NAT.
    #[default]
    None,
    /// Addresses, ports, ICMP echo identifiers and checksums.
    Addresses,
    /// Also the IPv4 identification, TCP's sequence numbers and its options: a fingerprint covers only protocol, length
    /// and payload. A packet of which too little payload was captured has no fingerprint.
    AllButPayload,
}

/// Identifies a packet by what a router does not change.
///
/// ```
/// use queuescope_wire::parse::{InvariantParams, LinkType, Parser, Tunnel};
///
/// let mut before = [
///     0x45, 0, 0, 36, 0x12, 0x34, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
///     0, 53, 0x0f, 0xa0, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, // UDP and its payload
/// ];
/// let mut fingerprint = |packet: &[u8]| {
///     let frame = Parser::new(Tunnel::Outer).parse(LinkType::RawIp, 36, packet);
///     frame.fingerprint(packet, &InvariantParams::default())
/// };
/// let first = fingerprint(&before)?;
/// before[8] -= 1; // A router lowers the TTL.
/// let behind = fingerprint(&before)?;
/// assert_eq!(first.digest, behind.digest);
/// assert_eq!((first.ttl, behind.ttl), (64, 63));
/// # Ok::<(), queuescope_wire::parse::NoFingerprint>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Equal for all copies of one packet, and the same in every run.
    pub digest: u64,
    /// What distinguishes it from other packets of its flow.
    pub strength: Strength,
    /// A digest of the TCP sequence range that the packet carries, if any. A retransmission of the same segment has an
    /// equal `segment` and a different `digest`.
    pub segment: Option<u64>,
    /// TTL or hop limit: lower behind the router.
    pub ttl: u8,
}

/// What distinguishes a packet from others of its flow, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Only lengths and flags: other packets of the flow may be equal.
    Headers,
    /// TCP's sequence and acknowledgement numbers: pure acknowledgements and retransmissions may be equal.
    Sequence,
    /// Eight bytes or more of payload.
    Payload,
    /// An identification that its sender does not reuse for a while (RFC 6864): packets with the same one are copies.
    Identified,
}

/// Why a packet has no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoFingerprint {
    /// There is no readable IP header: routers do not forward such packets.
    #[error("it is not IP")]
    NotIp,
    /// Less than the reach was captured.
    #[error("too few of its bytes were captured")]
    Cut,
    /// Only the payload is covered, and it is too short.
    #[error("its payload is too short to identify it")]
    NoPayload,
}

impl Default for InvariantParams {
    /// No NAT, up to 256 bytes of each packet, no checksums.
    fn default() -> Self {
        Self { nat: Nat::None, reach: Reach::MOST, checksums: false }
    }
}

impl Frame {
    /// The fingerprint of this frame's outermost IP packet. `data` is what was captured of the frame.
    ///
    /// # Errors
    /// Returns an error if the packet has no reliable fingerprint.
    pub fn fingerprint(&self, data: &[u8], params: &InvariantParams) -> Result<Fingerprint, NoFingerprint> {
        if self.key.family == Family::Link {
            return Err(NoFingerprint::NotIp);
        }
        let captured = data.get(usize::from(self.link_header)..).ok_or(NoFingerprint::Cut)?;
        // The bytes that both captures have, even if one has more.
        let wanted = (self.network_length as usize).min(usize::from(params.reach));
        let packet = captured.get(..wanted).ok_or(NoFingerprint::Cut)?;
        let network = Network::read(packet, 0).map_err(|_| NoFingerprint::Cut)?;
        Reading { params, packet, length: self.network_length, network }.fingerprint()
    }
}

/// The parts of a packet that a fingerprint covers.
struct Reading<'a> {
    params: &'a InvariantParams,
    packet: &'a [u8],
    length: u32,
    network: Network,
}

impl Reading<'_> {
    fn fingerprint(&self) -> Result<Fingerprint, NoFingerprint> {
        let (network, nat) = (&self.network, self.params.nat);
        let (id, ttl) = match network.family {
            Family::V4 => (be16(self.packet, 4).map_or(0, u32::from), self.packet.get(8)),
            _ => (fragment_id(network), self.packet.get(7)),
        };
        let mut digest = Digest::new();
        digest.word(u64::from(network.protocol) | (network.family as u64) << 8 | u64::from(self.length) << 16);
        if nat == Nat::None {
            digest.addresses(network);
        }
        if nat != Nat::AllButPayload {
            digest.word(u64::from(id) | u64::from(self.offset()) << 32);
        }
        let transport = self.packet.get(network.at..).unwrap_or_default();
        let (strength, segment) = if network.starts_payload() {
            self.transport(transport, &mut digest)
        } else {
            digest.bytes(transport);
            (by_payload(transport), None)
        };
        let strength = if id != 0 && nat != Nat::AllButPayload { Strength::Identified } else { strength };
        if nat == Nat::AllButPayload && strength < Strength::Payload {
            return Err(NoFingerprint::NoPayload);
        }
        Ok(Fingerprint { digest: digest.end(), strength, segment, ttl: ttl.copied().unwrap_or(0) })
    }

    /// Fragment offset and flag. A router may clear "don't fragment", so that bit is not covered.
    fn offset(&self) -> u16 {
        let network = &self.network;
        match (network.family, network.fragment) {
            (_, Fragment::Whole) => 0,
            (Family::V4, _) => be16(self.packet, 6).unwrap_or(0) & 0x3fff,
            // The fragment header is the last one that was followed.
            (_, Fragment::First(_)) => 1,
            (_, Fragment::Later(_)) => {
                network.at.checked_sub(FRAGMENT_HEADER - 2).and_then(|at| be16(self.packet, at)).unwrap_or(0)
            }
        }
    }

    fn transport(&self, data: &[u8], digest: &mut Digest) -> (Strength, Option<u64>) {
        let no_nat = self.params.nat == Nat::None;
        let checksums = self.params.checksums && no_nat;
        match self.network.protocol {
            TCP => self.tcp(data, digest),
            UDP | UDP_LITE => {
                digest.bytes_if(no_nat, data, 0, 4);
                digest.bytes_if(checksums, data, 6, 8);
                let payload = data.get(8..).unwrap_or_default();
                digest.bytes(payload);
                let covers_checksum = checksums && be16(data, 6).is_some_and(|sum| sum != 0);
                (by_payload(payload).max(if covers_checksum { Strength::Sequence } else { Strength::Headers }), None)
            }
            SCTP => {
                digest.bytes_if(no_nat, data, 0, 4);
                digest.bytes(data.get(4..8).unwrap_or_default());
                digest.bytes_if(checksums, data, 8, 12);
                let chunks = data.get(12..).unwrap_or_default();
                digest.bytes(chunks);
                (by_payload(chunks), None)
            }
            ICMP | ICMP6 => self.icmp(data, digest),
            _ => {
                digest.bytes(data);
                (by_payload(data), None)
            }
        }
    }

    fn tcp(&self, data: &[u8], digest: &mut Digest) -> (Strength, Option<u64>) {
        let nat = self.params.nat;
        // Ports; sequence and acknowledgement; offset and flags; window; checksum and urgent pointer.
        let Some(&[s0, s1, s2, s3, ..]) = chunk::<4>(data, 4) else {
            digest.bytes_if(nat == Nat::None, data, 0, data.len());
            return (Strength::Headers, None);
        };
        let (header, flags) = (data.get(12).map_or(20, |byte| usize::from(byte >> 4) * 4).max(20), data.get(13));
        let flags = flags.copied().unwrap_or(0);
        let payload = data.get(header..).unwrap_or_default();
        digest.bytes_if(nat == Nat::None, data, 0, 4);
        if nat != Nat::AllButPayload {
            digest.bytes_if(true, data, 4, 14);
            // A retransmission of a segment differs by its timestamps (RFC 7323), a repeated acknowledgement by its
            // SACK blocks (RFC 2018).
            digest.bytes_if(flags & SYN == 0, data, 20, header);
        }
        digest.bytes_if(nat == Nat::None && self.params.checksums && flags & SYN == 0, data, 16, 18);
        digest.bytes(payload);
        let carried = u64::from(self.length).saturating_sub((self.network.at + header) as u64);
        let spans = carried + u64::from(flags & (SYN | FIN) != 0);
        let segment = (spans > 0 && nat != Nat::AllButPayload).then(|| {
            let mut digest = Digest::new();
            if nat == Nat::None {
                digest.addresses(&self.network);
                digest.bytes_if(true, data, 0, 4);
            }
            let sequence = u64::from(u32::from_be_bytes([s0, s1, s2, s3]));
            digest.word(sequence | (carried & 0xffff) << 32 | u64::from(flags & (SYN | FIN)) << 48);
            digest.end()
        });
        let own = if nat == Nat::AllButPayload { Strength::Headers } else { Strength::Sequence };
        (by_payload(payload).max(own), segment)
    }

    fn icmp(&self, data: &[u8], digest: &mut Digest) -> (Strength, Option<u64>) {
        digest.bytes(data.get(..2).unwrap_or_default());
        let checksums = self.params.checksums && self.params.nat == Nat::None;
        digest.bytes_if(checksums, data, 2, 4);
        let echo = match (self.network.protocol, data.first()) {
            (ICMP, Some(kind)) => matches!(kind, 0 | 8),
            (_, Some(kind)) => matches!(kind, 128 | 129),
            _ => false,
        };
        let rest = match (self.params.nat, echo) {
            (Nat::None, _) => data.get(4..),
            // NAT translates the identifier like a port, but not the sequence number.
            (_, true) => data.get(6..),
            // An error quotes the packet that caused it, with that packet's addresses (RFC 3022 section 4.3). The
            // quoted packet has an identification of its own, which NAT does not change.
            (_, false) => data.get(12..14),
        };
        let rest = rest.unwrap_or_default();
        digest.bytes(rest);
        (if echo && rest.len() >= 2 { Strength::Sequence } else { by_payload(rest) }, None)
    }
}

fn by_payload(payload: &[u8]) -> Strength {
    if payload.len() >= DISTINCTIVE_PAYLOAD { Strength::Payload } else { Strength::Headers }
}

/// The identification of an IPv6 fragment; others have none.
fn fragment_id(network: &Network) -> u32 {
    match network.fragment {
        Fragment::Whole => 0,
        Fragment::First(datagram) | Fragment::Later(datagram) => datagram.id,
    }
}

/// Determines from the packets of a capture how many bytes of each were captured. Fingerprints use the smallest reach
/// of all captures.
///
/// A few packets may have fewer bytes, because they are damaged or were cut earlier. These have no fingerprint, and do
/// not reduce the reach for the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    packets: u64,
    /// Number of packets that were cut after each number of bytes from the network header on.
    cut: Vec<u64>,
}

impl Reach {
    /// The largest reach, bytes from the network header on: more would not distinguish more packets.
    pub const MOST: u16 = 256;
    /// One packet in this many may have fewer bytes.
    const SHORT: u64 = 2_000;

    /// Starts with the largest reach.
    pub fn new() -> Self {
        Self { packets: 0, cut: vec![0; usize::from(Self::MOST)] }
    }

    /// Adds a frame of the capture, of which `data` was captured.
    #[inline]
    pub fn observe(&mut self, frame: &Frame, data: &[u8]) {
        if frame.key.family == Family::Link {
            return;
        }
        self.packets += 1;
        let captured = data.len().saturating_sub(usize::from(frame.link_header));
        if captured < frame.network_length as usize
            && let Some(cut) = self.cut.get_mut(captured)
        {
            *cut += 1;
        }
    }

    /// The reach: the number of bytes from the network header on that were captured of all packets but one in 2000, not
    /// counting packets that are shorter on the wire.
    pub fn bytes(&self) -> u16 {
        let mut short = 0;
        let reached = self.cut.iter().position(|cut| {
            short += cut;
            short > self.packets / Self::SHORT
        });
        reached.map_or(Self::MOST, |bytes| bytes as u16)
    }
}

impl Default for Reach {
    fn default() -> Self {
        Self::new()
    }
}

/// A 64-bit digest, the same in every run and on every machine. Mixing in a word is invertible.
struct Digest(u64);

impl Digest {
    fn new() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }

    #[inline]
    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }

    fn addresses(&mut self, network: &Network) {
        for address in [network.src, network.dst] {
            self.word(address as u64);
            self.word((address >> 64) as u64);
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.word(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(last));
        self.word(bytes.len() as u64);
    }

    /// Adds the bytes of `data` from `from` to `to` that exist, if `condition` holds.
    fn bytes_if(&mut self, condition: bool, data: &[u8], from: usize, to: usize) {
        if condition {
            self.bytes(data.get(from.min(data.len())..to.min(data.len())).unwrap_or_default());
        }
    }

    /// The final mixing step of Murmur3.
    fn end(self) -> u64 {
        let mut digest = self.0;
        digest = (digest ^ digest >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        digest = (digest ^ digest >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        digest ^ digest >> 33
    }
}
