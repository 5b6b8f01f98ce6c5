//! The printed programs through the compiler p4c and the switch BMv2, where they are installed: `QUEUESCOPE_P4C` and
//! `QUEUESCOPE_SIMPLE_SWITCH` name them if they are not on `PATH`. As root.

#![allow(clippy::disallowed_methods, reason = "the tests run other programs, on files that they write")]

use crate::equal::wandering;
use queuescope_p4::algorithms::executable;
use queuescope_p4::ir::{Architecture, Input, SwitchProgram, TestBuild, print, print_entries};
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The program that a variable names, or the one on `PATH`. Otherwise prints that a test is skipped, or fails if `QUEUESCOPE_REQUIRE` has the name.
fn program(test: &str, variable: &str, name: &str) -> Option<PathBuf> {
    let on_path =
        || env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file());
    let found = env::var_os(variable).map(PathBuf::from).or_else(on_path);
    if found.is_none() {
        let required = env::var("QUEUESCOPE_REQUIRE").unwrap_or_default();
        assert!(required.split(',').all(|required| required != name), "{test}: {name} is not installed");
        println!("skipped: {test}: {name} is not installed");
    }
    found
}

/// Compiles a program. Returns what the compiler prints.
fn compile(p4c: &Path, folder: &Path, name: &str, text: &str, architecture: Architecture) -> String {
    let file = folder.join(format!("{name}.p4"));
    fs::write(&file, text).expect("the folder is writable");
    let target = match architecture {
        Architecture::V1model => "bmv2",
        Architecture::Tna => "tofino",
    };
    let mut command = Command::new(p4c);
    command.args(["--target", target, "--arch", architecture.name(), "-o"]).arg(folder).arg(&file);
    let output = command.output().expect("it starts");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name} for {target}: {printed}");
    printed
}

#[test]
fn programs_compile_without_a_warning() {
    let test = "programs_compile_without_a_warning";
    let Some(p4c) = program(test, "QUEUESCOPE_P4C", "p4c") else { return };
    for program in executable().expect("the defaults fit") {
        for architecture in Architecture::ALL {
            let folder = tempfile::tempdir().expect("there is room");
            let printed = compile(&p4c, folder.path(), program.name(), &print(&program, architecture), architecture);
            assert!(!printed.contains("warning"), "{} for {}: {printed}", program.name(), architecture.name());
        }
    }
}

/// The bits of a header that say whether the packet was dropped or marked: in its second byte.
const DECISIONS: u8 = 0b1100;

/// Packets as the comparison with the Rust types has them, and generated ones in between.
fn trace(build: &mut TestBuild<'_>, seed: u64, count: usize) -> String {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut trace = String::new();
    let mut chosen = 0;
    for (number, packet) in wandering(seed, count).enumerate() {
        let is_generated = number % 9 == 8;
        let input = |input| match input {
            Input::Generated => u64::from(is_generated),
            input => packet.input(input),
        };
        let numbers: Vec<_> = (0..build.random()).map(|_| u64::from(random.next_u32())).collect();
        let (sent, expected) = build.packet(&input, &numbers);
        chosen += usize::from(!is_generated && expected[1] & DECISIONS != 0);
        let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let _ = writeln!(trace, "{} {}", hex(&sent), hex(&expected));
    }
    assert!((count / 100..count / 20 * 19).contains(&chosen), "{chosen} of {count} packets are dropped or marked");
    trace
}

/// Sends packets through BMv2.
fn run(switch: &Path, folder: &Path, program: &SwitchProgram, trace: &str) {
    let path = |name: &str| folder.join(name);
    fs::write(path("trace"), trace).expect("the folder is writable");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bmv2.py");
    let mut command = Command::new("unshare");
    command.args(["-n", "python3"]).arg(script).arg(switch).arg(path("test.json")).arg(path("trace"));
    if let Some(entries) = print_entries(program, Architecture::V1model) {
        fs::write(path("entries"), entries).expect("the folder is writable");
        command.arg(path("entries")).arg(switch.with_file_name("simple_switch_CLI"));
    }
    let output = command.output().expect("unshare is there");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}", program.name());
    println!("{}: {}", program.name(), printed.trim_end());
}

/// `QUEUESCOPE_PACKETS=100000` sends as many packets through each program.
#[test]
fn bmv2_does_what_the_interpreter_does() {
    let test = "bmv2_does_what_the_interpreter_does";
    let Some(p4c) = program(test, "QUEUESCOPE_P4C", "p4c") else { return };
    let Some(switch) = program(test, "QUEUESCOPE_SIMPLE_SWITCH", "simple_switch") else { return };
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: {test}: it needs root, for a network namespace");
    }
    for program in executable().expect("the defaults fit") {
        let folder = tempfile::tempdir().expect("there is room");
        let mut build = TestBuild::new(&program);
        compile(&p4c, folder.path(), "test", &build.print(), Architecture::V1model);
        let trace = trace(&mut build, 1, crate::packets().min(100_000));
        run(&switch, folder.path(), &program, &trace);
    }
}
