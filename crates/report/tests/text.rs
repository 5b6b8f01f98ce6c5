//! The text view of a simulation, and of bursts.

use crate::sample;

use queuescope_report::model::{Burst, Culprit, Group, NotShown, Report, VictimCount};
use queuescope_report::text;

/// The lines before the bursts, without styles.
fn lines(report: &Report) -> Vec<String> {
    let mut written = Vec::new();
    text::write(report, &mut written).unwrap();
    let plain = plain(written);
    plain.lines().take_while(|line| !line.starts_with("The queue of")).map(str::to_owned).collect()
}

/// The lines of a burst.
fn burst_lines(burst: &Burst) -> Vec<String> {
    let mut written = Vec::new();
    text::write_burst(burst, &mut written).unwrap();
    plain(written).lines().map(|line| line.trim().to_owned()).collect()
}

/// The text without styles.
fn plain(written: Vec<u8>) -> String {
    let written = String::from_utf8(written).unwrap();
    let mut parts = written.split('\u{1b}');
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').expect("a style ends").1);
    }
    plain
}

#[test]
fn a_simulation_has_lines_for_links_and_groups() {
    let expected = "\
two-kinds.toml  scenario
scenario  two kinds of flows
   about  Downloads share a short buffer with pages that come and go.
     run  20.0 s, the first 4.00 s of it warm-up; seed 7, 95,312 packet hops

        rate     busy      delay      95 %      99 %   dropped    marked  link
   20.0 Mb/s  100.0 %    36.6 ms   54.0 ms   58.2 ms    11.2 %     4.0 %  bottleneck red
                         36.6 ms   54.0 ms   58.2 ms    11.2 %     4.0 %    downloads
                         33.5 ms   49.5 ms   53.4 ms    11.2 %     4.0 %    pages
                         5.49 ms   8.10 ms   8.73 ms         -         -    call
           dropped: 2,704 early, 1,352 overlimit
           marked: 1,432 early
           4.06 ms of link time lost to drops behind the queue
    100 Mb/s    6.0 %     152 µs    225 µs    242 µs         -         -  way back tail-drop

    flows     goodput       least       most    Jain   last rtt   resent  group
       14   9.57 Mb/s    679 kb/s   686 kb/s   1.000    83.4 ms    2,043  downloads tcp cubic
       40   10.4 Mb/s    533 kb/s   872 kb/s   0.980    83.4 ms    2,283  pages tcp newreno
           18 of them finished, 17 after the warm-up
           completion time: mean 3.74 s, median 2.03 s, 95 % 13.7 s, 99 % 13.7 s
        1   80.0 kb/s   80.0 kb/s  80.0 kb/s   1.000          -        0  call udp
";
    assert_eq!(lines(&sample::simulated()).join("\n"), expected);
}

#[test]
fn each_queue_has_its_own_findings() {
    let text = |report: &Report| {
        let mut written = Vec::new();
        text::write(report, &mut written).unwrap();
        String::from_utf8(written).unwrap()
    };
    let (one, two) = (text(&sample::simulated()), text(&sample::two_queues()));
    let (queue, calm) = (two.strip_prefix(&one).expect("the first as if it were alone"), text(&sample::calm()));
    assert!(queue.contains("The queue of way back"), "{queue}");
    // The results for a queue are those of a report of that queue alone, without the replay.
    let delay = calm.lines().find(|line| line.contains("p99")).unwrap();
    assert!(queue.contains(delay) && queue.contains("No bursts:") && !queue.contains("FIFO"), "{queue}");
}

#[test]
fn the_origin_of_times_is_stated() {
    let mut written = Vec::new();
    text::write(&sample::simulated(), &mut written).unwrap();
    assert!(String::from_utf8(written).unwrap().contains("times count from its first packet, 4.00 s into the run"));
}

