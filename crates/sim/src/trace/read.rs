//! Traces as text.

use queuescope_wire::{Nanos, Rate};

/// A trace that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trace: {why}")]
pub struct TraceError {
    /// The line, from 1; the last line if something is missing behind it.
    pub line: usize,
    /// What is wrong, and what is expected.
    pub why: String,
}

/// The latest time of a trace: a year. So rounds of any trace can be counted without overflow.
const LATEST: Nanos = Nanos(31_536_000_000_000_000);

/// Times of changes, and the rate from then on in bits per second.
type Changes = Vec<(Nanos, u64)>;

/// Reads the milliseconds of opportunities.
pub(super) fn mahimahi(text: &str) -> Result<Vec<u64>, TraceError> {
    let mut times = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let wrong = |why: String| TraceError { line, why };
        let expected = "is not a time of an opportunity: a whole number of milliseconds from 0 to a year";
        let time = text.trim().parse::<u64>().ok().filter(|ms| *ms <= LATEST.0 / 1_000_000);
        let time = time.ok_or_else(|| wrong(format!("'{text}' {expected}")))?;
        if let Some(last) = times.last().filter(|last| time < **last) {
            return Err(wrong(format!("{time} ms come after {last} ms: times must not decrease")));
        }
        times.push(time);
    }
    match times.last() {
        None => Err(TraceError { line: 1, why: "there is no opportunity to send".to_owned() }),
        Some(0) => {
            let why = "the trace ends at 0 ms, and would start again at once: the last time must be above 0".to_owned();
            Err(TraceError { line: times.len(), why })
        }
        Some(_) => Ok(times),
    }
}

/// Reads changes of the rate in bits per second, and the period after which they repeat.
pub(super) fn steps(text: &str) -> Result<(Changes, Option<Nanos>), TraceError> {
    let (mut changes, mut lines, mut repeat) = (Changes::new(), Vec::new(), None);
    for (line, text) in (1..).zip(text.lines()) {
        let wrong = |why: String| TraceError { line, why };
        let text = text.split('#').next().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        if repeat.is_some() {
            return Err(wrong("nothing can follow the line that repeats".to_owned()));
        }
        let Some((time, rate)) = text.split_once([' ', '\t', ',']) else {
            return Err(wrong(format!("'{text}' is not a time and a rate, such as '1.5s 20mbps'")));
        };
        let time = time.parse::<Nanos>().map_err(|error| wrong(error.to_string()))?;
        match rate.trim() {
            "repeat" => repeat = Some((time, line)),
            rate => {
                changes.push((time, bits(rate).map_err(wrong)?));
                lines.push(line);
            }
        }
    }
    check(changes.iter().copied().zip(lines), repeat)?;
    Ok((changes, repeat.map(|(period, _)| period)))
}

/// A rate in bits per second; an outage is written 0, with or without a unit.
fn bits(text: &str) -> Result<u64, String> {
    let unit = text.trim_start_matches(['0', '.']);
    let none = unit.len() < text.len() && !unit.starts_with(|c: char| c.is_ascii_digit());
    if none && (unit.is_empty() || format!("1{unit}").parse::<Rate>().is_ok()) {
        return Ok(0);
    }
    text.parse::<Rate>().map(Rate::bits_per_second).map_err(|error| error.to_string())
}

