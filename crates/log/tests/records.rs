//! Frames and departures as records: the schema's attributes return what was written.

use etherparse::{
    EtherType, Ethernet2Header, IcmpEchoHeader, Icmpv4Type, IpFragOffset, IpNumber, Ipv4Header, Ipv6FlowLabel,
    Ipv6Header, PacketBuilder, SingleVlanHeader, TcpHeader, UdpHeader, VlanId, VlanPcp,
};
use proptest::prelude::*;
use queuescope_log::departure;
use queuescope_log::packet::{self, Captured, Hop, Telemetry};
use queuescope_log::{Filter, NoAggregates, Schema, Scope};
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{
    Backlog, ByteCount, Class, Departure, Ecn, Family, FlowId, FlowKey, Nanos, Packet, PacketId, QueueId,
};

type Record = [u8; packet::SIZE];

fn record_of(data: &[u8], telemetry: Option<&Telemetry>) -> Record {
    let frame = Parser::new(Tunnel::Outer).parse(LinkType::Ethernet, data.len() as u32, data);
    let captured = Captured {
        at: Nanos(1_700_000_000_000_000_007),
        link: LinkType::Ethernet,
        original_len: data.len() as u32,
        data,
    };
    let mut record = [0xff; packet::SIZE];
    packet::fill(&mut record, &captured, &frame, telemetry);
    record
}

/// The key of an attribute.
fn get(record: &[u8], name: &str) -> u128 {
    let schema = packet::schema();
    schema.key(schema.find(name).unwrap_or_else(|| panic!("there is no {name}")), record)
}

fn mac(record: &Record, name: &str) -> [u8; 6] {
    let [_, _, bytes @ ..] = (get(record, name) as u64).to_be_bytes();
    bytes
}

