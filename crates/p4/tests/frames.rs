//! Whole frames through BMv2 with the programs as they are generated: parser, table of addresses, actions, checksums, copies and deparser. Times, lengths of queues and
//! random numbers come in a header in front of each frame, because BMv2's own cannot be controlled ([`build`]); the rest of the text is that of the program.

#![allow(clippy::disallowed_methods, reason = "the tests run other programs, on files that they write")]

mod build;
mod model;
mod traffic;

use crate::bmv2::{self, Tools};
use crate::compiled;
use build::Intrinsics;
pub use build::frame_build;
pub use model::{Acts, Arrival, Model};
use queuescope_p4::algorithms::EXECUTABLE;
use queuescope_p4::ir::{Architecture, Forwarding, Input, SwitchProgram, print_entries, print_forwarding};
use queuescope_queue::{FlowAction, GroupActions};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
pub use traffic::{PORTS, address, arrivals};

/// What happens to frames of a program's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Dropped by the program.
    Drop,
    /// Marked, with IPv4 and with IPv6.
    Mark,
    /// A copy passes the part before the queue.
    FeedBack,
    /// The packet passes that part again.
    Again,
    /// Its receive window is set.
    Window,
    /// It gets an activity header.
    Push,
    /// It loses it.
    Strip,
    /// It stands for one of the packet generator.
    Generated,
}

use Act::{Again, Drop, FeedBack, Generated, Mark, Push, Strip, Window};

/// What was run with whole frames: each of [`programs`], and all that happens to the frames. Nothing else does. What is not seen from outside of the switch is the queue that a packet is put
/// into; its number is compared in `compiled`. `conquest-legacy` forwards nothing, and is in `taps`.
const ROWS: [(&str, &[Act]); 23] = [
    ("red-egress", &[Drop]),
    ("codel-dp", &[Drop, Mark]),
    ("ecn-sharp-dp", &[Mark]),
    ("pie-cp, with a probability of an eighth", &[Drop]),
    ("pie-dp", &[Drop, Generated]),
    ("pie-table", &[Drop, Generated]),
    ("step", &[Mark]),
    ("egress-pi", &[Drop, Mark]),
    ("conquest", &[Drop, Mark, Generated]),
    ("conquest-ingress", &[Drop, Mark, FeedBack, Generated]),
    ("conquest-feedback, which drops", &[Drop, FeedBack, Generated]),
    ("conquest-feedback, which limits", &[Drop, FeedBack, Generated]),
    ("conquest-feedback, which re-routes", &[FeedBack, Generated]),
    ("conquest-stands", &[Drop, Mark, Generated]),
    ("abc-edge, with contracts", &[Drop, Push]),
    ("abc-edge, with a queue", &[Drop, Push]),
    ("abc-core", &[Drop]),
    ("abc-core-median", &[Drop]),
    ("abc-strip", &[Drop, Strip]),
    ("printqueue-windows", &[]),
    ("printqueue-monitor", &[]),
    ("p4air", &[Drop, FeedBack, Again]),
    ("p4air, which sets windows", &[Drop, FeedBack, Again, Window]),
];

/// The frames of a program. The flows of P4air need more, until they have changed their groups.
fn frames_of(program: &SwitchProgram) -> usize {
    if program.name() == "p4air" { 6_000 } else { 2_000 }
}

/// The programs of the other tests, and P4air with one action for all flows. That with every operation marks packets without ECT, which no program does whose description is generated.
fn programs() -> Vec<SwitchProgram> {
    let windows = GroupActions::all(FlowAction::Window);
    let programs = compiled::programs().into_iter().filter(|program| program.name() != "everything");
    programs.chain([compiled::p4air(windows)]).collect()
}

#[test]
fn bmv2_does_with_whole_frames_what_the_interpreter_does() {
    let test = "bmv2_does_with_whole_frames_what_the_interpreter_does";
    let Some(tools) = bmv2::tools(test) else { return };
    let programs = programs();
    assert_eq!(programs.len(), ROWS.len());

    for (program, (name, expected)) in programs.iter().zip(ROWS) {
        assert_eq!(name.split(',').next(), Some(program.name()));
        let acts = run(&tools, program, &frame_build(program), frames_of(program));
        let acts = acts.unwrap_or_else(|error| panic!("{name}: {error}"));
        println!("{name}: {acts:?}");
        let found: Vec<_> = seen(&acts).into_iter().filter(|(_, count)| *count > 0).map(|(act, _)| act).collect();
        assert_eq!(found, expected, "{name}: {acts:?}");
        let kinds = [acts.unparsed, acts.tagged, acts.v6, acts.unknown];
        assert!(kinds.into_iter().all(|count| count > 10) && acts.passed > acts.unparsed / 2, "{name}: {acts:?}");
    }
}

/// No program of the table is missing.
#[test]
fn each_generated_program_has_a_row() {
    let missing: Vec<_> = EXECUTABLE
        .into_iter()
        .filter(|name| !ROWS.iter().any(|(row, _)| row.split(',').next() == Some(*name)))
        .collect();
    assert_eq!(missing, ["conquest-legacy"], "which `taps` runs");
}

/// The acts and how often each happened, in the order of [`Act`].
fn seen(acts: &Acts) -> [(Act, usize); 8] {
    // A program that marks does so with both versions of IP.
    assert_eq!(acts.marked[0] > 0, acts.marked[1] > 0, "{acts:?}");
    [
        (Drop, acts.dropped),
        (Mark, acts.marked[0]),
        (FeedBack, acts.copies),
        (Again, acts.recirculated),
        (Window, acts.windows),
        (Push, acts.pushed),
        (Strip, acts.stripped),
        (Generated, acts.generated),
    ]
}

