//! A build of a program for tests with BMv2.

use super::activity::{ACTIVITY, ACTIVITY_HEADER};
use super::expression::literal;
use super::off_path::REPORT_FIELDS;
use super::{Architecture, Printer, each, v1model};
use crate::Gress;
use crate::ir::builder::{Does, Statement, SwitchProgram};
use crate::ir::interpreter::{Interpreter, PacketFate};
use crate::ir::operation::Operation;
use crate::ir::pair::HALF_BITS;
use crate::ir::uses::Uses;
use crate::ir::validate::has_note;
use crate::ir::variable::{Input, Operand, ones};
use std::fmt::Write;

/// The same program for BMv2, except that its inputs and random numbers come in a header, and its decisions and the words of its registers leave
/// in it. So BMv2's clock, queue and random numbers, which cannot be controlled, have no part in a comparison.
///
/// ```
/// use queuescope_p4::Gress;
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
///     _ => 0,
/// };
/// let (sent, expected) = build.packet(Gress::Egress, &input, &[7, 8]);
/// assert_eq!(sent.len(), expected.len());
/// # Ok::<(), queuescope_p4::ir::InvalidProgram>(())
/// ```
#[derive(Debug)]
pub struct TestBuild<'a> {
    program: &'a SwitchProgram,
    interpreter: Interpreter<'a>,
    /// The index of the word of each register that the header returns: that with which the program accesses it.
    indexes: Vec<Operand>,
    random: usize,
}

/// The fields before those of each program, with their widths: they are there whether or not it has these inputs.
const INPUTS: &str = "\
bit<9> port;
bit<1> generated;
bit<2> ecn;
bit<1> dropped;
bit<1> marked;
bit<1> at_ingress;
bit<1> sent_back;
bit<48> enqueued;
bit<48> dequeued;
";

impl<'a> TestBuild<'a> {
    /// All registers have their initial values.
    pub fn new(program: &'a SwitchProgram) -> Self {
        let indexes = (0..program.registers.len()).map(|register| index_of(program, register)).collect();
        let interpreter = Interpreter::new(program, u64::MAX);
        Self {
            program,
            interpreter,
            indexes,
            random: [Gress::Ingress, Gress::Egress]
                .map(|gress| random_numbers(program.at(gress)))
                .into_iter()
                .max()
                .unwrap_or(0),
        }
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
        for input in own_inputs(self.program) {
            let own = self.program.variables.iter().find(|it| it.input == Some(input));
            out.line(&format!("bit<{}> {};", input.bits(), own.map_or(input.name(), |it| &it.name)));
        }
        let padding = padding(&own_inputs(self.program));
        if padding > 0 {
            out.line(&format!("bit<{padding}> unused;"));
        }
        if has_queue(self.program) {
            out.lines("bit<1> recirculated;\nbit<7> to_queue;");
        }
        (0..self.random).for_each(|number| out.line(&format!("bit<32> random_{number};")));
        for register in &self.program.registers {
            out.line(&format!("bit<{}> word_of_{};", register.bits, register.name));
        }
        if out.reports() {
            out.lines(REPORT_FIELDS);
        }
        out.line("}");
        out.line("");
        if out.uses_activity() {
            out.lines(CARRIER);
            out.lines(ACTIVITY_HEADER);
            out.line("");
        }
        let parse = if out.uses_activity() { PARSE_CARRIER } else { "transition accept;\n" };
        let emit = if out.uses_activity() { "packet.emit(hdr.carrier);\nEMIT_ACTIVITY\n" } else { "" };
        let carrier = if out.uses_activity() { "carrier_h carrier;\nACTIVITY_MEMBER\n" } else { "" };
        let before = BEFORE.replace("PARSE\n", parse).replace("CARRIER\n", carrier);
        out.lines(&out.with_activity(&before, ACTIVITY).replace("CARRIED", "transition accept;"));
        for gress in [Gress::Ingress, Gress::Egress] {
            self.control(&mut out, gress);
        }
        out.line("");
        out.lines(&out.with_activity(&AFTER.replace("EMIT\n", emit), ACTIVITY));
        out.text
    }

    /// One half of the pipeline: a frame is for one of them.
    fn control(&self, out: &mut Printer<'_>, gress: Gress) {
        let (name, at) = match gress {
            Gress::Ingress => ("MainIngress", 1),
            Gress::Egress => ("MainEgress", 0),
        };
        out.gress = gress;
        out.line("");
        out.line(&format!(
            "control {name}(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{"
        ));
        v1model::declare(out);
        out.line("");
        out.line("apply {");
        if gress == Gress::Ingress {
            out.lines(SEND_BACK);
        }
        out.line(&format!("if (hdr.test.isValid() && hdr.test.at_ingress == {at}) {{"));
        out.statements(self.program.at(gress));
        out.line("}");
        if gress == Gress::Egress || self.program.has_ingress() {
            out.line("if (hdr.test.isValid()) {");
            self.words(out);
            out.line("}");
        }
        out.line("}");
        out.line("}");
    }

