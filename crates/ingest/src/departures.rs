//! Passes the departures of a table to a listener, without a replay.

use crate::listener::Listener;
use crate::notes::noted;
use crate::packet_filter::PacketFilter;
use crate::rows::Rows;
use crate::rows::{damage, departure, malformed, odd};
use crate::sorter::DepartureSorter;
use crate::stop::Stop;
use crate::{PROGRESS, Progress};
use queuescope_report::model::Skipped;
use queuescope_table::{DepartureReader, PacketIdentity};
use queuescope_wire::{Nanos, PacketId};

/// Counts and notes of a table that was read.
#[derive(Debug)]
pub struct Read {
    /// Rows that were passed to the listener.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The arrival time of the first packet, and the departure time of the last.
    pub span: (Nanos, Nanos),
    /// Notes on the table.
    pub skipped: Vec<Skipped>,
    /// What ended the table early, or rows that could not be parsed.
    pub damage: Option<String>,
}

/// Passes the departures of a table to `listener`, in the order of their departure times: all, or those that `chosen`
/// matches. Reads to the end of the table, or until a signal comes.
///
/// # Errors
/// Returns the error of the listener.
pub fn read<L: Listener<Key = str>>(
    reader: &mut DepartureReader,
    mut chosen: Option<PacketFilter<Rows>>,
    stop: Option<&Stop>,
    listener: &mut L,
    progress: Progress<'_>,
) -> Result<Read, L::Error> {
    let mut order = DepartureSorter::default();
    let (mut rows, mut packets, mut bytes, mut oversized) = (0u64, 0, 0, 0);
    let mut span = (Nanos::MAX, Nanos::ZERO);
    let ended = loop {
        if rows.is_multiple_of(PROGRESS) {
            progress(reader.input_read(), rows);
        }
        if let Some(stop) = stop.filter(|stop| stop.is_requested()) {
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
        if row.identity != PacketIdentity::default() {
            listener.identified(PacketId(number), row.identity);
        }
        let (departure, is_oversized) = departure(&row, number, flow);
        oversized += u64::from(is_oversized);
        span = (span.0.min(row.enqueued), span.1.max(row.dequeued));
        packets += 1;
        bytes += departure.packet.size.0;
        order.push(departure, listener);
        listener.row(number..rows)?;
    };
    order.finish(listener);
    progress(reader.input_read(), rows);
    let stats = reader.stats();
    let left_out = chosen.iter().flat_map(PacketFilter::notes);
    let late = "rows too far out of order to be sorted; treated as leaving with the row before them";
    let order = [
        noted("out_of_order", stats.out_of_order, "rows whose packet left before that of an earlier row; sorted"),
        noted("too_late", order.too_late(), late),
    ];
    let skipped = left_out.chain(malformed(stats)).chain(order.into_iter().flatten()).chain(odd(stats, oversized));
    let (skipped, damage) = (skipped.collect(), damage(ended.as_ref(), stats));
    Ok(Read { packets, bytes, span: (span.0.min(span.1), span.1), skipped, damage })
}