#[test]
fn missing_parts_have_no_table() {
    assert_eq!(lines(&sample::nothing_simulated()).len(), 4);
    let mut report = sample::simulated();
    let sim = report.sim.as_mut().unwrap();
    sim.links.truncate(1);
    sim.links[0].sojourn = Default::default();
    sim.links[0].drops.clear();
    sim.links[0].groups.clear();
    (sim.links[0].marks, sim.links[0].wasted_ns) = (Default::default(), 0);
    (sim.links[0].drop_rate, sim.links[0].mark_rate) = (0.0, 0.0);
    sim.groups.truncate(1);
    (sim.groups[0].flows, sim.groups[0].rtt_ns) = (0, None);
    (sim.groups[0].goodput_bps, sim.groups[0].retransmissions) = (0.0, 0);
    let lines = lines(&report);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(&lines[6]), "20.0 Mb/s 100.0 % - - - - - bottleneck red");
    assert_eq!(words(&lines[9]), "0 0 b/s - - - - 0 downloads tcp cubic");
}

#[test]
fn losses_of_a_link_are_separate_from_drops_of_its_queue() {
    let mut report = sample::simulated();
    let link = &mut report.sim.as_mut().unwrap().links[0];
    (link.lost_packets, link.loss_rate, link.groups[1].loss_rate) = (1_234, 0.05, 0.07);
    let lines = lines(&report);
    let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(5), "rate busy delay 95 % 99 % dropped lost marked link");
    assert_eq!(words(6), "20.0 Mb/s 100.0 % 36.6 ms 54.0 ms 58.2 ms 11.2 % 5.0 % 4.0 % bottleneck red");
    assert_eq!(words(7), "36.6 ms 54.0 ms 58.2 ms 11.2 % - 4.0 % downloads");
    assert_eq!(words(8), "33.5 ms 49.5 ms 53.4 ms 11.2 % 7.0 % 4.0 % pages");
    assert_eq!(
        [words(10), words(12)],
        ["dropped: 2,704 early, 1,352 overlimit", "lost: 1,234 on the link, after the queue"]
    );
}

#[test]
fn goodput_over_the_run_is_not_taken_for_that_of_a_lifetime() {
    let mut report = sample::simulated();
    let note = "           goodput is over the run, least and most over the lifetime of a flow".to_owned();
    assert!(!lines(&report).contains(&note));
    let group = &mut report.sim.as_mut().unwrap().groups[1];
    group.most_lifetime_goodput_bps = 2.0 * group.goodput_bps;
    assert!(lines(&report).contains(&note));
}

#[test]
fn flows_that_finished_before_the_warm_up_took_no_time_that_counts() {
    let mut report = sample::simulated();
    report.sim.as_mut().unwrap().groups[1].completion = None;
    assert!(lines(&report).contains(&"           18 of them finished, none after the warm-up".to_owned()));
}

#[test]
fn names_are_last_and_do_not_break_lines() {
    let long = "a name that goes on and on, beyond what any terminal has room for".repeat(3);
    let mut report = sample::simulated();
    let usual = lines(&report);
    let sim = report.sim.as_mut().unwrap();
    for link in &mut sim.links {
        link.name = format!("{long}\n\u{1b}[2J\u{202e}");
        link.discipline = "\r".into();
    }
    for group in &mut sim.groups {
        group.name = format!("{long}\n");
    }
    let (hostile, mark) = (lines(&report), '\u{fffd}');
    assert_eq!(hostile.len(), usual.len());
    let named = hostile.iter().filter(|line| line.contains(&long));
    assert_eq!(named.clone().count(), 5);
    for (line, usual) in hostile.iter().zip(&usual).filter(|(line, _)| line.contains(&long)) {
        let at = line.find(&long).unwrap();
        assert_eq!(line[..at], usual[..at], "numbers stand before the names");
        assert!(line[..at].chars().count() < 80, "a terminal of 80 columns has room for the numbers");
        assert!(line[at..].contains(mark) && !line.contains(['\r', '\u{202e}']));
    }
}

