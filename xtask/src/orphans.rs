//! Finds test files that no `tests/main.rs` names. They are never compiled, without any warning.

use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Checks every crate whose tests are one binary.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "'{}' is not expected here", arguments.join(" "));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let (mut files, mut orphans) = (0, Vec::new());
    for entry in fs::read_dir(&crates)? {
        let package = entry?.path();
        let tests = package.join("tests");
        let Ok(main) = fs::read_to_string(tests.join("main.rs")) else { continue };
        let manifest = fs::read_to_string(package.join("Cargo.toml"))
            .with_context(|| format!("cannot read the manifest in {}", package.display()))?;
        let known = named(&main, &manifest);
        for file in fs::read_dir(&tests)? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                files += 1;
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                if !known.contains(name.as_str()) {
                    orphans.push(path.display().to_string());
                }
            }
        }
    }
    orphans.sort();
    if !orphans.is_empty() {
        bail!(
            "test files that are never compiled; add `mod NAME;` to the main.rs beside them:\n  {}",
            orphans.join("\n  ")
        );
    }
    println!("orphans: each of {files} test files is compiled");
    Ok(())
}

/// Modules of `main` at their usual place, and tests named in the `manifest`.
fn named<'a>(main: &'a str, manifest: &'a str) -> BTreeSet<&'a str> {
    let mut known = BTreeSet::from(["main"]);
    let mut elsewhere = false;
    for line in main.lines() {
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            if !elsewhere {
                known.insert(name);
            }
            elsewhere = false;
        }
        elsewhere |= line.starts_with("#[path");
    }
    let names = manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    known.extend(names);
    known
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn a_module_from_elsewhere_is_not_the_file_with_its_name() {
        let main = "mod a;\n#[path = \"common/b.rs\"]\n#[allow(dead_code)]\nmod b;\nmod c;\n";
        let known = named(main, "[[test]]\nname = \"memory\"\n");
        assert_eq!(known.into_iter().collect::<Vec<_>>(), ["a", "c", "main", "memory"]);
    }
}