    /// Returns the words of the registers of a half in the header.
    fn words(&self, out: &mut Printer<'_>) {
        let here = out.uses().registers;
        let all = self.program.registers.iter().zip(&self.indexes).enumerate();
        for (_, (register, index)) in all.filter(|(number, _)| here.contains(number)) {
            let index = out.index(*index, 32);
            let field = format!("hdr.test.word_of_{}", register.name);
            out.line(&format!("{}.read({field}, {index});", register.name));
            if register.initial != 0 {
                out.line(&format!("{field} = {field} ^ {};", literal(register.initial, register.bits)));
            }
        }
    }

    /// The header of a packet with these inputs and random numbers (as many as [`random`](Self::random)), and what the interpreter expects it to be
    /// afterwards.
    pub fn packet(&mut self, gress: Gress, input: &dyn Fn(Input) -> u64, random: &[u64]) -> (Vec<u8>, Vec<u8>) {
        let (sent, expected, _) = self.run(gress, input, random);
        (sent, expected)
    }

    /// The same, and what happens to the packet.
    pub fn run(
        &mut self,
        gress: Gress,
        input: &dyn Fn(Input) -> u64,
        random: &[u64],
    ) -> (Vec<u8>, Vec<u8>, PacketFate) {
        let zeros: Vec<_> = self.program.registers.iter().map(|register| (0, register.bits)).collect();
        let reports = Uses::of(self.program, Gress::Ingress).reports;
        let of_report = |fate: PacketFate| if reports { report_fields(fate) } else { Vec::new() };
        let zeros = [zeros, of_report(PacketFate::default())].concat();
        let sent = header(self.program, gress, input, None, random, &zeros);
        let mut numbers = random.iter();
        let fate =
            self.interpreter.run_at(gress, input, &mut |bits| numbers.next().map_or(0, |number| number & ones(bits)));
        let words = self.program.registers.iter().enumerate().map(|(number, register)| {
            let words = self.interpreter.words(number).unwrap_or_default();
            let index = self.interpreter.value(self.indexes[number]) as usize;
            (words.get(index).copied().unwrap_or(0), register.bits)
        });
        let words = [words.collect(), of_report(fate)].concat();
        let expected = header(self.program, gress, input, Some(fate), random, &words);
        if uses_activity(self.program) {
            let carried = carried(input, PacketFate::default());
            return ([sent, carried].concat(), [expected, self::carried(input, fate)].concat(), fate);
        }
        (sent, expected, fate)
    }
}

/// What a report adds to the header.
fn report_fields(fate: PacketFate) -> Vec<(u64, u32)> {
    let (port, delay, estimate) = fate.reported.map_or((0, 0, 0), |it| (it.port, it.delay, it.estimate));
    vec![
        (fate.reported.is_some().into(), 16),
        (port.into(), 16),
        (delay.into(), HALF_BITS),
        (estimate.into(), HALF_BITS),
    ]
}

/// A header as bytes.
fn header(
    program: &SwitchProgram,
    gress: Gress,
    input: &dyn Fn(Input) -> u64,
    fate: Option<PacketFate>,
    random: &[u64],
    words: &[(u64, u32)],
) -> Vec<u8> {
    let own = own_inputs(program);
    // The program writes some inputs.
    let value = |what: Input| match (what, fate) {
        (Input::Note(slot), Some(fate)) => fate.note[usize::from(slot)].into(),
        (Input::Window, Some(PacketFate { window: Some([window, _]), .. })) => window.into(),
        (Input::TcpChecksum, Some(PacketFate { window: Some([_, checksum]), .. })) => checksum.into(),
        (what, _) => input(what),
    };
    let fate = fate.unwrap_or_default();
    let of = |what: Input| (value(what), what.bits());
    let again = [(u64::from(fate.recirculated), 1), (fate.queue.unwrap_or(0).into(), 7)];
    let again = again.into_iter().filter(|_| has_queue(program));
    let at_ingress = gress == Gress::Ingress;
    let flags = [fate.dropped, fate.marked, at_ingress, fate.fed_back].map(|flag| (u64::from(flag), 1));
    let inputs = [of(Input::Port), of(Input::Generated), of(Input::Ecn)];
    let times = [of(Input::Enqueued), of(Input::Dequeued)];
    let random = random.iter().map(|number| (*number, 32));
    let fields = inputs
        .into_iter()
        .chain(flags)
        .chain(times)
        .chain(own.iter().copied().map(of).chain([(0, padding(&own))]))
        .chain(again)
        .chain(random)
        .chain(words.iter().copied());
    let mut bits = String::new();
    for (value, width) in fields.filter(|(_, width)| *width > 0) {
        let _ = write!(bits, "{:0width$b}", value & ones(width), width = width as usize);
    }
    bits.as_bytes().chunks(8).map(|byte| byte.iter().fold(0, |byte, bit| byte << 1 | (bit & 1))).collect()
}

