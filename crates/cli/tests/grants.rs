//! File capabilities of the program do not extend what its user may open: as root, which becomes nobody.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "tests run the command, and make files")]

mod commands;

use crate::common;
use crate::common::file;
use commands::{COMMANDS, CommandFiles, missing};
use queuescope_live::capabilities::{CapabilitySet, names};
use rustix::fs::{XattrFlags, setxattr};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A user without rights.
const NOBODY: u32 = 65_534;
/// The text in each file that only root may read.
const SECRET: &str = "hidden-from-all-but-root";
/// A part of the names of these files, and of no other.
const ONLY_ROOT: &str = "only-root";

#[test]
fn every_option_that_takes_a_path_is_tested() {
    assert_eq!(missing(), Vec::<String>::new(), "tests/grants/commands.rs lacks these");
}

#[test]
fn no_command_opens_what_its_user_may_not_open() {
    let test = "no_command_opens_what_its_user_may_not_open";
    let Some(granted) = GrantedProgram::new(test) else { return };
    let files = granted.only_roots();
    let before: Vec<_> = files.iter().map(|file| state(file)).collect();
    let place = CommandFiles::new(granted.folder.path(), &granted.program);
    // By default only the largest grant is tested, effective from the start. The others take minutes more.
    let every = std::env::var("QUEUESCOPE_GRANTS").is_ok_and(|which| which == "all");
    let mut grants = granted.grants();
    if !every {
        grants.drain(..grants.len() - 1);
    }
    for (what, set) in grants {
        for effective in [false, true].into_iter().filter(|effective| every || *effective) {
            granted.grant(set, effective);
            let script = place.script(&files, &what);
            let traced = granted.traced(test, &script);
            let after: Vec<_> = files.iter().map(|file| state(file)).collect();
            assert_eq!(before, after, "{what}: a file was changed");
            let mut read = 0;
            for output in fs::read_dir(place.outputs()).expect("it is there").map(|entry| entry.expect("it is").path())
            {
                let text = String::from_utf8_lossy(&fs::read(&output).expect("it is there")).into_owned();
                assert!(!text.contains(SECRET), "{what}: {}: {text}", output.display());
                read += 1;
            }
            assert_eq!(read, COMMANDS.len() * files.len(), "{what}");
            if let Some(traced) = traced {
                let opened: Vec<_> = traced.lines().filter(|line| line.contains(ONLY_ROOT)).collect();
                assert!(opened.is_empty(), "{what}: {opened:#?}");
                // A file that may be opened is in the trace, so the trace works.
                assert!(traced.contains(place.capture()), "{what}: nothing was traced");
            }
        }
    }
}

#[test]
fn the_grants_that_doctor_prints_work() {
    let Some(granted) = GrantedProgram::new("the_grants_that_doctor_prints_work") else { return };
    for what in ["packets", "owners", "live", "namespaces"] {
        granted.grant(CapabilitySet::empty(), false);
        let before = granted.doctor(what);
        let lacking = |lines: &[Value]| lines.iter().filter(|line| line["available"] == false).count();
        assert!(lacking(&before) > 0, "{before:?}");
        let Some(line) = before.iter().find(|line| line["kind"] == "grant") else {
            println!("skipped: a part of the_grants_that_doctor_prints_work: this kernel lacks what {what} needs");
            continue;
        };
        granted.grant(set_of(&line["capabilities"]), false);
        let after = granted.doctor(what);
        assert_eq!(lacking(&after), 0, "{after:?}");
        // The next grant includes this one.
        let more = granted.doctor("packets");
        if let Some(more) = more.iter().find(|line| line["kind"] == "grant") {
            assert!(set_of(&more["capabilities"]).contains(set_of(&line["capabilities"])), "{more}");
        }
    }
}

