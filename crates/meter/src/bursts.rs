//! Bursts: the times when a queue was congested, and the flows that filled it then.
//!
//! A burst starts when the first packet comes that waits at least tau. It ends when packets wait for less than half of tau again, or when
//! one comes after the queue was idle for longer than tau. With a single threshold, a delay that varies around it would make many bursts.
//! The culprits of a burst are the flows whose packets left during it.

mod held;

pub use held::{BurstFollower, DetailedDeparture, HeldDepartures};

use crate::losses::Losses;
use crate::{BurstCulprits, BurstFlowSums, BurstFlows, Contribution, DepthSeries, PastDeparture, Picture, Recent};
use queuescope_wire::{Backlog, Departure, FlowId, Nanos};
use std::hash::Hash;

/// Follows one queue and finds its bursts.
#[derive(Debug)]
pub struct BurstTracker<K> {
    open: Option<OpenBurst<K>>,
    /// The end of the last burst; packets that left until then were counted in it.
    ended: Option<Nanos>,
    /// Drops that are not assigned to a burst yet. The first packet that waits too long leaves after packets were dropped that came with
    /// it, and only a later departure shows that a burst lasted until a drop.
    losses: Losses,
    blame: Vec<BurstFlowSums<K>>,
    /// The number of culprits to report of each burst, for each granularity.
    most_culprits: Vec<usize>,
    /// The number of buckets of a burst's picture, and of flows drawn in it; none if no pictures are requested.
    picture: Option<(usize, usize)>,
    /// Where packets may overtake one another: the departures since the last packet of the open burst, in order.
    held: Vec<HeldDepartures>,
}

/// A period of congestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Burst<K> {
    /// The arrival of the first packet that waited at least tau.
    pub start: Nanos,
    /// The departure of the last packet that waited at least half of tau.
    pub end: Nanos,
    /// The longest sojourn time.
    pub peak_delay: Nanos,
    /// The longest time range of a query; equal to the longest sojourn time, unless queries span traffic classes.
    pub longest_wait: Nanos,
    /// The arrival of the packet with the longest sojourn time.
    pub peak_at: Nanos,
    /// The largest backlog that a packet met.
    pub peak_backlog: Backlog,
    /// Tau when the last packet left.
    pub tau: Nanos,
    /// Packets that waited at least tau, with its value when they left.
    pub hit: u64,
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were dropped between start and end.
    pub drops: u64,
    /// The flows that filled the queue, for each granularity.
    pub blamed: Vec<BurstCulprits<K>>,
    /// Queue depth by flow of the first granularity, if pictures are requested.
    pub picture: Option<Picture<K>>,
}

#[derive(Debug)]
struct OpenBurst<K> {
    burst: Burst<K>,
    series: Option<DepthSeries<K>>,
    /// The longest sojourn time of any packet in it.
    longest: Nanos,
    /// The earliest arrival among packets that left since the last packet of the burst and waited for less than half of tau.
    calm: Option<Nanos>,
}

/// How many of the flows whose ids were released during a burst are kept: at the first granularity, whose flows are
/// grouped (1.3 MB), and at each coarser one.
const RETIRED: usize = 16_384;
const COARSER: usize = 2_048;
/// The number of culprits of a burst that is of little interest.
const FEW_CULPRITS: usize = 40;

impl<K: Eq + Hash + Clone + Ord> BurstTracker<K> {
    /// Creates a tracker that reports this many culprits for each granularity, and pictures with these numbers of buckets and flows.
    pub fn new(most_culprits: &[usize], picture: Option<(usize, usize)>) -> Self {
        Self {
            open: None,
            ended: None,
            losses: Losses::default(),
            blame: (0..most_culprits.len())
                .map(|level| BurstFlowSums::new(if level == 0 { RETIRED } else { COARSER }))
                .collect(),
            most_culprits: most_culprits.to_vec(),
            picture,
            held: Vec::new(),
        }
    }

