//! The features of pcapng: resolutions, offsets, sections, interfaces, and every kind of block.

use crate::common::{Fields, drain, read_all, reader};
use queuescope_pcap::Damage;

/// The time of `ticks` on an interface with such options.
fn time(ticks: u64, big_endian: bool, options: impl FnOnce(Fields) -> Fields) -> Option<u64> {
    let capture = Fields::new(big_endian).section().interface(1, 0, options).enhanced(0, ticks, 4, b"data");
    let records = read_all(&capture.bytes);
    assert_eq!(records.len(), 1);
    records[0].time
}

#[test]
fn resolutions_are_exact() {
    let seconds = 1_700_000_000_u64;
    let with = |value: u8, ticks: u64| {
        let times = [false, true].map(|big| time(ticks, big, |options| options.option(9, &[value]).option(0, &[])));
        assert_eq!(times[0], times[1]);
        times[0]
    };
    assert_eq!(time(seconds * 1_000_000 + 7, false, |options| options), Some(seconds * 1_000_000_000 + 7_000));
    assert_eq!(with(0, seconds), Some(seconds * 1_000_000_000));
    assert_eq!(with(3, seconds * 1_000 + 1), Some(seconds * 1_000_000_000 + 1_000_000));
    assert_eq!(with(6, 1), Some(1_000));
    assert_eq!(with(9, u64::MAX), Some(u64::MAX));
    assert_eq!(with(10, 19), Some(1));
    assert_eq!(with(12, 1_999), Some(1));
    assert_eq!(with(18, u64::MAX), Some(18_446_744_073));
    assert_eq!(with(19, u64::MAX), Some(1_844_674_407));
    assert_eq!(with(28, u64::MAX), Some(1));
    // Finer than 64 bits of ticks can express a nanosecond: the packet has no time.
    assert_eq!(with(29, u64::MAX), None);
    assert_eq!(with(127, u64::MAX), None);
    // Powers of 2: 2^-0, 2^-1, 2^-20, 2^-32 (as NTP counts), 2^-63, 2^-93, 2^-94, 2^-127.
    assert_eq!(with(0x80, seconds), Some(seconds * 1_000_000_000));
    assert_eq!(with(0x81, 3), Some(1_500_000_000));
    assert_eq!(with(0x94, 1), Some(953));
    assert_eq!(with(0xa0, (seconds << 32) | 0x8000_0001), Some(seconds * 1_000_000_000 + 500_000_000));
    assert_eq!(with(0xa0, (seconds << 32) | 5), Some(seconds * 1_000_000_000 + 1));
    assert_eq!(with(0xbf, u64::MAX), Some(1_999_999_999));
    assert_eq!(with(0xdd, u64::MAX), Some(1));
    assert_eq!(with(0xde, u64::MAX), None);
    assert_eq!(with(0xff, u64::MAX), None);
    // A time that does not fit 64 bits of nanoseconds is missing, and counted.
    assert_eq!(with(6, u64::MAX), None);
    assert_eq!(with(0x80, u64::MAX), None);
}

#[test]
fn offsets_are_added_in_seconds() {
    for big_endian in [false, true] {
        let with = |ticks, offset: i64| {
            let bytes = if big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() };
            time(ticks, big_endian, |options| options.option(14, &bytes))
        };
        assert_eq!(with(5, 0), Some(5_000));
        assert_eq!(with(5, 1_700_000_000), Some(1_700_000_000_000_005_000));
        assert_eq!(with(2_000_000, -1), Some(1_000_000_000));
        assert_eq!(with(999_999, -1), None);
        assert_eq!(with(0, i64::MAX), None);
        assert_eq!(with(0, i64::MIN), None);
    }
}

#[test]
fn times_out_of_range_are_counted() {
    let capture = Fields::new(false).section().interface(1, 0, |options| options).enhanced(0, u64::MAX, 1, b"x");
    let mut reader = reader(&capture.bytes);
    assert_eq!(reader.next_record().unwrap().unwrap().time, None);
    assert_eq!((reader.stats().time_out_of_range, reader.stats().untimed), (1, 0));
}

