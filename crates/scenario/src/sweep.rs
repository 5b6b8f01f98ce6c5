//! Sweeps: the variants of a scenario to run.

use crate::describe::{TableInfo, ValueKind};
use crate::dom::{Entry, Node, TomlValue};
use crate::explain::{Written, quoted};
use crate::keys::Table;
use crate::keys::{Field, KeyVisitor};
use crate::read::{Findings, read_table, shortened};
use crate::scenario::Scenario;
use crate::set::{Override, PathSegment, segments, set};
use queuescope_text::{Place, Problem};

/// The variants of a scenario to run: each combination of one value of each list, with each seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The number of seeds, which are consecutive and start with the scenario's.
    pub seeds: u32,
    /// Paths of keys, each with its values as TOML.
    pub values: Vec<(String, Vec<String>)>,
}

/// A variant of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// Its index in the sweep, from 0.
    pub index: u64,
    /// The overrides that turn the scenario's file into this variant. They must come after other overrides.
    pub overrides: Vec<Override>,
}

/// The most variants; more would run for longer than a year.
const MOST_CELLS: u64 = 1_000_000;

impl Default for Sweep {
    fn default() -> Self {
        Self { seeds: 1, values: Vec::new() }
    }
}

impl Sweep {
    /// The number of variants; at least one.
    pub fn len(&self) -> u64 {
        self.values.iter().fold(u64::from(self.seeds), |cells, (_, values)| cells.saturating_mul(values.len() as u64))
    }

    /// Whether the scenario itself is the only variant.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1 && self.values.is_empty()
    }

    /// The seed of a variant; `seed` is the scenario's.
    pub fn seed_of(&self, index: u64, seed: u64) -> u64 {
        seed.wrapping_add(index % u64::from(self.seeds)) & i64::MAX as u64
    }

    /// The variants in order: seeds change fastest, then the last list. `seed` is the scenario's.
    ///
    /// To build a variant, read the scenario's file again with its overrides, so that defaults follow the changed
    /// values.
    pub fn cells(&self, seed: u64) -> impl Iterator<Item = Cell> + '_ {
        (0..self.len()).map(move |index| {
            let mut rest = index / u64::from(self.seeds);
            let mut overrides = Vec::new();
            for (path, values) in self.values.iter().rev() {
                let count = values.len() as u64;
                overrides.push(Override::cell(format!("{path}={}", values[(rest % count) as usize])));
                rest /= count;
            }
            overrides.reverse();
            if self.seeds > 1 {
                overrides.push(Override::cell(format!("seed={}", self.seed_of(index, seed))));
            }
            Cell { index, overrides }
        })
    }
}

/// Adds a list to the scenario's sweep, or replaces the list of the same path.
pub(crate) fn replace(root: &mut Node, path: &str, key: Place, list: Node) -> Result<(), Problem> {
    let TomlValue::Table(entries) = &mut root.value else { return Ok(()) };
    let index = entries.iter().position(|entry| entry.name == "sweep").unwrap_or_else(|| {
        let node = Node { place: key.clone(), value: TomlValue::Table(Vec::new()) };
        entries.push(Entry { name: "sweep".to_owned(), key: key.clone(), node });
        entries.len() - 1
    });
    let sweep = &mut entries[index].node;
    let TomlValue::Table(lists) = &mut sweep.value else {
        // Reading reports that `sweep` is not a table.
        return Ok(());
    };
    if !put(lists, "", path, &key, &list) {
        lists.push(Entry { name: path.to_owned(), key, node: list });
    }
    Ok(())
}

/// Replaces the list of `path` below `prefix`, for any notation of the path. Returns whether there was one.
fn put(entries: &mut [Entry], prefix: &str, path: &str, key: &Place, list: &Node) -> bool {
    entries.iter_mut().any(|entry| {
        let name = if prefix.is_empty() { entry.name.clone() } else { format!("{prefix}.{}", entry.name) };
        match &mut entry.node.value {
            TomlValue::Table(inner) => put(inner, &name, path, key, list),
            _ if name == path => {
                (entry.key, entry.node) = (key.clone(), list.clone());
                true
            }
            _ => false,
        }
    })
}

/// Checks each value by reading the scenario with it.
pub(crate) fn check(sweep: &Sweep, root: &Node, findings: &mut Findings) {
    if sweep.values.is_empty() {
        return;
    }
    let Some(entries) = entries(root, "sweep") else { return };
    let mut lists = Vec::new();
    flatten(entries, "", &mut lists);
    let mut base = root.clone();
    if let TomlValue::Table(entries) = &mut base.value {
        entries.retain(|entry| entry.name != "sweep");
    }
    for (path, key, node) in lists {
        let TomlValue::List(values) = &node.value else { continue };
        let path: Vec<_> = segments(&path, 0, 0).into_iter().map(|segment| segment.at(key.clone())).collect();
        for value in values {
            check_value(&base, &path, value, findings);
        }
    }
}

fn check_value(base: &Node, path: &[PathSegment], value: &Node, findings: &mut Findings) {
    let mut variant = base.clone();
    if let Err(problem) = set(&mut variant, path, value.clone()) {
        return findings.problem(|| problem);
    }
    let mut scenario = Scenario::fresh();
    let mut found = Findings::new(|_| Vec::new());
    read_table(&mut scenario, &variant, &mut found);
    crate::check::check(&scenario, &mut found);
    for mut problem in found.problems {
        // If the value causes a problem elsewhere, also show the value.
        let inside = problem
            .places()
            .any(|place| within(place, &value.place) || Some(place) == path.first().map(PathSegment::place));
        if !inside {
            problem = problem.first_at(value.place.clone(), "with this value");
        }
        findings.report(|| problem);
    }
}

