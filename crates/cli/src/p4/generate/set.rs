//! The parameters of programs that scenarios do not have.

use anyhow::{Context, Result, bail};

/// Replaces parameters of a program: `KEY=VALUE`. `known` are their keys, and `replace` says why a value is not one.
///
/// # Errors
/// Names the first text that has no known key, is a second value, or is not a value.
pub(super) fn replace_all(
    program: &str,
    set: &[String],
    known: &[String],
    mut replace: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<()> {
    let mut keys = Vec::new();
    for text in set {
        let (key, value) = text.split_once('=').with_context(|| format!("--set {text}: write KEY=VALUE"))?;
        let (key, value) = (key.trim(), value.trim());
        if !known.iter().any(|it| it == key) {
            bail!("--set {text}: unknown parameter: {}", instead(program, known));
        }
        if keys.contains(&key) {
            bail!("--set {text}: {key} is set twice: give it one value");
        }
        if let Err(why) = replace(key, value) {
            bail!("--set {text}: '{value}' {why}");
        }
        keys.push(key);
    }
    Ok(())
}

/// The most parameters that an error lists.
const MOST_LISTED: usize = 16;

/// What to use in place of a parameter that a program does not have: one of its own, which are listed if they are few.
pub(super) fn instead(program: &str, known: &[impl AsRef<str>]) -> String {
    let known: Vec<_> = known.iter().map(AsRef::as_ref).collect();
    match known.len() {
        0 => "it has none".to_owned(),
        1..=MOST_LISTED => format!("use one of {}", known.join(", ")),
        all => format!("use one of the {all} that 'queuescope p4 generate {program} --explain' lists"),
    }
}
