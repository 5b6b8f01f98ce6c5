//! From the start of a frame to its network header: link types, VLAN tags, MPLS labels, PPPoE, SNAP.

use super::LinkType;
use super::bytes::{be16, chunk};

/// The EtherType that stands for every frame with a length in its place (IEEE 802.2 LLC without SNAP). Linux calls it
/// `ETH_P_802_2`.
pub const LLC: u16 = 0x0004;

/// The EtherTypes of VLAN tags: 802.1Q, 802.1ad, and the numbers in use before 802.1ad.
pub const VLAN_TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MPLS_UNICAST: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
const BRIDGED_ETHERNET: u16 = 0x6558;

/// The most tags, shims and encapsulations that are followed in one frame; with more, it counts as not IP.
const MOST_STEPS: usize = 16;
/// The most MPLS labels that are followed; real networks use fewer than ten.
const MOST_LABELS: usize = 16;

/// The headers before the network header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Source MAC address in the low 48 bits, or zero.
    pub src: u64,
    /// Destination MAC address in the low 48 bits, or zero.
    pub dst: u64,
    /// The outermost VLAN identifier, or zero.
    pub vlan: u16,
    /// The innermost EtherType that was parsed: that of the payload.
    pub ethertype: u16,
    /// Offset of the payload.
    pub at: usize,
    /// The kind of the payload.
    pub payload: Payload,
}

/// The kind of header that follows the link header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// An IP header.
    Ip,
    /// The first bits look like an IP header. MPLS labels do not state what follows them.
    PerhapsIp,
    /// Something else.
    Other,
    /// Unknown: the captured bytes end before it.
    Cut,
    /// Unknown: the link type is not supported.
    Unsupported,
}

impl Link {
    /// Parses the link header of a frame.
    #[inline]
    pub fn read(link: LinkType, data: &[u8]) -> Self {
        match link {
            LinkType::Ethernet => Self::ethernet(data, 0),
            LinkType::RawIp => Self::ip(0),
            LinkType::LinuxSll => Self::cooked(data, chunk::<16>(data, 0).map(cooked_v1)),
            LinkType::LinuxSll2 => Self::cooked(data, chunk::<20>(data, 0).map(cooked_v2)),
            LinkType::Null | LinkType::Loop => Self::loopback(data),
            LinkType::Other(_) => Self { payload: Payload::Unsupported, ..Self::ip(0) },
        }
    }

    /// An IP header at `at`, without a link header.
    pub fn ip(at: usize) -> Self {
        Self { src: 0, dst: 0, vlan: 0, ethertype: 0, at, payload: Payload::Ip }
    }

