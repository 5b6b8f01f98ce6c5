//! Per-packet outputs: the annotated capture, the table of departures, and the log.

use crate::annotate::Annotator;
use crate::atomic_file::AtomicFile;
use crate::error::Error;
use crate::queued::{PendingPackets, QueuedLog};
use crate::recording::Recorded;
use crate::spool::{Spool, Unwritten};
use queuescope_analysis::Watcher;
use queuescope_ingest::Stop;
use queuescope_log::packet;
use queuescope_meter::Contribution;
use queuescope_pcap::Record;
use queuescope_queue::Dropped;
use queuescope_report::model::Skipped;
use queuescope_table::{DepartureRow, DepartureWriter};
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, Nanos, PacketId};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

type Table = DepartureWriter<BufWriter<AtomicFile>>;

/// The per-packet outputs of a run. Packets that cannot be written are counted, and the run goes on: a full disk does not cost the report. Any
/// other error is kept, and ends the run at the next packet.
#[derive(Default)]
pub struct Outputs {
    annotator: Option<(PathBuf, Annotator<Spool>)>,
    table: Option<(PathBuf, Table)>,
    log: Option<PendingPackets>,
    /// Rows for the table, and why it cannot be written.
    rows: u64,
    table_lost: Option<Unwritten>,
    /// Names of flows, by id.
    names: Vec<Option<Box<str>>>,
    failure: Option<Error>,
}

impl Outputs {
    /// Creates the files, so that a path that cannot be written fails before the work is done.
    ///
    /// # Errors
    /// Fails if a file cannot be created.
    pub fn create(pcapng: Option<&Path>, parquet: Option<&Path>, log: Option<QueuedLog>) -> Result<Self, Error> {
        let annotator = pcapng.map(begin_annotated).transpose()?;
        let table = parquet.map(begin_table).transpose()?;
        Ok(Self { annotator, table, log: log.map(PendingPackets::new), ..Self::default() })
    }

    /// Adds this many nanoseconds to the times of departures and drops in the log, if they count from another moment than the Unix epoch.
    #[must_use]
    pub fn shifting_times(mut self, to_epoch: u64) -> Self {
        if let Some(log) = &mut self.log {
            log.shift_times(to_epoch);
        }
        self
    }

    /// Notes what has been left out so far, for later questions about the log: see [`Recording::left_out`](crate::Recording::left_out).
    pub fn left_out(&self, now: Nanos, slack: Nanos, totals: &[Skipped]) {
        if let Some(log) = &self.log {
            log.left_out(now, slack, totals);
        }
    }

    /// What could not be written so far, for each output.
    pub fn unwritten(&mut self) -> Vec<Unwritten> {
        let capture = self.annotator.as_mut().and_then(|(_, annotator)| annotator.get_mut().unwritten().cloned());
        let log = self.log.as_ref().and_then(PendingPackets::unwritten);
        capture.into_iter().chain(self.table_lost.clone()).chain(log).collect()
    }

    /// Ends the files and the log, even if one of them fails. Returns what was put into the log, if there is one, and what could not be written.
    ///
    /// # Errors
    /// Fails if they could not be ended.
    pub fn finish(mut self) -> Result<Written, Error> {
        let log = self.log.take().map(PendingPackets::finish).transpose();
        match (self.end_files(), log) {
            (Ok(unwritten), Ok(recorded)) => Ok(Written { recorded, unwritten }),
            (Err(error), Err(other)) => Err(Error::both(error, other)),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        }
    }

