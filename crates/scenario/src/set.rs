//! Overrides: `link.rate=1gbps` changes one value of a scenario before it is read.

use crate::dom::{Entry, Node, Raw};
use crate::near::did_you_mean;
use crate::problem::{Place, Problem};
use crate::read::shortened;

/// One change to a scenario file, as written after `--set`: a path of keys, `=`, and a value.
///
/// The value is TOML; what is not is text, so that units need no quotes. In a list, a path goes on with the number of an
/// element from 0, with its `name`, or with `*` for all: `flows.0.count=10`, `flows.bulk.tcp=cubic`, `flows.*.ecn=true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// As it was written.
    pub text: String,
}

impl Override {
    /// An override as it was written. Whether it can be is told when a scenario is read with it.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }

    /// Changes the document; the text is source `source`.
    pub(crate) fn apply(&self, root: &mut Node, source: usize) -> Result<(), Problem> {
        let whole = Place { source, span: 0..self.text.len() };
        let Some((path, value)) = self.text.split_once('=') else {
            return Err(Problem::new("an override has no '='")
                .at(whole, "nothing is set here")
                .help("write KEY=VALUE, for example link.rate=1gbps"));
        };
        set(root, &segments(path, source, 0), Node::bare(value, source, path.len() + 1))
    }
}

impl<T: Into<String>> From<T> for Override {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// A key of a path.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    name: String,
    place: Place,
}

impl Segment {
    /// The same at another place.
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    pub fn place(&self) -> &Place {
        &self.place
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

/// Puts a value at a path, and makes the tables on the way.
pub(crate) fn set(node: &mut Node, path: &[Segment], value: Node) -> Result<(), Problem> {
    let Some((first, rest)) = path.split_first() else {
        *node = value;
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
    if let Raw::List(items) = &mut node.value {
        return match choose(items, first)? {
            Chosen::One(index) => set(&mut items[index], rest, value),
            Chosen::All => items.iter_mut().try_for_each(|item| set(item, rest, value.clone())),
        };
    }
    // A plain name that gets parameters: `discipline = "pie"` and then `discipline.pie.target=20ms`.
    if !matches!(node.value, Raw::Table(_)) {
        node.value = Raw::Table(Vec::new());
    }
    let Raw::Table(entries) = &mut node.value else { return Ok(()) };
    let index = entries.iter().position(|entry| entry.name == first.name).unwrap_or_else(|| {
        let node = Node { place: first.place.clone(), value: Raw::Table(Vec::new()) };
        entries.push(Entry { name: first.name.clone(), key: first.place.clone(), node });
        entries.len() - 1
    });
    if rest.is_empty() {
        entries[index].key = first.place.clone();
    }
    set(&mut entries[index].node, rest, value)
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
