//! Packets that were read from a TUN interface, or frames from an Ethernet interface. A read returns one packet, or a super-packet of
//! TCP or UDP, which is segmented here as a network card would do it.
//!
//! Super-packets save work for the sender, and the reader needs one system call instead of forty. Each packet follows a `struct
//! virtio_net_hdr` of `linux/virtio_net.h`.

use etherparse::checksum::Sum16BitWords;
use queuescope_wire::parse::VLAN_TAGS;

/// The size of that header in bytes: flags, GSO type, length of the headers, segment size, and the start and offset of the checksum.
pub(super) const VNET_HEADER: usize = 10;
/// The bytes of a VLAN tag, for which there is room before a frame.
const TAG: usize = 4;
/// The two addresses of a frame, and its header without tags.
const ADDRESSES: usize = 12;
const ETHERNET: usize = 14;
/// The size of the buffer in bytes, a little more than the longest packet, so that none is truncated.
const BUFFER: usize = 65_536 + 64;
/// The flag for a checksum that the reader must complete.
const NEEDS_SUM: u8 = 1;
/// GSO types: TCP over IPv4 and IPv6, and UDP. Only the first segment has CWR, with or without the type's CWR bit.
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
const WITH_CWR: u8 = 0x80;

/// The offset of the checksum in the headers of TCP and UDP, and the length of the latter.
const TCP_SUM: usize = 16;
const UDP_SUM: usize = 6;
const UDP_HEADER: usize = 8;
/// TCP's flags that only the last segment has, and the flag that only the first one has.
const LAST_ONLY: u8 = 0x09;
const FIRST_ONLY: u8 = 0x80;

/// A packet or super-packet that was read, whose segments are taken one by one.
#[derive(Debug)]
pub struct Incoming {
    /// The `virtio_net_hdr`, and the data after it.
    bytes: Vec<u8>,
    /// The start of the data that is not taken yet; behind the headers for a super-packet.
    from: usize,
    to: usize,
    /// How to segment a super-packet.
    segmentation: Option<Segmentation>,
    /// The start of the checksummed data and the position of an incomplete checksum, both from the start of the packet or frame.
    sum: Option<(usize, usize)>,
}

/// The segmentation of a super-packet.
#[derive(Debug)]
struct Segmentation {
    /// All headers of the super-packet.
    headers: Vec<u8>,
    /// The offset of the IP header.
    network: usize,
    /// The offset of the header of TCP or UDP, and that of the checksum in it.
    transport: usize,
    sum: usize,
    /// The payload of each segment but the last.
    each: usize,
    /// The number of segments that were taken.
    taken: u32,
}

impl Default for Incoming {
    fn default() -> Self {
        Self { bytes: vec![0; VNET_HEADER + TAG + BUFFER], from: 0, to: 0, segmentation: None, sum: None }
    }
}

impl Incoming {
    /// The bytes before each packet that is written: a `virtio_net_hdr`.
    pub(crate) const OFFLOAD_HEADER: usize = VNET_HEADER;

    /// The buffer for the next read.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The buffers for the next frame: for the header about offloads, and for the frame.
    pub(crate) fn frame_buffer(&mut self) -> (&mut [u8], &mut [u8]) {
        let (header, rest) = self.bytes.split_at_mut(VNET_HEADER);
        (header, &mut rest[TAG..])
    }

    /// A read has filled `length` bytes of the buffer.
    pub(super) fn filled(&mut self, length: usize) {
        (self.from, self.to) = (VNET_HEADER.min(length), length);
        self.prepare(0, 0);
    }

    /// A read has filled `length` bytes of the buffers of a frame, with the header about offloads. `tag` is the VLAN tag of the frame that is not in
    /// it; it is put back.
    pub(crate) fn filled_frame(&mut self, length: usize, tag: Option<[u8; TAG]>) {
        let start = VNET_HEADER + TAG;
        (self.from, self.to) = (start, (TAG + length.max(VNET_HEADER)).min(self.bytes.len()));
        let mut grown = 0;
        if let Some(tag) = tag.filter(|_| self.to - start >= ADDRESSES) {
            self.bytes.copy_within(start..start + ADDRESSES, VNET_HEADER);
            self.bytes[VNET_HEADER + ADDRESSES..start + ADDRESSES].copy_from_slice(&tag);
            (self.from, grown) = (VNET_HEADER, TAG);
        }
        let frame = &self.bytes[self.from..self.to];
        let kind = |at: usize| frame.get(at..at + 2).and_then(|kind| kind.try_into().ok()).map(u16::from_be_bytes);
        let is_tag = |at: &usize| kind(*at).is_some_and(|kind| VLAN_TAGS.contains(&kind));
        let tags = (ADDRESSES..).step_by(TAG).take_while(is_tag).count();
        self.prepare(grown, ETHERNET + tags * TAG);
    }

