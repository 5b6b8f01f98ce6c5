//! The definitions, applied literally to all departures: quadratic time or worse.

use queuescope_meter::{Amount, Departed, Dropped, Ranking};
use queuescope_wire::{Class, FlowId, Nanos};
use std::collections::BTreeMap;
use std::ops::Range;

/// The arrival of a packet, and its number: the order of arrivals.
pub type Arrival = (u64, u64);

pub fn arrival(departed: &Departed) -> Arrival {
    (departed.enqueued.0, departed.packet.0)
}

pub fn of_drop(dropped: &Dropped) -> Arrival {
    (dropped.at.0, dropped.packet.0)
}

/// Departures in order.
pub struct Reference<'a>(pub &'a [Departed]);

impl Reference<'_> {
    /// The packets in the queue just before `arrival`.
    pub fn standing(&self, arrival: Arrival) -> impl Iterator<Item = &Departed> {
        self.0.iter().filter(move |j| self::arrival(j) < arrival && j.dequeued.0 >= arrival.0)
    }

    pub fn depth(&self, arrival: Arrival) -> u64 {
        self.standing(arrival).map(|j| u64::from(j.size)).sum()
    }

    /// The last arrival, up to `arrival`, that found the queue empty; none if `arrival` itself would.
    fn opening(&self, arrival: Arrival) -> Option<Arrival> {
        self.standing(arrival).next()?;
        let came = self.0.iter().map(self::arrival).filter(|came| *came < arrival);
        came.filter(|came| self.standing(*came).next().is_none()).max()
    }

    pub fn since(&self, arrival: Arrival) -> Nanos {
        Nanos(self.opening(arrival).unwrap_or(arrival).0)
    }

    /// The departures while the packet at `index` waited.
    pub fn direct(&self, index: usize) -> Vec<usize> {
        (0..index).filter(|j| self.0[*j].dequeued >= self.0[index].enqueued).collect()
    }

    /// The departures before `time`, in the period without an empty queue that contains `arrival`.
    pub fn indirect(&self, arrival: Arrival, time: u64) -> Vec<usize> {
        let opening = self.opening(arrival).unwrap_or(arrival);
        let left = |j: &usize| self::arrival(&self.0[*j]) >= opening && self.0[*j].dequeued.0 < time;
        (0..self.0.len()).filter(left).collect()
    }

    /// For each level, the last packet whose arrival raised the queue to it.
    pub fn original(&self, arrival: Arrival) -> Ranking<FlowId> {
        let mut levels = BTreeMap::<Arrival, (usize, u64)>::new();
        for level in 1..=self.depth(arrival) {
            let raised = self.0.iter().enumerate().filter(|(_, j)| {
                let below = self.depth(self::arrival(j));
                self::arrival(j) < arrival && below < level && level <= below + u64::from(j.size)
            });
            let (index, owner) = raised.max_by_key(|(_, j)| self::arrival(j)).expect("a level was reached");
            levels.entry(self::arrival(owner)).or_insert((index, 0)).1 += 1;
        }
        rank(levels.into_values().map(|(index, levels)| (&self.0[index], levels)))
    }

    /// The packets of `flows` that waited within `during`.
    pub fn victims(&self, flows: impl Fn(FlowId) -> bool, during: &Range<Nanos>) -> Vec<usize> {
        let waited = |v: &Departed| v.enqueued.max(during.start) < v.dequeued.min(during.end);
        (0..self.0.len()).filter(|v| flows(self.0[*v].flow) && waited(&self.0[*v])).collect()
    }

    /// The departures in `during` while one of `victims` waited.
    pub fn direct_of_all(&self, victims: &[usize], during: &Range<Nanos>) -> Vec<usize> {
        let delayed = |j: usize, v: usize| j < v && self.0[j].dequeued >= self.0[v].enqueued;
        let within = |j: &usize| during.contains(&self.0[*j].dequeued);
        (0..self.0.len()).filter(within).filter(|j| victims.iter().any(|v| delayed(*j, *v))).collect()
    }

    /// The departures before the waits of `victims` in `during`, since the queue was last empty, that delayed no victim directly.
    pub fn indirect_of_all(&self, victims: &[usize], during: &Range<Nanos>) -> Vec<usize> {
        let direct = self.direct_of_all(victims, during);
        let mut all = std::collections::BTreeSet::new();
        for v in victims.iter().map(|v| &self.0[*v]) {
            all.extend(self.indirect(arrival(v), v.enqueued.max(during.start).0));
        }
        all.into_iter().filter(|j| !direct.contains(j)).collect()
    }

    /// The moment just after the arrival with which the queue was deepest within `during`.
    pub fn deepest(&self, during: &Range<Nanos>) -> Arrival {
        let mut arrivals: Vec<_> = self.0.iter().filter(|j| during.contains(&j.enqueued)).map(arrival).collect();
        arrivals.sort_unstable();
        let after = arrivals.into_iter().map(|(at, number)| (at, number + 1));
        let start = (during.start.0, 0);
        after.fold(start, |best, moment| if self.depth(moment) > self.depth(best) { moment } else { best })
    }

    pub fn rank_of(&self, indices: &[usize]) -> Ranking<FlowId> {
        rank(indices.iter().map(|j| (&self.0[*j], u64::from(self.0[*j].size))))
    }
}

/// Sums by flow and by class.
pub fn rank<'a>(parts: impl Iterator<Item = (&'a Departed, u64)>) -> Ranking<FlowId> {
    let (mut flows, mut classes) = (BTreeMap::<FlowId, Amount>::new(), BTreeMap::<Class, Amount>::new());
    let mut total = Amount::default();
    for (j, bytes) in parts {
        let sums = [flows.entry(j.flow).or_default(), classes.entry(j.class).or_default(), &mut total];
        for sum in sums {
            sum.bytes += bytes;
            sum.packets += 1;
        }
    }
    let mut parts: Vec<_> = flows.into_iter().collect();
    parts.sort_by_key(|(flow, amount)| (std::cmp::Reverse(amount.bytes), *flow));
    Ranking { parts, classes: classes.into_iter().collect(), total }
}
