//! JSON inside HTML: the same values, encoded so that no text in them can end the script block or begin a comment in
//! it.

use serde::Serialize;
use serde_json::ser::Formatter;
use std::io::{self, Write};

/// Digits of a fraction that are kept: far below a pixel, and a third of the size of all seventeen.
const DIGITS: i32 = 6;

/// Writes `value` as JSON for a `<script type="application/json">` block.
pub(super) fn json(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Embedded)).map_err(io::Error::from)
}

/// Compact JSON without `<`, `>`, `&` and the two line separators that older JavaScript treats as line ends.
struct Embedded;

impl Formatter for Embedded {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let value = rounded(value);
        let plain = value == 0.0 || (1e-4..1e15).contains(&value.abs());
        if plain { write!(writer, "{value}") } else { write!(writer, "{value:e}") }
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(['<', '>', '&', '\u{2028}', '\u{2029}']) {
            let (before, from) = rest.split_at(at);
            let mut characters = from.chars();
            writer.write_all(before.as_bytes())?;
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}

/// Rounds `value` to [`DIGITS`] significant digits. It is finite: serde_json writes other values as `null`.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let decimals = DIGITS - 1 - value.abs().log10().floor() as i32;
    if decimals > 300 {
        return 0.0; // no measured value is this small
    }
    if decimals >= 0 {
        let scale = 10f64.powi(decimals);
        (value * scale).round() / scale
    } else {
        let scale = 10f64.powi(-decimals);
        (value / scale).round() * scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn embedded(value: &impl Serialize) -> String {
        let mut out = Vec::new();
        json(value, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn markup_in_text_stays_text() {
        let written = embedded(&"</script><!-- & \u{2028}\u{2029} \"quoted\" é\n");
        assert_eq!(written, r#""\u003c/script\u003e\u003c!-- \u0026 \u2028\u2029 \"quoted\" é\n""#);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(embedded(&[0.0, 1.0, 0.1 + 0.2, 1_234_567.8, 2e18, -1.5, 1e-320]), "[0,1,0.3,1234570,2e18,-1.5,0]");
        assert_eq!(embedded(&[f64::NAN, f64::INFINITY]), "[null,null]");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in ".*") {
            let written = embedded(&text);
            let markup = ['<', '>', '&', '\u{2028}', '\u{2029}'];
            prop_assert!(!written.contains(markup));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }

        #[test]
        fn any_number_comes_back_to_six_digits(value in prop::num::f64::NORMAL) {
            let back: f64 = serde_json::from_str(&embedded(&value)).unwrap();
            prop_assert!((back - value).abs() <= value.abs() * 1e-5 || value.abs() < 1e-290);
        }
    }
}
