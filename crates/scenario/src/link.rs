//! Links: how fast, how far, and which queue stands before them.

use crate::keys::{Keys, Table, fields};
use crate::overhead::Overhead;
use crate::value::Buffer;
use queuescope_queue::{DisciplineParams, Limit, PipelineParams};
use queuescope_wire::{ByteCount, Nanos, Rate};

/// A link with its queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// How fast it sends.
    pub capacity: Capacity,
    /// How long a bit is under way, one way.
    pub delay: Nanos,
    /// How much its queue holds.
    pub limit: Buffer,
    /// What its queue does. Its limit is not set; [`Network`](crate::Network) has it.
    pub discipline: DisciplineParams,
    /// The switch program around its queue, whose limit is not set either.
    pub pipeline: Option<PipelineParams>,
    /// What the link sends with each packet beyond its IP packet. The queue holds IP packets, without it.
    pub overhead: Overhead,
    /// Which share of packets is lost on it by chance, either way.
    pub loss: f64,
    /// How fast it sends the other way; as fast, if not said.
    pub reverse_rate: Option<Rate>,
    /// Whether the other way has the same queue; otherwise one without a limit.
    pub both_ways: bool,
}

/// How fast a link sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Capacity {
    /// So many bits a second.
    Rate(Rate),
    /// As a trace says in mahimahi's format: each line a time in milliseconds at which 1500 bytes may leave; it begins
    /// anew when it ends. The path is relative to the scenario file.
    Trace(String),
}

/// The links of hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct Access {
    /// How fast they send, both ways.
    pub rate: Rate,
    /// How long a bit is under way, one way.
    pub delay: Nanos,
}

fields!(tables: Link, Access; choices:);

/// So many Mb/s; not zero.
pub(crate) fn mbps(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000).expect("defaults are not zero")
}

pub(crate) const fn ms(time: u64) -> Nanos {
    Nanos(time * 1_000_000)
}

/// The longest delay of a link: beyond that of any that was built.
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

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        self.capacity.keys(keys);
        keys.within("delay", &mut self.delay, Nanos::ZERO..=LONGEST_DELAY, "How long a bit is under way, one way.");
        keys.key(
            "limit",
            &mut self.limit,
            "How much the queue holds, whatever the discipline; `bdp` is the rate times the longest round-trip time of the \
             flows without queueing.",
        );
        keys.key("discipline", &mut self.discipline, "What the queue does.");
        keys.key("pipeline", &mut self.pipeline, "The switch program around the queue, which is a tail-drop one then.");
        keys.rivals([("discipline", "tail-drop"), ("pipeline", "none")]);
        keys.ensure(
            "pipeline",
            self.pipeline.is_none() || matches!(self.discipline, DisciplineParams::TailDrop(_)),
            || {
                let message =
                    format!("a switch program stands around a tail-drop queue, not `{}`", self.discipline.name());
                (message, "take `discipline` or `pipeline` away".to_owned())
            },
        );
        keys.key("overhead", &mut self.overhead, Overhead::ABOUT);
        keys.within(
            "loss",
            &mut self.loss,
            0.0..=1.0,
            "Which share of packets is lost on the way by chance, either way, when they have left the queue.",
        );
        keys.key(
            "reverse-rate",
            &mut self.reverse_rate,
            "How fast the link sends the other way; none: as fast as this way.",
        );
        keys.key(
            "both-ways",
            &mut self.both_ways,
            "Whether the other way has the same queue; if not, one without a limit.",
        );
    }
}

impl Capacity {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let (mut rate, mut trace) = match &*self {
            Self::Rate(rate) => (Some(*rate), None),
            Self::Trace(path) => (None, Some(path.clone())),
        };
        let before = (rate, trace.clone());
        keys.maybe("rate", &mut rate, "How fast the link sends.");
        keys.maybe(
            "trace",
            &mut trace,
            "In place of a rate: a file in mahimahi's format, relative to the scenario. Each line is a time in milliseconds \
             at which 1500 bytes may leave; it begins anew when it ends.",
        );
        keys.one_of(&["rate", "trace"], false);
        keys.ensure("trace", trace.as_ref().is_none_or(|path| !path.is_empty()), || {
            ("the path of the trace is empty".to_owned(), "name a file, relative to the scenario".to_owned())
        });
        // What the table says goes before what it inherits.
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

    fn keys<K: Keys>(&mut self, keys: &mut K) {
        keys.key("rate", &mut self.rate, "How fast hosts' links send, both ways.");
        keys.within(
            "delay",
            &mut self.delay,
            Nanos::ZERO..=LONGEST_DELAY,
            "How long a bit is under way on each of them, one way.",
        );
    }
}
