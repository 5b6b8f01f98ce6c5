//! A discipline of your own: last in, first out, beside tail drop under the same load.
//!
//! The mean wait is the same in any order that does not look at sizes, but who waits is not: `cargo run --release -p
//! queuescope --features sim --example own_discipline`.

use queuescope::queue::{Checked, Discipline, DisciplineFactory, DisciplineParams, Outlet, Sink, Waiting};
use queuescope::sim::shapes::{Wire, add_both};
use queuescope::sim::workload::{Spacing, UdpParams, UdpSource};
use queuescope::sim::{Datagram, DatagramParams, DisciplineChoice, Simulation, Topology};
use queuescope::wire::{Backlog, ByteCount, Departure, Nanos, Packet, QueueId, Rate};
use std::error::Error;

/// Last in, first out, without a limit.
struct Lifo {
    queue: QueueId,
    waiting: Vec<Waiting>,
    backlog: Backlog,
}

impl Lifo {
    fn new(outlet: Outlet) -> Self {
        Self { queue: outlet.queue, waiting: Vec::new(), backlog: Backlog::default() }
    }
}

impl Discipline for Lifo {
    fn enqueue(&mut self, packet: Packet, now: Nanos, _sink: &mut impl Sink) {
        self.waiting.push(Waiting { packet, enqueued: now, backlog_in: self.backlog });
        self.backlog.packets += 1;
        self.backlog.bytes += packet.size;
    }

    fn dequeue(&mut self, now: Nanos, _sink: &mut impl Sink) -> Option<Departure> {
        let last = self.waiting.pop()?;
        self.backlog.packets -= 1;
        self.backlog.bytes -= last.packet.size;
        Some(last.depart(self.queue, now, self.backlog))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    simulate(DisciplineParams::default().into())?;
    // `Checked` panics if a discipline breaks a rule, such as to depart a packet twice. Leave it out for long runs.
    simulate(DisciplineFactory::new("lifo", |outlet| Checked::new(Lifo::new(outlet))).into())
}

/// A link of 10 Mb/s, at random times nine tenths of what it can send.
fn simulate(discipline: DisciplineChoice) -> Result<(), Box<dyn Error>> {
    let mut topology = Topology::default();
    let (from, to) = (topology.add_node("from"), topology.add_node("to"));
    let wire = Wire::new("10mbps".parse()?, Nanos::ZERO, discipline);
    let (link, _) = add_both(&mut topology, ("link", "back"), (from, to), &wire, true);

    let mut simulation = Simulation::new(topology, 1, Nanos::ZERO)?;
    let rate: Rate = "9mbps".parse()?;
    let (size, spacing) = (ByteCount(1_250), Spacing::Poisson);
    let load = UdpParams { rate, size, spacing, on_off: None, start: Nanos::ZERO, until: None };
    simulation.add_datagrams(DatagramParams::new(from, to), UdpSource::new(&load, 1)?.map(Datagram::from))?;
    simulation.run_until("100s".parse()?, &mut ());

    let waits = simulation.link(link).sojourn().ok_or("the link is measured")?;
    let (name, _) = simulation.discipline(link);
    let part = |percent| waits.percentile(percent).unwrap_or_default();
    let mean = Nanos(waits.mean().unwrap_or_default() as u64);
    println!("{name}: mean wait {mean}, median {}, 99th percentile {}", part(50.0), part(99.0));
    Ok(())
}
