//! Reports of switches become hops of packets. The reports are written here by the layouts of the specifications, field by field.

use proptest::prelude::*;
use queuescope_log::{Schema, packet, queued};
use queuescope_recording::{HopCounts, HopLog, HopOptions, HopReader, KeepOptions, Occupancy, QueuedLog, SwitchHop};
use queuescope_wire::telemetry::Marks;
use queuescope_wire::{ByteCount, Nanos};
use std::net::{IpAddr, Ipv4Addr};

const NOW: u64 = 1_700_000_000_000_000_000;
/// The UDP port that marks INT.
const MARK: u16 = 5_000;
/// Node, interfaces, latency, queue, times.
const ALL: u16 = 0xfc00;
/// The same without the node, which the group header has.
const OWN: u16 = 0x7c00;

/// What a switch measured.
#[derive(Debug, Clone, Copy)]
struct Measured {
    node: u32,
    port: u16,
    queue: u8,
    occupancy: u32,
    came: u64,
    left: u64,
}

/// The metadata of a node: `bits` says which.
fn metadata(bits: u16, hop: &Measured) -> Vec<u8> {
    let mut bytes = Vec::new();
    let has = |bit: u32| bits & (0x8000 >> bit) != 0;
    if has(0) {
        bytes.extend(hop.node.to_be_bytes());
    }
    if has(1) {
        bytes.extend([9u16.to_be_bytes(), hop.port.to_be_bytes()].concat());
    }
    if has(2) {
        bytes.extend((hop.left.wrapping_sub(hop.came) as u32).to_be_bytes());
    }
    if has(3) {
        bytes.extend((u32::from(hop.queue) << 24 | hop.occupancy).to_be_bytes());
    }
    if has(4) {
        bytes.extend(hop.came.to_be_bytes());
    }
    if has(5) {
        bytes.extend(hop.left.to_be_bytes());
    }
    if has(15) {
        bytes.extend([hop.queue, 3, 0, 0]);
    }
    bytes
}

