//! Grouping: artificial incasts, heavy flows, and a simple search of the lattice.

use crate::incast;
use crate::random;

use incast::Incast;
use proptest::prelude::*;
use queuescope_meter::{Explosion, Group, GroupParams, Grouped, Pattern, Share, Subnet, Weight, group};
use queuescope_wire::{Family, FlowKey, Granularity, Prefixes};
use random::Random;
use std::collections::BTreeSet;

const FIVE: Granularity = Granularity::FiveTuple;

fn explain(flows: &[(FlowKey, Share)]) -> Grouped {
    group(flows, None, FIVE, &GroupParams::default())
}

fn readings(flows: &[(FlowKey, Share)], granularity: Granularity) -> Vec<String> {
    let grouped = group(flows, None, granularity, &GroupParams::default());
    grouped.rows.iter().map(|row| row.reading(granularity)).collect()
}

/// `10.0.0.1:443>10.0.0.2:50010`, with an IP protocol and bytes.
fn flow(text: &str, protocol: u8, bytes: u64) -> (FlowKey, Share) {
    let (src, dst) = text.split_once('>').unwrap();
    let end = |text: &str| -> (u128, u16, Family) {
        let read = |address: std::net::IpAddr| match address {
            std::net::IpAddr::V4(v4) => (u128::from(u32::from(v4)), Family::V4),
            std::net::IpAddr::V6(v6) => (u128::from(v6), Family::V6),
        };
        let parsed = text.parse::<std::net::SocketAddr>();
        let (address, port) = parsed.map_or_else(|_| (text.parse().unwrap(), 0), |end| (end.ip(), end.port()));
        let (address, family) = read(address);
        (address, port, family)
    };
    let ((src, src_port, family), (dst, dst_port, _)) = (end(src), end(dst));
    let key = FlowKey { src, dst, src_port, dst_port, protocol, family, ..FlowKey::default() };
    (key, Share { bytes, packets: bytes.div_ceil(1_500), peak: 0 })
}

/// Whether the first row with more than one flow names the victim, the port, the senders' subnet if they have one, and nothing
/// else, and contains nearly all of the incast.
fn names_the_incast(grouped: &Grouped, incast: &Incast) -> bool {
    let Some(first) = grouped.rows.iter().find(|row| row.flow.is_none()) else { return false };
    let Pattern { dst, src, dst_port, src_port, .. } = first.pattern;
    let victim = Subnet::new(incast.family, incast.victim, Subnet::whole_length(incast.family));
    let length = if incast.family == Family::V6 { 64 } else { 24 };
    let rack = src.is_none_or(|src| incast.rack && src.length == length);
    dst == Some(victim) && dst_port == Some(incast.port) && rack && src_port.is_none() && {
        first.weight.bytes * 10 >= incast.bytes * 9
    }
}

#[test]
fn an_incast_is_named_by_its_destination_and_port() {
    let mut named = 0;
    for seed in 0..1_000 {
        let incast = Incast::new(2 + seed * 7 % 199, seed);
        named += u64::from(names_the_incast(&explain(&incast.flows), &incast));
    }
    assert!(named >= 950, "{named} of 1000");
}

/// Two and three senders are the hardest to distinguish from chance.
#[test]
fn incasts_of_few_senders_are_named() {
    for sources in [2, 3, 5] {
        let named = |seed: &u64| {
            let incast = Incast::new(sources, *seed);
            names_the_incast(&explain(&incast.flows), &incast)
        };
        let named = (0..100).filter(named).count();
        assert!(named >= 95, "{sources} senders: {named} of 100");
    }
}

/// One source fills a third of the burst in the scope of all others.
#[test]
fn a_group_without_some_flows_of_its_scope_says_that_it_is_the_rest() {
    let others = |n: u32| {
        flow(&format!("15.61.{}.{}:{}>21.93.{}.{}:{}", n % 7, n % 251, 2_000 + n, n % 9, n % 241, 9_000 + n), 17, 1_000)
    };
    let mut flows: Vec<_> = (0..900).map(others).collect();
    let whole = explain(&flows);
    assert!(whole.rows.iter().all(|row| !row.remainder), "{whole:?}");
    flows.extend(
        (0..1_200).map(|n| flow(&format!("15.61.3.3:{}>21.93.{}.{}:53", 2_000 + n, n % 9, n % 239), 17, 1_000)),
    );
    let grouped = explain(&flows);
    let rest = grouped.rows.iter().find(|row| row.pattern.src.is_some_and(|src| !src.is_whole())).expect("it is named");
    let fit = flows.iter().filter(|(key, _)| rest.pattern.fits(key)).count() as u64;
    assert!(rest.remainder && fit > rest.weight.flows, "{grouped:?}");
    assert!(rest.reading(FIVE).contains(" other sources in 15.61.0.0/16 to "), "{}", rest.reading(FIVE));
    assert!(!rest.reading(FIVE).contains("other destinations"), "{}", rest.reading(FIVE));
    let first = &grouped.rows[0];
    assert!(!first.remainder && first.reading(FIVE).starts_with("15.61.3.3 to "), "{grouped:?}");
}

