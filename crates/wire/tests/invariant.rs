//! Fingerprints: equal for a packet and its copy behind a router, different for any other packet.

use crate::common;
use proptest::prelude::*;
use queuescope_wire::parse::{
    Fingerprint, InvariantParams, LinkType, Nat, NoFingerprint, Parser, Reach, Strength, Tunnel,
};

const TCP: u8 = 6;
const UDP: u8 = 17;

/// An IPv4 packet without link header; the payload's own header is part of `payload`.
fn v4(id: u16, ttl: u8, protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend(id.to_be_bytes());
    packet.extend(fragment.to_be_bytes());
    packet.extend([ttl, protocol, 0xab, 0xcd, 10, 0, 0, 1, 192, 0, 2, 7]);
    packet.extend(payload);
    packet
}

fn v6(hops: u8, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, hops]);
    packet.extend([0x20; 16]);
    packet.extend([0x30; 16]);
    packet.extend(payload);
    packet
}

fn tcp(sequence: u32, flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0x12, 0x34, 0, 80];
    segment.extend(sequence.to_be_bytes());
    segment.extend(99u32.to_be_bytes());
    segment.extend([(5 + options.len() as u8 / 4) << 4, flags, 1, 0, 0xee, 0xff, 0, 0]);
    segment.extend(options);
    segment.extend(payload);
    segment
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0x12, 0x34, 0x01, 0xbb];
    datagram.extend((8 + payload.len() as u16).to_be_bytes());
    datagram.extend([0xaa, 0xbb]);
    datagram.extend(payload);
    datagram
}

fn print_of(data: &[u8], original: usize, params: &InvariantParams) -> Result<Fingerprint, NoFingerprint> {
    Parser::new(Tunnel::Outer).parse(LinkType::RawIp, original as u32, data).fingerprint(data, params)
}

fn print(data: &[u8]) -> Fingerprint {
    print_of(data, data.len(), &InvariantParams::default()).unwrap()
}

fn nat(kind: Nat) -> InvariantParams {
    InvariantParams { nat: kind, ..InvariantParams::default() }
}

const ACK: u8 = 0x10;
const SYN: u8 = 0x02;

#[test]
fn a_router_does_not_change_the_fingerprint() {
    let before = v4(7, 64, TCP, 0x4000, &tcp(5, ACK, &[], b"payload that is long"));
    let mut after = before.clone();
    (after[1], after[6], after[8], after[10]) = (0xb8, 0, 63, 0x12);
    assert_eq!(print(&before).digest, print(&after).digest);
    assert_eq!((print(&before).ttl, print(&after).ttl), (64, 63));
    let before = v6(64, UDP, &udp(b"payload that is long"));
    let mut after = before.clone();
    (after[0], after[1], after[7]) = (0x6a, 0x12, 63);
    assert_eq!(print(&before).digest, print(&after).digest);
    // Padding, and another link layer.
    let mut ethernet = vec![0u8; 12];
    ethernet.extend([0x81, 0, 0, 5, 0x08, 0]);
    let small = v4(7, 64, UDP, 0, &udp(b"x"));
    ethernet.extend(&small);
    ethernet.extend([0; 12]);
    let frame = Parser::new(Tunnel::Outer).parse(LinkType::Ethernet, ethernet.len() as u32, &ethernet);
    assert_eq!(frame.fingerprint(&ethernet, &InvariantParams::default()), Ok(print(&small)));
}

#[test]
fn each_field_that_differs_between_packets_changes_the_fingerprint() {
    let segment = tcp(5, ACK, &[], b"01234567");
    let packets = [
        v4(7, 64, TCP, 0, &segment),
        v4(8, 64, TCP, 0, &segment),
        v4(7, 64, TCP, 0, &tcp(6, ACK, &[], b"01234567")),
        v4(7, 64, TCP, 0, &tcp(5, ACK | 1, &[], b"01234567")),
        v4(7, 64, TCP, 0, &tcp(5, ACK, &[], b"01234568")),
        v4(7, 64, TCP, 0, &tcp(5, ACK, &[8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0], b"01234567")),
        v4(7, 64, TCP, 0, &tcp(5, ACK, &[8, 10, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0], b"01234567")),
        v4(7, 64, UDP, 0, &segment),
        v4(7, 64, UDP, 0x2000, &segment),
        v4(7, 64, UDP, 0x2010, &segment),
        v4(7, 64, UDP, 0x0010, &segment),
        v6(64, TCP, &segment),
        v6(64, UDP, &udp(b"01234567")),
        v6(64, UDP, &udp(b"01234568")),
        v6(64, 44, &[&[UDP, 0, 0, 1, 0, 0, 0, 9][..], &udp(b"01234567")].concat()),
        v6(64, 44, &[&[UDP, 0, 0, 9, 0, 0, 0, 9][..], &udp(b"01234567")].concat()),
        v6(64, 44, &[&[UDP, 0, 0, 17, 0, 0, 0, 9][..], &udp(b"01234567")].concat()),
    ];
    let mut digests: Vec<_> = packets.iter().map(|packet| print(packet).digest).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), packets.len());
}

