//! Sweeps: results do not depend on the number of threads; they are stored, reused, checked and merged.

#![allow(clippy::disallowed_methods, reason = "tests read and damage what the program wrote")]

use crate::common;
use crate::common::{file, printed, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SWEEP: &str = "crates/cli/tests/data/sweep.toml";
/// The number of its cells.
const CELLS: usize = 12;

/// Runs `sim` with the sweep.
fn sim(words: &str, paths: &[&Path]) -> Output {
    run(&format!("sim {SWEEP} {words}"), paths)
}

/// Runs the sweep with a folder for results. Returns standard output and standard error.
fn sim_with_results(words: &str, folder: &Path) -> (String, String) {
    let output = sim(&format!("{words} --results"), &[folder]);
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    (printed(output, 0), errors)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// The files of cells in a folder, in order of their names.
fn results(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| !path.ends_with("sweep.json")).collect();
    files.sort();
    files
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_output_does_not_depend_on_the_number_of_threads() {
    for words in ["", "--json"] {
        let one = printed(sim(&format!("{words} --jobs 1"), &[]), 0);
        for jobs in [2, 5] {
            assert!(printed(sim(&format!("{words} --jobs {jobs}"), &[]), 0) == one, "{words}, {jobs} threads");
        }
        assert!(one.lines().count() > 8);
    }
}

#[test]
fn a_cell_equals_a_run_of_its_own() {
    let cells = lines(&printed(sim("--json", &[]), 0));
    let cell = cells.iter().find(|line| {
        line["parameters"]["link.limit"] == "40packets"
            && line["parameters"]["flows.flood.count"] == "3"
            && line["seed"] == "2"
    });
    let words = "--json --no-sweep --set link.limit=40packets --set flows.flood.count=3 --set seed=2";
    let alone = lines(&printed(sim(words, &[]), 0));
    let alone = alone.iter().find(|line| line["kind"] == "sim").unwrap().as_object().unwrap();
    let of_sweep = cell.unwrap()["sim"].as_object().unwrap();
    assert!(of_sweep["links"][0]["sent_packets"].as_u64().unwrap() > 100);
    for (key, value) in of_sweep {
        assert_eq!(value, &alone[key], "{key}");
    }
}

#[test]
fn the_lines_match_the_schema_and_the_rows_are_means_of_the_cells() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(file("docs/report.schema.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    let lines = lines(&printed(sim("--json", &[]), 0));
    for line in &lines {
        let errors: Vec<_> = validator.iter_errors(line).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
    }
    let (summary, cells) = lines.split_last().unwrap();
    assert_eq!((summary["kind"].as_str(), cells.len()), (Some("sweep"), CELLS));
    assert!((0..).zip(cells).all(|(index, cell)| cell["index"] == index && cell["kind"] == "sweep_cell"));
    let rows = summary["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let mut varied = 0;
    for (row, cells) in rows.iter().zip(cells.chunks(3)) {
        let values: Vec<_> = cells.iter().map(|cell| cell["figures"]["delay_mean_ns"].as_f64().unwrap()).collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
        // t(0.975, 2) = 4.302653.
        let half = 4.302_653 * deviation / 3f64.sqrt();
        let figure = &row["figures"]["delay_mean_ns"];
        assert!((figure["mean"].as_f64().unwrap() - mean).abs() < 1e-6 * mean);
        assert!((figure["half_width"].as_f64().unwrap() - half).abs() <= 1e-5 * half);
        varied += usize::from(half > 0.0);
        let limit = cells[0]["parameters"]["link.limit"].as_str().unwrap();
        assert_eq!(row["values"], serde_json::json!([limit, cells[0]["parameters"]["flows.flood.count"]]));
    }
    assert!(varied > 0, "seeds make no difference, so intervals were not tried");
}

#[test]
fn stored_results_are_reused_and_damaged_ones_are_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("a/new/folder");
    let whole = printed(sim("--json", &[]), 0);
    let (first, notes) = sim_with_results("--json", &folder);
    assert!(first == whole);
    assert_eq!((results(&folder).len(), notes.as_str()), (CELLS, ""));
    let before: Vec<_> = results(&folder).iter().map(|path| fs::read(path).unwrap()).collect();

    // All results are stored.
    let (again, notes) = sim_with_results("--json --jobs 2", &folder);
    assert!(again == whole);
    assert_eq!(notes, "note: 12 of 12 cells had results from an earlier run\n");

    // Three files are missing, one is cut off, one has a changed number, one belongs to another cell, one is not JSON.
    let files = results(&folder);
    for path in &files[..3] {
        fs::remove_file(path).unwrap();
    }
    fs::write(&files[3], &before[3][..before[3].len() / 2]).unwrap();
    let changed =
        String::from_utf8(before[4].clone()).unwrap().replacen("\"offered_packets\":", "\"offered_packets\":1", 1);
    fs::write(&files[4], changed).unwrap();
    fs::write(&files[5], &before[6]).unwrap();
    fs::write(&files[7], "not a result").unwrap();
    let (mended, notes) = sim_with_results("--json", &folder);
    assert!(mended == whole);
    assert!(notes.contains("note: 5 of 12 cells had results from an earlier run\n"), "{notes}");
    for damaged in [3, 4, 5, 7] {
        let note = format!("note: {} was damaged (", files[damaged].display());
        assert!(notes.contains(&note), "{notes}");
    }
    assert!(notes.contains("(its digest does not match)") && notes.contains("(it belongs to another cell)"), "{notes}");
    assert_eq!(notes.lines().count(), 5, "{notes}");
    let after: Vec<_> = results(&folder).iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(before == after);
}

#[test]
fn a_killed_run_leaves_complete_files_and_can_continue() {
    let directory = tempfile::tempdir().unwrap();
    let words = format!("sim {SWEEP} --set duration=20s --seeds 40 --json --results");
    let mut child = Command::new(env!("CARGO_BIN_EXE_queuescope"))
        .current_dir(common::ROOT)
        .args(words.split_whitespace())
        .arg(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Once it has printed a cell, it is in the middle of its work.
    let mut first = [0; 1];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());
    let files: Vec<_> =
        results(directory.path()).into_iter().filter(|path| path.extension().unwrap() == "json").collect();
    assert!(!files.is_empty() && files.len() < 160, "{}", files.len());
    for path in &files {
        serde_json::from_slice::<Value>(&fs::read(path).unwrap()).expect("the file is whole");
    }
    let plan: Value = serde_json::from_slice(&fs::read(directory.path().join("sweep.json")).unwrap()).unwrap();
    let first = plan["cells"][0].as_str().unwrap();
    // A file that was being written when the program was killed is not taken for a result, and is removed.
    let unfinished = directory.path().join(format!("{first}.1-0.unfinished"));
    fs::write(&unfinished, "{").unwrap();
    fs::remove_file(directory.path().join(format!("{first}.json"))).unwrap();
    let shard = "--set duration=20s --seeds 40 --shard 1/40";
    let output = run(&format!("sim {SWEEP} {shard} --results"), &[directory.path()]);
    assert!(errors(&output).is_empty() || errors(&output).contains("cells had results"), "{}", errors(&output));
    assert_eq!(output.status.code(), Some(0));
    assert!(!unfinished.exists() && directory.path().join(format!("{first}.json")).exists());
}

#[test]
fn shards_merge_to_the_whole_sweep() {
    let directory = tempfile::tempdir().unwrap();
    let folders: Vec<_> = (1..=3).map(|part| directory.path().join(format!("part{part}"))).collect();
    let paths: Vec<_> = folders.iter().map(PathBuf::as_path).collect();
    let words = "--seeds 5";
    for (part, folder) in (1..).zip(&folders) {
        let (text, _) = sim_with_results(&format!("{words} --shard {part}/3"), folder);
        let here = [7, 7, 6][part - 1];
        assert!(text.contains(&format!("20, of which {here} are here")), "{text}");
        assert_eq!(results(folder).len(), here);
    }
    let page = directory.path().join("page.html");
    for format in ["", "--json"] {
        let whole = sim(&format!("{words} {format} --html"), &[&page]);
        let of_whole = fs::read(&page).unwrap();
        let merged = run(&format!("merge {format} --html"), &[&[page.as_path()], &paths[..]].concat());
        assert_eq!(errors(&merged), "");
        assert!(printed(merged, 0) == printed(whole, 0), "{format}");
        assert!(fs::read(&page).unwrap() == of_whole);
    }

    // One shard is missing: the others are printed, with the names of the missing cells.
    let two = run("merge", &paths[..2]);
    let notes = errors(&two);
    assert!(
        notes.starts_with("error: 6 of 20 cells are missing:\n  link.limit=10packets, flows.flood.count=2, seed 3\n"),
        "{notes}"
    );
    assert!(printed(two, 1).contains("20, of which 14 are here"));

    // Equal duplicates are noted, and do no harm.
    for path in results(&folders[0]) {
        fs::copy(&path, folders[1].join(path.file_name().unwrap())).unwrap();
    }
    let doubles = run("merge", &paths);
    assert_eq!(errors(&doubles), "note: 7 of 20 cells are in more than one folder, with the same result\n");
    assert_eq!(printed(doubles, 0), printed(sim(words, &[]), 0));

    // A damaged result counts as missing. If another folder has it, the sweep is complete, but the damage is reported.
    let first = &results(&folders[0])[0];
    fs::write(first, "{}").unwrap();
    let mended = run("merge", &paths);
    let notes = errors(&mended);
    assert!(
        notes.contains("error: 1 results are damaged:\n") && notes.contains(&first.display().to_string()),
        "{notes}"
    );
    assert_eq!(printed(mended, 1), printed(sim(words, &[]), 0));
}

#[test]
fn duplicates_that_differ_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
    sim_with_results("", &one);
    sim_with_results("", &other);
    // As if another machine had got a different result: the contents of another cell, under the name of this one.
    let files = results(&other);
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = fs::read_to_string(&files[1]).unwrap();
    fs::write(&files[0], text.replacen(&stem(&files[1]), &stem(&files[0]), 1)).unwrap();
    let merged = run("merge", &[&one, &other]);
    let notes = errors(&merged);
    assert!(notes.contains("note: 11 of 12 cells are in more than one folder"), "{notes}");
    assert!(notes.contains("error: 1 of 12 cells have different results in different folders"), "{notes}");
    assert_eq!(printed(merged, 1), printed(sim("", &[]), 0));
}

#[test]
fn results_of_different_sweeps_are_not_merged() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| directory.path().join(name));
    sim_with_results("", &one);
    for (words, why) in [
        ("--sweep link.limit=10packets,50packets", "their parameters differ"),
        ("--set link.delay=3ms", "their scenarios differ"),
        ("--seeds 2", "their seeds differ"),
    ] {
        _ = fs::remove_dir_all(&other);
        sim_with_results(words, &other);
        let merged = run("merge", &[&one, &other]);
        assert!(
            errors(&merged).contains(&format!("do not hold results of the same sweep: {why}")),
            "{}",
            errors(&merged)
        );
        assert_eq!(merged.status.code(), Some(2));
    }
}

