//! TCP headers of real packets as switch programs read them: sequence numbers do not wrap, and windows are in bytes.

use etherparse::{LaxSlicedPacket, TcpOptionElement, TcpSlice, TransportSlice};
use queuescope_queue::Headers;
use queuescope_tcp::{Flags, Segment};
use queuescope_wire::FlowId;

/// The largest window scale shift (RFC 7323, section 2.3).
const LARGEST_SHIFT: u8 = 14;

/// The connections whose packets pass, one half of each by the flow of its packets.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    halves: Vec<Option<HalfConnection>>,
}

/// One direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HalfConnection {
    /// The sequence number of its SYN (the initial sequence number).
    first: u32,
    /// The highest sequence number after one that it sent, relative to its SYN.
    next: u64,
    /// The window scale option of its SYN.
    shift: Option<u8>,
}

/// The receive window that a packet advertises, and where its field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    /// The offset of the TCP header in the packet, in bytes.
    pub header: u16,
    /// The window scale: the field is the window shifted right by this many bits.
    pub shift: u8,
    /// The window as the packet arrived, in bytes.
    pub bytes: u64,
}

impl Connections {
    /// The TCP header of a packet of `flow`, if it has one and the connection's SYN was seen. `reverse` is the flow of the opposite
    /// direction.
    pub fn read(&mut self, packet: &[u8], [flow, reverse]: [FlowId; 2]) -> Option<(Segment, ReceiveWindow)> {
        let sliced = LaxSlicedPacket::from_ip(packet).ok()?;
        let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { return None };
        let header = tcp.slice().as_ptr() as usize - packet.as_ptr() as usize;
        if tcp.syn() {
            let half = HalfConnection { first: tcp.sequence_number(), next: 0, shift: shift(&tcp) };
            *self.half(flow) = Some(half);
        }
        let other = *self.half(reverse);
        let own = self.half(flow).as_mut()?;
        let seq = own.number(tcp.sequence_number());
        let ack = if tcp.ack() { other?.number(tcp.acknowledgment_number()) } else { 0 };
        let shift = match (own.shift, other.and_then(|other| other.shift)) {
            (Some(shift), Some(_)) if !tcp.syn() => shift,
            _ => 0,
        };
        let window = u64::from(tcp.window_size()) << shift;
        let segment = Segment {
            seq,
            ack,
            window,
            length: tcp.payload().len() as u32,
            flags: Flags::from_bits(tcp.slice()[13]),
            ..Segment::default()
        };
        own.next = own.next.max(segment.end());
        Some((segment, ReceiveWindow { header: header as u16, shift, bytes: window }))
    }

    /// Forgets the connection of a flow whose id goes to another flow.
    pub fn forget(&mut self, flow: FlowId) {
        *self.half(flow) = None;
    }

    fn half(&mut self, flow: FlowId) -> &mut Option<HalfConnection> {
        let at = flow.0 as usize;
        if at >= self.halves.len() {
            self.halves.resize(at + 1, None);
        }
        &mut self.halves[at]
    }
}

impl HalfConnection {
    /// Unwraps a sequence number: of the numbers relative to the SYN that it can stand for, the one that is closest to `next`.
    fn number(&self, wire: u32) -> u64 {
        let apart = wire.wrapping_sub(self.first).wrapping_sub(self.next as u32) as i32;
        self.next.saturating_add_signed(apart.into())
    }
}

impl ReceiveWindow {
    /// The new value of the window field if a program has lowered the window, otherwise `None`. The field leaves out low bits, so its
    /// value is rounded up, but never above the value that it had.
    pub fn changed(&self, headers: &Headers) -> Option<u16> {
        let window = headers.tcp?.window;
        let field = window.div_ceil(1 << self.shift);
        (window < self.bytes).then(|| field.min(u64::from(u16::MAX)) as u16)
    }
}

