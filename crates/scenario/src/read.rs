//! Reading: turns the tree of a file into typed values, and collects all problems.

use crate::dom::{Entry, Node, TomlValue};
use crate::keys::{Bounded, Choice, Field, KeyVisitor, Table};
use queuescope_text::did_you_mean;
use queuescope_text::{Place, Problem};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The problems found while reading, and the places of values.
#[derive(Debug)]
pub(crate) struct Findings {
    /// Returns the headers of all tables that can have a key.
    tables_with: fn(&str) -> Vec<String>,
    pub problems: Vec<Problem>,
    /// The number of further problems beyond [`MOST_PROBLEMS`].
    pub more: usize,
    /// The places of the values in the file, by their paths (`flows.0.count`).
    places: BTreeMap<String, Place>,
    /// The paths of values that could not be read. Problems that follow from them are not reported.
    failed: BTreeSet<String>,
    path: String,
    /// The bounds of the value that is being read, for types with wider bounds.
    pub bounds: Option<(String, String)>,
}

/// The most problems that are shown.
const MOST_PROBLEMS: usize = 20;

impl Findings {
    /// Creates empty findings. `tables_with` returns the headers of tables that can have a key.
    pub fn new(tables_with: fn(&str) -> Vec<String>) -> Self {
        Self {
            tables_with,
            problems: Vec::new(),
            more: 0,
            places: BTreeMap::new(),
            failed: BTreeSet::new(),
            path: String::new(),
            bounds: None,
        }
    }

    /// Reports a problem with the value that is being read, which then counts as failed.
    pub fn problem(&mut self, problem: impl FnOnce() -> Problem) {
        self.failed.insert(self.path.clone());
        self.report(problem);
    }

    /// Reports a problem without marking a value as failed.
    pub fn report(&mut self, problem: impl FnOnce() -> Problem) {
        if self.problems.len() < MOST_PROBLEMS {
            // One override may set many values (`flows.*.tcp`), with the same problem for each.
            let problem = problem();
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        } else {
            self.more += 1;
        }
    }

    /// The number of problems.
    pub fn count(&self) -> usize {
        self.problems.len() + self.more
    }

    /// The place of the value at a path, or of the nearest table around it that the file has.
    pub fn place(&self, path: &str) -> Place {
        let mut path = path;
        loop {
            if let Some(place) = self.places.get(path) {
                return place.clone();
            }
            match path.rsplit_once('.') {
                Some((shorter, _)) => path = shorter,
                None => return self.places.get("").cloned().unwrap_or(Place { source: 0, span: 0..0 }),
            }
        }
    }

    /// Whether the file has a value at a path.
    pub fn is_written(&self, path: &str) -> bool {
        self.places.contains_key(path)
    }

    /// Whether the value at a path could not be read.
    pub fn has_failed(&self, path: &str) -> bool {
        self.failed.contains(path)
    }

    /// The key whose value is being read.
    pub fn key(&self) -> &str {
        let key = self.path.rsplit('.').find(|part| !part.bytes().all(|byte| byte.is_ascii_digit()));
        key.unwrap_or("the scenario")
    }

    /// Reads a value below the current path.
    pub fn inside<T>(&mut self, name: &str, place: &Place, read: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.places.insert(self.path.clone(), place.clone());
        let result = read(self);
        self.path.truncate(length);
        result
    }

    fn joined(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }
}

/// Reads a table; keys that are absent keep their values.
pub(crate) fn read_table<T: Table>(table: &mut T, node: &Node, findings: &mut Findings) {
    read_keys(node, findings, |reader| table.keys(reader));
}

