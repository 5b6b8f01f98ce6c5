//! A scenario file as a tree of values with their places in the text.

use queuescope_text::{Place, Problem};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub place: Place,
    pub value: TomlValue,
}

/// The value types of TOML.
#[derive(Debug, Clone)]
pub(crate) enum TomlValue {
    Text(String),
    /// Saturated, so that a number of any length is out of every range.
    Integer(i128),
    Float(f64),
    Bool(bool),
    Time,
    List(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key and its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub name: String,
    pub key: Place,
    pub node: Node,
}

impl Node {
    /// Parses a whole file as far as possible. Adds syntax errors to `problems`.
    pub fn document(text: &str, problems: &mut Vec<Problem>) -> Self {
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let span = error.span().unwrap_or(text.len()..text.len());
            problems.push(syntax(error.message(), Place { source: 0, span }));
        }
        Self { place: Place { source: 0, span: 0..0 }, value: table_of(table.into_inner(), 0, 0) }
    }

    /// Parses one value as TOML; anything else is text. `text` starts at `offset` in `source`.
    pub fn bare(text: &str, source: usize, offset: usize) -> Self {
        let trimmed = text.trim();
        let offset = offset + (text.len() - text.trim_start().len());
        match DeValue::parse(trimmed) {
            Ok(value) if !trimmed.is_empty() && is_whole(value.get_ref()) => Self {
                place: Place { source, span: offset..offset + trimmed.len() },
                value: value_of(value.into_inner(), source, offset),
            },
            _ => Self {
                place: Place { source, span: offset..offset + trimmed.len() },
                value: TomlValue::Text(trimmed.to_owned()),
            },
        }
    }

    /// Whether the value or a part of it comes from this source.
    pub fn is_from(&self, source: usize) -> bool {
        self.place.source == source
            || match &self.value {
                TomlValue::List(items) => items.iter().any(|item| item.is_from(source)),
                TomlValue::Table(entries) => entries.iter().any(|entry| entry.node.is_from(source)),
                _ => false,
            }
    }

    /// The type of the value, as a phrase for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            TomlValue::Text(_) => "text",
            TomlValue::Integer(_) | TomlValue::Float(_) => "a number",
            TomlValue::Bool(_) => "true or false",
            TomlValue::Time => "a date or time of day",
            TomlValue::List(_) => "a list",
            TomlValue::Table(_) => "a table",
        }
    }
}

/// Whether the whole text of a number is a number. The parser also accepts `10_000kbps`.
fn is_whole(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Integer(integer) => {
            integer.as_str().trim_start_matches(['+', '-']).chars().all(|digit| digit.is_digit(integer.radix()))
        }
        DeValue::Float(float) => float.as_str().parse::<f64>().is_ok(),
        _ => true,
    }
}

fn syntax(message: &str, place: Place) -> Problem {
    let (title, label, help): (String, String, Option<&str>) = if message.contains("duplicate key") {
        ("a key is written twice".to_owned(), "the second time".to_owned(), Some("keep one of them"))
    } else if message.contains("recursion limit") || message.contains("cannot recurse") {
        ("values are nested too deeply".to_owned(), "here".to_owned(), Some("no scenario needs such depth"))
    } else {
        let help = message
            .contains("missing `\"`")
            .then_some("write text in quotes: rate = \"10mbps\"")
            .or_else(|| message.contains("string values must be quoted").then_some("for example rate = \"10mbps\""));
        (format!("this is not TOML: {message}"), "here".to_owned(), help)
    };
    Problem::new(title).at(place, label).help_if(help)
}

fn table_of(table: DeTable<'_>, source: usize, offset: usize) -> TomlValue {
    let entries = table.into_iter().map(|(key, value)| Entry {
        key: place(source, offset, key.span()),
        name: key.into_inner().into_owned(),
        node: node_of(value, source, offset),
    });
    TomlValue::Table(entries.collect())
}

fn node_of(value: Spanned<DeValue<'_>>, source: usize, offset: usize) -> Node {
    Node { place: place(source, offset, value.span()), value: value_of(value.into_inner(), source, offset) }
}

fn value_of(value: DeValue<'_>, source: usize, offset: usize) -> TomlValue {
    match value {
        DeValue::String(text) => TomlValue::Text(text.into_owned()),
        DeValue::Integer(integer) => {
            let saturated = if integer.as_str().starts_with('-') { i128::MIN } else { i128::MAX };
            TomlValue::Integer(i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(saturated))
        }
        DeValue::Float(float) => TomlValue::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => TomlValue::Bool(truth),
        DeValue::Datetime(_) => TomlValue::Time,
        DeValue::Array(items) => TomlValue::List(items.into_iter().map(|item| node_of(item, source, offset)).collect()),
        DeValue::Table(table) => table_of(table, source, offset),
    }
}

fn place(source: usize, offset: usize, span: std::ops::Range<usize>) -> Place {
    Place { source, span: span.start + offset..span.end + offset }
}
