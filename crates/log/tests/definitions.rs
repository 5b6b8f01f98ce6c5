//! Definitions survive writing and reading. In a log they give the results of a slow evaluation of each record,
//! in whichever order they are written.

use crate::common;
use proptest::prelude::*;
use queuescope_log::{
    Alert, ApplyError, AttributeId, Definitions, Expr, Function, Kind, Log, Memory, Number, Options, Schema, Single,
    SingleKind, Snapshot,
};

/// Definitions: filters `f0`, `f1`, ..., and aggregates `SEQ`, `MAXIMUM`, `a2`, ... with the indices of their filters.
#[derive(Debug, Clone)]
struct Spec {
    filters: Vec<Expr>,
    aggregates: Vec<(Function, Option<usize>)>,
    triggers: Vec<String>,
    indexes: Vec<AttributeId>,
    backwards: bool,
}

fn attribute() -> impl Strategy<Value = AttributeId> {
    let comparable = common::schema().iter().filter(|(_, attribute)| attribute.is_comparable());
    prop::sample::select(comparable.map(|(id, _)| id).collect::<Vec<_>>())
}

fn is_number(id: AttributeId) -> bool {
    let kind = common::schema().attribute(id).kind;
    matches!(kind, Kind::Unsigned | Kind::Signed | Kind::Float | Kind::Size | Kind::Time)
}

/// Functions that the test can evaluate slowly.
fn simple() -> impl Strategy<Value = Function> {
    prop_oneof![Just(Function::Count), attribute().prop_map(Function::Min), attribute().prop_map(Function::Max)]
}

fn function() -> impl Strategy<Value = Function> {
    let number = || attribute().prop_filter("it can be added", |id| is_number(*id));
    let deviation = number().prop_map(Function::Deviation);
    prop_oneof![
        3 => simple(),
        1 => number().prop_map(Function::Sum),
        1 => number().prop_map(Function::Mean),
        1 => deviation
    ]
}

fn condition(name: String, function: &Function) -> impl Strategy<Value = String> + use<> {
    let number = match function {
        Function::Min(id) | Function::Max(id) => {
            let attribute = common::schema().attribute(*id);
            // NaN cannot be written.
            (0..8u128)
                .prop_map(move |key| {
                    attribute.text_of((attribute.highest_key() / 2 + key).min(attribute.highest_key()))
                })
                .boxed()
        }
        Function::Mean(_) | Function::Deviation(_) => {
            prop_oneof![(-1e9..1e9).prop_map(|n: f64| format!("{n:?}")), Just("7".to_owned())].boxed()
        }
        Function::Sum(id) => match common::schema().attribute(*id).kind {
            Kind::Float => (-1e9..1e9).prop_map(|n: f64| format!("{n:?}")).boxed(),
            Kind::Signed => any::<i64>().prop_map(|n| n.to_string()).boxed(),
            Kind::Time => prop_oneof![Just("1.5ms".to_owned()), any::<u64>().prop_map(|n| n.to_string())].boxed(),
            Kind::Size => prop_oneof![Just("64KiB".to_owned()), any::<u64>().prop_map(|n| n.to_string())].boxed(),
            _ => any::<u64>().prop_map(|n| n.to_string()).boxed(),
        },
        _ => any::<u64>().prop_map(|n| n.to_string()).boxed(),
    };
    let relation = prop::sample::select(vec!["<", "<=", "==", "!=", ">=", ">", "="]);
    (relation, number).prop_map(move |(relation, number)| format!("{name} {relation} {number}"))
}

