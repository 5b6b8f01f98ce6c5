//! Programs in plain words.

mod words;

use super::builder::{Does, Statement, SwitchProgram};
use super::gateway;
use super::operation::Operation;
use super::pair::{HALF_BITS, PAIR_BITS};
use super::print::Architecture;
use super::refusal::refusal;
use super::table::TableEntries;
use super::uses::Uses;
use super::variable::{Input, Variable};
use crate::{Aspect, Gress};
use std::fmt::Write;
use words::{Words, number_of};

/// What a program does to each packet, statement by statement, and the inputs, registers, tables and random numbers that it has.
///
/// Each part follows from the description that is run, placed and printed.
pub fn explain(program: &SwitchProgram) -> String {
    let mut out = Explanation { program, words: Words::new(program), aspect: None, text: String::new() };
    out.head();
    if program.has_ingress() {
        out.text.push_str("before the queue:\n");
        out.all(0, &program.ingress);
        if !program.is_off_path {
            out.aspect = None;
            out.text.push_str("\nbehind the queue:\n");
        }
    }
    out.all(0, &program.statements);
    out.inputs();
    out.registers();
    out.tables();
    out.random();
    out.text
}

/// How the program for a target differs from the description: where inputs come from, and what stands for what the target lacks.
pub fn explain_target(program: &SwitchProgram, architecture: Architecture) -> String {
    let mut text = String::new();
    let inputs = program.variables.iter().filter_map(|it| it.input);
    for input in inputs {
        let origin = match (input, architecture) {
            (Input::Generated, Architecture::Tna) if program.is_off_path => {
                "1 for packets of the packet generator, port 68"
            }
            _ => origin(input, architecture),
        };
        let _ = writeln!(text, "  {:<10} {origin}", input.name());
    }
    for note in notes(program, architecture) {
        let _ = writeln!(text, "  {note}");
    }
    text
}

/// Where a target has an input from.
fn origin(input: Input, architecture: Architecture) -> &'static str {
    match (input, architecture) {
        (Input::Port, Architecture::V1model) => "standard_metadata.egress_port, or egress_spec before the queue",
        (Input::Port, Architecture::Tna) => "eg_intr_md.egress_port, or ig_tm_md.ucast_egress_port before the queue",
        (Input::Enqueued, Architecture::V1model) => "dequeued less deq_timedelta, which is in microseconds: times 1000",
        (Input::Enqueued, Architecture::Tna) => {
            "the time of arrival at the ingress pipeline, in a header: the delay includes that pipeline"
        }
        (Input::Dequeued, Architecture::V1model) => "egress_global_timestamp, which is in microseconds: times 1000",
        (Input::Dequeued, Architecture::Tna) => "the time of arrival at the egress pipeline, in nanoseconds",
        (Input::Generated, Architecture::V1model) => {
            "1 for frames of the EtherType 0x88b5: BMv2 has no packet generator, so another program sends them"
        }
        (Input::Generated, Architecture::Tna) => {
            "1 for packets of the packet generator, port 68, which go to each port of multicast group 1"
        }
        (Input::Ecn, _) => "the ECN field of the IPv4 or IPv6 header",
        (Input::Source | Input::Destination, _) => {
            "the address of the IPv4 header, or the last 32 bits of that of IPv6"
        }
        (Input::Ports, _) => "the first 32 bits behind the IP header of TCP and UDP",
        (Input::Protocol, _) => "the protocol of the IPv4 header, or the next header of that of IPv6",
        (Input::Length, Architecture::V1model) => "standard_metadata.packet_length",
        (Input::Length, Architecture::Tna) => "eg_intr_md.pkt_length",
        (Input::Arrived, Architecture::V1model) => "ingress_global_timestamp, which is in microseconds: times 1000",
        (Input::Arrived, Architecture::Tna) => "the time of arrival at the ingress pipeline, in nanoseconds",
        (Input::FedBack, Architecture::V1model) => {
            "1 for packets that were recirculated: clones of those behind the queue"
        }
        (Input::IpWords, _) => "the header length of the IPv4 header",
        (Input::TcpWords, _) => "the data offset of the TCP header",
        (Input::TcpFlags | Input::Window | Input::TcpChecksum, _) => "the TCP header",
        (Input::Note(_), Architecture::V1model) => "metadata that clones, recirculated and resubmitted packets keep",
        (Input::Note(_), Architecture::Tna) => "a header between the halves of the pipeline",
        (Input::ArrivalPort, Architecture::V1model) => "standard_metadata.ingress_port",
        (Input::ArrivalPort, Architecture::Tna) => "ig_intr_md.ingress_port",
        (Input::IpLength, _) => "the total length of the IPv4 header, or the payload length of that of IPv6",
        (Input::QueueLength, Architecture::V1model) => "standard_metadata.enq_qdepth",
        (Input::LengthBehind, Architecture::V1model) => "standard_metadata.deq_qdepth",
        (Input::LengthBehind, Architecture::Tna) => "eg_intr_md.deq_qdepth, in cells of 80 bytes likewise",
        (Input::QueueLength, Architecture::Tna) => {
            "eg_intr_md.enq_qdepth, which is in cells of 80 bytes: 16 cells count as a packet"
        }
        (Input::HasActivity | Input::Activity, _) => {
            "the header behind that of Ethernet, with the EtherType 0x88b5: 16 bits of activity, and the EtherType of what is behind it"
        }
        (Input::Malformed, Architecture::V1model) => "the parser does not come to the end of such a header",
        (Input::Malformed, Architecture::Tna) => {
            "a second header behind the first; the parser drops a header that is cut short, and no register counts it"
        }
        (Input::FedBack, Architecture::Tna) => "1 for packets from port 70, to which the mirror session 5 sends copies",
        (Input::Depth, Architecture::V1model) => {
            "standard_metadata.enq_qdepth, which counts packets: each stands for a cell"
        }
        (Input::Identification, _) => "the identification of the IPv4 header; 0 for IPv6",
        (Input::Sequence, _) => {
            "the 32 bits behind the ports of TCP and UDP: the sequence number, or the length and the checksum"
        }
        (Input::Acknowledgement, _) => "the 32 bits behind the sequence number of TCP",
        (Input::Depth, Architecture::Tna) => "eg_intr_md.enq_qdepth, in cells of 80 bytes",
    }
}

