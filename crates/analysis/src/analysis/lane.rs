//! The sketch, and how its estimates compare with exact ones.

use queuescope_meter::{Contribution, Score};
use queuescope_sketch::{ConQuest, ConQuestParams, ParamsError};
use queuescope_wire::Nanos;

/// The sketch, and the scores of its estimators. Nothing else depends on what they compute, so packets are collected, and passed to the
/// sketch in one loop.
#[derive(Debug)]
pub(super) struct SketchLane {
    sketch: ConQuest,
    scores: Vec<Score>,
    waiting: Vec<Passing>,
}

/// A packet that leaves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Passing {
    pub digest: u64,
    /// When it left.
    pub now: Nanos,
    /// The start of its waiting time, and the part of the queue since then that its flow had; these count only if it is `judged`.
    pub from: Nanos,
    pub part: Contribution,
    pub size: u32,
    /// Whether the sketch's estimates are compared with that part.
    pub judged: bool,
}

/// Number of packets that are collected.
const AT_ONCE: usize = 64;

impl SketchLane {
    pub fn new(params: ConQuestParams, scores: Vec<Score>) -> Result<Self, ParamsError> {
        Ok(Self { sketch: ConQuest::new(params)?, scores, waiting: Vec::with_capacity(AT_ONCE) })
    }

    /// A packet leaves.
    #[inline]
    pub fn pass(&mut self, packet: Passing) {
        self.waiting.push(packet);
        if self.waiting.len() == AT_ONCE {
            self.catch_up();
        }
    }

    /// Doubles the window.
    pub fn widen(&mut self) {
        self.catch_up();
        self.sketch.widen();
    }

    /// The current dimensions.
    pub fn params(&self) -> &ConQuestParams {
        self.sketch.params()
    }

    /// Ends the stream.
    pub fn finish(mut self) -> (ConQuest, Vec<Score>) {
        self.catch_up();
        (self.sketch, self.scores)
    }

    #[inline(never)]
    fn catch_up(&mut self) {
        let Self { sketch, scores, waiting } = self;
        for Passing { digest, now, from, part, size, judged } in waiting.drain(..) {
            match scores.as_mut_slice() {
                [score] if judged => {
                    score.judge(part, sketch.observe(digest, size, from, now, score.estimator));
                    continue;
                }
                scores if judged => {
                    for score in scores {
                        score.judge(part, sketch.estimate(digest, from, now, score.estimator));
                    }
                }
                _ => {}
            }
            sketch.record(digest, size, now);
        }
    }
}
