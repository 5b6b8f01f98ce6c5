//! From a table of departures to whoever listens, without a replay.

use crate::capture::noted;
use crate::chosen::Chosen;
use crate::progress::Progress;
use crate::records::Rows;
use crate::source::Listener;
use crate::stop::Stop;
use anyhow::Result;
use queuescope_report::model::Skipped;
use queuescope_table::{DepartureReader, Row, TableError, TableStats};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, FlowId, Nanos, Packet, PacketId, QueueId};
use std::collections::BTreeMap;

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// Rows that were departures, and told.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first packet came and the last one left.
    pub span: (Nanos, Nanos),
    /// What was remarkable.
    pub skipped: Vec<Skipped>,
    /// What ended the table early, or could not be read of it.
    pub damage: Option<String>,
}

/// Rows that may stand before others that left earlier: they are put in order.
const REORDER: usize = 1 << 16;

/// Tells the departures of a table, in the order of their departure: all of them, or those that are chosen; until its end, or
/// until a signal comes.
///
/// # Errors
/// Those of the listener.
pub fn read(
    reader: &mut DepartureReader,
    (mut chosen, stop): (Option<Chosen<Rows>>, Option<&Stop>),
    listener: &mut impl Listener<Key = str>,
    progress: &Progress,
) -> Result<Read> {
    let mut order = InOrder::default();
    let (mut rows, mut packets, mut bytes, mut oversized) = (0u64, 0, 0, 0);
    let mut span = (Nanos::MAX, Nanos::ZERO);
    let ended = loop {
        if rows.is_multiple_of(65_536) {
            progress.update(reader.input_read(), rows);
        }
        if let Some(stop) = stop.filter(|stop| stop.is_asked()) {
            stop.obey();
            break None;
        }
        let row = match reader.next_row() {
            Ok(Some(row)) => row,
            Ok(None) => break None,
            Err(_) if stop.is_some_and(Stop::is_obeyed) => break None,
            Err(error) => break Some(error),
        };
        let number = rows;
        rows += 1;
        if let Some(chosen) = &mut chosen
            && !chosen.holds(&row, number)
        {
            listener.row(number..number)?;
            continue;
        }
        let flow = listener.intern(row.flow, row.dequeued);
        let (departure, is_oversized) = departure(&row, number, flow);
        oversized += u64::from(is_oversized);
        span = (span.0.min(row.enqueued), span.1.max(row.dequeued));
        packets += 1;
        bytes += departure.packet.size.0;
        order.push(departure);
        if order.waiting.len() > REORDER {
            order.pop(listener);
        }
        listener.row(number..rows)?;
    };
    while !order.waiting.is_empty() {
        order.pop(listener);
    }
    let stats = reader.stats();
    let left_out = chosen.iter().flat_map(Chosen::notes);
    let late = "rows too far out of order to be put right; taken to leave with the row before them";
    let order = [
        noted("out_of_order", stats.out_of_order, "rows whose packet left before an earlier row's; put in order"),
        noted("too_late", order.late, late),
    ];
    let skipped = left_out.chain(malformed(stats)).chain(order.into_iter().flatten()).chain(odd(stats, oversized));
    let (skipped, damage) = (skipped.collect(), damage(ended.as_ref(), stats));
    Ok(Read { packets, bytes, span: (span.0.min(span.1), span.1), skipped, damage })
}

/// The departure that a row tells of, as far as it does, and whether its size is more than any.
pub(crate) fn departure(row: &Row<'_>, number: u64, flow: FlowId) -> (Departure, bool) {
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
pub(crate) fn malformed(stats: &TableStats) -> Option<Skipped> {
    let mut examples = stats.first_malformed.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if stats.malformed > 3 {
        examples.push_str("; ...");
    }
    let meaning = format!("rows that could not be read and were skipped: {examples}");
    noted("malformed_rows", stats.malformed, &meaning)
}

/// Rows that are not quite what was read of them, for the report.
pub(crate) fn odd(stats: &TableStats, oversized: u64) -> impl Iterator<Item = Skipped> + use<> {
    let rounded =
        "rows with times finer than a nanosecond; rounded to the nearest (--time-unit says what numbers count)";
    let notes = [
        noted("rounded_times", stats.rounded, rounded),
        noted("oversized", oversized, "packets of 4 GiB or more; taken as one byte less"),
    ];
    notes.into_iter().flatten()
}

/// What ended a table early, or could not be read of it.
pub(crate) fn damage(error: Option<&TableError>, stats: &TableStats) -> Option<String> {
    let malformed = || format!("rows that could not be read were skipped; the first is {}", stats.first_malformed[0]);
    error.map(ToString::to_string).or_else(|| (stats.malformed > 0).then(malformed))
}

/// Puts departures in order, over a stretch of bounded length.
#[derive(Debug, Default)]
struct InOrder {
    /// By departure, then by place in the table.
    waiting: BTreeMap<(Nanos, u64), (Departure, bool)>,
    now: Nanos,
    late: u64,
}

impl InOrder {
    fn push(&mut self, departure: Departure) {
        let is_late = departure.dequeued < self.now;
        self.late += u64::from(is_late);
        let dequeued = departure.dequeued.max(self.now);
        self.waiting.insert((dequeued, departure.packet.id.0), (Departure { dequeued, ..departure }, is_late));
    }

    fn pop(&mut self, listener: &mut impl Listener) {
        let Some((_, (departure, is_late))) = self.waiting.pop_first() else { return };
        self.now = departure.dequeued;
        if is_late {
            listener.moved();
        }
        listener.departed(&departure);
    }
}
