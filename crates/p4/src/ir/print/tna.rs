//! Programs for Intel Tofino.

use super::Printer;
use super::expression::{alu_text, term_text};
use crate::ir::action::{AluOutput, RegisterAction, RegisterArray, When};
use crate::ir::builder::{Does, Statement, VariableInfo};
use crate::ir::gateway;
use crate::ir::operation::Operation;
use crate::ir::variable::{Input, Operand, Variable};
use std::collections::BTreeSet;

pub(super) fn print(out: &mut Printer<'_>) {
    let [bridge, metadata, send, choice, select, state] =
        if out.reads(Input::Generated) { GENERATED } else { WITHOUT_GENERATED };
    let (program, names) = (out.program, out.names());
    let own: Vec<_> = (0..program.variables.len()).filter(|number| names.is_metadata(Variable(*number))).collect();
    let of_own =
        |text: &dyn Fn(&VariableInfo) -> String| own.iter().map(|it| text(&program.variables[*it])).collect::<String>();
    let metadata = of_own(&|it| format!("bit<{}> {};\n", it.bits, it.name)) + metadata;
    let generated = if out.reads(Input::Generated) { "meta.generated = 0;\n" } else { "" };
    let zeros = of_own(&|it| format!("meta.{} = 0;\n", it.name)) + generated;
    let before = BEFORE.replace("BRIDGE\n", bridge).replace("METADATA\n", &metadata).replace("SEND\n", send);
    let before = before.replace("meta.ecn = 0;\n", &format!("meta.ecn = 0;\n{zeros}"));
    out.lines(&before.replace("CHOICE\n", choice).replace("SELECT\n", select).replace("STATE\n", state));
    out.line("");
    out.lines(
        "control MainEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
         in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
         inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {",
    );
    out.variables();
    for (number, bits) in gateway::computed(program, &program.statements).into_iter().enumerate() {
        out.line(&format!("bit<{bits}> compared_{number} = 0;"));
    }
    for variable in randoms(&program.statements).into_iter().collect::<BTreeSet<_>>() {
        let info = &program.variables[variable];
        out.line(&format!("Random<bit<{}>>() random_{};", info.bits, info.name));
    }
    let accesses = accesses(&program.statements);
    for (number, register) in program.registers.iter().enumerate() {
        let RegisterArray { name, about, bits, entries, initial, .. } = register;
        out.line("");
        out.line(&format!("// {about}."));
        out.line(&format!("Register<bit<{bits}>, bit<{}>>({entries}, {initial}) {name};", index_width(register)));
        for (_, action) in accesses.iter().filter(|(accessed, _)| *accessed == number) {
            declare(out, register, &program.actions[*action]);
        }
    }
    out.tables();
    out.line("");
    // The computations are known when the statements are printed.
    let place = out.text.len();
    out.line("apply {");
    if out.reads(Input::Ecn) {
        out.lines("if (hdr.ipv4.isValid()) {\nmeta.ecn = hdr.ipv4.ecn;\n} else {\nmeta.ecn = hdr.ipv6.ecn;\n}");
    }
    out.begin();
    out.statements(&program.statements);
    out.line("}");
    out.line("}");
    let apply = out.text.split_off(place);
    let computations = std::mem::take(&mut out.computations);
    computations.iter().for_each(|text| out.lines(text));
    out.text.push_str(&apply);
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

/// An action of a register's unit.
fn declare(out: &mut Printer<'_>, register: &RegisterArray, action: &RegisterAction) {
    let names = out.names();
    let RegisterArray { name, bits, .. } = register;
    let output = match action.output {
        AluOutput::Condition(_) => 1,
        AluOutput::Before | AluOutput::After => *bits,
    };
    let index = index_width(register);
    out.line(&format!("RegisterAction<bit<{bits}>, bit<{index}>, bit<{output}>>({name}) {} = {{", action.name));
    out.line(&format!("void apply(inout bit<{bits}> word, out bit<{output}> result) {{"));
    let condition = |n: usize| {
        let condition = &action.conditions[n];
        let left = alu_text(&names, condition.left, *bits);
        format!("{left} {} {}", condition.comparison.sign(), term_text(&names, condition.right, *bits))
    };
    // One branch for both, where the first update is made if the result is one.
    let is_returned = match (action.output, action.updates.first()) {
        (AluOutput::Condition(n), Some(update)) => update.when == When::Holds(n),
        _ => false,
    };
    match action.output {
        AluOutput::Before => out.line("result = word;"),
        AluOutput::Condition(n) => {
            out.line("result = 0;");
            if !is_returned {
                out.lines(&format!("if ({}) {{\nresult = 1;\n}}", condition(n)));
            }
        }
        AluOutput::After => {}
    }
    out.updates(action, *bits, condition, is_returned.then_some("result = 1;"));
    if action.output == AluOutput::After {
        out.line("result = word;");
    }
    out.line("}");
    out.line("};");
}

/// The bits that name each word of a register.
fn index_width(register: &RegisterArray) -> u32 {
    register.entries.next_power_of_two().ilog2().max(1)
}

pub(super) fn access(out: &mut Printer<'_>, register: usize, index: Operand, action: usize, result: Option<&str>) {
    let width = index_width(&out.program.registers[register]);
    let (name, index) = (out.program.actions[action].name, out.index(index, width));
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
    "transition select(hdr.bridge.generated) {\n1: parse_generated;\ndefault: parse_ethernet;\n}\n}\n\
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
meta.ecn = 0;
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
transition accept;
}
state parse_ipv6 {
packet.extract(hdr.ipv6);
transition accept;
}
STATE
}
";

const AFTER: &str = "\
control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
apply {
packet.emit(hdr.ethernet);
packet.emit(hdr.vlan);
packet.emit(hdr.ipv4);
packet.emit(hdr.ipv6);
}
}

Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
";
