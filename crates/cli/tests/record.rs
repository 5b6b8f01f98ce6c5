//! `query` finds what `record` stored in a folder.

use crate::common::{ROOT, file, printed, run, run_with_input};
use std::path::Path;
use std::process::Command;

#[test]
fn a_folder_answers_queries_like_the_capture() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    let recorded = printed(run("record --durability synced --log", &[&log, &demo]), 0);
    assert!(recorded.starts_with("18,949 packets of "), "{recorded}");
    for question in ["--select count,sum(length),max(ts)", "--group dst_ip --top 3 --json", "--csv --limit 50"] {
        let of = |path| {
            let text = printed(run(&format!("query {question}"), &[path]), 0);
            // The last line names the query.
            text.lines()
                .filter(|line| !line.contains("of 18,949") && !line.contains("answer"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(of(&log), of(&demo), "{question}");
    }
    // A second recording appends, here with a filter.
    let recorded = printed(run("record --where tcp --log", &[&log, &demo]), 0);
    assert!(
        recorded.contains("14,074 packets of ") && recorded.contains(", after the 18,949 already there"),
        "{recorded}"
    );
    let count = printed(run("query --select count --csv", &[&log]), 0);
    assert_eq!(count, "count\n33023\n");
    let verified = printed(run("log verify", &[&log]), 0);
    assert_eq!(verified.matches("intact").count(), 2, "{verified}");
    assert!(printed(run("log info", &[&log]), 0).contains("33,023 records of packet"));
    // With too little memory nothing is recorded.
    assert_eq!(run("record --memory 1MB --log", &[&log, &demo]).status.code(), Some(2));
    // An invalid expression and an invalid capture leave the folder unchanged.
    for words in ["record --where nonsense --log", "record --log"] {
        let input = if words.contains("nonsense") { demo.clone() } else { file("README.md") };
        assert_eq!(run(words, &[&log, &input]).status.code(), Some(2));
    }
    assert_eq!(printed(run("log verify", &[&log]), 0), verified);
}

/// A log's records take addresses as they come, so a limit of addresses need not be larger than the memory.
#[cfg(target_os = "linux")]
#[test]
fn folders_are_recorded_and_queried_under_a_limit_of_addresses() {
    let folder = tempfile::tempdir().expect("there is room");
    let (log, demo) = (folder.path().join("log"), file("data/demo.pcap.xz"));
    let limited = |kilobytes: u32, words: &str, paths: &[&Path]| {
        let words = format!("ulimit -v {kilobytes} && exec \"$0\" {words} \"$@\"");
        let mut command = Command::new("bash");
        command.current_dir(ROOT).args(["-c", &words]).arg(env!("CARGO_BIN_EXE_queuescope")).args(paths);
        command.output().expect("there is a shell")
    };
    let record = "record --aggregate 'bytes=sum(length)' --trigger 'much=bytes > 1MB@10ms' --index dst_ip --log";
    for paths in [[&*log, &*demo]; 2] {
        let recorded = printed(limited(8_000_000, record, &paths), 0);
        assert!(recorded.starts_with("18,949 packets of "), "{recorded}");
    }
    for (words, path) in [
        ("log info", &log),
        ("log verify", &log),
        ("query --select 'count,sum(length)' --csv", &log),
        ("query --group dst_ip --csv", &log),
        ("query --group dst_ip --csv", &demo),
    ] {
        let free = printed(run(&words.replace('\'', ""), &[path]), 0);
        assert!(free == printed(limited(8_000_000, words, &[path]), 0) && free.len() > 10, "{words}: {free}");
    }
}

/// A pipe can be read only once.
#[cfg(unix)]
#[test]
fn definitions_may_come_from_a_pipe() {
    let folder = tempfile::tempdir().expect("there is room");
    let log = folder.path().join("log");
    let words = format!("record --definitions /dev/stdin --log {} data/demo.pcap.xz", log.display());
    let definitions = b"[[aggregate]]\nname = \"bytes\"\nfunction = \"sum(length)\"\n";
    printed(run_with_input(&words, definitions), 0);
    let info = printed(run("log info", &[&log]), 0);
    assert!(info.lines().any(|line| line.starts_with("bytes ")), "{info}");
}
