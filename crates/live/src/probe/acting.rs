//! What is done to flows that contribute, and what came of it: the ConQuest AQM before any qdisc (`bpf/act.h`).
//!
//! As a packet leaves the queue, it says whether its flow contributes, and with which weight; the flow's next packets are
//! met before the queue ("act on future packets", Chen et al., CoNEXT 2019, section 4.2). The simulator's
//! [`ConQuestAqm`](queuescope_queue::ConQuestAqm) with `ActAt::Ingress` is the same, but for what this one remembers: the
//! flow's weight, so that each packet that comes is drawn for, and not the packet that left.

use queuescope_queue::{Curve, Response, Step, Steps, StepsError};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::array::from_fn;

/// Flows that contribute are acted on like this.
#[derive(Debug, Clone, PartialEq)]
pub struct Acting {
    /// What is done to their packets. They are marked where they can be by default, as in the paper's section 5.2, and left
    /// alone where not: who asks for marks does not ask for losses.
    pub action: Action,
    /// What a weight is. Bytes of the flow by default.
    pub weigh: Weigh,
    /// With which probability a packet is chosen, by its flow's weight. By a threshold by default.
    pub curve: Curve,
    /// The paper's `w_T`, in the unit of weights. By default none, so that every flow that contributes is acted on; the
    /// paper's section 5.2 has 512 packets, which were 25 % of its queue.
    pub threshold: f64,
    /// For how long a flow is acted on after a packet of it contributed. By default 8 ms, about two windows of the sketch:
    /// a flow that fills a queue has packets leaving much more often.
    pub hold: Nanos,
    /// Everything is counted, and no packet is changed. This is the default.
    pub dry: bool,
    /// The kernel stops by itself at this time of `CLOCK_MONOTONIC`. By default never. Who gives a time soon, and asks again before it,
    /// has the kernel stop when nobody asks any more.
    pub until: Nanos,
}

/// What is done to packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Chosen ones are marked or dropped.
    Respond(Response),
    /// Each flow passes a token bucket, if its weight chooses any packet of it; what is beyond is dropped.
    Limit {
        /// So fast, counted in bytes on the wire.
        rate: Rate,
        /// So much at once; a packet that finds less left, but some, passes. At most what takes four seconds.
        burst: ByteCount,
    },
}

/// What of the queue is weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weigh {
    /// Bytes of the flow: what of it left the queue while its last packet waited.
    Bytes,
    /// The same as a part of all that left meanwhile, from 0 to 1.
    Share,
    /// All bytes in the queue, whosoever: every packet has this weight. Blind for flows, and what the paper compares with.
    Queue,
}

/// What became of packets before the queue; super-packets count as one.
///
/// Each that is `met` is one of those from `spared` to `would_limit`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acted {
    /// Of flows that are acted on.
    pub met: u64,
    /// Of those: not chosen, or within the limit.
    pub spared: u64,
    /// Marked.
    pub marked: u64,
    /// To be marked, had it not been a dry run.
    pub would_mark: u64,
    /// To be marked, but somebody had done that before.
    pub marked_before: u64,
    /// To be marked, but not capable of ECN, not IP, or cut short within the header.
    pub unmarkable: u64,
    /// Dropped.
    pub dropped: u64,
    /// To be dropped, had it not been a dry run.
    pub would_drop: u64,
    /// Beyond a limit, and dropped.
    pub limited: u64,
    /// Beyond a limit, had it not been a dry run.
    pub would_limit: u64,
    /// Packets on the wire that those marked were made into.
    pub marked_wire: u64,
    /// Of flows that were acted on, but whose time is over.
    pub expired: u64,
    /// Times that a flow came to be acted on.
    pub victims: u64,
    /// Times that there was no room for one.
    pub full: u64,
    /// Of flows that are never acted on ([`Never`](super::Never)), and would have been met.
    pub exempt: u64,
}

/// A flow that is acted on, or was not long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// The digest of its key.
    pub digest: u64,
    /// Until when, by `CLOCK_MONOTONIC`.
    pub until: Nanos,
    /// How many bytes of it left while its last packet waited.
    pub weight: u64,
    /// That as a part of all, in 65536ths; collisions may make it more than one.
    pub share: u64,
    /// Whether its last packet was let through, since it is never acted on.
    pub exempt: bool,
}

/// Why something cannot be done in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ActingError {
    /// Too many steps.
    #[error("a function of {steps} steps does not fit: the kernel's has {} at most", Acting::STEPS)]
    Steps {
        /// As asked.
        steps: usize,
    },
    /// No steps at all can be made of it.
    #[error(transparent)]
    Curve(#[from] StepsError),
}

