//! The payload of a datagram with reports.

use super::report::TelemetryReport;
use super::{MalformedReport, WORD};
use crate::parse::bytes::chunk;

/// The version of reports that is read.
const VERSION: u8 = 2;
/// Bytes of the group header.
const GROUP: usize = 8;
/// The report length that stands for everything up to the end of the payload.
const TO_THE_END: usize = 0xff;

/// The header that all reports of a datagram share (TRF section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupHeader {
    /// The part of the node that sent the reports, such as a line card. 6 bits.
    pub hardware: u8,
    /// Counts the reports of this node and hardware to this collector, modulo 2^22: a gap shows that some were lost.
    pub sequence: u32,
    /// The node, unique within its domain.
    pub node: u32,
}

/// The reports in the payload of a UDP datagram (TRF sections 3.2 and 3.3), in order.
///
/// A report whose contents are malformed is an error, and the next one is read all the same. After a report whose length
/// exceeds the payload there is no next one. The port of these datagrams is configured at the nodes, so a caller knows it;
/// [`Frame::payload`](crate::parse::Frame::payload) has the payload of a captured frame.
///
/// ```
/// use queuescope_wire::telemetry::{MalformedReport, Reports};
///
/// // Two reports that have no contents, and half a header.
/// let payload = [0x20, 0x40, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0x80, 0, 0, 0, 0x40, 0x14, 11];
/// let mut reports = Reports::read(&payload)?;
/// assert_eq!((reports.header().node, reports.header().hardware, reports.header().sequence), (7, 1, 1));
/// assert!(reports.next().ok_or("none")??.flags.dropped);
/// assert!(reports.next().ok_or("none")??.flags.congested);
/// assert_eq!(reports.next(), Some(Err(MalformedReport::CutHeader { at: 16, bytes: 2 })));
/// assert_eq!(reports.next(), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reports<'a> {
    header: GroupHeader,
    /// Offset of `left` in the payload.
    at: usize,
    left: &'a [u8],
}

impl<'a> Reports<'a> {
    /// Reads the group header of a UDP payload.
    ///
    /// # Errors
    /// Fails if the payload is too short for the group header and one report, or has another version.
    pub fn read(payload: &'a [u8]) -> Result<Self, MalformedReport> {
        let Some(&[first, n0, n1, n2, i0, i1, i2, i3]) = chunk::<GROUP>(payload, 0) else {
            return Err(MalformedReport::CutGroup { bytes: payload.len() });
        };
        if first >> 4 != VERSION {
            return Err(MalformedReport::Version { version: first >> 4 });
        }
        let word = u32::from_be_bytes([first, n0, n1, n2]);
        let header = GroupHeader {
            hardware: (word >> 22 & 0x3f) as u8,
            sequence: word & 0x003f_ffff,
            node: u32::from_be_bytes([i0, i1, i2, i3]),
        };
        match payload.get(GROUP..) {
            Some(left) if !left.is_empty() => Ok(Self { header, at: GROUP, left }),
            _ => Err(MalformedReport::NoReport),
        }
    }

    /// The header that the reports share.
    pub fn header(&self) -> &GroupHeader {
        &self.header
    }

    /// Ends the iteration.
    fn end(&mut self, why: MalformedReport) -> Option<Result<TelemetryReport<'a>, MalformedReport>> {
        self.left = &[];
        Some(Err(why))
    }
}

impl<'a> Iterator for Reports<'a> {
    type Item = Result<TelemetryReport<'a>, MalformedReport>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let at = self.at;
        let Some((header, body)) = self.left.split_first_chunk::<WORD>() else {
            return self.end(MalformedReport::CutHeader { at, bytes: self.left.len() });
        };
        let words = usize::from(header[1]);
        let stated = words * WORD;
        let length = if words == TO_THE_END { body.len().max(stated) } else { stated };
        let Some((body, left)) = body.split_at_checked(length) else {
            return self.end(MalformedReport::CutReport { at, stated, bytes: body.len() });
        };
        self.left = left;
        self.at += WORD + length;
        Some(TelemetryReport::read(self.header, *header, body, at))
    }
}

/// After the end, there is nothing.
impl std::iter::FusedIterator for Reports<'_> {}
