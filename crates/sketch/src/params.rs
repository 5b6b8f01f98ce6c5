//! The dimensions of the snapshots.

use queuescope_wire::{ByteCount, Nanos};
use std::fmt;

/// The dimensions of the snapshots, with the paper's letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConQuestParams {
    /// h: snapshots, 2 to 64.
    pub snapshots: usize,
    /// R: rows of each Count-Min Sketch, 1 to 8.
    pub rows: usize,
    /// C: columns of each.
    pub columns: usize,
    /// T: length of the time window of a snapshot.
    pub window: Nanos,
    /// How old counts go away.
    pub expiry: Expiry,
    /// How finely the overlap estimator weighs a window.
    pub weights: Weights,
    /// Chooses the hash functions.
    pub seed: u64,
}

/// How old counts go away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Each cell knows the window in which it was last written, and with it the window of each of its counters. Nothing
    /// is cleaned, and it is right at any utilisation. Costs one word a cell.
    Tag,
    /// One entry of the oldest snapshot is cleaned with each packet (section 3.4).
    Clean {
        /// What helps where too few packets come to clean all entries in time.
        passes: Passes,
    },
}

/// What helps cleaning on an under-used link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// Nothing: counts stay that should have gone.
    None,
    /// Extra passes, as of a packet generator: a snapshot is clean whenever it is written again.
    Generated,
}

/// How finely the overlap estimator weighs a window that is touched in part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weights {
    /// In 65536ths: as good as exact.
    #[default]
    Fine,
    /// In eighths, rounded to the nearest, which a switch can do with three shifts and additions.
    Eighths,
}

/// Windows must be shorter, for time to be divided by them exactly: 2.3 years.
pub(crate) const LONGEST_WINDOW: u64 = 1 << 56;

/// Bytes of a counter, and of a tag.
const WORD: u64 = 4;

/// Rows that [`ConQuestParams::fit`] chooses; two suffice in the paper's section 5.
const USUAL_ROWS: usize = 2;

/// Larger sketches have no use, and their allocation may end the process.
const MOST_MEMORY: u64 = 1 << 30;

impl ConQuestParams {
    /// Dimensions for a queue in which packets wait up to `longest` and a sketch of at most `memory`: as many columns as
    /// fit, and windows that cover the longest wait wherever it starts.
    ///
    /// # Errors
    /// If the memory does not hold one column, or no sketch can be as large or cover as long a wait.
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
            return Err(ParamsError::Memory { memory: memory.0, least: params.at_least() });
        }
        params.window = Nanos(longest.0.div_ceil(params.kept() as u64 - 1).max(1));
        params.check()?;
        Ok(params)
    }

    /// What the sketch occupies.
    pub fn memory(&self) -> ByteCount {
        ByteCount(WORD * (self.rows * self.columns * self.stride()) as u64)
    }

    /// Windows that can be read, with the one that is being written.
    pub fn kept(&self) -> usize {
        match self.expiry {
            Expiry::Tag => self.snapshots,
            Expiry::Clean { .. } => self.snapshots - 1,
        }
    }

    /// The longest stretch of time that the windows cover wherever it starts.
    pub fn span(&self) -> Nanos {
        Nanos(self.window.0.saturating_mul(self.kept() as u64 - 1))
    }

    /// The bound of section 3.5 (which swaps the letters): a question overestimates by more than `epsilon` times all
    /// that the windows hold with a probability of at most `delta`; `epsilon = e / C`, `delta = (h - 2) e^-R`.
    ///
    /// It is for the h - 2 past windows that the paper reads. Outer and overlap read the current one too, and tags keep
    /// one more: each adds `e^-R` to `delta`.
    pub fn error_bound(&self) -> (f64, f64) {
        let epsilon = std::f64::consts::E / self.columns as f64;
        (epsilon, (self.snapshots.saturating_sub(2) as f64 * (-(self.rows as f64)).exp()).min(1.0))
    }

    /// Words of one cell: its counters, and its tag.
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

    fn at_least(&self) -> u64 {
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

/// Dimensions that no sketch can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// Too few or too many snapshots.
    #[error("a sketch cannot have {snapshots} snapshots: use {least} to 64")]
    Snapshots {
        /// As asked.
        snapshots: usize,
        /// What the expiry needs.
        least: usize,
    },
    /// Too few or too many rows.
    #[error("a sketch cannot have {rows} rows: use 1 to 8")]
    Rows {
        /// As asked.
        rows: usize,
    },
    /// Too few or too many columns.
    #[error("a sketch cannot have {columns} columns: use 1 to 16777216")]
    Columns {
        /// As asked.
        columns: usize,
    },
    /// No window, or one that never ends.
    #[error("a sketch cannot have a time window of {window}: use 1ns to two years")]
    Window {
        /// As asked.
        window: Nanos,
    },
    /// Too much memory.
    #[error(
        "a sketch of these dimensions would need {memory} bytes: use fewer snapshots, rows or columns (1 GiB is the most)"
    )]
    TooLarge {
        /// What it would need.
        memory: u64,
    },
    /// Too little memory.
    #[error("{memory} bytes do not hold a sketch: one column of these snapshots and rows needs {least}")]
    Memory {
        /// As asked.
        memory: u64,
        /// What one column needs.
        least: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dimensions_that_fit_the_papers_memory() {
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
    fn the_papers_bound() {
        let params =
            ConQuestParams::fit(Nanos(1), ByteCount(65_536), 4, Some(2), Expiry::Clean { passes: Passes::None });
        let (epsilon, delta) = params.unwrap().error_bound();
        assert!((epsilon - 0.0013).abs() < 0.00005 && (delta - 0.27).abs() < 0.005, "{epsilon} {delta}");
    }

    #[test]
    fn impossible_dimensions_say_what_is_possible() {
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
