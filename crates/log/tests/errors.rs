//! Error messages for wrong expressions and schemas: each file in `errors/` with the messages about it. Expressions
//! (`.expr`, one a line) are for the schema `packet`, with the aggregates `MAXSEQ` and `TS`; schemas are TOML.
//!
//! After a change, `UPDATE_GOLDEN=1 cargo test -p queuescope-log --test it errors::` rewrites the texts; read them.

#![allow(clippy::disallowed_methods, reason = "tests read the golden texts, and write them on request")]

use queuescope_log::{Schema, Scope};
use std::path::{Path, PathBuf};

fn files(extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
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
fn each_mistake_in_an_expression_is_shown_under_a_caret() {
    for path in files("expr") {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let mut scope = Scope::new(Schema::packet());
        for name in ["MAXSEQ", "TS"] {
            scope.add_aggregate(name).expect("the names are free");
        }
        let mut shown = String::new();
        for line in text.lines() {
            match scope.parse(line) {
                Ok(expr) => panic!("{}: nothing is wrong with {}", path.display(), expr.text(&scope)),
                Err(error) => shown.push_str(&format!("{}\n", error.render(100, false))),
            }
        }
        compare(&path, &shown);
    }
}

#[test]
fn each_mistake_in_a_schema_is_shown_under_a_caret() {
    for path in files("toml") {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let name = path.file_name().expect("it has one").to_string_lossy();
        match Schema::parse(&name, &text) {
            Ok(schema) => panic!("{name}: nothing is wrong: {schema:?}"),
            Err(error) => compare(&path, &error.render(100, false)),
        }
    }
}

#[test]
fn a_schema_that_is_too_long_is_not_read() {
    let error = Schema::parse("long", &"#".repeat(1 << 19)).unwrap_err();
    assert!(error.to_string().contains("at most 262144"), "{error}");
    let many: String = (0..1025).map(|n| format!("[[attribute]]\nname = \"a{n}\"\nkind = \"u8\"\n")).collect();
    let error = Schema::parse("many", &format!("name = \"many\"\n{many}")).unwrap_err();
    assert!(error.to_string().contains("at most 1024"), "{error}");
}
