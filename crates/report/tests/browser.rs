//! The page in a real browser: it draws without an error, and the address of a burst brings up its culprits.
//! Skipped, with a notice, where there is no chromium.

#[path = "common/sample.rs"]
#[allow(missing_docs, reason = "shared with the example")]
mod sample;

use queuescope_report::{html, model::Report};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The panels of some bursts of the usual report, after their filter was pressed in the last; none without a browser.
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
    let page = page(&sample::usual(), steps, directory.path(), "page.html");
    let dom = sound(&opened(directory.path(), &page, "")?);
    assert!(dom.contains("<canvas"), "the chart is drawn");
    // They come back as text, with the markup of the page written as entities.
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
    let (_, below) = above.split_once(&group.reading).expect("the group");
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
        assert_eq!(worst.contains("Not kept here"), original == Some(false), "{number}");
        let settings = "--rate 100mbps --limit 640kB --overhead ethernet --split-gso --by 5tuple,dst,src-dst";
        let at = bursts[number - 1].peak_at_ns as f64 / 1e9;
        let command = format!("queuescope why uplink-2026-03-14.pcap.zst {settings} --at {at}s");
        assert!(worst.contains(&command), "{number}: {command} in {worst}");
    }
}

#[test]
fn a_command_to_copy_does_only_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let tell = "parent.postMessage(document.querySelector('.command code').textContent, '*')";
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
        (page(&report, tell, directory.path(), &format!("{}.html", name.len())), 400)
    });
    let Some(commands) = told(directory.path(), &pages) else { return };
    for (_, word) in names {
        let start = format!("queuescope why {word} --rate 1500001bps ");
        assert!(commands.iter().any(|command| command.starts_with(&start)), "{start} in {commands:?}");
    }
}

#[test]
fn nothing_is_wider_than_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    for (kind, report) in [("usual", sample::usual()), ("hostile", sample::hostile())] {
        let tell = format!(
            "setTimeout(() => {{
                const {{ scrollWidth, clientWidth }} = document.documentElement;
                const chart = document.querySelector('canvas') ? 'chart' : 'no chart';
                parent.postMessage(`{kind} at ${{innerWidth}}: ${{chart}}, ${{scrollWidth - clientWidth}} too wide`, '*');
            }}, 500)"
        );
        let page = page(&report, &tell, directory.path(), &format!("{kind}.html"));
        pages.extend([360, 700, 1920].map(|width| (page.clone(), width)));
    }
    let Some(told) = told(directory.path(), &pages) else { return };
    for message in told {
        assert!(message.ends_with(": chart, 0 too wide"), "{message}");
    }
}

#[test]
fn every_kind_of_report_is_drawn_without_an_error() {
    for (kind, report) in sample::all() {
        let directory = tempfile::tempdir().unwrap();
        let page = page(&report, "", directory.path(), "page.html");
        let Some(dom) = opened(directory.path(), &page, "").as_deref().map(sound) else { return };
        let body = dom.split_once("<main").expect("a body").1;
        let verdict = match kind {
            "calm" => "The queue stayed calm",
            "empty" => "There was nothing to analyse",
            _ => "The queue reached",
        };
        assert!(body.contains(verdict), "{kind}");
        assert!(!body.contains("<img"), "{kind}: a name became an element");
        assert!(!body.contains("NaN") && !body.contains(">undefined<"), "{kind}");
        assert_eq!(body.contains("id=\"sketch\""), kind != "empty", "{kind}");
        if let Some(damage) = &report.input.damage {
            let told = format!("The input is damaged: {damage} What could be read was analysed.");
            assert!(words(body).contains(&told), "{kind}");
        }
    }
}

/// Writes the page, with `script` at its end.
fn page(report: &Report, script: &str, directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let mut file = File::create(&path).unwrap();
    html::write(report, &mut file).unwrap();
    writeln!(file, "<script>{script}</script>").unwrap();
    path
}

/// What pages tell the one that they are frames of, at burst 1, each as wide as given.
fn told(directory: &Path, pages: &[(PathBuf, u32)]) -> Option<Vec<String>> {
    let frames: Vec<String> = pages
        .iter()
        .map(|(page, width)| {
            format!("<iframe src='file://{}#burst-1' width={width} height=300></iframe>", page.display())
        })
        .collect();
    let note = "onmessage = ({ data }) => document.body.append(document.createElement('hr'), data)";
    let outer = directory.join("frames.html");
    let style = "iframe { border: 0 }";
    std::fs::write(&outer, format!("<body><script>{note}</script><style>{style}</style>{}", frames.concat())).unwrap();
    let dom = opened(directory, &outer, "")?;
    let told: Vec<String> =
        dom.split("<hr>").skip(1).map(|text| unescaped(text.split("</body>").next().unwrap_or(text))).collect();
    assert_eq!(told.len(), pages.len(), "every page tells something: {told:?}");
    Some(told)
}

/// The browser of this machine, if there is one.
static BROWSER: LazyLock<Option<&str>> = LazyLock::new(|| {
    let works = |browser: &&str| {
        let version = Command::new(browser).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(works);
    if browser.is_none() {
        eprintln!("skipped: there is no chromium to look at the page with");
    }
    browser
});

/// What stands in a page once its scripts have run; none without a browser.
fn opened(directory: &Path, page: &Path, fragment: &str) -> Option<String> {
    let browser = (*BROWSER)?;
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=2000,2000",
            "--virtual-time-budget=2000",
        ])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}{fragment}", page.display()))
        .output()
        .unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

/// A page whose scripts reached their end without an error.
fn sound(dom: &str) -> String {
    assert!(dom.contains("data-ready=\"true\""), "the script did not reach its end:\n{}", root(dom));
    assert!(!dom.contains("data-errors"), "{}", root(dom));
    dom.to_owned()
}

/// The opening tag, where the page notes its state.
fn root(dom: &str) -> &str {
    dom.lines().find(|line| line.contains("<html")).unwrap_or("no page at all")
}

/// The text of a piece of a page.
fn words(html: &str) -> String {
    unescaped(&html.split('<').map(|piece| piece.split_once('>').map_or(piece, |(_, text)| text)).collect::<String>())
}

fn unescaped(text: &str) -> String {
    text.replace("&gt;", ">").replace("&lt;", "<").replace("&nbsp;", "\u{a0}").replace("&amp;", "&")
}
