//! One scenario simulated and on real hosts: the values of both are side by side, as text and as a page.

use crate::sample;

use crate::chromium::{self, messages, sound};
use queuescope_report::model::{Comparison, MachineLimit, Of, Quantity, RealTime, Sim, SimFlow, Skipped};
use queuescope_report::{html, text};

/// A simulation, and a copy with nine tenths of the goodput and twice the delay. Each `run` has a tenth more goodput
/// than the one before.
fn pair(run: usize) -> (Sim, Sim) {
    let mut simulated = sample::simulated().sim.expect("it is simulated");
    simulated.flows.iter_mut().for_each(|flow| flow.name = format!("{}{run}", flow.name));
    simulated.groups.iter_mut().for_each(|group| group.goodput_bps *= 1.0 + run as f64 / 10.0);
    let mut real = simulated.clone();
    real.links.iter_mut().for_each(|link| link.sojourn.mean_ns *= 2.0);
    real.groups.iter_mut().for_each(|group| group.goodput_bps *= 0.9);
    let (packets, late_packets, unread_packets) = (12_345, 678, 9);
    let (error_p50_ns, error_p99_ns, error_worst_ns) = (17_000, 81_000, 4_200_000);
    let (sleep_p50_ns, sleep_p99_ns, is_limited_by_machine) = (19_000, 45_000, true);
    real.real_time = Some(RealTime {
        packets,
        error_p50_ns,
        error_p99_ns,
        error_worst_ns,
        late_packets,
        sleep_p50_ns,
        sleep_p99_ns,
        unread_packets,
        machine_limit: Some(MachineLimit {
            limited_ns: 3_000_000_000,
            active_ns: 10_000_000_000,
            link: "bottleneck".to_owned(),
            offered_bps: 5e9,
            carried_bps: 1.2e9,
            busy_share: 0.97,
            idle_share: Some(0.01),
        }),
        is_limited_by_machine,
    });
    (simulated, real)
}

fn comparison(runs: usize) -> Comparison {
    let note = |count| Skipped { reason: "no_route".to_owned(), count, meaning: "packets for nobody".to_owned() };
    let pairs: Vec<_> = (0..runs).map(pair).collect();
    Comparison::from_pairs(&pairs, [note(2), note(3)]).expect("there are runs")
}

#[test]
fn values_of_both_worlds_are_in_one_row() {
    assert!(Comparison::from_pairs(&[], []).is_none());
    let (simulated, real) = pair(0);
    let comparison = comparison(2);
    assert_eq!(comparison.real_time.len(), 2);
    assert_eq!((comparison.skipped.len(), comparison.skipped[0].count), (1, 5));
    for row in &comparison.rows {
        assert_eq!((row.simulated.len(), row.real.len()), (2, 2), "{row:?}");
    }
    let of = |of, name: &str, quantity| {
        let is_it = |row: &&_| {
            let queuescope_report::model::Compared { subject: own, name: called, quantity: kind, .. } = row;
            (*own, called.as_str(), *kind) == (of, name, quantity)
        };
        comparison.rows.iter().find(is_it)
    };
    for (link, there) in simulated.links.iter().zip(&real.links) {
        let row = of(Of::Link, &link.name, Quantity::DelayMeanNs).expect("packets waited");
        assert_eq!((row.simulated[0], row.real[1]), (link.sojourn.mean_ns, there.sojourn.mean_ns));
        // If nothing was marked there is nothing to compare.
        assert_eq!(of(Of::Link, &link.name, Quantity::MarkRate).is_some(), link.mark_rate > 0.0);
    }
    // Their ports differ from run to run.
    let lasting = simulated.flows.iter().filter(|flow| flow.bytes.is_none()).count();
    let rows = comparison.rows.iter().filter(|row| row.subject == Of::Flow).count();
    assert!(lasting > 0 && rows == lasting, "{lasting} {rows}");
    for group in &simulated.groups {
        let row = of(Of::Group, &group.name, Quantity::GoodputBps).expect("it has goodput");
        assert_eq!((row.simulated[0], row.real[0]), (group.goodput_bps, 0.9 * group.goodput_bps));
    }
}

