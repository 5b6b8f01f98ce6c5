//! Definitions as users write them in a file, in TOML.

use super::LONGEST_TEXT;
use super::part::{AggregatePart, FilterPart, Parts, TriggerPart, Words};
use crate::schema::toml_problem;
use queuescope_text::{Problem, TextError};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

/// The format of files with definitions. It grows when a key gets another name or meaning; new keys do not change it. A
/// file without `format` has format 1.
const FORMAT: u64 = 1;

/// Definitions as they are written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// The version of the format of this file.
    format: Option<Spanned<u64>>,
    /// For people.
    #[serde(default, rename = "about")]
    _about: String,
    /// Read earlier, by `parameter`.
    #[serde(default, rename = "parameters")]
    _parameters: IgnoredAny,
    #[serde(default)]
    index: Vec<Spanned<String>>,
    #[serde(default)]
    filter: Vec<FilterTable>,
    #[serde(default)]
    aggregate: Vec<AggregateTable>,
    #[serde(default)]
    trigger: Vec<TriggerTable>,
}

/// Definitions within another TOML text, which has these arrays somewhere: see [`Definitions::add_tables`](super::Definitions::add_tables).
#[derive(Debug, Default)]
pub struct Tables {
    /// `index`.
    pub index: Vec<Spanned<String>>,
    /// `[[filter]]`.
    pub filter: Vec<FilterTable>,
    /// `[[aggregate]]`.
    pub aggregate: Vec<AggregateTable>,
    /// `[[trigger]]`.
    pub trigger: Vec<TriggerTable>,
}

/// A filter as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterTable {
    name: Spanned<String>,
    expression: Spanned<String>,
}

/// An aggregate as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregateTable {
    name: Spanned<String>,
    function: Spanned<String>,
    filter: Option<Spanned<String>>,
}

/// A trigger as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TriggerTable {
    name: Spanned<String>,
    condition: Spanned<String>,
    period: Option<Spanned<String>>,
    window: Option<Spanned<String>>,
}

/// The parts of a text; `name` names the text in errors.
pub(super) fn parts(name: &str, text: &str) -> Result<Parts, TextError> {
    if text.len() > LONGEST_TEXT {
        let problem =
            Problem::new(format!("the definitions have {} bytes, and at most {LONGEST_TEXT} are read", text.len()));
        return Err(TextError::new(name, "", vec![problem]));
    }
    let file: File = toml::from_str(text).map_err(|found| TextError::new(name, text, vec![toml_problem(&found)]))?;
    if let Some(format) = file.format.filter(|format| *format.get_ref() != FORMAT) {
        let label = format!("this version of queuescope reads format {FORMAT}");
        let problem = Problem::new(format!("the definitions are of format {}", format.get_ref()))
            .at(format.span(), label)
            .help("use a newer version of queuescope");
        return Err(TextError::new(name, text, vec![problem]));
    }
    let File { index, filter, aggregate, trigger, .. } = file;
    Ok(Tables { index, filter, aggregate, trigger }.parts(text))
}

impl Tables {
    /// The parts, which were written in `text`.
    pub(super) fn parts(self, text: &str) -> Parts {
        let words = |written: Spanned<String>| Words::in_quotes(written.get_ref(), text, written.span());
        let filter = |FilterTable { name, expression }| FilterPart { name: words(name), expression: words(expression) };
        let aggregate = |AggregateTable { name, function, filter }| AggregatePart {
            name: words(name),
            function: words(function),
            filter: filter.map(words),
        };
        let trigger = |TriggerTable { name, condition, period, window }| TriggerPart {
            name: words(name),
            condition: words(condition),
            period: period.map(words),
            window: window.map(words),
        };
        Parts {
            indexes: self.index.into_iter().map(words).collect(),
            filters: self.filter.into_iter().map(filter).collect(),
            aggregates: self.aggregate.into_iter().map(aggregate).collect(),
            triggers: self.trigger.into_iter().map(trigger).collect(),
        }
    }
}