/// Reads a choice: a name, or a table of one name.
pub(crate) fn read_choice<C: Choice>(choice: &mut C, node: &Node, findings: &mut Findings) {
    let (name, place, parameters) = match &node.value {
        TomlValue::Text(name) => (name, &node.place, None),
        TomlValue::Table(entries) => match entries.as_slice() {
            [only] => (&only.name, &only.key, Some(&only.node)),
            [] => return findings.problem(|| problem_of::<C>(&node.place, "the table is empty")),
            [first, second, ..] => {
                return findings.problem(|| {
                    Problem::new(format!("only one {} is allowed", C::WHAT))
                        .at(second.key.clone(), format!("a second one, besides `{}`", first.name))
                        .at(first.key.clone(), "the first")
                        .help("keep one of them")
                });
            }
        },
        _ => return findings.problem(|| problem_of::<C>(&node.place, &format!("this is {}", node.kind()))),
    };
    let options = choice.options();
    let Some(option) = options.iter().find(|option| option.name() == name) else {
        let names: Vec<_> = options.iter().map(Choice::name).collect();
        return findings.problem(|| {
            let known = format!("there are {}", names.join(", "));
            let near = did_you_mean(name, names.iter().copied());
            Problem::new(format!("no {} is named '{}'", C::WHAT, shortened(name)))
                .at(place.clone(), format!("not {}", with_article(C::WHAT)))
                .help(near.map_or(known.clone(), |near| format!("{near} {known}")))
        });
    };
    let mut chosen = option.clone();
    if let Some(parameters) = parameters {
        findings.inside(option.name(), &parameters.place, |findings| {
            read_keys(parameters, findings, |reader| chosen.keys(reader));
        });
    }
    *choice = chosen;
}

fn problem_of<C: Choice>(place: &Place, label: &str) -> Problem {
    let names: Vec<_> = C::fresh().options().iter().map(Choice::name).collect();
    Problem::new(format!("{} is a name, or a table of a name and its parameters", with_article(C::WHAT)))
        .at(place.clone(), label.to_owned())
        .help(format!("there are {}", names.join(", ")))
}

/// Reads a list of tables.
fn read_list<T: Table>(list: &mut Vec<T>, fresh: impl Fn(usize) -> T, node: &Node, findings: &mut Findings) {
    let key = findings.key().to_owned();
    let TomlValue::List(items) = &node.value else {
        return findings.problem(|| {
            Problem::new(format!("`{key}` is a list of tables"))
                .at(node.place.clone(), format!("this is {}", node.kind()))
                .help(format!("write [[{key}]], in double brackets, for each"))
        });
    };
    list.clear();
    for (index, item) in items.iter().enumerate() {
        let mut element = fresh(index);
        findings.inside(&index.to_string(), &item.place, |findings| read_table(&mut element, item, findings));
        list.push(element);
    }
}

fn read_keys(node: &Node, findings: &mut Findings, keys: impl FnOnce(&mut Reader<'_>)) {
    let TomlValue::Table(entries) = &node.value else {
        let key = findings.key().to_owned();
        return findings.problem(|| {
            Problem::new(format!("`{key}` is a table of keys and values"))
                .at(node.place.clone(), format!("this is {}", node.kind()))
        });
    };
    let mut reader = Reader { entries, place: &node.place, known: Vec::new(), findings };
    keys(&mut reader);
    reader.unknown();
}

/// The visitor that reads a table.
struct Reader<'a> {
    entries: &'a [Entry],
    place: &'a Place,
    known: Vec<&'static str>,
    findings: &'a mut Findings,
}

impl Reader<'_> {
    fn find(&mut self, name: &'static str) -> Option<&Entry> {
        self.known.push(name);
        self.entries.iter().find(|entry| entry.name == name)
    }

    fn present(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Reports keys that the table cannot have.
    fn unknown(self) {
        for entry in self.entries.iter().filter(|entry| !self.known.contains(&entry.name.as_str())) {
            let table = if self.findings.path.is_empty() { "" } else { self.findings.key() }.to_owned();
            let (known, tables_with) = (&self.known, self.findings.tables_with);
            self.findings.report(|| {
                let owner = if table.is_empty() { "a scenario".to_owned() } else { format!("`{table}`") };
                let mut sorted = known.clone();
                sorted.sort_unstable();
                sorted.dedup();
                let elsewhere = || {
                    let tables = tables_with(&entry.name);
                    (!tables.is_empty()).then(|| format!("this key exists in {}", tables.join(", ")))
                };
                let near = did_you_mean(&entry.name, known.iter().copied()).or_else(elsewhere);
                let help = near.unwrap_or_else(|| match sorted.len() {
                    0 => format!("{owner} has no parameters"),
                    _ => format!("{owner} has {}", sorted.join(", ")),
                });
                Problem::new(format!("{owner} has no key '{}'", shortened(&entry.name)))
                    .at(entry.key.clone(), "unknown key")
                    .help(help)
            });
        }
    }
}

