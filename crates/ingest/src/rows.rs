//! Rows of a table of departures as records, and notes on rows for a report.

use crate::error::ExpressionError;
use crate::notes::{noted, unnamed};
use crate::packet_filter::PacketFilter;
use crate::records::{Departures, Records, Unknown};
use queuescope_log::{Dnf, NoAggregates, Schema, departure as record};
use queuescope_report::model::Skipped;
use queuescope_table::{Row, TableError, TableStats};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, FlowKey, Packet, PacketId, QueueId};

/// Turns rows of a table of departures into records of the schema `departure`. Attributes that a table does not have are 0.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    departures: Departures,
    unnamed: u64,
}

impl Rows {
    /// The record of the row with this number, counted from 0. The flow key is parsed from the flow's name.
    pub fn fill(&mut self, row: &Row<'_>, number: u64, flow: FlowId) -> &[u8; record::SIZE] {
        let key = FlowKey::named(row.flow).map(|(_, key)| key);
        self.unnamed += u64::from(key.is_none());
        // Packets are counted from 1, as in `why --packet` and in the tables that queuescope writes.
        let (departure, _) = departure(row, number + 1, flow);
        self.departures.fill(&departure, &key.unwrap_or_default())
    }

    /// Number of rows whose flow name cannot be parsed as a flow key.
    pub fn unnamed(&self) -> u64 {
        self.unnamed
    }
}

impl Records for Rows {
    fn schema() -> &'static Schema {
        record::schema()
    }

    fn askable(expression: &Dnf) -> Result<(), ExpressionError> {
        Unknown::OF_TABLE.check(expression.attributes())
    }
}

impl PacketFilter<Rows> {
    /// Whether the row with this number, counted from 0, matches. The attribute `flow` is 0 here: numbering flows would need
    /// a table of their names.
    pub fn holds(&mut self, row: &Row<'_>, number: u64) -> bool {
        let holds = self.filter.matches(self.records.fill(row, number, FlowId(0)), &NoAggregates);
        self.left_out += u64::from(!holds);
        holds
    }

    /// Notes on the rows that did not match, and on rows whose flow key is not known to the expression.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        self.note().into_iter().chain(unnamed(self.records.unnamed()))
    }
}

/// The departure that a row describes, and whether its size is too large and was reduced.
pub fn departure(row: &Row<'_>, number: u64, flow: FlowId) -> (Departure, bool) {
    let size = u32::try_from(row.size);
    let packet = Packet {
        id: PacketId(number),
        flow,
        size: ByteCount(u64::from(size.unwrap_or(u32::MAX))),
        class: Class(row.class),
        ecn: Ecn::NotEct,
    };
    let departure = Departure {
        packet,
        queue: QueueId(0),
        enqueued: row.enqueued,
        dequeued: row.dequeued,
        backlog_in: Backlog::default(),
        backlog_out: Backlog::default(),
    };
    (departure, size.is_err())
}

/// A note on rows that could not be parsed.
pub fn malformed(stats: &TableStats) -> Option<Skipped> {
    let mut examples = stats.first_malformed.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if stats.malformed > 3 {
        examples.push_str("; ...");
    }
    let meaning = format!("rows that could not be read and were skipped: {examples}");
    noted("malformed_rows", stats.malformed, &meaning)
}

/// Notes on rows whose values were changed: rounded times, and sizes that were too large.
pub fn odd(stats: &TableStats, oversized: u64) -> impl Iterator<Item = Skipped> + use<> {
    let rounded =
        "rows with times finer than a nanosecond; rounded to the nearest (--time-unit sets the unit of times)";
    let notes = [
        noted("rounded_times", stats.rounded, rounded),
        noted("oversized", oversized, "packets of 4 GiB or more; treated as one byte less than 4 GiB"),
    ];
    notes.into_iter().flatten()
}

/// The damage of a table: what ended it early, or rows that could not be parsed.
pub fn damage(error: Option<&TableError>, stats: &TableStats) -> Option<String> {
    let malformed = || format!("rows that could not be read were skipped; the first is {}", stats.first_malformed[0]);
    error.map(ToString::to_string).or_else(|| (stats.malformed > 0).then(malformed))
}
