//! The page in a real browser: it draws without an error, and the address of a burst shows its culprits. Skipped, with
//! a notice, if there is no chromium.

use crate::sample;

use crate::chromium::{self, messages, opened, root, sound, strings, text, unescaped, words};
use queuescope_report::html;
use queuescope_report::model::{NotShown, Report, Skipped};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Panels of several bursts of the usual report; the last one with its filter pressed. None without a browser.
static PANELS: LazyLock<Option<Vec<String>>> = LazyLock::new(|| {
    let steps = "(async () => {
        const shown = [];
        for (const step of ['#burst-1', '#burst-2', '#burst-3', '#burst-5', 'filter']) {
            if (step === 'filter') location.hash = '#burst-1';
            else location.hash = step;
            await new Promise((done) => setTimeout(done, 50));
            if (step === 'filter') document.querySelector('.toggle').click();
            shown.push(document.getElementById('panel').innerHTML);
        }
        for (const panel of shown) document.body.append(document.createElement('hr'), panel);
    })()";
    let directory = tempfile::tempdir().unwrap();
    let page = page(&sample::usual(), steps, directory.path(), "page");
    let dom = sound(&opened(directory.path(), &page, "")?);
    assert!(dom.contains("<canvas"), "the chart is drawn");
    // They are returned as text, with the markup of the page written as entities.
    let panels: Vec<String> = dom.split("<hr>").skip(1).map(unescaped).collect();
    assert_eq!(panels.len(), 5, "{}", root(&dom));
    Some(panels)
});

#[test]
fn a_chosen_burst_shows_its_culprits() {
    let Some(panels) = &*PANELS else { return };
    let burst = &sample::usual().bursts[0];
    let (_, tables) = panels[0].split_once("class=\"side-by-side\"").expect("the tables of flows");
    let (tables, _) = tables.split_once("class=\"worst\"").expect("the worst packet's culprits come after them");
    for culprits in &burst.culprits {
        assert!(tables.contains(&format!("Culprits by {}", culprits.granularity)));
    }
    let flows = burst.culprits.iter().map(|culprits| culprits.flows.len()).sum::<usize>();
    assert_eq!(tables.matches("<tr role=\"row\">").count(), 3 + flows);
}

#[test]
fn what_flows_have_in_common_stands_above_them() {
    let Some(panels) = &*PANELS else { return };
    let burst = &sample::usual().bursts[0];
    let (above, _) = panels[0].split_once("class=\"side-by-side\"").expect("the tables of flows");
    let [group] = &burst.groups[..] else { panic!("one group") };
    let (_, below) = above.split_once(&group.description).expect("the group");
    assert!(!group.heavy.is_empty());
    for heavy in &group.heavy {
        assert!(words(below).contains(&heavy.flow));
    }
    assert!(!panels[2].contains("in-common"));
}

#[test]
fn only_the_flows_that_ramped_stay() {
    let Some(panels) = &*PANELS else { return };
    for growth in ["ramped 4x", "new", "ramped 2.5x", "new, ramped 12x"] {
        assert!(panels[0].contains(&format!("class=\"rate\">{growth}</td>")), "{growth}");
    }
    let hidden = |panel: &str| panel.matches("<tr role=\"row\" hidden=\"\">").count();
    assert!(panels[0].contains("aria-pressed=\"false\"") && hidden(&panels[0]) == 0);
    assert!(panels[4].contains("aria-pressed=\"true\"") && hidden(&panels[4]) == 1);
    assert!(panels[4].contains("4 of the 5 flows named here"));
    assert!(!panels[1].contains("class=\"rate\"") && !panels[1].contains("aria-pressed"), "nothing ramped in it");
}

#[test]
fn the_worst_packet_is_explained_as_far_as_it_is_known() {
    let Some(panels) = &*PANELS else { return };
    let bursts = sample::usual().bursts;
    for (panel, number, original) in [(0, 1, Some(true)), (1, 2, Some(false)), (3, 5, None)] {
        let worst = panels[panel].split_once("class=\"worst\"").map(|(_, worst)| words(worst));
        assert_eq!(worst.is_some(), original.is_some(), "{number}");
        let Some(worst) = worst else { continue };
        for kind in ["Direct", "Indirect", "Original"] {
            assert!(worst.contains(kind), "{number}: {kind}");
        }
        assert_eq!(worst.contains("Not available"), original == Some(false), "{number}");
        let settings = "--rate 100mbps --limit 640kB --overhead ethernet --split-gso --by 5tuple,dst,src-dst";
        let at = bursts[number - 1].peak_at_ns as f64 / 1e9;
        let command = format!("queuescope why uplink-2026-03-14.pcap.zst {settings} --at {at}s");
        assert!(worst.contains(&command), "{number}: {command} in {worst}");
    }
}

