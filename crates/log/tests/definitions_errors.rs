//! Error messages for wrong definitions: each file in `definitions/` with the messages about it. Files (`.toml`)
//! are for the schema `packet`; arguments (`.args`, one a line behind the kind of definition) are added to a filter `web` and
//! the aggregates `bytes_of_web` over it and `packets`.
//!
//! After a change, `UPDATE_GOLDEN=1 cargo test -p queuescope-log --test it definitions_errors::` rewrites the texts; read
//! them.

#![allow(clippy::disallowed_methods, reason = "tests read the golden texts, and write them on request")]

use queuescope_log::{Definitions, Schema};
use std::path::{Path, PathBuf};

const BEFORE: &str = r#"
[[filter]]
name = "web"
expression = "dst_port in {80, 443}"
[[aggregate]]
name = "bytes_of_web"
function = "sum(length)"
filter = "web"
[[aggregate]]
name = "packets"
function = "count"
"#;

fn files(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions");
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == extension));
    files.sort();
    assert!(!files.is_empty(), "no file ends with .{extension}");
    files
}

fn compare(path: &Path, shown: &str) {
    let golden = path.with_extension("txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, shown).expect("the text is written");
        return;
    }
    let expected = std::fs::read_to_string(&golden).unwrap_or_default();
    assert_eq!(shown, expected, "{}: if that is better, UPDATE_GOLDEN=1", path.display());
}

#[test]
fn each_mistake_in_definitions_is_shown_under_a_caret() {
    for path in files("toml") {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let name = path.file_name().expect("it has one").to_string_lossy();
        match Definitions::parse(&name, &text, Schema::packet()) {
            Ok(definitions) => panic!("{name}: nothing is wrong with\n{}", definitions.text()),
            Err(error) => compare(&path, &error.render(100, false)),
        }
    }
}

#[test]
fn each_mistake_in_an_argument_is_shown_under_a_caret() {
    for path in files("args") {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let mut shown = String::new();
        for line in text.lines() {
            let (kind, argument) = line.split_once(' ').expect("it says what it defines");
            let mut definitions = Definitions::parse("before", BEFORE, Schema::packet()).expect("it is right");
            let before = definitions.text();
            let added = match kind {
                "filter" => definitions.add_filter("--filter", argument),
                "aggregate" => definitions.add_aggregate("--aggregate", argument),
                _ => definitions.add_trigger("--trigger", argument),
            };
            let error = added.expect_err(line);
            assert_eq!(definitions.text(), before, "{line}: nothing of it may be there");
            shown.push_str(&format!("{}\n", error.render(100, false)));
        }
        compare(&path, &shown);
    }
}

#[test]
fn definitions_that_are_too_long_are_not_read() {
    let error = Definitions::parse("long", &"#".repeat(1 << 19), Schema::packet()).unwrap_err();
    assert!(error.to_string().contains("at most 262144"), "{error}");
}
