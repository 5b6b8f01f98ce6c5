//! The page of a sweep in a real browser: points are at the positions of their values, for all kinds of parameters.
//! Skipped, with a notice, if there is no chromium.

use crate::plotted;
use crate::swept;

use crate::chromium::{self, messages, sound, strings, text, words};
use queuescope_report::html;
use queuescope_report::model::Sweep;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

#[test]
fn a_sweep_is_drawn_whatever_its_names() {
    let directory = tempfile::tempdir().unwrap();
    let script = "setTimeout(() => {
        const { scrollWidth, clientWidth, outerHTML } = document.documentElement;
        document.querySelector('.sorts th:nth-child(5) button').click();
        const order = [...document.querySelectorAll('.sorts')][0].innerText;
        parent.postMessage(`${scrollWidth - clientWidth} too wide\n${order}\n${outerHTML}`, '*');
    }, 500)";
    let mut pages = Vec::new();
    for (kind, sweep) in [("sweep", swept::sweep()), ("hostile", swept::hostile())] {
        let path = sweep_page(&sweep, script, directory.path(), kind);
        pages.extend([360, 1280].map(|width| (path.clone(), width)));
    }
    let Some(messages) = messages(directory.path(), &pages) else { return };
    for dom in messages {
        assert!(dom.starts_with("0 too wide\n"), "{}", dom.lines().next().unwrap_or_default());
        let body = sound(&dom);
        let body = body.split_once("<main").expect("a body").1;
        assert!(!body.contains("<img"), "a name became an element");
        assert!(!body.contains("NaN") && !body.contains(">undefined<"));
        assert!(body.contains("Flow completion times") && body.contains("1 of 3 seeds"));
        // The longest delay is first once its column was pressed.
        let place = |delay| dom.find(delay).unwrap_or_else(|| panic!("no {delay}"));
        assert!(place("49.4") < place("12.3\u{202f}ms"));
    }
}

/// What the plots of a sweep show, and how they react; none without a browser.
static PLOTS: LazyLock<Option<serde_json::Value>> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let page = sweep_page(&plotted::plotted(), include_str!("common/plots.js"), directory.path(), "plots");
    let messages = messages(directory.path(), &[(page, 1280)])?;
    let observed: serde_json::Value = serde_json::from_str(&messages[0]).unwrap();
    assert_eq!(observed["errors"], "");
    Some(observed)
});

/// Points of a line: their positions, across and down, and their descriptions.
fn points(value: &serde_json::Value) -> Vec<(f64, f64, Vec<String>)> {
    let point = |point: &serde_json::Value| {
        let words = point.as_array().unwrap()[2..].iter().map(text).collect();
        (point[0].as_f64().unwrap(), point[1].as_f64().unwrap(), words)
    };
    value.as_array().unwrap().iter().map(point).collect()
}

#[test]
fn plots_of_a_sweep_have_titles_and_captions() {
    let Some(plots) = &*PLOTS else { return };
    let titles = ["A figure against a parameter", "Two figures against each other"];
    assert_eq!(strings(&plots["sections"])[..2], titles);
    // The longest list of numbers is the axis, lists of names are lines, the others are panels.
    let chosen = &plots["first"][0];
    assert_eq!(chosen["against-across"], "parameter-1");
    assert_eq!([&chosen["against-parameter-2"], &chosen["against-parameter-0"]], ["lines", "panels"]);
    assert_eq!([&chosen["scatter-parameter-2"], &chosen["scatter-parameter-0"]], ["lines", "alike"]);
    let names = ["tail-drop", "codel", "{ pie = { ecn = true } }"];
    assert_eq!(strings(&plots["first"][3]), names);
    assert_eq!(strings(&plots["first"][2]), ["link.rate 1mbps ", "link.rate 10000kbps ", "link.rate 0.1gbps "]);
    let captions = strings(&plots["first"][1]);
    let first = "Mean delay against flows.calls.count. Whiskers are 95 % confidence intervals over the seeds. \
                 1 combination is missing. 1 combination has no value.";
    assert_eq!(captions[0], first);
    assert!(captions[1].starts_with("Mean delay against goodput. Whiskers "), "{captions:?}");
    assert!(captions[1].contains("The axis of goodput is logarithmic."), "{captions:?}");
    assert_eq!(strings(&plots["axes"]), ["Mean delay", "flows.calls.count", "Mean delay", "Goodput"]);
    // Figures without any value are not offered.
    assert_eq!(strings(&plots["offered"]), ["Goodput", "Utilisation", "Mean delay", "Drop rate", "Mark rate"]);
    let roles = ["a line for each", "a panel for each", "only tail-drop", "only codel"];
    assert_eq!(strings(&plots["roles"])[..4], roles);
    for (label, caption) in strings(&plots["labels"]).iter().zip(["Mean delay against ", "Mean delay against goodput."])
    {
        assert!(label.starts_with(caption) && label.ends_with(" The table below has all of it."), "{label}");
    }
    let announced = strings(&plots["announced"]);
    assert_eq!(announced[0], "flows.calls.count: a line for each.");
    assert!(
        announced[1].contains("Mean delay, ") && announced[1].contains("link.discipline, tail-drop"),
        "{announced:?}"
    );
}

