//! Problems are shown in the text, whatever the text and the position are.

use queuescope_text::{Place, Problem, Source, TextError, quoted};
use std::ops::Range;

fn shown(text: &str, span: Range<usize>) -> String {
    TextError::new("text", text, vec![Problem::new("wrong").at(span, "here")]).render(100, false)
}

#[test]
fn long_lines_are_cut_around_what_is_wrong() {
    let text = format!("{} wrong {}", "é".repeat(900), "x".repeat(5_000));
    let shown = shown(&text, 1801..1806);
    assert!(shown.len() < 1_500 && shown.contains("é wrong x"), "{shown}");
}

#[test]
fn the_end_of_a_long_line_can_be_pointed_at() {
    let text = "x".repeat(5_000) + "end";
    assert!(shown(&text, 5_003..5_003).contains("xend"));
    let text = text + "\nnext";
    assert!(shown(&text, 5_004..5_008).contains("next"));
}

#[test]
fn control_characters_are_not_shown() {
    let shown = shown("a \u{1b}[2J \u{9b} b", 0..1) + &quoted("\u{1b}[2J");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
}

#[test]
fn any_place_can_be_pointed_at() {
    for span in [0..0, 0..99, Range { start: 7, end: 3 }, 99..99, 1..2] {
        assert!(shown("é = \n1", span).contains("wrong"));
    }
    assert!(shown("", 0..0).contains("wrong"));
}

#[test]
fn at_most_a_screen_of_problems_is_shown() {
    let error = TextError::new("text", "", vec![Problem::new("wrong"); 50]);
    assert_eq!((error.count(), error.messages().count()), (50, 20));
    assert!(error.to_string().ends_with("and 30 more"));
}

#[test]
fn the_first_place_decides_which_source_is_shown() {
    let source = |name: &str, text: &str| Source { name: name.to_owned(), text: text.to_owned() };
    let place = |source| Place { source, span: 0..1 };
    let problem = Problem::new("wrong").at(place(0), "in the file").first_at(place(1), "in the option");
    let error = TextError::of_sources(vec![source("file", "abc"), source("--set", "def")], vec![problem], 0);
    let shown = error.render(100, false);
    assert!(shown.contains("--set") && shown.contains("def") && shown.contains("in the option"), "{shown}");
    assert!(!shown.contains("abc") && !shown.contains("in the file"), "{shown}");
    let nowhere = TextError::of_sources(Vec::new(), vec![Problem::new("wrong").at(place(3), "here").help("so")], 0);
    assert!(nowhere.to_string().contains("so"));
}
