//! A stream of packets through one discipline, drained at a rate.

use crate::Transmitter;
use queuescope_queue::{Discipline, Outlet, Sink};
use queuescope_wire::{ByteCount, Departure, Nanos, Packet};

/// A queue under a [`Discipline`] that a link drains at a rate.
///
/// If the discipline holds its packets back, the link is idle until the next timer or arrival. At the end
/// ([`Replay::finish`]), packets that the discipline never releases stay in the queue.
///
/// Panics, and names the discipline, if its timer stays in the past.
///
/// A packet departs when the link starts to send it. A packet that departs at the same time as another arrives is
/// still in the queue for that one: this is the `[a, d)` of ConQuest's definition 3.1.
///
/// ```
/// use queuescope_queue::{Limit, Outlet, TailDrop, TailDropParams};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_sim::{Output, Replay};
/// use queuescope_wire::{ByteCount, Departure, Nanos, Packet, PacketId, QueueId};
///
/// #[derive(Default)]
/// struct Longest { wait: Nanos, drops: u64 }
/// impl Output for Longest {
///     fn departed(&mut self, departure: &Departure) {
///         self.wait = self.wait.max(departure.sojourn());
///     }
/// }
/// # impl Sink for Longest {
/// #     fn dropped(&mut self, _: &Dropped) { self.drops += 1; }
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let link = Outlet { rate: "12mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 };
/// let queue = TailDrop::new(TailDropParams { limit: Limit::Packets(20) }, link);
/// let (mut replay, mut longest) = (Replay::new(queue, &link), Longest::default());
/// for n in 0..50 { // all at once; each takes a millisecond on the link
///     replay.arrive(Packet { id: PacketId(n), size: ByteCount(1500), ..Packet::default() }, Nanos(0), &mut longest);
/// }
/// replay.finish(&mut longest);
/// println!("the longest wait was {}", longest.wait);
/// assert_eq!((longest.wait, longest.drops), ("19ms".parse()?, 30));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replay<D> {
    discipline: D,
    link: Transmitter,
    /// Bytes that the link adds to each packet.
    overhead: u32,
    now: Nanos,
    /// The last time at which a timer was set for a time that had passed, and how often in a row.
    retries: Retries,
}

/// Receives all packets that come out of a queue: departures, and drops and marks of [`Sink`].
///
/// ```
/// use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_sim::Output;
/// use queuescope_wire::{ByteCount, Departure, Nanos, Packet};
///
/// /// The bytes that passed, and the packets that did not.
/// #[derive(Default)]
/// struct Passed { bytes: ByteCount, drops: u64 }
///
/// impl Output for Passed {
///     fn departed(&mut self, departure: &Departure) {
///         self.bytes += departure.packet.size;
///     }
/// }
///
/// impl Sink for Passed {
///     fn dropped(&mut self, _: &Dropped) {
///         self.drops += 1;
///     }
///     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// }
///
/// let mut passed = Passed::default();
/// passed.departed(&Departure { packet: Packet { size: ByteCount(1500), ..Packet::default() }, ..Departure::default() });
/// assert_eq!((passed.bytes, passed.drops), (ByteCount(1500), 0));
/// ```
pub trait Output: Sink {
    /// A packet left the queue.
    fn departed(&mut self, departure: &Departure);
}

impl<D: Discipline> Replay<D> {
    /// An empty queue before an idle link. The link's overhead takes transmission time, but the queue does not count it.
    pub fn new(discipline: D, link: &Outlet) -> Self {
        Self {
            discipline,
            link: Transmitter::new(link.rate),
            overhead: link.overhead,
            now: Nanos::ZERO,
            retries: Retries::default(),
        }
    }

    /// A packet arrives, no earlier than the previous one. All departures before that are reported first.
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

    /// No packet arrives before `now`: all departures up to then happen.
    pub fn advance(&mut self, now: Nanos, output: &mut impl Output) {
        self.now = now;
        self.serve_until(now, output);
    }

