//! Overrides: `link.rate=1gbps` changes one value of a scenario before it is read.

use crate::aqm;
use crate::describe::{Level, TableInfo, table_info};
use crate::dom::{Entry, Node, Raw};
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
/// The value is TOML; what is not is text, so that units need no quotes. In a list, a path goes on with the number of
/// an element from 0, with its `name`, or with `*` for all: `flows.0.count=10`, `flows.bulk.tcp=cubic`,
/// `flows.*.ecn=true`.
///
/// Of keys that cannot stand beside each other (`link.rate` and `link.trace`) the one that is set last takes the
/// other's place; but with `*`, elements that have the other are left alone (`flows.*.tcp=bbr`: those with `udp`), and
/// that all have it is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// As it was written.
    pub text: String,
    kind: Kind,
}

/// What an override does with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It has this value.
    Set,
    /// It is swept over these values.
    Sweep,
    /// It has this value in one run of a sweep.
    Cell,
    /// It is what manages the queue of `link`, given by this option.
    Aqm(&'static str),
}

impl Override {
    /// An override as it was written. Whether it can be is told when a scenario is read with it.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Set }
    }

    /// A list of the scenario's sweep, as written after `--sweep`: a path of keys, `=`, and values with commas between
    /// them. A list of the same path that the file has goes.
    pub fn sweep(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Sweep }
    }

    /// A value of a run of a sweep, as [`Self::new`]. It does not take the place of another such value.
    pub(crate) fn cell(text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Cell }
    }

    /// What manages the queue of `link`, as written after `option`: a name with parameters, such as `codel,target=10ms`.
    pub fn aqm(option: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), kind: Kind::Aqm(option) }
    }

    /// The option that it was given with, as messages name it.
    pub(crate) fn option(&self) -> &'static str {
        match self.kind {
            Kind::Set | Kind::Cell => "--set",
            Kind::Sweep => "--sweep",
            Kind::Aqm(option) => option,
        }
    }

    /// Makes them in the document, in order: the first of them is source 1.
    pub(crate) fn apply_all(overrides: &[Self], root: &mut Node, findings: &mut Findings) {
        for (index, change) in overrides.iter().enumerate() {
            match change.apply(root, index + 1) {
                Ok(gone) if change.kind == Kind::Cell => {
                    let of_cell = overrides[..index].iter().enumerate().filter(|(_, other)| other.kind == Kind::Cell);
                    for (_, other) in of_cell.filter(|(n, _)| gone.iter().any(|entry| entry.node.is_from(n + 1))) {
                        let place = Place { source: index + 1, span: 0..change.text.len() };
                        findings.problem(|| {
                            Problem::new("two lists of the sweep cannot be in one run")
                                .at(place, format!("takes the place of {}", shortened(&other.text)))
                                .help("sweep over one of them, or run each sweep by itself")
                        });
                    }
                }
                Ok(_) => {}
                Err(problem) => findings.problem(|| problem),
            }
        }
    }

    /// Changes the document; the text is source `source`. What made room is returned.
    fn apply(&self, root: &mut Node, source: usize) -> Result<Vec<Entry>, Problem> {
        let whole = Place { source, span: 0..self.text.len() };
        match (self.kind, self.text.split_once('=')) {
            (Kind::Aqm(_), _) => aqm::apply(&self.text, source, root),
            (Kind::Set | Kind::Cell, Some((path, value))) => {
                set(root, &segments(path, source, 0), Node::bare(value, source, path.len() + 1))
            }
            (Kind::Set | Kind::Cell, None) => Err(Problem::new("an override has no '='")
                .at(whole, "nothing is set here")
                .help("write KEY=VALUE, for example link.rate=1gbps")),
            (Kind::Sweep, Some((path, values))) => {
                let place = Place { source, span: path.len() + 1..self.text.len() };
                let values = list(values, source, path.len() + 1);
                let key = Place { source, span: 0..path.len() };
                sweep::replace(root, path.trim(), key, Node { place, value: Raw::List(values) })?;
                Ok(Vec::new())
            }
            (Kind::Sweep, None) => Err(Problem::new("a sweep has no '='")
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

/// Values with commas between them. They start at `offset` in `source`.
fn list(text: &str, source: usize, offset: usize) -> Vec<Node> {
    parts(text).into_iter().map(|part| Node::bare(&text[part.clone()], source, offset + part.start)).collect()
}

/// Where the parts of a text are that have commas between them, those inside of brackets and quotes left alone.
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
pub(crate) struct Segment {
    name: String,
    place: Place,
}

impl Segment {
    pub fn new(name: &str, place: Place) -> Self {
        Self { name: name.to_owned(), place }
    }

    /// The same at another place.
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether it can only mean elements of a list.
    fn chooses(&self) -> bool {
        self.name == "*" || self.name.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// The keys of a path that starts at `offset` in `source`.
pub(crate) fn segments(path: &str, source: usize, offset: usize) -> Vec<Segment> {
    let mut start = offset;
    path.split('.')
        .map(|part| {
            let name = part.trim();
            let at = start + (part.len() - part.trim_start().len());
            start += part.len() + 1;
            let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
            Segment { name: name.to_owned(), place: Place { source, span: at..at + name.len() } }
        })
        .collect()
}

/// The deepest path that makes sense is far shorter.
const DEEPEST: usize = 16;

/// What may be written where, for paths.
static KEYS: LazyLock<TableInfo> = LazyLock::new(|| table_info(&Scenario::fresh()));

/// Puts a value at a path, and makes the tables on the way. What cannot stand beside it makes room, and is returned.
pub(crate) fn set(root: &mut Node, path: &[Segment], value: Node) -> Result<Vec<Entry>, Problem> {
    let mut gone = Vec::new();
    put(root, path, value, Level::Table(&KEYS, false), &mut gone)?;
    Ok(gone)
}

fn put(node: &mut Node, path: &[Segment], value: Node, level: Level<'_>, gone: &mut Vec<Entry>) -> Result<(), Problem> {
    let Some((first, rest)) = path.split_first() else {
        let old = std::mem::replace(node, value);
        if !matches!((&old.value, &node.value), (Raw::Text(old), Raw::Text(new)) if old == new) {
            gone.push(Entry { name: String::new(), key: old.place.clone(), node: old });
        }
        return Ok(());
    };
    if first.name.is_empty() {
        return Err(Problem::new("an override names no key")
            .at(first.place.clone(), "a key is missing here")
            .help("write KEY=VALUE, for example link.rate=1gbps"));
    }
    if path.len() > DEEPEST {
        return Err(Problem::new("the path is too long").at(first.place.clone(), "no key is so deep"));
    }
    if let Raw::List(items) = &mut node.value
        && (first.chooses() || items.is_empty() || items.iter().any(|item| matches!(item.value, Raw::Table(_))))
    {
        return match choose(items, first)? {
            Chosen::One(index) => put(&mut items[index], rest, value, level, gone),
            Chosen::All => {
                let others: Vec<_> = items.iter().map(|item| has_instead(item, rest, level)).collect();
                if let Some(Some(key)) = others.first()
                    && others.iter().all(Option::is_some)
                {
                    return Err(all_have_another(key));
                }
                let mut free = items.iter_mut().zip(others).filter(|(_, other)| other.is_none());
                free.try_for_each(|(item, _)| put(item, rest, value.clone(), level, gone))
            }
        };
    }
    // A plain name that gets parameters: `discipline = "pie"` and then `discipline.pie.target=20ms`. And a list of points
    // where a table may stand too.
    if !matches!(node.value, Raw::Table(_)) {
        let old = Node { place: node.place.clone(), value: std::mem::replace(&mut node.value, Raw::Table(Vec::new())) };
        if chosen(&old) != Some(first.name.as_str()) {
            gone.push(Entry { name: String::new(), key: old.place.clone(), node: old });
        }
    }
    let Raw::Table(entries) = &mut node.value else { return Ok(()) };
    gone.extend(entries.extract_if(.., |other| level.excludes(&first.name, &other.name)));
    let own_name = rest.first().map_or_else(|| chosen(&value), |next| Some(next.name.as_str()));
    for (own, (rival, idle)) in level.rivals(&first.name) {
        if own_name.is_none_or(|it| it == own) {
            continue;
        }
        let others = entries.extract_if(.., |other| other.name == rival);
        gone.extend(others.filter(|other| chosen(&other.node) != Some(idle)));
        // It could be inherited otherwise.
        let node = Node { place: first.place.clone(), value: Raw::Text(idle.to_owned()) };
        entries.push(Entry { name: rival.to_owned(), key: first.place.clone(), node });
    }
    let index = entries.iter().position(|entry| entry.name == first.name).unwrap_or_else(|| {
        let node = Node { place: first.place.clone(), value: Raw::Table(Vec::new()) };
        entries.push(Entry { name: first.name.clone(), key: first.place.clone(), node });
        entries.len() - 1
    });
    if rest.is_empty() {
        entries[index].key = first.place.clone();
    }
    put(&mut entries[index].node, rest, value, level.below(&first.name), gone)
}

/// The key of a path in whose place a table has another, of which only one can be.
fn has_instead<'a>(node: &Node, path: &'a [Segment], level: Level<'_>) -> Option<&'a Segment> {
    let (first, rest) = path.split_first()?;
    let Raw::Table(entries) = &node.value else { return None };
    let written = |name: &str| entries.iter().find(|entry| entry.name == name);
    if level.has_instead(&first.name, |name| written(name).is_some()) {
        return Some(first);
    }
    has_instead(&written(&first.name)?.node, rest, level.below(&first.name))
}

fn all_have_another(key: &Segment) -> Problem {
    let name = &key.name;
    Problem::new(format!("no element has `{name}`, and with * it takes no other key's place"))
        .at(key.place.clone(), "each has another in its place")
        .help(format!("say which is to have `{name}`: by its number from 0, or by its `name`"))
}

/// The name of a choice.
pub(crate) fn chosen(node: &Node) -> Option<&str> {
    match &node.value {
        Raw::Text(name) => Some(name),
        Raw::Table(entries) => entries.first().map(|entry| entry.name.as_str()),
        _ => None,
    }
}

enum Chosen {
    One(usize),
    All,
}

/// Which elements of a list a segment means.
fn choose(items: &[Node], segment: &Segment) -> Result<Chosen, Problem> {
    if segment.name == "*" {
        return Ok(Chosen::All);
    }
    let problem = |message: String| Problem::new(message).at(segment.place.clone(), "there is no such element");
    if segment.name.bytes().all(|byte| byte.is_ascii_digit()) {
        let index = segment.name.parse().unwrap_or(usize::MAX);
        return if index < items.len() {
            Ok(Chosen::One(index))
        } else {
            let help = match items.len() {
                0 => "the list is empty".to_owned(),
                1 => "there is one, with the number 0".to_owned(),
                count => format!("elements are counted from 0 to {}", count - 1),
            };
            Err(problem(format!("the list has no element {}", shortened(&segment.name))).help(help))
        };
    }
    let names: Vec<_> = items.iter().map(name).collect();
    match names.iter().position(|name| *name == Some(segment.name.as_str())) {
        Some(index) => Ok(Chosen::One(index)),
        None => {
            let known: Vec<_> = names.into_iter().flatten().collect();
            let help = did_you_mean(&segment.name, known.iter().copied())
                .unwrap_or_else(|| "name an element by its number from 0, by its `name`, or all by *".to_owned());
            Err(problem(format!("no element is named '{}'", segment.name)).help(help))
        }
    }
}

fn name(node: &Node) -> Option<&str> {
    let Raw::Table(entries) = &node.value else { return None };
    entries.iter().find(|entry| entry.name == "name").and_then(|entry| match &entry.node.value {
        Raw::Text(text) => Some(text.as_str()),
        _ => None,
    })
}
