//! The scenarios of the repository, and the outputs that follow from the list of keys.

use crate::common;
use queuescope_queue::PipelineParams;
use queuescope_scenario::{Arrivals, Capacity, Override, Scenario, Traffic};
use queuescope_wire::{Nanos, Rate};
use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

fn read(name: &str, text: &str, overrides: &[Override]) -> Scenario {
    Scenario::parse(name, text, overrides).unwrap_or_else(|error| panic!("{name}:\n{error}"))
}

#[test]
fn each_scenario_is_valid_and_described() {
    let scenarios = common::scenarios();
    assert!(scenarios.len() >= 12);
    for (file, text) in scenarios {
        let scenario = read(&file, &text, &[]);
        assert_eq!(scenario.name, file);
        assert!(
            !scenario.about.is_empty() && text.contains("# Look at "),
            "{file} lacks `about` or a comment 'Look at'"
        );
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
fn overrides_in_comments_are_valid() {
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
fn an_explained_scenario_reads_back_as_the_same() {
    for (file, text) in common::scenarios() {
        let scenario = read(&file, &text, &[]);
        let explained = scenario.explain();
        let again = read(&format!("{file}, explained"), &explained, &[]);
        assert_eq!(again, scenario, "{file}");
        assert_eq!(again.explain(), explained, "{file}");
        // The same values without descriptions, which other versions word differently.
        let canonical = scenario.canonical();
        assert_eq!(read(&format!("{file}, canonical"), &canonical, &[]), scenario);
        assert!(canonical.contains("\nseed = ") && !canonical.contains("random numbers"), "{canonical}");
    }
}

/// Inherited values are comments, so an override has the same effect on the explained scenario as on the file.
#[test]
fn overrides_have_the_same_effect_on_an_explained_scenario() {
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
fn each_variant_of_a_sweep_is_valid() {
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
fn a_sweep_has_each_combination_with_each_seed() {
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
fn options_add_lists_to_a_sweep_or_replace_those_of_the_file() {
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

/// If keys exclude each other, the last override holds. The test covers all such keys.
#[test]
fn an_override_replaces_keys_that_it_excludes() {
    let text = r#"
        [link]
        rate = "10mbps"
        [link.discipline.codel]
        target = "1ms"
        [[flows]]
        name = "a"
        tcp = "cubic"
        [[flows]]
        udp = { rate = "1mbps", packet = "400B" }
        [[workloads]]
        [workloads.poisson]
        rate = "9/s"
        sizes = [["1kB", 0.5], ["2kB", 1.0]]
    "#;
    // The overrides must have the same effect as editing the file.
    let same = |changes: &[&str], from: &str, to: &str| {
        let overrides: Vec<_> = changes.iter().copied().map(Override::new).collect();
        assert!(text.contains(from), "{from}");
        let expected = read("other", &text.replace(from, to), &[]);
        let changed = read("test", text, &overrides);
        assert_eq!(changed, expected, "{changes:?}");
        assert_eq!(read("explained", &changed.explain(), &[]), expected, "{changes:?}");
        assert_ne!(changed, read("test", text, &[]), "{changes:?}");
        changed.explain()
    };
    let rate = "rate = \"10mbps\"\n";
    let explained = same(&["link.trace=lte.trace"], rate, "trace = \"lte.trace\"\n");
    assert!(explained.contains("trace = \"lte.trace\"") && !explained.contains("rate = \"10mbps\""), "{explained}");
    same(&["link.trace=lte.trace", "link.rate=2mbps"], rate, "rate = \"2mbps\"\n");
    same(&["link.rate=2mbps", "link.trace=lte.trace"], rate, "trace = \"lte.trace\"\n");
    let (tcp, udp) = ("tcp = \"cubic\"", "udp = { rate = \"1mbps\", packet = \"400B\" }");
    same(&["flows.0.udp=3mbps"], tcp, "udp = \"3mbps\"");
    same(&["flows.a.udp.rate=3mbps", "flows.a.udp.packet=100B"], tcp, "udp = { rate = \"3mbps\", packet = \"100B\" }");
    same(&["flows.1.tcp=bbr"], udp, "tcp = \"bbr\"");
    same(&["flows.1.tcp.cubic.beta=0.5"], udp, "tcp = { cubic = { beta = 0.5 } }");
    same(&["flows.1.tcp=newreno", "flows.1.tcp=cubic"], udp, tcp);
    let poisson = "[workloads.poisson]\n        rate = \"9/s\"\n        sizes = [[\"1kB\", 0.5], [\"2kB\", 1.0]]";
    let sizes = "sizes = [[\"1kB\", 0.5], [\"2kB\", 1.0]]";
    same(&["workloads.0.incast={}"], poisson, "incast = {}");
    same(&["workloads.0.bursts.packets=7"], poisson, "bursts = { packets = 7 }");
    same(&["workloads.0.datagrams.load=0.3"], poisson, "datagrams = { load = 0.3 }");
    same(&["workloads.0.capture.file=x.pcap"], poisson, "capture = { file = \"x.pcap\" }");
    same(&["workloads.0.incast={}", "workloads.0.poisson.rate=5/s"], poisson, "poisson = { rate = \"5/s\" }");
    same(&["workloads.0.poisson.load=0.5"], "rate = \"9/s\"", "load = 0.5");
    same(&["workloads.0.poisson.sizes=web-rack"], sizes, "sizes = \"web-rack\"");
    let lognormal = "sizes = { mean = \"3kB\", median = \"1kB\" }";
    same(&["workloads.0.poisson.sizes.mean=3kB", "workloads.0.poisson.sizes.median=1kB"], sizes, lognormal);
    let codel = "[link.discipline.codel]\n        target = \"1ms\"";
    same(&["link.discipline.pie.target=1ms"], codel, "[link.discipline.pie]\n        target = \"1ms\"");
    same(&["link.discipline.codel.interval=70ms"], codel, &format!("{codel}\n        interval = \"70ms\""));
    same(&["topology.parking-lot.hops=2", "topology=dumbbell", "link.discipline=red"], codel, "discipline = \"red\"");
    // A program needs tail drop.
    same(&["link.pipeline=pie-cp"], codel, "pipeline = \"pie-cp\"");
    same(&["link.pipeline.pie-cp.target=1ms"], codel, "pipeline = { pie-cp = { target = \"1ms\" } }");
    same(&["link.pipeline=pie-cp", "link.discipline=red"], codel, "discipline = \"red\"");
    same(&["link.pipeline=none", "link.discipline=tail-drop"], codel, "");
    same(&["link.pipeline=pie-cp", "link.discipline=tail-drop"], codel, "pipeline = \"pie-cp\"");
    same(&["link.pipeline.pie-cp={}", "link.pipeline=none"], codel, "");
}

/// With `*`, a key of TCP flows does not change UDP flows, in one run and in a sweep.
#[test]
fn an_override_of_all_elements_skips_those_with_an_excluded_key() {
    let text = r#"
        [link]
        [[flows]]
        name = "default"
        [[flows]]
        name = "tcp"
        tcp = "newreno"
        [[flows]]
        name = "udp"
        udp = "1mbps"
        [[workloads]]
        poisson = { rate = "9/s" }
        [[workloads]]
        poisson = { load = 0.25 }
        [[workloads]]
        incast = {}
        [sweep]
        "flows.*.tcp" = ["bbr", "illinois"]
    "#;
    // The override must have the same effect as one override for each element.
    let same = |all: &str, each: &[&str]| {
        let each: Vec<_> = each.iter().copied().map(Override::new).collect();
        let expected = read("each", text, &each);
        assert_eq!(read("all", text, &[Override::new(all)]), expected, "{all}");
        let explained = read("test", text, &[]).explain();
        assert_eq!(read("explained", &explained, &[Override::new(all)]), expected, "{all}");
        assert_ne!(expected, read("test", text, &[]), "{all}");
    };
    same("flows.*.tcp=bbr", &["flows.default.tcp=bbr", "flows.tcp.tcp=bbr"]);
    same("flows.*.tcp.bbr.rtt-window=5s", &["flows.0.tcp.bbr.rtt-window=5s", "flows.1.tcp.bbr.rtt-window=5s"]);
    same("flows.*.udp=3mbps", &["flows.udp.udp=3mbps"]);
    same("flows.*.udp.packet=100B", &["flows.udp.udp.packet=100B"]);
    same("workloads.*.poisson.load=0.5", &["workloads.1.poisson.load=0.5"]);
    same(
        "workloads.*.poisson.sizes=web-rack",
        &["workloads.0.poisson.sizes=web-rack", "workloads.1.poisson.sizes=web-rack"],
    );
    same("workloads.*.incast.bytes=7kB", &["workloads.2.incast.bytes=7kB"]);
    let cells: Vec<_> = read("sweep", text, &[]).sweep.cells(1).collect();
    for (cell, name) in cells.iter().zip(["bbr", "illinois"]) {
        let flows = read("cell", text, &cell.overrides).flows;
        let tcp = |n: usize| match &flows[n].traffic {
            Traffic::Tcp(params) => params.algorithm().to_string(),
            Traffic::Udp(_) => "udp".to_owned(),
        };
        assert_eq!([tcp(0), tcp(1), tcp(2)], [name, name, "udp"]);
    }
    assert_eq!(cells.len(), 2);

    // A link of a graph inherits from `[link]`.
    let wires = r#"
        topology = "graph"
        link = { trace = "x" }
        wires = [{ from = "a", to = "b" }, { from = "b", to = "c", trace = "y" }, { from = "c", to = "d", rate = "1mbps" }]
        flows = [{ from = "a", to = "d" }]
    "#;
    let capacities = |change: &str| {
        let wires = read("wires", wires, &[Override::new(change)]).wires;
        wires.into_iter().map(|wire| wire.link.capacity).collect::<Vec<_>>()
    };
    let (rate, trace) = (Capacity::Rate, |path: &str| Capacity::Trace(path.to_owned()));
    let mbps = |rate: u64| Rate::from_bits_per_second(rate * 1_000_000).unwrap();
    assert_eq!(capacities("wires.*.rate=2mbps"), [rate(mbps(2)), trace("y"), rate(mbps(2))]);
    assert_eq!(capacities("wires.*.trace=z"), [trace("z"), trace("z"), rate(mbps(1))]);
}

/// An override of a wire also replaces keys that the wire inherits from `[link]`.
#[test]
fn an_override_of_a_wire_replaces_inherited_keys() {
    let text = r#"
        topology = "graph"
        link = { pipeline = "abc", trace = "x" }
        wires = [{ from = "a", to = "b" }, { from = "b", to = "c" }]
        flows = [{ from = "a", to = "c" }]
    "#;
    let changes = ["wires.1.discipline=codel", "wires.0.rate=1mbps"].map(Override::new);
    let scenario = read("test", text, &changes);
    assert_eq!(read("explained", &scenario.explain(), &[]), scenario);
    let [first, second] = [0, 1].map(|n: usize| &scenario.wires[n].link);
    assert!(first.pipeline.is_some() && second.pipeline.is_none());
    assert_eq!((first.discipline.name(), second.discipline.name()), ("tail-drop", "codel"));
    assert!(matches!((&first.capacity, &second.capacity), (Capacity::Rate(_), Capacity::Trace(_))));
}

#[test]
fn programs_are_explained_with_their_lists() {
    let text = r#"
        topology = "graph"
        [link.pipeline.conquest-aqm]
        changes = [{ at = "1s", tau = "1ms" }, { at = "2s", threshold = 7 }]
        [[wires]]
        from = "a"
        to = "b"
        [[wires]]
        from = "b"
        to = "c"
        pipeline = { abc = { surcharges = [0.0, 1.5] } }
        [[flows]]
        from = "a"
        to = "c"
    "#;
    let scenario = read("test", text, &[]);
    assert_eq!(read("explained", &scenario.explain(), &[]), scenario);
    let explained = scenario.explain();
    assert!(explained.contains("[[link.pipeline.conquest-aqm.changes]]\n"), "{explained}");
    assert!(explained.contains("surcharges = [0.0, 1.5]"), "{explained}");
    let change = Override::new("link.pipeline.conquest-aqm.changes.1.at=3s");
    assert_eq!(read("test", &explained, std::slice::from_ref(&change)), read("test", text, &[change]));
}

#[test]
fn changes_of_a_program_may_be_at_the_same_time() {
    let text = r#"
        [link.pipeline.conquest-aqm]
        changes = [{ at = "1s", tau = "1ms" }, { at = "1s", tau = "3ms" }, { at = "2s", threshold = 7 }]
        [[flows]]
    "#;
    let Some(PipelineParams::ConQuestAqm(params)) = read("test", text, &[]).link.pipeline else {
        panic!("the link has no ConQuest AQM")
    };
    assert_eq!(params.changes.iter().map(|change| change.at.0 / 1_000_000_000).collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!(params.changes[1].tau, Some(Nanos(3_000_000)));
}

/// It is an error if two keys exclude each other in a file, in one override, or in two lists of a sweep.
#[test]
fn two_values_for_one_setting_are_an_error() {
    let messages = |text: &str, changes: &[Override]| {
        let error = Scenario::parse("test", text, changes).unwrap_err();
        error.messages().map(str::to_owned).collect::<Vec<_>>()
    };
    let both = "only one of `rate`, `trace` is allowed";
    assert_eq!(messages("link = { rate = \"1mbps\", trace = \"x\" }\n[[flows]]", &[]), [both]);
    assert_eq!(messages("[[flows]]", &[Override::new("link={ rate = \"1mbps\", trace = \"x\" }")]), [both]);

    let text = r#"
        [[flows]]
        [sweep]
        "link.rate" = ["1mbps", "2mbps"]
        "link.trace" = ["x"]
    "#;
    let scenario = read("sweep", text, &[]);
    for cell in scenario.sweep.cells(1) {
        assert_eq!(messages(text, &cell.overrides), ["two lists of the sweep set the same value"]);
    }
    // Two names for one value, or names that overlap, are errors too.
    for (one, other) in [
        (r#""flows.0.count" = [1, 2]"#, r#""flows.bulk.count" = [3, 4]"#),
        (r#""flows.*.count" = [1, 2]"#, r#""flows.bulk.count" = [3, 4]"#),
        (r#""link.discipline" = ["codel"]"#, r#""link.discipline.pie.target" = ["5ms"]"#),
        (r#""link.discipline.pie.target" = ["5ms"]"#, r#""link.discipline" = ["pie"]"#),
    ] {
        let text = format!("[[flows]]\nname = \"bulk\"\n[sweep]\n{one}\n{other}");
        for cell in read("sweep", &text, &[]).sweep.cells(1) {
            assert_eq!(messages(&text, &cell.overrides), ["two lists of the sweep set the same value"], "{text}");
        }
    }
    let text_of_both = r#"
        [[flows]]
        [sweep]
        "link.discipline" = ["pie"]
        "link.discipline.pie.target" = ["5ms", "10ms"]
    "#;
    for cell in read("sweep", text_of_both, &[]).sweep.cells(1) {
        read("sweep", text_of_both, &cell.overrides);
    }
    // A list replaces the value of the file or of another override.
    let text = text.replace("\"link.trace\" = [\"x\"]", "");
    for cell in read("sweep", &text, &[]).sweep.cells(1) {
        let overrides: Vec<_> = [Override::new("link.trace=x")].into_iter().chain(cell.overrides).collect();
        assert!(matches!(read("sweep", &text, &overrides).link.capacity, Capacity::Rate(_)));
    }
    // A neutral value replaces nothing.
    let text = r#"
        [[flows]]
        [sweep]
        "link.discipline" = ["tail-drop", "codel"]
        "link.pipeline" = ["none", "pie-cp"]
    "#;
    let rejected = |cell: &queuescope_scenario::Cell| Scenario::parse("sweep", text, &cell.overrides).is_err();
    let cells: Vec<_> = read("sweep", text, &[]).sweep.cells(1).collect();
    assert_eq!(cells.iter().map(rejected).collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn a_profile_decides_the_defaults() {
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
    let (schema, file) = (Scenario::schema(), "docs/scenario.schema.json");
    common::update(file, || format!("{schema:#}\n"));
    let kept: Value = serde_json::from_str(&common::text(file)).expect("it is JSON");
    assert!(kept == schema, "{file} is out of date: UPDATE_GOLDEN=1 updates it");
    let validator = jsonschema::validator_for(&schema).expect("the schema is valid");
    for (file, text) in common::scenarios() {
        for text in [read(&file, &text, &[]).explain(), text] {
            let errors: Vec<_> = validator.iter_errors(&json_of(&text)).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{file}: {errors:?}");
        }
    }
}

/// The errors that the schema can detect, and that editors underline.
#[test]
fn the_schema_rejects_invalid_scenarios() {
    let validator = jsonschema::validator_for(&Scenario::schema()).expect("the schema is valid");
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
    const MARK: &str = "<!-- reference -->\n";
    let file = "docs/reference/scenario-keys.md";
    let page = common::text(file);
    let [before, _, after] = page.split(MARK).collect::<Vec<_>>()[..] else {
        panic!("the page has the reference between two marks");
    };
    let now = format!("{before}{MARK}\n{}\n\n{MARK}{after}", Scenario::reference().trim());
    common::update(file, || now.clone());
    assert!(common::text(file) == now, "{file} is out of date: UPDATE_GOLDEN=1 updates it");
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

#[test]
fn digits_of_an_override_may_be_grouped() {
    for rate in ["10_000kbps", "10000kbps", "1_0.0mbps"] {
        let scenario = read("grouped", "[[flows]]", &[Override::new(format!("link.rate={rate}"))]);
        assert_eq!(scenario.link.capacity, Capacity::Rate(Rate::from_bits_per_second(10_000_000).unwrap()), "{rate}");
    }
}
