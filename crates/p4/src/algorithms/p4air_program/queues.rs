//! The queue of a packet of a long-lived flow.

use super::super::pie_data_plane::read;
use super::{GROUPS, Parts, is, register, traffic};
use crate::ir::{
    ActionTable, Builder, Comparison, Condition, MatchTable, Operand, Operation, TableEntries, Unit, Variable,
};
use queuescope_queue::{SwitchP4airParams, SwitchRequest};

/// The first queue of long-lived flows.
const LONG_LIVED: u64 = SwitchP4airParams::LONG_LIVED as u64;

/// Reads the first queues of the groups.
pub(super) fn read_bounds(p: &mut Builder, it: &Parts<'_>, part: &str) {
    for (bound, name) in it.bounds.into_iter().zip(BOUNDS) {
        p.access(register(name), it.home, read(format!("{name}_{part}")), Some(bound));
    }
}

/// The registers of the bounds.
pub(super) const BOUNDS: [&str; 3] = ["first_loss_delay", "first_loss_based", "first_model_based"];

/// The first queue of a group; behind the last group, the number of queues.
pub(super) fn first_queue(it: &Parts<'_>, group: u8) -> Operand {
    match group {
        1 => LONG_LIVED.into(),
        2..=GROUPS => it.bounds[usize::from(group) - 2].into(),
        _ => u64::from(it.params.p4air.queues).into(),
    }
}

/// Finds the flow's queue: the one that is stored, if it is one of its group; and whether a copy must store another one (section III-B).
pub(super) fn find_queue(p: &mut Builder, it: &Parts<'_>) {
    p.comment("The queues of the flow's group (section III-B).");
    read_bounds(p, it, "of_packet");
    let [first, end] = ["first_queue", "end_queue"].map(|name| p.variable(name, 8, Unit::Number));
    let actions = (1..=GROUPS).map(|group| {
        p.action(format!("queues_of_{group}"), |p| {
            p.set(first, Operation::Copy(first_queue(it, group)));
            p.set(end, Operation::Copy(first_queue(it, group + 1)));
        })
    });
    let actions = actions.collect();
    p.choose_by(ActionTable {
        name: "queues_of_group".into(),
        about: "The first queue of the flow's group, and the first behind it".into(),
        keys: vec![it.group.into()],
        actions,
        entries: (1..=u64::from(GROUPS)).map(|group| (vec![(group, group)], group as usize - 1)).collect(),
    });
    let other = queue_by_hash(p, it, first, end);
    p.comment("The queue that the group has gained, if it still takes flows: its first or its last (section III-B).");
    it.place_of_group(p, it.group);
    let gained = p.variable("gained", 16, Unit::Number);
    p.access(register("gained_takes"), it.gained_at, read("read_gained"), Some(gained));
    let last = p.compute("last", 8, Unit::Number, Operation::Subtract(end.into(), 1.into()));
    let gained_queue = p.variable("gained_queue", 8, Unit::Number);
    p.choose(
        Condition::compare(gained.slice(0, 1), Comparison::Equal, 1),
        |p| p.set(gained_queue, Operation::Copy(last.into())),
        |p| p.set(gained_queue, Operation::Copy(first.into())),
    );
    let stored = p.variable("stored", 8, Unit::Number);
    p.access(register("flow_queue"), it.flow(), read("read_queue"), Some(stored));
    let outside = p.variable("is_outside", 1, Unit::Number);
    let inside = Condition::All(vec![
        Condition::compare(stored, Comparison::GreaterOrEqual, first),
        Condition::compare(stored, Comparison::Less, end),
    ]);
    p.choose(
        inside,
        |p| p.set(it.queue, Operation::Copy(stored.into())),
        |p| {
            p.set(it.queue, Operation::Copy(other.into()));
            p.set(outside, Operation::Copy(1.into()));
        },
    );
    let request = |p: &mut Builder, request: SwitchRequest, queue: Variable| {
        p.set(it.request, Operation::Copy((request as u64).into()));
        p.set(it.to, Operation::Copy(queue.into()));
    };
    // Bit 0 is the end of the group.
    let takes = Condition::compare(gained.slice(1, 15), Comparison::NotEqual, 0);
    let elsewhere = Condition::compare(stored, Comparison::NotEqual, gained_queue);
    p.choose(
        Condition::All(vec![takes, elsewhere]),
        |p| request(p, SwitchRequest::Gained, gained_queue),
        |p| p.when(is(outside, 1), |p| request(p, SwitchRequest::Queue, other)),
    );
    it.place_of_queue(p, it.queue);
    traffic::newest(p, it);
}

/// A queue of the group, by bits of the flow's entry.
fn queue_by_hash(p: &mut Builder, it: &Parts<'_>, first: Variable, end: Variable) -> Variable {
    let count = p.compute("count", 8, Unit::Number, Operation::Subtract(end.into(), first.into()));
    let place = p.variable("place", 8, Unit::Number);
    let bits = SwitchP4airParams::turn_bits();
    let entries = (1..=u64::from(it.params.most_queues())).flat_map(|count| {
        (0..1u64 << bits).map(move |turn| {
            let place = it.params.place(count as u8, turn as u16);
            (vec![count, turn], vec![u64::from(place)])
        })
    });
    p.look_up(MatchTable {
        name: "queue_of_flow".into(),
        about: "A queue within a group, by the number of its queues and bits of the flow's hash".into(),
        keys: vec![count.slice(0, SwitchP4airParams::COUNT_BITS), it.entry.slice(0, bits)],
        entries: TableEntries::Exact(entries.collect()),
        results: vec![place],
        otherwise: vec![0],
    });
    p.compute("other", 8, Unit::Number, Operation::Add(first.into(), place.into()))
}
