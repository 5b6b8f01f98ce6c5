//! Finds the addresses of a frame's outermost IP header.

/// The part of each address that is shifted, and what else distinguishes flows.
pub struct AddressWords {
    /// Offsets of 32 bits of the source and of the destination: all of an IPv4 address, bits 32 to 63 of an IPv6 one
    /// (its subnet).
    pub words: [usize; 2],
    /// A digest of the rest of the five-tuple; equal for equal flows.
    pub rest: u64,
}

/// Finds them; `None` without a complete IP header.
pub fn find(link_type: u32, frame: &[u8]) -> Option<AddressWords> {
    let at = match link_type {
        0 | 108 => 4,
        1 => ethernet_payload(frame, 12)?,
        12 | 14 | 101 | 228 | 229 => 0,
        113 => ethernet_payload(frame, 14)?,
        276 => matches!(u16_at(frame, 0)?, 0x0800 | 0x86dd).then_some(20)?,
        _ => return None,
    };
    match frame.get(at)? >> 4 {
        4 => {
            let header = usize::from(frame[at] & 0x0f) * 4;
            frame.get(at..at + 20)?;
            let protocol = frame[at + 9];
            let first_fragment = u16_at(frame, at + 6)? & 0x1fff == 0;
            let ports = if first_fragment { ports(frame, protocol, at + header) } else { 0 };
            Some(AddressWords { words: [at + 12, at + 16], rest: digest(&[], protocol, ports, false) })
        }
        6 => {
            frame.get(at..at + 40)?;
            let protocol = frame[at + 6];
            let ports = ports(frame, protocol, at + 40);
            // The unchanged words: three of each address.
            let others = [&frame[at + 8..at + 12], &frame[at + 16..at + 28], &frame[at + 32..at + 40]].concat();
            Some(AddressWords { words: [at + 12, at + 28], rest: digest(&others, protocol, ports, true) })
        }
        _ => None,
    }
}

/// The offset of the payload whose EtherType is at `at`, after VLAN tags, MPLS labels and PPPoE.
fn ethernet_payload(frame: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match u16_at(frame, at)? {
            0x0800 | 0x86dd => return Some(at + 2),
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x8847 | 0x8848 => {
                let mut label = at + 2;
                while frame.get(label + 2)? & 1 == 0 {
                    label += 4;
                }
                return Some(label + 4);
            }
            0x8864 => return matches!(u16_at(frame, at + 8)?, 0x0021 | 0x0057).then_some(at + 10),
            _ => return None,
        }
    }
}

/// Both ports, if the protocol has them and they were captured.
fn ports(frame: &[u8], protocol: u8, at: usize) -> u32 {
    let has_ports = matches!(protocol, 6 | 17 | 33 | 132 | 136);
    let both = frame.get(at..at + 4).filter(|_| has_ports).and_then(|bytes| bytes.try_into().ok());
    both.map_or(0, u32::from_be_bytes)
}

fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// FNV-1a; only equality matters.
fn digest(address_parts: &[u8], protocol: u8, ports: u32, v6: bool) -> u64 {
    let tail = [protocol, u8::from(v6)];
    let bytes = address_parts.iter().chain(&tail).copied().chain(ports.to_be_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
