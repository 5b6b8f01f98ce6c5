//! Made-up reports that look like real ones: a fluid queue at a fixed rate, fed by flows with different patterns. They
//! depend only on the arguments; nothing is random between runs.
#![allow(dead_code, reason = "each test and example uses its own part")]

mod found;
mod simulated;

use queuescope_report::model::*;
use std::collections::BTreeMap;

/// One step of the made-up queue.
const STEP_NS: u64 = 100_000;

/// The parameters of a sample.
pub struct Recipe {
    /// Steps of 100 µs.
    pub steps: usize,
    pub rate_bps: u64,
    pub limit_bytes: f64,
    pub tau_ns: u64,
    /// Buckets of the series over the whole.
    pub buckets: usize,
    /// Traffic: (name, destination, bytes per step at a step).
    pub flows: Vec<(String, String, Habit)>,
}

/// The sending pattern of a flow.
pub enum Habit {
    /// Share of the link rate, all the time, with a slow swing.
    Steady(f64),
    /// Share of the link rate while on; on for `on` steps out of every `period`, from `phase`.
    OnOff { share: f64, on: usize, period: usize, phase: usize },
}

/// Twelve bursts in ten seconds at 100 Mb/s, IPv4 and IPv6, some drops.
pub fn usual() -> Report {
    let flow = |name: &str, to: &str, habit| (name.to_owned(), to.to_owned(), habit);
    let on_off = |share, on, period, phase| Habit::OnOff { share, on, period, phase };
    let mut report = report(&Recipe {
        steps: 100_000,
        rate_bps: 100_000_000,
        limit_bytes: 640_000.0,
        tau_ns: 6_000_000,
        buckets: 1200,
        flows: vec![
            flow("10.0.0.1:443 > 10.0.0.7:50010 tcp", "> 10.0.0.7", on_off(1.9, 420, 9_300, 4_000)),
            flow(
                "[2001:db8:4860:4802:32:a0ff:fe12:15]:443 > [2001:db8:1f0a:33b7:7c1e:9fff:fe01:a2b4]:61234 udp",
                "> 2001:db8:1f0a:33b7:7c1e:9fff:fe01:a2b4",
                on_off(1.3, 900, 23_000, 12_800),
            ),
            flow("10.0.0.2:445 > 10.0.0.9:49822 tcp", "> 10.0.0.9", Habit::Steady(0.21)),
            flow("192.0.2.14:873 > 10.0.0.7:40112 tcp", "> 10.0.0.7", on_off(1.1, 500, 31_000, 13_100)),
            flow("10.0.0.3:8080 > 10.0.0.12:51514 tcp", "> 10.0.0.12", Habit::Steady(0.13)),
            flow("198.51.100.77:80 > 10.0.0.9:33910 tcp", "> 10.0.0.9", on_off(0.7, 1500, 17_000, 3_700)),
            flow("10.0.0.5:5004 > 10.0.0.30:5004 udp", "> 10.0.0.30", Habit::Steady(0.08)),
            flow("[fe80::1] > [ff02::1] icmp6", "> ff02::1", Habit::Steady(0.01)),
            flow("10.0.0.6:22 > 10.0.0.7:59022 tcp", "> 10.0.0.7", Habit::Steady(0.03)),
            flow("10.0.0.8:53 > 10.0.0.12:60001 udp", "> 10.0.0.12", Habit::Steady(0.02)),
            flow("10.0.0.4:9100 > 10.0.0.30:41000 tcp", "> 10.0.0.30", on_off(0.3, 60, 1_000, 500)),
        ],
    });
    found::add(&mut report);
    report
}

/// A queue in which no packet waits long.
pub fn calm() -> Report {
    report(&Recipe {
        steps: 20_000,
        rate_bps: 1_000_000_000,
        limit_bytes: 1e9,
        tau_ns: 5_000_000,
        buckets: 400,
        flows: vec![
            (
                "10.0.0.1:443 > 10.0.0.7:50010 tcp".into(),
                "> 10.0.0.7".into(),
                Habit::OnOff { share: 1.2, on: 20, period: 4_000, phase: 1_000 },
            ),
            ("10.0.0.2:443 > 10.0.0.7:50011 tcp".into(), "> 10.0.0.7".into(), Habit::Steady(0.2)),
        ],
    })
}

