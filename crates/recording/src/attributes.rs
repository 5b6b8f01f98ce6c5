//! Attributes of records, as options name them.

use queuescope_log::{AttributeId, Schema};
use queuescope_text::{Problem, TextError, did_you_mean};
use std::ops::Range;

/// Parses a list of comparable attributes from an option: `src_ip,dst_ip`.
///
/// # Errors
/// Returns what is wrong with it, shown in its text.
pub fn attributes(option: &str, text: Option<&str>, schema: &Schema) -> Result<Vec<AttributeId>, TextError> {
    let text = text.unwrap_or_default();
    let found = list(text).map(|(word, span)| comparable(word, &span, schema)).collect::<Result<_, _>>();
    found.map_err(|problem| wrong(option, text, problem))
}

/// An error in the text of an option.
pub(crate) fn wrong(option: &str, text: &str, problem: Problem) -> TextError {
    TextError::new(option, text, vec![problem])
}

/// The words between commas, and their spans.
pub(crate) fn list(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut start = 0;
    let words = text.split(',').map(move |part| {
        let word = part.trim();
        let at = start + (part.len() - part.trim_start().len());
        start += part.len() + 1;
        (word, at..at + word.len())
    });
    words.filter(|(word, span)| !(word.is_empty() && span.start == 0))
}

/// An attribute whose values can be compared.
///
/// # Errors
/// Fails if there is no attribute of this name, or if its values cannot be compared.
pub(crate) fn comparable(word: &str, span: &Range<usize>, schema: &Schema) -> Result<AttributeId, Problem> {
    let id = attribute(word, span, schema, &[])?;
    if schema.attribute(id).is_comparable() {
        Ok(id)
    } else {
        Err(Problem::new(format!("values of `{word}` are not compared")).at(span, "it has too many bytes"))
    }
}

/// An attribute by its name; `others` are further names for suggestions.
///
/// # Errors
/// Fails if there is no attribute of this name.
pub(crate) fn attribute(
    word: &str,
    span: &Range<usize>,
    schema: &Schema,
    others: &[&str],
) -> Result<AttributeId, Problem> {
    schema.find(word).ok_or_else(|| {
        let near = did_you_mean(word, schema.names().chain(others.iter().copied()));
        let of = match schema.name() {
            name if name == Schema::departure().name() => "--attributes --departures",
            name if name == Schema::queued().name() => "DIR --attributes",
            _ => "--attributes",
        };
        let help = near.unwrap_or_else(|| format!("queuescope query {of} lists them"));
        let what = if word.is_empty() {
            "an attribute is missing".to_owned()
        } else {
            format!("there is no attribute `{}`", queuescope_text::quoted(word))
        };
        Problem::new(what).at(span, "here").help(help)
    })
}
