//! The entries of tables for P4Runtime, by the names of the program.
//!
//! P4Runtime's own messages have numbers for tables, keys and actions, which the compiler chooses and writes into the P4Info. So this is the
//! configuration of the controller in the P4 tutorials (`utils/p4runtime_lib/simple_controller.py` of `p4lang/tutorials`), which has names and looks up the numbers.

use super::super::builder::SwitchProgram;
use super::super::table::{MatchTable, TableEntries};
use super::super::variable::ones;
use super::Architecture;
use super::entries::{Forwarding, control, gress_of};
use super::expression::{Names, operand_text, width_of};
use serde::{Serialize, Serializer};

/// What the controller reads. Paths are relative to its folder.
#[derive(Serialize)]
struct Configuration {
    target: &'static str,
    p4info: String,
    bmv2_json: String,
    table_entries: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    table: String,
    /// What holds where no entry matches.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    default_action: bool,
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    keys: Option<Pairs<Key>>,
    action_name: String,
    action_params: Pairs<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u32>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
enum Key {
    Exact(u64),
    Range([u64; 2]),
    /// The value, and the mask of the bits that count.
    Ternary([u64; 2]),
}

/// Names with values, in the order of the program.
struct Pairs<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The entries of all tables for P4Runtime: the JSON file that the controller of the P4 tutorials reads. It names the files that p4c makes of
/// `NAME.p4` for BMv2: `NAME.p4info.txtpb` and `NAME.json`. Then the entries of the table of addresses. None if there are no entries.
///
/// Numbers are plain integers. An exact key is its value, a range is both ends, and a prefix is its first value and a mask. Ranges have the priority 1, since they do not overlap. A range of all values is left out, as
/// P4Runtime demands (specification 1.4.1, section 9.1.1).
pub fn print_p4runtime(program: &SwitchProgram, forwarding: &[Forwarding]) -> Option<String> {
    if program.tables.is_empty() && forwarding.is_empty() {
        return None;
    }
    let name = program.name;
    let configuration = Configuration {
        target: "bmv2",
        p4info: format!("{name}.p4info.txtpb"),
        bmv2_json: format!("{name}.json"),
        table_entries: {
            let of_tables = program.tables.iter().flat_map(|table| entries(program, table));
            of_tables.chain(forwarding.iter().map(forward)).collect()
        },
    };
    let json = serde_json::to_string(&configuration).unwrap_or_default();
    // A line for each entry.
    Some(json.replace("{\"table\":", "\n{\"table\":") + "\n")
}

/// An entry of the table of addresses.
fn forward(Forwarding { destination, port }: &Forwarding) -> Entry {
    let address = destination.iter().fold(0, |address, byte| address << 8 | u64::from(*byte));
    Entry {
        table: "MainIngress.forward".to_owned(),
        default_action: false,
        keys: Some(Pairs(vec![("hdr.ethernet.destination".to_owned(), Key::Exact(address))])),
        action_name: "MainIngress.send".to_owned(),
        action_params: Pairs(vec![("port".to_owned(), (*port).into())]),
        priority: None,
    }
}

/// The entries of one table.
fn entries(program: &SwitchProgram, table: &MatchTable) -> Vec<Entry> {
    let gress = gress_of(program, table);
    let control = control(gress);
    let names = Names::of(program, Architecture::V1model, false, gress);
    // The compiler takes the expression of a key as its name.
    let key_names: Vec<_> = table.keys.iter().map(|key| operand_text(&names, *key, 0)).collect();
    let parameters = |values: &[u64]| {
        let named = table.results.iter().zip(values);
        Pairs(named.map(|(result, value)| (format!("{}_of_entry", program.variables[result.0].name), *value)).collect())
    };
    let entry = |keys, values: &[u64], priority| Entry {
        table: format!("{control}.{}", table.name),
        default_action: table.keys.is_empty(),
        keys: Some(Pairs(keys)).filter(|_| !table.keys.is_empty()),
        action_name: format!("{control}.set_{}", table.name),
        action_params: parameters(values),
        priority,
    };
    match &table.entries {
        _ if table.keys.is_empty() => vec![entry(Vec::new(), &table.otherwise, None)],
        TableEntries::Exact(all) => {
            let keys = |key: &[u64]| key_names.iter().cloned().zip(key.iter().map(|key| Key::Exact(*key))).collect();
            all.iter().map(|(key, values)| entry(keys(key), values, None)).collect()
        }
        TableEntries::Ranges(all) => {
            let widest = table.keys.first().and_then(|key| width_of(program, *key)).map_or(0u64, ones);
            let keys = |low: u64, high: u64| {
                let is_all = low == 0 && high == widest;
                let key = match table.entries.kind() {
                    "ternary" => Key::Ternary([low, !(low ^ high) & widest]),
                    _ => Key::Range([low, high]),
                };
                key_names.iter().filter(|_| !is_all).map(|name| (name.clone(), key)).collect()
            };
            all.iter().map(|((low, high), values)| entry(keys(*low, *high), values, Some(1))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::print;
    use super::*;
    use crate::algorithms::executable;
    use crate::ir::{Builder, Input, Name, Unit};
    use serde_json::Value;

    /// Ranges over all values and slices as keys.
    fn small() -> SwitchProgram {
        let mut p = Builder::new("small", "", "");
        let (port, ecn) = (p.input(Input::Port), p.input(Input::Ecn));
        let (class, weight) = (p.variable("class", 8, Unit::Number), p.variable("weight", 64, Unit::Number));
        let look_up = |name: &'static str, keys, entries, results: &[_]| MatchTable {
            name: Name::from(name),
            about: "".into(),
            keys,
            entries,
            results: results.to_vec(),
            otherwise: vec![0; results.len()],
        };
        let exact = TableEntries::Exact(vec![(vec![1, 3], vec![7, u64::MAX]), (vec![0, 0], vec![0, 1])]);
        p.look_up(look_up("classes", vec![port.slice(2, 4), ecn.into()], exact, &[class, weight]));
        p.look_up(look_up("some", vec![class.into()], TableEntries::Ranges(vec![((0, 254), vec![1])]), &[weight]));
        p.look_up(look_up("all", vec![class.into()], TableEntries::Ranges(vec![((0, 255), vec![2])]), &[weight]));
        p.build().expect("it is valid")
    }

    /// The words between two texts, each up to `end`.
    fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
        let from = text.find(begin).expect("it begins") + begin.len();
        &text[from..from + text[from..].find(end).expect("it ends")]
    }

    /// The names of the keys and parameters of a table, and the kind of its keys, from the printed program.
    fn declared(code: &str, table: &MatchTable) -> (Vec<String>, String, Vec<String>) {
        let keys = between(between(code, &format!("table {} {{", table.name), "actions = {"), "key = {", "}");
        let keys = keys.trim().lines().map(|line| line.trim().trim_end_matches(';').rsplit_once(": ").expect("a kind"));
        let (names, kinds): (Vec<_>, Vec<_>) = keys.map(|(name, kind)| (name.to_owned(), kind.to_owned())).unzip();
        assert!(kinds.iter().all(|kind| *kind == kinds[0]), "{kinds:?}");
        let parameters = between(code, &format!("action set_{}(", table.name), ")").split(", ");
        (names, kinds[0].clone(), parameters.map(|it| it.split(' ').next_back().unwrap_or("").to_owned()).collect())
    }

    fn number(value: &Value) -> u64 {
        value.as_u64().expect("a whole number")
    }

    /// The entries of a table as the JSON has them, by the names that the printed program declares.
    fn read_back(json: &Value, code: &str, program: &SwitchProgram, table: &MatchTable) -> TableEntries {
        let (keys, kind, parameters) = declared(code, table);
        let control = control(gress_of(program, table));
        let name = format!("{control}.{}", table.name);
        let all = json["table_entries"].as_array().expect("a list");
        let own: Vec<_> = all.iter().filter(|entry| entry["table"] == name.as_str()).collect();
        let values = |entry: &Value| -> Vec<u64> {
            assert_eq!(entry["action_name"], format!("{control}.set_{}", table.name));
            assert_eq!(entry["action_params"].as_object().expect("a table").len(), parameters.len());
            parameters.iter().map(|parameter| number(&entry["action_params"][parameter])).collect()
        };
        match kind.as_str() {
            "exact" => TableEntries::Exact(
                own.iter()
                    .map(|entry| {
                        assert_eq!(entry["match"].as_object().expect("a table").len(), keys.len());
                        assert_eq!(entry.get("priority"), None);
                        (keys.iter().map(|key| number(&entry["match"][key])).collect(), values(entry))
                    })
                    .collect(),
            ),
            _ => TableEntries::Ranges(
                own.iter()
                    .map(|entry| {
                        assert_eq!(entry["priority"], 1);
                        let range = match entry["match"].get(&keys[0]) {
                            // Keys have 32 bits, where prefixes are not all numbers.
                            Some(masked) if kind == "ternary" => {
                                let (value, mask) = (number(&masked[0]), number(&masked[1]));
                                (value, value | !mask & ones(32))
                            }
                            Some(ends) => (number(&ends[0]), number(&ends[1])),
                            None => (0, 255),
                        };
                        (range, values(entry))
                    })
                    .collect(),
            ),
        }
    }

    #[test]
    fn entries_are_those_of_the_tables_by_the_names_of_the_printed_program() {
        let mut with_tables = 0;
        for program in executable().expect("the defaults fit").into_iter().chain([small()]) {
            let Some(text) = print_p4runtime(&program, &[]) else {
                assert!(program.tables.is_empty());
                continue;
            };
            with_tables += 1;
            let json: Value = serde_json::from_str(&text).expect("it is JSON");
            let code = print(&program, Architecture::V1model);
            let mut entries = 0;
            let defaults = program.tables.iter().filter(|table| table.keys.is_empty());
            for table in defaults {
                let is_it = |entry: &&Value| {
                    entry["action_name"].as_str().is_some_and(|name| name.ends_with(&format!(".set_{}", table.name)))
                };
                let entry =
                    json["table_entries"].as_array().and_then(|all| all.iter().find(is_it)).expect("it is there");
                let values = table.results.iter().map(|result| {
                    number(&entry["action_params"][format!("{}_of_entry", program.variables[result.0].name)])
                });
                assert_eq!(values.collect::<Vec<_>>(), table.otherwise);
                assert!(entry["default_action"] == true && entry.get("match").is_none(), "{entry}");
                entries += 1;
            }
            for table in program.tables.iter().filter(|table| !table.keys.is_empty()) {
                assert_eq!(
                    read_back(&json, &code, &program, table),
                    table.entries,
                    "{} of {}",
                    table.name,
                    program.name
                );
                entries += table.entries.len();
            }
            assert_eq!(json["table_entries"].as_array().map(Vec::len), Some(entries));
            assert_eq!(text.lines().count(), entries + 1, "a line for each");
            assert_eq!(json["bmv2_json"], format!("{}.json", program.name));
        }
        assert_eq!(with_tables, 18);
    }

    #[test]
    fn addresses_have_ports() {
        let nothing = Builder::new("nothing", "", "").build().expect("it is valid");
        assert_eq!(print_p4runtime(&nothing, &[]), None);
        let hosts = [Forwarding { destination: [2, 0, 0, 0, 0, 0xb], port: 1 }];
        let text = print_p4runtime(&nothing, &hosts).expect("it has an entry");
        let entry = r#"{"table":"MainIngress.forward","match":{"hdr.ethernet.destination":2199023255563},"action_name":"MainIngress.send","action_params":{"port":1}}"#;
        assert_eq!(text.lines().nth(1), Some([entry, "]}"].concat().as_str()));
        let command = "table_add MainIngress.forward MainIngress.send 02:00:00:00:00:0b => 1\n";
        assert_eq!(super::super::print_forwarding(&hosts), command);
    }

    #[test]
    fn a_range_of_all_values_has_no_key() {
        let text = print_p4runtime(&small(), &[]).expect("it has tables");
        assert_eq!(
            text,
            r#"{"target":"bmv2","p4info":"small.p4info.txtpb","bmv2_json":"small.json","table_entries":[
{"table":"MainEgress.classes","match":{"standard_metadata.egress_port[5:2]":1,"meta.ecn":3},"action_name":"MainEgress.set_classes","action_params":{"class_of_entry":7,"weight_of_entry":18446744073709551615}},
{"table":"MainEgress.classes","match":{"standard_metadata.egress_port[5:2]":0,"meta.ecn":0},"action_name":"MainEgress.set_classes","action_params":{"class_of_entry":0,"weight_of_entry":1}},
{"table":"MainEgress.some","match":{"class":[0,254]},"action_name":"MainEgress.set_some","action_params":{"weight_of_entry":1},"priority":1},
{"table":"MainEgress.all","match":{},"action_name":"MainEgress.set_all","action_params":{"weight_of_entry":2},"priority":1}]}
"#
        );
    }
}