    /// No packet arrives any more: all waiting packets depart, except those that the discipline does not release at any of
    /// its next million timers.
    pub fn finish(&mut self, output: &mut impl Output) {
        let mut in_vain = 0;
        while self.discipline.backlog().packets > 0 && in_vain < MOST_TIMERS {
            if self.serve_one(output) {
                in_vain = 0;
                continue;
            }
            in_vain += 1;
            if self.wait_for_timer(Nanos::MAX).is_none() {
                break;
            }
        }
    }

    /// The discipline, for its counters.
    pub fn discipline(&self) -> &D {
        &self.discipline
    }

    #[inline(always)]
    fn serve_until(&mut self, now: Nanos, output: &mut impl Output) {
        while self.link.free_at() < now && self.discipline.backlog().packets > 0 {
            if !self.serve_one(output) {
                self.wait_for_timer(now);
            }
        }
        if self.link.free_at() < now && self.discipline.polls_when_empty() {
            self.serve_one(output);
        }
        self.fire_until(now);
    }

    /// Fires timers that are due by `now`.
    #[inline(always)]
    fn fire_until(&mut self, now: Nanos) {
        while let Some(due) = self.discipline.next_timer().filter(|due| *due <= now && *due < Nanos::MAX) {
            self.discipline.on_timer(due);
            if self.discipline.next_timer().is_some_and(|next| next <= due) {
                timer_stays(self.discipline.name(), due);
            }
        }
    }

    /// Whether a packet departed.
    #[inline(always)]
    fn serve_one(&mut self, output: &mut impl Output) -> bool {
        self.fire_until(self.link.free_at());
        let departure = self.discipline.dequeue(self.link.free_at(), output);
        if let Some(departure) = &departure {
            self.link.send(ByteCount(departure.packet.size.0 + u64::from(self.overhead)));
            output.departed(departure);
        }
        departure.is_some()
    }

    /// The discipline released no packet. If packets wait, the link is idle until the next timer, and no longer than
    /// `until`. Returns the time of that timer.
    #[cold]
    fn wait_for_timer(&mut self, until: Nanos) -> Option<Nanos> {
        if self.discipline.backlog().packets == 0 {
            return None;
        }
        let now = self.link.free_at();
        let due = self.discipline.next_timer().filter(|due| *due < Nanos::MAX);
        match due {
            // Earlier timers have fired, so this call set it. It fires before the next call.
            Some(due) if due <= now => self.retries.count(now, self.discipline.name()),
            _ => self.link.wait_until(due.unwrap_or(until).min(until)),
        }
        due
    }
}

/// The most timers at which a discipline may hold back all of its packets when no packet arrives any more.
const MOST_TIMERS: u32 = 1_000_000;

/// The most calls of a discipline at the same time that return no packet and set a timer for a time that has passed.
const MOST_RETRIES: u32 = 1_000;

/// How often in a row a discipline set its timer for a time that had passed, without a packet that may leave.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Retries {
    at: Nanos,
    count: u32,
}

impl Retries {
    /// Counts a call at `now` that returned no packet.
    ///
    /// # Panics
    /// Panics if there were too many at the same time.
    pub fn count(&mut self, now: Nanos, discipline: &str) {
        self.count = if now == self.at { self.count + 1 } else { 1 };
        self.at = now;
        assert!(
            self.count < MOST_RETRIES,
            "the discipline '{discipline}' holds its packets back at {} ns, and its timer asks to be called again at that \
             time: set next_timer to a later time, at which a packet may leave",
            now.0
        );
    }
}

