//! How a run ends: its output, and whether its input was complete.

use anyhow::{Context, Result, anyhow};
use std::io::{self, BufWriter, Write};

/// How a command ended, which decides its exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The whole input was read, and everything was written. Exit status 0.
    Complete,
    /// The input ended early, or parts of it could not be read or written, for this reason. The rest is in the report. Exit
    /// status 1.
    Damaged(String),
    /// The command that was run ended with this status, as shells number it.
    Ended(u8),
}

impl Outcome {
    /// `Damaged` if there is damage, and `Complete` otherwise.
    pub fn from_damage(damage: Option<String>) -> Self {
        damage.map_or(Self::Complete, Self::Damaged)
    }
}

/// Prints to standard output, as JSON or as text. Text keeps its styles if standard output shows them. A closed pipe is not
/// an error.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn print(
    as_json: bool,
    json: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    let result = if as_json {
        let mut out = BufWriter::new(io::stdout().lock());
        json(&mut out).and_then(|()| out.flush())
    } else {
        let mut out = anstream::stdout().lock();
        text(&mut out).and_then(|()| out.flush())
    };
    ignore_closed_pipe(result)
}

/// Adds context to an error of writing to standard output. A closed pipe is not an error.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn ignore_closed_pipe(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// The results of two steps that are both done, even if one fails.
///
/// # Errors
/// Fails if one of them failed. If both did, the message has both errors.
pub fn both<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(error), Err(other)) => Err(anyhow!("{error:#}; and {other:#}")),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}
