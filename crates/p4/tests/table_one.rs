//! Table I of Kunze et al., cell by cell, table III's stages, and what flips a verdict.

use queuescope_p4::algorithms::{
    Dimensions, Snapshots, all, codel, conquest_at_ingress, ecn_sharp, egress_pi, executable, pie, pie_cp, pie_dp,
    pie_table, red,
};
use queuescope_p4::ir::{Architecture, refusal};
use queuescope_p4::{Aspect, Fit, Grade, Gress, Micro, Program, Target};

/// The paper's rows and columns. Each cell has the grade with registers only, and the grade with special functions.
#[test]
fn every_cell_of_the_papers_table() {
    use Grade::{Feasible as Yes, Infeasible as No, Workaround as Ring};
    let expected = [
        (Aspect::Metric, [[No, Yes], [Yes, Yes], [Yes, Yes]]),
        (Aspect::Reaction, [[Ring, Yes], [Ring, Yes], [Ring, Ring]]),
        (Aspect::Backflow, [[No, No], [Yes, Yes], [No, No]]),
        (Aspect::Memory, [[Yes, Yes], [No, Yes], [No, No]]),
    ];
    let targets = [Target::tofino_registers_only(), Target::tofino()];
    for (aspect, row) in expected {
        for (program, cells) in [red(), codel(), pie()].iter().zip(row) {
            let verdicts = targets.each_ref().map(|target| Fit::new(program, target).verdict(aspect).clone());
            let grades = verdicts.each_ref().map(|verdict| verdict.grade);
            assert_eq!(grades, cells, "{aspect:?} of {}: {verdicts:#?}", program.name());
        }
    }
}

/// Table III has 4, 11 and 8 of 12 stages.
#[test]
fn stages_of_the_three_variants() {
    let stages = [pie_cp(), pie_dp(), pie_table()].map(|program| {
        let fit = Fit::new(&program, &Target::tofino_registers_only());
        assert_ne!(fit.grade(), Grade::Infeasible, "{}", program.name());
        fit.placement.unwrap().stages.len()
    });
    assert_eq!(stages, [3, 8, 8]);
}

/// A register that counts, and a second access to it: to the same entry after a step that its unit cannot do, or to
/// another entry.
fn counter(again: Option<Again>) -> Program {
    let mut program = Program::new("counter", "");
    let p = &mut program;
    p.at(Gress::Egress).of(Aspect::Reaction);
    let keys = [p.header("key", 16), p.header("another key", 16)];
    let count = p.register("count", 32, 1024);
    let counted = p.update(count.at(keys[0]), "count + 1", &[Micro::Update], &[]);
    let hashed = p.compute("hash of it", queuescope_p4::Op::Hash, &[counted], 32);
    match again {
        Some(Again::BehindAHash) => _ = p.write(count.at(keys[0]), "count, from the hash", &[hashed]),
        Some(Again::AtAnotherKey) => _ = p.read(count.at(keys[1]), "another count", &[]),
        None => {}
    }
    program
}

#[derive(Debug, Clone, Copy)]
enum Again {
    BehindAHash,
    AtAnotherKey,
}

#[test]
fn one_more_access_flips_one_verdict() {
    let reasons = [
        (
            Again::BehindAHash,
            "count is reached in stage 1 and again in stage 3, and has one access: a step (\"hash of it\") is between",
        ),
        (Again::AtAnotherKey, "count is reached twice, and has one access: \"another count\" is of another entry"),
    ];
    for (target, (again, reason)) in Target::all().iter().flat_map(|target| reasons.map(|reason| (target, reason))) {
        let grades = |program: &Program| Fit::new(program, target).aspects.map(|(_, verdict)| verdict.grade);
        assert_eq!(grades(&counter(None)), [Grade::Feasible; 4]);
        let [metric, reaction, backflow, memory] = grades(&counter(Some(again)));
        assert_eq!([metric, reaction, backflow], [Grade::Feasible; 3]);
        assert_eq!(memory, Grade::Infeasible);
        assert_eq!(Fit::new(&counter(Some(again)), target).verdict(Aspect::Memory).reasons, [reason]);
    }
}

