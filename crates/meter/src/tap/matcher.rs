//! Matches packets before the router with packets behind it (ConQuest section 6.2).

use super::routes::Fate;
use super::table::{Entry, Table};
use super::{Clock, ClockEstimate, Envelope, RouteBy, Routes, TapPacket, TapStats};
use queuescope_wire::Nanos;
use queuescope_wire::parse::{Fingerprint, Strength};

/// Parameters of matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapParams {
    /// The longest time that a packet can be in the router; a packet that did not come out by then counts as lost or routed elsewhere.
    pub max_delay: Nanos,
    /// How much earlier, by the clocks, a packet may come out than it came in.
    pub early: Nanos,
    /// The largest number of packets in the table; it must hold the packets that come in within `max_delay`.
    pub entries: usize,
    /// A packet with at most this delay met an empty queue.
    pub empty: Nanos,
    /// How lost packets are distinguished from packets that were routed elsewhere.
    pub routes: RouteBy,
    /// The largest number of routes that are remembered.
    pub most_routes: usize,
    /// Whether all captures before the router use the same clock: they then share one estimate.
    pub shared_clock: bool,
    /// How to treat packets that were not captured on their way in.
    pub unseen: Unseen,
}

/// How to treat the arrival of packets that were not captured on their way in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unseen {
    /// Unknown, as in section 6.2: the packet left the queue, and cannot be a victim.
    #[default]
    Unknown,
    /// In a FIFO queue, the packet came between those that left before and after it. If their arrivals are known, and they left within the
    /// longest delay of it, the arrival is interpolated in proportion to the departures.
    FromNeighbours,
}

/// A packet that left the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapDeparture {
    /// The packet as captured on its way out.
    pub seen: TapPacket,
    /// The time of departure, never before that of the previous departure.
    pub dequeued: Nanos,
    /// What is known of its arrival.
    pub arrived: Arrived,
}

/// What is known of a packet's arrival. Times are by the clock behind the router, and never after the departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrived {
    /// It was captured.
    Seen {
        /// The time of arrival.
        enqueued: Nanos,
        /// The number of the link on which it came.
        link: usize,
        /// The packet as captured there.
        ingress: TapPacket,
    },
    /// It was not captured, but packets before and after it were ([`Unseen::FromNeighbours`]); the interpolated time.
    Between(Nanos),
    /// The arrival is unknown.
    Unknown,
}

/// Receives the results of matching.
pub trait TapOutput {
    /// A packet left the router. Calls are in the order of departure.
    fn departed(&mut self, departure: &TapDeparture);

    /// A packet that came at `enqueued`, by the clock behind the router, was lost in it. The call comes once the longest delay has passed.
    /// There is none for packets that came before any other packet of their route had come out (which [`TapStats::lost`] counts), unless
    /// the routes were learnt before.
    fn lost(&mut self, packet: &TapPacket, link: usize, enqueued: Nanos);
}

/// Matches packets that leave a router with packets that came in.
#[derive(Debug)]
pub struct Matcher {
    params: TapParams,
    clocks: Vec<Clock>,
    envelopes: Vec<Envelope>,
    table: Table,
    routes: Routes,
    /// A Bloom filter of the flows whose packets were captured on their way in, by digest, with two bits for each flow.
    seen_flows: Vec<u64>,
    /// TCP segments that were sent, by digest.
    segments: Vec<u64>,
    waiting: UndatedDepartures,
    span: Span,
    /// The arrival of the packet that was matched last.
    last_enqueued: Nanos,
    last_dequeued: Nanos,
    stats: TapStats,
}

/// The times when the captures were running, from their packets, by the clock behind the router.
#[derive(Debug, Clone, Default)]
struct Span {
    ingress: Option<(Nanos, Nanos)>,
    /// The number of captures before the router that have not ended.
    open: usize,
    egress: Option<(Nanos, Nanos)>,
    egress_ended: bool,
}

