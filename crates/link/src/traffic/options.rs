//! Which flows are wanted.

use queuescope_live::traffic::LARGEST;
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::num::NonZeroU64;
use std::str::FromStr;

/// Which flows are wanted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TrafficOptions {
    /// How many bytes flows have: the name of a distribution; sizes, each as likely; or a file of points of one.
    pub sizes: String,
    /// Flows start so often that their bytes are this rate on average.
    pub rate: Option<Rate>,
    /// How often they start on average, unless there is a rate; without both there are only bursts.
    pub every: Option<Nanos>,
    /// Whether they start at equal times, and not at times that know nothing of one another.
    pub periodic: bool,
    /// Flows that come again and again beside them.
    pub bursts: Vec<Burst>,
    /// Congestion controls that flows take in turn; the kernel's choice if there are none.
    pub congestion: Vec<String>,
    /// How long flows start.
    pub duration: Nanos,
    /// So many flows at most, without bursts.
    pub count: Option<NonZeroU64>,
    /// Another seed, other sizes and times.
    pub seed: u64,
}

impl Default for TrafficOptions {
    /// No flows yet; ten seconds of sizes that racks of web servers have.
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

/// A flow that comes again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Burst {
    /// As it was written.
    pub name: String,
    /// How large.
    pub size: ByteCount,
    /// How often.
    pub every: Nanos,
    /// Its congestion control, if it has one of its own.
    pub congestion: Option<String>,
}

impl FromStr for Burst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, rest) = text.split_once('@').ok_or("a burst is a size and how often: 50MB@1s, or 50MB@1s:reno")?;
        let (every, congestion) = rest.split_once(':').map_or((rest, None), |(every, name)| (every, Some(name)));
        let size: ByteCount = size.parse().map_err(|error| format!("{error}"))?;
        let every: Nanos = every.parse().map_err(|error| format!("{error}"))?;
        if size.0 == 0 || every.0 == 0 || congestion == Some("") {
            return Err(
                "a burst has at least a byte, a time from one to the next, and a name behind the colon".to_owned()
            );
        }
        if size.0 > LARGEST {
            return Err(format!("no flow has more than {LARGEST} bytes (48 bits)"));
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
