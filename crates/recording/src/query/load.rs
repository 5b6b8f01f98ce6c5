//! Loads a capture, a table of departures or a folder for queries.

use super::held::Held;
use crate::error::Error;
use queuescope_analysis::name_digest;
use queuescope_archive::{ArchiveQuery, FolderError, History};
use queuescope_ingest::Progress;
use queuescope_ingest::notes::{file_notes, noted, parser_notes, unnamed};
use queuescope_ingest::records::{Frames, Records};
use queuescope_ingest::rows::Rows;
use queuescope_ingest::rows::{damage, malformed, odd};
use queuescope_log::{AttributeId, Dnf, Kind, Log, Memory, Options, Schema};
use queuescope_pcap::CaptureReader;
use queuescope_report::model::Skipped;
use queuescope_table::DepartureReader;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{ByteCount, FlowId, FlowTable, Nanos};
use std::ops::ControlFlow;
use std::path::Path;

/// Records that are appended at once.
const BATCH: usize = 64;
/// The memory for groups of a folder's packets, by default.
const GROUPS: ByteCount = ByteCount(512_000_000);
/// The least memory for groups: with less, there would be very many passes.
const LEAST_GROUPS: ByteCount = ByteCount(8_000_000);
/// Records between updates of the progress.
const UPDATE: u64 = 65_536;

/// How a capture or a table is read into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Limit of memory for records; packets that do not fit are left out, and counted.
    pub memory: ByteCount,
    /// Whether to use addresses and ports inside tunnels.
    pub inner: bool,
}

impl Default for LoadOptions {
    /// Four gigabytes, and the outermost headers.
    fn default() -> Self {
        Self { memory: ByteCount(4_000_000_000), inner: false }
    }
}

/// Packets that can be queried.
#[derive(Debug)]
pub struct Loaded {
    /// The name of the input.
    pub name: String,
    /// The format of the input.
    pub format: String,
    /// The records.
    pub held: Held,
    /// When the first packet came.
    pub first: Nanos,
    /// Notes.
    pub skipped: Vec<Skipped>,
    /// What ended the input early, or what is known to be missing before the first query.
    pub damage: Option<String>,
    /// Packets that did not fit in memory.
    pub refused: u64,
    /// Limit of memory for groups.
    pub(super) memory: ByteCount,
    /// Attributes that are points in time, which count from the first packet; other times are durations.
    moments: Vec<AttributeId>,
    /// The attribute with the number of a flow, and the names of flows.
    flows: Option<(AttributeId, FlowTable<Box<str>>)>,
}

impl Loaded {
    /// Reads a capture into memory.
    ///
    /// # Errors
    /// Fails if there is not enough memory.
    pub fn capture(
        mut reader: CaptureReader,
        path: &Path,
        options: LoadOptions,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let schema = Frames::schema();
        let mut filling = Filling::new(schema, options)?;
        let mut parser = Parser::new(if options.inner { Tunnel::Inner } else { Tunnel::Outer });
        let mut records = Frames::default();
        let (mut frames, mut first) = (0u64, None);
        let damage = loop {
            if frames.is_multiple_of(UPDATE) {
                progress(reader.input_read(), frames);
            }
            let frame = match reader.next_record() {
                Ok(Some(frame)) => frame,
                Ok(None) => break None,
                Err(error) => break Some(error.to_string()),
            };
            frames += 1;
            let time = records.time(&frame);
            first.get_or_insert(time.unwrap_or_default());
            let parsed = parser.parse(LinkType::from_dlt(frame.link), frame.original_len, frame.data);
            filling.push(records.fill(&frame, time, &parsed));
        };
        progress(reader.input_read(), frames);
        let (log, refused) = filling.finish();
        Ok(Self {
            name: path.display().to_string(),
            format: reader.format().to_string(),
            first: first.unwrap_or_default(),
            skipped: over_memory(refused).into_iter().chain(file_notes(&reader)).chain(parser_notes(&parser)).collect(),
            damage: damage.or_else(|| too_much(refused)),
            refused,
            memory: options.memory.max(LEAST_GROUPS),
            held: Held::Memory(Box::new(log)),
            moments: moments(schema),
            flows: None,
        })
    }

