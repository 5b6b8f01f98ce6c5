//! Checks the book in `docs`: every page is in it, links in it and in all other Markdown of the repository have targets,
//! and the types that the glossary names exist.

mod built;
mod glossary;
mod markdown;

use crate::notes;
use anyhow::{Context, Result, bail};
use markdown::Page;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folders that do not belong to the repository, wherever they are.
const IGNORED: &[&str] = &["target", "artifacts", "coverage"];

/// Extensions of files in which names of pages are searched.
const NAMING: &[&str] = &["rs", "md", "toml", "sh", "py", "cc", "h", "c", "json", "trycmd"];

/// The book's sources.
const SOURCES: &str = "docs";

/// Checks the sources, and the built book if its folder is given.
pub fn run(arguments: &[String]) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = match arguments {
        [] => None,
        [folder] => Some(Path::new(folder)),
        [_, more @ ..] => bail!("'{}' is not expected here", more.join(" ")),
    };
    let files = Files::read(&root)?;
    let mut problems = files.dead_links();
    problems.extend(files.left_out());
    problems.extend(files.dead_names(&root)?);
    problems.extend(glossary::unknown_types(&root, &files.all)?);
    let notes = fs::read_to_string(root.join(notes::PAGE)).unwrap_or_default();
    if notes != notes::page(&root)? {
        problems.push(format!("{} is outdated: run cargo xtask notes --write", notes::PAGE));
    }
    let mut summary = format!("book: {} pages of Markdown, {} links", files.pages.len(), files.links());
    if let Some(folder) = built {
        let site = built::Site::read(folder)?;
        problems.extend(site.dead_links());
        summary += &format!("; {} built pages, {} links", site.pages(), site.links());
    }
    if !problems.is_empty() {
        problems.sort();
        bail!("the book has problems:\n  {}", problems.join("\n  "));
    }
    println!("{summary}");
    Ok(())
}

/// The files of the repository, and the contents of its Markdown.
struct Files {
    /// All files and folders, as paths from the root.
    all: BTreeSet<PathBuf>,
    pages: BTreeMap<PathBuf, Page>,
}

impl Files {
    fn read(root: &Path) -> Result<Self> {
        let mut all = BTreeSet::from([PathBuf::new()]);
        walk(root, Path::new(""), &mut all)?;
        let mut pages = BTreeMap::new();
        for path in all.iter().filter(|path| path.extension().is_some_and(|it| it == "md")) {
            let text =
                fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path.clone(), Page::parse(&text));
        }
        Ok(Self { all, pages })
    }

    fn links(&self) -> usize {
        self.pages.values().map(|page| page.links.len()).sum()
    }

    /// Links to missing files and headings, and links out of the book, which is a folder by itself once built.
    fn dead_links(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (path, page) in &self.pages {
            for link in page.links.iter().filter(|link| !is_elsewhere(link)) {
                let (file, anchor) =
                    link.split_once('#').map_or((&**link, None), |(file, anchor)| (file, Some(anchor)));
                let folder = path.parent().unwrap_or(Path::new(""));
                let target = if file.is_empty() { Some(path.clone()) } else { joined(folder, file) };
                let problem = match target {
                    Some(target) if self.all.contains(&target) => {
                        let is_out = path.starts_with(SOURCES) && !target.starts_with(SOURCES);
                        let is_dead = anchor.is_some_and(|anchor| {
                            self.pages.get(&target).is_none_or(|page| !page.anchors.contains(anchor))
                        });
                        match (is_out, is_dead) {
                            (true, _) => "is outside the book; name the file instead",
                            (_, true) => "names a heading that does not exist",
                            _ => continue,
                        }
                    }
                    _ => "does not exist",
                };
                problems.push(format!("{}: '{link}' {problem}", path.display()));
            }
        }
        problems
    }

    /// Pages that are missing from the table of contents.
    fn left_out(&self) -> Vec<String> {
        let contents = Path::new(SOURCES).join("SUMMARY.md");
        let links = self.pages.get(&contents).map(|page| &*page.links).unwrap_or_default();
        let listed: BTreeSet<_> = links.iter().filter_map(|link| joined(Path::new(SOURCES), link)).collect();
        let own = self.pages.keys().filter(|path| path.starts_with(SOURCES) && **path != contents);
        let missing = own.filter(|path| !listed.contains(*path));
        missing.map(|path| format!("{}: is not in {}", path.display(), contents.display())).collect()
    }

    /// Pages that source files and other texts name, but that do not exist.
    fn dead_names(&self, root: &Path) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        // The tests of this module name pages that do not exist.
        let own = Path::new("xtask/src/book");
        let is_own = |path: &Path| path.starts_with(own) || path == own.with_extension("rs");
        let has_names =
            |path: &Path| path.extension().and_then(|it| it.to_str()).is_some_and(|it| NAMING.contains(&it));
        for path in self.all.iter().filter(|path| has_names(path) && !is_own(path) && root.join(path).is_file()) {
            // Binary files are made by tests, and name no pages.
            let Ok(text) = fs::read_to_string(root.join(path)) else { continue };
            for name in markdown::named(&text) {
                if !self.all.contains(Path::new(name)) {
                    problems.push(format!("{}: {name} does not exist", path.display()));
                }
            }
        }
        Ok(problems)
    }
}

