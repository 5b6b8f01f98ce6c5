//! Descriptions of all keys: the JSON schema for editors, and the reference for readers.

mod level;

use crate::dom::{Node, TomlValue};
use crate::explain::Written;
use crate::keys::{Bounded, Choice, Field, KeyVisitor, Table};
use crate::read::with_article;
pub(crate) use level::PathLevel;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The values that can be written for a key.
#[derive(Debug, Clone)]
pub(crate) enum ValueKind {
    /// Text, usually a number and a unit.
    Text { what: &'static str, examples: &'static [&'static str], pattern: Option<&'static str> },
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// True or false.
    Bool,
    /// A name, or a table of a name and parameters.
    Choice { what: &'static str, options: Vec<ChoiceInfo> },
    /// A table.
    Table(TableInfo),
    /// A list of tables.
    Tables(TableInfo),
    /// A list.
    List(Box<ValueKind>),
    /// A value of this kind, or `none`.
    Optional(Box<ValueKind>),
    /// Any of these.
    AnyOf(Vec<ValueKind>),
    /// A table whose keys are paths of a scenario, or nested tables of them, with lists of values.
    Paths(TableInfo),
}

/// An option of a choice.
#[derive(Debug, Clone)]
pub(crate) struct ChoiceInfo {
    name: &'static str,
    about: &'static str,
    keys: TableInfo,
}

/// The keys of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableInfo {
    keys: Vec<KeyInfo>,
    groups: Vec<(&'static [&'static str], bool)>,
    rivals: Vec<[(&'static str, &'static str); 2]>,
    required: Vec<&'static str>,
}

#[derive(Debug, Clone)]
struct KeyInfo {
    name: &'static str,
    doc: &'static str,
    kind: ValueKind,
    default: Option<Written>,
    bounds: Option<(Written, Written)>,
    inherited: bool,
}

impl KeyInfo {
    /// Its bounds in words.
    fn bounds(&self) -> Option<String> {
        let Some((Written::Inline(low), Written::Inline(high))) = &self.bounds else { return None };
        Some(format!("{} to {}", low.trim_matches('"'), high.trim_matches('"')))
    }
}

impl TableInfo {
    /// The bounds of a key in words, and what it takes.
    pub fn value_of(&self, name: &str) -> Option<(Option<String>, &ValueKind)> {
        let key = self.keys.iter().find(|key| key.name == name)?;
        Some((key.bounds(), &key.kind))
    }
}

impl ValueKind {
    /// The keys of a table, or those of this option of a choice.
    pub fn keys_of(&self, option: Option<&str>) -> Option<&TableInfo> {
        match (self, option) {
            (Self::Table(info), None) => Some(info),
            (Self::Choice { options, .. }, Some(name)) => {
                options.iter().find(|option| option.name == name).map(|option| &option.keys)
            }
            (Self::Optional(kind), option) => kind.keys_of(option),
            (Self::AnyOf(kinds), option) => kinds.iter().find_map(|kind| kind.keys_of(option)),
            _ => None,
        }
    }

    /// The names of the options of a choice.
    pub fn options(&self) -> Vec<&'static str> {
        match self {
            Self::Choice { options, .. } => options.iter().map(|option| option.name).collect(),
            _ => Vec::new(),
        }
    }
}

pub(crate) fn table_kind<T: Table>() -> ValueKind {
    ValueKind::Table(table_info(&T::fresh()))
}

pub(crate) fn choice_kind<C: Choice>() -> ValueKind {
    let options = C::fresh().options().into_iter().map(|mut option| {
        let mut keys = TableInfo::default();
        let (name, about) = (option.name(), option.about());
        option.keys(&mut keys);
        ChoiceInfo { name, about, keys }
    });
    ValueKind::Choice { what: C::WHAT, options: options.collect() }
}

/// The keys of a table that has its default values.
pub(crate) fn table_info<T: Table>(fresh: &T) -> TableInfo {
    let mut info = TableInfo::default();
    fresh.clone().keys(&mut info);
    info
}

impl KeyVisitor for TableInfo {
    fn key<T: Field>(&mut self, name: &'static str, field: &mut T, doc: &'static str) {
        let default = Some(field.write());
        self.keys.push(KeyInfo { name, doc, kind: T::kind(), default, bounds: None, inherited: false });
    }

    fn within<T: Bounded>(&mut self, name: &'static str, field: &mut T, bounds: RangeInclusive<T>, doc: &'static str) {
        self.key(name, field, doc);
        if let Some(key) = self.keys.last_mut() {
            key.bounds = Some((bounds.start().write(), bounds.end().write()));
        }
    }

    fn maybe<T: Field>(&mut self, name: &'static str, field: &mut Option<T>, doc: &'static str) {
        let default = field.as_ref().map(Field::write);
        self.keys.push(KeyInfo { name, doc, kind: T::kind(), default, bounds: None, inherited: false });
    }

