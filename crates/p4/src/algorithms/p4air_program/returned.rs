//! Copies and packets that come back to the part before the queue.

use super::queues::{BOUNDS, first_queue, read_bounds};
use super::{GROUPS, PORT_BITS, Parts, by_groups, change, if_holds, is, register, store, value};
use crate::Aspect;
use crate::ir::{
    ActionTable, AluExpression, AluOutput, AluTerm, Builder, Comparison, Condition, Operand, Operation, Unit, Variable,
};
use queuescope_queue::SwitchRequest;

/// The changes of groups that there are.
const MOVES: [[u8; 2]; 6] = [[0, 1], [1, 2], [1, 4], [2, 3], [2, 4], [3, 4]];
const FLOWS: [&str; 4] = ["delay_based_flows", "loss_delay_flows", "loss_based_flows", "model_based_flows"];
const ROOMS: [&str; 4] = ["delay_based_room", "loss_delay_room", "loss_based_room", "model_based_room"];

pub(super) fn returned(p: &mut Builder, it: &Parts<'_>) {
    p.of(Aspect::Reaction);
    p.set(it.home, Operation::Gather(it.port.slice(0, PORT_BITS), 0));
    let rooms: [Variable; 4] = each(|n| p.variable(format!("room_change_{n}"), 32, Unit::Number));
    let is_for = |request: SwitchRequest| is(it.request, request as u64);
    p.choose(
        is_for(SwitchRequest::Group),
        |p| change_group(p, it, rooms),
        |p| {
            p.choose(
                is_for(SwitchRequest::Move),
                |p| move_queue(p, it, rooms),
                |p| p.choose(is_for(SwitchRequest::Delay), |p| delay(p, it), |p| change_queue(p, it)),
            );
        },
    );
}

/// Something for each group.
fn each<T>(make: impl FnMut(u8) -> T) -> [T; 4] {
    [1, 2, 3, 4].map(make)
}

/// The flow has another queue, if a gained queue still takes it.
fn change_queue(p: &mut Builder, it: &Parts<'_>) {
    p.comment("The flow has another queue, if a gained queue still takes it (section III-B).");
    it.place_of_group(p, it.group);
    let takes = p.variable("takes", 1, Unit::Number);
    p.choose(
        is(it.request, SwitchRequest::Gained as u64),
        |p| {
            let is_left = (AluExpression::Term(AluTerm::Word), Comparison::Greater, value(1));
            let less = AluExpression::Subtract(AluTerm::Word, value(2));
            let take = if_holds("take_gained", is_left, less, AluOutput::Condition(0));
            p.access(register("gained_takes"), it.gained_at, take, Some(takes));
        },
        |p| p.set(takes, Operation::Copy(1.into())),
    );
    it.place_of_queue(p, it.to);
    p.when(is(takes, 1), |p| {
        p.access(register("flow_queue"), it.flow(), store("store_queue", it.to), None);
        p.access(register("newest_flow"), it.newest_at, store("store_newest", it.mark), None);
    });
    p.drop_packet();
}

/// A delayed packet passes again, or enters its queue.
fn delay(p: &mut Builder, it: &Parts<'_>) {
    p.comment("A delayed packet passes again, or enters its queue (section III-C).");
    p.set(it.passes, Operation::Add(it.passes.into(), 1.into()));
    let passes = u64::from(it.params.p4air.delay_passes);
    p.choose(Condition::compare(it.passes, Comparison::Less, passes), Builder::recirculate, |p| {
        p.enqueue(it.queue.slice(0, 7));
    });
}

/// The flow changes its group, if it is still in the one that the packet had (section III-B).
fn change_group(p: &mut Builder, it: &Parts<'_>, changes: [Variable; 4]) {
    p.comment("The flow changes its group, if it is still in the one that the packet had (section III-B).");
    let is_same = (AluExpression::Term(AluTerm::Word), Comparison::Equal, value(it.group));
    let moved = p.variable("has_moved", 1, Unit::Number);
    let store = if_holds("store_group", is_same, AluExpression::Term(value(it.to)), AluOutput::Condition(0));
    p.access(register("flow_group"), it.flow(), store, Some(moved));
    p.choose(is(moved, 1), |p| count_flows(p, it, changes), Builder::drop_packet);
}

