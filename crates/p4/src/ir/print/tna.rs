//! Programs for Intel Tofino.

use super::activity::{ACTIVITY_OF_TNA, CARRIED};
use super::expression::{alu_text, operand_text, pair_condition_text, term_text};
use super::note::{FEEDBACK_PORT, slots};
use super::off_path::{EGRESS_OF_TNA, REPORT_MEMBERS};
use super::{Printer, each, hashes};
use crate::Gress;
use crate::ir::action::{AluOutput, RegisterAction, RegisterArray, When};
use crate::ir::builder::{Does, Statement, SwitchProgram, VariableInfo};
use crate::ir::gateway;
use crate::ir::operation::Operation;
use crate::ir::pair::{HALF_BITS, PAIR_BITS, PairAction, PairOutput};
use crate::ir::uses::Uses;
use crate::ir::variable::{Input, Name, Operand, Variable, ones};
use std::collections::BTreeSet;

pub(super) fn print(out: &mut Printer<'_>) {
    headers(out);
    out.line("");
    parser(out, Gress::Ingress);
    out.line("");
    ingress(out);
    out.line("");
    if out.has_note() {
        ingress_deparser_with_note(out);
    } else {
        out.lines(INGRESS_DEPARSER);
    }
    out.line("");
    if out.program.is_off_path {
        out.lines(EGRESS_OF_TNA);
    } else {
        parser(out, Gress::Egress);
        out.line("");
        egress(out);
        out.line("");
        egress_deparser(out);
    }
    out.line("");
    out.lines(PIPELINE);
}

/// Whether copies of packets go back to the ingress.
fn feeds_back(out: &Printer<'_>) -> bool {
    Uses::of(out.program, Gress::Egress).feeds_back
}

/// The headers of the switch itself, and the metadata.
fn headers(out: &mut Printer<'_>) {
    let (generated, feeds_back) = (out.reads(Input::Generated), feeds_back(out));
    if !out.program.is_off_path {
        bridge(out);
    }
    let has_header = feeds_back && !out.has_note();
    if has_header {
        out.lines("header feedback_h {\nbit<8> kind;\n}");
        out.line("");
    }
    out.line("struct headers_t {");
    if out.reports() {
        out.lines(REPORT_MEMBERS);
    }
    if !out.program.is_off_path {
        out.line("bridge_h bridge;");
    }
    if has_header {
        out.line("feedback_h feedback;");
    }
    out.lines("ethernet_h ethernet;");
    if out.uses_activity() {
        out.line("activity_h activity;");
    }
    out.lines("vlan_h vlan;\nipv4_h ipv4;\nipv6_h ipv6;");
    if out.reads_flow() {
        out.line("ports_h ports;");
    }
    if out.reads_numbers() {
        out.lines("tcp_h tcp;\nudp_h udp;");
    }
    if out.reads_tcp() {
        out.line("tcp_h tcp;");
    }
    out.line("}");
    for register in out.program.registers.iter().filter(|it| it.bits == PAIR_BITS) {
        out.line("");
        out.line(&format!("struct {}_t {{", register.name));
        out.lines(&format!("bit<{HALF_BITS}> first;\nbit<{HALF_BITS}> second;\n}}"));
    }
    out.line("");
    out.lines("struct metadata_t {\nbit<2> ecn;");
    for info in own_metadata(out) {
        out.line(&format!("bit<{}> {};", info.bits, info.name));
    }
    if generated {
        out.line("bit<1> generated;");
    }
    if feeds_back {
        out.lines("bit<1> fed_back;\n// The mirror session that sends copies back, and the first byte of these.\nbit<10> session;\nbit<8> kind;");
    }
    if sets_windows(out) {
        out.lines("// The rest of the TCP checksum, and whether the window is written.\nbit<16> tcp_rest;\nbit<1> sets_window;");
    }
    out.lines(&out.with_activity(&out.with_flow("FLOW_FIELDS\nACTIVITY_FIELDS\n"), ACTIVITY_OF_TNA));
    out.line("}");
}