#[test]
fn a_page_of_a_managed_queue_names_the_aqm_above_its_figures() {
    let directory = tempfile::tempdir().unwrap();
    let script =
        "parent.postMessage([...document.querySelectorAll('.notice')].map((note) => note.textContent).join(), '*')";
    let tail_drop = sample::usual();
    let mut managed = tail_drop.clone();
    managed.setup.aqm = Some("fq-codel".to_owned());
    let pages = [("tail-drop", &tail_drop), ("managed", &managed)];
    let pages = pages.map(|(name, report)| (page(report, script, directory.path(), name), 400));
    let Some(texts) = messages(directory.path(), &pages) else { return };
    let statements = |text: &String| ["managed by fq-codel", "senders do not react"].map(|words| text.contains(words));
    let mut headline: Vec<_> = texts.iter().map(statements).collect();
    headline.sort_unstable();
    assert_eq!(headline, [[false; 2], [true; 2]], "{texts:?}");
}

#[test]
fn a_page_with_a_flow_filter_names_it_in_its_headline() {
    let directory = tempfile::tempdir().unwrap();
    let script = "parent.postMessage(document.querySelector('main').textContent, '*')";
    let whole = sample::usual();
    let mut some = whole.clone();
    some.setup.show_filter = Some("src net 10.0.0.0/8".to_owned());
    some.skipped.push(Skipped {
        reason: "show_not_applied".to_owned(),
        count: 1,
        meaning: "lists without it".to_owned(),
    });
    let level = &mut some.culprits[0];
    let bytes = level.flows.iter().map(|flow| flow.bytes);
    level.not_shown = Some(NotShown::beside(level.flows_total + 1, 2 * bytes.clone().sum::<u64>(), bytes));
    let pages = [("whole", &whole), ("some", &some)];
    let pages = pages.map(|(name, report)| (page(report, script, directory.path(), name), 400));
    let Some(texts) = messages(directory.path(), &pages) else { return };
    let (headline, of_some) = ("Of the flows that --show lists, ", " There are lists without it.");
    assert!(texts.iter().any(|text| text.contains(headline) && text.contains(of_some)), "{texts:?}");
    assert!(texts.iter().any(|text| !text.contains(headline) && !text.contains(of_some)), "{texts:?}");
}

#[test]
fn a_command_to_copy_quotes_its_arguments() {
    let directory = tempfile::tempdir().unwrap();
    let script = "parent.postMessage(document.querySelector('.command code').textContent, '*')";
    let mut report = sample::usual();
    report.setup.rate_bps = Some(1_500_001);
    let names = [
        ("it's; rm -rf ~.pcap", r"'it'\''s; rm -rf ~.pcap'"),
        ("-x.pcap", "./-x.pcap"),
        ("-", "FILE"),
        ("a\u{3}rm b", "FILE"),
    ];
    let pages = names.map(|(name, _)| {
        report.input.name = name.into();
        (page(&report, script, directory.path(), &name.len().to_string()), 400)
    });
    let Some(commands) = messages(directory.path(), &pages) else { return };
    for (_, word) in names {
        let start = format!("queuescope why {word} --rate 1500001bps ");
        assert!(commands.iter().any(|command| command.starts_with(&start)), "{start} in {commands:?}");
    }
}

/// What a page of a simulation shows, and how it reacts; none without a browser.
static LOOK: LazyLock<Option<serde_json::Value>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let page = page(&sample::simulated(), include_str!("common/look.js"), directory.path(), "page");
    let messages = messages(directory.path(), &[(page, 1280)])?;
    let observed: serde_json::Value = serde_json::from_str(&messages[0]).unwrap();
    assert_eq!(observed["errors"], "");
    Some(observed)
});

/// The cells of the table row that begins with `name`, without the narrow spaces before units.
fn row(table: &serde_json::Value, name: &str) -> Vec<String> {
    let cells = |row: &serde_json::Value| -> Vec<String> {
        row.as_array().unwrap().iter().map(|cell| cell.as_str().unwrap().replace('\u{202f}', " ")).collect()
    };
    table.as_array().unwrap().iter().map(cells).find(|row| row[0].starts_with(name)).expect("such a row")
}

