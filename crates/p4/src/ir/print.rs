//! Programs as P4_16.

mod activity;
mod entries;
mod expression;
mod note;
mod off_path;
mod p4runtime;
mod test_build;
mod tna;
mod v1model;

use super::action::{AluExpression, RegisterAction, When};
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::gateway;
use super::hash::Polynomial;
use super::table::ActionTable;
use super::uses::Uses;
use super::variable::{Input, Operand, Variable, ones};
use crate::Gress;
use activity::{ACTIVITY_HEADER, FOR_EGRESS, PUSH, STRIP};
pub use entries::{Forwarding, print_entries, print_forwarding};
pub(crate) use expression::{Names, condition_text, operation_text};
use expression::{alu_text, literal, operand_text, width_of};
use off_path::{NUMBERS, NUMBERS_HEADERS, REPORT, REPORT_HEADER, REPORT_OF_TEST};
pub use p4runtime::print_p4runtime;
use std::fmt::Write;
pub use test_build::TestBuild;

/// What a P4 program is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// BMv2's `simple_switch`.
    V1model,
    /// Intel Tofino.
    Tna,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::V1model, Self::Tna];

    /// Its name on the command line and of its include file.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1model => "v1model",
            Self::Tna => "tna",
        }
    }
}

/// Why an architecture cannot have a program, whatever the placer says: a register action that its unit cannot do, or a rejection of the compiler that
/// was measured. Such a program is printed for people to
/// read; no compiler takes it.
pub fn refusal(program: &SwitchProgram, architecture: Architecture) -> Option<String> {
    if let Some((_, why)) = program.rejected.filter(|(it, _)| *it == architecture) {
        return Some(why.to_owned());
    }
    let averages = |action: &&RegisterAction| {
        let values = action.updates.iter().map(|update| update.value);
        values
            .chain(action.conditions.iter().map(|condition| condition.left))
            .any(|it| matches!(it, AluExpression::MoveTowards(..)))
    };
    let action = program.actions.iter().find(averages).filter(|_| architecture == Architecture::Tna)?;
    Some(format!("{} averages by a shift of a difference, and a Tofino's register unit cannot shift", action.name))
}

/// The program in P4_16.
pub fn print(program: &SwitchProgram, architecture: Architecture) -> String {
    let mut out = Printer::new(program, architecture, false);
    out.head();
    match architecture {
        Architecture::V1model => v1model::print(&mut out),
        Architecture::Tna => tna::print(&mut out),
    }
    out.text
}

/// Text with indentation.
pub(crate) struct Printer<'a> {
    text: String,
    depth: usize,
    architecture: Architecture,
    is_test: bool,
    /// The random numbers that were drawn before, in a test build.
    drawn: usize,
    /// The comparisons that were computed before.
    compared: usize,
    /// For Tofino: the actions and tables of the computations so far.
    computations: Vec<String>,
    /// Whether the statements are those of an action.
    in_action: bool,
    /// The variables to which hash units moved bits so far.
    moves: Vec<Variable>,
    /// The half of the pipeline that is printed.
    gress: Gress,
    program: &'a SwitchProgram,
}

impl<'a> Printer<'a> {
    fn new(program: &'a SwitchProgram, architecture: Architecture, is_test: bool) -> Self {
        Self {
            text: String::new(),
            depth: 0,
            architecture,
            is_test,
            drawn: 0,
            compared: 0,
            computations: Vec::new(),
            moves: Vec::new(),
            in_action: false,
            gress: Gress::Egress,
            program,
        }
    }

