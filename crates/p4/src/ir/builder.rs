//! Building programs.

use super::action::{RegisterAction, RegisterArray};
use super::condition::Condition;
use super::operation::Operation;
use super::pair::PairAction;
use super::print::Architecture;
use super::table::{ActionTable, MatchTable, TableAction};
use super::uses::Uses;
use super::validate::{InvalidProgram, validate};
use super::variable::{Input, Name, Operand, Unit, Variable};
use crate::program::ControlPlaneTask;
use crate::{Aspect, Gress};
use queuescope_wire::Nanos;

/// A program: what packets do behind the queue, and before it. It was checked: all widths and units fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchProgram {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) source: &'static str,
    pub(crate) variables: Vec<VariableInfo>,
    pub(crate) registers: Vec<RegisterArray>,
    pub(crate) actions: Vec<RegisterAction>,
    pub(crate) pair_actions: Vec<PairAction>,
    pub(crate) tables: Vec<MatchTable>,
    pub(crate) choices: Vec<ActionTable>,
    /// What packets do before the queue.
    pub(crate) ingress: Vec<Statement>,
    /// What they do behind it.
    pub(crate) statements: Vec<Statement>,
    /// The period of generated packets, if there are any.
    pub(crate) period: Option<Nanos>,
    /// What the control plane does from time to time.
    pub(crate) tasks: Vec<ControlPlaneTask>,
    /// Whether the switch is beside the path of packets, and forwards none.
    pub(crate) is_off_path: bool,
    /// Why a compiler for a target rejects the program, as measured.
    pub(crate) rejected: Option<(Architecture, &'static str)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VariableInfo {
    pub name: Name,
    pub bits: u32,
    pub unit: Unit,
    /// What the packet brings along, if it does.
    pub input: Option<Input>,
}

