//! Finds source files that no module declares. They are never compiled, without any warning.

use anyhow::{Context, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks the sources and tests of every crate.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "'{}' is not expected here", arguments.join(" "));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no folder above it")?;
    let (mut files, mut orphans) = (0, Vec::new());
    for entry in fs::read_dir(root.join("crates"))? {
        let package = entry?.path();
        let manifest = fs::read_to_string(package.join("Cargo.toml"))
            .with_context(|| format!("cannot read the manifest in {}", package.display()))?;
        for (folder, roots) in [("src", &["lib", "main"][..]), ("tests", &["main"])] {
            let found = Sources::read(&package.join(folder))?;
            files += found.files.len();
            orphans.extend(found.orphans(roots, &manifest));
        }
    }
    orphans.sort();
    if !orphans.is_empty() {
        let shown = orphans.iter().map(|path| path.strip_prefix(root).unwrap_or(path).display().to_string());
        bail!(
            "files that are never compiled; add `mod NAME;` to the file of the module above them:\n  {}",
            shown.collect::<Vec<_>>().join("\n  ")
        );
    }
    println!("orphans: each of {files} source and test files is compiled");
    Ok(())
}

/// The Rust files in a folder, with their text.
struct Sources {
    folder: PathBuf,
    files: Vec<(PathBuf, String)>,
}

impl Sources {
    /// Reads a folder and those in it, except workspaces of their own. A folder that does not exist has no files.
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            if !folder.is_dir() || folder.join("Cargo.toml").exists() {
                continue;
            }
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                    files.push((path, text));
                }
            }
        }
        Ok(Self { folder: folder.to_owned(), files })
    }

    /// The files that no other file declares. `roots` and the names in the `manifest` are compiled by cargo itself.
    fn orphans(&self, roots: &[&str], manifest: &str) -> Vec<PathBuf> {
        let named: BTreeSet<&str> =
            manifest.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"')).collect();
        // Unless the manifest says otherwise, each file directly in `tests` is a test of its own.
        let are_tests = self.folder.ends_with("tests") && !manifest.contains("autotests = false");
        let is_root = |path: &Path| {
            let stem = stem(path);
            let is_named = roots.contains(&stem.as_str()) || named.contains(stem.as_str());
            path.parent() == Some(&self.folder) && (are_tests || is_named)
                || path.strip_prefix(&self.folder).is_ok_and(|path| path.starts_with("bin"))
        };
        let declared: BTreeSet<PathBuf> = self.files.iter().flat_map(|(path, text)| declared(path, text)).collect();
        let orphans =
            self.files.iter().map(|(path, _)| path).filter(|path| !is_root(path) && !declared.contains(*path));
        orphans.cloned().collect()
    }
}

/// The files that the modules declared in a file may be.
fn declared(path: &Path, text: &str) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = stem(path);
    // The modules of a crate's root, or of a `mod.rs`, are beside it; those of other files are in the folder of its name. A
    // test of cargo's is a root, too.
    let places = [folder.to_owned(), folder.join(&name)];
    let places = if matches!(name.as_str(), "lib" | "main" | "mod") { &places[..1] } else { &places[..] };
    let mut files = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(path) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            files.push(simplified(&folder.join(path)));
        }
        let declaration = line.split_once("mod ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        if let Some(name) = declaration.and_then(|(_, rest)| rest.strip_suffix(';')) {
            for place in places {
                files.extend([place.join(format!("{name}.rs")), place.join(name).join("mod.rs")]);
            }
        }
    }
    files
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A path without `..`.
fn simplified(path: &Path) -> PathBuf {
    let mut simple = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            simple.pop();
        } else {
            simple.push(part);
        }
    }
    simple
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(files: &[(&str, &str)], roots: &[&str], manifest: &str) -> Vec<String> {
        let files = files.iter().map(|(path, text)| (Path::new("tests").join(path), (*text).to_owned())).collect();
        let found = Sources { folder: PathBuf::from("tests"), files }.orphans(roots, manifest);
        found.iter().map(|path| path.display().to_string()).collect()
    }

    /// Of a manifest whose tests are one binary.
    const ALONE: &str = "autotests = false\n";

    #[test]
    fn a_folder_of_tests_needs_no_modules() {
        assert!(orphans(&[("one.rs", "")], &["main"], "").is_empty());
    }

    #[test]
    fn files_that_no_module_declares_are_found_in_any_folder() {
        let files = [
            ("lib.rs", "mod one;\npub mod two;\npub(crate) mod three;\n"),
            ("one.rs", "mod inner;\n"),
            ("one/inner.rs", ""),
            ("one/lost.rs", ""),
            ("two/mod.rs", "mod deep;\n"),
            ("two/deep.rs", ""),
            ("three.rs", "// mod commented;\n"),
            ("commented.rs", ""),
            ("bin/tool.rs", ""),
        ];
        assert_eq!(orphans(&files, &["lib"], ALONE), ["tests/one/lost.rs", "tests/commented.rs"]);
    }

    #[test]
    fn tests_of_the_manifest_and_paths_are_compiled() {
        let files = [
            ("main.rs", "#[path = \"common/b.rs\"]\nmod c;\n"),
            ("common/b.rs", ""),
            ("memory.rs", "mod common;\n"),
            ("common/mod.rs", ""),
            ("alone.rs", ""),
        ];
        let manifest = format!("{ALONE}[[test]]\nname = \"memory\"\n");
        assert_eq!(orphans(&files, &["main"], &manifest), ["tests/alone.rs"]);
    }
}
