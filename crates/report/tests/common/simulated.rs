//! A made-up simulation: flows that halve their windows when a queue overflows, short ones that start and end, and an
//! unrelated link. It depends only on the constants here.

use queuescope_report::model::*;
use std::collections::BTreeMap;

const STEP_NS: u64 = 10_000_000;
const DURATION_NS: u64 = 20_000_000_000;
const WARMUP_NS: u64 = 4_000_000_000;
/// Steps of a sample.
const SAMPLED: u64 = 10;
const RATE_BPS: u64 = 20_000_000;
const LIMIT: f64 = 150_000.0;
const SEGMENT: f64 = 1_448.0;
const BASE_RTT: f64 = 0.04;
/// Long flows, and short ones.
const LONG: u64 = 14;
const SHORT: u64 = 40;

struct Flow {
    flow: SimFlow,
    window: f64,
    /// Since the previous sample.
    delivered: f64,
    left: f64,
    alive: bool,
}

/// The simulation.
pub fn simulation() -> Sim {
    let mut flows: Vec<Flow> = (0..LONG + SHORT).map(flow).collect();
    let (mut backlog, mut time, mut samples) = (0.0f64, 0, Vec::new());
    let mut since = SimLinkSample {
        backlog_packets: 0,
        backlog_bytes: 0,
        sent_packets: 0,
        sent_bytes: 0,
        lost: 0,
        drops: 0,
        marks: 0,
        drop_probability: None,
    };
    let (mut sent_all, mut drops_all, mut marks_all, mut deepest) = (0, 0, 0, 0.0f64);
    while time < DURATION_NS {
        let seconds = STEP_NS as f64 / 1e9;
        let rtt = BASE_RTT + backlog * 8.0 / RATE_BPS as f64;
        for flow in &mut flows {
            flow.alive = flow.flow.started_ns <= time && flow.flow.finished_ns.is_none();
        }
        let wanted: f64 = flows.iter().filter(|flow| flow.alive).map(|flow| flow.window * seconds / rtt).sum();
        let able = RATE_BPS as f64 / 8.0 * seconds;
        let sent = (wanted + backlog).min(able);
        backlog = (backlog + wanted - sent).max(0.0);
        let part = if wanted > 0.0 { sent / wanted } else { 0.0 };
        for flow in flows.iter_mut().filter(|flow| flow.alive) {
            let got = (flow.window * seconds / rtt * part).min(flow.left);
            flow.left -= got;
            flow.delivered += got;
            flow.window += SEGMENT * seconds / rtt;
            flow.flow.rtt_ns = Some((rtt * 1e9) as u64);
            if time >= WARMUP_NS {
                flow.flow.delivered_bytes += got as u64;
            }
            if flow.left < 1.0 {
                flow.flow.finished_ns = Some(time + STEP_NS);
            }
        }
        if backlog > LIMIT {
            let mut there: Vec<_> = flows.iter_mut().filter(|flow| flow.alive).collect();
            there.sort_by(|a, b| b.window.total_cmp(&a.window));
            let struck = there.len().div_ceil(4);
            for flow in &mut there[..struck] {
                flow.window /= 2.0;
                flow.flow.retransmissions += 3;
            }
            since.drops += 3 * struck as u64;
            backlog -= 3.0 * SEGMENT;
        } else if backlog > LIMIT * 0.8 {
            since.marks += 1;
        }
        deepest = deepest.max(backlog);
        since.sent_bytes += sent as u64;
        time += STEP_NS;
        if time == WARMUP_NS {
            // Counters restart.
            since = SimLinkSample { sent_bytes: 0, drops: 0, marks: 0, ..since };
        }
        if time.is_multiple_of(SAMPLED * STEP_NS) {
            samples.push(sample(time, since, backlog, &mut flows));
            if time > WARMUP_NS {
                sent_all += since.sent_bytes;
                drops_all += since.drops;
                marks_all += since.marks;
            }
            since = SimLinkSample { sent_bytes: 0, drops: 0, marks: 0, ..since };
        }
    }
    let flows: Vec<SimFlow> = flows.into_iter().map(|flow| finished(flow.flow)).collect();
    let mut bottleneck = link("bottleneck", RATE_BPS, (sent_all, drops_all, marks_all), deepest as u64);
    bottleneck.groups = [("downloads", 16_000, 60), ("pages", 15_000, 55), ("call", 1_000, 9)]
        .map(|(name, packets, longest_ms)| SimLinkGroup {
            name: name.into(),
            loss_rate: 0.0,
            drop_rate: if name == "call" { 0.0 } else { bottleneck.drop_rate },
            mark_rate: if name == "call" { 0.0 } else { bottleneck.mark_rate },
            sojourn: times(packets, longest_ms * 1_000_000),
        })
        .into();
    Sim {
        name: "two kinds of flows".into(),
        about: Some("Downloads share a short buffer with pages that come and go.".into()),
        scenario: SCENARIO.into(),
        seed: 7,
        duration_ns: DURATION_NS,
        warmup_ns: WARMUP_NS,
        meter: "bottleneck".into(),
        links: vec![bottleneck, link("way back", 100_000_000, (12_000_000, 0, 0), 3_120)],
        groups: vec![group("downloads", "tcp cubic", &flows), group("pages", "tcp newreno", &flows), datagrams()],
        flows,
        flows_omitted: 0,
        samples,
        hops: 95_312,
        real_time: None,
    }
}

