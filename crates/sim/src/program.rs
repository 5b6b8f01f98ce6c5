//! A stream of packets through a switch program and the queues of one port, drained at a rate.

use crate::replay::timer_stays;
use crate::shapes::RECIRCULATION;
use crate::{Output, Transmitter};
use queuescope_queue::{
    AnyPipeline, Discipline, Dropped, Egress, Headers, Ingress, MultiQueue, Outlet, Pipeline, Port, Sink,
};
use queuescope_wire::{ByteCount, Departure, Nanos, Packet, PacketId, QueueId};
use std::collections::{BTreeMap, VecDeque};

/// A switch program around the queues of its only port, which a link drains at a rate: what
/// [`Replay`](crate::Replay) is for a discipline. All packets in it must have distinct ids.
#[derive(Debug)]
pub struct ReplayedProgram {
    program: AnyPipeline,
    queues: MultiQueue,
    link: Transmitter,
    /// Bytes that the link adds to each packet.
    overhead: u32,
    /// Headers of waiting packets, as the program left them, and how often they were recirculated.
    headers: BTreeMap<PacketId, (Headers, u32)>,
    /// Recirculated packets, when they come to ingress again, and how often they did.
    recirculated: VecDeque<(Nanos, Packet, Headers, u32)>,
}

/// The most times that a program may send a packet to ingress again.
const MOST_PASSES: u32 = 10_000;

/// Checks how often a packet was recirculated.
///
/// # Panics
/// Panics if it was too often: the program would never let it leave.
#[inline]
pub(crate) fn check_passes(passes: u32, program: &str) {
    assert!(
        passes <= MOST_PASSES,
        "the switch program '{program}' recirculated a packet {MOST_PASSES} times: it must enqueue or drop each packet in the end"
    );
}

/// Packets in one of the queues of a port, as a switch counts them for its program.
#[inline]
pub(crate) fn depth(queues: &MultiQueue, queue: u16) -> u32 {
    u32::try_from(queues.backlog_of(queue).packets).unwrap_or(u32::MAX)
}

/// The only port.
const PORT: Port = Port(0);

/// The next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Recirculated,
    Served,
}

impl ReplayedProgram {
    /// Empty queues within a program, before an idle link.
    pub fn new(program: AnyPipeline, queues: MultiQueue, link: &Outlet) -> Self {
        Self {
            program,
            queues,
            link: Transmitter::new(link.rate),
            overhead: link.overhead,
            headers: BTreeMap::new(),
            recirculated: VecDeque::new(),
        }
    }

    /// A packet arrives, no earlier than the previous one. All departures before that are reported first.
    pub fn arrive(&mut self, packet: Packet, headers: Headers, now: Nanos, output: &mut impl Output) {
        self.advance(now, output);
        self.ingress(packet, headers, 0, now, output);
    }

    /// No packet arrives before `now`: all departures up to then happen.
    pub fn advance(&mut self, now: Nanos, output: &mut impl Output) {
        while let Some((at, next)) = self.next()
            && (at < now || at == now && next == Next::Recirculated)
        {
            self.step(at, next, output);
        }
        self.fire_until(now);
    }

    /// No packet arrives any more: all waiting packets depart.
    pub fn finish(&mut self, output: &mut impl Output) {
        while let Some((at, next)) = self.next() {
            self.step(at, next, output);
        }
    }

    /// Whether no packet is in it.
    pub fn is_empty(&self) -> bool {
        self.queues.backlog().packets == 0 && self.recirculated.is_empty()
    }

    /// Whether all packets leave in the order in which they came.
    pub fn is_fifo(&self) -> bool {
        self.queues.is_fifo()
    }

    /// The program, for its counters.
    pub fn program(&self) -> &AnyPipeline {
        &self.program
    }

    fn next(&self) -> Option<(Nanos, Next)> {
        let again = self.recirculated.front().map(|(at, ..)| (*at, Next::Recirculated));
        let served = (self.queues.backlog().packets > 0).then(|| (self.link.free_at(), Next::Served));
        // At the same time, arrivals come before departures.
        again.into_iter().chain(served).min_by_key(|(at, _)| *at)
    }