/// The headers of a record's packet as bytes on the wire, built from the attributes by another library.
fn headers_of(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    let vlan = get(record, "has_vlan") == 1;
    let ethertype = EtherType(get(record, "ethertype") as u16);
    let ether_type = if vlan { EtherType(get(record, "vlan_tpid") as u16) } else { ethertype };
    let ethernet = Ethernet2Header { source: mac(record, "src_mac"), destination: mac(record, "dst_mac"), ether_type };
    ethernet.write(&mut bytes).unwrap();
    if vlan {
        let tag = |pcp: &str, dei: &str, id: &str, ether_type| SingleVlanHeader {
            pcp: VlanPcp::try_new(get(record, pcp) as u8).unwrap(),
            drop_eligible_indicator: get(record, dei) == 1,
            vlan_id: VlanId::try_new(get(record, id) as u16).unwrap(),
            ether_type,
        };
        let inner = get(record, "has_inner_vlan") == 1;
        let next = if inner { EtherType(get(record, "inner_vlan_tpid") as u16) } else { ethertype };
        tag("vlan_pcp", "vlan_dei", "vlan", next).write(&mut bytes).unwrap();
        if inner {
            tag("inner_vlan_pcp", "inner_vlan_dei", "inner_vlan", ethertype).write(&mut bytes).unwrap();
        }
    }
    if get(record, "has_ipv4") == 1 {
        let header = Ipv4Header {
            dscp: (get(record, "dscp") as u8).try_into().unwrap(),
            ecn: (get(record, "ecn") as u8).try_into().unwrap(),
            total_len: get(record, "ip_length") as u16,
            identification: get(record, "ip_id") as u16,
            dont_fragment: get(record, "ip_dont_fragment") == 1,
            more_fragments: get(record, "ip_more_fragments") == 1,
            fragment_offset: IpFragOffset::try_new(get(record, "ip_fragment_offset") as u16).unwrap(),
            time_to_live: get(record, "ttl") as u8,
            protocol: IpNumber(get(record, "protocol") as u8),
            header_checksum: get(record, "ip_checksum") as u16,
            source: (get(record, "src_ip") as u32).to_be_bytes(),
            destination: (get(record, "dst_ip") as u32).to_be_bytes(),
            ..Ipv4Header::default()
        };
        assert_eq!((get(record, "ip_version"), get(record, "ip_header_words")), (4, 5));
        header.write_raw(&mut bytes).unwrap();
    }
    if get(record, "has_ipv6") == 1 {
        let header = Ipv6Header {
            traffic_class: get(record, "traffic_class") as u8,
            flow_label: Ipv6FlowLabel::try_new(get(record, "flow_label") as u32).unwrap(),
            payload_length: (get(record, "ip_length") - 40) as u16,
            next_header: IpNumber(get(record, "protocol") as u8),
            hop_limit: get(record, "hop_limit") as u8,
            source: get(record, "src_ip").to_be_bytes(),
            destination: get(record, "dst_ip").to_be_bytes(),
        };
        assert_eq!(get(record, "ip_version"), 6);
        header.write(&mut bytes).unwrap();
    }
    let (src, dst) = (get(record, "src_port") as u16, get(record, "dst_port") as u16);
    if get(record, "has_tcp") == 1 {
        let flags = get(record, "tcp_flags");
        let flag = |at: u32| flags >> at & 1 == 1;
        let header = TcpHeader {
            source_port: src,
            destination_port: dst,
            sequence_number: get(record, "tcp_seq") as u32,
            acknowledgment_number: get(record, "tcp_ack") as u32,
            fin: flag(0),
            syn: flag(1),
            rst: flag(2),
            psh: flag(3),
            ack: flag(4),
            urg: flag(5),
            ece: flag(6),
            cwr: flag(7),
            ns: flag(8),
            window_size: get(record, "tcp_window") as u16,
            checksum: get(record, "tcp_checksum") as u16,
            urgent_pointer: get(record, "tcp_urgent") as u16,
            ..TcpHeader::default()
        };
        assert_eq!(get(record, "tcp_header_words"), 5);
        header.write(&mut bytes).unwrap();
    }
    if get(record, "has_udp") == 1 {
        let (length, checksum) = (get(record, "udp_length") as u16, get(record, "udp_checksum") as u16);
        UdpHeader { source_port: src, destination_port: dst, length, checksum }.write(&mut bytes).unwrap();
    }
    if get(record, "has_icmp") == 1 {
        bytes.extend([get(record, "icmp_type") as u8, get(record, "icmp_code") as u8]);
        bytes.extend((get(record, "icmp_checksum") as u16).to_be_bytes());
        bytes.extend((get(record, "icmp_rest") as u32).to_be_bytes());
    }
    bytes
}

