//! Replays a capture through any discipline or switch program.

use crate::listener::Listener;
use queuescope_queue::{Dropped, Headers, Host, Limit, MarkReason, Outlet, Sink};
use queuescope_sim::{Aqm, Managed, Output};
use queuescope_wire::{Class, Departure, FlowId, FlowKey, FlowTable, Granularity, MaskedKey, Nanos, Packet, PacketId};
use std::collections::VecDeque;

/// A queue under any discipline or switch program. The flow of a packet in the queue is its five-tuple, whatever granularity
/// the listener uses, and its class is computed from the precedence in its IP header. The listener's flow is looked up when
/// a packet leaves, because any number of others may overtake it while it waits.
#[derive(Debug)]
pub struct ManagedQueue {
    queue: Managed,
    waiting: QueuedPackets,
    /// Ids of five-tuples. A five-tuple that was idle may get another id later, as in any table of limited size.
    flows: FlowTable<FlowKey>,
    last: Nanos,
    /// Offset from the time of the queue, which starts at 0 with its timers, to the time of the capture.
    offset: Option<Nanos>,
}

/// The packets in the queue, by numbers without gaps.
#[derive(Debug, Default)]
struct QueuedPackets {
    /// The number of the first packet.
    first: u64,
    /// The id of the packet, its key, and when it came; `None` if it has left.
    packets: VecDeque<Option<(PacketId, MaskedKey, Nanos)>>,
}

/// Number of five-tuples from which idle ones are freed.
const FLOWS: usize = 1 << 14;
/// Longest time that passes for an empty queue between two packets. By then a discipline has forgotten its state, and a gap
/// of years in a capture does not slow the replay.
const LONGEST_IDLE: Nanos = Nanos(3_600_000_000_000);

impl ManagedQueue {
    /// Creates an empty queue with a limit.
    pub fn new(aqm: &Aqm, limit: Limit, outlet: &Outlet) -> Self {
        Self {
            queue: aqm.replay(limit, outlet),
            waiting: QueuedPackets::default(),
            flows: FlowTable::with_limit(FLOWS),
            last: Nanos::ZERO,
            offset: None,
        }
    }

    /// Enqueues a packet. Its class and flow are set here.
    pub fn arrive<L: Listener<Key = MaskedKey>>(
        &mut self,
        packet: Packet,
        key: &MaskedKey,
        now: Nanos,
        listener: &mut L,
    ) {
        self.skip_idle(now, listener);
        let offset = self.offset.unwrap_or_default();
        let whole = key.key();
        let tuple = Granularity::FiveTuple.project(whole);
        if self.flows.is_full() {
            self.flows.expire(self.waiting.oldest().unwrap_or(now), |_, _| ());
        }
        let (flow, _) = self.flows.intern(&tuple, tuple.digest(), now);
        let id = PacketId(self.waiting.push((packet.id, *key, now)));
        let packet = Packet { id, flow, class: class(whole), ..packet };
        let mut output = ListenerOutput { waiting: &mut self.waiting, offset, listener };
        self.queue.arrive(packet, || headers(whole, flow), now.saturating_sub(offset), &mut output);
    }

    /// Ends the input: lets the remaining packets leave, except those that a custom discipline never releases.
    pub fn finish<L: Listener<Key = MaskedKey>>(&mut self, listener: &mut L) {
        let offset = self.offset.unwrap_or_default();
        self.queue.finish(&mut ListenerOutput { waiting: &mut self.waiting, offset, listener });
        debug_assert!(
            self.waiting.packets.is_empty() || !self.queue.is_empty(),
            "every packet left, was dropped, or is still in the queue"
        );
    }