#[test]
fn points_of_a_sweep_are_at_their_values() {
    let Some(plots) = &*PLOTS else { return };
    // From 1 to 100 Mb/s, in three units: each ten times the one before.
    let log = points(&plots["log"]);
    let rates: Vec<_> = log.iter().map(|(.., words)| words[1].as_str()).collect();
    assert_eq!(rates, ["1mbps", "10000kbps", "0.1gbps"]);
    let [near, far] = [log[1].0 - log[0].0, log[2].0 - log[1].0];
    assert!(near > 100.0 && (near - far).abs() < 1.0, "{near} and {far}");
    // Numbers of flows, which span less, and delays: both on linear axes.
    let linear = points(&plots["linear"][0]);
    let words: Vec<_> = linear.iter().map(|(.., words)| format!("{} {}", words[0], words[2])).collect();
    assert_eq!(words, ["1.00 ms ± 500 µs 10", "2.00 ms ± 1.00 ms 20", "3.00 ms ± 1.50 ms 40", "4.00 ms ± 2.00 ms 50"]);
    let across = (linear[3].0 - linear[0].0) / 40.0;
    let up = (linear[0].1 - linear[3].1) / 3.0;
    assert!(across > 10.0 && up > 5.0);
    for ((x, y, words), (flows, delay)) in linear.iter().zip([(10.0, 1.0), (20.0, 2.0), (40.0, 3.0), (50.0, 4.0)]) {
        assert!((x - linear[0].0 - across * (flows - 10.0)).abs() < 0.5, "{words:?}");
        assert!((linear[0].1 - y - up * (delay - 1.0)).abs() < 0.5, "{words:?}");
    }
    // A missing combination has no point; the other points of its line keep their positions.
    let third = points(&plots["linear"][1]);
    let words: Vec<_> = third.iter().map(|(.., words)| format!("{} {}", words[2], words[3])).collect();
    assert_eq!(words, ["10 { pie = { ecn = true } }", "40 { pie = { ecn = true } }", "50 { pie = { ecn = true } }"]);
    assert!((third[2].0 - third[0].0 - 40.0 * across).abs() < 0.5);
    assert!(strings(&plots["missing"])[0].ends_with("1 combination is missing."), "{}", plots["missing"]);
    let none = (strings(&plots["none"][0]), points(&plots["none"][1]));
    assert!(none.0[0].ends_with("1 combination has no value."), "{none:?}");
    assert_eq!(none.1.len(), 3, "{none:?}");
}

#[test]
fn quantities_of_a_sweep_are_numbers_however_they_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let spelled = plotted::spelled();
    let page = |(kind, sweep, numbers): &(&str, Sweep, Vec<f64>)| {
        let script = format!(
            "setTimeout(() => {{
                const press = (key) =>
                    document.querySelector('#against .sweep-plot').dispatchEvent(new KeyboardEvent('keydown', {{ key }}));
                const places = [];
                press('Home');
                for (let n = 0; n < {}; n += 1) {{
                    places.push(parseFloat(document.querySelector('#against .tip').style.left));
                    press('ArrowRight');
                }}
                parent.postMessage(JSON.stringify(['{kind}', ...places]), '*');
            }}, 500)",
            numbers.len()
        );
        (sweep_page(sweep, &script, directory.path(), kind), 1280)
    };
    let Some(messages) = messages(directory.path(), &spelled.iter().map(page).collect::<Vec<_>>()) else { return };
    for (kind, _, numbers) in &spelled {
        let mut messages =
            messages.iter().map(|message| serde_json::from_str::<Vec<serde_json::Value>>(message).unwrap());
        let places = messages.find(|message| message[0] == *kind).expect("each page names its kind");
        let places: Vec<_> = places[1..].iter().map(|place| place.as_f64().expect("a place")).collect();
        let [first, last] = [0, numbers.len() - 1];
        let scale = (places[last] - places[first]) / (numbers[last] - numbers[first]);
        assert!(places[last] - places[first] > 100.0, "{kind}: {places:?}");
        for (place, number) in places.iter().zip(numbers) {
            let meant = places[first] + scale * (number - numbers[first]);
            assert!((place - meant).abs() < 0.5, "{kind}: {place} for {meant} of {places:?}");
        }
    }
}

