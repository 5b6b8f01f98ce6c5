//! The content of an answer: attributes of packets, or functions over all packets or groups.

use super::cell::is_estimate;
use super::load::Loaded;
use crate::attributes::{attribute, comparable, list, wrong};
use queuescope_log::{AttributeId, Function, Group, GroupKey, Kind, Number, Schema};
use queuescope_text::{Problem, TextError};
use queuescope_wire::Nanos;
use std::ops::Range;

/// The content of an answer, as people write it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SelectOptions {
    /// Attributes of each packet, or functions over all packets or each group: `ts,src_ip`, `count,sum(length)`. Defaults apply if it is not given.
    pub select: Option<String>,
    /// What packets of a group have in common: `dst_ip,ts/100ms`.
    pub group: Option<String>,
    /// Return only this many groups: those with the highest value in the first selected column.
    pub top: Option<usize>,
    /// Return only this many packets.
    pub limit: Option<u64>,
}

/// The content of an answer.
#[derive(Debug)]
pub enum Selection {
    /// Attributes of each packet, of at most this many packets.
    Packets(Vec<AttributeId>, Option<u64>),
    /// Functions over all packets.
    All(Vec<(String, Function)>),
    /// Functions over each group.
    Groups(Groups),
}

/// Groups, and the functions over each.
#[derive(Debug)]
pub struct Groups {
    /// What packets of a group have in common, with the names of the columns.
    pub keys: Vec<(String, GroupKey)>,
    /// The functions, with the names of the columns.
    pub functions: Vec<(String, Function)>,
    /// The number of groups to return.
    pub top: Option<usize>,
}

impl Groups {
    /// The keys of groups, with intervals of time that count from the first packet.
    pub(super) fn keys_of(&self, loaded: &Loaded) -> Vec<GroupKey> {
        let from = |(_, key): &(String, GroupKey)| match *key {
            GroupKey::Time { attribute, width, .. } => {
                GroupKey::Time { attribute, width, origin: loaded.origin(attribute).0 }
            }
            key @ GroupKey::Attribute(_) => key,
        };
        self.keys.iter().map(from).collect()
    }
}

/// Default attributes of packets.
const PACKET: &[&str] = &["ts", "src_ip", "src_port", "dst_ip", "dst_port", "protocol", "length"];
/// Default attributes of departures.
const DEPARTURE: &[&str] = &["dequeued", "flow", "length", "delay"];

/// Default attributes of packets that passed a queue.
const QUEUED: &[&str] =
    &["dequeued", "src_ip", "src_port", "dst_ip", "dst_port", "protocol", "length", "delay", "dropped"];

fn usual(schema: &Schema) -> &'static [&'static str] {
    if schema.name() == Schema::departure().name() {
        DEPARTURE
    } else if schema.name() == Schema::queued().name() {
        QUEUED
    } else {
        PACKET
    }
}

/// Something that can be selected.
enum Item {
    Attribute(AttributeId),
    Function(String, Function),
}

impl Item {
    fn name<'a>(&'a self, schema: &'a Schema) -> &'a str {
        match self {
            Self::Attribute(id) => &schema.attribute(*id).name,
            Self::Function(name, _) => name,
        }
    }
}

impl Selection {
    /// Parses options for records of a schema.
    ///
    /// # Errors
    /// Returns what is wrong with them, shown in their text.
    pub fn from_options(options: &SelectOptions, schema: &Schema) -> Result<Self, TextError> {
        let text = options.select.as_deref().unwrap_or_default();
        let items = list(text).map(|(word, span)| Ok((item(word, &span, schema)?, span)));
        let items: Vec<_> =
            items.collect::<Result<_, Problem>>().map_err(|problem| wrong("--select", text, problem))?;
        let names = items.iter().map(|(item, span)| (item.name(schema), span));
        once(names).map_err(|problem| wrong("--select", text, problem))?;
        let (mut attributes, mut functions) = (Vec::new(), Vec::new());
        for (item, span) in items {
            match item {
                Item::Attribute(id) => attributes.push((id, span)),
                Item::Function(name, function) => functions.push((name, function)),
            }
        }
        let grouped = options.group.as_deref();
        if let Some((id, span)) = attributes.first()
            && (grouped.is_some() || !functions.is_empty())
        {
            let name = &schema.attribute(*id).name;
            let problem = Problem::new(format!("`{name}` is an attribute of one packet, not of several"))
                .at(span.clone(), "here");
            let help = format!("group by it (--group {name}), or select max({name}) or another function");
            return Err(wrong("--select", text, problem.help(help)));
        }
        let Some(keys) = grouped else {
            if !functions.is_empty() {
                return Ok(Self::All(functions));
            }
            let chosen = if attributes.is_empty() {
                usual(schema).iter().filter_map(|name| schema.find(name)).collect()
            } else {
                attributes.into_iter().map(|(id, _)| id).collect()
            };
            return Ok(Self::Packets(chosen, options.limit));
        };
        let spans: Vec<_> = list(keys).map(|(_, span)| span).collect();
        let keys = list(keys).map(|(word, span)| key(word, &span, schema)).collect::<Result<Vec<_>, _>>();
        let keys = keys.and_then(|keys| {
            once(keys.iter().map(|(name, _)| name.as_str()).zip(&spans))?;
            Ok(keys)
        });
        let keys = keys.map_err(|problem| wrong("--group", grouped.unwrap_or_default(), problem))?;
        if functions.is_empty() {
            functions.push(("count".to_owned(), Function::Count));
        }
        Ok(Self::Groups(Groups { keys, functions, top: options.top }))
    }
}

