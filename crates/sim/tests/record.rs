//! Records of simulated packets agree with the packets and their journeys.

use queuescope_log::Schema;
use queuescope_queue::{DisciplineParams, Limit, TailDropParams};
use queuescope_sim::shapes::{Dumbbell, Wire};
use queuescope_sim::workload::FlowStart;
use queuescope_sim::{DatagramParams, DetourParams, Journey, NodeId, Records, Simulation, Telemetry, Transport};
use queuescope_tcp::{Algorithm, Profile, TcpParams};
use queuescope_wire::{ByteCount, Class, Ecn, Nanos, Rate};

fn wire(bits: u64, limit: Limit) -> Wire {
    let discipline = DisciplineParams::TailDrop(TailDropParams { limit });
    Wire::new(Rate::from_bits_per_second(bits).unwrap(), Nanos(50_000), discipline)
}

/// The value of an attribute in a record.
fn value(record: &[u8], name: &str) -> u64 {
    let schema = Schema::packet();
    schema.key(schema.find(name).unwrap_or_else(|| panic!("no {name}")), record) as u64
}

#[test]
fn a_record_agrees_with_the_simulation() {
    let hosts = (0..2).map(|_| wire(100_000_000, Limit::None));
    let dumbbell = Dumbbell::new(&wire(10_000_000, Limit::Packets(20)), None, hosts);
    let (left, right) = (dumbbell.left.clone(), dumbbell.right.clone());
    let mut simulation = Simulation::new(dumbbell.topology.clone(), 1, Nanos::ZERO).unwrap();
    let tcp = TcpParams { ecn: true, ..TcpParams::linux() };
    let transport = Transport { class: Class(5), ..Transport::new(tcp, Algorithm::Cubic.params(Profile::Linux)) };
    let start = FlowStart { bytes: Some(300_000), ..FlowStart::new(left[0], right[0]) };
    simulation.add_flows(0, transport, None, std::iter::once(start)).unwrap();
    let datagrams = (0..50).map(|n| (Nanos(n * 1_000_000), ByteCount(500)).into());
    simulation.add_datagrams(DatagramParams::new(left[1], right[1]), datagrams).unwrap();
    let mut records = Records::default();
    let (mut segments, mut datagrams, mut dropped) = (0, 0, 0);
    let mut look = |journey: &Journey<'_>| {
        let record = records.fill(journey).to_vec();
        let value = |name: &str| value(&record, name);
        let (packet, headers) = (journey.packet, journey.headers);
        assert_eq!((value("ts"), value("length")), (journey.at.0, u64::from(packet.bytes)));
        assert_eq!(value("src_ip"), 0xffff_0a00_0000 | u64::from(packet.hosts[0].0));
        assert_eq!(value("dst_ip"), 0xffff_0a00_0000 | u64::from(packet.hosts[1].0));
        let key = packet.key();
        assert_eq!([value("src_port"), value("dst_port")], [key.src_port, key.dst_port].map(u64::from));
        assert_eq!((value("dscp"), value("ecn") == 3), (packet.class.0.into(), packet.ecn == Ecn::Ce));
        match &headers.tcp {
            Some(segment) => {
                assert_eq!((value("protocol"), value("has_tcp"), value("has_udp")), (6, 1, 0));
                assert_eq!((value("tcp_seq"), value("tcp_ack")), (segment.seq, segment.ack));
                assert_eq!(value("payload_length"), u64::from(segment.length));
                assert_eq!(value("tcp_flags"), u64::from(segment.flags.bits()));
                segments += 1;
            }
            None => {
                assert_eq!((value("protocol"), value("has_tcp"), value("has_udp")), (17, 0, 1));
                datagrams += 1;
            }
        }
        // The host's own queue is not a hop at a switch.
        let hops = &journey.hops[1..];
        assert_eq!((value("has_telemetry"), value("hops")), (1, hops.len() as u64));
        for (n, hop) in (1..).zip(hops) {
            let met = (value(&format!("switch_{n}")), value(&format!("queue_{n}")));
            assert_eq!(met, (hop.node.0.into(), hop.backlog_in.bytes.0));
        }
        if let (Some(first), Some(last)) = (hops.first(), hops.last()) {
            assert_eq!((value("ingress"), value("egress")), (first.ingress.0, last.egress.0));
        }
        dropped += u64::from(journey.dropped.is_some());
    };
    let mut telemetry = Telemetry::new(&dumbbell.topology, (), &mut look);
    simulation.run_until(Nanos(2_000_000_000), &mut telemetry);
    assert!(segments > 300 && datagrams == 50 && dropped > 0, "{segments} {datagrams} {dropped}");
}

#[test]
fn a_detour_takes_its_share_of_the_packets() {
    let mut dumbbell =
        Dumbbell::new(&wire(100_000_000, Limit::None), None, (0..2).map(|_| wire(100_000_000, Limit::None)));
    let island = dumbbell.topology.add_node("island");
    let (left, right) = (dumbbell.left.clone(), dumbbell.right.clone());
    let mut simulation = Simulation::new(dumbbell.topology.clone(), 3, Nanos::ZERO).unwrap();
    for (from, to) in left.iter().zip(&right) {
        let datagrams = (0..1000).map(|n| (Nanos(n * 100_000), ByteCount(500)).into());
        simulation.add_datagrams(DatagramParams::new(*from, *to), datagrams).unwrap();
    }
    // Through the other pair's receiver, and back.
    let detour = DetourParams { from: left[0], via: right[1], to: right[0], flow: None, share: 0.3 };
    simulation.add_detour(&detour).unwrap();
    let mut passed = [0u32; 2];
    let count_journey = |journey: &Journey<'_>| {
        let by = journey.hops.iter().any(|hop| hop.node == right[1]);
        passed[usize::from(NodeId(journey.packet.hosts[0].0) == left[1])] += u32::from(by);
        assert_eq!(journey.dropped, None);
    };
    simulation.run_until(Nanos(1_000_000_000), &mut Telemetry::new(&dumbbell.topology, (), count_journey));
    // 1000 packets: four standard deviations are 58.
    assert!(passed[0].abs_diff(300) < 58 && passed[1] == 0, "{passed:?}");
    assert!(simulation.datagrams().all(|record| record.delivered.packets == 1000));
    let nowhere = DetourParams { via: island, ..detour };
    assert!(simulation.add_detour(&nowhere).is_err());
}
