//! From a table of departures to whoever listens, without a replay.

use crate::progress::Progress;
use crate::source::Listener;
use anyhow::Result;
use queuescope_report::model::Skipped;
use queuescope_sim::Output;
use queuescope_table::{DepartureReader, TableError};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, Nanos, Packet, PacketId, QueueId};
use std::collections::BTreeMap;

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// Rows that were departures.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the first packet came and the last one left.
    pub span: (Nanos, Nanos),
    /// What was remarkable.
    pub skipped: Vec<Skipped>,
    /// What ended the table early.
    pub damage: Option<TableError>,
    /// Whether rows could not be read.
    pub malformed: bool,
}

/// Rows that may stand before others that left earlier: they are put in order.
const REORDER: usize = 1 << 16;

/// Tells the departures of a table, in the order of their departure.
///
/// # Errors
/// Those of the listener.
pub fn read(
    reader: &mut DepartureReader,
    listener: &mut impl Listener<Key = str>,
    progress: &Progress,
) -> Result<Read> {
    let mut order = InOrder::default();
    let (mut packets, mut bytes, mut oversized) = (0u64, 0, 0);
    let mut span = (Nanos::MAX, Nanos::ZERO);
    let damage = loop {
        if packets.is_multiple_of(65_536) {
            progress.update(reader.input_read(), packets);
        }
        let row = match reader.next_row() {
            Ok(Some(row)) => row,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        let size = u32::try_from(row.size).unwrap_or_else(|_| {
            oversized += 1;
            u32::MAX
        });
        span = (span.0.min(row.enqueued), span.1.max(row.dequeued));
        let packet = Packet {
            id: PacketId(packets),
            flow: listener.intern(row.flow, row.dequeued),
            size: ByteCount(u64::from(size)),
            class: Class(row.class),
            ecn: Ecn::NotEct,
        };
        packets += 1;
        bytes += u64::from(size);
        order.push(packet, row.enqueued, row.dequeued);
        if order.waiting.len() > REORDER {
            order.pop(listener);
        }
        listener.check()?;
    };
    while !order.waiting.is_empty() {
        order.pop(listener);
    }
    let stats = reader.stats();
    let mut examples = stats.first_malformed.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    if stats.malformed > 3 {
        examples.push_str("; ...");
    }
    let malformed = format!("rows that could not be read and were skipped: {examples}");
    let notes = [
        ("malformed_rows", stats.malformed, malformed.as_str()),
        ("out_of_order", stats.out_of_order, "rows whose packet left before an earlier row's; put in order"),
        ("too_late", order.late, "rows too far out of order to be put right; taken to leave with the row before them"),
        (
            "rounded_times",
            stats.rounded,
            "rows with times finer than a nanosecond; rounded to the nearest (--time-unit says what numbers count)",
        ),
        ("oversized", oversized, "packets of 4 GiB or more; taken as one byte less"),
    ];
    let skipped = notes.into_iter().filter(|(_, count, _)| *count > 0).map(|(reason, count, meaning)| Skipped {
        reason: reason.to_owned(),
        count,
        meaning: meaning.to_owned(),
    });
    let (skipped, malformed) = (skipped.collect(), stats.malformed > 0);
    Ok(Read { packets, bytes, span: (span.0.min(span.1), span.1), skipped, damage, malformed })
}

/// Puts departures in order, over a stretch of bounded length.
#[derive(Debug, Default)]
struct InOrder {
    /// By departure, then by place in the table.
    waiting: BTreeMap<(Nanos, u64), (Packet, Nanos)>,
    now: Nanos,
    late: u64,
}

impl InOrder {
    fn push(&mut self, packet: Packet, enqueued: Nanos, dequeued: Nanos) {
        self.late += u64::from(dequeued < self.now);
        self.waiting.insert((dequeued.max(self.now), packet.id.0), (packet, enqueued));
    }

    fn pop(&mut self, output: &mut impl Output) {
        let Some(((dequeued, _), (packet, enqueued))) = self.waiting.pop_first() else { return };
        self.now = dequeued;
        output.departed(&Departure {
            packet,
            queue: QueueId(0),
            enqueued,
            dequeued,
            backlog_in: Backlog::default(),
            backlog_out: Backlog::default(),
        });
    }
}