impl Selection {
    /// The names of its columns.
    pub fn names(&self, schema: &Schema) -> Vec<String> {
        let keys = match self {
            Self::Packets(attributes, _) => {
                return attributes.iter().map(|id| schema.attribute(*id).name.clone()).collect();
            }
            Self::All(_) => &[][..],
            Self::Groups(groups) => &groups.keys,
        };
        let functions = self.functions().iter().map(|(name, _)| name);
        keys.iter().map(|(name, _)| name).chain(functions).cloned().collect()
    }

    /// Its functions, with the names of the columns; none for attributes of packets.
    pub fn functions(&self) -> &[(String, Function)] {
        match self {
            Self::Packets(..) => &[],
            Self::All(functions) | Self::Groups(Groups { functions, .. }) => functions,
        }
    }

    /// The columns whose value in a row is an estimate: numbers of distinct values, if they are large.
    pub fn estimates<'a>(&'a self, (_, values): &Group) -> impl Iterator<Item = &'a str> {
        let each = self.functions().iter().zip(values);
        let is_estimate = |((_, function), value): &(&(String, Function), &Number)| {
            matches!(function, Function::Distinct(_)) && is_estimate(**value)
        };
        each.filter(is_estimate).map(|((name, _), _)| name.as_str()).collect::<Vec<_>>().into_iter()
    }

    /// All attributes that it uses.
    pub fn attributes(&self) -> Vec<AttributeId> {
        let of = |functions: &[(String, Function)]| -> Vec<AttributeId> {
            functions.iter().filter_map(|(_, function)| function.attribute()).collect()
        };
        match self {
            Self::Packets(attributes, _) => attributes.clone(),
            Self::All(functions) => of(functions),
            Self::Groups(Groups { keys, functions, .. }) => {
                keys.iter().map(|(_, key)| key.attribute()).chain(of(functions)).collect()
            }
        }
    }
}

/// Refuses duplicates: columns need distinct names.
fn once<'a>(names: impl Iterator<Item = (&'a str, &'a Range<usize>)>) -> Result<(), Problem> {
    let mut known = Vec::new();
    for (name, span) in names {
        if known.contains(&name) {
            return Err(Problem::new(format!("`{name}` is selected twice")).at(span, "again"));
        }
        known.push(name);
    }
    Ok(())
}

fn item(word: &str, span: &Range<usize>, schema: &Schema) -> Result<Item, Problem> {
    if word != "count" && !word.contains('(') {
        return attribute(word, span, schema, &["count"]).map(Item::Attribute);
    }
    let function = Function::read(word, schema);
    let function =
        function.map_err(|problem| problem.moved(|part| (span.start + part.start..span.start + part.end).into()))?;
    Ok(Item::Function(function.text(schema), function))
}

fn key(word: &str, span: &Range<usize>, schema: &Schema) -> Result<(String, GroupKey), Problem> {
    let Some((name, width)) = word.split_once('/') else {
        let id = comparable(word, span, schema)?;
        return Ok((schema.attribute(id).name.clone(), GroupKey::Attribute(id)));
    };
    let id = comparable(name.trim(), &(span.start..span.start + name.len()), schema)?;
    let at = span.start + name.len() + 1..span.end;
    if schema.attribute(id).kind != Kind::Time {
        let problem = Problem::new(format!("`{}` is not a time, so it cannot be divided into intervals", name.trim()));
        return Err(problem.at(span, "here").help("ts/10ms"));
    }
    let wrong = |why: &str| {
        Problem::new(format!("'{}' is not an interval of time", queuescope_text::quoted(width))).at(at.clone(), why)
    };
    let width: Nanos = width.trim().parse().map_err(|_| wrong("a number and s, ms, us or ns").help("ts/10ms"))?;
    if width == Nanos::ZERO {
        return Err(wrong("must be longer than zero"));
    }
    Ok((word.to_owned(), GroupKey::Time { attribute: id, width: width.0, origin: 0 }))
}
