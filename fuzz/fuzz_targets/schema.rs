//! Parses any text as a schema. If it is one, the bytes after a NUL are a record: every attribute can be read, and what
//! is written can be read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_log::Schema;

fuzz_target!(|data: &[u8]| {
    let (text, record) = match data.iter().position(|byte| *byte == 0) {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &data[..0]),
    };
    match Schema::parse("schema.toml", &String::from_utf8_lossy(text)) {
        Ok(schema) => {
            let mut record = record.to_vec();
            record.resize(schema.record_size(), 0xa5);
            for (id, attribute) in schema.iter().filter(|(_, attribute)| attribute.is_comparable()) {
                let key = schema.key(id, &record);
                assert!(key <= attribute.highest_key(), "{}", attribute.name);
                schema.reader(id).write(&mut record, key);
                assert_eq!(schema.key(id, &record), key, "{}", attribute.name);
                assert_eq!(schema.find(&attribute.name), Some(id));
            }
        }
        Err(error) => {
            assert!(error.count() > 0);
            assert!(!error.render(100, false).is_empty());
        }
    }
});