    /// Whether a packet that waited since `from` is the first after the burst: it waited for less than half of tau, or it
    /// came after the queue was idle for longer than tau.
    pub fn ends_with(&self, waited: Nanos, from: Nanos, tau: Nanos) -> bool {
        let idle = |open: &OpenBurst<K>| from.saturating_sub(open.burst.end) > tau;
        self.open.as_ref().is_some_and(|open| waited.0 < tau.0.div_ceil(2) || idle(open))
    }

    /// Whether a burst has ended, as no packet of it left since its end and until `now`. A packet of the burst that is still in the queue
    /// would have waited for longer than any other packet of it.
    pub fn is_over(&self, now: Nanos, tau: Nanos) -> bool {
        let quiet = |open: &OpenBurst<K>| now.saturating_sub(open.burst.end) > tau.saturating_add(open.longest);
        self.open.as_ref().is_some_and(quiet)
    }

    /// Whether a burst is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Starts a burst with packet `number` of `recent`, which left after it had waited at least tau since `from`, and with the departures
    /// before it. No burst may be open. `project` maps a flow's id to its id at a granularity, and `key` maps an id at the first granularity
    /// to its key. `fresh` is called with the flows of each granularity as they become part of the burst.
    pub fn start(
        &mut self,
        from: Nanos,
        recent: &Recent,
        number: u64,
        project: impl Fn(usize, FlowId) -> FlowId,
        key: impl Fn(FlowId) -> K,
        mut fresh: impl FnMut(usize, FlowId),
    ) {
        // The packet may have come while the last burst was ending.
        let from = self.ended.map_or(from, |ended| from.max(Nanos(ended.0.saturating_add(1))));
        let burst = Burst {
            start: from,
            end: from,
            peak_delay: Nanos::ZERO,
            longest_wait: Nanos::ZERO,
            peak_at: from,
            peak_backlog: Backlog::default(),
            tau: Nanos::ZERO,
            hit: 0,
            packets: 0,
            bytes: 0,
            drops: 0,
            blamed: Vec::new(),
            picture: None,
        };
        self.losses.forget_before(from);
        let series = self.picture.map(|(buckets, _)| DepthSeries::new(from, buckets));
        self.blame.iter_mut().for_each(BurstFlowSums::open);
        let open = self.open.insert(OpenBurst { burst, series, longest: Nanos::ZERO, calm: None });
        recent.since_until(from, number).for_each(|past| open.add(past, &mut self.blame, &project, &key, &mut fresh));
    }

    /// Adds a packet that left to the open burst, which extends the burst. The packet had waited since `from`; its sojourn time counts only if
    /// it is `examined`. `flows` and `parts` have an element for each granularity: its flow, and the flow's part of the queue that the packet
    /// met. `key` and `fresh` are as in [`start`](Self::start).
    #[expect(clippy::too_many_arguments, reason = "all describe the one packet")]
    pub fn departed(
        &mut self,
        departure: &Departure,
        examined: bool,
        from: Nanos,
        tau: Nanos,
        flows: &[FlowId],
        parts: &[Contribution],
        key: impl Fn(FlowId) -> K,
        mut fresh: impl FnMut(usize, FlowId),
    ) {
        let waited = departure.dequeued.saturating_sub(from);
        let Some(OpenBurst { burst, series, longest, calm }) = &mut self.open else { return };
        (*longest, *calm) = ((*longest).max(departure.sojourn()), None);
        burst.end = departure.dequeued;
        burst.drops += self.losses.take_until(burst.end);
        burst.tau = tau;
        burst.packets += 1;
        burst.bytes += departure.packet.size.0;
        if examined {
            burst.hit += u64::from(waited >= tau);
            burst.longest_wait = burst.longest_wait.max(waited);
            if departure.sojourn() > burst.peak_delay {
                (burst.peak_delay, burst.peak_at) = (departure.sojourn(), departure.enqueued);
            }
        }
        burst.peak_backlog.bytes = burst.peak_backlog.bytes.max(departure.backlog_in.bytes);
        burst.peak_backlog.packets = burst.peak_backlog.packets.max(departure.backlog_in.packets);
        let size = departure.packet.size.0 as u32;
        for (level, (blame, (flow, part))) in self.blame.iter_mut().zip(flows.iter().zip(parts)).enumerate() {
            if blame.add(*flow, size, part.own) {
                fresh(level, *flow);
            }
        }
        if let (Some(series), Some(flow)) = (series, flows.first()) {
            series.departed(&key(*flow), size, departure.enqueued, departure.dequeued);
        }
    }