/// Panics: a timer would fire again and again at the same time.
#[cold]
pub(crate) fn timer_stays(name: &str, due: Nanos) -> ! {
    panic!("'{name}' did not move its timer on: after on_timer({} ns), next_timer must be later, or None", due.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use queuescope_queue::{Dropped, Limit, MarkReason, TailDrop, TailDropParams};
    use queuescope_wire::{Class, Ecn, FlowId, PacketId, QueueId, Rate};

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

    fn outlet(rate: u64, overhead: u32) -> Outlet {
        Outlet { rate: Rate::from_bits_per_second(rate).unwrap(), overhead, queue: QueueId(0), seed: 0 }
    }

    fn replay(outlet: Outlet, limit: Limit, arrivals: &[(u64, u64)]) -> Log {
        let mut replay = Replay::new(TailDrop::new(TailDropParams { limit }, outlet), &outlet);
        let mut log = Log::default();
        for (id, (time, size)) in arrivals.iter().enumerate() {
            let id = PacketId(id as u64);
            let packet = Packet { id, flow: FlowId(0), size: ByteCount(*size), class: Class(0), ecn: Ecn::NotEct };
            replay.arrive(packet, Nanos(*time), &mut log);
        }
        replay.finish(&mut log);
        log
    }

    /// The worked example of ConQuest's section 3.2: a packet departs in each unit of time.
    #[test]
    fn packets_wait_for_those_before_them() {
        let log = replay(outlet(8_000_000_000, 0), Limit::None, &[(0, 1), (0, 1), (0, 2), (2, 1), (10, 1)]);
        let times: Vec<_> = log.departures.iter().map(|d| (d.enqueued.0, d.dequeued.0, d.backlog_in.packets)).collect();
        assert_eq!(times, [(0, 0, 0), (0, 1, 1), (0, 2, 2), (2, 4, 1), (10, 10, 0)]);
    }

    /// 15 kB hold ten packets of 1500 bytes, not nine; and each takes the link the time of 1538 bytes.
    #[test]
    fn link_overhead_takes_time_and_no_room() {
        let arrivals: Vec<_> = (0..20).map(|_| (0, 1500)).collect();
        let log = replay(outlet(8_000_000_000, 38), Limit::Bytes(ByteCount(15_000)), &arrivals);
        let times: Vec<_> = log.departures.iter().map(|d| d.dequeued.0).collect();
        assert_eq!(times, (0..10).map(|n| n * 1538).collect::<Vec<_>>());
        assert_eq!(log.departures[9].backlog_in.bytes, ByteCount(9 * 1500));
    }

    /// Lindley's recursion in exact fractions, with the limit applied to packets that have not started by the arrival.
    fn lindley(outlet: Outlet, limit: Limit, arrivals: &[(u64, u64)]) -> (Vec<(u64, u64, u64)>, Vec<u64>) {
        let rate = u128::from(outlet.rate.bits_per_second());
        let mut free = 0u128; // in units of 1/rate ns
        let (mut left, mut drops) = (Vec::<(u64, u64, u64)>::new(), Vec::new());
        for (id, (time, size)) in arrivals.iter().enumerate() {
            let waiting: Vec<_> = left.iter().filter(|(_, start, _)| start >= time).collect();
            let backlog = queuescope_wire::Backlog {
                packets: waiting.len() as u64,
                bytes: ByteCount(waiting.iter().map(|(.., size)| size).sum()),
            };
            if limit.admits(backlog, ByteCount(*size), &outlet) {
                let start = free.max(u128::from(*time) * rate);
                left.push((id as u64, (start / rate) as u64, *size));
                free = start + u128::from(*size + u64::from(outlet.overhead)) * 8_000_000_000;
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
            overhead in prop_oneof![Just(0u32), Just(38), 0..3_000u32],
            limit in prop_oneof![
                Just(Limit::None),
                (0..10u64).prop_map(Limit::Packets),
                (0..20_000u64).prop_map(|bytes| Limit::Bytes(ByteCount(bytes))),
                (0..20_000u64).prop_map(|time| Limit::Time(Nanos(time))),
            ],
            gaps in prop::collection::vec((0..4_000u64, 0..3_000u64), 0..80)
        ) {
            let outlet = outlet(rate, overhead);
            let arrivals: Vec<_> = gaps.iter().scan(0, |now, (gap, size)| { *now += gap; Some((*now, *size)) }).collect();
            let log = replay(outlet, limit, &arrivals);
            let (left, drops) = lindley(outlet, limit, &arrivals);
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
