//! Why a question has no answer.

use super::At;
use queuescope_meter::LogError;
use std::fmt;

/// Why a question about the past of a queue has no answer.
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
        /// Why none of its packets left the queue.
        reason: Nothing,
    },
    /// The input has fewer packets.
    #[error("{input}: there is no {unit} {number}; it has {packets}")]
    NoPacket {
        /// What was read.
        input: String,
        /// A packet, or a row of a table.
        unit: &'static str,
        /// The number of the packet or row in the question.
        number: u64,
        /// The number of packets in the input.
        packets: u64,
    },
    /// The packet is excluded by the expression, so it does not enter the queue.
    #[error("the expression leaves {unit} {number} out: choose one that matches it, or give no expression")]
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
    /// The question needs a time range, and has a moment.
    #[error("{they_wait} for a range of time, and {moment} is a moment: give a range FROM..TO")]
    Moment {
        /// What waits.
        they_wait: &'static str,
        /// The moment.
        moment: At,
    },
    /// None of the packets in the question waited.
    #[error("no packet {packets}: none had to wait for another")]
    NothingWaited {
        /// Which packets, and when.
        packets: String,
    },
    /// The expression for victims matches none of the packets in the question.
    #[error("no packet {packets}")]
    NothingMatches {
        /// Which packets, and the expression.
        packets: String,
    },
    /// None of the packets in the question waited, but some were dropped.
    #[error("no packet {packets}, but {drops} were dropped: choose one of these by its number")]
    OnlyDrops {
        /// Which packets, and when.
        packets: String,
        /// How many of these were dropped.
        drops: u64,
    },
    /// No flow has the text in its name.
    #[error("no flow has a name with '{text}' in it; names are written as in reports")]
    NoFlow {
        /// The text of the question.
        text: String,
    },
    /// Several flows have the text in their names.
    #[error(
        "{flows} flows have '{text}' in their names; name one:\n  {}{}",
        some.join("\n  "),
        if *flows > some.len() { "\n  ..." } else { "" }
    )]
    SeveralFlows {
        /// The text of the question.
        text: String,
        /// The number of flows that have it in their names.
        flows: usize,
        /// The names of some.
        some: Vec<String>,
    },
}

/// Why no packet left a queue.
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
            Self::Came => "it has no packets",
            Self::LeftOut => "the expression leaves every packet out",
            Self::ButDrops => "every packet was dropped: is the limit too small?",
        })
    }
}
