//! The Count-Min Sketch (Cormode and Muthukrishnan, 2005): counts of keys that are never underestimated.

use crate::hash::Columns;

/// A Count-Min Sketch. It gives the same counts as a snapshot of [`ConQuest`](crate::ConQuest) of the same dimensions
/// and seed.
///
/// ```
/// use queuescope_sketch::CountMin;
///
/// let mut counts = CountMin::new(2, 512, 1);
/// for key in 0..1000 {
///     counts.add(key, 10);
/// }
/// counts.add(7, 5_000);
/// let estimate = counts.estimate(7);
/// println!("about {estimate} of key 7");
/// assert!((5_010..6_000).contains(&estimate), "never less, and little more");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountMin {
    counters: Vec<u32>,
    columns: usize,
    seed: u64,
}

impl CountMin {
    /// Creates an empty sketch. 0 rows or columns count as 1.
    pub fn new(rows: usize, columns: usize, seed: u64) -> Self {
        let (rows, columns) = (rows.max(1), columns.max(1));
        Self { counters: vec![0; rows * columns], columns, seed }
    }

    /// Adds `weight` to `key`. A counter that would overflow stays at `u32::MAX`.
    pub fn add(&mut self, key: u64, weight: u32) {
        let columns = Columns::new(key, self.seed, self.columns);
        for (row, column) in self.counters.chunks_exact_mut(self.columns).zip(columns) {
            row[column] = row[column].saturating_add(weight);
        }
    }

    /// The count of `key`; too high if other keys collide with it in every row, never too low.
    pub fn estimate(&self, key: u64) -> u32 {
        let columns = Columns::new(key, self.seed, self.columns);
        let counts = self.counters.chunks_exact(self.columns).zip(columns).map(|(row, column)| row[column]);
        counts.min().unwrap_or(0)
    }
}
