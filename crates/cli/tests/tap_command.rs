//! `queuescope tap`: a simulated pair of captures gives the report of the queue between them; a real pair is matched; errors
//! are explained.

#![allow(clippy::disallowed_methods, reason = "tests write what the program reads")]

use crate::tap_pair as pair;

use crate::common;
use crate::common::{Report, file, list, number, printed, run, shared};
use pair::{Pair, PairParams};
use queuescope_meter::tap::Clock;
use queuescope_pcap::PcapWriter;
use queuescope_queue::Limit;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{ByteCount, Nanos, Rate};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const DEMO: &str = "data/demo.pcap.xz";

/// The time of the demo's first packet.
fn start() -> Nanos {
    Nanos(common::packets(&file(DEMO))[0].2.unwrap())
}

/// The demo through a FIFO at 20 Mb/s, captured on the links into it and on the one behind (the third link has no packets here). The
/// clock behind is 0.4 s ahead and gains 20 ppm, and the second link's clock is 0.3 s behind.
struct SimulatedPair {
    directory: TempDir,
    ingress: Vec<PathBuf>,
    egress: PathBuf,
}

impl SimulatedPair {
    fn new(limit: Limit, most: usize) -> Self {
        let params = PairParams {
            rate: Rate::from_bits_per_second(20_000_000).unwrap(),
            limit,
            behind: Clock::new(start(), 400_000_000, 20.0),
            second: Clock::new(start(), -300_000_000, 0.0),
            resolution: 1,
            snaplens: (96, 90),
            elsewhere: u64::MAX,
            most,
        };
        let pair = Pair::make(&file(DEMO), params).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (ingress, egress) = pair.write(directory.path()).unwrap();
        Self { directory, ingress, egress }
    }

    /// Runs `tap` on some of the links with JSON output: the line about the taps, and the report.
    fn tap(&self, words: &str, links: Range<usize>) -> (Value, Report) {
        let paths = self.paths(links);
        tapped(&printed(run(&format!("tap --json --stamps first {words}"), &paths), 0))
    }

    fn paths(&self, links: Range<usize>) -> Vec<&Path> {
        let ingress = self.ingress[links].iter().map(PathBuf::as_path);
        ingress.chain(["--egress".as_ref(), self.egress.as_path()]).collect()
    }
}

/// Splits the output: the line about the taps, and the report.
fn tapped(text: &str) -> (Value, Report) {
    let mut lines: Vec<_> = text.lines().collect();
    let tap: Value = serde_json::from_str(lines.remove(1)).unwrap();
    assert_eq!(tap["kind"], "tap");
    (tap, Report::parse(&lines.join("\n")))
}

fn count(tap: &Value, name: &str) -> u64 {
    let counts = list(tap, "/counts");
    number(
        counts.iter().find(|count| count["name"] == name).unwrap_or_else(|| panic!("there is no {name}")),
        "/packets",
    )
}

/// The flows of a burst at the first granularity, with their bytes.
fn culprits(burst: &Value) -> Vec<(String, u64)> {
    let flows = list(burst, "/culprits/0/flows").iter();
    flows.map(|flow| (flow["flow"].as_str().unwrap().to_owned(), number(flow, "/bytes"))).collect()
}

/// Converts a delay to the clock behind the router.
fn by_egress_clock(delay: u64) -> u64 {
    delay + delay / 50_000
}

