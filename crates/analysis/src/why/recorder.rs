//! Records everything that left a queue or was dropped there, for a later question.

use super::Question;
use crate::index::{FlowIndex, name_digest};
use queuescope_ingest::Listener;
use queuescope_ingest::records::{as_departure, without_flow};
use queuescope_meter::{Departed, Dropped, LogError, QueueLog};
use queuescope_pcap::Record;
use queuescope_queue::{self as queue, MarkReason, Sink};
use queuescope_sim::Output;
use queuescope_wire::parse::Frame;
use queuescope_wire::{Departure, FlowId, FlowTable, Flows, MaskedKey, Nanos, Packet, PacketId};
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::ops::Range;

/// Records everything that left the queue or was dropped, and answers one question about it.
///
/// ```
/// use queuescope_analysis::why::{Question, Recorder};
/// use queuescope_ingest::{OpenedCapture, Queue};
/// use queuescope_wire::{Flows, KeyMask};
///
/// // Why did packet 1000 of the capture wait, if a link of 20 Mb/s drains the queue?
/// let question = Question::default().about_packet(1000.try_into()?);
/// let flows = ["5tuple".parse()?];
/// let mut recorder = Recorder::new(Flows::new(&flows, usize::MAX), question);
/// # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
/// let capture = OpenedCapture::open(trace.as_ref(), "20mbps".parse()?, None, None)?;
/// let source = capture.replay(&Queue::default(), KeyMask::covering(&flows), &mut recorder, &mut |_, _| ())?;
/// let why = recorder.answer(source)?;
/// let victim = why.victim.ok_or("the packet is not in the capture")?;
/// println!("packet 1000 waited for {:?} ns", victim.delay_ns);
/// assert!(victim.delay_ns > Some(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Recorder<D> {
    pub(super) index: D,
    pub(super) log: QueueLog,
    pub(super) question: Question,
    /// The packets that the frame in the question became.
    pub(super) packets: Option<Range<u64>>,
    /// Number of frames that were read, including those left out: a left-out frame has a number, but no packet.
    pub(super) frames: u64,
    /// Frames that became several packets: the first packet, how many, and how many more than frames came before it.
    pub(super) splits: Vec<(u64, u64, u64)>,
    /// Whether each packet may be a victim, by packet id; empty if all may.
    is_victim: Vec<bool>,
    /// The flows of packets that the expression for victims matches.
    pub(super) victim_flows: BTreeSet<FlowId>,
    /// Packets whose flow key is not known, where the expression for victims needs it.
    pub(super) unnamed: u64,
    pub(super) failure: Option<LogError>,
}

impl<D> Recorder<D> {
    /// Creates a recorder for a question.
    pub fn new(index: D, question: Question) -> Self {
        Self {
            index,
            log: QueueLog::new(),
            question,
            packets: None,
            frames: 0,
            splits: Vec::new(),
            is_victim: Vec::new(),
            victim_flows: BTreeSet::new(),
            unnamed: 0,
            failure: None,
        }
    }

    /// A frame or row became these packets; the range is empty if it is left out.
    fn frame(&mut self, packets: Range<u64>) -> Result<(), LogError> {
        self.frames += 1;
        let count = packets.end - packets.start;
        if count > 1 {
            self.splits.push((packets.start, count, packets.start + 1 - self.frames));
        }
        if self.question.packet.map(NonZeroU64::get) == Some(self.frames) {
            self.packets = Some(packets);
        }
        self.failure.take().map_or(Ok(()), Err)
    }
}

impl<D: FlowIndex> Recorder<D> {
    /// Stores whether a packet that left or was dropped may be a victim.
    fn judge(&mut self, departure: &Departure) {
        let Some(victims) = &mut self.question.victims else { return };
        let key = self.index.whole(departure.packet.flow);
        self.unnamed += u64::from(key.is_none());
        let packet = departure.packet.id.0 as usize;
        if self.is_victim.len() <= packet {
            self.is_victim.resize(packet + 1, false);
        }
        self.is_victim[packet] = victims.holds_uncounted(&without_flow(departure), &key.unwrap_or_default());
        if self.is_victim[packet] {
            self.victim_flows.insert(departure.packet.flow);
        }
    }

    /// Whether a packet may be a victim.
    pub(super) fn is_victim(&self, packet: PacketId) -> bool {
        self.question.victims.is_none() || self.is_victim.get(packet.0 as usize) == Some(&true)
    }
}

impl<D: FlowIndex> Sink for Recorder<D> {
    fn dropped(&mut self, dropped: &queue::Dropped) {
        self.judge(&as_departure(dropped.packet, dropped.queue, dropped.at, dropped.at));
        let Packet { id, flow, size, class, .. } = dropped.packet;
        let size = u32::try_from(size.0).unwrap_or(u32::MAX);
        let recorded = self.log.record_drop(&Dropped { packet: id, flow, class, size, at: dropped.at });
        self.failure = self.failure.take().or(recorded.err());
    }

    fn marked(&mut self, _packet: &Packet, _reason: MarkReason, _now: Nanos) {}
}

impl<D: FlowIndex> Output for Recorder<D> {
    fn departed(&mut self, departure: &Departure) {
        self.judge(departure);
        let recorded = self.log.record(&Departed::from(departure));
        self.failure = self.failure.take().or(recorded.err());
    }
}

impl Listener for Recorder<Flows> {
    type Key = MaskedKey;
    type Error = LogError;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        self.index.intern(key, now, |_, _| {})
    }

    fn read(&mut self, _record: &Record<'_>, _frame: Frame, _time: Nanos, packets: Range<u64>) -> Result<(), LogError> {
        self.frame(packets)
    }
}

impl Listener for Recorder<FlowTable<Box<str>>> {
    type Key = str;
    type Error = LogError;

    fn intern(&mut self, name: &str, now: Nanos) -> FlowId {
        self.index.intern(name, name_digest(name), now).0
    }

    fn row(&mut self, packets: Range<u64>) -> Result<(), LogError> {
        self.frame(packets)
    }
}
