//! The examples do what they say.
#![cfg(feature = "full")]
#![allow(clippy::disallowed_methods, reason = "tests run what was built, and look at it")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn demo() -> String {
    file("data/demo.pcap.xz").display().to_string()
}

/// What an example prints. It was built beside this test.
fn printed(example: &str, arguments: &[&str]) -> String {
    let own = std::env::current_exe().expect("a test has a path");
    let built = own.parent().and_then(Path::parent).expect("it is in a folder of the target").join("examples");
    let output = Command::new(built.join(example)).args(arguments).output().expect("the example was built");
    assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints text")
}

#[test]
fn capture_names_who_fills_the_queue() {
    let text = printed("capture", &[&demo(), "20mbps"]);
    assert!(text.contains("in the worst a packet waited for") && text.contains("by 5tuple\n"), "{text}");
    assert!(text.contains(" %  ") && text.contains("by src\n"), "{text}");
}

#[test]
fn departures_name_the_bulk_transfer() {
    let text = printed("departures", &[]);
    // 200 packets of 1500 bytes at 10 Mb/s: the last waits for 199 of them, and for what the call had sent.
    assert!(text.starts_with("a burst of ") && text.contains("waited for 23"), "{text}");
    let first = text.lines().nth(1).expect("it names a culprit");
    assert!(first.contains(":80 ") && first.trim_start().starts_with("9"), "{text}");
}

#[test]
fn why_explains_a_packet() {
    let text = printed("why", &[&demo(), "20mbps", "1000"]);
    assert!(text.contains("why packet 1000 waited"), "{text}");
}

#[test]
fn parts_of_ones_own_are_simulated() {
    let text = printed("own_discipline", &[]);
    assert!(text.contains("lifo: mean wait") && text.contains("tail-drop: mean wait"), "{text}");
    let text = printed("own_congestion_control", &[]);
    let rate = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
        line.and_then(|line| line.split(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{name} has a rate: {text}"))
    };
    let (own, cubic) = (rate("aimd"), rate("cubic"));
    // They share 20 Mb/s, and fill most of it.
    assert!(own > 0.0 && cubic > 0.0 && (15.0..=20.0).contains(&(own + cubic)), "{text}");
}

#[test]
fn bursts_of_a_simulated_queue_are_found() {
    let text = printed("simulated_bursts", &[]);
    // 20.5 Mb/s too much for 50 ms are 128 kB, which 10 Mb/s sends in 102 ms.
    assert!(text.starts_with("a burst of ") && text.contains("waited for 10"), "{text}");
    let first = text.lines().nth(1).expect("it names a culprit");
    assert!(first.trim_start().starts_with('9'), "{text}");
}

#[test]
fn a_trigger_fires() {
    let text = printed("log_trigger", &[&demo()]);
    assert!(text.lines().last().is_some_and(|line| line.ends_with(" packets")), "{text}");
    assert!(text.contains("busy at "), "{text}");
}

#[test]
fn algorithms_fit_a_switch_or_not() {
    let text = printed("p4_fit", &[]);
    assert!(text.starts_with("on Tofino") || text.starts_with("on tofino"), "{text}");
    // PIE as it is written writes a register twice; Egress PI was made for switches.
    let verdict = |name: &str| {
        let line = text.lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")));
        line.unwrap_or_else(|| panic!("{name} is judged: {text}"))
            .split(": ")
            .nth(1)
            .expect("there is a verdict")
            .to_owned()
    };
    assert!(verdict("pie").starts_with("infeasible"), "{text}");
    assert!(verdict("egress-pi").starts_with("feasible"), "{text}");
}

#[test]
fn a_folder_is_read_as_arrow() {
    use queuescope::archive::{Recorder, RecorderOptions};
    use queuescope::ingest::records::{Frames, Records};
    use queuescope::log::packet;

    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("traffic");
    let options = RecorderOptions::default();
    let (recorder, _) = Recorder::open(&path, Frames::schema(), options).expect("a folder is made");
    assert_eq!(recorder.append(&[0; 20_000 * packet::SIZE]).expect("they are kept").refused, 0);
    recorder.finish().expect("it is finished");
    let text = printed("query_arrow", &[&path.display().to_string(), "length == 0B"]);
    assert!(text.starts_with("20000 packets"), "{text}");
    let none = printed("query_arrow", &[&path.display().to_string(), "length > 0B"]);
    assert!(none.starts_with("0 packets"), "{none}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_link_carries_what_its_queue_holds() {
    if let Err(why) = queuescope::live::Namespace::new() {
        eprintln!("skipped: a_link_carries_what_its_queue_holds: {why}");
        return;
    }
    let text = printed("link", &[]);
    let packets: u64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("it counts packets");
    // A queue of 100 kB holds 81 of the datagrams that come at once.
    assert!(packets >= 80 && text.contains("the longest wait was"), "{text}");
}
