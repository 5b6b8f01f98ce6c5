//! The output of `cargo metadata`.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::process::Command;

/// Runs `cargo metadata` with further arguments.
pub fn read(arguments: &[&str]) -> anyhow::Result<Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .output()
        .context("cargo metadata could not be started")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

/// A field that is a list.
pub fn list<'a>(value: &'a Value, field: &str) -> anyhow::Result<&'a Vec<Value>> {
    value.get(field).and_then(Value::as_array).with_context(|| format!("cargo metadata has no list '{field}'"))
}

/// A field that is text.
pub fn text<'a>(value: &'a Value, field: &str) -> anyhow::Result<&'a str> {
    value.get(field).and_then(Value::as_str).with_context(|| format!("cargo metadata has no text '{field}'"))
}