fn flow(number: u64) -> Flow {
    let short = number >= LONG;
    let nth = number.saturating_sub(LONG);
    // Sizes over two decades, in no particular order.
    let bytes = short.then(|| 12_000 * (1 + (nth * 37 % SHORT) * (nth * 37 % SHORT) / 6));
    let flow = SimFlow {
        number,
        name: format!(
            "10.{}.0.1:{} > 10.9.0.1:{} tcp",
            u64::from(short),
            49_152 + number,
            if short { 80 } else { 5001 }
        ),
        group: if short { "pages" } else { "downloads" }.into(),
        started_ns: if short { 1_000_000_000 + nth * 450_000_000 } else { number * 97_000_000 },
        finished_ns: None,
        bytes,
        delivered_bytes: 0,
        goodput_bps: 0.0,
        lifetime_goodput_bps: 0.0,
        retransmissions: 0,
        timeouts: 0,
        rtt_ns: None,
    };
    let left = bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
    Flow { flow, window: 10.0 * SEGMENT, delivered: 0.0, left, alive: false }
}

fn finished(flow: SimFlow) -> SimFlow {
    let seconds = (flow.finished_ns.unwrap_or(DURATION_NS).saturating_sub(flow.started_ns.max(WARMUP_NS))) as f64 / 1e9;
    let bits = flow.delivered_bytes as f64 * 8.0;
    let goodput_bps = bits / ((DURATION_NS - WARMUP_NS) as f64 / 1e9);
    let lifetime_goodput_bps = if seconds > 0.0 { bits / seconds } else { 0.0 };
    SimFlow { goodput_bps, lifetime_goodput_bps, ..flow }
}

fn sample(at_ns: u64, link: SimLinkSample, backlog: f64, flows: &mut [Flow]) -> SimSample {
    let backlog_bytes = backlog as u64;
    let link = SimLinkSample { backlog_bytes, backlog_packets: backlog_bytes / 1_500, ..link };
    let back = SimLinkSample {
        backlog_packets: 0,
        backlog_bytes: 0,
        sent_packets: 60,
        sent_bytes: 75_000,
        lost: 0,
        drops: 0,
        marks: 0,
        drop_probability: None,
    };
    let there = flows.iter_mut().filter(|flow| flow.alive).map(|flow| SimFlowSample {
        number: flow.flow.number,
        window_bytes: flow.window as u64,
        in_flight_bytes: (flow.window * 0.96) as u64,
        rtt_ns: flow.flow.rtt_ns,
        delivered_bytes: std::mem::take(&mut flow.delivered) as u64,
    });
    SimSample { at_ns, links: vec![link, back], flows: there.collect() }
}

fn link(name: &str, rate_bps: u64, (sent_bytes, drops, marks): (u64, u64, u64), deepest: u64) -> SimLink {
    let (sent_packets, able) = (sent_bytes / 1_250, rate_bps * (DURATION_NS - WARMUP_NS) / 8_000_000_000);
    let offered = sent_packets + drops;
    let counts = |reasons: &[(&str, u64)]| -> BTreeMap<String, u64> {
        reasons.iter().filter(|(_, n)| *n > 0).map(|(name, n)| ((*name).to_owned(), *n)).collect()
    };
    let longest = deepest * 8_000_000_000 / rate_bps;
    SimLink {
        name: name.into(),
        discipline: if drops > 0 { "red" } else { "tail-drop" }.into(),
        rate_bps,
        delay_ns: 20_000_000,
        overhead_bytes: 0,
        offered_packets: offered,
        offered_bytes: offered * 1_250,
        sent_packets,
        sent_bytes,
        utilisation: sent_bytes as f64 / able as f64,
        lost_packets: 0,
        loss_rate: 0.0,
        drops: counts(&[("overlimit", drops / 3), ("early", drops - drops / 3)]),
        marks: counts(&[("early", marks)]),
        drop_rate: drops as f64 / offered as f64,
        mark_rate: marks as f64 / offered as f64,
        wasted_ns: drops * 1_000,
        peak_backlog_bytes: deepest,
        sojourn: times(sent_packets, longest),
        groups: Vec::new(),
        counters: counts(&[("adaptations", drops)]),
    }
}

