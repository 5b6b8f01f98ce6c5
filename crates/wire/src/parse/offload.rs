//! Super-packets: segmentation offload passes them as one packet, and the wire carries several.

use super::Frame;

/// The packets that a super-packet becomes on the wire. Each repeats the headers.
///
/// ```
/// use queuescope_wire::parse::Segments;
///
/// let segments = Segments { count: 3, full: 1514, last: 566 };
/// assert_eq!(segments.sizes().collect::<Vec<_>>(), [1514, 1514, 566]);
/// assert_eq!(segments.total(), 3594);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segments {
    /// Number of packets; at least two.
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
    /// Splits this frame into the packets that it becomes on a link whose largest network packet is `mtu` bytes (1500
    /// on Ethernet). Returns none if the frame is not a super-packet there: TCP or UDP, not a fragment, and larger than
    /// `mtu`. A capture does not contain the segment size that the sender chose, so the largest that fits is assumed,
    /// as TCP would choose.
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
