//! Programs for BMv2's `simple_switch`.

use super::Printer;
use super::activity::{ACTIVITY, CARRIED};
use super::expression::{alu_text, literal, operand_text, pair_condition_text, term_text};
use super::off_path::{EMIT_REPORT, REPORT_MEMBERS};
use crate::Gress;
use crate::ir::action::AluOutput;
use crate::ir::pair::{HALF_BITS, Half, PAIR_BITS, PairOutput};
use crate::ir::variable::{Input, Operand};

pub(super) fn print(out: &mut Printer<'_>) {
    let [metadata, select, state] = if out.reads(Input::Generated) { GENERATED } else { [""; 3] };
    let constants = match (out.reads(Input::FedBack), out.has_note()) {
        (_, true) => INSTANCES_WITH_NOTE,
        (true, false) => INSTANCES,
        (false, false) => "",
    };
    let fed_back = if out.reads(Input::FedBack) { "@field_list(0) bit<1> fed_back;\n" } else { "" };
    let note = out.note_fields("@field_list(0) ");
    let before = out
        .with_activity(&out.with_flow(BEFORE), ACTIVITY)
        .replace("CARRIED", CARRIED)
        .replace("CONSTANTS\n", constants)
        .replace("METADATA\n", &(metadata.to_owned() + fed_back + &note))
        .replace("AFTER_TCP\n", "")
        .replace("REPORT_MEMBERS\n", if out.reports() { REPORT_MEMBERS } else { "" });
    out.lines(&before.replace("SELECT\n", select).replace("STATE\n", state));
    out.line("");
    out.line(
        "control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {",
    );
    out.gress = Gress::Ingress;
    declare(out);
    if !out.program.is_off_path {
        out.lines(FORWARD);
    }
    out.line("apply {");
    if out.program.is_off_path {
        out.line("// The switch is beside the path of packets.");
        out.line("mark_to_drop(standard_metadata);");
        arrived(out);
        length(out);
        out.body();
    } else if out.has_ingress() {
        out.line("if (forward.apply().hit) {");
        if out.reads(Input::FedBack) {
            let kinds: &[&str] = if out.has_note() { &["RECIRCULATED", "RESUBMITTED"] } else { &["RECIRCULATED"] };
            out.lines(&format!("if ({}) {{\nmeta.fed_back = 1;\n}}", is_of(kinds)));
        }
        arrived(out);
        length(out);
        out.body();
        out.line("}");
    } else {
        out.line("forward.apply();");
    }
    out.line("}");
    out.line("}");
    out.gress = Gress::Egress;
    out.line("");
    out.line(
        "control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {",
    );
    declare(out);
    out.line("");
    out.line("apply {");
    let feeds_back = out.uses().feeds_back || out.has_note();
    if feeds_back {
        let kinds: &[&str] =
            if out.has_note() { &["CLONED_AT_INGRESS", "CLONED_AT_EGRESS"] } else { &["CLONED_AT_EGRESS"] };
        out.lines(&format!("if ({}) {{\nrecirculate_preserving_field_list(8w0);\n}} else {{", is_of(kinds)));
    }
    if out.reads(Input::Enqueued) || out.reads(Input::Dequeued) {
        out.line("// BMv2 has microseconds.");
        out.line("dequeued = standard_metadata.egress_global_timestamp * 1000;");
        out.line("enqueued = dequeued - (bit<48>)standard_metadata.deq_timedelta * 1000;");
    }
    length(out);
    if out.reads_here(Input::Depth) {
        out.line("// BMv2 counts packets.");
        out.line("depth = standard_metadata.enq_qdepth;");
    }
    if !out.program.is_off_path {
        out.body();
    }
    if feeds_back {
        out.line("}");
    }
    out.line("}");
    out.line("}");
    out.line("");
    let after = out.with_activity(&out.with_flow(AFTER), ACTIVITY);
    out.lines(&after.replace("EMIT_REPORT\n", if out.reports() { EMIT_REPORT } else { "" }));
}

fn arrived(out: &mut Printer<'_>) {
    if out.reads(Input::Arrived) {
        out.line("// BMv2 has microseconds.");
        out.line("arrived = standard_metadata.ingress_global_timestamp * 1000;");
    }
}

