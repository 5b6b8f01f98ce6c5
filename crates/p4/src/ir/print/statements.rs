//! What packets do: statements, the conditions of branches, and what is no expression.

use super::activity::{FOR_EGRESS, PUSH, STRIP};
use super::expression::{alu_text, condition_text, literal, operand_text, operation_text, width_of};
use super::off_path::{REPORT, REPORT_OF_TEST};
use super::{Architecture, FEEDBACK_SESSION, Printer, tna, v1model};
use crate::Gress;
use crate::ir::action::{RegisterAction, When};
use crate::ir::builder::{Does, Statement};
use crate::ir::condition::{Comparison, Condition};
use crate::ir::gateway;
use crate::ir::hash::Polynomial;
use crate::ir::operation::Operation;
use crate::ir::variable::{Input, Operand, Variable, ones};

impl Printer<'_> {
    pub(super) fn statements(&mut self, statements: &[Statement]) {
        let (program, names) = (self.program, self.names());
        for statement in statements {
            match &statement.does {
                Does::Comment(text) => self.line(&format!("// {text}")),
                Does::Set { variable, operation } => {
                    if let Some(special) = self.special(*variable, operation) {
                        // A table of its own for each hash: one table has 32 bits of them.
                        let is_free = operation.hashes().is_none() && !operation.moves_bits();
                        self.compute(&program.variables[variable.0].name, &special, is_free);
                    } else {
                        let info = &program.variables[variable.0];
                        let text = operation_text(&names, info.bits, operation);
                        let is_copy = matches!(operation, Operation::Copy(Operand::Variable(_) | Operand::Constant(_)));
                        self.compute(&info.name, &format!("{} = {text};", names.variable(*variable)), is_copy);
                    }
                }
                Does::If { condition, then, otherwise } => {
                    let parts = match self.architecture {
                        Architecture::Tna if otherwise.is_empty() => gateway::parts(program, condition),
                        _ => vec![condition.clone()],
                    };
                    let texts: Vec<_> = parts.iter().map(|part| self.condition(part)).collect();
                    texts.iter().for_each(|text| self.line(&format!("if ({text}) {{")));
                    self.branches(then, otherwise);
                    (1..texts.len()).for_each(|_| self.line("}"));
                }
                Does::Access { register, index, action, result } => {
                    let result = result.map(|variable| names.variable(variable));
                    let result = result.as_deref();
                    match self.architecture {
                        Architecture::V1model => v1model::access(self, *register, *index, *action, result),
                        Architecture::Tna => tna::access(self, *register, *index, *action, result),
                    }
                }
                Does::Swap { register, index, action, result } => {
                    let result = names.variable(*result);
                    match self.architecture {
                        Architecture::V1model => v1model::swap(self, *register, *index, *action, &result),
                        Architecture::Tna => tna::swap(self, *register, *index, *action, &result),
                    }
                }
                Does::Report { port, delay, estimate } => self.report(*port, [*delay, *estimate]),
                Does::Lookup(table) => self.line(&format!("{}.apply();", program.tables[*table].name)),
                Does::Choose(table) => self.line(&format!("{}.apply();", program.choices[*table].name)),
                Does::FeedBack if self.is_test => self.line("hdr.test.sent_back = 1;"),
                Does::FeedBack => match self.architecture {
                    Architecture::V1model => {
                        let session = FEEDBACK_SESSION;
                        let kind = if self.gress == Gress::Ingress { "I2E" } else { "E2E" };
                        self.line(&format!("clone_preserving_field_list(CloneType.{kind}, 32w{session}, 8w0);"));
                    }
                    Architecture::Tna => {
                        let short = if self.gress == Gress::Ingress { "ig" } else { "eg" };
                        self.line(&format!("{short}_dprsr_md.mirror_type = 1;"));
                        self.line(&format!("meta.session = {FEEDBACK_SESSION};"));
                        self.line("meta.kind = 1;");
                    }
                },
                Does::Push(activity) => {
                    let activity = operand_text(&names, *activity, Input::Activity.bits());
                    let push = if self.metadata_goes_on() { PUSH.to_owned() + FOR_EGRESS } else { PUSH.to_owned() };
                    self.lines(&push.replace("VALUE", &activity).replace("CARRIER", self.carrier()));
                }
                Does::Enqueue(queue) => self.enqueue(*queue),
                Does::SetWindow(window) => self.set_window(*window),
                Does::Recirculate => self.recirculate(),
                Does::Strip => self.lines(&STRIP.replace("CARRIER", self.carrier())),
                Does::Mark if self.is_test => self.line("hdr.test.marked = 1;"),
                Does::Drop if self.is_test => self.line("hdr.test.dropped = 1;"),
                Does::Mark => self.lines(MARK),
                Does::Drop => match self.architecture {
                    Architecture::V1model => self.line("mark_to_drop(standard_metadata);"),
                    Architecture::Tna if self.gress == Gress::Ingress => self.line("ig_dprsr_md.drop_ctl = 1;"),
                    Architecture::Tna => self.line("eg_dprsr_md.drop_ctl = 1;"),
                },
            }
        }
    }

    /// Sends the packet to a port, with its delay and an estimate in front.
    fn report(&mut self, port: Operand, values: [Operand; 2]) {
        let names = self.names();
        let port = operand_text(&names, port, Input::ArrivalPort.bits());
        let [delay, estimate] = values.map(|value| operand_text(&names, value, 32));
        let text = if self.is_test { REPORT_OF_TEST } else { REPORT };
        let text = text.replace("TO_COLLECTOR", &port);
        self.lines(&text.replace("DELAY", &delay).replace("ESTIMATE", &estimate));
        match self.architecture {
            _ if self.is_test => {}
            Architecture::V1model => self.line(&format!("standard_metadata.egress_spec = {port};")),
            Architecture::Tna => {
                self.line(&format!("ig_tm_md.ucast_egress_port = {port};"));
                self.line("ig_dprsr_md.drop_ctl = 0;");
            }
        }
    }

    /// Whether a part of a condition is computed before, because no gateway of a Tofino tests it.
    pub(super) fn is_computed(&self, condition: &Condition) -> bool {
        let is_tofino = self.architecture == Architecture::Tna;
        is_tofino && !gateway::of_condition(self.program, condition).is_empty()
    }

    /// A condition. What no gateway of a Tofino tests is computed before: a saturating difference is zero or not.
    fn condition(&mut self, condition: &Condition) -> String {
        let program = self.program;
        match condition {
            Condition::Compare { left, comparison, right } if self.is_computed(condition) => {
                let name = format!("compared_{}", self.compared);
                self.compared += 1;
                let (low, high, sign) = match comparison {
                    Comparison::Less => (left, right, "!="),
                    Comparison::GreaterOrEqual => (left, right, "=="),
                    Comparison::Greater => (right, left, "!="),
                    _ => (right, left, "=="),
                };
                let bits = gateway::width(program, [*left, *right]);
                let names = self.names();
                let [low, high] = [*low, *high].map(|operand| operand_text(&names, operand, bits));
                self.compute(&name, &format!("{name} = {high} |-| {low};"), false);
                format!("{name} {sign} {}", literal(0, bits))
            }
            Condition::All(parts) => self.joined(parts, " && "),
            Condition::Any(parts) => self.joined(parts, " || "),
            Condition::Compare { .. } => condition_text(&self.names(), program, condition),
        }
    }

    fn joined(&mut self, parts: &[Condition], sign: &str) -> String {
        let text = |part: &Condition| match part {
            Condition::Compare { .. } => self.condition(part),
            _ => format!("({})", self.condition(part)),
        };
        parts.iter().map(text).collect::<Vec<_>>().join(sign)
    }

    /// An assignment. For Tofino, each computation is a table without a key: otherwise the compiler puts the expression where its result is read,
    /// and finds that one stage cannot do both.
    pub(super) fn compute(&mut self, name: &str, assignment: &str, is_copy: bool) {
        if self.architecture == Architecture::V1model || is_copy || self.in_action {
            return self.line(assignment);
        }
        let number = self.computations.len();
        self.computations.push(format!(
            "action assign_{name}_{number}() {{\n{assignment}\n}}\ntable compute_{name}_{number} {{\nactions = {{\nassign_{name}_{number};\n}}\n\
             default_action = assign_{name}_{number}();\nsize = 1;\n}}\n"
        ));
        self.line(&format!("compute_{name}_{number}.apply();"));
    }

    /// Both branches. A packet takes one, so that both draw the same random numbers of a test build.
    fn branches(&mut self, then: &[Statement], otherwise: &[Statement]) {
        let before = self.drawn;
        self.statements(then);
        let after = std::mem::replace(&mut self.drawn, before);
        self.otherwise(otherwise);
        self.drawn = self.drawn.max(after);
    }

    /// The updates of a register action: the first whose condition holds is made. `first` is a line in the branch of the first one.
    pub(super) fn updates(
        &mut self,
        action: &RegisterAction,
        bits: u32,
        condition: impl Fn(usize) -> String,
        first: Option<&str>,
    ) {
        let mut ends = 0;
        for (number, update) in action.updates.iter().enumerate() {
            match update.when {
                When::Always => {}
                When::Holds(n) => self.line(&format!("if ({}) {{", condition(n))),
                When::Fails(n) => self.line(&format!("if (!({})) {{", condition(n))),
            }
            if let (Some(first), 0) = (first, number) {
                self.line(first);
            }
            self.line(&format!("word = {};", alu_text(&self.names(), update.value, bits)));
            if update.when == When::Always {
                break;
            }
            ends += 1;
            if number + 1 < action.updates.len() {
                self.line("} else {");
            }
        }
        (0..ends).for_each(|_| self.line("}"));
    }

    /// Ends a branch, after the statements of the other one.
    fn otherwise(&mut self, statements: &[Statement]) {
        match statements {
            [] => {}
            [Statement { does: Does::If { condition, then, otherwise }, .. }] if !self.is_computed(condition) => {
                let text = self.condition(condition);
                self.line(&format!("}} else if ({text}) {{"));
                return self.branches(then, otherwise);
            }
            _ => {
                self.line("} else {");
                self.statements(statements);
            }
        }
        self.line("}");
    }

    /// Random numbers and hashes are not expressions.
    fn special(&mut self, variable: Variable, operation: &Operation) -> Option<String> {
        let info = &self.program.variables[variable.0];
        let (name, bits) = (self.names().variable(variable), info.bits);
        match operation {
            Operation::Random => {}
            Operation::Hash(polynomial) | Operation::HashReversed(polynomial) | Operation::HashPacket(polynomial) => {
                let hashed = operation.hashes().map_or(&[][..], |(parts, _)| parts);
                let is_reversed = matches!(operation, Operation::HashReversed(_));
                return Some(self.hash([&info.name, &name], bits, *polynomial, hashed, is_reversed));
            }
            Operation::Gather(operand, by) if self.architecture == Architecture::Tna => {
                let width = width_of(self.program, *operand).unwrap_or(bits);
                let operand = operand_text(&self.names(), *operand, width);
                let zeros = if *by == 0 { String::new() } else { format!(", {by}w0") };
                let moved = self.moved(variable);
                return Some(format!("{name} = {moved}.get({{{operand}{zeros}}});"));
            }
            Operation::Join(one, other, by) if self.architecture == Architecture::Tna => {
                let width = width_of(self.program, *one).unwrap_or(bits);
                let [one, other] =
                    [(*one, width), (*other, *by)].map(|(operand, width)| operand_text(&self.names(), operand, width));
                let moved = self.moved(variable);
                return Some(format!("{name} = {moved}.get({{{one}, {other}}});"));
            }
            _ => return None,
        }
        if self.is_test {
            self.drawn += 1;
            return Some(format!("{name} = hdr.test.random_{};", self.drawn - 1));
        }
        Some(match self.architecture {
            Architecture::V1model => format!("random({name}, 0, {});", literal(ones(bits), bits)),
            Architecture::Tna => format!("{name} = random_{}.get();", info.name),
        })
    }

    /// The hash unit that moves bits to a variable: one for each statement.
    pub(super) fn moved(&mut self, variable: Variable) -> String {
        let name = &self.program.variables[variable.0].name;
        let before = self.moves.iter().filter(|it| **it == variable).count();
        self.moves.push(variable);
        if before == 0 { format!("bits_of_{name}") } else { format!("bits_of_{name}_{before}") }
    }

    /// A hash of these inputs; of a flow, in this direction or the other one.
    fn hash(
        &self,
        [variable, name]: [&str; 2],
        bits: u32,
        polynomial: Polynomial,
        hashed: &[Input],
        is_reversed: bool,
    ) -> String {
        let names = self.names();
        let variables = || self.program.variables.iter().enumerate();
        let part = |input: Input| {
            let number = variables().position(|(_, it)| it.input == Some(input));
            number.map_or(String::new(), |number| names.variable(Variable(number)))
        };
        let parts: Vec<_> = hashed.iter().map(|input| part(*input)).collect();
        let flow = match (is_reversed, &parts[..]) {
            (true, [source, destination, ports, protocol]) => {
                format!("{destination}, {source}, {ports}[15:0], {ports}[31:16], {protocol}")
            }
            _ => parts.join(", "),
        };
        match self.architecture {
            Architecture::V1model => {
                let algorithm = if polynomial == Polynomial::Ethernet { "crc32" } else { "crc32_custom" };
                let most = literal(1 << bits, 64);
                format!("hash({name}, HashAlgorithm.{algorithm}, 64w0, {{{flow}}}, {most});")
            }
            Architecture::Tna => format!("{name} = hash_of_{variable}.get({{{flow}}});"),
        }
    }

    /// An index with the width that a register takes.
    pub(super) fn index(&self, index: Operand, width: u32) -> String {
        let text = operand_text(&self.names(), index, width);
        if width_of(self.program, index).is_some_and(|bits| bits > width) {
            format!("(bit<{width}>){text}")
        } else {
            text
        }
    }
}

/// Sets CE. The header checksum of IPv4 follows (RFC 1624): it falls by what the field grows.
const MARK: &str = "\
if (hdr.ipv4.isValid()) {
// The header checksum follows (RFC 1624).
if (hdr.ipv4.ecn == 2) {
if (hdr.ipv4.checksum == 0) {
hdr.ipv4.checksum = 0xfffe;
} else {
hdr.ipv4.checksum = hdr.ipv4.checksum - 1;
}
} else if (hdr.ipv4.ecn == 1) {
if (hdr.ipv4.checksum == 0) {
hdr.ipv4.checksum = 0xfffd;
} else if (hdr.ipv4.checksum == 1) {
hdr.ipv4.checksum = 0xfffe;
} else {
hdr.ipv4.checksum = hdr.ipv4.checksum - 2;
}
}
hdr.ipv4.ecn = 3;
} else {
hdr.ipv6.ecn = 3;
}";
