//! The page holds the whole report, loads nothing, and no name in the data can end its block.

use crate::sample;

use queuescope_report::html;
use queuescope_report::model::{Report, Sim, SimSample};
use serde_json::Value;

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    html::write(report, &mut page).unwrap();
    String::from_utf8(page).unwrap()
}

/// The text between the tags of the block of data.
fn data(page: &str) -> &str {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"report-data\">").unwrap();
    rest.split_once("</script>").unwrap().0
}

/// Whether two values are equal, fractions to the digits that the page keeps.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (Value::Number(a), Value::Number(b)) if !(a.is_u64() && b.is_u64()) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= a.abs() * 1e-5
        }
        (a, b) => a == b,
    }
}

#[test]
fn the_data_comes_back_whole() {
    for (kind, report) in sample::all() {
        let page = page(&report);
        let back: Value = serde_json::from_str(data(&page)).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(same(&serde_json::to_value(&report).unwrap(), &back), "{kind}");
        let _: Report = serde_json::from_str(data(&page)).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let report = sample::usual();
    let page = page(&report);
    let lower = page.to_ascii_lowercase();
    for load in
        ["@import", "url(", "fetch(", "xmlhttprequest", "import(", "<iframe", "<object", "sendbeacon", "websocket"]
    {
        assert!(!lower.contains(load), "the page holds '{load}'");
    }
    for attribute in ["src=", "href="] {
        for (at, _) in lower.match_indices(attribute) {
            let target = &lower[at + attribute.len()..].trim_start_matches(['"', '\'']);
            assert!(target.starts_with(['#']) || target.starts_with("data:,"), "{attribute}{target:.60}");
        }
    }
    assert!(page.contains("default-src 'none'"));
    let policy_first = page.find("Content-Security-Policy").unwrap();
    assert!(policy_first < page.find("<style").unwrap() && policy_first < page.find("<script").unwrap());
}

#[test]
fn a_hostile_name_stays_a_name() {
    let tame = Report { sim: sample::simulated().sim, ..sample::usual() };
    let (tame, hostile) = (page(&tame), page(&sample::hostile()));
    for tag in ["<script", "</script", "<img", "<!--", "<style", "<link"] {
        assert_eq!(hostile.matches(tag).count(), tame.matches(tag).count(), "{tag}");
    }
    assert!(data(&hostile).contains("\\u003c/script\\u003e"));
    assert!(!data(&hostile).contains(['<', '>', '&', '\u{2028}']));
}

#[test]
fn the_page_is_small_and_the_same_every_time() {
    let around = |report: &Report| {
        let page = page(report);
        page.len() - data(&page).len()
    };
    for (report, most) in [(sample::usual(), 150_000), (sample::simulated(), 190_000)] {
        assert!(around(&report) < most, "{} of {most} bytes", around(&report));
    }
    let many = sample::many();
    let plain = serde_json::to_string(&many).unwrap().len();
    let embedded = data(&page(&many)).len();
    assert!(embedded * 10 < plain * 7, "fractions are cut: {embedded} of {plain} bytes");
    assert_eq!(page(&many), page(&sample::many()));
}

#[test]
fn a_page_has_no_more_samples_than_it_can_show() {
    let mut report = sample::simulated();
    let sim = report.sim.as_mut().unwrap();
    let first = sim.samples.clone();
    for round in 1..60 {
        let later = |sample: &SimSample| SimSample { at_ns: sample.at_ns + round * sim.duration_ns, ..sample.clone() };
        sim.samples.extend(first.iter().map(later));
    }
    let embedded: Report = serde_json::from_str(data(&page(&report))).unwrap();
    let (sim, shown) = (report.sim.unwrap(), embedded.sim.unwrap());
    let states = |sim: &Sim| sim.samples.iter().map(|sample| sample.links.len() + sample.flows.len()).sum::<usize>();
    assert!(states(&sim) > 300_000 && (30_000..=60_000).contains(&states(&shown)), "{}", states(&shown));
    assert_eq!(shown.samples.last().unwrap().at_ns, sim.samples.last().unwrap().at_ns);
    // The bytes sent since the warm-up have the same sum.
    let sent = |sim: &Sim| -> u64 {
        let counted = sim.samples.iter().filter(|sample| sample.at_ns > sim.warmup_ns);
        counted.map(|sample| sample.links[0].sent_bytes).sum()
    };
    assert_eq!(sent(&shown), sent(&sim));
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full(usize);
    impl std::io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    // The kind must survive the serializer: it distinguishes a closed pipe from a full disk.
    for room in [0, 9_000, 60_000, 150_000] {
        let error = html::write(&sample::usual(), &mut Full(room)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{room}");
    }
}