    fn names(&self) -> Names<'a> {
        Names::of(self.program, self.architecture, self.is_test, self.gress)
    }

    /// A line. A line that ends with `{` begins a block; one that begins with `}` ends it.
    fn line(&mut self, text: &str) {
        if text.starts_with('}') {
            self.depth = self.depth.saturating_sub(1);
        }
        if text.is_empty() {
            self.text.push('\n');
        } else {
            let _ = writeln!(self.text, "{:1$}{text}", "", self.depth * 4);
        }
        if text.ends_with('{') {
            self.depth += 1;
        }
    }

    /// Several lines, with the indentation that blocks give. A line that begins with spaces continues the one before.
    fn lines(&mut self, text: &str) {
        for line in text.lines() {
            let deeper = usize::from(line.starts_with(' ')) * 2;
            self.depth += deeper;
            self.line(line.trim());
            self.depth -= deeper;
        }
    }

    fn head(&mut self) {
        let SwitchProgram { name, about, source, .. } = self.program;
        let architecture = self.architecture.name();
        self.line(&format!("// {name}: {about}."));
        if !source.is_empty() {
            self.line(&format!("// After {source}."));
        }
        if let Some(period) = self.program.period {
            let to = if self.program.is_off_path { "" } else { " to each port" };
            self.line(&format!("// The packet generator sends a packet{to} every {period}."));
        }
        self.line("");
        self.line("#include <core.p4>");
        self.line(&format!("#include <{architecture}.p4>"));
        self.line("");
        self.lines(HEADERS);
        if self.uses_activity() {
            self.line("");
            self.lines(ACTIVITY_HEADER);
        }
        if self.reads_numbers() {
            self.line("");
            self.lines(NUMBERS_HEADERS);
        }
        if self.reports() {
            self.line("");
            self.lines(REPORT_HEADER);
        }
        if self.reads_tcp() {
            self.line("");
            self.lines(TCP_HEADER);
        }
        self.line("");
    }

    /// Whether the program reads an input.
    fn reads(&self, input: Input) -> bool {
        self.program.variables.iter().any(|it| it.input == Some(input))
    }

    /// Whether the half that is printed reads an input.
    fn reads_here(&self, input: Input) -> bool {
        self.uses().reads(self.program, input)
    }

    /// Whether the program reads, pushes or removes activity headers, so that they are parsed.
    fn uses_activity(&self) -> bool {
        Input::OF_ACTIVITY.iter().any(|input| self.reads(*input))
    }

    /// Whether the program reads what is behind the ports, so that it is parsed.
    fn reads_numbers(&self) -> bool {
        Input::OF_NUMBERS.iter().any(|input| self.reads(*input))
    }

    /// Whether the program sends packets to a collector.
    fn reports(&self) -> bool {
        Uses::of(self.program, Gress::Ingress).reports
    }

    /// What the half that is printed has of the program.
    fn uses(&self) -> Uses {
        Uses::of(self.program, self.gress)
    }

    /// Whether packets do anything before the queue.
    fn has_ingress(&self) -> bool {
        self.program.has_ingress()
    }

    /// The part that packets with an IP header take, those with an activity header, and generated ones; off the path, all packets.
    fn body(&mut self) {
        if !self.program.is_off_path {
            self.begin();
        }
        self.statements(self.program.at(self.gress));
        if !self.program.is_off_path {
            self.line("}");
        }
    }

    fn begin(&mut self) {
        let generated = if self.reads_here(Input::Generated) { "meta.generated == 1 || " } else { "" };
        let activity = [Input::HasActivity, Input::Malformed].into_iter().filter(|input| self.reads_here(*input));
        let activity: String = activity.map(|input| format!("meta.{} == 1 || ", input.name())).collect();
        self.line(&format!("if ({generated}{activity}hdr.ipv4.isValid() || hdr.ipv6.isValid()) {{"));
    }

    /// The variables that are not inputs.
    fn variables(&mut self) {
        let names = self.names();
        let variables = self.uses().variables;
        for (number, info) in self.program.variables.iter().enumerate().filter(|(_, it)| it.input.is_none()) {
            if variables.contains(&Variable(number)) && !names.is_metadata(Variable(number)) {
                self.line(&format!("bit<{}> {} = 0;", info.bits, info.name));
            }
        }
    }

    /// The tables, each with the action that gives an entry's values to variables. Entries come from the control plane.
    fn tables(&mut self) {
        let (program, names, uses) = (self.program, self.names(), self.uses());
        for table in uses.tables.iter().map(|table| &program.tables[*table]) {
            let results: Vec<_> = table.results.iter().map(|result| &program.variables[result.0]).collect();
            let parameters: Vec<_> =
                results.iter().map(|it| format!("bit<{}> {}_of_entry", it.bits, it.name)).collect();
            self.line("");
            self.line(&format!("// {}.", table.about));
            self.line(&format!("action set_{}({}) {{", table.name, parameters.join(", ")));
            for (result, info) in table.results.iter().zip(&results) {
                self.line(&format!("{} = {}_of_entry;", names.variable(*result), info.name));
            }
            self.line("}");
            self.line(&format!("table {} {{", table.name));
            if !table.keys.is_empty() {
                self.line("key = {");
                let kind = table.entries.kind();
                for key in &table.keys {
                    self.key(*key, kind);
                }
                self.line("}");
            }
            self.line("actions = {");
            self.line(&format!("set_{};", table.name));
            self.line("}");
            let values: Vec<_> =
                table.otherwise.iter().zip(&results).map(|(value, it)| literal(*value, it.bits)).collect();
            self.line(&format!("default_action = set_{}({});", table.name, values.join(", ")));
            if !table.keys.is_empty() {
                // Where there are none yet, the control plane adds some.
                let keys = table.keys.iter().filter_map(|key| width_of(program, *key)).sum::<u32>();
                let size = if table.entries.is_empty() { 1024.min(1 << keys.min(10)) } else { table.entries.len() };
                self.line(&format!("size = {size};"));
            } else if self.architecture == Architecture::Tna {
                self.line("size = 1;");
            }
            self.line("}");
        }
        uses.choices.iter().for_each(|table| self.choice(&program.choices[*table]));
    }

    /// A key of a table. The control plane of Tofino takes the name of the variable. The expression of a slice is no name, and that of an input is another one.
    fn key(&mut self, key: Operand, kind: &str) {
        let own = key.variable().map_or("", |variable| &self.program.variables[variable.0].name);
        let text = operand_text(&self.names(), key, 0);
        let name = match self.architecture {
            Architecture::Tna if text != own => format!(" @name(\"{own}\")"),
            _ => String::new(),
        };
        self.line(&format!("{text}: {kind}{name};"));
    }

    /// A table whose entries choose what is done. They do not change.
    fn choice(&mut self, table: &ActionTable) {
        let program = self.program;
        self.line("");
        self.line(&format!("// {}.", table.about));
        for action in &table.actions {
            self.line(&format!("action {}() {{", action.name));
            self.in_action = true;
            self.statements(&action.statements);
            self.in_action = false;
            self.line("}");
        }
        self.line(&format!("table {} {{", table.name));
        self.line("key = {");
        for (number, key) in table.keys.iter().enumerate() {
            let all = ones(width_of(program, *key).unwrap_or(0));
            let kind = table.kind(number, all);
            self.key(*key, kind);
        }
        self.line("}");
        self.line("actions = {");
        table.actions.iter().for_each(|action| self.line(&format!("{};", action.name)));
        self.line("NoAction;");
        self.line("}");
        self.line("const default_action = NoAction();");
        self.line("const entries = {");
        let widths: Vec<_> = table.keys.iter().map(|key| width_of(program, *key).unwrap_or(0)).collect();
        for (ranges, action) in &table.entries {
            let key = |((low, high), bits): (&(u64, u64), &u32)| match (low, high) {
                (low, high) if low == high => literal(*low, *bits),
                (0, high) if *high == ones(*bits) => "_".to_owned(),
                (low, high) => format!("{} .. {}", literal(*low, *bits), literal(*high, *bits)),
            };
            let keys: Vec<_> = ranges.iter().zip(&widths).map(key).collect();
            let keys = if keys.len() == 1 { keys.concat() } else { format!("({})", keys.join(", ")) };
            self.line(&format!("{keys}: {}();", table.actions[*action].name));
        }
        self.line("}");
        if self.architecture == Architecture::Tna {
            self.line(&format!("size = {};", table.entries.len()));
        }
        self.line("}");
    }

    /// Whether the program reads what identifies a flow.
    fn reads_flow(&self) -> bool {
        Input::FLOW.iter().any(|input| self.reads(*input))
    }

    /// A template with the parsing of what identifies a flow, if the program reads that.
    fn with_flow(&self, template: &str) -> String {
        let mut parts = if self.reads_flow() { FLOW } else { WITHOUT_FLOW }.map(str::to_owned);
        if self.reads(Input::IpLength) {
            parts[0] += "bit<16> ip_length;\n";
            parts[2].insert_str(0, "meta.ip_length = hdr.ipv4.total_length;\n");
            parts[3].insert_str(0, "meta.ip_length = hdr.ipv6.payload_length;\n");
        }
        if self.reads(Input::Identification) {
            parts[0] += "bit<16> identification;\n";
            parts[2].insert_str(0, "meta.identification = hdr.ipv4.identification;\n");
        }
        if self.reads_numbers() {
            let [fields, members, states, emit] = NUMBERS;
            parts[0] += fields;
            parts[1] += members;
            for part in &mut parts[2..4] {
                *part = part.replace("6: parse_ports", "6: parse_tcp").replace("6): parse_ports", "6): parse_tcp");
                *part = part.replace("parse_ports", "parse_udp");
            }
            parts[4] = states.to_owned();
            parts[5] += emit;
        }
        if self.reads(Input::IpWords) {
            parts[0] += "bit<4> ip_words;\n";
            parts[2].insert_str(0, "meta.ip_words = hdr.ipv4.header_words;\n");
        }
        if self.reads_tcp() {
            parts[0] += TCP_FIELDS;
            parts[1] += "tcp_h tcp;\n";
            parts[4] = parts[4].replace("transition accept;\n", TO_TCP) + TCP_STATE;
            parts[5] += "packet.emit(hdr.tcp);\n";
        }
        let marks =
            ["FLOW_FIELDS\n", "PORTS_MEMBER\n", "AFTER_IPV4\n", "AFTER_IPV6\n", "PORTS_STATE\n", "EMIT_PORTS\n"];
        marks.into_iter().zip(parts).fold(template.to_owned(), |text, (mark, part)| text.replace(mark, &part))
    }

    fn statements(&mut self, statements: &[Statement]) {
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
                        let is_copy =
                            matches!(operation, super::Operation::Copy(Operand::Variable(_) | Operand::Constant(_)));
                        self.compute(&info.name, &format!("{} = {text};", names.variable(*variable)), is_copy);
                    }
                }
                Does::If { condition, then, otherwise } => {
                    let text = self.condition(condition);
                    self.line(&format!("if ({text}) {{"));
                    self.branches(then, otherwise);
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

    /// Whether the half behind the queue reads activities that the parser found before it. (Tofino has a parser for each half.)
    fn metadata_goes_on(&self) -> bool {
        let is_v1model = self.architecture == Architecture::V1model;
        is_v1model && Uses::of(self.program, Gress::Egress).reads(self.program, Input::HasActivity)
    }

    /// The header in front of that of the activity. A frame of a test build has it behind the header of the test.
    fn carrier(&self) -> &'static str {
        if self.is_test { "hdr.carrier" } else { "hdr.ethernet" }
    }

    /// A template with the parsing of the activity header, if the program reads that.
    fn with_activity(&self, template: &str, parts: [&str; 6]) -> String {
        let parts = if self.uses_activity() { parts } else { [""; 6] };
        let marks = [
            "ACTIVITY_FIELDS\n",
            "ACTIVITY_MEMBER\n",
            "ACTIVITY_SELECT\n",
            "ACTIVITY_STATES\n",
            "EMIT_ACTIVITY\n",
            "ACTIVITY_NESTED\n",
        ];
        marks.into_iter().zip(parts).fold(template.to_owned(), |text, (mark, part)| text.replace(mark, part))
    }

    /// Whether a part of a condition is computed before, because no gateway of a Tofino tests it.
    fn is_computed(&self, condition: &Condition) -> bool {
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
    fn compute(&mut self, name: &str, assignment: &str, is_copy: bool) {
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
    fn updates(
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
    fn special(&mut self, variable: Variable, operation: &super::Operation) -> Option<String> {
        let info = &self.program.variables[variable.0];
        let (name, bits) = (self.names().variable(variable), info.bits);
        match operation {
            super::Operation::Random => {}
            super::Operation::Hash(polynomial)
            | super::Operation::HashReversed(polynomial)
            | super::Operation::HashPacket(polynomial) => {
                let hashed = operation.hashes().map_or(&[][..], |(parts, _)| parts);
                let is_reversed = matches!(operation, super::Operation::HashReversed(_));
                return Some(self.hash([&info.name, &name], bits, *polynomial, hashed, is_reversed));
            }
            super::Operation::Gather(operand, by) if self.architecture == Architecture::Tna => {
                let width = width_of(self.program, *operand).unwrap_or(bits);
                let operand = operand_text(&self.names(), *operand, width);
                let zeros = if *by == 0 { String::new() } else { format!(", {by}w0") };
                let moved = self.moved(variable);
                return Some(format!("{name} = {moved}.get({{{operand}{zeros}}});"));
            }
            super::Operation::Join(one, other, by) if self.architecture == Architecture::Tna => {
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
    fn moved(&mut self, variable: Variable) -> String {
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
    fn index(&self, index: Operand, width: u32) -> String {
        let text = operand_text(&self.names(), index, width);
        if width_of(self.program, index).is_some_and(|bits| bits > width) {
            format!("(bit<{width}>){text}")
        } else {
            text
        }
    }
}

/// The mirror session that sends copies back.
const FEEDBACK_SESSION: u32 = 5;

/// The hashes of statements, in their order.
fn hashes(statements: &[Statement]) -> Vec<(Variable, Polynomial)> {
    each(statements, &|does| match does {
        Does::Set { variable, operation } => operation.hashes().map(|(_, polynomial)| (*variable, polynomial)),
        _ => None,
    })
}

/// What a function finds in statements, in their order.
fn each<T>(statements: &[Statement], find: &dyn Fn(&Does) -> Option<T>) -> Vec<T> {
    let of = |statement: &Statement| match &statement.does {
        Does::If { then, otherwise, .. } => [each(then, find), each(otherwise, find)].into_iter().flatten().collect(),
        does => find(does).into_iter().collect::<Vec<_>>(),
    };
    statements.iter().flat_map(of).collect()
}

/// The TCP header behind the ports.
const TCP_HEADER: &str = "\
// The TCP header behind the ports (RFC 9293).
header tcp_h {
bit<32> sequence;
bit<32> acknowledgement;
bit<4> words;
bit<4> reserved;
bit<8> flags;
bit<16> window;
bit<16> checksum;
bit<16> urgent;
}
";
const TCP_FIELDS: &str = "bit<4> tcp_words;\nbit<8> tcp_flags;\nbit<16> window;\nbit<16> tcp_checksum;\n";
const TO_TCP: &str = "transition select(meta.protocol) {\n6: parse_tcp;\ndefault: accept;\n}\n";
const TCP_STATE: &str = "\
state parse_tcp {
packet.extract(hdr.tcp);
meta.tcp_words = hdr.tcp.words;
meta.tcp_flags = hdr.tcp.flags;
meta.window = hdr.tcp.window;
meta.tcp_checksum = hdr.tcp.checksum;
AFTER_TCP
transition accept;
}
";

/// What is added to the parsers of programs that read the flow: its metadata, a header and its place, the ends of the states of both
/// IP headers, the state of the ports, and their place in the deparser.
const FLOW: [&str; 6] = [
    "// What identifies the flow. Of IPv6 addresses, the last 32 bits.\nbit<32> source;\nbit<32> destination;\nbit<32> ports;\n\
     bit<8> protocol;\n",
    "ports_h ports;\n",
    "meta.source = hdr.ipv4.source;\nmeta.destination = hdr.ipv4.destination;\nmeta.protocol = hdr.ipv4.protocol;\n\
     transition select(hdr.ipv4.header_words, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {\n(5, 0, 6): parse_ports;\n\
     (5, 0, 17): parse_ports;\ndefault: accept;\n}\n",
    "meta.source = hdr.ipv6.source_low;\nmeta.destination = hdr.ipv6.destination_low;\nmeta.protocol = hdr.ipv6.next_header;\n\
     transition select(hdr.ipv6.next_header) {\n6: parse_ports;\n17: parse_ports;\ndefault: accept;\n}\n",
    "state parse_ports {\npacket.extract(hdr.ports);\nmeta.ports = hdr.ports.both;\ntransition accept;\n}\n",
    "packet.emit(hdr.ports);\n",
];
const WITHOUT_FLOW: [&str; 6] = ["", "", "transition accept;\n", "transition accept;\n", "", ""];

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

/// The headers that all programs parse.
const HEADERS: &str = "\
const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_IPV6 = 0x86dd;
const bit<16> ETHERTYPE_VLAN = 0x8100;

header ethernet_h {
bit<48> destination;
bit<48> source;
bit<16> ether_type;
}

header vlan_h {
bit<3> priority;
bit<1> drop_eligible;
bit<12> id;
bit<16> ether_type;
}

header ipv4_h {
bit<4> version;
bit<4> header_words;
bit<6> dscp;
bit<2> ecn;
bit<16> total_length;
bit<16> identification;
bit<3> flags;
bit<13> fragment_offset;
bit<8> ttl;
bit<8> protocol;
bit<16> checksum;
bit<32> source;
bit<32> destination;
}

header ipv6_h {
bit<4> version;
bit<6> dscp;
bit<2> ecn;
bit<20> flow_label;
bit<16> payload_length;
bit<8> next_header;
bit<8> hop_limit;
bit<96> source_high;
bit<32> source_low;
bit<96> destination_high;
bit<32> destination_low;
}

// The ports of TCP and UDP.
header ports_h {
bit<32> both;
}
";
