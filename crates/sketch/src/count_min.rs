//! The Count-Min Sketch (Cormode and Muthukrishnan, 2005): how much of each key, never too little.

use crate::hash::Columns;

/// One Count-Min Sketch. A snapshot of [`ConQuest`](crate::ConQuest) of the same dimensions and seed counts alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountMin {
    counters: Vec<u32>,
    columns: usize,
    seed: u64,
}

impl CountMin {
    /// An empty sketch; it has at least one row and one column.
    pub fn new(rows: usize, columns: usize, seed: u64) -> Self {
        let (rows, columns) = (rows.max(1), columns.max(1));
        Self { counters: vec![0; rows * columns], columns, seed }
    }

    /// `weight` more of `key`. A counter that is full stays so.
    pub fn add(&mut self, key: u64, weight: u32) {
        let columns = Columns::new(key, self.seed, self.columns);
        for (row, column) in self.counters.chunks_exact_mut(self.columns).zip(columns) {
            row[column] = row[column].saturating_add(weight);
        }
    }

    /// How much of `key` there is, or more.
    pub fn estimate(&self, key: u64) -> u32 {
        let columns = Columns::new(key, self.seed, self.columns);
        let counts = self.counters.chunks_exact(self.columns).zip(columns).map(|(row, column)| row[column]);
        counts.min().unwrap_or(0)
    }
}