#[test]
fn sections_have_their_own_order_and_interfaces() {
    let nanos = |options: Fields| options.option(2, b"eth0").option(9, &[9]).option(0, &[]);
    let little = Fields::new(false).section().interface(1, 0, nanos).interface(101, 0, |options| options);
    let little = little.enhanced(1, 1, 60, b"one").enhanced(0, 2, 61, b"two");
    let big = Fields::new(true).section().interface(113, 0, nanos).enhanced(0, 3, 62, b"three");
    let bare = Fields::new(true).section();
    let last = Fields::new(false).section().interface(276, 0, nanos).enhanced(0, 1 << 40, 63, b"");
    let bytes = [little.bytes, big.bytes, bare.bytes, last.bytes].concat();
    let mut reader = reader(&bytes);
    let (records, error) = drain(&mut reader);
    assert!(error.is_none());
    let seen: Vec<_> = records.iter().map(|r| (r.time.unwrap(), r.link, r.interface, r.original_len)).collect();
    assert_eq!(seen, [(1_000, 101, 1, 60), (2, 1, 0, 61), (3, 113, 2, 62), (1 << 40, 276, 3, 63)]);
    assert_eq!(records[2].data, b"three");
    assert_eq!((reader.stats().sections, reader.stats().interfaces), (4, 4));
}

#[test]
fn an_interface_belongs_to_its_section() {
    let first = Fields::new(false).section().interface(1, 0, |options| options);
    let second = Fields::new(true).section().enhanced(0, 1, 4, b"data");
    let (records, error) = drain(&mut reader(&[first.bytes.clone(), second.bytes].concat()));
    let error = error.unwrap();
    assert!(records.is_empty());
    assert_eq!(error.offset, first.bytes.len() as u64 + 28);
    assert!(matches!(error.damage, Damage::NoInterface { interface: 0, known: 0 }));
}

#[test]
fn simple_packets_have_no_time_and_the_snapshot_length_of_the_first_interface() {
    for big_endian in [false, true] {
        let capture = Fields::new(big_endian).section().interface(1, 5, |options| options);
        let capture = capture.interface(101, 0, |options| options);
        let capture = capture.block(3, |body| body.word(9).padded(b"12345"));
        let capture = capture.block(3, |body| body.word(2).padded(b"12"));
        let mut reader = reader(&capture.bytes);
        let (records, error) = drain(&mut reader);
        assert!(error.is_none());
        let seen: Vec<_> = records.iter().map(|r| (r.time, r.link, r.original_len, r.data.as_slice())).collect();
        assert_eq!(seen, [(None, 1, 9, b"12345".as_slice()), (None, 1, 2, b"12")]);
        assert_eq!((reader.stats().untimed, reader.stats().cut), (2, 1));
    }
    let capture = Fields::new(false).section().interface(1, 0, |options| options);
    let unlimited = capture.clone().block(3, |body| body.word(6).padded(b"123456"));
    assert_eq!(read_all(&unlimited.bytes)[0].data, b"123456");
    let short = capture.block(3, |body| body.word(9).padded(b"12345"));
    let (_, error) = drain(&mut reader(&short.bytes));
    assert!(matches!(error.unwrap().damage, Damage::PacketPastBlock { captured: 9, room: 8 }));
}

#[test]
fn obsolete_packet_blocks_are_read() {
    for big_endian in [false, true] {
        let capture = Fields::new(big_endian).section().interface(1, 0, |options| options);
        let capture = capture.interface(101, 0, |options| options);
        // Interface 1, with 77 packets lost before: the two halves must not be parsed as one number.
        let capture = capture.block(2, |body| body.half(1).half(77).word(0).word(3).word(3).word(99).padded(b"old"));
        let records = read_all(&capture.bytes);
        assert_eq!((records[0].time, records[0].link, records[0].original_len), (Some(3_000), 101, 99));
        assert_eq!(records[0].data, b"old");
    }
}

