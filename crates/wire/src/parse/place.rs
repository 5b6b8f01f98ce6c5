//! Where the transport header of a packet is.

use super::LinkType;
use super::link::{Link, Payload};
use super::network::Network;
use crate::Family;

/// The place of a packet's transport header, and of the fields before it that state what follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub family: Family,
    pub dscp: u8,
    /// Offset of the network header.
    pub network: usize,
    /// Offset of the byte that has the transport protocol.
    pub protocol_at: usize,
    pub protocol: u8,
    /// Offset of the transport header.
    pub transport: usize,
    /// Offset of the packet's end, by the length in its header; none if that states no length.
    pub end: Option<usize>,
}

impl Place {
    /// Finds the transport header of the outermost packet in a frame of `original_len` bytes, if that is known; none if
    /// there is no packet, or if no transport header can be located in it (a later fragment, or headers that are cut or
    /// bad).
    pub fn find(link: LinkType, original_len: Option<u32>, data: &[u8]) -> Option<Self> {
        let link = Link::read(link, data);
        if !matches!(link.payload, Payload::Ip | Payload::PerhapsIp) {
            return None;
        }
        let network = Network::read(data, link.at).ok().filter(Network::starts_payload)?;
        let end = network.claimed.map(|length| link.at.saturating_add(length as usize));
        // What only looks like IP is not IP if it does not fit the frame.
        let longest = original_len.map_or(usize::MAX, |length| length as usize);
        if link.payload == Payload::PerhapsIp && end.is_some_and(|end| end > longest) {
            return None;
        }
        Some(Self {
            family: network.family,
            dscp: network.dscp,
            network: link.at,
            protocol_at: network.protocol_at,
            protocol: network.protocol,
            transport: network.at,
            end,
        })
    }
}
