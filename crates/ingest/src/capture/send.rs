//! Sends arrivals to the queue.

use super::Read;
use super::batch::{Arrival, Batch, Split};
use super::feed::{Downstream, ReadCapture};
use crate::Progress;
use crate::listener::{Listener, SeenFlow};
use crate::managed::ManagedQueue;
use queuescope_pcap::Record;
use queuescope_queue::TailDrop;
use queuescope_scenario::Overhead;
use queuescope_sim::Replay;
use queuescope_wire::parse::Frame;
use queuescope_wire::{ByteCount, Class, FlowId, MaskedKey, MetFlows, Nanos, Packet, PacketId};
use std::collections::VecDeque;
use std::ops::Range;

/// A queue that takes the packets of a capture.
pub trait CaptureQueue<L> {
    /// Whether it takes flows that were looked up before. If not, it takes keys, and looks flows up as packets leave.
    const TAKES_FLOWS: bool;

    /// Enqueues a packet. Its flow is known if the queue takes flows, and its key if not.
    fn arrive(&mut self, packet: Packet, key: &MaskedKey, now: Nanos, listener: &mut L);

    /// Ends the input: lets the remaining packets leave.
    fn finish(&mut self, listener: &mut L);
}

impl<L: Listener<Key = MaskedKey>> CaptureQueue<L> for Replay<TailDrop> {
    const TAKES_FLOWS: bool = true;

    #[inline(always)]
    fn arrive(&mut self, packet: Packet, _key: &MaskedKey, now: Nanos, listener: &mut L) {
        self.arrive(packet, now, listener);
    }

    fn finish(&mut self, listener: &mut L) {
        self.finish(listener);
    }
}

impl<L: Listener<Key = MaskedKey>> CaptureQueue<L> for ManagedQueue {
    const TAKES_FLOWS: bool = false;

    fn arrive(&mut self, packet: Packet, key: &MaskedKey, now: Nanos, listener: &mut L) {
        self.arrive(packet, key, now, listener);
    }

    fn finish(&mut self, listener: &mut L) {
        self.finish(listener);
    }
}

/// Sends arrivals to a queue, and what leaves it to a listener.
pub(super) struct Sender<'a, L, Q> {
    queue: Q,
    overhead: Overhead,
    listener: &'a mut L,
    progress: Progress<'a>,
    /// The id of the next packet.
    next_id: u64,
    bytes: u64,
    /// The flows of a part of a batch.
    flows: Vec<FlowId>,
    /// The key of arrivals whose key the queue does not need.
    no_key: MaskedKey,
    /// The flows and keys of places, where arrivals name their flows by place.
    places: Option<Places>,
}

/// Flows that were met lately, by place.
struct Places {
    flows: Vec<SeenFlow>,
    keys: Vec<MaskedKey>,
}

/// Number of arrivals whose flows are looked up in one loop, before they are sent, so that the processor can fetch several flows from memory
/// at once.
pub(super) const AT_ONCE: usize = 64;

impl<'a, L: Listener<Key = MaskedKey>, Q: CaptureQueue<L>> Sender<'a, L, Q> {
    pub fn new(queue: Q, overhead: Overhead, listener: &'a mut L, progress: Progress<'a>) -> Self {
        Self {
            queue,
            overhead,
            listener,
            progress,
            next_id: 0,
            bytes: 0,
            flows: Vec::with_capacity(AT_ONCE),
            no_key: MetFlows::first_key(),
            places: None,
        }
    }

    /// Whether the listener needs the frames of the capture.
    pub fn wants_frames(&self) -> bool {
        self.listener.wants_frames()
    }

    /// Arrivals name their flows by place.
    pub fn keep_places(&mut self) {
        self.places = Some(Places {
            flows: vec![SeenFlow::default(); MetFlows::PLACES],
            keys: vec![MetFlows::first_key(); MetFlows::PLACES],
        });
    }

    pub fn progress(&mut self, read: u64, frames: u64) {
        (self.progress)(read, frames);
    }

    /// Writes what is buffered, since the next arrivals may take a while.
    pub fn hand_over(&mut self) -> Result<(), L::Error> {
        self.listener.hand_over()
    }

