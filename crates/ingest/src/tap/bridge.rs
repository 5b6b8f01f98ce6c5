//! Turns matched packets into departures.

use super::headers::{Headers, PacketHeaders};
use crate::listener::Listener;
use queuescope_meter::tap::{Arrived, TapDeparture, TapOutput, TapPacket};
use queuescope_meter::{Heavy, Share};
use queuescope_queue::{DropReason, Dropped};
use queuescope_wire::{
    Backlog, ByteCount, Class, Departure, FlowId, FlowKey, Granularity, KeyMask, MaskedKey, Nanos, Packet, PacketId,
    QueueId,
};
use std::collections::{BTreeMap, VecDeque};

/// Passes packets that left the router or were lost in it to a listener, ordered by time.
///
/// A packet counts as lost when the longest delay has passed. Departures are held back for that time too, so that a loss
/// comes at its place between them.
pub struct Bridge<'a, L> {
    listener: &'a mut L,
    mask: KeyMask,
    granularity: Granularity,
    max_delay: Nanos,
    /// The uncertainty of each link's clock: a wait that is not longer does not count.
    within: Vec<Nanos>,
    /// The headers of packets that came in, if they are wanted.
    headers: Option<&'a Headers>,
    departures: VecDeque<(TapDeparture, Option<PacketHeaders>)>,
    lost: BTreeMap<(Nanos, u64), (TapPacket, Option<PacketHeaders>)>,
    now: Nanos,
    handed: BridgeCounts,
}

/// Counts of what was passed to the listener.
#[derive(Debug)]
pub struct BridgeCounts {
    /// Packets that left or were lost.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The times of the first and the last of them, by the clock behind the router.
    pub span: Option<(Nanos, Nanos)>,
    /// Packets matched and lost, for each link.
    pub links: Vec<(u64, u64)>,
    /// The flows with the most losses.
    pub lost: Heavy<FlowKey>,
    /// Packets whose delay is close to the longest that is considered.
    pub near_max_delay: u64,
}

/// Least number of flows with losses that are counted separately.
const LOST_FLOWS: usize = 4096;
/// A delay of this many tenths of the longest counts as close to it.
const NEAR: u64 = 9;

impl<'a, L: Listener<Key = MaskedKey>> Bridge<'a, L> {
    /// Creates a bridge. `within` is the uncertainty of each link's clock.
    pub fn new(
        listener: &'a mut L,
        mask: KeyMask,
        granularity: Granularity,
        max_delay: Nanos,
        within: Vec<Nanos>,
        headers: Option<&'a Headers>,
    ) -> Self {
        let handed = BridgeCounts {
            packets: 0,
            bytes: 0,
            span: None,
            links: vec![(0, 0); within.len()],
            lost: Heavy::with_capacity(LOST_FLOWS),
            near_max_delay: 0,
        };
        Self {
            listener,
            mask,
            granularity,
            max_delay,
            within,
            headers,
            departures: VecDeque::new(),
            lost: BTreeMap::new(),
            now: Nanos::ZERO,
            handed,
        }
    }

    /// Ends the input: passes on what is held back.
    pub fn finish(mut self) -> BridgeCounts {
        self.release(None);
        self.handed
    }

    /// Passes on what happened before `until`, or everything.
    fn release(&mut self, until: Option<Nanos>) {
        let due = |time: Nanos| until.is_none_or(|until| time < until);
        loop {
            let left = self.departures.front().map(|(departure, _)| departure.dequeued).filter(|time| due(*time));
            let lost = self.lost.first_key_value().map(|((time, _), _)| *time).filter(|time| due(*time));
            match (lost, left) {
                (Some(lost), left) if left.is_none_or(|left| lost <= left) => {
                    if let Some(((time, _), (seen, headers))) = self.lost.pop_first() {
                        self.drop(&seen, time, headers);
                    }
                }
                (_, Some(_)) => {
                    if let Some((departure, headers)) = self.departures.pop_front() {
                        self.depart(&departure, headers);
                    }
                }
                _ => return,
            }
        }
    }

    fn depart(&mut self, departure: &TapDeparture, headers: Option<PacketHeaders>) {
        let TapDeparture { seen, dequeued, arrived } = departure;
        self.now = *dequeued;
        // Use the flow key that the packet had when it came in: behind a NAT it is different.
        let (key, within) = match arrived {
            Arrived::Seen { ingress, link, .. } => (&ingress.key, self.within[*link]),
            _ => (&seen.key, Nanos::ZERO),
        };
        let waited = |enqueued: &Nanos| dequeued.saturating_sub(*enqueued) > within;
        let enqueued = departure.enqueued().map(|enqueued| Some(enqueued).filter(waited).unwrap_or(*dequeued));
        let packet = self.packet(seen, key, enqueued.unwrap_or(*dequeued), *dequeued);
        self.came(packet.id, headers);
        let none = Backlog::default();
        let departure = Departure {
            packet,
            queue: QueueId(0),
            enqueued: enqueued.unwrap_or(*dequeued),
            dequeued: *dequeued,
            backlog_in: none,
            backlog_out: none,
        };
        if enqueued.is_some() {
            self.listener.departed(&departure);
        } else {
            self.listener.passed(&departure);
        }
    }

    fn drop(&mut self, seen: &TapPacket, time: Nanos, headers: Option<PacketHeaders>) {
        let packet = self.packet(seen, &seen.key, time, time);
        self.came(packet.id, headers);
        self.listener.dropped(&Dropped::on_arrival(packet, QueueId(0), time, DropReason::Lost));
    }

    fn came(&mut self, packet: PacketId, headers: Option<PacketHeaders>) {
        if let Some(headers) = headers {
            self.listener.came(packet, *headers);
        }
    }

    /// The packet with the ids of the listener, seen from `first` to `last`.
    fn packet(&mut self, seen: &TapPacket, key: &FlowKey, first: Nanos, last: Nanos) -> Packet {
        let (id, size) = (PacketId(self.handed.packets), u64::from(seen.size));
        let (from, to) = self.handed.span.unwrap_or((first, last));
        self.handed.span = Some((from.min(first), to.max(last)));
        self.handed.packets += 1;
        self.handed.bytes += size;
        let flow: FlowId = self.listener.intern(&self.mask.mask(key), self.now);
        Packet { id, flow, size: ByteCount(size), class: Class(0), ecn: seen.ecn }
    }
}

impl<L: Listener<Key = MaskedKey>> TapOutput for Bridge<'_, L> {
    fn departed(&mut self, departure: &TapDeparture) {
        if let Arrived::Seen { enqueued, link, .. } = departure.arrived {
            self.handed.links[link].0 += 1;
            let waited = departure.dequeued.saturating_sub(enqueued);
            self.handed.near_max_delay += u64::from(waited.0 >= self.max_delay.0 / 10 * NEAR);
        }
        let headers = match departure.arrived {
            Arrived::Seen { link, ingress, .. } => self.headers.and_then(|headers| headers.take(link, &ingress)),
            _ => None,
        };
        self.departures.push_back((*departure, headers));
        // All losses before this time are known.
        self.release(Some(departure.dequeued.saturating_sub(self.max_delay)));
    }

    fn lost(&mut self, packet: &TapPacket, link: usize, enqueued: Nanos) {
        self.handed.links[link].1 += 1;
        let share = Share { bytes: u64::from(packet.size), packets: 1, peak: 0 };
        self.handed.lost.add(&self.granularity.project(&packet.key), share);
        let headers = self.headers.and_then(|headers| headers.take(link, packet));
        self.lost.insert((enqueued, self.handed.links[link].1 << 16 | link as u64), (*packet, headers));
    }
}