/// Checks whether changes are a valid trace. Each comes with the number of its line.
pub(super) fn check(
    changes: impl Iterator<Item = ((Nanos, u64), usize)>,
    repeat: Option<(Nanos, usize)>,
) -> Result<(), TraceError> {
    let (mut last, mut sends) = (None, false);
    let after = |line: usize, time: Nanos, last: Option<(Nanos, u64, usize)>| {
        let why = match last {
            None if time > Nanos::ZERO => format!("the trace starts at {time}: give the rate from 0s on"),
            Some((last, ..)) if time <= last => format!("{time} comes after {last}: times must increase"),
            _ if time > LATEST => format!("{time} is longer than a year"),
            _ => return Ok(()),
        };
        Err(TraceError { line, why })
    };
    for ((time, rate), line) in changes {
        after(line, time, last)?;
        sends |= rate > 0;
        last = Some((time, rate, line));
    }
    let Some((_, rate, line)) = last else {
        return Err(TraceError { line: 1, why: "there is no rate".to_owned() });
    };
    match repeat {
        Some((period, line)) => {
            after(line, period, last)?;
            let why = "the trace never has a rate: nothing could be sent".to_owned();
            if sends { Ok(()) } else { Err(TraceError { line, why }) }
        }
        None if rate == 0 => {
            let why = "the trace ends with a rate of 0, and nothing could be sent any more: end it with another, or with a \
                       time and 'repeat'";
            Err(TraceError { line, why: why.to_owned() })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read() {
        let text = "# a handover\n0s 10mbps\n\n1.5s, 2 Mbit/s # far\r\n1.6s\t0\n1700ms 0mbps\n2s 40mbps\n";
        let s = |ms: u64| Nanos(ms * 1_000_000);
        let changes =
            vec![(s(0), 10_000_000), (s(1_500), 2_000_000), (s(1_600), 0), (s(1_700), 0), (s(2_000), 40_000_000)];
        assert_eq!(steps(text), Ok((changes.clone(), None)));
        assert_eq!(steps(&format!("{text}3s repeat\n# end")), Ok((changes, Some(s(3_000)))));
        assert_eq!(steps("0 1kbps"), Ok((vec![(s(0), 1_000)], None)));
    }

    #[test]
    fn errors_in_a_trace_name_the_line() {
        let wrong = |text: &str| steps(text).unwrap_err().to_string();
        assert!(wrong("0s 1mbps\n1s").starts_with("line 2 of the trace: '1s' is not a time and a rate"));
        assert!(wrong("0s 1mbps\n1 2mbps").starts_with("line 2 of the trace: '1' is not a time: it has no unit"));
        assert!(wrong("0s 1mbps\n1s 2").starts_with("line 2 of the trace: '2' is not a rate"));
        assert!(wrong("0s 1mbps\n1s 00MB/s").contains("the unit is in bytes"));
        assert!(wrong("0s 1mbps\n1s 0x").starts_with("line 2 of the trace: '0x' is not a rate"));
        assert!(wrong("1s 1mbps").starts_with("line 1 of the trace: the trace starts at 1.00 s"));
        assert!(wrong("0s 1mbps\n#\n2s 2mbps\n2s 3mbps").starts_with("line 4 of the trace: 2.00 s comes after 2.00 s"));
        assert!(wrong("0s 1mbps\n2s 0").starts_with("line 2 of the trace: the trace ends with a rate of 0"));
        assert!(wrong("0s 0\n2s repeat").starts_with("line 2 of the trace: the trace never has a rate"));
        assert!(wrong("0s 1mbps\n0s repeat").starts_with("line 2 of the trace: 0 s comes after 0 s"));
        assert!(wrong("0s 1mbps\n2s repeat\n3s 1mbps").starts_with("line 3 of the trace: nothing can follow"));
        assert!(wrong("2s repeat").contains("there is no rate"));
        assert!(wrong("").contains("there is no rate"));
        assert!(wrong("0s 1mbps\n600000min 2mbps").contains("longer than a year"));

        let wrong = |text: &str| mahimahi(text).unwrap_err().to_string();
        assert!(wrong("1\n2\n2a\n").starts_with("line 3 of the trace: '2a' is not a time of an opportunity"));
        assert!(wrong("1\n\n2").starts_with("line 2 of the trace: '' is not"));
        assert!(wrong("1\n3\n2").starts_with("line 3 of the trace: 2 ms come after 3 ms"));
        assert!(wrong("0\n0").starts_with("line 2 of the trace: the trace ends at 0 ms"));
        assert!(wrong("").contains("no opportunity"));
        assert!(wrong("-1").contains("'-1' is not"));
        assert!(wrong("99999999999999999").contains("to a year"));
        assert_eq!(mahimahi("0\r\n0\r\n7\r\n"), Ok(vec![0, 0, 7]));
    }
}