    /// Opens a recorded folder.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub fn folder(history: History, path: &Path) -> Result<Self, Error> {
        let moments = moments(history.schema());
        Ok(Self {
            name: path.display().to_string(),
            format: "log".to_owned(),
            first: Nanos(first(&history)?.unwrap_or_default()),
            held: Held::Folder(Box::new(history)),
            skipped: Vec::new(),
            damage: None,
            refused: 0,
            memory: GROUPS,
            moments,
            flows: None,
        })
    }

    /// Limits the memory for groups of packets. With more groups, the packets of a folder are read several times.
    #[must_use]
    pub fn with_memory(self, memory: ByteCount) -> Self {
        Self { memory: memory.max(LEAST_GROUPS), ..self }
    }

    /// Reads a table of departures into memory, in the order of its rows.
    ///
    /// # Errors
    /// Fails if there is not enough memory.
    pub fn table(
        mut reader: DepartureReader,
        path: &Path,
        options: LoadOptions,
        progress: Progress<'_>,
    ) -> Result<Self, Error> {
        let schema = Rows::schema();
        let mut filling = Filling::new(schema, options)?;
        let mut names = FlowTable::with_limit(usize::MAX);
        let mut records = Rows::default();
        let (mut rows, mut oversized, mut first) = (0u64, 0, None::<Nanos>);
        let ended = loop {
            if rows.is_multiple_of(UPDATE) {
                progress(reader.input_read(), rows);
            }
            let row = match reader.next_row() {
                Ok(Some(row)) => row,
                Ok(None) => break None,
                Err(error) => break Some(error),
            };
            oversized += u64::from(u32::try_from(row.size).is_err());
            first = Some(first.map_or(row.enqueued, |first| first.min(row.enqueued)));
            let (flow, _) = names.intern(row.flow, name_digest(row.flow), row.dequeued);
            filling.push(records.fill(&row, rows, flow));
            rows += 1;
        };
        progress(reader.input_read(), rows);
        let (log, refused) = filling.finish();
        let stats = reader.stats();
        let stay = "rows whose packet left before that of an earlier row; they stay in place";
        let notes = [
            over_memory(refused),
            unnamed(records.unnamed()),
            malformed(stats),
            noted("out_of_order", stats.out_of_order, stay),
        ];
        Ok(Self {
            name: path.display().to_string(),
            format: reader.format().to_string(),
            first: first.unwrap_or_default(),
            skipped: notes.into_iter().flatten().chain(odd(stats, oversized)).collect(),
            damage: damage(ended.as_ref(), stats).or_else(|| too_much(refused)),
            refused,
            memory: options.memory.max(LEAST_GROUPS),
            held: Held::Memory(Box::new(log)),
            moments: moments(schema),
            flows: schema.find("flow").map(|id| (id, names)),
        })
    }

    /// A time since the first packet as records have it; `none` if not given.
    pub fn at(&self, time: Option<Nanos>, none: u64) -> u64 {
        time.map_or(none, |time| self.first.saturating_add(time).0)
    }

    /// The origin of an attribute's values, as people read them.
    pub fn origin(&self, attribute: AttributeId) -> Nanos {
        if self.is_moment(attribute) { self.first } else { Nanos::ZERO }
    }

    /// Whether an attribute is a point in time.
    pub fn is_moment(&self, attribute: AttributeId) -> bool {
        self.moments.contains(&attribute)
    }

    /// The name of the flow with this number, if the attribute is a flow.
    pub fn flow(&self, attribute: AttributeId, number: u128) -> Option<&str> {
        let (_, names) = self.flows.as_ref().filter(|(id, _)| *id == attribute)?;
        Some(names.key(FlowId(u32::try_from(number).ok()?)))
    }
}

/// When the first packet of a folder came: a packet that passed a queue came before it left.
fn first(history: &History) -> Result<Option<u64>, FolderError> {
    let schema = history.schema();
    let Some(came) = time_named(schema, "enqueued") else { return history.first() };
    let (mut first, everything) = (None, Dnf::all());
    let read = history.each(
        ArchiveQuery { expression: &everything, from: 0, to: u64::MAX, needed: &[came] },
        &mut |_, record| {
            first = Some(schema.key(came, record) as u64);
            ControlFlow::Break(())
        },
    );
    // Damage behind the first record is reported by queries that read there.
    first.map_or_else(|| read.map(|_| None), |first| Ok(Some(first)))
}

/// Attributes that are points in time: the time of records, and those of a packet and its queue.
pub(super) fn moments(schema: &Schema) -> Vec<AttributeId> {
    let named = ["ts", "enqueued", "dequeued"].into_iter().filter_map(|name| time_named(schema, name));
    let mut moments: Vec<_> = schema.time().into_iter().chain(named).collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// The attribute of kind `time` with this name, if there is one.
fn time_named(schema: &Schema, name: &str) -> Option<AttributeId> {
    schema.find(name).filter(|id| schema.attribute(*id).kind == Kind::Time)
}

/// The number of records that fit in memory.
fn room(options: LoadOptions, schema: &Schema) -> u64 {
    (options.memory.0 / schema.record_size() as u64).max(1)
}

/// A log that is being filled.
struct Filling {
    log: Log,
    batch: Vec<u8>,
    full: usize,
    refused: u64,
}

impl Filling {
    fn new(schema: &Schema, options: LoadOptions) -> Result<Self, Error> {
        let size = schema.record_size();
        let room = Options { records: room(options, schema), memory: Memory::Lazy };
        let full = BATCH * size;
        Ok(Self { log: Log::new(schema.clone(), room)?, batch: Vec::with_capacity(full), full, refused: 0 })
    }

    #[inline]
    fn push<const SIZE: usize>(&mut self, record: &[u8; SIZE]) {
        self.batch.extend_from_slice(record);
        if self.batch.len() == self.full {
            self.append();
        }
    }

    fn append(&mut self) {
        self.refused += self.log.append(&self.batch).refused;
        self.batch.clear();
    }

    /// The log, and how many records did not fit.
    fn finish(mut self) -> (Log, u64) {
        self.append();
        (self.log, self.refused)
    }
}

/// Says that the input is incomplete.
fn too_much(refused: u64) -> Option<String> {
    (refused > 0).then(|| format!("--memory is too little for {refused} packets; only earlier packets are there"))
}

/// Packets that did not fit, for the report.
fn over_memory(packets: u64) -> Option<Skipped> {
    noted("over_memory", packets, "packets for which --memory is too little; left out")
}
