//! Any parameters, and what is written to a folder.

use super::*;
use proptest::prelude::*;
use queuescope_p4::ir::{Forwarding, print_entries, print_forwarding};
use queuescope_pcap::CaptureReader;
use std::collections::BTreeMap;
use std::io::Cursor;

fn files(program: &SwitchProgram, architecture: Architecture) -> BTreeMap<&'static str, Vec<u8>> {
    let code = print(program, architecture);
    let control = parameters(program.name(), &[]).and_then(|usual| control(&usual, architecture));
    let control = control.expect("the defaults fit");
    folder::files(program, architecture, code, More { control, forwarding: &[] })
        .expect("memory can be written")
        .into_iter()
        .collect()
}

fn keys() -> impl Strategy<Value = String> {
    let known =
        ["target", "update", "alpha-shift", "beta-shift", "calm", "short", "trend", "act", "max-delay", "layout"];
    let of_conquest = [
        "window",
        "snapshots",
        "rows",
        "columns",
        "estimator",
        "unit",
        "tau",
        "threshold",
        "response",
        "act-at",
        "act-at.ingress.action",
    ];
    let of_printqueue = ["cell-bits", "index-bits", "alpha", "windows", "port", "step-bits", "level-bits"];
    let of_abc =
        ["reference", "memory", "least-time", "aqm", "aqm.least", "aqm.base", "aqm.gamma", "surcharges", "meters"];
    let of_p4air = ["queues", "delay-passes", "rate", "window-scale", "fingerprint.settled", "least-window"];
    let known = known.into_iter().chain(of_conquest).chain(of_abc).chain(of_printqueue).chain(of_p4air);
    let known = known.chain(["ce-threshold"]);
    let nested = ["gains.alpha", "gains.beta", "gains", "gains.alpha.beta", "limit", ""];
    let known = known.chain(nested).map(str::to_owned).collect::<Vec<_>>();
    prop_oneof![9 => prop::sample::select(known), 1 => ".{0,8}"]
}

fn values() -> impl Strategy<Value = String> {
    let words = ["as-stated", "as-published", "true", "false", "none", "0", "-1", "1e400", "{alpha=1}", "[1]", ""];
    let words = words.map(str::to_owned).to_vec();
    let time = (any::<u64>(), prop::sample::select(vec!["ns", "us", "ms", "s", "min"]));
    let short = (0u64..100, prop::sample::select(vec!["ns", "us", "ms", "s"]));
    prop_oneof![
        2 => prop::sample::select(words),
        2 => (0u32..34).prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        1 => time.prop_map(|(number, unit)| format!("{number}{unit}")),
        3 => short.prop_map(|(number, unit)| format!("{number}{unit}")),
        1 => ".{0,8}",
    ]
}

fn sets() -> impl Strategy<Value = Vec<String>> {
    let pair = (keys(), values()).prop_map(|(key, value)| format!("{key}={value}"));
    prop::collection::vec(prop_oneof![6 => pair, 1 => ".{0,20}"], 0..3)
}

/// All algorithms with a program, by how often each is drawn. The tables of some take long to make.
const WEIGHTS: [(u32, &[&str]); 5] = [
    (6, &["pie-dp"]),
    (6, &["egress-pi"]),
    (
        8,
        &[
            "pie-cp",
            "red-egress",
            "step",
            "codel-dp",
            "ecn-sharp-dp",
            "conquest",
            "conquest-stands",
            "conquest-ingress",
            "conquest-feedback",
            "conquest-legacy",
            "abc-core",
            "abc-core-median",
            "abc-strip",
        ],
    ),
    (4, &["printqueue-windows", "printqueue-monitor"]),
    (2, &["pie-table", "abc-edge", "p4air"]),
];

fn algorithm() -> impl Strategy<Value = &'static str> {
    prop::strategy::Union::new_weighted(
        WEIGHTS.iter().map(|(weight, names)| (*weight, prop::sample::select(*names))).collect(),
    )
}

#[test]
fn any_parameters_are_tried_with_each_program() {
    let drawn: std::collections::BTreeSet<_> = WEIGHTS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    assert_eq!(drawn, algorithms::EXECUTABLE.into_iter().collect());
}

