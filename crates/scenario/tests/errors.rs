//! The errors for invalid scenarios: each file in `errors/` with its expected output.
//!
//! Lines `#--set KEY=VALUE` and `#--sweep KEY=VALUE,...` of a file are its overrides. After a change, `UPDATE_GOLDEN=1
//! cargo test -p queuescope-scenario --test it errors::` updates the expected outputs; review them.

#![allow(clippy::disallowed_methods, reason = "tests read the golden texts, and write them with UPDATE_GOLDEN")]

use crate::common;
use queuescope_scenario::{Override, Scenario};
use std::path::Path;

#[test]
fn each_error_is_shown_in_the_text_under_a_caret() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for (name, bytes) in common::files(&folder, "toml") {
        let text = String::from_utf8_lossy(&bytes);
        let overrides: Vec<_> = text.lines().filter_map(override_of).collect();
        let error = match Scenario::parse_bytes(&format!("{name}.toml"), &bytes, &overrides) {
            Ok(scenario) => panic!("{name} is a valid scenario: {scenario:?}"),
            Err(error) => error,
        };
        assert_eq!(error.messages().count(), error.count().min(20), "{name}");
        let shown = error.render(100, false);
        assert_eq!(shown.trim_end(), error.to_string());
        let golden = folder.join(format!("{name}.txt"));
        if update {
            std::fs::write(&golden, shown).expect("the text is written");
        } else {
            let expected = std::fs::read_to_string(&golden).unwrap_or_default();
            assert_eq!(shown, expected, "{name}: to accept the new text, set UPDATE_GOLDEN=1");
        }
    }
}

fn override_of(line: &str) -> Option<Override> {
    let set = line.strip_prefix("#--set ").map(Override::new);
    set.or_else(|| line.strip_prefix("#--sweep ").map(Override::sweep))
}

#[test]
fn colours_are_optional() {
    let error = Scenario::parse("x.toml", "seed = -1", &[]).unwrap_err();
    assert!(error.render(80, true).contains('\u{1b}'));
    assert!(!error.render(80, false).contains('\u{1b}'));
}
