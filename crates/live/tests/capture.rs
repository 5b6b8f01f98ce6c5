//! Packets between two network namespaces, captured on an interface, as root.

use crate::common::{Ends, ip, until};
use queuescope_live::capture::{Capture, CaptureError, CaptureParams, Counts, Direction, Woken};
use queuescope_wire::Nanos;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

/// A captured packet.
#[derive(Debug, Clone)]
struct Packet {
    at: Nanos,
    original_len: u32,
    data: Vec<u8>,
    is_outgoing: bool,
}

/// Two hosts with a cable between them; none, with a message, where they cannot be made.
fn ends(test: &str) -> Option<Ends> {
    Ends::new("pfifo limit 10000").map_err(|why| println!("skipped: {test}: {why}")).ok()
}

/// The destination port of the packets of these tests.
const PORT: u16 = 7009;

/// All captured packets, once `passed` packets have passed; they may arrive a little after they were sent.
fn all(capture: &mut Capture, passed: u64) -> Vec<Packet> {
    until("the packets pass", || (capture.counts().passed >= passed).then_some(()));
    let mut packets = Vec::new();
    let result = capture.finish(|it| {
        let (at, original_len, is_outgoing) = (it.at, it.original_len, it.is_outgoing);
        packets.push(Packet { at, original_len, data: it.data.to_vec(), is_outgoing });
        ControlFlow::Continue(())
    });
    result.expect("blocks are valid");
    packets
}

/// The packets of these tests, by IPv4.
fn ours(packets: &[Packet]) -> Vec<&Packet> {
    let is_ours = |data: &[u8]| data.get(12..14) == Some(&[8, 0]) && data.get(36..38) == Some(&PORT.to_be_bytes());
    packets.iter().filter(|packet| is_ours(&packet.data)).collect()
}

/// Sends packets with these payloads from the near end.
fn send(ends: &Ends, payloads: Vec<Vec<u8>>) {
    ends.near.run(move || {
        let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        for payload in payloads {
            // An error reports that nobody listens to a packet sent before.
            until("it is sent", || socket.send_to(&payload, ("10.9.0.2", PORT)).ok());
        }
    });
}

/// Captures on an end while packets are sent from the near end.
fn captured(
    ends: &Ends,
    interface: &'static str,
    params: CaptureParams,
    payloads: Vec<Vec<u8>>,
) -> (Vec<Packet>, Counts) {
    let end = if interface.starts_with("near") { &ends.near } else { &ends.far };
    let mut capture = end.run(move || Capture::open(interface, params)).unwrap_or_else(|error| panic!("{error}"));
    // Packets go from the near end to the far end.
    let passed = if interface.starts_with("far") { payloads.len() as u64 } else { 0 };
    send(ends, payloads);
    let packets = all(&mut capture, passed);
    (packets, capture.counts())
}

#[test]
fn packets_are_captured_as_they_were_sent() {
    let Some(ends) = ends("packets_are_captured_as_they_were_sent") else { return };
    let payloads: Vec<Vec<u8>> =
        (0..500usize).map(|n| (0..n * 2 + 2).map(|at| (n * 31 + at) as u8).collect()).collect();
    for snaplen in [60, 1000, 65_536] {
        let params = CaptureParams { snaplen, ..CaptureParams::default() };
        let (packets, counts) = captured(&ends, "far0", params, payloads.clone());
        assert_eq!((counts.passed, counts.dropped), (packets.len() as u64, 0));
        let ours = ours(&packets);
        assert_eq!(ours.len(), payloads.len());
        for (packet, payload) in ours.iter().zip(&payloads) {
            assert_eq!(packet.original_len as usize, 42 + payload.len());
            assert_eq!(packet.data.len(), (42 + payload.len()).min(snaplen as usize));
            let kept = &packet.data[42..];
            assert_eq!(kept, &payload[..kept.len()]);
            assert_eq!(packet.data[..6], [2, 0, 0, 0, 0, 2]);
            assert!(!packet.is_outgoing);
        }
        assert!(ours.is_sorted_by_key(|packet| packet.at));
    }
}

#[test]
fn packets_that_find_no_room_are_counted() {
    let Some(ends) = ends("packets_that_find_no_room_are_counted") else { return };
    // Two blocks of 1 MiB, which nobody reads during the test.
    let params = CaptureParams { snaplen: 1500, ring: 0, ..CaptureParams::default() };
    let (packets, counts) = captured(&ends, "far0", params, vec![vec![7; 1000]; 4000]);
    assert!(counts.dropped > 1000, "{counts:?}");
    assert_eq!(packets.len() as u64 + counts.dropped, counts.passed);
    let others = packets.len() - ours(&packets).len();
    assert!(counts.passed >= 4000 && counts.passed <= 4000 + 100 + others as u64, "{counts:?}");
}

