//! The printed programs through the compiler p4c and the switch BMv2, where they are installed: `QUEUESCOPE_P4C` and
//! `QUEUESCOPE_SIMPLE_SWITCH` name them if they are not on `PATH`. As root.

#![allow(clippy::disallowed_methods, reason = "the tests run other programs, on files that they write")]

use crate::bmv2::{compile, installed, replay, tools};
use queuescope_p4::algorithms::{
    AbcCoreParams, AbcEdgeParams, ConQuestLegacyParams, abc_core_with, abc_edge_with, abc_strip_with,
    conquest_defaults, conquest_legacy_with, conquest_stands_defaults, conquest_stands_with, conquest_with, executable,
    p4air_with, printqueue_monitor_with, printqueue_windows_with,
};
use queuescope_p4::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Architecture, Builder, Comparison, Condition, Input,
    Operation, RegisterAction, RegisterArray, SwitchProgram, Trace, Unit, Variable, When, print, refusal,
};
use queuescope_queue::{
    ActAt, ConQuestAqmParams, FlowLimit, FlowTable, GroupActions, HeldAction, HoldParams, P4airParams, SwitchAqmParams,
    SwitchAverage, SwitchP4airParams,
};
use queuescope_sketch::{CellWindowsParams, ConQuestParams, DepthStackParams, FingerprintParams, TappedConQuestParams};
use queuescope_wire::Nanos;
use std::path::Path;
use std::process::Command;

fn has_tofino(p4c: &Path) -> bool {
    let help = Command::new(p4c).arg("--target-help").output().expect("it starts");
    String::from_utf8_lossy(&help.stdout).contains("tofino")
}

#[test]
fn programs_compile_without_a_warning() {
    let test = "programs_compile_without_a_warning";
    let Some(p4c) = installed(test, "QUEUESCOPE_P4C", "p4c") else { return };
    for program in executable().expect("the defaults fit") {
        for architecture in Architecture::ALL {
            if let Some(why) = refusal(&program, architecture) {
                println!("not for {}: {}: {why}", architecture.name(), program.name());
                continue;
            }
            // Distributions have the compiler without the back end for Tofino.
            if architecture == Architecture::Tna && !has_tofino(&p4c) {
                println!("skipped: {test}: {} for Tofino: the compiler has no back end for it", program.name());
                continue;
            }
            let folder = tempfile::tempdir().expect("there is room");
            let printed = compile(&p4c, folder.path(), program.name(), &print(&program, architecture), architecture);
            // The compiler for Tofino also warns of parser states of its own.
            let of_ours = |line: &str| line.contains("warning") && line.contains(".p4(");
            assert!(!printed.lines().any(of_ours), "{} for {}: {printed}", program.name(), architecture.name());
        }
    }
}

/// A program with every operation, comparison and kind of register action, also those that no algorithm has yet.
fn everything() -> SwitchProgram {
    let mut p = Builder::new("everything", "", "");
    let port = p.input(Input::Port).slice(0, 2);
    let (early, late) = (p.input(Input::Enqueued).slice(0, 32), p.input(Input::Dequeued).slice(3, 32));
    let ecn = p.input(Input::Ecn);
    let random = p.compute("drawn", 32, Unit::Number, Operation::Random);
    let a = p.compute("a", 32, Unit::Number, Operation::Copy(early));
    let b = p.compute("b", 32, Unit::Number, Operation::Copy(late));
    let operations = [
        ("add", Operation::Add(a.into(), b.into())),
        ("add_saturating", Operation::AddSaturating(a.into(), random.into())),
        ("subtract", Operation::Subtract(a.into(), b.into())),
        ("subtract_saturating", Operation::SubtractSaturating(a.into(), b.into())),
        ("subtract_signed", Operation::SubtractSigned(a.into(), random.into())),
        ("least", Operation::Minimum(a.into(), random.slice(4, 20))),
        ("most", Operation::Maximum(b.into(), 0x1234_5678.into())),
        ("both", Operation::And(a.into(), random.into())),
        ("any", Operation::Or(b.into(), 0xf0f0.into())),
        ("one_of", Operation::Xor(a.into(), random.into())),
        ("left", Operation::ShiftLeft(random.slice(0, 12), 25)),
        ("right", Operation::ShiftRight(random.into(), 13)),
        ("gathered", Operation::Gather(random.slice(3, 10), 20)),
    ];
    let results = operations.map(|(name, operation)| p.compute(name, 32, Unit::Number, operation));
    let mix = p.variable("mix", 32, Unit::Number);
    for (number, result) in results.into_iter().enumerate() {
        let comparison = COMPARISONS[number % COMPARISONS.len()];
        let other = results[(number + 3) % results.len()];
        p.choose(
            Condition::Any(vec![
                Condition::compare(result, comparison, other),
                Condition::All(vec![
                    Condition::compare(ecn, Comparison::Equal, 2),
                    Condition::compare(result.slice(7, 9), comparison, 200),
                ]),
            ]),
            |p| p.set(mix, Operation::Add(mix.into(), result.into())),
            |p| p.set(mix, Operation::Xor(mix.into(), 0x9e37_79b9.into())),
        );
    }
    for (number, action) in actions(mix).into_iter().enumerate() {
        let register = RegisterArray {
            name: format!("word_{number}").into(),
            about: "A word".into(),
            bits: 32,
            unit: Unit::Number,
            entries: 4,
            initial: [0, 1, 0x8000_0000][number % 3],
        };
        let bits = if matches!(action.output, AluOutput::Condition(_)) { 1 } else { 32 };
        let result = p.variable(format!("returned_{number}"), bits, Unit::Number);
        let register = p.register(register);
        p.access(register, port, action, Some(result));
        p.set(mix, Operation::Add(mix.into(), result.into()));
    }
    p.when(Condition::compare(mix.slice(0, 1), Comparison::Equal, 1), Builder::drop_packet);
    p.when(Condition::compare(mix.slice(1, 2), Comparison::Equal, 1), Builder::mark_packet);
    p.build().expect("it is valid")
}

