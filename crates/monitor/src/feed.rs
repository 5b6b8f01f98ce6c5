//! Converts the packets that the kernel hands over to departures.

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
use queuescope_wire::{Backlog, ByteCount, Class, Departure, Ecn, Flows, KeyMask, Nanos, Packet, PacketId, QueueId};
use std::collections::VecDeque;

/// Link types as in capture files: Ethernet, and IP without it.
const ETHERNET: u32 = 1;
const RAW: u32 = 101;

/// Passes packets from the kernel to an analysis.
pub struct Feed {
    parser: Parser,
    mask: KeyMask,
    chosen: Option<PacketFilter<Departures>>,
    /// The packets of one call, to be sorted by departure time.
    batch: Vec<KernelPacket>,
    /// The start of measuring, by the kernel's monotonic clock.
    pub origin: Nanos,
    /// The end: packets that left later are ignored.
    pub until: Nanos,
    /// The offset from the kernel's monotonic clock to the Unix epoch, ns.
    pub to_epoch: u64,
    /// The last departure time that was passed on; departures are passed on in order.
    last: Nanos,
    /// Drops that are not yet passed on.
    dropped: VecDeque<Dropped>,
    next_id: u64,
    handed_over: Backlog,
    /// Those of them whose arrival was not seen.
    unstamped: u64,
    late: u64,
    /// The number of super-packets.
    pub super_packets: u64,
}

/// The receivers of each packet.
pub struct Receivers<'a, W> {
    /// The analysis.
    pub analysis: &'a mut Analysis<Flows, W>,
    /// The view, if there is one.
    pub view: Option<&'a mut View>,
    /// The owners of flows.
    pub owners: &'a mut FlowOwners,
}

/// Packets that were dropped at an unknown time in `[from, to]`.
struct Dropped {
    from: Nanos,
    to: Nanos,
    packets: u64,
}

/// A packet as the kernel handed it over.
struct KernelPacket {
    enqueued: Nanos,
    dequeued: Nanos,
    is_stamped: bool,
    is_dropped: bool,
    ecn: Option<Ecn>,
    digest: u64,
    bytes: u32,
    packets: u32,
    queue: u32,
    framed: bool,
    headers: Vec<u8>,
}

impl Feed {
    /// Creates a feed of the packets for which the expression `only` holds, or of all. `mask` selects the fields of a key that define
    /// a flow. If `inner`, the flow of a tunnelled packet is the one inside the tunnel.
    ///
    /// # Errors
    /// Fails if the expression is invalid.
    pub fn new(only: Option<&str>, mask: KeyMask, inner: bool) -> Result<Self, ExpressionError> {
        Ok(Self {
            parser: Parser::new(if inner { Tunnel::Inner } else { Tunnel::Outer }),
            mask,
            chosen: PacketFilter::where_unknown(Flag::Input, only, Unknown::OF_OUTSIDE)?,
            batch: Vec::new(),
            origin: now(),
            until: Nanos::MAX,
            to_epoch: to_epoch(),
            last: Nanos::ZERO,
            dropped: VecDeque::new(),
            next_id: 0,
            handed_over: Backlog::default(),
            unstamped: 0,
            late: 0,
            super_packets: 0,
        })
    }

    /// The kernel counted `packets` drops between the two times.
    pub fn dropped(&mut self, from: Nanos, to: Nanos, packets: u64) {
        if packets > 0 {
            self.dropped.push_back(Dropped { from, to, packets });
        }
    }

    /// Passes on all packets that the kernel has ready, and returns how many there were.
    ///
    /// # Errors
    /// Returns the errors of the probe and of the watcher.
    pub fn take<W: Watcher, E: From<ProbeError> + From<W::Error>>(
        &mut self,
        probe: &mut Probe,
        receivers: &mut Receivers<'_, W>,
    ) -> Result<u64, E> {
        let mut batch = std::mem::take(&mut self.batch);
        let came = probe.left(|left| batch.push(KernelPacket::new(&left)))?;
        // The queues of an interface dequeue in parallel, so packets may arrive out of order.
        batch.sort_by_key(|packet| packet.dequeued);
        let until = self.until;
        for packet in batch.iter().filter(|packet| packet.dequeued <= until) {
            self.lose_before(packet.dequeued, receivers.analysis);
            if packet.is_dropped {
                self.lost(packet, receivers.analysis);
            } else {
                self.departed(packet, receivers)?;
            }
        }
        if came < Probe::AT_ONCE {
            self.lose_before(Nanos::MAX, receivers.analysis);
        }
        batch.clear();
        self.batch = batch;
        Ok(came)
    }

    /// Passes on the drops that may have happened before `time`.
    fn lose_before<W: Watcher>(&mut self, time: Nanos, analysis: &mut Analysis<Flows, W>) {
        while let Some(Dropped { from, to, packets }) = self.dropped.front().filter(|dropped| dropped.from < time) {
            analysis.lost(*from, *to, *packets);
            self.dropped.pop_front();
        }
    }

