//! What is written for each packet: the annotated capture, the table of departures, the log.

use crate::analysis::Watcher;
use crate::annotate::Annotator;
use crate::outcome::both;
use crate::queued::{Passing, QueuedLog};
use crate::recording::Recorded;
use anyhow::{Context, Result};
use queuescope_log::packet;
use queuescope_meter::Contribution;
use queuescope_pcap::Record;
use queuescope_queue::Dropped;
use queuescope_table::{DepartureRow, DepartureWriter};
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, Nanos, PacketId};
use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The per-packet outputs that were asked for. An error is kept, and ends the run at the next packet.
#[derive(Default)]
pub struct Outputs {
    annotator: Option<(PathBuf, Annotator<BufWriter<File>>)>,
    table: Option<(PathBuf, DepartureWriter<BufWriter<File>>)>,
    log: Option<Passing>,
    /// Names of flows, by id.
    names: Vec<Option<Box<str>>>,
    failure: Option<anyhow::Error>,
}

impl Outputs {
    /// Creates the files, so that what cannot be written fails before the work is done.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn create(pcapng: Option<&Path>, parquet: Option<&Path>, log: Option<QueuedLog>) -> Result<Self> {
        let annotator = pcapng.map(|path| {
            let annotator = Annotator::new(BufWriter::new(create(path)?)).with_context(|| cannot_write(path))?;
            anyhow::Ok((path.to_owned(), annotator))
        });
        let table = parquet.map(|path| {
            let writer =
                DepartureWriter::new(BufWriter::new(create(path)?), Nanos::ZERO).with_context(|| cannot_write(path))?;
            anyhow::Ok((path.to_owned(), writer))
        });
        let log = log.map(Passing::new);
        Ok(Self { annotator: annotator.transpose()?, table: table.transpose()?, log, ..Self::default() })
    }

    /// A frame was read, which becomes these packets: none if it is left out.
    ///
    /// # Errors
    /// What went wrong since the last frame.
    #[inline(never)]
    pub fn read(&mut self, record: &Record<'_>, frame: Frame, time: Nanos, packets: Range<u64>) -> Result<()> {
        if let Some(log) = &mut self.log {
            log.read(record, &frame, time, packets.clone());
        }
        if let Some((path, annotator)) = &mut self.annotator {
            annotator.read(record, time, packets).with_context(|| cannot_write(path))?;
        }
        self.check()
    }

    /// A packet comes with such headers.
    pub fn came(&mut self, packet: PacketId, headers: [u8; packet::SIZE]) {
        if let Some(log) = &mut self.log {
            log.came(headers, packet.0..packet.0 + 1);
        }
    }

    /// The next packet may be a while: what is known goes to the log.
    ///
    /// # Errors
    /// If it cannot be kept, or something went wrong since the last frame.
    pub fn hand_over(&mut self) -> Result<()> {
        self.check()?;
        self.log.as_ref().map_or(Ok(()), Passing::hand_over)
    }

    /// What went wrong since the last call.
    ///
    /// # Errors
    /// That.
    pub fn check(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Whether it wants to know what comes and goes.
    #[inline]
    pub fn wants_packets(&self) -> bool {
        self.wants_parts() || self.log.is_some()
    }

    /// Ends the files and the log, whatever becomes of the other, and tells what was put into the log, if there is one.
    ///
    /// # Errors
    /// If they could not be written.
    pub fn finish(mut self) -> Result<Option<Recorded>> {
        let log = self.log.take().map(Passing::finish).transpose();
        Ok(both(self.end_files(), log)?.1)
    }

    fn end_files(self) -> Result<()> {
        if let Some(failure) = self.failure {
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
        self.log.as_mut().map_or(Ok(()), |log| log.departed(departure, flow))
    }

    fn try_dropped(&mut self, dropped: &Dropped, flow: FlowId) -> Result<()> {
        if let Some((path, annotator)) = &mut self.annotator {
            annotator.dropped(dropped.packet, dropped.reason).with_context(|| cannot_write(path))?;
        }
        self.log.as_mut().map_or(Ok(()), |log| log.dropped(dropped, flow))
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
        if self.wants_packets() && self.failure.is_none() {
            self.failure = self.try_departed(departure, flow, part, name).err();
        }
    }

    fn dropped(&mut self, dropped: &Dropped, flow: FlowId) {
        if self.wants_packets() && self.failure.is_none() {
            self.failure = self.try_dropped(dropped, flow).err();
        }
    }

    fn forget(&mut self, flow: FlowId) {
        if let Some(name) = self.names.get_mut(flow.index()) {
            *name = None;
        }
        if let Some(log) = &mut self.log {
            log.forget(flow);
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
