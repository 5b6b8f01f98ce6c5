//! Parses any text as a control program. The definitions of its hosts are definitions again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use queuescope_fleet::act::LONGEST;
use queuescope_fleet::program::Program;
use queuescope_log::{Definitions, Schema};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match Program::parse("program.toml", &text, &[("a", "1")]) {
        Ok(program) => {
            for act in program.acts() {
                assert!(act.after < program.raises().len() && act.time <= LONGEST);
            }
            for host in ["", "web-1", "*"] {
                if let Ok(Some(definitions)) = program.definitions(host) {
                    let printed = definitions.text();
                    Definitions::parse("again", &printed, Schema::packet()).unwrap_or_else(|error| panic!("{error}"));
                }
            }
        }
        Err(error) => assert!(error.count() > 0 && !error.render(100, false).is_empty()),
    }
});
