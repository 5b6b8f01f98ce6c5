//! Departures as records of the schema `departure`.

use super::Schema;
use super::queued::{ecn_bits, low_word};
use queuescope_wire::{Departure, Family, FlowKey};
use std::net::Ipv4Addr;

/// Size of a record in bytes.
pub const SIZE: usize = 123;

/// The schema of the records.
pub fn schema() -> &'static Schema {
    Schema::departure()
}

/// Fills `record` with a departure of the flow `key`. All earlier contents are overwritten.
/// Counts of packets in a queue saturate at 32 bits. The number of the flow is the
/// packet's `FlowId`: a caller that reuses ids while records are kept must assign numbers of its own.
///
/// ```
/// use queuescope_log::{Schema, departure};
/// use queuescope_wire::{ByteCount, Departure, FlowKey, Nanos, Packet};
///
/// let packet = Packet { size: ByteCount(1500), ..Packet::default() };
/// let left = Departure { packet, enqueued: Nanos(1_000), dequeued: Nanos(5_000), ..Departure::default() };
/// let mut record = [0; departure::SIZE];
/// departure::fill(&mut record, &left, &FlowKey { dst_port: 443, ..FlowKey::default() });
/// let value = |name: &str| Schema::departure().find(name).map(|id| Schema::departure().key(id, &record));
/// assert_eq!((value("delay"), value("length"), value("dst_port")), (Some(4_000), Some(1500), Some(443)));
/// ```
pub fn fill(record: &mut [u8; SIZE], departure: &Departure, key: &FlowKey) {
    let Departure { packet, queue, enqueued, dequeued, backlog_in, backlog_out } = departure;
    *record = [0; SIZE];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &enqueued.0.to_le_bytes());
    put(8, &dequeued.0.to_le_bytes());
    put(16, &departure.sojourn().0.to_le_bytes());
    put(24, &packet.id.0.to_le_bytes());
    put(32, &backlog_in.bytes.0.to_le_bytes());
    put(40, &backlog_out.bytes.0.to_le_bytes());
    put(48, &low_word(backlog_in.packets));
    put(52, &low_word(backlog_out.packets));
    put(56, &low_word(packet.size.0));
    let version = match key.family {
        Family::Link => {
            put(92, &key.src.to_be_bytes()[10..]);
            put(98, &key.dst.to_be_bytes()[10..]);
            0
        }
        Family::V4 => {
            put(60, &Ipv4Addr::from_bits(key.src as u32).to_ipv6_mapped().octets());
            put(76, &Ipv4Addr::from_bits(key.dst as u32).to_ipv6_mapped().octets());
            4
        }
        Family::V6 => {
            put(60, &key.src.to_be_bytes());
            put(76, &key.dst.to_be_bytes());
            6
        }
    };
    put(104, &key.src_port.to_le_bytes());
    put(106, &key.dst_port.to_le_bytes());
    put(108, &key.vlan.to_le_bytes());
    put(110, &key.ethertype.to_le_bytes());
    put(112, &queue.0.to_le_bytes());
    put(114, &[key.protocol, version, key.dscp]);
    put(117, &[ecn_bits(packet.ecn), packet.class.0]);
    put(119, &packet.flow.0.to_le_bytes());
}