#[test]
fn readings_state_what_a_group_has_in_common() {
    let mut flows: Vec<_> = (0..41)
        .map(|n| flow(&format!("{}.{}.3.{n}:{}>10.0.0.7:50010", 11 + n, n * 5, 40_000 + n * 7), 6, 1_000))
        .collect();
    flows.push(flow("9.9.9.9:5000>10.0.0.9:80", 6, 500));
    assert_eq!(readings(&flows, FIVE), ["41 sources to 10.0.0.7:50010 (TCP)"]);

    let outcast: Vec<_> =
        (0..130).map(|n| flow(&format!("10.1.2.3:{}>{}.7.{n}.1:443", 30_000 + n * 11, 20 + n), 6, 900 + n)).collect();
    assert_eq!(readings(&outcast, FIVE), ["10.1.2.3 to 130 destinations, port 443 (TCP)"]);

    let answers: Vec<_> = (0..50)
        .map(|n| flow(&format!("[2001:db8:0:7::{n:x}]:53>[2001:db9::9]:{}", 20_000 + n * 13), 17, 4_000))
        .collect();
    assert_eq!(readings(&answers, FIVE), ["50 sources in 2001:db8:0:7::/64, port 53, to 2001:db9::9 (UDP)"]);

    // The destinations are in networks of other destinations; nearly all flows belong to the group.
    let subnet = (0..60).flat_map(|n| (0..3).map(move |m| (n, m)));
    let mut outburst: Vec<_> = subnet
        .map(|(n, m)| {
            flow(&format!("198.51.100.{}:{}>10.{}.{n}.{m}:{}", n + 1, 9_000 + n, (n + m) % 9, 7_000 + n * m), 17, 1_000)
        })
        .collect();
    outburst.extend((0..50).map(|n| flow(&format!("{}.2.3.{n}:{}>10.{}.9.{n}:443", 20 + n, 5_000 + n, n % 9), 6, 900)));
    assert_eq!(readings(&outburst, FIVE)[0], "60 sources in 198.51.100.0/24 to 180 destinations (UDP)");

    let parallel: Vec<_> = (0..12).map(|n| flow(&format!("10.1.2.3:{}>10.0.0.7:443", 30_000 + n), 6, 1_000)).collect();
    assert_eq!(readings(&parallel, FIVE), ["10.1.2.3 to 10.0.0.7:443 (TCP), 12 flows"]);

    let pings: Vec<_> = (0..30).map(|n| flow(&format!("{}.1.1.{n}>10.0.0.7", 50 + n), 1, 1_000)).collect();
    assert_eq!(readings(&pings, FIVE), ["30 sources to 10.0.0.7 (ICMP)"]);

    assert_eq!(readings(&[flow("10.0.0.1:443>10.0.0.2:50010", 6, 9)], FIVE), ["10.0.0.1:443 > 10.0.0.2:50010 tcp"]);
    assert!(readings(&[], FIVE).is_empty());
}

#[test]
fn coarser_keys_are_grouped_by_their_fields() {
    let project = |granularity: Granularity| -> Vec<_> {
        let flows = (0..60).map(|n| flow(&format!("10.3.7.{n}:{}>10.0.0.7:443", 30_000 + n), 6, 1_000));
        flows.map(|(key, share)| (granularity.project(&key), share)).collect()
    };
    let whole = Prefixes::WHOLE;
    for (granularity, reading) in [
        (Granularity::Pair, "60 sources in 10.3.7.0/24 to 10.0.0.7"),
        (Granularity::Source(whole), "60 sources in 10.3.7.0/24"),
        (Granularity::Connection, "60 hosts in 10.3.7.0/24 with 10.0.0.7:443 (TCP)"),
    ] {
        assert_eq!(readings(&project(granularity), granularity), [reading], "{granularity}");
    }
    let one = [(Granularity::Destination(whole).project(&project(FIVE)[0].0), Share { bytes: 9, packets: 1, peak: 9 })];
    assert_eq!(readings(&one, Granularity::Destination(whole)), ["> 10.0.0.7"]);
    let class = [(Granularity::Dscp.project(&project(FIVE)[0].0), Share { bytes: 9, packets: 1, peak: 9 })];
    assert_eq!(readings(&class, Granularity::Dscp), ["ipv4 best effort"]);
}

