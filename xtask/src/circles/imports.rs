//! Finds which files of a crate import each other, by the paths in them.

use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// A module's path from the root of its crate.
type Name = Vec<String>;

/// The files of a crate, as modules.
#[derive(Debug, Default)]
pub struct Modules {
    files: BTreeMap<Name, File>,
}

/// The imports of a file.
#[derive(Debug, Default)]
struct File {
    /// Paths that start in its crate.
    paths: BTreeSet<Name>,
    /// Names that it imports from elsewhere in its crate, including re-exports.
    uses: BTreeMap<String, Name>,
    /// Names that it re-exports, and first names of paths in it.
    handed_on: BTreeSet<String>,
    begun: BTreeSet<String>,
}

impl File {
    /// What it imports for itself. Names that it only re-exports, as a module does for its submodules, do not count.
    fn imports(&self) -> impl Iterator<Item = &Name> {
        let own = |name: &&String| self.begun.contains(*name);
        self.paths.iter().chain(self.handed_on.iter().filter(own).filter_map(|name| self.uses.get(name)))
    }
}

impl Modules {
    /// Reads all files below a folder, without the tests in them.
    pub fn read(source: &Path) -> anyhow::Result<Self> {
        let mut modules = Self::default();
        modules.folder(source, &[])?;
        Ok(modules)
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The imports of each file. Declaring a submodule is not an import. A name that the root or another module
    /// re-exports counts as an import of the file that defines it.
    pub fn edges(&self) -> BTreeMap<String, Vec<String>> {
        let shown = |name: &Name| if name.is_empty() { "lib".to_owned() } else { name.join("/") };
        let edge = |(name, file): (&Name, &File)| {
            let targets: BTreeSet<_> = file.imports().filter_map(|path| self.home(path, 0)).collect();
            (shown(name), targets.into_iter().filter(|target| target != name).map(|target| shown(&target)).collect())
        };
        self.files.iter().map(edge).collect()
    }

    /// The file that a path leads to.
    fn home(&self, path: &[String], depth: usize) -> Option<Name> {
        let within = (0..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(within);
        // Names may be re-exported more than once, and in circles.
        if let Some(next) = rest.first().and_then(|name| self.files[module].uses.get(name)).filter(|_| depth < 8) {
            // A name of another crate leads nowhere else in this one.
            return self.home(next, depth + 1).filter(|home| home != module);
        }
        Some(module.to_vec())
    }

    fn folder(&mut self, folder: &Path, name: &[String]) -> anyhow::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let stem = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
            let own = [name, std::slice::from_ref(&stem)].concat();
            if path.is_dir() {
                self.folder(&path, &own)?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let own = if ["lib", "main", "mod"].contains(&stem.as_str()) { name.to_vec() } else { own };
                let text = fs::read_to_string(&path)?;
                self.file(&text, own).with_context(|| format!("cannot read {}", path.display()))?;
            }
        }
        Ok(())
    }

    fn file(&mut self, text: &str, name: Name) -> anyhow::Result<()> {
        let mut reader =
            Reader { name: name.clone(), file: self.files.remove(&name).unwrap_or_default(), hands_on: false };
        reader.visit_file(&syn::parse_file(text)?);
        self.files.insert(name, reader.file);
        Ok(())
    }
}

struct Reader {
    name: Name,
    file: File,
    /// Whether the current `use` re-exports its names.
    hands_on: bool,
}

impl Reader {
    /// A path from the root of the crate, if it starts there.
    fn rooted(&self, segments: &[String]) -> Option<Name> {
        let mut base = match segments.first()?.as_str() {
            "crate" => Vec::new(),
            "self" => self.name.clone(),
            "super" => self.name.split_last()?.1.to_vec(),
            _ => return None,
        };
        let mut rest = &segments[1..];
        while let [first, others @ ..] = rest
            && first == "super"
        {
            base.pop();
            rest = others;
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn tree(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, &with(path.ident.to_string())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, before)),
            UseTree::Name(name) if name.ident == "self" => self.named(before.last().cloned(), before),
            UseTree::Name(name) => self.named(Some(name.ident.to_string()), &with(name.ident.to_string())),
            UseTree::Rename(rename) => self.named(Some(rename.rename.to_string()), &with(rename.ident.to_string())),
            UseTree::Glob(_) => self.named(None, before),
        }
    }

    fn named(&mut self, name: Option<String>, path: &[String]) {
        // A submodule is named without `self`.
        let path = match path.first().map(String::as_str) {
            Some("crate" | "self" | "super") => self.rooted(path),
            _ => Some([&self.name, path].concat()),
        };
        let Some(path) = path else { return };
        if !self.hands_on {
            self.file.paths.insert(path.clone());
        }
        if let Some(name) = name {
            if self.hands_on {
                self.file.handed_on.insert(name.clone());
            }
            self.file.uses.insert(name, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(ItemMod { attrs, .. }) | Item::Use(ItemUse { attrs, .. }) => attrs,
            _ => return visit::visit_item(self, item),
        };
        if !attributes.iter().any(is_test) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.hands_on = !matches!(item.vis, Visibility::Inherited);
        self.tree(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.file.paths.extend(self.rooted(&segments).filter(|_| segments.len() > 1));
        self.file.begun.extend(segments.into_iter().next());
        visit::visit_path(self, path);
    }
}

fn is_test(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(files: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        let mut modules = Modules::default();
        for (name, text) in files {
            let name = name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            modules.file(text, name).expect("it is Rust");
        }
        modules.edges()
    }

    fn of(edges: &BTreeMap<String, Vec<String>>, file: &str) -> Vec<String> {
        edges[file].clone()
    }

    #[test]
    fn a_name_that_the_root_reexports_belongs_to_the_file_that_defines_it() {
        let edges = edges(&[
            ("", "mod a; mod b; pub use a::A;"),
            ("a", "pub struct A;"),
            ("b", "use crate::A; use crate::b::c::C; pub struct B;"),
            ("b/c", "use super::B; use super::super::a; pub struct C;"),
        ]);
        assert_eq!(of(&edges, "b"), ["a", "b/c"]);
        assert_eq!(of(&edges, "b/c"), ["a", "b"]);
        assert_eq!(of(&edges, "lib"), [""; 0], "it only hands A on");
    }

    #[test]
    fn a_name_that_is_reexported_and_used_is_an_import() {
        let edges = edges(&[("", "mod a; pub use a::A; fn f(_: A) {}"), ("a", "pub struct A;")]);
        assert_eq!(of(&edges, "lib"), ["a"]);
    }

    #[test]
    fn a_name_of_another_crate_is_not_an_import() {
        let edges = edges(&[("", "mod a; pub use other::Name;"), ("a", "use crate::Name; use other::More;")]);
        assert_eq!(of(&edges, "a"), [""; 0]);
    }

    #[test]
    fn paths_count_without_a_use_and_tests_do_not() {
        let edges = edges(&[
            ("", "mod a; mod b;"),
            ("a", "fn f() { crate::b::g(); std::mem::drop(1); } #[cfg(test)] mod tests { use crate::c::C; }"),
            ("b", "pub fn g() {}"),
            ("c", "pub struct C;"),
        ]);
        assert_eq!(of(&edges, "a"), ["b"]);
    }
}
