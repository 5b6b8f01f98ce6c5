//! The bursts of a simulated queue, and which flows fill it: an observer collects what leaves the queue of a link.
//! `cargo run --release -p queuescope --features sim --example simulated_bursts`.

use queuescope::queue::{DisciplineParams, Headers};
use queuescope::sim::shapes::{Wire, add_both};
use queuescope::sim::workload::{Spacing, UdpParams, UdpSource};
use queuescope::sim::{Datagram, DatagramParams, InFlight, LinkId, Observer, Simulation, Topology};
use queuescope::{Analyzer, ByteCount, Departure, FlowKey, Nanos, Rate};
use std::error::Error;

/// What left the queue of a link.
struct Departures {
    link: LinkId,
    left: Vec<(FlowKey, Departure)>,
}

impl Observer for Departures {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, _headers: &Headers) {
        if link == self.link {
            self.left.push((packet.key(), *departure));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut topology = Topology::default();
    let (from, to) = (topology.add_node("from"), topology.add_node("to"));
    let rate: Rate = "10mbps".parse()?;
    let wire = Wire::new(rate, Nanos::ZERO, DisciplineParams::default());
    let (link, _) = add_both(&mut topology, ("link", "back"), (from, to), &wire, true);

    let mut simulation = Simulation::new(topology, 1, Nanos::ZERO)?;
    // A call of 0.5 Mb/s, and after a second a transfer of three times the link's rate for 50 ms.
    for (rate, start, until) in [("500kbps", "0s", "2s"), ("30mbps", "1s", "1050ms")] {
        let (size, spacing) = (ByteCount(1_250), Spacing::Even);
        let (start, until) = (start.parse()?, Some(until.parse()?));
        let load = UdpParams { rate: rate.parse()?, size, spacing, on_off: None, start, until };
        simulation.add_datagrams(DatagramParams::new(from, to), UdpSource::new(&load, 1)?.map(Datagram::from))?;
    }
    let mut departures = Departures { link, left: Vec::new() };
    simulation.run_until("3s".parse()?, &mut departures);

    let report = Analyzer::new(rate).run_departures(departures.left)?;
    for burst in &report.bursts {
        println!("a burst of {}, in which a packet waited for {}", Nanos(burst.length_ns), Nanos(burst.peak_delay_ns));
        // The culprits by five-tuple.
        for culprit in &burst.culprits[0].flows {
            println!("  {:>5.1} %  {}", 100.0 * culprit.share, culprit.flow);
        }
    }
    Ok(())
}
