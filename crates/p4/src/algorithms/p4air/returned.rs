//! Packets that come back: copies with a new group or for a gained queue, and delayed packets.

use super::{Division, GROUPS, Ingress, Registers};
use crate::{Act, Aspect, Field, Gress, Match, Micro, Op, Packets, Program};
use queuescope_queue::P4airParams;

/// Steps of packets that come back. `to` is the next group, from egress.
pub(super) fn returned(p: &mut Program, r: &Registers, division: &Division, ingress: &Ingress, to: Field) {
    let request = request(p);
    let change = group_changes(p, r, ingress, [to, request]);
    let copy = rooms_change(p, r, division, &change, to);
    takes_gained_queue(p, division, ingress, request);
    delayed(p, request);
    p.by(Packets::FedBackAgain);
    queue_moves(p, r, division, to, &copy);
}

/// Steps of packets that come back, if groups have their queues from a table. `to` is the next group, from egress.
pub(super) fn returned_by_rtt(p: &mut Program, r: &Registers, ingress: &Ingress, to: Field) {
    let request = request(p);
    group_changes(p, r, ingress, [to, request]);
}

/// What a packet that comes back is for.
fn request(p: &mut Program) -> Field {
    p.at(Gress::Ingress).by(Packets::FedBack).of(Aspect::Reaction);
    p.header("what a copy is for", 2)
}

/// How a copy changes a flow's group.
struct GroupChange {
    /// Whether it does.
    moved: Field,
    /// Flows that each group gains or loses.
    change: Field,
    /// Long-lived flows.
    all: Field,
}

/// What the first pass of a copy finds out.
struct FirstPass {
    /// The group that gives a queue.
    giver: Field,
    /// Long-lived flows, and so flows per queue.
    all: Field,
}

/// A flow changes its group, and what is counted starts again.
fn group_changes(p: &mut Program, r: &Registers, ingress: &Ingress, [to, request]: [Field; 2]) -> GroupChange {
    let Ingress { entry, group, queue, .. } = *ingress;
    let moved = "group: the next one, if it is still the same";
    let moved = p.update(r.group.at(entry), moved, &[Micro::Condition, Micro::Update], &[group, to, request]);
    for register in [r.since_decrease, r.since_increase, r.since_pulse, r.pulses] {
        let name = format!("{}: 0 after slow start", p.name_of(register));
        p.write(register.at(entry), &name, &[moved, group]);
    }
    let left = "newest flow of the queue: none, if it was this one";
    p.update(r.newest.at(queue), left, &[Micro::Condition, Micro::Update], &[entry, moved]);

    let change = p.simple("flows that each group gains or loses", &[group, to], 8);
    let all = p.update(r.all_flows, "long-lived flows, with the change", &[Micro::Update], &[change, moved]);
    GroupChange { moved, change, all }
}

/// The flows and the rooms of both groups, and whether a queue must move.
fn rooms_change(
    p: &mut Program,
    r: &Registers,
    division: &Division,
    &GroupChange { moved, change, all }: &GroupChange,
    to: Field,
) -> FirstPass {
    let (queue_bits, each_bits) = (r.dimensions.queue_bits(), r.dimensions.each_bits());
    for (register, name) in division.flows.into_iter().zip(GROUPS) {
        p.update(register, &format!("{name} flows, with the change"), &[Micro::Update], &[change, moved]);
    }
    let each = p.slice(all, "flows per queue - 1", each_bits);
    let rest = p.slice(all, "flows beyond those", queue_bits);
    let bounds =
        [1, 2, 3].map(|n| p.read(division.bounds[n - 1], &format!("first queue of {} flows now", GROUPS[n]), &[]));
    let sizes = p.simple("queues of each group", &bounds, 4 * queue_bits);
    let mut rooms = Vec::new();
    for (register, name) in division.room.into_iter().zip(GROUPS) {
        let reads = [change, rest, sizes, moved];
        let more = p.simple(&format!("room that {name} flows gain or lose"), &reads, each_bits);
        rooms.push(p.update(register, &format!("room for {name} flows, with the change"), &[Micro::Update], &[more]));
    }
    let least = p.simple("room to give a queue: flows per queue; none with one queue", &[each, sizes], 4 * each_bits);
    let larger = p.compute("larger room of each pair", Op::Compare(6), &rooms, 6);
    let may_give = p.compute("room > room to give", Op::Compare(4), &[&rooms[..], &[least]].concat(), 4);
    let full = p.compute("room <= 0", Op::Compare(4), &rooms, 4);
    // For each receiver and giver, and for each of the two others: it may not give, or has less room.
    let choices = Match::Range { prefixes: 4 * 3 * 2 * 2, key_bits: 6 + 4 + 4 + 3, value_bits: 3 };
    let giver = p.compute("group that gives a queue", Op::Table(choices), &[larger, may_give, full, to], 3);
    p.act("send the copy back again to move a queue", Act::FeedBack, &[giver, moved]);
    FirstPass { giver, all }
}

/// A flow takes the queue that its group has gained.
fn takes_gained_queue(p: &mut Program, division: &Division, ingress: &Ingress, request: Field) {
    let Ingress { entry, group, gained_queue: Some(gained_queue), .. } = *ingress else { return };
    let micros = [Micro::Condition, Micro::Condition, Micro::Update, Micro::Update];
    let taken = p.update(division.gained.at(group), "one flow less for the gained queue", &micros, &[request]);
    p.write(division.queue.at(entry), "queue: the gained one, if it takes a flow", &[taken, gained_queue]);
}

/// A delayed packet passes again, or enters the queue that it had.
fn delayed(p: &mut Program, request: Field) {
    let passes = p.header("passes", 12);
    let passes = p.simple("passes + 1", &[passes], 12);
    let more = p.compare(&format!("passes < {}", P4airParams::default().delay_passes), &[passes]);
    p.act("pass again, or enter the queue", Act::FeedBack, &[more, request]);
}

/// A queue moves from one group to another. Groups between them keep their number of queues.
fn queue_moves(p: &mut Program, r: &Registers, division: &Division, to: Field, first: &FirstPass) {
    let FirstPass { giver, all } = *first;
    let (queue_bits, each_bits) = (r.dimensions.queue_bits(), r.dimensions.each_bits());
    let room = p.simple("room that giver and receiver exchange", &[giver, to, all], 4 * each_bits);
    for (register, name) in division.room.into_iter().zip(GROUPS) {
        p.update(register, &format!("room for {name} flows, after the move"), &[Micro::Update], &[room]);
    }
    let shift = p.simple("bounds that move, up or down", &[giver, to], 6);
    let bounds = [1, 2, 3].map(|n| {
        let name = format!("first queue of {} flows, after the move", GROUPS[n]);
        p.update(division.bounds[n - 1], &name, &[Micro::Update], &[shift])
    });
    let wanted = p.simple("flows that the gained queue takes, with its end as the sign", &[giver, to, all], each_bits);
    p.write(division.gained.at(to), "flows that the gained queue takes", &[wanted]);
    let gained = p.simple("queue that moves", &[&bounds[..], &[giver, to]].concat(), queue_bits);
    p.write(r.newest.at(gained), "newest flow of the queue that moves: none", &[]);
}
