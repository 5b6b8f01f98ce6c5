//! What is read, and how it becomes departures.

use queuescope_queue::Limit;
use queuescope_scenario::Overhead;
use queuescope_sim::{Aqm, Speedup};
#[cfg(feature = "table")]
use queuescope_table::TableOptions;
use queuescope_wire::{Granularity, KeyMask, Nanos, Rate};
use std::path::PathBuf;

/// What is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Input {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// How it becomes departures.
    pub how: How,
    /// An expression: only packets of which it holds enter the queue.
    pub only: Option<String>,
}

/// How an input becomes departures.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum How {
    /// It is a capture, whose packets pass a queue that a link of this rate drains.
    Replayed(Rate),
    /// It is a table of departures.
    #[cfg(feature = "table")]
    Table(TableOptions),
}

impl Input {
    /// A capture, whose packets pass a queue that a link of this rate drains.
    pub fn capture(file: impl Into<PathBuf>, rate: Rate) -> Self {
        Self { file: file.into(), how: How::Replayed(rate), only: None }
    }

    /// A table of departures.
    #[cfg(feature = "table")]
    pub fn table(file: impl Into<PathBuf>, options: TableOptions) -> Self {
        Self { file: file.into(), how: How::Table(options), only: None }
    }

    /// The same, of which only packets enter the queue for which an expression holds.
    #[must_use]
    pub fn only(self, expression: Option<String>) -> Self {
        Self { only: expression, ..self }
    }
}

/// The queue that the packets of a capture pass, and how they come to it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Queue {
    /// What manages it; a tail-drop queue if there is none. The captured senders do not react to what it drops and marks.
    pub aqm: Option<Aqm>,
    /// What it holds at most, without the packet being sent; the default is a second.
    pub limit: Limit,
    /// How many times faster than captured packets come; the default is 1.
    pub speedup: Speedup,
    /// What the link sends with each packet beyond what the queue holds of it; the default is nothing.
    pub overhead: Overhead,
    /// The largest packet of the network in bytes: what is larger is a super-packet of segmentation offload. The default is 1500.
    pub mtu: u32,
    /// Whether super-packets are split into the packets that the wire carries.
    pub split_gso: bool,
    /// Whether a packet in a tunnel is of the flow inside.
    pub inner: bool,
}

impl Queue {
    /// What manages it, if it is more than a tail-drop queue.
    pub fn managed(&self) -> Option<&Aqm> {
        self.aqm.as_ref().filter(|aqm| !aqm.is_tail_drop())
    }

    /// Whether packets leave in the order in which they came, all of them.
    pub fn is_fifo(&self) -> bool {
        self.managed().is_none_or(Aqm::is_fifo)
    }

    /// What of packets' keys is kept where these are the flows: all where the queue is managed, which looks at more.
    pub fn mask(&self, granularities: &[Granularity]) -> KeyMask {
        if self.managed().is_some() { KeyMask::WHOLE } else { KeyMask::covering(granularities) }
    }
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            aqm: None,
            limit: Limit::Time(Nanos(1_000_000_000)),
            speedup: Speedup::NONE,
            overhead: Overhead::None,
            mtu: 1500,
            split_gso: false,
            inner: false,
        }
    }
}