#[test]
fn options_do_not_change_the_fingerprint_of_a_syn() {
    let syn = |mss| v4(0, 64, TCP, 0, &tcp(5, SYN, &[2, 4, mss, 0], &[]));
    assert_eq!(print(&syn(5)), print(&syn(4)));
    assert_eq!(print(&syn(5)).strength, Strength::Sequence);
}

#[test]
fn a_retransmission_is_the_same_segment_in_another_packet() {
    let first = print(&v4(7, 64, TCP, 0, &tcp(5, ACK, &[], b"0123")));
    let again = print(&v4(8, 64, TCP, 0, &tcp(5, ACK | 8, &[], b"0123")));
    assert!(first.digest != again.digest && first.segment.is_some() && first.segment == again.segment);
    assert_eq!(
        print(&v4(8, 64, TCP, 0, &tcp(5, ACK, &[], &[]))).segment,
        None,
        "an acknowledgement carries no payload"
    );
    assert_ne!(print(&v4(8, 64, TCP, 0, &tcp(5, ACK, &[], b"01234"))).segment, first.segment);
    // The header states the payload's length, whatever was captured.
    let long = v4(7, 64, TCP, 0, &tcp(5, ACK, &[], &[1; 400]));
    let short = InvariantParams { reach: 60, ..InvariantParams::default() };
    assert_eq!(print_of(&long[..60], long.len(), &short).unwrap().segment, print(&long).segment);
}

#[test]
fn the_strength_follows_from_the_fields_present() {
    let cases = [
        (v4(7, 64, UDP, 0, &udp(&[])), Strength::Identified),
        (v4(0, 64, UDP, 0, &udp(&[])), Strength::Headers),
        (v4(0, 64, UDP, 0, &udp(b"01234567")), Strength::Payload),
        (v4(0, 64, TCP, 0, &tcp(1, ACK, &[], &[])), Strength::Sequence),
        (v6(64, TCP, &tcp(1, ACK, &[], b"01234567")), Strength::Payload),
        (v6(64, 44, &[&[UDP, 0, 0, 1, 0, 0, 0, 9][..], &udp(&[])].concat()), Strength::Identified),
        (v4(0, 64, 1, 0, &[8, 0, 0, 0, 0, 1, 0, 2]), Strength::Sequence),
        (v4(0, 64, 50, 0, &[1; 16]), Strength::Payload),
    ];
    for (packet, strength) in cases {
        assert_eq!(print(&packet).strength, strength, "{packet:02x?}");
    }
}

#[test]
fn with_nat_addresses_ports_and_checksums_are_not_covered() {
    let translated = |packet: &[u8], ports: usize| {
        let mut packet = packet.to_vec();
        packet[12..16].copy_from_slice(&[203, 0, 113, 9]);
        packet[ports] ^= 0xff;
        packet
    };
    for (packet, ports) in [
        (v4(7, 64, TCP, 0, &tcp(5, ACK, &[], b"payload that is long")), 20),
        (v4(7, 64, UDP, 0, &udp(b"payload that is long")), 20),
        (v4(7, 64, 1, 0, &[8, 0, 1, 2, 0, 1, 0, 2, 9, 9]), 24),
        (v4(7, 64, 1, 0, &[8, 0, 1, 2, 0, 1, 0, 2, 9, 9]), 22),
    ] {
        let behind = translated(&packet, ports);
        let params = nat(Nat::Addresses);
        assert_eq!(print_of(&packet, packet.len(), &params), print_of(&behind, behind.len(), &params), "{packet:02x?}");
        assert_ne!(print(&packet).digest, print(&behind).digest);
    }
    // An error about a packet whose addresses are translated too.
    let error = |source: u8| {
        let inner = v4(9, 60, UDP, 0, &udp(b"0123"));
        let mut icmp = vec![3, 3, source, 7, 0, 0, 0, 0];
        icmp.extend(inner);
        icmp[8 + 12] = source;
        v4(7, 64, 1, 0, &icmp)
    };
    let params = nat(Nat::Addresses);
    assert_eq!(print_of(&error(1), 60, &params), print_of(&error(2), 60, &params));
}

#[test]
fn with_payload_only_a_packet_without_payload_has_no_fingerprint() {
    let params = nat(Nat::AllButPayload);
    let packet = |id, sequence| v4(id, 64, TCP, 0, &tcp(sequence, ACK, &[], b"payload that is long"));
    let (one, other) = (packet(1, 2), packet(3, 4));
    assert_eq!(print_of(&one, one.len(), &params), print_of(&other, other.len(), &params));
    assert_eq!(print_of(&one, one.len(), &params).unwrap().segment, None);
    let bare = v4(7, 64, TCP, 0, &tcp(5, ACK, &[], b"short"));
    assert_eq!(print_of(&bare, bare.len(), &params), Err(NoFingerprint::NoPayload));
}

