//! Every command with every option that takes a path.

use clap::{ArgMatches, Command, CommandFactory};
use queuescope_cli::args::Cli;
use std::any::TypeId;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// `{M}` is the path under test. `{cap}`, `{scn}`, `{log}` and `{results}` are valid files that every user may read. `{new}` does
/// not exist, and this user may create it. `{via}` is a scenario that names the path under test.
pub const COMMANDS: [&str; 102] = [
    "analyze {M} --rate 10mbps",
    "analyze {M} --departures",
    "analyze {cap} --rate 10mbps --html {M}",
    "analyze {cap} --rate 10mbps --parquet {M}",
    "analyze {cap} --rate 10mbps --pcapng {M}",
    "analyze {cap} --rate 10mbps --log {M}",
    "why {M} --rate 10mbps --at 1ms",
    "why {M} --departures --at 1ms",
    "why {M} --packet 1 --fleet 127.0.0.1:9 --credentials {new}",
    "why {cap} --packet 1 --fleet 127.0.0.1:9 --credentials {M}",
    "tap {M} --egress {cap}",
    "tap {cap} --egress {M}",
    "tap {cap} --egress {cap} --html {M}",
    "tap {cap} --egress {cap} --parquet {M}",
    "tap {cap} --egress {cap} --log {M}",
    "query {M} tcp",
    "query {M} --departures",
    "query {cap} tcp --parquet {M}",
    "record {M} --log {new}",
    "record {cap} --log {M}",
    "record {cap} --log {new} --definitions {M}",
    "watch {M}",
    "log info {M}",
    "log verify {M}",
    "log compact {M}",
    "log keep {M} --size 1MB",
    "log export {M} {new}.csv",
    "log export {log} {M}",
    "sim {M}",
    "sim {via}",
    "sim {scn} --telemetry {M}",
    "sim {scn} --html {M}",
    "sim {scn} --parquet {M}",
    "sim {scn} --log {M}",
    "sim {scn} --sweep seed=1,2 --results {M}",
    "merge {M}",
    "merge {results} --html {M}",
    "merge {results} --parquet {M}",
    "experiment conquest --capture {M} --rate 10mbps --out {new}",
    "experiment conquest --capture {cap} --rate 10mbps --out {M}",
    "live lo --for 1ms --policy-file {M}",
    "live lo --for 1ms --pcapng {M}",
    "live lo --for 1ms --log {M}",
    "live lo --for 1ms --log {new} --credentials {M}",
    "capture lo --for 1ms -o {M}",
    "capture lo --for 1ms --log {M}",
    "capture lo --for 1ms --log {new} --definitions {M}",
    "agent lo --for 1ms --log {M} --credentials {new}",
    "agent lo --for 1ms --log {new} --credentials {M}",
    "agent lo --for 1ms --log {new} --credentials {new} --definitions {M}",
    "agent --folder {M} --for 1ms --credentials {new}",
    "agent --int-capture {M} --int-port 9 --for 1ms --log {new} --credentials {new}",
    "agent --departures {M} --for 1ms --log {new} --credentials {new}",
    "coordinator init {M} --name localhost",
    "coordinator run {M} --listen 127.0.0.1:0",
    "coordinator run {new} --listen 127.0.0.1:0 --send jsonl:{M}",
    "coordinator run {new} --listen 127.0.0.1:0 --send webhook:https://localhost:9 --send-token {M}",
    "coordinator run {new} --listen 127.0.0.1:0 --send webhook:https://localhost:9 --send-authority {M}",
    "fleet join token --coordinator 127.0.0.1:9 --credentials {M}",
    "fleet invite host --coordinator 127.0.0.1:9 --credentials {M}",
    "fleet revoke host --credentials {M}",
    "fleet members --credentials {M}",
    "fleet health --credentials {M}",
    "fleet cut --credentials {M}",
    "fleet manifest {M} --store file:///",
    "fleet upload {M} --to file:///tmp --host a",
    "fleet query --credentials {M}",
    "fleet alerts --credentials {M}",
    "fleet why --credentials {M}",
    "fleet why --packet 1 --capture {M} --credentials {new}",
    "fleet actions --credentials {M}",
    "fleet program add a {M} --credentials {new}",
    "fleet program add a {cap} --credentials {M}",
    "fleet program check {M}",
    "fleet program list --credentials {M}",
    "fleet program remove a --credentials {M}",
    "link {M}",
    "link {via}",
    "link --trace {M} -- true",
    "link --rate 10mbit --html {M} -- true",
    "link --rate 10mbit --parquet {M} -- true",
    "link --rate 10mbit --pcapng {M} -- true",
    "link --rate 10mbit --log {M} -- true",
    "link --rate 10mbit --log {new} --credentials {M} -- true",
    "link --rate 10mbit -- cat {M}",
    "keep 3 -- cat {M}",
    "compare {M}",
    "compare {via}",
    "compare {scn} --html {M}",
    "traffic send 127.0.0.1:9 --rate 1mbps --for 1ms --sizes {M}",
    "traffic serve {M}",
    "doctor {M}",
    "p4 fit {M}",
    "p4 generate egress-pi --target tna -o {M}",
    "p4 report {M}",
    "p4 report {new} --program {M}",
    "generate {M}",
    "{M}",
    "--help {M}",
    "query --attributes {M}",
    "record {cap} --log {new} --recipe {M}",
    "sim {scn} --set link.trace={M}",
];