    /// Prepares what was read to be taken. Its IP header is at `network`; it has grown by this many bytes in front of that.
    fn prepare(&mut self, grown: usize, network: usize) {
        let [flags, kind, _, _, each @ .., start, start_high, offset, offset_high] = self.header();
        let [each, start, offset] =
            [each, [start, start_high], [offset, offset_high]].map(|it| u16::from_ne_bytes(it).into());
        let start: usize = start + grown;
        let packet = &self.bytes[self.from..self.to];
        self.sum = (flags & NEEDS_SUM != 0 && start + offset + 2 <= packet.len()).then_some((start, start + offset));
        let is_cut = match kind & !WITH_CWR {
            TCP4 | TCP6 => offset == TCP_SUM,
            UDP => offset == UDP_SUM,
            _ => false,
        };
        let transport = self.sum.filter(|_| is_cut && each > 0);
        self.segmentation =
            transport.and_then(|(transport, _)| Segmentation::new(packet, [network, transport, offset], each));
        self.from += self.segmentation.as_ref().map_or(0, |segmentation| segmentation.headers.len());
    }

    /// Whether this is a super-packet that cannot be segmented and is taken as one packet.
    pub fn is_uncut(&self) -> bool {
        let [_, kind, ..] = self.header();
        kind != 0 && self.segmentation.is_none()
    }

    fn header(&self) -> [u8; VNET_HEADER] {
        *self.bytes.first_chunk().expect("the buffer is longer")
    }

    /// The next packet from its IP header on, or the next frame, with complete checksums.
    pub fn take(&mut self) -> Option<&mut [u8]> {
        if self.from >= self.to {
            return None;
        }
        let Some(segmentation) = &mut self.segmentation else {
            let packet = &mut self.bytes[self.from..self.to];
            self.from = self.to;
            if let Some((start, place)) = self.sum {
                complete(packet, start, place);
            }
            return Some(packet);
        };
        let end = self.to.min(self.from + segmentation.each);
        // The bytes before the payload belong to segments that were taken, so the headers may overwrite them.
        let packet = &mut self.bytes[self.from - segmentation.headers.len()..end];
        segmentation.write_headers(packet, end - self.from, self.to - self.from);
        if let Some((start, place)) = self.sum {
            complete(packet, start, place);
        }
        segmentation.taken += 1;
        self.from = end;
        Some(packet)
    }
}

/// Where the header of TCP or UDP begins, if it is directly behind an IP header and the extension headers of IPv6.
fn behind_ip(packet: &[u8], network: usize) -> Option<usize> {
    let byte = |at: usize| packet.get(network + at).map(|byte| usize::from(*byte));
    let first = byte(0)?;
    let (mut at, mut protocol) = match first >> 4 {
        4 if first & 15 >= 5 => ((first & 15) * 4, byte(9)?),
        6 => (40, byte(6)?),
        _ => return None,
    };
    // Hop-by-hop options, routing, destination options (RFC 8200, section 4).
    while first >> 4 == 6 && [0, 43, 60].contains(&protocol) {
        (at, protocol) = (at + (byte(at + 1)? + 1) * 8, byte(at)?);
    }
    [6, 17].contains(&protocol).then_some(network + at)
}

