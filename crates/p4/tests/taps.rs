//! Whole frames through BMv2 with `conquest-legacy` as it is generated: its parser, its hashes and its reports. Times are BMv2's own, and only compared with zero.

#![allow(clippy::disallowed_methods, reason = "the tests run other programs, on files that they write")]

use crate::bmv2::{self, write_frames};
use queuescope_p4::Gress;
use queuescope_p4::algorithms::{ConQuestLegacyParams, conquest_legacy_with};
use queuescope_p4::ir::{Architecture, Input, Interpreter, ParsedFrame, SwitchProgram, print, print_entries};
use queuescope_pcap::CaptureReader;
use queuescope_sketch::{ConQuestParams, Expiry, Passes, TappedConQuestParams};
use queuescope_wire::Nanos;
use std::fs;
use std::path::Path;
use std::process::Command;

/// LINKTYPE_ETHERNET.
const ETHERNET: u32 = 1;
const FRAMES: usize = 400;
/// As in the script.
const CHUNK: usize = 10;

/// Frames of real captures: those of the demo, and IPv6.
fn captured() -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let of = |name: &str, most: usize| {
        let mut reader = CaptureReader::open(&data.join(name)).expect("it is there");
        let mut frames = Vec::new();
        while let Some(record) = reader.next_record().expect("it is complete").filter(|_| frames.len() < most) {
            // The capture with IPv6 has no headers of Ethernet.
            let header = if record.link == ETHERNET { Vec::new() } else { [&[2; 12][..], &[0x86, 0xdd]].concat() };
            frames.push([&header, record.data].concat());
        }
        frames
    };
    [of("demo.pcap.xz", FRAMES), of("formats/ipv6-http.pcap", 100), of("formats/ip4-fragments.pcap", 20)].concat()
}

/// The frame as a router forwards it: other addresses of Ethernet, a lower TTL. One in eight was not seen before.
fn forwarded(number: usize, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[..12].iter_mut().for_each(|byte| *byte ^= 0x5a);
    let is_v4 = frame[12..14] == [8, 0];
    let ttl = if is_v4 { 22 } else { 21 };
    frame[ttl] = frame[ttl].wrapping_sub(1);
    if number % 8 == 3 {
        // Another source.
        frame[if is_v4 { 29 } else { 37 }] ^= 0x80;
    }
    frame
}

/// What the interpreter makes of frames at both taps, a microsecond each, ten at a time: the numbers of those that are reported, and the fates after all.
fn expected(program: &SwitchProgram, came: &[Vec<u8>], left: &[Vec<u8>]) -> (Vec<String>, String) {
    let mut interpreter = Interpreter::new(program, u64::MAX);
    let (mut reported, mut time) = (Vec::new(), 1_000_000_000);
    for chunk in 0..came.len().div_ceil(CHUNK) {
        for (port, frames) in [(1, came), (4, left)] {
            for (number, frame) in frames.iter().enumerate().skip(chunk * CHUNK).take(CHUNK) {
                time += 1_000;
                let inputs = ParsedFrame::new(frame).with(Input::ArrivalPort, port).with(Input::Arrived, time);
                let fate = interpreter.run_at(Gress::Ingress, &|input| inputs.input(input), &mut |_bits| 0);
                assert!(fate.reported.is_none() || port == 4, "only departures are reported");
                if fate.reported.is_some() {
                    reported.push(number.to_string());
                }
            }
        }
    }
    let fates = interpreter.words(program.registers().len() - 1).unwrap_or_default();
    (reported, fates.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
}

#[test]
fn bmv2_matches_the_frames_of_taps_and_reports_them() {
    let Some(tools) = bmv2::tools("bmv2_matches_the_frames_of_taps_and_reports_them") else { return };
    // Every packet that is seen twice is reported, and none expires.
    let usual = ConQuestLegacyParams::default();
    let sketch = ConQuestParams { expiry: Expiry::Clean { passes: Passes::None }, ..usual.tapped.sketch.clone() };
    let (max_delay, tau) = (TappedConQuestParams::LONGEST, Nanos::ZERO);
    let tapped = TappedConQuestParams { sketch, max_delay, tau, threshold: 0, ..usual.tapped };
    let program = conquest_legacy_with(&ConQuestLegacyParams { tapped, ..usual }).expect("it fits");
    let came = captured();
    let left: Vec<_> = came.iter().enumerate().map(|(number, frame)| forwarded(number, frame)).collect();
    let (reported, fates) = expected(&program, &came, &left);
    assert!(reported.len() > FRAMES / 2 && reported.len() < came.len() * 7 / 8 + 1, "{}", reported.len());

    let folder = tempfile::tempdir().expect("there is room");
    let path = |name: &str| folder.path().join(name);
    bmv2::compile(tools.p4c(), folder.path(), "taps", &print(&program, Architecture::V1model), Architecture::V1model);
    fs::write(path("entries"), print_entries(&program, Architecture::V1model).expect("it has tables"))
        .expect("there is room");
    fs::write(path("taps.py"), include_str!("taps.py")).expect("there is room");
    write_frames(&path("in.pcap"), came.iter().map(|frame| (Nanos::ZERO, &frame[..])));
    write_frames(&path("out.pcap"), left.iter().map(|frame| (Nanos::ZERO, &frame[..])));
    let mut command = Command::new("unshare");
    command.args(["-n", "python3"]).arg(path("taps.py")).arg(tools.switch()).args([path("taps.json"), path("entries")]);
    command.arg(tools.switch().with_file_name("simple_switch_CLI")).args([path("in.pcap"), path("out.pcap")]);
    command.args([reported.join(","), fates]);
    let output = command.output().expect("unshare is there");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    println!("{}", printed.trim_end());
}
