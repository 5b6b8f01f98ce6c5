//! Opens and reads the inputs that the command line names.

use crate::args::{Input, Keys, Table};
use crate::expressions::expression_error;
use crate::progress::Progress;
use anyhow::{Result, anyhow};
use queuescope_ingest::{self as ingest, Error, Listener, OpenedCapture, OpenedTable, Source, Stop};
use queuescope_pcap::OpenError;
use queuescope_sim::Aqm;
use queuescope_table::{DepartureReader, TableOptions};
use queuescope_wire::{KeyMask, MaskedKey};
use std::path::Path;

/// Opens the input. It is read to its end, or until a signal comes if `stop` is given.
///
/// # Errors
/// Fails if the expression is invalid, or if the input cannot be read or is not of the expected kind.
pub fn open(input: &Input, stop: Option<&Stop>) -> Result<ingest::Opened> {
    let options = match input.rate.filter(|_| !input.table.departures) {
        Some(rate) => ingest::Input::capture(input.path(), rate),
        None => ingest::Input::table(input.path(), table_options(&input.table)),
    };
    ingest::open(&options.only(input.only.clone()), stop).map_err(|error| match error {
        Error::Expression(error) => expression_error(error),
        Error::Capture(error @ OpenError::NotCapture { .. }) => {
            anyhow!("{error}; a table of departures is read with --departures in place of --rate")
        }
        error => error.into(),
    })
}

/// Opens a table of departures, or standard input as one.
///
/// # Errors
/// Fails if it cannot be read, or is not a table of departures.
pub fn open_table(path: &Path, table: &Table) -> Result<DepartureReader> {
    Ok(ingest::open_table(path, table_options(table))?)
}

fn table_options(table: &Table) -> TableOptions {
    TableOptions { columns: table.map.clone().unwrap_or_default(), time_unit: table.time_unit }
}

/// Replays a capture through a queue.
///
/// # Errors
/// Fails if the listener fails. Damage of the input is in `Source::input`.
pub fn replay<E>(
    opened: OpenedCapture,
    queue: &ingest::Queue,
    mask: KeyMask,
    listener: &mut impl Listener<Key = MaskedKey, Error = E>,
) -> Result<Source, E> {
    let progress = Progress::new(opened.length());
    let source = opened.replay(queue, mask, listener, &mut |read, packets| progress.update(read, packets));
    progress.finish();
    source
}

/// The queue that a capture passes. `aqm` manages it; without, it is a tail-drop queue.
pub fn queue(input: &Input, keys: &Keys, aqm: Option<Aqm>) -> ingest::Queue {
    let mut queue = ingest::Queue::default();
    queue.aqm = aqm;
    queue.limit = input.queue.limit;
    queue.speedup = input.queue.speedup;
    queue.overhead = input.queue.overhead;
    queue.mtu = input.queue.mtu;
    queue.split_gso = input.queue.split_gso;
    queue.inner = keys.inner;
    queue
}

/// Reads a table of departures.
///
/// # Errors
/// Fails if the listener fails. Damage of the input is in `Source::input`.
pub fn table<E>(opened: OpenedTable, listener: &mut impl Listener<Key = str, Error = E>) -> Result<Source, E> {
    let progress = Progress::new(opened.length());
    let source = opened.read(listener, &mut |read, rows| progress.update(read, rows));
    progress.finish();
    source
}