#[test]
fn packets_of_unknown_flows_make_a_count_a_lower_bound() {
    let flows = |report: &Report| {
        let mut written = Vec::new();
        text::write(report, &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        let input = written.lines().find(|line| line.contains("packets, ")).expect("it says what was read");
        input.rsplit("; ").next().expect("there are flows").to_owned()
    };
    let mut report = sample::calm();
    let exact: Vec<_> = report.totals.flows.iter().map(|count| count.exact).collect();
    let before = flows(&report);
    report.totals.miss_flows_of(0);
    assert_eq!(report.totals.flows.iter().map(|count| count.exact).collect::<Vec<_>>(), exact);
    assert_eq!(flows(&report), before, "none is missing");
    report.totals.miss_flows_of(2);
    report.totals.miss_flows_of(1);
    let all = &report.totals.flows;
    assert!(all.iter().all(|count| !count.exact && count.unknown_packets == 3), "{all:?}");
    assert_eq!(flows(&report).matches("at least ").count(), all.len(), "{}", flows(&report));
    assert!(!flows(&report).contains("about "), "{}", flows(&report));
}

/// A burst of the sample without groups and jumps, of one granularity.
fn burst() -> Burst {
    let mut burst = sample::usual().bursts.into_iter().next().expect("there is one");
    burst.groups.clear();
    burst.culprits.truncate(1);
    burst.culprits[0].flows.iter_mut().for_each(|flow| (flow.new, flow.ramp) = (false, None));
    burst
}

/// With any filter, the row states which flows it is about.
#[test]
fn a_row_without_a_flow_keeps_its_label() {
    let mut burst = burst();
    let culprits = &mut burst.culprits[0];
    (culprits.granularity, culprits.flows_total, culprits.culprits_total) = ("5tuple".to_owned(), 12, 0);
    culprits.flows.clear();
    let rows =
        |burst: &Burst| burst_lines(burst).into_iter().skip_while(|line| !line.contains("5tuple")).collect::<Vec<_>>();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<_> = rows(&burst).iter().map(|line| words(line)).collect();
    assert_eq!(lines, ["5tuple no flow matches", "100.0 % 12 others"]);
    burst.culprits[0].not_shown = Some(NotShown::beside(12, burst.bytes, [].into_iter()));
    assert_eq!(words(&rows(&burst)[1]), "100.0 % 12 not shown");
}

/// A flow with many of the packets is listed once, and its row has that share. JSON lists more flows than the text, and
/// does not count them as not shown.
#[test]
fn flows_without_room_in_the_text_are_not_those_that_an_expression_leaves_out() {
    let mut burst = burst();
    let culprits = &mut burst.culprits[0];
    let flow = culprits.flows[0].clone();
    culprits.flows = (0..20)
        .map(|number| Culprit { flow: format!("flow {number}"), bytes: 1, packets: 1, share: 0.01, ..flow.clone() })
        .collect();
    culprits.flows_total = 27;
    culprits.not_shown = Some(NotShown { flows: 7, bytes: 80, share: 0.8 });
    let lines = burst_lines(&burst);
    let row = lines.iter().find(|line| line.contains("not shown")).expect("some are not");
    assert!(row.contains(" others, 7 of them not shown"), "{row}");
}

/// The text lists few flows, but each with a tenth of the bytes or of the packets: groups do not repeat these.
#[test]
fn a_heavy_flow_is_always_listed() {
    let mut burst = burst();
    burst.packets = 1_000;
    let culprits = &mut burst.culprits[0];
    let flow = Culprit { packets: 10, share: 0.16, ..culprits.flows[0].clone() };
    culprits.flows = (0..6).map(|number| Culprit { flow: format!("heavy {number}"), ..flow.clone() }).collect();
    culprits.flows.extend([
        Culprit { flow: "light".to_owned(), share: 0.02, ..flow.clone() },
        Culprit { flow: "small packets".to_owned(), share: 0.01, packets: 100, ..flow },
    ]);
    (culprits.flows_total, culprits.culprits_total, culprits.not_shown) = (20, 9, None);
    let lines = burst_lines(&burst);
    for flow in ["heavy 0", "heavy 3", "heavy 5", "small packets"] {
        assert_eq!(lines.iter().filter(|line| line.contains(flow)).count(), 1, "{flow}: {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.contains("light")), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")
            == "3.0 % 13 others, 2 of them also culprits: see JSON or HTML"),
        "{lines:?}"
    );
}