#[test]
fn the_tables_of_a_simulation_have_its_results() {
    let Some(look) = &*LOOK else { return };
    let sim = sample::simulated().sim.unwrap();
    let sections: Vec<_> = look["sections"].as_array().unwrap().iter().map(text).collect();
    let first = ["Simulation: two kinds of flows", "Links", "Groups of flows", "The simulation over time", "54 flows"];
    assert_eq!(sections[..5], first);
    assert!(sections.contains(&"Depth of the queue of bottleneck over time".to_owned()));
    let head: Vec<_> = look["head"].as_array().unwrap().iter().map(text).collect();
    assert_eq!(head[..3], ["20 s", "4 sdoes not count below", "7"]);
    assert_eq!(text(&look["scenario"]), sim.scenario);
    let link = &sim.links[0];
    let dropped: u64 = link.drops.values().sum();
    let bottleneck = row(&look["links"], "bottleneck");
    assert_eq!(bottleneck[1], "20 Mb/s");
    assert_eq!(bottleneck[6], format!("{:.1} ms", link.sojourn.max_ns as f64 / 1e6));
    assert!(bottleneck[8].replace(',', "").starts_with(&dropped.to_string()), "{bottleneck:?}");
    for (reason, packets) in &link.drops {
        assert!(bottleneck[8].replace(',', "").contains(&format!("{reason}: {packets} (")), "{bottleneck:?}");
    }
    let (pages, call) = (row(&look["groups"], "pages"), row(&look["groups"], "call"));
    let group = &sim.groups[1];
    assert_eq!([&pages[1], &pages[9]], [&group.flows.to_string(), &group.finished.to_string()]);
    assert_eq!(pages[5], format!("{:.3}", group.jain));
    assert_eq!(pages[11], format!("{:.2} s", group.completion.unwrap().p50_ns as f64 / 1e9));
    assert_eq!([&call[2], &call[6], &call[11]], ["80 kb/s", "–", "–"]);
}

#[test]
fn flows_of_a_simulation_are_sorted() {
    let Some(look) = &*LOOK else { return };
    let sim = sample::simulated().sim.unwrap();
    assert_eq!(look["shown"], serde_json::json!([20, "Show all 54 flows", 54]));
    let fastest = sim.flows.iter().max_by(|a, b| a.goodput_bps.total_cmp(&b.goodput_bps)).unwrap();
    assert!(text(&look["flows"][0][0]).contains(&fastest.name), "{}", look["flows"][0]);
    let mut resent: Vec<u64> = sim.flows.iter().map(|flow| flow.retransmissions).collect();
    resent.sort_unstable();
    for (order, shown) in ["descending", "ascending"].into_iter().zip(look["sorted"].as_array().unwrap()) {
        let shown = shown.as_array().unwrap();
        assert_eq!(shown[0], order);
        let mut numbers: Vec<u64> = shown[1..].iter().map(|cell| text(cell).parse().unwrap()).collect();
        if order == "descending" {
            numbers.reverse();
        }
        assert_eq!(numbers, resent, "{order}");
    }
}

#[test]
fn a_simulation_is_drawn_over_time() {
    let Some(look) = &*LOOK else { return };
    let sim = sample::simulated().sim.unwrap();
    let [first, chosen] = [0, 1].map(|at| strings(&look["panels"][at]));
    let deepest = sim.samples.iter().map(|sample| sample.links[0].backlog_bytes).max().unwrap();
    let longest = deepest as f64 * 8e3 / sim.links[0].rate_bps as f64;
    assert!(first[0].starts_with("Queue delay of bottleneckat most "), "{first:?}");
    let shown: f64 = first[0].split(' ').rev().nth(1).unwrap().parse().unwrap();
    assert!((shown - longest).abs() < 0.06, "{shown} for {longest}");
    assert!(first[2].contains("drops") && first[2].contains("marks") && first[4].starts_with("Goodput of groups"));
    // The way back is another link: its queue is empty, without drops and marks.
    assert_eq!(chosen[..2], ["Queue delay of way backat most 0 s", "Throughput, as a share of the ratemean 6 %"]);
    assert!(chosen[2].starts_with("Smoothed round-trip time") && chosen[3].starts_with("Goodputat most"), "{chosen:?}");
    let panels = strings(&look["cursor"][0]);
    assert!(panels[0].ends_with(" at 10.0 s"), "{panels:?}");
    let lines = strings(&look["cursor"][1]);
    assert!(lines.len() == 5 && lines.iter().all(|line| *line == lines[0] && !line.is_empty()), "{lines:?}");
    assert!(strings(&look["cursor"][2]).iter().filter(|value| !value.is_empty()).count() >= 12);
    let captions = strings(&look["captions"]);
    let spans = ["The whole", "5.0 s to 15.0 s", "7.50 s to 12.50 s", "8.75 s to 13.75 s", "The whole"];
    for (caption, span) in captions.iter().zip(spans) {
        assert!(caption.starts_with(span), "{caption} for {span}");
    }
    assert_eq!((captions.len(), &look["hidden"]), (5, &serde_json::json!(1)));
}

