//! Parses any text as definitions, or as a single definition after a first byte that selects its kind. What is printed
//! parses to the same definitions, and an empty log accepts all of them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_log::{Definitions, Log, Memory, Options, Schema};

fuzz_target!(|data: &[u8]| {
    let schema = Schema::packet();
    let mut definitions = Definitions::new(schema);
    let text = String::from_utf8_lossy(data);
    let mut rest = text.chars();
    let read = match rest.next() {
        Some('f') => definitions.add_filter("--filter", rest.as_str()),
        Some('a') => definitions.add_aggregate("--aggregate", rest.as_str()),
        Some('t') => definitions.add_trigger("--trigger", rest.as_str()),
        _ => definitions.add_text("definitions.toml", &text),
    };
    match read {
        Ok(()) => {
            let printed = definitions.text();
            let again = Definitions::parse("again", &printed, schema).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again.text(), printed);
            let log = Log::new(schema.clone(), Options { records: 1, memory: Memory::Lazy }).expect("there is room");
            let defined = definitions.apply(&log).unwrap_or_else(|error| panic!("{error}"));
            defined.monitor(&log).unwrap_or_else(|error| panic!("{error}"));
        }
        Err(error) => {
            assert!(error.count() > 0);
            assert!(!error.render(100, false).is_empty());
        }
    }
});
