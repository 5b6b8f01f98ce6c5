//! Volumes: records of a stretch of positions that lie in Parquet.
//!
//! A volume has a column for each attribute that is no view of another, and one of positions. Its rows are sorted as the
//! schema says (`sort`), so that what is alike lies together and takes little, then by position. Beside it lie, for each
//! attribute that is indexed, its keys and the pages that they are in ([`index`]), and checksums of all ([`sums`]).

pub(crate) mod encoding;
pub(crate) mod index;
pub(crate) mod order;
pub(crate) mod read;
pub(crate) mod sums;
pub(crate) mod write;

use arrow_schema::{DataType, Field, SchemaRef};
use queuescope_log::arrow::Column;
use queuescope_log::{AttributeId, Schema};
use std::sync::Arc;

/// Rows of a page: what is read at least.
pub(crate) const PAGE: usize = 8192;
/// Rows of a row group, at most.
pub(crate) const GROUP: usize = 1 << 20;
/// Pages of a row group, at most.
pub(crate) const PAGES: usize = GROUP / PAGE;

/// The columns of a schema's volumes.
#[derive(Debug)]
pub(crate) struct Columns {
    /// Of attributes, in the order of the schema.
    pub attributes: Vec<(AttributeId, Column)>,
    /// What the column of positions is called, which is the last.
    pub position: String,
    pub arrow: SchemaRef,
}

impl Columns {
    /// Those of a schema.
    pub fn of(schema: &Schema) -> Self {
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
