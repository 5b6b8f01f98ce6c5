//! The parameters of programs that scenarios do not have.

use anyhow::{Context, Result, bail};

/// Replaces parameters: `KEY=VALUE`. `known` are their keys, and `replace` says why a value is not one.
///
/// # Errors
/// Names the first text that has no known key, is a second value, or is not a value.
pub(super) fn replace_all(
    set: &[String],
    known: &[String],
    mut replace: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<()> {
    let mut keys = Vec::new();
    for text in set {
        let (key, value) = text.split_once('=').with_context(|| format!("--set {text}: write KEY=VALUE"))?;
        let (key, value) = (key.trim(), value.trim());
        if !known.iter().any(|it| it == key) {
            bail!("--set {text}: unknown parameter: use one of {}", known.join(", "));
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
