//! Programs for Intel Tofino.

use super::Printer;
use super::expression::{alu_text, term_text};
use crate::ir::action::{AluOutput, RegisterAction, RegisterArray, When};
use crate::ir::builder::{Does, Statement};
use crate::ir::operation::Operation;
use crate::ir::variable::{Input, Operand};

/// The width of an index: the ports of a pipe.
const INDEX: u32 = 7;

pub(super) fn print(out: &mut Printer<'_>) {
    let [bridge, metadata, send, choice, select, state] =
        if out.reads(Input::Generated) { GENERATED } else { WITHOUT_GENERATED };
    let before = BEFORE.replace("BRIDGE\n", bridge).replace("METADATA\n", metadata).replace("SEND\n", send);
    out.lines(&before.replace("CHOICE\n", choice).replace("SELECT\n", select).replace("STATE\n", state));
    out.line("");
    out.lines(
        "control MainEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
         in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
         inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {",
    );
    out.variables();
    let program = out.program;
    for (name, bits) in randoms(&program.statements).into_iter().map(|variable| {
        let info = &program.variables[variable];
        (info.name, info.bits)
    }) {
        out.line(&format!("Random<bit<{bits}>>() random_{name};"));
    }
    for (register, action) in accesses(&program.statements) {
        declare(out, &program.registers[register], &program.actions[action]);
    }
    out.tables();
    out.line("");
    out.line("apply {");
    out.begin();
    out.statements(&program.statements);
    out.line("}");
    out.line("}");
    out.line("}");
    out.line("");
    out.lines(AFTER);
}

/// The variables that take random numbers.
fn randoms(statements: &[Statement]) -> Vec<usize> {
    each(statements, &|does| match does {
        Does::Set { variable, operation: Operation::Random } => Some(variable.0),
        _ => None,
    })
}

/// The accesses of registers: the register and the action.
fn accesses(statements: &[Statement]) -> Vec<(usize, usize)> {
    each(statements, &|does| match does {
        Does::Access { register, action, .. } => Some((*register, *action)),
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

/// A register with the action of its unit.
fn declare(out: &mut Printer<'_>, register: &RegisterArray, action: &RegisterAction) {
    let names = out.names();
    let RegisterArray { name, bits, entries, initial, .. } = register;
    let output = match action.output {
        AluOutput::Condition(_) => 1,
        AluOutput::Before | AluOutput::After => *bits,
    };
    out.line("");
    out.line(&format!("// {}.", register.about));
    out.line(&format!("Register<bit<{bits}>, bit<{INDEX}>>({entries}, {initial}) {name};"));
    out.line(&format!("RegisterAction<bit<{bits}>, bit<{INDEX}>, bit<{output}>>({name}) {} = {{", action.name));
    out.line(&format!("void apply(inout bit<{bits}> word, out bit<{output}> result) {{"));
    let condition = |n: usize| {
        let condition = &action.conditions[n];
        let left = alu_text(&names, condition.left, *bits);
        format!("{left} {} {}", condition.comparison.sign(), term_text(&names, condition.right, *bits))
    };
    match action.output {
        AluOutput::Before => out.line("result = word;"),
        AluOutput::Condition(_) => out.line("result = 0;"),
        AluOutput::After => {}
    }
    let mut is_returned = false;
    for update in &action.updates {
        let value = alu_text(&names, update.value, *bits);
        match update.when {
            When::Always => out.line(&format!("word = {value};")),
            When::Holds(n) => {
                let returned = action.output == AluOutput::Condition(n);
                is_returned |= returned;
                let result = if returned { "result = 1;\n" } else { "" };
                out.lines(&format!("if ({}) {{\n{result}word = {value};\n}}", condition(n)));
            }
            When::Fails(n) => out.lines(&format!("if (!({})) {{\nword = {value};\n}}", condition(n))),
        }
    }
    if let AluOutput::Condition(n) = action.output
        && !is_returned
    {
        out.lines(&format!("if ({}) {{\nresult = 1;\n}}", condition(n)));
    }
    if action.output == AluOutput::After {
        out.line("result = word;");
    }
    out.line("}");
    out.line("};");
}

pub(super) fn access(out: &mut Printer<'_>, index: Operand, action: usize, result: Option<&str>) {
    let (name, index) = (out.program.actions[action].name, out.index(index, INDEX));
    let call = format!("{name}.execute({index});");
    out.line(&result.map_or(call.clone(), |result| format!("{result} = {call}")));
}

/// What differs in programs with generated packets.
const GENERATED: [&str; 6] = [
    "bit<8> generated;\n",
    "bit<1> generated;\n",
    "hdr.bridge.generated = 0;\n",
    "// The packet generator. A copy goes to each port.\nif (ig_intr_md.ingress_port == 68) {\nhdr.bridge.setValid();\n\
     hdr.bridge.enqueued = 0;\nhdr.bridge.generated = 1;\nig_tm_md.mcast_grp_a = 1;\n} else {\nforward.apply();\n}\n",
    "meta.generated = 0;\ntransition select(hdr.bridge.generated) {\n1: parse_generated;\ndefault: parse_ethernet;\n}\n}\n\
     state parse_ethernet {\n",
    "state parse_generated {\nmeta.generated = 1;\ntransition accept;\n}\n",
];
const WITHOUT_GENERATED: [&str; 6] = ["", "", "", "forward.apply();\n", "", ""];

const BEFORE: &str = "\
header bridge_h {
bit<48> enqueued;
BRIDGE
}

struct headers_t {
bridge_h bridge;
ethernet_h ethernet;
vlan_h vlan;
ipv4_h ipv4;
ipv6_h ipv6;
}

struct metadata_t {
bit<2> ecn;
METADATA
}

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
state start {
packet.extract(ig_intr_md);
packet.advance(PORT_METADATA_SIZE);
packet.extract(hdr.ethernet);
transition accept;
}
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
action send(PortId_t port) {
ig_tm_md.ucast_egress_port = port;
hdr.bridge.setValid();
hdr.bridge.enqueued = ig_prsr_md.global_tstamp;
SEND
}
action discard() {
ig_dprsr_md.drop_ctl = 1;
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
CHOICE
}
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
apply {
packet.emit(hdr);
}
}

parser EgressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
state start {
meta.ecn = 0;
packet.extract(eg_intr_md);
packet.extract(hdr.bridge);
SELECT
packet.extract(hdr.ethernet);
transition select(hdr.ethernet.ether_type) {
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
";

const AFTER: &str = "\
control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
Checksum() checksum;
apply {
if (hdr.ipv4.isValid()) {
hdr.ipv4.checksum = checksum.update({ hdr.ipv4.version, hdr.ipv4.header_words, hdr.ipv4.dscp, hdr.ipv4.ecn,
    hdr.ipv4.total_length, hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl,
    hdr.ipv4.protocol, hdr.ipv4.source, hdr.ipv4.destination });
}
packet.emit(hdr.ethernet);
packet.emit(hdr.vlan);
packet.emit(hdr.ipv4);
packet.emit(hdr.ipv6);
}
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
";
