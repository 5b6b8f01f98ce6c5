//! Arrow record batches as rows, of Parquet files and of other libraries.

use crate::columns::ColumnPositions;
use crate::number::{RoundedNumber, decimal};
use crate::reader::{NextRow, PacketIdentity, Values};
use crate::stamp::time;
use crate::stats::{Fault, Problem};
use crate::values::{FlowNames, Numbers, fits, numbers, value_text};
use crate::{Field, TableError, TimeUnit};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;

/// Checks that the columns have types that can represent their fields.
pub(crate) fn check_types(table: &str, places: &ColumnPositions, schema: &Schema) -> Result<(), TableError> {
    for (field, index) in places.all() {
        let column = schema.field(index);
        if !fits(field, column.data_type()) {
            return Err(TableError::ColumnType {
                table: table.to_owned(),
                column: column.name().clone(),
                kind: column.data_type().to_string(),
                field,
            });
        }
    }
    Ok(())
}

/// A batch of decoded rows.
pub(crate) struct Batch {
    pub rows: usize,
    flow: Vec<FlowNames>,
    size: Numbers,
    enqueued: Numbers,
    dequeued: Numbers,
    class: Option<Numbers>,
    identity: [Option<Numbers>; 4],
    columns: Vec<(Field, ArrayRef)>,
}

impl Batch {
    /// Decodes a batch with the columns of departures at these places.
    pub fn new(batch: &RecordBatch, places: &ColumnPositions, unit: TimeUnit) -> Self {
        let whole = |index| numbers(batch.column(index).as_ref(), 0, decimal);
        let moment = |index| numbers(batch.column(index).as_ref(), unit.power(), time);
        Self {
            rows: batch.num_rows(),
            flow: places.flow.iter().map(|&index| FlowNames::new(batch.column(index))).collect(),
            size: whole(places.size),
            enqueued: moment(places.enqueued),
            dequeued: moment(places.dequeued),
            class: places.class.map(whole),
            identity: places.identity.map(|index| index.map(whole)),
            columns: places.all().map(|(field, index)| (field, batch.column(index).clone())).collect(),
        }
    }

    /// A row of the batch, which follows `before` others; writes its flow's name to `flow`.
    pub fn row(&self, row: usize, before: u64, flow: &mut String) -> NextRow {
        match self.values(row, flow) {
            Ok(values) => NextRow::Row(values),
            Err((field, problem)) => {
                let number = before + row as u64 + 1;
                let text = self.text(field, row).into_bytes();
                NextRow::Bad(Fault { number, field: Some(field), text, problem })
            }
        }
    }

    fn values(&self, row: usize, flow: &mut String) -> Result<Values, (Field, Problem)> {
        let number = |field, numbers: &Numbers| -> Result<RoundedNumber, (Field, Problem)> {
            numbers.get(row).copied().unwrap_or(Err(Problem::Missing)).map_err(|problem| (field, problem))
        };
        let whole = |field, numbers: &Numbers| match number(field, numbers)? {
            RoundedNumber { rounded: true, .. } => Err((field, Problem::NotWhole)),
            RoundedNumber { value, .. } => Ok(value),
        };
        flow.clear();
        for (part, names) in self.flow.iter().enumerate() {
            if part > 0 {
                flow.push(' ');
            }
            names.append(row, flow).map_err(|problem| (Field::Flow, problem))?;
        }
        if flow.trim().is_empty() {
            return Err((Field::Flow, Problem::Missing));
        }
        let size = whole(Field::Size, &self.size)?;
        let enqueued = number(Field::Enqueued, &self.enqueued)?;
        let dequeued = number(Field::Dequeued, &self.dequeued)?;
        let class = self.class.as_ref().map_or(Ok(0), |class| whole(Field::Class, class))?;
        let class = u8::try_from(class).map_err(|_| (Field::Class, Problem::TooLarge))?;
        let mut identity = [0; 4];
        for (place, field) in Field::IDENTITY.into_iter().enumerate() {
            identity[place] = self.identity[place].as_ref().map_or(Ok(0), |numbers| whole(field, numbers))?;
        }
        Values::checked(size, enqueued, dequeued, class, PacketIdentity::of(identity)?)
    }

    /// The value that has a fault.
    fn text(&self, field: Field, row: usize) -> String {
        let columns = self.columns.iter().filter(|(of, _)| *of == field);
        let parts: Vec<_> = columns.map(|(_, column)| value_text(column.as_ref(), row)).collect();
        parts.join(" ")
    }
}
