//! Ports, and where the payload starts.

use super::bytes::chunk;
use super::network::{Chain, Network};

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

/// What the parser found in a transport header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transport {
    pub src_port: u16,
    pub dst_port: u16,
    /// Offset of the transport's payload; if the header is cut, its offset without options.
    pub end: usize,
    /// Whether the protocol has ports and they were not captured.
    pub missing: bool,
}

impl Transport {
    /// Parses the header after `network`, if it can be located.
    #[inline]
    pub fn new(network: &Network, data: &[u8]) -> Self {
        if network.starts_payload() {
            return Self::read(network.protocol, data, network.at);
        }
        Self { src_port: 0, dst_port: 0, end: network.at, missing: network.chain != Chain::Whole }
    }

    /// Parses the header of `protocol` at `at`.
    #[inline]
    fn read(protocol: u8, data: &[u8], at: usize) -> Self {
        let length = match protocol {
            TCP => 20,
            UDP | UDP_LITE => 8,
            DCCP | SCTP => 12,
            _ => return Self { src_port: 0, dst_port: 0, end: at, missing: false },
        };
        let Some(&[s0, s1, d0, d1]) = chunk(data, at) else {
            return Self { src_port: 0, dst_port: 0, end: at + length, missing: true };
        };
        let length = match protocol {
            TCP => data.get(at + 12).map_or(length, |byte| (usize::from(byte >> 4) * 4).max(length)),
            _ => length,
        };
        let (src_port, dst_port) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        Self { src_port, dst_port, end: at + length, missing: false }
    }
}
