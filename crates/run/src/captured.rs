//! Reads a capture as cross traffic of a simulation.

use crate::error::Error;
use queuescope_ingest::notes::{file_notes, noted, parser_notes};
use queuescope_ingest::open_capture;
use queuescope_report::model::Skipped;
use queuescope_sim::workload::CapturedPacket;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{ByteCount, FlowId, FlowKey, Nanos};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Reads the packets of a capture, from their network headers on, and notes on what was left out.
///
/// # Errors
/// Fails if the file cannot be read, or is not a capture. If it is damaged, the packets before the damage are returned, with a note.
pub fn read(path: &Path) -> Result<(Arc<[CapturedPacket]>, Vec<Skipped>), Error> {
    let mut reader = open_capture(path)?;
    let mut parser = Parser::new(Tunnel::Outer);
    let mut flows: BTreeMap<FlowKey, FlowId> = BTreeMap::new();
    let (mut packets, mut last) = (Vec::new(), Nanos::ZERO);
    let damage = loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break None,
            Err(error) => break Some(error),
        };
        last = record.time.unwrap_or(last);
        let frame = parser.parse(LinkType::from_dlt(record.link), record.original_len, record.data);
        let bytes = frame.size.saturating_sub(u32::from(frame.link_header)).max(1);
        let next = FlowId(flows.len() as u32);
        let flow = *flows.entry(frame.key).or_insert(next);
        packets.push(CapturedPacket { at: last, size: ByteCount(u64::from(bytes)), flow });
    };
    let mut skipped: Vec<_> = file_notes(&reader).chain(parser_notes(&parser)).collect();
    skipped.extend(damage.and_then(|why| noted("damaged_capture", 1, &format!("not all of it is sent: {why}"))));
    Ok((packets.into(), skipped))
}
