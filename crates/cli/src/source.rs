//! Where departures come from: a capture that is replayed, or a table; and what is told of them.

use crate::args::{Focus, Input, Keys, Table};
use crate::arriving::Arriving;
use crate::capture::{self, Reading};
use crate::chosen::{Chosen, Flag};
use crate::departures;
use crate::listener::Listener;
use crate::paths::{is_standard_input, length};
use crate::progress::Progress;
use crate::records::{Frames, Rows};
use crate::stop::{Stop, Stoppable};
use anyhow::{Context, Result, anyhow};
use queuescope_pcap::OpenError;
use queuescope_queue::{Limit, Outlet, TailDrop, TailDropParams};
use queuescope_report::model;
use queuescope_sim::Replay;
use queuescope_table::{DepartureReader, TableOptions};
use queuescope_wire::parse::Tunnel;
use queuescope_wire::{Flows, Granularity, KeyMask, MaskedKey, Nanos, QueueId, Rate};
use std::io;
use std::path::Path;

/// How packets came to the queue, and what was read.
#[derive(Debug)]
pub struct Source {
    /// What was read.
    pub input: model::Input,
    /// Packets that came to it, or left it.
    pub packets: u64,
    /// Their bytes, as the queue holds them.
    pub bytes: u64,
    /// When the first and the last packet came, on the clock of the replay.
    pub span: (Nanos, Nanos),
    /// Super-packets of segmentation offload.
    pub super_packets: u64,
    /// The link that drains the queue; none where departures came from elsewhere.
    pub rate: Option<Rate>,
    /// The queue's limit, the speedup and the overhead, as the user wrote them.
    pub limit: String,
    /// See `limit`.
    pub speedup: String,
    /// See `limit`.
    pub overhead: String,
    /// Bytes that the link adds to each packet as it sends it.
    pub on_link: u32,
    /// Whether flows inside of tunnels are told apart, and super-packets split.
    pub inner: bool,
    /// See `inner`.
    pub split_gso: bool,
    /// Which packets entered the queue, if an expression said so.
    pub only: Option<String>,
    /// Whether it is known whose packets were dropped.
    pub knows_drops: bool,
    /// What was skipped on the way to the queue.
    pub skipped: Vec<model::Skipped>,
}

/// An input that could be opened, with what is chosen of it.
pub enum Opened {
    /// A capture.
    Capture(OpenedCapture),
    /// A table of departures.
    Table(OpenedTable),
}

/// A capture that could be opened.
pub struct OpenedCapture {
    arriving: Arriving,
    chosen: Option<Chosen<Frames>>,
    /// Of the link that it is sent through.
    pub rate: Rate,
}

/// A table that could be opened.
pub struct OpenedTable {
    reader: DepartureReader,
    chosen: Option<Chosen<Rows>>,
    stop: Option<Stop>,
}

/// Opens the input, to be read until its end, or until a signal comes if one may `stop` it.
///
/// # Errors
/// If the expression means nothing; if the input cannot be read, or is not what it is said to be.
pub fn open(input: &Input, stop: Option<&Stop>) -> Result<Opened> {
    let only = input.only.as_deref();
    if let Some(rate) = input.rate.filter(|_| !input.table.departures) {
        let chosen = Chosen::of(Flag::Input, only)?;
        let arriving = Arriving::open(&input.file, stop).map_err(|error| match error.downcast_ref() {
            Some(OpenError::NotCapture { .. }) => {
                anyhow!("{error}; a table of departures is read with --departures in place of --rate")
            }
            _ => error,
        });
        return Ok(Opened::Capture(OpenedCapture { arriving: arriving?, chosen, rate }));
    }
    let chosen = Chosen::of(Flag::Input, only)?;
    let reader = table_until(&input.file, &input.table, stop)?;
    Ok(Opened::Table(OpenedTable { reader, chosen, stop: stop.cloned() }))
}

/// Opens a table of departures, or standard input as one.
///
/// # Errors
/// If it cannot be read, or is no such table.
pub fn open_table(path: &Path, table: &Table) -> Result<DepartureReader> {
    table_until(path, table, None)
}