/// A prefix that all flows of a row have, and no others, does not form another group.
#[test]
fn no_overlap_repeats_a_row_with_a_prefix_added() {
    let mut flows: Vec<_> = (0..60).map(|n| flow(&format!("10.0.0.9:{}>10.9.{n}.1:443", 30_000 + n), 6, 900)).collect();
    flows.extend((0..3).map(|n| flow(&format!("{}.1.1.1:9>{}.7.7.7:{}", 60 + n, 90 + n, 80 + n), 6, 9_000)));
    let grouped = explain(&flows);
    assert_eq!(grouped.rows[0].reading(FIVE), "10.0.0.9 to 60 destinations, port 443 (TCP)");
    assert!(grouped.overlaps.is_empty(), "{:?}", grouped.overlaps);
    // With other flows in the prefix, it is information that no row has.
    flows.extend((0..2).map(|n| flow(&format!("{}.1.1.1:9>10.9.{n}.2:{}", 70 + n, 60 + n), 6, 4_000)));
    let overlaps: Vec<_> = explain(&flows).overlaps.iter().map(|group| group.reading(FIVE)).collect();
    assert_eq!(overlaps, ["3 sources to 62 destinations in 10.9.0.0/16 (TCP)"]);
}

/// A host is named if it has a tenth over both ends of connections, whichever end it is at.
#[test]
fn a_host_at_either_end_of_connections_is_named() {
    let conn = Granularity::Connection;
    let mut flows = Vec::new();
    for server in [1, 2, 3] {
        let to = |n| flow(&format!("{}.{n}.1.1:{}>10.9.{server}.1:443", 20 + n * server, 5_000 + n), 6, 1_000);
        flows.extend((0..30).map(to));
    }
    // The busier end is the server in the first flows, and the host in the others.
    flows.extend((0..7).map(|n| flow(&format!("10.5.5.5:{}>10.9.1.1:443", 7_000 + n), 6, 1_000)));
    flows.extend((0..7).map(|n| flow(&format!("{}.8.8.8:{}>10.5.5.5:22", 130 + n, 8_000 + n), 6, 1_000)));
    let flows: Vec<_> = flows.into_iter().map(|(key, share)| (conn.project(&key), share)).collect();
    let grouped = group(&flows, None, conn, &GroupParams::default());
    let named = grouped.overlaps.iter().find(|group| group.reading(conn).ends_with("10.5.5.5 (TCP)"));
    let named = named.unwrap_or_else(|| panic!("{grouped:?}"));
    assert_eq!(named.reading(conn), "8 hosts with 10.5.5.5 (TCP)");
    assert_eq!((named.weight.flows, named.weight.bytes), (14, 14_000));
}

/// A single heavy flow is a row of its own; several of a kind are one group, which lists each of them.
#[test]
fn a_heavy_flow_is_not_its_group() {
    let mut flows = vec![flow("10.9.9.9:1000>10.0.0.7:443", 6, 100_000)];
    flows.extend((0..30).map(|n| flow(&format!("{}.1.4.{n}:{}>10.0.0.7:443", 60 + n, 3_000 + n), 6, 1_000)));
    assert_eq!(
        readings(&flows, FIVE),
        ["10.9.9.9:1000 > 10.0.0.7:443 tcp", "30 other sources to 10.0.0.7:443 (TCP)"],
        "one"
    );
    let flows: Vec<_> = (0..3).map(|n| flow(&format!("{}.1.4.{n}:9>10.0.0.7:443", 60 + n * 9), 6, 9_000 + n)).collect();
    let grouped = explain(&flows);
    assert_eq!(grouped.rows.len(), 1);
    assert_eq!(grouped.rows[0].heavy.iter().map(|(_, share)| share.bytes).collect::<Vec<_>>(), [9_002, 9_001, 9_000]);
}

