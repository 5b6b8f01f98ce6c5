//! Packets that passed a queue as records of the schema `queued`: their headers, and what the queue did to them.

use super::{Schema, packet};
use queuescope_wire::{Departure, Ecn};

/// Size of a record in bytes.
pub const SIZE: usize = HEADERS + 76;

/// The first bytes of a record are a record of the schema `packet`.
const HEADERS: usize = packet::SIZE;

/// The value of `dropped` for a packet that was not dropped.
pub const LEFT: u8 = 0;
/// The value of `dropped` for a packet that a switch reported as dropped: its reasons are of its own list.
pub const REPORTED: u8 = 255;

/// Where a packet was, if a switch reported it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The identifier of the switch; 0 for the host that records.
    pub switch: u32,
    /// Its egress interface; 0 if it is not known.
    pub port: u16,
}

/// The schema of the records.
pub fn schema() -> &'static Schema {
    Schema::queued()
}

/// Fills `record` with a packet that left a queue; `headers` is a record of the schema `packet`. All earlier contents are overwritten.
/// For a dropped packet, `dropped` is the schema's number of the reason, and the departure is the time of
/// the drop, without backlog. Places of packets count from 1; counts of packets in a queue saturate at 32 bits. The
/// number of the flow is the packet's `FlowId`: a caller that reuses ids while records are kept must assign numbers of its own.
///
/// ```
/// use queuescope_log::{Schema, packet, queued};
/// use queuescope_wire::{Departure, Nanos};
///
/// let headers = [0; packet::SIZE]; // the packet's own record
/// let left = Departure { enqueued: Nanos(1_000), dequeued: Nanos(5_000), ..Departure::default() };
/// let mut record = [0; queued::SIZE];
/// queued::fill(&mut record, &headers, &left, queued::LEFT);
/// let delay = Schema::queued().find("delay").ok_or("unknown attribute")?;
/// assert_eq!(Schema::queued().key(delay, &record), 4_000);
/// # Ok::<(), &str>(())
/// ```
pub fn fill(record: &mut [u8; SIZE], headers: &[u8; HEADERS], departure: &Departure, dropped: u8) {
    let Departure { packet, queue, enqueued, dequeued, backlog_in, backlog_out } = departure;
    let (first, rest) = record.split_at_mut(HEADERS);
    first.copy_from_slice(headers);
    let mut put = |at: usize, bytes: &[u8]| rest[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &enqueued.0.to_le_bytes());
    put(8, &dequeued.0.to_le_bytes());
    put(16, &departure.sojourn().0.to_le_bytes());
    put(24, &packet.id.0.saturating_add(1).to_le_bytes());
    put(32, &backlog_in.bytes.0.to_le_bytes());
    put(40, &backlog_out.bytes.0.to_le_bytes());
    put(48, &low_word(backlog_in.packets));
    put(52, &low_word(backlog_out.packets));
    put(56, &low_word(packet.size.0));
    put(60, &packet.flow.0.to_le_bytes());
    put(64, &queue.0.to_le_bytes());
    put(66, &[packet.class.0, ecn_bits(packet.ecn), dropped]);
    put(69, &[0; 7]);
}

/// Writes into a record that was filled where the packet was, and whether its times are those of the queue's clock. If not, only its wait is known, and
/// the times are of the arrival of the report.
///
/// ```
/// use queuescope_log::{Schema, queued};
///
/// let mut record = [0; queued::SIZE];
/// queued::fill_place(&mut record, queued::Place { switch: 7, port: 3 }, true);
/// let switch = Schema::queued().find("switch").ok_or("unknown attribute")?;
/// assert_eq!(Schema::queued().key(switch, &record), 7);
/// # Ok::<(), &str>(())
/// ```
pub fn fill_place(record: &mut [u8; SIZE], place: Place, is_timed: bool) {
    let rest = &mut record[HEADERS + 69..];
    rest[..4].copy_from_slice(&place.switch.to_le_bytes());
    rest[4..6].copy_from_slice(&place.port.to_le_bytes());
    rest[6] = u8::from(!is_timed);
}

/// The codepoint as in the IP header.
pub(super) fn ecn_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0,
        Ecn::Ect1 => 1,
        Ecn::Ect0 => 2,
        Ecn::Ce => 3,
    }
}

pub(super) fn low_word(count: u64) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes()
}
