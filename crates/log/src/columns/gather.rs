//! Batches of keys from records.

use super::{BATCH, KeyBatch, Keys};
use crate::schema::{AttributeId, Reader, Schema};
use std::sync::Arc;

/// Collects the keys of records until there are enough for a batch.
///
/// ```
/// use queuescope_log::{KeyGather, Schema, departure};
///
/// let schema = Schema::departure();
/// let length = schema.find("length").ok_or("unknown attribute")?;
/// let mut gather = KeyGather::new(schema, &[length]);
/// gather.push(&[0; departure::SIZE]);
/// let batch = gather.take();
/// println!("{:?}", batch.keys(length));
/// assert_eq!((batch.rows(), batch.keys(length).get(0)), (1, 0));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct KeyGather {
    attributes: Arc<[AttributeId]>,
    columns: Vec<(Reader, Keys)>,
    rows: usize,
    /// Whether the records themselves are kept, too.
    whole: bool,
    records: Vec<u8>,
}

impl KeyGather {
    /// For these attributes.
    ///
    /// # Panics
    /// Panics if an attribute belongs to another schema, or is not comparable.
    pub fn new(schema: &Schema, attributes: &[AttributeId]) -> Self {
        let column = |id: &AttributeId| {
            let attribute = schema.attribute(*id);
            assert!(attribute.is_comparable(), "`{}` has no key", attribute.name);
            let keys = if attribute.place.bits <= 64 { Keys::Narrow(Vec::new()) } else { Keys::Wide(Vec::new()) };
            (schema.reader(*id), keys)
        };
        let columns = attributes.iter().map(column).collect();
        Self { attributes: attributes.into(), columns, rows: 0, whole: false, records: Vec::new() }
    }

    /// Keeps the records themselves, too.
    pub(crate) fn with_records(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Adds a record.
    #[inline]
    pub fn push(&mut self, record: &[u8]) {
        for (reader, keys) in &mut self.columns {
            let key = reader.key(record);
            match keys {
                Keys::Narrow(keys) => keys.push(key as u64),
                Keys::Wide(keys) => keys.push(key),
                Keys::Coded { .. } => unreachable!("`new` makes no dictionaries"),
            }
        }
        if self.whole {
            self.records.extend_from_slice(record);
        }
        self.rows += 1;
    }

    /// Whether there are enough records for a batch.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.rows >= BATCH
    }

    /// The batch of the records that were added since the last one.
    pub fn take(&mut self) -> KeyBatch {
        let columns = self.columns.iter_mut().map(|(_, keys)| match keys {
            Keys::Narrow(keys) => Keys::Narrow(std::mem::replace(keys, Vec::with_capacity(BATCH))),
            Keys::Wide(keys) => Keys::Wide(std::mem::replace(keys, Vec::with_capacity(BATCH))),
            Keys::Coded { .. } => unreachable!("`new` makes no dictionaries"),
        });
        let mut batch = KeyBatch::new(std::mem::take(&mut self.rows), Arc::clone(&self.attributes), columns.collect());
        batch.records = std::mem::take(&mut self.records);
        batch
    }
}
