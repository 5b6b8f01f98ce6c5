//! What a network may change in a packet on its way.

use queuescope_wire::Ecn;

/// Sets the ECN codepoint of an IP packet, and mends its checksum (RFC 1624). What is no IP packet stays as it is.
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

/// A checksum of which one word has changed (RFC 1624, equation 3).
fn mended(sum: u16, old: u16, new: u16) -> u16 {
    let wide = u32::from(!sum) + u32::from(!old) + u32::from(new);
    let folded = (wide & 0xffff) + (wide >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As RFC 1071 has it, over a header whose checksum is right.
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
        fn a_checksum_that_was_right_stays_so(mut header in prop::collection::vec(any::<u8>(), 20), ecn in 0..4u8) {
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
        fn of_ipv6_only_two_bits_change(mut header in prop::collection::vec(any::<u8>(), 40), ecn in 0..4u8) {
            header[0] = 0x60 | header[0] & 0x0f;
            let before = header.clone();
            set_ecn(&mut header, Ecn::from_bits(ecn));
            prop_assert_eq!(header[1], before[1] & !0x30 | ecn << 4);
            prop_assert!(header[0] == before[0] && header[2..] == before[2..]);
        }

        #[test]
        fn what_is_no_ip_packet_stays(mut bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let before = bytes.clone();
            set_ecn(&mut bytes, Ecn::Ce);
            prop_assert!(bytes == before || before[0] >> 4 == 6);
        }
    }
}
