//! Reads any text as the address of a sink, and any bytes as the pause that a receiver of alerts requests. An address prints as text that reads as the
//! same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_fleet::coordinator::{SinkAddress, retry_after};
use std::time::{Duration, UNIX_EPOCH};

fuzz_target!(|data: &[u8]| {
    let is_number = !data.is_empty() && data.iter().all(u8::is_ascii_digit);
    let pause = retry_after(data, UNIX_EPOCH + Duration::from_secs(1_800_000_000));
    assert!(pause.is_some() || !is_number);
    let Ok(text) = str::from_utf8(data) else { return };
    if let Ok(address) = text.parse::<SinkAddress>() {
        assert_eq!(address.to_string().parse(), Ok(address));
    }
});
