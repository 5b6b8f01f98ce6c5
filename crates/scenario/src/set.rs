//! Overrides: `link.rate=1gbps` changes one value of a scenario before it is read.

use crate::aqm;
use crate::describe::{PathLevel, TableInfo, table_info};
use crate::dom::{Entry, Node, TomlValue};
use crate::keys::Table;
use crate::read::{Findings, shortened};
use crate::scenario::Scenario;
use crate::sweep;
use queuescope_text::did_you_mean;
use queuescope_text::{Place, Problem};
use std::ops::Range;
use std::sync::LazyLock;

/// One change to a scenario file, as written after `--set`: a path of keys, `=`, and a value.
///
/// The value is TOML; anything else is text, so that units need no quotes. In a list, the next part of the path is the
/// number of an element from 0, its `name`, or `*` for all: `flows.0.count=10`, `flows.bulk.tcp=cubic`,
/// `flows.*.ecn=true`.
///
/// If keys exclude each other (`link.rate` and `link.trace`), the override replaces the other key. With `*`, elements
/// that have the other key are not changed (`flows.*.tcp=bbr`: those with `udp`); it is an error if all elements have
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// The override as the user wrote it.
    pub text: String,
    kind: OverrideKind,
}

/// What an override does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OverrideKind {
    /// Sets a value.
    Set,
    /// Sets a list of the sweep.
    Sweep,
    /// Sets a value for one run of a sweep.
    Cell,
    /// Sets the discipline or switch program of `link`, from this command-line option.
    Aqm(&'static str),
    /// Sets a parameter of this discipline or switch program of `link`, from this command-line option.
    Parameter { option: &'static str, name: &'static str },
}

impl Override {
    /// Creates an override that sets a value. Errors in it are reported when a scenario is read with it.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: OverrideKind::Set }
    }

    /// Creates an override that sets a list of the scenario's sweep, as written after `--sweep`: a path of keys, `=`,
    /// and values separated by commas. It replaces a list of the same path in the file.
    pub fn sweep(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: OverrideKind::Sweep }
    }

    /// Creates an override that sets a value for one run of a sweep. It is an error if it replaces another such value.
    pub(crate) fn cell(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: OverrideKind::Cell }
    }

    /// Creates an override that sets the discipline or switch program of `link`, as written after `option`: a name with
    /// parameters, such as `codel,target=10ms`.
    pub fn aqm(option: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: OverrideKind::Aqm(option) }
    }

    /// Creates an override that sets a parameter of the discipline or switch program of `link` with this name, as written after `option`:
    /// `target=10ms`.
    pub(crate) fn parameter(option: &'static str, name: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: OverrideKind::Parameter { option, name } }
    }

    /// The command-line option of the override, for messages.
    pub(crate) fn option(&self) -> &'static str {
        match self.kind {
            OverrideKind::Set | OverrideKind::Cell => "--set",
            OverrideKind::Sweep => "--sweep",
            OverrideKind::Aqm(option) | OverrideKind::Parameter { option, .. } => option,
        }
    }

    /// Applies overrides to the document in order. The first of them is source 1.
    pub(crate) fn apply_all(overrides: &[Self], root: &mut Node, findings: &mut Findings) {
        for (index, change) in overrides.iter().enumerate() {
            match change.apply(root, index + 1) {
                Ok(replaced) if change.kind == OverrideKind::Cell => {
                    let of_cell =
                        overrides[..index].iter().enumerate().filter(|(_, other)| other.kind == OverrideKind::Cell);
                    for (_, other) in of_cell.filter(|(n, _)| replaced.iter().any(|entry| entry.node.is_from(n + 1))) {
                        let place = Place { source: index + 1, span: 0..change.text.len() };
                        findings.problem(|| {
                            Problem::new("two lists of the sweep set the same value")
                                .at(place, format!("replaces {}", shortened(&other.text)))
                                .help("sweep over one of them, or run each sweep separately")
                        });
                    }
                }
                Ok(_) => {}
                Err(problem) => findings.problem(|| problem),
            }
        }
    }

    /// Applies the override, whose text is source `source`. Returns the entries that it replaced.
    fn apply(&self, root: &mut Node, source: usize) -> Result<Vec<Entry>, Problem> {
        let whole = Place { source, span: 0..self.text.len() };
        match (self.kind, self.text.split_once('=')) {
            (OverrideKind::Aqm(_), _) => aqm::apply(&self.text, source, root),
            (OverrideKind::Parameter { name, .. }, Some((key, value))) => {
                let value = Node::bare(value, source, key.len() + 1);
                set(root, &aqm::path(name, key, &Place { source, span: 0..0 }), value)
            }
            (OverrideKind::Parameter { .. }, None) => {
                Err(Problem::new("a parameter has no '='").at(whole, "nothing is set here").help("write KEY=VALUE"))
            }
            (OverrideKind::Set | OverrideKind::Cell, Some((path, value))) => {
                set(root, &segments(path, source, 0), Node::bare(value, source, path.len() + 1))
            }
            (OverrideKind::Set | OverrideKind::Cell, None) => Err(Problem::new("an override has no '='")
                .at(whole, "nothing is set here")
                .help("write KEY=VALUE, for example link.rate=1gbps")),
            (OverrideKind::Sweep, Some((path, values))) => {
                let place = Place { source, span: path.len() + 1..self.text.len() };
                let values = list(values, source, path.len() + 1);
                let key = Place { source, span: 0..path.len() };
                sweep::replace(root, path.trim(), key, Node { place, value: TomlValue::List(values) })?;
                Ok(Vec::new())
            }
            (OverrideKind::Sweep, None) => Err(Problem::new("a sweep has no '='")
                .at(whole, "nothing is swept here")
                .help("write KEY=VALUE,VALUE, for example link.rate=10mbps,100mbps")),
        }
    }
}

