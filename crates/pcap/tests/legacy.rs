//! The features of pcap: both byte orders, three magic numbers, and the less known fields of its header.

use crate::common::{Fields, drain, read_all, reader};
use queuescope_pcap::{CaptureReader, Damage, OpenError};
use std::io::Cursor;

#[test]
fn every_magic_number_is_read_in_both_orders() {
    for big_endian in [false, true] {
        for (magic, nanos, extra) in [(0xa1b2_c3d4, 5_000, 0), (0xa1b2_3c4d, 5, 0), (0xa1b2_cd34, 5_000, 8)] {
            let capture = Fields::new(big_endian).pcap_header(magic, 65_535, 101);
            let capture = capture.word(u32::MAX).word(5).word(4).word(1_500).raw(&[0xee; 8][..extra]).raw(b"data");
            let capture = capture.word(0).word(0).word(0).word(1).raw(&[0xee; 8][..extra]);
            let records = read_all(&capture.bytes);
            assert_eq!(records.len(), 2);
            assert_eq!(records[0].time, Some(u64::from(u32::MAX) * 1_000_000_000 + nanos));
            assert_eq!((records[0].link, records[0].interface, records[0].original_len), (101, 0, 1_500));
            assert_eq!(records[0].data, b"data");
        }
    }
}

#[test]
fn the_upper_half_of_the_link_type_is_ignored() {
    let capture = Fields::new(false).pcap_header(0xa1b2_c3d4, 0, 0x5400_0071).word(0).word(0).word(0).word(0);
    assert_eq!(read_all(&capture.bytes)[0].link, 113);
}

#[test]
fn a_length_that_nothing_writes_is_damage() {
    let capture = |snaplen, captured: u32| {
        let capture = Fields::new(true).pcap_header(0xa1b2_c3d4, snaplen, 1).word(1).word(1).word(1).word(1).raw(b"x");
        let capture =
            capture.word(1).word(1).word(captured).word(captured).raw(&vec![0; captured.min(1 << 20) as usize]);
        drain(&mut reader(&capture.bytes))
    };
    let (records, error) = capture(65_535, 262_145);
    let error = error.unwrap();
    assert_eq!((records.len(), error.offset, error.record), (1, 41, 2));
    assert!(matches!(error.damage, Damage::TooLong { claimed: 262_145, limit: 262_144, .. }));
    assert!(capture(96, 262_144).1.is_none());
    assert!(capture(1 << 20, 1 << 20).1.is_none());
    let (_, error) = capture(u32::MAX, u32::MAX);
    assert!(matches!(error.unwrap().damage, Damage::TooLong { limit: 0x0400_0000, .. }));
}

#[test]
fn more_captured_than_there_was_is_counted() {
    let capture = Fields::new(false).pcap_header(0xa1b2_c3d4, 96, 1);
    let capture = capture.word(0).word(0).word(3).word(2).raw(b"abc").word(0).word(0).word(2).word(3).raw(b"ab");
    let mut reader = reader(&capture.bytes);
    assert_eq!(drain(&mut reader).0.len(), 2);
    assert_eq!((reader.stats().packets, reader.stats().captured_over_original, reader.stats().cut), (2, 1, 1));
}

#[test]
fn a_version_that_nothing_writes_is_refused() {
    for big_endian in [false, true] {
        let capture = Fields::new(big_endian).word(0xa1b2_c3d4).half(2).half(2).raw(&[0; 16]);
        let error = CaptureReader::new(Cursor::new(capture.bytes), "old.pcap").unwrap_err();
        let OpenError::Header(error) = error else { panic!("{error}") };
        assert!(matches!(error.damage, Damage::Version { major: 2, minor: 2, .. }));
    }
}