/// A frame built by another library, and the length of its headers.
fn frame() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let addresses = (any::<[u8; 6]>(), any::<[u8; 6]>(), any::<[u8; 16]>(), any::<[u8; 16]>());
    let header = (any::<u8>(), any::<u8>(), any::<u16>(), any::<bool>(), 0..0x10_0000u32);
    let tcp = (any::<u16>(), any::<u16>(), any::<u32>(), any::<u32>(), any::<u16>(), 0..512u16, any::<u16>());
    let shape = (0..3usize, any::<bool>(), 0..3usize, 0..40usize, (0..8u8, any::<bool>(), 0..4096u16, 0..4096u16));
    (addresses, header, tcp, shape).prop_map(|((src_mac, dst_mac, src, dst), header, tcp, shape)| {
        let (tos, ttl, id, dont_fragment, label) = header;
        let (tags, v6, transport, payload, (pcp, dei, vlan, inner)) = shape;
        let mut bytes = Vec::new();
        let network = EtherType(if v6 { 0x86dd } else { 0x0800 });
        let types = [EtherType(0x88a8), EtherType(0x8100), network];
        let types = &types[2 - tags..];
        Ethernet2Header { source: src_mac, destination: dst_mac, ether_type: types[0] }.write(&mut bytes).unwrap();
        for (index, id) in [vlan, inner].into_iter().take(tags).enumerate() {
            let (pcp, vlan_id) = (VlanPcp::try_new(pcp).unwrap(), VlanId::try_new(id).unwrap());
            let drop_eligible_indicator = dei != (index == 1);
            SingleVlanHeader { pcp, drop_eligible_indicator, vlan_id, ether_type: types[index + 1] }
                .write(&mut bytes)
                .unwrap();
        }
        let (src_port, dst_port, seq, ack, window, flags, urgent) = tcp;
        let flag = |at: u16| flags >> at & 1 == 1;
        let mut segment = Vec::new();
        match transport {
            0 => TcpHeader {
                source_port: src_port,
                destination_port: dst_port,
                sequence_number: seq,
                acknowledgment_number: ack,
                fin: flag(0),
                syn: flag(1),
                rst: flag(2),
                psh: flag(3),
                ack: flag(4),
                urg: flag(5),
                ece: flag(6),
                cwr: flag(7),
                ns: flag(8),
                window_size: window,
                checksum: id,
                urgent_pointer: urgent,
                ..TcpHeader::default()
            }
            .write(&mut segment)
            .unwrap(),
            1 => {
                // Any port except that of a tunnel.
                let destination_port = if dst_port == 4789 { 53 } else { dst_port };
                let length = 8 + payload as u16;
                UdpHeader { source_port: src_port, destination_port, length, checksum: id }
                    .write(&mut segment)
                    .unwrap();
            }
            _ => segment.extend([tos, ttl, 1, 2, 3, 4, 5, 6]),
        }
        let protocol = IpNumber([6, 17, if v6 { 58 } else { 1 }][transport]);
        let length = (segment.len() + payload) as u16;
        if v6 {
            Ipv6Header {
                traffic_class: tos,
                flow_label: Ipv6FlowLabel::try_new(label).unwrap(),
                payload_length: length,
                next_header: protocol,
                hop_limit: ttl,
                source: src,
                destination: dst,
            }
            .write(&mut bytes)
            .unwrap();
        } else {
            let [s0, s1, s2, s3, ..] = src;
            let [d0, d1, d2, d3, ..] = dst;
            let mut header = Ipv4Header::new(length, ttl, protocol, [s0, s1, s2, s3], [d0, d1, d2, d3]).unwrap();
            header.identification = id;
            header.dont_fragment = dont_fragment;
            header.dscp = (tos >> 2).try_into().unwrap();
            header.ecn = (tos & 3).try_into().unwrap();
            header.header_checksum = header.calc_header_checksum();
            header.write_raw(&mut bytes).unwrap();
        }
        bytes.extend(segment);
        let headers = bytes.len();
        bytes.extend(vec![0xee; payload]);
        (bytes, headers)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_headers_of_a_frame_can_be_rebuilt_from_its_record((bytes, headers) in frame()) {
        let record = record_of(&bytes, None);
        prop_assert_eq!(headers_of(&record), &bytes[..headers]);
        prop_assert_eq!(get(&record, "payload_length"), (bytes.len() - headers) as u128);
        prop_assert_eq!((get(&record, "length"), get(&record, "captured")), (bytes.len() as u128, bytes.len() as u128));
        prop_assert_eq!(get(&record, "ts"), 1_700_000_000_000_000_007);
        prop_assert_eq!(get(&record, "has_telemetry"), 0);
    }

    #[test]
    fn any_bytes_become_a_record(
        (mut bytes, _) in frame(), changes in prop::collection::vec((0..80usize, any::<u8>()), 0..8), cut in 0..120usize,
        link in prop::sample::select(vec![0, 1, 101, 113, 276]),
    ) {
        for (at, byte) in changes {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        bytes.truncate(cut);
        let link = LinkType::from_dlt(link);
        let frame = Parser::new(Tunnel::Inner).parse(link, 120, &bytes);
        let captured = Captured { at: Nanos(1), link, original_len: 120, data: &bytes };
        let mut record = [0; packet::SIZE];
        packet::fill(&mut record, &captured, &frame, None);
        prop_assert_eq!(get(&record, "captured"), bytes.len() as u128);
        prop_assert!(get(&record, "length") >= 120);
    }

    #[test]
    fn the_raw_header_is_read_where_it_is((bytes, _) in frame()) {
        let schema = Schema::ethernet_tcp();
        let record = record_of(&bytes, None);
        if (get(&record, "has_ipv4"), get(&record, "has_vlan"), get(&record, "has_tcp")) != (1, 0, 1) {
            return Ok(());
        }
        let raw: &[u8; 54] = bytes.first_chunk().expect("it has these headers");
        for (id, attribute) in schema.iter() {
            let same = match attribute.name.as_str() {
                "length" => get(&record, "ip_length"),
                "ip_flags" => get(&record, "ip_dont_fragment") << 1,
                "src_ip" | "dst_ip" => get(&record, &attribute.name) & 0xffff_ffff,
                name => get(&record, name),
            };
            prop_assert_eq!(schema.key(id, raw), same, "{}", attribute.name);
        }
    }
}

#[test]
fn an_echo_request_has_its_identifier() {
    let echo = Icmpv4Type::EchoRequest(IcmpEchoHeader { id: 0x1234, seq: 7 });
    let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).icmpv4(echo);
    let mut bytes = Vec::new();
    builder.write(&mut bytes, &[0; 4]).unwrap();
    let record = record_of(&bytes, None);
    assert_eq!((get(&record, "icmp_type"), get(&record, "icmp_id"), get(&record, "icmp_seq")), (8, 0x1234, 7));
    assert_eq!(get(&record, "has_icmp"), 1);
}

#[test]
fn fragments_are_marked_and_later_ones_have_the_ports_of_the_first() {
    // IPv6: hop-by-hop options, a fragment header, UDP.
    let packet = |offset: u16, more: u16, rest: &[u8]| {
        let mut bytes = [&[4; 6][..], &[2; 6], &[0x86, 0xdd, 0x60, 0, 0, 0]].concat();
        bytes.extend((16 + rest.len() as u16).to_be_bytes());
        bytes.extend([0, 9]);
        bytes.extend([0x20; 32]);
        bytes.extend([44, 0, 1, 4, 0, 0, 0, 0]);
        bytes.extend([17, 0]);
        bytes.extend((offset << 3 | more).to_be_bytes());
        bytes.extend([0, 0, 0xab, 0xcd]);
        bytes.extend(rest);
        bytes
    };
    let first = packet(0, 1, &[0x12, 0x34, 0, 53, 1, 0, 0xaa, 0xbb, 1, 2, 3, 4, 5, 6, 7, 8]);
    let later = packet(2, 0, &[9; 8]);
    let mut parser = Parser::new(Tunnel::Outer);
    let mut record_of = |data: &[u8]| {
        let frame = parser.parse(LinkType::Ethernet, data.len() as u32, data);
        let captured = Captured { at: Nanos(1), link: LinkType::Ethernet, original_len: data.len() as u32, data };
        let mut record = [0; packet::SIZE];
        packet::fill(&mut record, &captured, &frame, None);
        record
    };
    let names = [
        "ip_id",
        "ip_fragment_offset",
        "ip_more_fragments",
        "has_udp",
        "src_port",
        "dst_port",
        "udp_length",
        "protocol",
        "payload_length",
    ];
    let of = |record: &Record| names.map(|name| get(record, name));
    assert_eq!(of(&record_of(&first)), [0xabcd, 0, 1, 1, 0x1234, 53, 256, 17, 8]);
    assert_eq!(of(&record_of(&later)), [0xabcd, 2, 0, 0, 0x1234, 53, 0, 17, 8]);
}

#[test]
fn telemetry_is_there_if_switches_added_it() {
    let hops: Vec<_> = (1..=6).map(|n| Hop { switch: n, queue: n * 1000 }).collect();
    let telemetry = Telemetry { ingress: Nanos(5), egress: Nanos(9), hops: &hops };
    let record = record_of(&[0; 60], Some(&telemetry));
    assert_eq!((get(&record, "ingress"), get(&record, "egress"), get(&record, "hops")), (5, 9, 6));
    for hop in 1..=5u32 {
        assert_eq!(get(&record, &format!("switch_{hop}")), u128::from(hop));
        assert_eq!(get(&record, &format!("queue_{hop}")), u128::from(hop * 1000));
    }
    let scope = Scope::new(packet::schema());
    let dnf = scope.parse("has_telemetry and queue_3 > 2.5kB and switch_5 == 5").unwrap().dnf(&scope).unwrap();
    assert!(Filter::new(&dnf, packet::schema()).matches(&record, &NoAggregates));
}

#[test]
fn departures_are_read_as_they_were_written() {
    let packet = Packet { id: PacketId(77), flow: FlowId(3), size: ByteCount(1514), class: Class(2), ecn: Ecn::Ce };
    let departure = Departure {
        packet,
        queue: QueueId(9),
        enqueued: Nanos(1_000),
        dequeued: Nanos(3_500),
        backlog_in: Backlog { packets: 4, bytes: ByteCount(6_000) },
        backlog_out: Backlog { packets: u64::MAX, bytes: ByteCount(7_000) },
    };
    let v4 = FlowKey {
        src: 0x0a00_0001,
        dst: 0x0a00_0002,
        src_port: 50_000,
        dst_port: 443,
        vlan: 12,
        protocol: 6,
        dscp: 46,
        family: Family::V4,
        ..FlowKey::default()
    };
    let v6 = FlowKey { src: 0x2001 << 112 | 1, dst: 0x2001 << 112 | 2, family: Family::V6, ..v4 };
    let arp =
        FlowKey { src: 0x0200_0000_0001, dst: 0xffff_ffff_ffff, ethertype: 0x0806, vlan: 12, ..FlowKey::default() };
    let common = "enqueued == 1us and dequeued == 3500 and delay == 2.5us and packet == 77 and backlog_in == 6kB and \
                  backlog_out == 7000B and packets_in == 4 and packets_out == 0xffffffff and length == 1514 and vlan == 12 \
                  and queue == 9 and ecn == CE and class == 2 and flow == 3";
    for (key, own) in [
        (
            v4,
            "src_ip == 10.0.0.1 and dst_ip == 10.0.0.2 and src_port == 50000 and dst_port == 443 and protocol == TCP and dscp == 46 and ip_version == 4 and ethertype == 0 and src_mac == 0:0:0:0:0:0",
        ),
        (
            v6,
            "src_ip == 2001::1 and dst_ip == 2001::2 and src_port == 50000 and dst_port == 443 and protocol == TCP and dscp == 46 and ip_version == 6",
        ),
        (
            arp,
            "src_ip == :: and dst_ip == :: and src_mac == 02:00:00:00:00:01 and dst_mac == ff:ff:ff:ff:ff:ff and ethertype == ARP and ip_version == 0 and protocol == 0 and dst_port == 0",
        ),
    ] {
        let mut record = [0xff; departure::SIZE];
        departure::fill(&mut record, &departure, &key);
        let scope = Scope::new(departure::schema());
        let expr = scope.parse(&format!("{common} and {own}")).unwrap_or_else(|error| panic!("{error}"));
        let queuescope_log::Expr::All(each) = &expr else { panic!("it has several tests") };
        for test in each {
            assert!(test.holds(departure::schema(), &record, &NoAggregates), "{}", test.text(&scope));
        }
        assert!(Filter::new(&expr.dnf(&scope).unwrap(), departure::schema()).matches(&record, &NoAggregates));
    }
}
