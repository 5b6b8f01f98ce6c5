//! How flows behave: which kind of congestion control each heavy flow has, from its departures and drops.
//!
//! A switch has a few registers for each flow ([`queuescope_sketch::Fingerprint`]). A host has memory: [`Behaviours`] keeps a row of
//! counters for each of the last [`ROUNDS`] round-trip times of a flow, and judges them all together ([`FlowRounds::judge`]).

mod evidence;
mod judge;
mod rounds;
mod series;

pub use evidence::{Evidence, Response};
pub use judge::{Behaviour, FinerKind, Judgement};
pub use rounds::{FlowRounds, ROUNDS, Round};

use queuescope_wire::{Departure, FlowId, Nanos};

/// Keeps the round trips of heavy flows, in bounded memory, and judges how they behave.
///
/// A flow is followed from its handshake, whose time without the queue is the length of its rounds. Its rows are allocated when it
/// has sent [`BehaviourParams::heavy`] packets. At most [`BehaviourParams::flows`] flows are followed at once; a flow gets the place
/// of one that has been silent for [`BehaviourParams::idle`], or that sent a fourth of its packets at most. Flows without a place are
/// counted.
///
/// ```
/// use queuescope_meter::{Behaviour, BehaviourParams, Behaviours};
/// use queuescope_wire::{ByteCount, Departure, FlowId, Nanos, Packet};
///
/// let mut meter = Behaviours::new(BehaviourParams::default());
/// let packet = |size| Packet { flow: FlowId(0), size: ByteCount(size), ..Packet::default() };
/// let mut send = |ms: u64, size| {
///     let now = Nanos(ms * 1_000_000);
///     meter.departed(FlowId(0), &Departure { packet: packet(size), enqueued: now, dequeued: now, ..Departure::default() });
/// };
/// send(0, 60);
/// (20..1_000).for_each(|ms| send(ms, 1_500));
/// let flow = meter.flow(FlowId(0)).expect("it is heavy");
/// assert_eq!(flow.length(), Nanos(20_000_000));
/// // A constant rate without losses can have many reasons.
/// assert_eq!(flow.judge().behaviour, Behaviour::TooLittleEvidence);
/// ```
#[derive(Debug)]
pub struct Behaviours {
    params: BehaviourParams,
    /// By flow id.
    flows: Vec<Seen>,
    places: Vec<Place>,
    /// Bytes of all flows so far.
    total: u64,
    stats: BehaviourStats,
}

/// The parameters of [`Behaviours`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BehaviourParams {
    /// The most flows that are followed at once: 128. Each needs about 32 kB.
    pub flows: usize,
    /// The packets after which a flow is followed: 64.
    pub heavy: u32,
    /// How long a flow must be silent until another may have its place: 10 s.
    pub idle: Nanos,
}

impl Default for BehaviourParams {
    fn default() -> Self {
        Self { flows: 128, heavy: 64, idle: Nanos(10_000_000_000) }
    }
}

/// What [`Behaviours`] left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BehaviourStats {
    /// Flows that were heavy, but found no free place.
    pub unfollowed: u64,
    /// Flows that lost their place to others.
    pub replaced: u64,
}

/// What is known of a flow before it has a place.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The index of its place plus 1; 0 if it has none.
    place: u32,
    /// Packets so far, and their bytes.
    packets: u32,
    bytes: u64,
    /// When its SYN left the queue, if its first packet can be one; and the time from there to the next packet.
    syn_left: Option<Nanos>,
    rtt: Option<Nanos>,
    is_refused: bool,
}

#[derive(Debug)]
struct Place {
    flow: FlowId,
    rounds: FlowRounds,
    last: Nanos,
}

/// The largest packet that can be a SYN: headers with all options, without data.
const SYN: u64 = 128;
/// A second short packet after more than this is a repeated SYN (RFC 6298: the first timeout is one second).
const REPEATED: Nanos = Nanos(900_000_000);

impl Behaviours {
    /// A meter that has seen nothing.
    pub fn new(params: BehaviourParams) -> Self {
        Self { params, flows: Vec::new(), places: Vec::new(), total: 0, stats: BehaviourStats::default() }
    }

    /// A packet of `flow` left the queue.
    #[inline]
    pub fn departed(&mut self, flow: FlowId, departure: &Departure) {
        let size = departure.packet.size.0;
        self.total += size;
        let place = self.flows.get(flow.index()).map_or(0, |seen| seen.place);
        if place == 0 {
            self.meet(flow, departure);
            return;
        }
        let Some(place) = self.places.get_mut(place as usize - 1) else { return };
        place.last = departure.dequeued;
        place.rounds.departed(departure, self.total);
    }