/// Whether the header says to which queue a packet goes, and whether it comes again.
fn has_queue(program: &SwitchProgram) -> bool {
    has_note(program) || program.chooses_queues()
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

/// The index of the first access of a register; zero if there is none.
fn index_of(program: &SwitchProgram, register: usize) -> Operand {
    let index = |does: &Does| match does {
        Does::Access { register: it, index, .. } | Does::Swap { register: it, index, .. } if *it == register => {
            Some(*index)
        }
        _ => None,
    };
    let chosen = program.choices.iter().flat_map(|table| &table.actions).flat_map(|action| &action.statements);
    let chosen = chosen.filter_map(|statement| index(&statement.does));
    let all = [Gress::Ingress, Gress::Egress].into_iter().flat_map(|gress| each(program.at(gress), &index));
    all.chain(chosen).next().unwrap_or(Operand::Constant(0))
}

/// The bits that complete the last byte of these inputs.
fn padding(own: &[Input]) -> u32 {
    let bits: u32 = own.iter().map(|input| input.bits()).sum();
    bits.next_multiple_of(8) - bits
}

/// Whether frames carry a packet, with an activity header or without one.
fn uses_activity(program: &SwitchProgram) -> bool {
    program.inputs().any(|input| Input::OF_ACTIVITY.contains(&input))
}

/// The packet behind the header of the test, as it is sent, or after what happens to it.
fn carried(input: &dyn Fn(Input) -> u64, fate: PacketFate) -> Vec<u8> {
    const IPV4: [u8; 2] = [0x08, 0x00];
    let (ether_type, activity) = (ACTIVITY_TYPE.to_be_bytes(), (input(Input::Activity) as u16).to_be_bytes());
    let payload = IPV4.into_iter().chain(*b"a packet");
    let pushed = fate.pushed.map(u16::to_be_bytes);
    let has_header = input(Input::HasActivity) == 1 && !fate.stripped;
    let header = match pushed.or(has_header.then_some(activity)) {
        Some(activity) => [ether_type, activity].concat(),
        // Every other malformed header is cut short, and the others are followed by another one.
        None if input(Input::Malformed) == 1 && input(Input::Port) % 2 == 1 => {
            return [&ether_type[..], &[1, 2, 3]].concat();
        }
        None if input(Input::Malformed) == 1 => [ether_type, [1, 2], ether_type, [3, 4]].concat(),
        None => Vec::new(),
    };
    header.into_iter().chain(payload).collect()
}

/// The inputs that only this program and some others have.
fn own_inputs(program: &SwitchProgram) -> Vec<Input> {
    let common = [Input::Port, Input::Generated, Input::Ecn, Input::Enqueued, Input::Dequeued];
    let has = |input: &Input| program.variables.iter().any(|it| it.input == Some(*input));
    let of_activity = Input::OF_ACTIVITY;
    Input::ALL
        .into_iter()
        .filter(|input| !common.contains(input) && !of_activity.contains(input) && has(input))
        .collect()
}

/// The EtherType of an activity header: the first of those for local experiments (IEEE 802).
const ACTIVITY_TYPE: u16 = 0x88b5;

/// The EtherType of what a frame carries, behind the header of the test.
const CARRIER: &str = "\
header carrier_h {
bit<16> ether_type;
}
";

const PARSE_CARRIER: &str = "\
packet.extract(hdr.carrier);
transition select(hdr.carrier.ether_type) {
ACTIVITY_SELECT
default: accept;
}
";

const BEFORE: &str = "\
header ethernet_h {
bit<48> destination;
bit<48> source;
bit<16> ether_type;
}

struct headers_t {
ethernet_h ethernet;
test_h test;
CARRIER
}

struct metadata_t {
ACTIVITY_FIELDS
}

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
PARSE
}
ACTIVITY_STATES
}

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
apply { }
}
";

const SEND_BACK: &str = "\
if (hdr.test.isValid()) {
standard_metadata.egress_spec = standard_metadata.ingress_port;
} else {
mark_to_drop(standard_metadata);
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
EMIT
}
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
";