/// The same, until a signal comes.
fn table_until(path: &Path, table: &Table, stop: Option<&Stop>) -> Result<DepartureReader> {
    let options = TableOptions { columns: table.map.clone().unwrap_or_default(), time_unit: table.time_unit };
    let name = "standard input";
    Ok(match stop {
        _ if !is_standard_input(path) => DepartureReader::open(path, options),
        Some(stop) => {
            let input = Stoppable::standard_input(stop).with_context(|| format!("cannot read {name}"))?;
            DepartureReader::from_csv(input, name, options)
        }
        None => DepartureReader::from_csv(io::stdin(), name, options),
    }?)
}

/// The granularities that were asked for, each once.
pub fn granularities(keys: &Keys) -> Vec<Granularity> {
    let mut granularities = Vec::new();
    for granularity in &keys.by {
        if !granularities.contains(granularity) {
            granularities.push(*granularity);
        }
    }
    granularities
}

/// What of a packet's key is kept: what the granularities need, or all of it where an expression says which packets are victims.
pub fn mask(keys: &Keys, focus: &Focus) -> KeyMask {
    if focus.victims.is_some() { KeyMask::WHOLE } else { KeyMask::covering(&granularities(keys)) }
}

/// A door for keys of which that is kept, which takes idle flows back before it holds more than `limit`.
pub fn flows(keys: &Keys, focus: &Focus, limit: usize) -> Flows {
    Flows::masked(mask(keys, focus), &granularities(keys), limit)
}

/// Replays a capture through a queue.
///
/// # Errors
/// If the listener fails. Damage is told by the source's `input`.
pub fn replay(
    opened: OpenedCapture,
    input: &Input,
    (keys, focus): (&Keys, &Focus),
    listener: &mut impl Listener<Key = MaskedKey>,
) -> Result<Source> {
    let OpenedCapture { mut arriving, chosen, rate } = opened;
    let limit = input.queue.limit;
    let on_link = input.queue.overhead.on_frame();
    let outlet = Outlet { rate, overhead: on_link, queue: QueueId(0), seed: 0 };
    let queue = TailDrop::new(TailDropParams { limit }, outlet);
    let reading = Reading {
        mask: mask(keys, focus),
        tunnel: if keys.inner { Tunnel::Inner } else { Tunnel::Outer },
        overhead: input.queue.overhead,
        speedup: input.queue.speedup,
        mtu: input.queue.mtu,
        split: input.queue.split_gso,
    };
    let progress = Progress::new(length(&input.file));
    let read = capture::replay(&mut arriving, reading, chosen, Replay::new(queue, &outlet), listener, &progress)?;
    progress.finish();
    Ok(Source {
        input: model::Input {
            name: input.file.display().to_string(),
            format: arriving.reader.format().to_string(),
            first_ns: read.first.0,
            damage: read.damage.as_ref().map(ToString::to_string),
        },
        packets: read.packets,
        bytes: read.bytes,
        span: read.span,
        super_packets: read.super_packets,
        rate: Some(rate),
        limit: limit_name(limit),
        speedup: input.queue.speedup.to_string(),
        overhead: input.queue.overhead.to_string(),
        on_link,
        inner: keys.inner,
        split_gso: input.queue.split_gso,
        only: input.only.clone(),
        knows_drops: true,
        skipped: read.skipped,
    })
}

/// Reads a table of departures.
///
/// # Errors
/// If the listener fails. Damage is told by the source's `input`.
pub fn table(opened: OpenedTable, input: &Input, listener: &mut impl Listener<Key = str>) -> Result<Source> {
    let OpenedTable { mut reader, chosen, stop } = opened;
    let progress = Progress::new(length(&input.file));
    let read = departures::read(&mut reader, (chosen, stop.as_ref()), listener, &progress)?;
    progress.finish();
    Ok(Source {
        input: model::Input {
            name: input.file.display().to_string(),
            format: reader.format().to_string(),
            first_ns: read.span.0.0,
            damage: read.damage,
        },
        packets: read.packets,
        bytes: read.bytes,
        span: read.span,
        super_packets: 0,
        rate: None,
        limit: "as it was".to_owned(),
        speedup: "1".to_owned(),
        overhead: "none".to_owned(),
        on_link: 0,
        inner: false,
        split_gso: false,
        only: input.only.clone(),
        knows_drops: false,
        skipped: read.skipped,
    })
}

/// A limit as the report shows it.
fn limit_name(limit: Limit) -> String {
    match limit {
        Limit::None => "none".to_owned(),
        Limit::Bytes(bytes) => bytes.to_string(),
        Limit::Packets(1) => "1 packet".to_owned(),
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Time(time) => time.to_string(),
    }
}