/// A thousand bursts, ten thousand buckets.
pub fn many() -> Report {
    let mut flows: Vec<_> = (0..8)
        .map(|n| (format!("10.1.{n}.1:443 > 10.2.0.{n}:5{n}000 tcp"), format!("> 10.2.0.{n}"), Habit::Steady(0.05)))
        .collect();
    flows.push((
        "10.9.9.9:80 > 10.2.0.3:40000 tcp".into(),
        "> 10.2.0.3".into(),
        Habit::OnOff { share: 3.0, on: 16, period: 118, phase: 17 },
    ));
    report(&Recipe {
        steps: 120_000,
        rate_bps: 1_000_000_000,
        limit_bytes: 900_000.0,
        tau_ns: 1_000_000,
        buckets: 10_000,
        flows,
    })
}

/// An input without a packet.
pub fn empty() -> Report {
    let mut report = calm();
    report.totals = Totals::default();
    report.culprits.clear();
    report.series = None;
    report.sketch = sketch();
    report.input.damage = Some("The file ends inside the header of packet 1, at byte 24.".into());
    report
}

/// A table of departures: no rate, no utilisation, no series, times that are not dates.
pub fn without_rate() -> Report {
    let mut report = usual();
    report.input = Input { name: "-".into(), format: "csv".into(), first_ns: 1_250_000, damage: None };
    report.setup.rate_bps = None;
    report.totals.utilisation = None;
    report.series = None;
    for burst in &mut report.bursts {
        burst.series = None;
    }
    report.skipped.clear();
    report
}

/// The queue of a link of a simulation.
pub fn simulated() -> Report {
    let flow = |number: u64, share| {
        let name = format!("10.0.0.1:{} > 10.9.0.1:5001 tcp", 49_152 + number);
        (name, "> 10.9.0.1".to_owned(), Habit::OnOff { share, on: 800, period: 2_900, phase: number as usize * 301 })
    };
    let mut report = report(&Recipe {
        steps: 160_000,
        rate_bps: 20_000_000,
        limit_bytes: 150_000.0,
        tau_ns: 40_000_000,
        buckets: 400,
        flows: (0..6).map(|number| flow(number, 0.55)).collect(),
    });
    report.input =
        Input { name: "two-kinds.toml".into(), format: "scenario".into(), first_ns: 4_003_200_000, damage: None };
    report.setup.limit = "red".into();
    report.setup.overhead = "none".into();
    report.setup.split_gso = false;
    report.skipped.clear();
    report.sim = Some(simulated::simulation());
    report
}

/// An empty simulation: no measured link, no flow.
pub fn nothing_simulated() -> Report {
    let mut report = simulated();
    report.totals = Totals::default();
    report.bursts.clear();
    report.culprits.clear();
    report.series = None;
    let sim = report.sim.as_mut().unwrap();
    sim.about = None;
    sim.links.clear();
    sim.groups.clear();
    sim.flows.clear();
    sim.samples.clear();
    report
}

/// Names that try to be markup, in every place that has a name.
pub fn hostile() -> Report {
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{2028}&amp;";
    let mut report = usual();
    report.input.name = evil.into();
    report.setup.limit = evil.into();
    report.setup.granularities[0] = evil.into();
    let all = report.bursts.iter_mut().flat_map(|burst| burst.culprits.iter_mut()).chain(report.culprits.iter_mut());
    for culprits in all {
        for culprit in &mut culprits.flows {
            culprit.flow.insert_str(0, evil);
        }
    }
    for burst in &mut report.bursts {
        found::rename(burst, &|name| name.insert_str(0, evil));
    }
    for flow in report.series.iter_mut().flat_map(|series| series.flows.iter_mut()) {
        flow.flow.insert_str(0, evil);
    }
    report.skipped.push(Skipped { reason: evil.into(), count: 1, meaning: evil.into() });
    let mut sim = simulated::simulation();
    simulated::rename(&mut sim, evil);
    report.sim = Some(sim);
    report
}

/// A simulation with two meters.
pub fn two_queues() -> Report {
    Report { others: vec![OtherQueue { link: "way back".into(), report: calm() }], ..simulated() }
}

