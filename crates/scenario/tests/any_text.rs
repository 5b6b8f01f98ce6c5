//! Any text is read or rejected without a panic, and `explain` writes back the same scenario.

use crate::common;
use proptest::prelude::*;
use queuescope_queue::Outlet;
use queuescope_scenario::{Override, Scenario, Traffic};
use queuescope_tcp::{CongestionControl, Controller};
use queuescope_wire::{QueueId, Rate};

/// Reads a text. If it is a scenario, its explained form must read back as the same; if not, there must be problems.
fn check_reading(text: &str, overrides: &[Override]) -> Result<(), TestCaseError> {
    match Scenario::parse("text", text, overrides) {
        Ok(scenario) => {
            let explained = scenario.explain();
            match Scenario::parse("explained", &explained, &[]) {
                Ok(again) => prop_assert_eq!(again, scenario, "{}", explained),
                Err(error) => return Err(TestCaseError::fail(format!("{error}\n{explained}"))),
            }
        }
        Err(error) => {
            prop_assert!(error.count() > 0, "an error without problems");
            prop_assert!(error.render(100, false).contains('×'));
        }
    }
    Ok(())
}

/// Checks that the disciplines, programs and congestion controls of a scenario can be built.
fn check_building(text: &str, overrides: &[Override]) -> Result<(), TestCaseError> {
    let Ok(scenario) = Scenario::parse("text", text, overrides) else { return Ok(()) };
    let network = scenario.network();
    let rate = Rate::from_bits_per_second(1_000_000_000).expect("it is not zero");
    for link in &network.links {
        let built = link.discipline.build(Outlet { overhead: 0, rate, queue: QueueId(0), seed: 1 });
        prop_assert_eq!(built.name(), link.discipline.name());
        if let Some(pipeline) = &link.pipeline {
            prop_assert!(
                pipeline.build(&[Outlet { overhead: 0, rate, queue: QueueId(0), seed: 1 }; 2]).is_ok(),
                "{pipeline:?}"
            );
        }
    }
    for flows in &scenario.flows {
        let route = network.route(&flows.from, &flows.to);
        prop_assert!(route.is_some_and(|route| !route.is_empty()));
        if let Traffic::Tcp(params) = &flows.traffic {
            let control = Controller::new(params, flows.stack.mss, 10 * u64::from(flows.stack.mss), 1);
            prop_assert!(control.window() > 0);
        }
    }
    Ok(())
}

/// A scenario with some lines or words removed, repeated or swapped.
fn mutated() -> impl Strategy<Value = String> {
    let scenarios = common::scenarios();
    let change = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..7u8);
    (prop::sample::select(scenarios), prop::collection::vec(change, 1..6)).prop_map(|((_, text), changes)| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (a, b, kind) in changes {
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            match kind {
                0 => lines[a].clear(),
                1 => lines.swap(a, b),
                2 => {
                    let copy = lines[a].clone();
                    lines.insert(b, copy);
                }
                3 => {
                    let value = lines[b].split_once('=').map(|(_, value)| value.to_owned());
                    if let (Some((key, _)), Some(value)) = (lines[a].split_once('='), value) {
                        lines[a] = format!("{key}={value}");
                    }
                }
                4 => lines[a] = lines[a].replace(|c: char| c.is_ascii_digit(), "9"),
                5 => {
                    lines[a].pop();
                }
                _ => lines[a] = lines[a].replace('"', ""),
            }
        }
        lines.join("\n")
    })
}

/// A value of any kind.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}")),
        prop::sample::select(vec![
            "none", "true", "false", "pie", "red", "cubic", "bbr", "abc", "graph", "{}", "[]", "0bdp"
        ])
        .prop_map(str::to_owned),
    ]
}

/// The keys of a scenario with their values, as overrides.
fn settings(text: &str) -> Vec<(String, String)> {
    let scenario = Scenario::parse("scenario", text, &[]).expect("it is one");
    let mut settings = Vec::new();
    let mut table = String::new();
    for line in scenario.explain().lines().filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_matches(['[', ']']).to_owned();
            for list in ["flows", "workloads", "meters", "wires"] {
                if table == list || table.starts_with(&format!("{list}.")) {
                    table = table.replacen(list, &format!("{list}.0"), 1);
                }
            }
        } else if let Some((key, value)) = line.split_once(" = ") {
            let value = value.split(" #").next().unwrap_or(value).trim();
            settings.push((if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }, value.to_owned()));
        }
    }
    settings
}

/// A scenario, and overrides that give some keys other values: usually their own with other digits, or those of other
/// keys.
fn changed() -> impl Strategy<Value = (String, Vec<Override>)> {
    prop::sample::select(common::scenarios()).prop_flat_map(|(_, text)| {
        let settings = settings(&text);
        let change =
            (prop::sample::select(settings.clone()), prop::sample::select(settings), value(), 0..5000u32, 0..8u8);
        let change = change.prop_map(|((path, own), (_, other), any, number, kind)| {
            Override::new(match kind {
                0 => format!("{path}={any}"),
                1 => format!("{path}={other}"),
                2 => format!("{path}={own}"),
                _ => {
                    let first = own.find(|c: char| c.is_ascii_digit());
                    let changed = first.map(|first| {
                        let rest = own[first..].trim_start_matches(|c: char| c.is_ascii_digit());
                        format!("{}{number}{rest}", &own[..first])
                    });
                    format!("{path}={}", changed.unwrap_or(own))
                }
            })
        });
        (Just(text), prop::collection::vec(change, 1..4))
    })
}

proptest! {
    // The output shows a failing case, so no file of failures is kept.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_scenarios_are_read_or_rejected(text in mutated()) {
        check_reading(&text, &[])?;
    }

    #[test]
    fn any_value_of_any_key_is_read_or_rejected((text, changes) in changed()) {
        check_reading(&text, &changes)?;
        check_building(&text, &changes)?;
    }

    #[test]
    fn any_text_is_read_or_rejected(text in "(\\PC|\n|\r|\t|\\[|\\]|=|\"|\\.|\\{){0,80}", change in "\\PC{0,30}") {
        check_reading(&text, &[])?;
        check_reading(&text, &[Override::new(change)])?;
    }

    #[test]
    fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Err(error) = Scenario::parse_bytes("bytes", &bytes, &[]) {
            prop_assert!(error.to_string().contains('×'));
        }
    }
}

#[test]
fn deep_nesting_and_long_files_do_not_crash() {
    for text in [
        "[".repeat(100_000),
        "a.".repeat(100_000) + "a = 1",
        format!("[{}a]", "a.".repeat(100_000)),
        "a = ".to_owned() + &"{a = ".repeat(100_000),
        "a = ".to_owned() + &"[".repeat(100_000),
        "[[flows]]\n".repeat(20_000),
        "x = 1\n".repeat(20_000),
    ] {
        let shown = Scenario::parse("deep", &text, &[]).map(|_| ()).map_err(|error| error.count());
        assert!(shown.is_err_and(|count| count > 0) || text.starts_with("[[flows]]"));
    }
    let deep = Override::new("a.".repeat(100_000) + "a=1");
    assert!(Scenario::parse("deep", "[[flows]]", &[deep]).is_err());
}

#[test]
fn a_file_above_the_largest_size_is_rejected() {
    let comment = format!("# {}\n[[flows]]\n", "x".repeat(1000));
    assert!(Scenario::parse("comment", &comment, &[]).is_ok());
    let huge = "#".repeat(2 << 20);
    assert!(Scenario::parse("huge", &huge, &[]).unwrap_err().to_string().contains("too large"));
}