/// Whether a packet is of one of these kinds.
fn is_of(kinds: &[&str]) -> String {
    let tests = kinds.iter().map(|kind| format!("standard_metadata.instance_type == {kind}"));
    tests.collect::<Vec<_>>().join(" || ")
}

fn length(out: &mut Printer<'_>) {
    if out.reads_here(Input::Length) {
        out.line("length = (bit<16>)standard_metadata.packet_length;");
    }
}

/// The registers, variables and tables of a half of the pipeline.
pub(super) fn declare(out: &mut Printer<'_>) {
    for register in out.uses().registers.iter().map(|register| &out.program.registers[*register]) {
        out.line(&format!("// {}.", register.about));
        out.line(&format!("register<bit<{}>>({}) {};", register.bits, register.entries, register.name));
    }
    let inputs = [Input::Arrived, Input::Enqueued, Input::Dequeued, Input::Length, Input::Depth];
    let has_times = out.gress == Gress::Egress && (out.reads(Input::Enqueued) || out.reads(Input::Dequeued));
    let is_time = |input| has_times && (input == Input::Enqueued || input == Input::Dequeued);
    let is_here = |input: &Input| !out.is_test && (out.reads_here(*input) || is_time(*input));
    let here: Vec<_> = inputs.into_iter().filter(is_here).collect();
    for input in here {
        out.line(&format!("bit<{}> {} = 0;", input.bits(), input.name()));
    }
    out.variables();
    out.tables();
}

/// One access of a register: BMv2 has no units, so the action is written out.
pub(super) fn access(out: &mut Printer<'_>, register: usize, index: Operand, action: usize, result: Option<&str>) {
    let program = out.program;
    let (register, action) = (&program.registers[register], &program.actions[action]);
    let names = out.names();
    let (name, bits, index) = (&register.name, register.bits, out.index(index, 32));
    // Registers begin with zero there, so what is stored is the difference from the initial value.
    let stored = |word: &str| match register.initial {
        0 => word.to_owned(),
        initial => format!("{word} ^ {}", literal(initial, bits)),
    };
    out.line(&format!("// {}", action.name));
    // Actions are atomic.
    out.line(if out.in_action { "{" } else { "@atomic {" });
    out.line(&format!("bit<{bits}> word;"));
    out.line(&format!("{name}.read(word, {index});"));
    if register.initial != 0 {
        out.line(&format!("word = {};", stored("word")));
    }
    for (n, condition) in action.conditions.iter().enumerate() {
        let left = alu_text(&names, condition.left, bits);
        let right = term_text(&names, condition.right, bits);
        out.line(&format!("bool condition_{n} = {left} {} {right};", condition.comparison.sign()));
    }
    if let (AluOutput::Before, Some(result)) = (action.output, result) {
        out.line(&format!("{result} = word;"));
    }
    out.updates(action, bits, |n| format!("condition_{n}"), None);
    out.line(&format!("{name}.write({index}, {});", stored("word")));
    match (action.output, result) {
        (AluOutput::After, Some(result)) => out.line(&format!("{result} = word;")),
        (AluOutput::Computed(value), Some(result)) => {
            out.line(&format!("{result} = {};", alu_text(&names, value, bits)));
        }
        (AluOutput::Condition(n), Some(result)) => out.line(&format!("{result} = condition_{n} ? 1w1 : 1w0;")),
        _ => {}
    }
    out.line("}");
}