#[test]
fn another_parameter_or_version_makes_another_key() {
    let keys = |words: &str| -> Vec<String> {
        let lines = lines(&printed(sim(&format!("--json {words}"), &[]), 0));
        lines.iter().filter_map(|line| Some(line["key"].as_str()?.to_owned())).collect()
    };
    let plain = keys("");
    assert_eq!(plain.len(), CELLS);
    for words in ["--set link.delay=3ms", "--set duration=601ms", "--set seed=100", "--set stack.mss=1000"] {
        let keys = keys(words);
        assert!(keys.len() == CELLS && keys.iter().all(|key| !plain.contains(key)), "{words}: {keys:?}");
    }
    // More seeds or more values keep the existing keys. How a value is written does not matter.
    let more = keys("--seeds 4");
    assert!(plain.iter().all(|key| more.contains(key)));
    assert_eq!(keys("--set link.rate=4000kbps"), plain);

    // Results of an older version are not used: here, a file of the older format under today's name.
    let directory = tempfile::tempdir().unwrap();
    sim_with_results("", directory.path());
    for path in results(directory.path()) {
        let text = fs::read_to_string(&path).unwrap().replacen("\"format\":2", "\"format\":0", 1);
        fs::write(&path, text).unwrap();
    }
    let (_, notes) = sim_with_results("", directory.path());
    assert!(notes.contains("(its format is 0)"), "{notes}");
}