/// Departures that wait for the next one with a captured arrival.
#[derive(Debug, Default)]
struct UndatedDepartures {
    before: Option<(Nanos, Nanos)>,
    departures: Vec<TapDeparture>,
}

/// The number of remembered segments, to detect retransmissions; each place keeps the last segment with its hash.
const SEGMENTS: usize = 1 << 16;
/// Bits of the flow filter: with up to 100 000 flows, fewer than one in 300 is wrongly taken as captured.
const FLOW_BITS: usize = 1 << 22;
/// Packets of the same payload on one link are copies of one packet if they came within this time: a capture that has each packet twice
/// has them close together, and a sender that repeats itself waits for an answer first.
const COPIED_WITHIN: Nanos = Nanos(100_000);
/// The largest number of departures that wait for one with a captured arrival.
const MOST_WAITING: usize = 1 << 14;

impl Default for TapParams {
    /// A delay of up to 200 ms, which few routers' buffers exceed (1 bandwidth-delay product), and 131 072 packets (18 MB).
    fn default() -> Self {
        Self {
            max_delay: Nanos(200_000_000),
            early: Nanos(10_000_000),
            entries: 1 << 17,
            empty: Nanos(1_000),
            routes: RouteBy::Destination,
            most_routes: 1 << 17,
            shared_clock: false,
            unseen: Unseen::Unknown,
        }
    }
}

impl TapDeparture {
    /// The time of arrival, if it is known.
    pub fn enqueued(&self) -> Option<Nanos> {
        match self.arrived {
            Arrived::Seen { enqueued, .. } | Arrived::Between(enqueued) => Some(enqueued),
            Arrived::Unknown => None,
        }
    }
}

impl Matcher {
    /// Creates a matcher. `clocks` are those of the links into the router, in the order of their numbers.
    pub fn new(params: TapParams, clocks: &[Clock]) -> Self {
        Self::with_routes(params, clocks, Routes::new(params.routes, params.most_routes))
    }

    /// Creates a matcher with routes that were learnt before ([`routes`](Self::routes)), so that every loss is recognised.
    pub fn with_routes(params: TapParams, clocks: &[Clock], routes: Routes) -> Self {
        Self {
            clocks: clocks.to_vec(),
            envelopes: vec![Envelope::new(); if params.shared_clock { 1 } else { clocks.len() }],
            table: Table::new(params.entries),
            routes: routes.learnt(),
            seen_flows: vec![0; FLOW_BITS / 64],
            segments: vec![0; SEGMENTS],
            waiting: UndatedDepartures::default(),
            span: Span { open: clocks.len(), ..Span::default() },
            last_enqueued: Nanos::ZERO,
            last_dequeued: Nanos::ZERO,
            stats: TapStats::default(),
            params,
        }
    }

    /// The parameters.
    pub fn params(&self) -> &TapParams {
        &self.params
    }

    /// The counts so far.
    pub fn stats(&self) -> &TapStats {
        &self.stats
    }

    /// The routes on which packets came out.
    pub fn routes(&self) -> Routes {
        self.routes.clone()
    }

    /// The clock of each link, estimated from all matched packets; none for links without matched packets.
    pub fn clocks(&self) -> Vec<Option<ClockEstimate>> {
        let fits: Vec<_> = self.envelopes.iter().map(Envelope::fit).collect();
        (0..self.clocks.len()).map(|link| fits.get(link.min(fits.len() - 1)).copied().flatten()).collect()
    }

    /// Converts a time by the clock of a link to one by the clock behind the router.
    #[inline]
    pub fn convert(&self, link: usize, time: Nanos) -> Nanos {
        self.clocks.get(link).copied().unwrap_or_default().convert(time)
    }

