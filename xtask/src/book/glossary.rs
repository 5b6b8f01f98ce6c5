//! The types that the glossary names: each must be public in the crate that it names.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The page.
const PAGE: &str = "docs/reference/glossary.md";

/// What may precede the name of a type.
const KINDS: [&str; 4] = ["pub struct ", "pub enum ", "pub trait ", "pub type "];

/// The types on the page that do not exist. `all` are the files of the repository.
///
/// # Errors
/// Fails if the page or a source file cannot be read.
pub fn unknown_types(root: &Path, all: &BTreeSet<PathBuf>) -> Result<Vec<String>> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    let mut problems = Vec::new();
    for (module, name) in named(&page) {
        let folder = Path::new("crates").join(module).join("src");
        let is_source = |path: &&PathBuf| path.starts_with(&folder) && path.extension().is_some_and(|it| it == "rs");
        let mut exists = false;
        for path in all.iter().filter(is_source) {
            let text =
                fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {}", path.display()))?;
            exists |= defines(&text, name);
        }
        if !exists {
            problems.push(format!("{PAGE}: {} has no public type {name}", folder.display()));
        }
    }
    Ok(problems)
}

/// The crate and the last name of each path in a code span, such as `report` and `Victim` of `report::model::Victim`.
fn named(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let spans = page.split('`').skip(1).step_by(2);
    spans.filter_map(|span| Some((span.split_once("::")?.0, span.rsplit_once("::")?.1)))
}

/// Whether a line of a source file defines this public type.
fn defines(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        let rest = KINDS.iter().find_map(|kind| line.trim_start().strip_prefix(kind));
        let rest = rest.and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_in_code_spans() {
        let page = "| a | `tc -s` | `queue::Limit`, `report::model::Victim` |";
        assert_eq!(named(page).collect::<Vec<_>>(), [("queue", "Limit"), ("report", "Victim")]);
    }

    #[test]
    fn a_longer_name_or_a_private_type_is_not_the_type() {
        assert!(defines("    pub struct Replay<D> {", "Replay"));
        assert!(!defines("pub struct ReplayedProgram {", "Replay"));
        assert!(!defines("struct Replay;", "Replay"));
    }
}