/// What differs besides the inputs.
fn notes(program: &SwitchProgram, architecture: Architecture) -> Vec<String> {
    let mut notes = Vec::new();
    match architecture {
        Architecture::V1model => {
            let initial = program.registers.iter().filter(|it| it.initial != 0).map(|it| &*it.name);
            let initial: Vec<_> = initial.collect();
            if !initial.is_empty() {
                let names = initial.join(", ");
                notes.push(format!(
                    "Registers of BMv2 begin with zero: the difference (XOR) from the first value is stored in {names}."
                ));
            }
            let before = Uses::of(program, Gress::Ingress);
            if before.enqueues {
                notes.push(
                    "BMv2 has eight priorities in place of queues: those of the lowest three bits of a queue."
                        .to_owned(),
                );
            }
            if before.recirculates {
                notes.push("Packets that pass the part before the queue again are resubmitted.".to_owned());
            }
            notes.push("BMv2 has no stages, so that any program fits.".to_owned());
        }
        Architecture::Tna => {
            notes.extend(refusal(program, architecture).map(|why| format!("It is not generated: {why}.")));
            let of = |gress| gateway::computed(program, program.at(gress)).len();
            let computed = of(Gress::Ingress) + of(Gress::Egress);
            if computed > 0 {
                let what = number_of(computed, "comparison is", "comparisons are");
                notes.push(format!("{what} computed as a difference in the stage before: no gateway tests them."));
            }
        }
    }
    notes
}

struct Explanation<'a> {
    program: &'a SwitchProgram,
    words: Words<'a>,
    /// The part of the algorithm that the last statement belongs to.
    aspect: Option<Aspect>,
    text: String,
}