/// A frame that no program changes, to each port. The script adds a number.
fn fence(port: u16) -> Vec<u8> {
    [&Intrinsics::default().header()[..], &address(port), &[2, 0, 0, 0, 3, 1, 0x88, 0xb7], &[0; 46]].concat()
}

/// PIE_CP's drop probability of each port, which its control plane writes: an eighth, in units of 2^-32.
const EIGHTH: u64 = 1 << 29;

/// Sends frames through a build of a program. Returns what happened to them, or how the switch differs from the model.
fn run(tools: &Tools, program: &SwitchProgram, build: &str, count: usize) -> Result<Acts, String> {
    let mut model = Model::new(program, (0..PORTS).map(|port| (address(port), port)));
    if program.name() == "pie-cp" {
        (0..PORTS).for_each(|port| assert!(model.interpreter.write(0, port.into(), EIGHTH), "there is such a port"));
    }
    let plan = plan(program, &mut model, arrivals(program, 1, count).iter());
    let folder = tempfile::tempdir().expect("there is room");
    let path = |name: &str| folder.path().join(name);
    bmv2::compile(tools.p4c(), folder.path(), "frames", build, Architecture::V1model);
    fs::write(path("plan.json"), plan.to_string()).expect("there is room");
    fs::write(path("frames.py"), SCRIPT).expect("there is room");
    let mut command = Command::new("unshare");
    command.args(["-n", "python3"]).arg(path("frames.py")).arg(tools.switch()).arg(path("frames.json"));
    command.arg(tools.switch().with_file_name("simple_switch_CLI")).arg(path("plan.json"));
    let output = command.output().expect("unshare is there");
    if output.status.success() {
        return Ok(model.acts);
    }
    Err(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// Builds with a small error each: in a checksum, in the deparser, and in what goes with a copy.
#[test]
fn bmv2_is_found_to_differ_if_the_program_does() {
    let Some(tools) = bmv2::tools("bmv2_is_found_to_differ_if_the_program_does") else { return };
    let programs = programs();
    for (name, from, to, expected) in [
        ("step", "hdr.ipv4.checksum = hdr.ipv4.checksum - 1;", "hdr.ipv4.checksum = hdr.ipv4.checksum - 2;", "frame "),
        ("step", "packet.emit(hdr.vlan);", "", "frame "),
        ("p4air", "clone_preserving_field_list(CloneType.I2E, 32w5, 8w0);", "clone(CloneType.I2E, 32w5);", "frame "),
        ("p4air", "clone_preserving_field_list(CloneType.E2E, 32w5, 8w0);", "clone(CloneType.E2E, 32w5);", "frame "),
    ] {
        let program = programs.iter().find(|program| program.name() == name).expect("it is there");
        let build = frame_build(program);
        assert!(build.contains(from), "{name}: {from}");
        let error = run(&tools, program, &build.replace(from, to), frames_of(program)).expect_err(to);
        assert!(error.contains(expected), "{name}: {error}");
    }
}

/// Sends the frames of a plan, and compares.
pub const SCRIPT: &str = include_str!("frames/frames.py");

/// Frames with what is expected of each, and the words of the registers after all of them.
pub fn plan<'a>(program: &SwitchProgram, model: &mut Model<'_>, arrivals: impl Iterator<Item = &'a Arrival>) -> Value {
    let forwarding: Vec<_> = (0..PORTS).map(|port| Forwarding { destination: address(port), port }).collect();
    let mut commands = print_entries(program, Architecture::V1model).unwrap_or_default();
    commands += &print_forwarding(&forwarding);
    if program.name() == "pie-cp" {
        let write = |port| format!("register_write MainIngress.drop_probability {port} {EIGHTH}\n");
        commands.extend((0..PORTS).map(write));
    }
    let mut frames = Vec::new();
    for arrival in arrivals {
        let header = arrival.intrinsics.header();
        let sent = hex(&[&header[..], &arrival.frame].concat());
        let left = model.frame(arrival);
        let (to, left) = left.map(|(to, frame)| (to, hex(&[&header[..], &frame].concat()))).unzip();
        // A frame to an unknown address is in no queue.
        let by = model.port_of(&arrival.frame).unwrap_or(0);
        frames.push(json!([arrival.port, sent, by, to, left]));
    }
    let build = frame_build(program);
    let (_, behind) = build.split_once("control MainEgress(").expect("it has two halves");
    let registers = program.registers().iter().enumerate().map(|(number, register)| {
        let is_behind = behind.contains(&format!(" {}.read(", register.name));
        let control = if is_behind { "MainEgress" } else { "MainIngress" };
        let words = model.interpreter.words(number).expect("it is there").iter();
        // BMv2's words begin with zero.
        (format!("{control}.{}", register.name), words.map(|word| word ^ register.initial).collect::<Vec<_>>())
    });
    // A copy passes the queue of port 0 first.
    let has_copies = program.inputs().any(|input| input == Input::FedBack);
    json!({
        "commands": commands,
        "ports": (0..PORTS).collect::<Vec<_>>(),
        "fences": (0..PORTS).map(|port| hex(&fence(port))).collect::<Vec<_>>(),
        "rounds": if has_copies { vec![0, 0] } else { Vec::new() },
        "frames": frames,
        "registers": registers.collect::<BTreeMap<_, _>>(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