proptest! {
    /// Any text is refused with an error, or gives a program that is complete for both targets.
    #[test]
    fn any_parameters_are_refused_or_give_programs(name in algorithm(), set in sets()) {
        let parameters = match parameters(name, &set) {
            Ok(parameters) => parameters,
            Err(error) => {
                prop_assert!(!error.to_string().trim().is_empty());
                return Ok(());
            }
        };
        let program = match program(name, &parameters, &[]) {
            Ok(program) => program,
            // They have fewer parameters than in scenarios, or check them here.
            Err(error) => {
                let may_fail = ["conquest", "abc", "red", "step", "p4air", "printqueue"].iter().any(|prefix| name.starts_with(prefix));
                prop_assert!(may_fail, "{}: {}", name, error);
                prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
                return Ok(());
            }
        };
        for architecture in Architecture::ALL {
            let code = print(&program, architecture);
            prop_assert!(code.ends_with("main;\n") && code.matches('{').count() == code.matches('}').count(), "{}", code);
            if let Err(error) = check(&program, architecture) {
                prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error);
            }
            let written = files(&program, architecture);
            prop_assert!(written.values().all(|contents| !contents.is_empty()));
            prop_assert_eq!(written.contains_key("sent.pcap"), architecture == Architecture::V1model);
        }
        let text = explain::text(&parameters, &program, None).expect("memory can be written");
        prop_assert!(text.contains("v1model:") && text.contains("tna:") && !text.contains('\u{1b}'), "{}", text);
    }
}

fn default_program(name: &str) -> SwitchProgram {
    program(name, &parameters(name, &[]).expect("it exists"), &[]).expect("the defaults fit")
}

/// The frames of a capture, with their times in nanoseconds.
fn frames(capture: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut reader = CaptureReader::new(Cursor::new(capture.to_vec()), "the capture").expect("it is a capture");
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().expect("it is complete") {
        assert_eq!(record.link, 1);
        frames.push((record.time.map_or(0, |time| time.0), record.data.to_vec()));
    }
    frames
}

#[test]
fn captures_are_those_of_the_trace() {
    for name in ["pie-dp", "egress-pi"] {
        let program = default_program(name);
        let files = files(&program, Architecture::V1model);
        let trace = queuescope_p4::ir::Trace::new(&program, folder::SEED, folder::PACKETS);
        let all = |frame: fn(&queuescope_p4::ir::TracePacket) -> &Vec<u8>| -> Vec<_> {
            trace.packets.iter().map(|packet| (packet.time.0, frame(packet).clone())).collect()
        };
        assert_eq!(frames(&files["sent.pcap"]), all(|packet| &packet.sent));
        assert_eq!(frames(&files["expected.pcap"]), all(|packet| &packet.expected));
        let readme = String::from_utf8_lossy(&files["readme.txt"]).into_owned();
        assert!(readme.contains(&format!("drops {} and marks {}", trace.dropped, trace.marked)), "{readme}");
        assert!(trace.dropped + trace.marked > 0);
    }
}

