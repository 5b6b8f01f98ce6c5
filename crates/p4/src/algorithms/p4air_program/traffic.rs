//! Packets that arrive.

use super::super::pie_data_plane::{read, swap};
use super::{PORT_BITS, Parts, change, if_holds, is, queues, register, store, value};
use crate::Aspect;
use crate::ir::{
    ActionTable, AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition,
    MatchTable, Operation, Polynomial, RegisterAction, TableEntries, Unit, Variable, When,
};
use queuescope_queue::{FlowAction, SwitchNote, SwitchP4airParams, SwitchRegister, SwitchRequest, SwitchShift};

const SYN_MARK: u64 = SwitchRegister::SYN_MARK as u64;
/// Times that are less than this behind another are later.
const LATER: u64 = 1 << 31;
/// The queues of short-lived flows.
const ANTS: u64 = SwitchP4airParams::ANTS as u64;
const MICE: u64 = SwitchP4airParams::MICE as u64;

pub(super) fn traffic(p: &mut Builder, it: &Parts<'_>) {
    p.of(Aspect::Metric);
    let bits = it.params.flow_bits();
    p.comment("The flow: the packet's own if it has data or is a SYN, otherwise that of the other direction.");
    let now = p.compute("now", 32, Unit::Number, Operation::Gather(it.arrived.slice(10, 32), 0));
    let data = has_data(p, it);
    let own = p.compute("own_flow", bits, Unit::Number, Operation::Hash(Polynomial::Ethernet));
    let other = p.compute("other_flow", bits, Unit::Number, Operation::HashReversed(Polynomial::Ethernet));
    let is_syn = Condition::compare(it.tcp_flags.slice(1, 1), Comparison::Equal, 1);
    p.choose(
        Condition::Any(vec![is(data, 1), is_syn.clone()]),
        |p| {
            p.set(it.entry, Operation::Copy(own.into()));
            p.set(it.home, Operation::Gather(it.port.slice(0, PORT_BITS), 0));
        },
        |p| {
            p.set(it.entry, Operation::Copy(other.into()));
            p.set(it.home, Operation::Gather(it.arrival_port.slice(0, PORT_BITS), 0));
        },
    );
    let marked = p.compute("marked", 32, Unit::Number, Operation::Or(now.into(), SYN_MARK.into()));
    p.choose(
        is_syn,
        |p| {
            p.comment("A SYN starts the flow's measurements. It does not wait behind mice.");
            p.access(register("round_trip_time"), it.flow(), store("store_syn", marked), None);
            p.access(register("round_end"), it.flow(), store("begin_handshake", now), None);
            p.access(register("sent"), it.flow(), store("clear_sent", 0), None);
            p.access(register("sent_before"), it.flow(), store("clear_sent_before", 0), None);
            p.enqueue(ANTS);
        },
        |p| known(p, it, [now, marked, data]),
    );
}

/// Whether the packet has data, by the lengths in its headers: all packets have some that have no TCP header.
fn has_data(p: &mut Builder, it: &Parts<'_>) -> Variable {
    let data = p.variable("has_data", 1, Unit::Number);
    // A length in bytes, and the words of both headers.
    let lengths = (5..16u64).flat_map(|words| [vec![20 + 4 * words, 5, words], vec![4 * words, 0, words]]);
    p.look_up(MatchTable {
        name: "lengths_without_data".into(),
        about: "Whether there is data: not if the headers are as long as the packet".into(),
        keys: vec![it.ip_length.into(), it.ip_words.into(), it.tcp_words.into()],
        entries: TableEntries::Exact(lengths.map(|lengths| (lengths, vec![0])).collect()),
        results: vec![data],
        otherwise: vec![1],
    });
    data
}

/// All packets but SYNs.
fn known(p: &mut Builder, it: &Parts<'_>, [now, marked, data]: [Variable; 3]) {
    p.access(register("flow_group"), it.flow(), read("read_group"), Some(it.group));
    let flows = p.variable("flows", 16, Unit::Number);
    p.access(register("long_lived_flows"), it.home, read("read_flows"), Some(flows));
    let rtt = p.variable("rtt", 32, Unit::Number);
    p.comment("The first data behind a SYN measures the round-trip time (section III-A).");
    p.choose(
        is(data, 1),
        |p| {
            let is_marked = (AluExpression::Term(AluTerm::Word), Comparison::GreaterOrEqual, value(SYN_MARK));
            let age = AluExpression::Subtract(value(marked), AluTerm::Word);
            let measure = if_holds("measure_round_trip", is_marked, age, AluOutput::After);
            p.access(register("round_trip_time"), it.flow(), measure, Some(rtt));
        },
        |p| p.access(register("round_trip_time"), it.flow(), read("read_round_trip"), Some(rtt)),
    );
    let [share, high, low] = shares(p, it, flows, rtt);
    p.choose(is(data, 1), |p| with_data(p, it, [now, rtt, share]), |p| lower_window(p, it, [high, low]));
}

