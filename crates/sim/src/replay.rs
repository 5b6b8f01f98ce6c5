//! A stream of packets through one discipline, drained at a rate.

use crate::Transmitter;
use queuescope_queue::{Discipline, Sink};
use queuescope_wire::{Departure, Nanos, Packet, Rate};

/// A queue under a [`Discipline`] that a link drains at a rate.
///
/// A packet departs when the link starts to send it. What departs at the very moment at which another packet comes is
/// still in the queue as that one sees it: this is the `[a, d)` of ConQuest's definition 3.1.
#[derive(Debug)]
pub struct Replay<D> {
    discipline: D,
    link: Transmitter,
    now: Nanos,
}

/// Told of everything that comes out of a queue, one way or the other.
pub trait Output: Sink {
    /// A packet left the queue.
    fn departed(&mut self, departure: &Departure);
}

impl<D: Discipline> Replay<D> {
    /// An empty queue before an idle link.
    pub fn new(discipline: D, rate: Rate) -> Self {
        Self { discipline, link: Transmitter::new(rate), now: Nanos::ZERO }
    }

    /// A packet arrives, no earlier than the one before it. Everything that departs before that is told first.
    #[inline(always)]
    pub fn arrive(&mut self, packet: Packet, now: Nanos, output: &mut impl Output) {
        debug_assert!(now >= self.now, "arrivals are in order of time");
        self.now = now;
        self.serve_until(now, output);
        if self.discipline.backlog().packets == 0 {
            self.link.wait_until(now);
        }
        self.discipline.enqueue(packet, now, output);
    }

    /// No packet arrives any more: everything that waits departs.
    pub fn finish(&mut self, output: &mut impl Output) {
        while self.discipline.backlog().packets > 0 {
            self.serve_one(output);
        }
    }

    /// The discipline, for its counters.
    pub fn discipline(&self) -> &D {
        &self.discipline
    }

    #[inline(always)]
    fn serve_until(&mut self, now: Nanos, output: &mut impl Output) {
        while self.link.free_at() < now && self.discipline.backlog().packets > 0 {
            self.serve_one(output);
        }
        if self.link.free_at() < now && self.discipline.wants_to_be_asked() {
            self.serve_one(output);
        }
        self.fire_until(now);
    }

    /// Timers that are due by `now`.
    #[inline(always)]
    fn fire_until(&mut self, now: Nanos) {
        while let Some(due) = self.discipline.next_timer().filter(|due| *due <= now) {
            self.discipline.on_timer(due);
        }
    }

    #[inline(always)]
    fn serve_one(&mut self, output: &mut impl Output) {
        self.fire_until(self.link.free_at());
        if let Some(departure) = self.discipline.dequeue(self.link.free_at(), output) {
            self.link.send(departure.packet.size);
            output.departed(&departure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_queue::{Dropped, Limit, MarkReason, Outlet, TailDrop, TailDropParams};
    use queuescope_wire::{ByteCount, Class, Ecn, FlowId, PacketId, QueueId};

    #[derive(Default)]
    struct Log {
        departures: Vec<Departure>,
        drops: Vec<u64>,
    }

    impl Sink for Log {
        fn dropped(&mut self, dropped: &Dropped) {
            self.drops.push(dropped.packet.id.0);
        }

        fn marked(&mut self, packet: &Packet, _reason: MarkReason, _now: Nanos) {
            panic!("{packet:?} was marked");
        }
    }

    impl Output for Log {
        fn departed(&mut self, departure: &Departure) {
            self.departures.push(*departure);
        }
    }

    fn replay(rate: u64, limit: Limit, arrivals: &[(u64, u64)]) -> Log {
        let rate = Rate::from_bits_per_second(rate).unwrap();
        let mut replay =
            Replay::new(TailDrop::new(TailDropParams { limit }, Outlet { rate, queue: QueueId(0), seed: 0 }), rate);
        let mut log = Log::default();
        for (id, (time, size)) in arrivals.iter().enumerate() {
            let id = PacketId(id as u64);
            let packet = Packet { id, flow: FlowId(0), size: ByteCount(*size), class: Class(0), ecn: Ecn::NotEct };
            replay.arrive(packet, Nanos(*time), &mut log);
        }
        replay.finish(&mut log);
        log
    }

    /// The worked example of ConQuest's section 3.2: a packet departs each unit of time.
    #[test]
    fn packets_wait_for_those_before_them() {
        let log = replay(8_000_000_000, Limit::None, &[(0, 1), (0, 1), (0, 2), (2, 1), (10, 1)]);
        let times: Vec<_> = log.departures.iter().map(|d| (d.enqueued.0, d.dequeued.0, d.backlog_in.packets)).collect();
        assert_eq!(times, [(0, 0, 0), (0, 1, 1), (0, 2, 2), (2, 4, 1), (10, 10, 0)]);
    }

    /// Lindley's recursion in exact fractions, with the limit applied to what has not started by the arrival.
    fn lindley(rate: u64, limit: Limit, arrivals: &[(u64, u64)]) -> (Vec<(u64, u64, u64)>, Vec<u64>) {
        let rate = u128::from(rate);
        let link = Rate::from_bits_per_second(rate as u64).unwrap();
        let mut free = 0u128; // in units of 1/rate ns
        let (mut left, mut drops) = (Vec::<(u64, u64, u64)>::new(), Vec::new());
        for (id, (time, size)) in arrivals.iter().enumerate() {
            let waiting: Vec<_> = left.iter().filter(|(_, start, _)| start >= time).collect();
            let backlog = queuescope_wire::Backlog {
                packets: waiting.len() as u64,
                bytes: ByteCount(waiting.iter().map(|(.., size)| size).sum()),
            };
            if limit.admits(backlog, ByteCount(*size), link) {
                let start = free.max(u128::from(*time) * rate);
                left.push((id as u64, (start / rate) as u64, *size));
                free = start + u128::from(*size) * 8_000_000_000;
            } else {
                drops.push(id as u64);
            }
        }
        (left, drops)
    }

    proptest! {
        #[test]
        fn replay_is_lindleys_recursion(
            rate in prop_oneof![1_000_000..20_000_000_000u64, Just(7_000_000_000)],
            packets in prop::option::of(0..10u64),
            gaps in prop::collection::vec((0..4_000u64, 0..3_000u64), 0..80)
        ) {
            let limit = packets.map_or(Limit::None, Limit::Packets);
            let arrivals: Vec<_> = gaps.iter().scan(0, |now, (gap, size)| { *now += gap; Some((*now, *size)) }).collect();
            let log = replay(rate, limit, &arrivals);
            let (left, drops) = lindley(rate, limit, &arrivals);
            prop_assert_eq!(log.departures.iter().map(|d| (d.packet.id.0, d.dequeued.0, d.packet.size.0)).collect::<Vec<_>>(), left);
            prop_assert_eq!(log.drops, drops);
            for departure in &log.departures {
                let seen = log.departures.iter().filter(|other| {
                    other.dequeued >= departure.enqueued && other.packet.id < departure.packet.id
                });
                prop_assert_eq!(departure.backlog_in.packets, seen.count() as u64);
            }
        }
    }
}
