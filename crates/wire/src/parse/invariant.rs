//! What a router does not change of a packet: a digest by which its copies before and after the router are matched.
//!
//! ConQuest's section 6.2 hashes the IPv4 identification and, for TCP, the sequence and acknowledgement numbers, and
//! leaves out how IPv6 and UDP are done. Here a [`Fingerprint`] is made of
//!
//! - IP: addresses, protocol, length, identification (IPv4, or an IPv6 fragment header's), fragment offset;
//! - TCP: ports, sequence and acknowledgement, flags, options (not of SYNs, whose MSS routers clamp), payload;
//! - UDP, UDP-Lite: ports, payload, which for QUIC, RTP and DNS begins with what differs from packet to packet;
//! - SCTP: ports, tag, chunks; ICMP: type, code, payload; all others: the payload.
//!
//! Left out is what a router changes or may change: the link layer, TTL or hop limit, DSCP and ECN, the IPv6 flow label
//! (RFC 6437 section 3 lets it be set), IP options, hop-by-hop and routing headers, the IPv4 header checksum, TCP's
//! window. Transport checksums are
//! left out too unless asked for: a capture on the host that sent the packet has them unfinished.
//!
//! Captures may be cut, and at different lengths on both sides. So nothing behind [`InvariantParams::reach`] bytes from
//! the network header counts, which both captures must have ([`Reach`] finds it), and a packet of which less was captured
//! has no fingerprint.

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
/// Payload bytes that can be taken to differ from packet to packet; fewer are often the same.
const TELLING_PAYLOAD: usize = 8;
/// Bytes of an IPv6 fragment header.
const FRAGMENT_HEADER: usize = 8;

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvariantParams {
    /// What network address translation changes between the captures.
    pub nat: Nat,
    /// Bytes from the network header on that are looked at: no more than what both captures have of every packet.
    pub reach: u16,
    /// Whether transport checksums count. They tell payloads apart that were not captured; no NAT and no offloading to a
    /// network card may be between the captures. Ignored where `nat` is not [`Nat::None`].
    pub checksums: bool,
}

/// What network address translation changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Nat {
    /// There is none.
    #[default]
    None,
    /// Addresses, ports, ICMP echo identifiers and checksums.
    Addresses,
    /// Those and the IPv4 identification, TCP's numbers and its options: only protocol, length and payload count, and a
    /// packet of which too little of the payload was captured has no fingerprint.
    AllButPayload,
}

/// A packet by what a router does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Equal for all copies of one packet; the same in every run.
    pub digest: u64,
    /// What tells it from other packets of its flow.
    pub strength: Strength,
    /// A digest of the stretch of TCP's sequence space that it carries, if any: the same in a retransmission of the
    /// whole segment, whose `digest` differs.
    pub segment: Option<u64>,
    /// TTL or hop limit: lower behind the router.
    pub ttl: u8,
}

/// What tells a packet from others of its flow, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Nothing but lengths and flags: other packets of the flow may be the same.
    Headers,
    /// TCP's sequence and acknowledgement numbers: pure acknowledgements and retransmissions may be the same.
    Sequence,
    /// Eight bytes or more of payload.
    Payload,
    /// An identification that its sender gives to no other packet for a while (RFC 6864): packets that have the same
    /// are copies of one.
    Identified,
}

/// Why a packet has no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoFingerprint {
    /// No IP header that can be read: routers forward none such.
    #[error("it is not IP")]
    NotIp,
    /// Less was captured than the reach.
    #[error("less of it was captured than what is compared")]
    Cut,
    /// Only the payload counts, and there is too little of it.
    #[error("it has too little payload to be known by")]
    NoPayload,
}

impl Default for InvariantParams {
    /// No NAT, whole packets of up to 256 bytes, no checksums.
    fn default() -> Self {
        Self { nat: Nat::None, reach: Reach::MOST, checksums: false }
    }
}