#[test]
fn a_file_that_the_scenario_names_is_a_part_of_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let [scenario, trace, folder] = ["s.toml", "link.trace", "results"].map(|name| directory.path().join(name));
    let text = "duration = \"200ms\"\n[link]\ntrace = \"link.trace\"\n[[flows]]\nudp = \"5mbps\"\n[sweep]\nseeds = 2\n";
    fs::write(&scenario, text).unwrap();
    let notes = || {
        let output = run("sim --results", &[&folder, &scenario]);
        let notes = errors(&output);
        printed(output, 0);
        notes
    };
    fs::write(&trace, "1\n2\n3\n4\n").unwrap();
    assert_eq!(notes(), "");
    assert!(notes().contains("2 of 2 cells had results"));
    fs::write(&trace, "1\n2\n3\n5\n").unwrap();
    assert!(notes().contains("the results so far are of another sweep"));
    assert_eq!(results(&folder).len(), 4);

    // A plan of the older format, whose cells this version does not have.
    let plan = folder.join("sweep.json");
    let text = fs::read_to_string(&plan).unwrap().replacen("\"format\":2", "\"format\":1", 1);
    fs::write(&plan, text).unwrap();
    fs::write(&trace, "1\n2\n3\n6\n").unwrap();
    let older = notes();
    assert!(older.contains("the results so far have the older format 1, of version "), "{older}");
    assert!(older.contains(": all cells are computed again; the old files stay"), "{older}");
    assert_eq!(results(&folder).len(), 6);
    fs::remove_file(&trace).unwrap();
    let output = run("sim", &[&scenario]);
    assert!(errors(&output).contains("cannot read link.trace"), "{}", errors(&output));
}

