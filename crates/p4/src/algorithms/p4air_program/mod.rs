//! P4air as a program that is run and printed (Turkovic and Kuipers, ICNP 2020, section III).

mod control;
mod egress;
mod queues;
mod returned;
mod traffic;

use crate::Gress;
use crate::ir::{
    ActionTable, AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Architecture, Builder, Comparison,
    Condition, Input, InvalidProgram, Name, Operand, Operation, RegisterAction, RegisterArray, SwitchProgram, Unit,
    Variable, When,
};
pub use control::p4air_control;
use queuescope_queue::{FlowAction, SwitchP4airParams, SwitchRegister};

const NAME: &str = "p4air";

/// Why the program is not for Tofino. `docs/explanation/pipeline.md` has the forms that were tried.
pub(super) const REJECTED: &str = "p4c finds no placement: with the default parameters it makes 202 tables of it, with 15 in the longest chain, in 17 stages before the queue and 14 \
                        behind it; a Tofino has 12 stages of 16 tables";

/// The groups of long-lived flows.
const GROUPS: u8 = SwitchP4airParams::GROUPS;

/// P4air: finds the kind of congestion control of each flow, gives each kind its own queues, and slows down flows that send more than
/// their share.
///
/// Models [`SwitchP4air`](queuescope_queue::SwitchP4air), whose registers it has. All ports are managed. The port of a flow whose ACK comes
/// is the one that the ACK comes in by. A control plane has to remove flows that have ended, such as [`p4air_control`]: it subtracts them from the counters of their
/// group, and clears their words. The queue of BMv2 has eight priorities at most, which are the lowest three bits of a queue here.
///
/// # Errors
/// Names the parameter that a switch cannot have, and what is possible.
pub fn p4air_with(params: &SwitchP4airParams) -> Result<SwitchProgram, InvalidProgram> {
    params.check().map_err(|error| InvalidProgram::of_parameter(NAME, error.key, error.why))?;
    let about = "groups flows by their congestion control, and slows down those above their share";
    let source = "Turkovic and Kuipers, P4air: Increasing Fairness among Competing Congestion Control Algorithms, ICNP 2020, section III";
    let mut p = Builder::new(NAME, about, source);
    for register in SwitchRegister::ALL {
        p.register(RegisterArray {
            name: register.name.into(),
            about: register.about.into(),
            bits: register.bits,
            unit: Unit::Number,
            entries: register.entries(params),
            initial: register.initial(params).into(),
        });
    }
    let it = Parts::new(&mut p, params);
    p.at(Gress::Ingress);
    p.choose(is(it.fed_back, 1), |p| returned::returned(p, &it), |p| traffic::traffic(p, &it));
    p.at(Gress::Egress);
    p.when(Condition::compare(it.round, Comparison::NotEqual, 0), |p| egress::egress(p, &it));
    p.control_plane("remove flows that have ended", false);
    p.reject_for(Architecture::Tna, REJECTED);
    p.build()
}

/// What all parts of the program share.
struct Parts<'a> {
    params: &'a SwitchP4airParams,
    fed_back: Variable,
    port: Variable,
    arrival_port: Variable,
    arrived: Variable,
    ip_length: Variable,
    ip_words: Variable,
    tcp_words: Variable,
    tcp_flags: Variable,
    window: Variable,
    queue_length: Variable,
    // The note.
    entry: Variable,
    sent: Variable,
    before: Variable,
    each: Variable,
    round: Variable,
    group: Variable,
    queue: Variable,
    is_newest: Variable,
    request: Variable,
    to: Variable,
    giver: Variable,
    passes: Variable,
    // The entries of registers before the queue.
    home: Variable,
    newest_at: Variable,
    gained_at: Variable,
    /// The flow's number, and that in the register of newest flows.
    flow_wide: Variable,
    mark: Variable,
    /// The first queues of the groups but the first.
    bounds: [Variable; 3],
}

/// The bits of a port's number.
const PORT_BITS: u32 = SwitchP4airParams::PORTS.ilog2();
/// The bits of a group's number in an entry.
const GROUP_BITS: u32 = SwitchP4airParams::GROUP_BITS;

