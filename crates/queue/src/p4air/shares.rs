//! The queues of a port, divided among the groups of long-lived flows so that each queue serves about as many flows
//! (section III-B and figure 4 of the paper).
//!
//! Each group has a range of adjacent queues; the boundaries between the ranges are the paper's `l_i`. A flow gets the
//! next queue of its group in turn. A counter for each group (the paper's `c_i`) says how many flows fit into its queues
//! at `flows_per_queue` flows each. When a group is full and another has room for more than a queue of flows, a queue
//! moves from the one with the most room to it.
//!
//! The paper's figure has two groups. With four, the groups between giver and taker keep their number of queues and
//! shift by one. The paper does not say where the boundaries start: here the group of new flows, the delay-based one, has
//! all queues but one for each other group ([`Start::NewFlows`]), or all groups have the same number ([`Start::Even`]).
//!
//! Flows end in some queues sooner than in others. Section V proposes to count the flows of each queue, and to save for each
//! group a queue that has room ([`Assignment::Counted`]): `n_queues log2(n_flows) + 4 log2(n_queues)` bits for each port. A
//! flow that needs a queue goes to the saved one while it has room. A switch cannot search its queues: here, a packet saves its
//! queue if that has room and none is saved, and a flow that leaves a queue saves that one. A queue has room with fewer
//! flows than `flows_per_queue`, which is rounded up; the paper's "at most fpq" is the same with fpq rounded down.
//!
//! By round-trip time ([`Assignment::ByRtt`]), the control plane gives queues to groups ([`QueueShares::even_out`]), and `ranks.rs` chooses the queue.

use queuescope_sketch::FlowGroup;

/// The most groups that have queues: those of fingerprints, and those of shaped and of scalable flows.
pub(super) const GROUPS: usize = FlowGroup::LONG_LIVED.len() + 2;

/// How queues are divided before there are flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The delay-based group, where every long-lived flow begins, has all queues but one for each other group.
    NewFlows,
    /// Each group has the same number, except for a remainder, which goes to the first ones.
    Even,
}

/// Which queue of its group a flow gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// The next one in turn.
    InTurn,
    /// One that has room by its number of flows, if one is known; otherwise the next one in turn (section V).
    Counted,
    /// The one of its round-trip time: the flows of a group are in the order of their times, as many in each queue. A flow changes
    /// its queue when the places are computed again ([`P4airParams::rank_interval`](super::P4airParams::rank_interval)). With
    /// [`Queueing::Weighted`](super::Queueing::Weighted), a group has one queue and nothing changes.
    ByRtt,
}

/// The division of a port's queues. Groups are numbered as by [`FlowGroup::long_lived`], queues from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueueShares {
    /// The first queue of each group, and the end of the last one's: `l_i`.
    bounds: [u16; GROUPS + 1],
    flows: [u32; GROUPS],
    /// How many more flows fit into each group's queues: `c_i`. Below zero, a group has more flows than fit.
    room: [i64; GROUPS],
    /// The next queue of each group, counted from its first one.
    next: [u16; GROUPS],
    /// The queue that a group has received, and how many flows of the group still move to it.
    gained: [(u16, u32); GROUPS],
    flows_per_queue: u32,
    /// Whether a full group receives a queue at once. By round-trip time, the control plane gives queues.
    gives: bool,
    /// The flows of each queue; empty if they are not counted.
    in_queue: Vec<u32>,
    /// A queue of each group that has room, if they are counted and one is known.
    saved: [Option<u16>; GROUPS],
}