fn spec(function: impl Strategy<Value = Function>) -> impl Strategy<Value = Spec> {
    let filters = prop::collection::vec(common::expr(), 1..6);
    let filters = filters.prop_filter("they can be normalised", |filters| {
        let scope = common::scope(common::schema());
        filters.iter().all(|filter| filter.dnf(&scope).is_ok())
    });
    let aggregate = (function, any::<Option<prop::sample::Index>>());
    let aggregates = prop::collection::vec(aggregate, 2..6);
    let indexes = prop::collection::vec(attribute(), 0..3);
    (filters, aggregates, indexes, any::<bool>()).prop_flat_map(|(filters, aggregates, indexes, backwards)| {
        let scope = common::scope(common::schema());
        let plain = |filter: &Expr| filter.dnf(&scope).is_ok_and(|dnf| dnf.aggregates().is_empty()) && !names(filter);
        let place = |(at, (function, filter)): (usize, (Function, Option<prop::sample::Index>))| {
            // A filter must not depend on an aggregate that covers its own matches.
            let filter = filter.map(|filter| filter.index(filters.len()));
            (function, filter.filter(|filter| at > 1 || plain(&filters[*filter])))
        };
        let aggregates: Vec<_> = aggregates.into_iter().enumerate().map(place).collect();
        let conditions: Vec<_> =
            aggregates.iter().enumerate().map(|(at, (function, _))| condition(name(at), function)).collect();
        conditions.prop_map(move |triggers| {
            let (filters, aggregates, indexes) = (filters.clone(), aggregates.clone(), indexes.clone());
            Spec { filters, aggregates, triggers, indexes, backwards }
        })
    })
}

/// Whether an expression names an aggregate, even one that its normal form drops.
fn names(filter: &Expr) -> bool {
    let text = filter.text(&common::scope(common::schema()));
    text.contains("SEQ") || text.contains("MAXIMUM")
}

fn name(aggregate: usize) -> String {
    ["SEQ", "MAXIMUM"].get(aggregate).map_or_else(|| format!("a{aggregate}"), |name| (*name).to_owned())
}

impl Spec {
    fn text(&self) -> String {
        let schema = common::schema();
        let scope = common::scope(schema);
        let filter = |(at, filter): (usize, &Expr)| {
            format!("[[filter]]\nname = \"f{at}\"\nexpression = '{}'\n", filter.text(&scope))
        };
        let aggregate = |(at, (function, filter)): (usize, &(Function, Option<usize>))| {
            let filter = filter.map(|filter| format!("filter = \"f{filter}\"\n")).unwrap_or_default();
            format!("[[aggregate]]\nname = \"{}\"\nfunction = \"{}\"\n{filter}", name(at), function.text(schema))
        };
        let trigger = |(at, condition): (usize, &String)| {
            let more = ["", "period = \"2ms\"\n", "period = \"10us\"\nwindow = \"1ms\"\n"][at % 3];
            format!("[[trigger]]\nname = \"t{at}\"\ncondition = '{condition}'\n{more}")
        };
        let mut parts: Vec<_> = self.filters.iter().enumerate().map(filter).collect();
        if self.backwards {
            parts.reverse();
        }
        parts.extend(self.triggers.iter().enumerate().map(trigger));
        parts.extend(self.aggregates.iter().enumerate().map(aggregate));
        let indexes: Vec<_> = self.indexes.iter().map(|id| format!("'{}'", schema.attribute(*id).name)).collect();
        format!("index = [{}]\n{}", indexes.join(", "), parts.join("\n"))
    }