    /// Parses an Ethernet header at `at` and everything that follows up to the network header.
    #[inline]
    pub fn ethernet(data: &[u8], at: usize) -> Self {
        let Some(header) = chunk::<14>(data, at) else {
            return Self { payload: Payload::Cut, ..Self::ip(at.min(data.len())) };
        };
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1] = *header;
        let link = Self {
            src: u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]),
            dst: u64::from_be_bytes([0, 0, d0, d1, d2, d3, d4, d5]),
            vlan: 0,
            ethertype: u16::from_be_bytes([t0, t1]),
            at: at + 14,
            payload: Payload::Ip,
        };
        if matches!(link.ethertype, IPV4 | IPV6) { link } else { link.follow(data) }
    }

    /// The payload of GRE: an EtherType and its payload at `at` (RFC 2784), or an Ethernet frame (RFC 1701).
    pub fn ethertype(data: &[u8], at: usize, ethertype: u16) -> Self {
        match ethertype {
            BRIDGED_ETHERNET => Self::ethernet(data, at),
            _ => Self { ethertype, ..Self::ip(at) }.follow(data),
        }
    }

    /// Linux cooked capture: there is no destination, and a source only on interfaces with MAC addresses.
    fn cooked(data: &[u8], header: Option<(u64, u16, usize)>) -> Self {
        match header {
            Some((src, ethertype, at)) => Self { src, ethertype, ..Self::ip(at) }.follow(data),
            None => Self { payload: Payload::Cut, ..Self::ip(0) },
        }
    }

    /// BSD loopback: an address family, in the byte order of the capturing host (`NULL`) or of the network (`LOOP`).
    /// Families are small numbers, so the value shows the byte order. The number of IPv6 differs by system.
    fn loopback(data: &[u8]) -> Self {
        let Some(family) = chunk::<4>(data, 0) else {
            return Self { payload: Payload::Cut, ..Self::ip(0) };
        };
        let family = u32::from_le_bytes(*family).min(u32::from_be_bytes(*family));
        let payload = if matches!(family, 2 | 10 | 23 | 24 | 28 | 30) { Payload::Ip } else { Payload::Other };
        Self { payload, ..Self::ip(4) }
    }

    /// Follows tags and shims from `self.ethertype` on.
    fn follow(mut self, data: &[u8]) -> Self {
        let mut tagged = false;
        for _ in 0..MOST_STEPS {
            match self.ethertype {
                IPV4 | IPV6 => return self.with(Payload::Ip),
                ethertype if VLAN_TAGS.contains(&ethertype) => {
                    let Some(&[t0, t1, e0, e1]) = chunk(data, self.at) else { return self.with(Payload::Cut) };
                    if !tagged {
                        self.vlan = u16::from_be_bytes([t0, t1]) & 0x0fff;
                        tagged = true;
                    }
                    self.ethertype = u16::from_be_bytes([e0, e1]);
                    self.at += 4;
                }
                MPLS_UNICAST | MPLS_MULTICAST => return self.mpls(data),
                // RFC 2516 section 4: six bytes, then the PPP protocol (RFC 1661).
                PPPOE_SESSION => match be16(data, self.at + 6) {
                    None => return self.with(Payload::Cut),
                    Some(protocol @ (0x0021 | 0x0057)) => {
                        self.at += 8;
                        self.ethertype = if protocol == 0x0021 { IPV4 } else { IPV6 };
                        return self.with(Payload::Ip);
                    }
                    Some(_) => return self.with(Payload::Other),
                },
                // Values below are a length: LLC follows, and with SNAP (RFC 1042, or 802.1H's bridge tunnel) an
                // EtherType again.
                0..0x0600 => match chunk::<8>(data, self.at) {
                    Some(&[0xaa, 0xaa, 0x03, 0x00, 0x00, 0x00 | 0xf8, e0, e1]) => {
                        self.ethertype = u16::from_be_bytes([e0, e1]);
                        self.at += 8;
                    }
                    _ => {
                        self.ethertype = LLC;
                        return self.with(Payload::Other);
                    }
                },
                _ => return self.with(Payload::Other),
            }
        }
        self.with(Payload::Other)
    }

    /// Follows MPLS labels (RFC 3032) to the bottom of the stack. The first bits below it are used to guess the
    /// payload: 4 and 6 are IP versions, 0 is a control word (RFC 4385), which precedes Ethernet or an unknown payload.
    fn mpls(mut self, data: &[u8]) -> Self {
        for _ in 0..MOST_LABELS {
            let Some(&[_, _, bottom, _]) = chunk(data, self.at) else { return self.with(Payload::Cut) };
            self.at += 4;
            if bottom & 1 == 1 {
                return match data.get(self.at).map(|byte| byte >> 4) {
                    None => self.with(Payload::Cut),
                    Some(4 | 6) => self.with(Payload::PerhapsIp),
                    Some(0) => self.pseudowire(data),
                    Some(_) => self.with(Payload::Other),
                };
            }
        }
        self.with(Payload::Other)
    }

    /// Ethernet over MPLS with a control word (RFC 4448), if it carries IP, perhaps tagged.
    fn pseudowire(self, data: &[u8]) -> Self {
        let mut at = self.at + 4 + 14;
        let mut ethertype = be16(data, at - 2);
        for _ in 0..2 {
            if ethertype.is_some_and(|ethertype| VLAN_TAGS.contains(&ethertype)) {
                ethertype = be16(data, at + 2);
                at += 4;
            }
        }
        match ethertype {
            Some(IPV4 | IPV6) => Self { at, ..self }.with(Payload::PerhapsIp),
            Some(_) => self.with(Payload::Other),
            None => self.with(Payload::Cut),
        }
    }

    fn with(self, payload: Payload) -> Self {
        Self { payload, ..self }
    }
}

/// Source, protocol and length of a `LINUX_SLL` header.
fn cooked_v1(header: &[u8; 16]) -> (u64, u16, usize) {
    let [_, _, _, _, l0, l1, s0, s1, s2, s3, s4, s5, _, _, e0, e1] = *header;
    let mac = u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]);
    let src = if [l0, l1] == [0, 6] { mac } else { 0 };
    (src, u16::from_be_bytes([e0, e1]), 16)
}

/// Source, protocol and length of a `LINUX_SLL2` header.
fn cooked_v2(header: &[u8; 20]) -> (u64, u16, usize) {
    let [e0, e1, _, _, _, _, _, _, _, _, _, length, s0, s1, s2, s3, s4, s5, _, _] = *header;
    let mac = u64::from_be_bytes([0, 0, s0, s1, s2, s3, s4, s5]);
    (if length == 6 { mac } else { 0 }, u16::from_be_bytes([e0, e1]), 20)
}
