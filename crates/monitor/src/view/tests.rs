//! Compares the view with golden text, on a terminal of usual size and on a large one.

#[path = "../../../cli/tests/common/pty.rs"]
pub mod pty;

use super::history::SHIFT;
use super::*;
use queuescope_live::Acted;
use queuescope_report::format;
use queuescope_wire::Family;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

const ORIGIN: Nanos = Nanos(1000 << SHIFT);
/// A few seconds later.
const NOW: Nanos = Nanos((1060 << SHIFT) + 1000);

fn view() -> View {
    View::new("eth0", Nanos(1_000_000), Granularity::FiveTuple, None, ORIGIN, true)
}

fn flow(port: u16) -> FlowKey {
    let [src, dst] = [[10, 9, 0, 1], [10, 9, 0, 2]].map(|ip| u128::from(u32::from_be_bytes(ip)));
    FlowKey { src, dst, src_port: port, dst_port: 9, protocol: 17, family: Family::V4, ..FlowKey::default() }
}

/// Two flows have owners.
fn owners() -> BTreeMap<FlowKey, Owner> {
    let nginx = Owner { pid: Some(812), command: Some("nginx".to_owned()), ..Owner::default() };
    let in_a_container = Owner {
        pid: Some(4711),
        command: Some("iperf3".to_owned()),
        container: Some("docker 3f2a9c0b1d2e".to_owned()),
        ..Owner::default()
    };
    BTreeMap::from([(flow(40_000), in_a_container), (flow(40_001), nginx)])
}

/// A queue that fills in the last slices, mostly by one of four flows.
fn burst() -> View {
    let mut view = view();
    fill(&mut view);
    view
}

fn fill(view: &mut View) {
    let slice = |number: u64, delay: u64| Slice {
        start: Nanos(number << SHIFT),
        packets: 300,
        bytes: 400_000,
        congested: if delay >= 1_000_000 { 280 } else { 0 },
        delay_sum: Nanos(delay * 150),
        delay_max: Nanos(delay),
        backlog_max: (delay / 160) as u32,
        length_max: (delay / 200_000) as u32,
    };
    let slices: Vec<_> =
        (1010..1060).map(|n| slice(n, if n < 1040 { 90_000 } else { (n - 1039) * 1_000_000 })).collect();
    view.slices(&slices);
    for number in 1035..1060u64 {
        let at = Nanos(number << SHIFT);
        view.departed(
            &flow(40_000),
            40_000,
            if number < 1045 { 20_000 } else { 380_000 },
            Nanos((number - 1030) * 700_000),
            at,
        );
        view.departed(&flow(40_001), 40_001, 9_000, Nanos(3_000_000), at);
        if number < 1045 {
            view.departed(&flow(40_002), 40_002, 9_000, Nanos(2_000_000), at);
        } else {
            view.departed(&flow(40_003), 40_003, 1_000, Nanos(4_000_000), at);
        }
    }
    let culprit = model::Culprit {
        flow: "10.9.0.1:40000 > 10.9.0.2:9 udp".to_owned(),
        bytes: 1_000_000,
        packets: 700,
        share: 0.984,
        peak_bytes: 100_000,
        ramp: None,
        new: false,
        behaviour: None,
        owner: Some(owners().remove(&flow(40_000)).expect("it has one")),
    };
    view.owners(owners());
    for number in 1..=2 {
        view.burst(&model::Burst {
            number,
            start_ns: number * 973_000_000,
            length_ns: 43_500_000,
            peak_delay_ns: 21_700_000,
            peak_at_ns: 990_000_000,
            peak_depth_bytes: 135_000,
            peak_depth_packets: 102,
            tau_ns: 1_000_000,
            packets_over_tau: 200,
            packets: 220,
            bytes: 300_000,
            drops: (number - 1) * 17,
            culprits: vec![model::Culprits {
                granularity: "5tuple".to_owned(),
                flows: vec![culprit.clone()],
                flows_total: 4,
                culprits_total: 1,
                share_error: 0.0,
                not_shown: None,
            }],
            groups: Vec::new(),
            worst: None,
            series: None,
        });
    }
    view.counters(Counters {
        stamped: 18_119,
        came: 18_119,
        seen: 18_000,
        packets: 18_000,
        bytes: 24_000_000,
        dropped: 17,
        drops: [0, 12, 5, 0, 0, 0, 0, 0, 0],
        marked: 3,
        congested: 5_600,
        ..Counters::default()
    });
}

