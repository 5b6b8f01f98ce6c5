//! Volumes: records of consecutive positions, in a Parquet file.
//!
//! A volume has a column for each attribute that is not a view of another one, and one of positions. Its rows are sorted as the
//! schema says (`sort`), so that similar records are adjacent and compress well, then by position. Beside it there are, for each
//! indexed attribute, its keys and the pages that they are in ([`index`]), and checksums of all files ([`sums`]).

pub(crate) mod encoding;
pub(crate) mod extremes;
pub(crate) mod index;
pub(crate) mod order;
pub(crate) mod read;
pub(crate) mod sums;
pub(crate) mod write;

use arrow_schema::{DataType, Field, SchemaRef};
use parquet::file::metadata::KeyValue;
use queuescope_log::arrow::Column;
use queuescope_log::{AttributeId, Schema};
use std::sync::Arc;

/// Rows of a page: the least that is read at once.
pub(crate) const PAGE: usize = 8192;
/// The most rows of a row group.
pub(crate) const GROUP: usize = 1 << 20;
/// The most pages of a row group.
pub(crate) const PAGES: usize = GROUP / PAGE;

/// The metadata of the Parquet files of a folder: its format.
fn format() -> Option<Vec<KeyValue>> {
    Some(vec![KeyValue::new("queuescope.format".to_owned(), crate::folder::FORMAT.to_string())])
}

/// The columns of a schema's volumes.
#[derive(Debug)]
pub(crate) struct Columns {
    /// The columns of attributes, in the order of the schema.
    pub attributes: Vec<(AttributeId, Column)>,
    /// The name of the column of positions, which is the last.
    pub position: String,
    pub arrow: SchemaRef,
}

impl Columns {
    /// The columns for a schema.
    pub fn new(schema: &Schema) -> Self {
        let mut position = "position".to_owned();
        while schema.iter().any(|(_, attribute)| attribute.name == position) {
            position.insert(0, '_');
        }
        let stored = schema.iter().filter(|(_, attribute)| !attribute.view);
        let attributes: Vec<_> = stored.map(|(id, _)| (id, Column::new(id, schema))).collect();
        let fields = attributes.iter().map(|(_, column)| column.field());
        let fields: Vec<_> = fields.chain([Field::new(&position, DataType::UInt64, false)]).collect();
        Self { attributes, position, arrow: Arc::new(arrow_schema::Schema::new(fields)) }
    }
}