#[test]
fn other_blocks_are_skipped_and_counted() {
    let capture = Fields::new(false).section().interface(1, 0, |options| options);
    let capture = capture.block(4, |body| body.word(0)).block(0xbad, |body| body.word(32_473).padded(b"custom"));
    let capture = capture.block(0x0123_4567, |body| body.raw(&[0xff; 1 << 20])).block(7, |body| body);
    let capture = capture.enhanced(0, 1, 4, b"data");
    let mut reader = reader(&capture.bytes);
    assert_eq!(drain(&mut reader).0.len(), 1);
    let stats = reader.stats();
    assert_eq!((stats.other_blocks, stats.custom_blocks, stats.unknown_blocks), (1, 1, 2));
}

#[test]
fn packets_larger_than_the_buffer_are_read() {
    let large: Vec<u8> = (0..3 << 20).map(|index: u32| (index / 251) as u8).collect();
    let capture = Fields::new(true).section().interface(1, 0, |options| options);
    let capture = capture.enhanced(0, 1, 4, b"data").enhanced(0, 2, 3 << 20, &large).enhanced(0, 3, 4, b"more");
    let records = read_all(&capture.bytes);
    assert_eq!(records.len(), 3);
    assert!(records[1].data == large);
}

#[test]
fn damage_is_named_with_its_offset() {
    let good = Fields::new(false).section().interface(1, 0, |options| options).enhanced(0, 1, 4, b"data");
    let at = good.bytes.len() as u64;
    let damage = |tail: &dyn Fn(Fields) -> Fields| {
        let (records, error) = drain(&mut reader(&tail(good.clone()).bytes));
        let error = error.unwrap();
        assert_eq!((records.len(), error.offset, error.record), (1, at, 2));
        let text = error.to_string();
        assert!(text.starts_with(&format!("test is damaged at byte {at}: ")), "{text}");
        error.damage
    };
    let odd = damage(&|capture| capture.word(6).word(37));
    assert!(matches!(odd, Damage::BlockLength { kind: 6, claimed: 37, .. }));
    let small = damage(&|capture| capture.word(6).word(28).raw(&[0; 28]));
    assert!(matches!(small, Damage::BlockLength { kind: 6, claimed: 28, .. }));
    let zero = damage(&|capture| capture.word(77).word(0));
    assert!(matches!(zero, Damage::BlockLength { kind: 77, claimed: 0, .. }));
    let huge = damage(&|capture| capture.word(77).word(0xffff_fff0));
    assert!(matches!(huge, Damage::TooLong { claimed: 0xffff_fff0, .. }));
    let cut = damage(&|capture| capture.word(6).word(0x0300_0000).raw(&[0; 100]));
    assert!(matches!(cut, Damage::Cut { needed: 0x0300_0000, found: 108, .. }));
    let differ = damage(&|capture| capture.word(77).word(12).word(16));
    assert!(matches!(differ, Damage::LengthsDiffer { kind: 77, head: 12, tail: 16 }));
    let past = damage(&|capture| capture.block(6, |body| body.word(0).double(0).word(5).word(5).word(0)));
    assert!(matches!(past, Damage::PacketPastBlock { captured: 5, room: 4 }));
    let nobody = damage(&|capture| capture.enhanced(1, 0, 4, b"data"));
    assert!(matches!(nobody, Damage::NoInterface { interface: 1, known: 1 }));
    let order = damage(&|capture| capture.word(0x0a0d_0d0a).word(28).word(0x1a2b_3c4e).raw(&[0; 16]));
    assert!(matches!(order, Damage::ByteOrder { found: 0x4e3c_2b1a }));
    let version =
        damage(&|capture| capture.block(0x0a0d_0d0a, |body| body.word(0x1a2b_3c4d).half(2).half(7).double(0)));
    assert!(matches!(version, Damage::Version { major: 2, minor: 7, .. }));
    let option = damage(&|capture| capture.interface(1, 0, |options| options.option(9, &[9, 9])));
    assert!(matches!(option, Damage::Option { code: 9, length: 2, .. }));
    let overrun = damage(&|capture| capture.interface(1, 0, |options| options.half(9).half(9).word(0)));
    assert!(matches!(overrun, Damage::Option { code: 9, length: 9, .. }));
}