impl Explanation<'_> {
    fn head(&mut self) {
        let SwitchProgram { name, about, source, .. } = self.program;
        let _ = writeln!(self.text, "{name}: {about}");
        if !source.is_empty() {
            let _ = writeln!(self.text, "after {source}");
        }
        self.text.push_str("\neach packet:\n");
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 + 2 * depth);
    }

    fn all(&mut self, depth: usize, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.one(depth, statement));
    }

    fn one(&mut self, depth: usize, statement: &Statement) {
        let program = self.program;
        // The statements of the branches say for themselves which part of the algorithm they belong to.
        let is_branch = matches!(statement.does, Does::If { .. });
        if !is_branch && self.aspect != Some(statement.aspect) {
            self.aspect = Some(statement.aspect);
            self.line(depth, &format!("[{}]", statement.aspect.name()));
        }
        match &statement.does {
            Does::Comment(text) => self.line(depth, &format!("# {text}")),
            Does::Set { variable, operation } => {
                let text = self.words.assignment(*variable, operation);
                self.line(depth, &text);
            }
            Does::If { condition, then, otherwise } => {
                let condition = self.words.condition(condition);
                self.line(depth, &format!("If {condition}:"));
                self.all(depth + 1, then);
                self.otherwise(depth, otherwise);
            }
            Does::Access { register, index, action, result } => {
                let register = &program.registers[*register];
                let action = &program.actions[*action];
                let text = self.words.access(register, *index, action, *result);
                self.line(depth, &text);
            }
            Does::Swap { register, index, action, result } => {
                let register = &program.registers[*register];
                let action = &program.pair_actions[*action];
                let text = self.words.swap(register, *index, action, *result);
                self.line(depth, &text);
            }
            Does::Report { port, delay, estimate } => {
                let [port, delay, estimate] = [*port, *delay, *estimate].map(|operand| self.words.operand(operand));
                let text = format!(
                    "Send the packet to the port {port}, with a header in front that has {delay} and {estimate}."
                );
                self.line(depth, &text);
            }
            Does::Lookup(table) => {
                let text = self.words.lookup(&program.tables[*table]);
                self.line(depth, &text);
            }
            Does::Choose(table) => {
                let table = &program.choices[*table];
                let (keys, entries) = self.words.choice(table);
                self.line(depth, &format!("By {keys} ({}):", table.name));
                for (action, entries) in table.actions.iter().zip(entries) {
                    self.line(depth + 1, &format!("{entries} ({}):", action.name));
                    action.statements.iter().for_each(|statement| self.one(depth + 2, statement));
                }
            }
            Does::FeedBack => self.line(depth, "Send a copy back to the part before the queue."),
            Does::Mark => self.line(depth, "Mark the packet with CE."),
            Does::Drop => self.line(depth, "Drop the packet."),
            Does::Push(activity) => {
                let activity = self.words.operand(*activity);
                self.line(depth, &format!("Put a header with the activity {activity} behind that of Ethernet."));
            }
            Does::Strip => self.line(depth, "Remove the activity header."),
            Does::Recirculate => self.line(depth, "Let the packet pass the part before the queue again."),
            Does::Enqueue(queue) => {
                let queue = self.words.operand(*queue);
                self.line(depth, &format!("Put the packet into queue {queue}."));
            }
            Does::SetWindow(window) => {
                let window = self.words.operand(*window);
                self.line(depth, &format!("Write the receive window {window}; the checksum follows."));
            }
        }
    }

    /// The statements if a condition does not hold.
    fn otherwise(&mut self, depth: usize, statements: &[Statement]) {
        match statements {
            [] => {}
            [Statement { does: Does::If { condition, then, otherwise }, .. }] => {
                let condition = self.words.condition(condition);
                self.line(depth, &format!("Otherwise, if {condition}:"));
                self.all(depth + 1, then);
                self.otherwise(depth, otherwise);
            }
            _ => {
                self.line(depth, "Otherwise:");
                self.all(depth + 1, statements);
            }
        }
    }

    fn inputs(&mut self) {
        self.text.push_str("\ninputs:\n");
        for info in &self.program.variables {
            let Some(input) = info.input else { continue };
            let bits = number_of(info.bits as usize, "bit", "bits");
            let _ = writeln!(self.text, "  {:<10} {bits:>7}, {}", info.name, meaning(input));
        }
    }

    fn registers(&mut self) {
        self.text.push_str("\nregisters:\n");
        let mut all = 0;
        for it in &self.program.registers {
            let bytes = it.entries * u64::from(it.bits) / 8;
            all += bytes;
            let begins = if it.initial == 0 { String::new() } else { format!(", begin with {:#x}", it.initial) };
            let _ = writeln!(
                self.text,
                "  {}: {} {}, {bytes} bytes, in {}{begins}. {}.",
                it.name,
                it.entries,
                words_of(it.bits),
                it.unit,
                it.about
            );
        }
        let count = number_of(self.program.registers.len(), "register", "registers");
        let _ = writeln!(self.text, "  {count}, {all} bytes");
    }

    fn tables(&mut self) {
        let choices = &self.program.choices;
        if self.program.tables.is_empty() && choices.is_empty() {
            self.text.push_str("\ntables: none\n");
            return;
        }
        self.text.push_str("\ntables:\n");
        let mut all = 0;
        for table in &self.program.tables {
            let kind = match table.entries {
                _ if table.keys.is_empty() => "for parameters",
                TableEntries::Exact(_) => "by exact match",
                TableEntries::Ranges(_) if table.entries.kind() == "ternary" => "by prefixes",
                TableEntries::Ranges(_) => "by ranges",
            };
            all += table.entries.len();
            let entries = number_of(table.entries.len(), "entry", "entries");
            let _ = writeln!(self.text, "  {}: {entries} {kind}. {}.", table.name, table.about);
        }
        for table in choices {
            all += table.entries.len();
            let entries = number_of(table.entries.len(), "fixed entry", "fixed entries");
            let _ = writeln!(self.text, "  {}: {entries}. {}.", table.name, table.about);
        }
        let count = number_of(self.program.tables.len() + choices.len(), "table", "tables");
        let _ = writeln!(self.text, "  {count}, {}", number_of(all, "entry", "entries"));
    }

    fn random(&mut self) {
        let mut drawn = Vec::new();
        draws(&self.program.ingress, &mut drawn);
        draws(&self.program.statements, &mut drawn);
        let names = drawn.iter().map(|Variable(number)| {
            let info = &self.program.variables[*number];
            format!("{} ({} bits)", info.name, info.bits)
        });
        let names: Vec<_> = names.collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let _ = writeln!(self.text, "\nrandom numbers: {names}");
        if let Some(period) = self.program.period {
            let _ = writeln!(
                self.text,
                "\npacket generator: {} every {period}",
                if self.program.is_off_path { "a packet" } else { "a packet to each port" }
            );
        }
    }
}

