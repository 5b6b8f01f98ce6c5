//! The dimensions of the snapshots.

use queuescope_wire::{ByteCount, Nanos};
use std::fmt;

/// The dimensions of the snapshots, with the paper's letters.
///
/// ```
/// use queuescope_sketch::{ConQuestParams, Expiry};
/// use queuescope_wire::ByteCount;
///
/// let params = ConQuestParams::fit("4ms".parse()?, ByteCount(65_536), 4, None, Expiry::Tag)?;
/// println!("{} columns, windows of {}, {}", params.columns, params.window, params.memory());
/// assert!(params.memory() <= ByteCount(65_536));
/// assert!(params.span() >= "4ms".parse()?);
/// let (epsilon, delta) = params.error_bound();
/// assert!(epsilon < 0.01 && delta < 0.3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConQuestParams {
    /// h: the number of snapshots, 2 to 64; at least 3 if the expiry is [`Expiry::Clean`].
    pub snapshots: usize,
    /// R: the rows of each Count-Min Sketch, 1 to 8.
    pub rows: usize,
    /// C: the columns of each Count-Min Sketch, 1 to 2^24.
    pub columns: usize,
    /// T: the length of the time window of a snapshot.
    pub window: Nanos,
    /// How old counts are removed.
    pub expiry: Expiry,
    /// The precision with which the overlap estimator weights a window.
    pub weights: Weights,
    /// Chooses the hash functions.
    pub seed: u64,
}

/// How old counts are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Each cell stores the window in which it was last written, from which the windows of its counters follow. Nothing
    /// is cleaned, and counts are right at any utilisation. It takes one word per cell.
    Tag,
    /// One entry of the oldest snapshot is cleaned with each packet (section 3.4).
    Clean {
        /// What cleans the rest when there are too few packets to clean all entries in time.
        passes: Passes,
    },
}

/// What cleans entries on an underused link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// Nothing. Old counts stay and are mistaken for new ones.
    None,
    /// Extra passes, as of a packet generator. A snapshot is always clean when it is written again.
    Generated,
}

/// The precision with which the overlap estimator weights a window that the interval covers in part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weights {
    /// In steps of 1/65536, which is practically exact.
    #[default]
    Fine,
    /// In eighths, rounded to the nearest. A switch can do this with three shifts and additions.
    Eighths,
}

/// Windows must be shorter than this, 2.3 years, for exact division of times by the window.
pub(crate) const LONGEST_WINDOW: u64 = 1 << 56;

/// The bytes of a counter and of a tag.
const WORD: u64 = 4;

/// The number of rows that [`ConQuestParams::fit`] chooses. Two suffice in the paper's section 5.
const USUAL_ROWS: usize = 2;

/// The largest sketch, in bytes. Larger ones have no use, and their allocation may end the process.
const MOST_MEMORY: u64 = 1 << 30;

impl ConQuestParams {
    /// Chooses dimensions for sojourn times up to `longest` and a sketch of at most `memory`: as many columns as fit,
    /// and windows that cover the longest sojourn time wherever it starts. `rows` is 2 if not given.
    ///
    /// # Errors
    /// Fails if one column does not fit into the memory, or a dimension is out of range.
    pub fn fit(
        longest: Nanos,
        memory: ByteCount,
        snapshots: usize,
        rows: Option<usize>,
        expiry: Expiry,
    ) -> Result<Self, ParamsError> {
        let rows = rows.unwrap_or(USUAL_ROWS);
        let mut params =
            Self { snapshots, rows, columns: 1, window: Nanos(1), expiry, weights: Weights::default(), seed: 0 };
        params.check()?;
        let columns = memory.0 / params.memory().0;
        params.columns = usize::try_from(columns).unwrap_or(usize::MAX).min(1 << 24);
        if params.columns == 0 {
            return Err(ParamsError::Memory { memory: memory.0, least: params.memory_of_a_column() });
        }
        params.window = Nanos(longest.0.div_ceil(params.kept() as u64 - 1).max(1));
        params.check()?;
        Ok(params)
    }

    /// The memory of the sketch.
    pub fn memory(&self) -> ByteCount {
        ByteCount(WORD * (self.rows * self.columns * self.stride()) as u64)
    }

    /// The number of windows that can be read, including the current one.
    pub fn kept(&self) -> usize {
        match self.expiry {
            Expiry::Tag => self.snapshots,
            Expiry::Clean { .. } => self.snapshots - 1,
        }
    }

    /// The longest interval before the present that the windows always cover.
    pub fn span(&self) -> Nanos {
        Nanos(self.window.0.saturating_mul(self.kept() as u64 - 1))
    }

    /// The error bound `(epsilon, delta)` of section 3.5, which swaps the letters. With a probability of at most
    /// `delta`, an estimate is too high by more than `epsilon` times the total of the windows; `epsilon = e / C`,
    /// `delta = (h - 2) e^-R`.
    ///
    /// It holds for the h - 2 past windows that the paper reads. The outer and overlap estimators also read the current
    /// window, and tags keep one more window: each adds `e^-R` to `delta`.
    pub fn error_bound(&self) -> (f64, f64) {
        let epsilon = std::f64::consts::E / self.columns as f64;
        (epsilon, (self.snapshots.saturating_sub(2) as f64 * (-(self.rows as f64)).exp()).min(1.0))
    }

    /// The words of a cell: its counters and its tag.
    fn stride(&self) -> usize {
        self.snapshots + usize::from(self.expiry == Expiry::Tag)
    }

