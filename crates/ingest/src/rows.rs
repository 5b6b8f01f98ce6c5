//! Rows of a table of departures: what each describes, and what was remarkable about them.

use crate::error::ExpressionError;
use crate::notes::{noted, unnamed};
use crate::packet_filter::PacketFilter;
use crate::records::{Departures, Records, Unknown};
use queuescope_log::{Dnf, NoAggregates, Schema, departure as record};
use queuescope_report::model::Skipped;
use queuescope_table::{Row, TableError, TableStats};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, FlowKey, Packet, PacketId, QueueId};

/// Rows of a table of departures as records of the schema `departure`. What a table does not have is zero.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    departures: Departures,
    unnamed: u64,
}

impl Rows {
    /// The record of the row with this number, from 0. The flow is what its name says.
    pub fn fill(&mut self, row: &Row<'_>, number: u64, flow: FlowId) -> &[u8; record::SIZE] {
        let key = FlowKey::named(row.flow).map(|(_, key)| key);
        self.unnamed += u64::from(key.is_none());
        // Packets are counted from 1, as `why --packet` and tables of ours do.
        let (departure, _) = departure(row, number + 1, flow);
        self.departures.fill(&departure, &key.unwrap_or_default())
    }

    /// Rows whose flow's name does not say who it is.
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
    /// Whether the row with this number, from 0, is meant. Flows have no numbers here: they would have to be
    /// remembered by name.
    pub fn holds(&mut self, row: &Row<'_>, number: u64) -> bool {
        let holds = self.filter.matches(self.records.fill(row, number, FlowId(0)), &NoAggregates);
        self.left_out += u64::from(!holds);
        holds
    }

    /// How many rows were not meant, and of how many the expression could not see who they belong to.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> + use<> {
        self.note().into_iter().chain(unnamed(self.records.unnamed()))
    }
}

/// The departure that a row describes, as far as it does, and whether its size is more than any.
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

/// Rows that could not be read, for the report.
pub fn malformed(stats: &TableStats) -> Option<Skipped> {
    let mut examples = stats.first_malformed.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if stats.malformed > 3 {
        examples.push_str("; ...");
    }
    let meaning = format!("rows that could not be read and were skipped: {examples}");
    noted("malformed_rows", stats.malformed, &meaning)
}

/// Rows that are not quite what was read of them, for the report.
pub fn odd(stats: &TableStats, oversized: u64) -> impl Iterator<Item = Skipped> + use<> {
    let rounded =
        "rows with times finer than a nanosecond; rounded to the nearest (--time-unit says what numbers count)";
    let notes = [
        noted("rounded_times", stats.rounded, rounded),
        noted("oversized", oversized, "packets of 4 GiB or more; taken as one byte less"),
    ];
    notes.into_iter().flatten()
}

/// What ended a table early, or could not be read of it.
pub fn damage(error: Option<&TableError>, stats: &TableStats) -> Option<String> {
    let malformed = || format!("rows that could not be read were skipped; the first is {}", stats.first_malformed[0]);
    error.map(ToString::to_string).or_else(|| (stats.malformed > 0).then(malformed))
}
