//! Names of flows: from a key to text for people, and back.

use crate::{Family, FlowKey, Granularity, Prefixes};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

impl Granularity {
    /// The name of a key of this granularity: `10.0.0.1:443 > 10.0.0.2:50010 tcp`, `> 10.0.0.0/24`. [`FlowKey::named`]
    /// is the inverse.
    pub fn name(self, key: &FlowKey) -> String {
        match self {
            Self::Vlan if key.vlan == 0 => return UNTAGGED.to_owned(),
            Self::Vlan => return format!("vlan {}", key.vlan),
            _ if key.family == Family::Link => return link_name(self, key),
            _ => {}
        }
        let v6 = key.family == Family::V6;
        let prefix = |bits: Prefixes| match if v6 { (bits.v6, 128) } else { (bits.v4, 32) } {
            (count, whole) if count == whole => String::new(),
            (count, _) => format!("/{count}"),
        };
        let (src, dst) = (Address(key.src, v6), Address(key.dst, v6));
        match self {
            Self::FiveTuple | Self::Connection => {
                let arrow = if self == Self::FiveTuple { ">" } else { "<>" };
                let protocol = protocol_name(key.protocol);
                if key.src_port == 0 && key.dst_port == 0 {
                    return format!("{src} {arrow} {dst} {protocol}");
                }
                let end = |address: Address, port: u16| {
                    if v6 { format!("[{address}]:{port}") } else { format!("{address}:{port}") }
                };
                format!("{} {arrow} {} {protocol}", end(src, key.src_port), end(dst, key.dst_port))
            }
            Self::Pair => format!("{src} > {dst}"),
            Self::Source(bits) => format!("{src}{} >", prefix(bits)),
            Self::Destination(bits) => format!("> {dst}{}", prefix(bits)),
            Self::Dscp => format!("{} {}", if v6 { IPV6 } else { IPV4 }, dscp_name(key.dscp)),
            Self::Vlan => unreachable!("named above"),
        }
    }
}

impl FlowKey {
    /// Parses a name that [`Granularity::name`] returned: the key, and a granularity at which it has this name. None
    /// for any other text. Fields that are not part of the name are zero. If several EtherTypes have one name, the key
    /// has the lowest of them.
    pub fn named(name: &str) -> Option<(Granularity, Self)> {
        let of = |granularity, key| Some((granularity, key));
        if name == UNTAGGED {
            return of(Granularity::Vlan, Self::default());
        }
        if let Some(ethertype) = ethertype_of(name) {
            return of(Granularity::FiveTuple, Self { ethertype, ..Self::default() });
        }
        if let Some(vlan) = name.strip_prefix("vlan ") {
            return of(Granularity::Vlan, Self { vlan: plain(vlan)?, ..Self::default() });
        }
        if let Some((family @ (IPV4 | IPV6), dscp)) = name.split_once(' ') {
            let family = if family == IPV4 { Family::V4 } else { Family::V6 };
            return of(Granularity::Dscp, Self { dscp: dscp_of(dscp)?, family, ..Self::default() });
        }
        if let Some(src) = name.strip_suffix(" >") {
            let (key, bits) = prefix_of(src)?;
            return of(Granularity::Source(bits), key);
        }
        if let Some(dst) = name.strip_prefix("> ") {
            return Self::to_station(dst).or_else(|| {
                let (key, bits) = prefix_of(dst)?;
                of(Granularity::Destination(bits), Self { src: 0, dst: key.src, ..key })
            });
        }
        match name.split_once(" <> ") {
            Some((src, rest)) => Self::between(src, rest).map(|key| (Granularity::Connection, key)),
            None => {
                let (src, rest) = name.split_once(" > ")?;
                Self::between_stations(src, rest).or_else(|| match rest.contains(' ') {
                    true => of(Granularity::FiveTuple, Self::between(src, rest)?),
                    false => of(Granularity::Pair, Self::pair(address_of(src)?, address_of(rest)?)?),
                })
            }
        }
    }

