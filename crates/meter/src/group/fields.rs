//! The fields of a key as dimensions of the lattice: the values of a key in each, and their information content.

use super::GroupParams;
use super::pattern::Subnet;
use queuescope_wire::{Family, FlowKey, Granularity};
use std::ops::Range;

/// The number of prefixes of an address that are examined, besides the whole address.
pub(super) const PREFIXES: usize = 3;

/// A *slot* is a field at one level of its hierarchy; a *dimension* is a field, with its slots from coarse to fine.
pub(super) const DIMENSIONS: [Range<usize>; 5] = [0..4, 4..8, 8..9, 9..10, 10..11];
/// The dimensions of the addresses and ports.
pub(super) const ENDS: [usize; 4] = [0, 1, 2, 3];
/// The dimensions of both ends of a connection; a connection has a value if either end has it.
pub(super) const BOTH_ENDS: [[usize; 2]; 2] = [[0, 1], [2, 3]];
pub(super) const SLOTS: usize = 11;
pub(super) const DST: usize = 3;
pub(super) const SRC: usize = 7;
pub(super) const DST_PORT: usize = 8;
pub(super) const SRC_PORT: usize = 9;
pub(super) const PROTOCOL: usize = 10;

/// The information content of a whole address, a port, and a protocol, in bits. The protocol counts less, because it mostly is TCP.
pub(super) const ADDRESS_BITS: f64 = 32.0;
pub(super) const PORT_BITS: f64 = 16.0;
pub(super) const PROTOCOL_BITS: f64 = 2.0;
/// A key with fewer bits is not worth a row.
pub(super) const LEAST_BITS: f64 = 4.0;
/// Both whole addresses.
pub(super) const FLOW_BITS: f64 = 64.0;

/// For each dimension the required slot and item, if any. Items are numbered from 1 in each slot.
pub(super) type Picks = [Option<(usize, u16)>; DIMENSIONS.len()];

/// The value of a slot: the kind of address, the value, and the number of its significant bits.
pub(super) type Value = (Family, u128, u8);

/// For each slot and item, the share of the flows that have it.
pub(super) type Common = [Vec<f64>; SLOTS];

/// The information content of a key: the bits of what it requires. A coarse value counts less the more flows have it anyway. A
/// prefix counts half its bits, because it is not an endpoint.
pub(super) fn bits(items: &[Vec<Value>; SLOTS], picks: &Picks, common: &Common) -> f64 {
    let part = |(slot, item): (usize, u16)| {
        let rare = 1.0 - common[slot].get(usize::from(item)).copied().unwrap_or(1.0);
        let (family, length) =
            items[slot].get(usize::from(item) - 1).map_or((Family::V4, 0), |(family, _, length)| (*family, *length));
        match slot {
            DST | SRC => ADDRESS_BITS,
            DST_PORT | SRC_PORT => PORT_BITS * rare,
            PROTOCOL => PROTOCOL_BITS * rare,
            // 64 bits of an IPv6 address identify a subnet, as 32 bits of an IPv4 address identify a host.
            // A subnet's prefix is common if the group is most of the burst, which is no reason not to name it.
            _ if family == Family::V6 => {
                f64::from(length.min(64)) / 4.0 * if length >= 64 { rare.max(0.5) } else { rare }
            }
            _ => f64::from(length) / 2.0 * if length >= 24 { rare.max(0.5) } else { rare },
        }
    };
    picks.iter().flatten().copied().map(part).sum()
}

pub(super) fn is_prefix(slot: usize) -> bool {
    slot < SRC && slot != DST
}

pub(super) fn has_address(picks: &Picks) -> bool {
    picks.iter().flatten().any(|(slot, _)| *slot == DST || *slot == SRC)
}

/// The value of a key in a slot, if it has the field.
pub(super) fn value(key: &FlowKey, slot: usize, granularity: Granularity, params: &GroupParams) -> Option<Value> {
    let ports = matches!(granularity, Granularity::FiveTuple | Granularity::Connection);
    match slot {
        DST_PORT | SRC_PORT => {
            let port = if slot == DST_PORT { key.dst_port } else { key.src_port };
            (ports && port > 0).then_some((Family::V4, port.into(), 16))
        }
        PROTOCOL if !ports => None,
        PROTOCOL if key.family == Family::Link => {
            (key.ethertype > 0).then_some((Family::Link, key.ethertype.into(), 16))
        }
        PROTOCOL => Some((Family::V4, key.protocol.into(), 8)),
        _ => {
            let whole = Subnet::whole_length(key.family);
            let of_family = |v4: u8, v6: u8| match key.family {
                Family::Link => whole,
                Family::V4 => v4,
                Family::V6 => v6,
            };
            let (address, whole) = match granularity {
                Granularity::Dscp | Granularity::Vlan => return None,
                Granularity::Source(bits) if slot > DST => (key.src, of_family(bits.v4, bits.v6)),
                Granularity::Destination(bits) if slot <= DST => (key.dst, of_family(bits.v4, bits.v6)),
                Granularity::Source(_) | Granularity::Destination(_) => return None,
                _ if slot <= DST => (key.dst, whole),
                _ => (key.src, whole),
            };
            let length = if slot == DST || slot == SRC {
                whole
            } else {
                let lengths = match key.family {
                    Family::Link => return None,
                    Family::V4 => &params.v4,
                    Family::V6 => &params.v6,
                };
                *lengths.get(slot % (PREFIXES + 1)).filter(|length| **length < whole)?
            };
            (length > 0).then(|| (key.family, Subnet::new(key.family, address, length).address, length))
        }
    }
}
