//! Packets that come back to the half before the queue.

use super::registers::{ALL_FLOWS, BOUNDS, FLOWS, GAINED, GROUP, NEWEST, QUEUE, ROOM};
use super::{FLOW_MARK, GROUPS, SwitchFate, SwitchNote, SwitchP4air, SwitchRequest, enqueue};
use crate::p4air::LONG_LIVED;

const GROUP_REQUEST: u8 = SwitchRequest::Group as u8;
const QUEUE_REQUEST: u8 = SwitchRequest::Queue as u8;
const GAINED_REQUEST: u8 = SwitchRequest::Gained as u8;
const MOVE_REQUEST: u8 = SwitchRequest::Move as u8;

/// A copy goes no further.
const CONSUMED: SwitchFate =
    SwitchFate { queue: None, dropped: true, copied: false, recirculated: false, window: None };
const AGAIN: SwitchFate = SwitchFate { queue: None, dropped: false, copied: false, recirculated: true, window: None };

impl SwitchP4air {
    /// A note that the program cannot have made changes nothing.
    pub(super) fn returned(&mut self, port: usize, note: &mut SwitchNote) -> SwitchFate {
        if !self.may_have_made(note) {
            return CONSUMED;
        }
        match note.request {
            GROUP_REQUEST => self.change_group(port, note),
            QUEUE_REQUEST => self.change_queue(port, note),
            GAINED_REQUEST => {
                let gained = &mut self.words[GAINED][port << 3 | usize::from(note.group)];
                if *gained <= 1 {
                    return CONSUMED;
                }
                *gained -= 2;
                self.change_queue(port, note)
            }
            MOVE_REQUEST => self.move_queue(port, note),
            _ => {
                note.passes = note.passes.wrapping_add(1);
                if u16::from(note.passes) < self.params.p4air.delay_passes { AGAIN } else { enqueue(note.queue) }
            }
        }
    }

    /// Whether all indexes of a note are within the registers.
    pub(super) fn may_have_made(&self, note: &SwitchNote) -> bool {
        let is_long_lived = |group: u8| (1..=GROUPS).contains(&usize::from(group));
        let is_request = match note.request {
            GROUP_REQUEST => is_long_lived(note.to),
            MOVE_REQUEST => is_long_lived(note.to) && is_long_lived(note.giver) && note.to != note.giver,
            _ => true,
        };
        is_request && usize::from(note.entry) < self.words[GROUP].len() && usize::from(note.group) <= GROUPS
    }

    /// The flow is in another queue, as its newest flow.
    fn change_queue(&mut self, port: usize, note: &SwitchNote) -> SwitchFate {
        self.words[QUEUE][usize::from(note.entry)] = note.to.into();
        let place = self.params.place_of_queue(port, note.to);
        self.words[NEWEST][place] = FLOW_MARK | u32::from(note.entry);
        CONSUMED
    }

    /// The flow changes its group, if it is still in the one that the packet had. A group that is full now may get a queue.
    fn change_group(&mut self, port: usize, note: &mut SwitchNote) -> SwitchFate {
        let group = &mut self.words[GROUP][usize::from(note.entry)];
        if *group != u32::from(note.group) {
            return CONSUMED;
        }
        *group = note.to.into();
        if note.group > 0 {
            let place = self.params.place_of_queue(port, note.queue);
            let newest = &mut self.words[NEWEST][place];
            if *newest == FLOW_MARK | u32::from(note.entry) {
                *newest = 0;
            }
        }
        let [from, to] = [note.group, note.to].map(usize::from);
        let change = |group: usize| i32::from(group == to) - i32::from(group == from);
        for group in 1..=GROUPS {
            let flows = &mut self.words[FLOWS + group - 1][port];
            *flows = flows.wrapping_add_signed(change(group)) & 0xffff;
        }
        let all = &mut self.words[ALL_FLOWS][port];
        *all = all.wrapping_add(u32::from(from == 0)) & 0xffff;
        let (all, queues) = (*all, u32::from(self.params.p4air.queues));
        // Flows for each queue: one more at each multiple of the number of queues.
        let is_more = from == 0 && all.is_multiple_of(queues);
        let each = all / queues + 1;
        note.each = each as u16;
        let sizes = self.sizes(port);
        let mut rooms = [0; GROUPS];
        for group in 1..=GROUPS {
            let more = if is_more { sizes[group - 1] } else { 0 };
            let room = &mut self.words[ROOM + group - 1][port];
            *room = room.wrapping_add(more).wrapping_sub(change(group) as u32);
            rooms[group - 1] = room.cast_signed();
        }
        match giver(rooms, sizes, each, to) {
            Some(giver) => {
                note.request = SwitchRequest::Move as u8;
                note.giver = giver as u8;
                AGAIN
            }
            None => CONSUMED,
        }
    }

