//! Parses any text as command-line values and as names of flows: a value or an error, never a panic; and what is
//! printed parses to the same value.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_queue::Limit;
use queuescope_sim::Speedup;
use queuescope_wire::{ByteCount, FlowKey, Granularity, Nanos, Rate};

fuzz_target!(|text: &str| {
    match text.parse::<Granularity>() {
        Ok(granularity) => assert_eq!(granularity.to_string().parse(), Ok(granularity), "{text}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some((granularity, key)) = FlowKey::named(text) {
        assert!(FlowKey::named(&granularity.name(&key)).is_some(), "{text}");
    }
    match text.parse::<Rate>() {
        Ok(rate) => {
            assert!(rate.bits_per_second() > 0, "'{text}' is a link that never sends");
            assert_eq!(format!("{}bps", rate.bits_per_second()).parse(), Ok(rate));
            assert!(!rate.to_string().is_empty());
        }
        Err(error) => assert_eq!(error.text, text),
    }
    match text.parse::<Nanos>() {
        Ok(time) => {
            assert_eq!(format!("{}ns", time.0).parse(), Ok(time));
            // Displayed times are rounded. They parse again, unless rounding exceeded the largest time.
            assert!(time.to_string().parse::<Nanos>().is_ok() || time.0 > u64::MAX / 2, "{time}");
        }
        Err(error) => assert_eq!(error.text, text),
    }
    match text.parse::<ByteCount>() {
        Ok(size) => {
            assert_eq!(size.0.to_string().parse(), Ok(size));
            assert!(!size.to_string().is_empty());
        }
        Err(error) => assert_eq!(error.text.to_ascii_lowercase(), text.to_ascii_lowercase()),
    }
    match text.parse::<Limit>() {
        Ok(limit) => assert_eq!(limit.to_string().parse(), Ok(limit), "{text}"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(speedup) = text.parse::<Speedup>() {
        // The displayed ratio is the same, perhaps with fewer digits.
        let again: Speedup = speedup.to_string().parse().expect("what is shown reads back");
        for span in [0, 1, 999_999_937, u64::MAX / 1_000_000_000] {
            assert_eq!(again.apply(Nanos(span)), speedup.apply(Nanos(span)), "{text}");
        }
    }
});