    /// Passes on the flow of a dropped packet, which is already among the [`dropped`](Self::dropped).
    fn lost<W: Watcher>(&mut self, packet: &KernelPacket, analysis: &mut Analysis<Flows, W>) {
        let frame = self.parser.parse(LinkType::from_dlt(packet.link()), packet.bytes, &packet.headers);
        analysis.lost_of(&self.mask.mask(&frame.key), packet.enqueued, packet.packets.into());
    }

    fn departed<W: Watcher>(
        &mut self,
        packet: &KernelPacket,
        receivers: &mut Receivers<'_, W>,
    ) -> Result<(), W::Error> {
        let Receivers { analysis, view, owners } = receivers;
        let link = packet.link();
        let frame = self.parser.parse(LinkType::from_dlt(link), packet.bytes, &packet.headers);
        self.handed_over.packets += u64::from(packet.packets);
        self.handed_over.bytes += ByteCount(u64::from(packet.bytes));
        self.unstamped += if packet.is_stamped { 0 } else { u64::from(packet.packets) };
        self.super_packets += u64::from(packet.packets > 1);
        let is_late = packet.dequeued < self.last;
        self.late += u64::from(is_late);
        let dequeued = packet.dequeued.max(self.last);
        let flow = analysis.intern(&self.mask.mask(&frame.key), dequeued);
        let departure = |id: u64, size: u32| Departure {
            packet: Packet {
                id: PacketId(id),
                flow,
                size: ByteCount(u64::from(size)),
                class: Class(0),
                ecn: packet.ecn.unwrap_or(frame.ecn),
            },
            queue: QueueId(packet.queue as u16),
            enqueued: if packet.is_stamped { packet.enqueued.min(dequeued) } else { dequeued },
            dequeued,
            backlog_in: Backlog::default(),
            backlog_out: Backlog::default(),
        };
        let first = self.next_id;
        let whole = departure(first, packet.bytes);
        if self.chosen.as_mut().is_some_and(|chosen| !chosen.holds(&whole, &frame.key)) {
            return Ok(());
        }
        owners.seen(&frame.key, dequeued);
        if let Some(view) = view {
            let delay = dequeued.saturating_sub(whole.enqueued);
            view.departed(&frame.key, packet.digest, u64::from(packet.bytes), delay, dequeued);
        }
        self.last = dequeued;
        self.next_id += u64::from(packet.packets);
        let time = Nanos(packet.enqueued.0.saturating_add(self.to_epoch));
        let record = Record { time: Some(time), link, interface: 0, original_len: packet.bytes, data: &packet.headers };
        analysis.read(&record, frame, time, first..self.next_id)?;
        // A super-packet counts as the packets that it becomes on the wire.
        let (each, rest) = (packet.bytes / packet.packets, packet.bytes % packet.packets);
        for id in first..self.next_id {
            let size = if id + 1 == self.next_id { each + rest } else { each };
            if !packet.is_stamped {
                // Its time of arrival is not known, so it shows neither a delay nor an order.
                analysis.passed(&departure(id, size));
                continue;
            }
            if is_late {
                analysis.moved();
            }
            analysis.departed(&departure(id, size));
        }
        Ok(())
    }

    /// The part of `all` departures that was not handed over.
    pub fn rest(&self, all: Backlog) -> Backlog {
        Backlog {
            packets: all.packets.saturating_sub(self.handed_over.packets),
            bytes: ByteCount(all.bytes.0.saturating_sub(self.handed_over.bytes.0)),
        }
    }

    /// How many of `all` packets without an enqueue time were not handed over.
    pub fn unstamped_rest(&self, all: u64) -> u64 {
        all.saturating_sub(self.unstamped)
    }

    /// Notes on packets that were left out, out of order or unparsed.
    pub fn notes(&self) -> impl Iterator<Item = Skipped> {
        let left_out = self.chosen.as_ref().and_then(PacketFilter::note);
        let late = "packets that left before others that were handed over earlier; they count as leaving with these";
        let late = noted("out_of_order", self.late, late);
        left_out.into_iter().chain(late).chain(parser_notes(&self.parser))
    }
}

impl KernelPacket {
    fn new(left: &Left<'_>) -> Self {
        Self {
            enqueued: left.enqueued,
            dequeued: left.dequeued,
            is_stamped: left.is_stamped,
            is_dropped: left.is_dropped,
            ecn: left.ecn,
            digest: left.digest,
            bytes: left.bytes,
            packets: left.packets.max(1),
            queue: left.queue,
            framed: left.framed,
            headers: left.headers.to_vec(),
        }
    }

    /// Its link type.
    fn link(&self) -> u32 {
        if self.framed { ETHERNET } else { RAW }
    }
}
