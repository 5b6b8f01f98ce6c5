//! When the queue was congested, and who filled it then.
//!
//! A burst starts as the first packet that waits at least tau comes, and ends as packets wait less than half of tau
//! again, or come after the queue was idle for longer than tau: with one threshold, a delay that hovers about it would be many bursts. Its culprits are the flows whose
//! packets left in between.

mod held;

pub use held::{Follower, Held, Waited};

use crate::losses::Losses;
use crate::{Blame, Blamed, BurstFlows, Contribution, DepthSeries, Past, Picture, Recent};
use queuescope_wire::{Backlog, Departure, FlowId, Nanos};
use std::hash::Hash;

/// Follows one queue and tells its bursts.
#[derive(Debug)]
pub struct BurstTracker<K> {
    open: Option<Open<K>>,
    /// When the last burst ended; what left until then was counted in it.
    ended: Option<Nanos>,
    /// Drops that are no burst's yet: the first packet that waits too long leaves after those that it was queued with were
    /// dropped, and only a later departure shows that a burst went on until a drop.
    losses: Losses,
    blame: Vec<Blame<K>>,
    /// Culprits to tell of each burst, for each granularity.
    most_culprits: Vec<usize>,
    /// Buckets of a burst's picture, and flows drawn in it; none where no picture is wanted.
    picture: Option<(usize, usize)>,
    /// Where packets may overtake one another: what left since the last packet of the burst that is going on, in that order.
    held: Vec<Held>,
}

/// A stretch of congestion.
#[derive(Debug, Clone, PartialEq)]
pub struct Burst<K> {
    /// When the first packet that waited at least tau came.
    pub start: Nanos,
    /// When the last packet that waited at least half of tau left.
    pub end: Nanos,
    /// The longest delay.
    pub peak_delay: Nanos,
    /// The longest time that was asked about; the longest delay, unless questions are across classes.
    pub longest_wait: Nanos,
    /// When the packet with the longest delay came.
    pub peak_at: Nanos,
    /// The deepest queue that a packet met.
    pub peak_backlog: Backlog,
    /// Tau as its last packet left.
    pub tau: Nanos,
    /// Packets that waited at least tau, as that was when they left.
    pub hit: u64,
    /// Packets that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that were dropped from its start to its end.
    pub drops: u64,
    /// Who filled the queue, for each granularity.
    pub blamed: Vec<Blamed<K>>,
    /// Queue depth by flow of the first granularity, where it was asked for.
    pub picture: Option<Picture<K>>,
}

#[derive(Debug)]
struct Open<K> {
    burst: Burst<K>,
    series: Option<DepthSeries<K>>,
    /// The longest that any packet in it waited.
    longest: Nanos,
    /// When the first of those came that left since its last packet, and waited for less than half of tau.
    calm: Option<Nanos>,
}

/// Flows that are kept of those that are taken back while a burst lasts: of the first granularity, whose flows are
/// grouped (1.3 MB), and of each coarser one.
const RETIRED: usize = 16_384;
const COARSER: usize = 2_048;
/// Culprits of a burst that is of little interest.
const FEW_CULPRITS: usize = 40;

impl<K: Eq + Hash + Clone + Ord> BurstTracker<K> {
    /// A tracker that tells so many culprits for each granularity, and pictures of so many buckets and flows.
    pub fn new(most_culprits: &[usize], picture: Option<(usize, usize)>) -> Self {
        Self {
            open: None,
            ended: None,
            losses: Losses::default(),
            blame: (0..most_culprits.len())
                .map(|level| Blame::new(if level == 0 { RETIRED } else { COARSER }))
                .collect(),
            most_culprits: most_culprits.to_vec(),
            picture,
            held: Vec::new(),
        }
    }