#[test]
fn directions_are_distinguished() {
    let Some(ends) = ends("directions_are_distinguished") else { return };
    let directions = [(Direction::Out, 10), (Direction::In, 0), (Direction::Both, 10)];
    for (direction, expected) in directions {
        let params = CaptureParams { direction, ..CaptureParams::default() };
        let (packets, _) = captured(&ends, "near0", params, vec![vec![1; 10]; 10]);
        assert_eq!(ours(&packets).len(), expected, "{direction:?}");
        assert!(ours(&packets).iter().all(|packet| packet.is_outgoing));
        let wrong = packets.iter().filter(|packet| match direction {
            Direction::Out => !packet.is_outgoing,
            Direction::In => packet.is_outgoing,
            Direction::Both => false,
        });
        assert_eq!(wrong.count(), 0);
    }
    // On a loopback interface each packet passes twice.
    ends.near.run(|| ip("ip link set lo up")).expect("it is there");
    let mut capture = ends.near.run(|| Capture::open("lo", CaptureParams::default())).expect("it is there");
    assert!(capture.is_loopback() && capture.dlt() == 1);
    ends.near.run(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("there is a port");
        // Errors report that nobody listens there.
        (0..10).for_each(|_| drop(socket.send_to(&[1; 10], ("127.0.0.1", PORT))));
    });
    let packets = all(&mut capture, 1);
    assert!(ours(&packets).len() <= 10 && !ours(&packets).is_empty(), "{packets:?}");
}

#[test]
fn vlan_tags_are_restored() {
    let Some(ends) = ends("vlan_tags_are_restored") else { return };
    let tagged = ends.near.run(|| {
        ip("ip link add link near0 name near0.5 type vlan id 5")?;
        ip("ip addr add 10.5.0.1/24 dev near0.5")?;
        ip("ip link set near0.5 up")?;
        ip("ip neigh add 10.5.0.2 lladdr 02:00:00:00:00:02 dev near0.5 nud permanent")
    });
    if let Err(why) = tagged {
        return println!("skipped: vlan_tags_are_restored: {why}");
    }
    for snaplen in [50, 65_536] {
        let params = CaptureParams { snaplen, ..CaptureParams::default() };
        let mut capture = ends.far.run(move || Capture::open("far0", params)).expect("it is there");
        ends.near.run(|| {
            let socket = UdpSocket::bind("10.5.0.1:0").expect("there is a port");
            socket.send_to(&[9; 100], ("10.5.0.2", PORT)).expect("it goes");
        });
        let packets = all(&mut capture, 1);
        let tagged = packets.iter().find(|it| it.data.get(12..18) == Some(&[0x81, 0, 0, 5, 8, 0])).expect("it came");
        assert_eq!(tagged.original_len, 14 + 4 + 20 + 8 + 100);
        assert_eq!(tagged.data.len(), 146.min(snaplen as usize));
        assert_eq!(tagged.data[18], 0x45, "the header after the tag");
    }
}

#[test]
fn a_removed_interface_is_reported() {
    let Some(ends) = ends("a_removed_interface_is_reported") else { return };
    ends.near.run(|| {
        let mut capture = Capture::open("near0", CaptureParams::default()).expect("it is there");
        let (_stop, stopped) = UnixStream::pair().expect("there are sockets");
        // Some packets are in the ring when the interface goes down.
        let socket = UdpSocket::bind("10.9.0.1:0").expect("there is a port");
        (0..10).for_each(|_| drop(socket.send_to(&[0; 100], "10.9.0.2:9")));
        ip("ip link set near0 down").expect("it is there");
        until("the capture notices that the interface went down", || {
            capture.wait(stopped.as_fd(), Some(Nanos(1_000_000))).expect("it can be waited for");
            (capture.counts().went_down > 0).then_some(())
        });
        assert_eq!(capture.counts().went_down, 1);
        ip("ip link del near0").expect("it is there");
        until("the capture notices that the interface was removed", || {
            let woken = capture.wait(stopped.as_fd(), Some(Nanos(10_000_000))).expect("it can be waited for");
            capture.block(|_| ControlFlow::Continue(())).expect("blocks are valid");
            (woken == Woken::Gone).then_some(())
        });
    });
    let none = ends.near.run(|| Capture::open("near0", CaptureParams::default()).map(drop));
    assert!(matches!(none, Err(CaptureError::NoInterface { .. })), "{none:?}");
}
