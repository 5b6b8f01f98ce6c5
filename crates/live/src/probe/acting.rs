//! Acting on flows that contribute, and its outcomes: the ConQuest AQM before any qdisc (`bpf/act.h`).
//!
//! When a packet leaves the queue, the probe decides whether its flow contributes, and with which weight. The flow's next packets
//! are acted on before the queue ("act on future packets", Chen et al., CoNEXT 2019, section 4.2). The simulator's
//! [`ConQuestAqm`](queuescope_queue::ConQuestAqm) with `ActAt::Ingress` does the same with one difference: the probe remembers the
//! flow's weight, so it draws for each packet that arrives, not for the packet that left.

use queuescope_queue::{Curve, Response, Step, Steps, StepsError};
use queuescope_wire::{ByteCount, Nanos, Rate};
use std::array::from_fn;

/// The action on flows that contribute.
#[derive(Debug, Clone, PartialEq)]
pub struct Acting {
    /// What to do with chosen packets. By default they are marked if they are ECN-capable, as in the paper's section 5.2, and
    /// otherwise left alone: a request for marks is not a request for losses.
    pub action: Action,
    /// The weight of a flow. By default its bytes.
    pub weigh: Weigh,
    /// The probability that a packet is chosen, as a function of its flow's weight. By default a threshold.
    pub curve: Curve,
    /// The paper's `w_T`, in the unit of weights. By default 0, so every flow that contributes is acted on. The paper's section 5.2
    /// uses 512 packets, which were 25 % of its queue.
    pub threshold: f64,
    /// How long a flow is acted on after one of its packets contributed. By default 8 ms; the packets
    /// of a flow that fills a queue leave much more often.
    pub hold: Nanos,
    /// Dry run: outcomes are counted, but no packet is changed. This is the default.
    pub dry: bool,
    /// The time of `CLOCK_MONOTONIC` at which the kernel stops by itself; by default never. A caller that sets a near time and renews it
    /// makes sure that the kernel stops when the caller does.
    pub until: Nanos,
}

/// What to do with packets of flows that contribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Mark or drop the chosen packets.
    Respond(Response),
    /// Limit each flow with a token bucket, if its weight gives its packets any probability. Packets above the limit are dropped.
    Limit {
        /// The rate, in bytes on the wire.
        rate: Rate,
        /// The size of the bucket. A packet passes if any tokens are left, even if they are fewer than its bytes. At most four seconds of the
        /// rate.
        burst: ByteCount,
    },
}

/// The weight of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weigh {
    /// The bytes of the flow that left the queue while its last packet waited.
    Bytes,
    /// Those bytes as a share of all bytes that left meanwhile, from 0 to 1.
    Share,
    /// All bytes in the queue, of any flow: every packet has this weight. The paper uses it as a baseline that ignores flows.
    Queue,
}

/// The outcomes of packets before the queue; a super-packet counts as one.
///
/// Each packet in `met` has exactly one of the outcomes from `spared` to `would_limit`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acted {
    /// Packets of flows that are acted on.
    pub met: u64,
    /// Not chosen, or within the limit.
    pub spared: u64,
    /// Marked.
    pub marked: u64,
    /// Would be marked, but for the dry run.
    pub would_mark: u64,
    /// To be marked, but already marked.
    pub marked_before: u64,
    /// To be marked, but not ECN-capable, not IP, or truncated within the header.
    pub unmarkable: u64,
    /// Dropped.
    pub dropped: u64,
    /// Would be dropped, but for the dry run.
    pub would_drop: u64,
    /// Above a limit, and dropped.
    pub limited: u64,
    /// Above a limit, but for the dry run.
    pub would_limit: u64,
    /// The marked packets, counted on the wire.
    pub marked_wire: u64,
    /// Packets of flows whose time of being acted on was over.
    pub expired: u64,
    /// Times that a flow began to be acted on.
    pub victims: u64,
    /// Times that there was no room to remember a flow.
    pub full: u64,
    /// Packets that would be in `met`, but for an exemption of their flow ([`Never`](super::Never)).
    pub exempt: u64,
}

/// A flow that is acted on, or was recently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// The digest of the flow's key.
    pub digest: u64,
    /// The end of acting on it, by `CLOCK_MONOTONIC`.
    pub until: Nanos,
    /// The bytes of the flow that left while its last packet waited.
    pub weight: u64,
    /// The same as a share of all bytes, in 65536ths; hash collisions may make it more than one.
    pub share: u64,
    /// Whether its last packet was let through because the flow is never acted on.
    pub exempt: bool,
}

/// Why an action is impossible in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ActingError {
    /// The function has too many steps.
    #[error("a function of {steps} steps does not fit: the kernel's has {} at most", Acting::STEPS)]
    Steps {
        /// The requested number.
        steps: usize,
    },
    /// The function is invalid.
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
    /// The maximum number of steps in the kernel.
    pub const STEPS: usize = 63;
    /// The size of `struct acting` in words.
    pub(super) const WORDS: usize = 6 + 2 * (Self::STEPS + 1);
    /// The number of steps that approximate a slope. The error is below 0.01 for linear and 0.02 for squared slopes.
    const SLOPE: u16 = 60;

    /// The function as the kernel evaluates it: constant between weights.
    ///
    /// # Errors
    /// Fails if there are too many steps, or weights are invalid.
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

    /// The words of `struct acting`.
    pub(super) fn words(&self) -> Result<[u64; Self::WORDS], ActingError> {
        let steps = self.steps()?;
        let (action, cost, burst) = match self.action {
            Action::Respond(Response::MarkOnly) => (1, 0, 0),
            Action::Respond(Response::MarkOrDrop) => (2, 0, 0),
            Action::Respond(Response::Drop) => (3, 0, 0),
            // At a very low rate, a packet of any size takes hours; the exact time does not matter.
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
        // Weights are whole numbers, so a step at a fraction is reached at the next whole number.
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

/// A probability in units of 2^-32, to be compared with a random number.
fn parts(probability: f64) -> u64 {
    (probability * (1u64 << 32) as f64) as u64
}

impl Acted {
    pub(super) const WORDS: usize = 15;

    /// Sums the counters of all processors.
    pub(super) fn from_processors(processors: &[[u64; Self::WORDS]]) -> Self {
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
    /// The maximum number of flows in the kernel.
    pub(super) const MOST: usize = 4096;
    pub(super) const WORDS: usize = 5;

    pub(super) fn from_words(digest: u64, words: &[u64; Self::WORDS]) -> Self {
        let [until, weight, share, _, exempt] = *words;
        Self { digest, until: Nanos(until), weight, share, exempt: exempt != 0 }
    }
}