/// Flows of two groups start in another order in each run, so that the same place in the list is another flow.
#[test]
fn flows_of_several_runs_are_joined_by_their_group() {
    let (mut simulated, mut real) = pair(0);
    let flow = simulated.flows.iter().find(|flow| flow.bytes.is_none()).expect("a flow that lasts").clone();
    let flows = |groups: [&str; 3], goodputs: [f64; 3]| {
        let flows = (0..).zip(groups).zip(goodputs).map(|((number, group), goodput_bps)| {
            let name = format!("10.0.0.{number}:1 > 10.1.0.{number}:2 tcp");
            SimFlow { number, name, group: group.to_owned(), goodput_bps, ..flow.clone() }
        });
        flows.collect::<Vec<_>>()
    };
    simulated.flows = flows(["slow", "fast", "fast"], [1e6, 8e6, 7e6]);
    real.flows = flows(["slow", "fast", "fast"], [2e6, 6e6, 5e6]);
    let (mut later, mut later_real) = (simulated.clone(), real.clone());
    later.flows = flows(["fast", "slow", "fast"], [9e6, 3e6, 6e6]);
    later_real.flows = flows(["fast", "fast", "slow"], [4e6, 3e6, 1e6]);
    let rows = |pairs: &[(Sim, Sim)]| {
        let compared = Comparison::from_pairs(pairs, []).expect("there are runs");
        let flows = compared.rows.into_iter().filter(|row| row.subject == Of::Flow);
        flows.map(|row| (row.name, row.detail, row.simulated, row.real)).collect::<Vec<_>>()
    };
    let row = |name: &str, group: &str, simulated: &[f64], real: &[f64]| {
        (name.to_owned(), group.to_owned(), simulated.to_vec(), real.to_vec())
    };
    let several = rows(&[(simulated.clone(), real.clone()), (later, later_real.clone())]);
    assert_eq!(
        several,
        [
            row("flow 1 of slow", "slow", &[1e6, 3e6], &[2e6, 1e6]),
            row("flow 1 of fast", "fast", &[8e6, 9e6], &[6e6, 4e6]),
            row("flow 2 of fast", "fast", &[7e6, 6e6], &[5e6, 3e6]),
        ]
    );
    // One run has the names of its simulation, also if real flows started in another order.
    assert_eq!(
        rows(&[(simulated, later_real)]),
        [
            row("10.0.0.0:1 > 10.1.0.0:2 tcp", "slow", &[1e6], &[1e6]),
            row("10.0.0.1:1 > 10.1.0.1:2 tcp", "fast", &[8e6], &[4e6]),
            row("10.0.0.2:1 > 10.1.0.2:2 tcp", "fast", &[7e6], &[3e6]),
        ]
    );
}

/// The comparison as text, without styles.
fn written(comparison: &Comparison) -> String {
    let mut out = Vec::new();
    text::write_comparison(comparison, &mut out).expect("there is room");
    let text = String::from_utf8(out).expect("it is text");
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_owned();
    first + &pieces.map(|piece| piece.split_once('m').expect("a style ends").1).collect::<String>()
}

#[test]
fn values_are_below_their_worlds() {
    let mut comparison = comparison(1);
    for (row, letters) in comparison.rows.iter_mut().zip((1..40).cycle()) {
        row.name = "n".repeat(letters);
    }
    let text = written(&comparison);
    let mut end = 0;
    for line in text.lines().skip_while(|line| !line.contains("simulated  ")) {
        if line.ends_with("difference") {
            end = line.chars().count();
        } else if line.starts_with("   ") && !line.contains("note") {
            // A line that ends further to the right has a value longer than its column.
            assert!(line.trim_end().chars().count() <= end, "{line}\n{text}");
        }
    }
    assert!(end > 0, "{text}");
    assert!(text.contains("note  5 no_route: packets for nobody"), "{text}");
    assert!(text.contains("678 packets of 12,345 more than 1 ms late, 9 lost before the link"), "{text}");
}

#[test]
fn several_runs_have_a_least_and_a_most() {
    let text = written(&comparison(3));
    assert!(text.contains("means of the runs, with the least and the most in brackets"), "{text}");
    let goodput = text.lines().find(|line| line.trim_start().starts_with("goodput ")).expect("there is goodput");
    assert!(goodput.contains("-10.0 %") && goodput.matches(" to ").count() == 2, "{goodput}");
}

#[test]
fn a_page_shows_both_worlds_on_any_screen() {
    let directory = tempfile::tempdir().expect("there is room");
    let mut hostile = comparison(3);
    for row in &mut hostile.rows {
        row.name.push_str("<img src=x onerror=alert(1)>");
        row.detail = "a".repeat(300);
    }
    hostile.name = "</script><b>".to_owned();
    let script = "setTimeout(() => {
        const { scrollWidth, clientWidth, outerHTML } = document.documentElement;
        parent.postMessage(`${scrollWidth - clientWidth} too wide\n${outerHTML}`, '*');
    }, 500)";
    let mut pages = Vec::new();
    for (name, comparison) in [("one", comparison(1)), ("three", comparison(3)), ("hostile", hostile)] {
        let page = chromium::page(|file| html::write_comparison(&comparison, file), script, directory.path(), name);
        pages.extend([360, 1280].map(|width| (page.clone(), width)));
    }
    let Some(messages) = messages(directory.path(), &pages) else { return };
    for dom in messages {
        assert!(dom.starts_with("0 too wide\n"), "{}", dom.lines().next().unwrap_or_default());
        let body = sound(&dom);
        let body = body.split_once("<main").expect("a body").1;
        assert!(!body.contains("<img") && !body.contains("NaN") && !body.contains(">undefined<"));
        assert!(body.contains("−10.0\u{202f}%") && body.contains("+100.0\u{202f}%"), "{body}");
        assert!(body.contains("This machine was the bottleneck at times: 678 packets"), "{body}");
        let rows = body.matches("<svg").count();
        assert!(rows > 10 && body.matches("<circle").count() == 2 * rows, "{rows}");
    }
}
