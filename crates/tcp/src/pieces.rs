//! Data out of order, segment by segment, as in ns-3 3.37 (`TcpRxBuffer::Add`). A segment that overlaps others is cut
//! to its new part, and segments inside it are removed. SACK blocks describe the result.

use std::collections::VecDeque;

/// Segments out of order, as half-open ranges of sequence numbers, disjoint and sorted.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutOfOrderSegments(VecDeque<(u64, u64)>);

impl OutOfOrderSegments {
    /// Adds a segment. Returns the part that is kept, if any of it is new.
    pub(crate) fn add(&mut self, seq: u64, end: u64) -> Option<(u64, u64)> {
        let (mut head, mut tail) = (seq, end);
        let first = self.0.partition_point(|&(_, stop)| stop <= seq);
        let mut inside = 0..0;
        for place in first..self.0.len() {
            let (start, stop) = self.0[place];
            if start > tail {
                break;
            }
            if stop <= head {
                continue;
            }
            if start > head && stop < tail {
                inside = if inside.is_empty() { place..place + 1 } else { inside.start..place + 1 };
                continue;
            }
            if start <= head {
                head = stop;
            }
            if stop >= tail {
                tail = start;
            }
        }
        self.0.drain(inside);
        if head >= tail {
            return None;
        }
        let place = self.0.partition_point(|&(start, _)| start < head);
        self.0.insert(place, (head, tail));
        Some((head, tail))
    }

    /// Everything below `next` is in order now.
    pub(crate) fn forget_below(&mut self, next: u64) {
        while self.0.front().is_some_and(|&(start, _)| start < next) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_cut_to_what_is_new() {
        let mut pieces = OutOfOrderSegments::default();
        assert_eq!(pieces.add(10, 20), Some((10, 20)));
        assert_eq!(pieces.add(30, 40), Some((30, 40)));
        assert_eq!(pieces.add(15, 18), None);
        assert_eq!(pieces.add(15, 25), Some((20, 25)));
        assert_eq!(pieces.add(25, 35), Some((25, 30)));
        assert_eq!(pieces.add(5, 12), Some((5, 10)));
        pieces.forget_below(31);
        assert_eq!(pieces.0, []);
    }

    #[test]
    fn segments_inside_a_new_one_are_removed() {
        let mut pieces = OutOfOrderSegments::default();
        for start in [12, 14, 16] {
            pieces.add(start, start + 1);
        }
        // Cut at the last segment, which extends to its end.
        assert_eq!(pieces.add(10, 17), Some((10, 16)));
        assert_eq!(pieces.0, [(10, 16), (16, 17)]);
    }
}