    /// Adds a packet that left, with an unknown arrival, to the open burst; it does not extend the burst. `project`, `key` and `fresh` are
    /// as in [`start`](Self::start).
    pub fn passed(
        &mut self,
        past: PastDeparture,
        project: impl Fn(usize, FlowId) -> FlowId,
        key: impl Fn(FlowId) -> K,
        fresh: impl FnMut(usize, FlowId),
    ) {
        if let Some(open) = &mut self.open {
            open.add(past, &mut self.blame, project, key, fresh);
        }
    }

    /// Counts packets that were dropped at an unknown time in `[from, to]`. Later departures show which burst lasted until then.
    pub fn dropped(&mut self, from: Nanos, to: Nanos, packets: u64) {
        if let Some(OpenBurst { series: Some(series), .. }) = &mut self.open {
            series.dropped(to, packets);
        }
        self.losses.add(from, to, packets);
    }

    /// The id of a flow at granularity number `level` is released.
    pub fn forget(&mut self, level: usize, flow: FlowId, key: &K) {
        if self.open.is_some() {
            self.blame[level].forget(flow, key);
        }
    }

    /// Ends the open burst, if there is one. `key` maps a flow's id at a granularity to its key. `whole` receives the burst with all flows of
    /// each granularity, before all but the heaviest are discarded. If the burst's longest wait is not above `least`, only a few culprits are
    /// kept.
    pub fn close(
        &mut self,
        least: Nanos,
        key: impl Fn(usize, FlowId) -> K,
        mut whole: impl FnMut(&Burst<K>, usize, &BurstFlows<K>),
    ) -> Option<Burst<K>> {
        let OpenBurst { mut burst, series, .. } = self.open.take()?;
        self.ended = Some(burst.end);
        let few = if burst.longest_wait > least { usize::MAX } else { FEW_CULPRITS };
        for (level, (blame, most)) in self.blame.iter_mut().zip(&self.most_culprits).enumerate() {
            let flows = blame.close(|flow| key(level, flow));
            whole(&burst, level, &flows);
            burst.blamed.push(flows.heaviest(few.min(*most)));
        }
        let drawn = self.picture.map_or(0, |(_, flows)| flows);
        burst.picture = series.map(|series| series.finish(drawn));
        Some(burst)
    }
}

impl<K: Eq + Hash + Clone + Ord> OpenBurst<K> {
    /// Adds a packet that left and was not a victim of any query.
    fn add(
        &mut self,
        PastDeparture { flow, size, enqueued, dequeued }: PastDeparture,
        blame: &mut [BurstFlowSums<K>],
        project: impl Fn(usize, FlowId) -> FlowId,
        key: impl Fn(FlowId) -> K,
        mut fresh: impl FnMut(usize, FlowId),
    ) {
        self.burst.packets += 1;
        self.burst.bytes += u64::from(size);
        for (level, blame) in blame.iter_mut().enumerate() {
            let flow = project(level, flow);
            if blame.add(flow, size, 0) {
                fresh(level, flow);
            }
        }
        if let Some(series) = &mut self.series {
            series.departed(&key(project(0, flow)), size, enqueued, dequeued);
        }
    }
}

