//! Dates and times of day: RFC 3339, section 5.6.

use queuescope_text::quoted;
use queuescope_wire::Nanos;

/// The number of bytes of `2021-07-23`.
const DAY: usize = 10;

/// Why a text is not a date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DateError {
    /// It is not written as in RFC 3339, or the day or the time does not exist.
    #[error("'{text}' is not a date: write 2021-07-23, or with a time and its zone 2021-07-23T16:56:49Z")]
    Malformed {
        /// The text, shortened.
        text: String,
    },
    /// It is before 1970 or after 2262.
    #[error("'{text}' is out of range: times are from 1970 to 2262")]
    OutOfRange {
        /// The text, shortened.
        text: String,
    },
}

/// Parses a date with a time and its zone (RFC 3339), or a day, which means its start in UTC. Returns the time since 1970.
///
/// ```
/// use queuescope_log::parse_date;
///
/// assert_eq!(parse_date("2021-07-23T16:56:49.5Z")?.0, 1_627_059_409_500_000_000);
/// assert_eq!(parse_date("2021-07-23T18:56:49.5+02:00"), parse_date("2021-07-23T16:56:49.5Z"));
/// assert_eq!(parse_date("2021-07-23"), parse_date("2021-07-23T00:00:00Z"));
/// # Ok::<(), queuescope_log::DateError>(())
/// ```
///
/// # Errors
/// Fails if the text is not a date, or if it is before 1970 or after 2262.
pub fn parse_date(text: &str) -> Result<Nanos, DateError> {
    let shown = || quoted(text);
    let whole = if text.len() == DAY { format!("{text}T00:00:00Z") } else { text.to_owned() };
    let time = chrono::DateTime::parse_from_rfc3339(&whole).map_err(|_| DateError::Malformed { text: shown() })?;
    let nanos = time.timestamp_nanos_opt().and_then(|nanos| u64::try_from(nanos).ok());
    nanos.map(Nanos).ok_or_else(|| DateError::OutOfRange { text: shown() })
}

/// A time since 1970 as a date with a time in UTC, which [`parse_date`] parses.
///
/// ```
/// use queuescope_log::{date_text, parse_date};
///
/// let text = date_text(parse_date("2021-07-23T18:56:49.5+02:00")?);
/// println!("{text}");
/// assert_eq!(text, "2021-07-23T16:56:49.500000000Z");
/// # Ok::<(), queuescope_log::DateError>(())
/// ```
pub fn date_text(time: Nanos) -> String {
    let second = 1_000_000_000;
    // Every number of seconds in 64 bits of nanoseconds is before the year 2555.
    let date = chrono::DateTime::from_timestamp((time.0 / second) as i64, (time.0 % second) as u32);
    date.unwrap_or_default().to_rfc3339_opts(chrono::SecondsFormat::Nanos, true)
}

/// Whether a text begins as a date does: `2021-07-23`.
pub fn begins_as_date(text: &str) -> bool {
    text.len() >= DAY
        && text.bytes().take(DAY).enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// The length of what stands at the beginning of `text` as a date, valid or not, given the characters of words. It is 0 if the
/// text does not begin as a date.
pub(crate) fn date_length(text: &str, is_word: impl Fn(char) -> bool) -> usize {
    if !begins_as_date(text) {
        return 0;
    }
    let words = |from: usize| {
        let rest = &text[from..];
        let end = rest.char_indices().find(|(at, c)| !is_word(*c) || rest[*at..].starts_with(".."));
        from + end.map_or(rest.len(), |(at, _)| at)
    };
    let end = words(DAY);
    // The zone of a time: +02:00.
    let zone = &text.as_bytes()[end..];
    let is_zone =
        end > DAY && matches!(zone, [b'+' | b'-', a, b, b':', ..] if a.is_ascii_digit() && b.is_ascii_digit());
    if is_zone { words(end + 1) } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_rfc_3339_has_them() {
        // `date -ud TEXT +%s` of GNU coreutils.
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2021-07-23T16:56:49Z", 1_627_059_409),
            ("2021-07-23t16:56:49z", 1_627_059_409),
            ("2021-07-23T16:56:49-05:30", 1_627_079_209),
            ("2021-07-23", 1_626_998_400),
            ("2024-02-29", 1_709_164_800),
        ] {
            assert_eq!(parse_date(text), Ok(Nanos(seconds * 1_000_000_000)), "{text}");
        }
        assert_eq!(parse_date("2021-07-23T16:56:49.000000001Z"), Ok(Nanos(1_627_059_409_000_000_001)));
    }

    #[test]
    fn malformed_dates_are_refused() {
        for text in
            ["", "2021-07-3", "2021-13-01", "2023-02-29", "2021-07-23T16:56:49", "2021-07-23T25:00:00Z", "日本-07-23"]
        {
            assert_eq!(parse_date(text), Err(DateError::Malformed { text: text.to_owned() }), "{text}");
        }
        for text in ["1969-12-31", "2300-01-01"] {
            assert_eq!(parse_date(text), Err(DateError::OutOfRange { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn a_date_ends_before_a_range_and_before_an_operator() {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | ':');
        for (date, rest) in [
            ("2021-07-23", ""),
            ("2021-07-23", " and tcp"),
            ("2021-07-23", "..2021-07-24"),
            ("2021-07-23T16:56:49.5Z", "..2021-07-23T16:56:50Z"),
            ("2021-07-23T16:56:49+02:00", "}"),
            ("2021-07-23T16:56:49Z", "-5"),
            ("", "2021-7-23"),
            ("", "20210723"),
            ("", "é021-07-23"),
        ] {
            assert_eq!(date_length(&format!("{date}{rest}"), is_word), date.len(), "{date}{rest}");
        }
    }
}