impl QueueShares {
    /// Divides `queues` queues among the groups that are there, of which the first is; fewer than one for each count as that.
    pub fn new(queues: u16, groups: [bool; GROUPS], start: Start, assignment: Assignment) -> Self {
        let count = groups.iter().filter(|is_there| **is_there).count() as u16;
        let queues = queues.max(count);
        let size = |number: u16| match start {
            Start::NewFlows if number == 0 => queues - (count - 1),
            Start::NewFlows => 1,
            Start::Even => queues / count + u16::from(number < queues % count),
        };
        let (mut bounds, mut number) = ([0; GROUPS + 1], 0);
        for (group, is_there) in groups.into_iter().enumerate() {
            bounds[group + 1] = bounds[group] + if is_there { size(number) } else { 0 };
            number += u16::from(is_there);
        }
        let counted = if assignment == Assignment::Counted { queues } else { 0 };
        let mut shares = Self {
            in_queue: vec![0; counted.into()],
            saved: [None; GROUPS],
            bounds,
            flows: [0; GROUPS],
            room: [0; GROUPS],
            next: [0; GROUPS],
            gained: [(0, 0); GROUPS],
            flows_per_queue: 1,
            gives: assignment != Assignment::ByRtt,
        };
        for group in 0..GROUPS {
            shares.room[group] = i64::from(shares.size(group));
        }
        shares
    }

    /// Queues of all groups.
    pub fn all_queues(&self) -> u16 {
        self.bounds[GROUPS]
    }

    /// The flows of each queue; empty if they are not counted.
    pub fn in_queues(&self) -> &[u32] {
        &self.in_queue
    }

    /// Long-lived flows.
    #[inline]
    pub fn all_flows(&self) -> u32 {
        self.flows.iter().sum()
    }

    /// The flows of a group; 0 for a number without a group.
    pub fn flows(&self, group: usize) -> u32 {
        self.flows.get(group).copied().unwrap_or(0)
    }

    /// The queues of a group.
    pub fn queues(&self, group: usize) -> std::ops::Range<u16> {
        self.bounds[group]..self.bounds[group + 1]
    }

    /// The group of a queue.
    pub fn group_of(&self, queue: u16) -> usize {
        self.bounds[1..GROUPS].partition_point(|first| *first <= queue)
    }

    /// A flow leaves group `from` and enters group `to`; either is `None` for a flow that was or becomes short-lived, or
    /// ended. Returns whether a queue has moved.
    pub fn move_flow(&mut self, from: Option<usize>, to: Option<usize>) -> bool {
        if let Some(from) = from {
            self.flows[from] = self.flows[from].saturating_sub(1);
            self.room[from] += 1;
        }
        if let Some(to) = to {
            self.flows[to] += 1;
            self.room[to] -= 1;
        }
        self.set_flows_per_queue();
        to.is_some_and(|to| self.gives && self.give_queue_to(to))
    }

    /// The queue of a flow of this group that was last in `stored`. It changes if that queue belongs to another group
    /// now, if it is new here, or if the group has received a queue that needs flows.
    #[inline]
    pub fn queue(&mut self, group: usize, stored: Option<u16>) -> u16 {
        let (gained, wanted) = self.gained[group];
        let range = self.queues(group);
        let queue = match stored.filter(|queue| range.contains(queue)) {
            Some(queue) if wanted == 0 || queue == gained => queue,
            _ if wanted > 0 && range.contains(&gained) => {
                self.gained[group].1 -= 1;
                gained
            }
            Some(queue) => queue,
            None => self.new_queue(group),
        };
        if !self.in_queue.is_empty() {
            self.count(group, stored, queue);
        }
        queue
    }

    /// A flow of this group leaves its queue, and gets no other one here.
    pub fn leave_queue(&mut self, group: usize, queue: u16) {
        let Some(flows) = self.in_queue.get_mut(usize::from(queue)) else { return };
        *flows = flows.saturating_sub(1);
        self.save(group, queue);
    }

    /// A flow of this group is in `queue`, and was in `stored`.
    fn count(&mut self, group: usize, stored: Option<u16>, queue: u16) {
        if stored != Some(queue) {
            if let Some(stored) = stored {
                self.leave_queue(group, stored);
            }
            if let Some(flows) = self.in_queue.get_mut(usize::from(queue)) {
                *flows += 1;
            }
        }
        self.save(group, queue);
    }

    /// Saves a queue of this group if it has room and no other one is saved, and forgets a saved one without room.
    fn save(&mut self, group: usize, queue: u16) {
        if self.saved[group].is_none_or(|saved| !self.has_room(group, saved)) {
            self.saved[group] = Some(queue).filter(|queue| self.has_room(group, *queue));
        }
    }

