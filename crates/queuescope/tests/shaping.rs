//! A discipline from outside that shapes, in a simulation and in the replay of a capture. All names are the facade's.
#![cfg(feature = "pcap")]

use queuescope::queue::{Checked, Discipline, DisciplineFactory, Fifo, Outlet, Sink};
use queuescope::report::model::Report;
use queuescope::sim::shapes::{Wire, add_both};
use queuescope::sim::{Aqm, DatagramParams, Simulation, Topology};
use queuescope::{Analyzer, Backlog, ByteCount, Departure, Nanos, Packet, QueueId, Rate};

/// A token bucket of one packet: packets leave at a rate, however fast the link is.
struct TokenBucket {
    rate: Rate,
    ready: Nanos,
    timer: Option<Nanos>,
    fifo: Fifo,
    queue: QueueId,
}

impl TokenBucket {
    fn factory(rate: Rate) -> DisciplineFactory {
        let new = move |outlet: Outlet| Self {
            rate,
            ready: Nanos::ZERO,
            timer: None,
            fifo: Fifo::default(),
            queue: outlet.queue,
        };
        DisciplineFactory::new("token-bucket", move |outlet| Checked::new(new(outlet)))
    }
}

impl Discipline for TokenBucket {
    fn enqueue(&mut self, packet: Packet, now: Nanos, _: &mut impl Sink) {
        self.fifo.push(packet, now);
    }

    fn dequeue(&mut self, now: Nanos, _: &mut impl Sink) -> Option<Departure> {
        if now < self.ready {
            self.timer = Some(self.ready);
            return None;
        }
        let first = self.fifo.pop()?;
        self.ready = now + self.rate.time_for(first.packet.size);
        Some(first.depart(self.queue, now, self.fifo.backlog()))
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }

    fn on_timer(&mut self, _: Nanos) {
        self.timer = None;
    }

    fn is_fifo(&self) -> bool {
        true
    }
}

fn rate(text: &str) -> Rate {
    text.parse().expect("it is a rate")
}

/// The bucket before a fast link makes packets wait about as long as a slow link does.
#[test]
fn a_capture_passes_a_token_bucket() {
    let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
    let longest = |report: &Report| report.bursts.iter().map(|burst| burst.peak_delay_ns).max().unwrap_or_default();
    let unlimited = queuescope::queue::Limit::None;
    let slow = Analyzer::new(rate("20mbps")).limit(unlimited).run_file(demo).expect("it is a capture");
    let bucket = Aqm::custom_discipline(TokenBucket::factory(rate("20mbps")));
    let shaped = Analyzer::new(rate("1gbps")).aqm(bucket).run_file(demo).expect("it is a capture");
    assert_eq!(shaped.totals.packets, slow.totals.packets);
    let difference = longest(&shaped).abs_diff(longest(&slow));
    assert!(
        longest(&slow) > 10_000_000 && difference < longest(&slow) / 100,
        "{} {}",
        longest(&shaped),
        longest(&slow)
    );
}

/// 100 packets at once leave one by one, each 1 ms after the one before.
#[test]
fn a_simulation_passes_a_token_bucket() {
    let mut topology = Topology::default();
    let (from, to) = (topology.add_node("from"), topology.add_node("to"));
    let wire = Wire::new(rate("1gbps"), Nanos::ZERO, TokenBucket::factory(rate("8mbps")));
    let (link, _) = add_both(&mut topology, ("link", "back"), (from, to), &wire, true);
    let mut simulation = Simulation::new(topology, 1, Nanos::ZERO).expect("it can be built");
    let datagrams = (0..100).map(|_| (Nanos::ZERO, ByteCount(1_000)).into());
    simulation.add_datagrams(DatagramParams::new(from, to), datagrams).expect("there is a route");
    simulation.run_until(Nanos(10_000_000_000), &mut ());
    assert_eq!(simulation.link(link).sent.packets, 100);
    let waits = simulation.link(link).sojourn().expect("the link is measured");
    assert_eq!(waits.range(), Some((Nanos::ZERO, Nanos(99_000_000))));
}
