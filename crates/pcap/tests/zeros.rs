//! Zeros in the place of packets are skipped, counted and reported, and the packets behind them are read. Empty packets
//! are packets.

use crate::common;
use crate::common::{Fields, Owned, drain, reader};
use queuescope_pcap::{Behind, Damage, ReadError};

const START: u32 = 1_700_000_000;
/// Numbers of zeros: a header, not a multiple of one, a page less one header, and more than is read at once.
const ZEROS: [usize; 9] = [16, 17, 31, 1000, 1024, 4080, 4096, 10_001, 1 << 20];

/// A hole in a capture: the bytes before and behind it, and the packets of the whole capture.
struct Cut {
    before: Vec<u8>,
    behind: Vec<u8>,
    records: Vec<Owned>,
}

/// Captures of six packets, with the hole behind the third.
fn captures(start: u32) -> Vec<Cut> {
    let mut captures = Vec::new();
    for big_endian in [false, true] {
        for magic in [0xa1b2_c3d4, 0xa1b2_cd34] {
            let packets = |range: std::ops::Range<u32>| {
                range.fold(Fields::new(big_endian), |capture, index| {
                    let record = capture.word(start + index).word(index).word(60).word(1500);
                    let record = if magic == 0xa1b2_cd34 { record.word(2).word(0x0800) } else { record };
                    record.raw(&[index as u8; 60])
                })
            };
            let header = Fields::new(big_endian).pcap_header(magic, 65_535, 1).bytes;
            captures.push((header, packets(0..3).bytes, packets(3..6).bytes));
        }
        let packets = |range: std::ops::Range<u32>| {
            let ticks = |index| u64::from(start + index) * 1_000_000;
            range.fold(Fields::new(big_endian), |capture, index| {
                capture.enhanced(0, ticks(index), 1500, &[index as u8; 60])
            })
        };
        let header = Fields::new(big_endian).section().interface(1, 0, |options| options).bytes;
        captures.push((header, packets(0..3).bytes, packets(3..6).bytes));
    }
    let cut = |(header, before, behind): (Vec<u8>, Vec<u8>, Vec<u8>)| {
        let records = common::read_all(&[&header[..], &before, &behind].concat());
        assert_eq!(records.len(), 6);
        Cut { before: [header, before].concat(), behind, records }
    };
    captures.into_iter().map(cut).collect()
}

/// The zeros in an error, the skipped bytes, and what follows them.
fn zeros(error: &ReadError) -> (u64, u64, Behind) {
    match error.damage {
        Damage::Zeros { bytes, skipped, behind } => (bytes, skipped, behind),
        _ => panic!("{error}"),
    }
}

#[test]
fn packets_behind_zeros_are_read_and_the_zeros_are_named() {
    for Cut { before, behind, records } in captures(START) {
        let least = if before[3] == 0x34 || before[0] == 0x34 { 24 } else { 16 };
        for count in ZEROS.into_iter().filter(|count| *count >= least) {
            let mut reader = reader(&[&before[..], &vec![0; count], &behind].concat());
            let (read, error) = drain(&mut reader);
            assert_eq!(read, records, "{count}");
            let error = error.expect("zeros are damage");
            assert_eq!((error.offset, error.record), (before.len() as u64, 4), "{error}");
            // Also if the next header begins with zeros.
            assert_eq!(zeros(&error), (count as u64, count as u64, Behind::Packets), "{error}");
            let stats = reader.stats();
            assert_eq!((stats.holes, stats.skipped_bytes), (1, count as u64));
            assert_eq!(stats.first_hole, Some(error.offset));
            let message = error.to_string();
            assert!(
                message.contains(&format!(": {count} bytes are zeros, and packets are read behind them")),
                "{message}"
            );
            assert!(
                message.contains("in packet 4; the 3 packets before it and those behind it can be used)"),
                "{message}"
            );
        }
    }
}

#[test]
fn zeros_at_the_end_are_not_packets() {
    for Cut { before, records, .. } in captures(START) {
        for count in ZEROS.into_iter().filter(|count| *count >= 24) {
            let mut reader = reader(&[&before[..], &vec![0; count]].concat());
            let (read, error) = drain(&mut reader);
            let error = error.expect("zeros are damage");
            assert_eq!(read, records[..3]);
            assert_eq!((error.offset, error.record), (before.len() as u64, 4), "{error}");
            assert_eq!(zeros(&error), (count as u64, count as u64, Behind::End), "{error}");
            assert_eq!(reader.stats().skipped_bytes, count as u64);
            assert!(error.to_string().contains(&format!(": {count} bytes are zeros, to its end")), "{error}");
        }
    }
}

