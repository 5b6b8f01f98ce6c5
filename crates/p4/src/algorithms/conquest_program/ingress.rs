//! Acting on flows that were fed back (section 4.2, "Act on future packets").

use super::TIME_BITS;
use crate::algorithms::pie_data_plane::read;
use crate::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, Operand,
    Operation, Polynomial, RegisterAction, RegisterArray, Unit, Variable, When,
};
use crate::{Aspect, Gress};
use queuescope_queue::{FlowLimit, HeldAction, HoldParams, Response};
use queuescope_wire::Nanos;

/// The ECN field of a packet that is not ECN-capable (RFC 3168).
const NOT_ECT: u64 = 0b00;
/// The queue of rerouted flows, and that of all others, as in [`ConQuestAqm`](queuescope_queue::ConQuestAqm).
const ASIDE: u64 = 0;
const REGULAR: u64 = 1;
/// Half of the range of times: a register's unit compares with no larger constant.
const HALF: u64 = 1 << (TIME_BITS - 1);

/// Acts on packets of flows that were fed back. An array has a flow in each entry, and another one the last time at which it is acted on.
pub(super) fn act_at_ingress(p: &mut Builder, response: Response, hold: HoldParams, ecn: Variable) {
    p.at(Gress::Ingress).of(Aspect::Reaction);
    let arrived = p.input(Input::Arrived).slice(0, TIME_BITS);
    let fed_back = p.input(Input::FedBack);
    let [_, _, of_entry, of_flow] = Polynomial::ALL;
    let entry = p.compute("held_entry", hold.registers.ilog2(), Unit::Number, Operation::Hash(of_entry));
    let hash = p.compute("flow_hash", 31, Unit::Number, Operation::Hash(of_flow));
    p.comment("No flow is zero, which an entry without a flow is.");
    let flow = p.compute("flow", 32, Unit::Number, Operation::Or(hash.into(), (1 << 31).into()));
    let flows = register(p, hold, "held_flow", "The flow that is acted on", Unit::Number);
    let ends = register(p, hold, "held_until", "The last time at which it is", Unit::NANOS);
    let last = Operation::Add(arrived, (hold.hold.0.wrapping_sub(1) & u64::from(u32::MAX)).into());
    let last = p.compute("last", TIME_BITS, Unit::NANOS, last);
    let clock = match hold.action {
        HeldAction::Limit(limit) => Some(Clock::new(p, hold, limit, arrived)),
        _ => None,
    };
    p.choose(
        Condition::compare(fed_back, Comparison::Equal, 1),
        |p| {
            p.comment("It goes no further. The newest flow takes the entry.");
            p.access(flows, entry, store("hold_flow", flow), None);
            p.access(ends, entry, store("hold_until", last), None);
            if let Some(clock) = &clock {
                clock.begin(p, entry);
            }
            p.drop_packet();
        },
        |p| {
            let is_same = p.variable("is_same", 1, Unit::Number);
            p.access(flows, entry, test("test_flow", flow), Some(is_same));
            let until = p.variable("until", TIME_BITS, Unit::NANOS);
            p.access(ends, entry, read("read_until"), Some(until));
            p.comment("The time that is left is below the hold, and beyond its end very large.");
            let left = p.compute("left", TIME_BITS, Unit::NANOS, Operation::Subtract(until.into(), arrived));
            let is_held = Condition::compare(left, Comparison::Less, hold.hold.0);
            let is_same = Condition::compare(is_same, Comparison::Equal, 1);
            let is_held = Condition::All(vec![is_same, is_held]);
            match (hold.action, &clock) {
                (HeldAction::Limit(_), Some(clock)) => clock.limit(p, entry, is_held),
                (HeldAction::Reroute, _) => p.choose(is_held, |p| p.enqueue(ASIDE), |p| p.enqueue(REGULAR)),
                (HeldAction::Respond, _) => p.when(is_held, |p| respond(p, response, ecn)),
                _ => p.when(is_held, Builder::drop_packet),
            }
        },
    );
}

/// Marks or drops a packet.
pub(super) fn respond(p: &mut Builder, response: Response, ecn: Variable) {
    let is_capable = Condition::compare(ecn, Comparison::NotEqual, NOT_ECT);
    match response {
        Response::MarkOrDrop => p.choose(is_capable, Builder::mark_packet, Builder::drop_packet),
        Response::MarkOnly => p.when(is_capable, Builder::mark_packet),
        Response::Drop => p.drop_packet(),
    }
}

