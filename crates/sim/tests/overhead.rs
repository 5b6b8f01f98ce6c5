//! The overhead that a link adds to each packet, which its queue does not count.

use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Built, Files, LinkId, LinkStats, build};
use queuescope_wire::{ByteCount, Nanos};

/// Datagrams of 1500 bytes at ten times the link's rate, for a second.
fn run(settings: &[&str]) -> LinkStats {
    let text = "duration = \"1s\"\n[link]\nrate = \"10mbps\"\ndelay = \"0s\"\nlimit = \"15000B\"\noverhead = \"38B\"\n\
                [[flows]]\ncount = 2\nudp = { rate = \"50mbps\", packet = \"1500B\" }\n";
    let overrides: Vec<_> = settings.iter().map(|setting| Override::new((*setting).to_owned())).collect();
    let scenario = Scenario::parse("test", text, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let Built { mut simulation, .. } = build(&scenario, &Files::default()).expect("it can be");
    simulation.run_until(scenario.duration, &mut ());
    simulation.link(LinkId(0)).clone()
}

/// The transmission time of one packet with overhead.
const EACH: u64 = 1538 * 800;

#[test]
fn it_takes_time_and_no_room() {
    let stats = run(&[]);
    assert_eq!(stats.longest, ByteCount(15_000), "ten packets, not nine");
    // The link is always busy after the first arrival.
    let (sent, most) = (stats.sent.packets, 1_000_000_000_u64.div_ceil(EACH));
    assert!(sent == most || sent + 1 == most, "{sent} of {most}");
    assert_eq!(stats.sent.bytes, ByteCount(1500 * sent), "bytes are without it");
    // Nine packets before it, and the rest of the current transmission.
    let longest = stats.sojourn().expect("it is measured").percentile(100.0).expect("some were sent");
    assert!((9 * EACH..=10 * EACH + EACH / 100).contains(&longest.0), "{longest:?}");
}

#[test]
fn a_limit_in_time_has_it() {
    let time = Nanos(5 * EACH);
    for (time, packets) in [(time, 6), (Nanos(time.0 - 1), 5)] {
        let stats = run(&[&format!("link.limit=\"{}ns\"", time.0)]);
        assert_eq!(stats.longest, ByteCount(1500 * packets), "{time:?}");
    }
}
