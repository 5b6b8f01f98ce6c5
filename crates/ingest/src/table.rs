//! Opens and reads tables of departures.

use crate::capture_input::is_standard_input;
use crate::error::Error;
use crate::input::Input;
use crate::listener::Listener;
use crate::packet_filter::{Flag, PacketFilter};
use crate::rows::Rows;
use crate::source::{Origin, Source};
use crate::stop::{Stop, Stoppable};
use crate::{Progress, departures};
use queuescope_report::model::{self, AS_IT_WAS};
use queuescope_table::{DepartureReader, TableOptions};
use std::io;
use std::path::Path;

/// Opens a table of departures; `-` is standard input.
///
/// # Errors
/// Fails if it cannot be read, or is not a table of departures.
pub fn open_table(path: &Path, options: TableOptions) -> Result<DepartureReader, Error> {
    table_until(path, options, None)
}

/// An opened table of departures.
#[derive(Debug)]
pub struct OpenedTable {
    reader: DepartureReader,
    chosen: Option<PacketFilter<Rows>>,
    stop: Option<Stop>,
    origin: Origin,
}

impl OpenedTable {
    pub(crate) fn open(input: &Input, options: &TableOptions, stop: Option<&Stop>) -> Result<Self, Error> {
        let only = input.only.as_deref();
        let chosen = PacketFilter::from_flag(Flag::Input, only)?;
        let reader = table_until(&input.file, options.clone(), stop)?;
        Ok(Self { reader, chosen, stop: stop.cloned(), origin: Origin::new(&input.file, only) })
    }

    /// Departures of a reader, such as one of Arrow batches. If `only` is given, only packets that match this expression are read. Reading
    /// ends when a stop is requested, if `stop` is given.
    ///
    /// # Errors
    /// Fails if the expression is invalid.
    pub fn from_reader(reader: DepartureReader, only: Option<&str>, stop: Option<&Stop>) -> Result<Self, Error> {
        let chosen = PacketFilter::from_flag(Flag::Input, only)?;
        let origin = Origin { name: reader.name().to_owned(), length: None, only: only.map(str::to_owned) };
        Ok(Self { reader, chosen, stop: stop.cloned(), origin })
    }

    /// Reads the departures, and passes them to `listener`.
    ///
    /// # Errors
    /// Returns the error of the listener. Damage of the table is in [`Source::input`].
    pub fn read<L: Listener<Key = str>>(
        mut self,
        listener: &mut L,
        progress: Progress<'_>,
    ) -> Result<Source, L::Error> {
        let read = departures::read(&mut self.reader, self.chosen, self.stop.as_ref(), listener, progress)?;
        Ok(Source {
            input: model::Input {
                name: self.origin.name,
                format: self.reader.format().to_string(),
                first_ns: read.span.0.0,
                damage: read.damage,
            },
            packets: read.packets,
            bytes: read.bytes,
            span: read.span,
            super_packets: 0,
            rate: None,
            aqm: None,
            limit: AS_IT_WAS.to_owned(),
            speedup: "1".to_owned(),
            overhead: "none".to_owned(),
            on_link: 0,
            inner: false,
            split_gso: false,
            only: self.origin.only,
            knows_drops: false,
            skipped: read.skipped,
            read_error: None,
        })
    }

    /// The size of its file in bytes, if it is a regular file.
    pub fn length(&self) -> Option<u64> {
        self.origin.length
    }
}

/// Opens a table. It is read to its end, or until a signal comes if `stop` is given.
fn table_until(path: &Path, options: TableOptions, stop: Option<&Stop>) -> Result<DepartureReader, Error> {
    let name = "standard input";
    Ok(match stop {
        _ if !is_standard_input(path) => DepartureReader::open(path, options),
        Some(stop) => {
            let input = Stoppable::standard_input(stop).map_err(Error::StandardInput)?;
            DepartureReader::from_csv(input, name, options)
        }
        None => DepartureReader::from_csv(io::stdin(), name, options),
    }?)
}
