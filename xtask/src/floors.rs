//! The crates have floors: a crate may import only crates of lower floors, never of its own floor.

use crate::metadata::{self, list, text};
use anyhow::{bail, ensure};
use serde_json::Value;

/// Every crate of the workspace and its floor. Development tools have none.
const FLOORS: &[(&str, u8)] = &[
    ("queuescope-wire", 0),
    ("queuescope-text", 0),
    ("queuescope-unpack", 0),
    ("queuescope-pcap", 1),
    ("queuescope-sketch", 1),
    ("queuescope-table", 1),
    ("queuescope-log", 1),
    ("queuescope-tcp", 1),
    ("queuescope-archive", 2),
    ("queuescope-queue", 2),
    ("queuescope-meter", 2),
    ("queuescope-live", 3),
    ("queuescope-p4", 3),
    ("queuescope-report", 3),
    ("queuescope-scenario", 3),
    ("queuescope-sim", 4),
    ("queuescope-ingest", 5),
    ("queuescope-analysis", 6),
    ("queuescope-run", 6),
    ("queuescope-experiments", 7),
    ("queuescope-link", 7),
    ("queuescope-recording", 7),
    ("queuescope-monitor", 8),
    ("queuescope", 9),
    ("queuescope-fleet", 9),
    ("queuescope-cli", 10),
    ("queuescope-python", 10),
];

/// The command, and the dependencies that only it may use: the other crates have their own errors, options and
/// progress.
const COMMAND: &str = "queuescope-cli";
const OF_COMMANDS: &[&str] = &["anyhow", "clap", "indicatif"];

/// Crates that are not part of the product.
const OUTSIDE: &[&str] = &["behaviour", "cuts", "multilog", "probe", "xtask"];

/// Reads the workspace's crates from cargo, and checks them.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    ensure!(arguments.is_empty(), "'{}' is not expected here", arguments.join(" "));
    let metadata = metadata::read(&["--no-deps"])?;
    let problems = problems(&metadata)?;
    if !problems.is_empty() {
        bail!("the floors are broken:\n  {}", problems.join("\n  "));
    }
    println!("floors: {} crates import only lower floors", FLOORS.len());
    Ok(())
}

/// Violations of the rule, one sentence each.
fn problems(metadata: &Value) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    for package in list(metadata, "packages")? {
        let name = text(package, "name")?;
        if OUTSIDE.contains(&name) {
            continue;
        }
        let Some(floor) = floor(name) else {
            problems.push(format!("{name} has no floor; give it one in xtask/src/floors.rs and in ARCHITECTURE.md"));
            continue;
        };
        for dependency in list(package, "dependencies")? {
            let imported = text(dependency, "name")?;
            if name != COMMAND && OF_COMMANDS.contains(&imported) {
                problems.push(format!("{name} imports {imported}, which only {COMMAND} may use"));
            }
            // Only a dependency with a path is one of our crates. A registry crate may have any name.
            if dependency.get("path").is_none_or(Value::is_null) {
                continue;
            }
            match self::floor(imported) {
                Some(lower) if lower < floor => {}
                Some(other) => problems.push(format!("{name} (floor {floor}) imports {imported} (floor {other})")),
                None => problems.push(format!("{name} (floor {floor}) imports {imported}, which has no floor")),
            }
        }
    }
    Ok(problems)
}

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, floor)| *floor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(name: &str, imports: &[&str]) -> Vec<String> {
        let dependencies: Vec<_> = imports.iter().map(|name| json!({ "name": name, "path": "/somewhere" })).collect();
        problems(&json!({ "packages": [{ "name": name, "dependencies": dependencies }] })).unwrap()
    }

    #[test]
    fn lower_floors_may_be_imported() {
        assert_eq!(of("queuescope-sim", &["queuescope-wire", "queuescope-queue"]), [""; 0]);
        assert_eq!(of("xtask", &["queuescope"]), [""; 0]);
    }

    #[test]
    fn a_crate_may_not_import_its_own_floor_or_higher_ones() {
        assert_eq!(
            of("queuescope-meter", &["queuescope-queue", "queuescope-report"]),
            [
                "queuescope-meter (floor 2) imports queuescope-queue (floor 2)",
                "queuescope-meter (floor 2) imports queuescope-report (floor 3)",
            ]
        );
    }

    #[test]
    fn a_crate_needs_a_floor() {
        assert!(of("queuescope-new", &[])[0].contains("has no floor"));
        assert!(of("queuescope", &["xtask"])[0].contains("has no floor"));
    }

    #[test]
    fn a_registry_crate_is_not_one_of_ours() {
        let metadata = json!({ "packages": [{ "name": "queuescope-wire", "dependencies": [
            { "name": "queuescope-sim", "path": null }, { "name": "hashbrown" },
        ] }] });
        assert_eq!(problems(&metadata).unwrap(), [""; 0]);
    }

    #[test]
    fn only_the_command_may_use_what_belongs_to_commands() {
        let command = json!({ "packages": [{ "name": "queuescope-cli", "dependencies": [{ "name": "clap" }] }] });
        assert_eq!(problems(&command).unwrap(), [""; 0]);
        let metadata = json!({ "packages": [{ "name": "queuescope-wire", "dependencies": [{ "name": "clap" }] }] });
        assert_eq!(problems(&metadata).unwrap(), ["queuescope-wire imports clap, which only queuescope-cli may use"]);
    }

    #[test]
    fn missing_metadata_is_an_error() {
        assert!(problems(&json!({})).is_err());
    }
}