/// Every sample with its name.
pub fn all() -> Vec<(&'static str, Report)> {
    vec![
        ("usual", usual()),
        ("calm", calm()),
        ("many", many()),
        ("empty", empty()),
        ("without-rate", without_rate()),
        ("hostile", hostile()),
        ("simulated", simulated()),
        ("nothing-simulated", nothing_simulated()),
        ("two-queues", two_queues()),
    ]
}

/// The state after every step.
struct Trace {
    /// Depth by flow.
    held: Vec<Vec<f32>>,
    depth: Vec<f32>,
    sent: Vec<Vec<f32>>,
    drops: Vec<u64>,
}

/// Runs the queue and assembles the report as an analysis would.
pub fn report(recipe: &Recipe) -> Report {
    let trace = run(recipe);
    let delay = |step: usize| (f64::from(trace.depth[step]) * 8e9 / recipe.rate_bps as f64) as u64;
    let mut bursts = Vec::new();
    let mut step = 0;
    while step < recipe.steps {
        if delay(step) < recipe.tau_ns {
            step += 1;
            continue;
        }
        let from = step;
        while step < recipe.steps && delay(step) >= recipe.tau_ns {
            step += 1;
        }
        bursts.push(burst(recipe, &trace, bursts.len() as u64 + 1, from, step));
    }
    let duration_ns = recipe.steps as u64 * STEP_NS;
    let sent: f64 = trace.sent.iter().flatten().map(|&bytes| f64::from(bytes)).sum();
    let bytes = sent as u64;
    let packets = bytes / 1100;
    let dropped: u64 = trace.drops.iter().sum();
    let mut delays: Vec<u64> = (0..recipe.steps).map(delay).collect();
    delays.sort_unstable();
    let percentile = |p: f64| (p, delays[((delays.len() - 1) as f64 * p / 100.0) as usize]);
    let deepest = trace.depth.iter().fold(0f32, |a, &b| a.max(b));
    let in_bursts: Vec<usize> = (0..recipe.steps).filter(|&step| delay(step) >= recipe.tau_ns).collect();
    Report {
        tap: None,
        sim: None,
        others: Vec::new(),
        input: Input {
            name: "uplink-2026-03-14.pcap.zst".into(),
            format: "pcap (zstd)".into(),
            first_ns: 1_773_457_623_417_882_000,
            damage: None,
        },
        setup: Setup {
            rate_bps: Some(recipe.rate_bps),
            aqm: None,
            limit: format!("{} kB", (recipe.limit_bytes / 1e3) as u64),
            speedup: "1".into(),
            overhead: "ethernet".into(),
            overhead_bytes: 24,
            inner: false,
            split_gso: true,
            granularities: vec!["5tuple".into(), "dst".into(), "src-dst".into()],
            tau_ns: recipe.tau_ns,
            tau_source: "1/8 of the largest delay".into(),
            alpha: 0.05,
            input_filter: None,
            victims_filter: None,
            show_filter: None,
            behaviour: None,
            sketch: SketchSetup {
                snapshots: 4,
                rows: 2,
                columns: 64,
                window_ns: 16_777_216,
                window_source: "the largest delay, divided among the snapshots that are read".into(),
                expiry: "tag".into(),
                bytes: 4096,
            },
        },
        totals: Totals {
            packets: packets + dropped,
            bytes: bytes + dropped * 1100,
            flows: vec![
                FlowCount { granularity: "5tuple".into(), flows: 1_318, exact: true, unknown_packets: 0 },
                FlowCount { granularity: "dst".into(), flows: 211, exact: true, unknown_packets: 0 },
                FlowCount { granularity: "src-dst".into(), flows: 640, exact: false, unknown_packets: 0 },
            ],
            duration_ns,
            departed_packets: packets,
            departed_bytes: bytes,
            drops: BTreeMap::from([("queue full".into(), dropped)]),
            drops_unfiltered: false,
            marks: BTreeMap::new(),
            offered_bps: Some((sent + dropped as f64 * 1100.0) * 8e9 / duration_ns as f64),
            utilisation: Some(sent * 8e9 / duration_ns as f64 / recipe.rate_bps as f64),
            waited_share: delays.iter().filter(|&&delay| delay > 0).count() as f64 / delays.len() as f64,
            delay_percentiles: [50.0, 90.0, 99.0, 99.9, 100.0].map(percentile).to_vec(),
            peak_delay_ns: delays.last().copied().unwrap_or(0),
            peak_depth_bytes: deepest as u64,
            peak_depth_packets: deepest as u64 / 1100,
            flows_in_queue_mean: Some(7.31),
            super_packets: 0,
            victims: None,
        },
        bursts_omitted: 0,
        culprits: culprits(recipe, &trace, &in_bursts),
        sketch: sketch(),
        skipped: vec![
            Skipped {
                reason: "not_ip".into(),
                count: 214,
                meaning: "Frames without an IP header count as queue load, under their EtherType.".into(),
            },
            Skipped {
                reason: "out_of_order".into(),
                count: 3,
                meaning: "Packets with a time before their predecessor's were taken as arriving with it.".into(),
            },
        ],
        series: Some(series(recipe, &trace, 0, recipe.steps, recipe.buckets)),
        bursts,
    }
}

