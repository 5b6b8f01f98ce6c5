//! From what the kernel hands over to departures.

use crate::owners::FlowOwners;
use crate::view::View;
use queuescope_analysis::{Analysis, Watcher};
use queuescope_ingest::notes::{noted, parser_notes};
use queuescope_ingest::records::{Departures, Unknown};
use queuescope_ingest::{ExpressionError, Flag, Listener, PacketFilter};
use queuescope_live::{Left, Probe, ProbeError, now, to_epoch};
use queuescope_pcap::Record;
use queuescope_report::model::Skipped;
use queuescope_sim::Output;
use queuescope_wire::parse::{LinkType, Parser, Tunnel};
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Flows, KeyMask, Nanos, Packet, PacketId, QueueId};
use std::collections::VecDeque;

/// The numbers of link types, as captures have them: Ethernet, and IP without it.
const ETHERNET: u32 = 1;
const RAW: u32 = 101;

/// Packets on their way from the kernel to an analysis.
pub struct Feed {
    parser: Parser,
    mask: KeyMask,
    chosen: Option<PacketFilter<Departures>>,
    /// What came at once, which is put in order.
    batch: Vec<Held>,
    /// When it was begun, by the kernel's clock, and what makes that the time of day.
    pub origin: Nanos,
    /// See `origin`.
    pub to_epoch: u64,
    /// Departures are told in order.
    last: Nanos,
    /// What was dropped, and when, that is not handed over yet.
    dropped: VecDeque<Dropped>,
    next_id: u64,
    told: Backlog,
    late: u64,
    /// Super-packets.
    pub super_packets: u64,
}

/// What sees each packet.
pub struct Seen<'a, W> {
    /// The analysis.
    pub analysis: &'a mut Analysis<Flows, W>,
    /// What a person sees meanwhile.
    pub view: Option<&'a mut View>,
    /// Whose flows they are.
    pub owners: &'a mut FlowOwners,
}

/// Packets that were dropped some time in `[from, to]`.
struct Dropped {
    from: Nanos,
    to: Nanos,
    packets: u64,
}

/// A packet as the kernel told it.
struct Held {
    enqueued: Nanos,
    dequeued: Nanos,
    digest: u64,
    bytes: u32,
    packets: u32,
    queue: u32,
    framed: bool,
    headers: Vec<u8>,
}

impl Feed {
    /// For packets of which an expression holds, if there is one; `mask` is what of their keys counts, and flows are those inside
    /// of tunnels if they are `inner`.
    ///
    /// # Errors
    /// If the expression means nothing.
    pub fn new(only: Option<&str>, mask: KeyMask, inner: bool) -> Result<Self, ExpressionError> {
        Ok(Self {
            parser: Parser::new(if inner { Tunnel::Inner } else { Tunnel::Outer }),
            mask,
            chosen: PacketFilter::where_unknown(Flag::Input, only, Unknown::OF_OUTSIDE)?,
            batch: Vec::new(),
            origin: now(),
            to_epoch: to_epoch(),
            last: Nanos::ZERO,
            dropped: VecDeque::new(),
            next_id: 0,
            told: Backlog::default(),
            late: 0,
            super_packets: 0,
        })
    }

    /// The kernel counted drops between two looks.
    pub fn dropped(&mut self, from: Nanos, to: Nanos, packets: u64) {
        if packets > 0 {
            self.dropped.push_back(Dropped { from, to, packets });
        }
    }

    /// Hands over what there is; how many packets left.
    ///
    /// # Errors
    /// Those of the kernel, and of what watches packets beside the analysis.
    pub fn take<W: Watcher, E: From<ProbeError> + From<W::Error>>(
        &mut self,
        probe: &mut Probe,
        seen: &mut Seen<'_, W>,
    ) -> Result<u64, E> {
        let mut batch = std::mem::take(&mut self.batch);
        let came = probe.left(|left| batch.push(Held::of(&left)))?;
        // Queues of one interface leave their packets side by side.
        batch.sort_by_key(|held| held.dequeued);
        for held in &batch {
            self.lose_before(held.dequeued, seen.analysis);
            self.departed(held, seen)?;
        }
        if came < Probe::AT_ONCE {
            self.lose_before(Nanos::MAX, seen.analysis);
        }
        batch.clear();
        self.batch = batch;
        Ok(came)
    }

