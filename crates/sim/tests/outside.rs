//! Packets from outside pass the network like simulated packets.

use queuescope_queue::{Dropped, Headers, MarkReason};
use queuescope_scenario::Scenario;
use queuescope_sim::{
    Built, EntranceParams, ExternalPacket, Files, InFlight, LinkId, Observer, Simulation, build, build_without_traffic,
};
use queuescope_wire::{Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId};

/// The outcome of packets: when each came to the bottleneck and left it, or was dropped, and when it was delivered.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    left: Vec<(Nanos, Nanos)>,
    dropped: Vec<Nanos>,
    marked: u64,
    delivered: Vec<(Nanos, Ecn)>,
    tags: Vec<Option<u32>>,
}

impl Observer for Seen {
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, _headers: &Headers) {
        if link == LinkId(0) {
            self.left.push((departure.enqueued, departure.dequeued));
            self.tags.push(packet.foreign());
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, _headers: &Headers) {
        assert_eq!(link, LinkId(0));
        self.dropped.push(dropped.at);
        self.tags.push(packet.foreign());
    }

    fn marked(&mut self, _link: LinkId, _marked: &Packet, _reason: MarkReason, _now: Nanos, _packet: &InFlight) {
        self.marked += 1;
    }

    fn delivered(&mut self, _id: PacketId, packet: &InFlight, _headers: &Headers, now: Nanos) {
        self.delivered.push((now, packet.ecn));
    }
}

/// Datagrams of 1000 bytes, one per millisecond for 50 ms, to a link with half of that rate that marks and drops.
const TEXT: &str = r#"
    duration = "1s"
    link = { rate = "4mbps", delay = "3ms", limit = "15packets", discipline = { codel = { target = "2ms", interval = "10ms", ecn = true } } }
    access = { rate = "1gbps", delay = "1ms" }
    [[flows]]
    udp = { rate = "8mbps", packet = "1000B" }
    stop = "50ms"
    ecn = true
"#;

fn scenario() -> Scenario {
    Scenario::parse("test", TEXT, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn external_packets_are_treated_like_simulated_ones() {
    let mut simulated = Seen::default();
    let Built { mut simulation, .. } = build(&scenario(), &Files::default()).expect("it can be");
    simulation.run_until(Nanos(1_000_000_000), &mut simulated);
    let ends = simulated.delivered.len() + simulated.dropped.len();
    assert!(ends == 50 && simulated.marked > 0 && !simulated.dropped.is_empty(), "{simulated:?}");
    let Built { mut simulation, hosts, .. } = build_without_traffic(&scenario(), &Files::default()).expect("it can be");
    let params = EntranceParams { hosts: hosts[0][0], group: 0, class: Class(0), activity: None };
    let entrance = simulation.entrance(params).expect("there is a way");
    let mut seen = Seen::default();
    for tag in 0..50 {
        let packet = ExternalPacket { tag, flow: FlowId(7), bytes: 1000, ecn: Ecn::Ect0, tcp: None, abc: None };
        simulation.come(&entrance, &packet, Nanos(u64::from(tag) * 1_000_000), &mut seen);
    }
    finish(&mut simulation, &mut seen);
    assert_eq!(seen.tags.len(), 50);
    assert!(seen.tags.iter().all(Option::is_some) && simulated.tags.iter().all(Option::is_none));
    seen.tags = vec![None; 50];
    assert_eq!(seen, simulated);
}

/// As in a real-time run: from one event to the next.
fn finish(simulation: &mut Simulation, seen: &mut Seen) {
    while let Some(next) = simulation.next_time().filter(|next| *next <= Nanos(1_000_000_000)) {
        simulation.run_until(next, seen);
    }
    assert_eq!(simulation.on_their_way(), 0);
}
