//! The entries of tables, for a control plane.

use super::super::builder::SwitchProgram;
use super::super::hash::Polynomial;
use super::super::table::{MatchTable, TableEntries};
use super::super::variable::{Variable, ones};
use super::expression::width_of;
use super::{Architecture, FEEDBACK_SESSION, hashes};
use crate::Gress;
use crate::ir::uses::Uses;
use std::fmt::Write;

/// The entries of all tables: for BMv2 the commands of `simple_switch_CLI`, for Tofino a script of `bfrt_python`. None if the program has no tables.
pub fn print_entries(program: &SwitchProgram, architecture: Architecture) -> Option<String> {
    let commands = match architecture {
        Architecture::V1model => configuration(program),
        Architecture::Tna => String::new(),
    };
    if program.tables.is_empty() && commands.is_empty() {
        return None;
    }
    let mut text = match architecture {
        Architecture::V1model => commands,
        Architecture::Tna => {
            let name = program.name.replace('-', "_");
            let ingress = format!("ingress = bfrt.{name}.pipe.MainIngress\n");
            let ingress = if program.ingress.is_empty() { String::new() } else { ingress };
            let feeds_back = Uses::of(program, Gress::Egress).feeds_back;
            // Copies from before the queue are another direction.
            let both = Uses::of(program, Gress::Ingress).feeds_back;
            let session = MIRROR.replace("EGRESS", if both { "BOTH" } else { "EGRESS" });
            let session = if feeds_back || both { session } else { String::new() };
            format!("{session}egress = bfrt.{name}.pipe.MainEgress\n{ingress}")
        }
    };
    for table in &program.tables {
        let gress = gress_of(program, table);
        let results: Vec<_> = table.results.iter().map(|result| &program.variables[result.0].name).collect();
        let names: Vec<_> = (0..table.keys.len()).map(|key| key_name(program, table.keys[key])).collect();
        let kind = table.entries.kind();
        // Of a prefix, the bits that count.
        let mask = |low: u64, high: u64| {
            !(low ^ high) & table.keys.first().and_then(|key| width_of(program, *key)).map_or(0, ones)
        };
        let add = |text: &mut String, keys: &[(u64, u64)], values: &[u64]| {
            let _ = match architecture {
                Architecture::V1model => {
                    let keys = keys.iter().map(|(low, high)| match kind {
                        "range" => format!("{low}->{high}"),
                        "ternary" => format!("{low}&&&{:#x}", mask(*low, *high)),
                        _ => low.to_string(),
                    });
                    let [keys, values] = [keys.collect::<Vec<_>>(), values.iter().map(u64::to_string).collect()];
                    let priority = if kind == "exact" { "" } else { " 1" };
                    let [keys, values] = [keys, values].map(|all| all.join(" "));
                    writeln!(
                        text,
                        "table_add {1}.{0} {1}.set_{0} {keys} => {values}{priority}",
                        table.name,
                        control(gress)
                    )
                }
                Architecture::Tna => {
                    let keys = names.iter().zip(keys).map(|(name, (low, high))| match kind {
                        "range" => format!("{name}_start={low}, {name}_end={high}"),
                        "ternary" => format!("{name}={low}, {name}_mask={:#x}", mask(*low, *high)),
                        _ => format!("{name}={low}"),
                    });
                    let values = results.iter().zip(values).map(|(name, value)| format!("{name}_of_entry={value}"));
                    let arguments: Vec<_> = keys.chain(values).collect();
                    writeln!(text, "{2}.{0}.add_with_set_{0}({1})", table.name, arguments.join(", "), gress.name())
                }
            };
        };
        match &table.entries {
            _ if table.keys.is_empty() => default(&mut text, program, table, architecture, gress),
            TableEntries::Exact(entries) => {
                for (key, values) in entries {
                    let keys: Vec<_> = key.iter().map(|key| (*key, *key)).collect();
                    add(&mut text, &keys, values);
                }
            }
            TableEntries::Ranges(entries) => {
                entries.iter().for_each(|(range, values)| add(&mut text, &[*range], values));
            }
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The port by which frames to an Ethernet address leave a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forwarding {
    /// The destination address.
    pub destination: [u8; 6],
    /// The number of the port.
    pub port: u16,
}

/// The entries of BMv2's table of addresses, as commands of `simple_switch_CLI`. Frames to other addresses are dropped.
pub fn print_forwarding(entries: &[Forwarding]) -> String {
    let entry = |Forwarding { destination, port }: &Forwarding| {
        let address = destination.map(|byte| format!("{byte:02x}")).join(":");
        format!("table_add MainIngress.forward MainIngress.send {address} => {port}\n")
    };
    entries.iter().map(entry).collect()
}

/// The parameters of a table without keys. A control plane can set others while the switch runs.
fn default(text: &mut String, program: &SwitchProgram, table: &MatchTable, architecture: Architecture, gress: Gress) {
    let (name, values) = (&table.name, &table.otherwise);
    let _ = match architecture {
        Architecture::V1model => {
            let values: Vec<_> = values.iter().map(u64::to_string).collect();
            let control = control(gress);
            writeln!(text, "table_set_default {control}.{name} {control}.set_{name} {}", values.join(" "))
        }
        Architecture::Tna => {
            let values = table.results.iter().zip(values);
            let values: Vec<_> = values
                .map(|(result, value)| format!("{}_of_entry={value}", program.variables[result.0].name))
                .collect();
            writeln!(text, "{}.{name}.set_default_with_set_{name}({})", gress.name(), values.join(", "))
        }
    };
}

/// The half of the pipeline that has a table.
pub(super) fn gress_of(program: &SwitchProgram, table: &MatchTable) -> Gress {
    let before = Uses::of(program, Gress::Ingress).tables;
    let is_before = before.iter().any(|number| program.tables[*number].name == table.name);
    if is_before { Gress::Ingress } else { Gress::Egress }
}

/// The control that has a half of the pipeline.
pub(super) fn control(gress: Gress) -> &'static str {
    match gress {
        Gress::Ingress => "MainIngress",
        Gress::Egress => "MainEgress",
    }
}

/// The mirror session that sends copies back to the ingress.
const MIRROR: &str = "\
bfrt.mirror.cfg.entry_with_normal(sid=5, direction=\"EGRESS\", session_enable=True, ucast_egress_port=70, ucast_egress_port_valid=True,
                                  max_pkt_len=128).push()
";

/// What BMv2 needs in addition: the session that sends copies back, and the polynomials of hashes that it does not know. The compiler numbers
/// the calculations, those before the queue first.
fn configuration(program: &SwitchProgram) -> String {
    let feeds_back = [Gress::Ingress, Gress::Egress].into_iter().any(|gress| Uses::of(program, gress).feeds_back);
    let session = if feeds_back { format!("mirroring_add {FEEDBACK_SESSION} 0\n") } else { String::new() };
    let hashes = [Gress::Ingress, Gress::Egress].into_iter().flat_map(|gress| hashes(program.at(gress))).enumerate();
    let custom = hashes.filter(|(_, (_, polynomial))| *polynomial != Polynomial::Ethernet);
    let command = |(number, (_, polynomial)): (usize, (Variable, Polynomial))| {
        let calculation = number.checked_sub(1).map_or("calc".to_owned(), |number| format!("calc_{number}"));
        let coefficients = polynomial.coefficients();
        format!("set_crc32_parameters {calculation} {coefficients:#x} 0xffffffff 0xffffffff true true\n")
    };
    custom.map(command).fold(session, |text, line| text + &line)
}

/// The name of a key: that of its variable.
fn key_name(program: &SwitchProgram, key: super::super::variable::Operand) -> &str {
    key.variable().map_or("", |variable| &program.variables[variable.0].name)
}
