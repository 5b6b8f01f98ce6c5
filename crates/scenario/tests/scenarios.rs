//! The scenarios of the repository, and what is made from the list of keys.

mod common;

use queuescope_scenario::{Arrivals, Capacity, Override, Scenario, Traffic};
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

fn read(name: &str, text: &str, overrides: &[Override]) -> Scenario {
    Scenario::parse(name, text, overrides).unwrap_or_else(|error| panic!("{name}:\n{error}"))
}

#[test]
fn each_scenario_says_what_it_shows() {
    let scenarios = common::scenarios();
    assert!(scenarios.len() >= 12);
    for (file, text) in scenarios {
        let scenario = read(&file, &text, &[]);
        assert_eq!(scenario.name, file);
        assert!(!scenario.about.is_empty() && text.contains("# Look at "), "{file} teaches nothing");
        let network = scenario.network();
        for flows in &scenario.flows {
            assert!(scenario.base_rtt(&network, flows).is_some(), "{file}: {}", flows.name);
        }
        for wire in &network.links {
            if let Capacity::Trace(path) = &wire.capacity {
                assert!(common::text(&format!("scenarios/{path}")).lines().all(|line| line.parse::<u64>().is_ok()));
            }
        }
    }
}

#[test]
fn the_overrides_that_comments_name_can_be_made() {
    let mut count = 0;
    for (file, text) in common::scenarios() {
        let comments: Vec<_> = text.lines().filter_map(|line| line.strip_prefix('#')).collect();
        let comments = comments.join(" ");
        for change in comments.split("--set ").skip(1) {
            let change = change.split_whitespace().next().expect("a change follows").trim_end_matches(['.', ',', ')']);
            let changed = read(&file, &text, &[Override::new(change)]);
            assert_ne!(changed, read(&file, &text, &[]), "{file}: {change} changes nothing");
            count += 1;
        }
    }
    assert!(count > 10);
}

#[test]
fn what_is_explained_reads_back_as_the_same() {
    for (file, text) in common::scenarios() {
        let scenario = read(&file, &text, &[]);
        let explained = scenario.explain();
        let again = read(&format!("{file}, explained"), &explained, &[]);
        assert_eq!(again, scenario, "{file}");
        assert_eq!(again.explain(), explained, "{file}");
    }
}

/// What is inherited is a comment, so that a variant of what was explained is the variant.
#[test]
fn what_is_explained_varies_as_the_file_does() {
    for (file, text) in common::scenarios() {
        let scenario = read(&file, &text, &[]);
        let explained = scenario.explain();
        for change in ["link.delay=7ms", "link.limit=77packets", "profile=ns3", "link.discipline=fq-codel"] {
            let change = [Override::new(change)];
            let of_file = Scenario::parse(&file, &text, &change);
            let Ok(of_file) = of_file else { continue };
            let of_explained = read(&file, &explained, &change);
            if change[0].text != "profile=ns3" {
                assert_eq!(of_explained, of_file, "{file}: {change:?}");
            }
            assert_eq!(of_explained.wires, of_file.wires, "{file}: {change:?}");
            assert_eq!(of_explained.stack, of_file.stack, "{file}: {change:?}");
        }
    }
}

#[test]
fn each_run_of_a_sweep_can_be_read() {
    let mut runs = 0;
    for (file, text) in common::scenarios() {
        let scenario = read(&file, &text, &[]);
        let cells: Vec<_> = scenario.sweep.cells(scenario.seed).collect();
        assert_eq!(cells.len() as u64, scenario.sweep.len());
        for (index, cell) in cells.iter().enumerate() {
            assert_eq!(cell.index, index as u64);
            read(&file, &text, &cell.overrides);
            runs += 1;
        }
    }
    assert!(runs > 30);
}

