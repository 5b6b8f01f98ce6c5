//! The order of a packet's hops, and the times between them.

use super::ask::{Asking, Question, whole};
use super::clocks::{Offset, Passage, Passages, difference};
use super::visit::{FLOW, IDENTITY, both_ways_expression};
use super::{JourneyError, JourneyHop};
use crate::protocol::{QueryRequest, QueryResponse};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// How far before and after a packet others are looked for, ns: at first, and if packets of one direction are missing.
const AROUND: [u64; 2] = [250_000_000, 4_000_000_000];
/// The most packets of a host.
const MOST: u64 = 20_000;

/// A clock: a host's, or that of a switch that reports to it.
pub type ClockName = (String, u32);

/// What each pair of clocks saw in common, the lower name first.
pub type AllPassages = BTreeMap<(ClockName, ClockName), Passages>;

/// What is known of the time between two hops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// From leaving the first to coming to the second, by the clock of each, ns. It is negative if the clocks differ by more than the time in between.
    pub shown: i64,
    /// The shortest and the longest time in between that the clocks allow; none if they are not bounded.
    pub least: Option<Nanos>,
    /// See `least`.
    pub most: Option<Nanos>,
    /// How far the second clock is ahead of the first.
    pub offset: Offset,
    /// Packets of the flow, and of the flow the other way, that bound the clocks; none if both hops have one clock.
    pub packets: Option<(usize, usize)>,
}

impl JourneyHop {
    fn clock(&self) -> ClockName {
        (self.member.clone(), self.queue.switch)
    }
}

impl Asking {
    /// Packets of the flow and of the flow the other way, around the hops, that two clocks have in common.
    ///
    /// # Errors
    /// Fails if a call fails.
    pub async fn passages<E>(
        &mut self,
        identity: &[u128],
        hops: &[JourneyHop],
        ask: &mut impl AsyncFnMut(QueryRequest) -> Result<QueryResponse, E>,
    ) -> Result<AllPassages, JourneyError<E>> {
        let mut hosts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for hop in hops.iter().filter(|hop| hop.is_timed) {
            let at = hop.dequeued.0;
            let span = hosts.entry(&hop.member).or_insert((at, at));
            *span = (span.0.min(at), span.1.max(at));
        }
        let clocks: Vec<_> = hops.iter().filter(|hop| hop.is_timed).map(JourneyHop::clock).collect();
        if clocks.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(AllPassages::new());
        }
        let mut passages = AllPassages::new();
        for around in AROUND {
            let mut seen: BTreeMap<ClockName, Sightings> = BTreeMap::new();
            for (host, (first, last)) in &hosts {
                let question = Question {
                    expression: format!("{} and dropped == no and times == queue", both_ways_expression(identity)),
                    select: "count,min(enqueued),max(dequeued)".to_owned(),
                    group: IDENTITY
                        .iter()
                        .chain(&["switch", "egress_port", "queue"])
                        .copied()
                        .collect::<Vec<_>>()
                        .join(","),
                    top: MOST,
                    span: (Some(first.saturating_sub(around)), Some(last.saturating_add(around))),
                };
                let rows = self.rows(host, question, ask).await?;
                for (keys, values) in rows.groups {
                    let [count, came, left] = [0, 1, 2].map(|at| whole(values.get(at)));
                    let (Some(packet), Some(switch)) = (keys.get(..IDENTITY.len()), keys.get(IDENTITY.len())) else {
                        continue;
                    };
                    let sightings = seen.entry(((*host).to_owned(), *switch as u32)).or_default();
                    sightings.add(packet, count, (Nanos(came), Nanos(left)));
                }
            }
            passages = in_common(&seen, identity.get(..FLOW.len()).unwrap_or_default());
            if passages.values().all(|known| !known.there.is_empty() && !known.back.is_empty()) {
                break;
            }
        }
        Ok(passages)
    }
}

/// The packets that a clock saw: when each came and left; none if several look the same.
#[derive(Default)]
struct Sightings(BTreeMap<Vec<u128>, Option<(Nanos, Nanos)>>);

impl Sightings {
    /// Adds `count` visits of packets that look the same to a queue.
    fn add(&mut self, packet: &[u128], count: u64, visit: (Nanos, Nanos)) {
        let visit = (count == 1).then_some(visit);
        let known = self.0.entry(packet.to_vec()).or_insert(visit);
        // Through several queues of one clock, it comes to the first and leaves the last.
        *known = known.zip(visit).map(|(known, visit)| (known.0.min(visit.0), known.1.max(visit.1)));
    }
}

