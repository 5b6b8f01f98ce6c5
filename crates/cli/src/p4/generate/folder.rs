//! What `p4 generate -o` writes: the program, the entries of its tables, a makefile and, for BMv2, a test.

use super::{MADE_BY, readme};
use crate::paths::{cannot_write, create, read_text};
use anyhow::{Context, Result, bail};
use queuescope_p4::ir::{
    Architecture, Forwarding, REPLAY, SwitchProgram, TestBuild, Trace, TracePacket, print_entries, print_forwarding,
    print_p4runtime,
};
use queuescope_pcap::PcapWriter;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// The packets of the test, and the seed that they are drawn with.
pub(super) const PACKETS: usize = 500;
pub(super) const SEED: u64 = 1;

/// The longest program that is read to see what it is for.
const LONGEST: u64 = 1 << 24;

/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;

/// Writes the files of a program, and its control plane if it has one, to a folder, which is created. Returns their paths, each on a line.
///
/// # Errors
/// Fails if the folder cannot be created, or if a file cannot be written.
pub(super) fn write(
    folder: &Path,
    program: &SwitchProgram,
    architecture: Architecture,
    code: String,
    more: More<'_>,
) -> Result<String> {
    if folder.extension().is_some_and(|ending| ending == "p4") {
        bail!(
            "-o {}: names a folder, for the program and what belongs to it; without -o, the program is printed",
            folder.display()
        );
    }
    if folder.exists() && !folder.is_dir() {
        bail!("-o {}: is a file, and the output is a folder with several files: name a folder", folder.display());
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let path_of = |ending: &str| folder.join(format!("{}.{ending}", program.name()));
    let files = files(program, architecture, code, more)?;
    files.iter().try_for_each(|(ending, _)| check_regular(folder, &path_of(ending)))?;
    check_other_target(folder, program.name(), architecture)?;
    let mut written = String::new();
    for (ending, contents) in files {
        let path = path_of(ending);
        create(&path)?.write_whole(|out| out.write_all(&contents)).with_context(|| cannot_write(&path))?;
        let _ = writeln!(written, "{}", path.display());
    }
    Ok(written)
}

/// Fails if something else than a file has a path: to open a named pipe waits for its other end.
fn check_regular(folder: &Path, path: &Path) -> Result<()> {
    match path.metadata() {
        Ok(found) if !found.is_file() => bail!(
            "-o {}: {} is not a regular file: remove it, or name another folder",
            folder.display(),
            path.display()
        ),
        // What cannot be created is reported when it is written.
        _ => Ok(()),
    }
}

/// Fails if the folder has the program for another target: files of the two have the same names.
fn check_other_target(folder: &Path, name: &str, architecture: Architecture) -> Result<()> {
    // What cannot be read is reported when it is written.
    let Ok(text) = read_text(&folder.join(format!("{name}.p4")), LONGEST) else { return Ok(()) };
    let first = text.lines().next().unwrap_or_default();
    let is_for = |other: &Architecture| {
        first.starts_with(MADE_BY)
            && first
                .split_once("--target ")
                .is_some_and(|(_, rest)| rest.split_whitespace().next() == Some(other.name()))
    };
    match Architecture::ALL.into_iter().filter(|other| *other != architecture).find(is_for) {
        Some(other) => bail!(
            "-o {}: has {name} for {}, whose files have the same names: name another folder for {}",
            folder.display(),
            other.name(),
            architecture.name()
        ),
        None => Ok(()),
    }
}

/// What is written with a program.
#[derive(Default)]
pub(super) struct More<'a> {
    /// Its control plane, if it has one.
    pub control: Option<String>,
    /// Where BMv2 sends frames.
    pub forwarding: &'a [Forwarding],
}

