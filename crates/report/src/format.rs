//! Numbers in text for people.

pub use queuescope_wire::grouped as count;
use queuescope_wire::{ByteCount, Nanos, Rate};

/// `12.8 µs`, `1.25 ms`, `3.50 s`.
pub fn duration(nanos: u64) -> String {
    Nanos(nanos).to_string()
}

/// A time, exact enough to be used in another query: `4.691795 s`, with nanoseconds if there are any.
pub fn moment(nanos: u64) -> String {
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    match rest % 1_000 {
        0 => format!("{seconds}.{:06} s", rest / 1_000),
        _ => format!("{seconds}.{rest:09} s"),
    }
}

/// `64 B`, `1.50 kB`, `12.5 MB`.
pub fn bytes(bytes: u64) -> String {
    ByteCount(bytes).to_string()
}

/// `10.0 Gb/s`.
pub fn rate(bits_per_second: f64) -> String {
    Rate::from_bits_per_second(bits_per_second.round() as u64).map_or("0 b/s".to_owned(), |rate| rate.to_string())
}

/// `63.1 %`; a positive share that rounds to zero is `<0.1 %`.
pub fn percent(share: f64) -> String {
    if share > 0.0 && share < 0.0005 { "<0.1 %".to_owned() } else { format!("{:.1} %", share * 100.0) }
}

/// The largest error of a share, as a percentage. It is rounded up, so that the printed bound holds.
pub fn bound(error: f64) -> String {
    format!("{:.1} %", (error * 1000.0).ceil() / 10.0)
}

/// A name as one line of visible text. Names from a table may contain any characters, including those that reverse or
/// break a line.
pub fn plain(name: &str) -> String {
    let hostile = |c: char| {
        c.is_control()
            || matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    name.chars().map(|c| if hostile(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded() {
        assert_eq!([0.0, 0.0001, 0.631, 1.0].map(percent), ["0.0 %", "<0.1 %", "63.1 %", "100.0 %"]);
        assert_eq!([0.0, 0.00001, 0.0014, 0.002].map(bound), ["0.0 %", "0.1 %", "0.2 %", "0.2 %"]);
        assert_eq!(rate(0.2), "0 b/s");
        assert_eq!([0, 4_691_795_000, 1_000_000_001].map(moment), ["0.000000 s", "4.691795 s", "1.000000001 s"]);
    }
}
