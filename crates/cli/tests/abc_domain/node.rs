//! A node of an ABC domain that is `queuescope link --between`.

use super::chain::{LEFT, RIGHT};
use crate::common::integer;
use queuescope_live::Namespace;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};

/// The roles of ABC as `--aqm` takes them.
pub const EDGE: &str = "abc,strips=false,aqm=none";
pub const CORE: &str = "abc,meters=false,strips=false";
pub const EXIT: &str = "abc,meters=false,aqm=none";
/// The only node of its domain.
pub const SINGLE: &str = "abc";

/// A running link between the two interfaces of a node.
pub struct LinkNode {
    child: Child,
    said: BufReader<ChildStderr>,
}

/// The report of a link that has ended.
pub struct LinkReport {
    pub lines: Vec<Value>,
}

impl LinkNode {
    /// Starts it, and waits until it carries frames. Otherwise returns what it said.
    pub fn try_start(place: &Namespace, options: &str) -> Result<Self, String> {
        let options = format!("link --json --between {LEFT} {RIGHT} {options}");
        let mut child = place.run(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
            command.args(options.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("the command runs")
        });
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut all = String::new();
        while !all.contains("carrying the frames") {
            if said.read_line(&mut all).expect("it is text") == 0 {
                let _ = child.wait();
                return Err(all);
            }
        }
        Ok(Self { child, said })
    }

    pub fn start(place: &Namespace, options: &str) -> Self {
        Self::try_start(place, options).unwrap_or_else(|said| panic!("{said}"))
    }

    /// Sends a signal: stopped, it carries nothing.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("it has a number");
        kill_process(pid, signal).expect("it runs");
    }

    /// Ends it by a signal, and returns its report.
    pub fn end(mut self) -> LinkReport {
        self.signal(Signal::TERM);
        let (mut printed, mut said) = (String::new(), String::new());
        self.child.stdout.take().expect("it is piped").read_to_string(&mut printed).expect("it is text");
        self.said.read_to_string(&mut said).expect("it is text");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {said}");
        let lines: Vec<Value> =
            printed.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
        assert!(lines.iter().any(|line| line["kind"] == "sim"), "{printed}");
        LinkReport { lines }
    }
}

impl LinkReport {
    /// The packets that its queue dropped, by their activity or because it was full.
    pub fn dropped(&self) -> usize {
        let network = self.lines.iter().find(|line| line["kind"] == "sim").expect("there is one");
        let drops = network["links"][0]["drops"].as_object().expect("they are by reason");
        drops.values().filter_map(integer).sum::<u64>() as usize
    }

    /// The count of a note; 0 if it is missing.
    pub fn note(&self, reason: &str) -> u64 {
        let counts = self.lines.iter().filter_map(|line| integer(&line["skipped"][reason]));
        counts.max().unwrap_or(0)
    }
}

impl Drop for LinkNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