#[test]
fn behind_zeros_that_end_in_a_packet_the_next_one_is_found() {
    for Cut { before, behind, records } in captures(START) {
        // The hole takes the beginning of the fourth packet, or all of it and the header of the fifth.
        for lost in [20, 50, 100] {
            let (read, error) = drain(&mut reader(&[&before[..], &[0; 1024], &behind[lost..]].concat()));
            let error = error.expect("zeros are damage");
            let first = if lost < behind.len() / 3 { 4 } else { 5 };
            assert_eq!(read, [&records[..3], &records[first..]].concat(), "{lost}");
            let whole = behind.len() * (first - 3) / 3;
            assert_eq!(zeros(&error).1, (1024 + whole - lost) as u64, "{error}");
        }
    }
}

#[test]
fn each_hole_is_counted_and_the_first_is_named() {
    for Cut { before, behind, records } in captures(START) {
        let mut reader = reader(&[&before[..], &[0; 1000], &behind, &[0; 5000], &behind, &[0; 64]].concat());
        let (read, error) = drain(&mut reader);
        assert_eq!(read, [&records[..], &records[3..]].concat());
        // The zeros at the end are the error, not the hole before.
        assert_eq!(zeros(&error.expect("zeros are damage")), (64, 64, Behind::End));
        let stats = reader.stats();
        assert_eq!((stats.holes, stats.skipped_bytes), (3, 6064));
        assert_eq!(stats.first_hole, Some(before.len() as u64));
    }
}

#[test]
fn zeros_without_packets_behind_them_are_reported() {
    let rests = [&[1][..], &[0, 0, 1, 2, 3], &[0x55; 100_000]];
    for Cut { before, records, .. } in captures(START) {
        for rest in rests {
            let mut reader = reader(&[&before[..], &[0; 1000], rest].concat());
            let (read, error) = drain(&mut reader);
            let error = error.expect("zeros are damage");
            assert_eq!(read, records[..3]);
            let more = rest.iter().take_while(|byte| **byte == 0).count() as u64;
            assert_eq!(zeros(&error), (1000 + more, 1000 + rest.len() as u64, Behind::Nothing), "{error}");
            assert_eq!((error.offset, error.record), (before.len() as u64, 4), "{error}");
            assert!(error.to_string().contains("no packet is found behind them"), "{error}");
        }
    }
}

/// Bytes that look like a packet with more bytes than there are make the search neither slow nor large.
#[test]
fn bytes_that_only_look_like_a_block_are_skipped() {
    for big_endian in [false, true] {
        let header = Fields::new(big_endian).section().interface(1, 0, |options| options).bytes;
        let claims = Fields::new(big_endian).word(6).word(1 << 20).word(0).bytes.repeat(1 << 18);
        let packet = Fields::new(big_endian).enhanced(0, 7, 60, &[7; 60]).bytes;
        let (read, error) = drain(&mut reader(&[&header[..], &[0; 64], &claims, &packet].concat()));
        assert_eq!(read.len(), 1);
        let error = error.expect("zeros are damage");
        assert_eq!(zeros(&error).1, 64 + claims.len() as u64);
    }
}

#[test]
fn one_empty_packet_at_time_0_is_a_packet_where_times_are_near_0() {
    for big_endian in [false, true] {
        let record = |seconds: u32, length: u32| {
            let header = Fields::new(big_endian).word(seconds).word(0).word(length).word(length);
            header.raw(&vec![7; length as usize]).bytes
        };
        let header = Fields::new(big_endian).pcap_header(0xa1b2_c3d4, 65_535, 1).bytes;
        let (none, later) = (record(0, 0), record(3600, 60));
        for parts in [vec![&none], vec![&none, &later], vec![&later, &none, &later], vec![&later, &none]] {
            let bytes = [header.clone(), parts.iter().copied().flatten().copied().collect()].concat();
            let (records, error) = drain(&mut reader(&bytes));
            assert!(error.is_none(), "{}", error.unwrap());
            assert_eq!(records.len(), parts.len());
        }
        // A packet without bytes has its own time everywhere else.
        let empty = record(START, 0);
        let (records, error) = drain(&mut reader(&[header.clone(), empty.repeat(300)].concat()));
        assert!(error.is_none() && records.len() == 300, "{error:?}");
        // Two in a row are a hole whatever the times are, and so is one whose neighbours have times far from 0.
        for parts in [vec![&later, &none, &none], vec![&none, &empty], vec![&empty, &none]] {
            let bytes = [header.clone(), parts.iter().copied().flatten().copied().collect()].concat();
            let (_, error) = drain(&mut reader(&bytes));
            assert!(matches!(error.expect("it is a hole").damage, Damage::Zeros { .. }));
        }
    }
}