#[test]
fn a_sweep_is_each_combination_with_each_seed() {
    let text = r#"
        seed = 7
        [[flows]]
        [sweep]
        "link.rate" = ["1mbps", "2mbps"]
        flows.0.count = [1, 2, 3]
        seeds = 2
    "#;
    let sweep = read("sweep", text, &[]).sweep;
    let cells: Vec<_> =
        sweep.cells(7).map(|cell| cell.overrides.iter().map(|it| it.text.clone()).collect::<Vec<_>>()).collect();
    assert_eq!(cells.len(), 12);
    assert_eq!(cells[0], ["link.rate=\"1mbps\"", "flows.0.count=1", "seed=7"]);
    assert_eq!(cells[1], ["link.rate=\"1mbps\"", "flows.0.count=1", "seed=8"]);
    assert_eq!(cells[2], ["link.rate=\"1mbps\"", "flows.0.count=2", "seed=7"]);
    assert_eq!(cells[11], ["link.rate=\"2mbps\"", "flows.0.count=3", "seed=8"]);
    let one = read("one", "[[flows]]", &[]).sweep;
    assert!(one.is_empty());
    assert_eq!(one.cells(1).map(|cell| cell.overrides).collect::<Vec<_>>(), [Vec::new()]);
}

#[test]
fn options_add_lists_to_a_sweep_and_replace_those_of_the_file() {
    let text = r#"
        [[flows]]
        [sweep]
        "link.rate" = ["1mbps", "2mbps"]
        flows.0.count = [1, 2, 3]
    "#;
    let lists = |text: &str, changes: &[&str]| {
        read("sweep", text, &changes.iter().copied().map(Override::sweep).collect::<Vec<_>>()).sweep.values
    };
    let list = |path: &str, values: &[&str]| (path.to_owned(), values.iter().map(|it| (*it).to_owned()).collect());
    let changes =
        ["flows.0.count=4", "link.delay=1ms, 2ms", "link.discipline={ codel = { target = \"1ms\", ecn = true } },pie"];
    assert_eq!(
        lists(text, &changes),
        [
            list("link.rate", &["\"1mbps\"", "\"2mbps\""]),
            list("flows.0.count", &["4"]),
            list("link.delay", &["\"1ms\"", "\"2ms\""]),
            list("link.discipline", &["{ \"codel\" = { \"target\" = \"1ms\", \"ecn\" = true } }", "\"pie\""]),
        ]
    );
    assert_eq!(lists("[[flows]]", &["link.rate=5mbps"]), [list("link.rate", &["\"5mbps\""])]);
    let none = read("sweep", text, &[Override::sweep("flows.0.count=4"), Override::new("sweep={}")]);
    assert!(none.sweep.is_empty());
}

#[test]
fn overrides_change_one_value() {
    let text = r#"
        [link]
        discipline = "pie"
        [[flows]]
        name = "a"
        [[flows]]
        name = "b"
    "#;
    let with = |changes: &[&str]| read("test", text, &changes.iter().copied().map(Override::new).collect::<Vec<_>>());
    let counts = |changes: &[&str]| with(changes).flows.iter().map(|flows| flows.count).collect::<Vec<_>>();
    assert_eq!(counts(&["flows.0.count=3"]), [3, 1]);
    assert_eq!(counts(&["flows.b.count=3"]), [1, 3]);
    assert_eq!(counts(&["flows.*.count=3", "flows.0.count = 4"]), [4, 3]);
    assert_eq!(with(&["link.rate=1gbps"]), with(&["link.rate = \"1gbps\""]));
    assert_eq!(with(&["link.discipline=tail-drop", "link.discipline.pie.target=15ms"]), with(&[]));
    assert_ne!(with(&["link.discipline.pie.target=20ms"]), with(&[]));
    assert!(matches!(with(&["flows.a.udp=1mbps"]).flows[0].traffic, Traffic::Udp(_)));
    let capture = r#"workloads=[{ capture = { file = "x.pcap" } }]"#;
    assert!(matches!(with(&[capture]).workloads[0].arrivals, Arrivals::Capture(_)));
}

