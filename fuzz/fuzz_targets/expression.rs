//! Parses any text as an expression, and the bytes after a NUL as a record. What is printed parses to the same
//! expression, and the normal form gives the same result for the record.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_log::{Filter, Limits, Number, Schema, Scope};

fuzz_target!(|data: &[u8]| {
    let (text, record) = match data.iter().position(|byte| *byte == 0) {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &data[..0]),
    };
    let text = String::from_utf8_lossy(text);
    let schema = Schema::packet();
    let mut scope = Scope::new(schema);
    for name in ["MAXSEQ", "TS"] {
        scope.add_aggregate(name).expect("the names are free");
    }
    let aggregates = [Number::Unsigned(1_000), Number::Float(-0.5)];
    match scope.parse(&text) {
        Ok(expr) => {
            let printed = expr.text(&scope);
            // The printed expression may be longer and deeper than an input may be.
            let limits = Limits { text: 1 << 22, depth: 256, tests: 1 << 20, ..*scope.limits() };
            let wide = scope.clone().with_limits(limits);
            let again = wide.parse(&printed).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again, expr, "{printed}");
            if let Ok(dnf) = expr.dnf(&scope) {
                let holds = expr.holds(schema, record, &aggregates.as_slice());
                assert_eq!(Filter::new(&dnf, schema).matches(record, &aggregates.as_slice()), holds, "{printed}");
            }
        }
        Err(error) => {
            assert!(error.count() > 0);
            assert!(!error.render(100, false).is_empty());
        }
    }
});