    /// A packet was captured on its way in, on link number `link`. All packets that came out earlier, by more than [`TapParams::early`],
    /// must have been reported before.
    pub fn ingress(&mut self, link: usize, seen: &TapPacket, output: &mut impl TapOutput) {
        self.stats.ingress += 1;
        let time = self.convert(link, seen.time);
        self.span.ingress =
            Some(self.span.ingress.map_or((time, time), |(first, last)| (first.min(time), last.max(time))));
        self.note_flow(seen.key.digest());
        let Ok(print) = seen.print else {
            self.stats.ingress_no_fingerprint += 1;
            return;
        };
        self.expire(time.saturating_sub(self.params.early), output);
        if self.table.is_full()
            && let Some(entry) = self.table.pop()
            && !entry.matched
        {
            self.stats.ingress_evicted += 1;
        }
        let copies = self.table.same(print.digest).any(|(_, entry)| entry.matched || entry.copy_matched);
        let is_copied = |(_, entry): (u32, &Entry)| is_copy(entry, &print, link, time);
        let copied = self.table.same(print.digest).any(is_copied);
        let known = self.table.push(Entry::new(seen, print.digest, time, link as u32));
        if copies && copied {
            self.table.set_copy_matched(print.digest, |entry| is_copy(entry, &print, link, time));
        }
        self.stats.repeats += u64::from(known && !copied);
        self.note_segment(&print, known);
    }

    /// A packet was captured on its way out. All packets that came in until then, and up to [`TapParams::early`] later, must have been
    /// reported before.
    pub fn egress(&mut self, seen: &TapPacket, output: &mut impl TapOutput) {
        self.stats.egress += 1;
        let time = seen.time;
        self.span.egress = Some(self.span.egress.map_or((time, time), |(first, last)| (first, last.max(time))));
        self.expire(time, output);
        let Ok(print) = seen.print else {
            self.stats.egress_no_fingerprint += 1;
            self.depart(seen, Arrived::Unknown, output);
            return;
        };
        match self.find(&print, time) {
            Match::Forward { id, ambiguous } => self.matched(id, seen, &print, ambiguous, output),
            Match::Reverse { id } => {
                self.table.set_matched(id);
                self.stats.reverse += 1;
            }
            Match::Copy => {
                self.stats.egress_copies += 1;
                // A packet with the same identification is captured twice. Two with the same other fields may be two packets.
                if print.strength != Strength::Identified {
                    self.depart(seen, Arrived::Unknown, output);
                }
            }
            Match::Nothing => {
                self.count_unmatched(seen);
                self.depart(seen, Arrived::Unknown, output);
            }
        }
    }

    /// The capture of link number `link` has ended.
    pub fn ingress_ended(&mut self, _link: usize) {
        self.span.open = self.span.open.saturating_sub(1);
    }

    /// The capture behind the router has ended.
    pub fn egress_ended(&mut self) {
        self.span.egress_ended = true;
    }

    /// All captures have ended: counts the packets that did not come out.
    pub fn finish(&mut self, output: &mut impl TapOutput) {
        self.span.egress_ended = true;
        self.expire(Nanos::MAX, output);
        self.waiting.flush(None, self.params.max_delay, &mut self.stats, output);
    }

    /// Finds the packet that comes out at `time` among those that came in.
    fn find(&self, print: &Fingerprint, time: Nanos) -> Match {
        let (mut first, mut in_order, mut reverse, mut others) = (None, None, None, false);
        let mut count = 0;
        let earliest = time.saturating_sub(self.params.max_delay);
        let latest = time.saturating_add(self.params.early);
        for (id, entry) in self.table.same(print.digest) {
            if entry.matched {
                others = true;
                continue;
            }
            if entry.time < earliest || entry.time > latest {
                continue;
            }
            // A router reduces the TTL by one, and a switch does not change it: only a packet with a larger TTL went the other way.
            if entry.seen.print.is_ok_and(|before| before.ttl < print.ttl) {
                reverse = reverse.or(Some(id));
                continue;
            }
            count += 1;
            first = first.or(Some(id));
            // Among several with the same fingerprint, a FIFO queue cannot have let one overtake a packet that has come out already.
            if entry.time >= self.last_enqueued {
                in_order = in_order.or(Some(id));
            }
        }
        match (in_order.or(first), reverse) {
            (Some(id), _) => Match::Forward { id, ambiguous: count > 1 },
            (None, Some(id)) => Match::Reverse { id },
            (None, None) if others => Match::Copy,
            (None, None) => Match::Nothing,
        }
    }

