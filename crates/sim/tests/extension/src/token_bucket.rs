//! A custom discipline that shapes: packets wait although the link is idle.

use queuescope_queue::{Discipline, Fifo, Outlet, Sink};
use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId, Rate};

/// A token bucket before a FIFO without a limit. Packets leave at a rate, in bursts of no more bytes than the bucket holds.
#[derive(Debug)]
pub struct TokenBucket {
    rate: Rate,
    /// The time that the rate needs to fill the bucket.
    burst: Nanos,
    /// When the bucket is full again if no packet leaves before.
    full_at: Nanos,
    queue: QueueId,
    fifo: Fifo,
    timer: Option<Nanos>,
}

impl TokenBucket {
    /// A full bucket, which fills at `rate` in the time `burst`, and an empty queue.
    pub fn new(rate: Rate, burst: Nanos, outlet: Outlet) -> Self {
        Self { rate, burst, full_at: Nanos::ZERO, queue: outlet.queue, fifo: Fifo::default(), timer: None }
    }
}

impl Discipline for TokenBucket {
    fn enqueue(&mut self, packet: Packet, now: Nanos, _sink: &mut impl Sink) {
        self.fifo.push(packet, now);
    }

    fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
        let tokens = self.rate.time_for(self.fifo.front()?.packet.size);
        let full_at = self.full_at.max(now) + tokens;
        // A packet above the size of the bucket needs a full one.
        let ready = full_at.saturating_sub(self.burst.max(tokens));
        if now < ready {
            self.timer = Some(ready);
            return None;
        }
        (self.full_at, self.timer) = (full_at, None);
        let first = self.fifo.pop()?;
        Some(first.depart(self.queue, now, self.fifo.backlog()))
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, _now: Nanos) {
        self.timer = None;
    }

    fn is_fifo(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_queue::{DisciplineFactory, Dropped, Headers, MarkReason};
    use queuescope_sim::shapes::{Wire, add_both};
    use queuescope_sim::{DatagramParams, InFlight, LinkId, Observer, Output, Replay, Simulation, Topology};
    use queuescope_wire::{ByteCount, PacketId};

    const MS: u64 = 1_000_000;

    /// Arrival and departure times, in units of 0.1 ms.
    #[derive(Debug, Default, PartialEq)]
    struct Times(Vec<(u64, u64)>);

    impl Times {
        fn add(&mut self, departure: &Departure) {
            self.0.push((departure.enqueued.0 / (MS / 10), departure.dequeued.0 / (MS / 10)));
        }
    }

    impl Observer for Times {
        fn departed(&mut self, link: LinkId, departure: &Departure, _: &InFlight, _: &Headers) {
            assert_eq!(link, LinkId(0));
            self.add(departure);
        }
    }

    impl Sink for Times {
        fn dropped(&mut self, dropped: &Dropped) {
            panic!("{dropped:?}");
        }
        fn marked(&mut self, packet: &Packet, _: MarkReason, _: Nanos) {
            panic!("{packet:?} was marked");
        }
    }

    impl Output for Times {
        fn departed(&mut self, departure: &Departure) {
            self.add(departure);
        }
    }

    fn rate(mbps: u64) -> Rate {
        Rate::from_bits_per_second(mbps * 1_000_000).unwrap()
    }

    /// The link needs 0.1 ms for each packet of 1000 bytes, and the bucket fills by one in 1 ms: up to ten.
    fn bucket(outlet: Outlet) -> TokenBucket {
        TokenBucket::new(rate(8), Nanos(10 * MS), outlet)
    }

    fn simulated(arrivals: &[u64], in_turn: bool) -> Times {
        let mut topology = Topology::default();
        let [from, to] = ["from", "to"].map(|name| topology.add_node(name));
        let discipline = DisciplineFactory::new("token-bucket", bucket);
        let wire = Wire::new(rate(80), Nanos(MS), discipline);
        add_both(&mut topology, ("link", "back"), (from, to), &wire, true);
        let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).unwrap();
        if in_turn {
            simulation.order_as_ns3();
        }
        let datagrams: Vec<_> = arrivals.iter().map(|at| (Nanos(at * MS / 10), ByteCount(1_000)).into()).collect();
        simulation.add_datagrams(DatagramParams::new(from, to), datagrams.into_iter()).unwrap();
        let mut times = Times::default();
        simulation.run_until(Nanos(10_000 * MS), &mut times);
        assert_eq!(simulation.datagrams().next().unwrap().delivered.packets, arrivals.len() as u64);
        times
    }

    fn replayed(arrivals: &[u64]) -> Times {
        let outlet = Outlet { rate: rate(80), overhead: 0, queue: QueueId(0), seed: 0 };
        let (mut replay, mut times) = (Replay::new(bucket(outlet), &outlet), Times::default());
        for (id, at) in arrivals.iter().enumerate() {
            let packet = Packet { id: PacketId(id as u64), size: ByteCount(1_000), ..Packet::default() };
            replay.arrive(packet, Nanos(at * MS / 10), &mut times);
        }
        replay.finish(&mut times);
        times
    }

    /// The bucket lets ten packets pass at the rate of the link, and the others at its own rate. After a pause it does so
    /// again. Neither needs an arrival to continue.
    #[test]
    fn a_burst_passes_and_the_rest_is_paced() {
        let arrivals: Vec<_> = [0; 100].into_iter().chain([2_000; 30]).collect();
        let paced = |start: u64, n: u64| (start, start + n.max((10 * n).saturating_sub(90)));
        let expected: Vec<_> = (0..100).map(|n| paced(0, n)).chain((0..30).map(|n| paced(2_000, n))).collect();
        assert_eq!(simulated(&arrivals, false).0, expected);
        assert_eq!(simulated(&arrivals, true).0, expected);
        assert_eq!(replayed(&arrivals).0, expected);
    }

    /// Packets that come while others are held back do not release these early.
    #[test]
    fn arrivals_do_not_break_the_pace() {
        let arrivals: Vec<_> = (0..60).map(|n| n * 3).collect();
        let sent = simulated(&arrivals, false);
        assert_eq!(sent, replayed(&arrivals));
        // The bucket gains 0.3 packets per arrival: it is empty after 13.
        assert!(sent.0[..10].iter().all(|(came, left)| came == left), "{sent:?}");
        assert_eq!(sent.0[59], (177, 500));
    }
}
