//! Other programs read what `record` wrote: DuckDB, pyarrow and polars, and Spark if `QUEUESCOPE_SPARK=1`.
//!
//! `readers.py` runs them. `QUEUESCOPE_PYTHON` names the Python that has them; the default is `python3`.

#![allow(clippy::disallowed_methods, reason = "it reads a page of the documentation, and looks for Python")]

use crate::common::{at_times, file, printed, run};
use queuescope_log::{LAST_TIME, packet};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The page whose recordings and examples the tests run.
const PAGE: &str = "docs/how-to/archive.md";
/// The page of uploads, whose examples the tests run.
const UPLOADS: &str = "docs/how-to/upload.md";

#[test]
fn every_reader_finds_what_query_prints() {
    let Some(python) = Python::find("every_reader_finds_what_query_prints") else { return };
    let folder = recorded();
    let schema = packet::schema();
    let stored = schema.iter().filter(|(_, attribute)| !attribute.view);
    let names: Vec<_> = stored.map(|(_, attribute)| attribute.name.as_str()).collect();
    let rows = printed(run(&format!("query --csv --select {}", names.join(",")), &[&folder.path().join("traffic")]), 0);
    assert_eq!(rows.lines().count(), 1 + 19_130);
    let path = folder.path().join("rows.csv");
    std::fs::write(&path, rows).expect("there is room");
    let output = python.run(folder.path(), "rows", &path);
    assert_eq!(output.matches("19,130 rows of 64 columns are the same").count(), 3, "{output}");
}

#[test]
fn every_reader_agrees_on_the_first_and_the_last_times() {
    let Some(python) = Python::find("every_reader_agrees_on_the_first_and_the_last_times") else { return };
    let folder = tempfile::tempdir().expect("there is room");
    let (log, path) = (folder.path().join("traffic"), folder.path().join("a.pcapng"));
    let days = (0..10).map(|number| number * 86_400_000_000_000 * 9_000);
    // Repeat each time: pyarrow 26 does not read strings in delta encoding, which columns with few records use.
    let times: Vec<_> = [0, 1, LAST_TIME, LAST_TIME - 1].into_iter().chain(days).collect::<Vec<_>>().repeat(8);
    std::fs::write(&path, at_times(&times)).expect("there is room");
    printed(run("record --log", &[&log, &path]), 0);
    let stored = packet::schema().iter().filter(|(_, attribute)| !attribute.view);
    let names: Vec<_> = stored.map(|(_, attribute)| attribute.name.as_str()).collect();
    let rows = printed(run(&format!("query --csv --select {}", names.join(",")), &[&log]), 0);
    std::fs::write(&path, rows).expect("there is room");
    let output = python.run(folder.path(), "rows", &path);
    assert_eq!(output.matches("112 rows of 64 columns are the same").count(), 3, "{output}");
}

#[test]
fn the_examples_of_the_page_print_what_it_shows() {
    let Some(python) = Python::find("the_examples_of_the_page_print_what_it_shows") else { return };
    let folder = recorded();
    python.run(folder.path(), "page", &file(PAGE).canonicalize().expect("it is there"));
}

#[test]
fn other_programs_read_the_uploads_of_two_hosts() {
    let Some(python) = Python::find("other_programs_read_the_uploads_of_two_hosts") else { return };
    let folder = uploaded();
    python.run(folder.path(), "uploads", folder.path());
    python.run(folder.path(), "examples", &file(UPLOADS).canonicalize().expect("it is there"));
}

/// A folder with the uploads of two hosts in `store`, a manifest of a cut, and what the hosts' own folders have.
fn uploaded() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    let (path, store) = (folder.path(), format!("file://{}", folder.path().join("store").display()));
    std::fs::create_dir(path.join("store")).expect("there is room");
    let mut members = Vec::new();
    for (host, position, captures) in [
        ("web-1", 10_000, ["data/demo.pcap.xz"].as_slice()),
        ("web-2", 181, &["data/formats/raw-ip.pcap", "data/formats/ipv6-http.pcap"]),
    ] {
        let log = path.join(format!("{host}.log"));
        for capture in captures {
            printed(run(&format!("record {capture} --log"), &[&log]), 0);
        }
        printed(run(&format!("fleet upload --host {host} --to {store}"), &[&log]), 0);
        let groups = printed(run("query --csv --group dst_ip --select count,sum(length)", &[&log]), 0);
        std::fs::write(path.join(format!("{host}.csv")), groups).expect("there is room");
        let list = std::fs::read_to_string(log.join("uploads.jsonl")).expect("it is there");
        let list: serde_json::Value =
            serde_json::from_str(list.lines().next().expect("it has a header")).expect("it is JSON");
        members
            .push(serde_json::json!({"host": host, "position": position, "folder": list["store"], "schema": "packet"}));
    }
    let cut = serde_json::json!({"cut": 1, "void": null, "members": members});
    std::fs::write(path.join("cut.json"), cut.to_string()).expect("there is room");
    let manifest = printed(run(&format!("fleet manifest --store {store}"), &[&path.join("cut.json")]), 0);
    std::fs::write(path.join("manifest.json"), manifest).expect("there is room");
    folder
}

/// A folder with the recordings of the page in `traffic`.
fn recorded() -> TempDir {
    let folder = tempfile::tempdir().expect("there is room");
    let page = std::fs::read_to_string(file(PAGE)).expect("it is there");
    let captures: Vec<_> = page
        .lines()
        .filter_map(|line| line.strip_prefix("$ queuescope record ")?.strip_suffix(" --log traffic"))
        .collect();
    assert_eq!(captures.len(), 3, "{captures:?}");
    for capture in captures {
        printed(run(&format!("record {capture} --log"), &[&folder.path().join("traffic")]), 0);
    }
    folder
}

/// A Python with the packages that read Parquet.
struct Python(PathBuf);

impl Python {
    /// The first Python that has the packages. If there is none, prints why the test is skipped.
    fn find(test: &str) -> Option<Self> {
        let mut why = Vec::new();
        let named = std::env::var_os("QUEUESCOPE_PYTHON").filter(|name| !name.is_empty());
        for program in named.into_iter().chain(["python3".into()]) {
            let python = Self(program.into());
            let name = python.0.display();
            match python.command("needs").output() {
                Ok(output) if output.status.success() && output.stdout.trim_ascii().is_empty() => return Some(python),
                Ok(output) if output.status.success() => {
                    why.push(format!("there is no {} for {name}", String::from_utf8_lossy(output.stdout.trim_ascii())));
                }
                Ok(_) => why.push(format!("{name} is not Python 3.10 or newer")),
                Err(error) => why.push(format!("{name} does not start: {error}")),
            }
        }
        println!("skipped: {test}: {}", why.join("; "));
        None
    }

    fn command(&self, what: &str) -> Command {
        let mut command = Command::new(&self.0);
        command.arg(file("crates/cli/tests/readers.py").canonicalize().expect("it is there")).arg(what);
        command
    }

    /// The script's output on a file. `folder` has the recording.
    fn run(&self, folder: &Path, what: &str, path: &Path) -> String {
        let Output { status, stdout, stderr } =
            self.command(what).arg(path).current_dir(folder).output().expect("it started before");
        let (output, errors) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "{output}{errors}");
        // It names the readers that it skipped.
        println!("{output}");
        output.into_owned()
    }
}