/// The names of explosions: each flow has one packet of a given size, or as many bytes in full packets.
#[test]
fn explosions_have_the_right_names() {
    let named = |flows: &[(FlowKey, Share)]| explain(flows).rows.first().and_then(|row| row.explosion);
    let many = |text: &dyn Fn(u32) -> String, bytes| -> Vec<_> { (0..300).map(|n| flow(&text(n), 6, bytes)).collect() };
    let client = |n: u32| format!("{}.{}.3.4:{}", 11 + n % 200, n / 2, 33_000 + n * 7);
    let addresses = |n| format!("10.0.0.9:40000>{}.{}.3.4:445", 11 + n % 200, n / 2);
    let ports = |n| format!("10.0.0.9:50000>10.9.0.1:{}", n + 1);
    let answers = |n| format!("10.0.0.9:443>{}", client(n));
    let requests = |n| format!("{}>10.0.0.9:443", client(n));
    assert_eq!(named(&many(&addresses, 60)), Some(Explosion::Scan));
    assert_eq!(named(&many(&ports, 60)), Some(Explosion::Scan));
    assert_eq!(named(&many(&answers, 60)), None, "replies of a server are not a scan");
    assert_eq!(named(&many(&addresses, 60_000)), None, "large transfers are not a scan");
    assert_eq!(named(&many(&requests, 100)), Some(Explosion::Flood));
    assert_eq!(named(&many(&requests, 60_000)), Some(Explosion::Incast));
    assert_eq!(named(&many(&requests, 100)[..10]), None, "ten flows are not many");
    assert_eq!(named(&many(&requests, 60_000)[..10]), Some(Explosion::Incast));
}

/// Bursts with few distinct values, so that flows often share them.
fn burst() -> impl Strategy<Value = Vec<(FlowKey, Share)>> {
    let ports = prop::sample::select(vec![0u16, 53, 443, 50_010, 40_000, 40_001]);
    let address = prop::sample::select(vec![
        0x0a00_0001u128,
        0x0a00_0002,
        0x0a00_0103,
        0x0a01_0001,
        0xc0a8_0001,
        0xc0a8_0002,
        0x0808_0808,
    ]);
    let key = (address.clone(), address, ports.clone(), ports, any::<bool>(), any::<bool>()).prop_map(
        |(src, dst, src_port, dst_port, udp, v6)| {
            let place = |address: u128| if v6 { 0x2001_0db8 << 96 | address << 60 } else { address };
            let family = if v6 { Family::V6 } else { Family::V4 };
            let protocol = if udp { 17 } else { 6 };
            FlowKey { src: place(src), dst: place(dst), src_port, dst_port, protocol, family, ..FlowKey::default() }
        },
    );
    let size = prop_oneof![4 => 1..2_000u64, 1 => 2_000..40_000u64];
    prop::collection::btree_map(key, size, 0..40).prop_map(|flows| {
        let share = |bytes| Share { bytes, packets: bytes.div_ceil(1_500), peak: bytes / 2 };
        flows.into_iter().map(|(key, bytes)| (key, share(bytes))).collect()
    })
}

/// Every key with a whole address that contains some of these flows, with any other requirements.
fn keys_with_an_address(flows: &[&(FlowKey, Share)]) -> BTreeSet<Pattern> {
    let mut keys = BTreeSet::new();
    for (key, _) in flows {
        let ends = |address: u128| {
            let lengths: &[u8] = if key.family == Family::V6 { &[32, 48, 64, 128] } else { &[16, 24, 32] };
            let some = lengths.iter().map(move |length| Some(Subnet::new(key.family, address, *length)));
            some.chain([None]).collect::<Vec<_>>()
        };
        let port = |port: u16| if port > 0 { vec![None, Some(port)] } else { vec![None] };
        for dst in ends(key.dst) {
            for src in ends(key.src) {
                for dst_port in port(key.dst_port) {
                    for src_port in port(key.src_port) {
                        for protocol in [None, Some(key.protocol)] {
                            keys.insert(Pattern { dst, src, dst_port, src_port, protocol, ..Pattern::default() });
                        }
                    }
                }
            }
        }
    }
    let whole = |end: Option<Subnet>| end.is_some_and(|end| end.is_whole());
    keys.retain(|key| whole(key.dst) || whole(key.src));
    keys
}

fn sum(flows: &[&(FlowKey, Share)]) -> Weight {
    Weight {
        flows: flows.len() as u64,
        bytes: flows.iter().map(|(_, share)| share.bytes).sum(),
        packets: flows.iter().map(|(_, share)| share.packets).sum(),
    }
}

/// The ratio of the flows to the smallest bytes or packets, whichever is larger.
fn part_of(weight: Weight, least: Weight) -> f64 {
    (weight.bytes as f64 / least.bytes as f64).max(weight.packets as f64 / least.packets as f64)
}

