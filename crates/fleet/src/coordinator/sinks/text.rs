//! Texts of alerts for people, and what of them may stand in a line of a log.

use super::delivery::Outgoing;

/// One sentence about an alert: what fired, where, and its numbers.
pub(super) fn summary(outgoing: &Outgoing) -> String {
    let Outgoing { alert, repeats, .. } = outgoing;
    let mut text = format!("{} fired", clean(&alert.trigger));
    if !alert.member.is_empty() {
        text += &format!(" on {}", clean(&alert.member));
    }
    text += &format!(": value {}, packets {}", number(alert.value), alert.packets);
    if *repeats > 0 {
        text += &format!(", repeats left out {repeats}");
    }
    text
}

/// A value as JSON has it, if it is finite: short for very large and small ones, too.
pub(super) fn number(value: f64) -> String {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string(), |number| number.to_string())
}

/// The text with a space for each character that ends a line, controls a terminal or changes the direction of text.
pub(super) fn clean(text: &str) -> String {
    let is_harmful = |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if is_harmful(c) { ' ' } else { c }).collect()
}

/// The beginning of a text, at most `most` bytes; three dots are at its end if it was longer.
pub(super) fn cut(text: &str, most: usize) -> String {
    const DOTS: &str = "...";
    if text.len() <= most {
        return text.to_owned();
    }
    let most_kept = most.saturating_sub(DOTS.len());
    let end = (0..=most_kept).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}{}", &text[..end], &DOTS[..most.min(DOTS.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn characters_that_change_lines_and_terminals_are_spaces() {
        assert_eq!(clean("a\nb\r\0\u{1b}[31m\u{85}\u{2028}\u{202e}é\"]\\"), "a b   [31m   é\"]\\");
    }

    #[test]
    fn numbers_are_short() {
        let texts = [5.0, 0.25, 1e300, f64::NAN, f64::NEG_INFINITY].map(number);
        assert_eq!(texts, ["5.0", "0.25", "1e+300", "NaN", "-inf"]);
    }

    proptest! {
        #[test]
        fn a_cut_text_is_its_beginning(text in any::<String>(), most in 0..40usize) {
            let short = cut(&text, most);
            prop_assert!(short.len() <= most);
            if text.len() <= most {
                prop_assert_eq!(short, text);
            } else if most >= 3 {
                prop_assert!(text.starts_with(short.strip_suffix("...").unwrap()));
            }
        }
    }
}
