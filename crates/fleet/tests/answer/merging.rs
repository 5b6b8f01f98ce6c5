//! Merged parts against one grouping over all records.

use super::{ENOUGH, READ, answer, any_record, log, question, schema, shuffle};
use proptest::prelude::*;
use proptest::sample::Index;
use queuescope_fleet::answer::{Asked, Extent, Merged, Merging, Partial, Texts};
use queuescope_log::{Function, Group, Scope};
use queuescope_recording::query::{Records, Selection};
use queuescope_wire::Distinct;

/// To compare: a number that is none differs from itself.
fn text(what: &impl std::fmt::Debug) -> String {
    format!("{what:?}")
}

/// The answer over all records, by the log's own grouping.
fn in_one(asked: &Asked, expression: &str, records: &[Vec<u8>], from: u64, to: u64) -> (Vec<Group>, u64) {
    let log = log(records);
    let scope = Scope::new(schema());
    let dnf = scope.parse(expression).expect("it is valid").dnf(&scope).expect("it is small");
    let snapshot = log.snapshot();
    let query = snapshot.query().matching(&dnf).from(from).to(to);
    let packets = query.matched().count();
    if asked.keys().is_empty() {
        return (vec![(Vec::new(), query.matched().fold(asked.functions()))], packets);
    }
    let mut groups = query.matched().group(asked.keys(), asked.functions());
    if let Selection::Groups(selected) = asked.selection()
        && let Some(top) = selected.top
    {
        groups.top(top, 0);
    }
    (groups.iter().collect(), packets)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn merged_parts_are_the_answer_over_all_records(
        question in question(),
        records in prop::collection::vec((any_record(), 0..8usize), 0..60),
        hosts in 1..=8usize,
        order in prop::collection::vec(any::<Index>(), 8),
        (from, to) in (prop_oneof![Just(0), 0..60_000_000u64], prop_oneof![Just(u64::MAX), 0..90_000_000u64]),
    ) {
        let asked = question.asked();
        let mut each: Vec<Vec<Vec<u8>>> = vec![Vec::new(); hosts];
        records.iter().for_each(|(record, host)| each[host % hosts].push(record.clone()));
        let extent = Extent { from, to, before: None };
        let mut parts: Vec<_> =
            each.iter().map(|records| answer(&asked, Records::Log(&log(records)), extent, ENOUGH)).collect();
        shuffle(&mut parts, &order);
        let mut merging = Merging::new(&asked);
        parts.iter().for_each(|part| merging.add(part).expect("it is a part of this answer"));
        let merged = merging.finish();

        let all: Vec<_> = each.concat();
        let (groups, packets) = in_one(&asked, &question.expression, &all, from, to);
        prop_assert_eq!(text(&merged.groups), text(&groups));
        prop_assert_eq!((merged.packets, merged.records, merged.left_out), (packets, all.len() as u64, 0));

        let bytes = merged.encode(&asked).unwrap_or_else(|error| panic!("{error}"));
        let read = Merged::decode(&bytes, &asked, READ).unwrap_or_else(|error| panic!("{error}"));
        if merged.packets > 0 {
            prop_assert_eq!(text(&read), text(&merged));
        } else {
            prop_assert_eq!(read.groups.len(), merged.groups.len());
            prop_assert_eq!(read.packets, 0);
        }
    }

    #[test]
    fn only_records_before_a_position_count(records in prop::collection::vec(any_record(), 1..60), before in any::<Index>()) {
        let asked = Asked::new(&Texts { select: "count,sum(length)", group: "slot", ..Texts::default() }, schema()).expect("it is valid");
        let before = before.index(records.len() + 1);
        let extent = Extent { before: Some(before as u64), ..Extent::default() };
        let part = answer(&asked, Records::Log(&log(&records)), extent, ENOUGH);
        let expected = answer(&asked, Records::Log(&log(&records[..before])), Extent::default(), ENOUGH);
        prop_assert_eq!(part, expected);
    }

    #[test]
    fn sums_and_deviations_of_fractions_are_near(records in prop::collection::vec((any_record(), any::<bool>()), 1..60)) {
        let texts = Texts { select: "sum(share),mean(share),stddev(share),stddev(wide)", ..Texts::default() };
        let asked = Asked::new(&texts, schema()).expect("it is valid");
        prop_assert!(!asked.functions().iter().any(|function| function.is_of_any_order(schema())));
        let of = |which: bool| records.iter().filter(|(_, host)| *host == which).map(|(record, _)| record.clone()).collect::<Vec<_>>();
        let mut merging = Merging::new(&asked);
        for host in [false, true] {
            merging.add(&answer(&asked, Records::Log(&log(&of(host))), Extent::default(), ENOUGH)).expect("it is a part");
        }
        let all: Vec<_> = records.iter().map(|(record, _)| record.clone()).collect();
        let (groups, _) = in_one(&asked, "", &all, 0, u64::MAX);
        for (found, expected) in merging.finish().groups[0].1.iter().zip(&groups[0].1) {
            let (found, expected) = (found.to_f64(), expected.to_f64());
            let scale: f64 = if expected.abs() > 1e20 { 1e38 } else { 1.0 };
            prop_assert!((found - expected).abs() <= 1e-9 * scale.max(expected.abs()), "{found} {expected}");
        }
    }
}

