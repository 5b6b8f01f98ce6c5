//! Expressions and lists of attributes that a user wrote, and errors that show what is wrong in their text.

use anyhow::{Result, anyhow};
use queuescope_analysis::{Show, ShowError};
use queuescope_ingest::ExpressionError;
use queuescope_log::{AttributeId, Dnf, Schema, TextError};
use std::io;

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

/// An error of a recording or a query, in its text.
pub fn of_recording(error: queuescope_recording::Error) -> anyhow::Error {
    use queuescope_recording::Error;
    match error {
        Error::Text(error) => shown(&error),
        // What is wrong has lines of its own.
        Error::Definitions { ref why, .. } => anyhow!("{error}\n{}", shown(why)),
        error => error.into(),
    }
}

/// A list of attributes.
///
/// # Errors
/// What is wrong with it, in its text.
pub fn attributes(option: &str, text: Option<&str>, schema: &Schema) -> Result<Vec<AttributeId>> {
    queuescope_recording::attributes(option, text, schema).map_err(|error| shown(&error))
}

/// An error that shows the text that the user wrote.
pub fn shown(error: &TextError) -> anyhow::Error {
    let colour = anstream::AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never;
    anyhow!("{}", error.render(COLUMNS, colour))
}

/// Columns that an error may take.
const COLUMNS: usize = 100;