/// One access of a pair: BMv2 has a word of 64 bits, of which the low half is the first word.
pub(super) fn swap(out: &mut Printer<'_>, register: usize, index: Operand, action: usize, result: &str) {
    let program = out.program;
    let (register, action) = (&program.registers[register], &program.pair_actions[action]);
    let names = out.names();
    let (name, index) = (&register.name, out.index(index, 32));
    let initial = match register.initial {
        0 => String::new(),
        initial => format!(" ^ {}", literal(initial, PAIR_BITS)),
    };
    out.line(&format!("// {}", action.name));
    out.lines(&format!("@atomic {{\nbit<{PAIR_BITS}> pair;\n{name}.read(pair, {index});"));
    if !initial.is_empty() {
        out.line(&format!("pair = pair{initial};"));
    }
    for half in action.halves() {
        let low = if half == Half::First { 0 } else { HALF_BITS };
        out.line(&format!("bit<{HALF_BITS}> {} = pair[{}:{low}];", half.name(), low + HALF_BITS - 1));
    }
    let conditions: Vec<_> = action.conditions.iter().map(|it| pair_condition_text(&names, it, "")).collect();
    out.line(&format!("{result} = 0;"));
    out.line(&format!("if ({}) {{", conditions.join(" || ")));
    match action.output {
        PairOutput::Changed => out.line(&format!("{result} = 1;")),
        PairOutput::Before(half) => out.line(&format!("{result} = {};", half.name())),
    }
    let [first, second] = action.words.map(|value| operand_text(&names, value, HALF_BITS));
    out.lines(&format!("pair = {second} ++ {first};\n{name}.write({index}, pair{initial});\n}}\n}}"));
}

/// What programs with generated packets have in addition. BMv2 has no generator: such packets come with an EtherType for experiments.
const GENERATED: [&str; 3] = [
    "bit<1> generated;\n",
    "0x88b5: parse_generated;\n",
    "state parse_generated {\nmeta.generated = 1;\ntransition accept;\n}\n",
];

const BEFORE: &str = "\
CONSTANTS
struct headers_t {
REPORT_MEMBERS
ethernet_h ethernet;
ACTIVITY_MEMBER
vlan_h vlan;
ipv4_h ipv4;
ipv6_h ipv6;
PORTS_MEMBER
}

struct metadata_t {
bit<2> ecn;
METADATA
FLOW_FIELDS
ACTIVITY_FIELDS
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
state start {
packet.extract(hdr.ethernet);
transition select(hdr.ethernet.ether_type) {
SELECT
ACTIVITY_SELECT
ETHERTYPE_VLAN: parse_vlan;
ETHERTYPE_IPV4: parse_ipv4;
ETHERTYPE_IPV6: parse_ipv6;
default: accept;
}
}
state parse_vlan {
packet.extract(hdr.vlan);
transition select(hdr.vlan.ether_type) {
ACTIVITY_NESTED
ETHERTYPE_IPV4: parse_ipv4;
ETHERTYPE_IPV6: parse_ipv6;
default: accept;
}
}
state parse_ipv4 {
packet.extract(hdr.ipv4);
meta.ecn = hdr.ipv4.ecn;
AFTER_IPV4
}
state parse_ipv6 {
packet.extract(hdr.ipv6);
meta.ecn = hdr.ipv6.ecn;
AFTER_IPV6
}
PORTS_STATE
ACTIVITY_STATES
STATE
}

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
apply { }
}
";

/// Kinds of packets in BMv2.
const INSTANCES: &str = "const bit<32> CLONED_AT_EGRESS = 2;\nconst bit<32> RECIRCULATED = 4;\n\n";

/// The same, with clones before the queue and packets that pass that part again.
const INSTANCES_WITH_NOTE: &str = "const bit<32> CLONED_AT_INGRESS = 1;\nconst bit<32> CLONED_AT_EGRESS = 2;\nconst bit<32> RECIRCULATED = 4;\n\
                                   const bit<32> RESUBMITTED = 6;\n\n";

const FORWARD: &str = "\
action send(bit<9> port) {
standard_metadata.egress_spec = port;
}
action discard() {
mark_to_drop(standard_metadata);
}
table forward {
key = {
hdr.ethernet.destination: exact;
}
actions = {
send;
discard;
}
default_action = discard();
size = 1024;
}
";

const AFTER: &str = "\
control MainCompute(inout headers_t hdr, inout metadata_t meta) {
apply { }
}

control MainDeparser(packet_out packet, in headers_t hdr) {
apply {
EMIT_REPORT
packet.emit(hdr.ethernet);
EMIT_ACTIVITY
packet.emit(hdr.vlan);
packet.emit(hdr.ipv4);
packet.emit(hdr.ipv6);
EMIT_PORTS
}
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
";