const COMPARISONS: [Comparison; 6] = [
    Comparison::Equal,
    Comparison::NotEqual,
    Comparison::Less,
    Comparison::LessOrEqual,
    Comparison::Greater,
    Comparison::GreaterOrEqual,
];

/// Actions with every expression, with updates that overlap, and with conditions on the word that an update changes.
fn actions(value: Variable) -> [RegisterAction; 8] {
    let (word, value) = (AluTerm::Word, AluTerm::Value(value.into()));
    let condition = |left, comparison, right| AluCondition { left, comparison, right };
    let below = condition(AluExpression::Subtract(value, word), Comparison::Less, AluTerm::Value(0x4000_0000.into()));
    let small = condition(AluExpression::Term(word), Comparison::LessOrEqual, value);
    let update = |when, value| AluUpdate { when, value };
    let action = |name: &'static str, conditions: &[AluCondition], updates: &[AluUpdate], output| RegisterAction {
        name: name.into(),
        conditions: conditions.to_vec(),
        updates: updates.to_vec(),
        output,
    };
    let (add, subtract) = (AluExpression::Add(word, value), AluExpression::Subtract(word, value));
    let (up, down) = (AluExpression::AddSaturating(word, value), AluExpression::SubtractSaturating(word, value));
    [
        action(
            "first_of_two",
            &[below],
            &[update(When::Holds(0), add), update(When::Always, subtract)],
            AluOutput::After,
        ),
        action(
            "of_the_word",
            &[small],
            &[update(When::Holds(0), up), update(When::Fails(0), down)],
            AluOutput::Condition(0),
        ),
        action(
            "fails_first",
            &[small, below],
            &[update(When::Fails(0), add), update(When::Holds(1), up)],
            AluOutput::Condition(1),
        ),
        action("signed", &[], &[update(When::Always, AluExpression::AddSigned(word, value))], AluOutput::Before),
        action("only_read", &[below], &[], AluOutput::Condition(0)),
        action("keeps", &[below], &[update(When::Fails(0), AluExpression::Term(value))], AluOutput::Before),
        action("computes", &[], &[], AluOutput::Computed(AluExpression::Subtract(value, word))),
        action("averages", &[], &[update(When::Always, AluExpression::MoveTowards(value, 5))], AluOutput::After),
    ]
}

/// ConQuest beside a router, with few places, short windows and a low threshold.
fn legacy() -> SwitchProgram {
    let usual = ConQuestLegacyParams::default();
    let sketch = ConQuestParams { window: Nanos(1 << 17), ..usual.tapped.sketch.clone() };
    let tapped = TappedConQuestParams { sketch, slots: 1 << 10, threshold: 6_000, ..usual.tapped };
    conquest_legacy_with(&ConQuestLegacyParams { tapped, ..usual }).expect("it fits")
}