#[test]
fn a_simulation_can_be_read_in_light_and_dark() {
    let Some(look) = &*LOOK else { return };
    for theme in ["light", "dark"] {
        let canvases = look[theme][0].as_array().unwrap();
        assert_eq!(canvases.len(), 6, "five panels and the completion times");
        assert!(canvases.iter().all(|colours| colours.as_u64().unwrap() > 8), "{theme}: {canvases:?}");
        let contrast = look[theme][1][0].as_f64().unwrap();
        assert!(contrast >= 4.5, "{theme}: {}", look[theme][1]);
    }
}

#[test]
fn nothing_is_wider_than_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    let reports = [("usual", sample::usual()), ("hostile", sample::hostile()), ("simulated", sample::simulated())];
    for (kind, report) in reports {
        let script = format!(
            "setTimeout(() => {{
                const {{ scrollWidth, clientWidth }} = document.documentElement;
                const chart = document.querySelector('canvas') ? 'chart' : 'no chart';
                parent.postMessage(`{kind} at ${{innerWidth}}: ${{chart}}, ${{scrollWidth - clientWidth}} too wide`, '*');
            }}, 500)"
        );
        let page = page(&report, &script, directory.path(), kind);
        pages.extend([360, 700, 1920].map(|width| (page.clone(), width)));
    }
    let Some(messages) = messages(directory.path(), &pages) else { return };
    for message in messages {
        assert!(message.ends_with(": chart, 0 too wide"), "{message}");
    }
}

#[test]
fn every_kind_of_report_is_drawn_without_an_error() {
    let directory = tempfile::tempdir().unwrap();
    // The kind is first, since pages report in any order.
    let script = |kind| {
        format!("setTimeout(() => parent.postMessage(`{kind}\n${{document.documentElement.outerHTML}}`, '*'), 500)")
    };
    let reports = sample::all();
    let pages: Vec<_> =
        reports.iter().map(|(kind, report)| (page(report, &script(kind), directory.path(), kind), 1280)).collect();
    let Some(messages) = messages(directory.path(), &pages) else { return };
    for (kind, report) in reports {
        let dom = messages
            .iter()
            .find_map(|message| message.strip_prefix(kind)?.strip_prefix('\n'))
            .expect("each page names its kind");
        let dom = sound(dom);
        let body = dom.split_once("<main").expect("a body").1;
        let verdict = match kind {
            "calm" => "The queue stayed calm",
            "empty" | "nothing-simulated" => "There was nothing to analyse",
            _ if report.sim.is_some() => "The queue of ",
            _ => "The queue reached",
        };
        assert!(body.contains(verdict), "{kind}");
        assert!(!body.contains("<img"), "{kind}: a name became an element");
        assert!(!body.contains("NaN") && !body.contains(">undefined<"), "{kind}");
        assert_eq!(body.contains("id=\"sketch\""), report.totals.packets > 0, "{kind}");
        assert_eq!(body.contains("id=\"sim\""), report.sim.is_some(), "{kind}");
        if let Some(damage) = &report.input.damage {
            let damaged = format!("The input is damaged: {damage} The readable part was analysed.");
            assert!(words(body).contains(&damaged), "{kind}");
        }
    }
}

/// Each queue of a simulation has its own address.
#[test]
fn a_page_of_several_queues_shows_the_one_that_is_chosen() {
    let directory = tempfile::tempdir().unwrap();
    let page = page(&sample::two_queues(), "", directory.path(), "queues");
    let (first, second) = (("The queue of bottleneck", "bottleneck"), ("way back stayed calm", "way back"));
    // An unknown queue number shows the first queue.
    let addresses =
        [("", first), ("?queue=1", second), ("?queue=99", first), ("?queue=-1", first), ("?queue=NaN", first)];
    for (address, (verdict, current)) in addresses {
        let Some(dom) = opened(directory.path(), &page, address) else { return };
        let dom = sound(&dom);
        let body = dom.split_once("<main").expect("a body").1;
        assert!(body.contains(verdict), "{address}");
        let (_, queues) = body.split_once("class=\"queues\"").expect("a list of queues");
        let queues = queues.split_once("</ul>").unwrap().0;
        assert!(queues.contains(&format!("<li>{current}</li>")), "{queues}");
        assert_eq!(queues.matches("<a href").count(), 1, "{queues}");
        assert!(body.contains("id=\"sim-links\""), "{address}");
    }
}

/// Writes the page of a report, with `script` at its end.
fn page(report: &Report, script: &str, directory: &Path, name: &str) -> PathBuf {
    chromium::page(|file| html::write(report, file), script, directory, name)
}
