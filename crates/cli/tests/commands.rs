//! Runs commands as a user types them, and compares output and exit status with `cmd/*.trycmd`.
//!
//! `TRYCMD=overwrite cargo test -p queuescope-cli --test commands` writes the present output.

#![allow(clippy::disallowed_methods, reason = "tests read what the program wrote")]

mod common;

use common::{ROOT, printed, run, run_with_input};

#[test]
fn commands_print_what_they_should() {
    std::env::set_current_dir(ROOT).expect("the workspace is there");
    let cases = trycmd::TestCases::new();
    cases.insert_var("[VERSION]", env!("CARGO_PKG_VERSION")).expect("the name of a variable is in brackets");
    cases.case("crates/cli/tests/cmd/*.trycmd");
}

#[test]
fn an_error_is_one_line() {
    for words in [
        "--rate 1gbps",
        "data/demo.pcap.xz",
        "data/demo.pcap.xz --rate 10",
        "data/demo.pcap.xz --rate 1gbps --by nonsense",
        "data/demo.pcap.xz --rate 1gbps --snapshots 1",
        "data/none.pcap --rate 1gbps",
        "data --rate 1gbps",
        "data --departures",
        "data/none.csv --departures",
        "crates/cli/tests/data/empty.pcap --rate 1gbps",
        "crates/cli/tests/data/departures.csv --rate 1gbps",
        "crates/cli/tests/data/whole.pcap --departures",
        "data/demo.pcap.xz --rate 1gbps --html none/report.html",
    ] {
        let output = run(&format!("analyze {words}"), &[]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {errors}");
        assert!(output.stdout.is_empty(), "{words}");
        assert_eq!(errors.matches("error:").count(), 1, "{words}: {errors}");
        assert!(!errors.contains("panicked"), "{words}: {errors}");
    }
}

#[test]
fn damage_on_standard_input_is_reported_after_the_report() {
    for (file, place) in
        [("cut.pcap", "byte 814"), ("cut.pcap.gz", "byte 814 of the decompressed"), ("corrupt.pcapng", "byte 752")]
    {
        let input = std::fs::read(common::file("crates/cli/tests/data").join(file)).unwrap();
        let output = run_with_input("analyze - --rate 10mbps --json", &input);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.starts_with("error: standard input is damaged at ") && errors.contains(place), "{errors}");
        let report = common::Report::parse(&printed(output, 1));
        let damage = report.summary["damage"].as_str().unwrap();
        assert_eq!(errors, format!("error: {damage}\n"));
        assert!(report.total("/packets") >= 4);
    }
}

/// Zeros in a capture are not packets, for any command. The packets behind them are read, and the command ends with an error about
/// the damage.
#[test]
fn zeros_in_a_capture_are_reported_and_packets_behind_them_are_read() {
    let whole = common::file("crates/cli/tests/data/whole.pcap");
    let (bytes, packets) = (std::fs::read(&whole).unwrap(), common::packets(&whole));
    let start = 24 + packets[..3].iter().map(|(.., data)| 16 + data.len()).sum::<usize>();
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("hole.pcap");
    let words = ["analyze --rate 1mbps", "why --rate 1mbps --packet 2", "query --select count --csv", "record --log"];
    for zeros in [16, 1024, 4080] {
        for is_end in [false, true] {
            let behind = if is_end { &[][..] } else { &bytes[start..] };
            std::fs::write(&capture, [&bytes[..start], &vec![0; zeros], behind].concat()).unwrap();
            let left = if is_end { 3 } else { packets.len() };
            for words in words {
                let log = directory.path().join(format!("log-{zeros}-{is_end}"));
                let paths =
                    if words.ends_with("--log") { vec![log.as_path(), &capture] } else { vec![capture.as_path()] };
                let output = run(words, &paths);
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                let place = format!("hole.pcap is damaged at byte {start}: {zeros} bytes are zeros, ");
                assert!(errors.contains(&place), "{words}: {errors}");
                let printed = printed(output, 1);
                let counted =
                    if words.ends_with("csv") { format!("count\n{left}\n") } else { format!("{left} packets") };
                assert!(words.starts_with("why") || printed.contains(&counted), "{words}: {printed}");
            }
            let report = common::Report::parse(&printed(run("analyze --rate 1mbps --json", &[&capture]), 1));
            assert_eq!(report.total("/packets"), left as u64);
            assert_eq!(report.total("/skipped/zeros"), 1);
        }
    }
}