    /// Whether a queue is one of this group's and has fewer flows than each queue should have.
    fn has_room(&self, group: usize, queue: u16) -> bool {
        let flows = self.in_queue.get(usize::from(queue));
        self.queues(group).contains(&queue) && flows.is_some_and(|flows| *flows < self.flows_per_queue)
    }

    /// The saved queue, or the next one in turn.
    fn new_queue(&mut self, group: usize) -> u16 {
        let saved = self.saved[group].filter(|saved| self.has_room(group, *saved));
        saved.unwrap_or_else(|| self.next_queue(group))
    }

    fn next_queue(&mut self, group: usize) -> u16 {
        let turn = self.next[group] % self.size(group);
        self.next[group] = turn + 1;
        self.bounds[group] + turn
    }

    fn size(&self, group: usize) -> u16 {
        self.bounds[group + 1] - self.bounds[group]
    }

    /// The least number of flows in a queue with which all of them fit.
    fn set_flows_per_queue(&mut self) {
        let queues = u32::from(self.bounds[GROUPS]);
        let all = self.all_flows();
        while all > self.flows_per_queue.saturating_mul(queues) {
            self.flows_per_queue += 1;
            self.add_room(1);
        }
        // Two thresholds, so that one flow that comes and goes does not change it each time.
        while self.flows_per_queue > 1 && all.saturating_add(queues / 2) < (self.flows_per_queue - 1) * queues {
            self.flows_per_queue -= 1;
            self.add_room(-1);
        }
    }

    fn add_room(&mut self, each: i64) {
        for group in 0..GROUPS {
            self.room[group] += each * i64::from(self.size(group));
        }
    }

    fn give_queue_to(&mut self, to: usize) -> bool {
        let each = i64::from(self.flows_per_queue);
        let may_give = |group: &usize| *group != to && self.room[*group] > each && self.size(*group) > 1;
        let giver = (0..GROUPS).filter(may_give).max_by_key(|group| (self.room[*group], group.abs_diff(to)));
        let Some(from) = giver.filter(|_| self.room[to] <= 0) else { return false };
        self.give(from, to);
        true
    }

    /// Moves queues from groups with few flows for each to groups with many, as a control plane does, which can divide: while
    /// the taker has more flows for each queue than the giver will have. Returns how many have moved.
    pub fn even_out(&mut self) -> u64 {
        let flows_of = |shares: &Self, group: usize, fewer: u16| {
            let size = shares.size(group) - fewer;
            (u64::from(shares.flows[group]) << 32) / u64::from(size)
        };
        for moved in 0..u64::from(self.all_queues()) {
            let sizes = (0..GROUPS).filter(|group| self.size(*group) > 0);
            let Some(to) = sizes.clone().max_by_key(|group| flows_of(self, *group, 0)) else { return moved };
            let givers = sizes.filter(|group| *group != to && self.size(*group) > 1);
            let Some(from) = givers.min_by_key(|group| flows_of(self, *group, 1)) else { return moved };
            if flows_of(self, from, 1) >= flows_of(self, to, 0) {
                return moved;
            }
            self.give(from, to);
        }
        self.all_queues().into()
    }