    /// Hands over what may have been dropped before a time.
    fn lose_before<W: Watcher>(&mut self, time: Nanos, analysis: &mut Analysis<Flows, W>) {
        while let Some(Dropped { from, to, packets }) = self.dropped.front().filter(|dropped| dropped.from < time) {
            analysis.lost(*from, *to, *packets);
            self.dropped.pop_front();
        }
    }

    fn departed<W: Watcher>(&mut self, held: &Held, seen: &mut Seen<'_, W>) -> Result<(), W::Error> {
        let Seen { analysis, view, owners } = seen;
        let link = if held.framed { ETHERNET } else { RAW };
        let frame = self.parser.parse(LinkType::from_dlt(link), held.bytes, &held.headers);
        self.told.packets += u64::from(held.packets);
        self.told.bytes += ByteCount(u64::from(held.bytes));
        self.super_packets += u64::from(held.packets > 1);
        let is_late = held.dequeued < self.last;
        self.late += u64::from(is_late);
        let dequeued = held.dequeued.max(self.last);
        let flow = analysis.intern(&self.mask.mask(&frame.key), dequeued);
        let departure = |id: u64, size: u32| Departure {
            packet: Packet {
                id: PacketId(id),
                flow,
                size: ByteCount(u64::from(size)),
                class: Class(0),
                ecn: frame.ecn,
            },
            queue: QueueId(held.queue as u16),
            enqueued: held.enqueued.min(dequeued),
            dequeued,
            backlog_in: Backlog::default(),
            backlog_out: Backlog::default(),
        };
        let first = self.next_id;
        let whole = departure(first, held.bytes);
        if self.chosen.as_mut().is_some_and(|chosen| !chosen.holds(&whole, &frame.key)) {
            return Ok(());
        }
        owners.seen(&frame.key, dequeued);
        if let Some(view) = view {
            let delay = dequeued.saturating_sub(whole.enqueued);
            view.departed(&frame.key, held.digest, u64::from(held.bytes), delay, dequeued);
        }
        self.last = dequeued;
        self.next_id += u64::from(held.packets);
        let time = Nanos(held.enqueued.0.saturating_add(self.to_epoch));
        let record = Record { time: Some(time), link, interface: 0, original_len: held.bytes, data: &held.headers };
        analysis.read(&record, frame, time, first..self.next_id)?;
        // A super-packet is the packets that it is on the wire.
        let (each, rest) = (held.bytes / held.packets, held.bytes % held.packets);
        for id in first..self.next_id {
            let size = if id + 1 == self.next_id { each + rest } else { each };
            if is_late {
                analysis.moved();
            }
            analysis.departed(&departure(id, size));
        }
        Ok(())
    }

    /// What of all that left was not told.
    pub fn rest(&self, all: Backlog) -> Backlog {
        Backlog {
            packets: all.packets.saturating_sub(self.told.packets),
            bytes: ByteCount(all.bytes.0.saturating_sub(self.told.bytes.0)),
        }
    }

    /// What was remarkable.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> {
        let left_out = self.chosen.as_ref().and_then(PacketFilter::note);
        let late = "packets that left before others that were told first; taken to leave with them";
        let late = noted("out_of_order", self.late, late);
        left_out.into_iter().chain(late).chain(parser_notes(&self.parser))
    }
}

impl Held {
    fn of(left: &Left<'_>) -> Self {
        Self {
            enqueued: left.enqueued,
            dequeued: left.dequeued,
            digest: left.digest,
            bytes: left.bytes,
            packets: left.packets.max(1),
            queue: left.queue,
            framed: left.framed,
            headers: left.headers.to_vec(),
        }
    }
}
