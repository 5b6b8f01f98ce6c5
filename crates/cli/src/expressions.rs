//! Expressions and lists of attributes that a user wrote, and errors that show what is wrong in their text.

use anyhow::{Result, anyhow};
use queuescope_analysis::{Show, ShowError};
use queuescope_ingest::ExpressionError;
use queuescope_log::{AttributeId, Dnf, Schema, TextError};
use queuescope_text::{Problem, did_you_mean};
use std::io;
use std::ops::Range;

/// An expression in its normal form.
///
/// # Errors
/// What is wrong with it, in its text.
pub fn expression(schema: &Schema, text: &str) -> Result<Dnf> {
    queuescope_ingest::expression(schema, text).map_err(explained)
}

/// What `--show` means, if it is given.
///
/// # Errors
/// What is wrong with it.
pub fn show(text: Option<&str>) -> Result<Option<Show>> {
    Show::of(text).map_err(of_show)
}

fn of_show(error: ShowError) -> anyhow::Error {
    match error {
        ShowError::Expression(error) => explained(error),
        ShowError::OfPackets { attribute, known } => anyhow!(
            "--show chooses flows, and `{attribute}` differs from packet to packet: use {known}; --victims chooses packets"
        ),
        error => error.into(),
    }
}

/// An error of what is asked of a queue, in the text of its expression.
pub fn of_analysis(error: queuescope_analysis::Error) -> anyhow::Error {
    use queuescope_analysis::Error;
    match error {
        Error::Input(queuescope_ingest::Error::Expression(error)) => explained(error),
        Error::Show(error) => of_show(error),
        error => error.into(),
    }
}

/// An error of an expression, in its text.
pub fn explained(error: ExpressionError) -> anyhow::Error {
    match error {
        ExpressionError::Text(error) => shown(&error),
        error => error.into(),
    }
}

/// An error of a scenario, in its text.
pub fn of_scenario(error: queuescope_run::Error) -> anyhow::Error {
    use queuescope_run::Error;
    match error {
        Error::Text(error) => shown(&error),
        Error::Cells(cells) => match &cells.first {
            Error::Text(first) => anyhow!("{}", cells.message(&shown(first).to_string())),
            _ => anyhow!("{cells}"),
        },
        error => error.into(),
    }
}

/// A list of attributes.
///
/// # Errors
/// What is wrong with it.
pub fn attributes(option: &str, text: Option<&str>, schema: &Schema) -> Result<Vec<AttributeId>> {
    let text = text.unwrap_or_default();
    let found = list(text).map(|(word, span)| comparable(word, &span, schema)).collect::<Result<_, _>>();
    found.map_err(|problem| wrong(option, text, problem))
}

/// That an option is wrong, in its text.
pub fn wrong(option: &str, text: &str, problem: Problem) -> anyhow::Error {
    shown(&TextError::new(option, text, vec![problem]))
}

/// The words between commas, and where they are.
pub fn list(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
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
/// If there is none of this name, or its values are not compared.
pub fn comparable(word: &str, span: &Range<usize>, schema: &Schema) -> Result<AttributeId, Problem> {
    let id = attribute(word, span, schema, &[])?;
    if schema.attribute(id).is_comparable() {
        Ok(id)
    } else {
        Err(Problem::new(format!("values of `{word}` are not compared")).at(span, "it has too many bytes"))
    }
}

/// An attribute by its name; `others` are names that could be meant too.
///
/// # Errors
/// If there is none of this name.
pub fn attribute(word: &str, span: &Range<usize>, schema: &Schema, others: &[&str]) -> Result<AttributeId, Problem> {
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

/// An error that shows the text that the user wrote.
pub fn shown(error: &TextError) -> anyhow::Error {
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    anyhow!("{}", error.render(COLUMNS, colour))
}

/// Columns that an error may take.
const COLUMNS: usize = 100;
