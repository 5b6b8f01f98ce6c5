//! Programs for BMv2's `simple_switch`.

use super::Printer;
use super::expression::{alu_text, literal, term_text};
use crate::ir::action::AluOutput;
use crate::ir::variable::{Input, Operand};

pub(super) fn print(out: &mut Printer<'_>) {
    let [metadata, select, state] = if out.reads(Input::Generated) { GENERATED } else { [""; 3] };
    out.lines(&BEFORE.replace("METADATA\n", metadata).replace("SELECT\n", select).replace("STATE\n", state));
    out.line("");
    out.line(
        "control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {",
    );
    declare(out);
    out.line("");
    out.line("apply {");
    if out.reads(Input::Enqueued) || out.reads(Input::Dequeued) {
        out.line("// BMv2 has microseconds.");
        out.line("bit<48> dequeued = standard_metadata.egress_global_timestamp * 1000;");
        out.line("bit<48> enqueued = dequeued - (bit<48>)standard_metadata.deq_timedelta * 1000;");
    }
    out.begin();
    out.statements(&out.program.statements);
    out.line("}");
    out.line("}");
    out.line("}");
    out.line("");
    out.lines(AFTER);
}

/// Registers, variables and tables.
pub(super) fn declare(out: &mut Printer<'_>) {
    for register in &out.program.registers {
        out.line(&format!("// {}.", register.about));
        out.line(&format!("register<bit<{}>>({}) {};", register.bits, register.entries, register.name));
    }
    out.variables();
    out.tables();
}

/// One access of a register: BMv2 has no units, so the action is written out.
pub(super) fn access(out: &mut Printer<'_>, register: usize, index: Operand, action: usize, result: Option<&str>) {
    let program = out.program;
    let (register, action) = (&program.registers[register], &program.actions[action]);
    let names = out.names();
    let (name, bits, index) = (register.name, register.bits, out.index(index, 32));
    // Registers begin with zero there, so what is stored is the difference from the initial value.
    let stored = |word: &str| match register.initial {
        0 => word.to_owned(),
        initial => format!("{word} ^ {}", literal(initial, bits)),
    };
    out.line(&format!("// {}", action.name));
    out.line("@atomic {");
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
        (AluOutput::Condition(n), Some(result)) => out.line(&format!("{result} = condition_{n} ? 1w1 : 1w0;")),
        _ => {}
    }
    out.line("}");
}

/// What programs with generated packets have in addition. BMv2 has no generator: such packets come with an EtherType for experiments.
const GENERATED: [&str; 3] = [
    "bit<1> generated;\n",
    "0x88b5: parse_generated;\n",
    "state parse_generated {\nmeta.generated = 1;\ntransition accept;\n}\n",
];

const BEFORE: &str = "\
struct headers_t {
ethernet_h ethernet;
vlan_h vlan;
ipv4_h ipv4;
ipv6_h ipv6;
}

struct metadata_t {
bit<2> ecn;
METADATA
}

parser MainParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
state start {
packet.extract(hdr.ethernet);
transition select(hdr.ethernet.ether_type) {
SELECT
ETHERTYPE_VLAN: parse_vlan;
ETHERTYPE_IPV4: parse_ipv4;
ETHERTYPE_IPV6: parse_ipv6;
default: accept;
}
}
state parse_vlan {
packet.extract(hdr.vlan);
transition select(hdr.vlan.ether_type) {
ETHERTYPE_IPV4: parse_ipv4;
ETHERTYPE_IPV6: parse_ipv6;
default: accept;
}
}
state parse_ipv4 {
packet.extract(hdr.ipv4);
meta.ecn = hdr.ipv4.ecn;
transition accept;
}
state parse_ipv6 {
packet.extract(hdr.ipv6);
meta.ecn = hdr.ipv6.ecn;
transition accept;
}
STATE
}

control MainVerify(inout headers_t hdr, inout metadata_t meta) {
apply { }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
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
apply {
forward.apply();
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
packet.emit(hdr.vlan);
packet.emit(hdr.ipv4);
packet.emit(hdr.ipv6);
}
}

V1Switch(MainParser(), MainVerify(), MainIngress(), MainEgress(), MainCompute(), MainDeparser()) main;
";
