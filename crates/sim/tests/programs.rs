//! Switch programs in scenarios: behaviour that depends on the scenario around them.

use queuescope_queue::MarkReason;
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Built, Files, InFlight, LinkId, Observer, build};
use queuescope_wire::{ByteCount, Nanos, Packet};

const SECOND: u64 = 1_000_000_000;

/// Runs a scenario to its end.
fn run(text: &str, changes: &[&str], observer: &mut impl Observer) -> Built {
    let overrides: Vec<_> = changes.iter().copied().map(Override::new).collect();
    let scenario = Scenario::parse("test", text, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let mut built = build(&scenario, &Files::default()).unwrap();
    built.simulation.run_until(scenario.duration, observer);
    built
}

/// For each group at the first meter's link: Mb/s, and the mean sojourn time in milliseconds.
fn shares(built: &Built) -> Vec<(f64, f64)> {
    let simulation = &built.simulation;
    let seconds = (simulation.now() - simulation.warmup()).as_secs_f64();
    let groups = simulation.link(built.meters[0]).groups().iter();
    let share = |sojourn: &queuescope_sim::summary::Times| {
        (sojourn.count() as f64 * 12e-3 / seconds, sojourn.mean().unwrap_or(0.0) / 1e6)
    };
    groups.map(|group| share(&group.sojourn)).collect()
}

/// The values of the paper's experiment (docs/explanation/abc.md), and two users, one of whom sends twice as much.
const CLASSES: &str = r#"
duration = "20s"
warmup = "5s"
access = { rate = "100mbps", delay = "5ms" }
link = { rate = "50mbps", delay = "5ms", limit = "24packets", pipeline = { abc = { surcharges = [0.0, 0.0] } } }

[[flows]]
name = "patient"
udp = "40mbps"
class = 1

[[flows]]
name = "urgent"
udp = "20mbps"
"#;

#[test]
fn the_urgent_class_waits_less_and_gets_no_more() {
    let result = shares(&run(CLASSES, &[], &mut ()));
    let [(patient, patient_wait), (urgent, urgent_wait)] = result[..] else { panic!("{result:?}") };
    assert!((patient - 30.0).abs() < 1.0 && (urgent - 20.0).abs() < 1.0, "{result:?}");
    assert!(urgent_wait < 0.5 && patient_wait > 3.0, "{result:?}");

    // In one class all packets wait equally long, whatever class the flows have.
    let one = shares(&run(CLASSES, &["link.pipeline.abc.surcharges=[0.0]"], &mut ()));
    assert!((one[0].1 / one[1].1 - 1.0).abs() < 0.1 && one[0].1 > 2.0, "{one:?}");

    // The class is that of the flows; it changes which packets wait, not which are dropped.
    let swapped = shares(&run(CLASSES, &["flows.patient.class=0", "flows.urgent.class=1"], &mut ()));
    assert!(swapped[0].1 < 0.5 && swapped[1].1 > 3.0, "{swapped:?}");
    assert!((swapped[0].0 - patient).abs() < 1.0 && (swapped[1].0 - urgent).abs() < 1.0, "{swapped:?}");

    // The surcharge has its price: as if the urgent user sent four times as much.
    let result = shares(&run(CLASSES, &["link.pipeline.abc.surcharges=[2.0, 0.0]"], &mut ()));
    let [(patient, _), (urgent, urgent_wait)] = result[..] else { panic!("{result:?}") };
    assert!(patient > 38.0 && urgent < 12.0 && urgent_wait < 0.5, "{result:?}");
}

/// The queues of several classes together hold the link's limit, too.
#[test]
fn the_limit_is_of_all_classes_together() {
    let register =
        "link.pipeline={ abc = { surcharges = [0.0, 0.0], queue-length = \"register\", aqm = { base = 1000.0 } } }";
    let built = run(CLASSES, &[register], &mut ());
    assert_eq!(built.simulation.link(built.meters[0]).longest, ByteCount(24 * 1500));
}

/// The times of marks.
#[derive(Default)]
struct Marks(Vec<Nanos>);

impl Observer for Marks {
    fn marked(&mut self, _: LinkId, _: &Packet, reason: MarkReason, now: Nanos, _: &InFlight) {
        assert_eq!(reason, MarkReason::FlowWeight);
        self.0.push(now);
    }
}

/// A heavy flow, and a threshold that no flow reaches.
const CHANGES: &str = r#"
duration = "4s"

[link]
rate = "20mbps"
delay = "5ms"
limit = "100packets"

[link.pipeline.conquest-aqm]
snapshots = 8
window = "8ms"
tau = "5ms"
threshold = 1000.0

[[flows]]
udp = { rate = "30mbps", on = "1s", off = "1us" }
ecn = true
"#;

#[test]
fn marks_begin_and_end_with_changes_of_the_parameters() {
    let marks = |changes: &[&str]| {
        let mut marks = Marks::default();
        let built = run(CHANGES, changes, &mut marks);
        assert_eq!(built.simulation.link(built.meters[0]).marks.iter().sum::<u64>(), marks.0.len() as u64);
        marks.0
    };
    let within = |marks: &[Nanos], from: u64, to: u64| {
        assert!(marks.len() > 500, "{}", marks.len());
        let (first, last) = (marks[0], marks[marks.len() - 1]);
        // A packet leaves every 0.6 ms.
        assert!(Nanos(from) <= first && first < Nanos(from + SECOND / 500), "{first}");
        assert!(Nanos(to - SECOND / 500) < last && last <= Nanos(to), "{last}");
    };
    assert_eq!(marks(&[]), []);
    let lower = "link.pipeline.conquest-aqm.changes=[{ at = \"2s\", threshold = 40 }]";
    within(&marks(&[lower]), 2 * SECOND, 4 * SECOND);
    let both =
        "link.pipeline.conquest-aqm.changes=[{ at = \"1s\", threshold = 40 }, { at = \"2500ms\", tau = \"1s\" }]";
    within(&marks(&[both]), SECOND, 5 * SECOND / 2);
    // The later change alone leaves the threshold unchanged.
    let tau = "link.pipeline.conquest-aqm.changes=[{ at = \"0s\", tau = \"0s\" }]";
    assert_eq!(marks(&[tau]), []);
}

/// A flow that sends more than the link carries, and ten that send little. The first fills the queue.
const FEEDBACK: &str = r#"
duration = "6s"
warmup = "1s"

[link]
rate = "100mbps"
delay = "5ms"
limit = "400packets"

[link.pipeline.conquest-aqm]
tau = "5ms"
threshold = 40.0
snapshots = 8
window = "8ms"
act-at = { ingress = { hold = "20ms" } }

[[flows]]
name = "heavy"
udp = "150mbps"

[[flows]]
name = "light"
udp = "2mbps"
count = 10
spread = "6ms"
"#;

/// Feedback of contributing flows (ConQuest, section 4.2): dropped, limited or put into another queue, the heavy flow has less of the link, and the
/// others have all that they send, without its queue.
#[test]
fn feedback_lowers_the_share_of_the_heavy_flow() {
    let with = |changes: &[&str]| {
        let shares = shares(&run(FEEDBACK, changes, &mut ()));
        let [(heavy, _), (light, wait)] = shares[..] else { panic!("two groups: {shares:?}") };
        println!("{changes:?}: heavy {heavy:.1} Mb/s, light {light:.1} Mb/s and {wait:.2} ms");
        (heavy, light, wait)
    };
    let held = "link.pipeline.conquest-aqm.act-at.ingress";
    let action = |action: &str, hold: &str| with(&[&format!("{held}.action={action}"), &format!("{held}.hold={hold}")]);
    let (heavy, light, wait) = with(&["link.pipeline=none"]);
    assert!(heavy > 85.0 && light < 13.5 && wait > 40.0, "{heavy}, {light}, {wait}");
    let (dropped, light, wait) = action("drop", "20ms");
    assert!((30.0..60.0).contains(&dropped) && light > 19.5 && wait < 5.0, "{dropped}, {light}, {wait}");
    // A packet of 1500 bytes each 0.3 ms is 40 Mb/s. Between holds, the flow is not limited until it has a queue again.
    let limit = "{limit={interval=\"300us\"}}";
    let (limited, light, wait) = action(limit, "20ms");
    assert!((60.0..80.0).contains(&limited) && light > 19.5 && wait < 6.0, "{limited}, {light}, {wait}");
    let (limited, light, wait) = action(limit, "1s");
    assert!((39.0..45.0).contains(&limited) && light > 19.5 && wait < 2.0, "{limited}, {light}, {wait}");
    let (rerouted, light, wait) = action("reroute", "20ms");
    assert!((75.0..81.0).contains(&rerouted) && light > 19.5 && wait < 5.0, "{rerouted}, {light}, {wait}");
}

/// Two links with one program at one switch.
const TWO: &str = r#"
topology = "graph"
duration = "6s"
warmup = "2s"
access = { rate = "100mbps" }

[link]
delay = "10ms"
limit = "none"
pipeline = { ack-window = { base-rtt = "30ms" } }

[[wires]]
from = "a"
to = "b"
rate = "20mbps"

[[wires]]
from = "a"
to = "c"
rate = "10mbps"

[[flows]]
from = "a"
to = "b"
count = 2

[[flows]]
from = "a"
to = "c"
count = 3

[[meters]]
link = "a-b"

[[meters]]
link = "a-c"
"#;

#[test]
fn receive_windows_are_bounded_for_both_links() {
    let sojourn = |changes: &[&str]| {
        let built = run(TWO, changes, &mut ());
        let seconds = (built.simulation.now() - built.simulation.warmup()).as_secs_f64();
        let at = |link: &LinkId| {
            let stats = built.simulation.link(*link);
            (stats.sojourn().unwrap().mean().unwrap() / 1e6, stats.sent.bytes.0 as f64 * 8e-6 / seconds)
        };
        built.meters.iter().map(at).collect::<Vec<_>>()
    };
    let [(first, one), (second, other)] = sojourn(&[])[..] else { panic!("two meters") };
    assert!(first < 15.0 && second < 15.0, "{first} ms, {second} ms");
    assert!(one > 17.0 && other > 8.5, "{one} and {other} Mb/s");
    // Without a limit and without the program the queues grow without bound.
    let [(first, _), (second, _)] = sojourn(&["link.pipeline=none"])[..] else { panic!("two meters") };
    assert!(first > 50.0 && second > 50.0, "{first} ms, {second} ms");
}

#[test]
fn links_with_one_program_have_their_own_limits() {
    let udp = [
        "flows.0.udp=60mbps",
        "flows.1.udp=60mbps",
        "link.pipeline.pie-cp.act=false",
        "wires.0.limit=40packets",
        "wires.1.limit=10packets",
    ];
    let built = run(TWO, &udp, &mut ());
    let longest = |meter: usize| built.simulation.link(built.meters[meter]).longest;
    assert_eq!((longest(0), longest(1)), (ByteCount(40 * 1500), ByteCount(10 * 1500)));
}