/// Egress PI is designed for the plain switch. ConQuest, PrintQueue and a mark above a constant fit it too; nothing else does.
#[test]
fn what_fits_the_plain_switch() {
    let plain = Target::plain();
    let fits = |program: &Program| Fit::new(program, &plain).grade() == Grade::Feasible;
    let names: Vec<_> = all(Dimensions::default()).iter().filter(|it| fits(it)).map(Program::name).collect();
    assert_eq!(names, ["step", "egress-pi", "conquest", "conquest-stands", "printqueue-windows", "printqueue-monitor"]);
    let placement = Fit::new(&egress_pi(), &plain).placement.unwrap();
    assert_eq!((placement.stages.len(), placement.used().registers), (9, 3));
}

/// What `p4 generate` refuses for a Tofino does not fit one, and only that switch has programs. Nor does a variant of P4air without a program count as one that fits.
#[test]
fn what_is_refused_does_not_fit() {
    let programs = all(Dimensions::default());
    let refused = |target: &Target| -> Vec<_> {
        programs.iter().filter(|it| Fit::new(it, target).refused.is_some()).map(Program::name).collect()
    };
    assert_eq!(refused(&Target::tofino()), ["red-egress", "abc-core", "p4air", "p4air-by-rtt"]);
    let others = Target::all().into_iter().filter(|target| target.name != "tofino");
    assert!(others.clone().count() == 3 && others.into_iter().all(|target| refused(&target).is_empty()));
    for program in executable().expect("the defaults fit") {
        let fit = Fit::new(&program.steps(), &Target::tofino());
        assert_eq!(fit.refused, refusal(&program, Architecture::Tna), "{}", program.name());
        assert_eq!(fit.grade() == Grade::Infeasible, !fit.reasons().is_empty());
    }
}

/// ECN# was made for a Tofino (Kunze et al., section V). As for CoDel, the time of the next mark needs a root of what is in the
/// same register, and it does not fit where the register has no unit for it.
#[test]
fn ecn_sharp_fits_a_tofino() {
    let grades = |target: &Target| Fit::new(&ecn_sharp(), target).aspects.map(|(_, verdict)| verdict.grade);
    assert_eq!(grades(&Target::tofino()), [Grade::Feasible; 4]);
    let without = Target::tofino_registers_only();
    assert_eq!(grades(&without), [Grade::Feasible, Grade::Workaround, Grade::Feasible, Grade::Infeasible]);
    let fit = Fit::new(&ecn_sharp(), &without);
    let twice = "next mark is reached in stage 6 and again in stage 10, and has one access: it takes a root";
    assert_eq!(fit.verdict(Aspect::Memory).reasons, [twice]);
    let placement = Fit::new(&ecn_sharp(), &Target::tofino()).placement.unwrap();
    assert_eq!((placement.stages.len(), placement.used().registers), (7, 2));
}

/// What the switch has in addition to its stages.
#[test]
fn what_a_switch_lacks_is_reported() {
    let grade = |program: &Program, target: &Target| Fit::new(program, target).grade();
    let full = Target::tofino();
    for (program, lacking, with) in [
        (pie_cp(), Target { control_plane: false, ..full.clone() }, Grade::Workaround),
        (pie_dp(), Target { generator: false, ..full.clone() }, Grade::Feasible),
        (conquest_at_ingress(Snapshots::default()), Target { feeds_back: false, ..full.clone() }, Grade::Workaround),
    ] {
        assert_eq!(
            (grade(&program, &full), grade(&program, &lacking)),
            (with, Grade::Infeasible),
            "{}",
            program.name()
        );
    }
}

/// A product of two fields takes a table of both, if that is not too large.
#[test]
fn products_need_a_unit_or_a_table() {
    for (bits, without) in [(8, Grade::Workaround), (16, Grade::Infeasible)] {
        let mut program = Program::new("product", "");
        program.at(Gress::Egress);
        let fields = [program.header("one", bits), program.header("other", bits)];
        program.compute("product", queuescope_p4::Op::Multiply, &fields, 32);
        let grades = [Target::tofino(), Target::generous()].map(|target| Fit::new(&program, &target).grade());
        assert_eq!(grades, [without, Grade::Feasible], "{bits}");
    }
}
