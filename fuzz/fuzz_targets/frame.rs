//! Parses frames of any link type, one after another with one parser, so that fragments meet.
//!
//! Input: a byte for the tunnel option, then frames, each with a byte for the link type, a byte for its captured
//! length, and two bytes for its length on the wire.
#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_wire::parse::{InvariantParams, LinkType, Nat, Parser, Reach, Tunnel};

/// Numbers of link types in capture files; the last one is not supported.
const LINKS: [u32; 8] = [1, 101, 113, 276, 0, 108, 12, 147];

/// The reach of fingerprints, in bytes from the network header on.
const REACH: usize = 60;

fuzz_target!(|input: &[u8]| {
    let Some((choice, mut rest)) = input.split_first() else { return };
    let mut parser = Parser::new(if choice & 1 == 0 { Tunnel::Outer } else { Tunnel::Inner });
    let nat = [Nat::None, Nat::Addresses, Nat::AllButPayload][usize::from(choice >> 1) % 3];
    let invariant = InvariantParams { nat, checksums: choice & 8 != 0, reach: REACH as u16 };
    let (mut frames, mut reach) = (0, Reach::new());
    while let Some((&[link, captured, l0, l1], after)) = rest.split_first_chunk() {
        let (data, next) = after.split_at(usize::from(captured).min(after.len()));
        rest = next;
        let original_len = u32::from(u16::from_be_bytes([l0, l1]));
        let link = LinkType::from_dlt(LINKS[usize::from(link) % LINKS.len()]);
        let frame = parser.parse(link, original_len, data);
        frames += 1;
        assert!(frame.size >= original_len);
        assert!(frame.link_header <= frame.headers);
        assert!(frame.network_length <= frame.size);
        reach.observe(&frame, data);
        // Bytes after the reach do not matter.
        let print = frame.fingerprint(data, &invariant);
        if let Some(reached) = data.get(..usize::from(frame.link_header) + REACH) {
            assert_eq!(frame.fingerprint(reached, &invariant), print);
        }
        if let Some(segments) = frame.segments(1500) {
            assert!(segments.count > 1);
            assert!(segments.last <= segments.full);
            assert_eq!(segments.sizes().map(u64::from).sum::<u64>(), segments.total());
        }
    }
    assert_eq!(parser.stats().frames, frames);
    assert!(frames > 0 || reach.bytes() > 0);
});