fn count_flows(p: &mut Builder, it: &Parts<'_>, changes: [Variable; 4]) {
    it.place_of_queue(p, it.queue);
    p.when(Condition::compare(it.group, Comparison::NotEqual, 0), |p| {
        let is_own = (AluExpression::Term(AluTerm::Word), Comparison::Equal, value(it.mark));
        let leave = if_holds("leave_newest", is_own, AluExpression::Term(value(0)), AluOutput::Nothing);
        p.access(register("newest_flow"), it.newest_at, leave, None);
    });
    p.comment("The flows of both groups, and their room.");
    let flows: [Variable; 4] = each(|n| p.variable(format!("flow_change_{n}"), 16, Unit::Number));
    let joins = p.variable("joins", 16, Unit::Number);
    let about = "The flows and the room that each group gains or loses";
    by_groups(p, ("change", about), [it.group, it.to], &MOVES, |p, [from, to]| {
        let set = |p: &mut Builder, variable, value: u64| p.set(variable, Operation::Copy(value.into()));
        set(p, joins, u64::from(from == 0));
        for group in 1..=GROUPS {
            let change = i64::from(group == to) - i64::from(group == from);
            let place = usize::from(group) - 1;
            set(p, flows[place], u64::from(change as u16));
            set(p, changes[place], u64::from(change.wrapping_neg() as u32));
        }
    });
    let add = |name: String, operand: Variable, output| {
        change(name, AluExpression::Add(AluTerm::Word, value(operand)), output)
    };
    for (name, flows) in FLOWS.into_iter().zip(flows) {
        p.access(register(name), it.home, add(format!("count_{name}"), flows, AluOutput::Nothing), None);
    }
    let all = p.variable("all_flows", 16, Unit::Number);
    let count = add("count_flows".to_owned(), joins, AluOutput::After);
    p.access(register("long_lived_flows"), it.home, count, Some(all));
    read_bounds(p, it, "of_copy");
    let sizes: [Variable; 4] = each(|n| {
        let size = Operation::Subtract(first_queue(it, n + 1), first_queue(it, n));
        p.compute(format!("size_{n}"), 8, Unit::Number, size)
    });
    let places: [Variable; 4] = each(|n| {
        let size = sizes[usize::from(n) - 1];
        p.compute(format!("places_{n}"), 32, Unit::Number, Operation::Gather(size.into(), 0))
    });
    p.comment("At each multiple of the number of queues, each queue takes a flow more (section III-B).");
    let bits = it.params.queue_bits();
    let is_multiple = Condition::compare(all.slice(0, bits), Comparison::Equal, 0);
    p.when(Condition::All(vec![is(it.group, 0), is_multiple]), |p| {
        for (change, size) in changes.into_iter().zip(places) {
            p.set(change, Operation::Add(change.into(), size.into()));
        }
    });
    let rooms: [Variable; 4] = each(|n| p.variable(format!("room_{n}"), 32, Unit::Number));
    for ((name, change), room) in ROOMS.into_iter().zip(changes).zip(rooms) {
        p.access(register(name), it.home, add(format!("change_{name}"), change, AluOutput::After), Some(room));
    }
    let quotient = p.compute("quotient", 16, Unit::Number, Operation::ShiftRight(all.into(), bits));
    p.set(it.each, Operation::Add(quotient.into(), 1.into()));
    p.comment("Rooms are less one, so that a sign says whether there is any; and so is what compares with them.");
    let each_less = p.compute("each_less_one", 32, Unit::Number, Operation::Gather(quotient.into(), 0));
    find_giver(p, it, [rooms, sizes], each_less);
    p.choose(
        Condition::compare(it.giver, Comparison::NotEqual, 0),
        |p| {
            p.set(it.request, Operation::Copy((SwitchRequest::Move as u64).into()));
            p.recirculate();
        },
        Builder::drop_packet,
    );
}