    /// Removes a flow that has ended, as the control plane does: from the counters of its port, and from its entry. `flow` is the hash
    /// of its five-tuple. Returns whether it was long-lived.
    pub fn remove(&mut self, port: u16, flow: u32) -> bool {
        let (port, entry) = (usize::from(port & 0x7f), usize::from(self.params.entry(flow)));
        let group = std::mem::take(&mut self.words[GROUP][entry]) as usize;
        let queue = std::mem::take(&mut self.words[QUEUE][entry]) as u8;
        if group == 0 {
            return false;
        }
        let place = self.params.place_of_queue(port, queue);
        let newest = &mut self.words[NEWEST][place];
        if *newest == FLOW_MARK | entry as u32 {
            *newest = 0;
        }
        for register in [FLOWS + group - 1, ALL_FLOWS] {
            let flows = &mut self.words[register][port];
            *flows = flows.saturating_sub(1);
        }
        let queues = u32::from(self.params.p4air.queues);
        let is_less = self.words[ALL_FLOWS][port] % queues == queues - 1;
        let sizes = self.sizes(port);
        for (place, size) in sizes.into_iter().enumerate() {
            let room = &mut self.words[ROOM + place][port];
            *room = room.wrapping_add(u32::from(place + 1 == group)).wrapping_sub(if is_less { size } else { 0 });
        }
        true
    }

    /// The queues of each group.
    pub(super) fn sizes(&self, port: usize) -> [u32; GROUPS] {
        let bounds = [0, 1, 2].map(|n| self.words[BOUNDS + n][port]);
        let ends = [bounds[0], bounds[1], bounds[2], self.params.p4air.queues.into()];
        let firsts = [LONG_LIVED.into(), bounds[0], bounds[1], bounds[2]];
        std::array::from_fn(|group| ends[group].wrapping_sub(firsts[group]) & 0xff)
    }

    /// A queue moves from one group to another. Groups between them keep their number of queues.
    fn move_queue(&mut self, port: usize, note: &SwitchNote) -> SwitchFate {
        let [giver, to] = [note.giver, note.to].map(usize::from);
        let each = u32::from(note.each);
        for (group, change) in [(giver, each.wrapping_neg()), (to, each)] {
            let room = &mut self.words[ROOM + group - 1][port];
            *room = room.wrapping_add(change);
        }
        for bound in 0..GROUPS - 1 {
            // The bound is between the groups `bound + 1` and `bound + 2`.
            let word = &mut self.words[BOUNDS + bound][port];
            if giver <= bound + 1 && to > bound + 1 {
                *word = word.wrapping_sub(1) & 0xff;
            } else if to <= bound + 1 && giver > bound + 1 {
                *word = word.wrapping_add(1) & 0xff;
            }
        }
        let is_first = giver < to;
        self.words[GAINED][port << 3 | to] = (each << 1 | u32::from(!is_first)) & 0xffff;
        // The first queue of the group if the giver is before it, and otherwise its last.
        let queue = if is_first {
            self.words[BOUNDS + to - 2][port]
        } else {
            self.words[BOUNDS + to - 1][port].wrapping_sub(1)
        };
        let place = self.params.place_of_queue(port, queue as u8);
        self.words[NEWEST][place] = 0;
        CONSUMED
    }
}

/// The group that gives a queue to `to`: the one with the most room of those with room for more than a queue of flows. None if `to` has
/// room. The first one if several have as much. Rooms are less one, so that a sign says whether there is room.
fn giver(rooms: [i32; GROUPS], sizes: [u32; GROUPS], each: u32, to: usize) -> Option<usize> {
    if rooms[to - 1] >= 0 {
        return None;
    }
    let may_give = |group: &usize| *group != to && sizes[group - 1] > 1 && rooms[group - 1] >= each as i32;
    (1..=GROUPS).filter(may_give).min_by_key(|group| -rooms[group - 1])
}