    /// `10.0.0.1:443` and `10.0.0.2:50010 tcp`; without ports where there are none.
    fn between(src: &str, rest: &str) -> Option<Self> {
        let (dst, protocol) = rest.split_once(' ')?;
        let protocol = protocol_of(protocol)?;
        let key = match (src.parse::<SocketAddr>(), dst.parse::<SocketAddr>()) {
            (Ok(src), Ok(dst)) => {
                Self { src_port: src.port(), dst_port: dst.port(), ..Self::pair(src.ip(), dst.ip())? }
            }
            _ => Self::pair(address_of(src)?, address_of(dst)?)?,
        };
        Some(Self { protocol, ..key })
    }

    /// Two addresses of one family.
    fn pair(src: IpAddr, dst: IpAddr) -> Option<Self> {
        let (src, dst) = (Self::from_source(src), Self::from_source(dst));
        (src.family == dst.family).then_some(Self { dst: dst.src, ..src })
    }

    fn from_source(address: IpAddr) -> Self {
        let (src, family) = match address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), Family::V4),
            IpAddr::V6(address) => (address.to_bits(), Family::V6),
        };
        Self { src, family, ..Self::default() }
    }

    /// `02:00:00:00:00:01` and `02:00:00:00:00:02 ARP`, or the EtherType alone.
    fn between_stations(src: &str, rest: &str) -> Option<(Granularity, Self)> {
        let src = station_of(src)?;
        if let Some(ethertype) = ethertype_of(rest) {
            return Some((Granularity::Source(Prefixes::WHOLE), Self { src, ethertype, ..Self::default() }));
        }
        let (_, key) = Self::to_station(rest)?;
        Some((Granularity::FiveTuple, Self { src, ..key }))
    }

    /// `02:00:00:00:00:02 ARP`.
    fn to_station(text: &str) -> Option<(Granularity, Self)> {
        let (dst, what) = text.split_once(' ')?;
        let (dst, ethertype) = (station_of(dst)?, ethertype_of(what)?);
        Some((Granularity::Destination(Prefixes::WHOLE), Self { dst, ethertype, ..Self::default() }))
    }
}

/// The name of frames without a VLAN tag.
const UNTAGGED: &str = "untagged";
/// Prefixes of the names of classes of service.
const IPV4: &str = "ipv4";
const IPV6: &str = "ipv6";

/// An address in the notation of its family.
#[derive(Clone, Copy)]
struct Address(u128, bool);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.1 { Ipv6Addr::from(self.0).fmt(f) } else { Ipv4Addr::from(self.0 as u32).fmt(f) }
    }
}

