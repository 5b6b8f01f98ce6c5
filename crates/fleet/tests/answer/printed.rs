//! Printed answers: rows as `queuescope query` prints them, and what each host contributed.

use super::{ENOUGH, answer, log, record, schema};
use queuescope_fleet::answer::{Asked, Extent, Merged, Merging, Texts, write_answer};
use queuescope_fleet::protocol::{MemberAnswer, State};
use queuescope_recording::query::{Form, Records};
use queuescope_wire::Distinct;

/// A host's records: `count` packets of some slot.
fn records(slot: u128, count: u128) -> Vec<Vec<u8>> {
    let at = 1_700_000_000_000_000_000;
    (0..count).map(|n| record([at + n, 0xffff_0a00_0001, slot, 100 + 2 * n, 1 << 31, 1 << 63, 1, 1 << 60])).collect()
}

fn merged(asked: &Asked, hosts: &[Vec<Vec<u8>>]) -> Merged {
    let mut merging = Merging::new(asked);
    for records in hosts {
        let part = answer(asked, Records::Log(&log(records)), Extent::default(), ENOUGH);
        merging.add(&part).expect("it is a part of this answer");
    }
    merging.finish()
}

fn member(name: &str, state: State, notes: &[&str], problem: &str) -> MemberAnswer {
    MemberAnswer {
        name: name.to_owned(),
        state: state.into(),
        notes: notes.iter().map(ToString::to_string).collect(),
        problem: problem.to_owned(),
        ..MemberAnswer::default()
    }
}

/// The output without styles, the notes, and why the answer is incomplete.
fn printed(
    asked: &Asked,
    merged: &Merged,
    members: &[MemberAnswer],
    form: Form,
) -> (String, Vec<String>, Option<String>) {
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let damage = write_answer(asked, merged, members, form, &mut out, &mut |note| notes.push(note.to_owned()));
    let text = String::from_utf8(out).expect("it is text");
    let plain = text.replace("\u{1b}[1m", "").replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
    (plain, notes, damage.expect("it can be written"))
}

