//! Finds words of the project's old dialect, which must be read twice. `xtask/prose.toml` lists them, and what to write
//! instead.

use anyhow::{Context, bail, ensure};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The checked files: texts, and sources with their comments and names.
const EXTENSIONS: [&str; 13] =
    ["rs", "md", "toml", "sh", "py", "js", "css", "html", "trycmd", "txt", "yml", "json", "c"];
/// How many hits are printed; the others are counted.
const SHOWN: usize = 20;

/// The contents of `xtask/prose.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    /// Files and folders that are not rewritten yet.
    unfinished: Vec<String>,
    /// Files and folders that keep the words for a reason: the list itself, samples of old formats, texts of others.
    exempt: Vec<String>,
    words: Vec<Word>,
}

/// A word of the old dialect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    /// A regular expression that ignores case.
    pattern: String,
    instead: String,
    /// Parts of lines that are ordinary English although they match.
    #[serde(default)]
    ordinary: Vec<String>,
}

/// Searches all files that git tracks or does not ignore for the words.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "'{}' is not expected here", arguments.join(" "));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let list = fs::read_to_string(root.join("xtask/prose.toml")).context("cannot read xtask/prose.toml")?;
    let list: List = toml::from_str(&list).context("xtask/prose.toml")?;
    let words = Words::new(&list.words)?;
    let files = tracked(&root)?;
    let is_in = |path: &str, folders: &[String]| folders.iter().any(|folder| Path::new(path).starts_with(folder));
    let mut unfinished = BTreeMap::new();
    let (mut read, mut hits) = (0, Vec::new());
    for path in files.iter().filter(|path| !is_in(path, &list.exempt)) {
        // A link may have no target here.
        let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
        let found = words.hits(path, &text);
        match list.unfinished.iter().find(|folder| Path::new(path).starts_with(folder)) {
            Some(folder) => *unfinished.entry(folder.as_str()).or_insert(0) += found.len(),
            None => hits.extend(found),
        }
        read += 1;
    }
    for folder in &list.unfinished {
        match unfinished.get(folder.as_str()) {
            None => bail!("xtask/prose.toml lists {folder} as unfinished, but it has no such files"),
            Some(0) => {
                bail!("{folder} has none of the words any more: remove it from `unfinished` in xtask/prose.toml")
            }
            Some(_) => {}
        }
    }
    if !hits.is_empty() {
        let shown: Vec<_> = hits.iter().take(SHOWN).map(String::as_str).collect();
        let more = if hits.len() > SHOWN { format!("\n  and {} more", hits.len() - SHOWN) } else { String::new() };
        bail!("words that a reader has to read twice (xtask/prose.toml):\n  {}{more}", shown.join("\n  "));
    }
    let left: usize = unfinished.values().sum();
    if list.unfinished.is_empty() {
        println!("prose: {read} files, without the old words");
    } else {
        println!("prose: {read} files; {left} old words in {} paths that are not rewritten yet", list.unfinished.len());
    }
    Ok(())
}

/// The files that git tracks or does not ignore, of kinds that contain prose.
fn tracked(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .output()
        .context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let paths = String::from_utf8(output.stdout).context("git lists a path that is not UTF-8")?;
    let has_prose = |path: &&str| {
        Path::new(path).extension().and_then(|extension| extension.to_str()).is_some_and(|it| EXTENSIONS.contains(&it))
    };
    Ok(paths.split_terminator('\0').filter(has_prose).map(str::to_owned).collect())
}

/// The words with their compiled patterns.
struct Words<'a>(Vec<(Regex, &'a Word)>);

impl<'a> Words<'a> {
    fn new(words: &'a [Word]) -> anyhow::Result<Self> {
        let compiled = words.iter().map(|word| {
            let regex = RegexBuilder::new(&word.pattern).case_insensitive(true).build();
            Ok((regex.with_context(|| format!("the pattern '{}'", word.pattern))?, word))
        });
        Ok(Self(compiled.collect::<anyhow::Result<_>>()?))
    }

    /// The lines with such words, each with its position and what to write instead.
    fn hits(&self, path: &str, text: &str) -> Vec<String> {
        let mut hits = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            for (regex, word) in &self.0 {
                let mut plain = line.to_owned();
                for ordinary in &word.ordinary {
                    plain = plain.replace(ordinary, "");
                }
                if let Some(found) = regex.find(&plain) {
                    hits.push(format!("{path}:{number}: '{}': {}", found.as_str(), word.instead));
                }
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_as_wholes_and_ordinary_uses_are_not() {
        let word = |pattern: &str, ordinary: &[&str]| Word {
            pattern: pattern.to_owned(),
            instead: "another".to_owned(),
            ordinary: ordinary.iter().map(|&text| text.to_owned()).collect(),
        };
        let list = [word(r"\b(tells?|told)\b", &["tell apart"]), word(r"\bwhoever\b", &[])];
        let words = Words::new(&list).unwrap();
        let text = "one told\nretold\nto tell apart\nto tell apart and tell\nWhoever Tells";
        let hits = words.hits("a.md", text);
        assert_eq!(
            hits,
            [
                "a.md:1: 'told': another",
                "a.md:4: 'tell': another",
                "a.md:5: 'Tells': another",
                "a.md:5: 'Whoever': another"
            ]
        );
    }

    #[test]
    fn a_wrong_pattern_is_an_error() {
        let list = [Word { pattern: "(".to_owned(), instead: String::new(), ordinary: Vec::new() }];
        assert!(Words::new(&list).err().unwrap().to_string().contains("the pattern '('"));
    }
}
