//! Programs as P4_16.

mod activity;
mod entries;
mod expression;
mod headers;
mod note;
mod off_path;
mod p4runtime;
mod statements;
mod tables;
mod test_build;
mod tna;
mod v1model;

use super::builder::{Does, Statement, SwitchProgram};
use super::hash::Polynomial;
use super::uses::Uses;
use super::variable::{Input, Variable};
use crate::Gress;
pub use entries::{Forwarding, print_entries, print_forwarding};
pub(crate) use expression::{Names, condition_text, operation_text};
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

    /// Whether the half behind the queue reads activities that the parser found before it. (Tofino has a parser for each half.)
    fn metadata_goes_on(&self) -> bool {
        let is_v1model = self.architecture == Architecture::V1model;
        is_v1model && Uses::of(self.program, Gress::Egress).reads(self.program, Input::HasActivity)
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