/// The others of a list agree with their number.
#[test]
fn other_culprits_are_counted_in_the_singular_and_the_plural() {
    let mut burst = burst();
    let culprits = &mut burst.culprits[0];
    let flow = Culprit { packets: 1, share: 0.02, ..culprits.flows[0].clone() };
    culprits.flows = (0..3).map(|number| Culprit { flow: format!("flow {number}"), ..flow.clone() }).collect();
    burst.culprits.truncate(1);
    for (others, culprits, expected) in [
        (1, 1, "1 other, also a culprit: see JSON or HTML"),
        (5, 0, "5 others"),
        (5, 1, "5 others, 1 of them also a culprit: see JSON or HTML"),
        (5, 4, "5 others, 4 of them also culprits: see JSON or HTML"),
        (5, 5, "5 others, all of them also culprits: see JSON or HTML"),
    ] {
        let listed = &mut burst.culprits[0];
        (listed.flows_total, listed.culprits_total, listed.not_shown) = (3 + others, 3 + culprits, None);
        let lines = burst_lines(&burst);
        assert!(lines.iter().any(|line| line.ends_with(&format!("  {expected}"))), "{expected}: {lines:?}");
    }
}

#[test]
fn a_filter_of_victims_without_matches_has_a_short_line() {
    let mut report = sample::usual();
    report.setup.victims_filter = Some("icmp".to_owned());
    let mut victims = |packets, dropped, drops: &[(&str, u64)]| {
        report.totals.victims = Some(VictimCount { packets, bytes: 100 * packets, dropped });
        report.totals.drops = drops.iter().map(|(reason, packets)| ((*reason).to_owned(), *packets)).collect();
        let line = lines(&report).into_iter().find(|line| line.starts_with(" victims")).expect("a line of victims");
        line.trim().to_owned()
    };
    assert_eq!(victims(0, Some(0), &[("tail", 3)]), "victims  icmp: no packet matched");
    assert_eq!(victims(0, None, &[]), "victims  icmp: no packet matched");
    assert_eq!(victims(0, None, &[("tail", 3)]), "victims  icmp: no packet that left the queue matched");
    assert_eq!(victims(0, Some(2), &[("tail", 3)]), "victims  icmp: 2 packets matched, all dropped");
    let of_all = "delays and bursts are of victims; shares are of the whole queue";
    assert_eq!(
        victims(1, Some(2), &[("tail", 3)]),
        format!("victims  icmp: 1 packet, 100 B, 2 more dropped; {of_all}")
    );
}

/// A list of some bursts says which they are, in the singular if it is one.
#[test]
fn the_number_of_listed_bursts_agrees() {
    let mut report = sample::many();
    let heading = |report: &Report| {
        let lines = lines(report);
        lines.into_iter().find(|line| line.contains(" with delays of ")).expect("a heading of bursts")
    };
    assert!(heading(&report).ends_with("; the 10 with the longest delays:"), "{}", heading(&report));
    report.bursts.truncate(1);
    report.bursts_omitted = 3;
    assert!(heading(&report).ends_with("; the one with the longest delay:"), "{}", heading(&report));
}

#[test]
fn a_listed_flow_is_not_repeated_as_a_group() {
    let usual = sample::usual().bursts[0].groups[0].clone();
    let mut burst = burst();
    let flow = burst.culprits[0].flows[0].flow.clone();
    let group = Group { description: flow.clone(), explosion: None, share: 0.2, packets_share: 0.5, ..usual };
    let other = Group { description: "another flow".to_owned(), ..group.clone() };
    burst.groups = vec![group];
    let lines = burst_lines(&burst);
    let named: Vec<_> = lines.iter().filter(|line| line.contains(&flow)).collect();
    assert!(named.len() == 1 && named[0].ends_with(&format!("{flow}; 50.0 % of the packets")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("in common")), "{lines:?}");
    // A flow that is not listed is.
    burst.groups.push(other);
    assert!(burst_lines(&burst).iter().any(|line| line.starts_with("in common") && line.contains("another flow")));
}
