//! Reads arbitrary bytes as a capture file: the reader must end, count correctly and stay small.

#![no_main]

use std::io::Cursor;

use libfuzzer_sys::fuzz_target;
use queuescope_pcap::CaptureReader;

/// An input is abandoned after this many decompressed bytes: a small input can contain gigabytes of zeros.
const ENOUGH: u64 = 1 << 20;

// A slice, not a vector, which `arbitrary` would decode: seeds are unmodified capture files.
fuzz_target!(|data: &[u8]| {
    let length = data.len() as u64;
    let Ok(mut reader) = CaptureReader::new(Cursor::new(data.to_vec()), "fuzz") else { return };
    let (mut packets, mut bytes, mut cut, mut untimed) = (0, 0, 0, 0);
    let error = loop {
        match reader.next_record() {
            Ok(Some(record)) => {
                packets += 1;
                bytes += 16 + record.data.len() as u64;
                cut += u64::from(record.data.len() < record.original_len as usize);
                untimed += u64::from(record.time.is_none());
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
        if bytes > ENOUGH {
            return;
        }
    };
    let stats = *reader.stats();
    assert_eq!(stats.packets, packets);
    assert_eq!(stats.cut, cut);
    assert_eq!(stats.untimed + stats.time_out_of_range, untimed);
    assert!(reader.input_read() <= length);
    if let Some(error) = error {
        if error.damage.is_passed() {
            assert!(error.record <= packets && stats.holes > 0, "packets were read behind it");
        } else {
            assert_eq!(error.record, packets + 1);
        }
        assert!(!error.to_string().is_empty());
        assert!(matches!(reader.next_record(), Ok(None)), "there is nothing after damage");
    } else {
        assert_eq!(reader.input_read(), length, "a proper end is the end of the input");
    }
});
