//! Packets without a captured frame, such as simulated ones: known header fields as records.

use super::{HAS_IPV4, HAS_IPV6, HAS_TCP, HAS_UDP, SIZE, TCP, UDP, Writer, address};
use crate::schema::queued::ecn_bits;
use queuescope_wire::{Ecn, Family, FlowKey, Nanos};

/// The known header fields of a packet.
///
/// ```
/// use queuescope_log::{Schema, packet};
/// use queuescope_wire::{Ecn, FlowKey, Nanos};
///
/// let (_, key) = FlowKey::named("10.0.0.1:443 > 10.0.0.2:50010 tcp").ok_or("not a name")?;
/// let known = packet::Known { at: Nanos(7), length: 1500, key: &key, ecn: Ecn::Ce, tcp: None };
/// let mut record = [0; packet::SIZE];
/// packet::fill_known(&mut record, &known);
/// let schema = Schema::packet();
/// let ecn = schema.find("ecn").ok_or("unknown attribute")?;
/// assert_eq!(schema.attribute(ecn).text_of(schema.key(ecn, &record)), "CE");
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// When the packet was seen.
    pub at: Nanos,
    /// Bytes from its network header on; it has no header before that.
    pub length: u32,
    /// Its flow.
    pub key: &'a FlowKey,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// Its TCP header, if it has one.
    pub tcp: Option<Segment>,
}

/// The known fields of a TCP header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segment {
    /// The sequence number.
    pub seq: u32,
    /// The acknowledgement number.
    pub ack: u32,
    /// The control bits, as in the header.
    pub flags: u8,
    /// Length of the header with options, in words of four bytes.
    pub words: u8,
    /// Bytes behind the header.
    pub payload: u32,
}

/// Fills `record` with a packet without a captured frame. All earlier contents are overwritten. Unknown fields are
/// zero, including `captured`, because nothing was captured. For a packet that is not IP, only the time, the length and the ports are filled.
pub fn fill_known(record: &mut [u8; SIZE], known: &Known) {
    *record = [0; SIZE];
    let mut to = Writer { record, has: 0 };
    let Known { at, length, key, ecn, tcp } = known;
    to.put(0, at.0.to_le_bytes());
    to.put(8, length.to_le_bytes());
    let (version, ethertype) = match key.family {
        Family::V4 => (4, 0x0800),
        Family::V6 => (6, 0x86dd),
        Family::Link => (0, key.ethertype),
    };
    to.put(30, u16::to_le_bytes(ethertype));
    if key.family != Family::Link {
        to.has |= if version == 4 { HAS_IPV4 } else { HAS_IPV6 };
        to.put(40, address(key.src, key.family));
        to.put(56, address(key.dst, key.family));
        to.put(72, [version << 4, key.dscp << 2 | ecn_bits(*ecn)]);
        to.put(75, [key.protocol]);
        to.put(76, length.to_le_bytes());
    }
    to.put(92, key.src_port.to_le_bytes());
    to.put(94, key.dst_port.to_le_bytes());
    match (key.protocol, tcp) {
        (TCP, Some(Segment { seq, ack, flags, words, payload })) => {
            to.has |= HAS_TCP;
            to.put(96, seq.to_le_bytes());
            to.put(100, ack.to_le_bytes());
            to.put(104, [words << 4, *flags]);
            to.put(124, payload.to_le_bytes());
        }
        (UDP, _) => to.has |= HAS_UDP,
        _ => {}
    }
    to.put(16, to.has.to_be_bytes());
}

/// Writes into the record of a packet what distinguishes it from others of its flow, beside its TCP header: the identification of IPv4, and the length of its payload.
pub fn fill_identity(record: &mut [u8; SIZE], ip_id: u32, payload: u32) {
    let has = u16::from_be_bytes([record[16], record[17]]);
    let mut to = Writer { record, has };
    to.put(80, ip_id.to_le_bytes());
    to.put(124, payload.to_le_bytes());
}