fn ask(select: &str, group: &str, top: Option<u64>) -> Asked {
    Asked::new(&Texts { select, group, top, ..Texts::default() }, schema()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn rows_of_all_hosts_and_what_is_missing() {
    let asked = ask("count,sum(length),stddev(length),min(at)", "slot,via", Some(2));
    let merged = merged(&asked, &[records(443, 3), records(443, 1), records(53, 2), records(22, 1)]);
    let members = [
        member("a", State::Answered, &["3 packets were lost"], ""),
        member("b", State::Shedding, &[], ""),
        member("c", State::Late, &[], "no answer within 100 ms"),
        member("d\u{1b}", State::Absent, &[], ""),
    ];
    let (text, notes, damage) = printed(&asked, &merged, &members, Form::Text);
    assert_eq!(
        text,
        "\
slot  via       count  sum(length)  stddev(length)                         min(at)
 443  10.0.0.1      4          406           1.658  2023-11-14T22:13:20.000000000Z
  53  10.0.0.1      2          202           1.000  2023-11-14T22:13:20.000000000Z
7 of 7 packets of 2 of 4 hosts
note: a: 3 packets were lost
note: b: it does not record all packets
note: c: it did not answer in time: no answer within 100 ms
note: d\\u{1b}: it is not connected
"
    );
    assert!(notes.is_empty());
    let missing = "b: it does not record all packets; c: it did not answer in time: no answer within 100 ms; d\\u{1b}: it is not connected";
    assert_eq!(damage.as_deref(), Some(missing));

    let (csv, notes, _) = printed(&asked, &merged, &members, Form::Csv);
    assert_eq!(
        csv,
        "slot,via,count,sum(length),stddev(length),min(at)\n\
         443,10.0.0.1,4,406,1.6583123951777,1700000000000000000\n\
         53,10.0.0.1,2,202,1.0,1700000000000000000\n"
    );
    assert_eq!(notes.len(), 4);

    let (json, _, _) = printed(&asked, &merged, &members, Form::Json);
    let lines: Vec<serde_json::Value> =
        json.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["values"]["sum(length)"], "406");
    assert_eq!(lines[2]["kind"], "answer");
    assert_eq!((&lines[2]["input"], &lines[2]["matched"]), (&"a, b".into(), &7.into()));
    assert_eq!(lines[2]["skipped"]["members"], 3);
    assert_eq!(lines[2]["damage"], missing);
}

#[test]
fn an_answer_of_no_packets_has_no_extremes() {
    let asked = ask("count,sum(bytes),min(via),max(delta),mean(length),stddev(length)", "", None);
    let merged = merged(&asked, &[Vec::new(), Vec::new()]);
    let members = [member("a", State::Answered, &[], ""), member("b", State::Answered, &[], "")];
    let (csv, _, damage) = printed(&asked, &merged, &members, Form::Csv);
    assert_eq!(csv, "count,sum(bytes),min(via),max(delta),mean(length),stddev(length)\n0,0,,,,\n");
    assert_eq!(damage, None, "nothing is missing");
    let batch = merged.batch(&asked).expect("it has no times");
    let nulls: Vec<_> = batch.columns().iter().map(|column| column.null_count()).collect();
    assert_eq!(nulls, [0, 0, 1, 1, 1, 1]);
}

#[test]
fn columns_have_the_types_of_their_attributes() {
    let asked = ask("count,sum(delta),sum(wide),sum(share),max(via),min(length),mean(delta)", "at/1s,slot", None);
    let batch = merged(&asked, &[records(1, 1)]).batch(&asked).expect("its time is before 2262");
    let schema = batch.schema();
    let types: Vec<_> = schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(
        types,
        [
            "at/1s Timestamp(ns, \"UTC\")",
            "slot UInt16",
            "count UInt64",
            "sum(delta) Decimal128(38, 0)",
            "sum(wide) Utf8",
            "sum(share) Float64",
            "max(via) Dictionary(Int32, Utf8)",
            "min(length) UInt32",
            "mean(delta) Float64",
        ]
    );
}

#[test]
fn large_numbers_of_distinct_values_are_marked_as_estimates() {
    let asked = ask("distinct(via),count", "slot", None);
    // Both hosts have the same addresses.
    let host = |slot: u128, count: u128| -> Vec<Vec<u8>> {
        (0..count).map(|n| record([n, 0xffff_0a00_0000 + n, slot, 100, 0, 0, 0, 0])).collect()
    };
    let merged = merged(&asked, &[[host(1, 40), host(2, 5000)].concat(), [host(1, 30), host(2, 4000)].concat()]);
    let values: Vec<_> = merged.groups.iter().map(|(_, values)| values[0].to_f64()).collect();
    assert_eq!(values[0], 40.0);
    assert!((values[1] / 5000.0 - 1.0).abs() < 5.0 * Distinct::STANDARD_ERROR, "{values:?}");
    let members = [member("a", State::Answered, &[], ""), member("b", State::Answered, &[], "")];
    let estimate = values[1].to_string();
    let note = "distinct(via): values above 1,024 are estimates with a standard error of 1.15 %";
    let (text, _, _) = printed(&asked, &merged, &members, Form::Text);
    let expected = format!(
        "slot  distinct(via)  count\n   1             40     70\n   2          ~{estimate}   9000\n\
         9,070 of 9,070 packets of 2 of 2 hosts\nnote: {note}\n"
    );
    assert_eq!(text, expected);
    let (csv, notes, _) = printed(&asked, &merged, &members, Form::Csv);
    assert_eq!(csv, format!("slot,distinct(via),count\n1,40,70\n2,{estimate},9000\n"));
    assert_eq!(notes, [note]);
    let (json, _, _) = printed(&asked, &merged, &members, Form::Json);
    let last: serde_json::Value = serde_json::from_str(json.lines().last().expect("there is one")).expect("it is JSON");
    assert_eq!(last["standard_errors"], serde_json::json!({ "distinct(via)": Distinct::STANDARD_ERROR }));
    // Small numbers are exact, and say nothing.
    let merged = self::merged(&asked, &[host(1, 40)]);
    let (json, _, _) = printed(&asked, &merged, &members, Form::Json);
    assert!(!json.contains("standard_errors"), "{json}");
}

#[test]
fn an_answer_of_no_host_is_incomplete() {
    let asked = ask("count", "", None);
    let why = format!("no host has records of `{}`", schema().name());
    for form in [Form::Text, Form::Json, Form::Csv] {
        let (text, notes, damage) = printed(&asked, &merged(&asked, &[]), &[], form);
        assert_eq!(damage.as_deref(), Some(why.as_str()));
        let is_said = notes.iter().chain([&text]).any(|said| said.contains("no host"));
        assert!(is_said, "{text} {notes:?}");
    }
}
