//! Describes an input, and how it is turned into departures.

use queuescope_queue::Limit;
use queuescope_scenario::Overhead;
use queuescope_sim::{Aqm, Speedup};
#[cfg(feature = "table")]
use queuescope_table::TableOptions;
use queuescope_wire::{Granularity, KeyMask, Nanos, Rate};
use std::path::PathBuf;

/// An input.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Input {
    /// The file; `-` is standard input.
    pub file: PathBuf,
    /// How it is turned into departures.
    pub how: How,
    /// An expression: only packets that match it enter the queue. All do if it is `None`.
    pub only: Option<String>,
}

/// How an input is turned into departures.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[cfg_attr(feature = "table", expect(clippy::large_enum_variant, reason = "a run has one"))]
pub enum How {
    /// The input is a capture. Its packets pass a queue that a link of this rate drains.
    Replayed(Rate),
    /// The input is a table of departures.
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

    /// The same input, of which only packets that match an expression enter the queue.
    #[must_use]
    pub fn only(self, expression: Option<String>) -> Self {
        Self { only: expression, ..self }
    }
}

/// The queue that the packets of a capture pass, and how they arrive at it.
///
/// ```
/// use queuescope_ingest::Queue;
/// use queuescope_queue::Limit;
///
/// let queue = Queue::default().with_aqm("codel,target=10ms".parse()?).with_limit(Limit::Packets(1000));
/// assert_eq!(queue.limit, Limit::Packets(1000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Queue {
    /// The discipline or switch program that manages it; `None` is tail-drop. The captured senders do not react to drops and
    /// marks.
    pub aqm: Option<Aqm>,
    /// The limit of the queue, without the packet being sent. The default is a second.
    pub limit: Limit,
    /// Factor by which packets arrive faster than they were captured. The default is 1.
    pub speedup: Speedup,
    /// What the link sends with each packet beyond its bytes in the queue. The default is nothing.
    pub overhead: Overhead,
    /// The largest packet of the network in bytes; a larger one is a super-packet of segmentation offload. The default is
    /// 1500.
    pub mtu: u32,
    /// Whether super-packets are split into the packets that the wire carried.
    pub split_gso: bool,
    /// Whether the flow of a tunnelled packet is that of the inner packet.
    pub inner: bool,
}

/// Builders.
impl Queue {
    /// Sets the discipline or switch program that manages it.
    #[must_use]
    pub fn with_aqm(self, aqm: Aqm) -> Self {
        Self { aqm: Some(aqm), ..self }
    }

    /// Sets its limit.
    #[must_use]
    pub fn with_limit(self, limit: Limit) -> Self {
        Self { limit, ..self }
    }

    /// Sets the factor by which packets arrive faster than they were captured.
    #[must_use]
    pub fn with_speedup(self, speedup: Speedup) -> Self {
        Self { speedup, ..self }
    }

    /// Sets what the link sends with each packet beyond its bytes in the queue.
    #[must_use]
    pub fn with_overhead(self, overhead: Overhead) -> Self {
        Self { overhead, ..self }
    }

    /// Sets the largest packet of the network, in bytes.
    #[must_use]
    pub fn with_mtu(self, mtu: u32) -> Self {
        Self { mtu, ..self }
    }

    /// Sets whether super-packets are split into the packets that the wire carried.
    #[must_use]
    pub fn with_split_gso(self, split_gso: bool) -> Self {
        Self { split_gso, ..self }
    }

    /// Sets whether the flow of a tunnelled packet is that of the inner packet.
    #[must_use]
    pub fn with_inner(self, inner: bool) -> Self {
        Self { inner, ..self }
    }
}

impl Queue {
    /// The discipline or switch program that manages it, unless that is tail-drop.
    pub fn managed(&self) -> Option<&Aqm> {
        self.aqm.as_ref().filter(|aqm| !aqm.is_tail_drop())
    }

    /// Whether all packets leave in the order in which they came.
    pub fn is_fifo(&self) -> bool {
        self.managed().is_none_or(Aqm::is_fifo)
    }

    /// The part of flow keys to keep for flows at these granularities. It is the whole key if the queue is managed, since
    /// disciplines use more of it.
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