impl Default for Acting {
    fn default() -> Self {
        Self {
            action: Action::Respond(Response::MarkOnly),
            weigh: Weigh::Bytes,
            curve: Curve::Threshold,
            threshold: 0.0,
            hold: Nanos(8_000_000),
            dry: true,
            until: Nanos::MAX,
        }
    }
}

impl Acting {
    /// Steps of a function that the kernel has room for.
    pub const STEPS: usize = 63;
    /// Words of `struct acting`.
    pub(super) const WORDS: usize = 6 + 2 * (Self::STEPS + 1);
    /// Steps that a slope is cut into: off by less than 0.01 where it is linear, and 0.02 where squared.
    const SLOPE: u16 = 60;

    /// The function as the kernel has it: constant between weights.
    ///
    /// # Errors
    /// If it has too many steps, or weights that are none.
    pub fn steps(&self) -> Result<Steps, ActingError> {
        let sloped = |full: &f64| {
            let weight = |weight| self.curve.probability(weight, self.threshold);
            Steps::approximate(weight, self.threshold, self.threshold + full, Self::SLOPE)
        };
        let steps = match &self.curve {
            Curve::Threshold => Steps::new([Step { from: self.threshold, probability: 1.0 }])?,
            Curve::Linear { full } | Curve::Squared { full } => sloped(full)?,
            Curve::Steps(steps) => steps.clone(),
        };
        let count = steps.steps().len();
        if count > Self::STEPS { Err(ActingError::Steps { steps: count }) } else { Ok(steps) }
    }

    /// As `struct acting` has it.
    pub(super) fn words(&self) -> Result<[u64; Self::WORDS], ActingError> {
        let steps = self.steps()?;
        let (action, cost, burst) = match self.action {
            Action::Respond(Response::MarkOnly) => (1, 0, 0),
            Action::Respond(Response::MarkOrDrop) => (2, 0, 0),
            Action::Respond(Response::Drop) => (3, 0, 0),
            // Of so slow a rate that a packet of any size takes hours, nothing more is known than that.
            Action::Limit { rate, burst } => {
                let cost = (8_000_000_000 << 16) / rate.bits_per_second().max(1_000);
                (4, cost, rate.time_for(burst).0.min(4_000_000_000))
            }
        };
        let (weigh, unit) = match self.weigh {
            Weigh::Bytes => (0, 1.0),
            Weigh::Share => (1, 65_536.0),
            Weigh::Queue => (2, 1.0),
        };
        // A weight is whole: it is at or above a step if it is at or above the next whole number.
        let step = |step: &Step| [(step.from * unit).ceil() as u64, parts(step.probability)];
        let nowhere = [u64::MAX, 0];
        let middle = (steps.steps().len() as u64 + 1).next_power_of_two() / 2;
        let head = [self.hold.0, cost, burst, action | weigh << 32, u64::from(self.dry) | middle << 32, self.until.0];
        Ok(from_fn(|word| match word {
            0..6 => head[word],
            _ => steps.steps().get((word - 6) / 2).map_or(nowhere, step)[word % 2],
        }))
    }
}

/// A probability in parts of 2^32, as what is drawn is held against.
fn parts(probability: f64) -> u64 {
    (probability * (1u64 << 32) as f64) as u64
}

impl Acted {
    pub(super) const WORDS: usize = 15;

    /// The sums of what each processor has counted.
    pub(super) fn of(processors: &[[u64; Self::WORDS]]) -> Self {
        let words: [u64; Self::WORDS] = from_fn(|word| processors.iter().map(|words| words[word]).sum());
        let [met, spared, marked, would_mark, marked_before, unmarkable, dropped, would_drop, rest @ ..] = words;
        let [limited, would_limit, marked_wire, expired, victims, full, exempt] = rest;
        Self {
            met,
            spared,
            marked,
            would_mark,
            marked_before,
            unmarkable,
            dropped,
            would_drop,
            limited,
            would_limit,
            marked_wire,
            expired,
            victims,
            full,
            exempt,
        }
    }
}

impl Victim {
    /// As many as the kernel has room for.
    pub(super) const MOST: usize = 4096;
    pub(super) const WORDS: usize = 5;

    pub(super) fn of(digest: u64, words: &[u64; Self::WORDS]) -> Self {
        let [until, weight, share, _, exempt] = *words;
        Self { digest, until: Nanos(until), weight, share, exempt: exempt != 0 }
    }
}