    fn inherited<T: Field>(&mut self, name: &'static str, field: &mut T, _from: &T, doc: &'static str) {
        self.key(name, field, doc);
        if let Some(key) = self.keys.last_mut() {
            key.inherited = true;
        }
    }

    fn list<T: Table>(
        &mut self,
        name: &'static str,
        _field: &mut Vec<T>,
        fresh: impl Fn(usize) -> T,
        inherited: bool,
        doc: &'static str,
    ) {
        let kind = ValueKind::Tables(table_info(&fresh(0)));
        self.keys.push(KeyInfo { name, doc, kind, default: None, bounds: None, inherited });
    }

    fn one_of(&mut self, names: &'static [&'static str], required: bool) {
        self.groups.push((names, required));
    }

    fn rivals(&mut self, keys: [(&'static str, &'static str); 2]) {
        self.rivals.push(keys);
    }

    fn required(&mut self, name: &'static str) {
        self.required.push(name);
        if let Some(key) = self.keys.iter_mut().find(|key| key.name == name) {
            key.default = None;
        }
    }
}

/// The JSON schema of a whole file.
pub(crate) fn schema(info: &TableInfo, title: &str) -> Value {
    let mut definitions = BTreeMap::new();
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    schema.insert("title".to_owned(), json!(title));
    schema.extend(table_schema(info, &mut definitions));
    schema.insert("$defs".to_owned(), json!(definitions));
    Value::Object(schema)
}

/// Parts of the schema that are used several times.
type Definitions = BTreeMap<String, Value>;

