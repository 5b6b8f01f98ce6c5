//! Links: their rate, delay and queue.

use crate::keys::{KeyVisitor, Table, fields};
use crate::overhead::Overhead;
use crate::value::Buffer;
use queuescope_queue::{DisciplineParams, Limit, PipelineParams};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// A link with its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// How fast the link sends.
    pub capacity: Capacity,
    /// The one-way propagation delay.
    pub delay: Nanos,
    /// The limit of its queue.
    pub limit: Buffer,
    /// The discipline of its queue, without the limit; [`Network`](crate::Network) sets that.
    pub discipline: DisciplineParams,
    /// The switch program around its queue, also without the limit.
    pub pipeline: Option<PipelineParams>,
    /// What the link sends with each packet in addition to the IP packet. The queue does not hold it.
    pub overhead: Overhead,
    /// The share of packets that is lost at random in each direction.
    pub loss: f64,
    /// The rate of the reverse direction. `None`: the same rate.
    pub reverse_rate: Option<Rate>,
    /// Whether the reverse direction has the same queue. Otherwise its queue has no limit.
    pub both_ways: bool,
}

/// How fast a link sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Capacity {
    /// At a constant rate.
    Rate(Rate),
    /// By a trace in mahimahi's format: each line is a time in milliseconds at which 1500 bytes may leave. The trace
    /// repeats. The path is relative to the scenario file.
    Trace(String),
}

/// The links of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// The rate in each direction.
    pub rate: Rate,
    /// The one-way propagation delay.
    pub delay: Nanos,
}

fields!(tables: Link, Access; choices:);

/// A rate in Mb/s; must not be zero.
pub(crate) fn mbps(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000).expect("defaults are not zero")
}

pub(crate) const fn ms(time: u64) -> Nanos {
    Nanos(time * 1_000_000)
}

/// The longest delay of a link, an hour.
const LONGEST_DELAY: Nanos = ms(3_600_000);

/// The largest IP packet.
pub(crate) const LARGEST_PACKET: ByteCount = ByteCount(65_535);

impl Table for Link {
    fn fresh() -> Self {
        Self {
            capacity: Capacity::Rate(mbps(10)),
            delay: ms(10),
            limit: Buffer::Fixed(Limit::Packets(1000)),
            discipline: DisciplineParams::default(),
            pipeline: None,
            overhead: Overhead::None,
            loss: 0.0,
            reverse_rate: None,
            both_ways: false,
        }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        self.capacity.keys(keys);
        keys.within("delay", &mut self.delay, Nanos::ZERO..=LONGEST_DELAY, "The one-way propagation delay.");
        keys.key(
            "limit",
            &mut self.limit,
            "The limit of the queue, for every discipline; `bdp` is the rate times the longest round-trip time of the flows \
             without queueing.",
        );
        keys.key("discipline", &mut self.discipline, "The discipline of the queue.");
        keys.key("pipeline", &mut self.pipeline, "The switch program around the queue; needs a tail-drop queue.");
        keys.rivals([("discipline", "tail-drop"), ("pipeline", "none")]);
        keys.ensure(
            "pipeline",
            self.pipeline.is_none() || matches!(self.discipline, DisciplineParams::TailDrop(_)),
            || {
                let message = format!("a switch program needs a tail-drop queue, not `{}`", self.discipline.name());
                (message, "remove `discipline` or `pipeline`".to_owned())
            },
        );
        keys.key("overhead", &mut self.overhead, Overhead::ABOUT);
        keys.within(
            "loss",
            &mut self.loss,
            0.0..=1.0,
            "The share of packets that is lost at random in each direction, behind the queue.",
        );
        keys.key("reverse-rate", &mut self.reverse_rate, "The rate of the reverse direction; none: the same rate.");
        keys.key(
            "both-ways",
            &mut self.both_ways,
            "Whether the reverse direction has the same queue; if not, its queue has no limit.",
        );
    }
}

impl Capacity {
    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        let (mut rate, mut trace) = match &*self {
            Self::Rate(rate) => (Some(*rate), None),
            Self::Trace(path) => (None, Some(path.clone())),
        };
        let before = (rate, trace.clone());
        keys.maybe("rate", &mut rate, "The rate of the link.");
        keys.maybe(
            "trace",
            &mut trace,
            "A trace instead of a rate: a file in mahimahi's format, relative to the scenario. Each line is a time in \
             milliseconds at which 1500 bytes may leave. The trace repeats.",
        );
        keys.one_of(&["rate", "trace"], false);
        keys.ensure("trace", trace.as_ref().is_none_or(|path| !path.is_empty()), || {
            ("the path of the trace is empty".to_owned(), "name a file, relative to the scenario".to_owned())
        });
        // A key in the table takes precedence over an inherited one.
        *self = match (rate, trace) {
            (Some(rate), trace) if trace == before.1 => Self::Rate(rate),
            (_, Some(trace)) => Self::Trace(trace),
            (Some(rate), None) => Self::Rate(rate),
            (None, None) => return,
        };
    }
}

impl Table for Access {
    fn fresh() -> Self {
        Self { rate: mbps(10_000), delay: Nanos::ZERO }
    }

    fn keys<K: KeyVisitor>(&mut self, keys: &mut K) {
        keys.key("rate", &mut self.rate, "The rate of hosts' links in each direction.");
        keys.within(
            "delay",
            &mut self.delay,
            Nanos::ZERO..=LONGEST_DELAY,
            "The one-way propagation delay of each of them.",
        );
    }
}
