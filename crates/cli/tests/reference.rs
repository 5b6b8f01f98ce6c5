//! Pages of the book that are generated from the code. The tests compare them, and write them again with
//! `UPDATE_GOLDEN=1 cargo test --workspace --features queuescope/full --test it -- reference::`.
//!
//! The pages are in the repository, and are not generated with the book. So they can be read without a build, a review shows each
//! changed flag, and the comparison costs nothing, as the test needs the program anyway.

#![allow(clippy::disallowed_methods, reason = "it reads and writes pages of the documentation")]

mod commands;
mod json;
mod records;

use crate::common::file;

/// Compares a page with the text that it should have.
fn check(name: &str, text: &str) {
    let path = file("docs/reference").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(text.lines()).position(|(kept, now)| kept != now);
    assert!(kept == text, "{} is out of date from line {differs:?} on; UPDATE_GOLDEN=1 writes it", path.display());
}

/// Escapes text for Markdown outside of code, so that it is not taken for HTML or emphasis.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number > 0 {
            out.push('`');
        }
        let is_code = number % 2 == 1;
        for letter in part.chars() {
            if !is_code && "<>*[]".contains(letter) {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    out
}

/// Escapes text for a cell of a table.
fn cell(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" ")).replace('|', "\\|")
}