fn drawn(view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is memory");
    terminal.draw(|frame| view.draw(frame, NOW)).expect("it is memory");
    let buffer = terminal.backend().buffer();
    let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..height).map(row).collect()
}

fn press(view: &mut View, keys: &str) {
    keys.chars().for_each(|letter| view.key(Key::Char(letter), NOW));
}

/// Compares with the golden text.
fn same(shown: &str, golden: &str, name: &str) {
    assert!(shown == golden, "{name} is shown as\n{shown}");
}

#[test]
fn nothing_happens_on_a_usual_terminal() {
    same(&drawn(&mut view(), 80, 24), include_str!("golden/idle-80x24.txt"), "idle-80x24");
}

#[test]
fn nothing_happens_on_a_large_terminal() {
    same(&drawn(&mut view(), 200, 50), include_str!("golden/idle-200x50.txt"), "idle-200x50");
}

#[test]
fn a_burst_on_a_usual_terminal() {
    same(&drawn(&mut burst(), 80, 24), include_str!("golden/burst-80x24.txt"), "burst-80x24");
}

#[test]
fn a_burst_on_a_large_terminal() {
    same(&drawn(&mut burst(), 200, 50), include_str!("golden/burst-200x50.txt"), "burst-200x50");
}

/// The same burst while three flows are acted on; one of them is not in the view.
fn acting(mode: Mode) -> View {
    let mut view = view();
    let doing = |marked: u64| ActingStatus {
        policy: "mark linear:20.0 kB from 30.0 kB".to_owned(),
        mode,
        acted: match mode {
            Mode::Dry => Acted { would_mark: marked, spared: marked / 3, ..Acted::default() },
            Mode::Real | Mode::Paused | Mode::Stopped => Acted { marked, spared: marked / 3, ..Acted::default() },
        },
        chosen: vec![(40_000, 0.5), (39_999, 1.0), (40_003, 0.002)],
    };
    view.acting(Some(doing(0)), Nanos(NOW.0 - 1_000_000_000));
    fill(&mut view);
    view.acting(Some(doing(1200)), NOW);
    view
}

#[test]
fn flows_are_acted_on_on_a_usual_terminal() {
    let shown = drawn(&mut acting(Mode::Dry), 80, 24);
    same(&shown, include_str!("golden/dry-80x24.txt"), "dry-80x24");
}

#[test]
fn flows_are_acted_on_on_a_large_terminal() {
    let shown = drawn(&mut acting(Mode::Real), 200, 50);
    same(&shown, include_str!("golden/real-200x50.txt"), "real-200x50");
}

#[test]
fn acting_is_paused_by_a_key_if_it_changes_packets() {
    let pause_requests = |mode, keys: &str| {
        let mut view = acting(mode);
        press(&mut view, keys);
        [view.takes_pause_request(), view.takes_pause_request()]
    };
    assert_eq!(pause_requests(Mode::Real, "p"), [true, false]);
    assert_eq!(pause_requests(Mode::Paused, "p"), [true, false]);
    assert_eq!(
        [pause_requests(Mode::Real, "pp"), pause_requests(Mode::Dry, "p"), pause_requests(Mode::Real, "/p")],
        [[false; 2]; 3]
    );
    assert_eq!(pause_requests(Mode::Stopped, "p"), [false; 2]);
    let shown = drawn(&mut acting(Mode::Paused), 80, 24);
    assert!(shown.contains("paused       1,200/s marked") && shown.contains(" p  act again"), "{shown}");
}