/// The ending and the contents of each file.
pub(super) fn files(
    program: &SwitchProgram,
    architecture: Architecture,
    code: String,
    More { control, forwarding }: More<'_>,
) -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let entries = match (print_entries(program, architecture), architecture) {
        (entries, Architecture::V1model) if !forwarding.is_empty() => {
            Some(entries.unwrap_or_default() + &print_forwarding(forwarding))
        }
        (entries, _) => entries,
    };
    let name = program.name();
    let mut files = vec![("p4", code), ("mk", makefile(architecture, name, entries.is_some()))];
    if architecture == Architecture::Tna {
        files.push(("readme.txt", readme::of_tna(program, [entries.is_some(), control.is_some()])));
        files.extend(entries.map(|entries| ("bfrt.py", entries)));
        files.extend(control.map(|control| ("control.py", control)));
        return Ok(bytes(files));
    }
    let trace = Trace::new(program, SEED, PACKETS);
    files.push(("readme.txt", readme::of_bmv2(program, [entries.is_some(), control.is_some()], &trace)));
    files.extend(entries.map(|entries| ("cli", entries)));
    files.extend(print_p4runtime(program, forwarding).map(|entries| ("p4runtime.json", entries)));
    files.push(("test.p4", TestBuild::new(program).print()));
    files.push(("replay.py", REPLAY.to_owned()));
    files.extend(control.map(|control| ("control.py", control)));
    let mut files = bytes(files);
    files.push(("sent.pcap", capture(&trace, |packet| &packet.sent)?));
    files.push(("expected.pcap", capture(&trace, |packet| &packet.expected)?));
    Ok(files)
}

fn bytes(files: Vec<(&'static str, String)>) -> Vec<(&'static str, Vec<u8>)> {
    files.into_iter().map(|(ending, text)| (ending, text.into_bytes())).collect()
}

/// The packets of a trace as they are sent, or as they come back.
fn capture(trace: &Trace, frame: impl Fn(&TracePacket) -> &[u8]) -> io::Result<Vec<u8>> {
    let mut capture = PcapWriter::new(Vec::new(), ETHERNET, 0)?;
    for packet in &trace.packets {
        let frame = frame(packet);
        capture.packet(packet.time, frame.len() as u32, frame)?;
    }
    capture.finish()
}

/// What compiles the program and, for BMv2, tests it.
fn makefile(architecture: Architecture, name: &str, has_entries: bool) -> String {
    let text = match architecture {
        Architecture::V1model => MAKEFILE_OF_V1MODEL,
        Architecture::Tna => MAKEFILE_OF_TNA,
    };
    let entries = if has_entries { " NAME.cli $(SIMPLE_SWITCH_CLI)" } else { "" };
    text.replace("CHECK", CHECK).replace(" ENTRIES", entries).replace("NAME", name)
}

/// The compiler is not everywhere.
const CHECK: &str = "\
\t@command -v $(P4C) > /dev/null || { echo '$(P4C) is not installed: P4C=/path/to/p4c names another one' >&2; exit 1; }";

const MAKEFILE_OF_TNA: &str = "\
# Compiles the program with p4c (https://github.com/p4lang/p4c): make -f NAME.mk, or make -f NAME.mk P4C=/path/to/p4c.
P4C ?= p4c

# The compiler makes the folder before it knows whether the program compiles, and this file last.
NAME.tofino/pipe/tofino.bin: NAME.p4
CHECK
\t$(P4C) --target tofino --arch tna -g -o NAME.tofino $<
";

const MAKEFILE_OF_V1MODEL: &str = "\
# Compiles the program with p4c (https://github.com/p4lang/p4c): make -f NAME.mk, or make -f NAME.mk P4C=/path/to/p4c.
# NAME.readme.txt has more.
P4C ?= p4c
SIMPLE_SWITCH ?= simple_switch
SIMPLE_SWITCH_CLI ?= simple_switch_CLI

NAME.json: NAME.p4
CHECK
\t$(P4C) --target bmv2 --arch v1model --p4runtime-files NAME.p4info.txtpb -o . $<

# The compiler writes both.
NAME.p4info.txtpb: NAME.json ;

# The test build: inputs and random numbers come in a header, and decisions leave in it.
test: NAME.test.json
NAME.test.json: NAME.test.p4
CHECK
\t$(P4C) --target bmv2 --arch v1model -o . $<

# Sends NAME.sent.pcap through the test build, and compares what comes back with NAME.expected.pcap. Needs root, for a network namespace.
replay: NAME.test.json
\t@command -v $(SIMPLE_SWITCH) > /dev/null || { echo '$(SIMPLE_SWITCH) is not installed: SIMPLE_SWITCH=/path/to/simple_switch names another one' >&2; exit 1; }
\tunshare -n python3 NAME.replay.py $(SIMPLE_SWITCH) NAME.test.json NAME.sent.pcap NAME.expected.pcap ENTRIES

.PHONY: test replay
";
