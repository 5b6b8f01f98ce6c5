//! `queuescope live --json` while tests send packets.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command")]

use crate::namespaces::Ends;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The command, watching the near namespace.
pub struct Live {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Its first line, which it prints when it watches.
    pub first: Value,
}

impl Live {
    /// Returns when it watches.
    pub fn start(ends: &Ends, flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_queuescope"));
        command.args(["live", "near0", "--json"]).args(flags).stdout(Stdio::piped());
        let mut child = ends.near.run(move || command.spawn().expect("it starts"));
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let first = lines.next().expect("it watches").expect("it is text");
        Self { child, lines, first: serde_json::from_str(&first).expect("it is JSON") }
    }

    /// Ends the command. Returns the bursts and the summary.
    pub fn end(mut self) -> (Vec<Value>, Value) {
        kill_process(Pid::from_child(&self.child), Signal::INT).expect("it runs");
        let lines = self.lines.map(|line| serde_json::from_str(&line.expect("text")).expect("JSON"));
        let mut bursts: Vec<Value> = lines.collect();
        assert!(self.child.wait().expect("it ends").success());
        let summary = bursts.pop().expect("there is a summary");
        (bursts, summary)
    }
}