/// The flow's share of the link in a round trip, in packets, and the two parts of the receive window for it (section III-D).
fn shares(p: &mut Builder, it: &Parts<'_>, flows: Variable, rtt: Variable) -> [Variable; 3] {
    let results = ["share", "window_high", "window_low"].map(|name| p.variable(name, 32, Unit::Number));
    let (mut shifts, mut actions, mut entries): (Vec<SwitchShift>, _, _) = (Vec::new(), Vec::new(), Vec::new());
    for (joins, groups) in [(true, (0, 0)), (false, (1, 255))] {
        for (first, last, shift) in ranges(|flows| it.params.shift(flows, joins)) {
            let action = shifts.iter().position(|it| *it == shift).unwrap_or_else(|| {
                shifts.push(shift);
                let name = format!("shift_{}", shifts.len() - 1);
                actions.push(p.action(name, |p| {
                    for (result, by) in results.into_iter().zip([shift.share, shift.window[0], shift.window[1]]) {
                        p.set(result, shifted(rtt, by));
                    }
                }));
                shifts.len() - 1
            });
            entries.push((vec![(first.into(), last.into()), groups], action));
        }
    }
    p.choose_by(ActionTable {
        name: "share_of_flow".into(),
        about: "How far the round-trip time is shifted to be the flow's share, by the number of flows; a short-lived flow is one more".into(),
        keys: vec![flows.into(), it.group.into()],
        actions,
        entries,
    });
    results
}

/// Ranges of all numbers of flows with the same shift.
fn ranges(shift: impl Fn(u16) -> SwitchShift) -> Vec<(u16, u16, SwitchShift)> {
    let mut ranges: Vec<(u16, u16, SwitchShift)> = Vec::new();
    for flows in 0..=u16::MAX {
        match ranges.last_mut() {
            Some((_, last, same)) if *same == shift(flows) => *last = flows,
            _ => ranges.push((flows, flows, shift(flows))),
        }
    }
    ranges
}

fn shifted(value: Variable, right: i32) -> Operation {
    match right {
        0 => Operation::Copy(value.into()),
        left @ ..0 => Operation::ShiftLeft(value.into(), left.unsigned_abs()),
        right => Operation::ShiftRight(value.into(), right.unsigned_abs()),
    }
}

/// An ACK of a flow in the other direction (section III-C): the receive window is the flow's share, if it is above it.
fn lower_window(p: &mut Builder, it: &Parts<'_>, [high, low]: [Variable; 2]) {
    p.of(Aspect::Reaction);
    let groups = it.groups(FlowAction::Window);
    p.comment("The receive window of a flow above its share (section III-C).");
    let above = p.variable("was_above", 8, Unit::Number);
    p.access(register("above_share"), it.flow(), read("read_above"), Some(above));
    if !groups.is_empty() {
        let sum = p.compute("window_sum", 32, Unit::Number, Operation::AddSaturating(high.into(), low.into()));
        let least = u64::from(it.params.least_window());
        let limit = p.compute("window_limit", 32, Unit::Number, Operation::Maximum(sum.into(), least.into()));
        let window = p.compute("window_before", 32, Unit::Number, Operation::Gather(it.window.into(), 0));
        let after = p.compute("window_after", 16, Unit::Number, Operation::Gather(limit.slice(0, 16), 0));
        let is_ack = Condition::compare(it.tcp_flags.slice(4, 1), Comparison::Equal, 1);
        p.when(Condition::All(vec![is_ack, is(above, 1), Condition::Any(groups)]), |p| {
            p.when(Condition::compare(window, Comparison::Greater, limit), |p| p.set_window(after));
        });
    }
    p.enqueue(MICE);
}