impl Frame {
    /// The fingerprint of this frame's outermost IP packet. `data` is what was captured of the frame.
    ///
    /// # Errors
    /// If it has none that could be relied on.
    pub fn fingerprint(&self, data: &[u8], params: &InvariantParams) -> Result<Fingerprint, NoFingerprint> {
        if self.key.family == Family::Link {
            return Err(NoFingerprint::NotIp);
        }
        let captured = data.get(usize::from(self.link_header)..).ok_or(NoFingerprint::Cut)?;
        // What both sides have of it, whatever each has beyond.
        let wanted = (self.network_length as usize).min(usize::from(params.reach));
        let packet = captured.get(..wanted).ok_or(NoFingerprint::Cut)?;
        let network = Network::read(packet, 0).map_err(|_| NoFingerprint::Cut)?;
        Reading { params, packet, length: self.network_length, network }.fingerprint()
    }
}

/// The part of a packet that counts.
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

    /// Offset and flag of fragments. A router may clear "don't fragment", so that does not count.
    fn offset(&self) -> u16 {
        let network = &self.network;
        match (network.family, network.fragment) {
            (_, Fragment::Whole) => 0,
            (Family::V4, _) => be16(self.packet, 6).unwrap_or(0) & 0x3fff,
            // The fragment header is the last that was followed.
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
                let telling = checksums && be16(data, 6).is_some_and(|sum| sum != 0);
                (by_payload(payload).max(if telling { Strength::Sequence } else { Strength::Headers }), None)
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
            // The same segment sent again differs by its timestamps (RFC 7323), the same acknowledgement by its SACK
            // blocks (RFC 2018).
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
            // The identifier is translated like a port, the sequence number is not.
            (_, true) => data.get(6..),
            // An error quotes the packet that it is about, with that packet's addresses (RFC 3022 section 4.3); what
            // it quotes has an identification of its own, which stays.
            (_, false) => data.get(12..14),
        };
        let rest = rest.unwrap_or_default();
        digest.bytes(rest);
        (if echo && rest.len() >= 2 { Strength::Sequence } else { by_payload(rest) }, None)
    }
}

fn by_payload(payload: &[u8]) -> Strength {
    if payload.len() >= TELLING_PAYLOAD { Strength::Payload } else { Strength::Headers }
}

/// The identification of an IPv6 fragment; others have none.
fn fragment_id(network: &Network) -> u32 {
    match network.fragment {
        Fragment::Whole => 0,
        Fragment::First(datagram) | Fragment::Later(datagram) => datagram.id,
    }
}

/// Finds how far a capture reaches, from its packets. What is compared is the least of all captures'.
///
/// A few packets may have less, damaged or cut by others before: those go without a fingerprint, and do not spoil it for
/// all the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    packets: u64,
    /// Packets cut after so many bytes from the network header on.
    cut: Vec<u64>,
}

impl Reach {
    /// Bytes from the network header on beyond which nothing is looked at: more would tell no more packets apart.
    pub const MOST: u16 = 256;
    /// One packet in so many may have less.
    const SHORT: u64 = 2_000;

    /// Nothing seen yet: all packets may be whole.
    pub fn new() -> Self {
        Self { packets: 0, cut: vec![0; usize::from(Self::MOST)] }
    }

    /// A frame of the capture, of which `data` was captured.
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

    /// Bytes from the network header on that were captured of (all but one in 2000) packets which have as many.
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

/// A 64-bit digest, the same in every run and on every machine: each word is mixed in by a step that loses nothing.
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

    /// Those of `data` from `from` to `to` that are there.
    fn bytes_if(&mut self, condition: bool, data: &[u8], from: usize, to: usize) {
        if condition {
            self.bytes(data.get(from.min(data.len())..to.min(data.len())).unwrap_or_default());
        }
    }

    /// Murmur3's last step.
    fn end(self) -> u64 {
        let mut digest = self.0;
        digest = (digest ^ digest >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        digest = (digest ^ digest >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        digest ^ digest >> 33
    }
}