    fn matched(
        &mut self,
        id: u32,
        seen: &TapPacket,
        print: &Fingerprint,
        ambiguous: bool,
        output: &mut impl TapOutput,
    ) {
        let Some((_, entry)) = self.table.same(print.digest).find(|(other, _)| *other == id) else { return };
        let (ingress, link, time) = (entry.seen, entry.link as usize, entry.time);
        let identified = print.strength == Strength::Identified;
        self.table.set_copy_matched(print.digest, |entry| is_copy(entry, print, link, time));
        self.table.set_matched(id);
        self.stats.matched += 1;
        self.stats.ambiguous += u64::from(ambiguous && !identified);
        self.stats.early += u64::from(time > seen.time);
        self.stats.no_delay += u64::from(seen.time.saturating_sub(time) <= self.params.empty);
        let envelope = if self.params.shared_clock { 0 } else { link };
        if let Some(envelope) = self.envelopes.get_mut(envelope) {
            envelope.add(ingress.time, seen.time);
        }
        let late = self.routes.came_out(&ingress.key);
        self.stats.lost += late;
        self.stats.routed_elsewhere -= late;
        let enqueued = time.min(seen.time);
        self.last_enqueued = self.last_enqueued.max(enqueued);
        self.depart(seen, Arrived::Seen { enqueued, link, ingress }, output);
    }

    fn depart(&mut self, seen: &TapPacket, arrived: Arrived, output: &mut impl TapOutput) {
        self.stats.time_ran_back += u64::from(seen.time < self.last_dequeued);
        self.last_dequeued = self.last_dequeued.max(seen.time);
        let departure = TapDeparture { seen: *seen, dequeued: self.last_dequeued, arrived };
        match (self.params.unseen, departure.enqueued()) {
            (Unseen::Unknown, _) => output.departed(&departure),
            (Unseen::FromNeighbours, Some(enqueued)) => {
                let neighbour = Some((enqueued, departure.dequeued));
                self.waiting.flush(neighbour, self.params.max_delay, &mut self.stats, output);
                output.departed(&departure);
            }
            (Unseen::FromNeighbours, None) => {
                self.waiting.departures.push(departure);
                if self.waiting.departures.len() >= MOST_WAITING {
                    self.waiting.flush(None, self.params.max_delay, &mut self.stats, output);
                }
            }
        }
    }

    /// Counts a packet that came out and was not captured on its way in.
    fn count_unmatched(&mut self, seen: &TapPacket) {
        let is_covered = self.span.ingress.is_some_and(|(first, last)| {
            let ended = self.span.open == 0 && seen.time > last;
            seen.time >= first.saturating_add(self.params.max_delay) && !ended
        });
        if !is_covered {
            self.stats.egress_outside += 1;
        } else if self.has_flow(seen.key.digest()) {
            self.stats.missed_arrival += 1;
        } else {
            self.stats.untapped += 1;
        }
    }

    /// Decides about packets that can no longer come out at `now` or later.
    fn expire(&mut self, now: Nanos, output: &mut impl TapOutput) {
        while let Some(oldest) = self.table.oldest()
            && (oldest.time.saturating_add(self.params.max_delay) < now || now == Nanos::MAX)
        {
            let Some(entry) = self.table.pop() else { return };
            if !entry.matched {
                self.did_not_come_out(&entry, output);
            }
        }
    }

