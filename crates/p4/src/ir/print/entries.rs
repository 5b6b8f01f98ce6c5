//! The entries of tables, for a control plane.

use super::super::builder::SwitchProgram;
use super::super::table::TableEntries;
use super::Architecture;
use std::fmt::Write;

/// The entries of all tables: for BMv2 the commands of `simple_switch_CLI`, for Tofino a script of `bfrt_python`. None if the program has no tables.
pub fn print_entries(program: &SwitchProgram, architecture: Architecture) -> Option<String> {
    if program.tables.is_empty() {
        return None;
    }
    let mut text = match architecture {
        Architecture::V1model => String::new(),
        Architecture::Tna => {
            let name = program.name.replace('-', "_");
            format!("egress = bfrt.{name}.pipe.MainEgress\n")
        }
    };
    for table in &program.tables {
        let results: Vec<_> = table.results.iter().map(|result| program.variables[result.0].name).collect();
        let names: Vec<_> = (0..table.keys.len()).map(|key| key_name(program, table.keys[key])).collect();
        let add = |text: &mut String, keys: &[(u64, u64)], values: &[u64], is_range: bool| {
            let _ = match architecture {
                Architecture::V1model => {
                    let keys = keys
                        .iter()
                        .map(|(low, high)| if is_range { format!("{low}->{high}") } else { low.to_string() });
                    let [keys, values] = [keys.collect::<Vec<_>>(), values.iter().map(u64::to_string).collect()];
                    let priority = if is_range { " 1" } else { "" };
                    let [keys, values] = [keys, values].map(|all| all.join(" "));
                    writeln!(
                        text,
                        "table_add MainEgress.{0} MainEgress.set_{0} {keys} => {values}{priority}",
                        table.name
                    )
                }
                Architecture::Tna => {
                    let keys = names.iter().zip(keys).map(|(name, (low, high))| {
                        if is_range {
                            format!("{name}_start={low}, {name}_end={high}")
                        } else {
                            format!("{name}={low}")
                        }
                    });
                    let values = results.iter().zip(values).map(|(name, value)| format!("{name}_of_entry={value}"));
                    let arguments: Vec<_> = keys.chain(values).collect();
                    writeln!(text, "egress.{0}.add_with_set_{0}({1})", table.name, arguments.join(", "))
                }
            };
        };
        match &table.entries {
            TableEntries::Exact(entries) => {
                for (key, values) in entries {
                    let keys: Vec<_> = key.iter().map(|key| (*key, *key)).collect();
                    add(&mut text, &keys, values, false);
                }
            }
            TableEntries::Ranges(entries) => {
                entries.iter().for_each(|(range, values)| add(&mut text, &[*range], values, true));
            }
        }
    }
    Some(text)
}

/// The name of a key: that of its variable.
fn key_name(program: &SwitchProgram, key: super::super::variable::Operand) -> &'static str {
    key.variable().map_or("", |variable| program.variables[variable.0].name)
}
