//! Files of a crate that import each other in a circle can only be understood, and moved, together.

mod imports;

use anyhow::{Context, bail, ensure};
use imports::Modules;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The most files in a circle.
const MOST: usize = 10;

/// Looks for large circles in every crate.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "'{}' is not expected here", arguments.join(" "));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut folders: Vec<_> = fs::read_dir(&crates)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    folders.sort();
    let (mut files, mut largest) = (0, (0, String::new()));
    let mut problems = Vec::new();
    for folder in folders {
        let source = folder.join("src");
        let modules = Modules::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        files += modules.len();
        for circle in circles(&modules.edges()) {
            if circle.len() > MOST {
                problems.push(format!("{name}: {} files: {}", circle.len(), circle.join(", ")));
            }
            if circle.len() > largest.0 {
                largest = (circle.len(), name.clone());
            }
        }
    }
    if !problems.is_empty() {
        bail!("files import each other in circles of more than {MOST}:\n  {}", problems.join("\n  "));
    }
    println!("circles: of {files} files, at most {} import each other in a circle ({})", largest.0, largest.1);
    Ok(())
}

/// The strongly connected parts with more than one member (Tarjan 1972), members in order.
fn circles(edges: &BTreeMap<String, Vec<String>>) -> Vec<Vec<String>> {
    let mut search = Search { edges, numbers: BTreeMap::new(), stack: Vec::new(), found: Vec::new() };
    for node in edges.keys() {
        if !search.numbers.contains_key(node.as_str()) {
            search.visit(node);
        }
    }
    search.found
}

struct Search<'a> {
    edges: &'a BTreeMap<String, Vec<String>>,
    /// For each visited node, its number and the lowest number that it can reach; `None` once its part is complete.
    numbers: BTreeMap<&'a str, Option<usize>>,
    stack: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, node: &'a str) -> usize {
        let number = self.numbers.len();
        self.numbers.insert(node, Some(number));
        let place = self.stack.len();
        self.stack.push(node);
        let mut low = number;
        for next in self.edges.get(node).into_iter().flatten() {
            low = match self.numbers.get(next.as_str()) {
                None => low.min(self.visit(next)),
                Some(Some(seen)) => low.min(*seen),
                Some(None) => low,
            };
        }
        if low == number {
            let mut part: Vec<_> = self.stack.drain(place..).map(str::to_owned).collect();
            part.iter().for_each(|member| *self.numbers.get_mut(member.as_str()).expect("it was seen") = None);
            part.sort();
            if part.len() > 1 {
                self.found.push(part);
            }
        } else {
            self.numbers.insert(node, Some(low));
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(edges: &[(&str, &[&str])]) -> Vec<Vec<String>> {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        circles(&edges.iter().map(|(from, to)| ((*from).to_owned(), list(to))).collect())
    }

    #[test]
    fn circles_are_found_and_chains_are_not() {
        assert_eq!(of(&[("a", &["b"]), ("b", &["c"]), ("c", &[])]), [[""; 0]; 0]);
        assert_eq!(
            of(&[("a", &["b"]), ("b", &["c", "d"]), ("c", &["a"]), ("d", &["e"]), ("e", &["d"])]),
            [vec!["d", "e"], vec!["a", "b", "c"],]
        );
    }
}
