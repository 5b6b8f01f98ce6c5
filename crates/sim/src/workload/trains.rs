//! Flows as trains of datagrams without feedback: each sends its bytes at a constant pace from its start.

use super::FlowStart;
use crate::traffic::{DATAGRAM_HEADERS, Datagram};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The datagrams of flows that start one after another: an iterator in order of time. Among datagrams of the same nanosecond, that of the
/// flow that started first comes first.
///
/// ```
/// use queuescope_sim::NodeId;
/// use queuescope_sim::workload::{FlowStart, Trains};
/// use queuescope_wire::{ByteCount, Nanos};
///
/// let flow = FlowStart { bytes: Some(2_500), ..FlowStart::new(NodeId(0), NodeId(1)) };
/// let datagrams: Vec<_> = Trains::new(std::iter::once(flow), ByteCount(1_000), "8mbps".parse()?).collect();
/// let sizes: Vec<_> = datagrams.iter().map(|datagram| datagram.size.0).collect();
/// assert_eq!(sizes, [1_000, 1_000, 584], "each has 28 bytes of headers");
/// assert_eq!(datagrams[2].at, Nanos(2_000_000));
/// # Ok::<(), queuescope_wire::UnitError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Trains<I> {
    starts: I,
    next: Option<FlowStart>,
    /// Payload of a full datagram.
    payload: u64,
    pace: Rate,
    /// Flows with data left, by the time of the next datagram of each.
    sending: BinaryHeap<Reverse<Train>>,
    started: u32,
}

/// A sending flow, ordered by the time of its next datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Train {
    due: Nanos,
    flow: u32,
    start: Nanos,
    /// Bytes sent, with headers: the next datagram is due when they have been sent at the pace.
    sent: u64,
    /// Remaining payload.
    left: u64,
}

impl<I: Iterator<Item = FlowStart>> Trains<I> {
    /// Sends the bytes of each flow in datagrams of `packet` bytes, from the network header on: `packet` minus 28 bytes of
    /// headers are the flow's. The pace counts headers too. A flow without an end sends for ever. The flows are numbered in order
    /// of their starts.
    pub fn new(mut starts: I, packet: ByteCount, pace: Rate) -> Self {
        let next = starts.next();
        let payload = packet.0.saturating_sub(u64::from(DATAGRAM_HEADERS)).max(1);
        Self { starts, next, payload, pace, sending: BinaryHeap::new(), started: 0 }
    }
}

impl<I: Iterator<Item = FlowStart>> Iterator for Trains<I> {
    type Item = Datagram;

    fn next(&mut self) -> Option<Datagram> {
        let due = self.sending.peek().map(|Reverse(train)| train.due);
        while let Some(start) = self.next.filter(|start| due.is_none_or(|due| start.at < due)) {
            let (flow, left) = (self.started, start.bytes.unwrap_or(u64::MAX));
            self.sending.push(Reverse(Train { due: start.at, flow, start: start.at, sent: 0, left }));
            self.started = self.started.wrapping_add(1);
            self.next = self.starts.next();
            if due.is_none() {
                break;
            }
        }
        let Reverse(mut train) = self.sending.pop()?;
        let (at, flow) = (train.due, train.flow);
        let payload = train.left.min(self.payload);
        let size = payload + u64::from(DATAGRAM_HEADERS);
        train.left -= payload;
        if train.left > 0 {
            train.sent = train.sent.saturating_add(size);
            train.due = train.start.saturating_add(self.pace.time_for(ByteCount(train.sent)));
            self.sending.push(Reverse(train));
        }
        Some(Datagram { at, size: ByteCount(size), flow })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).unwrap()
    }

    fn start((at, bytes): (u64, u64)) -> FlowStart {
        FlowStart { at: Nanos(at), from: 0, to: 1, bytes: Some(bytes) }
    }

    #[test]
    fn flows_that_overlap_take_turns() {
        // A nanosecond for each byte; datagrams of 100 bytes have a payload of 72.
        let starts = [(0, 150), (100, 72), (500, 1)].map(start).into_iter();
        let sent = Trains::new(starts, ByteCount(100), rate(8_000_000_000));
        let sent: Vec<_> = sent.map(|it| (it.at.0, it.size.0, it.flow)).collect();
        assert_eq!(sent, [(0, 100, 0), (100, 100, 0), (100, 100, 1), (200, 34, 0), (500, 29, 2)]);
    }

    proptest! {
        /// Each flow by itself, then sorted.
        #[test]
        fn trains_are_flows_in_order_of_time(
            bits in 1_000_000..100_000_000_000u64, packet in 29..2_000u64,
            flows in prop::collection::vec((0..20_000u64, 1..20_000u64), 0..30)
        ) {
            let mut flows = flows;
            flows.sort_unstable_by_key(|(at, _)| *at);
            let mut expected = Vec::new();
            for (flow, (at, bytes)) in (0..).zip(&flows) {
                let (mut sent, mut left) = (0u128, *bytes);
                while left > 0 {
                    let payload = left.min(packet - 28);
                    let due = at + (sent * 8_000_000_000 / u128::from(bits)) as u64;
                    expected.push(Datagram { at: Nanos(due), size: ByteCount(payload + 28), flow });
                    sent += u128::from(payload) + 28;
                    left -= payload;
                }
            }
            expected.sort_by_key(|datagram| (datagram.at, datagram.flow));
            let sent: Vec<_> = Trains::new(flows.into_iter().map(start), ByteCount(packet), rate(bits)).collect();
            prop_assert_eq!(sent, expected);
        }
    }
}
