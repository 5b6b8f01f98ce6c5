//! The queries of a log.

use super::moment::{Moment, Period};
use super::ranking::Tally;
use super::record::{Arrival, PackedDeparture};
use super::unions::Union;
use super::{Culprits, Departed, Dropped, QueueLog, Ranking, Victims};
use queuescope_wire::{FlowId, Nanos, PacketId};
use std::ops::Range;

impl QueueLog {
    /// The culprits of a packet that left; `original` is about the moment at which it came.
    pub fn of_packet(&self, packet: PacketId) -> Option<Culprits<FlowId>> {
        self.of_departure(&self.find(packet)?)
    }

    /// Like [`of_packet`](Self::of_packet), for a known departure: by binary search, in any order of departure.
    pub fn of_departure(&self, departed: &Departed) -> Option<Culprits<FlowId>> {
        let index = self.locate(departed)?;
        let left = &self.left[index];
        let (Period { span, complete }, from) = (self.period(index), self.position(left.enqueued));
        let Moment { standing, original, complete: whole } = self.moment(left.arrival());
        let mut victims = Victims::default();
        victims.add(left, left.enqueued..left.dequeued);
        Some(Culprits {
            victims,
            standing,
            direct: self.tally(from..index),
            indirect: self.tally(span.start..from.max(span.start)),
            original,
            complete: complete && whole,
        })
    }

    /// Only the direct culprits of a packet that left. The cost is in proportion to the departures while it waited.
    pub fn direct(&self, departed: &Departed) -> Option<Ranking<FlowId>> {
        let index = self.locate(departed)?;
        Some(self.tally(self.position(departed.enqueued)..index))
    }

    /// The direct culprits of a packet that came after it, and so overtook it. There are none in a FIFO queue; with a strict priority, these
    /// are the higher classes (ConQuest section 3.6).
    pub fn overtakers(&self, departed: &Departed) -> Option<Ranking<FlowId>> {
        let index = self.locate(departed)?;
        let left = &self.left[index];
        let direct = self.left.range(self.position(left.enqueued)..index);
        Some(direct.filter(|other| other.arrival() > left.arrival()).collect::<Tally>().ranking())
    }

    /// The culprits of a drop. The packet did not wait: its direct culprits are the packets in the queue as it came.
    pub fn of_drop(&self, dropped: &Dropped) -> Culprits<FlowId> {
        let arrival: Arrival = (dropped.at, dropped.packet.0);
        let Moment { standing, original, complete } = self.moment(arrival);
        let (mut direct, mut indirect) = (Tally::default(), Tally::default());
        if let Some(Period { span, .. }) = self.period_before(arrival).filter(|_| standing.backlog.packets > 0) {
            let from = self.position(dropped.at);
            indirect = self.left.range(span.start..from).collect();
            direct = self.left.range(from..span.end).filter(|left| left.arrival() < arrival).collect();
        }
        let victims = Victims { packets: 1, bytes: dropped.size.into(), ..Victims::default() };
        Culprits { victims, standing, direct: direct.ranking(), indirect: indirect.ranking(), original, complete }
    }

    /// The culprits of all packets of `flows` that waited within `during`, for the part of their sojourn times that is in that range: the
    /// departures in `during` while one of them waited, and the departures before that since the queue was last empty, each packet
    /// once. `original` is about the arrival of the one that waited longest. None if no packet waited.
    pub fn of_flows(&self, flows: impl Fn(FlowId) -> bool, during: Range<Nanos>) -> Option<Culprits<FlowId>> {
        self.of_victims(|victim| flows(victim.flow), during)
    }

    /// The same for all packets for which `is_victim` holds.
    pub fn of_victims(&self, is_victim: impl Fn(&Departed) -> bool, during: Range<Nanos>) -> Option<Culprits<FlowId>> {
        self.of_waits(is_victim, during, |_, longest| (longest.enqueued, longest.packet.0))
    }

    /// The culprits of all packets that waited within `during`, as in [`of_flows`](Self::of_flows). `original` is about the moment in it at
    /// which the queue was deepest. None if no packet waited.
    pub fn of_range(&self, during: Range<Nanos>) -> Option<Culprits<FlowId>> {
        let mut culprits = self.of_waits(|_| true, during.clone(), |log, _| log.deepest(&during))?;
        // A packet that left at the start of the range did not wait in it, but was in the queue that may be the deepest.
        culprits.complete &= self.remembers(during.start);
        Some(culprits)
    }

    fn of_waits(
        &self,
        is_victim: impl Fn(&Departed) -> bool,
        during: Range<Nanos>,
        moment: impl Fn(&Self, &Departed) -> Arrival,
    ) -> Option<Culprits<FlowId>> {
        let candidates = self.candidates(&during);
        let (first, end) = (self.position(during.start), self.position(during.end));
        let (mut direct, mut indirect) = (Union::default(), Union::default());
        let (mut victims, mut complete) = (Victims::default(), self.remembers(during.start.saturating_add(Nanos(1))));
        let mut period = Period { span: 0..0, complete: true };
        // The end of the indirect culprits of the victims of `period`.
        let mut reach = 0;
        for (index, left) in candidates.clone().zip(self.left.range(candidates)) {
            let Some(wait) = left.waits(&during).filter(|_| is_victim(&Departed::from(left))) else { continue };
            if !period.span.contains(&index) {
                indirect.add(period.span.start..reach);
                period = self.period(index);
                (reach, complete) = (period.span.start, complete && period.complete);
            }
            let from = if wait.start == during.start { first } else { self.position(wait.start) };
            direct.add(from..index.min(end));
            reach = reach.max(from);
            victims.add(left, wait);
        }
        indirect.add(period.span.start..reach);
        let Moment { standing, original, complete: whole } = self.moment(moment(self, &victims.longest?));
        let sum = |union: &Union| union.iter().map(|index| &self.left[index]).collect::<Tally>().ranking();
        Some(Culprits {
            victims,
            standing,
            indirect: sum(&indirect.without(&direct)),
            direct: sum(&direct),
            original,
            complete: complete && whole,
        })
    }

    /// The index of a departure.
    fn locate(&self, departed: &Departed) -> Option<usize> {
        let start = self.position(departed.dequeued);
        let same_time = self.left.range(start..).take_while(|left| left.dequeued == departed.dequeued);
        same_time.map(PackedDeparture::packet).position(|packet| packet == departed.packet).map(|offset| start + offset)
    }

    fn tally(&self, range: Range<usize>) -> Ranking<FlowId> {
        self.left.range(range).collect::<Tally>().ranking()
    }
}

impl Victims {
    fn add(&mut self, left: &PackedDeparture, wait: Range<Nanos>) {
        let departed = Departed::from(left);
        self.packets += 1;
        self.bytes += u64::from(left.size);
        self.waited = self.waited.saturating_add(wait.end - wait.start);
        if self.longest.is_none_or(|longest| longest.sojourn() < departed.sojourn()) {
            self.longest = Some(departed);
        }
    }
}