/// A statement, and the part of the algorithm that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub aspect: Aspect,
    pub does: Does,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Does {
    Comment(&'static str),
    Set {
        variable: Variable,
        operation: Operation,
    },
    If {
        condition: Condition,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    Access {
        register: usize,
        index: Operand,
        action: usize,
        result: Option<Variable>,
    },
    /// An access to a pair of words.
    Swap {
        register: usize,
        index: Operand,
        action: usize,
        result: Variable,
    },
    /// A lookup in the table of this number.
    Lookup(usize),
    /// What the entry of the action table of this number does.
    Choose(usize),
    Mark,
    Drop,
    FeedBack,
    /// Puts an activity header with this activity behind that of Ethernet.
    Push(Operand),
    /// Removes the activity header.
    Strip,
    /// Sends the packet to a port, with a header in front: a delay and an estimate.
    Report {
        port: Operand,
        delay: Operand,
        estimate: Operand,
    },
    /// The queue of its port that the packet enters.
    Enqueue(Operand),
    /// The receive window of its TCP header.
    SetWindow(Operand),
    /// The packet itself comes again.
    Recirculate,
}

/// Builds a [`SwitchProgram`], statement by statement.
#[derive(Debug)]
pub struct Builder {
    program: SwitchProgram,
    aspect: Aspect,
    gress: Gress,
}

impl SwitchProgram {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A description in one sentence, without a final period.
    pub fn about(&self) -> &'static str {
        self.about
    }

    /// Whether packets do anything before the queue.
    pub fn has_ingress(&self) -> bool {
        !self.ingress.is_empty()
    }

    /// Whether it is for a switch beside the path of packets, which only measures and reports.
    pub fn is_off_path(&self) -> bool {
        self.is_off_path
    }

    /// Whether it chooses the queues of packets.
    pub fn chooses_queues(&self) -> bool {
        Uses::of(self, Gress::Ingress).enqueues
    }

    /// What packets do in a half of the pipeline.
    pub(crate) fn at(&self, gress: Gress) -> &[Statement] {
        match gress {
            Gress::Ingress => &self.ingress,
            Gress::Egress => &self.statements,
        }
    }

    /// What packets bring along.
    pub fn inputs(&self) -> impl Iterator<Item = Input> {
        self.variables.iter().filter_map(|it| it.input)
    }

    /// The period of the packets that the switch's packet generator sends to each port, if it sends some.
    pub fn period(&self) -> Option<Nanos> {
        self.period
    }

    /// Its registers.
    pub fn registers(&self) -> &[RegisterArray] {
        &self.registers
    }
}

impl Builder {
    /// A program without statements. `source` names the paper's section or the type that it follows.
    pub fn new(name: &'static str, about: &'static str, source: &'static str) -> Self {
        let program = SwitchProgram {
            name,
            about,
            source,
            variables: Vec::new(),
            registers: Vec::new(),
            actions: Vec::new(),
            pair_actions: Vec::new(),
            tables: Vec::new(),
            choices: Vec::new(),
            ingress: Vec::new(),
            statements: Vec::new(),
            period: None,
            tasks: Vec::new(),
            is_off_path: false,
            rejected: None,
        };
        Self { program, aspect: Aspect::Metric, gress: Gress::Egress }
    }

    /// Assigns the following statements to this part of the algorithm.
    pub fn of(&mut self, aspect: Aspect) -> &mut Self {
        self.aspect = aspect;
        self
    }

    /// Puts the following statements into this half of the pipeline; behind the queue at first. The halves have no variables in common, except
    /// inputs.
    pub fn at(&mut self, gress: Gress) -> &mut Self {
        self.gress = gress;
        self
    }

    /// Makes it the program of a switch beside the path of packets, which gets copies of them. It forwards none: all packets are dropped before
    /// the queue, except those that it [reports](Self::report). All is done before the queue, also by generated packets, and for packets that are
    /// not IP, too, whose fields are zero.
    pub fn off_path(&mut self) -> &mut Self {
        self.program.is_off_path = true;
        self.at(Gress::Ingress)
    }

    /// The packet generator sends a packet to each port after each period. Off the path, it sends one packet.
    pub fn generated_every(&mut self, period: Nanos) {
        self.program.period = Some(period);
    }

    /// Something that the switch's control plane does from time to time, in place of statements. `feeds_back`: it carries something learnt behind
    /// the queue to statements before it.
    pub fn control_plane(&mut self, name: &str, feeds_back: bool) {
        self.program.tasks.push(ControlPlaneTask { name: name.to_owned(), aspect: self.aspect, feeds_back });
    }

    /// The compiler for a target rejects the program, as was measured: a clause without a final period. It is not generated for this target.
    pub fn reject_for(&mut self, architecture: Architecture, why: &'static str) {
        self.program.rejected = Some((architecture, why));
    }

    /// Writes a comment into the printed program.
    pub fn comment(&mut self, text: &'static str) {
        self.push(Does::Comment(text));
    }

    /// A value that the packet brings along.
    pub fn input(&mut self, input: Input) -> Variable {
        self.add(VariableInfo { name: input.name().into(), bits: input.bits(), unit: input.unit(), input: Some(input) })
    }

    /// A variable.
    pub fn variable(&mut self, name: impl Into<Name>, bits: u32, unit: Unit) -> Variable {
        self.add(VariableInfo { name: name.into(), bits, unit, input: None })
    }

    /// A register.
    pub fn register(&mut self, register: RegisterArray) -> usize {
        self.program.registers.push(register);
        self.program.registers.len() - 1
    }

    /// Assigns the result of an operation to a variable.
    pub fn set(&mut self, variable: Variable, operation: Operation) {
        self.push(Does::Set { variable, operation });
    }

    /// A new variable with the result of an operation.
    pub fn compute(&mut self, name: impl Into<Name>, bits: u32, unit: Unit, operation: Operation) -> Variable {
        let variable = self.variable(name, bits, unit);
        self.set(variable, operation);
        variable
    }

    /// Accesses one word of a register. `result`, if any, takes the output of the action.
    pub fn access(
        &mut self,
        register: usize,
        index: impl Into<Operand>,
        action: RegisterAction,
        result: Option<Variable>,
    ) {
        self.program.actions.push(action);
        let action = self.program.actions.len() - 1;
        self.push(Does::Access { register, index: index.into(), action, result });
    }

    /// Accesses a pair of words of a register. `result` takes the output of the action.
    pub fn swap(&mut self, register: usize, index: impl Into<Operand>, action: PairAction, result: Variable) {
        self.program.pair_actions.push(action);
        let action = self.program.pair_actions.len() - 1;
        self.push(Does::Swap { register, index: index.into(), action, result });
    }

    /// Looks up the entry of a table.
    pub fn look_up(&mut self, table: MatchTable) {
        self.program.tables.push(table);
        self.push(Does::Lookup(self.program.tables.len() - 1));
    }

    /// An action of a table: assignments and accesses, none of which reads what another one assigns.
    pub fn action(&mut self, name: impl Into<Name>, does: impl FnOnce(&mut Self)) -> TableAction {
        let before = std::mem::take(self.list());
        does(self);
        let statements = std::mem::replace(self.list(), before);
        TableAction { name: name.into(), statements }
    }

    /// Does what the entry of a table says; nothing if no entry matches.
    pub fn choose_by(&mut self, table: ActionTable) {
        self.program.choices.push(table);
        self.push(Does::Choose(self.program.choices.len() - 1));
    }

    /// Statements that are executed if a condition holds.
    pub fn when(&mut self, condition: Condition, then: impl FnOnce(&mut Self)) {
        self.choose(condition, then, |_| ());
    }

    /// Statements that are executed if a condition holds, and others if it does not.
    pub fn choose(&mut self, condition: Condition, then: impl FnOnce(&mut Self), otherwise: impl FnOnce(&mut Self)) {
        let before = std::mem::take(self.list());
        then(self);
        let then = std::mem::take(self.list());
        otherwise(self);
        let otherwise = std::mem::replace(self.list(), before);
        self.push(Does::If { condition, then, otherwise });
    }

    /// Marks the packet with CE. The program has to check that it is ECN-capable.
    pub fn mark_packet(&mut self) {
        self.push(Does::Mark);
    }

    /// Drops the packet.
    pub fn drop_packet(&mut self) {
        self.push(Does::Drop);
    }

    /// Sends a copy of the packet back to the part before the queue. The packet itself goes on. The copy has the note that the packet has at the end
    /// of this half. Before the queue, only a program with a note can do this.
    pub fn feed_back(&mut self) {
        self.push(Does::FeedBack);
    }

    /// A slot of the packet's note, [`Input::Note`], by a name of its own.
    pub fn note(&mut self, name: impl Into<Name>, slot: u8) -> Variable {
        let input = Input::Note(slot);
        self.add(VariableInfo { name: name.into(), bits: input.bits(), unit: input.unit(), input: Some(input) })
    }

    /// Puts the packet into this queue of its port; into queue 0 without this. Before the queue only.
    pub fn enqueue(&mut self, queue: impl Into<Operand>) {
        self.push(Does::Enqueue(queue.into()));
    }

    /// Writes the receive window of the TCP header, of 16 bits. The checksum follows (RFC 1624). The program has to check that there is such a header, and
    /// has the inputs [`Input::Window`] and [`Input::TcpChecksum`]. Before the queue only.
    pub fn set_window(&mut self, window: impl Into<Operand>) {
        self.push(Does::SetWindow(window.into()));
    }

    /// The packet passes the part before the queue again, with its note and [`Input::FedBack`]; apart from that, as it arrived. It enters no queue, and whether it is dropped
    /// does not matter. Before the queue only.
    pub fn recirculate(&mut self) {
        self.push(Does::Recirculate);
    }

    /// Puts an activity header with this activity, of 16 bits, behind the header of Ethernet. The program has to check that there is none.
    /// This half goes on without it. Pushed before the queue, it is what the half behind the queue reads.
    pub fn push_activity(&mut self, activity: impl Into<Operand>) {
        self.push(Does::Push(activity.into()));
    }

    /// Removes the activity header. The program has to check that there is one.
    pub fn strip_activity(&mut self) {
        self.push(Does::Strip);
    }

    /// Sends the packet to a port, with a header in front of it that has its delay and an estimate, of 32 bits each. Off the path only.
    pub fn report(&mut self, port: impl Into<Operand>, delay: impl Into<Operand>, estimate: impl Into<Operand>) {
        self.push(Does::Report { port: port.into(), delay: delay.into(), estimate: estimate.into() });
    }

    /// Checks the program.
    ///
    /// # Errors
    /// Names the first statement that is not valid, and why.
    pub fn build(self) -> Result<SwitchProgram, InvalidProgram> {
        validate(&self.program)?;
        Ok(self.program)
    }

    fn add(&mut self, info: VariableInfo) -> Variable {
        self.program.variables.push(info);
        Variable(self.program.variables.len() - 1)
    }

    fn push(&mut self, does: Does) {
        let aspect = self.aspect;
        self.list().push(Statement { aspect, does });
    }

    /// The statements of the half that is being built.
    fn list(&mut self) -> &mut Vec<Statement> {
        match self.gress {
            Gress::Ingress => &mut self.program.ingress,
            Gress::Egress => &mut self.program.statements,
        }
    }
}