/// Everything below a folder, by its path from the root.
fn walk(root: &Path, folder: &Path, all: &mut BTreeSet<PathBuf>) -> Result<()> {
    let path = root.join(folder);
    for entry in fs::read_dir(&path).with_context(|| format!("cannot list {}", path.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.to_string_lossy().starts_with('.') && name != ".ci";
        if is_hidden || IGNORED.iter().any(|ignored| name == *ignored) {
            continue;
        }
        let path = folder.join(&name);
        if entry.file_type()?.is_dir() {
            walk(root, &path, all)?;
        }
        all.insert(path);
    }
    Ok(())
}

/// Whether a link leads to another site. Such links are not checked, so that the check needs no network.
fn is_elsewhere(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|letter| letter.is_ascii_alphabetic()))
        || link.starts_with("//")
}

/// A relative path resolved from a folder, without `.` and `..`; `None` if it leaves the root.
fn joined(folder: &Path, link: &str) -> Option<PathBuf> {
    let mut path = PathBuf::new();
    for part in folder.join(link).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            Component::Normal(name) => path.push(name),
            _ => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pages: &[(&str, &str)], others: &[&str]) -> Files {
        let pages: BTreeMap<_, _> = pages.iter().map(|(path, text)| (PathBuf::from(path), Page::parse(text))).collect();
        let all = pages.keys().cloned().chain(others.iter().map(PathBuf::from)).collect();
        Files { all, pages }
    }

    #[test]
    fn links_without_a_target_are_found() {
        let text = "# A page\n## Two `words`!\n## Same\n## Same\n\
                    [a](#two-words) [b](b.md#there) [c](../data.csv) [d](https://example.org/x) [e](#same-1) ![f](f.png)\n\
                    [g](#two) [h](c.md) [i](b.md#nowhere) [j](../../x.md) `[k](k.md)` <img src=\"l.png\">\n";
        let pages = [("docs/a.md", text), ("docs/b.md", "# There\n"), ("docs/SUMMARY.md", "- [A](a.md)\n")];
        let files = files(&pages, &["data.csv", "docs/f.png"]);
        let mut found = files.dead_links();
        found.extend(files.left_out());
        assert_eq!(
            found,
            [
                "docs/a.md: '../data.csv' is outside the book; name the file instead",
                "docs/a.md: '#two' names a heading that does not exist",
                "docs/a.md: 'c.md' does not exist",
                "docs/a.md: 'b.md#nowhere' names a heading that does not exist",
                "docs/a.md: '../../x.md' does not exist",
                "docs/a.md: 'l.png' does not exist",
                "docs/b.md: is not in docs/SUMMARY.md",
            ]
        );
    }

    #[test]
    fn a_page_outside_the_book_may_link_into_it() {
        let files = files(&[("README.md", "[a](docs/a.md#one)"), ("docs/a.md", "# One")], &[]);
        assert_eq!(files.dead_links(), [""; 0]);
    }
}
