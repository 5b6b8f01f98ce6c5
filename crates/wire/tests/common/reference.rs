//! An Ethernet frame's key by etherparse: the independent reference of the tests, and the rival in the benchmark.

use etherparse::{LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, LinkSlice, TransportSlice};
use queuescope_wire::{Family, FlowKey};

/// The key of an Ethernet frame whose headers were fully captured. etherparse follows VLAN tags, IP with options and
/// extension headers, TCP and UDP.
pub fn key(data: &[u8]) -> FlowKey {
    let Ok(packet) = LaxSlicedPacket::from_ethernet(data) else { return FlowKey::default() };
    let vlan = packet.link_exts.iter().find_map(|extension| match extension {
        LaxLinkExtSlice::Vlan(tag) => Some(tag.vlan_identifier().value()),
        LaxLinkExtSlice::Macsec(_) => None,
    });
    let mut key = FlowKey { vlan: vlan.unwrap_or(0), ..FlowKey::default() };
    match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            key.src = u128::from(u32::from_be_bytes(header.source()));
            key.dst = u128::from(u32::from_be_bytes(header.destination()));
            key.dscp = header.dcp().value();
            key.protocol = ip.payload().ip_number.0;
            key.family = Family::V4;
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            key.src = u128::from_be_bytes(header.source());
            key.dst = u128::from_be_bytes(header.destination());
            key.dscp = header.dscp().value();
            key.protocol = ip.payload().ip_number.0;
            key.family = Family::V6;
        }
        _ => {
            if let Some(LinkSlice::Ethernet2(link)) = &packet.link {
                let mac = |bytes: [u8; 6]| bytes.iter().fold(0, |mac, byte| mac << 8 | u128::from(*byte));
                (key.src, key.dst) = (mac(link.source()), mac(link.destination()));
                key.ethertype = link.ether_type().0;
            }
        }
    }
    match &packet.transport {
        Some(TransportSlice::Tcp(tcp)) => (key.src_port, key.dst_port) = (tcp.source_port(), tcp.destination_port()),
        Some(TransportSlice::Udp(udp)) => (key.src_port, key.dst_port) = (udp.source_port(), udp.destination_port()),
        _ => {}
    }
    key
}
