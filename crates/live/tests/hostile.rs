//! Malformed and unusual packets through a queue that the test made: the probe counts all of them, and identifies flows as the parser does.

#![cfg(target_os = "linux")]

use crate::common;
use crate::common::Ends;
use queuescope_live::{Counters, Probe, ProbeParams};
use queuescope_wire::Granularity;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use rustix::fd::OwnedFd;

/// A socket that sends raw frames on a device.
struct RawSocket(OwnedFd);

impl RawSocket {
    fn new(device: &str) -> Self {
        #[allow(unsafe_code, reason = "the standard library cannot send raw frames")]
        // SAFETY: `address` is a complete `sockaddr_ll` that outlives the call, and `size` is its length.
        unsafe {
            use std::os::fd::FromRawFd;
            let device = std::ffi::CString::new(device).expect("it has no zeros");
            let socket = libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0);
            assert!(socket >= 0, "{}", std::io::Error::last_os_error());
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_ifindex = libc::if_nametoindex(device.as_ptr()) as i32;
            let size = size_of_val(&address) as u32;
            assert_eq!(libc::bind(socket, (&raw const address).cast(), size), 0, "{}", std::io::Error::last_os_error());
            Self(OwnedFd::from_raw_fd(socket))
        }
    }

    /// Whether the frame was sent; a full queue refuses it.
    fn send(&self, frame: &[u8]) -> bool {
        rustix::net::send(&self.0, frame, rustix::net::SendFlags::empty()).is_ok()
    }
}

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: usize) -> usize {
        self.next() as usize % bound
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A header of a transport protocol, with a payload.
fn transport(numbers: &mut Numbers, protocol: u8) -> Vec<u8> {
    let mut bytes = match protocol {
        6 => numbers.bytes(20),
        17 => numbers.bytes(8),
        _ => numbers.bytes(12),
    };
    if protocol == 6 {
        bytes[12] = 0x50;
    }
    let payload = numbers.below(80);
    if protocol == 17 {
        bytes[4..6].copy_from_slice(&((8 + payload) as u16).to_be_bytes());
    }
    bytes.extend(numbers.bytes(payload));
    bytes
}

fn v4(numbers: &mut Numbers) -> Vec<u8> {
    let options = numbers.below(4) * 4;
    let protocol = [6, 17, 1, 132, 33, 136, 47, 50, 89][numbers.below(9)];
    let rest = transport(numbers, protocol);
    let mut bytes = vec![0x40 | (5 + options / 4) as u8, numbers.next() as u8];
    bytes.extend(((20 + options + rest.len()) as u16).to_be_bytes());
    bytes.extend(numbers.bytes(2));
    // A first fragment, a middle one, and most often none; never of the same datagram.
    bytes.extend([0x4000u16, 0x2000, 0x2004, 0x4000, 0x0005][numbers.below(5)].to_be_bytes());
    bytes.extend([64, protocol, 0, 0]);
    bytes.extend(numbers.bytes(8));
    bytes.extend(vec![1; options]);
    bytes.extend(rest);
    bytes
}

fn v6(numbers: &mut Numbers) -> Vec<u8> {
    let last = [6, 17, 58, 132, 59][numbers.below(5)];
    let mut rest = transport(numbers, last);
    let mut next = last;
    for _ in 0..numbers.below(4) {
        let kind = [0, 43, 60, 44][numbers.below(4)];
        let mut header = if kind == 44 { vec![0; 8] } else { vec![0; 8 * (1 + numbers.below(2))] };
        (header[0], header[1]) = (next, if kind == 44 { 0 } else { (header.len() / 8 - 1) as u8 });
        if kind == 44 {
            header[4..8].copy_from_slice(&numbers.bytes(4));
        }
        header.extend(rest);
        (rest, next) = (header, kind);
    }
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((rest.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    bytes.extend(numbers.bytes(32));
    bytes.extend(rest);
    bytes
}

/// A frame with up to two VLAN tags, of IP or something else.
fn frame(numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    for _ in 0..numbers.below(3) {
        bytes.extend([0x81, 0, numbers.next() as u8 & 15, numbers.next() as u8]);
    }
    let kind = numbers.below(10);
    let (kind, rest) = match kind {
        0..5 => (0x0800u16, v4(numbers)),
        5..8 => (0x86dd, v6(numbers)),
        8 => (0x0806, numbers.bytes(28)),
        _ => (0x88cc, numbers.bytes(40)),
    };
    bytes.extend(kind.to_be_bytes());
    bytes.extend(rest);
    bytes
}

/// Sends from the near end while the probe is attached, and passes packets to `report` until all have left if `reads`; returns the number
/// of reported packets, and the counts.
fn probed(
    ends: &Ends,
    reads: bool,
    send: impl FnOnce(&RawSocket) + Send + 'static,
    mut report: impl FnMut(queuescope_live::Left<'_>) + Send + 'static,
) -> (u64, Counters) {
    ends.near.run(move || {
        let mut probe = Probe::attach("near0", ProbeParams { all: true, ..ProbeParams::default() })
            .unwrap_or_else(|error| panic!("{error}"));
        let socket = RawSocket::new("near0");
        send(&socket);
        let mut reported = 0;
        common::settled(&mut probe, |probe| {
            if reads {
                reported += probe.left(&mut report).expect("it is there");
            }
        });
        // The interface itself sends packets from time to time.
        probe.detach().expect("it can");
        let counted = probe.counters().expect("they stay");
        // The probe hands over packets in parts: reads them all.
        while let more @ 1.. = probe.left(&mut report).expect("it is there") {
            reported += more;
        }
        (reported, counted)
    })
}

/// Two hosts with a cable between them; none, with a message, where they cannot be made.
fn ends(test: &str, qdisc: &str) -> Option<Ends> {
    Ends::new(qdisc).map_err(|why| println!("skipped: {test}: {why}")).ok()
}

#[test]
fn the_kernel_identifies_flows_as_the_parser_does() {
    let Some(ends) = ends("the_kernel_identifies_flows_as_the_parser_does", "tbf rate 1gbit burst 20kb limit 20mb")
    else {
        return;
    };
    let mut parser = Parser::new(Tunnel::Outer);
    let send = |socket: &RawSocket| {
        let mut numbers = Numbers(1);
        (0..20_000).for_each(|_| _ = socket.send(&frame(&mut numbers)));
    };
    let (reported, counted) = probed(&ends, true, send, move |left| {
        let parsed = parser.parse(LinkType::Ethernet, left.bytes, left.headers);
        let digest = Granularity::FiveTuple.project(&parsed.key).digest();
        assert_eq!(left.digest, digest, "{:?}\n{:x?}", parsed.key, left.headers);
    });
    assert!(reported > 10_000 && reported + counted.unseen() > 19_000 && counted.other > 500, "{reported} {counted:?}");
}

#[test]
fn malformed_packets_are_counted() {
    let Some(ends) = ends("malformed_packets_are_counted", "tbf rate 1gbit burst 20kb limit 20mb") else { return };
    let send = |socket: &RawSocket| {
        let mut numbers = Numbers(2);
        for n in 0..20_000 {
            let mut frame = frame(&mut numbers);
            match n % 4 {
                0 => frame.truncate(14 + numbers.below(30)),
                1 => frame = [&frame[..12], &numbers.bytes(numbers.0 as usize % 100)].concat(),
                _ => {
                    for _ in 0..1 + numbers.below(8) {
                        let at = numbers.below(frame.len().min(60));
                        frame[at] = numbers.next() as u8;
                    }
                }
            }
            socket.send(&frame);
        }
    };
    let (reported, counted) = probed(&ends, true, send, |left| assert!(left.headers.len() <= 128));
    // The kernel refuses to send frames that are shorter than a header.
    assert!(
        reported > 10_000 && reported + counted.unseen() > 15_000 && reported == counted.seen,
        "{reported} {counted:?}"
    );
    // A packet that left or was dropped had come before, except those that were in the queue before the probe was attached.
    assert!(counted.packets + counted.dropped <= counted.came + counted.unstamped, "{counted:?}");
}

#[test]
fn without_a_reader_every_packet_is_counted() {
    let Some(ends) = ends("without_a_reader_every_packet_is_counted", "tbf rate 10gbit burst 1mb limit 20mb") else {
        return;
    };
    let send = |socket: &RawSocket| {
        let mut numbers = Numbers(3);
        (0..100_000).for_each(|_| _ = socket.send(&frame(&mut numbers)));
    };
    let (reported, counted) = probed(&ends, false, send, |_| ());
    // The ring buffer of eight megabytes holds some forty thousand.
    assert!(
        reported < 60_000 && counted.untold > 30_000 && reported + counted.untold == counted.seen,
        "{reported} {counted:?}"
    );
}

#[test]
fn a_million_flows_of_one_packet_each_are_counted() {
    let Some(ends) = ends("a_million_flows_of_one_packet_each_are_counted", "tbf rate 10gbit burst 1mb limit 20mb")
    else {
        return;
    };
    let send = |socket: &RawSocket| {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0];
        frame.extend([10, 9, 0, 1, 10, 9, 0, 2, 0, 0, 0, 0, 0, 26, 0, 0]);
        frame.resize(60, 0);
        for flow in 0..1_000_000u32 {
            // The source's address and port.
            frame[27..29].copy_from_slice(&((flow >> 16) as u16).to_be_bytes());
            frame[34..36].copy_from_slice(&(flow as u16).to_be_bytes());
            socket.send(&frame);
        }
    };
    let (reported, counted) = probed(&ends, false, send, |_| ());
    assert!(counted.seen > 900_000 && reported + counted.untold == counted.seen, "{reported} {counted:?}");
}
