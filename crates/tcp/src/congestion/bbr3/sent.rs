//! What was in flight, and lost, when packets were sent.
//!
//! Samples identify a packet by the bytes that had been delivered when it was sent. Of packets with the same number the
//! last one counts: they were sent with the same ACK.

use std::collections::VecDeque;

/// The largest number of records. More ACKs are never under way on any path.
const MOST: usize = 1 << 16;

/// Records of sent packets, in the order of sending.
#[derive(Debug, Clone, Default)]
pub(super) struct SentRecords(VecDeque<SentRecord>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SentRecord {
    delivered: u64,
    /// The bytes in flight, with the packet.
    pub in_flight: u64,
    /// All bytes found lost until then.
    pub lost: u64,
}

impl SentRecords {
    /// A packet is sent after `delivered` bytes were delivered.
    #[inline]
    pub fn push(&mut self, delivered: u64, in_flight: u64, lost: u64) {
        let record = SentRecord { delivered, in_flight, lost };
        match self.0.back_mut() {
            Some(last) if last.delivered >= delivered => *last = SentRecord { delivered: last.delivered, ..record },
            _ => {
                if self.0.len() == MOST {
                    self.0.pop_front();
                }
                self.0.push_back(record);
            }
        }
    }

    /// That of a packet sent after `delivered` bytes were delivered. Earlier packets are forgotten; for those, the oldest
    /// record is the nearest.
    #[inline]
    pub fn find(&mut self, delivered: u64) -> Option<SentRecord> {
        while self.0.get(1).is_some_and(|next| next.delivered <= delivered) {
            self.0.pop_front();
        }
        self.0.front().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_of_a_packet_is_found() {
        let mut sent = SentRecords::default();
        assert_eq!(sent.find(0), None);
        for (delivered, in_flight, lost) in [(0, 1, 0), (0, 2, 0), (3, 4, 1), (5, 6, 2)] {
            sent.push(delivered, in_flight, lost);
        }
        for (delivered, in_flight, lost) in [(0, 2, 0), (2, 2, 0), (3, 4, 1), (1, 4, 1), (9, 6, 2)] {
            let found = sent.find(delivered).unwrap();
            assert_eq!((found.in_flight, found.lost), (in_flight, lost), "{delivered}");
        }
    }

    #[test]
    fn there_are_never_too_many() {
        let mut sent = SentRecords::default();
        for delivered in 0..3 * MOST as u64 {
            sent.push(delivered, delivered, 0);
        }
        assert_eq!((sent.0.len(), sent.find(0).unwrap().in_flight), (MOST, 2 * MOST as u64));
    }
}
