//! Parses expressions and lists of attributes that a user wrote. Errors point at the faulty part of the text.

use anyhow::{Result, anyhow};
use queuescope_analysis::{Show, ShowError};
use queuescope_ingest::ExpressionError;
use queuescope_log::{AttributeId, Dnf, Schema, TextError};
use std::io;

/// Parses an expression to its disjunctive normal form.
///
/// # Errors
/// Fails if the text is invalid, and points at the faulty part.
pub fn expression(schema: &Schema, text: &str) -> Result<Dnf> {
    queuescope_ingest::expression(schema, text).map_err(expression_error)
}

/// Parses `--show`, if it is given.
///
/// # Errors
/// Fails if the expression is invalid, or uses attributes that are not of flows.
pub fn show(text: Option<&str>) -> Result<Option<Show>> {
    Show::from_text(text).map_err(show_error)
}

fn show_error(error: ShowError) -> anyhow::Error {
    match error {
        ShowError::Expression(error) => expression_error(error),
        ShowError::OfPackets { attribute, known } => anyhow!(
            "--show chooses flows, and `{attribute}` differs from packet to packet: use {known}; --victims chooses packets"
        ),
        error => error.into(),
    }
}

/// Words an error in the options of an analysis, and points at the faulty part of an expression.
pub fn analysis_error(error: queuescope_analysis::Error) -> anyhow::Error {
    use queuescope_analysis::Error;
    match error {
        Error::Input(queuescope_ingest::Error::Expression(error)) => expression_error(error),
        Error::Show(error) => show_error(error),
        error => error.into(),
    }
}

/// Words an error in an expression, and points at the faulty part.
pub fn expression_error(error: ExpressionError) -> anyhow::Error {
    match error {
        ExpressionError::Text(error) => rendered(&error),
        error => error.into(),
    }
}

/// Words an error in a scenario, and points at the faulty part.
pub fn scenario_error(error: queuescope_run::Error) -> anyhow::Error {
    use queuescope_run::Error;
    match error {
        Error::Text(error) => rendered(&error),
        Error::Cells(cells) => match &cells.first {
            Error::Text(first) => anyhow!("{}", cells.message(&rendered(first).to_string())),
            _ => anyhow!("{cells}"),
        },
        error => error.into(),
    }
}

/// Words an error of a recording or a query, and points at the faulty part.
pub fn recording_error(error: queuescope_recording::Error) -> anyhow::Error {
    use queuescope_recording::Error;
    match error {
        Error::Text(error) => rendered(&error),
        // The rendered error in the definitions takes several lines.
        Error::Definitions { ref why, .. } => anyhow!("{error}\n{}", rendered(why)),
        error => error.into(),
    }
}

/// Parses a list of attributes that `option` was given.
///
/// # Errors
/// Fails if the text is invalid, and points at the faulty part.
pub fn attributes(option: &str, text: Option<&str>, schema: &Schema) -> Result<Vec<AttributeId>> {
    queuescope_recording::attributes(option, text, schema).map_err(|error| rendered(&error))
}

/// Renders an error in a text that the user wrote, with the text.
pub fn rendered(error: &TextError) -> anyhow::Error {
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    anyhow!("{}", error.render(COLUMNS, colour))
}

/// Largest width of a rendered error, in columns.
const COLUMNS: usize = 100;