impl KeyVisitor for Reader<'_> {
    fn key<T: Field>(&mut self, name: &'static str, field: &mut T, _doc: &'static str) {
        self.known.push(name);
        if let Some(entry) = self.entries.iter().find(|entry| entry.name == name) {
            self.findings.inside(name, &entry.node.place, |findings| field.read(&entry.node, findings));
        }
    }

    fn within<T: Bounded>(&mut self, name: &'static str, field: &mut T, bounds: RangeInclusive<T>, doc: &'static str) {
        let show = |value: &T| value.write().inline().trim_matches('"').to_owned();
        let default = field.clone();
        self.findings.bounds = Some((show(bounds.start()), show(bounds.end())));
        self.key(name, field, doc);
        self.findings.bounds = None;
        if bounds.contains(field) {
            return;
        }
        let read = std::mem::replace(field, default);
        let Some(entry) = self.present(name) else { return };
        let place = entry.node.place.clone();
        self.findings.inside(name, &place, |findings| {
            findings.problem(|| {
                let (low, high) = (show(bounds.start()), show(bounds.end()));
                let wrong = if read > *bounds.end() { format!("above {high}") } else { format!("below {low}") };
                Problem::new(format!("`{name}` is out of bounds"))
                    .at(place.clone(), wrong)
                    .help(format!("use {low} to {high}"))
            });
        });
    }

    fn maybe<T: Field>(&mut self, name: &'static str, field: &mut Option<T>, doc: &'static str) {
        if self.find(name).is_some() {
            let mut value = field.take().unwrap_or_else(T::blank);
            self.key(name, &mut value, doc);
            *field = Some(value);
        }
    }

    fn inherited<T: Field>(&mut self, name: &'static str, field: &mut T, from: &T, doc: &'static str) {
        *field = from.clone();
        self.key(name, field, doc);
    }

    fn list<T: Table>(
        &mut self,
        name: &'static str,
        field: &mut Vec<T>,
        fresh: impl Fn(usize) -> T,
        _inherited: bool,
        _doc: &'static str,
    ) {
        self.known.push(name);
        if let Some(entry) = self.entries.iter().find(|entry| entry.name == name) {
            self.findings.inside(name, &entry.node.place, |findings| read_list(field, fresh, &entry.node, findings));
        }
    }

    fn one_of(&mut self, names: &'static [&'static str], required: bool) {
        let mut present = names.iter().filter_map(|name| self.present(name));
        let (first, second) =
            (present.next().map(|entry| entry.key.clone()), present.next().map(|entry| entry.key.clone()));
        let list = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        match (first, second) {
            (Some(first), Some(second)) => self.findings.report(|| {
                Problem::new(format!("only one of {list} is allowed"))
                    .at(second, "the second")
                    .at(first, "the first")
                    .help("keep one of them")
            }),
            (None, _) if required => {
                let place = self.place.clone();
                for name in names {
                    let path = self.findings.joined(name);
                    self.findings.failed.insert(path);
                }
                self.findings.report(|| Problem::new(format!("one of {list} is missing")).at(place, "in this table"));
            }
            _ => {}
        }
    }

    fn required(&mut self, name: &'static str) {
        if self.present(name).is_none() {
            let place = self.place.clone();
            let path = self.findings.joined(name);
            self.findings.failed.insert(path);
            self.findings.report(|| Problem::new(format!("`{name}` is missing")).at(place, "in this table"));
        }
    }

    fn ensure(&mut self, name: &str, holds: bool, problem: impl FnOnce() -> (String, String)) {
        if holds {
            return;
        }
        let path = self.findings.joined(name);
        if self.findings.has_failed(&path) {
            return;
        }
        let place = self.findings.place(&path);
        self.findings.report(|| {
            let (message, help) = problem();
            Problem::new(message).at(place, "").help(help)
        });
    }
}

/// A noun with its indefinite article.
pub(crate) fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// A text as messages quote it: on one line, at most 40 characters.
pub(crate) fn shortened(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if clean.chars().count() <= 40 { clean } else { clean.chars().take(39).chain(['…']).collect() }
}