    fn end_files(mut self) -> Result<Vec<Unwritten>, Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut unwritten = Vec::new();
        if let Some((path, annotator)) = self.annotator {
            let spool = annotator.finish().map_err(Error::write(&path))?;
            unwritten.extend(spool.unwritten().cloned());
        }
        if let Some((path, table)) = self.table.take() {
            self.table_lost = end(table).err().map(|why| Unwritten::new("parquet", &path, &why));
        }
        // A table without its end cannot be read.
        unwritten.extend(self.table_lost.map(|lost| Unwritten { packets: self.rows, ..lost }));
        Ok(unwritten)
    }

    fn try_departed(
        &mut self,
        departure: &Departure,
        flow: FlowId,
        part: Option<Contribution>,
        name: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        if let Some((path, annotator)) = &mut self.annotator {
            let written = match part {
                Some(part) => annotator.departed(departure, part),
                None => annotator.passed(departure.packet),
            };
            written.map_err(Error::write(path))?;
        }
        self.rows += 1;
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
            if let Err(why) = table.write(&row) {
                self.table_lost = Some(Unwritten::new("parquet", path, &why));
                self.table = None;
            }
        }
        self.log.as_mut().map_or(Ok(()), |log| log.departed(departure, flow))
    }

    fn try_dropped(&mut self, dropped: &Dropped, flow: FlowId) -> Result<(), Error> {
        if let Some((path, annotator)) = &mut self.annotator {
            annotator.dropped(dropped.packet, dropped.reason).map_err(Error::write(path))?;
        }
        self.log.as_mut().map_or(Ok(()), |log| log.dropped(dropped, flow))
    }
}

impl Watcher for Outputs {
    type Error = Error;

    #[inline]
    fn wants_parts(&self) -> bool {
        self.annotator.is_some() || self.table.is_some()
    }

    #[inline]
    fn wants_packets(&self) -> bool {
        self.wants_parts() || self.log.is_some()
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

    fn came(&mut self, packet: PacketId, headers: [u8; packet::SIZE]) {
        if let Some(log) = &mut self.log {
            log.came(headers, packet.0..packet.0 + 1);
        }
    }

    #[inline(never)]
    fn read(&mut self, record: &Record<'_>, frame: Frame, time: Nanos, packets: Range<u64>) -> Result<(), Error> {
        if let Some(log) = &mut self.log {
            log.read(record, &frame, time, packets.clone());
        }
        if let Some((path, annotator)) = &mut self.annotator {
            annotator.read(record, time, packets).map_err(Error::write(path))?;
        }
        self.check()
    }

    fn starts_at(&mut self, origin: Nanos) {
        if let Some(log) = &mut self.log {
            log.shift_times(origin.0);
        }
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        self.check()?;
        self.log.as_ref().map_or(Ok(()), PendingPackets::hand_over)
    }

    fn check(&mut self) -> Result<(), Error> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Creates an annotated capture. Packets that cannot be written from then on are counted.
fn begin_annotated(path: &Path) -> Result<(PathBuf, Annotator<Spool>), Error> {
    let begin = || {
        let mut annotator = Annotator::new(Spool::new(path, File::create(path)?))?;
        annotator.get_mut().flush()?;
        annotator.get_mut().go_on();
        Ok(annotator)
    };
    Ok((path.to_owned(), begin().map_err(Error::write(path))?))
}

fn begin_table(path: &Path) -> Result<(PathBuf, Table), Error> {
    let table = Table::new(BufWriter::new(AtomicFile::create(path)?), Nanos::ZERO).map_err(Error::table(path))?;
    Ok((path.to_owned(), table))
}

fn end(table: Table) -> Result<(), Box<dyn std::error::Error>> {
    Ok(AtomicFile::commit_written(table.finish()?)?)
}

/// The result of the per-packet outputs.
#[derive(Debug, Default)]
pub struct Written {
    /// What was put into the log, if there is one.
    pub recorded: Option<Recorded>,
    /// What could not be written to files.
    pub unwritten: Vec<Unwritten>,
}

impl Written {
    /// Adds a note if a signal ended the run early.
    pub fn ended_by(mut self, stop: Option<&Stop>) -> Self {
        if let Some(recorded) = &mut self.recorded {
            recorded.others.extend(stop.and_then(Stop::note));
        }
        self
    }

    /// The notes for a report.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> {
        self.recorded.iter().flat_map(Recorded::notes).chain(self.unwritten.iter().flat_map(Unwritten::notes))
    }

    /// What is missing from the outputs.
    pub fn damage(&self) -> Option<String> {
        let recorded = self.recorded.as_ref().and_then(Recorded::damage);
        let all: Vec<_> = self.unwritten.iter().map(Unwritten::damage).chain(recorded).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}
