//! Pages of the book that are made from the code: held against it, and written anew by
//! `UPDATE_GOLDEN=1 cargo test --workspace --features queuescope/full --test it -- reference::`.
//!
//! They are kept in the repository, and not made whenever the book is: so they can be read where nothing is built, a change of a flag is
//! seen in a review, and this test, whose program is there anyway, costs nothing.

#![allow(clippy::disallowed_methods, reason = "it reads and writes pages of the documentation")]

mod commands;
mod json;
mod records;

use crate::common::file;

/// Holds a page against what it should say.
fn check(name: &str, text: &str) {
    let path = file("docs/reference").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("it can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let place = kept.lines().zip(text.lines()).position(|(kept, now)| kept != now);
    assert!(kept == text, "{} is old, from line {place:?} on; UPDATE_GOLDEN=1 writes it anew", path.display());
}

/// Text as Markdown has it outside of code: what would be HTML or emphasis is text.
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

/// The same in a cell of a table.
fn cell(text: &str) -> String {
    escaped(&text.split_whitespace().collect::<Vec<_>>().join(" ")).replace('|', "\\|")
}