/// Whether flows would be a group: two or more, with enough bytes or packets without the flow that outweighs the others.
fn is_group(flows: &[&(FlowKey, Share)], least: Weight) -> bool {
    let enough = |of: fn(&Share) -> u64, least: u64| {
        let amount: u64 = flows.iter().map(|(_, share)| of(share)).sum();
        let largest = flows.iter().map(|(_, share)| of(share)).max().unwrap_or(0);
        let dominated = largest * 4 > amount * 3;
        let (amount, count) = if dominated { (amount - largest, flows.len() - 1) } else { (amount, flows.len()) };
        count >= 2 && amount >= least
    };
    enough(|share| share.bytes, least.bytes) || enough(|share| share.packets, least.packets)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Rows and rest are disjoint and complete; heavy flows are shown; no large rest shares an address.
    #[test]
    fn rows_add_up_and_leave_no_group_in_the_rest(flows in burst()) {
        let grouped = explain(&flows);
        let total = sum(&flows.iter().collect::<Vec<_>>());
        let least = |total: u64| ((total as f64 * 0.1).ceil() as u64).max(1);
        let least = Weight { flows: 0, bytes: least(total.bytes), packets: least(total.packets) };
        let mut all = grouped.rest;
        for row in &grouped.rows {
            all.flows += row.weight.flows;
            all.bytes += row.weight.bytes;
            all.packets += row.weight.packets;
            prop_assert!(row.flow.is_none() == (row.weight.flows > 1));
            let fitting: Vec<_> = flows.iter().filter(|(key, _)| row.pattern.fits(key)).collect();
            prop_assert!(fitting.len() as u64 >= row.weight.flows && sum(&fitting).bytes >= row.weight.bytes);
            prop_assert!(row.sources <= row.weight.flows && row.destinations <= row.weight.flows);
            prop_assert!(row.heavy.iter().all(|(key, _)| row.pattern.fits(key)));
            prop_assert!(part_of(row.weight, least) >= 0.9);
        }
        prop_assert_eq!(all, sum(&flows.iter().collect::<Vec<_>>()));

        let seen = |row: &Group| row.heavy.iter().map(|(key, _)| *key).chain(row.flow).collect::<Vec<_>>();
        let mut seen: Vec<_> = grouped.rows.iter().flat_map(seen).collect();
        seen.sort_unstable();
        let heavy = flows.iter().filter(|flow| part_of(sum(&[flow]), least) >= 1.0).map(|(key, _)| *key);
        prop_assert_eq!(seen, heavy.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());

        // Flows that fit no row are certainly in the rest; no key with a whole address may form a group of them.
        let left = |(key, _): &&(FlowKey, Share)| !grouped.rows.iter().any(|row| row.pattern.fits(key));
        let left: Vec<_> = flows.iter().filter(left).collect();
        for key in keys_with_an_address(&left) {
            let fitting: Vec<_> = left.iter().copied().filter(|(flow, _)| key.fits(flow)).collect();
            prop_assert!(!is_group(&fitting, least), "{:?} is left of {:?}", key, grouped);
        }
    }

    /// The order of the flows does not matter.
    #[test]
    fn the_order_of_flows_does_not_matter(flows in burst(), seed in any::<u64>()) {
        let mut shuffled = flows.clone();
        let random = &mut Random(seed);
        for place in (1..shuffled.len()).rev() {
            shuffled.swap(place, random.below(place as u64 + 1) as usize);
        }
        prop_assert_eq!(explain(&flows), explain(&shuffled));
    }
}

/// A flow with a tenth or more always is a row or is named in its group's row, also among incasts.
#[test]
fn no_heavy_flow_is_hidden() {
    for seed in 0..100 {
        let mut incast = Incast::new(2 + seed % 60, seed);
        let place = Random(seed).below(incast.flows.len() as u64) as usize;
        incast.flows[place].1.bytes += incast.bytes / (1 + seed % 5);
        let grouped = explain(&incast.flows);
        let total: u64 = incast.flows.iter().map(|(_, share)| share.bytes).sum();
        for (key, share) in incast.flows.iter().filter(|(_, share)| share.bytes * 10 >= total) {
            let seen = |row: &Group| row.flow == Some(*key) || row.heavy.contains(&(*key, *share));
            assert_eq!(grouped.rows.iter().filter(|row| seen(row)).count(), 1, "seed {seed}");
        }
    }
}