#[test]
fn each_target_has_its_files() {
    for (name, architecture, endings) in [
        ("egress-pi", Architecture::V1model, "expected.pcap mk p4 readme.txt replay.py sent.pcap test.p4"),
        (
            "pie-table",
            Architecture::V1model,
            "cli expected.pcap mk p4 p4runtime.json readme.txt replay.py sent.pcap test.p4",
        ),
        (
            "conquest-ingress",
            Architecture::V1model,
            "cli expected.pcap mk p4 p4runtime.json readme.txt replay.py sent.pcap test.p4",
        ),
        (
            "conquest-feedback",
            Architecture::V1model,
            "cli expected.pcap mk p4 p4runtime.json readme.txt replay.py sent.pcap test.p4",
        ),
        (
            "conquest-legacy",
            Architecture::V1model,
            "cli expected.pcap mk p4 p4runtime.json readme.txt replay.py sent.pcap test.p4",
        ),
        ("conquest-legacy", Architecture::Tna, "bfrt.py mk p4 readme.txt"),
        ("pie-cp", Architecture::V1model, "control.py expected.pcap mk p4 readme.txt replay.py sent.pcap test.p4"),
        ("pie-cp", Architecture::Tna, "control.py mk p4 readme.txt"),
        (
            "p4air",
            Architecture::V1model,
            "cli control.py expected.pcap mk p4 p4runtime.json readme.txt replay.py sent.pcap test.p4",
        ),
        (
            "printqueue-windows",
            Architecture::V1model,
            "cli expected.pcap mk p4 p4runtime.json readme.txt replay.py sent.pcap test.p4",
        ),
        ("printqueue-monitor", Architecture::Tna, "bfrt.py mk p4 readme.txt"),
        (
            "abc-strip",
            Architecture::V1model,
            "expected.pcap mk p4 p4runtime.json readme.txt replay.py sent.pcap test.p4",
        ),
        ("abc-core-median", Architecture::Tna, "bfrt.py mk p4 readme.txt"),
        ("egress-pi", Architecture::Tna, "mk p4 readme.txt"),
        ("conquest-ingress", Architecture::Tna, "bfrt.py mk p4 readme.txt"),
        ("pie-table", Architecture::Tna, "bfrt.py mk p4 readme.txt"),
    ] {
        let files = files(&default_program(name), architecture);
        let found: Vec<_> = files.keys().copied().collect();
        assert_eq!(found.join(" "), endings, "{name} for {}", architecture.name());
        for ending in ["mk", "readme.txt"].into_iter().filter_map(|ending| files.get(ending)) {
            let text = String::from_utf8_lossy(ending);
            let left = [
                "NAME",
                "ENTRIES",
                "CONTROL",
                "CHECK",
                "FILL",
                "ACTS",
                "RUNNING",
                "BORDER",
                "ADDRESSES",
                "GENERATED",
                "PERIOD",
            ]
            .into_iter()
            .find(|word| text.contains(word));
            assert_eq!(left, None, "{text}");
            // Each file that the text names is written, or made by the compiler, by tcpdump or by the switch.
            let names = text.split(|letter: char| letter.is_whitespace() || ":),<>".contains(letter));
            for named in names.filter_map(|word| word.trim_end_matches('.').strip_prefix(&format!("{name}."))) {
                let is_made =
                    ["json", "p4info.txtpb", "test.json", "tofino", "tofino/pipe/tofino.bin"].contains(&named);
                assert!(is_made || files.contains_key(named), "{named} in {text}");
            }
        }
    }
}

/// The entries of a program without tables are those of its addresses.
#[test]
fn addresses_are_written_beside_the_entries() {
    let hosts = [([2, 0, 0, 0, 0, 0xa], 0), ([2, 0, 0, 0, 0, 0xb], 1)];
    let hosts = hosts.map(|(destination, port)| Forwarding { destination, port });
    for name in ["egress-pi", "abc-edge"] {
        let program = default_program(name);
        let more = More { control: None, forwarding: &hosts };
        let all = folder::files(&program, Architecture::V1model, String::new(), more).expect("memory can be written");
        let all: BTreeMap<_, _> = all.into_iter().collect();
        let entries = print_entries(&program, Architecture::V1model).unwrap_or_default() + &print_forwarding(&hosts);
        assert_eq!(String::from_utf8_lossy(&all["cli"]), entries);
        assert_eq!(entries.lines().filter(|line| line.contains("forward")).count(), 2);
        assert_eq!(String::from_utf8_lossy(&all["p4runtime.json"]).lines().count(), entries.lines().count() + 1);
    }
}

#[test]
fn a_program_is_made_again_from_its_first_line() {
    let line = "// Made by: queuescope p4 generate pie-dp --target tna --set target=250us --set 'act=false'\n";
    let again = made_from(line).expect("it is valid").expect("it was made here");
    let set = ["target=250us", "act=false"].map(str::to_owned);
    let first = program("pie-dp", &parameters("pie-dp", &set).expect("they are valid"), &[]).expect("it fits");
    let text = |program: &SwitchProgram| print(program, Architecture::Tna);
    assert_eq!(text(&again), text(&first));
    assert_ne!(text(&again), text(&default_program("pie-dp")));
    let line = "// Made by: queuescope p4 generate abc-strip --target v1model --border 1 --border 3\n";
    let again = made_from(line).expect("it is valid").expect("it was made here");
    let exit = algorithms::abc_strip_with(&[1, 3]).expect("the ports differ");
    assert_eq!(print_entries(&again, Architecture::V1model), print_entries(&exit, Architecture::V1model));
    assert!(made_from("// Mine\n").is_ok_and(|made| made.is_none()));
    for wrong in ["nonsense --target tna", "pie-dp --set target=never", "pie-dp --set 'target=1ms", ""] {
        let error = made_from(&format!("{MADE_BY}{wrong}\n")).expect_err(wrong);
        assert!(!error.to_string().is_empty(), "{wrong}");
    }
}

