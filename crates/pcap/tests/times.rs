//! Impossible times, and times that are corrected on request.

use crate::common::{Fields, drain, reader};
use proptest::prelude::*;
use queuescope_pcap::CaptureReader;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// A capture of packets at these microseconds.
fn capture(is_legacy: bool, big_endian: bool, times: &[u64]) -> Vec<u8> {
    let fields = Fields::new(big_endian);
    let start = if is_legacy {
        fields.pcap_header(MICROSECONDS, 0, 1)
    } else {
        fields.section().interface(1, 0, |options| options)
    };
    let all = times.iter().fold(start, |capture, time| {
        if is_legacy {
            let (seconds, micros) = (time / 1_000_000, time % 1_000_000);
            capture.word(seconds as u32).word(micros as u32).word(4).word(4).raw(b"data")
        } else {
            // Blocks between packets do not hide the next one.
            capture.enhanced(0, *time, 4, b"data").block(0xbad, |body| body.word(32_473).word(7))
        }
    });
    all.bytes
}

/// The times that are read of a capture in microseconds, after `prepare`.
fn times(bytes: &[u8], prepare: impl FnOnce(&mut CaptureReader)) -> (Vec<u64>, CaptureReader) {
    let mut reader = reader(bytes);
    prepare(&mut reader);
    let (records, error) = drain(&mut reader);
    assert!(error.is_none());
    (records.into_iter().map(|record| record.time.unwrap() / 1_000).collect(), reader)
}

#[test]
fn a_fraction_of_a_second_or_more_is_an_impossible_time() {
    for (magic, second) in [(MICROSECONDS, 1_000_000), (NANOSECONDS, 1_000_000_000)] {
        let capture = Fields::new(false).pcap_header(magic, 0, 1);
        let capture = [second - 1, second, u32::MAX]
            .iter()
            .fold(capture, |capture, ticks| capture.word(1_700_000_000).word(*ticks).word(1).word(1).raw(b"x"));
        let mut reader = reader(&capture.bytes);
        let (records, error) = drain(&mut reader);
        assert!(error.is_none());
        let has_time: Vec<_> = records.iter().map(|record| record.time.is_some()).collect();
        assert_eq!(has_time, [true, false, false]);
        assert_eq!((reader.stats().time_out_of_range, reader.stats().untimed), (2, 0));
    }
}

#[test]
fn one_wrong_time_is_corrected_only_on_request() {
    for (is_legacy, big_endian) in [(false, false), (false, true), (true, false), (true, true)] {
        let wrong = [5_000_000, 5_000_100, 4_000_000_000_000_000, 5_000_200, 5_000_300, 1, 5_000_400];
        let bytes = capture(is_legacy, big_endian, &wrong);
        let (kept, reader) = times(&bytes, |_| ());
        assert_eq!((kept.as_slice(), reader.stats().time_outliers), (wrong.as_slice(), 0));
        let (corrected, reader) = times(&bytes, CaptureReader::correct_times);
        assert_eq!(corrected, [5_000_000, 5_000_100, 5_000_100, 5_000_200, 5_000_300, 5_000_300, 5_000_400]);
        assert_eq!((reader.stats().time_outliers, reader.stats().clock_steps), (2, 0));
    }
}

#[test]
fn a_clock_that_is_set_back_is_corrected() {
    for is_legacy in [false, true] {
        let bytes = capture(is_legacy, false, &[90_000_000, 90_000_100, 80_000_000, 80_000_700, 85_000_000]);
        let (corrected, reader) = times(&bytes, CaptureReader::correct_times);
        assert_eq!(corrected, [90_000_000, 90_000_100, 90_000_100, 90_000_800, 95_000_100]);
        let stats = reader.stats();
        assert_eq!((stats.clock_steps, stats.largest_clock_step.0, stats.time_outliers), (1, 10_000_100_000, 0));
    }
}

#[test]
fn a_capture_that_ends_within_the_packet_behind_is_read_to_its_end() {
    let bytes = capture(true, false, &[5_000_000, 900_000_000, 5_000_100]);
    for cut in 1..20 {
        let mut reader = reader(&bytes[..bytes.len() - cut]);
        reader.correct_times();
        let (records, _) = drain(&mut reader);
        assert_eq!(records.len(), 2);
    }
}

proptest! {
    #[test]
    fn times_that_never_decrease_are_not_changed(
        gaps in prop::collection::vec(0..40_000_000_u64, 1..30), is_legacy: bool, big_endian: bool,
    ) {
        let times_in: Vec<u64> = gaps.iter().scan(0, |time, gap| { *time += gap; Some(*time) }).collect();
        let bytes = capture(is_legacy, big_endian, &times_in);
        let (mut plain, mut corrected) = (reader(&bytes), reader(&bytes));
        corrected.correct_times();
        prop_assert_eq!(drain(&mut plain).0, drain(&mut corrected).0);
        prop_assert_eq!(plain.stats(), corrected.stats());
    }
}
