//! The page in a real browser: it draws without an error, and the address of a burst brings up its culprits.
//! Skipped, with a notice, where there is no chromium.

#[path = "common/sample.rs"]
#[allow(missing_docs, reason = "shared with the example")]
mod sample;

use queuescope_report::{html, model::Report};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

/// The page as it stands once its scripts have run; none without a browser.
fn dom(report: &Report, fragment: &str) -> Option<String> {
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|browser| {
        Command::new(browser)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    });
    let Some(browser) = browser else {
        eprintln!("skipped: there is no chromium to look at the page with");
        return None;
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("page.html");
    html::write(report, &mut File::create(&path).unwrap()).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1280,2000",
            "--virtual-time-budget=2000",
        ])
        .arg(format!("--user-data-dir={}", directory.path().join("profile").display()))
        .arg("--dump-dom")
        .arg(address(&path, fragment))
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    assert!(dom.contains("data-ready=\"true\""), "the script did not reach its end:\n{}", root(&dom));
    assert!(!dom.contains("data-errors"), "{}", root(&dom));
    Some(dom)
}

fn address(path: &Path, fragment: &str) -> String {
    format!("file://{}{fragment}", path.display())
}

/// The opening tag, where the page notes its state.
fn root(dom: &str) -> &str {
    dom.lines().find(|line| line.contains("<html")).unwrap_or("no page at all")
}

#[test]
fn a_chosen_burst_shows_its_culprits() {
    let report = sample::usual();
    let Some(dom) = dom(&report, "#burst-1") else { return };
    assert!(dom.contains("data-burst=\"1\""));
    let (_, panel) = dom.split_once("id=\"burst-title\"").expect("the panel of the burst");
    let (panel, _) = panel.split_once("id=\"culprits\"").expect("the culprits over all bursts come after it");
    for culprits in &report.bursts[0].culprits {
        assert!(panel.contains(&format!("Culprits by {}", culprits.granularity)));
    }
    assert_eq!(
        panel.matches("<tr role=\"row\">").count(),
        3 + report.bursts[0].culprits.iter().map(|c| c.flows.len()).sum::<usize>()
    );
    assert!(dom.contains("<canvas"), "the chart is drawn");
}

#[test]
fn every_kind_of_report_is_drawn_without_an_error() {
    for (kind, report) in sample::all() {
        let Some(dom) = dom(&report, "") else { return };
        let body = dom.split_once("<main").expect("a body").1;
        let verdict = match kind {
            "calm" => "The queue stayed calm",
            "empty" => "There was nothing to analyse",
            _ => "The queue reached",
        };
        assert!(body.contains(verdict), "{kind}");
        assert!(!body.contains("<img"), "{kind}: a name became an element");
        assert!(!body.contains("NaN") && !body.contains(">undefined<"), "{kind}");
    }
}
