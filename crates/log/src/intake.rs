//! What stands before a log: which records are appended at all.

use crate::expr::{Dnf, Filter, NoAggregates};
use crate::log::Log;
use std::ops::AddAssign;

/// A writer's way into a log, with a capture filter and a sampling ratio (paper, table 1). Each writer has its own.
#[derive(Debug)]
pub struct Intake<'a> {
    log: &'a Log,
    filter: Option<Filter>,
    sampling: Option<Sampling>,
    kept: Vec<u8>,
    counts: Counts,
}

/// Chooses a share of records, each by chance; the same ones for the same seed.
#[derive(Debug, Clone)]
pub struct Sampling {
    /// A random number below this is kept; all, if there is none.
    below: Option<u64>,
    random: u64,
}

/// What became of records that were offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Appended.
    pub appended: u64,
    /// Left out by the capture filter.
    pub filtered: u64,
    /// Left out by sampling.
    pub unsampled: u64,
    /// Without room in the log.
    pub refused: u64,
}

/// Why there is no such sampling.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is no share of records to keep: it is above 0 and at most 1")]
pub struct RatioError(pub f64);

impl<'a> Intake<'a> {
    /// Everything is appended.
    pub fn new(log: &'a Log) -> Self {
        Self { log, filter: None, sampling: None, kept: Vec::new(), counts: Counts::default() }
    }

    /// Only what an expression means is appended.
    ///
    /// # Panics
    /// If it names an aggregate: those know only what was appended.
    #[must_use]
    pub fn filtered(self, expression: &Dnf) -> Self {
        assert!(expression.aggregates().is_empty(), "a capture filter is about the record alone");
        Self { filter: Some(Filter::new(expression, self.log.schema())), ..self }
    }

    /// Of what passes the filter a share is appended, each record by chance; the same ones for the same seed.
    ///
    /// # Errors
    /// If it is no share.
    pub fn sampled(self, ratio: f64, seed: u64) -> Result<Self, RatioError> {
        Ok(Self { sampling: Some(Sampling::new(ratio, seed)?), ..self })
    }

    /// Offers records that lie one behind the other; what is kept of them is appended as one batch.
    ///
    /// # Panics
    /// If `records` is not a whole number of records.
    pub fn offer(&mut self, records: &[u8]) -> Counts {
        let size = self.log.schema().record_size();
        let mut counts = Counts::default();
        let appended = if self.filter.is_none() && self.sampling.is_none() {
            self.log.append(records)
        } else {
            assert!(records.len().is_multiple_of(size), "{} bytes are no whole number of records", records.len());
            self.kept.clear();
            for record in records.chunks_exact(size) {
                if self.filter.as_ref().is_some_and(|filter| !filter.matches(record, &NoAggregates)) {
                    counts.filtered += 1;
                } else if self.sampling.as_mut().is_some_and(|sampling| !sampling.keeps()) {
                    counts.unsampled += 1;
                } else {
                    self.kept.extend_from_slice(record);
                }
            }
            self.log.append(&self.kept)
        };
        counts.appended = appended.positions.end - appended.positions.start;
        counts.refused = appended.refused;
        self.counts += counts;
        counts
    }

    /// What became of all that was offered.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

impl Sampling {
    /// Of a share.
    ///
    /// # Errors
    /// If it is none.
    pub fn new(ratio: f64, seed: u64) -> Result<Self, RatioError> {
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err(RatioError(ratio));
        }
        // 2^64 is one more than there is.
        let below = (ratio < 1.0).then_some((ratio * 2f64.powi(64)) as u64);
        Ok(Self { below, random: seed })
    }

    /// Whether the next record is one of them.
    pub fn keeps(&mut self) -> bool {
        self.below.is_none_or(|below| next(&mut self.random) < below)
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.appended += other.appended;
        self.filtered += other.filtered;
        self.unsampled += other.unsampled;
        self.refused += other.refused;
    }
}

/// The next random number (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
