//! What the flows of a group have in common, and its text form.

use super::Group;
use crate::Amount;
use queuescope_wire::{Family, FlowKey, Granularity};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// What flows have in common. A field that is `None` differs between the flows, or is not part of their keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// The destination or its subnet. For connections, the near end, which is the busier one; for an overlap, either end.
    pub dst: Option<Subnet>,
    /// The source or its subnet. For connections, the far end.
    pub src: Option<Subnet>,
    /// The destination port.
    pub dst_port: Option<u16>,
    /// The source port.
    pub src_port: Option<u16>,
    /// The transport protocol.
    pub protocol: Option<u8>,
    /// The EtherType of frames without an IP header.
    pub ethertype: Option<u16>,
    /// Whether the flows are connections; then a flow fits in either direction.
    pub connections: bool,
}

/// An address or a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subnet {
    /// The kind of address.
    pub family: Family,
    /// The address; bits after the prefix are zero.
    pub address: u128,
    /// The prefix length: 32, 128 or (MAC) 48 for a whole address.
    pub length: u8,
}

impl Pattern {
    /// Whether a flow fits the pattern.
    pub fn fits(&self, key: &FlowKey) -> bool {
        self.fits_as_it_is(key) || self.connections && self.fits_as_it_is(&super::turned(*key))
    }

    /// Whether a key fits in its own direction.
    pub(super) fn fits_as_it_is(&self, key: &FlowKey) -> bool {
        self.dst.is_none_or(|subnet| subnet.holds(key.family, key.dst))
            && self.src.is_none_or(|subnet| subnet.holds(key.family, key.src))
            && self.dst_port.is_none_or(|port| port == key.dst_port)
            && self.src_port.is_none_or(|port| port == key.src_port)
            && self.protocol.is_none_or(|protocol| key.family != Family::Link && protocol == key.protocol)
            && self.ethertype.is_none_or(|ethertype| key.family == Family::Link && ethertype == key.ethertype)
    }
}

impl Subnet {
    /// The subnet with a prefix of `length` bits that contains an address.
    pub fn new(family: Family, address: u128, length: u8) -> Self {
        let spare = Self::whole_length(family).saturating_sub(length);
        let address = address.checked_shr(spare.into()).and_then(|bits| bits.checked_shl(spare.into()));
        Self { family, address: address.unwrap_or(0), length }
    }

    /// The number of bits of an address.
    pub fn whole_length(family: Family) -> u8 {
        match family {
            Family::Link => 48,
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// Whether it is a single address.
    pub fn is_whole(&self) -> bool {
        self.length == Self::whole_length(self.family)
    }

    /// Whether it contains an address.
    pub fn holds(&self, family: Family, address: u128) -> bool {
        family == self.family && Self::new(family, address, self.length) == *self
    }
}

/// `10.0.0.7`, `10.0.0.0/24`, `2001:db8::/32`, `02:00:00:00:00:01`.
impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.family {
            Family::V4 => write!(f, "{}", Ipv4Addr::from(self.address as u32))?,
            Family::V6 => write!(f, "{}", Ipv6Addr::from(self.address))?,
            Family::Link => {
                let bytes = (self.address as u64).to_be_bytes();
                let bytes = bytes[2..].iter().map(|byte| format!("{byte:02x}"));
                write!(f, "{}", bytes.collect::<Vec<_>>().join(":"))?;
            }
        }
        if self.is_whole() { Ok(()) } else { write!(f, "/{}", self.length) }
    }
}

impl Group {
    /// The group in one line: `41 sources to 10.0.0.7:50010 (TCP)`, `10.1.2.3 to 130 destinations, port 443 (TCP)`. A
    /// single flow has its usual name. A remainder says so: `989 other sources in 10.1.0.0/16 to 10.0.0.7`, `10.1.2.3 to 130 other destinations`.
    pub fn reading(&self, granularity: Granularity) -> String {
        if let Some(flow) = &self.flow {
            return granularity.name(flow);
        }
        let Pattern { dst, src, dst_port, src_port, .. } = self.pattern;
        let plain = ["source", "destination"];
        let [near, far] = if self.pattern.connections { ["host", "host"] } else { plain };
        let least = if self.error == Amount::default() { "" } else { "at least " };
        let other = if self.remainder { "other " } else { "" };
        let is_one = |end: Option<Subnet>| end.is_some_and(|end| end.is_whole());
        // The first number says it.
        let other_far = if is_one(src) || matches!(granularity, Granularity::Destination(_)) { other } else { "" };
        let source = side(src, src_port, &(least.to_owned() + &counted(self.sources, other, near)));
        let destination = side(dst, dst_port, &(least.to_owned() + &counted(self.destinations, other_far, far)));
        // Separates a port after a number of sources on both sides.
        let comma = if src_port.is_some() && !is_one(src) { "," } else { "" };
        let mut text = match granularity {
            Granularity::Source(_) => source,
            Granularity::Destination(_) => destination,
            Granularity::Connection => format!("{source}{comma} with {destination}"),
            Granularity::FiveTuple | Granularity::Pair => format!("{source}{comma} to {destination}"),
            Granularity::Dscp | Granularity::Vlan => counted(self.weight.flows, other, "class"),
        };
        if let Some(protocol) = self.pattern.protocol {
            text.push_str(&format!(" ({})", protocol_name(protocol)));
        }
        if let Some(ethertype) = self.pattern.ethertype {
            text.push_str(&format!(" (EtherType {ethertype:#06x})"));
        }
        // If both ends are single addresses, only the number of flows shows that it is a group.
        if [src, dst].into_iter().all(is_one) {
            text.push_str(&format!(
                ", {}{}",
                if least.is_empty() { "" } else { "about " },
                counted(self.weight.flows, other, "flow")
            ));
        }
        text
    }
}

/// One end; `many` is used if it is not a single address.
fn side(subnet: Option<Subnet>, port: Option<u16>, many: &str) -> String {
    match (subnet, port) {
        (Some(subnet), None) if subnet.is_whole() => subnet.to_string(),
        (Some(subnet), Some(port)) if subnet.is_whole() && subnet.family == Family::V6 => format!("[{subnet}]:{port}"),
        (Some(subnet), Some(port)) if subnet.is_whole() => format!("{subnet}:{port}"),
        (subnet, port) => {
            let subnet = subnet.map_or(String::new(), |subnet| format!(" in {subnet}"));
            let port = port.map_or(String::new(), |port| format!(", port {port}"));
            format!("{many}{subnet}{port}")
        }
    }
}

fn counted(count: u64, other: &str, noun: &str) -> String {
    let plural = match (count, noun) {
        (1, _) => "",
        (_, "class") => "es",
        _ => "s",
    };
    format!("{count} {other}{noun}{plural}")
}

fn protocol_name(number: u8) -> String {
    let name = match number {
        1 => "ICMP",
        6 => "TCP",
        17 => "UDP",
        33 => "DCCP",
        47 => "GRE",
        50 => "ESP",
        58 => "ICMPv6",
        132 => "SCTP",
        other => return format!("IP protocol {other}"),
    };
    name.to_owned()
}