    /// Whether a packet that waited since `from` is the first after the burst: it waited less than half of tau, or the
    /// queue was idle for longer than tau before it came.
    pub fn ends_with(&self, waited: Nanos, from: Nanos, tau: Nanos) -> bool {
        let idle = |open: &Open<K>| from.saturating_sub(open.burst.end) > tau;
        self.open.as_ref().is_some_and(|open| waited.0 < tau.0.div_ceil(2) || idle(open))
    }

    /// Whether a burst has ended of which no packet left until `now` and after its end: one that is still in the queue would have
    /// waited for longer than any of it did.
    pub fn is_over(&self, now: Nanos, tau: Nanos) -> bool {
        let quiet = |open: &Open<K>| now.saturating_sub(open.burst.end) > tau.saturating_add(open.longest);
        self.open.as_ref().is_some_and(quiet)
    }

    /// Whether a burst is going on.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Packet `number` of `recent` left after it had waited at least tau since `from`, and no burst is going on: one starts, with
    /// what left before the packet. `project` tells a flow's id at a granularity, and `key` the key of one at the first. `fresh`
    /// hears of each granularity's flows as they become part of the burst.
    pub fn start(
        &mut self,
        from: Nanos,
        recent: &Recent,
        number: u64,
        project: impl Fn(usize, FlowId) -> FlowId,
        key: impl Fn(FlowId) -> K,
        mut fresh: impl FnMut(usize, FlowId),
    ) {
        // Its first packet may have come while the last burst was ending.
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
        self.blame.iter_mut().for_each(Blame::open);
        let open = self.open.insert(Open { burst, series, longest: Nanos::ZERO, calm: None });
        recent.since_until(from, number).for_each(|past| open.add(past, &mut self.blame, &project, &key, &mut fresh));
    }

    /// A packet left that had waited since `from`, while a burst is going on. Its own waiting counts if it is `examined`; it is part
    /// of the burst either way, and the burst goes on. For each granularity: its flow, and what that held as the packet came; `key`
    /// and `fresh` are as in [`start`](Self::start).
    #[expect(clippy::too_many_arguments, reason = "all are facts of the one packet")]
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
        let Some(Open { burst, series, longest, calm }) = &mut self.open else { return };
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

    /// A packet left while a burst is going on, and nobody knows since when it waited: it is part of the burst, whose end
    /// it does not move. `project`, `key` and `fresh` are as in [`start`](Self::start).
    pub fn passed(
        &mut self,
        past: Past,
        project: impl Fn(usize, FlowId) -> FlowId,
        key: impl Fn(FlowId) -> K,
        fresh: impl FnMut(usize, FlowId),
    ) {
        if let Some(open) = &mut self.open {
            open.add(past, &mut self.blame, project, key, fresh);
        }
    }

    /// Packets were dropped, some time in `[from, to]`. They are lost to the burst that lasts until then, as later departures show.
    pub fn dropped(&mut self, from: Nanos, to: Nanos, packets: u64) {
        if let Some(Open { series: Some(series), .. }) = &mut self.open {
            series.dropped(to, packets);
        }
        self.losses.add(from, to, packets);
    }

    /// The id of a flow at granularity number `level` is taken back.
    pub fn forget(&mut self, level: usize, flow: FlowId, key: &K) {
        if self.open.is_some() {
            self.blame[level].forget(flow, key);
        }
    }

