//! Tables of the report's types: the columns follow from the JSON schema of the type, so that each field of a report that is one value is a
//! column with the same name.

use crate::arrow::{Columns, RawTable};
use crate::failure::{Failure, Outcome};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde_json::{Map, Value};

/// How deep values within values are followed. No type of a report is its own part.
const DEEPEST: usize = 4;

/// A table with a row for each of `rows`. Fields of parts have the name of the part before theirs: `sojourn_mean_ns`. Lists, maps other
/// than numbers by reason, and parts that may be missing are left out. `keys` are columns that precede the others, each with its name.
///
/// # Errors
/// Fails if a row is not an object.
pub fn table<T: Serialize + JsonSchema>(keys: Columns, rows: &[T]) -> Outcome<RawTable> {
    let schema = schema_for!(T).to_value();
    let definitions = schema.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut wanted = Vec::new();
    fields(&schema, &definitions, &mut Vec::new(), false, &mut wanted);
    let rows: Vec<Value> = rows.iter().map(serde_json::to_value).collect::<Result<_, _>>().map_err(Failure::value)?;
    let table = wanted.iter().fold(keys, |columns, field| field.column(columns, &rows));
    table.table().map_err(Failure::value)
}

/// A column.
struct Field {
    path: Vec<String>,
    kind: Kind,
    may_lack: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A count, also as digits.
    Count,
    Signed,
    Number,
    Text,
    Flag,
    /// The sum of numbers by reason.
    Total,
}

impl Field {
    fn column(&self, columns: Columns, rows: &[Value]) -> Columns {
        let name = self.path.join("_");
        let cells = rows.iter().map(|row| self.path.iter().try_fold(row, |value, key| value.get(key)));
        let cells = cells.map(|cell| cell.filter(|value| !value.is_null()));
        match self.kind {
            Kind::Count if self.may_lack => columns.counts_if_known(&name, cells.map(|cell| cell.and_then(count))),
            Kind::Count => columns.counts(&name, cells.map(|cell| cell.and_then(count).unwrap_or_default())),
            Kind::Signed => columns.signed_if_known(&name, cells.map(|cell| cell.and_then(signed))),
            Kind::Number if self.may_lack => columns.numbers_if_known(&name, cells.map(|cell| cell?.as_f64())),
            Kind::Number => columns.numbers(&name, cells.map(|cell| cell.and_then(Value::as_f64).unwrap_or(f64::NAN))),
            Kind::Text if self.may_lack => columns.texts_if_known(&name, cells.map(|cell| cell?.as_str())),
            Kind::Text => columns.texts(&name, cells.map(|cell| cell.and_then(Value::as_str).unwrap_or_default())),
            Kind::Flag => columns.flags(&name, cells.map(|cell| cell.and_then(Value::as_bool).unwrap_or_default())),
            Kind::Total => {
                let total = |map: &Value| map.as_object().map(|map| map.values().filter_map(Value::as_u64).sum());
                columns.counts(&name, cells.map(|cell| cell.and_then(total).unwrap_or_default()))
            }
        }
    }
}

/// Adds the columns of a type: required fields in the order of their declaration, then the others.
fn fields(
    schema: &Value,
    definitions: &Map<String, Value>,
    path: &mut Vec<String>,
    may_lack: bool,
    found: &mut Vec<Field>,
) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let required = schema.get("required").and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let others = properties.keys().map(String::as_str).filter(|name| !required.contains(name));
    for (name, is_required) in required.iter().map(|name| (*name, true)).chain(others.map(|name| (name, false))) {
        let Some(property) = properties.get(name) else { continue };
        let (property, is_nullable) = resolved(property, definitions);
        path.push(name.to_owned());
        let may_lack = may_lack || is_nullable;
        match kind(property, name) {
            // A flag that is left out is false.
            Some(kind) => found.push(Field {
                path: path.clone(),
                kind,
                may_lack: may_lack || (!is_required && !matches!(kind, Kind::Count)),
            }),
            // Parts that most rows lack would be dozens of empty columns.
            None if path.len() < DEEPEST && (!is_nullable || name == "completion") => {
                fields(property, definitions, path, may_lack, found);
            }
            None => {}
        }
        path.pop();
    }
}

/// The schema behind references, and whether the value may be null.
fn resolved<'a>(property: &'a Value, definitions: &'a Map<String, Value>) -> (&'a Value, bool) {
    let choices = property.get("anyOf").and_then(Value::as_array);
    let chosen = choices.into_iter().flatten().find(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    let property = chosen.unwrap_or(property);
    let named = property.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
    let target = named.and_then(|name| definitions.get(name)).unwrap_or(property);
    (target, chosen.is_some() || property.get("type").is_some_and(Value::is_array))
}

fn kind(property: &Value, name: &str) -> Option<Kind> {
    let kind = property.get("type")?;
    let kind =
        kind.as_str().or_else(|| kind.as_array()?.iter().filter_map(Value::as_str).find(|kind| *kind != "null"))?;
    match kind {
        "integer" if property.get("minimum").is_some() => Some(Kind::Count),
        "integer" => Some(Kind::Signed),
        "number" => Some(Kind::Number),
        "boolean" => Some(Kind::Flag),
        // Integers as digits. Those below zero are clock offsets.
        "string" if property.get("pattern").is_some() && name.contains("offset") => Some(Kind::Signed),
        "string" if property.get("pattern").is_some() => Some(Kind::Count),
        "string" => Some(Kind::Text),
        "object" if ["drops", "marks"].contains(&name) => Some(Kind::Total),
        _ => None,
    }
}

fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn signed(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}