/// A packet with data.
fn with_data(p: &mut Builder, it: &Parts<'_>, [now, rtt, share]: [Variable; 3]) {
    p.of(Aspect::Metric).comment("Whether it ends a round trip, and the packets of the round trip.");
    let next = p.compute("next_end", 32, Unit::Number, Operation::Add(now.into(), rtt.into()));
    let ended = p.variable("has_ended", 1, Unit::Number);
    let is_later = (AluExpression::Subtract(value(now), AluTerm::Word), Comparison::Less, value(LATER));
    let test = if_holds("test_round_end", is_later, AluExpression::Term(value(next)), AluOutput::Condition(0));
    p.access(register("round_end"), it.flow(), test, Some(ended));
    p.choose(
        is(ended, 1),
        |p| {
            p.access(register("sent"), it.flow(), swap("begin_round", 1), Some(it.sent));
            p.access(register("sent_before"), it.flow(), swap("keep_sent", it.sent), Some(it.before));
            p.set(it.round, Operation::Copy(u64::from(SwitchNote::ENDED).into()));
        },
        |p| {
            p.access(register("sent"), it.flow(), count("count_sent"), Some(it.sent));
            p.set(it.round, Operation::Copy(u64::from(SwitchNote::WITHIN).into()));
        },
    );
    let sent = p.compute("sent_so_far", 32, Unit::Number, Operation::Gather(it.sent.into(), 0));
    p.choose(
        is(it.group, 0),
        |p| short_lived(p, it, ended, [sent, share]),
        |p| long_lived(p, it, ended, [sent, share]),
    );
}

/// Adds one to a word; at most the largest number.
pub(super) fn count(name: &'static str) -> RegisterAction {
    change(name, AluExpression::AddSaturating(AluTerm::Word, value(1)), AluOutput::After)
}

/// A flow in slow start, or without TCP (section III-A).
fn short_lived(p: &mut Builder, it: &Parts<'_>, ended: Variable, [sent, share]: [Variable; 2]) {
    let is_tcp = Condition::compare(it.tcp_words, Comparison::NotEqual, 0);
    let ends = |p: &mut Builder| {
        p.set(it.request, Operation::Copy((SwitchRequest::Group as u64).into()));
        p.set(it.to, Operation::Copy(1.into()));
        p.feed_back();
    };
    p.comment("Slow start ends if the flow sends less, or fills its share: then it loses a packet (section III-A).");
    p.choose(
        is(ended, 1),
        |p| {
            p.when(is_tcp.clone(), |p| p.when(Condition::compare(it.sent, Comparison::Less, it.before), ends));
        },
        |p| {
            p.when(Condition::compare(sent, Comparison::GreaterOrEqual, share), |p| {
                ends(p);
                p.when(is_tcp.clone(), Builder::drop_packet);
            });
        },
    );
    p.choose(is_tcp.clone(), |p| p.enqueue(MICE), |p| p.enqueue(ANTS));
}

/// A long-lived flow: its queue, and what is done to it above its share (section III-C).
fn long_lived(p: &mut Builder, it: &Parts<'_>, ended: Variable, [sent, share]: [Variable; 2]) {
    p.of(Aspect::Reaction);
    let over = p.variable("is_over", 1, Unit::Number);
    p.choose(
        is(ended, 1),
        |p| p.access(register("above_share"), it.flow(), store("end_above", 0), None),
        |p| {
            p.when(Condition::compare(sent, Comparison::Greater, share), |p| {
                p.access(register("above_share"), it.flow(), store("note_above", 1), None);
                p.set(over, Operation::Copy(1.into()));
            });
        },
    );
    queues::find_queue(p, it);
    p.comment("What is done to a flow above its share (section III-C).");
    let with = |groups: Vec<Condition>| Condition::All(vec![is(over, 1), Condition::Any(groups)]);
    let send_copy = |p: &mut Builder| {
        p.when(Condition::compare(it.request, Comparison::NotEqual, 0), Builder::feed_back);
    };
    let drop_and_send = |p: &mut Builder| {
        let dropped = it.groups(FlowAction::Drop);
        if !dropped.is_empty() {
            p.when(with(dropped), Builder::drop_packet);
        }
        send_copy(p);
    };
    let delayed = it.groups(FlowAction::Delay);
    if delayed.is_empty() || it.params.p4air.delay_passes == 0 {
        drop_and_send(p);
    } else {
        p.choose(
            with(delayed),
            |p| {
                p.set(it.request, Operation::Copy((SwitchRequest::Delay as u64).into()));
                p.recirculate();
            },
            drop_and_send,
        );
    }
    p.enqueue(it.queue.slice(0, 7));
}

/// The newest flow of a queue: this one, if there is none.
pub(super) fn newest(p: &mut Builder, it: &Parts<'_>) {
    let none =
        AluCondition { left: AluExpression::Term(AluTerm::Word), comparison: Comparison::Equal, right: value(0) };
    let action = RegisterAction {
        name: "test_newest".into(),
        conditions: vec![none],
        updates: vec![AluUpdate { when: When::Holds(0), value: AluExpression::Term(value(it.mark)) }],
        output: AluOutput::After,
    };
    let newest = p.variable("newest", 32, Unit::Number);
    p.access(register("newest_flow"), it.newest_at, action, Some(newest));
    p.when(Condition::compare(newest, Comparison::Equal, it.mark), |p| {
        p.set(it.is_newest, Operation::Copy(1.into()));
    });
}
