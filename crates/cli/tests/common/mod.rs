//! Runs the command, and finds captures to run it on.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The root of the workspace.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file of the repository.
pub fn file(path: &str) -> PathBuf {
    Path::new(ROOT).join(path)
}

/// A capture from the folder beside the repository. If it is missing, prints that a test is skipped.
pub fn shared(test: &str, path: &str) -> Option<PathBuf> {
    let found = Path::new(ROOT).join("../shared/data").join(path);
    if !found.exists() {
        println!("skipped: {test}: there is no {path} in the captures beside the repository");
        return None;
    }
    Some(found)
}

/// Runs the command with `words`, split at spaces, followed by paths.
pub fn run(words: &str, paths: &[&Path]) -> Output {
    command(words, paths).output().expect("the command runs")
}

/// Runs the command with `input` as standard input.
pub fn run_with_input(words: &str, input: &[u8]) -> Output {
    use std::io::Write;
    let mut command = command(words, &[]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs");
    // It may stop reading early.
    _ = child.stdin.take().expect("standard input is piped").write_all(input);
    child.wait_with_output().expect("the command ends")
}

/// The command with `words`, split at spaces, followed by paths.
pub fn command(words: &str, paths: &[&Path]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
    command.current_dir(ROOT).args(words.split_whitespace()).args(paths);
    command
}

/// The standard output of a run, whose exit status must be `status`.
pub fn printed(output: Output, status: i32) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{errors}");
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

/// A capture of packets at these times, in nanoseconds.
pub fn at_times(times: &[u64]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| -> Vec<u8> {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    // Ethernet, with times in nanoseconds.
    let interface = [&[1, 0, 0, 0][..], &0u32.to_le_bytes(), &[9, 0, 1, 0, 9, 0, 0, 0], &[0; 4]].concat();
    let packet = |at: &u64| {
        let time = [((at >> 32) as u32).to_le_bytes(), (*at as u32).to_le_bytes()].concat();
        block(6, &[&[0; 4][..], &time, &20u32.to_le_bytes(), &20u32.to_le_bytes(), &[7; 20]].concat())
    };
    [block(0x0a0d_0d0a, &section), block(1, &interface), times.iter().flat_map(packet).collect()].concat()
}

/// A report, from its lines of JSON.
pub struct Report {
    pub first: Value,
    pub bursts: Vec<Value>,
    pub summary: Value,
}

impl Report {
    /// The report of `analyze --json` with `words` and paths.
    pub fn analyze(words: &str, paths: &[&Path]) -> Self {
        Self::parse(&printed(run(&format!("analyze --json {words}"), paths), 0))
    }

    /// Parses printed lines.
    pub fn parse(text: &str) -> Self {
        let mut lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
        let summary = lines.pop().expect("there is a last line");
        assert_eq!(summary["kind"], "summary");
        let mut lines = lines.into_iter();
        let first = lines.next().expect("there is a first line");
        assert_eq!(first["kind"], "analysis");
        let bursts: Vec<_> = lines.collect();
        assert!(bursts.iter().all(|burst| burst["kind"] == "burst"));
        Self { first, bursts, summary }
    }

    /// A number in the summary, by its JSON pointer.
    pub fn total(&self, pointer: &str) -> u64 {
        number(&self.summary, pointer)
    }
}

/// An integer in a value, by its JSON pointer.
pub fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(integer).unwrap_or_else(|| panic!("{pointer} is not an integer: {value}"))
}

/// An integer of a report: a number, or a string of its digits.
pub fn integer(value: &Value) -> Option<u64> {
    value.as_str().map_or_else(|| value.as_u64(), |digits| digits.parse().ok())
}

/// A list in a value, by its JSON pointer.
pub fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).unwrap_or_else(|| panic!("{pointer} is not a list: {value}"))
}

/// The captures in the repository.
pub fn captures() -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(file("data/formats"))
        .expect("data/formats is there")
        .map(|entry| entry.unwrap().path())
        .collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "pcap" || extension == "pcapng"));
    found.sort();
    assert!(found.len() >= 9, "{found:?}");
    found
}

/// A captured packet: interface, link type, nanoseconds since the epoch, length on the wire, bytes.
pub type Captured = (u32, u32, Option<u64>, u32, Vec<u8>);

/// The packets of a capture.
pub fn packets(path: &Path) -> Vec<Captured> {
    let mut reader = queuescope_pcap::CaptureReader::open(path).expect("it is a capture");
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().expect("it is whole") {
        let time = record.time.map(|time| time.0);
        found.push((record.interface, record.link, time, record.original_len, record.data.to_vec()));
    }
    found
}