fn times(count: u64, longest: u64) -> SimTimes {
    SimTimes {
        count,
        mean_ns: longest as f64 * 0.61,
        p50_ns: longest * 6 / 10,
        p95_ns: longest * 9 / 10,
        p99_ns: longest * 97 / 100,
        max_ns: longest,
    }
}

fn group(name: &str, transport: &str, flows: &[SimFlow]) -> SimGroup {
    let own: Vec<&SimFlow> = flows.iter().filter(|flow| flow.group == name).collect();
    let counted = (DURATION_NS - WARMUP_NS) as f64 / 1e9;
    let there = own.iter().filter(|flow| flow.finished_ns.is_none_or(|at| at > WARMUP_NS));
    let goodput: Vec<f64> = there.map(|flow| flow.lifetime_goodput_bps).collect();
    let (all, squares) = (goodput.iter().sum::<f64>(), goodput.iter().map(|bps| bps * bps).sum::<f64>());
    let mut took: Vec<u64> = own
        .iter()
        .filter_map(|flow| flow.finished_ns.filter(|at| *at > WARMUP_NS).map(|at| at - flow.started_ns))
        .collect();
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() * percent / 100).min(took.len().saturating_sub(1))).copied();
    SimGroup {
        name: name.into(),
        transport: transport.into(),
        flows: own.len() as u64,
        finished: own.iter().filter(|flow| flow.finished_ns.is_some()).count() as u64,
        goodput_bps: own.iter().map(|flow| flow.delivered_bytes).sum::<u64>() as f64 * 8.0 / counted,
        least_lifetime_goodput_bps: goodput.iter().copied().fold(f64::INFINITY, f64::min),
        most_lifetime_goodput_bps: goodput.iter().copied().fold(0.0, f64::max),
        jain: all * all / (goodput.len() as f64 * squares),
        retransmissions: own.iter().map(|flow| flow.retransmissions).sum(),
        timeouts: 0,
        rtt_ns: Some(83_400_000.0),
        completion: at(50).map(|p50_ns| SimTimes {
            count: took.len() as u64,
            mean_ns: took.iter().sum::<u64>() as f64 / took.len() as f64,
            p50_ns,
            p95_ns: at(95).unwrap(),
            p99_ns: at(99).unwrap(),
            max_ns: *took.last().unwrap(),
        }),
    }
}

fn datagrams() -> SimGroup {
    SimGroup {
        name: "call".into(),
        transport: "udp".into(),
        flows: 1,
        finished: 0,
        goodput_bps: 80_000.0,
        least_lifetime_goodput_bps: 80_000.0,
        most_lifetime_goodput_bps: 80_000.0,
        jain: 1.0,
        retransmissions: 0,
        timeouts: 0,
        rtt_ns: None,
        completion: None,
    }
}

/// Replaces every name by `name`, or puts it before.
pub fn rename(sim: &mut Sim, name: &str) {
    sim.name = name.into();
    sim.about = Some(name.into());
    sim.scenario.insert_str(0, name);
    sim.meter.insert_str(0, name);
    for link in &mut sim.links {
        link.name.insert_str(0, name);
        link.discipline = name.into();
        link.drops.insert(name.into(), 1);
        link.counters.insert(name.into(), 1);
    }
    for group in &mut sim.groups {
        group.name.insert_str(0, name);
        group.transport = name.into();
    }
    for flow in &mut sim.flows {
        flow.name.insert_str(0, name);
        flow.group.insert_str(0, name);
    }
}

const SCENARIO: &str = r#"name = "two kinds of flows"
about = "Downloads share a short buffer with pages that come and go."
seed = 7
duration = "20s"
warmup = "4s"

[link]
rate = "20mbps"
delay = "20ms" # one way, and the way back is as long as that; a comment that goes on beyond the width of a phone
discipline = "red"
limit = "150kB"

[[flows]]
name = "downloads"
tcp = "cubic"
count = 14
"#;
