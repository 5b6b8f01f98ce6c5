//! Reads arbitrary bytes as a text table and as Parquet, to the end: errors and malformed rows, never a panic of our
//! code.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_table::{DepartureReader, TableError, TableOptions, TimeUnit};
use std::io::Cursor;
use std::panic;
use std::sync::Once;

/// A run stops after this many rows: a few bytes of Parquet can represent billions of rows.
const ROWS: u64 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    static HOOK: Once = Once::new();
    HOOK.call_once(let_the_decoder_panic);
    let time_unit = match bytes.len() % 4 {
        0 => TimeUnit::Seconds,
        1 => TimeUnit::Millis,
        2 => TimeUnit::Micros,
        _ => TimeUnit::Nanos,
    };
    let options = TableOptions { time_unit, ..TableOptions::default() };
    let read = if bytes.starts_with(b"PAR1") {
        DepartureReader::from_parquet(bytes.to_vec(), "fuzz", options)
    } else {
        DepartureReader::from_csv(Cursor::new(bytes.to_vec()), "fuzz", options)
    };
    let Err(error) = read.and_then(drain) else { return };
    assert!(!error.to_string().is_empty());
});

fn drain(mut reader: DepartureReader) -> Result<(), TableError> {
    let mut rows = 0;
    while let Some(row) = reader.next_row()? {
        assert!(row.enqueued <= row.dequeued);
        assert!(!row.flow.is_empty());
        rows += 1;
        if rows == ROWS {
            break;
        }
    }
    let stats = reader.stats();
    assert_eq!(stats.rows, rows);
    assert!(stats.first_malformed.len() as u64 <= stats.malformed);
    for row in &stats.first_malformed {
        assert!(!row.to_string().is_empty());
    }
    Ok(())
}

/// The reader turns a panic inside the Parquet decoder into an error. libFuzzer's hook would end the process before
/// that, so it is called only for panics of our own code.
fn let_the_decoder_panic() {
    let ours = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let decoder = ["/parquet-", "/arrow-", "/bytes-"];
        let file = info.location().map_or("", |location| location.file());
        if !decoder.iter().any(|name| file.contains(name)) {
            ours(info);
        }
    }));
}