#[test]
fn invalid_cells_are_reported_before_the_first_one_runs() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("results");
    let output = sim("--sweep warmup=100ms,300ms --sweep duration=200ms,600ms --results", &[&folder]);
    let notes = errors(&output);
    assert!(notes.contains("12 of the sweep's 48 cells cannot be run, so nothing is:\n"), "{notes}");
    assert!(
        notes.contains("warmup=300ms, duration=200ms")
            && notes.contains("the warm-up is not shorter than the scenario"),
        "{notes}"
    );
    assert_eq!(notes.matches("warmup=300ms, duration=200ms").count(), 4, "each combination once: {notes}");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty() && !folder.exists());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let words = format!("sim {SWEEP} --seeds 500 --json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    let command = command.current_dir(common::ROOT).args(words.split_whitespace());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), ""));
}

#[test]
fn unusable_folders_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let occupied = directory.path().join("file");
    fs::write(&occupied, "").unwrap();
    let output = sim("--results", &[&occupied]);
    assert!(errors(&output).contains(&format!("cannot write {}", occupied.display())), "{}", errors(&output));
    assert_eq!(output.status.code(), Some(2));

    // A file that is not a plan is not overwritten.
    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("sweep.json"), "{\"mine\": true}").unwrap();
    for command in [sim("--results", &[&foreign]), run("merge", &[&foreign])] {
        assert!(errors(&command).contains("is not a plan of a sweep"), "{}", errors(&command));
        assert_eq!(command.status.code(), Some(2));
    }
    assert_eq!(fs::read_to_string(foreign.join("sweep.json")).unwrap(), "{\"mine\": true}");
    let none = run("merge", &[directory.path()]);
    assert!(errors(&none).contains("has no results"), "{}", errors(&none));
}

#[test]
fn the_page_and_the_table_have_every_cell() {
    let directory = tempfile::tempdir().unwrap();
    let [page, table] = ["page.html", "cells.parquet"].map(|name| directory.path().join(name));
    printed(sim("--html", &[&page, "--parquet".as_ref(), &table]), 0);
    let page = fs::read_to_string(page).unwrap();
    let data = page.split("id=\"report-data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["rows"].as_array().unwrap().len(), 4);
    let bytes = fs::read(table).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}