#[test]
fn a_set_user_id_program_refuses_to_run() {
    let Some(granted) = GrantedProgram::new("a_set_user_id_program_refuses_to_run") else { return };
    fs::set_permissions(&granted.program, Permissions::from_mode(0o4755)).expect("it is ours");
    let output = granted.run(&["p4", "fit"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("set-user-ID") && output.stdout.is_empty(), "{said}");
}

/// A copy of the program that other users may run.
struct GrantedProgram {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl GrantedProgram {
    /// `None`, with a message, if files cannot carry capabilities here or these have no effect.
    fn new(test: &str) -> Option<Self> {
        let skipped = |why: &str| println!("skipped: {test}: {why}");
        if !rustix::process::geteuid().is_root() {
            skipped("it takes root");
            return None;
        }
        let folder = tempfile::tempdir().expect("there is room");
        let program = folder.path().join("queuescope");
        // A separate process copies the file. If this process had the copy open for writing, a program that another test starts just then
        // would inherit the descriptor, and the copy could not be run meanwhile.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_queuescope")).arg(&program).status();
        assert!(copied.expect("cp is there").success());
        for path in [folder.path(), &program] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).expect("it is ours");
        }
        let granted = Self { folder, program };
        if let Err(why) = granted.try_grant(CapabilitySet::NET_RAW, true) {
            skipped(&format!("a file cannot carry capabilities here: {why}"));
            return None;
        }
        let there = granted.doctor("packets").iter().any(|line| line["available"] == true);
        if !there {
            skipped("file capabilities have no effect here (nosuid, or outside the bounding set)");
            return None;
        }
        Some(granted)
    }

    fn grant(&self, set: CapabilitySet, effective: bool) {
        self.try_grant(set, effective).expect("it could before");
    }

    /// Sets file capabilities like setcap(8): `struct vfs_cap_data` of linux/capability.h.
    fn try_grant(&self, set: CapabilitySet, effective: bool) -> rustix::io::Result<()> {
        const REVISION_2: u32 = 0x0200_0000;
        let words = [REVISION_2 | u32::from(effective), set.bits() as u32, 0, (set.bits() >> 32) as u32, 0];
        let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        setxattr(&self.program, "security.capability", &bytes, XattrFlags::empty())
    }

    /// Runs the program as nobody.
    fn run(&self, words: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.folder.path()).uid(NOBODY).gid(NOBODY).output().expect("it runs")
    }

    /// The output of `doctor` for nobody.
    fn doctor(&self, what: &str) -> Vec<Value> {
        let lines = self.run(&["doctor", what, "--json"]).stdout;
        String::from_utf8(lines)
            .expect("it is text")
            .lines()
            .map(|line| serde_json::from_str(line).expect("it is JSON"))
            .collect()
    }

    /// Every grant that doctor prints to a user without capabilities.
    fn grants(&self) -> Vec<(String, CapabilitySet)> {
        self.grant(CapabilitySet::empty(), false);
        let all = ["live", "capture", "link", "owners", "traffic"];
        let of = |what: &str| {
            self.doctor(what).into_iter().find(|line| line["kind"] == "grant").map(|line| set_of(&line["capabilities"]))
        };
        let mut grants: Vec<_> = all.into_iter().filter_map(|what| Some((what.to_owned(), of(what)?))).collect();
        let everything = grants.iter().fold(CapabilitySet::empty(), |all, (_, set)| all | *set);
        assert!(everything.contains(CapabilitySet::DAC_READ_SEARCH), "{everything:?}");
        grants.push(("everything".to_owned(), everything));
        grants
    }

    /// Twenty files of many kinds that only root may read, in a folder that all users may list, and a folder that only root may list.
    fn only_roots(&self) -> Vec<PathBuf> {
        let folder = self.folder.path().join("files");
        fs::create_dir(&folder).expect("there is room");
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("it is ours");
        let path = |name: String| folder.join(format!("{ONLY_ROOT}-{name}"));
        let mut files = Vec::new();
        let copies = ["ipv6-http.pcap", "many-interfaces.pcapng", "bigendian.pcap", "raw-ip.pcap", "qinq.pcap"];
        for name in copies {
            files.push(path(name.to_owned()));
            fs::copy(file("data/formats").join(name), &files[files.len() - 1]).expect("there is room");
        }
        let texts = [
            "key.toml",
            "table.csv",
            "rows.json",
            "rows.parquet",
            "policy",
            "shadow",
            "run.jsonl",
            "trace.mahimahi",
            "trace.rates",
            "a.pcap",
            "b.pcapng",
            "c.html",
            "empty-like",
        ];
        for name in texts {
            files.push(path(name.to_owned()));
            fs::write(&files[files.len() - 1], format!("{SECRET} = \"x\n--drop {SECRET}\nroot:{SECRET}:1\n"))
                .expect("there is room");
        }
        let log = path("log".to_owned());
        let recorded = common::run("record --log", &[&log, &file("data/formats/ipv6-http.pcap")]);
        assert!(recorded.status.success(), "{recorded:?}");
        files.push(log);
        files.push(path("folder".to_owned()));
        fs::create_dir(&files[files.len() - 1]).expect("there is room");
        for file in &files {
            let mode = if file.is_dir() { 0o700 } else { 0o600 };
            fs::set_permissions(file, Permissions::from_mode(mode)).expect("it is ours");
        }
        assert_eq!(files.len(), 20);
        files
    }

    /// Runs a shell script as nobody. Returns the calls that opened files, if strace is installed.
    fn traced(&self, test: &str, script: &Path) -> Option<String> {
        let trace = self.folder.path().join("trace");
        let calls = "trace=open,openat,openat2,creat,truncate,open_by_handle_at,rename,renameat,renameat2,unlink,unlinkat,link,linkat";
        let mut strace = Command::new("strace");
        // Under a tracer that is not root, a program would not get its file capabilities.
        strace.args([
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-s",
            "300",
            "-e",
            calls,
            "-e",
            "status=successful",
            "-u",
            "nobody",
            "-o",
        ]);
        strace.arg(&trace).arg("sh").arg(script);
        if let Ok(done) = strace.output() {
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{said}");
            return Some(fs::read_to_string(&trace).expect("it is there"));
        }
        println!("skipped: a part of {test}: strace is not installed, so only the outputs were checked");
        let done = Command::new("sh").arg(script).uid(NOBODY).gid(NOBODY).status().expect("there is a shell");
        assert!(done.success());
        None
    }
}

/// Parses a list of names of capabilities.
fn set_of(list: &Value) -> CapabilitySet {
    let wanted: Vec<_> = list.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let all = CapabilitySet::all().iter().filter(|one| names(*one).iter().any(|name| wanted.contains(&&**name)));
    all.fold(CapabilitySet::empty(), CapabilitySet::union)
}

/// A description of a file or folder that changes if somebody writes to it.
fn state(path: &Path) -> String {
    let data = fs::metadata(path).expect("it is there");
    let mut state = format!("{} {} {} {}", path.display(), data.mode(), data.size(), data.mtime_nsec());
    if path.is_dir() {
        fs::read_dir(path)
            .expect("it is ours")
            .for_each(|entry| write!(state, " {:?}", entry.expect("it is").path()).expect("it can"));
    }
    state
}
