//! The compiler p4c and the switch BMv2, where they are installed: `QUEUESCOPE_P4C` and `QUEUESCOPE_SIMPLE_SWITCH` name them if they are not on `PATH`.

#![allow(dead_code, reason = "each crate that includes this file uses a part")]
#![allow(clippy::disallowed_methods, reason = "the tests run other programs, on files that they write")]

use queuescope_p4::ir::{Architecture, REPLAY, SwitchProgram, TestBuild, Trace, TracePacket, print_entries};
use queuescope_pcap::PcapWriter;
use queuescope_wire::Nanos;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The compiler and the switch.
pub struct Tools {
    p4c: PathBuf,
    switch: PathBuf,
}

impl Tools {
    pub fn p4c(&self) -> &Path {
        &self.p4c
    }

    pub fn switch(&self) -> &Path {
        &self.switch
    }
}

/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;

/// The program that a variable names, or the one on `PATH`. Otherwise prints that a test is skipped, or fails if `QUEUESCOPE_REQUIRE` has the name.
pub fn installed(test: &str, variable: &str, name: &str) -> Option<PathBuf> {
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
pub fn compile(p4c: &Path, folder: &Path, name: &str, text: &str, architecture: Architecture) -> String {
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
    let files = fs::read_dir(folder).expect("it is there").count();
    assert!(output.status.success() && files > 1, "{name} for {target}, {files} files: {printed}");
    printed
}

/// Writes the packets of a trace as they are sent, or as they come back.
fn write(path: &Path, trace: &Trace, frame: impl Fn(&TracePacket) -> &[u8]) {
    write_frames(path, trace.packets.iter().map(|packet| (packet.time, frame(packet))));
}

/// Writes frames with their times.
pub fn write_frames<'a>(path: &Path, frames: impl Iterator<Item = (Nanos, &'a [u8])>) {
    let file = BufWriter::new(fs::File::create(path).expect("the folder is writable"));
    let mut capture = PcapWriter::new(file, ETHERNET, 0).expect("there is room");
    for (time, frame) in frames {
        capture.packet(time, frame.len() as u32, frame).expect("there is room");
    }
    capture.finish().expect("there is room");
}

/// The compiler and the switch. Without one of them, or root, prints that a test is skipped.
pub fn tools(test: &str) -> Option<Tools> {
    let p4c = installed(test, "QUEUESCOPE_P4C", "p4c")?;
    let switch = installed(test, "QUEUESCOPE_SIMPLE_SWITCH", "simple_switch")?;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: {test}: it needs root, for a network namespace");
        return None;
    }
    Some(Tools { p4c, switch })
}

/// Sends packets through BMv2 with the test build of a program, and fails if one comes back otherwise than the trace expects.
pub fn replay(tools: &Tools, program: &SwitchProgram, trace: &Trace) {
    let Tools { p4c, switch } = tools;
    let folder = tempfile::tempdir().expect("there is room");
    let path = |name: &str| folder.path().join(name);
    compile(p4c, folder.path(), "test", &TestBuild::new(program).print(), Architecture::V1model);
    write(&path("sent.pcap"), trace, |packet| &packet.sent);
    write(&path("expected.pcap"), trace, |packet| &packet.expected);
    fs::write(path("replay.py"), REPLAY).expect("the folder is writable");
    let mut command = Command::new("unshare");
    command.args(["-n", "python3"]).arg(path("replay.py")).arg(switch).arg(path("test.json"));
    command.args([path("sent.pcap"), path("expected.pcap")]);
    if let Some(entries) = print_entries(program, Architecture::V1model) {
        fs::write(path("entries"), entries).expect("the folder is writable");
        command.arg(path("entries")).arg(switch.with_file_name("simple_switch_CLI"));
    }
    let output = command.output().expect("unshare is there");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {printed}", program.name());
    println!("{}: {}", program.name(), printed.trim_end());
}