    pub(crate) fn check(&self) -> Result<(), ParamsError> {
        let least = if self.expiry == Expiry::Tag { 2 } else { 3 };
        if !(least..=64).contains(&self.snapshots) {
            return Err(ParamsError::Snapshots { snapshots: self.snapshots, least });
        }
        if !(1..=8).contains(&self.rows) {
            return Err(ParamsError::Rows { rows: self.rows });
        }
        if !(1..=1 << 24).contains(&self.columns) {
            return Err(ParamsError::Columns { columns: self.columns });
        }
        if !(1..LONGEST_WINDOW).contains(&self.window.0) {
            return Err(ParamsError::Window { window: self.window });
        }
        if self.memory().0 > MOST_MEMORY {
            return Err(ParamsError::TooLarge { memory: self.memory().0 });
        }
        Ok(())
    }

    fn memory_of_a_column(&self) -> u64 {
        Self { columns: 1, ..self.clone() }.memory().0
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tag => "tag",
            Self::Clean { passes: Passes::Generated } => "clean",
            Self::Clean { passes: Passes::None } => "clean-plain",
        })
    }
}

/// Invalid dimensions of a sketch.
///
/// ```
/// use queuescope_sketch::{ConQuest, ConQuestParams, Expiry, ParamsError};
///
/// let params = ConQuestParams { rows: 9, ..ConQuestParams::fit("4ms".parse()?, "64KiB".parse()?, 4, None, Expiry::Tag)? };
/// let error = ConQuest::new(params).unwrap_err();
/// println!("{error}");
/// assert_eq!(error, ParamsError::Rows { rows: 9 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// Too few or too many snapshots.
    #[error("a sketch cannot have {snapshots} snapshots: use {least} to 64")]
    Snapshots {
        /// The number that was given.
        snapshots: usize,
        /// The lowest number for this expiry.
        least: usize,
    },
    /// Too few or too many rows.
    #[error("a sketch cannot have {rows} rows: use 1 to 8")]
    Rows {
        /// The number that was given.
        rows: usize,
    },
    /// Too few or too many columns.
    #[error("a sketch cannot have {columns} columns: use 1 to 16777216")]
    Columns {
        /// The number that was given.
        columns: usize,
    },
    /// The window is 0 or too long.
    #[error("a sketch cannot have a time window of {window}: use 1ns to two years")]
    Window {
        /// The window that was given.
        window: Nanos,
    },
    /// Too much memory.
    #[error(
        "a sketch of these dimensions would need {memory} bytes: use fewer snapshots, rows or columns (1 GiB is the most)"
    )]
    TooLarge {
        /// The memory that the sketch would need, in bytes.
        memory: u64,
    },
    /// Too little memory.
    #[error("{memory} bytes do not hold a sketch: one column of these snapshots and rows needs {least}")]
    Memory {
        /// The memory that was given, in bytes.
        memory: u64,
        /// The memory that one column needs, in bytes.
        least: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dimensions_fit_the_papers_memory() {
        let longest = Nanos(6_400_000);
        let params = ConQuestParams::fit(longest, ByteCount(65_536), 4, None, Expiry::Tag).unwrap();
        assert_eq!((params.rows, params.columns, params.memory().0), (2, 1_638, 65_520));
        assert_eq!(params.window, Nanos(2_133_334));
        let clean = Expiry::Clean { passes: Passes::Generated };
        let params = ConQuestParams::fit(longest, ByteCount(65_536), 4, None, clean).unwrap();
        assert_eq!((params.columns, params.memory().0, params.window), (2_048, 65_536, Nanos(3_200_000)));
    }

    /// The paper's figures at the end of section 3.5.
    #[test]
    fn the_error_bound_is_the_papers() {
        let params =
            ConQuestParams::fit(Nanos(1), ByteCount(65_536), 4, Some(2), Expiry::Clean { passes: Passes::None });
        let (epsilon, delta) = params.unwrap().error_bound();
        assert!((epsilon - 0.0013).abs() < 0.00005 && (delta - 0.27).abs() < 0.005, "{epsilon} {delta}");
    }

    #[test]
    fn errors_state_the_valid_dimensions() {
        let good = ConQuestParams::fit(Nanos(100), ByteCount(1_000), 4, None, Expiry::Tag).unwrap();
        let message = |params: ConQuestParams| params.check().unwrap_err().to_string();
        assert_eq!(
            message(ConQuestParams { snapshots: 1, ..good.clone() }),
            "a sketch cannot have 1 snapshots: use 2 to 64"
        );
        assert_eq!(message(ConQuestParams { rows: 9, ..good.clone() }), "a sketch cannot have 9 rows: use 1 to 8");
        assert_eq!(
            message(ConQuestParams { columns: 0, ..good.clone() }),
            "a sketch cannot have 0 columns: use 1 to 16777216"
        );
        let message = message(ConQuestParams { window: Nanos(0), ..good });
        assert_eq!(message, "a sketch cannot have a time window of 0 s: use 1ns to two years");
        let message = ConQuestParams::fit(Nanos(1), ByteCount(39), 4, None, Expiry::Tag).unwrap_err().to_string();
        assert_eq!(message, "39 bytes do not hold a sketch: one column of these snapshots and rows needs 40");
    }

    proptest! {
        #[test]
        fn fitted_dimensions_fit(
            longest in any::<u64>(), memory in any::<u64>(), snapshots in 0..70usize, rows in prop::option::of(0..10usize),
            clean in any::<bool>()
        ) {
            let expiry = if clean { Expiry::Clean { passes: Passes::Generated } } else { Expiry::Tag };
            if let Ok(params) = ConQuestParams::fit(Nanos(longest), ByteCount(memory), snapshots, rows, expiry) {
                prop_assert!(params.memory().0 <= memory);
                prop_assert!(params.check().is_ok());
                prop_assert!(params.span().0 >= longest);
            }
        }
    }
}