#[test]
fn whiskers_are_as_long_as_the_intervals() {
    let Some(plots) = &*PLOTS else { return };
    let whiskers = plots["whiskers"].as_array().unwrap();
    assert_eq!(whiskers.len(), 4);
    for whisker in whiskers {
        assert_eq!(whisker, &serde_json::json!([true, true, false]), "near both ends, and beyond: {whiskers:?}");
    }
}

#[test]
fn lines_and_panels_of_a_sweep_are_chosen() {
    let Some(plots) = &*PLOTS else { return };
    assert_eq!(strings(&plots["hidden"][0]), ["tail-drop"]);
    assert!(points(&plots["hidden"][1]).iter().all(|(.., words)| words[3] == "codel"), "{}", plots["hidden"]);
    // Names are side by side, at equal distances.
    assert_eq!(plots["names"][0]["against-across"], "parameter-2");
    let names = points(&plots["names"][1]);
    assert!((names[2].0 - 2.0 * names[1].0 + names[0].0).abs() < 0.5, "{names:?}");
    let panels = strings(&plots["panels"][0]);
    assert_eq!((panels.len(), &plots["panels"][1]), (12, &serde_json::json!(12)));
    assert_eq!(
        [&panels[0], &panels[11]],
        ["link.rate 1mbps flows.calls.count 10 ", "link.rate 0.1gbps flows.calls.count 50 "]
    );
    assert_eq!(strings(&plots["panels"][2]), Vec::<String>::new());
    let lines = strings(&plots["lines"][0]);
    assert_eq!((lines.len(), lines[4].as_str()), (12, "10000kbps, 10"));
    assert_eq!(strings(&plots["lines"][1]), Vec::<String>::new());
    let zero = strings(&plots["zero"]);
    assert!(zero[0].contains("The axis of drop rate is logarithmic. A hollow point at its end is a 0."), "{zero:?}");
    let close = strings(&plots["close"]);
    assert!(close[0].contains("The axis of utilisation does not begin at 0."), "{close:?}");
}

#[test]
fn a_point_shows_its_combination() {
    let Some(plots) = &*PLOTS else { return };
    let line = points(&plots["scatter"]);
    assert_eq!(line.len(), 11, "one of the twelve has no delay");
    let (.., last) = line.last().unwrap();
    assert_eq!(last[1..], ["90 Mb/s ± 10 kb/s", "0.1gbps", "50", "tail-drop"]);
    let [near, far] = [&plots["pointer"][0], &plots["pointer"][1]];
    assert_eq!(near, plots["scatter"].as_array().unwrap().last().unwrap());
    assert_ne!(far, near);
}

#[test]
fn plots_of_a_sweep_can_be_read_in_light_and_dark() {
    let Some(plots) = &*PLOTS else { return };
    for theme in ["light", "dark"] {
        let canvases = plots[theme].as_array().unwrap();
        assert_eq!(canvases.len(), 2);
        assert!(canvases.iter().all(|colours| colours.as_u64().unwrap() > 20), "{theme}: {canvases:?}");
    }
}

#[test]
fn a_sweep_is_plotted_if_there_is_something_to_compare() {
    let directory = tempfile::tempdir().unwrap();
    let few = plotted::few();
    let mut pages = Vec::new();
    for (kind, sweep, plots) in &few {
        let script = format!(
            "setTimeout(() => {{
                const {{ scrollWidth, clientWidth, outerHTML }} = document.documentElement;
                const plots = document.querySelectorAll('.sweep-plot canvas').length;
                const [few, wide] = [plots === {plots}, scrollWidth - clientWidth];
                parent.postMessage(`{kind}: ${{few}}, ${{wide}} too wide\n${{outerHTML}}`, '*');
            }}, 500)"
        );
        let page = sweep_page(sweep, &script, directory.path(), kind);
        pages.extend([360, 1280].map(|width| (page.clone(), width)));
    }
    let Some(messages) = messages(directory.path(), &pages) else { return };
    for dom in messages {
        let (first, page) = dom.split_once('\n').unwrap();
        assert!(first.ends_with(": true, 0 too wide"), "{first}");
        let body = sound(page);
        let body = body.split_once("<main").and_then(|(_, main)| main.split_once("</main>")).expect("a body").0;
        assert!(!body.contains("NaN") && !body.contains("Infinity") && !body.contains(">undefined<"), "{first}");
        // Ninety lines or panels would be a mess: a list shows one value that has data, until another is chosen.
        let chosen =
            [("many-lines", "only b { codel = { target = \"0ms\""), ("a-part", "only b { codel = { target = \"5ms\"")];
        for (_, only) in chosen.iter().filter(|(kind, _)| first.starts_with(kind)) {
            assert!(words(body).contains(only), "{only} in {first}");
        }
    }
}

/// Writes the page of a sweep, with `script` at its end.
fn sweep_page(sweep: &Sweep, script: &str, directory: &Path, name: &str) -> PathBuf {
    chromium::page(|file| html::write_sweep(sweep, file), script, directory, name)
}