/// The folder of the valid files that commands take besides the path under test.
pub struct CommandFiles {
    folder: PathBuf,
    program: PathBuf,
}

impl CommandFiles {
    pub fn new(folder: &Path, program: &Path) -> Self {
        let place = Self { folder: folder.join("place"), program: program.to_owned() };
        fs::create_dir(&place.folder).expect("there is room");
        fs::copy(crate::common::file("data/formats/ipv6-http.pcap"), place.path("readable.pcap"))
            .expect("there is room");
        fs::copy(crate::common::file("crates/cli/tests/data/sim.toml"), place.path("sim.toml")).expect("there is room");
        let recorded = super::common::run("record --log", &[&place.path("log"), &place.path("readable.pcap")]);
        assert!(recorded.status.success(), "{recorded:?}");
        let sweep = crate::common::file("crates/cli/tests/data/sweep.toml");
        let swept = super::common::run("sim --results", &[&place.path("results"), &sweep]);
        assert!(swept.status.success(), "{swept:?}");
        // All of it belongs to nobody, so that only root's files are inaccessible.
        give(&place.folder);
        place
    }

    pub fn capture(&self) -> &str {
        "readable.pcap"
    }

    /// The folder with the output of the commands, one file for each.
    pub fn outputs(&self) -> PathBuf {
        self.path("outputs")
    }

    /// Writes a script that runs every command with every file.
    pub fn script(&self, files: &[PathBuf], grant: &str) -> PathBuf {
        for name in ["outputs", "new"] {
            // Remove the files of the grant before.
            let _ = fs::remove_dir_all(self.path(name));
            fs::create_dir(self.path(name)).expect("there is room");
            give(&self.path(name));
        }
        let mut script = format!("cd {} || exit 1\n", self.path("new").display());
        for (number, file) in files.iter().enumerate() {
            let via = self.path(&format!("via-{number}.toml"));
            let scenario = format!("[link]\ntrace = \"{}\"\n\n[[flows]]\n", file.display());
            fs::write(&via, scenario).expect("there is room");
            give(&via);
            for (which, command) in COMMANDS.iter().enumerate() {
                let new = format!("{}/new/{grant}-{number}-{which}", self.folder.display());
                let words = self.filled(command, file, &via, &new);
                let to = format!("{}/{number}-{which}", self.outputs().display());
                writeln!(script, "timeout 20 {} {words} </dev/null >{to} 2>&1", self.program.display())
                    .expect("it can");
            }
        }
        let path = self.path("script");
        fs::write(&path, script + "exit 0\n").expect("there is room");
        path
    }

    fn filled(&self, command: &str, tried: &Path, via: &Path, new: &str) -> String {
        let text = |path: &Path| path.display().to_string();
        let of = |name: &str| text(&self.path(name));
        let pairs = [
            ("{M}", text(tried)),
            ("{cap}", of("readable.pcap")),
            ("{scn}", of("sim.toml")),
            ("{log}", of("log")),
            ("{results}", of("results")),
            ("{via}", text(via)),
            ("{new}", new.to_owned()),
        ];
        pairs.iter().fold(command.to_owned(), |filled, (name, path)| filled.replace(name, path))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Makes nobody the owner of a file or folder with all its contents.
fn give(path: &Path) {
    chown(path, Some(super::NOBODY), Some(super::NOBODY)).expect("it is ours");
    fs::set_permissions(path, Permissions::from_mode(if path.is_dir() { 0o755 } else { 0o644 })).expect("it is ours");
    if path.is_dir() {
        fs::read_dir(path).expect("it is ours").for_each(|entry| give(&entry.expect("it is there").path()));
    }
}

/// The options and arguments that take a path, of all commands, and that no line of [`COMMANDS`] tests.
pub fn missing() -> Vec<String> {
    let mut tried = BTreeSet::new();
    for words in COMMANDS {
        let words = words.replace("{M}", "MARK").replace(['{', '}'], "");
        let words = std::iter::once("queuescope").chain(words.split_whitespace());
        if let Ok(matches) = Cli::command().try_get_matches_from(words) {
            tested(&Cli::command(), &matches, "", &mut tried);
        }
    }
    let mut all = BTreeSet::new();
    paths(&Cli::command(), "", &mut all);
    assert!(all.len() > 40, "{all:?}");
    all.difference(&tried).cloned().collect()
}

fn tested(command: &Command, matches: &ArgMatches, above: &str, found: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let raw = matches.try_get_raw(id).ok().flatten();
        if raw.is_some_and(|mut values| values.any(|value| value == OsStr::new("MARK"))) {
            found.insert(format!("{above} {id}"));
        }
    }
    if let Some((name, matches)) = matches.subcommand() {
        let below = command.find_subcommand(name).expect("it was found");
        tested(below, matches, &format!("{above} {name}"), found);
    }
}

fn paths(command: &Command, above: &str, found: &mut BTreeSet<String>) {
    let is_path = |argument: &&clap::Arg| argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    found.extend(command.get_arguments().filter(is_path).map(|argument| format!("{above} {}", argument.get_id())));
    command.get_subcommands().for_each(|below| paths(below, &format!("{above} {}", below.get_name()), found));
}
