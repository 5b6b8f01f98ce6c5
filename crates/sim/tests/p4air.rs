//! P4air in scenarios.
use queuescope_queue::AnyPipeline;
use queuescope_scenario::{Override, Scenario};
use queuescope_sim::{Files, build};

const ONE: &str = r#"
duration = "45s"
access = { rate = "1gbps", delay = "1ms" }
[link]
rate = "12mbps"
delay = "10ms"
limit = "100packets"
[link.pipeline.p4air]
actions = { delay-based = "nothing", loss-delay = "nothing", loss-based = "nothing", model-based = "nothing" }
[[flows]]
tcp = "cubic"
rtt = "100ms"
"#;

#[test]
#[ignore]
fn explore() {
    let extra: Vec<String> =
        std::env::var("P4SET").unwrap_or_default().split(';').filter(|s| !s.is_empty()).map(str::to_owned).collect();
    let ccs = std::env::var("P4CC").unwrap_or("newreno,cubic,illinois,vegas,bbr".into());
    for cc in ccs.split(',') {
        let mut ends = std::collections::BTreeMap::new();
        let mut lines = Vec::new();
        for rtt in (50..=150).step_by(10) {
            for seed in 1..=std::env::var("P4SEEDS").map_or(1, |s| s.parse().unwrap()) {
                let mut changes = vec![
                    format!("flows.0.tcp=\"{cc}\""),
                    format!("flows.0.rtt=\"{rtt}ms\""),
                    format!("seed={seed}"),
                    format!("duration=\"{}ms\"", rtt * 400),
                ];
                changes.extend(extra.iter().cloned());
                let overrides: Vec<_> = changes.iter().map(|c| Override::new(c)).collect();
                let scenario = Scenario::parse("test", ONE, &overrides).unwrap_or_else(|error| panic!("{error}"));
                let mut built = build(&scenario, &Files::default()).unwrap();
                built.simulation.run_until(scenario.duration, &mut ());
                let Some(AnyPipeline::P4air(program)) = built.simulation.program(built.meters[0]) else { panic!() };
                let moves: Vec<_> = program.moves().iter().map(|m| format!("{}@{}", m.to.name(), m.round)).collect();
                let end = program.moves().last().map(|m| m.to.name()).unwrap_or("mouse");
                *ends.entry(end).or_insert(0) += 1;
                lines.push(format!("   {rtt} ms: {}", moves.join(" ")));
            }
        }
        println!("{cc}: {ends:?}");
        for l in lines {
            println!("{l}");
        }
    }
}