/// What goes with a packet to the half behind the queue.
fn bridge(out: &mut Printer<'_>) {
    out.line("header bridge_h {");
    if feeds_back(out) {
        out.line("// 0: the packet comes from the ingress. Copies that go back begin with 1.");
        out.line("bit<8> kind;");
    }
    if bridges_time(out) {
        out.line("bit<48> enqueued;");
    }
    if out.reads(Input::Generated) {
        out.line("bit<8> generated;");
    }
    out.lines(&out.note_fields(""));
    out.line("}");
    out.line("");
}

/// The variables that are fields of the metadata.
fn own_metadata<'a>(out: &Printer<'a>) -> Vec<&'a VariableInfo> {
    let (program, names) = (out.program, out.names());
    let own = program.variables.iter().enumerate().filter(|(number, _)| names.is_metadata(Variable(*number)));
    own.map(|(_, info)| info).collect()
}

/// A parser. That of the ingress goes beyond Ethernet if packets do something there.
fn parser(out: &mut Printer<'_>, gress: Gress) {
    let (generated, feeds_back) = (out.reads(Input::Generated), feeds_back(out));
    let (name, short) = match gress {
        Gress::Ingress => ("IngressParser", "ig"),
        Gress::Egress => ("EgressParser", "eg"),
    };
    let intrinsic = format!("out {}_intrinsic_metadata_t {short}_intr_md", gress.name());
    out.line(&format!("parser {name}(packet_in packet, out headers_t hdr, out metadata_t meta, {intrinsic}) {{"));
    let checksum = gress == Gress::Ingress && sets_windows(out);
    if checksum {
        out.line("Checksum() tcp_sum;");
    }
    out.line("state start {");
    for field in zeroed(out) {
        out.line(&format!("meta.{field} = 0;"));
    }
    out.line(&format!("packet.extract({short}_intr_md);"));
    match gress {
        Gress::Ingress => {
            out.line("packet.advance(PORT_METADATA_SIZE);");
            if generated && out.program.is_off_path {
                out.line(&format!("transition select({short}_intr_md.ingress_port) {{"));
                out.lines(&format!(
                    "{GENERATOR_PORT}: parse_generated;\ndefault: parse_ethernet;\n}}\n}}\nstate parse_ethernet {{"
                ));
            }
            if out.has_note() {
                parse_note(out);
            } else if feeds_back {
                out.line(&format!("transition select({short}_intr_md.ingress_port) {{"));
                out.lines(&format!("{FEEDBACK_PORT}: parse_feedback;\ndefault: parse_ethernet;\n}}\n}}"));
                out.lines(
                    "state parse_feedback {\npacket.extract(hdr.feedback);\nmeta.fed_back = 1;\ntransition parse_ethernet;\n}\n\
                     state parse_ethernet {",
                );
            }
        }
        Gress::Egress => {
            if feeds_back {
                out.lines(
                    "transition select(packet.lookahead<bit<8>>()) {\n// A copy on its way back passes.\n1: accept;\n\
                     default: parse_bridge;\n}\n}\nstate parse_bridge {",
                );
            }
            out.line("packet.extract(hdr.bridge);");
            if generated {
                out.lines(
                    "transition select(hdr.bridge.generated) {\n1: parse_generated;\ndefault: parse_ethernet;\n}\n}\n\
                     state parse_ethernet {",
                );
            }
        }
    }
    out.line("packet.extract(hdr.ethernet);");
    if gress == Gress::Ingress && !out.program.has_ingress() {
        out.line("transition accept;");
        out.line("}");
    } else {
        let states = out.with_activity(&out.with_flow(STATES), ACTIVITY_OF_TNA).replace("CARRIED", CARRIED);
        let states = states.replace("AFTER_TCP\n", if checksum { AFTER_TCP } else { "" });
        out.lines(&if gress == Gress::Egress { without_tcp(&states) } else { states });
    }
    if generated && (gress == Gress::Egress || out.program.is_off_path) {
        out.lines("state parse_generated {\nmeta.generated = 1;\ntransition accept;\n}");
    }
    out.line("}");
}

/// Whether a packet's time of arrival goes with it.
fn bridges_time(out: &Printer<'_>) -> bool {
    !out.has_note() || out.reads(Input::Enqueued)
}

fn sets_windows(out: &Printer<'_>) -> bool {
    Uses::of(out.program, Gress::Ingress).sets_windows
}

