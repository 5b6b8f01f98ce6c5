//! The groups and the queues of flows: how a flow enters and leaves them, and what the control plane does with both.

use super::flows::Flow;
use super::{ANTS, Assignment, GROUPS, GroupMove, LONG_LIVED, MICE, MOST_MOVES, Newest, P4air, Port};
use queuescope_sketch::{FlowGroup, QueueGrowth};
use queuescope_wire::Nanos;

impl P4air {
    /// The queue of a flow, which may have changed.
    #[inline]
    pub(super) fn queue_of(&mut self, port: Port, entry: u32) -> u16 {
        let flow = self.flows.at_mut(entry);
        let Some(group) = flow.group.long_lived() else {
            return if flow.group == FlowGroup::Ant { ANTS } else { MICE };
        };
        if flow.has_ended {
            return flow.queue.unwrap_or(0) + LONG_LIVED;
        }
        let Some(Some(state)) = self.ports.get_mut(usize::from(port.0)) else { return ANTS };
        let queue = match self.params.assignment {
            Assignment::ByRtt => {
                let queues = state.shares.queues(group);
                queues.start + state.ranks.place(group, flow.rank_key(), queues.len() as u16)
            }
            Assignment::InTurn | Assignment::Counted => state.shares.queue(group, flow.queue),
        };
        if flow.queue != Some(queue) {
            self.stats.requeued += u64::from(flow.queue.is_some());
            // A table moves old flows, too: none of them may stay the newest of a queue that it has left.
            if let (Assignment::ByRtt, Newest::OfQueue, Some(left)) =
                (self.params.assignment, self.params.newest, flow.queue)
                && let Some(newest) = state.newest.get_mut(usize::from(left)).filter(|newest| **newest == flow.assigned)
            {
                *newest = 0;
            }
            flow.queue = Some(queue);
        }
        let place = match self.params.newest {
            Newest::OfQueue => usize::from(queue),
            Newest::OfGroup => group,
            Newest::Any => return queue + LONG_LIVED,
        };
        state.newest[place] = state.newest[place].max(flow.assigned);
        queue + LONG_LIVED
    }

    /// Moves a flow to another group. Takes effect at ingress.
    pub(super) fn move_to(&mut self, entry: u32, to: FlowGroup, now: Nanos) {
        let flow = self.flows.at_mut(entry);
        let from = flow.group;
        if from == to || flow.has_ended {
            return;
        }
        if self.moves.len() < MOST_MOVES {
            self.moves.push(GroupMove { flow: flow.flow, at: now, round: flow.round, from, to });
        }
        self.assigned = self.assigned.wrapping_add(1).max(1);
        let (port, queue, assigned) = (flow.port, flow.queue, flow.assigned);
        (flow.group, flow.queue, flow.assigned) = (to, None, self.assigned);
        if from.long_lived().is_none() {
            flow.rate.forget_pulses();
            flow.growth = QueueGrowth::default();
        }
        match to {
            FlowGroup::LossDelay => self.stats.loss_delay += 1,
            FlowGroup::LossBased => self.stats.loss_based += 1,
            FlowGroup::ModelBased => self.stats.model_based += 1,
            FlowGroup::Ant | FlowGroup::Mouse | FlowGroup::DelayBased | FlowGroup::Shaped | FlowGroup::Scalable => {}
        }
        self.leave(port, from, queue, assigned);
        let Some(Some(state)) = self.ports.get_mut(usize::from(port.0)) else { return };
        self.stats.queues_moved += u64::from(state.move_flow(Some(from), Some(to)));
    }

    /// A flow leaves its queue, of which, or of its group, it may have been the newest.
    pub(super) fn leave(&mut self, port: Port, group: FlowGroup, queue: Option<u16>, assigned: u32) {
        let Some(Some(state)) = self.ports.get_mut(usize::from(port.0)) else { return };
        if let (Some(group), Some(queue)) = (group.long_lived(), queue) {
            state.shares.leave_queue(group, queue);
        }
        let place = match self.params.newest {
            Newest::OfQueue => queue.map(usize::from),
            Newest::OfGroup => group.long_lived(),
            Newest::Any => None,
        };
        if let Some(newest) = place.and_then(|place| state.newest.get_mut(place)).filter(|newest| **newest == assigned)
        {
            *newest = 0;
        }
    }

    /// A flow has ended: it has no share from now on. Its entry stays for packets that are sent again, which keep its queue.
    pub(super) fn finish(&mut self, entry: u32) {
        let flow = self.flows.at_mut(entry);
        if std::mem::replace(&mut flow.has_ended, true) {
            return;
        }
        let Flow { port, group, queue, assigned, .. } = *flow;
        self.stats.ended += 1;
        self.leave(port, group, queue, assigned);
        if let Some(Some(state)) = self.ports.get_mut(usize::from(port.0)) {
            state.move_flow(Some(group), None);
        }
    }

    /// Frees the entry of a flow.
    pub(super) fn remove(&mut self, entry: u32) {
        self.finish(entry);
        self.flows.remove(entry);
    }

    /// Divides the queues evenly among the groups and computes the places of round-trip times again, as a control plane does with
    /// the registers of the flows.
    pub(super) fn rank(&mut self) {
        let mut keys: Vec<[Vec<u16>; GROUPS]> = self.ports.iter().map(|_| Default::default()).collect();
        for flow in self.flows.all().filter(|flow| !flow.has_ended) {
            if let (Some(group), Some(keys)) = (flow.group.long_lived(), keys.get_mut(usize::from(flow.port.0))) {
                keys[group].push(flow.rank_key());
            }
        }
        for (state, keys) in self.ports.iter_mut().zip(&mut keys) {
            let Some(state) = state else { continue };
            self.stats.queues_moved += state.shares.even_out();
            for (group, keys) in keys.iter_mut().enumerate() {
                state.ranks.set(group, keys, state.shares.queues(group).len() as u16);
            }
        }
    }

    pub(super) fn is_newest(&self, port: Port, flow: &Flow) -> bool {
        let Some(Some(state)) = self.ports.get(usize::from(port.0)) else { return false };
        let place = match self.params.newest {
            Newest::OfQueue => flow.queue.map(usize::from),
            Newest::OfGroup => flow.group.long_lived(),
            Newest::Any => return true,
        };
        place.is_some_and(|place| flow.assigned >= state.newest[place])
    }
}
