//! A node of an ABC domain that is BMv2 with a program of `queuescope p4 generate`.

use super::chain::{LEFT, MACS, RIGHT, written};
use crate::bmv2::Tools;
use crate::namespaces::until;
use queuescope_live::Namespace;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running switch, whose port 0 is towards the sender and port 1 towards the receiver.
pub struct Bmv2<'a> {
    child: Child,
    place: &'a Namespace,
    console: PathBuf,
    /// The compiled program.
    _folder: TempDir,
}

impl<'a> Bmv2<'a> {
    /// Generates and compiles a program, runs it, and fills its tables. `border` is the port on the other side of the domain's border.
    pub fn start(tools: &Tools, place: &'a Namespace, algorithm: &str, border: Option<u16>) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path();
        let mut generate = Command::new(env!("CARGO_BIN_EXE_queuescope"));
        generate.args(["p4", "generate", algorithm, "--target", "v1model", "-o"]).arg(path);
        for (port, mac) in MACS.iter().enumerate() {
            generate.args(["--forward", &format!("{}={port}", written(*mac))]);
        }
        succeeds(generate.args(border.into_iter().flat_map(|port| ["--border".to_owned(), port.to_string()])));
        let file = |ending| path.join(algorithm).with_extension(ending);
        let mut compile = Command::new(tools.p4c());
        succeeds(compile.args(["--target", "bmv2", "--arch", "v1model", "-o"]).args([path, &file("p4")]));
        let (switch, compiled) = (tools.switch().to_path_buf(), file("json"));
        let child = place.run(move || {
            let mut command = Command::new(switch);
            command.args(["-i", &format!("0@{LEFT}"), "-i", &format!("1@{RIGHT}"), "--log-level", "off"]);
            command.arg(compiled).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("the switch starts")
        });
        let entries = fs::read_to_string(file("cli")).expect("it was generated");
        let switch =
            Self { child, place, console: tools.switch().with_file_name("simple_switch_CLI"), _folder: folder };
        until("the switch answers", || switch.command("show_tables\n").filter(|said| said.contains("forward")));
        let said = switch.command(&entries).expect("it answers");
        assert!(!said.contains("Error") && !said.contains("Invalid"), "{said}");
        switch
    }

    /// The frames that it refused at a port.
    pub fn refused(&self, port: u16) -> u64 {
        let said = self.command(&format!("register_read MainIngress.refused {port}\n")).expect("it answers");
        let count = said.split("= ").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        count.unwrap_or_else(|| panic!("{said}"))
    }

    /// Gives it commands, and returns what it prints; none if it does not answer.
    fn command(&self, commands: &str) -> Option<String> {
        let (console, commands) = (self.console.clone(), commands.to_owned());
        self.place.run(move || {
            let mut command = Command::new(console);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().expect("the command line of the switch starts");
            let mut stdin = child.stdin.take().expect("it is piped");
            // It prints for each command, so its output must be read meanwhile.
            let writer = std::thread::spawn(move || stdin.write_all(commands.as_bytes()));
            let output = child.wait_with_output().expect("it ends");
            // It may end before it has read everything.
            let _ = writer.join();
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
        })
    }
}

impl Drop for Bmv2<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn succeeds(command: &mut Command) {
    let output = command.output().unwrap_or_else(|why| panic!("{command:?}: {why}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
}
