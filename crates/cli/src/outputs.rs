//! What is written for each packet: the annotated capture and the table of departures.

use crate::analysis::Watcher;
use crate::annotate::Annotator;
use anyhow::{Context, Result};
use queuescope_meter::Contribution;
use queuescope_pcap::Record;
use queuescope_queue::DropReason;
use queuescope_table::{DepartureRow, DepartureWriter};
use queuescope_wire::{Departure, FlowId, Nanos, Packet};
use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The per-packet outputs that were asked for. An error is kept, and ends the run at the next packet.
#[derive(Default)]
pub struct Outputs {
    annotator: Option<(PathBuf, Annotator<BufWriter<File>>)>,
    table: Option<(PathBuf, DepartureWriter<BufWriter<File>>)>,
    /// Names of flows, by id.
    names: Vec<Option<Box<str>>>,
    failure: Option<anyhow::Error>,
}

impl Outputs {
    /// Creates the files, so that what cannot be written fails before the work is done.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn create(pcapng: Option<&Path>, parquet: Option<&Path>) -> Result<Self> {
        let annotator = pcapng.map(|path| {
            let annotator = Annotator::new(BufWriter::new(create(path)?)).with_context(|| cannot_write(path))?;
            anyhow::Ok((path.to_owned(), annotator))
        });
        let table = parquet.map(|path| {
            let writer =
                DepartureWriter::new(BufWriter::new(create(path)?), Nanos::ZERO).with_context(|| cannot_write(path))?;
            anyhow::Ok((path.to_owned(), writer))
        });
        Ok(Self { annotator: annotator.transpose()?, table: table.transpose()?, ..Self::default() })
    }

    /// A frame was read, which becomes these packets: none if it is left out.
    ///
    /// # Errors
    /// What went wrong since the last frame.
    pub fn read(&mut self, record: &Record<'_>, time: Nanos, packets: Range<u64>) -> Result<()> {
        if let Some((path, annotator)) = &mut self.annotator {
            annotator.read(record, time, packets).with_context(|| cannot_write(path))?;
        }
        self.check()
    }

    /// What went wrong since the last call.
    ///
    /// # Errors
    /// That.
    pub fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Ends the files.
    ///
    /// # Errors
    /// If they could not be written.
    pub fn finish(mut self) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if let Some((path, annotator)) = self.annotator {
            annotator.finish().with_context(|| cannot_write(&path))?;
        }
        if let Some((path, table)) = self.table {
            let mut out = table.finish().with_context(|| cannot_write(&path))?;
            std::io::Write::flush(&mut out).with_context(|| cannot_write(&path))?;
        }
        Ok(())
    }

    fn try_departed(
        &mut self,
        departure: &Departure,
        flow: FlowId,
        part: Option<Contribution>,
        name: impl FnOnce() -> String,
    ) -> Result<()> {
        if let (Some((path, annotator)), Some(part)) = (&mut self.annotator, part) {
            annotator.departed(departure, part).with_context(|| cannot_write(path))?;
        }
        if let Some((path, table)) = &mut self.table {
            if self.names.len() <= flow.index() {
                self.names.resize(flow.index() + 1, None);
            }
            let name = self.names[flow.index()].get_or_insert_with(|| name().into_boxed_str());
            let packet = departure.packet;
            let row = DepartureRow {
                packet: packet.id.0 + 1,
                flow: name,
                size: packet.size.0 as u32,
                class: packet.class.0,
                ecn: packet.ecn,
                enqueued: departure.enqueued,
                dequeued: departure.dequeued,
                backlog_packets: departure.backlog_in.packets,
                backlog_bytes: departure.backlog_in.bytes.0,
                own_bytes: part.map(|part| part.own),
            };
            table.write(&row).with_context(|| cannot_write(path))?;
        }
        Ok(())
    }
}

impl Watcher for Outputs {
    #[inline]
    fn wants_parts(&self) -> bool {
        self.annotator.is_some() || self.table.is_some()
    }

    #[inline]
    fn departed(
        &mut self,
        departure: &Departure,
        flow: FlowId,
        part: Option<Contribution>,
        name: impl FnOnce() -> String,
    ) {
        if self.wants_parts() && self.failure.is_none() {
            self.failure = self.try_departed(departure, flow, part, name).err();
        }
    }

    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        if let Some((path, annotator)) = &mut self.annotator
            && self.failure.is_none()
        {
            self.failure = annotator.dropped(packet, reason).with_context(|| cannot_write(path)).err();
        }
    }

    fn forget(&mut self, flow: FlowId) {
        if let Some(name) = self.names.get_mut(flow.index()) {
            *name = None;
        }
    }
}

/// Creates a file that the user asked for.
///
/// # Errors
/// Named after the file.
pub fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| cannot_write(path))
}

/// The context of every error about an output.
pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
