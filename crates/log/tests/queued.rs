//! Records of packets that passed a queue: their headers as in `packet`, and behind them what the queue did.

use etherparse::PacketBuilder;
use proptest::prelude::*;
use queuescope_log::packet::{self, Captured, Known, Segment};
use queuescope_log::{NoAggregates, Schema, Scope, queued};
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};

const AT: Nanos = Nanos(1_700_000_000_000_000_007);

/// A raw IP packet as a record, once from its bytes and once from the fields that the parser knows.
fn both(data: &[u8], tcp: Option<Segment>) -> [[u8; packet::SIZE]; 2] {
    let frame = Parser::new(Tunnel::Outer).parse(LinkType::RawIp, data.len() as u32, data);
    let mut records = [[0xff; packet::SIZE]; 2];
    let captured = Captured { at: AT, link: LinkType::RawIp, original_len: data.len() as u32, data };
    packet::fill(&mut records[0], &captured, &frame, None);
    let known = Known { at: AT, length: data.len() as u32, key: &frame.key, ecn: frame.ecn, tcp };
    packet::fill_known(&mut records[1], &known);
    records
}

/// Attributes that only a frame has.
const UNKNOWN: [&str; 10] = [
    "captured",
    "ip_header_words",
    "ttl",
    "ip_checksum",
    "tcp_window",
    "tcp_checksum",
    "udp_length",
    "udp_checksum",
    "ip_id",
    "ip_dont_fragment",
];

/// Checks that both records are equal except for unknown attributes.
fn same([seen, known]: [[u8; packet::SIZE]; 2], also_unknown: &[&str]) {
    let schema = Schema::packet();
    for (id, attribute) in schema.iter() {
        let expected = match UNKNOWN.iter().chain(also_unknown).any(|name| *name == attribute.name) {
            true => 0,
            false => schema.key(id, &seen),
        };
        assert_eq!(schema.key(id, &known), expected, "{}", attribute.name);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn known_fields_are_in_the_same_places_as_in_a_frame(
        (src, dst) in any::<([u8; 4], [u8; 4])>(), ports in any::<(u16, u16)>(), (seq, ack) in any::<(u32, u32)>(),
        (syn, fin, payload, tos) in any::<(bool, bool, u8, u8)>(), v6 in any::<bool>(),
    ) {
        let payload = vec![1; usize::from(payload)];
        let wide = |address: [u8; 4]| { let [a, b, c, d] = address; [0x20, 1, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9] };
        let ip = if v6 { PacketBuilder::ipv6(wide(src), wide(dst), 64) } else { PacketBuilder::ipv4(src, dst, 64) };
        let mut tcp = ip.tcp(ports.0, ports.1, seq, 500).ack(ack);
        let mut flags = 16;
        if syn { tcp = tcp.syn(); flags |= 2; }
        if fin { tcp = tcp.fin(); flags |= 1; }
        let mut data = Vec::new();
        tcp.write(&mut data, &payload).unwrap();
        // The builder sets no traffic class.
        if v6 { data[0] |= tos >> 4; data[1] |= tos << 4; } else { data[1] = tos; }
        same(both(&data, Some(Segment { seq, ack, flags, words: 5, payload: payload.len() as u32 })), &[]);
    }
}

#[test]
fn known_fields_of_a_datagram_are_in_the_same_places() {
    let mut data = Vec::new();
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(5, 6).write(&mut data, &[0; 30]).unwrap();
    same(both(&data, None), &["payload_length"]);
}

#[test]
fn the_queue_fields_follow_the_headers() {
    let mut data = Vec::new();
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(5, 6).write(&mut data, &[0; 30]).unwrap();
    let [headers, _] = both(&data, None);
    let packet = Packet { id: PacketId(76), flow: FlowId(3), size: ByteCount(84), class: Class(2), ecn: Ecn::Ce };
    let departure = Departure {
        packet,
        queue: QueueId(9),
        enqueued: Nanos(1_000),
        dequeued: Nanos(3_500),
        backlog_in: Backlog { packets: 4, bytes: ByteCount(6_000) },
        backlog_out: Backlog { packets: u64::MAX, bytes: ByteCount(7_000) },
    };
    let mut record = [0xff; queued::SIZE];
    queued::fill(&mut record, &headers, &departure, 1);
    queued::fill_place(&mut record, queued::Place { switch: 70_000, port: 12 }, false);
    assert_eq!(record[..packet::SIZE], headers);
    let scope = Scope::new(queued::schema());
    let text = "src_ip == 10.0.0.1 and udp port 6 and length == 58 and enqueued == 1us and dequeued == 3500 and \
                delay == 2.5us and packet == 77 and backlog_in == 6kB and backlog_out == 7000B and packets_in == 4 and \
                packets_out == 0xffffffff and occupied == 84 and flow == 3 and queue == 9 and class == 2 and \
                ecn == NotECT and ecn_out == CE and dropped == overlimit and switch == 70000 and egress_port == 12 and times == report";
    let expr = scope.parse(text).unwrap_or_else(|error| panic!("{error}"));
    let queuescope_log::Expr::All(each) = &expr else { panic!("it has several tests") };
    for test in each {
        assert!(test.holds(queued::schema(), &record, &NoAggregates), "{}", test.text(&scope));
    }
}

#[test]
fn a_later_version_may_name_more_reasons_but_none_may_change() {
    let now = queued::schema();
    let with = |from: &str, to: &str| {
        assert!(now.text().contains(from), "{from}");
        Schema::parse("queued.toml", &now.text().replace(from, to)).unwrap_or_else(|error| panic!("{error}"))
    };
    let earlier = with(", slow_start = 9, fair_share = 10, reported = 255", "");
    assert!(earlier.is_compatible(now) && now.is_compatible(&earlier));
    let changed = with("fair_share = 10", "fair_share = 11");
    assert!(!changed.is_compatible(now) && !now.is_compatible(&changed));
    let renamed = with("fair_share = 10", "fairness = 10");
    assert!(!renamed.is_compatible(now) && !now.is_compatible(&renamed));
}