impl<T: Into<String>> From<T> for Override {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Parses values separated by commas. They start at `offset` in `source`.
fn list(text: &str, source: usize, offset: usize) -> Vec<Node> {
    parts(text).into_iter().map(|part| Node::bare(&text[part.clone()], source, offset + part.start)).collect()
}

/// The ranges of the parts of a text that are separated by commas, except for commas in brackets and quotes.
pub(crate) fn parts(text: &str) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) => quote = (open != letter).then_some(open),
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(start..text.len());
    }
    parts
}

/// A key of a path.
#[derive(Debug, Clone)]
pub(crate) struct PathSegment {
    name: String,
    place: Place,
}

impl PathSegment {
    pub fn new(name: &str, place: Place) -> Self {
        Self { name: name.to_owned(), place }
    }

    /// The same key with another place.
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether the segment can only select elements of a list.
    fn selects_elements(&self) -> bool {
        self.name == "*" || self.name.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The keys of a path that starts at `offset` in `source`.
pub(crate) fn segments(path: &str, source: usize, offset: usize) -> Vec<PathSegment> {
    let mut start = offset;
    path.split('.')
        .map(|part| {
            let name = part.trim();
            let at = start + (part.len() - part.trim_start().len());
            start += part.len() + 1;
            let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
            PathSegment { name: name.to_owned(), place: Place { source, span: at..at + name.len() } }
        })
        .collect()
}

/// The most keys of a path; real paths are much shorter.
const DEEPEST: usize = 16;

/// All keys of a scenario, to follow paths.
static KEYS: LazyLock<TableInfo> = LazyLock::new(|| table_info(&Scenario::fresh()));

/// Sets the value at a path, and creates the tables on the way. Removes entries that it excludes, and returns them.
pub(crate) fn set(root: &mut Node, path: &[PathSegment], value: Node) -> Result<Vec<Entry>, Problem> {
    let mut replaced = Vec::new();
    put(root, path, value, PathLevel::Table(&KEYS, false), &mut replaced)?;
    Ok(replaced)
}

fn put(
    node: &mut Node,
    path: &[PathSegment],
    value: Node,
    level: PathLevel<'_>,
    replaced: &mut Vec<Entry>,
) -> Result<(), Problem> {
    let Some((first, rest)) = path.split_first() else {
        let old = std::mem::replace(node, value);
        if !matches!((&old.value, &node.value), (TomlValue::Text(old), TomlValue::Text(new)) if old == new) {
            replaced.push(Entry { name: String::new(), key: old.place.clone(), node: old });
        }
        return Ok(());
    };
    if first.name.is_empty() {
        return Err(Problem::new("an override has no key")
            .at(first.place.clone(), "a key is missing here")
            .help("write KEY=VALUE, for example link.rate=1gbps"));
    }
    if path.len() > DEEPEST {
        return Err(Problem::new("the path is too long").at(first.place.clone(), "no key is nested this deeply"));
    }
    if let TomlValue::List(items) = &mut node.value
        && (first.selects_elements()
            || items.is_empty()
            || items.iter().any(|item| matches!(item.value, TomlValue::Table(_))))
    {
        return match choose(items, first)? {
            Elements::One(index) => put(&mut items[index], rest, value, level, replaced),
            Elements::All => {
                let others: Vec<_> = items.iter().map(|item| has_instead(item, rest, level)).collect();
                if let Some(Some(key)) = others.first()
                    && others.iter().all(Option::is_some)
                {
                    return Err(all_have_another(key));
                }
                let mut free = items.iter_mut().zip(others).filter(|(_, other)| other.is_none());
                free.try_for_each(|(item, _)| put(item, rest, value.clone(), level, replaced))
            }
        };
    }
    // A plain name gets parameters (`discipline = "pie"` and then `discipline.pie.target=20ms`), or a table replaces a
    // list of points.
    if !matches!(node.value, TomlValue::Table(_)) {
        let old =
            Node { place: node.place.clone(), value: std::mem::replace(&mut node.value, TomlValue::Table(Vec::new())) };
        if chosen(&old) != Some(first.name.as_str()) {
            replaced.push(Entry { name: String::new(), key: old.place.clone(), node: old });
        }
    }
    let TomlValue::Table(entries) = &mut node.value else { return Ok(()) };
    replaced.extend(entries.extract_if(.., |other| level.excludes(&first.name, &other.name)));
    let own_name = rest.first().map_or_else(|| chosen(&value), |next| Some(next.name.as_str()));
    for (own, (rival, idle)) in level.rivals(&first.name) {
        if own_name.is_none_or(|it| it == own) {
            continue;
        }
        let others = entries.extract_if(.., |other| other.name == rival);
        replaced.extend(others.filter(|other| chosen(&other.node) != Some(idle)));
        // Written explicitly, because otherwise another value could be inherited.
        let node = Node { place: first.place.clone(), value: TomlValue::Text(idle.to_owned()) };
        entries.push(Entry { name: rival.to_owned(), key: first.place.clone(), node });
    }
    let index = entries.iter().position(|entry| entry.name == first.name).unwrap_or_else(|| {
        let node = Node { place: first.place.clone(), value: TomlValue::Table(Vec::new()) };
        entries.push(Entry { name: first.name.clone(), key: first.place.clone(), node });
        entries.len() - 1
    });
    if rest.is_empty() {
        entries[index].key = first.place.clone();
    }
    put(&mut entries[index].node, rest, value, level.below(&first.name), replaced)
}

/// The key of a path that is excluded by another key that the table has.
fn has_instead<'a>(node: &Node, path: &'a [PathSegment], level: PathLevel<'_>) -> Option<&'a PathSegment> {
    let (first, rest) = path.split_first()?;
    let TomlValue::Table(entries) = &node.value else { return None };
    let written = |name: &str| entries.iter().find(|entry| entry.name == name);
    if level.has_instead(&first.name, |name| written(name).is_some()) {
        return Some(first);
    }
    has_instead(&written(&first.name)?.node, rest, level.below(&first.name))
}

fn all_have_another(key: &PathSegment) -> Problem {
    let name = &key.name;
    Problem::new(format!("no element has `{name}`, and * does not replace other keys"))
        .at(key.place.clone(), "each has another key instead")
        .help(format!("choose the element that gets `{name}`: by its number from 0, or by its `name`"))
}

/// The name that a choice is written with.
pub(crate) fn chosen(node: &Node) -> Option<&str> {
    match &node.value {
        TomlValue::Text(name) => Some(name),
        TomlValue::Table(entries) => entries.first().map(|entry| entry.name.as_str()),
        _ => None,
    }
}

enum Elements {
    One(usize),
    All,
}

/// The elements of a list that a segment selects.
fn choose(items: &[Node], segment: &PathSegment) -> Result<Elements, Problem> {
    if segment.name == "*" {
        return Ok(Elements::All);
    }
    let problem = |message: String| Problem::new(message).at(segment.place.clone(), "unknown element");
    if segment.name.bytes().all(|byte| byte.is_ascii_digit()) {
        let index = segment.name.parse().unwrap_or(usize::MAX);
        return if index < items.len() {
            Ok(Elements::One(index))
        } else {
            let help = match items.len() {
                0 => "the list is empty".to_owned(),
                1 => "the list has one element, number 0".to_owned(),
                count => format!("elements are numbered from 0 to {}", count - 1),
            };
            Err(problem(format!("the list has no element {}", shortened(&segment.name))).help(help))
        };
    }
    let names: Vec<_> = items.iter().map(name).collect();
    match names.iter().position(|name| *name == Some(segment.name.as_str())) {
        Some(index) => Ok(Elements::One(index)),
        None => {
            let known: Vec<_> = names.into_iter().flatten().collect();
            let help = did_you_mean(&segment.name, known.iter().copied())
                .unwrap_or_else(|| "choose an element by its number from 0 or its `name`, or all with *".to_owned());
            Err(problem(format!("no element is named '{}'", segment.name)).help(help))
        }
    }
}

fn name(node: &Node) -> Option<&str> {
    let TomlValue::Table(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.name == "name").and_then(|entry| match &entry.node.value {
        TomlValue::Text(text) => Some(text.as_str()),
        _ => None,
    })
}