fn table_schema(info: &TableInfo, definitions: &mut Definitions) -> Map<String, Value> {
    let mut properties = Map::new();
    for key in &info.keys {
        properties.insert(key.name.to_owned(), key_schema(key, definitions));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema.insert("additionalProperties".to_owned(), json!(false));
    if !info.required.is_empty() {
        schema.insert("required".to_owned(), json!(info.required));
    }
    let rules: Vec<_> = info
        .groups
        .iter()
        .map(|(names, required)| {
            let each = names.iter().map(|name| json!({ "required": [name] }));
            let none = json!({ "not": { "anyOf": each.clone().collect::<Vec<_>>() } });
            let all: Vec<_> = each.chain((!required).then_some(none)).collect();
            json!({ "oneOf": all })
        })
        .collect();
    if !rules.is_empty() {
        schema.insert("allOf".to_owned(), json!(rules));
    }
    schema
}

fn key_schema(key: &KeyInfo, definitions: &mut Definitions) -> Value {
    let mut schema = kind_schema(&key.kind, definitions);
    // Share tables that occur under the same name elsewhere, such as the stack of hosts and of a group of flows.
    if let ValueKind::Table(_) = key.kind {
        let name = format!("table {}", key.name);
        if *definitions.entry(name.clone()).or_insert_with(|| schema.clone()) == schema {
            schema = reference_to(&name);
        }
    }
    let Some(object) = schema.as_object_mut() else { return schema };
    object.insert("description".to_owned(), json!(key.doc));
    if let (Some(default), false) = (key.default.as_ref().and_then(to_json), key.inherited) {
        object.insert("default".to_owned(), default);
    }
    if let Some((low, high)) = &key.bounds {
        for (name, bound) in [("minimum", low), ("maximum", high)] {
            if let Some(bound) = to_json(bound).filter(Value::is_number) {
                object.insert(name.to_owned(), bound);
            }
        }
    }
    schema
}

fn reference_to(definition: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{}", definition.replace(' ', "%20")) })
}

fn kind_schema(kind: &ValueKind, definitions: &mut Definitions) -> Value {
    match kind {
        ValueKind::Text { examples, pattern, .. } => {
            let mut schema = json!({ "type": "string" });
            if let Some(pattern) = pattern {
                schema["pattern"] = json!(pattern);
            }
            if !examples.is_empty() {
                schema["examples"] = json!(examples);
            }
            schema
        }
        ValueKind::Integer => json!({ "type": "integer" }),
        ValueKind::Number => json!({ "type": "number" }),
        ValueKind::Bool => json!({ "type": "boolean" }),
        ValueKind::Choice { what, options } => {
            if !definitions.contains_key(*what) {
                let mut all: Vec<_> =
                    options.iter().map(|option| json!({ "const": option.name, "description": option.about })).collect();
                for option in options {
                    let keys = Value::Object(table_schema(&option.keys, definitions));
                    all.push(json!({
                        "type": "object", "properties": { option.name: keys }, "required": [option.name],
                        "additionalProperties": false, "description": option.about
                    }));
                }
                definitions.insert((*what).to_owned(), json!({ "anyOf": all }));
            }
            reference_to(what)
        }
        ValueKind::Table(info) => Value::Object(table_schema(info, definitions)),
        ValueKind::Tables(info) => json!({ "type": "array", "items": Value::Object(table_schema(info, definitions)) }),
        ValueKind::List(kind) => json!({ "type": "array", "items": kind_schema(kind, definitions) }),
        ValueKind::Optional(kind) => json!({ "anyOf": [kind_schema(kind, definitions), { "const": "none" }] }),
        ValueKind::AnyOf(kinds) => {
            let all: Vec<_> = kinds.iter().map(|kind| kind_schema(kind, definitions)).collect();
            json!({ "anyOf": all })
        }
        ValueKind::Paths(info) => {
            let mut schema = table_schema(info, definitions);
            schema.insert("additionalProperties".to_owned(), json!({ "type": ["array", "object"] }));
            Value::Object(schema)
        }
    }
}

/// Converts a value on one line of TOML to JSON.
fn to_json(written: &Written) -> Option<Value> {
    let Written::Inline(text) = written else { return None };
    fn json_of(node: &Node) -> Option<Value> {
        Some(match &node.value {
            TomlValue::Text(text) => json!(text),
            TomlValue::Integer(integer) => json!(i64::try_from(*integer).ok()?),
            TomlValue::Float(float) => json!(float),
            TomlValue::Bool(truth) => json!(truth),
            TomlValue::List(items) => Value::Array(items.iter().map(json_of).collect::<Option<_>>()?),
            TomlValue::Time | TomlValue::Table(_) => return None,
        })
    }
    json_of(&Node::bare(text, 0, 0))
}

/// The headers of a few tables that have a key, nearest to the top level first.
pub(crate) fn tables_with(info: &TableInfo, key: &str) -> Vec<String> {
    const FEW: usize = 4;
    let mut found = Vec::new();
    let mut level = vec![(String::new(), info, false)];
    while !level.is_empty() && found.len() < FEW {
        let mut next = Vec::new();
        for (path, info, list) in level {
            if !path.is_empty() && info.keys.iter().any(|other| other.name == key) {
                found.push(if list { format!("[[{path}]]") } else { format!("[{path}]") });
            }
            for key in &info.keys {
                let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
                match inner(&key.kind) {
                    ValueKind::Table(info) => next.push((path, info, false)),
                    ValueKind::Tables(info) => next.push((path, info, true)),
                    ValueKind::Choice { options, .. } => {
                        next.extend(
                            options.iter().map(|option| (format!("{path}.{}", option.name), &option.keys, false)),
                        );
                    }
                    _ => {}
                }
            }
        }
        level = next;
    }
    found.truncate(FEW);
    found
}

/// The reference in Markdown: a table of keys for each table of a scenario, and one for each choice.
pub(crate) fn reference(info: &TableInfo) -> String {
    let mut text = String::from("### Top level\n");
    let mut choices = BTreeMap::new();
    let mut printed = BTreeMap::new();
    table_reference(info, "", &mut text, &mut choices, &mut printed);
    let mut done = Vec::new();
    // A choice's parameters may hold another choice.
    while let Some((what, options)) = choices.pop_first() {
        if done.contains(&what) {
            continue;
        }
        done.push(what);
        choice_reference(what, &options, &mut text, &mut choices);
    }
    text
}

type Choices = BTreeMap<&'static str, Vec<ChoiceInfo>>;

/// Tables by their last name, with their path and the number of their keys.
type Printed = BTreeMap<&'static str, (String, usize)>;

fn table_reference(info: &TableInfo, path: &str, text: &mut String, choices: &mut Choices, printed: &mut Printed) {
    let mut rows = String::new();
    let mut tables = Vec::new();
    for key in &info.keys {
        match inner(&key.kind) {
            ValueKind::Table(info) => tables.push((key, info, false)),
            ValueKind::Paths(info) => tables.push((key, info, false)),
            ValueKind::Tables(info) => tables.push((key, info, true)),
            kind => {
                if let ValueKind::Choice { what, options } = kind {
                    choices.insert(what, options.clone());
                }
                rows.push_str(&row(key, info));
            }
        }
    }
    if !rows.is_empty() {
        text.push_str("\n| key | value | default | what it is |\n| --- | --- | --- | --- |\n");
        text.push_str(&rows);
    }
    for (key, info, list) in tables {
        let path = if path.is_empty() { key.name.to_owned() } else { format!("{path}.{}", key.name) };
        let title = if list { format!("[[{path}]]") } else { format!("[{path}]") };
        text.push_str(&format!("\n### `{title}`\n\n{}\n", key.doc));
        match printed.get(key.name) {
            Some((before, keys)) if *keys == info.keys.len() => {
                text.push_str(&format!("\nIts keys are those of `[{before}]`.\n"));
            }
            _ => {
                printed.insert(key.name, (path.clone(), info.keys.len()));
                table_reference(info, &path, text, choices, printed);
            }
        }
    }
}

fn choice_reference(what: &str, options: &[ChoiceInfo], text: &mut String, choices: &mut Choices) {
    text.push_str(&format!("\n### Every {what}\n\n| name | what it is |\n| --- | --- |\n"));
    for option in options {
        text.push_str(&format!("| `{}` | {} |\n", option.name, option.about));
    }
    for option in options.iter().filter(|option| !option.keys.keys.is_empty()) {
        text.push_str(&format!("\n#### The {what} `{}`\n", option.name));
        table_reference(&option.keys, option.name, text, choices, &mut Printed::new());
    }
}

fn row(key: &KeyInfo, table: &TableInfo) -> String {
    let group = table.groups.iter().find(|(names, _)| names.contains(&key.name));
    let default = match (&key.default, group) {
        _ if table.required.contains(&key.name) => "required".to_owned(),
        (Some(Written::Inline(text)), _) if !key.inherited => format!("`{}`", text.replace('|', "\\|")),
        (Some(Written::Choice(lines)), _) if !key.inherited => {
            lines.first().map_or(String::new(), |name| format!("`\"{name}\"`"))
        }
        (None, Some((names, required))) => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("{} of {}", if *required { "one" } else { "at most one" }, names.join(", "))
        }
        _ if key.inherited => "see there".to_owned(),
        _ => String::new(),
    };
    let bounds = key.bounds().map(|bounds| format!(", {bounds}")).unwrap_or_default();
    // A default already shows the notation.
    let example = !default.starts_with("`\"") || default == "`\"none\"`";
    format!(
        "| `{}` | {}{bounds} | {default} | {} |\n",
        key.name,
        value(&key.kind, example),
        key.doc.replace('|', "\\|")
    )
}