/// The virtual clocks of limited flows: each packet that passes moves its flow's time on by the interval, and a packet passes if that time is
/// not too far ahead. Times have 32 bits and come round. Less the time of arrival, with the place of that time added, they are in order: those
/// that are behind, then that of arrival, then those that are ahead, of which the last that is possible is half of the range.
struct Clock {
    limit: FlowLimit,
    arrived: Operand,
    /// What is subtracted from a time to find its place.
    origin: Variable,
    /// What a flow's time becomes if it is behind.
    restart: Variable,
    times: usize,
}

impl Clock {
    fn new(p: &mut Builder, hold: HoldParams, limit: FlowLimit, arrived: Operand) -> Self {
        let times =
            register(p, hold, "flow_time", "How far a flow's packets have come at the rate of its limit", Unit::NANOS);
        let before = (1 << TIME_BITS) - Self::place_of_arrival(limit);
        let origin = p.compute("origin", TIME_BITS, Unit::NANOS, Operation::Add(arrived, before.into()));
        let restart = p.variable("restart", TIME_BITS, Unit::NANOS);
        Self { limit, arrived, origin, restart, times }
    }

    /// The place of the time of arrival.
    fn place_of_arrival(limit: FlowLimit) -> u64 {
        HALF - furthest(limit).0
    }

    /// The place of a time that is ahead by this.
    fn ahead(&self, nanos: u64) -> u64 {
        Self::place_of_arrival(self.limit) + nanos
    }

    fn compare(&self, comparison: Comparison, right: u64) -> AluCondition {
        let left = AluExpression::Subtract(AluTerm::Word, AluTerm::Value(self.origin.into()));
        AluCondition { left, comparison, right: AluTerm::Value(right.into()) }
    }

    /// A flow that was fed back: its time goes on if it is ahead. Otherwise it is now, and so is one that no limit can have made, of a time long ago.
    fn begin(&self, p: &mut Builder, entry: Variable) {
        let most = furthest(self.limit).0;
        let restart = AluExpression::Term(AluTerm::Value(self.restart.into()));
        let action = RegisterAction {
            name: "begin_time".into(),
            conditions: vec![
                self.compare(Comparison::Less, self.ahead(0)),
                self.compare(Comparison::Greater, self.ahead(most)),
            ],
            updates: [0, 1].map(|number| AluUpdate { when: When::Holds(number), value: restart }).to_vec(),
            output: AluOutput::Nothing,
        };
        p.set(self.restart, Operation::Copy(self.arrived));
        p.access(self.times, entry, action, None);
    }

    /// A packet: if its flow is held, it passes or is dropped. One that passes moves the time on.
    fn limit(&self, p: &mut Builder, entry: Variable, is_held: Condition) {
        let interval = self.limit.interval.0;
        let updates = [
            AluExpression::Term(AluTerm::Value(self.restart.into())),
            AluExpression::Add(AluTerm::Word, AluTerm::Value(interval.into())),
        ];
        let action = RegisterAction {
            name: "pass_time".into(),
            conditions: vec![
                self.compare(Comparison::Less, self.ahead(0)),
                self.compare(Comparison::LessOrEqual, self.ahead(self.limit.tolerance().0)),
            ],
            updates: (0..).zip(updates).map(|(number, value)| AluUpdate { when: When::Holds(number), value }).collect(),
            output: AluOutput::Condition(1),
        };
        p.set(self.restart, Operation::Add(self.arrived, interval.into()));
        let passes = p.variable("passes", 1, Unit::Number);
        p.when(is_held, |p| {
            p.access(self.times, entry, action, Some(passes));
            p.when(Condition::compare(passes, Comparison::Equal, 0), Builder::drop_packet);
        });
    }
}

/// A register with a word for each entry.
fn register(p: &mut Builder, hold: HoldParams, name: &'static str, about: &'static str, unit: Unit) -> usize {
    let (name, about) = (name.into(), about.into());
    p.register(RegisterArray { name, about, bits: 32, unit, entries: hold.registers.into(), initial: 0 })
}

fn store(name: &'static str, value: Variable) -> RegisterAction {
    RegisterAction {
        name: name.into(),
        conditions: Vec::new(),
        updates: vec![AluUpdate { when: When::Always, value: AluExpression::Term(AluTerm::Value(value.into())) }],
        output: AluOutput::Nothing,
    }
}

/// Whether the word is a value.
fn test(name: &'static str, value: Variable) -> RegisterAction {
    let condition = AluCondition {
        left: AluExpression::Term(AluTerm::Word),
        comparison: Comparison::Equal,
        right: AluTerm::Value(value.into()),
    };
    RegisterAction {
        name: name.into(),
        conditions: vec![condition],
        updates: Vec::new(),
        output: AluOutput::Condition(0),
    }
}

/// How far ahead the time of a limited flow can be.
pub(super) fn furthest(limit: FlowLimit) -> Nanos {
    limit.tolerance().saturating_add(limit.interval)
}