/// The packets that two clocks have in common, for each pair that has any.
fn in_common(seen: &BTreeMap<ClockName, Sightings>, flow: &[u128]) -> AllPassages {
    let mut all = AllPassages::new();
    for (first, of_first) in seen {
        for (second, of_second) in seen.iter().filter(|(second, _)| *second > first) {
            let mut passages = Passages::default();
            for (packet, visit) in &of_first.0 {
                let other = of_second.0.get(packet).copied().flatten();
                if let (Some(at_first), Some(at_second)) = (*visit, other) {
                    let passage = Passage { first: at_first, second: at_second };
                    let is_there = packet.get(..FLOW.len()) == Some(flow);
                    if is_there { passages.there.push(passage) } else { passages.back.push(passage) }
                }
            }
            all.insert((first.clone(), second.clone()), passages);
        }
    }
    all
}

/// How far the clock of `b` was ahead of that of `a` when the packet left `a`, if it was there before, and whether the packets show that it was.
fn offset(all: &AllPassages, a: &JourneyHop, b: &JourneyHop) -> (Offset, Option<bool>, Option<(usize, usize)>) {
    let (of_a, of_b) = (a.clock(), b.clock());
    if of_a == of_b {
        return (Offset::SAME, None, None);
    }
    if !a.is_timed || !b.is_timed {
        return (Offset::default(), None, Some((0, 0)));
    }
    let turned = of_a > of_b;
    let key = if turned { (of_b, of_a) } else { (of_a, of_b) };
    let Some(passages) = all.get(&key) else { return (Offset::default(), None, Some((0, 0))) };
    let turn = |list: &[Passage]| -> Vec<Passage> {
        list.iter()
            .map(
                |&Passage { first, second }| {
                    if turned { Passage { first: second, second: first } } else { Passage { first, second } }
                },
            )
            .collect()
    };
    let passages = Passages { there: turn(&passages.there), back: turn(&passages.back) };
    let offset = passages.offset(a.dequeued, true);
    (offset, passages.is_first(a.dequeued), Some((passages.there.len(), passages.back.len())))
}

/// Whether `a` was before `b`: by their one clock, by packets that both saw, by the time to live, or else by their clocks as they are.
fn is_before(all: &AllPassages, a: &JourneyHop, b: &JourneyHop) -> bool {
    let by_clocks = (a.enqueued, a.dequeued) < (b.enqueued, b.dequeued);
    if a.clock() == b.clock() {
        return by_clocks;
    }
    if let (_, Some(is_first), _) = offset(all, a, b) {
        return is_first;
    }
    if a.ttl != 0 && b.ttl != 0 && a.ttl != b.ttl { a.ttl > b.ttl } else { by_clocks }
}

/// Puts hops in order, and says what is known of the time between each and the next.
pub fn in_order(hops: Vec<JourneyHop>, all: &AllPassages) -> (Vec<JourneyHop>, Vec<Gap>) {
    let before = |at: usize| {
        let others = hops.iter().enumerate().filter(|(other, _)| *other != at);
        others.filter(|(_, other)| is_before(all, other, &hops[at])).count()
    };
    let places: Vec<_> = (0..hops.len()).map(before).collect();
    let mut placed: Vec<_> = places.into_iter().zip(hops).collect();
    // What packets say of three places can contradict itself; then the clocks decide.
    placed.sort_by_key(|(place, hop)| (*place, hop.enqueued, hop.dequeued));
    let hops: Vec<_> = placed.into_iter().map(|(_, hop)| hop).collect();
    let gaps = hops.windows(2).map(|pair| gap(all, &pair[0], &pair[1])).collect();
    (hops, gaps)
}

fn gap(all: &AllPassages, a: &JourneyHop, b: &JourneyHop) -> Gap {
    let shown = difference(a.dequeued, b.enqueued).unwrap_or(i64::MAX);
    let (offset, _, packets) = offset(all, a, b);
    let without = |offset: i64| Nanos(u64::try_from(shown.saturating_sub(offset)).unwrap_or(0));
    let (least, most) =
        if offset.is_possible() { (offset.most.map(without), offset.least.map(without)) } else { (None, None) };
    Gap { shown, least, most, offset, packets }
}
