//! The options of a traffic generator.

use queuescope_live::traffic::LARGEST;
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::num::NonZeroU64;
use std::str::FromStr;

/// Describes the flows to generate.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrafficOptions {
    /// The sizes of flows: the name of a distribution; a list of sizes, each equally likely; or a file with points of a distribution.
    pub sizes: String,
    /// The average rate of all flows' bytes, which sets how often flows start.
    pub rate: Option<Rate>,
    /// The average time between starts, if there is no rate. Without both there are only bursts.
    pub every: Option<Nanos>,
    /// Whether flows start at equal intervals. Otherwise they start as a Poisson process.
    pub periodic: bool,
    /// Flows that repeat at fixed intervals, besides the others.
    pub bursts: Vec<Burst>,
    /// Congestion controls, which flows take in turn; if empty, the kernel's default.
    pub congestion: Vec<String>,
    /// Flows start for this long.
    pub duration: Nanos,
    /// The largest number of flows, not counting bursts.
    pub count: Option<NonZeroU64>,
    /// The seed of the random sizes and times.
    pub seed: u64,
}

impl Default for TrafficOptions {
    /// No flows yet. The sizes are those of racks of web servers, and the duration is ten seconds.
    fn default() -> Self {
        Self {
            sizes: "web-rack".to_owned(),
            rate: None,
            every: None,
            periodic: false,
            bursts: Vec::new(),
            congestion: Vec::new(),
            duration: Nanos(10_000_000_000),
            count: None,
            seed: 1,
        }
    }
}

/// A flow that repeats at fixed intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Burst {
    /// Its text on the command line.
    pub name: String,
    /// The size of each flow.
    pub size: ByteCount,
    /// The time from one start to the next.
    pub every: Nanos,
    /// Its congestion control, if it has one of its own.
    pub congestion: Option<String>,
}

impl FromStr for Burst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, rest) = text.split_once('@').ok_or("a burst is a size and an interval: 50MB@1s, or 50MB@1s:reno")?;
        let (every, congestion) = rest.split_once(':').map_or((rest, None), |(every, name)| (every, Some(name)));
        let size: ByteCount = size.parse().map_err(|error| format!("{error}"))?;
        let every: Nanos = every.parse().map_err(|error| format!("{error}"))?;
        if size.0 == 0 || every.0 == 0 || congestion == Some("") {
            return Err(
                "a burst needs a size and an interval above zero, and a congestion control if there is a colon"
                    .to_owned(),
            );
        }
        if size.0 > LARGEST {
            return Err(format!("a burst can have at most {LARGEST} bytes (48 bits)"));
        }
        Ok(Self { name: text.to_owned(), size, every, congestion: congestion.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_read() {
        let burst: Burst = "50MB@1s:reno".parse().unwrap();
        assert_eq!(
            (burst.size.0, burst.every.0, burst.congestion.as_deref()),
            (50_000_000, 1_000_000_000, Some("reno"))
        );
        assert_eq!("1kB@10ms".parse::<Burst>().unwrap().congestion, None);
        for text in ["", "50MB", "50MB@", "@1s", "0B@1s", "1kB@0s", "1kB@1s:", "1kb@1s"] {
            assert!(text.parse::<Burst>().is_err(), "{text}");
        }
    }
}
