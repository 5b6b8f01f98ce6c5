//! Keys of many records, column by column: filters, functions and groups of a whole batch at once.
//!
//! A batch has the keys of a few thousand records, which fit in the processor's cache, and only of the attributes that a
//! question needs. It comes from records ([`KeyGather`]) or from Arrow columns ([`KeyReader`](crate::arrow::KeyReader)).

mod choose;
mod gather;

pub use choose::BatchFilter;
pub use gather::KeyGather;

use crate::schema::AttributeId;
use std::sync::Arc;

/// Records of a batch, at most. Columns of three attributes then take less than 200 kB.
pub const BATCH: usize = 8192;

/// The keys of one attribute in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// One key for each record, of at most 64 bits.
    Narrow(Vec<u64>),
    /// One key for each record.
    Wide(Vec<u128>),
    /// For each record the place of its key in `keys`. All batches with the same dictionary share one `keys`, so that what is computed for a
    /// key is computed once.
    Coded {
        /// Each is less than the number of keys.
        codes: Vec<u32>,
        /// The keys, usually distinct.
        keys: Arc<[u128]>,
    },
}

/// Keys of some attributes of a number of records.
#[derive(Debug, Clone)]
pub struct KeyBatch {
    rows: usize,
    attributes: Arc<[AttributeId]>,
    columns: Vec<Keys>,
    /// The records themselves, if a function of the caller needs them.
    records: Vec<u8>,
}

/// Some records of a batch.
#[derive(Debug, Clone, Copy)]
pub enum Selected<'a> {
    /// All, of which there are this many.
    All(usize),
    /// Those at these places, in order.
    Some(&'a [u32]),
}

impl KeyBatch {
    /// A batch of as many columns as attributes.
    ///
    /// # Panics
    /// Panics if a column does not have a key for each of the `rows` records.
    pub fn new(rows: usize, attributes: Arc<[AttributeId]>, columns: Vec<Keys>) -> Self {
        assert!(
            attributes.len() == columns.len() && columns.iter().all(|keys| keys.len() == rows),
            "each attribute of a batch has a key for each record"
        );
        Self { rows, attributes, columns, records: Vec::new() }
    }

    /// The number of records.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The keys of an attribute.
    ///
    /// # Panics
    /// Panics if the batch does not have the attribute.
    pub fn keys(&self, id: AttributeId) -> &Keys {
        let place = self.attributes.iter().position(|own| *own == id);
        place.map_or_else(|| panic!("the batch does not have attribute {}", id.0), |place| &self.columns[place])
    }

    /// The bytes of the record at a place, of `size` bytes each.
    pub(crate) fn record(&self, place: usize, size: usize) -> &[u8] {
        &self.records[place * size..(place + 1) * size]
    }
}

impl Keys {
    /// The number of records.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(keys) => keys.len(),
            Self::Wide(keys) => keys.len(),
            Self::Coded { codes, .. } => codes.len(),
        }
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of the record at a place.
    #[inline]
    pub fn get(&self, place: usize) -> u128 {
        match self {
            Self::Narrow(keys) => keys[place].into(),
            Self::Wide(keys) => keys[place],
            Self::Coded { codes, keys } => keys[codes[place] as usize],
        }
    }

    /// Calls `with` with the key of each selected record.
    #[inline]
    pub(crate) fn each(&self, selected: Selected<'_>, mut with: impl FnMut(u128)) {
        match self {
            Self::Narrow(keys) => selected.each(keys, |key| with(u128::from(key))),
            Self::Wide(keys) => selected.each(keys, with),
            Self::Coded { codes, keys } => selected.each(codes, |code| with(keys[code as usize])),
        }
    }
}

impl Selected<'_> {
    /// The number of records.
    pub fn len(&self) -> usize {
        match self {
            Self::All(rows) => *rows,
            Self::Some(places) => places.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `with` with the value of each selected record.
    #[inline]
    pub(crate) fn each<T: Copy>(&self, values: &[T], mut with: impl FnMut(T)) {
        match self {
            Self::All(rows) => values[..*rows].iter().for_each(|value| with(*value)),
            Self::Some(places) => places.iter().for_each(|place| with(values[*place as usize])),
        }
    }

    /// Calls `with` with the place of each selected record.
    #[inline]
    pub(crate) fn places(&self, mut with: impl FnMut(usize)) {
        match self {
            Self::All(rows) => (0..*rows).for_each(with),
            Self::Some(places) => places.iter().for_each(|place| with(*place as usize)),
        }
    }
}
