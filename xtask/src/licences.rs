//! Every dependency must have a licence that allows the command to be distributed under MIT OR Apache-2.0.

use crate::metadata;
use anyhow::{bail, ensure};

/// Licences whose only condition is a notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Reads all dependencies from cargo, and checks their licences.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "'{}' is not expected here", arguments.join(" "));
    let metadata = metadata::read(&["--locked"])?;
    let packages = metadata::list(&metadata, "packages")?;
    let mut problems = Vec::new();
    for package in packages {
        let name = metadata::text(package, "name")?;
        match package.get("license").and_then(|licence| licence.as_str()) {
            Some(licence) if allowed(licence) => {}
            Some(licence) => problems.push(format!("{name} is under {licence}")),
            None => problems.push(format!("{name} names no licence")),
        }
    }
    if !problems.is_empty() {
        bail!("these are not in ALLOWED in xtask/src/licences.rs:\n  {}", problems.join("\n  "));
    }
    println!("licences: {} packages may be used", packages.len());
    Ok(())
}

/// Whether allowed licences satisfy an SPDX expression (or the older form with `/` for OR).
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words: Vec<&str> = spaced.split_whitespace().collect();
    words.reverse();
    any_of(&mut words) && words.is_empty()
}

/// `all_of OR all_of OR ...`; words are taken from the end.
fn any_of(words: &mut Vec<&str>) -> bool {
    let mut result = all_of(words);
    while words.last() == Some(&"OR") {
        words.pop();
        result |= all_of(words);
    }
    result
}

/// `one AND one AND ...`, which binds tighter than OR.
fn all_of(words: &mut Vec<&str>) -> bool {
    let mut result = one(words);
    while words.last() == Some(&"AND") {
        words.pop();
        result &= one(words);
    }
    result
}

/// A licence, optionally `WITH` an exception, or an expression in parentheses.
fn one(words: &mut Vec<&str>) -> bool {
    match words.pop() {
        Some("(") => {
            let result = any_of(words);
            words.pop() == Some(")") && result
        }
        Some(licence) if words.last() == Some(&"WITH") => {
            words.pop();
            words.pop().is_some_and(|exception| ALLOWED.contains(&format!("{licence} WITH {exception}").as_str()))
        }
        Some(licence) => ALLOWED.contains(&licence),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::allowed;

    #[test]
    fn expressions() {
        for yes in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "GPL-3.0 AND ISC OR MIT",
        ] {
            assert!(allowed(yes), "{yes}");
        }
        for no in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "MIT WITH nothing", "", "(MIT", "MIT)"] {
            assert!(!allowed(no), "{no}");
        }
    }
}
