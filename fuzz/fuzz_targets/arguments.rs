//! Any text through the readers of command-line values: an answer or an error, never a panic, and what is written
//! reads back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_wire::{ByteCount, Granularity, Nanos, Rate};

fuzz_target!(|text: &str| {
    if let Ok(granularity) = text.parse::<Granularity>() {
        let written = granularity.to_string();
        assert_eq!(written.parse(), Ok(granularity), "'{text}' is written as '{written}'");
    }
    if let Ok(rate) = text.parse::<Rate>() {
        assert!(rate.bits_per_second() > 0, "'{text}' is a link that never sends");
        let exact = format!("{}bps", rate.bits_per_second());
        assert_eq!(exact.parse(), Ok(rate));
        reads_as_error_or_value::<Rate>(&rate.to_string());
    }
    if let Ok(time) = text.parse::<Nanos>() {
        assert_eq!(format!("{}ns", time.0).parse(), Ok(time));
        // What is shown is rounded, yet it must read as a time again.
        assert!(shown_reads(&time.to_string()) || time > Nanos(u64::MAX / 1_001 * 1_000), "{time}");
    }
    if let Ok(size) = text.parse::<ByteCount>() {
        assert_eq!(size.0.to_string().parse(), Ok(size));
        reads_as_error_or_value::<ByteCount>(&size.to_string());
    }
});

fn shown_reads(shown: &str) -> bool {
    shown.parse::<Nanos>().is_ok()
}

fn reads_as_error_or_value<T: std::str::FromStr>(shown: &str) {
    let _ = shown.parse::<T>();
}