#[test]
fn a_simulated_pair_gives_the_report_of_its_queue() {
    let made = SimulatedPair::new(Limit::None, usize::MAX);
    let (tap, report) = made.tap("--rate 20mbps --tau 10ms", 0..2);
    let truth = Report::analyze("data/demo.pcap.xz --rate 20mbps --limit none --tau 10ms", &[]);
    assert_eq!(count(&tap, "matched"), report.total("/totals/departed_packets"));
    assert_eq!((count(&tap, "lost"), count(&tap, "missed_arrival"), count(&tap, "untapped")), (0, 0, 0));
    for (link, (ahead, clock)) in [400_000_000, 700_000_000].into_iter().zip(list(&tap, "/ingress")).enumerate() {
        let offset = number(clock, "/clock/offset_ns");
        let drift = clock.pointer("/clock/drift_ppm").and_then(Value::as_f64).unwrap();
        assert!(offset.abs_diff(ahead) < 20_000, "link {link}: {offset}");
        assert!((drift - 20.0).abs() < 1.0, "link {link}: {drift}");
    }
    for total in ["/packets", "/bytes", "/flows", "/totals/departed_packets", "/bursts"] {
        assert_eq!(report.total(total), truth.total(total), "{total}");
    }
    let close = |found: u64, delay: u64, what: &str| {
        assert!(found.abs_diff(by_egress_clock(delay)) <= 1_000, "{what}: {found} ns of {delay} ns");
    };
    close(report.total("/totals/peak_delay_ns"), truth.total("/totals/peak_delay_ns"), "peak delay");
    for (total, allowed) in [("/totals/waited_share", 0.001), ("/totals/flows_in_queue_mean", 0.1)] {
        let [found, was] =
            [&report, &truth].map(|report| report.summary.pointer(total).and_then(Value::as_f64).unwrap());
        assert!((found - was).abs() <= allowed, "{total}: {found} in place of {was}");
    }
    assert_eq!(report.total("/totals/peak_depth_packets"), truth.total("/totals/peak_depth_packets"));
    for (found, burst) in report.bursts.iter().zip(&truth.bursts) {
        close(number(found, "/peak_delay_ns"), number(burst, "/peak_delay_ns"), "a burst's peak delay");
        close(number(found, "/start_ns"), number(burst, "/start_ns"), "a burst's start");
        assert_eq!(culprits(found), culprits(burst));
    }
    assert!(truth.bursts.len() >= 5);
}

#[test]
fn the_serialisation_time_is_subtracted_when_timestamps_are_at_the_end_of_packets() {
    let made = SimulatedPair::new(Limit::None, 5_000);
    let rate = Rate::from_bits_per_second(20_000_000).unwrap();
    let (_, first) = made.tap("--rate 20mbps", 0..2);
    let packets = common::packets(&made.egress);
    let mut writer = PcapWriter::new(File::create(&made.egress).unwrap(), 1, 0).unwrap();
    for (_, _, time, length, data) in packets {
        let end = Nanos(time.unwrap()) + rate.time_for(ByteCount(u64::from(length)));
        writer.packet(end, length, &data).unwrap();
    }
    writer.finish().unwrap();
    let last = |words: &str| tapped(&printed(run(&format!("tap --json {words}"), &made.paths(0..2)), 0)).1;
    let peak = |report: &Report| report.total("/totals/peak_delay_ns");
    assert!(peak(&last("--rate 20mbps")).abs_diff(peak(&first)) <= 10);
    assert!(peak(&last("")).abs_diff(peak(&first)) > 10_000, "if the rate is unknown, the delay includes that time");
}

#[test]
fn untapped_packets_are_in_the_queue_and_are_not_victims() {
    let made = SimulatedPair::new(Limit::None, usize::MAX);
    let (tap, report) = made.tap("--rate 20mbps --tau 10ms", 1..2);
    let truth = Report::analyze("data/demo.pcap.xz --rate 20mbps --limit none --tau 10ms", &[]);
    let unseen = count(&tap, "untapped") + count(&tap, "missed_arrival") + count(&tap, "egress_outside");
    assert!(unseen > 500, "{tap:#}");
    assert_eq!(report.total("/totals/departed_packets"), truth.total("/totals/departed_packets"));
    assert_eq!(count(&tap, "matched") + unseen, report.total("/totals/departed_packets"));
    let queries = number(&list(&report.summary, "/sketch")[0], "/queries");
    assert!(queries < number(&list(&truth.summary, "/sketch")[0], "/queries"));
    // The culprits are the same: packets without a known arrival count among the departures.
    let (_, guessed) = made.tap("--rate 20mbps --tau 10ms --unseen neighbours", 1..2);
    let largest = |report: &Report| {
        let burst = report.bursts.iter().max_by_key(|burst| number(burst, "/peak_delay_ns")).unwrap();
        let first = &list(burst, "/culprits/0/flows")[0];
        println!(
            "{} {} {first} {}",
            number(burst, "/start_ns"),
            number(burst, "/bytes"),
            number(burst, "/peak_delay_ns")
        );
        (first["flow"].as_str().unwrap().to_owned(), first["share"].as_f64().unwrap())
    };
    let (flow, share) = largest(&truth);
    for report in [&report, &guessed] {
        let (found, part) = largest(report);
        assert_eq!(found, flow);
        assert!((part - share).abs() < 0.02, "{part} in place of {share}");
    }
}

