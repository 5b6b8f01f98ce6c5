//! Links with random packet loss.

use queuescope_queue::Headers;
use queuescope_scenario::Scenario;
use queuescope_sim::{Built, Files, InFlight, LinkId, Observer, build};
use queuescope_wire::{Departure, Nanos, PacketId};

#[derive(Debug, Default)]
struct Seen {
    departed: u64,
    lost: u64,
    delivered: u64,
}

impl Observer for Seen {
    fn departed(&mut self, link: LinkId, _departure: &Departure, _packet: &InFlight, _headers: &Headers) {
        self.departed += u64::from(link == LinkId(0));
    }

    fn lost(&mut self, link: LinkId, _id: PacketId, _packet: &InFlight, _headers: &Headers, _now: Nanos) {
        assert_eq!(link, LinkId(0));
        self.lost += 1;
    }

    fn delivered(&mut self, _id: PacketId, _packet: &InFlight, _headers: &Headers, _now: Nanos) {
        self.delivered += 1;
    }
}

/// Datagrams for ten seconds, 1000 per second.
fn run(loss: &str, seed: u64) -> (Seen, u64) {
    let text = format!(
        "seed = {seed}\nduration = \"11s\"\nlink = {{ rate = \"100mbps\", loss = {loss} }}\n\
         [[flows]]\nudp = {{ rate = \"8mbps\", packet = \"1000B\" }}\nstop = \"10s\""
    );
    let scenario = Scenario::parse("test", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let Built { mut simulation, .. } = build(&scenario, &Files::default()).expect("it can be");
    let mut seen = Seen::default();
    simulation.run_until(scenario.duration, &mut seen);
    assert_eq!(simulation.on_their_way(), 0, "what is lost makes room");
    let stats = simulation.link(LinkId(0));
    assert_eq!(stats.drops.iter().sum::<u64>(), 0, "no queue dropped what the link lost");
    assert_eq!(stats.groups().iter().map(|group| (group.lost, group.dropped)).collect::<Vec<_>>(), [(stats.lost, 0)]);
    assert_eq!(stats.sent.packets, seen.departed, "what was lost was sent");
    (seen, stats.lost)
}

#[test]
fn the_share_of_lost_packets_is_as_configured() {
    let (seen, counted) = run("0.1", 1);
    assert_eq!((seen.departed, seen.delivered + seen.lost, counted), (10_000, 10_000, seen.lost));
    // Five standard deviations of a binomial distribution.
    assert!((seen.lost as f64 - 1_000.0).abs() < 5.0 * 30.0, "{}", seen.lost);
    let (other, _) = run("0.1", 2);
    assert_ne!(seen.lost, other.lost, "it is chance");
    for (loss, lost) in [("0.0", 0), ("1.0", 10_000)] {
        let (seen, counted) = run(loss, 1);
        assert_eq!((seen.lost, seen.delivered, counted), (lost, 10_000 - lost, lost));
    }
}