fn run(recipe: &Recipe) -> Trace {
    let per_step = recipe.rate_bps as f64 / 8.0 * STEP_NS as f64 / 1e9;
    let count = recipe.flows.len();
    let mut held = vec![0f64; count];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut trace = Trace { held: Vec::new(), depth: Vec::new(), sent: Vec::new(), drops: Vec::new() };
    for step in 0..recipe.steps {
        let mut dropped = 0.0;
        for (flow, (_, _, habit)) in recipe.flows.iter().enumerate() {
            let share = match *habit {
                Habit::Steady(share) => {
                    share * (1.0 + 0.4 * (step as f64 / 2_500.0 + flow as f64).sin()) * 2.0 * noise()
                }
                Habit::OnOff { share, on, period, phase } if (step + period - phase % period) % period < on => {
                    share * 2.0 * noise()
                }
                Habit::OnOff { .. } => 0.0,
            };
            let bytes = share * per_step;
            let room = recipe.limit_bytes - held.iter().sum::<f64>();
            held[flow] += bytes.min(room.max(0.0));
            dropped += (bytes - room.max(0.0)).max(0.0);
        }
        let depth: f64 = held.iter().sum();
        let part = if depth > 0.0 { (per_step / depth).min(1.0) } else { 0.0 };
        let sent: Vec<f64> = held.iter().map(|bytes| bytes * part).collect();
        for (bytes, sent) in held.iter_mut().zip(&sent) {
            *bytes -= sent;
        }
        trace.sent.push(sent.iter().map(|&bytes| bytes as f32).collect());
        trace.held.push(held.iter().map(|&bytes| bytes as f32).collect());
        trace.depth.push(held.iter().sum::<f64>() as f32);
        trace.drops.push((dropped / 1100.0).ceil() as u64);
    }
    trace
}

fn burst(recipe: &Recipe, trace: &Trace, number: u64, from: usize, to: usize) -> Burst {
    let steps: Vec<usize> = (from..to).collect();
    let peak =
        steps.iter().copied().fold(from, |best, step| if trace.depth[step] > trace.depth[best] { step } else { best });
    let bytes = steps.iter().flat_map(|&step| &trace.sent[step]).map(|&bytes| f64::from(bytes)).sum::<f64>() as u64;
    let margin = (to - from) / 4 + 5;
    let (first, last) = (from.saturating_sub(margin), (to + margin).min(recipe.steps));
    Burst {
        number,
        start_ns: from as u64 * STEP_NS,
        length_ns: (to - from) as u64 * STEP_NS,
        peak_delay_ns: (f64::from(trace.depth[peak]) * 8e9 / recipe.rate_bps as f64) as u64,
        peak_at_ns: peak as u64 * STEP_NS,
        peak_depth_bytes: trace.depth[peak] as u64,
        peak_depth_packets: trace.depth[peak] as u64 / 1100,
        tau_ns: recipe.tau_ns,
        packets_over_tau: bytes / 1300,
        packets: bytes / 1100,
        bytes,
        drops: trace.drops[from..to].iter().sum(),
        culprits: culprits(recipe, trace, &steps),
        groups: Vec::new(),
        worst: None,
        series: Some(series(recipe, trace, first, last, (last - first).min(240))),
    }
}