/// The words of a register.
fn words_of(bits: u32) -> String {
    match bits {
        PAIR_BITS => format!("pairs of words of {HALF_BITS} bits"),
        bits => format!("words of {bits} bits"),
    }
}

/// What an input is.
fn meaning(input: Input) -> &'static str {
    match input {
        Input::Port => "the port that the packet leaves by",
        Input::Enqueued => "when the packet entered the queue, in nanoseconds",
        Input::Dequeued => "when it left the queue, in nanoseconds",
        Input::Generated => "1 if it comes from the packet generator",
        Input::Ecn => "its ECN field: 0 is not ECN-capable, 1 is ECT(1), 2 is ECT(0), 3 is CE",
        Input::Source => "its source address",
        Input::Destination => "its destination address",
        Input::Ports => "its ports: of the source, and of the destination",
        Input::Protocol => "its protocol: 6 is TCP, 17 is UDP",
        Input::Length => "its length in bytes",
        Input::Arrived => "when it arrived, in nanoseconds",
        Input::FedBack => "1 if it is a copy that was sent back from behind the queue",
        Input::Depth => "the length of the queue when the packet entered it, in cells of 80 bytes",
        Input::ArrivalPort => "the port that it came in by",
        Input::IpLength => "the length in its IP header, in bytes",
        Input::QueueLength => "the packets that it found in the queue",
        Input::LengthBehind => "the packets that it left in the queue",
        Input::HasActivity => "1 if it has a valid activity header",
        Input::Malformed => "1 if it has an activity header that is cut short or followed by another",
        Input::Activity => "the activity in its header, with 8 fraction bits",
        Input::Identification => "its IPv4 identification",
        Input::Sequence => "its TCP sequence number, or its UDP length and checksum",
        Input::Acknowledgement => "its TCP acknowledgement number",
        Input::IpWords => "the words of four bytes of its IPv4 header; 0 for IPv6",
        Input::TcpWords => "the words of four bytes of its TCP header; 0 without one",
        Input::TcpFlags => "its TCP flags: bit 1 is SYN, bit 4 is ACK",
        Input::Window => "the receive window in its TCP header",
        Input::TcpChecksum => "the checksum of its TCP header",
        Input::Note(_) => "of the packet's note, which begins with 0 and goes with it and its copies",
    }
}