    /// The burst that is going on, if any, ends. `key` tells the key of a flow at a granularity; `whole` hears of the burst
    /// with all flows of each granularity, before all but the heaviest are forgotten. Of a burst whose longest wait is not
    /// above `least`, few culprits are told.
    pub fn close(
        &mut self,
        least: Nanos,
        key: impl Fn(usize, FlowId) -> K,
        mut whole: impl FnMut(&Burst<K>, usize, &BurstFlows<K>),
    ) -> Option<Burst<K>> {
        let Open { mut burst, series, .. } = self.open.take()?;
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

impl<K: Eq + Hash + Clone + Ord> Open<K> {
    /// A packet that left, of which no question was asked.
    fn add(
        &mut self,
        Past { flow, size, enqueued, dequeued }: Past,
        blame: &mut [Blame<K>],
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

    /// A FIFO that sends a byte each nanosecond.
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

    /// When a burst starts and ends, packets that waited tau, packets, and bytes by flow.
    pub(super) type Told = (u64, u64, u64, u64, BTreeMap<u32, u64>);

    /// The definition, from all departures at once: a burst begins with a victim, and goes on whoever waits.
    fn reference(departures: &[Departure], is_victim: &[bool], tau: u64) -> Vec<Told> {
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

    fn told(burst: &Burst<u32>) -> Told {
        let flows = burst.blamed[0].top.iter().map(|(flow, share)| (*flow, share.bytes)).collect();
        (burst.start.0, burst.end.0, burst.hit, burst.packets, flows)
    }

    #[test]
    fn what_passed_is_part_of_a_burst_and_does_not_move_its_end() {
        let departures = departures(&[(0, 100, 0), (0, 50, 1)]);
        let (recent, mut tracker) = (Recent::new(History::Fifo), BurstTracker::<u32>::new(&[10], None));
        let (project, key) = (|_, flow| flow, |flow: FlowId| flow.0);
        let past =
            |flow, dequeued| Past { flow: FlowId(flow), size: 7, enqueued: Nanos(dequeued), dequeued: Nanos(dequeued) };
        tracker.passed(past(3, 1), project, key, |_, _| panic!("no burst is going on"));
        tracker.start(Nanos(0), &recent, 0, project, key, |_, _| {});
        let parts = [Contribution::default()];
        tracker.departed(&departures[1], true, Nanos(0), Nanos(10), &[FlowId(1)], &parts, key, |_, _| {});
        let mut heard = Vec::new();
        tracker.passed(past(3, 120), project, key, |level, flow| heard.push((level, flow)));
        let burst = tracker.close(Nanos::ZERO, |_, flow| flow.0, |_, _, _| {}).unwrap();
        assert_eq!(heard, [(0, FlowId(3))]);
        assert_eq!((burst.end, burst.packets, burst.bytes, burst.hit), (Nanos(100), 2, 57, 1));
        assert_eq!(told(&burst).4, BTreeMap::from([(1, 50), (3, 7)]));
    }

    /// A packet of the only flow leaves after it waited since `from`, which is a burst if it takes 10 ns.
    fn leaves(tracker: &mut BurstTracker<u32>, from: u64, dequeued: u64) -> Option<u64> {
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
        const BEFORE: u64 = 300_000;
        let mut tracker = BurstTracker::<u32>::new(&[10], None);
        // More than are kept apart, before the first packet that waited leaves; then for 20 s.
        for time in 0..BEFORE {
            tracker.dropped(Nanos(1_000_000 + time), Nanos(1_000_000 + time), 1);
        }
        assert_eq!(leaves(&mut tracker, 1_000_000, 2_000_000), None);
        for look in 0..1_000 {
            let from = 2_000_000 + look * 20_000_000;
            tracker.dropped(Nanos(from), Nanos(from + 20_000_000), 7);
            assert_eq!(leaves(&mut tracker, from, from + 20_000_000), None);
        }
        // Behind its last packet, which is nobody's; and from where the next burst starts.
        tracker.dropped(Nanos(30_000_000_000), Nanos(30_000_000_001), 11);
        tracker.dropped(Nanos(40_000_000_000), Nanos(40_000_000_001), 13);
        assert_eq!(leaves(&mut tracker, 40_000_000_000, 40_000_000_100), Some(BEFORE + 7 * 1_000));
        assert_eq!(tracker.close(Nanos::ZERO, |_, flow| flow.0, |_, _, _| {}).map(|burst| burst.drops), Some(13));
    }

    /// Follows departures as an analysis does.
    struct Follows {
        tracker: BurstTracker<u32>,
        recent: Recent,
        added: u64,
        bursts: Vec<Told>,
        fresh: Vec<u32>,
    }

    impl Follower<u32> for Follows {
        fn tracker(&mut self) -> &mut BurstTracker<u32> {
            &mut self.tracker
        }

        fn close(&mut self) {
            let burst = self.tracker.close(Nanos::ZERO, |_, flow| flow.0, |_, _, _| {});
            self.bursts.extend(burst.map(|burst| told(&burst)));
        }

        fn start(&mut self, waited: &Waited) {
            let (recent, number) = (&self.recent, waited.number);
            let fresh = |_, flow: FlowId| self.fresh.push(flow.0);
            self.tracker.start(waited.from, recent, number, |_, flow| flow, |flow| flow.0, fresh);
            self.added = number;
        }

        fn add(&mut self, waited: &Waited) {
            let fresh = &mut self.fresh;
            for past in self.recent.numbered(self.added..waited.number) {
                self.tracker.passed(past, |_, flow| flow, |flow| flow.0, |_, flow| fresh.push(flow.0));
            }
            self.added = waited.number + 1;
            let Waited { departure, examined, from, tau, parts, .. } = waited;
            let flows = [departure.packet.flow];
            let fresh = |_, flow: FlowId| fresh.push(flow.0);
            self.tracker.departed(departure, *examined, *from, *tau, &flows, parts, |flow| flow.0, fresh);
        }
    }

    /// What the tracker tells of departures, and each flow that became part of a burst. A packet waits for long from `tau` on.
    pub(super) fn tracked(
        departures: &[Departure],
        is_victim: &[bool],
        tau: u64,
        any_order: bool,
    ) -> (Vec<Told>, Vec<u32>) {
        let history = if any_order { History::Departures(1_000) } else { History::Fifo };
        let (recent, tracker) = (Recent::new(history), BurstTracker::<u32>::new(&[10], None));
        let mut all = Follows { tracker, recent, added: 0, bursts: Vec::new(), fresh: Vec::new() };
        for (departure, examined) in departures.iter().zip(is_victim) {
            let (from, wait, tau) = (departure.enqueued, departure.sojourn(), Nanos(tau));
            let (departure, parts) = (*departure, vec![Contribution::default()]);
            let waited = Waited { departure, examined: *examined, from, tau, number: all.recent.recorded(), parts };
            all.recent.advance(from);
            if any_order {
                let is_calm = wait.0 < tau.0.div_ceil(2);
                let calm = Held::Calm { came: from, left: departure.dequeued, tau };
                all.left(if is_calm { calm } else { Held::Waited(waited) });
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
            all.recent.record(Past { flow: packet.flow, size: packet.size.0 as u32, enqueued, dequeued });
        }
        while all.tracker.is_open() {
            all.cut();
        }
        all.fresh.sort_unstable();
        (all.bursts, all.fresh)
    }

    proptest! {
        #[test]
        fn bursts_are_those_of_the_definition(
            arrivals in prop::collection::vec((0..60u64, 1..90u64, 0..5u32), 1..150), tau in 2..200u64,
            victims in prop_oneof![Just(31), 0..31u32]
        ) {
            // Flows whose packets are victims: all of them, or some.
            let is_victim: Vec<_> = arrivals.iter().map(|(.., flow)| victims >> flow & 1 == 1).collect();
            let departures = departures(&arrivals);
            let expected = reference(&departures, &is_victim, tau);
            let flows = |bursts: &[Told]| {
                let mut flows: Vec<_> = bursts.iter().flat_map(|(.., flows)| flows.keys().copied()).collect();
                flows.sort_unstable();
                flows
            };
            // In a FIFO it is the same whether that is known or not.
            for any_order in [false, true] {
                let (bursts, fresh) = tracked(&departures, &is_victim, tau, any_order);
                prop_assert_eq!(fresh, flows(&bursts));
                prop_assert_eq!(&bursts, &expected);
            }
        }
    }
}