#[test]
fn checksums_distinguish_payloads_that_were_not_captured() {
    let (mut one, mut other) = (v6(64, UDP, &udp(&[1; 100])), v6(64, UDP, &udp(&[2; 100])));
    one[46] = 1;
    other[46] = 2;
    let params = |checksums| InvariantParams { reach: 48, checksums, ..InvariantParams::default() };
    let digest = |packet: &[u8], checksums| print_of(&packet[..48], packet.len(), &params(checksums)).unwrap().digest;
    assert_eq!(digest(&one, false), digest(&other, false));
    assert_ne!(digest(&one, true), digest(&other, true));
}

#[test]
fn a_packet_cut_before_the_reach_has_no_fingerprint() {
    let packet = v4(7, 64, UDP, 0, &udp(&[1; 100]));
    let params = InvariantParams { reach: 60, ..InvariantParams::default() };
    assert_eq!(print_of(&packet[..59], packet.len(), &params), Err(NoFingerprint::Cut));
    assert_eq!(print_of(&packet[..60], packet.len(), &params), print_of(&packet, packet.len(), &params));
    assert_eq!(print_of(&[0x15, 9], 2, &params), Err(NoFingerprint::NotIp));
}

#[test]
fn the_reach_of_a_capture_is_that_of_nearly_all_of_its_packets() {
    let mut reach = Reach::new();
    let packet = v4(7, 64, UDP, 0, &udp(&[1; 300]));
    let mut observe = |captured: usize, times: usize| {
        let frame = Parser::new(Tunnel::Outer).parse(LinkType::RawIp, packet.len() as u32, &packet[..captured]);
        (0..times).for_each(|_| reach.observe(&frame, &packet[..captured]));
        reach.bytes()
    };
    assert_eq!(observe(packet.len(), 3_000), Reach::MOST);
    assert_eq!(observe(30, 1), Reach::MOST, "one damaged packet in 3000");
    assert_eq!(observe(100, 1_500), 100);
    assert_eq!(observe(40, 3), 40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    /// Any bytes: no panic, and a packet cut anywhere behind the reach has the same fingerprint.
    #[test]
    fn any_bytes_have_a_fingerprint_or_a_reason(
        head in prop_oneof![Just(vec![0x45, 0, 0, 90]), Just(vec![0x60, 0, 0, 0, 0, 50]), Just(vec![])],
        mut bytes in prop::collection::vec(any::<u8>(), 0..100),
        protocol in prop_oneof![Just(TCP), Just(UDP), Just(1), Just(44), Just(132), any::<u8>()],
        reach in 0..120u16,
        more in 0..120usize,
        kind in prop_oneof![Just(Nat::None), Just(Nat::Addresses), Just(Nat::AllButPayload)],
        checksums in any::<bool>()
    ) {
        for (place, byte) in bytes.iter_mut().zip(&head) {
            *place = *byte;
        }
        let at = if head.len() == 4 { 9 } else { 6 };
        if let Some(place) = bytes.get_mut(at) {
            *place = protocol;
        }
        let params = InvariantParams { nat: kind, reach, checksums };
        let whole = print_of(&bytes, bytes.len(), &params);
        let cut = bytes.len().min(usize::from(reach).max(44) + more);
        // If the header was parsed and all covered bytes are there, more bytes make no difference.
        if whole.is_ok() && print_of(&bytes[..cut], bytes.len(), &params) != whole {
            let frame = |data: &[u8]| Parser::new(Tunnel::Outer).parse(LinkType::RawIp, bytes.len() as u32, data);
            prop_assert_ne!(frame(&bytes).network_length, frame(&bytes[..cut]).network_length);
        }
    }
}

/// Real frames of all available captures: frames of one capture with equal fingerprints have equal bytes, apart from
/// what routers change.
#[test]
fn in_real_captures_equal_fingerprints_are_equal_packets() {
    let Some(directory) = common::captures::directory() else { return };
    let Some((link, records)) = common::captures::read(&directory.join("pcap/ndpi-firefox-full.pcap.xz")) else {
        return;
    };
    let (mut parser, params) =
        (Parser::new(Tunnel::Outer), InvariantParams { reach: 256, ..InvariantParams::default() });
    let mut known = std::collections::BTreeMap::<u64, Vec<u8>>::new();
    let mut prints = 0;
    for record in &records {
        let frame = parser.parse(LinkType::from_dlt(link), record.original_len, &record.data);
        let Ok(print) = frame.fingerprint(&record.data, &params) else { continue };
        prints += 1;
        let at = usize::from(frame.link_header);
        let mut bytes = record.data[at..(at + frame.network_length as usize).min(record.data.len())].to_vec();
        // Class of service, DF, TTL, checksums and window do not identify the packet.
        bytes.truncate(256);
        let mut clear =
            |range: std::ops::Range<usize>| bytes.get_mut(range).into_iter().flatten().for_each(|byte| *byte = 0);
        [1..2, 6..7, 8..9, 10..12, 34..38].into_iter().for_each(&mut clear);
        let same = known.entry(print.digest).or_insert_with(|| bytes.clone());
        assert_eq!(*same, bytes);
    }
    assert!(prints > 5_000 && known.len() * 100 > prints * 95, "{prints} packets, {} fingerprints", known.len());
}
