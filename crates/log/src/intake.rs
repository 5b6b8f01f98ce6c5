//! Filters and samples records before they are appended to a log.

use crate::expr::{Dnf, Filter, NoAggregates};
use crate::log::Log;
use std::ops::AddAssign;

/// A writer's input to a log, with a capture filter and a sampling ratio (paper, table 1). Each writer has its own.
///
/// ```
/// use queuescope_log::{Intake, Log, Memory, Options, Schema, departure};
/// use queuescope_wire::{Departure, FlowKey, Nanos};
///
/// let log = Log::new(Schema::departure().clone(), Options { records: 10_000, memory: Memory::Lazy })?;
/// let scope = log.scope();
/// let late = scope.parse("delay > 1ms")?.dnf(&scope)?;
/// let mut intake = Intake::new(&log).filtered(&late).sampled(0.5, 1)?;
/// let mut record = [0; departure::SIZE];
/// for n in 0..2_000 {
///     let left = Departure { dequeued: Nanos(n * 1_001), ..Departure::default() };
///     departure::fill(&mut record, &left, &FlowKey::default());
///     intake.offer(&record);
/// }
/// let counts = intake.counts();
/// println!("{counts:?}");
/// assert_eq!((counts.filtered, counts.appended + counts.unsampled), (1_000, 1_000));
/// assert!((400..600).contains(&counts.appended));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Intake<'a> {
    log: &'a Log,
    filter: Option<Filter>,
    sampling: Option<Sampling>,
    kept: Vec<u8>,
    counts: Counts,
}

/// Samples a share of records at random; the same records for the same seed.
///
/// ```
/// use queuescope_log::Sampling;
///
/// let mut sampling = Sampling::new(0.1, 1)?;
/// let kept = (0..10_000).filter(|_| sampling.keeps()).count();
/// println!("{kept} of 10 000");
/// assert!((900..1_100).contains(&kept));
/// assert!(Sampling::new(0.0, 1).is_err());
/// # Ok::<(), queuescope_log::RatioError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampling {
    /// Records are kept if their random number is below this; `None`: all are kept.
    below: Option<u64>,
    random: u64,
}

/// What happened to the records that were offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Appended.
    pub appended: u64,
    /// Left out by the capture filter.
    pub filtered: u64,
    /// Left out by sampling.
    pub unsampled: u64,
    /// Refused because the log is full.
    pub refused: u64,
}

/// The sampling ratio is not valid.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{0} is not a share of records to keep: give a number above 0 and up to 1")]
pub struct RatioError(pub f64);

impl<'a> Intake<'a> {
    /// Appends everything.
    pub fn new(log: &'a Log) -> Self {
        Self { log, filter: None, sampling: None, kept: Vec::new(), counts: Counts::default() }
    }

    /// Appends only records that match an expression.
    ///
    /// # Panics
    /// Panics if it names an aggregate: aggregates know only records that were appended.
    #[must_use]
    pub fn filtered(self, expression: &Dnf) -> Self {
        assert!(expression.aggregates().is_empty(), "a capture filter is about the record alone");
        Self { filter: Some(Filter::new(expression, self.log.schema())), ..self }
    }

    /// Appends a share of the records that pass the filter, chosen at random; the same records for the same seed.
    ///
    /// # Errors
    /// Fails if `ratio` is not above 0 and at most 1.
    pub fn sampled(self, ratio: f64, seed: u64) -> Result<Self, RatioError> {
        Ok(Self { sampling: Some(Sampling::new(ratio, seed)?), ..self })
    }

    /// Offers consecutive records; those that are kept are appended as one batch.
    ///
    /// # Panics
    /// Panics if `records` is not a whole number of records.
    pub fn offer(&mut self, records: &[u8]) -> Counts {
        let size = self.log.schema().record_size();
        let mut counts = Counts::default();
        let appended = if self.filter.is_none() && self.sampling.is_none() {
            self.log.append(records)
        } else {
            assert!(records.len().is_multiple_of(size), "{} bytes are not a whole number of records", records.len());
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

    /// The counts of all records that were offered.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

impl Sampling {
    /// Samples this share of records.
    ///
    /// # Errors
    /// Fails if `ratio` is not above 0 and at most 1.
    pub fn new(ratio: f64, seed: u64) -> Result<Self, RatioError> {
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err(RatioError(ratio));
        }
        // 2^64 itself does not fit in the type.
        let below = (ratio < 1.0).then_some((ratio * 2f64.powi(64)) as u64);
        Ok(Self { below, random: seed })
    }

    /// Whether the next record is kept.
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