    /// Skips idle time of the queue, up to `now`.
    fn skip_idle<L: Listener<Key = MaskedKey>>(&mut self, now: Nanos, listener: &mut L) {
        let mut offset = *self.offset.get_or_insert(now);
        let last = std::mem::replace(&mut self.last, now).max(offset);
        let mut until = last.saturating_add(LONGEST_IDLE);
        while until < now {
            let mut output = ListenerOutput { waiting: &mut self.waiting, offset, listener };
            self.queue.advance(until.saturating_sub(offset), &mut output);
            if self.queue.is_empty() {
                offset = offset.saturating_add(now - until);
                self.offset = Some(offset);
                return;
            }
            until = until.saturating_add(LONGEST_IDLE);
        }
    }
}

impl QueuedPackets {
    /// Adds a packet, and returns its number.
    fn push(&mut self, packet: (PacketId, MaskedKey, Nanos)) -> u64 {
        self.packets.push_back(Some(packet));
        self.first + self.packets.len() as u64 - 1
    }

    fn place(&mut self, number: PacketId) -> Option<&mut Option<(PacketId, MaskedKey, Nanos)>> {
        self.packets.get_mut(usize::try_from(number.0.checked_sub(self.first)?).ok()?)
    }

    /// Removes a packet.
    fn take(&mut self, number: PacketId) -> Option<(PacketId, MaskedKey)> {
        let (id, key, _) = self.place(number)?.take()?;
        while self.packets.front().is_some_and(Option::is_none) {
            self.packets.pop_front();
            self.first += 1;
        }
        Some((id, key))
    }

    /// The arrival time of the first packet.
    fn oldest(&self) -> Option<Nanos> {
        self.packets.front().and_then(Option::as_ref).map(|(.., came)| *came)
    }
}

/// Passes what leaves the queue to the listener, with the ids and times of the capture.
struct ListenerOutput<'a, L> {
    waiting: &'a mut QueuedPackets,
    offset: Nanos,
    listener: &'a mut L,
}

impl<L: Listener<Key = MaskedKey>> ListenerOutput<'_, L> {
    /// The packet with the ids of the listener, as it leaves at `at`.
    fn packet(&mut self, packet: Packet, at: Nanos) -> Packet {
        let Some((id, key)) = self.waiting.take(packet.id) else { return packet };
        Packet { id, flow: self.listener.intern(&key, at), ..packet }
    }

    fn time(&self, time: Nanos) -> Nanos {
        time.saturating_add(self.offset)
    }
}

impl<L: Listener<Key = MaskedKey>> Output for ListenerOutput<'_, L> {
    fn departed(&mut self, departure: &Departure) {
        let (enqueued, dequeued) = (self.time(departure.enqueued), self.time(departure.dequeued));
        let packet = self.packet(departure.packet, dequeued);
        self.listener.departed(&Departure { packet, enqueued, dequeued, ..*departure });
    }
}

impl<L: Listener<Key = MaskedKey>> Sink for ListenerOutput<'_, L> {
    fn dropped(&mut self, dropped: &Dropped) {
        let (enqueued, at) = (dropped.enqueued.map(|time| self.time(time)), self.time(dropped.at));
        let packet = self.packet(dropped.packet, at);
        self.listener.dropped(&Dropped { packet, enqueued, at, ..*dropped });
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, now: Nanos) {
        let now = self.time(now);
        if let Some(Some((id, key, _))) = self.waiting.place(packet.id) {
            let (id, flow) = (*id, self.listener.intern(key, now));
            self.listener.marked(&Packet { id, flow, ..*packet }, reason, now);
        }
    }
}

/// The class of a packet: 0 for the highest precedence in the IP header (the upper bits of its DSCP), 7 for none, so that strict
/// priority serves urgent packets first.
fn class(key: &FlowKey) -> Class {
    Class(7 - (key.dscp >> 3).min(7))
}

/// The headers that a switch program reads of a packet. The TCP header is not available.
fn headers(key: &FlowKey, flow: FlowId) -> Headers {
    let host = |address: u128| {
        let address = FlowKey { src: address, family: key.family, ..FlowKey::default() };
        Host(address.digest() as u32)
    };
    Headers::plain(host(key.src), host(key.dst), flow)
}
