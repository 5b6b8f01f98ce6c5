//! The format version of tables that this crate writes, in their Parquet metadata.

use crate::TableError;
use parquet::file::metadata::{KeyValue, ParquetMetaData};

/// The metadata key of the version.
const KEY: &str = "queuescope.format";
/// The version. It grows when a column gets another name, type or meaning; new columns do not change it. Tables without
/// a version are of format 1, or of other programs.
const FORMAT: u32 = 1;

/// The metadata of a table that is written.
pub(crate) fn metadata() -> Option<Vec<KeyValue>> {
    Some(vec![KeyValue::new(KEY.to_owned(), FORMAT.to_string())])
}

/// Checks that a table has no later format.
pub(crate) fn check(table: &str, metadata: &ParquetMetaData) -> Result<(), TableError> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let found = pairs.into_iter().flatten().find(|pair| pair.key == KEY).and_then(|pair| pair.value.clone());
    match found {
        Some(found) if found.parse::<u32>().map_or(true, |version| version > FORMAT) => {
            Err(TableError::Format { table: table.to_owned(), found, known: FORMAT })
        }
        _ => Ok(()),
    }
}