/// The variables that take random numbers.
fn draws(statements: &[Statement], drawn: &mut Vec<Variable>) {
    for statement in statements {
        match &statement.does {
            Does::Set { variable, operation: Operation::Random } => drawn.push(*variable),
            Does::If { then, otherwise, .. } => {
                draws(then, drawn);
                draws(otherwise, drawn);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms::executable;
    use crate::ir::{
        AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, MatchTable,
        RegisterAction, RegisterArray, Unit, When,
    };

    /// A program with one statement of each kind.
    fn small() -> SwitchProgram {
        let mut p = Builder::new("small", "is small", "a paper, section 1");
        let (port, dequeued) = (p.input(Input::Port), p.input(Input::Dequeued));
        let register = p.register(RegisterArray {
            name: "last".into(),
            about: "When the last packet left".into(),
            bits: 32,
            unit: Unit::NANOS,
            entries: 128,
            initial: 5,
        });
        p.comment("The time since the last packet.");
        let now = AluTerm::Value(dequeued.slice(0, 32));
        let late = AluCondition {
            left: AluExpression::Subtract(now, AluTerm::Word),
            comparison: Comparison::GreaterOrEqual,
            right: AluTerm::Value(100.into()),
        };
        let action = RegisterAction {
            name: "pass".into(),
            conditions: vec![late],
            updates: vec![AluUpdate { when: When::Holds(0), value: AluExpression::Term(now) }],
            output: AluOutput::Condition(0),
        };
        let is_late = p.variable("is_late", 1, Unit::Number);
        p.access(register, port.slice(0, 7), action, Some(is_late));
        let drawn = p.compute("drawn", 8, Unit::Number, Operation::Random);
        let class = p.variable("class", 4, Unit::Number);
        p.look_up(MatchTable {
            name: "classes".into(),
            about: "The class of a number".into(),
            keys: vec![drawn.into()],
            entries: TableEntries::Ranges(vec![((0, 9), vec![3])]),
            results: vec![class],
            otherwise: vec![1],
        });
        p.choose(
            Condition::All(vec![
                Condition::compare(is_late, Comparison::Equal, 1),
                Condition::compare(drawn.slice(7, 1), Comparison::NotEqual, 0),
            ]),
            Builder::drop_packet,
            |p| p.when(Condition::compare(class, Comparison::Less, 2), Builder::mark_packet),
        );
        p.build().expect("it is valid")
    }

    #[test]
    fn each_kind_of_statement_is_a_sentence() {
        assert_eq!(
            explain(&small()),
            "small: is small
after a paper, section 1

each packet:
  [metric]
  # The time since the last packet.
  Access last at the low 7 bits of port (pass): if the low 32 bits of dequeued less the word is at least 100, the word becomes the low 32 bits of dequeued. is_late (1 bit) becomes 1 if the low 32 bits of dequeued less the word, before the change, is at least 100, otherwise 0.
  drawn (8 bits) becomes a random number.
  Look up drawn in classes: class (4 bits) becomes what the entry has; without an entry, 1.
  If is_late is 1 and bit 7 of drawn is not 0:
    Drop the packet.
  Otherwise, if class is less than 2:
    Mark the packet with CE.

inputs:
  port        9 bits, the port that the packet leaves by
  dequeued   48 bits, when it left the queue, in nanoseconds

registers:
  last: 128 words of 32 bits, 512 bytes, in nanoseconds, begin with 0x5. When the last packet left.
  1 register, 512 bytes

tables:
  classes: 1 entry by ranges. The class of a number.
  1 table, 1 entry

random numbers: drawn (8 bits)
"
        );
    }

    #[test]
    fn a_change_for_the_opposite_of_the_first_condition_needs_none() {
        let programs = executable().expect("the defaults fit");
        let pie_dp = programs.iter().find(|program| program.name == "pie-dp").expect("it is one of them");
        let change = "(change_probability): if down is 0, the word becomes the word plus amount, at most the largest number; otherwise, the word becomes \
                      the word less down, at least zero.\n";
        let text = explain(pie_dp);
        assert!(text.contains(change), "{text}");
    }

    #[test]
    fn targets_differ_in_units_and_memory() {
        let [v1model, tna] = Architecture::ALL.map(|architecture| explain_target(&small(), architecture));
        assert!(v1model.contains("times 1000") && v1model.contains("is stored in last."), "{v1model}");
        assert!(tna.contains("in nanoseconds") && !tna.contains("XOR"), "{tna}");
    }

    #[test]
    fn every_name_of_an_algorithm_is_explained() {
        for program in executable().expect("the defaults fit") {
            let text = explain(&program);
            let variables = program.variables.iter().map(|it| &it.name);
            let registers = program.registers.iter().map(|it| &it.name);
            let names = variables.chain(registers).chain(program.tables.iter().map(|it| &it.name));
            for name in names.chain(program.actions.iter().map(|it| &it.name)) {
                assert!(text.contains(&**name), "{}: {name}", program.name);
            }
            let generator = text.contains("packet generator: a packet");
            assert_eq!(generator, program.period.is_some());
        }
    }
}
