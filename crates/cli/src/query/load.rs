//! A capture as a log.

use crate::args::Query;
use crate::capture::{file_notes, noted, parser_notes};
use crate::progress::Progress;
use crate::source::length;
use anyhow::Result;
use queuescope_log::packet::{self, Captured, SIZE};
use queuescope_log::{Log, Memory, Options, Schema};
use queuescope_pcap::CaptureReader;
use queuescope_report::model::Skipped;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use std::path::Path;

/// Frames that are appended at once.
const BATCH: usize = 64;

/// A capture in memory.
#[derive(Debug)]
pub struct Loaded {
    /// What it is called, and its format.
    pub name: String,
    /// See `name`.
    pub format: String,
    /// Its frames.
    pub log: Log,
    /// When the first was captured.
    pub first: Nanos,
    /// What was remarkable.
    pub skipped: Vec<Skipped>,
    /// What ended it early.
    pub damage: Option<String>,
}

/// Reads a capture into a log.
///
/// # Errors
/// If there is no memory.
pub fn capture(mut reader: CaptureReader, path: &Path, args: &Query) -> Result<Loaded> {
    let log = Log::new(
        Schema::packet().clone(),
        Options { records: (args.memory.0 / SIZE as u64).max(1), memory: Memory::Lazy },
    )?;
    let mut parser = Parser::new(if args.inner { Tunnel::Inner } else { Tunnel::Outer });
    let progress = Progress::new(length(path));
    let mut batch = Vec::with_capacity(BATCH * SIZE);
    let mut record = [0; SIZE];
    let (mut frames, mut refused) = (0u64, 0);
    let (mut first, mut now) = (None, Nanos::ZERO);
    let damage = loop {
        if frames.is_multiple_of(65_536) {
            progress.update(reader.input_read(), frames);
        }
        let frame = match reader.next_record() {
            Ok(Some(frame)) => frame,
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        };
        frames += 1;
        // One without a time came with the one before.
        now = frame.time.unwrap_or(now);
        first.get_or_insert(now);
        let link = LinkType::from_dlt(frame.link);
        let parsed = parser.parse(link, frame.original_len, frame.data);
        let captured = Captured { at: now, link, original_len: frame.original_len, data: frame.data };
        packet::fill(&mut record, &captured, &parsed, None);
        batch.extend_from_slice(&record);
        if batch.len() == BATCH * SIZE {
            refused += log.append(&batch).refused;
            batch.clear();
        }
    };
    refused += log.append(&batch).refused;
    progress.finish();
    let over = noted("over_memory", refused, "packets for which --memory is too little; left out");
    let skipped = over.into_iter().chain(file_notes(&reader)).chain(parser_notes(&parser)).collect();
    Ok(Loaded {
        name: path.display().to_string(),
        format: reader.format().to_string(),
        first: first.unwrap_or_default(),
        skipped,
        damage,
        log,
    })
}