/// ABC where two ports are on the other side of the domain's border, and a host has a contract.
fn abc() -> [SwitchProgram; 5] {
    let ports = vec![1, 3];
    let contracts = vec![(0x0a00_0001, "40kbps".parse().expect("a rate"))];
    let core = |average| {
        let aqm = SwitchAqmParams { average, ..SwitchAqmParams::default() };
        abc_core_with(&AbcCoreParams { aqm, outside: ports.clone() })
    };
    [
        abc_edge_with(&AbcEdgeParams { contracts, inside: ports.clone(), ..AbcEdgeParams::default() }),
        abc_edge_with(&AbcEdgeParams { aqm: Some(SwitchAqmParams::default()), ..AbcEdgeParams::default() }),
        core(SwitchAverage::MEAN),
        core(SwitchAverage::MEDIAN),
        abc_strip_with(&ports),
    ]
    .map(|program| program.expect("it fits"))
}

/// P4air with few entries, so that flows share some, and short delays and round-trip times, so that much happens.
pub fn p4air(actions: GroupActions) -> SwitchProgram {
    let table = FlowTable::Hashed { entries: 128, seed: 0 };
    let fingerprint = FingerprintParams { default_rtt: Nanos(200_000), ..FingerprintParams::default() };
    let p4air = P4airParams { table, fingerprint, delay_passes: 2, actions, ..P4airParams::default() };
    p4air_with(&SwitchP4airParams { p4air, ..SwitchP4airParams::default() }).expect("a switch can have these")
}

/// All programs but that beside a router, with parameters with which they act on packets that are far apart, and one with every operation.
pub fn programs() -> Vec<SwitchProgram> {
    let limit = HeldAction::Limit(FlowLimit { interval: Nanos(3_000_000), burst: 2 });
    let actions = [HeldAction::Respond, HeldAction::Drop, limit, HeldAction::Reroute];
    let held = actions.map(|action| ActAt::Ingress(HoldParams { registers: 16, action, ..HoldParams::default() }));
    let conquest = [ActAt::Egress].into_iter().chain(held).map(|act_at| {
        conquest_with(&ConQuestAqmParams { threshold: 3.0, act_at, ..conquest_defaults() }).expect("it fits")
    });
    let stands = conquest_stands_with(&conquest_stands_defaults(), 12).expect("it fits");
    // Packets are far apart, and the queue is long.
    let cells = CellWindowsParams { cell_bits: 16, index_bits: 2, alpha: 1, windows: 4 };
    let steps = DepthStackParams { step_bits: 4, ..DepthStackParams::default() };
    let printqueue = [printqueue_windows_with(&cells, 0), printqueue_monitor_with(&steps, 0)];
    let printqueue = printqueue.map(|program| program.expect("it fits"));
    let is_default = |program: &SwitchProgram| {
        !["conquest", "abc", "p4air", "printqueue"].iter().any(|name| program.name().starts_with(name))
    };
    let programs = executable().expect("the defaults fit").into_iter().filter(is_default);
    programs
        .chain(conquest)
        .chain([stands])
        .chain(abc())
        .chain(printqueue)
        .chain([p4air(GroupActions::default()), everything()])
        .collect()
}

/// `QUEUESCOPE_PACKETS=100000` sends as many packets through each program.
#[test]
fn bmv2_does_what_the_interpreter_does() {
    let test = "bmv2_does_what_the_interpreter_does";
    let Some(tools) = tools(test) else { return };
    for program in programs() {
        let count = crate::packets().min(100_000);
        let trace = Trace::new(&program, 1, count);
        let chosen = trace.dropped + trace.marked;
        // The control plane writes PIE_CP's probability, so that it is zero here. PrintQueue lets all packets pass.
        let passes = program.name() == "pie-cp" || program.name().starts_with("printqueue");
        let acts = passes || (count / 100..count - count / 500).contains(&chosen);
        assert!(acts, "{}: {chosen} of {count} packets are dropped or marked", program.name());
        replay(&tools, &program, &trace);
    }
}

/// The same beside a router, whose packets are reported.
#[test]
fn bmv2_does_what_the_interpreter_does_beside_a_router() {
    let Some(tools) = tools("bmv2_does_what_the_interpreter_does_beside_a_router") else { return };
    let (program, count) = (legacy(), crate::packets().min(100_000));
    let trace = Trace::new(&program, 1, count);
    let acts = (count / 100..count / 2).contains(&trace.reported) && trace.dropped + trace.marked == 0;
    assert!(acts, "{} of {count} packets are reported", trace.reported);
    replay(&tools, &program, &trace);
}
