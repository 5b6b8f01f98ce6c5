//! A build of a program for tests with BMv2.

use super::expression::{literal, operand_text};
use super::{Architecture, Printer, v1model};
use crate::ir::builder::{Does, Statement, SwitchProgram};
use crate::ir::interpreter::{Interpreter, PacketFate};
use crate::ir::operation::Operation;
use crate::ir::variable::{Input, Operand, ones};
use std::fmt::Write;

/// The same program for BMv2, except that its inputs and random numbers come in a header, and its decisions and the words of its registers leave
/// in it. So BMv2's clock, queue and random numbers, which cannot be controlled, have no part in a comparison.
///
/// ```
/// use queuescope_p4::algorithms::executable;
/// use queuescope_p4::ir::{Input, TestBuild};
///
/// let programs = executable()?;
/// let mut build = TestBuild::new(&programs[0]);
/// println!("{}", build.print());
/// // Of a packet of port 1 that left at 3 ms and was enqueued at 1 ms:
/// let input = |input| match input {
///     Input::Port => 1,
///     Input::Enqueued => 1_000_000,
///     Input::Dequeued => 3_000_000,
///     Input::Generated | Input::Ecn => 0,
/// };
/// let (sent, expected) = build.packet(&input, &[7, 8]);
/// assert_eq!(sent.len(), expected.len());
/// # Ok::<(), queuescope_p4::ir::InvalidProgram>(())
/// ```
#[derive(Debug)]
pub struct TestBuild<'a> {
    program: &'a SwitchProgram,
    interpreter: Interpreter<'a>,
    /// The words of each register that the header returns, by the index with which the program accesses it.
    index: Operand,
    random: usize,
}

/// The fields before those of each program, with their widths. Inputs that a program does not have are there, too.
const INPUTS: &str = "\
bit<9> port;
bit<1> generated;
bit<2> ecn;
bit<1> dropped;
bit<1> marked;
bit<2> unused;
bit<48> enqueued;
bit<48> dequeued;
";

impl<'a> TestBuild<'a> {
    /// All registers have their initial values.
    pub fn new(program: &'a SwitchProgram) -> Self {
        let index = first_index(&program.statements).unwrap_or(Operand::Constant(0));
        let interpreter = Interpreter::new(program, u64::MAX);
        Self { program, interpreter, index, random: random_numbers(&program.statements) }
    }

    /// The number of random numbers that a packet carries.
    pub fn random(&self) -> usize {
        self.random
    }

    /// The program. Frames of the EtherType 0x88b6 have the header behind that of Ethernet, and go back to the port that they came from.
    pub fn print(&self) -> String {
        let mut out = Printer::new(self.program, Architecture::V1model, true);
        out.line(&format!("// {}, with inputs and random numbers from a header.", self.program.name));
        out.line("#include <core.p4>");
        out.line("#include <v1model.p4>");
        out.line("");
        out.line("header test_h {");
        out.lines(INPUTS);
        (0..self.random).for_each(|number| out.line(&format!("bit<32> random_{number};")));
        for register in &self.program.registers {
            out.line(&format!("bit<{}> word_of_{};", register.bits, register.name));
        }
        out.line("}");
        out.line("");
        out.lines(BEFORE);
        out.line("");
        out.line(
            "control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {",
        );
        v1model::declare(&mut out);
        out.line("");
        out.line("apply {");
        out.line("if (hdr.test.isValid()) {");
        out.statements(&self.program.statements);
        let index = operand_text(&out.names(), self.index, 32);
        for register in &self.program.registers {
            let field = format!("hdr.test.word_of_{}", register.name);
            out.line(&format!("{}.read({field}, {index});", register.name));
            if register.initial != 0 {
                out.line(&format!("{field} = {field} ^ {};", literal(register.initial, register.bits)));
            }
        }
        out.line("}");
        out.line("}");
        out.line("}");
        out.line("");
        out.lines(AFTER);
        out.text
    }