#[test]
fn packets_that_the_router_drops_are_counted_as_lost() {
    let made = SimulatedPair::new(Limit::Time(Nanos(20_000_000)), usize::MAX);
    let (tap, report) = made.tap("--rate 20mbps --max-delay 50ms", 0..2);
    let truth = Report::analyze("data/demo.pcap.xz --rate 20mbps --limit 20ms", &[]);
    let (lost, dropped) = (report.total("/totals/drops/lost"), truth.total("/totals/drops/overlimit"));
    assert!(dropped > 100 && lost.abs_diff(dropped) * 50 <= dropped, "{lost} of {dropped}");
    assert_eq!(count(&tap, "lost"), lost);
    let sum = |report: &Report| report.bursts.iter().map(|burst| number(burst, "/drops")).sum::<u64>();
    assert!(sum(&report) * 10 >= lost * 9 && sum(&truth) * 10 >= dropped * 9, "losses are part of bursts");
    assert!(!list(&tap, "/lost").is_empty());
    assert!(list(&tap, "/ingress").iter().map(|link| number(link, "/lost")).sum::<u64>() == lost);
}

#[test]
fn every_view_is_written() {
    let made = SimulatedPair::new(Limit::Time(Nanos(20_000_000)), 5_000);
    let (html, parquet) = (made.directory.path().join("report.html"), made.directory.path().join("out.parquet"));
    let mut paths = made.paths(0..2);
    paths.extend(["--html".as_ref(), html.as_path(), "--parquet".as_ref(), parquet.as_path()]);
    let text = printed(run("tap --stamps first", &paths), 0);
    for what in ["seen from outside", "clock", "matched", "ahead, +20.0"] {
        assert!(text.contains(what), "{what}: {text}");
    }
    assert!(std::fs::read_to_string(html).unwrap().contains("table_entries"));
    // The table has departures, which analyze reads.
    let again = Report::analyze("--departures --tau 5ms", &[&parquet]);
    let (_, report) = made.tap("--tau 5ms", 0..2);
    assert_eq!(again.total("/packets"), report.total("/totals/departed_packets"));
    assert_eq!(again.total("/totals/peak_delay_ns"), report.total("/totals/peak_delay_ns"));
}

#[test]
fn a_log_has_the_headers_of_ingress_packets() {
    let made = SimulatedPair::new(Limit::Time(Nanos(20_000_000)), usize::MAX);
    let [log, parquet] = ["log", "out.parquet"].map(|name| made.directory.path().join(name));
    // The first link has no packets, so the others are matched under other numbers.
    let mut paths = vec![made.ingress[2].as_path()];
    paths.extend(made.paths(0..2));
    paths.extend(["--log".as_ref(), log.as_path(), "--parquet".as_ref(), parquet.as_path()]);
    let (_, report) = tapped(&printed(run("tap --json --stamps first", &paths), 0));
    let lines = |words: &str, path: &Path| -> Vec<String> {
        let text = printed(run(&format!("query --csv {words}"), &[path]), 0);
        text.lines().skip(1).map(str::to_owned).collect()
    };
    // Matched packets are in the table too, in the same order.
    let both = "enqueued,dequeued,delay,src_ip,dst_ip,src_port,dst_port,protocol";
    let table = lines(&format!("--departures --select {both},length"), &parquet);
    let all = lines(&format!("--select dropped,{both},occupied"), &log);
    let left: Vec<_> = all.iter().filter_map(|row| row.strip_prefix("0,")).collect();
    let mut rows = table.iter();
    assert!(left.iter().all(|row| rows.any(|other| other == row)), "each is in the table, behind the one before it");
    let [recorded, unseen] = ["recorded", "not_recorded"]
        .map(|name| report.summary["skipped"].get(name).and_then(Value::as_u64).unwrap_or(0));
    assert_eq!((all.len() as u64, (table.len() - left.len()) as u64), (recorded, unseen));
    assert!(left.len() > 10_000, "{} of {}", left.len(), table.len());
    let lost = all.iter().filter(|row| row.starts_with("8,")).count();
    assert_eq!((lost as u64, all.len() - left.len()), (report.total("/totals/drops/lost"), lost));
    assert!(lost > 100, "{lost}");
    let times: Vec<u64> = lines("--select dequeued", &log).iter().map(|time| time.parse().unwrap()).collect();
    assert!(times.is_sorted());
    // The headers are those of the captured frames on the way in, each once.
    let headers = queuescope_log::Schema::packet().attributes().iter().map(|attribute| attribute.name.as_str());
    let select = format!("--select {}", headers.collect::<Vec<_>>().join(","));
    let mut captured: BTreeMap<String, usize> = BTreeMap::new();
    for row in made.ingress[..2].iter().flat_map(|path| lines(&select, path)) {
        *captured.entry(row).or_default() += 1;
    }
    for row in lines(&select, &log) {
        let left = captured.get_mut(&row).filter(|left| **left > 0).unwrap_or_else(|| panic!("{row} never came in"));
        *left -= 1;
    }
}