fn address_of(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// An address with a prefix length, as the source of a key.
fn prefix_of(text: &str) -> Option<(FlowKey, Prefixes)> {
    let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
    let key = FlowKey::from_source(address_of(address)?);
    let whole = if key.family == Family::V6 { 128 } else { 32 };
    let bits = bits.map_or(Some(whole), plain).filter(|bits| *bits <= whole)?;
    let prefixes = match key.family {
        Family::V6 => Prefixes { v6: bits, ..Prefixes::WHOLE },
        _ => Prefixes { v4: bits, ..Prefixes::WHOLE },
    };
    Some((key, prefixes))
}

/// A number that consists of digits only.
fn plain<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The name of a frame without a readable network header: its EtherType and MAC addresses.
fn link_name(granularity: Granularity, key: &FlowKey) -> String {
    let what = ethertype_name(key.ethertype);
    match (granularity, key.src, key.dst) {
        (_, 0, 0) | (Granularity::Dscp, ..) => what,
        (Granularity::Source(_), src, _) => format!("{} > {what}", station(src)),
        (Granularity::Destination(_), _, dst) => format!("> {} {what}", station(dst)),
        (_, src, dst) => format!("{} > {} {what}", station(src), station(dst)),
    }
}

fn station(address: u128) -> String {
    let bytes = (address as u64).to_be_bytes();
    bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

fn station_of(text: &str) -> Option<u128> {
    let byte = |part: &str| {
        let digits = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        u8::from_str_radix(part, 16).ok().filter(|_| digits)
    };
    let bytes = text.split(':').map(byte).collect::<Option<Vec<_>>>().filter(|bytes| bytes.len() == 6)?;
    Some(bytes.into_iter().fold(0, |address, byte| address << 8 | u128::from(byte)))
}

/// EtherTypes with names. Of several with the same name, the lowest comes first.
const ETHERTYPES: [(u16, &str); 10] = [
    (0, "not IP"),
    (0x0806, "ARP"),
    (0x8100, "VLAN tag"),
    (0x88a8, "VLAN tag"),
    (0x8847, "MPLS"),
    (0x8848, "MPLS"),
    (0x8863, "PPPoE discovery"),
    (0x8864, "PPPoE session"),
    (0x888e, "EAPOL"),
    (0x88cc, "LLDP"),
];
/// Values from here on are EtherTypes; smaller ones are lengths.
const LEAST_ETHERTYPE: u16 = 0x0600;
const LLC: &str = "LLC";

fn ethertype_name(ethertype: u16) -> String {
    match ETHERTYPES.iter().find(|(number, _)| *number == ethertype) {
        Some((_, name)) => (*name).to_owned(),
        None if ethertype < LEAST_ETHERTYPE => LLC.to_owned(),
        None => format!("EtherType {ethertype:#06x}"),
    }
}

fn ethertype_of(text: &str) -> Option<u16> {
    match ETHERTYPES.iter().find(|(_, name)| *name == text) {
        Some((number, _)) => Some(*number),
        None if text == LLC => Some(1),
        None => u16::from_str_radix(text.strip_prefix("EtherType 0x")?, 16).ok(),
    }
}

/// IP protocols with names.
const PROTOCOLS: [(u8, &str); 15] = [
    (0, "hopopt"),
    (1, "icmp"),
    (2, "igmp"),
    (4, "ipip"),
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (41, "ipv6"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmp6"),
    (89, "ospf"),
    (132, "sctp"),
    (136, "udplite"),
];

/// The usual name of an IP protocol number, or the number.
fn protocol_name(protocol: u8) -> String {
    let known = PROTOCOLS.iter().find(|(number, _)| *number == protocol);
    known.map_or_else(|| format!("proto {protocol}"), |(_, name)| (*name).to_owned())
}

fn protocol_of(text: &str) -> Option<u8> {
    let known = PROTOCOLS.iter().find(|(_, name)| *name == text);
    known.map_or_else(|| plain(text.strip_prefix("proto ")?), |(number, _)| Some(*number))
}

/// The usual name of a codepoint (RFC 2474, 2597, 3246, 8622), or the number.
fn dscp_name(dscp: u8) -> String {
    match dscp {
        0 => "best effort".to_owned(),
        1 => "le".to_owned(),
        44 => "va".to_owned(),
        46 => "ef".to_owned(),
        n if n % 8 == 0 => format!("cs{}", n / 8),
        n if n % 2 == 0 && (10..=38).contains(&n) => format!("af{}{}", n / 8, n % 8 / 2),
        n => format!("dscp {n}"),
    }
}

fn dscp_of(text: &str) -> Option<u8> {
    (0..64).find(|dscp| dscp_name(*dscp) == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::granularity;
    use proptest::prelude::*;

    #[test]
    fn names_are_what_an_operator_writes() {
        let [src, dst] = [[10, 0, 0, 1], [10, 0, 1, 7]].map(|octets| u128::from(u32::from_be_bytes(octets)));
        let family = Family::V4;
        let key = FlowKey {
            src,
            dst,
            src_port: 443,
            dst_port: 50010,
            protocol: 6,
            family,
            vlan: 7,
            dscp: 46,
            ..FlowKey::default()
        };
        let name = |text: &str| {
            let granularity: Granularity = text.parse().unwrap();
            granularity.name(&granularity.project(&key))
        };
        assert_eq!(name("5tuple"), "10.0.0.1:443 > 10.0.1.7:50010 tcp");
        assert_eq!(name("conn"), "10.0.0.1:443 <> 10.0.1.7:50010 tcp");
        assert_eq!(name("src-dst"), "10.0.0.1 > 10.0.1.7");
        assert_eq!(name("src"), "10.0.0.1 >");
        assert_eq!(name("dst/24"), "> 10.0.1.0/24");
        assert_eq!(name("dst/0"), "> 0.0.0.0/0");
        assert_eq!(name("dscp"), "ipv4 ef");
        assert_eq!(name("vlan"), "vlan 7");
    }

    #[test]
    fn text_that_is_not_a_flow_name_gives_none() {
        for text in [
            "",
            "A",
            "10.0.0.1",
            "10.0.0.1:443",
            "10.0.0.1:443 > 10.0.1.7:50010",
            "10.0.0.1:443 > 10.0.1.7:50010 carrier pigeon",
            "10.0.0.1:443 > 10.0.1.7 tcp",
            "10.0.0.1 > 2001:db8::1",
            "10.0.0.1:443 > 10.0.1.7:70000 tcp",
            "> 10.0.0.0/33",
            "> 10.0.0.0/+8",
            "vlan",
            "vlan x",
            "ipv4 nonsense",
            "02:00:00:00:00:01 > 02:00:00:00:00:02",
            "02:00:00:00:00 > 02:00:00:00:00:02 ARP",
            "proto 300",
            " > ",
            ">",
        ] {
            assert_eq!(FlowKey::named(text), None, "{text}");
        }
    }

    fn key() -> impl Strategy<Value = FlowKey> {
        let ethertype = prop_oneof![
            Just(0),
            1..LEAST_ETHERTYPE,
            LEAST_ETHERTYPE..,
            prop::sample::select(&ETHERTYPES[..]).prop_map(|(number, _)| number)
        ];
        let port = || prop_oneof![Just(0), any::<u16>()];
        let numbers = (port(), port(), 0..4096u16, any::<u8>(), 0..64u8);
        let family = prop_oneof![Just(Family::V4), Just(Family::V6), Just(Family::Link)];
        (any::<[u128; 2]>(), numbers, family, ethertype).prop_map(
            |(addresses, (src_port, dst_port, vlan, protocol, dscp), family, ethertype)| {
                let bits = match family {
                    Family::Link => 48,
                    Family::V4 => 32,
                    Family::V6 => 128,
                };
                let [src, dst] = addresses.map(|address| address >> (128 - bits));
                let key = FlowKey { src, dst, vlan, dscp, family, ..FlowKey::default() };
                match family {
                    Family::Link => FlowKey { ethertype, ..key },
                    _ => FlowKey { src_port, dst_port, protocol, ..key },
                }
            },
        )
    }

    proptest! {
        #[test]
        fn a_name_leads_back_to_its_key(granularity in granularity(), key in key()) {
            let key = granularity.project(&key);
            let name = granularity.name(&key);
            let (read, found) = FlowKey::named(&name).expect("it is a name");
            prop_assert_eq!(read.name(&found), name);
            if key.family != Family::Link || granularity == Granularity::Vlan {
                prop_assert_eq!((found, read.project(&found)), (key, found));
            } else if granularity != Granularity::Dscp {
                // Several EtherTypes may have one name.
                prop_assert_eq!((found.src, found.dst, found.family), (key.src, key.dst, key.family));
            }
        }

        #[test]
        fn any_text_is_a_name_or_none(text in "\\PC{0,40}|[0-9a-f.:> <]{0,30}( tcp)?") {
            if let Some((granularity, key)) = FlowKey::named(&text) {
                let name = granularity.name(&key);
                prop_assert_eq!(FlowKey::named(&name), Some((granularity, key)));
            }
        }
    }
}