impl Segmentation {
    /// The segmentation of a packet whose IP header begins at `network`, and its header of TCP or UDP at `transport`, with the checksum at `sum` in
    /// it; none without such headers, without a payload, or with too long segments.
    fn new(packet: &[u8], [network, transport, sum]: [usize; 3], each: usize) -> Option<Self> {
        let fields = match sum {
            UDP_SUM => UDP_HEADER,
            _ => Some(usize::from(packet.get(transport + 12)? >> 4) * 4).filter(|fields| *fields >= 20)?,
        };
        let headers = packet.get(..transport + fields)?;
        let fits = headers.len() < packet.len() && headers.len() + each <= usize::from(u16::MAX);
        // Behind another header, as in a tunnel, there would be more lengths and checksums to write.
        let whole = fits && behind_ip(packet, network) == Some(transport);
        whole.then(|| Self { headers: headers.to_vec(), network, transport, sum, each, taken: 0 })
    }

    /// Writes the headers of the next segment, which has `payload` bytes out of `left` bytes that remain.
    fn write_headers(&self, packet: &mut [u8], payload: usize, left: usize) {
        let length = (packet.len() - self.network) as u16;
        let (headers, _) = packet.split_at_mut(self.headers.len());
        headers.copy_from_slice(&self.headers);
        let (before, transport) = headers.split_at_mut(self.transport);
        let (_, ip) = before.split_at_mut(self.network);
        if ip[0] >> 4 == 4 {
            let id = u16::from_be_bytes([ip[4], ip[5]]).wrapping_add(self.taken as u16);
            ip[2..4].copy_from_slice(&length.to_be_bytes());
            ip[4..6].copy_from_slice(&id.to_be_bytes());
            let (header, _) = ip.split_at_mut(usize::from(ip[0] & 15) * 4);
            complete_ip(header);
        } else {
            ip[4..6].copy_from_slice(&(length - 40).to_be_bytes());
        }
        let passed = self.taken.wrapping_mul(self.each as u32);
        // The field holds the checksum of the pseudo header with the length of the whole super-packet (RFC 1624, equation 3).
        let together = (transport.len() + passed as usize + left) as u16;
        let own = (transport.len() + payload) as u16;
        match self.sum {
            UDP_SUM => transport[4..6].copy_from_slice(&own.to_be_bytes()),
            _ => self.write_tcp(transport, passed, payload == left),
        }
        let place = self.sum..self.sum + 2;
        let sum = Sum16BitWords::new().add_2bytes([transport[self.sum], transport[self.sum + 1]]);
        let sum = sum.add_2bytes((!together).to_be_bytes()).add_2bytes(own.to_be_bytes());
        transport[place].copy_from_slice(&(!sum.ones_complement()).to_ne_bytes());
    }

    /// Writes the sequence number and the flags of a segment, before which `passed` bytes of payload were taken.
    fn write_tcp(&self, tcp: &mut [u8], passed: u32, is_last: bool) {
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(passed);
        tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
        if !is_last {
            tcp[13] &= !LAST_ONLY;
        }
        if self.taken > 0 {
            tcp[13] &= !FIRST_ONLY;
        }
    }
}

/// Completes the checksum at `place`, which covers everything from `start` on and holds a partial sum.
fn complete(packet: &mut [u8], start: usize, place: usize) {
    let sum = Sum16BitWords::new().add_slice(&packet[start..]).to_ones_complement_with_no_zero();
    packet[place..place + 2].copy_from_slice(&sum.to_ne_bytes());
}

