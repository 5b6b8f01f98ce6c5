//! Changes header fields of packets on their way.

use queuescope_wire::Ecn;

/// Sets the ECN codepoint of an IP packet, and updates the header checksum (RFC 1624). Leaves other bytes unchanged.
pub fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    let bits = ecn.bits();
    match packet {
        [version, traffic_class, rest @ ..] if *version >> 4 == 4 && rest.len() >= 18 => {
            let old = u16::from_be_bytes([*version, *traffic_class]);
            *traffic_class = *traffic_class & !3 | bits;
            let new = u16::from_be_bytes([*version, *traffic_class]);
            let sum = u16::from_be_bytes([rest[8], rest[9]]);
            [rest[8], rest[9]] = mended(sum, old, new).to_be_bytes();
        }
        // The two lowest bits of the traffic class are bits 10 and 11 of the header, which no checksum covers.
        [version, class_and_label, ..] if *version >> 4 == 6 => {
            *class_and_label = *class_and_label & !0x30 | bits << 4;
        }
        _ => {}
    }
}

/// Sets the window field of the TCP header that begins at `header`, and updates its checksum.
pub fn set_window(packet: &mut [u8], header: usize, field: u16) {
    if let Some([.., high, low, sum_high, sum_low]) = packet.get_mut(header..header + 18) {
        let old = u16::from_be_bytes([*high, *low]);
        [*high, *low] = field.to_be_bytes();
        let sum = u16::from_be_bytes([*sum_high, *sum_low]);
        [*sum_high, *sum_low] = mended(sum, old, field).to_be_bytes();
    }
}

/// Updates a checksum after one word of its data has changed (RFC 1624, equation 3).
fn mended(sum: u16, old: u16, new: u16) -> u16 {
    let wide = u32::from(!sum) + u32::from(!old) + u32::from(new);
    let folded = (wide & 0xffff) + (wide >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;
    use proptest::prelude::*;

    /// The sum of RFC 1071 over a header.
    fn sum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_correct_checksum_stays_correct(mut header in prop::collection::vec(any::<u8>(), 20), ecn in 0..4u8) {
            header[0] = 0x45;
            (header[10], header[11]) = (0, 0);
            let right = !sum(&header);
            [header[10], header[11]] = right.to_be_bytes();
            prop_assert_eq!(sum(&header), 0xffff);
            let before = header.clone();
            set_ecn(&mut header, Ecn::from_bits(ecn));
            prop_assert_eq!(sum(&header), 0xffff);
            prop_assert_eq!(header[1], before[1] & !3 | ecn);
            prop_assert!((0..20).all(|at| matches!(at, 1 | 10 | 11) || header[at] == before[at]));
        }

        #[test]
        fn a_window_changes_with_its_checksum(window in any::<u16>(), field in any::<u16>(), payload in prop::collection::vec(any::<u8>(), 0..50)) {
            let written = |window| {
                let packet = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1000, 2000, 7, window).ack(8);
                let mut bytes = Vec::new();
                packet.write(&mut bytes, &payload).expect("there is room");
                bytes
            };
            let mut packet = written(window);
            set_window(&mut packet, 20, field);
            let right = written(field);
            let sum = |bytes: &[u8]| u16::from_be_bytes([bytes[36], bytes[37]]);
            // Zero has two representations in one's complement.
            prop_assert!(sum(&packet) == sum(&right) || (sum(&packet) ^ sum(&right)) == 0xffff);
            (packet[36], packet[37]) = (right[36], right[37]);
            prop_assert_eq!(packet, right);
            let mut short = written(window)[..30].to_vec();
            set_window(&mut short, 20, field);
            prop_assert_eq!(&short, &written(window)[..30]);
        }

        #[test]
        fn only_two_bits_of_an_ipv6_header_change(mut header in prop::collection::vec(any::<u8>(), 40), ecn in 0..4u8) {
            header[0] = 0x60 | header[0] & 0x0f;
            let before = header.clone();
            set_ecn(&mut header, Ecn::from_bits(ecn));
            prop_assert_eq!(header[1], before[1] & !0x30 | ecn << 4);
            prop_assert!(header[0] == before[0] && header[2..] == before[2..]);
        }

        #[test]
        fn bytes_that_are_not_an_ip_packet_stay_the_same(mut bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let before = bytes.clone();
            set_ecn(&mut bytes, Ecn::Ce);
            prop_assert!(bytes == before || before[0] >> 4 == 6);
        }
    }
}