    /// A packet of `flow` was dropped that had arrived at `arrived`.
    #[inline]
    pub fn dropped(&mut self, flow: FlowId, arrived: Nanos) {
        let place = self.flows.get(flow.index()).map_or(0, |seen| seen.place);
        if let Some(place) = place.checked_sub(1).and_then(|index| self.places.get_mut(index as usize)) {
            place.rounds.dropped(arrived);
        }
    }

    /// The round trips of a flow, if it is followed.
    pub fn flow(&self, flow: FlowId) -> Option<&FlowRounds> {
        let index = self.flows.get(flow.index())?.place.checked_sub(1)?;
        self.places.get(index as usize).map(|place| &place.rounds)
    }

    /// Forgets a flow, whose id may be assigned to another one.
    pub fn forget(&mut self, flow: FlowId) {
        let Some(seen) = self.flows.get_mut(flow.index()) else { return };
        let seen = std::mem::take(seen);
        if let Some(index) = seen.place.checked_sub(1) {
            self.places.swap_remove(index as usize);
            if let Some(moved) = self.places.get(index as usize) {
                self.flows[moved.flow.index()].place = index + 1;
            }
        }
    }

    /// What was left out.
    pub fn stats(&self) -> BehaviourStats {
        self.stats
    }

    /// A packet of a flow without a place.
    fn meet(&mut self, flow: FlowId, departure: &Departure) {
        if self.flows.len() <= flow.index() {
            self.flows.resize(flow.index() + 1, Seen::default());
        }
        let seen = &mut self.flows[flow.index()];
        let size = departure.packet.size.0;
        seen.bytes += size;
        match seen.packets {
            0 => seen.syn_left = (size <= SYN).then_some(departure.dequeued),
            1 => {
                let since = seen.syn_left.map(|left| departure.enqueued.saturating_sub(left));
                if size <= SYN && since > Some(REPEATED) {
                    seen.syn_left = Some(departure.dequeued);
                    return;
                }
                seen.rtt = since;
            }
            _ => {}
        }
        seen.packets = seen.packets.saturating_add(1);
        // A flow that was refused tries again each time that it has sent twice as much.
        if seen.packets >= self.params.heavy && (!seen.is_refused || seen.packets.is_power_of_two()) {
            self.follow(flow, departure.dequeued);
        }
    }

    /// Gives a heavy flow a place, if there is one.
    #[cold]
    fn follow(&mut self, flow: FlowId, now: Nanos) {
        let Seen { packets, bytes, rtt, .. } = self.flows[flow.index()];
        // A flow of short packets only has no SYN that could be known by its size.
        let rtt = rtt.filter(|_| bytes > u64::from(packets) * SYN);
        let rounds = FlowRounds::new(rtt, now, self.total);
        let place = Place { flow, rounds, last: now };
        let index = if self.places.len() < self.params.flows {
            self.places.push(place);
            self.places.len() - 1
        } else {
            let Some(index) = self.least_place(packets, now) else {
                let seen = &mut self.flows[flow.index()];
                self.stats.unfollowed += u64::from(!seen.is_refused);
                seen.is_refused = true;
                return;
            };
            let before = std::mem::replace(&mut self.places[index], place);
            self.flows[before.flow.index()].place = 0;
            self.stats.replaced += 1;
            index
        };
        let seen = &mut self.flows[flow.index()];
        self.stats.unfollowed -= u64::from(seen.is_refused);
        (seen.place, seen.is_refused) = (index as u32 + 1, false);
    }

    /// The place of the flow that has been silent longest, if that is long; otherwise that of the flow with the fewest packets, if these are few beside
    /// `packets`.
    fn least_place(&self, packets: u32, now: Nanos) -> Option<usize> {
        let (oldest, last) = self.places.iter().map(|place| place.last).enumerate().min_by_key(|(_, last)| *last)?;
        if last.saturating_add(self.params.idle) < now {
            return Some(oldest);
        }
        let sent = self.places.iter().map(|place| place.rounds.ecn()[0]).enumerate();
        let (lightest, sent) = sent.min_by_key(|(_, sent)| *sent)?;
        (sent * 4 <= u64::from(packets)).then_some(lightest)
    }
}
