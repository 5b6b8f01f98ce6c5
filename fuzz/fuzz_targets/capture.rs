//! Reads arbitrary bytes as a capture file, with the times of the file and with corrected ones: the reader must end,
//! count correctly and stay small. Corrected times never run back by more than a second, and nothing else changes.

#![no_main]

use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use queuescope_pcap::{CaptureReader, Compression, ReadStats};
use queuescope_wire::Nanos;

/// An input is abandoned after this many decompressed bytes: a small input can contain gigabytes of zeros.
const ENOUGH: u64 = 1 << 20;
/// The most by which corrected times run back.
const DISORDER: u64 = 1_000_000_000;

// A slice, not a vector, which `arbitrary` would decode: seeds are unmodified capture files.
fuzz_target!(|data: &[u8]| {
    let (Some(plain), Some(corrected)) = (read(data, false), read(data, true)) else { return };
    assert_eq!(plain.packets, corrected.packets);
    assert_eq!(plain.error, corrected.error);
    let (before, stats) = (plain.stats, corrected.stats);
    let ReadStats { time_outliers, clock_steps, largest_clock_step, .. } = stats;
    assert_eq!(ReadStats { time_outliers, clock_steps, largest_clock_step, ..before }, stats);
    assert_eq!((before.time_outliers, before.clock_steps, before.largest_clock_step), (0, 0, Nanos::ZERO));
    assert_eq!(clock_steps == 0, largest_clock_step == Nanos::ZERO);
    let mut latest = 0;
    let mut changed = 0;
    for (time, corrected) in plain.times.iter().zip(&corrected.times) {
        assert_eq!(time.is_some(), corrected.is_some());
        let Some(Nanos(at)) = *corrected else { continue };
        assert!(at >= u64::saturating_sub(latest, DISORDER), "{at} after {latest}");
        latest = latest.max(at);
        changed += u64::from(time != corrected);
    }
    assert!(clock_steps > 0 || changed <= time_outliers, "{changed} times changed, and {time_outliers} were wrong");
});

/// What was read.
struct Capture {
    times: Vec<Option<Nanos>>,
    /// Interface, length on the wire, and captured bytes as a checksum.
    packets: Vec<(u32, u32, u32)>,
    stats: ReadStats,
    error: Option<String>,
}

/// `None` if the data is not a capture, or has too much of it.
fn read(data: &[u8], corrects: bool) -> Option<Capture> {
    let length = data.len() as u64;
    let reads = Arc::new(AtomicU64::new(0));
    let mut reader = CaptureReader::new(Source(Cursor::new(data.to_vec()), reads.clone()), "fuzz").ok()?;
    if corrects {
        reader.correct_times();
    }
    let is_plain = reader.format().compression == Compression::None;
    let (mut times, mut packets) = (Vec::new(), Vec::new());
    let (mut bytes, mut cut, mut untimed) = (0, 0, 0);
    let error = loop {
        let (is_ready, before) = (is_plain && reader.has_next(), reads.load(Ordering::Relaxed));
        let next = reader.next_record();
        assert!(!is_ready || reads.load(Ordering::Relaxed) == before, "a packet in memory needs no reading");
        match next {
            Ok(Some(record)) => {
                bytes += 16 + record.data.len() as u64;
                cut += u64::from(record.data.len() < record.original_len as usize);
                untimed += u64::from(record.time.is_none());
                times.push(record.time);
                packets.push((record.interface, record.original_len, crc32fast::hash(record.data)));
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
        if bytes > ENOUGH {
            return None;
        }
    };
    let (stats, packets_read) = (*reader.stats(), packets.len() as u64);
    assert_eq!(stats.packets, packets_read);
    assert_eq!(stats.cut, cut);
    assert_eq!(stats.untimed + stats.time_out_of_range, untimed);
    assert!(stats.time_outliers + stats.clock_steps + untimed <= stats.packets);
    assert_eq!(stats.holes > 0, stats.first_hole.is_some());
    assert!(stats.holes <= stats.skipped_bytes);
    assert!(reader.input_read() <= length);
    if let Some(error) = &error {
        if error.damage.is_passed() {
            assert!(error.record <= packets_read && stats.holes > 0, "packets were read behind it");
            assert_eq!(stats.first_hole, Some(error.offset));
        } else {
            assert_eq!(error.record, packets_read + 1);
        }
        assert!(!error.to_string().is_empty());
        assert!(matches!(reader.next_record(), Ok(None)), "there is nothing after damage");
    } else {
        assert_eq!(reader.input_read(), length, "a proper end is the end of the input");
        assert_eq!(stats.holes, 0, "a hole is reported");
    }
    Some(Capture { times, packets, stats, error: error.map(|error| error.to_string()) })
}

/// A source that returns a few bytes at a time, and counts how often it is read.
struct Source(Cursor<Vec<u8>>, Arc<AtomicU64>);

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1.fetch_add(1, Ordering::Relaxed);
        let length = into.len().min(999);
        self.0.read(&mut into[..length])
    }
}