#[test]
fn a_profile_decides_what_is_not_said() {
    let text = r#"
        profile = "ns3"
        stack = { initial-window = 4 }
        [[flows]]
        [[flows]]
        profile = "linux"
        stack = { mss = 1000 }
        [[flows]]
        tcp = "dctcp"
    "#;
    let scenario = read("test", text, &[]);
    let ns3 = queuescope_tcp::TcpParams::ns3();
    assert_eq!(scenario.flows[0].stack, queuescope_tcp::TcpParams { initial_window: 4, ..ns3 });
    assert_eq!(scenario.flows[1].stack, queuescope_tcp::TcpParams { mss: 1000, ..queuescope_tcp::TcpParams::linux() });
    assert!(scenario.flows[2].stack.ecn && !scenario.flows[0].stack.ecn);
    let cubic = |profile| Traffic::Tcp(queuescope_tcp::Algorithm::Cubic.params(profile));
    assert_eq!(scenario.flows[0].traffic, cubic(queuescope_tcp::Profile::Ns3));
    assert_eq!(scenario.flows[1].traffic, cubic(queuescope_tcp::Profile::Linux));
    assert_eq!(read("again", &scenario.explain(), &[]), scenario);
}

#[test]
fn the_schema_in_the_documentation_is_current_and_admits_the_scenarios() {
    let schema = Scenario::schema();
    let kept: Value = serde_json::from_str(&common::text("docs/scenario.schema.json")).expect("it is JSON");
    assert!(
        kept == schema,
        "cargo run -p queuescope-scenario --example scenario -- schema > docs/scenario.schema.json"
    );
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    for (file, text) in common::scenarios() {
        for text in [read(&file, &text, &[]).explain(), text] {
            let errors: Vec<_> = validator.iter_errors(&json_of(&text)).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{file}: {errors:?}");
        }
    }
}

/// What editors underline: the schema refuses what it can know to be wrong.
#[test]
fn the_schema_refuses_what_is_wrong() {
    let validator = jsonschema::validator_for(&Scenario::schema()).expect("the schema is one");
    for text in [
        "sead = 1",
        "duration = 30",
        "duration = \"30\"",
        "[link]\nrate = \"10MB/s\"",
        "[link]\nrate = \"1mbps\"\ntrace = \"x\"",
        "[link]\ndiscipline = \"cake\"",
        "[link.discipline.pie]\ntraget = \"1ms\"",
        "[[flows]]\ncount = 0",
        "[[flows]]\ntcp = \"cubic\"\nudp = \"1mbps\"",
        "[[workloads]]",
        "[[wires]]\nfrom = \"a\"",
    ] {
        assert!(!validator.is_valid(&json_of(text)), "{text}");
    }
}

#[test]
fn the_reference_in_the_documentation_is_current() {
    let page = common::text("docs/scenarios.md");
    let kept = page.split("<!-- reference -->\n").nth(1).expect("the page has the reference between two marks");
    assert!(
        kept.trim() == Scenario::reference().trim(),
        "cargo run -p queuescope-scenario --example scenario -- reference, between the two marks of docs/scenarios.md"
    );
}

fn json_of(text: &str) -> Value {
    fn table(table: &DeTable<'_>) -> Value {
        Value::Object(
            table.iter().map(|(key, it)| (key.get_ref().to_string(), value(it.get_ref()))).collect::<Map<_, _>>(),
        )
    }
    fn value(it: &DeValue<'_>) -> Value {
        match it {
            DeValue::String(text) => json!(text),
            DeValue::Integer(number) => json!(number.as_str().replace('_', "").parse::<i64>().expect("it is small")),
            DeValue::Float(number) => json!(number.as_str().replace('_', "").parse::<f64>().expect("it is a number")),
            DeValue::Boolean(truth) => json!(truth),
            DeValue::Datetime(time) => json!(time.to_string()),
            DeValue::Array(items) => Value::Array(items.iter().map(|item| value(item.get_ref())).collect()),
            DeValue::Table(it) => table(it),
        }
    }
    table(DeTable::parse(text).expect("it is TOML").get_ref())
}
