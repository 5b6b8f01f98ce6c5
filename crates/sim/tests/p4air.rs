//! P4air in scenarios: which group flows of real congestion controls end in, and what that does for fairness.

use queuescope_queue::{AnyPipeline, P4air, Port};
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Built, Files, build};
use queuescope_sketch::FlowGroup;
use queuescope_wire::FlowId;
use std::collections::BTreeMap;

fn run(text: &str, changes: &[String]) -> Built {
    let overrides: Vec<_> = changes.iter().map(String::as_str).map(Override::new).collect();
    let scenario = Scenario::parse("test", text, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let mut built = build(&scenario, &Files::default()).unwrap();
    built.simulation.run_until(scenario.duration, &mut ());
    built
}

fn program(built: &Built) -> &P4air {
    let Some(AnyPipeline::P4air(program)) = built.simulation.program(built.meters[0]) else { panic!("it is P4air") };
    program
}

/// The setting of the paper's figure 3: 1000 packets a second, 100 packets of buffer.
const ONE: &str = r#"
access = { rate = "1gbps", delay = "1ms" }

[link]
rate = "12mbps"
delay = "10ms"
limit = "100packets"

[link.pipeline.p4air.actions]
delay-based = "nothing"
loss-delay = "nothing"
loss-based = "nothing"
model-based = "nothing"

[[flows]]
"#;

/// The groups in which one flow alone ends, with these round-trip times in ms, after 400 of them.
fn ends(control: &str, rtts: &[u32], keys: &[&str]) -> BTreeMap<FlowGroup, u32> {
    let mut ends = BTreeMap::new();
    for rtt in rtts {
        let duration = rtt * 400;
        let mut changes = vec![
            format!("flows.0.tcp=\"{control}\""),
            format!("flows.0.rtt=\"{rtt}ms\""),
            format!("duration=\"{duration}ms\""),
        ];
        changes.extend(keys.iter().map(|key| format!("link.pipeline.p4air.{key}")));
        let built = run(ONE, &changes);
        let program = program(&built);
        // The handshake gives the round-trip time, to 1.5 % (the paper's figure 7(a)).
        let measured = program.rtt(FlowId(0)).expect("it is known").as_secs_f64() * 1e3;
        assert!((measured / f64::from(*rtt) - 1.0).abs() < 0.015, "{control}: {measured} ms instead of {rtt} ms");
        *ends.entry(program.group(FlowId(0)).expect("it is known")).or_insert(0) += 1;
    }
    ends
}

/// Figure 6 in small: round-trip times from 50 to 150 ms.
#[test]
fn flows_end_in_the_group_of_their_congestion_control() {
    let ends = |control: &str| ends(control, &[50, 70, 90, 110, 130, 150], &[]);
    assert_eq!(ends("vegas"), BTreeMap::from([(FlowGroup::DelayBased, 6)]));
    assert_eq!(ends("bbr"), BTreeMap::from([(FlowGroup::ModelBased, 6)]));
    assert_eq!(ends("cubic"), BTreeMap::from([(FlowGroup::LossBased, 6)]));
    // The paper has 30 of 100 runs of NewReno loss-based, and all others loss-delay.
    let new_reno = ends("newreno");
    assert_eq!(new_reno.keys().copied().collect::<Vec<_>>(), [FlowGroup::LossDelay, FlowGroup::LossBased]);
    assert!((1..=3).contains(&new_reno[&FlowGroup::LossBased]), "{new_reno:?}");
}

/// BBRv3 probes every two to three seconds, and so seldom that the paper's values miss it.
#[test]
fn slow_pulses_find_bbrv3() {
    let rtts = [60, 80, 110, 150];
    assert_eq!(ends("bbr3", &rtts, &[]).get(&FlowGroup::ModelBased), None);
    let slow = ["fingerprint.pulse=4", "fingerprint.period=255", "scalable=true"];
    assert_eq!(ends("bbr3", &rtts, &slow), BTreeMap::from([(FlowGroup::ModelBased, 4)]));
    assert_eq!(ends("bbr", &rtts, &slow), BTreeMap::from([(FlowGroup::ModelBased, 4)]));
    assert_eq!(ends("prague", &rtts, &slow), BTreeMap::from([(FlowGroup::Scalable, 4)]));
    for control in ["cubic", "newreno", "illinois", "vegas"] {
        assert_eq!(ends(control, &rtts, &slow).get(&FlowGroup::ModelBased), None, "{control}");
    }
}

/// 32 flows of four controls; each queue of a port that has several holds its share of the buffer. The rate is a 32nd of
/// the paper's 10 Gb/s, with a quarter of its 128 flows at an eighth of their rates, so that the computed share exceeds the exact one by as much as there, 17 %.
fn mix(link: &str) -> (f64, Built) {
    let mut text = format!(
        r#"
duration = "30s"
warmup = "10s"
access = {{ rate = "1gbps", delay = "1ms" }}
[link]
rate = "312500kbps"
delay = "10ms"
{link}
"#
    );
    for control in ["cubic", "illinois", "bbr", "vegas"] {
        text += &format!("[[flows]]\nname = \"{control}\"\ncount = 8\ntcp = \"{control}\"\nrtt = \"100ms\"\n");
    }
    let built = run(&text, &[]);
    let flows = built.simulation.flows();
    let rates: Vec<f64> = flows.iter().map(|flow| (flow.delivered - flow.in_warmup.delivered) as f64).collect();
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    (sum * sum / (rates.len() as f64 * squares), built)
}

#[test]
fn flows_of_four_kinds_share_more_fairly_than_without_it() {
    let (no_aqm, _) = mix("limit = \"2604packets\"");
    let (queues, _) = mix("limit = \"81packets\"\npipeline = { hash-to-queues = { queues = 32 } }");
    let (p4air, built) = mix("limit = \"81packets\"\npipeline = { p4air = {} }");
    assert!(p4air > no_aqm && p4air > queues, "{p4air:.3}, without AQM {no_aqm:.3}, with hashed queues {queues:.3}");
    // One queue for each group, with a quarter of the buffer.
    let (weighted, _) = mix("limit = \"520packets\"\npipeline = { p4air = { queueing = \"weighted\" } }");
    assert!(weighted > no_aqm, "{weighted:.3}, without AQM {no_aqm:.3}");
    let program = program(&built);
    // All flows are long-lived, and each has a queue of its group.
    let flows: u32 =
        FlowGroup::LONG_LIVED.iter().map(|group| program.queues_of(Port(0), *group).expect("it is long-lived").1).sum();
    assert_eq!(flows, 32);
    for flow in built.simulation.flows() {
        let group = program.group(FlowId(2 * flow.number as u32)).expect("it is known");
        let control = ["cubic", "illinois", "bbr", "vegas"][flow.group as usize];
        assert!(control != "bbr" || group == FlowGroup::ModelBased, "{control}: {group:?}");
    }
}

/// The mean difference from 100 ms of what two switches in a row take for the round-trip times of flows, in ms. Flows start
/// while those before them are in slow start, so that some handshakes wait.
fn rtt_error(keys: &str) -> f64 {
    let wire = |from: u32| {
        format!(
            "[[wires]]\nname = \"wire{from}\"\nfrom = \"s{from}\"\nto = \"s{}\"\nrate = \"20mbps\"\npipeline = {{ p4air = {{ {keys} }} }}\n",
            from + 1
        )
    };
    let text = format!(
        "duration = \"5s\"\ntopology = \"graph\"\naccess = {{ rate = \"1gbps\", delay = \"1ms\" }}\n{}{}[[flows]]\ncount = 30\n\
         tcp = \"newreno\"\nrtt = \"100ms\"\nspread = \"300ms\"\nfrom = \"s1\"\nto = \"s3\"\n",
        wire(1),
        wire(2)
    );
    let built = run(&text, &[]);
    let mut errors = Vec::new();
    for link in built.simulation.measured() {
        let Some(AnyPipeline::P4air(program)) = built.simulation.program(link) else { panic!("it is P4air") };
        for flow in built.simulation.flows() {
            let rtt = program.rtt(FlowId(2 * flow.number as u32)).expect("it is known");
            errors.push((rtt.as_secs_f64() * 1e3 - 100.0).abs());
        }
    }
    assert_eq!(errors.len(), 2 * 30);
    errors.iter().sum::<f64>() / errors.len() as f64
}

#[test]
fn round_trip_times_are_better_with_later_packets_or_with_the_delays_of_other_switches() {
    let errors = ["", "rtt = \"timestamps\"", "rtt = \"sequence\"", "rtt = \"less-queueing\""].map(rtt_error);
    let [handshake, timestamps, sequence, less_queueing] = errors;
    assert!(handshake > 5.0, "{errors:?}");
    // Both switches report all that the handshake waited, but for the link's own time of the packet.
    assert!(less_queueing < 0.5, "{errors:?}");
    assert!(timestamps < handshake / 2.0 && sequence < handshake, "{errors:?}");
}