/// The kind without `Optional`; of several kinds, the table.
fn inner(kind: &ValueKind) -> &ValueKind {
    match kind {
        ValueKind::Optional(kind) => inner(kind),
        ValueKind::AnyOf(kinds) => kinds.iter().find(|kind| matches!(kind, ValueKind::Table(_))).unwrap_or(kind),
        kind => kind,
    }
}

fn value(kind: &ValueKind, example: bool) -> String {
    match kind {
        ValueKind::Text { what, .. } if what.starts_with("one of") => what.trim_end().to_owned(),
        ValueKind::Text { what, examples, .. } => match examples.first().filter(|_| example) {
            Some(example) => format!("{what}, as `\"{example}\"`"),
            None => (*what).to_owned(),
        },
        ValueKind::Integer => "whole number".to_owned(),
        ValueKind::Number => "number".to_owned(),
        ValueKind::Bool => "`true` or `false`".to_owned(),
        ValueKind::Choice { what, .. } => format!("{}, below", with_article(what)),
        ValueKind::Table(_) | ValueKind::Paths(_) => "table".to_owned(),
        ValueKind::Tables(_) => "tables".to_owned(),
        ValueKind::List(kind) => format!("list of {}", value(kind, example)),
        ValueKind::Optional(kind) => format!("{}, or `\"none\"`", value(kind, example)),
        ValueKind::AnyOf(kinds) => kinds.iter().map(|kind| value(kind, example)).collect::<Vec<_>>().join("; or "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use std::collections::BTreeSet;

    /// A key that is listed twice would be written twice, which is not valid TOML. Also checks that each key has a
    /// description.
    #[test]
    fn each_key_is_listed_once_with_a_description() {
        fn walk(path: &str, info: &TableInfo, count: &mut usize) {
            let mut names = BTreeSet::new();
            for key in &info.keys {
                let path = format!("{path}.{}", key.name);
                assert!(names.insert(key.name), "{path} is listed twice");
                assert!(key.doc.len() > 4 && key.doc.ends_with(['.', ',']), "{path}: {}", key.doc);
                assert!(
                    key.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
                );
                *count += 1;
                match inner(&key.kind) {
                    ValueKind::Table(info) | ValueKind::Tables(info) | ValueKind::Paths(info) => {
                        walk(&path, info, count);
                    }
                    ValueKind::Choice { options, .. } => {
                        let named: BTreeSet<_> = options.iter().map(|option| option.name).collect();
                        assert_eq!(named.len(), options.len(), "{path} has two options of one name");
                        options.iter().for_each(|option| walk(&format!("{path}.{}", option.name), &option.keys, count));
                    }
                    _ => {}
                }
            }
        }
        let mut count = 0;
        walk("", &table_info(&Scenario::fresh()), &mut count);
        assert!(count > 500, "{count}");
    }
}