/// The group that gives a queue, if the one that the flow moves to has no room: the one with the most room of those that have room for
/// more than a queue of flows, and more than one queue.
fn find_giver(p: &mut Builder, it: &Parts<'_>, [rooms, sizes]: [[Variable; 4]; 2], each_less: Variable) {
    p.comment("The group that gives a queue (section III-B). Signs of differences compare rooms.");
    let subtract = |p: &mut Builder, name: String, one: Operand, other: Operand| {
        p.compute(name, 32, Unit::Number, Operation::Subtract(one, other))
    };
    let pairs = [[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]];
    let pairs_less = pairs.map(|[one, other]: [usize; 2]| {
        subtract(p, format!("room_{one}_less_{other}"), rooms[one - 1].into(), rooms[other - 1].into())
    });
    let gives: [Variable; 4] = each(|n| {
        let place = usize::from(n) - 1;
        let gives = p.variable(format!("gives_{n}"), 32, Unit::Number);
        p.choose(
            Condition::compare(sizes[place], Comparison::LessOrEqual, 1),
            |p| p.set(gives, Operation::Copy(0.into())),
            |p| p.set(gives, Operation::Subtract(each_less.into(), rooms[place].into())),
        );
        gives
    });
    let sign = |variable: Variable| variable.slice(31, 1);
    let keys = pairs_less.into_iter().chain(gives).chain(rooms).map(sign).chain([it.to.into()]);
    let keys = keys.collect();
    let actions: Vec<_> = (1..=u64::from(GROUPS))
        .map(|giver| p.action(format!("give_{giver}"), |p| p.set(it.giver, Operation::Copy(giver.into()))))
        .collect();
    let mut entries = Vec::new();
    for to in 1..=4usize {
        for giver in (1..=4).filter(|giver| *giver != to) {
            let others: Vec<_> = (1..=4).filter(|other| ![to, giver].contains(other)).collect();
            for may_give in 0..4u32 {
                let mut ranges = vec![(0, 1); 14];
                ranges[6 + giver - 1] = (1, 1);
                ranges[10 + to - 1] = (1, 1);
                for (bit, other) in others.iter().enumerate() {
                    let gives = u64::from(may_give >> bit & 1);
                    ranges[6 + other - 1] = (gives, gives);
                    if gives == 1 {
                        let pair = [giver.min(*other), giver.max(*other)];
                        let place = pairs.iter().position(|it| *it == pair).expect("it is one of them");
                        // The first one has less, if the giver is the second.
                        let is_less = u64::from(giver > *other);
                        ranges[place] = (is_less, is_less);
                    }
                }
                ranges.push((to as u64, to as u64));
                entries.push((ranges, giver - 1));
            }
        }
    }
    p.choose_by(ActionTable {
        name: "group_that_gives".into(),
        about: "The group that gives a queue to another one".into(),
        keys,
        actions,
        entries,
    });
}

/// A queue moves from one group to another. Groups between them keep their number of queues.
fn move_queue(p: &mut Builder, it: &Parts<'_>, changes: [Variable; 4]) {
    p.comment("A queue moves to another group (section III-B). Groups between them keep their number of queues.");
    let pairs: Vec<[u8; 2]> =
        (1..=GROUPS).flat_map(|giver| (1..=GROUPS).filter(move |to| *to != giver).map(move |to| [giver, to])).collect();
    let more = p.compute("more_each", 32, Unit::Number, Operation::Gather(it.each.into(), 0));
    let less = p.compute("less_each", 32, Unit::Number, Operation::Subtract(0.into(), more.into()));
    let bounds = [1, 2, 3].map(|n| p.variable(format!("bound_change_{n}"), 8, Unit::Number));
    let side = p.variable("side", 16, Unit::Number);
    let about = "The room and the bounds that change, and whether the queue becomes the last of its group";
    by_groups(p, ("exchange", about), [it.giver, it.to], &pairs, |p, [giver, to]| {
        for (group, change) in (1..=GROUPS).zip(changes) {
            let value: Operand = match group {
                group if group == giver => less.into(),
                group if group == to => more.into(),
                _ => 0.into(),
            };
            p.set(change, Operation::Copy(value));
        }
        for (bound, change) in (1..GROUPS).zip(bounds) {
            // The bound is behind the group of its number.
            let value = match (giver <= bound, to <= bound) {
                (true, false) => 0xff,
                (false, true) => 1,
                _ => 0,
            };
            p.set(change, Operation::Copy(value.into()));
        }
        p.set(side, Operation::Copy(u64::from(giver > to).into()));
    });
    let add = |name: String, operand: Variable, output| {
        change(name, AluExpression::Add(AluTerm::Word, value(operand)), output)
    };
    for (name, change) in ROOMS.into_iter().zip(changes) {
        p.access(register(name), it.home, add(format!("exchange_{name}"), change, AluOutput::Nothing), None);
    }
    for ((name, change), bound) in BOUNDS.into_iter().zip(bounds).zip(it.bounds) {
        p.access(register(name), it.home, add(format!("move_{name}"), change, AluOutput::After), Some(bound));
    }
    it.place_of_group(p, it.to);
    let twice = p.compute("twice", 16, Unit::Number, Operation::ShiftLeft(it.each.into(), 1));
    let gained = p.compute("gained_after", 16, Unit::Number, Operation::Or(twice.into(), side.into()));
    p.access(register("gained_takes"), it.gained_at, store("store_gained", gained), None);
    let queue = p.variable("queue_that_moves", 8, Unit::Number);
    by_groups(p, ("moved", "The queue that moves"), [it.giver, it.to], &pairs, |p, [giver, to]| {
        let operation = if giver < to {
            Operation::Copy(first_queue(it, to))
        } else {
            Operation::Subtract(first_queue(it, to + 1), 1.into())
        };
        p.set(queue, operation);
    });
    it.place_of_queue(p, queue);
    p.access(register("newest_flow"), it.newest_at, store("clear_newest", 0), None);
    p.drop_packet();
}
