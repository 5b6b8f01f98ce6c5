//! Experiments, small: what comes out does not drift.
//!
//! `GOLDEN=overwrite cargo test -p queuescope --test experiment` writes what comes out now.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

mod common;

use common::{file, printed, run};
use std::fs;

#[test]
fn abc_small() {
    let folder = tempfile::tempdir().unwrap();
    let again = || printed(run("experiment abc --small --out", &[folder.path()]), 0);
    let first = again();
    let made = folder.path().join("abc");
    golden("abc", &fs::read_to_string(made.join("findings.md")).unwrap());
    for figure in ["figure-4", "figure-5", "figure-6"] {
        let plot = fs::read_to_string(made.join(format!("{figure}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("client 1, with ABC") && plot.contains("goodput (Mb/s)"));
        let data = fs::read_to_string(made.join(format!("{figure}.csv"))).unwrap();
        let first = data.lines().next().unwrap();
        assert!(first.starts_with("ABC,") && first.contains(",seed,client 0 goodput (Mb/s)"), "{first}");
    }
    // What is there is not run again, and says the same; what is damaged is.
    assert_eq!(again(), first);
    let cells = fs::read_dir(made.join("cells")).unwrap().map(|entry| entry.unwrap().path());
    let cell = cells.into_iter().find(|path| path.extension().is_some_and(|it| it == "json")).unwrap();
    // The scenario beside a result can be run by itself.
    printed(run("sim --explain", &[&cell.with_extension("toml")]), 0);
    fs::write(&cell, "{").unwrap();
    assert_eq!(again(), first);
    assert!(fs::read_to_string(&cell).unwrap().len() > 1);
}

#[test]
fn conquest_aqm_small() {
    let folder = tempfile::tempdir().unwrap();
    printed(run("experiment conquest-aqm --small --out", &[folder.path()]), 0);
    let made = folder.path().join("conquest-aqm");
    golden("conquest-aqm", &fs::read_to_string(made.join("findings.md")).unwrap());
    for (plot, axis) in [("figure-10-99", "99 % (us)"), ("figure-11-queue", "queue (packets)")] {
        let plot = fs::read_to_string(made.join(format!("{plot}.svg"))).unwrap();
        assert!(plot.starts_with("<svg") && plot.contains("ConQuest 512") && plot.contains(axis));
    }
    let data = fs::read_to_string(made.join("figure-11.csv")).unwrap();
    assert!(data.starts_with("tcp,marks,seed,") && data.contains("at 012 ms (packets)"));
}

fn golden(name: &str, text: &str) {
    let path = file(&format!("crates/cli/tests/data/experiments/{name}.md"));
    if std::env::var_os("GOLDEN").is_some_and(|value| value == "overwrite") {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&path).unwrap(), "{}", path.display());
}