fn within(place: &Place, outer: &Place) -> bool {
    place.source == outer.source && outer.span.start <= place.span.start && place.span.end <= outer.span.end
}

fn entries<'a>(node: &'a Node, name: &str) -> Option<&'a [Entry]> {
    let TomlValue::Table(entries) = &node.value else { return None };
    match &entries.iter().find(|entry| entry.name == name)?.node.value {
        TomlValue::Table(entries) => Some(entries),
        _ => None,
    }
}

/// The lists of a sweep with their full paths, which may be written in quotes or as nested tables.
fn flatten<'a>(entries: &'a [Entry], path: &str, lists: &mut Vec<(String, Place, &'a Node)>) {
    for entry in entries {
        let path = if path.is_empty() { entry.name.clone() } else { format!("{path}.{}", entry.name) };
        match &entry.node.value {
            TomlValue::Table(entries) => flatten(entries, &path, lists),
            _ if path == "seeds" => {}
            _ => lists.push((path, entry.key.clone(), &entry.node)),
        }
    }
}

impl Field for Sweep {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, node: &Node, findings: &mut Findings) {
        let TomlValue::Table(entries) = &node.value else {
            return findings.problem(|| {
                Problem::new("`sweep` is a table of paths and lists")
                    .at(node.place.clone(), format!("this is {}", node.kind()))
                    .help("for example \"link.rate\" = [\"10mbps\", \"100mbps\"]")
            });
        };
        if let Some(seeds) = entries.iter().find(|entry| entry.name == "seeds") {
            findings.inside("seeds", &seeds.node.place, |findings| {
                let mut count = 1u32;
                count.read(&seeds.node, findings);
                match count {
                    1..=100_000 => self.seeds = count,
                    _ => findings.problem(|| {
                        Problem::new("`seeds` is out of bounds")
                            .at(seeds.node.place.clone(), "here")
                            .help("use 1 to 100000")
                    }),
                }
            });
        }
        let mut lists = Vec::new();
        flatten(entries, "", &mut lists);
        self.values.clear();
        for (path, key, node) in lists {
            let bad = |message: &str, place: &Place, label: &str| {
                Problem::new(message.to_owned())
                    .at(place.clone(), label.to_owned())
                    .help("for example \"link.rate\" = [\"10mbps\", \"100mbps\"]")
            };
            if path == "seed"
                || path.split('.').next() == Some("sweep")
                || self.values.iter().any(|(other, _)| *other == path)
            {
                findings.problem(|| {
                    bad(
                        "this cannot be swept",
                        &key,
                        if path == "seed" { "write `seeds` and their number" } else { "here" },
                    )
                });
                continue;
            }
            match &node.value {
                TomlValue::List(values) if !values.is_empty() => {
                    let texts: Option<Vec<_>> = values.iter().map(to_toml).collect();
                    match texts {
                        Some(texts) => self.values.push((path, texts)),
                        None => {
                            findings.problem(|| {
                                bad("a value has a type that scenarios do not use", &node.place, "in this list")
                            });
                        }
                    }
                }
                TomlValue::List(_) => findings.problem(|| bad("the list is empty", &node.place, "no values")),
                _ => findings.problem(|| {
                    bad(&format!("'{}' needs a list of values", shortened(&path)), &node.place, "not a list")
                }),
            }
        }
        if self.len() > MOST_CELLS {
            findings.problem(|| {
                Problem::new(format!("the sweep has more than {MOST_CELLS} runs"))
                    .at(node.place.clone(), "in this table")
            });
        }
    }

    fn write(&self) -> Written {
        let mut lines = crate::explain::Lines::default();
        let mut seeds = self.seeds;
        lines.key("seeds", &mut seeds, SEEDS);
        for (path, values) in &self.values {
            lines.push_owned(quoted(path), format!("[{}]", values.join(", ")));
        }
        Written::Table(lines)
    }

    fn kind() -> ValueKind {
        let mut info = TableInfo::default();
        info.within("seeds", &mut 1u32, 1..=100_000, SEEDS);
        ValueKind::Paths(info)
    }
}

const SEEDS: &str = "How many seeds to run each variant with, counted up from `seed`.";

/// The value on one line of TOML; `None` if it cannot be part of a scenario.
fn to_toml(node: &Node) -> Option<String> {
    Some(match &node.value {
        TomlValue::Text(text) => quoted(text),
        TomlValue::Integer(integer) => i64::try_from(*integer).ok()?.to_string(),
        TomlValue::Float(float) if float.is_finite() => format!("{float:?}"),
        TomlValue::Bool(truth) => truth.to_string(),
        TomlValue::List(items) => format!("[{}]", items.iter().map(to_toml).collect::<Option<Vec<_>>>()?.join(", ")),
        TomlValue::Table(entries) => {
            let pairs =
                entries.iter().map(|entry| Some(format!("{} = {}", quoted(&entry.name), to_toml(&entry.node)?)));
            format!("{{ {} }}", pairs.collect::<Option<Vec<_>>>()?.join(", "))
        }
        TomlValue::Float(_) | TomlValue::Time => return None,
    })
}