/// Many values, of which hosts have some in common: as parts that were sent, they give the estimate of one host with all records.
#[test]
fn distinct_values_of_many_hosts_are_those_of_one() {
    let texts = Texts { select: "distinct(via),distinct(slot)", ..Texts::default() };
    let asked = Asked::new(&texts, schema()).expect("it is valid");
    for hosts in [1, 3, 8] {
        let record = |n: u128| super::record([n, n * 0x1_0001, n % 700, 0, 0, 0, 0, 0]);
        let all: Vec<_> = (0..20_000).map(record).collect();
        let mut merging = Merging::new(&asked);
        for host in 0..hosts {
            // Each host also has half of the records of the next.
            let of_host = |n: &u128| n % hosts == host || (n % hosts == (host + 1) % hosts && n.is_multiple_of(2));
            let records: Vec<_> = (0..20_000).filter(of_host).map(record).collect();
            let part = answer(&asked, Records::Log(&log(&records)), Extent::default(), ENOUGH);
            let bytes = part.encode(&asked).expect("it can be written");
            let read = Partial::decode(&bytes, &asked, READ).expect("its own bytes");
            assert_eq!(read.groups, part.groups);
            merging.add(&read).expect("it is a part of this answer");
        }
        let merged = merging.finish();
        let (groups, _) = in_one(&asked, "", &all, 0, u64::MAX);
        assert_eq!(merged.groups, groups);
        let values: Vec<_> = merged.groups[0].1.iter().map(|value| value.to_f64()).collect();
        assert!((values[0] / 20_000.0 - 1.0).abs() < 5.0 * Distinct::STANDARD_ERROR, "{values:?}");
        assert_eq!(values[1], 700.0);
    }
}

#[test]
fn a_part_of_another_answer_adds_nothing() {
    let ask = |select| Asked::new(&Texts { select, group: "slot", ..Texts::default() }, schema()).expect("it is valid");
    let (one, other) = (ask("count"), ask("count,max(slot)"));
    let log = log(&[super::record([1; 8])]);
    let part = answer(&other, Records::Log(&log), Extent::default(), ENOUGH);
    let mut merging = Merging::new(&one);
    let error = merging.add(&part).expect_err("it has another state").to_string();
    assert_eq!(error, "it has 3 states, and should have 2: one for each function");
    let merged = merging.finish();
    assert_eq!((merged.groups.len(), merged.packets, merged.records), (0, 0, 0));
    assert!(matches!(one.functions(), [Function::Count]));
}

#[test]
fn questions_that_cannot_be_answered_are_refused() {
    let refused = |texts: &Texts<'_>| Asked::new(texts, schema()).expect_err("it is refused").to_string();
    let packets = refused(&Texts { select: "at,length", ..Texts::default() });
    assert!(packets.starts_with("a query of several hosts computes functions"), "{packets}");
    assert!(refused(&Texts::default()).contains("group packets (--group dst_ip)"));
    for (texts, part) in [
        (Texts { expression: "lenght > 1", select: "count", ..Texts::default() }, "lenght"),
        (Texts { select: "stddev(via)", ..Texts::default() }, "`via` is not a number"),
        (Texts { group: "slot/1ms", ..Texts::default() }, "`slot` is not a time"),
    ] {
        let error = refused(&texts);
        assert!(error.contains(part) && error.contains('\u{2500}'), "it shows the place: {error}");
    }
    let long = "a".repeat(70_000);
    assert_eq!(
        refused(&Texts { expression: &long, ..Texts::default() }),
        "the text of a question has 70000 bytes; at most 65536 are read"
    );
}