/// A UDP packet from 10.0.0.1:53 to 10.0.0.2:4000 with INT-MD, if there is a stack: the last hop first.
fn datagram(identification: u16, bits: u16, stack: &[Measured]) -> Vec<u8> {
    let stack_bytes: Vec<u8> = stack.iter().flat_map(|hop| metadata(bits, hop)).collect();
    let int = if stack.is_empty() {
        Vec::new()
    } else {
        let hop_words = stack_bytes.len() / 4 / stack.len();
        let [b0, b1] = bits.to_be_bytes();
        let [p0, p1] = 4_000u16.to_be_bytes();
        let header =
            [0x14, (3 + stack_bytes.len() / 4) as u8, p0, p1, 0x20, 0, hop_words as u8, 7, b0, b1, 0, 0, 0, 0, 0, 0];
        [&header[..], &stack_bytes].concat()
    };
    let payload = [0xaa; 20];
    let length = (28 + int.len() + payload.len()) as u16;
    let [l0, l1] = length.to_be_bytes();
    let [i0, i1] = identification.to_be_bytes();
    let [u0, u1] = (length - 20).to_be_bytes();
    let [p0, p1] = if stack.is_empty() { 4_000 } else { MARK }.to_be_bytes();
    let ip = [0x45, 0, l0, l1, i0, i1, 0, 0, 63, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    [&ip[..], &[0, 53, p0, p1, u0, u1, 0, 0], &int, &payload].concat()
}

/// A group of one report of a node.
fn report(node: u32, sequence: u32, (bits, own): (u16, &Measured), flags: u8, inner: &[u8]) -> Vec<u8> {
    let metadata = metadata(bits, own);
    let mut inner = inner.to_vec();
    inner.resize(inner.len().next_multiple_of(4), 0);
    let words = (8 + metadata.len() + inner.len()) / 4;
    // A longer report reaches to the end.
    let (length, kind) = (words.min(255) as u8, if inner.is_empty() { 0x10 } else { 0x14 });
    let mut bytes = (2 << 28 | sequence & 0x003f_ffff).to_be_bytes().to_vec();
    bytes.extend(node.to_be_bytes());
    bytes.extend([kind, length, (metadata.len() / 4) as u8, flags]);
    bytes.extend(bits.to_be_bytes());
    bytes.extend([0; 6]);
    bytes.extend(metadata);
    bytes.extend(inner);
    bytes
}

/// The hops of datagrams, and what was counted.
fn read(options: &HopOptions, datagrams: &[(u64, Vec<u8>)]) -> (Vec<([u8; packet::SIZE], SwitchHop)>, HopCounts) {
    let mut reader = HopReader::new(options);
    let mut hops = Vec::new();
    for (arrival, payload) in datagrams {
        let mut each = |headers: &[u8; packet::SIZE], hop: &SwitchHop| {
            hops.push((*headers, *hop));
            Ok::<_, ()>(())
        };
        reader.read(Nanos(*arrival), payload, &mut each).expect("nothing fails here");
    }
    (hops, *reader.counts())
}

fn marked() -> HopOptions {
    let mut options = HopOptions::default();
    options.marks = Marks { udp_port: Some(MARK), ..Marks::default() };
    options
}

fn value(headers: &[u8; packet::SIZE], name: &str) -> u128 {
    Schema::packet().key(Schema::packet().find(name).expect("packets have it"), headers)
}

prop_compose! {
    fn measured()(node in 1..u32::MAX, port in 0..u16::MAX, queue in 0..u8::MAX, occupancy in 0..1u32 << 23, before in 0..1_000_000u64, wait in 0..900_000u64)
        -> Measured {
        // No field is "not available", which has all bits 1.
        Measured { node, port, queue, occupancy, came: NOW - before - wait, left: NOW - before }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A path of switches, the last of which reports: each hop has its switch, port, queue, occupancy and times, and the packet is that without INT.
    #[test]
    fn each_hop_of_a_path_is_there(
        path in prop::collection::vec(measured(), 1..12), bits in 24..=64u32, cell in 1..200u64, identification in any::<u16>(),
        delay in 0..1_000_000u64,
    ) {
        let mut path = path;
        path.dedup_by_key(|hop| hop.node);
        let mut nodes: Vec<_> = path.iter().map(|hop| hop.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        prop_assume!(nodes.len() == path.len());
        let mask = u64::MAX >> (64 - bits);
        let short = |hop: &Measured| Measured { came: hop.came & mask, left: hop.left & mask, ..*hop };
        let stack: Vec<_> = path[..path.len() - 1].iter().rev().map(short).collect();
        let last = short(&path[path.len() - 1]);
        let inner = datagram(identification, ALL, &stack);
        let mut options = marked();
        options.time_bits = bits;
        options.occupancy = Occupancy::Bytes(ByteCount(cell));
        let (hops, counts) = read(&options, &[(NOW + delay, report(last.node, 0, (OWN, &last), 0x20, &inner))]);
        prop_assert_eq!((hops.len(), counts.hops, counts.switches), (path.len(), path.len() as u64, path.len() as u64), "{:?}", counts);
        // 16.8 ms are a turn of 24 bits, and reports come within half of that.
        for ((headers, hop), own) in hops.iter().zip(&path) {
            prop_assert_eq!((hop.place.switch, hop.place.port), (own.node, own.port));
            let departure = hop.departure;
            prop_assert_eq!((departure.enqueued.0, departure.dequeued.0), (own.came, own.left));
            prop_assert_eq!((departure.queue.0, departure.backlog_in.bytes.0), (own.queue.into(), u64::from(own.occupancy) * cell));
            prop_assert!(hop.is_timed && !hop.is_dropped);
            let known = ["src_ip", "src_port", "dst_port", "protocol", "ip_id", "payload_length", "ttl"].map(|name| value(headers, name));
            prop_assert_eq!(&known[1..], &[53, 4_000, 17, identification.into(), 20, 63]);
            prop_assert_eq!((value(headers, "length"), value(headers, "ts")), (48, own.came.into()));
            prop_assert_eq!((value(headers, "hops"), value(headers, "switch_1")), (path.len() as u128, path[0].node.into()));
        }
    }

    /// Whatever the bytes are, each datagram is counted, and what is counted as a hop is passed on.
    #[test]
    fn damaged_reports_are_counted(
        path in prop::collection::vec(measured(), 2..5), cut in any::<prop::sample::Index>(), byte in any::<prop::sample::Index>(), value in any::<u8>(),
    ) {
        let inner = datagram(7, ALL, &path[1..]);
        let whole = report(path[0].node, 0, (OWN, &path[0]), 0, &inner);
        let cut = whole[..cut.index(whole.len())].to_vec();
        let mut changed = whole.clone();
        changed[byte.index(whole.len())] = value;
        for damaged in [cut, changed] {
            let (hops, counts) = read(&marked(), &[(NOW, damaged)]);
            prop_assert_eq!((counts.datagrams, counts.hops), (1, hops.len() as u64));
            let reasons = counts.notes().map(|note| note.count).sum::<u64>();
            prop_assert!(reasons > 0 || !hops.is_empty(), "{:?}", counts);
            prop_assert!(hops.iter().all(|(_, hop)| hop.departure.enqueued <= hop.departure.dequeued));
        }
    }
}

#[test]
fn without_times_only_the_wait_is_known() {
    let own = Measured { node: 7, port: 5, queue: 2, occupancy: 40, came: 0, left: 3_000 };
    let mut options = HopOptions::default();
    (options.unit, options.occupancy) = (Nanos(1_000), Occupancy::Packets);
    // Interfaces, latency, queue.
    let (hops, counts) = read(&options, &[(NOW, report(7, 0, (0x7000, &own), 0x40, &datagram(1, 0, &[])))]);
    let departure = hops[0].1.departure;
    assert_eq!((departure.sojourn(), departure.dequeued, hops[0].1.is_timed), (Nanos(3_000_000), Nanos(NOW), false));
    assert_eq!((departure.backlog_in.packets, departure.backlog_in.bytes), (40, ByteCount(0)));
    assert_eq!((counts.hops, counts.untimed), (1, 1));
}

#[test]
fn a_dropped_packet_is_a_hop_that_did_not_leave() {
    let own = Measured { node: 7, port: 5, queue: 2, occupancy: 40, came: NOW - 50, left: NOW };
    // The time at which it came, and the queue and reason of the drop.
    let (hops, counts) =
        read(&HopOptions::default(), &[(NOW, report(7, 0, (0x0801, &own), 0x80, &datagram(1, 0, &[])))]);
    let hop = hops[0].1;
    assert!(hop.is_dropped && hop.is_timed, "{counts:?}");
    assert_eq!((hop.departure.enqueued, hop.departure.queue.0), (Nanos(NOW - 50), 2));
}

#[test]
fn what_is_missing_is_counted_by_reason() {
    let own = Measured { node: 7, port: 5, queue: 2, occupancy: 40, came: NOW - 50, left: NOW };
    let packet = datagram(1, 0, &[]);
    let counted = |payload: Vec<u8>| read(&marked(), &[(NOW, payload)]).1;
    let mut other_version = report(7, 0, (OWN, &own), 0, &packet);
    other_version[0] = 0x10;
    assert_eq!(counted(other_version).other_version, 1);
    assert_eq!(counted(vec![0x20, 0, 0]).malformed, 1);
    assert_eq!(counted(report(7, 0, (OWN, &own), 0, &[])).no_packet, 1);
    // An interface, and nothing about time.
    assert_eq!(counted(report(7, 0, (0x4000, &own), 0, &packet)).no_wait, 1);
    let backwards = Measured { came: NOW, left: NOW - 1, ..own };
    assert_eq!(counted(report(7, 0, (0x0c00, &backwards), 0, &packet)).backwards, 1);
    let nameless = Measured { node: u32::MAX, ..own };
    assert_eq!(counted(report(7, 0, (0, &own), 0, &datagram(1, ALL, &[nameless]))).no_switch, 1);
    let mut not_ip = packet.clone();
    not_ip[0] = 0x05;
    assert_eq!(counted(report(7, 0, (OWN, &own), 0, &not_ip)).not_ip, 1);
    let mut ioam = report(7, 0, (OWN, &own), 0, &packet);
    ioam[8] = 0x24;
    assert_eq!(counted(ioam).unread, 1);
    let mut contradicting = datagram(1, ALL, &[own]);
    contradicting[28 + 4] = 0x10;
    assert_eq!(counted(report(7, 0, (OWN, &own), 0, &contradicting)).malformed_int, 1);
}

#[test]
fn the_same_hop_in_the_report_and_on_the_stack_is_one() {
    let [first, last] =
        [6, 7].map(|node| Measured { node, port: 5, queue: 2, occupancy: 40, came: NOW - 50, left: NOW });
    let on_both = datagram(1, ALL, &[last, first]);
    for own in [OWN, 0] {
        let (hops, _) = read(&marked(), &[(NOW, report(7, 0, (own, &last), 0, &on_both))]);
        let switches: Vec<_> = hops.iter().map(|(_, hop)| hop.place.switch).collect();
        assert_eq!(switches, [6, 7], "{own:x}");
    }
}

#[test]
fn lost_reports_are_counted_by_their_numbers() {
    let own = Measured { node: 7, port: 5, queue: 2, occupancy: 40, came: NOW - 50, left: NOW };
    let numbers = [0x003f_fffe, 0x003f_ffff, 2, 1, 3];
    let payloads: Vec<_> =
        numbers.iter().map(|number| (NOW, report(7, *number, (OWN, &own), 0, &datagram(1, 0, &[])))).collect();
    // Between the end of the numbers and 2 are 0 and 1, and 1 comes late.
    assert_eq!(read(&marked(), &payloads).1.lost, 1);
}

#[test]
fn a_folder_has_the_hops_and_says_what_was_not_read() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("log");
    let log = QueuedLog::open(&path, &KeepOptions::default(), Box::new(|note: &str| panic!("{note}")));
    let mut options = marked();
    let [switch, other] = [[192, 0, 2, 7], [192, 0, 2, 9]].map(|address| IpAddr::V4(Ipv4Addr::from(address)));
    (options.rate, options.senders) = (3, vec![switch]);
    let mut hops = HopLog::new(log.unwrap_or_else(|error| panic!("{error}")), options);
    let own = Measured { node: 7, port: 5, queue: 2, occupancy: 40, came: NOW - 50, left: NOW };
    for number in 0..5 {
        let payload = report(7, number, (OWN, &own), 0, &datagram(number as u16, 0, &[]));
        hops.datagram(switch, Nanos(NOW), &payload).unwrap_or_else(|error| panic!("{error}"));
        hops.datagram(other, Nanos(NOW), &payload).unwrap_or_else(|error| panic!("{error}"));
    }
    let counts = *hops.counts();
    assert_eq!((counts.hops, counts.over_rate, counts.other_senders, counts.shed()), (3, 2, 5, 2));
    let recorded = hops.finish().unwrap_or_else(|error| panic!("{error}"));
    let reasons: Vec<_> = recorded.others.iter().map(|note| (note.reason.as_str(), note.count)).collect();
    assert_eq!((recorded.records, &reasons[..]), (3, &[("int_other_senders", 5), ("int_over_rate", 2)][..]));
    assert_eq!(queued::schema().record_size(), queued::SIZE);
}