/// The window scale option of a SYN.
fn shift(tcp: &TcpSlice<'_>) -> Option<u8> {
    tcp.options_iterator().find_map(|option| match option {
        Ok(TcpOptionElement::WindowScale(shift)) => Some(shift.min(LARGEST_SHIFT)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    const ONE: [FlowId; 2] = [FlowId(0), FlowId(1)];
    const OTHER: [FlowId; 2] = [FlowId(1), FlowId(0)];

    /// A packet with these sequence numbers and this window, and with a window scale if it is a SYN.
    fn packet(seq: u32, ack: Option<u32>, window: u16, syn: Option<u8>, payload: &[u8]) -> Vec<u8> {
        let mut tcp = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1000, 2000, seq, window);
        if let Some(ack) = ack {
            tcp = tcp.ack(ack);
        }
        if let Some(shift) = syn {
            tcp = tcp.syn().options(&[TcpOptionElement::WindowScale(shift)]).expect("there is room");
        }
        let mut bytes = Vec::new();
        tcp.write(&mut bytes, payload).expect("there is room");
        bytes
    }

    /// A connection whose sides have these initial sequence numbers and shifts.
    fn begun(first: [u32; 2], shifts: [u8; 2]) -> Connections {
        let mut connections = Connections::default();
        let (syn, window) =
            connections.read(&packet(first[0], None, 64_000, Some(shifts[0]), &[]), ONE).expect("a SYN");
        assert_eq!((syn.seq, syn.ack, syn.window, window.shift), (0, 0, 64_000, 0));
        let answer = packet(first[1], Some(first[0].wrapping_add(1)), 64_000, Some(shifts[1]), &[]);
        let (answer, _) = connections.read(&answer, OTHER).expect("its answer");
        assert_eq!((answer.seq, answer.ack, answer.window), (0, 1, 64_000));
        connections
    }

    #[test]
    fn connections_without_a_syn_and_packets_without_tcp_are_ignored() {
        let mut connections = Connections::default();
        assert_eq!(connections.read(&packet(5, Some(6), 100, None, b"data"), ONE), None);
        let mut udp = Vec::new();
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(1, 2)
            .write(&mut udp, b"data")
            .expect("there is room");
        assert_eq!(connections.read(&udp, ONE), None);
        let mut connections = begun([7, 9], [7, 7]);
        connections.forget(FlowId(1));
        assert_eq!(connections.read(&packet(8, Some(10), 100, None, b"data"), ONE), None);
    }

    #[test]
    fn windows_are_scaled_if_both_sides_offer_a_scale() {
        let mut connections = begun([7, 9], [3, 200]);
        let (ack, window) = connections.read(&packet(8, Some(10), 100, None, &[]), ONE).expect("its SYN was seen");
        assert_eq!((ack.window, window.shift), (800, 3));
        let (_, window) = connections.read(&packet(10, Some(8), 100, None, &[]), OTHER).expect("its SYN was seen");
        assert_eq!(window.shift, LARGEST_SHIFT);
        let mut plain = Connections::default();
        let syn = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1000, 2000, 8, 5).syn();
        let mut bytes = Vec::new();
        syn.write(&mut bytes, &[]).expect("there is room");
        assert!(plain.read(&bytes, ONE).is_some());
        assert!(plain.read(&packet(9, Some(9), 100, Some(7), &[]), OTHER).is_some());
        let (_, window) = plain.read(&packet(10, Some(9), 100, None, &[]), OTHER).expect("its SYN was seen");
        assert_eq!((window.shift, window.bytes), (0, 100));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Sequence numbers grow beyond 32 bits, also where packets come late or twice.
        #[test]
        fn numbers_do_not_wrap(first in any::<u32>(), steps in prop::collection::vec((1..900_000_000u64, 0..3000u64), 1..40)) {
            let mut connections = begun([first, 1], [7, 7]);
            let mut next = 1u64;
            for (step, back) in steps {
                next += step;
                for seq in [next, next.saturating_sub(back).max(1)] {
                    let wire = first.wrapping_add(seq as u32);
                    let (read, _) = connections.read(&packet(wire, Some(2), 9, None, b"x"), ONE).expect("its SYN was seen");
                    prop_assert_eq!((read.seq, read.ack, read.length), (seq, 1, 1));
                    let (read, _) = connections.read(&packet(2, Some(wire), 9, None, &[]), OTHER).expect("its SYN was seen");
                    prop_assert_eq!(read.ack, seq);
                }
            }
        }

        #[test]
        fn windows_are_only_ever_lowered(field in any::<u16>(), shift in 0..=LARGEST_SHIFT, window in any::<u64>()) {
            let bytes = u64::from(field) << shift;
            let tcp = Some(Segment { window, ..Segment::default() });
            let headers = Headers { tcp, ..Headers::plain(queuescope_queue::Host(0), queuescope_queue::Host(1), FlowId(0)) };
            match (ReceiveWindow { header: 20, shift, bytes }).changed(&headers) {
                None => prop_assert!(window >= bytes),
                Some(now) => {
                    prop_assert!(now <= field);
                    let advertised = u64::from(now) << shift;
                    prop_assert!(advertised >= window && advertised - window < 1 << shift);
                }
            }
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut connections = begun([7, 9], [7, 7]);
            let _ = connections.read(&bytes, ONE);
        }
    }
}