/// The beginning of the ingress parser where packets have a note: those that come back bring it along.
fn parse_note(out: &mut Printer<'_>) {
    out.line("transition select(ig_intr_md.ingress_port) {");
    out.lines(&format!("{FEEDBACK_PORT}: parse_back;\ndefault: parse_arrived;\n}}\n}}"));
    out.lines(
        "state parse_back {\npacket.extract(hdr.bridge);\nhdr.bridge.kind = 0;\nmeta.fed_back = 1;\ntransition parse_ethernet;\n}\n\
         state parse_arrived {\nhdr.bridge.setValid();\nhdr.bridge.kind = 0;",
    );
    for (name, _) in slots(out.program) {
        out.line(&format!("hdr.bridge.{name} = 0;"));
    }
    out.lines("transition parse_ethernet;\n}\nstate parse_ethernet {");
}

/// The parser behind the queue does not need the TCP header.
fn without_tcp(states: &str) -> String {
    let Some(place) = states.find("state parse_tcp {") else { return states.to_owned() };
    states[..place]
        .replace("transition select(meta.protocol) {\n6: parse_tcp;\ndefault: accept;\n}\n", "transition accept;\n")
}

/// Copies before the queue, and the checksum of a written window.
fn ingress_deparser_with_note(out: &mut Printer<'_>) {
    out.lines(
        "control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
         in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {",
    );
    let (copies, windows) = (Uses::of(out.program, Gress::Ingress).feeds_back, sets_windows(out));
    if copies {
        out.line("Mirror() mirror;");
    }
    if windows {
        out.line("Checksum() tcp_sum;");
    }
    out.line("apply {");
    if copies {
        let mirror = mirror(out);
        out.lines(&format!("if (ig_dprsr_md.mirror_type == 1) {{\n{mirror}\n}}"));
    }
    if windows {
        out.lines(
            "if (meta.sets_window == 1) {\nhdr.tcp.checksum = tcp_sum.update({hdr.tcp.window, meta.tcp_rest});\n}",
        );
    }
    out.lines("packet.emit(hdr);\n}\n}");
}

/// The header of a copy that goes back.
fn mirror(out: &Printer<'_>) -> String {
    if !out.has_note() {
        return "mirror.emit<feedback_h>(meta.session, {meta.kind});".to_owned();
    }
    let slots: String = slots(out.program).into_iter().map(|(name, _)| format!(", hdr.bridge.{name}")).collect();
    format!("mirror.emit<bridge_h>(meta.session, {{meta.kind{slots}}});")
}

/// The fields of the metadata that begin with zero.
fn zeroed(out: &Printer<'_>) -> Vec<Name> {
    let own = own_metadata(out).into_iter().map(|info| info.name.clone());
    let generated = out.reads(Input::Generated).then_some("generated");
    let fed_back = if feeds_back(out) { vec!["fed_back", "session", "kind"] } else { Vec::new() };
    let tcp = [Input::IpWords].into_iter().chain(Input::OF_TCP).filter(|input| out.reads(*input)).map(Input::name);
    let window = sets_windows(out).then_some(["tcp_rest", "sets_window"]).into_iter().flatten();
    let flow = Input::FLOW.into_iter().filter(|_| out.reads_flow()).map(Input::name).chain(tcp).chain(window);
    let length = out.reads(Input::IpLength).then_some("ip_length");
    let identification = out.reads(Input::Identification).then_some("identification");
    let numbers = Input::OF_NUMBERS.into_iter().filter(|_| out.reads_numbers()).map(Input::name);
    let length = length.into_iter().chain(identification).chain(numbers);
    let of_activity = Input::OF_ACTIVITY.into_iter().filter(|_| out.uses_activity()).map(Input::name);
    let others = generated.into_iter().chain(fed_back).chain(flow).chain(length).chain(of_activity).map(Name::from);
    [Name::from("ecn")].into_iter().chain(own).chain(others).collect()
}

fn ingress(out: &mut Printer<'_>) {
    out.gress = Gress::Ingress;
    let (generated, feeds_back) = (out.reads(Input::Generated), feeds_back(out));
    out.lines(
        "control MainIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
         in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
         inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {",
    );
    if out.program.has_ingress() {
        declarations(out);
        out.tables();
        out.line("");
    }
    if out.program.is_off_path {
        let computed_before = out.text.len();
        out.lines("apply {\n// The switch is beside the path of packets.\nig_dprsr_md.drop_ctl = 1;");
        statements(out);
        out.line("}");
        computations(out, computed_before);
        out.line("}");
        out.gress = Gress::Egress;
        return;
    }
    out.lines(if bridges_time(out) { SEND } else { SEND_WITH_NOTE });
    if generated {
        out.line("hdr.bridge.generated = 0;");
    }
    if feeds_back && !out.has_note() {
        out.lines("hdr.bridge.kind = 0;\nhdr.feedback.setInvalid();");
    }
    out.lines(FORWARD);
    let computed_before = out.text.len();
    out.line("apply {");
    if generated {
        out.line("// The packet generator. A copy goes to each port.");
        out.line(&format!("if (ig_intr_md.ingress_port == {GENERATOR_PORT}) {{"));
        out.lines("hdr.bridge.setValid();\nhdr.bridge.enqueued = 0;\nhdr.bridge.generated = 1;");
        if feeds_back {
            out.line("hdr.bridge.kind = 0;");
        }
        out.line("ig_tm_md.mcast_grp_a = 1;");
        out.line("} else {");
    }
    if out.program.has_ingress() {
        out.line("if (forward.apply().hit) {");
        statements(out);
        out.line("}");
    } else {
        out.line("forward.apply();");
    }
    if generated {
        out.line("}");
    }
    out.line("}");
    computations(out, computed_before);
    out.line("}");
    out.gress = Gress::Egress;
}

fn egress(out: &mut Printer<'_>) {
    out.lines(
        "control MainEgress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
         in egress_intrinsic_metadata_from_parser_t eg_prsr_md, inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
         inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {",
    );
    declarations(out);
    out.tables();
    out.line("");
    let computed_before = out.text.len();
    out.line("apply {");
    statements(out);
    out.line("}");
    computations(out, computed_before);
    out.line("}");
}

/// The variables, units and registers of the half that is printed.
fn declarations(out: &mut Printer<'_>) {
    let (program, uses) = (out.program, out.uses());
    let statements = program.at(out.gress);
    out.variables();
    for (name, _) in cells(out) {
        out.lines(&format!("bit<19> {name} = 0;\nHash<bit<19>>(HashAlgorithm_t.IDENTITY) bits_of_{name};"));
    }
    for (number, bits) in gateway::computed(program, statements).into_iter().enumerate() {
        out.line(&format!("bit<{bits}> compared_{} = 0;", out.compared + number));
    }
    for variable in randoms(statements).into_iter().collect::<BTreeSet<_>>() {
        let info = &program.variables[variable];
        out.line(&format!("Random<bit<{}>>() random_{};", info.bits, info.name));
    }
    for (variable, polynomial) in hashes(statements) {
        let VariableInfo { name, bits, .. } = &program.variables[variable.0];
        let coefficients = polynomial.coefficients();
        out.line(&format!(
            "CRCPolynomial<bit<32>>(32w{coefficients:#x}, true, false, false, 32w0xffffffff, 32w0xffffffff) polynomial_of_{name};"
        ));
        out.line(&format!("Hash<bit<{bits}>>(HashAlgorithm_t.CUSTOM, polynomial_of_{name}) hash_of_{name};"));
    }
    for variable in gathered(statements) {
        let bits = program.variables[variable.0].bits;
        let unit = out.moved(variable);
        out.line(&format!("Hash<bit<{bits}>>(HashAlgorithm_t.IDENTITY) {unit};"));
    }
    out.moves.clear();
    let accesses = accesses(program);
    for number in uses.registers {
        let register = &program.registers[number];
        let RegisterArray { name, about, bits, entries, initial, .. } = register;
        out.line("");
        out.line(&format!("// {about}."));
        if *bits == PAIR_BITS {
            declare_pair(out, register);
            for (_, action) in swaps(program).iter().filter(|(accessed, _)| *accessed == number) {
                declare_swap(out, register, &program.pair_actions[*action]);
            }
            continue;
        }
        out.line(&format!("Register<bit<{bits}>, bit<{}>>({entries}, {initial}) {name};", index_width(register)));
        for (_, action) in accesses.iter().filter(|(accessed, _)| *accessed == number) {
            declare(out, register, &program.actions[*action]);
        }
    }
}

/// The lengths of the queue that are read here, which a Tofino has in cells: their names, and its own.
fn cells(out: &Printer<'_>) -> Vec<(&'static str, &'static str)> {
    let all = [(Input::QueueLength, "enq_qdepth"), (Input::LengthBehind, "deq_qdepth")];
    all.into_iter().filter(|(input, _)| out.reads_here(*input)).map(|(input, cells)| (input.name(), cells)).collect()
}

/// What packets do in the half that is printed.
fn statements(out: &mut Printer<'_>) {
    if out.reads_here(Input::Ecn) {
        out.lines("if (hdr.ipv4.isValid()) {\nmeta.ecn = hdr.ipv4.ecn;\n} else {\nmeta.ecn = hdr.ipv6.ecn;\n}");
    }
    let all = cells(out);
    for (name, cells) in &all {
        out.line("// Sixteen cells of 80 bytes count as a packet.");
        // Two of them need a table each: one table has 32 bits of hashes.
        out.compute(name, &format!("{name} = bits_of_{name}.get({{eg_intr_md.{cells}[18:4]}});"), all.len() == 1);
    }
    out.body();
}

/// Puts the computations, which are known when the statements are printed, before the text from `place` on.
fn computations(out: &mut Printer<'_>, place: usize) {
    let apply = out.text.split_off(place);
    let computations = std::mem::take(&mut out.computations);
    computations.iter().for_each(|text| out.lines(text));
    out.text.push_str(&apply);
}

fn egress_deparser(out: &mut Printer<'_>) {
    out.lines(
        "control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
         in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {",
    );
    if feeds_back(out) {
        let mirror = mirror(out);
        out.lines(&format!("Mirror() mirror;\napply {{\nif (eg_dprsr_md.mirror_type == 1) {{\n{mirror}\n}}"));
    } else {
        out.line("apply {");
    }
    let emit = "packet.emit(hdr.ethernet);\nEMIT_ACTIVITY\npacket.emit(hdr.vlan);\npacket.emit(hdr.ipv4);\npacket.emit(hdr.ipv6);\nEMIT_PORTS\n}\n}";
    out.lines(&out.with_activity(&out.with_flow(emit), ACTIVITY_OF_TNA));
}

/// The variables that take random numbers.
fn randoms(statements: &[Statement]) -> Vec<usize> {
    each(statements, &|does| match does {
        Does::Set { variable, operation: Operation::Random } => Some(variable.0),
        _ => None,
    })
}

/// The variables that take bits by way of a hash unit.
fn gathered(statements: &[Statement]) -> Vec<Variable> {
    each(statements, &|does| match does {
        Does::Set { variable, operation } if operation.moves_bits() => Some(*variable),
        _ => None,
    })
}

/// The accesses of registers: the register and the action.
fn accesses(program: &SwitchProgram) -> Vec<(usize, usize)> {
    let access = |does: &Does| match does {
        Does::Access { register, action, .. } => Some((*register, *action)),
        _ => None,
    };
    let chosen = program.choices.iter().flat_map(|table| &table.actions);
    let chosen = chosen.flat_map(|action| each(&action.statements, &access));
    let all = [Gress::Ingress, Gress::Egress].into_iter().flat_map(|gress| each(program.at(gress), &access));
    all.chain(chosen).collect()
}

/// The accesses of pairs: the register and the action.
fn swaps(program: &SwitchProgram) -> Vec<(usize, usize)> {
    let swap = |does: &Does| match does {
        Does::Swap { register, action, .. } => Some((*register, *action)),
        _ => None,
    };
    [Gress::Ingress, Gress::Egress].into_iter().flat_map(|gress| each(program.at(gress), &swap)).collect()
}

fn declare_pair(out: &mut Printer<'_>, register: &RegisterArray) {
    let RegisterArray { name, entries, initial, .. } = register;
    let [first, second] = [initial & ones(HALF_BITS), initial >> HALF_BITS];
    let index = index_width(register);
    out.line(&format!("Register<{name}_t, bit<{index}>>({entries}, {{{first}, {second}}}) {name};"));
}

/// An action of a register's unit on a pair.
fn declare_swap(out: &mut Printer<'_>, register: &RegisterArray, action: &PairAction) {
    let (names, name, index) = (out.names(), &register.name, index_width(register));
    let (output, result) = match action.output {
        PairOutput::Changed => (1, "1".to_owned()),
        PairOutput::Before(half) => (HALF_BITS, format!("words.{}", half.name())),
    };
    out.line(&format!("RegisterAction<{name}_t, bit<{index}>, bit<{output}>>({name}) {} = {{", action.name));
    out.lines(&format!("void apply(inout {name}_t words, out bit<{output}> result) {{\nresult = 0;"));
    let conditions: Vec<_> = action.conditions.iter().map(|it| pair_condition_text(&names, it, "words.")).collect();
    let [first, second] = action.words.map(|value| operand_text(&names, value, HALF_BITS));
    out.line(&format!("if ({}) {{", conditions.join(" || ")));
    out.lines(&format!("result = {result};\nwords.first = {first};\nwords.second = {second};\n}}\n}}\n}};"));
}

/// An action of a register's unit.
fn declare(out: &mut Printer<'_>, register: &RegisterArray, action: &RegisterAction) {
    let names = out.names();
    let RegisterArray { name, bits, .. } = register;
    let output = match action.output {
        AluOutput::Condition(_) => 1,
        AluOutput::Before | AluOutput::After | AluOutput::Computed(_) | AluOutput::Nothing => *bits,
    };
    let index = index_width(register);
    out.line(&format!("RegisterAction<bit<{bits}>, bit<{index}>, bit<{output}>>({name}) {} = {{", action.name));
    let result = if action.output == AluOutput::Nothing { "" } else { &format!(", out bit<{output}> result") };
    out.line(&format!("void apply(inout bit<{bits}> word{result}) {{"));
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
        AluOutput::Computed(value) => out.line(&format!("result = {};", alu_text(&names, value, *bits))),
        AluOutput::Condition(n) => {
            out.line("result = 0;");
            if !is_returned {
                out.lines(&format!("if ({}) {{\nresult = 1;\n}}", condition(n)));
            }
        }
        AluOutput::After | AluOutput::Nothing => {}
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
    let (action, index) = (&out.program.actions[action], out.index(index, width));
    let call = format!("{}.execute({index});", action.name);
    let result = result.filter(|_| action.output != AluOutput::Nothing);
    out.line(&result.map_or(call.clone(), |result| format!("{result} = {call}")));
}

pub(super) fn swap(out: &mut Printer<'_>, register: usize, index: Operand, action: usize, result: &str) {
    let width = index_width(&out.program.registers[register]);
    let (action, index) = (&out.program.pair_actions[action], out.index(index, width));
    out.line(&format!("{result} = {}.execute({index});", action.name));
}

/// The port of the packet generator.
const GENERATOR_PORT: u32 = 68;
/// The beginning and the end of forwarding.
const SEND: &str = "\
action send(PortId_t port) {
ig_tm_md.ucast_egress_port = port;
hdr.bridge.setValid();
hdr.bridge.enqueued = ig_prsr_md.global_tstamp;
";
const SEND_WITH_NOTE: &str = "\
action send(PortId_t port) {
ig_tm_md.ucast_egress_port = port;
";
/// What the checksum is without the window.
const AFTER_TCP: &str = "\
tcp_sum.subtract({hdr.tcp.checksum});
tcp_sum.subtract({hdr.tcp.window});
tcp_sum.subtract_all_and_deposit(meta.tcp_rest);
";
const FORWARD: &str = "\
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
";

const INGRESS_DEPARSER: &str = "\
control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
apply {
packet.emit(hdr);
}
}
";

/// The states of a parser behind that of Ethernet.
const STATES: &str = "\
transition select(hdr.ethernet.ether_type) {
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
AFTER_IPV4
}
state parse_ipv6 {
packet.extract(hdr.ipv6);
AFTER_IPV6
}
PORTS_STATE
ACTIVITY_STATES
";

const PIPELINE: &str = "\
Pipeline(IngressParser(), MainIngress(), IngressDeparser(), EgressParser(), MainEgress(), EgressDeparser()) pipe;
Switch(pipe) main;
";