#[test]
fn files_that_cannot_be_written_are_shown() {
    let mut view = burst();
    view.unwritten(&["/disk/a.pcapng: No space left on device".to_owned()]);
    let shown = drawn(&mut view, 80, 24);
    assert!(shown.contains("not written  /disk/a.pcapng: No space left on device"), "{shown}");
    view.unwritten(&[]);
    assert!(!drawn(&mut view, 80, 24).contains("not written"));
}

#[test]
fn every_size_can_be_drawn() {
    for (width, height) in [(1, 1), (3, 2), (20, 5), (79, 12), (139, 23), (140, 24)] {
        drawn(&mut burst(), width, height);
        drawn(&mut acting(Mode::Real), width, height);
    }
}

#[test]
fn a_filter_leaves_flows_out_until_it_is_cleared() {
    let mut view = burst();
    press(&mut view, "/:40001q");
    view.key(Key::Back, NOW);
    view.key(Key::Enter, NOW);
    let shown = drawn(&mut view, 120, 30);
    assert!(!view.is_over, "a letter of a filter is not a command");
    assert!(shown.contains("10.9.0.1:40001 >") && !shown.contains("10.9.0.1:40003 >"), "{shown}");
    view.key(Key::Escape, NOW);
    assert!(drawn(&mut view, 120, 30).contains("10.9.0.1:40003 >"));
}

#[test]
fn flows_are_found_by_owner_and_can_be_shown_without() {
    let mut view = burst();
    press(&mut view, "/3F2A");
    view.key(Key::Enter, NOW);
    let shown = drawn(&mut view, 260, 30);
    assert!(shown.contains("10.9.0.1:40000 > 10.9.0.2:9 udp  iperf3[4711] in docker 3f2a9c0b1d2e"), "{shown}");
    assert!(!shown.contains("10.9.0.1:40001 >"), "{shown}");
    press(&mut view, "o");
    let shown = drawn(&mut view, 260, 30);
    assert!(shown.contains("10.9.0.1:40000 > 10.9.0.2:9 udp ") && !shown.contains("iperf3["), "{shown}");
}

#[test]
fn flows_are_sorted_in_the_selected_order() {
    let mut view = burst();
    let mut orders = Vec::new();
    for _ in 0..4 {
        let shot = view.shot(NOW);
        orders
            .push(view.chosen(&shot.flows).iter().map(|row| row.name[12..14].to_owned()).collect::<Vec<_>>().join(" "));
        press(&mut view, "s");
    }
    assert_eq!(orders, ["00 01 03 02", "03 00 01 02", "00 03 01 02", "00 01 02 03"]);
    assert_eq!(view.sort, Sort::Share);
}

#[test]
fn a_frozen_view_stays_and_later_events_are_not_lost() {
    let mut view = burst();
    press(&mut view, "f");
    let frozen = drawn(&mut view, 80, 24);
    view.counters(Counters { packets: 99_000, ..Counters::default() });
    assert_eq!(drawn(&mut view, 80, 24), frozen);
    press(&mut view, "f");
    assert!(drawn(&mut view, 80, 24).contains(&format!("{} packets", format::count(99_000))));
    press(&mut view, "q");
    assert!(view.is_over);
}

#[test]
fn losses_of_a_link_are_shown_apart_from_drops() {
    let mut view = burst();
    let is_shown = |view: &mut View| drawn(view, 80, 24).contains("12 lost on the link");
    assert!(!is_shown(&mut view));
    view.lost(12);
    assert!(is_shown(&mut view), "{}", drawn(&mut view, 80, 24));
}

#[test]
fn without_colours_there_are_none() {
    let mut view = burst();
    view.is_coloured = false;
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("it is memory");
    terminal.draw(|frame| view.draw(frame, NOW)).expect("it is memory");
    let plain = ratatui::style::Color::Reset;
    assert!(terminal.backend().buffer().content().iter().all(|cell| cell.fg == plain && cell.bg == plain));
}