#[test]
fn every_line_matches_the_schema() {
    let made = SimulatedPair::new(Limit::Time(Nanos(20_000_000)), 5_000);
    let schema: Value =
        serde_json::from_str(&std::fs::read_to_string(file("docs/report.schema.json")).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for line in printed(run("tap --json", &made.paths(0..2)), 0).lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}: {line}");
    }
}

#[test]
fn a_real_nat_pair_is_matched() {
    let files = ["NAT_home_side.pcap", "NAT_ISP_side.pcap"]
        .map(|name| shared("a_real_nat_pair_is_matched", &format!("tappair/{name}")));
    let [Some(home), Some(isp)] = files else { return };
    let (tap, report) = tapped(&printed(run("tap --json --nat addresses", &[&home, "--egress".as_ref(), &isp]), 0));
    // 117 TCP packets are on both sides; the frames of 84 have equal lengths. The rest is UDP.
    assert!(count(&tap, "matched") + count(&tap, "reverse") >= 117, "{tap:#}");
    assert_eq!(count(&tap, "lost"), 0);
    let offset = number(&tap, "/ingress/0/clock/offset_ns");
    assert!((420_300_000..=421_900_000).contains(&offset), "{offset}");
    let names = report.summary["culprits"].to_string();
    assert!(names.contains("192.168.1.100"), "flows have the names of the ingress side: {names}");
    let (payload, _) = tapped(&printed(run("tap --json --nat payload", &[&home, "--egress".as_ref(), &isp]), 0));
    assert!(count(&payload, "matched") > 10, "{payload:#}");
}

#[test]
fn a_damaged_capture_is_read_to_its_damage() {
    let made = SimulatedPair::new(Limit::None, 5_000);
    let (whole, packets) = (std::fs::read(&made.egress).unwrap(), common::packets(&made.egress).len() as u64);
    std::fs::write(&made.egress, &whole[..whole.len() - 7]).unwrap();
    let output = run("tap --json", &made.paths(0..2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("out.pcap is damaged at byte"), "{errors}");
    let (tap, report) = tapped(&printed(output, 1));
    assert_eq!(count(&tap, "egress"), packets - 1);
    assert!(report.summary["damage"].is_string());
}

#[test]
fn errors_say_why_captures_cannot_be_matched() {
    let made = SimulatedPair::new(Limit::None, 3_000);
    let (first, egress) = (made.ingress[0].as_path(), made.egress.as_path());
    let empty = made.directory.path().join("empty.pcap");
    std::fs::write(&empty, []).unwrap();
    let link = made.directory.path().join("link.pcap");
    std::fs::hard_link(first, &link).unwrap();
    let other = file("crates/cli/tests/data/whole.pcap");
    let flag: &Path = "--egress".as_ref();
    let cases: [(&str, Vec<&Path>, &str); 11] = [
        ("", vec![first], "--egress <FILE>"),
        ("", vec![flag, egress], "<INGRESS>..."),
        ("", vec![first, flag, &other], "no packet of ingress capture 1 was seen again at the egress"),
        ("", vec![first, first, flag, egress], "is given twice"),
        ("", vec![first, &link, flag, egress], "is given twice"),
        ("", vec![first, flag, first], "is given twice"),
        ("", vec![&empty, flag, egress], "is empty"),
        ("", vec!["-".as_ref(), flag, egress], "standard input can be read only once"),
        ("", vec![first, flag, "/dev/stdin".as_ref()], "can be read only once"),
        ("", vec!["none.pcap".as_ref(), flag, egress], "the file does not exist"),
        ("", vec![egress, flag, first], "are the captures interchanged?"),
    ];
    let words = [
        ("--max-delay 0ms", "a packet needs some time in a router"),
        ("--ingress-rate 1gbps", "--ingress-rate has no effect"),
        ("--stamps first --ingress-rate 1gbps,1gbps", "2 rates for 1 captures"),
        ("--snapshots 1", "snapshots"),
    ];
    let words = words.map(|(words, what)| (words, vec![first, flag, egress], what));
    for (words, paths, what) in cases.into_iter().chain(words) {
        let output = run(&format!("tap {words}"), &paths);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words} {paths:?}: {errors}");
        assert!(errors.contains(what), "{words} {paths:?}: {errors}");
        assert!(output.stdout.is_empty() && errors.matches("error:").count() == 1, "{errors}");
    }
    let before = std::fs::read(egress).unwrap();
    let output = run("tap", &[first, flag, egress, "--html".as_ref(), egress]);
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("this would overwrite the input")
            && output.status.code() == Some(2)
    );
    assert!(std::fs::read(egress).unwrap() == before);
}