    /// Sends the arrivals of a batch to the queue, and empties it.
    pub fn send(&mut self, batch: &mut Batch) {
        let Batch { arrivals, keys, splits, gaps } = batch;
        let mut keys = keys.as_slice();
        for arrivals in arrivals.chunks(AT_ONCE) {
            let keys_here = keys;
            self.look_up(arrivals, &mut keys);
            for (index, Arrival { now, size, is_split, ecn, .. }) in arrivals.iter().enumerate() {
                self.skip(gaps);
                // Queues that do not take flows get them by key, so all arrivals have one.
                let key = if Q::TAKES_FLOWS { &self.no_key } else { &keys_here[index] };
                let flow = self.flows[index];
                let (queue, listener) = (&mut self.queue, &mut *self.listener);
                let (next_id, bytes) = (&mut self.next_id, &mut self.bytes);
                let mut send = |size: u32| {
                    let (id, size, class) = (PacketId(*next_id), ByteCount(u64::from(size)), Class(0));
                    *next_id += 1;
                    *bytes += size.0;
                    queue.arrive(Packet { id, flow, size, class, ecn: *ecn }, key, *now, listener);
                };
                if !is_split {
                    send(*size);
                } else if let Some(Split { segments, link_header, has_ethernet_header }) = splits.pop_front() {
                    let overhead = self.overhead;
                    segments.sizes().for_each(|size| send(overhead.in_queue(size, link_header, has_ethernet_header)));
                }
            }
        }
        // A batch may end with frames that were left out.
        self.skip(gaps);
        batch.clear();
    }

    /// Skips ids that no packet has.
    #[inline]
    fn skip(&mut self, gaps: &mut VecDeque<Range<u64>>) {
        if gaps.front().is_some_and(|gap| gap.start == self.next_id)
            && let Some(gap) = gaps.pop_front()
        {
            self.next_id = gap.end;
        }
    }

    /// Looks up the flows of arrivals, whose keys are the first of `keys`.
    #[inline(always)]
    fn look_up(&mut self, arrivals: &[Arrival], keys: &mut &[MaskedKey]) {
        self.flows.clear();
        let listener = &mut *self.listener;
        match &mut self.places {
            Some(places) => self.flows.extend(arrivals.iter().map(|arrival| places.flow(arrival, keys, listener))),
            None => {
                let (here, rest) = keys.split_at(arrivals.len());
                *keys = rest;
                let flow = |(arrival, key): (&Arrival, _)| {
                    if Q::TAKES_FLOWS { listener.intern(key, arrival.now) } else { FlowId::default() }
                };
                self.flows.extend(arrivals.iter().zip(here).map(flow));
            }
        }
    }

    /// Ends the input.
    pub fn finish(mut self, read: ReadCapture) -> Read {
        self.queue.finish(self.listener);
        (self.progress)(read.bytes_read, read.frames);
        Read {
            packets: read.packets,
            bytes: self.bytes,
            first: read.span.0,
            span: read.span,
            super_packets: read.super_packets,
            skipped: read.skipped,
            damage: read.damage,
            format: Some(read.format),
        }
    }
}

impl Places {
    /// The flow of an arrival. The listener is called as if the arrival had its key.
    #[inline(always)]
    fn flow<L: Listener<Key = MaskedKey>>(
        &mut self,
        arrival: &Arrival,
        keys: &mut &[MaskedKey],
        listener: &mut L,
    ) -> FlowId {
        let place = arrival.place as usize;
        if arrival.has_key
            && let Some((key, rest)) = keys.split_first()
        {
            (*keys, self.keys[place], self.flows[place]) = (rest, *key, SeenFlow::default());
        }
        let seen = self.flows[place];
        if listener.again(seen, arrival.now) {
            return seen.flow;
        }
        let flow = listener.intern(&self.keys[place], arrival.now);
        self.flows[place] = SeenFlow { flow, era: listener.era() };
        flow
    }
}

/// Sends arrivals at once, on the thread that reads.
pub(super) struct Direct<'a, 'b, L, Q>(pub &'a mut Sender<'b, L, Q>);

impl<L: Listener<Key = MaskedKey>, Q: CaptureQueue<L>> Downstream for Direct<'_, '_, L, Q> {
    type Error = L::Error;
    const BATCH: usize = AT_ONCE;

    fn progress(&mut self, read: u64, frames: u64) -> Result<(), L::Error> {
        self.0.progress(read, frames);
        Ok(())
    }

    #[inline(always)]
    fn read(&mut self, record: &Record<'_>, frame: Frame, time: Nanos, packets: Range<u64>) -> Result<(), L::Error> {
        self.0.listener.read(record, frame, time, packets)
    }

    #[inline]
    fn arrivals(&mut self, batch: &mut Batch) -> Result<(), L::Error> {
        self.0.send(batch);
        Ok(())
    }

    fn wait(&mut self) -> Result<(), L::Error> {
        self.0.hand_over()
    }
}