fn culprits(recipe: &Recipe, trace: &Trace, steps: &[usize]) -> Vec<Culprits> {
    let by = |granularity: &str, name: &dyn Fn(usize) -> String| {
        let mut groups: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for flow in 0..recipe.flows.len() {
            let entry = groups.entry(name(flow)).or_default();
            entry.0 += steps.iter().map(|&step| f64::from(trace.sent[step][flow])).sum::<f64>();
            entry.1 += steps.iter().map(|&step| f64::from(trace.held[step][flow])).fold(0.0, f64::max);
        }
        let total: f64 = groups.values().map(|(bytes, _)| bytes).sum::<f64>().max(1.0);
        let mut flows: Vec<Culprit> = groups
            .iter()
            .map(|(flow, &(bytes, peak))| Culprit {
                flow: flow.clone(),
                bytes: bytes as u64,
                packets: (bytes / 1100.0) as u64,
                share: bytes / total,
                peak_bytes: peak as u64,
                ramp: None,
                new: false,
                owner: None,
                behaviour: None,
            })
            .collect();
        flows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.flow.cmp(&b.flow)));
        flows.retain(|culprit| culprit.share >= 0.05);
        let culprits_total = flows.len() as u64;
        Culprits {
            granularity: granularity.into(),
            flows,
            flows_total: groups.len() as u64,
            culprits_total,
            share_error: 0.0,
            not_shown: None,
        }
    };
    let source = |flow: usize| {
        let name = &recipe.flows[flow].0;
        match name.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default().to_owned(),
            None => name.split(':').next().unwrap_or_default().to_owned(),
        }
    };
    vec![
        by("5tuple", &|flow| recipe.flows[flow].0.clone()),
        by("dst", &|flow| recipe.flows[flow].1.clone()),
        by("src-dst", &|flow| format!("{} {}", source(flow), recipe.flows[flow].1)),
    ]
}

fn sketch() -> Vec<SketchScore> {
    let mut scores = Vec::new();
    for granularity in ["5tuple", "dst"] {
        for (estimator, tp, fp, r#fn, error) in [
            ("inner", 31_200, 110, 2_330, 4_120.0),
            ("outer", 33_480, 2_950, 50, 9_870.0),
            ("overlap", 33_100, 640, 430, 2_210.0),
        ] {
            scores.push(SketchScore {
                granularity: granularity.into(),
                estimator: estimator.into(),
                queries: 48_211,
                true_positives: tp,
                false_positives: fp,
                false_negatives: r#fn,
                precision: Some(tp as f64 / (tp + fp) as f64),
                recall: Some(tp as f64 / (tp + r#fn) as f64),
                mean_error_bytes: Some(error),
            });
        }
    }
    scores
}

/// Depth over the steps `from..to` in at most `buckets` buckets, with the eight largest flows.
fn series(recipe: &Recipe, trace: &Trace, from: usize, to: usize, buckets: usize) -> Series {
    let per = (to - from).div_ceil(buckets.max(1)).max(1);
    let ranges: Vec<_> = (from..to).step_by(per).map(|first| first..(first + per).min(to)).collect();
    let mean = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
        ranges.iter().map(|range| range.clone().map(of).sum::<f64>() / range.len() as f64).collect()
    };
    let mut flows: Vec<SeriesFlow> = (0..recipe.flows.len())
        .map(|flow| SeriesFlow {
            flow: recipe.flows[flow].0.clone(),
            mean_bytes: mean(&|step| f64::from(trace.held[step][flow])),
        })
        .collect();
    flows.sort_by(|a, b| b.mean_bytes.iter().sum::<f64>().total_cmp(&a.mean_bytes.iter().sum()));
    flows.truncate(8);
    let peak = |range: &std::ops::Range<usize>| range.clone().map(|step| trace.depth[step]).fold(0f32, f32::max);
    Series {
        start_ns: from as u64 * STEP_NS,
        bucket_ns: per as u64 * STEP_NS,
        mean_bytes: mean(&|step| f64::from(trace.depth[step])),
        peak_delay_ns: ranges
            .iter()
            .map(|range| (f64::from(peak(range)) * 8e9 / recipe.rate_bps as f64) as u64)
            .collect(),
        drops: ranges.iter().map(|range| range.clone().map(|step| trace.drops[step]).sum()).collect(),
        flows,
    }
}