    fn did_not_come_out(&mut self, entry: &Entry, output: &mut impl TapOutput) {
        if entry.copy_matched {
            self.stats.ingress_copies += 1;
        } else if !self.span.saw_leave(entry.time, self.params.max_delay) {
            self.stats.ingress_outside += 1;
        } else {
            match self.routes.did_not_come_out(&entry.seen.key) {
                Fate::Lost => {
                    self.stats.lost += 1;
                    output.lost(&entry.seen, entry.link as usize, entry.time);
                }
                Fate::Undecided => self.stats.routed_elsewhere += 1,
            }
        }
    }

    fn note_segment(&mut self, print: &Fingerprint, known: bool) {
        let Some(segment) = print.segment else { return };
        let place = &mut self.segments[segment as usize % SEGMENTS];
        // The same fingerprint within the longest delay is a copy, or cannot be distinguished from one. After that, only a sender repeats a
        // segment, even if other fields differ.
        self.stats.retransmissions += u64::from(*place == segment && !known);
        *place = segment;
    }

    fn note_flow(&mut self, digest: u64) {
        for bit in flow_bits(digest) {
            self.seen_flows[bit / 64] |= 1 << (bit % 64);
        }
    }

    fn has_flow(&self, digest: u64) -> bool {
        flow_bits(digest).iter().all(|bit| self.seen_flows[bit / 64] & 1 << (bit % 64) != 0)
    }
}

/// Whether an entry with the fingerprint of a packet that came at `time` is a copy of that packet.
fn is_copy(entry: &Entry, print: &Fingerprint, link: usize, time: Nanos) -> bool {
    let together = entry.time.0.abs_diff(time.0) <= COPIED_WITHIN.0;
    match print.strength {
        Strength::Identified => true,
        Strength::Payload => entry.link as usize == link && together,
        Strength::Headers | Strength::Sequence => false,
    }
}

enum Match {
    Forward { id: u32, ambiguous: bool },
    Reverse { id: u32 },
    Copy,
    Nothing,
}

impl Span {
    /// Whether the capture behind the router ran during the whole time in which a packet that came at `time` can have come out.
    fn saw_leave(&self, time: Nanos, max_delay: Nanos) -> bool {
        self.egress.is_some_and(|(first, last)| {
            time >= first && (!self.egress_ended || time.saturating_add(max_delay) <= last)
        })
    }
}

impl UndatedDepartures {
    /// Reports the waiting departures. `after` is the arrival and the departure of the packet that left after them, if these are known.
    fn flush(
        &mut self,
        after: Option<(Nanos, Nanos)>,
        max_delay: Nanos,
        stats: &mut TapStats,
        output: &mut impl TapOutput,
    ) {
        for mut departure in self.departures.drain(..) {
            if let (Some(before), Some(after)) = (self.before, after)
                && let Some(enqueued) = between(before, after, departure.dequeued, max_delay)
            {
                departure.arrived = Arrived::Between(enqueued);
                stats.arrival_interpolated += 1;
            }
            output.departed(&departure);
        }
        self.before = after.or(self.before);
    }
}

/// The interpolated arrival of a packet that left at `left`, between two packets with known arrivals and departures.
fn between(before: (Nanos, Nanos), after: (Nanos, Nanos), left: Nanos, max_delay: Nanos) -> Option<Nanos> {
    if left.saturating_sub(before.1) > max_delay || after.1.saturating_sub(left) > max_delay {
        return None;
    }
    let (part, whole) = (left.saturating_sub(before.1).0, after.1.saturating_sub(before.1).0.max(1));
    let came = u128::from(after.0.saturating_sub(before.0).0) * u128::from(part) / u128::from(whole);
    Some(before.0.saturating_add(Nanos(came as u64)).min(left))
}

fn flow_bits(digest: u64) -> [usize; 2] {
    [digest as usize % FLOW_BITS, (digest >> 32) as usize % FLOW_BITS]
}