#[cfg(test)]
mod any_order;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::History;
    use proptest::prelude::*;
    use queuescope_wire::{ByteCount, Class, Ecn, Packet, PacketId, QueueId};
    use std::collections::BTreeMap;

    /// The departures of a FIFO queue that sends a byte each nanosecond.
    pub(super) fn departures(arrivals: &[(u64, u64, u32)]) -> Vec<Departure> {
        let (mut now, mut free) = (0, 0);
        let departure = |(id, (gap, size, flow)): (usize, &(u64, u64, u32))| {
            now += gap;
            let dequeued = free.max(now);
            free = dequeued + size;
            let (id, flow, size) = (PacketId(id as u64), FlowId(*flow), ByteCount(*size));
            let packet = Packet { id, flow, size, class: Class(0), ecn: Ecn::NotEct };
            let (enqueued, dequeued, none) = (Nanos(now), Nanos(dequeued), Backlog::default());
            Departure { packet, queue: QueueId(0), enqueued, dequeued, backlog_in: none, backlog_out: none }
        };
        arrivals.iter().enumerate().map(departure).collect()
    }

    /// Start and end of a burst, packets that waited at least tau, packets, and bytes by flow.
    pub(super) type Summary = (u64, u64, u64, u64, BTreeMap<u32, u64>);

    /// The definition, from all departures at once: a burst begins with a victim, and lasts while any packet waits.
    fn reference(departures: &[Departure], is_victim: &[bool], tau: u64) -> Vec<Summary> {
        let (mut bursts, mut ended) = (Vec::new(), None::<u64>);
        let mut at = 0;
        let is_hit = |n: &usize| is_victim[*n] && departures[*n].sojourn().0 >= tau;
        while let Some(first) = (at..departures.len()).find(is_hit) {
            let came = departures[first].enqueued.0;
            let start = ended.map_or(came, |ended| came.max(ended + 1));
            let idle = |n: usize| n > first && departures[n].enqueued.0 > departures[n - 1].dequeued.0 + tau;
            let calm = |n: &usize| departures[*n].sojourn().0 * 2 < tau || idle(*n);
            let after = (first..departures.len()).find(calm).unwrap_or(departures.len());
            let members: Vec<_> = departures[..after].iter().filter(|d| d.dequeued.0 >= start).collect();
            let mut flows = BTreeMap::new();
            members.iter().for_each(|d| *flows.entry(d.packet.flow.0).or_default() += d.packet.size.0);
            let hit = (first..after).filter(is_hit).count() as u64;
            let end = departures[after - 1].dequeued.0;
            bursts.push((start, end, hit, members.len() as u64, flows));
            (ended, at) = (Some(end), after);
        }
        bursts
    }

    fn summary(burst: &Burst<u32>) -> Summary {
        let flows = burst.blamed[0].top.iter().map(|(flow, share)| (*flow, share.bytes)).collect();
        (burst.start.0, burst.end.0, burst.hit, burst.packets, flows)
    }

    #[test]
    fn a_packet_with_unknown_arrival_is_part_of_a_burst_and_does_not_extend_it() {
        let departures = departures(&[(0, 100, 0), (0, 50, 1)]);
        let (recent, mut tracker) = (Recent::new(History::Fifo), BurstTracker::<u32>::new(&[10], None));
        let (project, key) = (|_, flow| flow, |flow: FlowId| flow.0);
        let past = |flow, dequeued| PastDeparture {
            flow: FlowId(flow),
            size: 7,
            enqueued: Nanos(dequeued),
            dequeued: Nanos(dequeued),
        };
        tracker.passed(past(3, 1), project, key, |_, _| panic!("no burst is going on"));
        tracker.start(Nanos(0), &recent, 0, project, key, |_, _| {});
        let parts = [Contribution::default()];
        tracker.departed(&departures[1], true, Nanos(0), Nanos(10), &[FlowId(1)], &parts, key, |_, _| {});
        let mut added_flows = Vec::new();
        tracker.passed(past(3, 120), project, key, |level, flow| added_flows.push((level, flow)));
        let burst = tracker.close(Nanos::ZERO, |_, flow| flow.0, |_, _, _| {}).unwrap();
        assert_eq!(added_flows, [(0, FlowId(3))]);
        assert_eq!((burst.end, burst.packets, burst.bytes, burst.hit), (Nanos(100), 2, 57, 1));
        assert_eq!(summary(&burst).4, BTreeMap::from([(1, 50), (3, 7)]));
    }

    /// A packet of the only flow leaves after it waited since `from`; from 10 ns on, it is part of a burst. Returns the drops of a burst that ends.
    fn depart(tracker: &mut BurstTracker<u32>, from: u64, dequeued: u64) -> Option<u64> {
        let (from, dequeued, recent) = (Nanos(from), Nanos(dequeued), Recent::new(History::Fifo));
        let (tau, flow, key) = (Nanos(10), FlowId(0), |flow: FlowId| flow.0);
        let waited = dequeued.saturating_sub(from);
        let ends = tracker.ends_with(waited, from, tau);
        let ended =
            ends.then(|| tracker.close(Nanos::ZERO, |_, flow| flow.0, |_, _, _| {})).flatten().map(|burst| burst.drops);
        if waited >= tau || tracker.is_open() {
            if !tracker.is_open() {
                tracker.start(from, &recent, 0, |_, flow| flow, key, |_, _| {});
            }
            let packet = Packet { id: PacketId(0), flow, size: ByteCount(1), class: Class(0), ecn: Ecn::NotEct };
            let none = Backlog::default();
            let departure =
                Departure { packet, queue: QueueId(0), enqueued: from, dequeued, backlog_in: none, backlog_out: none };
            tracker.departed(&departure, true, from, tau, &[flow], &[Contribution::default()], key, |_, _| {});
        }
        ended
    }

    #[test]
    fn a_burst_has_every_drop_from_its_start_to_its_end() {
        const EARLY_DROPS: u64 = 300_000;
        let mut tracker = BurstTracker::<u32>::new(&[10], None);
        // More drops than the limit of separate entries, before the first packet that waited leaves; then drops for 20 s.
        for time in 0..EARLY_DROPS {
            tracker.dropped(Nanos(1_000_000 + time), Nanos(1_000_000 + time), 1);
        }
        assert_eq!(depart(&mut tracker, 1_000_000, 2_000_000), None);
        for look in 0..1_000 {
            let from = 2_000_000 + look * 20_000_000;
            tracker.dropped(Nanos(from), Nanos(from + 20_000_000), 7);
            assert_eq!(depart(&mut tracker, from, from + 20_000_000), None);
        }
        // After the last packet of the burst, where no burst is; and at the start of the next burst.
        tracker.dropped(Nanos(30_000_000_000), Nanos(30_000_000_001), 11);
        tracker.dropped(Nanos(40_000_000_000), Nanos(40_000_000_001), 13);
        assert_eq!(depart(&mut tracker, 40_000_000_000, 40_000_000_100), Some(EARLY_DROPS + 7 * 1_000));
        assert_eq!(tracker.close(Nanos::ZERO, |_, flow| flow.0, |_, _, _| {}).map(|burst| burst.drops), Some(13));
    }

    /// Follows departures as the analysis does.
    struct TestFollower {
        tracker: BurstTracker<u32>,
        recent: Recent,
        added: u64,
        bursts: Vec<Summary>,
        fresh: Vec<u32>,
    }

    impl BurstFollower<u32> for TestFollower {
        fn tracker(&mut self) -> &mut BurstTracker<u32> {
            &mut self.tracker
        }

        fn close(&mut self) {
            let burst = self.tracker.close(Nanos::ZERO, |_, flow| flow.0, |_, _, _| {});
            self.bursts.extend(burst.map(|burst| summary(&burst)));
        }

        fn start(&mut self, waited: &DetailedDeparture) {
            let (recent, number) = (&self.recent, waited.number);
            let fresh = |_, flow: FlowId| self.fresh.push(flow.0);
            self.tracker.start(waited.from, recent, number, |_, flow| flow, |flow| flow.0, fresh);
            self.added = number;
        }

        fn add(&mut self, waited: &DetailedDeparture) {
            let fresh = &mut self.fresh;
            for past in self.recent.numbered(self.added..waited.number) {
                self.tracker.passed(past, |_, flow| flow, |flow| flow.0, |_, flow| fresh.push(flow.0));
            }
            self.added = waited.number + 1;
            let DetailedDeparture { departure, examined, from, tau, parts, .. } = waited;
            let flows = [departure.packet.flow];
            let fresh = |_, flow: FlowId| fresh.push(flow.0);
            self.tracker.departed(departure, *examined, *from, *tau, &flows, parts, |flow| flow.0, fresh);
        }
    }

    /// The tracker's bursts, and each flow that became part of a burst.
    pub(super) fn tracked(
        departures: &[Departure],
        is_victim: &[bool],
        tau: u64,
        any_order: bool,
    ) -> (Vec<Summary>, Vec<u32>) {
        let history = if any_order { History::Departures(1_000) } else { History::Fifo };
        let (recent, tracker) = (Recent::new(history), BurstTracker::<u32>::new(&[10], None));
        let mut all = TestFollower { tracker, recent, added: 0, bursts: Vec::new(), fresh: Vec::new() };
        for (departure, examined) in departures.iter().zip(is_victim) {
            let (from, wait, tau) = (departure.enqueued, departure.sojourn(), Nanos(tau));
            let (departure, parts) = (*departure, vec![Contribution::default()]);
            let waited =
                DetailedDeparture { departure, examined: *examined, from, tau, number: all.recent.recorded(), parts };
            all.recent.advance(from);
            if any_order {
                let is_calm = wait.0 < tau.0.div_ceil(2);
                let calm = HeldDepartures::Calm { came: from, left: departure.dequeued, tau };
                all.left(if is_calm { calm } else { HeldDepartures::Waited(waited) });
            } else {
                if all.tracker.ends_with(wait, from, tau) {
                    all.close();
                }
                if *examined && wait >= tau && !all.tracker.is_open() {
                    all.start(&waited);
                }
                if all.tracker.is_open() {
                    all.add(&waited);
                }
            }
            let Departure { packet, enqueued, dequeued, .. } = departure;
            all.recent.record(PastDeparture { flow: packet.flow, size: packet.size.0 as u32, enqueued, dequeued });
        }
        while all.tracker.is_open() {
            all.cut();
        }
        all.fresh.sort_unstable();
        (all.bursts, all.fresh)
    }

    proptest! {
        #[test]
        fn bursts_match_the_definition(
            arrivals in prop::collection::vec((0..60u64, 1..90u64, 0..5u32), 1..150), tau in 2..200u64,
            victims in prop_oneof![Just(31), 0..31u32]
        ) {
            // Packets of these flows are victims: all flows, or some.
            let is_victim: Vec<_> = arrivals.iter().map(|(.., flow)| victims >> flow & 1 == 1).collect();
            let departures = departures(&arrivals);
            let expected = reference(&departures, &is_victim, tau);
            let flows = |bursts: &[Summary]| {
                let mut flows: Vec<_> = bursts.iter().flat_map(|(.., flows)| flows.keys().copied()).collect();
                flows.sort_unstable();
                flows
            };
            // In a FIFO queue the result is the same without that knowledge.
            for any_order in [false, true] {
                let (bursts, fresh) = tracked(&departures, &is_victim, tau, any_order);
                prop_assert_eq!(fresh, flows(&bursts));
                prop_assert_eq!(&bursts, &expected);
            }
        }
    }
}
