//! The compiled programs are those of the source beside them.
#![allow(clippy::disallowed_methods, reason = "tests open files and start programs")]

use sha2::{Digest, Sha256};
use std::fs::read;
use std::path::Path;
use std::process::Command;

#[test]
fn compiled_programs_are_of_their_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let sums = String::from_utf8(read(folder.join("probe.sums")).expect("it is there")).expect("it is text");
    let sources = folder.read_dir().expect("it is there").map(|entry| entry.expect("it is there").file_name());
    let of_programs = |name: &String| [".c", ".h", ".o"].iter().any(|end| name.ends_with(end));
    let mut sources: Vec<_> = sources.map(|name| name.into_string().expect("it is text")).filter(of_programs).collect();
    let mut summed: Vec<_> = sums.lines().filter_map(|line| Some(line.split_once("  ")?.1.to_owned())).collect();
    sources.sort();
    summed.sort();
    assert_eq!(sources, summed);
    for line in sums.lines() {
        let (sum, name) = line.split_once("  ").expect("a sum and a name");
        let bytes = read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, sum, "{name} was changed: crates/live/bpf/build.sh compiles it again");
    }
}

#[test]
fn compiling_gives_the_same_bytes() {
    let lacks = |program: &&str| Command::new(program).arg("--version").output().is_err();
    if let Some(program) = ["clang-14", "llvm-strip-14"].iter().find(|program| lacks(program)) {
        return println!("skipped: compiling_gives_the_same_bytes: there is no {program}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    let out = tempfile::tempdir().expect("there is room");
    let status = Command::new(folder.join("build.sh")).arg(out.path()).status().expect("there is a shell");
    assert!(status.success());
    let names = [
        "probe",
        "named",
        "marking",
        "empty",
        "overwriting",
        "vegas",
        "illinois",
        "dctcp",
        "hybla",
        "yeah",
        "veno",
        "westwood",
    ];
    for name in names.map(|name| format!("{name}.bpf.o")) {
        let compiled = read(out.path().join(&name)).expect("it was compiled");
        assert!(compiled == read(folder.join(&name)).expect("it is there"), "{name}");
    }
}
