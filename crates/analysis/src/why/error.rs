//! Why a question has no answer.

use super::At;
use queuescope_meter::LogError;
use std::fmt;

/// Why a question about what left a queue has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhyError {
    /// Departures were not in order.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Nothing left the queue.
    #[error("{input}: nothing left the queue, so nothing waited; {reason}")]
    NothingLeft {
        /// What was read.
        input: String,
        /// What became of its packets.
        reason: Nothing,
    },
    /// The input has fewer packets.
    #[error("{input}: there is no {unit} {number}; it has {packets}")]
    NoPacket {
        /// What was read.
        input: String,
        /// A packet, or a row of a table.
        unit: &'static str,
        /// The number that the question is about.
        number: u64,
        /// How many there are.
        packets: u64,
    },
    /// The packet does not enter the queue.
    #[error("{unit} {number} is left out by the expression: choose one of which it holds, or give no expression")]
    LeftOut {
        /// A packet, or a row of a table.
        unit: &'static str,
        /// Its number.
        number: u64,
    },
    /// The packet did not come to the queue.
    #[error("{unit} {number} never came to the queue")]
    NeverCame {
        /// A packet, or a row of a table.
        unit: &'static str,
        /// Its number.
        number: u64,
    },
    /// The packet left too long ago.
    #[error("{unit} {number} is no longer remembered")]
    Forgotten {
        /// A packet, or a row of a table.
        unit: &'static str,
        /// Its number.
        number: u64,
    },
    /// Something waits for a stretch of time, not at a moment.
    #[error("{they_wait} for a stretch of time, and {moment} is a moment: give a stretch FROM..TO")]
    Moment {
        /// What waits.
        they_wait: &'static str,
        /// The moment.
        moment: At,
    },
    /// Nothing of what the question is about waited.
    #[error("no packet {packets}: nobody was in its way")]
    NothingWaited {
        /// Which packets, and when.
        packets: String,
    },
    /// Nothing of what the question is about waited, but packets of it were dropped.
    #[error("no packet {packets}, but {drops} were dropped: choose one of these by its number")]
    OnlyDrops {
        /// Which packets, and when.
        packets: String,
        /// How many of these were dropped.
        drops: u64,
    },
    /// No flow has such a name.
    #[error("no flow has a name with '{text}' in it; names are as reports have them")]
    NoFlow {
        /// What was looked for.
        text: String,
    },
    /// Several flows have such names.
    #[error(
        "{flows} flows have '{text}' in their names; name one:\n  {}{}",
        some.join("\n  "),
        if *flows > some.len() { "\n  ..." } else { "" }
    )]
    SeveralFlows {
        /// What was looked for.
        text: String,
        /// How many flows have it in their names.
        flows: usize,
        /// The names of some.
        some: Vec<String>,
    },
}

/// Why nothing left a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Nothing {
    /// The input has no packet.
    Came,
    /// An expression leaves every packet out.
    LeftOut,
    /// Every packet was dropped.
    ButDrops,
}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Came => "it holds no packet",
            Self::LeftOut => "the expression leaves every packet out",
            Self::ButDrops => "every packet was dropped: is the limit too small?",
        })
    }
}
