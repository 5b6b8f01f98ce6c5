//! The built book: the links of its pages, as a browser resolves them.

use super::markdown::attributes;
use super::{is_elsewhere, joined, walk};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A folder with pages.
pub struct Site {
    files: BTreeSet<PathBuf>,
    pages: BTreeMap<PathBuf, Html>,
}

struct Html {
    ids: BTreeSet<String>,
    links: Vec<String>,
}

impl Site {
    /// Reads all pages below `folder`.
    pub fn read(folder: &Path) -> Result<Self> {
        let mut files = BTreeSet::new();
        walk(folder, Path::new(""), &mut files)?;
        let mut pages = BTreeMap::new();
        // The page for missing pages has only links from the root of a server.
        let html =
            files.iter().filter(|path| path.extension().is_some_and(|it| it == "html") && !path.ends_with("404.html"));
        for path in html {
            let text =
                fs::read_to_string(folder.join(path)).with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path.clone(), Html::parse(&text));
        }
        Ok(Self { files, pages })
    }

    /// How many pages it has.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// How many links they have.
    pub fn links(&self) -> usize {
        self.pages.values().map(|page| page.links.len()).sum()
    }

    /// Links to missing files and anchors.
    pub fn dead_links(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (path, page) in &self.pages {
            for link in page.links.iter().filter(|link| !is_elsewhere(link)) {
                let (file, anchor) = link.split_once('#').map_or((&**link, ""), |(file, anchor)| (file, anchor));
                let target = match file {
                    "" => Some(path.clone()),
                    _ => joined(path.parent().unwrap_or(Path::new("")), file),
                };
                let is_there = target.as_ref().is_some_and(|target| self.files.contains(target));
                let page = target.and_then(|target| self.pages.get(&target));
                let has_place = anchor.is_empty() || page.is_some_and(|page| page.ids.contains(anchor));
                if !is_there || !has_place {
                    problems.push(format!("built {}: '{link}' does not exist", path.display()));
                }
            }
        }
        problems
    }
}

impl Html {
    fn parse(text: &str) -> Self {
        let decoded = |value: &str| value.replace("&amp;", "&");
        let links = ["href", "src"].into_iter().flat_map(|name| attributes(text, name));
        Self { ids: attributes(text, "id").map(decoded).collect(), links: links.map(decoded).collect() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn dead_links_of_a_built_page_are_found() {
        let html = |text| Html::parse(text);
        let pages = BTreeMap::from([
            (
                PathBuf::from("a/x.html"),
                html("<h1 id=\"top\"></h1> <a href=\"#top\"> <a href=\"../y.html#b\"> <img src=\"z.png\">"),
            ),
            (
                PathBuf::from("y.html"),
                html("<a href=\"a/x.html#none\"> <a href=\"https://example.org\"> <a href=\"w.html\">"),
            ),
        ]);
        let files = pages.keys().cloned().collect();
        let site = Site { files, pages };
        assert_eq!(
            site.dead_links(),
            [
                "built a/x.html: '../y.html#b' does not exist",
                "built a/x.html: 'z.png' does not exist",
                "built y.html: 'a/x.html#none' does not exist",
                "built y.html: 'w.html' does not exist",
            ]
        );
    }
}