    fn step(&mut self, at: Nanos, next: Next, output: &mut impl Output) {
        self.fire_until(at);
        match next {
            Next::Served => self.serve(at, output),
            Next::Recirculated => {
                if let Some((_, packet, headers, passes)) = self.recirculated.pop_front() {
                    self.ingress(packet, headers, passes, at, output);
                }
            }
        }
    }

    fn ingress(&mut self, mut packet: Packet, mut headers: Headers, passes: u32, now: Nanos, output: &mut impl Output) {
        let verdict = self.program.ingress(PORT, &mut packet, &mut headers, now, output);
        // A copy that was fed back is not a packet of the stream.
        if headers.fed_back {
            debug_assert_eq!(verdict, Ingress::Consume, "a copy has done its work");
            return;
        }
        match verdict {
            Ingress::Enqueue(queue) => {
                if self.queues.backlog().packets == 0 {
                    self.link.wait_until(now);
                }
                headers.queue_depth = depth(&self.queues, queue);
                self.headers.insert(packet.id, (headers, passes));
                let (queues, all) = (&mut self.queues, &mut self.headers);
                queues.enqueue_to(queue, packet, now, &mut Forgetting { all, output });
            }
            Ingress::Drop(reason) => output.dropped(&Dropped::on_arrival(packet, QueueId(0), now, reason)),
            Ingress::Recirculate => self.again(packet, headers, passes + 1, now),
            Ingress::Consume => debug_assert!(false, "{packet:?} is no copy, and cannot be consumed"),
        }
    }

    fn serve(&mut self, now: Nanos, output: &mut impl Output) {
        let program = &self.program;
        let departure = self.queues.dequeue_weighted(now, output, |queue| program.weight(PORT, queue));
        let Some(mut departure) = departure else { return };
        let from = self.link.free_at();
        self.link.send(ByteCount(departure.packet.size.0 + u64::from(self.overhead)));
        let Some((mut headers, passes)) = self.headers.remove(&departure.packet.id) else { return };
        let verdict = self.program.egress(PORT, &mut departure, &mut headers, output);
        let Departure { packet, queue, enqueued, .. } = departure;
        match verdict {
            Egress::Send => output.departed(&departure),
            Egress::SendAndFeedBack => {
                self.again(packet, Headers { fed_back: true, ..headers }, 0, now);
                output.departed(&departure);
            }
            Egress::Drop(reason) => {
                let dropped = Dropped::from_queue(packet, queue, enqueued, now, reason);
                let link_time = self.link.free_at().saturating_sub(from);
                output.dropped(&Dropped { link_time, ..dropped });
            }
            Egress::Recirculate => self.again(packet, headers, passes + 1, now),
        }
    }

    fn again(&mut self, packet: Packet, headers: Headers, passes: u32, now: Nanos) {
        check_passes(passes, self.program.name());
        self.recirculated.push_back((now.saturating_add(RECIRCULATION), packet, headers, passes));
    }

    /// Fires timers that are due by `now`.
    fn fire_until(&mut self, now: Nanos) {
        while let Some(due) = self.program.next_timer().filter(|due| *due <= now) {
            self.program.on_timer(due);
            if self.program.next_timer().is_some_and(|next| next <= due) {
                timer_stays(self.program.name(), due);
            }
        }
    }
}

/// Removes the headers of packets that a queue drops.
struct Forgetting<'a, O> {
    all: &'a mut BTreeMap<PacketId, (Headers, u32)>,
    output: &'a mut O,
}

impl<O: Sink> Sink for Forgetting<'_, O> {
    fn dropped(&mut self, dropped: &Dropped) {
        self.all.remove(&dropped.packet.id);
        self.output.dropped(dropped);
    }

    fn marked(&mut self, packet: &Packet, reason: queuescope_queue::MarkReason, now: Nanos) {
        self.output.marked(packet, reason, now);
    }
}
