//! Runs the models of the log's order under loom and shuttle, and checks that each of its fences and checks is needed:
//! without it a model fails.

use crate::metadata;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The modelled files in the repository.
const SEQUENCE: &str = "crates/log/src/store/sequence.rs";
const SEGMENTS: &str = "crates/log/src/store/segments.rs";

/// A check or a fence, and the code without it.
struct Mutant {
    file: &'static str,
    what: &'static str,
    from: &'static str,
    to: &'static str,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        file: SEQUENCE,
        what: "completing releases what was written",
        from: "store(written.end, Ordering::Release)",
        to: "store(written.end, Ordering::Relaxed)",
    },
    Mutant {
        file: SEQUENCE,
        what: "moving the tail acquires what was completed",
        from: "self.slot(start).load(Ordering::Acquire)",
        to: "self.slot(start).load(Ordering::Relaxed)",
    },
    Mutant {
        file: SEQUENCE,
        what: "moving the tail releases it",
        from: "to << FROZEN_BITS, Ordering::AcqRel, Ordering::Acquire)",
        to: "to << FROZEN_BITS, Ordering::Relaxed, Ordering::Acquire)",
    },
    Mutant {
        file: SEQUENCE,
        what: "taking the tail acquires it",
        from: "let mut word = self.tail.load(Ordering::Acquire);",
        to: "let mut word = self.tail.load(Ordering::Relaxed);",
    },
    Mutant {
        file: SEQUENCE,
        what: "a writer waits until its slots were read",
        from: "if end > self.known_tail() + WINDOW {",
        to: "if false && end > self.known_tail() + WINDOW {",
    },
    Mutant {
        file: SEQUENCE,
        what: "a slot's earlier ends are not taken",
        from: "(end > start).then_some(end)",
        to: "(end != 0).then_some(end)",
    },
    Mutant {
        file: SEQUENCE,
        what: "a frozen tail is not moved",
        from: "if word & FROZEN != 0 {",
        to: "if false && word & FROZEN != 0 {",
    },
    Mutant {
        file: SEQUENCE,
        what: "the tail moves by compare-and-swap",
        from: "match self.tail.compare_exchange(word, to << FROZEN_BITS, Ordering::AcqRel, Ordering::Acquire) {",
        to: "match Ok::<u64, u64>(self.tail.swap(to << FROZEN_BITS, Ordering::AcqRel)) {",
    },
    Mutant {
        file: SEQUENCE,
        what: "each position has one writer",
        from: "self.reserved.fetch_add(count, Ordering::Relaxed).min(self.capacity)",
        to: "{ let was = self.reserved.load(Ordering::Relaxed); self.reserved.store(was + count, Ordering::Relaxed); was }",
    },
    Mutant {
        file: SEGMENTS,
        what: "the first refused segment ends the log",
        from: "< most && !mapped.refused {",
        to: "< most {",
    },
];

/// Runs the models unchanged, then each mutant under loom.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "'{}' is not expected here", arguments.join(" "));
    let metadata = metadata::read(&["--no-deps"])?;
    let here = PathBuf::from(metadata::text(&metadata, "workspace_root")?);
    let target = here.join("target/models");
    for model in ["loom", "shuttle"] {
        let outcome = test(&here, &target.join("whole"), model)?;
        if !outcome.passed {
            bail!("the models fail under {model}:\n{}", outcome.output);
        }
        println!("models: {model} finds no error");
    }
    let tree = target.join("tree");
    copy(&here, &tree)?;
    let mut survived = Vec::new();
    for Mutant { file, what, from, to } in MUTANTS {
        let path = tree.join(file);
        let source = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(source.matches(from).count() == 1, "'{from}' does not occur exactly once in {file}: update MUTANTS");
        fs::write(&path, source.replace(from, to)).with_context(|| format!("cannot write {}", path.display()))?;
        // In a separate folder: cargo would confuse the two builds.
        let outcome = test(&tree, &target.join("changed"), "loom")?;
        fs::write(&path, source).with_context(|| format!("cannot write {}", path.display()))?;
        ensure!(
            !outcome.output.contains("could not compile"),
            "without '{what}' it does not compile:\n{}",
            outcome.output
        );
        if outcome.passed {
            survived.push(*what);
        } else {
            println!("models: needed: {what}");
        }
    }
    if !survived.is_empty() {
        bail!("no model fails without these:\n  {}", survived.join("\n  "));
    }
    Ok(())
}

struct Outcome {
    passed: bool,
    output: String,
}

fn test(tree: &Path, target: &Path, model: &str) -> anyhow::Result<Outcome> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--quiet", "--release", "--locked", "--package", "queuescope-log", "--lib", "models"])
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", format!("--cfg {model}"))
        .output()
        .context("cannot start cargo")?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(Outcome { passed: output.status.success(), output: text })
}

/// Copies the files that git tracks.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(from).output().context("cannot start git")?;
    ensure!(listed.status.success(), "git does not list the files of {}", from.display());
    for name in String::from_utf8(listed.stdout)?
        .split('\0')
        .filter(|name| [".rs", ".toml", ".lock"].iter().any(|ending| name.ends_with(ending)))
    {
        let (source, target): (PathBuf, PathBuf) = (from.join(name), to.join(name));
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}