    /// The header of a packet with these inputs and random numbers (as many as [`random`](Self::random)), and what the interpreter expects it to be
    /// afterwards.
    pub fn packet(&mut self, input: &dyn Fn(Input) -> u64, random: &[u64]) -> (Vec<u8>, Vec<u8>) {
        let zeros: Vec<_> = self.program.registers.iter().map(|register| (0, register.bits)).collect();
        let sent = header(input, PacketFate::default(), random, &zeros);
        let mut numbers = random.iter();
        let fate = self.interpreter.run(input, &mut |bits| numbers.next().map_or(0, |number| number & ones(bits)));
        let index = self.index_of(input);
        let words = self.program.registers.iter().enumerate().map(|(number, register)| {
            let words = self.interpreter.words(number).unwrap_or_default();
            (words.get(index).copied().unwrap_or(0), register.bits)
        });
        let words: Vec<_> = words.collect();
        (sent, header(input, fate, random, &words))
    }

    /// The index of the packet's words.
    fn index_of(&self, input: &dyn Fn(Input) -> u64) -> usize {
        let of = |variable: crate::ir::Variable| self.program.variables[variable.0].input.map_or(0, input);
        let index = match self.index {
            Operand::Variable(variable) => of(variable),
            Operand::Slice { of: variable, low, bits } => of(variable) >> low & ones(bits),
            Operand::Constant(value) => value,
        };
        index as usize
    }
}

/// A header as bytes.
fn header(input: &dyn Fn(Input) -> u64, fate: PacketFate, random: &[u64], words: &[(u64, u32)]) -> Vec<u8> {
    let of = |what: Input| (input(what), what.bits());
    let flags = [(u64::from(fate.dropped), 1), (u64::from(fate.marked), 1), (0, 2)];
    let inputs = [of(Input::Port), of(Input::Generated), of(Input::Ecn)];
    let times = [of(Input::Enqueued), of(Input::Dequeued)];
    let random = random.iter().map(|number| (*number, 32));
    let fields = inputs.into_iter().chain(flags).chain(times).chain(random).chain(words.iter().copied());
    let mut bits = String::new();
    for (value, width) in fields {
        let _ = write!(bits, "{:0width$b}", value & ones(width), width = width as usize);
    }
    bits.as_bytes().chunks(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | (bit & 1))).collect()
}

/// The most random numbers that a packet draws.
fn random_numbers(statements: &[Statement]) -> usize {
    let of = |statement: &Statement| match &statement.does {
        Does::Set { operation: Operation::Random, .. } => 1,
        Does::If { then, otherwise, .. } => random_numbers(then).max(random_numbers(otherwise)),
        _ => 0,
    };
    statements.iter().map(of).sum()
}

/// The index of the first access.
fn first_index(statements: &[Statement]) -> Option<Operand> {
    statements.iter().find_map(|statement| match &statement.does {
        Does::Access { index, .. } => Some(*index),
        Does::If { then, otherwise, .. } => first_index(then).or_else(|| first_index(otherwise)),
        _ => None,
    })
}

const BEFORE: &str = "\
header ethernet_h {
bit<48> destination;
bit<48> source;
bit<16> ether_type;
}

struct headers_t {
ethernet_h ethernet;
test_h test;
}

struct metadata_t { }

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
state start {
packet.extract(hdr.ethernet);
transition select(hdr.ethernet.ether_type) {
0x88b6: parse_test;
default: accept;
}
}
state parse_test {
packet.extract(hdr.test);
transition accept;
}
}

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
apply { }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
apply {
if (hdr.test.isValid()) {
standard_metadata.egress_spec = standard_metadata.ingress_port;
} else {
mark_to_drop(standard_metadata);
}
}
}
";

const AFTER: &str = "\
control MainCompute(inout headers_t hdr, inout metadata_t meta) {
apply { }
}

control MainDeparser(packet_out packet, in headers_t hdr) {
apply {
packet.emit(hdr.ethernet);
packet.emit(hdr.test);
}
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
";
