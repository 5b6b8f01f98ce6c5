//! Reads any bytes as a host's part of an answer, and as the rows of an answer. What is read can be merged and written, and reads as
//! the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_fleet::answer::{Asked, IpcLimits, Merged, Merging, Partial, Texts};
use queuescope_log::Schema;
use std::cell::LazyCell;

thread_local! {
    static ASKED: LazyCell<[Asked; 2]> = LazyCell::new(|| {
        let select = "count,sum(length),min(src_ip),max(ts),mean(length),stddev(length),distinct(src_ip)";
        ["", "dst_ip,ts/10ms,tcp_flags"].map(|group| {
            let texts = Texts { select, group, ..Texts::default() };
            Asked::new(&texts, Schema::packet()).unwrap_or_else(|error| panic!("{error}"))
        })
    });
}

fuzz_target!(|data: &[u8]| {
    let limits = IpcLimits { bytes: 1 << 16, rows: 1 << 10 };
    ASKED.with(|asked| {
        for asked in asked.iter() {
            if let Ok(partial) = Partial::decode(data, asked, limits) {
                let bytes = partial.encode(asked).expect("it can be written");
                let wide = IpcLimits { bytes: usize::MAX, ..limits };
                assert_eq!(Partial::decode(&bytes, asked, wide), Ok(partial.clone()));
                let mut merging = Merging::new(asked);
                merging.add(&partial).expect("what was read can be added");
                _ = merging.finish().encode(asked);
            }
            if let Ok(rows) = Merged::decode(data, asked, limits) {
                assert!(rows.groups.len() <= limits.rows);
            }
        }
    });
});