fn error_of(name: &str, set: &str) -> Option<String> {
    let parameters = parameters(name, &[set.to_owned()]);
    parameters.and_then(|parameters| program(name, &parameters, &[])).err().map(|error| error.to_string())
}

/// What has no part in a program is refused in one line, which names what has.
#[test]
fn parameters_without_a_part_are_refused() {
    for (name, set) in [
        ("red-egress", "target-delay=3ms"),
        ("red-egress", "mean-packet=100B"),
        ("red-egress", "draws=ns3"),
        ("p4air", "idle=3s"),
        ("p4air", "table.hashed.seed=4"),
        ("step", "target=3ms"),
        ("abc-edge", "queue-length=register"),
        ("abc-core", "memory=3s"),
        ("abc-core-median", "aqm.memory=3s"),
        ("abc-strip", "reference=3kbps"),
    ] {
        let error = error_of(name, set).unwrap_or_else(|| panic!("{name} takes {set}"));
        assert!(error.contains(&format!("the program {name} does not have this parameter: ")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let error = error_of("abc-core", "memory=3s").expect("it is refused");
    assert!(
        error.starts_with("--set memory: ") && error.ends_with("use one of aqm.least, aqm.base, aqm.gamma, aqm.memory"),
        "{error}"
    );
}

/// A key that nothing has is refused with the program's own keys, or with where they are listed if they are many.
#[test]
fn unknown_parameters_name_those_of_the_program() {
    let error = |name: &str, set: &str| error_of(name, set).unwrap_or_else(|| panic!("{name} takes {set}"));
    let of_core = "use one of aqm.least, aqm.base, aqm.gamma";
    assert_eq!(error("abc-core-median", "colour=3"), format!("--set colour=3: unknown parameter: {of_core}"));
    assert_eq!(error("abc-strip", "colour=3"), "--set colour=3: unknown parameter: it has none");
    for (set, expected) in [
        ("colour=3", "--set colour=3: unknown parameter: use one of the "),
        ("idle=3s", "--set idle: the program p4air does not have this parameter: use one of the "),
    ] {
        let error = error("p4air", set);
        assert!(error.starts_with(expected), "{error}");
        assert!(error.ends_with(" that 'queuescope p4 generate p4air --explain' lists"), "{error}");
    }
    // What is close to a key, or within a table of the program, has the error of scenarios.
    assert!(error("p4air", "queus=3").contains("did you mean `queues`?"));
    assert!(error("conquest-feedback", "act-at.ingress.hult=3").contains("act-at.ingress"));
}

/// The ranges that `--explain` shows are those of the program: their ends are taken, and what is beyond them is not.
#[test]
fn ranges_are_those_of_programs() {
    for (name, key, inside, outside) in [
        ("step", "ce-threshold", &["0s", "4.29s"][..], &["4.3s"][..]),
        ("red-egress", "thresholds.max", &["5", "255"], &["256"]),
        ("red-egress", "weight", &["0.0000152587890625", "0.5"], &["0.3", "1.0"]),
        ("red-egress", "unit", &["packets"], &["bytes"]),
        ("pie-dp", "target", &["0s", "65535us"], &["65536us"]),
        ("conquest", "window", &["2097152ns", "67108864ns"], &["32768ns", "134217728ns", "3ms"]),
        ("conquest", "snapshots", &["4", "8", "16"], &["3", "32"]),
        ("conquest", "rows", &["1", "4"], &["5"]),
        ("conquest-feedback", "rows", &["1", "2"], &["3"]),
        ("conquest", "columns", &["2", "16384"], &["1", "3"]),
        ("conquest", "tau", &["0s", "2.147s"], &["2.148s"]),
        ("conquest", "threshold", &["0", "4294967295"], &["4294967296"]),
        ("conquest-ingress", "act-at.ingress.hold", &["0s", "2.147s"], &["2.148s"]),
        ("conquest-ingress", "act-at.ingress.registers", &["2", "65536"], &["1", "131072", "3"]),
        ("conquest-ingress", "act-at.ingress.action", &["respond"], &["drop", "limit", "reroute"]),
        ("conquest-feedback", "act-at.ingress.action", &["drop", "limit", "reroute"], &["respond"]),
        ("conquest-feedback", "act-at.ingress.action.limit.interval", &["1us", "268ms"], &["269ms"]),
        ("conquest-feedback", "response", &["mark-or-drop"], &["drop", "mark-only"]),
        ("abc-core", "aqm.base", &["0", "511"], &["512", "1.5"]),
        ("abc-core", "aqm.gamma", &["4", "256"], &["2", "512", "5"]),
        ("p4air", "queues", &["8", "32"], &["7", "64"]),
        ("p4air", "table.hashed.entries", &["128", "65536"], &["64", "129", "131072"]),
        ("p4air", "delay-passes", &["0", "255"], &["256"]),
        ("p4air", "least-window", &["1B", "65535B"], &["65536B"]),
        ("p4air", "packet", &["64B", "16384B"], &["16385B"]),
        ("p4air", "fingerprint.rise.of-previous.shift", &["1", "11"], &["0", "12"]),
        ("p4air", "fingerprint.reduction-shift", &["1", "15"], &["0", "16"]),
        ("p4air", "fingerprint.default-rtt", &["1us", "1.07s"], &["1.08s"]),
    ] {
        for value in inside {
            assert_eq!(error_of(name, &format!("{key}={value}")), None, "{name}: {key}={value}");
        }
        for value in outside {
            assert!(error_of(name, &format!("{key}={value}")).is_some(), "{name}: {key}={value}");
        }
        let shown = limits::of_program(name, parameters(name, &[]).expect("they are defaults").list());
        assert!(shown.iter().any(|it| it.key == key && !it.range.is_empty()), "{name}: {key} in {shown:?}");
    }
}

/// The files of two targets have the same names, so each has a folder of its own.
#[test]
fn a_folder_has_one_target() {
    let folder = tempfile::tempdir().expect("there is room");
    let write = |name: &str, architecture: Architecture| {
        let program = default_program(name);
        let code = format!("{MADE_BY}{name} --target {}\n{}", architecture.name(), print(&program, architecture));
        folder::write(folder.path(), &program, architecture, code, More::default()).map(|_| ())
    };
    let [v1model, tna] = Architecture::ALL;
    write("step", v1model).expect("it is empty");
    write("step", v1model).expect("it may be written again");
    write("egress-pi", tna).expect("its files have other names");
    let error = write("step", tna).expect_err("it has the other").to_string();
    assert!(
        error.ends_with("has step for v1model, whose files have the same names: name another folder for tna"),
        "{error}"
    );
}

/// A pipe in the folder is refused before it is opened, whichever file it stands for: to open it waits for its other end.
#[cfg(unix)]
#[test]
fn a_named_pipe_in_the_folder_is_refused() {
    let program = default_program("step");
    let code = || print(&program, Architecture::V1model);
    for ending in ["p4", "mk", "sent.pcap"] {
        let folder = tempfile::tempdir().expect("there is room");
        let pipe = folder.path().join(format!("step.{ending}"));
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there");
        assert!(made.success());
        let written = folder::write(folder.path(), &program, Architecture::V1model, code(), More::default());
        let error = written.expect_err("a pipe is in the way").to_string();
        let expected = format!(
            "-o {}: {} is not a regular file: remove it, or name another folder",
            folder.path().display(),
            pipe.display()
        );
        assert_eq!(error, expected);
        let left = std::fs::read_dir(folder.path()).expect("it is there").count();
        assert_eq!(left, 1, "nothing else is written");
    }
}
