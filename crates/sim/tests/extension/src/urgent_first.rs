//! A custom switch program.

use queuescope_queue::{Egress, Headers, Ingress, Limit, MultiQueueParams, Pipeline, Port, Scheduler, Sink};
use queuescope_wire::{Class, Departure, Nanos, Packet};
use std::num::NonZeroU16;

/// Packets of class 1 are urgent: each port has a queue for them, which is served before the other queue.
#[derive(Debug, Default)]
pub struct UrgentFirst {
    urgent: u64,
}

const QUEUES: NonZeroU16 = NonZeroU16::new(2).unwrap();

impl Pipeline for UrgentFirst {
    fn ingress(&mut self, _: Port, packet: &mut Packet, _: &mut Headers, _: Nanos, _: &mut impl Sink) -> Ingress {
        let is_urgent = packet.class == Class(1);
        self.urgent += u64::from(is_urgent);
        Ingress::Enqueue(u16::from(!is_urgent))
    }

    fn egress(&mut self, _: Port, _: &mut Departure, _: &mut Headers, _: &mut impl Sink) -> Egress {
        Egress::Send
    }

    fn queues(&self, limit: Limit) -> MultiQueueParams {
        MultiQueueParams { queues: QUEUES, scheduler: Scheduler::StrictPriority, ..MultiQueueParams::one(limit) }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("urgent", self.urgent)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_queue::{DisciplineParams, PipelineFactory};
    use queuescope_sim::shapes::{RECIRCULATION, Wire, add_both};
    use queuescope_sim::{DatagramParams, Simulation, SwitchParams, Topology};
    use queuescope_wire::{ByteCount, Rate};

    const MS: u64 = 1_000_000;

    /// A link with 1 ms per packet gets 100 packets at once, then an urgent one every 10 ms: urgent packets wait for the current
    /// transmission, and for no other packet.
    #[test]
    fn an_urgent_packet_waits_for_one_packet_at_most() {
        let mut topology = Topology::default();
        let [from, switch, to] = ["from", "switch", "to"].map(|name| topology.add_node(name));
        let wire = |mbps: u64| {
            Wire::new(Rate::from_bits_per_second(mbps * 1_000_000).unwrap(), Nanos::ZERO, DisciplineParams::default())
        };
        add_both(&mut topology, ("up", "up-back"), (from, switch), &wire(8_000), false);
        let (link, _) = add_both(&mut topology, ("link", "link-back"), (switch, to), &wire(8), true);
        let pipeline = PipelineFactory::new("urgent-first", |_| UrgentFirst::default()).into();
        let managed = vec![(link, Limit::Packets(1_000))];
        topology.set_switch(switch, SwitchParams { pipeline, managed, recirculation: RECIRCULATION });

        let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).unwrap();
        let all_at_once = (0..100).map(|_| (Nanos::ZERO, ByteCount(1_000)).into());
        simulation.add_datagrams(DatagramParams::new(from, to), all_at_once).unwrap();
        let now_and_then = (1..10).map(|n| (Nanos(n * 10 * MS), ByteCount(1_000)).into());
        let urgent = DatagramParams { group: 1, class: Class(1), ..DatagramParams::new(from, to) };
        simulation.add_datagrams(urgent, now_and_then).unwrap();
        simulation.run_until(Nanos(1_000 * MS), &mut ());

        let delivered: Vec<_> = simulation.datagrams().map(|record| record.delivered.packets).collect();
        assert_eq!(delivered, [100, 9], "nothing is dropped");
        let [others, urgent] = simulation.link(link).groups() else { panic!("two groups") };
        let longest = |times: &queuescope_sim::summary::Times| times.range().unwrap().1;
        assert!(longest(&urgent.sojourn) <= Nanos(MS), "{}", longest(&urgent.sojourn));
        // All 108 others leave before the last of the 100, which came up to 0.1 ms after the first.
        assert!(
            (Nanos(107 * MS)..=Nanos(108 * MS)).contains(&longest(&others.sojourn)),
            "{}",
            longest(&others.sojourn)
        );
        assert_eq!(simulation.discipline(link), ("urgent-first", vec![("urgent", 9)]));
        assert!(!simulation.is_fifo(link), "there are two queues");
    }
}