    /// A queue of group `from` becomes one of group `to`. The groups between them keep their number of queues.
    fn give(&mut self, from: usize, to: usize) {
        let each = i64::from(self.flows_per_queue);
        self.room[from] -= each;
        self.room[to] += each;
        let gained = if from < to {
            for bound in &mut self.bounds[from + 1..=to] {
                *bound -= 1;
            }
            self.bounds[to]
        } else {
            for bound in &mut self.bounds[to + 1..=from] {
                *bound += 1;
            }
            self.bounds[to + 1] - 1
        };
        self.gained[to] = (gained, self.flows_per_queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DELAY: usize = 0;
    const LOSS_DELAY: usize = 1;
    const LOSS: usize = 2;

    /// The groups of fingerprints, with or without that of shaped flows, and without that of scalable ones.
    const FOUR: [bool; GROUPS] = [true, true, true, true, false, false];
    const FIVE: [bool; GROUPS] = [true, true, true, true, true, false];

    fn in_turn(queues: u16, start: Start) -> QueueShares {
        QueueShares::new(queues, FOUR, start, Assignment::InTurn)
    }

    fn sizes(shares: &QueueShares) -> [u16; GROUPS] {
        std::array::from_fn(|group| shares.size(group))
    }

    #[test]
    fn new_flows_have_all_queues_but_one_for_each_other_group() {
        assert_eq!(sizes(&in_turn(30, Start::NewFlows)), [27, 1, 1, 1, 0, 0]);
        assert_eq!(sizes(&in_turn(30, Start::Even)), [8, 8, 7, 7, 0, 0]);
        assert_eq!(sizes(&in_turn(0, Start::Even)), [1, 1, 1, 1, 0, 0]);
        assert_eq!(sizes(&QueueShares::new(30, FIVE, Start::NewFlows, Assignment::InTurn)), [26, 1, 1, 1, 1, 0]);
    }

    #[test]
    fn a_full_group_receives_a_queue_from_the_one_with_the_most_room() {
        let mut shares = in_turn(8, Start::NewFlows);
        assert_eq!(sizes(&shares), [5, 1, 1, 1, 0, 0]);
        assert!(!shares.move_flow(None, Some(DELAY)));
        assert!(shares.move_flow(Some(DELAY), Some(LOSS_DELAY)), "its only queue is full");
        assert_eq!(sizes(&shares), [4, 2, 1, 1, 0, 0]);
        assert_eq!(shares.queues(LOSS_DELAY), 4..6);
        // The flow that caused it goes to the new queue.
        assert_eq!(shares.queue(LOSS_DELAY, Some(0)), 4);
        assert_eq!(shares.queue(LOSS_DELAY, Some(4)), 4);
    }

    /// Figure 4(b): flows of the queue that moved are spread over the group's other queues; the new queue fills with
    /// flows of the group that received it.
    #[test]
    fn flows_of_a_moved_queue_are_spread_over_the_rest_of_their_group() {
        let mut shares = in_turn(4 + 3, Start::Even);
        assert_eq!(sizes(&shares), [2, 2, 2, 1, 0, 0]);
        for group in [LOSS_DELAY, LOSS] {
            for _ in 0..2 {
                shares.move_flow(None, Some(group));
            }
        }
        // Delay-based gave one to each; flows_per_queue is still 1.
        assert_eq!(shares.queues(LOSS).len() + shares.queues(LOSS_DELAY).len(), 5);
        let before = shares.queues(LOSS_DELAY);
        let stays = before.start;
        assert_eq!(shares.queue(DELAY, Some(before.start)), 0, "it belongs to another group now");
        assert_eq!(shares.queue(LOSS_DELAY, Some(stays)), stays);
    }

    #[test]
    fn when_flows_exceed_the_queues_each_queue_takes_one_more() {
        let mut shares = in_turn(8, Start::Even);
        for _ in 0..17 {
            shares.move_flow(None, Some(LOSS));
        }
        assert_eq!(shares.flows_per_queue, 3);
        // The others keep a queue each.
        assert_eq!(sizes(&shares), [1, 1, 5, 1, 0, 0]);
        for _ in 0..17 {
            shares.move_flow(Some(LOSS), None);
        }
        assert_eq!((shares.flows_per_queue, shares.all_flows()), (1, 0));
    }

    /// Twelve flows in four queues, of which all of the first queue and one of the second end.
    #[test]
    fn new_flows_go_where_flows_have_ended_if_they_are_counted() {
        for assignment in [Assignment::InTurn, Assignment::Counted] {
            // Of seven queues, the first group has four.
            let mut shares = QueueShares::new(7, FOUR, Start::NewFlows, assignment);
            let mut queues: Vec<u16> = Vec::new();
            let enter = |shares: &mut QueueShares| {
                shares.move_flow(None, Some(DELAY));
                shares.queue(DELAY, None)
            };
            queues.extend((0..12).map(|_| enter(&mut shares)));
            let flows_in =
                |queues: &[u16]| [0, 1, 2, 3].map(|queue| queues.iter().filter(|own| **own == queue).count());
            assert_eq!(flows_in(&queues), [3; 4]);
            for queue in [0, 0, 0, 1] {
                shares.move_flow(Some(DELAY), None);
                shares.leave_queue(DELAY, queue);
                let place = queues.iter().position(|own| *own == queue).unwrap();
                queues.remove(place);
            }
            // Before new flows come, packets of the others do.
            for queue in &queues {
                assert_eq!(shares.queue(DELAY, Some(*queue)), *queue);
            }
            queues.extend((0..4).map(|_| enter(&mut shares)));
            let expected = if assignment == Assignment::Counted { [3, 3, 3, 3] } else { [1, 3, 4, 4] };
            assert_eq!(flows_in(&queues), expected, "{assignment:?}");
        }
    }

    proptest! {
        #[test]
        fn room_and_queues_always_add_up(
            queues in 0u16..64,
            (others, even, is_counted) in (any::<[bool; 2]>(), any::<bool>(), any::<bool>()),
            even_out: bool,
            moves in proptest::collection::vec((0usize..64, 0usize..=GROUPS), 0..400),
        ) {
            let assignment = if is_counted { Assignment::Counted } else { Assignment::InTurn };
            let start = if even { Start::Even } else { Start::NewFlows };
            let groups = [true, true, true, true, others[0], others[1]];
            let count = groups.iter().filter(|is_there| **is_there).count() as u16;
            let mut shares = QueueShares::new(queues, groups, start, assignment);
            let mut flows: [(Option<usize>, Option<u16>); 64] = [(None, None); 64];
            for (flow, to) in moves {
                let to = Some(to).filter(|to| groups.get(*to) == Some(&true));
                let (from, queue) = flows[flow];
                if let (Some(from), Some(queue)) = (from, queue)
                    && to.is_none()
                    && is_counted
                {
                    shares.leave_queue(from, queue);
                    flows[flow].1 = None;
                }
                shares.move_flow(from, to);
                flows[flow].0 = to;
                if even_out {
                    shares.even_out();
                    let each = |group: usize, fewer: u16| f64::from(shares.flows(group)) / f64::from(shares.size(group) - fewer);
                    let there = || (0..GROUPS).filter(|group| groups[*group]);
                    let most = there().map(|group| each(group, 0)).fold(0.0, f64::max);
                    let givers = there().filter(|group| shares.size(*group) > 1 && each(*group, 0) < most);
                    prop_assert!(givers.clone().all(|group| each(group, 1) >= most - 1e-6), "{:?}", shares);
                }
                for (group, queue) in flows.iter_mut().filter_map(|(group, queue)| Some((((*group)?), queue))) {
                    let given = shares.queue(group, *queue);
                    prop_assert!(shares.queues(group).contains(&given));
                    *queue = Some(given);
                    prop_assert_eq!(shares.queue(group, *queue), given, "a flow does not wander");
                }
                prop_assert_eq!(shares.all_queues(), queues.max(count));
                for (group, is_there) in groups.into_iter().enumerate() {
                    if !is_there {
                        prop_assert_eq!((shares.size(group), shares.flows(group)), (0, 0));
                        continue;
                    }
                    for queue in shares.queues(group) {
                        prop_assert_eq!(shares.group_of(queue), group);
                    }
                    let size = i64::from(shares.size(group));
                    prop_assert!(size >= 1);
                    let counted = flows.iter().filter(|(of, _)| *of == Some(group)).count();
                    prop_assert_eq!(shares.flows(group) as usize, counted);
                    let fit = size * i64::from(shares.flows_per_queue);
                    prop_assert_eq!(shares.room[group], fit - counted as i64);
                    prop_assert!(shares.saved[group].is_none() || is_counted);
                }
                // Each flow is counted once, in the queue where it is.
                for (queue, counted) in (0..).zip(shares.in_queues()) {
                    let there = flows.iter().filter(|(group, own)| group.is_some() && *own == Some(queue)).count();
                    prop_assert_eq!(*counted as usize, there);
                }
            }
        }
    }
}
