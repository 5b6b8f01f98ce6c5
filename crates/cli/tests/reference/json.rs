//! The lines of `--json`, from their schema.

use super::{cell, check};
use serde_json::{Map, Value};

const ABOUT: &str = "\
# The JSON report

With `--json` commands print JSON Lines: one object per line, each with its `format_version` and its `kind`. The last line of most commands is a
`summary`. This page is made from the schema, which `queuescope generate schema` prints and which is [here](../report.schema.json) as a file.

- `format_version` is the version of the fields of the line: 2. It grows when a field gets another name, type or meaning. New fields do not change it, so
  ignore fields that you do not know. Older lines have none: their format is 1, and the changelog lists the differences.
- Names end in their unit: `_ns` is nanoseconds, `_bps` bits per second, `_bytes` bytes.
- An integer that can exceed 2^53 is a [string of its digits](#decimal), always: points in time, lengths of runs and bursts, `bytes`
  and totals of bytes, and seeds. Many readers of JSON would round a larger number. All other integers are numbers: packets, delays, depths of queues, rates.
- A field is always there unless the table says *optional*.
";

#[test]
fn the_json_report_in_the_book_is_current() {
    let schema: Value = serde_json::from_str(&queuescope_report::json::schema()).expect("it is JSON");
    let mut text = ABOUT.to_owned();
    text += "\n## Lines\n\n| kind | what it is |\n| --- | --- |\n";
    let lines = schema["oneOf"].as_array().expect("a line is one of several");
    for line in lines {
        text += &format!("| [`{0}`](#{1}) | {2} |\n", kind(line), kind(line), cell(about(line)));
    }
    for line in lines {
        text += &format!("\n### `{}`\n\n{}\n", kind(line), cell(about(line)));
        match line["$ref"].as_str() {
            Some(name) => text += &format!("\nIts fields are those of {}.\n", link(name)),
            None => text += &fields(line),
        }
    }
    text += "\n## Types\n";
    let types = schema["$defs"].as_object().expect("types have names");
    let mut types: Vec<_> = types.iter().collect();
    types.sort_by_key(|(name, _)| *name);
    for (name, it) in types {
        text += &format!("\n### {name}\n\n{}\n", cell(about(it)));
        text += &if it["oneOf"].is_array() { values(it) } else { fields(it) };
    }
    check("json.md", &text);
}

fn kind(line: &Value) -> &str {
    line["properties"]["kind"]["const"].as_str().expect("each line has a kind")
}

fn about(it: &Value) -> &str {
    it["description"].as_str().unwrap_or_default()
}

/// The fields of an object, as a table.
fn fields(it: &Value) -> String {
    let none = Map::new();
    let fields = it["properties"].as_object().unwrap_or(&none);
    let required: Vec<_> = it["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut fields: Vec<_> =
        fields.iter().filter(|(name, _)| !["format_version", "kind"].contains(&name.as_str())).collect();
    fields.sort_by_key(|(name, _)| *name);
    let rows = fields.into_iter().map(|(name, field)| {
        let optional = if required.contains(&&**name) { "" } else { "*optional* " };
        format!("| `{name}` | {} | {optional}{} |\n", kind_of(field), cell(about(field)))
    });
    let rows: String = rows.collect();
    if rows.is_empty() { rows } else { format!("\n| field | type | what it is |\n| --- | --- | --- |\n{rows}") }
}

/// The values of a choice, as a table.
fn values(it: &Value) -> String {
    let values = it["oneOf"].as_array().into_iter().flatten();
    let rows: String = values.map(|value| format!("| {} | {} |\n", kind_of(value), cell(about(value)))).collect();
    format!("\n| value | what it is |\n| --- | --- |\n{rows}")
}

/// The type of a value, as text.
fn kind_of(it: &Value) -> String {
    if let Some(name) = it["$ref"].as_str() {
        return link(name);
    }
    if let Some(value) = it["const"].as_str() {
        return format!("`{value}`");
    }
    if let Some(choices) = it["anyOf"].as_array().or(it["oneOf"].as_array()) {
        return choices.iter().map(kind_of).collect::<Vec<_>>().join(" or ");
    }
    let of_items = || it["items"].is_object().then(|| kind_of(&it["items"]));
    let named = |name: &str| match name {
        "array" => match (of_items(), it["prefixItems"].as_array()) {
            (Some(items), _) => format!("list of {items}"),
            (None, Some(items)) => format!("({})", items.iter().map(kind_of).collect::<Vec<_>>().join(", ")),
            (None, None) => "list".to_owned(),
        },
        "object" => match &it["additionalProperties"] {
            values @ Value::Object(_) => format!("names with {}", kind_of(values)),
            _ => "object".to_owned(),
        },
        name => name.to_owned(),
    };
    match &it["type"] {
        Value::String(name) => named(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(named).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}

/// A type's name, as a link to it.
fn link(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default();
    // A kind of line may have the same name, and its heading comes first.
    let anchor = name.to_ascii_lowercase();
    let twice = ["tap", "sim", "burst", "acting", "sweep", "comparison", "alert", "why", "answer", "plan", "summary"];
    if twice.contains(&&*anchor) { format!("[{name}](#{anchor}-1)") } else { format!("[{name}](#{anchor})") }
}
