//! Made-up parts of a burst beside its flows: groups, growth, and the culprits of its worst packet. They are derived
//! from the flows and differ from burst to burst, so that every case occurs; the first burst has all parts.

use queuescope_report::model::{Burst, ClassPart, Culprit, Group, Part, Parts, Ranked, Report, Worst};

/// Adds to every burst the parts for its number.
pub fn add(report: &mut Report) {
    for burst in &mut report.bursts {
        let number = burst.number;
        let Some(first) = burst.culprits.first_mut() else { continue };
        if number % 3 == 1 {
            growth(&mut first.flows);
        }
        let flows = &first.flows;
        let heavy: Vec<&Culprit> = flows.iter().filter(|flow| flow.flow.contains("> 10.0.0.7:")).collect();
        burst.groups = match number % 4 {
            1 => vec![incast(burst.bytes, burst.packets, &heavy)],
            2 => vec![incast(burst.bytes, burst.packets, &[]), subnet(burst.bytes / 4, burst.packets / 4)],
            _ => Vec::new(),
        };
        let busy = burst.length_ns / 3;
        burst.worst = (number % 5 != 0).then(|| Worst {
            since_ns: burst.peak_at_ns.saturating_sub(busy),
            direct: ranked(burst.peak_depth_bytes, flows.iter()),
            indirect: ranked(if number == 3 { 0 } else { burst.bytes / 3 }, flows.iter().rev()),
            original: (number % 2 == 1).then(|| {
                let mut original = ranked(burst.peak_depth_bytes, flows.iter().take(2));
                original.groups = vec![incast(burst.peak_depth_bytes, 580, &[])];
                original.classes = vec![
                    ClassPart { class: 0, bytes: burst.peak_depth_bytes / 4 * 3, packets: 420, share: 0.75 },
                    ClassPart { class: 5, bytes: burst.peak_depth_bytes / 4, packets: 160, share: 0.25 },
                ];
                original
            }),
        });
    }
}

/// Changes every name in what [`add`] adds.
pub fn rename(burst: &mut Burst, change: &dyn Fn(&mut String)) {
    let worst = burst.worst.iter_mut().flat_map(|worst| {
        [Some(&mut worst.direct), Some(&mut worst.indirect), worst.original.as_mut()].into_iter().flatten()
    });
    let (mut groups, mut parts): (Vec<&mut Group>, Vec<&mut Part>) = (burst.groups.iter_mut().collect(), Vec::new());
    for ranked in worst {
        groups.extend(&mut ranked.groups);
        parts.extend(ranked.by.iter_mut().flat_map(|parts| &mut parts.flows));
    }
    for group in groups {
        change(&mut group.description);
        parts.extend(&mut group.heavy);
    }
    for part in parts {
        change(&mut part.flow);
    }
}

fn growth(flows: &mut [Culprit]) {
    let found = [(Some(4.0), false), (None, true), (None, false), (Some(2.46), false), (Some(12.4), true)];
    for (flow, (ramp, new)) in flows.iter_mut().zip(found) {
        (flow.ramp, flow.new) = (ramp, new);
    }
}

/// Many sources to one destination, with two thirds of the bytes.
fn incast(bytes: u64, packets: u64, heavy: &[&Culprit]) -> Group {
    Group {
        description: "41 sources to 10.0.0.7:50010 (TCP)".into(),
        explosion: Some("incast".into()),
        overlaps: false,
        remainder: false,
        counted: true,
        flows: 43,
        sources: 41,
        destinations: 1,
        bytes: bytes / 3 * 2,
        packets: packets / 3 * 2,
        share: 2.0 / 3.0,
        share_error: 0.0,
        packets_share: 2.0 / 3.0,
        packets_share_error: 0.0,
        heavy: heavy.iter().map(|flow| part(flow, flow.bytes, Some(flow.packets))).collect(),
    }
}

fn subnet(bytes: u64, packets: u64) -> Group {
    Group {
        description: "17 sources in 2001:db8:4860:4802::/64 to 2001:db8:1f0a:33b7:7c1e:9fff:fe01:a2b4, port 443 (UDP)"
            .into(),
        explosion: None,
        overlaps: true,
        remainder: false,
        counted: false,
        flows: 17,
        sources: 17,
        destinations: 1,
        bytes,
        packets,
        share: 0.25,
        share_error: 0.014,
        packets_share: 0.5,
        packets_share_error: 0.021,
        heavy: Vec::new(),
    }
}

fn ranked<'a>(bytes: u64, flows: impl Iterator<Item = &'a Culprit>) -> Ranked {
    let mut flows: Vec<Part> =
        flows.filter(|_| bytes > 0).map(|flow| part(flow, (flow.share * bytes as f64) as u64, None)).collect();
    flows.sort_by_key(|part| std::cmp::Reverse(part.bytes));
    let flows_total = if bytes > 0 { flows.len() as u64 + 4 } else { 0 };
    Ranked {
        bytes,
        packets: None,
        by: vec![Parts { granularity: "5tuple".into(), flows, flows_total, not_shown: None }],
        groups: Vec::new(),
        classes: Vec::new(),
    }
}

fn part(flow: &Culprit, bytes: u64, packets: Option<u64>) -> Part {
    Part { flow: flow.flow.clone(), bytes, packets, share: flow.share }
}
