//! Super-packets: what segmentation offload hands over as one, the wire carries as many.

use super::Frame;

/// The packets that a super-packet becomes on the wire; each repeats the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// How many packets; at least two.
    pub count: u32,
    /// Bytes on the wire of each packet but the last.
    pub full: u32,
    /// Bytes on the wire of the last packet.
    pub last: u32,
}

impl Segments {
    /// Bytes on the wire of each packet, in the order they are sent.
    pub fn sizes(self) -> impl Iterator<Item = u32> {
        (1..=self.count).map(move |number| if number == self.count { self.last } else { self.full })
    }

    /// Bytes on the wire of all packets together.
    pub fn total(self) -> u64 {
        u64::from(self.full) * u64::from(self.count - 1) + u64::from(self.last)
    }
}

impl Frame {
    /// The packets that this frame becomes on a link whose largest network packet is `mtu` bytes (1500 on Ethernet),
    /// if it is a super-packet there: TCP or UDP, whole, and larger than `mtu`. The segment size that the sender chose
    /// does not stand in a capture; the largest that fits is taken, as TCP does.
    pub fn segments(&self, mtu: u32) -> Option<Segments> {
        if !self.splittable || self.network_length <= mtu {
            return None;
        }
        let headers = u32::from(self.headers);
        let per_packet = mtu.checked_sub(headers.checked_sub(u32::from(self.link_header))?).filter(|&most| most > 0)?;
        let payload = (u32::from(self.link_header) + self.network_length).checked_sub(headers)?;
        let count = payload.div_ceil(per_packet);
        let last = payload - (count.checked_sub(1)?) * per_packet;
        (count > 1).then_some(Segments { count, full: headers + per_packet, last: headers + last })
    }
}