    fn read(&self) -> Definitions {
        Definitions::parse("spec", &self.text(), common::schema()).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The matches of filters and the values of aggregates, computed record by record.
fn slowly(spec: &Spec, records: &[Vec<u8>]) -> (Vec<Vec<u64>>, Vec<Number>) {
    let schema = common::schema();
    let mut taken: Vec<Vec<&[u8]>> = vec![Vec::new(); spec.aggregates.len()];
    let mut matched = vec![Vec::new(); spec.filters.len()];
    let values = |taken: &[Vec<&[u8]>]| -> Vec<Number> {
        let value = |((function, _), records): (&(Function, _), &Vec<&[u8]>)| {
            let keys = |id| records.iter().map(move |record| schema.key(id, record));
            match function {
                Function::Min(id) => {
                    let attribute = schema.attribute(*id);
                    Number::of_key(attribute, keys(*id).min().unwrap_or(attribute.highest_key()))
                }
                Function::Max(id) => Number::of_key(schema.attribute(*id), keys(*id).max().unwrap_or(0)),
                _ => Number::Unsigned(records.len() as u128),
            }
        };
        spec.aggregates.iter().zip(taken).map(value).collect()
    };
    for (position, record) in (0..).zip(records) {
        let now = values(&taken);
        let holds: Vec<_> = spec.filters.iter().map(|filter| filter.holds(schema, record, &now.as_slice())).collect();
        for (matched, holds) in matched.iter_mut().zip(&holds) {
            matched.extend(holds.then_some(position));
        }
        for ((_, filter), taken) in spec.aggregates.iter().zip(&mut taken) {
            taken.extend(filter.is_none_or(|filter| holds[filter]).then_some(record.as_slice()));
        }
    }
    (matched, values(&taken))
}

fn log(schema: &Schema) -> Log {
    Log::new(schema.clone(), Options { records: 1 << 16, memory: Memory::Lazy }).expect("there is room")
}

fn matches(snapshot: &Snapshot<'_>, filter: queuescope_log::FilterId) -> Vec<u64> {
    let query = snapshot.filter(filter).expect("it is there");
    query.matched().map(|(position, _)| position).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn definitions_are_read_as_they_were_written(spec in spec(function())) {
        let read = spec.read();
        let mut expressions: Vec<_> = read.filters().iter().map(|filter| filter.expression.clone()).collect();
        if spec.backwards {
            expressions.reverse();
        }
        prop_assert_eq!(&expressions, &spec.filters);
        let again = Definitions::parse("again", &read.text(), common::schema())
            .unwrap_or_else(|error| panic!("{error}"));
        prop_assert_eq!(format!("{:?}", again), format!("{:?}", &read));
        prop_assert_eq!(again.text(), read.text());
    }

    #[test]
    fn results_in_a_log_agree_with_a_slow_evaluation(
        spec in spec(simple()),
        records in prop::collection::vec(common::record(), 0..60),
        before in any::<prop::sample::Index>(),
    ) {
        let log = log(common::schema());
        // Ids of the log differ from those of the text.
        log.add_aggregate(&["OTHER"], None, &Function::Count).expect("the name is free");
        let half = before.index(records.len() + 1);
        let _ = log.append(&records[..half].concat());
        let defined = spec.read().apply(&log).unwrap_or_else(|error| panic!("{error}"));
        let _ = log.append(&records[half..].concat());
        let (matched, values) = slowly(&spec, &records);
        let snapshot = log.snapshot();
        for (at, matched) in matched.iter().enumerate() {
            let filter = defined.filter(&format!("f{at}")).expect("it is there");
            prop_assert_eq!(&matches(&snapshot, filter), matched, "f{}", at);
        }
        for (at, value) in values.iter().enumerate() {
            let aggregate = defined.aggregate(&name(at)).expect("it is there");
            // NaN is not equal to itself.
            let found = snapshot.value(aggregate).expect("it is there");
            prop_assert!(found.compare(*value).is_eq(), "{}: {:?} and not {:?}", name(at), found, value);
        }
        drop(snapshot);
        defined.remove(&log);
        let scope = log.scope();
        prop_assert_eq!(scope.aggregates().collect::<Vec<_>>(), ["OTHER"]);
    }
}

const PATH: &str = r#"
index = ["src_ip", "dst_ip", "src_ip"]
[[trigger]]
name = "path"
condition = "strays > 0"
[[aggregate]]
name = "strays"
function = "count"
filter = "off_path"
[[filter]]
name = "off_path"
expression = "switch_1 == 7 or switch_2 == 7"
"#;

/// A record whose first switch is this.
fn passed(switch: u128) -> Vec<u8> {
    let schema = Schema::packet();
    let mut record = vec![0; schema.record_size()];
    schema.reader(schema.find("switch_1").expect("it is there")).write(&mut record, switch);
    record
}

#[test]
fn monitors_pass_on_the_names_of_triggers() {
    let log = log(Schema::packet());
    let mut definitions = Definitions::parse("path.toml", PATH, Schema::packet()).expect("it is right");
    definitions.add_trigger("--trigger", "many=strays >= 2@2ms/10ms").expect("it is right");
    let defined = definitions.apply(&log).expect("it fits");
    let mut monitor = defined.monitor(&log).expect("all is there");
    let mut alerts = Vec::new();
    let mut pass = |now: u64| {
        monitor
            .pass(now * 1_000_000, |name, Alert { at, new, .. }| alerts.push((name.to_owned(), at / 1_000_000, new)));
    };
    for (now, switch) in [(0, 1), (1, 7), (2, 7), (3, 2), (4, 7)] {
        let _ = log.append(&passed(switch));
        pass(now);
    }
    let path = |at, new| ("path".to_owned(), at, new);
    let many = |at, new| ("many".to_owned(), at, new);
    assert_eq!(alerts, [path(1, true), path(2, false), many(2, true), path(3, false), path(4, false), many(4, false)]);
}

#[test]
fn definitions_are_merged_from_files_and_arguments() {
    let mut definitions = Definitions::parse("path.toml", PATH, Schema::packet()).expect("it is right");
    definitions.add_text("more.toml", "index = ['ttl', 'dst_ip']").expect("it is right");
    // The last definition is named first.
    let single = |kind, text| Single { option: "--", text, kind };
    let singles = [
        single(SingleKind::Trigger, "low = worst < 3 @ 10ms"),
        single(SingleKind::Aggregate, "worst = min(ttl) @ late"),
        single(SingleKind::Filter, "late = ttl < strays"),
    ];
    definitions.add_singles(&singles).expect("it is right");
    let expected = r#"index = ["src_ip", "dst_ip", "ttl"]

[[filter]]
name = "off_path"
expression = "switch_1 == 7 or switch_2 == 7"

[[filter]]
name = "late"
expression = "ttl < strays"

[[aggregate]]
name = "strays"
function = "count"
filter = "off_path"

[[aggregate]]
name = "worst"
function = "min(ttl)"
filter = "late"

[[trigger]]
name = "path"
condition = "strays > 0"
period = "1000000ns"

[[trigger]]
name = "low"
condition = "worst < 3"
period = "10000000ns"
"#;
    assert_eq!(definitions.text(), expected);
    assert!(Definitions::parse("none", "", Schema::packet()).expect("nothing can be wrong").is_empty());
}

/// pcap's words may have a backslash, and blanks are not part of an expression.
#[test]
fn an_expression_keeps_its_words() {
    let text = "[[filter]]\nname = 'low'\nexpression = \"\"\"\nether proto \\\\ip\n  and ttl < 3\"\"\"";
    let read = Definitions::parse("words", text, Schema::packet()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.filters()[0].text, "ether proto \\ip and ttl < 3");
    let again = Definitions::parse("again", &read.text(), Schema::packet()).expect("it is right");
    assert_eq!(again.filters(), read.filters());
}

#[test]
fn failed_definitions_leave_the_log_unchanged() {
    let log = log(Schema::packet());
    log.add_aggregate(&["strays"], None, &Function::Count).expect("the name is free");
    let definitions = Definitions::parse("path.toml", PATH, Schema::packet()).expect("it is right");
    let error = definitions.apply(&log).unwrap_err();
    assert!(error.to_string().starts_with("'strays' cannot name an aggregate: another aggregate has it"), "{error}");
    assert_eq!(log.scope().aggregates().count(), 1);
    let source = Schema::packet().find("src_ip").expect("it is there");
    assert!(log.add_index(source), "its index is gone again");
    let error = Definitions::new(Schema::departure()).apply(&log).unwrap_err();
    assert!(matches!(error, ApplyError::OtherSchema { .. }), "{error}");
}