#[test]
fn an_ingress_link_without_matches_is_left_out() {
    let made = SimulatedPair::new(Limit::None, 3_000);
    let other = file("crates/cli/tests/data/whole.pcap");
    let mut paths = made.paths(0..2);
    paths.insert(1, &other);
    let (tap, report) = tapped(&printed(run("tap --json", &paths), 0));
    assert!(tap["ingress"][1]["clock"].is_null() && tap["ingress"][0]["clock"].is_object());
    assert_eq!(number(&tap, "/ingress/1/matched"), 0);
    assert!(number(&tap, "/ingress/2/matched") > 0);
    assert_eq!(report.total("/skipped/unused_ingress"), number(&tap, "/ingress/1/packets"));
}

#[test]
fn input_filters_all_captures_in_every_pass() {
    let made = SimulatedPair::new(Limit::None, usize::MAX);
    let words = "--json --stamps first --rate 20mbps --tau 10ms";
    let (chosen_tap, chosen) = tapped(&printed(run(&format!("tap --input tcp {words}"), &made.paths(0..2)), 0));
    // Filter the captures beforehand, for comparison.
    let (mut all, mut kept) = (0, 0);
    let other = SimulatedPair { directory: tempfile::tempdir().unwrap(), ingress: Vec::new(), egress: PathBuf::new() };
    let mut paths = Vec::new();
    for path in made.ingress[..2].iter().chain([&made.egress]) {
        let out = other.directory.path().join(path.file_name().unwrap());
        let packets = common::packets(path);
        let mut writer = PcapWriter::new(File::create(&out).unwrap(), packets[0].1, 65_535).unwrap();
        let mut parser = Parser::new(Tunnel::Outer);
        for (_, link, time, length, data) in &packets {
            all += 1;
            if parser.parse(LinkType::from_dlt(*link), *length, data).key.protocol == 6 {
                writer.packet(Nanos(time.unwrap()), *length, data).unwrap();
                kept += 1;
            }
        }
        writer.finish().unwrap();
        paths.push(out);
    }
    let egress = paths.pop().unwrap();
    let (before_tap, before) = tapped(&printed(
        run(&format!("tap {words}"), &SimulatedPair { ingress: paths, egress, ..other }.paths(0..2)),
        0,
    ));
    assert!(kept > 1_000 && kept < all);
    assert_eq!(chosen.total("/skipped/left_out_by_input"), all - kept, "packets of each capture are counted once");
    assert_eq!(chosen_tap["counts"], before_tap["counts"]);
    for (one, other) in list(&chosen_tap, "/ingress").iter().zip(list(&before_tap, "/ingress")) {
        for what in ["packets", "matched", "lost", "clock"] {
            assert_eq!(one[what], other[what], "{what}");
        }
    }
    assert_eq!((&chosen.bursts, &chosen.summary["totals"]), (&before.bursts, &before.summary["totals"]));
}
