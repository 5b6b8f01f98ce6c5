//! A link in real time between two namespaces, with one end's datagrams through its queue (Linux, as root):
//! `cargo run --release -p queuescope --features link --example link`.

use queuescope::ingest::Stop;
use queuescope::link::{Frame, PacketRoute, PacketRoutes, RealTime, RunState, Testbed, Watcher, sleep_exactly};
use queuescope::live::Namespace;
use queuescope::scenario::Scenario;
use queuescope::sim::{Built, EntranceParams, Files, InFlight, LinkId, build_without_traffic};
use queuescope::{Class, Departure, FlowKey, Nanos};
use std::error::Error;
use std::io;
use std::net::UdpSocket;

const LINK: &str = r#"
duration = "2s"
link = { rate = "10mbps", delay = "5ms", limit = "100kB", discipline = "codel" }
access = { rate = "100gbps", delay = "0s" }
[[flows]]
name = "hosts"
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // Nothing leaves this namespace, or the one of the other end.
    let (packets, longest) = Namespace::new()?.run(|| carry().map_err(|why| why.to_string()))?;
    println!("{packets} packets left the queues, and the longest wait was {longest}");
    Ok(())
}

fn carry() -> Result<(u64, Nanos), Box<dyn Error>> {
    let scenario = Scenario::parse("example", LINK, &[])?;
    let Built { mut simulation, hosts, .. } = build_without_traffic(&scenario, &Files::default())?;
    let (inside, outside) = hosts[0][0];
    let mut way = |hosts, to| -> Result<PacketRoute, Box<dyn Error>> {
        let params = EntranceParams { hosts, group: 0, class: Class(0), activity: None };
        Ok(PacketRoute { entrance: simulation.entrance(params)?, to, l4s: false })
    };
    let ways = Both([way((inside, outside), 1)?, way((outside, inside), 0)?]);

    let Testbed { inside, outside, .. } = Testbed::new()?;
    let namespace = inside.namespace.as_ref().ok_or("the inside end is in a namespace")?;
    namespace.run(|| -> io::Result<()> {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        (0..300).try_for_each(|_| socket.send_to(&[0; 1_200], "192.0.2.1:9").map(drop))
    })?;
    let (ends, stop, mut seen) = ([inside, outside], Stop::on_signals()?, Seen::default());
    let mut real = RealTime::begin(simulation, ways, &ends, sleep_exactly()?);
    real.run(scenario.duration, Nanos(100_000_000), stop.waker(), &mut seen)?;
    Ok((seen.packets, seen.longest))
}

/// Sees what leaves the queues.
#[derive(Default)]
struct Seen {
    packets: u64,
    longest: Nanos,
}

impl Watcher for Seen {
    fn departed(&mut self, _link: LinkId, departure: &Departure, _packet: &InFlight, _frame: &Frame) {
        self.packets += 1;
        self.longest = self.longest.max(departure.sojourn());
    }

    fn look(&mut self, _now: Nanos) -> RunState {
        RunState::On
    }
}

/// What comes from an end goes to the other.
struct Both([PacketRoute; 2]);

impl PacketRoutes for Both {
    fn way(&self, from: usize, _key: &FlowKey) -> Option<&PacketRoute> {
        self.0.get(from)
    }
}
