//! Frames of any link type, one after another through one parser, so that fragments meet.
//!
//! Input: a byte for the tunnel choice, then frames, each with a byte for the link type, a byte for its captured length,
//! and two bytes for its length on the wire.
#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};

/// Numbers of link types as capture files have them; the last is none that is understood.
const LINKS: [u32; 8] = [1, 101, 113, 276, 0, 108, 12, 147];

fuzz_target!(|input: &[u8]| {
    let Some((choice, mut rest)) = input.split_first() else { return };
    let mut parser = Parser::new(if choice & 1 == 0 { Tunnel::Outer } else { Tunnel::Inner });
    let mut frames = 0;
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
        if let Some(segments) = frame.segments(1500) {
            assert!(segments.count > 1);
            assert!(segments.last <= segments.full);
            assert_eq!(segments.sizes().map(u64::from).sum::<u64>(), segments.total());
        }
    }
    assert_eq!(parser.stats().frames, frames);
});
