//! A custom discipline.

use queuescope_queue::{Discipline, DropReason, Dropped, Fifo, Outlet, Sink};
use queuescope_wire::{Backlog, Departure, Nanos, Packet, QueueId};

/// First in, first out. A packet that finds the queue full replaces the one that has waited longest.
#[derive(Debug)]
pub struct HeadDrop {
    most: u64,
    queue: QueueId,
    fifo: Fifo,
    dropped: u64,
}

impl HeadDrop {
    /// An empty queue for at most `most` packets.
    pub fn new(most: u64, outlet: Outlet) -> Self {
        Self { most, queue: outlet.queue, fifo: Fifo::default(), dropped: 0 }
    }
}

impl Discipline for HeadDrop {
    fn enqueue(&mut self, packet: Packet, now: Nanos, sink: &mut impl Sink) {
        if self.fifo.backlog().packets >= self.most
            && let Some(oldest) = self.fifo.pop()
        {
            self.dropped += 1;
            let reason = DropReason::Overlimit;
            sink.dropped(&Dropped::from_queue(oldest.packet, self.queue, oldest.enqueued, now, reason));
        }
        self.fifo.push(packet, now);
    }

    fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
        let first = self.fifo.pop()?;
        Some(first.depart(self.queue, now, self.fifo.backlog()))
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn is_fifo(&self) -> bool {
        true
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("dropped", self.dropped)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_queue::{DisciplineFactory, DisciplineParams, Limit, MarkReason, TailDropParams};
    use queuescope_sim::shapes::{Wire, add_both};
    use queuescope_sim::{DatagramParams, DisciplineChoice, LinkId, Simulation, Topology};
    use queuescope_wire::{ByteCount, Class, Ecn, FlowId, PacketId, Rate};

    const MS: u64 = 1_000_000;
    const MOST: u64 = 5;

    /// 1000 packets with transmission times of 1 ms, three arriving every 2 ms, over a link with a queue.
    fn overloaded(discipline: DisciplineChoice) -> (Simulation, LinkId) {
        let mut topology = Topology::default();
        let [from, to] = ["from", "to"].map(|name| topology.add_node(name));
        let wire = Wire::new(Rate::from_bits_per_second(8_000_000).unwrap(), Nanos(MS), discipline);
        let (link, _) = add_both(&mut topology, ("link", "back"), (from, to), &wire, true);
        let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).unwrap();
        let datagrams = (0..1_000).map(|n| (Nanos(n * 2 * MS / 3), ByteCount(1_000)).into());
        simulation.add_datagrams(DatagramParams::new(from, to), datagrams).unwrap();
        simulation.run_until(Nanos(10_000 * MS), &mut ());
        (simulation, link)
    }

    /// Two of three packets leave, whichever are dropped. A packet that leaves waits for the current transmission and for
    /// the packets in the queue before it, and less if one of these is dropped.
    #[test]
    fn it_drops_as_many_as_tail_drop_and_delays_less() {
        let (simulation, link) =
            overloaded(DisciplineFactory::new("head-drop", |outlet| HeadDrop::new(MOST, outlet)).into());
        let limit = Limit::Packets(MOST);
        let (tail, _) = overloaded(DisciplineParams::TailDrop(TailDropParams { limit }).into());

        let sent = simulation.link(link).sent.packets;
        let drops = simulation.link(link).drops[DropReason::Overlimit as usize];
        assert_eq!(sent + drops, 1_000, "each packet departs or is dropped");
        assert_eq!(simulation.datagrams().next().unwrap().delivered.packets, sent);
        assert_eq!((sent, drops), (tail.link(link).sent.packets, tail.link(link).drops[0]));
        assert!((660..680).contains(&sent), "{sent}");

        let longest = |simulation: &Simulation| simulation.link(link).sojourn().unwrap().range().unwrap().1;
        assert!(longest(&simulation) <= Nanos(MOST * MS), "{}", longest(&simulation));
        assert!(longest(&simulation) < longest(&tail), "{} {}", longest(&simulation), longest(&tail));

        assert_eq!(simulation.discipline(link), ("head-drop", vec![("dropped", drops)]));
        assert!(simulation.is_fifo(link));
    }

    /// Dropped packets are passed to the sink with their arrival times.
    #[test]
    fn it_drops_the_oldest() {
        #[derive(Default)]
        struct Log(Vec<Dropped>);
        impl Sink for Log {
            fn dropped(&mut self, dropped: &Dropped) {
                self.0.push(*dropped);
            }
            fn marked(&mut self, packet: &Packet, _: MarkReason, _: Nanos) {
                panic!("{packet:?} was marked");
            }
        }
        let rate = Rate::from_bits_per_second(1).unwrap();
        let outlet = Outlet { rate, overhead: 0, queue: QueueId(7), seed: 0 };
        let (mut queue, mut log) = (HeadDrop::new(2, outlet), Log::default());
        for id in 0..3 {
            let packet =
                Packet { id: PacketId(id), flow: FlowId(0), size: ByteCount(1), class: Class(0), ecn: Ecn::NotEct };
            queue.enqueue(packet, Nanos(10 + id), &mut log);
        }
        let [Dropped { packet, queue: QueueId(7), enqueued: Some(Nanos(10)), at: Nanos(12), .. }] = log.0[..] else {
            panic!("{:?}", log.0);
        };
        assert_eq!(packet.id, PacketId(0));
        let left: Vec<_> =
            std::iter::from_fn(|| queue.dequeue(Nanos(13), &mut log)).map(|left| left.packet.id.0).collect();
        assert_eq!(left, [1, 2]);
    }
}