#[test]
fn standard_input_gives_the_report_of_the_file() {
    let words = "--rate 1mbps --json";
    let file = printed(run(&format!("analyze {words} crates/cli/tests/data/whole.pcap"), &[]), 0);
    let input = std::fs::read(common::file("crates/cli/tests/data/whole.pcap")).unwrap();
    let piped = printed(run_with_input(&format!("analyze {words} -"), &input), 0);
    assert_eq!(file.replace("crates/cli/tests/data/whole.pcap", "-"), piped);
}

#[test]
fn neither_the_input_nor_another_output_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input.pcap");
    std::fs::copy(common::file("crates/cli/tests/data/whole.pcap"), &input).unwrap();
    let before = std::fs::read(&input).unwrap();
    std::fs::create_dir(directory.path().join("below")).unwrap();
    let roundabout = directory.path().join("below/../input.pcap");
    for flag in ["--html", "--pcapng", "--parquet"] {
        let output = run("analyze --rate 1mbps", &[&input, flag.as_ref(), &roundabout]);
        assert!(String::from_utf8_lossy(&output.stderr).contains("this would overwrite the input"), "{flag}");
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(std::fs::read(&input).unwrap() == before, "{flag}");
    }
    let out = directory.path().join("out");
    let output = run("analyze --rate 1mbps", &[&input, "--pcapng".as_ref(), &out, "--parquet".as_ref(), &out]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("would overwrite another output"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn completions_and_the_man_page_have_every_flag() {
    let help = printed(run("analyze --help", &[]), 0);
    let flags: Vec<_> = help
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("--"))
        .map(|word| word.trim_end_matches(|letter: char| !letter.is_ascii_lowercase()))
        .filter(|flag| !flag.is_empty())
        .collect();
    assert!(flags.len() >= 20, "{flags:?}");
    for what in ["man", "bash", "fish", "zsh"] {
        let text = printed(run(&format!("generate {what}"), &[]), 0);
        let text = if what == "man" { text.replace('\\', "") } else { text };
        for flag in &flags {
            let shown = if what == "fish" { format!("-l {flag}") } else { format!("--{flag}") };
            assert!(text.contains(&shown), "{what}: {shown}");
        }
    }
}

#[test]
fn the_man_page_renders() {
    let page = printed(run("generate man", &[]), 0);
    assert!(page.contains(".TH queuescope 1"));
    assert!(
        !page.contains("\\-analyze(1)") && !page.contains("-analyze(1)"),
        "it refers to a page that does not exist"
    );
    for generated in ["man", "bash", "zsh", "fish"] {
        let text = printed(run(&format!("generate {generated}"), &[]), 0);
        assert!(text.contains("analyze") && !text.contains("TIE"), "{generated} lists the internal command");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("queuescope.1");
    std::fs::write(&path, &page).unwrap();
    let man = std::process::Command::new("man").args(["--warnings", "-l"]).arg(&path).env("MANWIDTH", "100").output();
    let Some(man) = man.ok().filter(|output| output.status.success() && output.stdout.len() > 1_000) else {
        println!("skipped: the_man_page_renders: there is no man that renders a file");
        return;
    };
    let text = String::from_utf8_lossy(&man.stdout);
    assert!(text.contains("--rate") && text.contains("--across-classes"), "{text}");
    assert!(man.stderr.is_empty(), "{}", String::from_utf8_lossy(&man.stderr));
}