impl<'a> Parts<'a> {
    fn new(p: &mut Builder, params: &'a SwitchP4airParams) -> Self {
        Input::FLOW.into_iter().for_each(|input| _ = p.input(input));
        let queue_bits = params.queue_bits();
        let it = Self {
            params,
            fed_back: p.input(Input::FedBack),
            port: p.input(Input::Port),
            arrival_port: p.input(Input::ArrivalPort),
            arrived: p.input(Input::Arrived),
            ip_length: p.input(Input::IpLength),
            ip_words: p.input(Input::IpWords),
            tcp_words: p.input(Input::TcpWords),
            tcp_flags: p.input(Input::TcpFlags),
            window: p.input(Input::Window),
            queue_length: p.input(Input::QueueLength),
            entry: p.note("entry", 0),
            sent: p.note("packets_sent", 1),
            before: p.note("packets_before", 2),
            each: p.note("each_queue", 3),
            round: p.note("round", 4),
            group: p.note("group", 5),
            queue: p.note("queue", 6),
            is_newest: p.note("is_newest", 7),
            request: p.note("request", 8),
            to: p.note("to", 9),
            giver: p.note("giver", 10),
            passes: p.note("passes", 11),
            home: p.variable("home", PORT_BITS, Unit::Number),
            newest_at: p.variable("newest_at", PORT_BITS + queue_bits, Unit::Number),
            gained_at: p.variable("gained_at", PORT_BITS + GROUP_BITS, Unit::Number),
            flow_wide: p.variable("flow_number", 32, Unit::Number),
            mark: p.variable("mark", 32, Unit::Number),
            bounds: [1, 2, 3].map(|n| p.variable(format!("bound_{n}"), 8, Unit::Number)),
        };
        p.input(Input::TcpChecksum);
        it
    }

    /// The entry of registers of flows.
    fn flow(&self) -> Operand {
        self.entry.slice(0, self.params.flow_bits())
    }

    /// The groups with an action.
    fn groups(&self, action: FlowAction) -> Vec<Condition> {
        (1..=GROUPS)
            .filter(|group| self.params.action(*group) == action)
            .map(|group| is(self.group, group.into()))
            .collect()
    }

    /// Finds the entry of a queue of the packet's port, and the flow's number there.
    fn place_of_queue(&self, p: &mut Builder, queue: Variable) {
        let bits = self.params.queue_bits();
        p.set(self.newest_at, Operation::Join(self.home.into(), queue.slice(0, bits), bits));
        p.set(self.flow_wide, Operation::Gather(self.entry.into(), 0));
        p.set(self.mark, Operation::Or(self.flow_wide.into(), u64::from(SwitchRegister::FLOW_MARK).into()));
    }

    /// Finds the entry of a group of flows on the packet's port.
    fn place_of_group(&self, p: &mut Builder, group: Variable) {
        p.set(self.gained_at, Operation::Join(self.home.into(), group.slice(0, GROUP_BITS), GROUP_BITS));
    }
}

/// The number of a register.
fn register(name: &str) -> usize {
    SwitchRegister::ALL.iter().position(|register| register.name == name).expect("it is one of them")
}

fn is(variable: Variable, value: u64) -> Condition {
    Condition::compare(variable, Comparison::Equal, value)
}

/// A value of the packet in a register's unit.
fn value(operand: impl Into<Operand>) -> AluTerm {
    AluTerm::Value(operand.into())
}

/// An action with one update, always.
fn change(name: impl Into<Name>, value: AluExpression, output: AluOutput) -> RegisterAction {
    let updates = vec![AluUpdate { when: When::Always, value }];
    RegisterAction { name: name.into(), conditions: Vec::new(), updates, output }
}

/// An action that stores a value, and returns nothing.
fn store(name: impl Into<Name>, operand: impl Into<Operand>) -> RegisterAction {
    change(name, AluExpression::Term(value(operand)), AluOutput::Nothing)
}

/// An action with one condition, and an update if it holds.
fn if_holds(
    name: impl Into<Name>,
    (left, comparison, right): (AluExpression, Comparison, AluTerm),
    update: AluExpression,
    output: AluOutput,
) -> RegisterAction {
    RegisterAction {
        name: name.into(),
        conditions: vec![AluCondition { left, comparison, right }],
        updates: vec![AluUpdate { when: When::Holds(0), value: update }],
        output,
    }
}

/// A table with an entry for each group and the one that a flow or a queue moves to.
fn by_groups(
    p: &mut Builder,
    (name, about): (&'static str, &'static str),
    keys: [Variable; 2],
    pairs: &[[u8; 2]],
    mut does: impl FnMut(&mut Builder, [u8; 2]),
) {
    let actions =
        pairs.iter().map(|[from, to]| p.action(format!("{name}_{from}_{to}"), |p| does(p, [*from, *to]))).collect();
    let range = |group: u8| (u64::from(group), u64::from(group));
    let entries = pairs.iter().enumerate().map(|(action, pair)| (pair.map(range).to_vec(), action)).collect();
    let keys = keys.map(Operand::from).to_vec();
    p.choose_by(ActionTable { name: name.into(), about: about.into(), keys, actions, entries });
}