/// Completes the checksum of an IPv4 header.
fn complete_ip(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = Sum16BitWords::new().add_slice(header).ones_complement();
    header[10..12].copy_from_slice(&sum.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{IpHeaders, IpNumber, Ipv4Header, PacketBuilder, TcpHeader};
    use proptest::prelude::*;

    /// A packet from a sender without offloads.
    fn written(is_v6: bool, id: u16, tcp: &TcpHeader, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let builder = if is_v6 {
            PacketBuilder::ipv6([1; 16], [2; 16], 64)
        } else {
            let mut header = Ipv4Header::new(0, 64, IpNumber::TCP, [10, 0, 0, 1], [10, 0, 0, 2]).expect("short");
            header.identification = id;
            PacketBuilder::ip(IpHeaders::Ipv4(header, Default::default()))
        };
        builder.tcp_header(tcp.clone()).write(&mut bytes, payload).expect("there is room");
        bytes
    }

    /// The packet as a TUN interface hands it over: its checksum covers only the pseudo header.
    fn with_partial_sum(mut packet: Vec<u8>, start: usize, offset: usize) -> Vec<u8> {
        let length = (packet.len() - start) as u16;
        let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
        let sum = Sum16BitWords::new().add_slice(&packet[addresses]);
        let protocol = if offset == 16 { 6 } else { 17 };
        let sum = sum.add_2bytes([0, protocol]).add_2bytes(length.to_be_bytes());
        packet[start + offset..start + offset + 2].copy_from_slice(&(!sum.ones_complement()).to_ne_bytes());
        packet
    }

    fn read(header: [u8; VNET_HEADER], packet: &[u8]) -> Vec<Vec<u8>> {
        let mut incoming = Incoming::default();
        incoming.buffer()[..VNET_HEADER].copy_from_slice(&header);
        incoming.buffer()[VNET_HEADER..VNET_HEADER + packet.len()].copy_from_slice(packet);
        incoming.filled(VNET_HEADER + packet.len());
        let mut packets = Vec::new();
        while let Some(packet) = incoming.take() {
            packets.push(packet.to_vec());
        }
        packets
    }

    /// The same of an Ethernet interface. The kernel may have taken the VLAN tag out of the frame.
    fn read_frame(header: [u8; VNET_HEADER], frame: &[u8], tag: Option<[u8; TAG]>) -> Vec<Vec<u8>> {
        let mut incoming = Incoming::default();
        let (offloads, buffer) = incoming.frame_buffer();
        offloads.copy_from_slice(&header);
        buffer[..frame.len()].copy_from_slice(frame);
        incoming.filled_frame(VNET_HEADER + frame.len(), tag);
        let mut frames = Vec::new();
        while let Some(frame) = incoming.take() {
            frames.push(frame.to_vec());
        }
        frames
    }

    /// The Ethernet header of an IP packet behind these tags.
    fn ethernet(is_v6: bool, tags: &[[u8; TAG]]) -> Vec<u8> {
        let kind: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &tags.concat(), &kind].concat()
    }

    fn header(flags: u8, kind: u8, each: usize, start: usize, offset: usize) -> [u8; VNET_HEADER] {
        let [each, start, offset] = [each, start, offset].map(|it| (it as u16).to_ne_bytes());
        [flags, kind, 0, 0, each[0], each[1], start[0], start[1], offset[0], offset[1]]
    }

    prop_compose! {
        fn segments()(
            is_v6: bool,
            id: u16,
            sequence: u32,
            flags in any::<u8>(),
            options in prop::collection::vec(1..=1u8, 0..40),
            payload in prop::collection::vec(any::<u8>(), 1..9000),
            each in 1..3000usize,
        ) -> (bool, u16, TcpHeader, Vec<u8>, usize) {
            let mut tcp = TcpHeader::new(1000, 2000, sequence, 5000);
            (tcp.fin, tcp.psh, tcp.ack, tcp.ece, tcp.cwr) =
                (flags & 1 != 0, flags & 8 != 0, flags & 16 != 0, flags & 64 != 0, flags & 128 != 0);
            tcp.set_options_raw(&options).expect("they fit");
            (is_v6, id, tcp, payload, each)
        }
    }

    /// A super-packet of TCP in a tunnel has lengths in two IP headers. It stays whole, and is counted.
    #[test]
    fn super_packets_in_a_tunnel_are_not_segmented() {
        let inner = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1, 2, 3, 4);
        let mut packet = Vec::new();
        inner.write(&mut packet, &[7; 4000]).expect("it is short");
        assert!(Segmentation::new(&packet, [0, 20, 16], 1000).is_some());
        // IP in IP (RFC 2003).
        let mut outer = Ipv4Header::new(packet.len() as u16, 64, IpNumber::IPV4, [10, 1, 0, 1], [10, 1, 0, 2])
            .expect("it is short");
        outer.header_checksum = outer.calc_header_checksum();
        let all = [&outer.to_bytes()[..], &packet].concat();
        assert!(Segmentation::new(&all, [0, 40, 16], 1000).is_none());
        // The same offset behind the options of IPv6, and behind something else.
        let mut v6 = [&[0x60, 0, 0, 0, 0, 0, 60, 64][..], &[0; 32], &[6, 0, 0, 0, 0, 0, 0, 0], &packet[20..]].concat();
        assert!(Segmentation::new(&v6, [0, 48, 16], 1000).is_some());
        v6[40] = 47;
        assert!(Segmentation::new(&v6, [0, 48, 16], 1000).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares with the packets of a sender that segments by itself.
        #[test]
        fn a_super_packet_is_segmented_like_by_a_sender((is_v6, id, tcp, payload, each) in segments()) {
            let start = if is_v6 { 40 } else { 20 };
            let all = with_partial_sum(written(is_v6, id, &tcp, &payload), start, 16);
            let kind = if is_v6 { TCP6 } else { TCP4 };
            let packets = read(header(NEEDS_SUM, kind, each, start, 16), &all);
            let count = payload.len().div_ceil(each);
            prop_assert_eq!(packets.len(), count);
            for (number, (packet, part)) in packets.iter().zip(payload.chunks(each)).enumerate() {
                let mut tcp = tcp.clone();
                tcp.sequence_number = tcp.sequence_number.wrapping_add((number * each) as u32);
                (tcp.fin, tcp.psh) = (tcp.fin && number == count - 1, tcp.psh && number == count - 1);
                tcp.cwr &= number == 0;
                let right = written(is_v6, id.wrapping_add(number as u16), &tcp, part);
                prop_assert!(same(packet, &right, start + 16), "{packet:02x?}\n{right:02x?}");
            }
        }

        /// With and without VLAN tags, which the kernel may take out of the frame.
        #[test]
        fn a_super_frame_is_segmented_like_by_a_sender((is_v6, id, tcp, payload, each) in segments(), tags in 0..3usize, is_outside: bool) {
            let tags = &[[0x88, 0xa8, 0, 1], [0x81, 0x00, 0, 2]][2 - tags..];
            let (outside, inside) = if is_outside && !tags.is_empty() { (Some(tags[0]), &tags[1..]) } else { (None, tags) };
            let (whole, present) = (ethernet(is_v6, tags), ethernet(is_v6, inside));
            let start = if is_v6 { 40 } else { 20 };
            let all = [&present[..], &with_partial_sum(written(is_v6, id, &tcp, &payload), start, TCP_SUM)].concat();
            let kind = if is_v6 { TCP6 } else { TCP4 };
            let packets = read_frame(header(NEEDS_SUM, kind, each, present.len() + start, TCP_SUM), &all, outside);
            let own = with_partial_sum(written(is_v6, id, &tcp, &payload), start, TCP_SUM);
            let expected = read(header(NEEDS_SUM, kind, each, start, TCP_SUM), &own);
            let expected: Vec<_> = expected.iter().map(|packet| [&whole[..], packet].concat()).collect();
            prop_assert_eq!(packets, expected);
        }

        #[test]
        fn a_super_packet_of_udp_is_segmented_like_by_a_sender(
            is_v6: bool, tagged: bool, payload in prop::collection::vec(any::<u8>(), 1..9000), each in 1..3000usize
        ) {
            let datagram = |id: u16, payload: &[u8]| {
                let mut bytes = Vec::new();
                let builder = if is_v6 {
                    PacketBuilder::ipv6([1; 16], [2; 16], 64)
                } else {
                    let mut header = Ipv4Header::new(0, 64, IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]).expect("short");
                    header.identification = id;
                    PacketBuilder::ip(IpHeaders::Ipv4(header, Default::default()))
                };
                builder.udp(1000, 2000).write(&mut bytes, payload).expect("there is room");
                bytes
            };
            let tags: &[_] = if tagged { &[[0x81, 0x00, 0, 2]] } else { &[] };
            let (link, start) = (ethernet(is_v6, tags), if is_v6 { 40 } else { 20 });
            let all = [&link[..], &with_partial_sum(datagram(7, &payload), start, UDP_SUM)].concat();
            let packets = read_frame(header(NEEDS_SUM, UDP, each, link.len() + start, UDP_SUM), &all, None);
            prop_assert_eq!(packets.len(), payload.len().div_ceil(each));
            for (id, (packet, part)) in (7..).zip(packets.iter().zip(payload.chunks(each))) {
                let right = [&link[..], &datagram(id, part)].concat();
                prop_assert!(same(packet, &right, link.len() + start + UDP_SUM), "{packet:02x?}\n{right:02x?}");
            }
        }

        #[test]
        fn every_frame_is_returned_for_any_header(
            flags in 0..2u8, kind in prop::sample::select(vec![0, TCP4, TCP6, 3, UDP]), each in 0..100usize, start in 0..80usize,
            offset in prop_oneof![3 => Just(TCP_SUM), 1 => Just(UDP_SUM), 1 => 0..300usize], tag in prop::option::of(any::<[u8; TAG]>()),
            kinds in prop::collection::vec(prop::sample::select(vec![0x81, 0x00, 0x88, 0xa8, 0x08]), 0..12),
            rest in prop::collection::vec(prop_oneof![Just(0x45), Just(0x60), any::<u8>()], 0..300),
        ) {
            let frame = [&[5; ADDRESSES][..], &kinds, &rest].concat();
            let packets = read_frame(header(flags, kind, each, start, offset), &frame, tag);
            let length = frame.len() + tag.map_or(0, |_| TAG);
            prop_assert!(packets.iter().map(Vec::len).sum::<usize>() >= length && packets.len() <= length);
        }

        #[test]
        fn every_byte_is_returned_for_any_header(
            flags in 0..2u8,
            kind in prop::sample::select(vec![0, TCP4, TCP6, TCP4 | WITH_CWR, 3, UDP, 0xff]),
            each in 0..100usize,
            start in prop_oneof![Just(20), Just(40), 0..80usize],
            offset in prop_oneof![3 => Just(TCP_SUM), 1 => Just(UDP_SUM), 1 => 0..300usize],
            first in prop_oneof![Just(0x45), Just(0x46), Just(0x60), any::<u8>()],
            mut packet in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            if let Some(byte) = packet.first_mut() {
                *byte = first;
            }
            let packets = read(header(flags, kind, each, start, offset), &packet);
            prop_assert!(packets.iter().map(Vec::len).sum::<usize>() >= packet.len());
            prop_assert!(packets.len() <= packet.len());
        }

        #[test]
        fn a_checksum_is_completed(is_v6: bool, payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = Vec::new();
            let builder = if is_v6 { PacketBuilder::ipv6([1; 16], [2; 16], 64) } else { PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64) };
            builder.udp(1000, 2000).write(&mut bytes, &payload).expect("there is room");
            let start = if is_v6 { 40 } else { 20 };
            let packets = read(header(NEEDS_SUM, 0, 0, start, 6), &with_partial_sum(bytes.clone(), start, 6));
            prop_assert_eq!(packets, vec![bytes]);
        }
    }

    /// Compares packets; a checksum of zero has two representations.
    fn same(packet: &[u8], right: &[u8], place: usize) -> bool {
        let sum = |bytes: &[u8]| u16::from_be_bytes([bytes[place], bytes[place + 1]]);
        let without = |bytes: &[u8]| [&bytes[..place], &bytes[place + 2..]].concat();
        packet.len() == right.len()
            && without(packet) == without(right)
            && (sum(packet) == sum(right) || (sum(packet) ^ sum(right)) == 0xffff)
    }

    #[test]
    fn a_tag_outside_of_a_frame_is_put_back() {
        let (plain, tagged) = (ethernet(false, &[]), ethernet(false, &[[0x81, 0x00, 0x20, 0x07]]));
        let packet = written(false, 1, &TcpHeader::new(1, 2, 3, 4), b"payload");
        let frame = |link: &[u8]| [link, &packet].concat();
        assert_eq!(read_frame([0; VNET_HEADER], &frame(&plain), Some([0x81, 0x00, 0x20, 0x07])), [frame(&tagged)]);
        // A frame without both addresses has no place for a tag.
        assert_eq!(read_frame([0; VNET_HEADER], &[7; 11], Some([0x81, 0, 0, 1])), [[7; 11]]);
        assert!(read_frame([0; VNET_HEADER], &[], None).is_empty());
    }

    #[test]
    fn a_complete_packet_is_not_changed() {
        let packet = written(false, 1, &TcpHeader::new(1, 2, 3, 4), b"payload");
        assert_eq!(read([0; VNET_HEADER], &packet), [packet]);
        assert!(read([0; VNET_HEADER], &[]).is_empty());
    }
}
