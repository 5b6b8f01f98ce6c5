//! Compares placements with the rules, and with all possible placements.

use proptest::prelude::*;
use queuescope_p4::algorithms::{
    Dimensions, Snapshots, all, conquest, conquest_defaults, conquest_standing, conquest_with, printqueue_monitor,
    printqueue_windows_with,
};
use queuescope_p4::ir::{
    ActionTable, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Operation, RegisterAction, RegisterArray, Unit,
    When,
};
use queuescope_p4::{Aspect, Field, Fit, Grade, Gress, Micro, PerStage, Placement, Program, Target};
use queuescope_queue::ConQuestAqmParams;
use queuescope_sketch::{CellWindowsParams, ConQuestParams};

/// A program of additions and register accesses, each of which needs some of the earlier ones.
#[derive(Debug, Clone)]
struct Chain {
    /// Whether it is a register access, and which earlier steps it needs, as bits.
    steps: Vec<(bool, u8)>,
    registers: u64,
    tables: u64,
}

fn chain() -> impl Strategy<Value = Chain> {
    (prop::collection::vec((any::<bool>(), any::<u8>()), 1..8), 1u64..3, 1u64..4)
        .prop_map(|(steps, registers, tables)| Chain { steps, registers, tables })
}

impl Chain {
    fn needs(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        (0..step).filter(move |need| self.steps[step].1 >> need & 1 == 1)
    }

    fn program(&self) -> Program {
        let mut program = Program::new("chain", "");
        program.at(Gress::Egress);
        let mut given: Vec<Field> = Vec::new();
        for (step, (is_register, _)) in self.steps.iter().enumerate() {
            let reads: Vec<_> = self.needs(step).map(|need| given[need]).collect();
            let name = step.to_string();
            given.push(if *is_register {
                let register = program.register(&name, 32, 16);
                program.update(register, &name, &[Micro::Update], &reads)
            } else {
                program.simple(&name, &reads, 32)
            });
        }
        program
    }

    fn target(&self, stages: usize) -> Target {
        let per_stage = PerStage { registers: self.registers, tables: self.tables, ..Target::tofino().per_stage };
        Target { per_stage, stages, ..Target::tofino() }
    }

    /// The fewest stages, found by trying all placements.
    fn fewest(&self) -> usize {
        (1..).find(|stages| self.fits(&mut Vec::new(), *stages)).unwrap()
    }

    fn fits(&self, at: &mut Vec<usize>, stages: usize) -> bool {
        let step = at.len();
        if step == self.steps.len() {
            return true;
        }
        let first = self.needs(step).map(|need| at[need] + 1).max().unwrap_or(0);
        (first..stages).any(|stage| {
            let here = |only: bool| (0..step).filter(|s| at[*s] == stage && (!only || self.steps[*s].0)).count() as u64;
            let room = here(false) < self.tables && (!self.steps[step].0 || here(true) < self.registers);
            room && {
                at.push(stage);
                let fits = self.fits(at, stages);
                at.pop();
                fits
            }
        })
    }
}

fn stage_of(placement: &Placement, name: &str) -> usize {
    let mut found = (0..placement.stages.len())
        .filter(|stage| placement.stages[*stage].placed.iter().any(|placed| placed.name == name && !placed.continued));
    let stage = found.next().unwrap();
    assert_eq!(found.next(), None, "{name} is there twice");
    stage
}

proptest! {
    #[test]
    fn a_placement_keeps_order_and_room_and_is_found_if_there_is_one(chain in chain()) {
        let fewest = chain.fewest();
        let (program, target) = (chain.program(), chain.target(fewest));
        let fit = Fit::new(&program, &target);
        prop_assert_eq!(&fit.room, &None);
        let placement = fit.placement.unwrap();
        for step in 0..chain.steps.len() {
            for need in chain.needs(step) {
                prop_assert!(stage_of(&placement, &need.to_string()) < stage_of(&placement, &step.to_string()));
            }
        }
        for stage in &placement.stages {
            prop_assert!(stage.used.registers <= chain.registers && stage.used.tables <= chain.tables);
        }
        prop_assert!(Fit::new(&program, &chain.target(fewest - 1)).room.is_some());
    }
}

/// Section 4.1: ceil(h R / M) stages to reach the snapshots, and ceil(log2(h - 2)) to add them. The minimum over the
/// rows, which the paper does not mention, takes additional stages.
#[test]
fn conquest_takes_the_stages_of_the_papers_formula() {
    for snapshots in 4..=20u32 {
        for rows in 1..=4u32 {
            for most in 1..=12u64 {
                let per_stage = PerStage { registers: most, tables: 1000, sram: 1000, ..Target::tofino().per_stage };
                let target = Target { per_stage, stages: 1000, ..Target::tofino() };
                let fit = Fit::new(&conquest(Snapshots { snapshots, rows, columns: 64 }), &target);
                assert_eq!(fit.grade(), Grade::Feasible);
                // In addition: the hashes and the entries before, the comparison and the mark after.
                let stages = fit.placement.unwrap().stages.len() - 4;
                let formula = u64::from(snapshots * rows).div_ceil(most) as usize
                    + (snapshots - 2).next_power_of_two().ilog2() as usize;
                let minima = rows.next_power_of_two().ilog2() as usize;
                let least = formula + minima.min(1);
                assert!((least..=formula + minima).contains(&stages), "h {snapshots} R {rows} M {most}: {stages}");
            }
        }
    }
}

/// Choosing what to mark by the standing queue costs comparisons and a shift. They fit beside the snapshots: no more
/// registers, no more stages.
#[test]
fn a_mark_for_a_standing_queue_takes_no_more_stages_than_the_papers() {
    for target in [Target::tofino_registers_only(), Target::tofino()] {
        for snapshots in 4..=8 {
            for rows in 1..=2 {
                let dimensions = Snapshots { snapshots, rows, columns: 2048 };
                let fits = [conquest(dimensions), conquest_standing(dimensions)].map(|program| {
                    let fit = Fit::new(&program, &target);
                    assert_eq!(fit.grade(), Grade::Feasible, "{dimensions:?}: {:?}", fit.room);
                    let placement = fit.placement.unwrap();
                    (placement.stages.len(), placement.used().registers, placement.used().sram)
                });
                assert_eq!(fits[0], fits[1], "{dimensions:?}");
            }
        }
    }
}

/// PrintQueue's windows take a stage each, of its four registers, behind the stage that computes the time. The published program takes 12
/// stages for four windows, 24 register accesses and two stages for each window.
#[test]
fn printqueue_takes_a_stage_for_each_window() {
    for windows in 1..=12 {
        let params = CellWindowsParams { windows, ..CellWindowsParams::default() };
        let program = printqueue_windows_with(&params, 0).unwrap().steps();
        let fit = Fit::new(&program, &Target::plain());
        let few_containers = "its fields take 56 containers of 32 bits, and there are 52 besides those of headers";
        match windows {
            12 => {
                assert_eq!(fit.room.as_deref(), Some("it takes 13 stages, and there are 12"));
                continue;
            }
            // As the compiler found.
            11 => assert_eq!(fit.room.as_deref(), Some(few_containers)),
            _ => assert_eq!(fit.grade(), Grade::Feasible, "{:?}", fit.room),
        }
        let placement = fit.placement.unwrap();
        let registers: Vec<_> = placement.stages.iter().map(|stage| stage.used.registers).collect();
        assert_eq!(registers, [vec![0], vec![4; windows as usize]].concat());
        // A block of 4096 words, and one for the access.
        assert_eq!(placement.used().sram, u64::from(windows) * 4 * 2);
    }
}

/// The level takes two stages, and the comparison with the last one and the entry of the level another one each.
#[test]
fn printqueues_monitor_takes_four_stages() {
    for target in [Target::tofino(), Target::plain()] {
        let fit = Fit::new(&printqueue_monitor(), &target);
        assert_eq!(fit.grade(), Grade::Feasible, "{:?}", fit.room);
        let placement = fit.placement.unwrap();
        let used = placement.used();
        // Three registers of 32 768 words are eight blocks each.
        assert_eq!((placement.stages.len(), used.registers, used.sram), (4, 5, 3 * 9 + 2 * 2));
    }
}

#[test]
fn a_program_that_needs_more_stages_does_not_fit() {
    let target = Target { stages: 5, ..Target::tofino() };
    let fit = Fit::new(&conquest(Snapshots::default()), &target);
    assert_eq!(fit.room.as_deref(), Some("it takes 8 stages, and there are 5"));
    assert_eq!(fit.grade(), Grade::Infeasible);
    // 80 blocks hold 327 680 words of 32 bits; one block is for the access.
    for (columns, fits) in [(323_584, true), (323_585, false)] {
        let fit = Fit::new(&conquest(Snapshots { columns, rows: 1, snapshots: 4 }), &Target::tofino());
        assert_eq!(fit.grade() == Grade::Feasible, fits, "{:?}", fit.room);
    }
}

/// Two registers that each need the other's result have no order.
#[test]
fn registers_that_need_each_other_cannot_be_placed() {
    let mut program = Program::new("circle", "");
    program.at(Gress::Egress).of(Aspect::Reaction);
    let (one, other) = (program.register("one", 32, 1), program.register("other", 32, 1));
    let first = program.read(one, "read one", &[]);
    program.write(other, "write other", &[first]);
    program.by(queuescope_p4::Packets::Generated);
    let second = program.read(other, "read other", &[]);
    program.write(one, "write one", &[second]);
    let fit = Fit::new(&program, &Target::tofino());
    assert_eq!(fit.placement, None);
    assert!(fit.room.unwrap().contains("depends on its own result"));
}

/// A table that does not fit the free part of a stage continues in the next.
#[test]
fn a_large_table_spans_stages() {
    let mut program = Program::new("table", "");
    program.at(Gress::Egress);
    let key = program.header("key", 20);
    let table = queuescope_p4::Match::of_all(20, 32);
    let found = program.compute("table", queuescope_p4::Op::Table(table), &[key], 32);
    program.act("mark", queuescope_p4::Act::Mark, &[found]);
    let fit = Fit::new(&program, &Target::tofino());
    // 2^20 entries of 52 bits are 416 blocks of 131 072 bits: 5.2 stages of 80.
    let placement = fit.placement.unwrap();
    assert_eq!(placement.used().sram, 416);
    let rest: Vec<_> = placement.stages.iter().map(|stage| (stage.placed[0].continued, stage.used.sram)).collect();
    assert_eq!(rest[..6], [(false, 80), (true, 80), (true, 80), (true, 80), (true, 80), (true, 16)]);
    assert_eq!(placement.stages.len(), 7);
}

/// No algorithm of the project takes more of any stage than there is, wherever it is placed.
#[test]
fn no_stage_has_more_than_it_holds() {
    for target in Target::all() {
        for program in all(Dimensions::default()) {
            let Some(placement) = Fit::new(&program, &target).placement else { panic!("{}", program.name()) };
            for stage in placement.stages {
                assert!(stage.used.registers <= target.per_stage.registers);
                assert!(stage.used.tables <= target.per_stage.tables);
                assert!(stage.used.sram <= target.per_stage.sram && stage.used.tcam <= target.per_stage.tcam);
            }
        }
    }
}

/// The dimensions with which ConQuest was compiled for a Tofino, and those of which its compiler or the stages have too few.
#[test]
fn conquest_fits_where_it_compiles() {
    let stages = |snapshots, rows| {
        let sketch = ConQuestParams { snapshots, rows, ..conquest_defaults().sketch };
        let program = conquest_with(&ConQuestAqmParams { sketch, ..conquest_defaults() }).expect("it is valid");
        let fit = Fit::new(&program.steps(), &Target::tofino());
        fit.room.is_none().then(|| fit.placement.expect("it has room").stages.len())
    };
    let of_rows = |snapshots| [1, 2, 3, 4].map(|rows| stages(snapshots, rows));
    assert_eq!(of_rows(4), [Some(7), Some(9), Some(10), Some(12)]);
    assert_eq!(of_rows(8), [Some(9), Some(12), None, None]);
    assert_eq!(of_rows(16), [Some(12), None, None, None]);
}

/// Fields that operations combine are in one group of 16 containers of 32 bits. ConQuest's sum leaves it through a hash unit. Without that, the threshold
/// and the difference from it make 18.
#[test]
fn a_group_of_containers_holds_16_fields_of_32_bits() {
    let summed = |fields: usize| {
        let mut p = Builder::new("summed", "sums random numbers", "");
        let drawn: Vec<_> =
            (0..fields).map(|n| p.compute(format!("drawn_{n}"), 32, Unit::Number, Operation::Random)).collect();
        for other in &drawn[1..] {
            p.set(drawn[0], Operation::Xor(drawn[0].into(), (*other).into()));
        }
        p.build().expect("it is valid").steps()
    };
    let has = Target { stages: 32, ..Target::tofino() };
    assert_eq!(Fit::new(&summed(16), &has).room, None);
    let room = Fit::new(&summed(17), &has).room.expect("17 are too many");
    assert!(room.starts_with("\"drawn_0\" and 16 more fields at egress") && room.contains("544 bits"), "{room}");
    assert_eq!(Fit::new(&summed(17), &Target::generous()).room, None);
}

/// A table has 32 actions at most, and a stage 64, as the compiler for Tofino has it.
#[test]
fn a_table_has_32_actions_and_a_stage_64() {
    let chosen = |tables: usize, count: u64| {
        let mut p = Builder::new("chosen", "chooses numbers", "");
        let drawn = p.compute("drawn", 32, Unit::Number, Operation::Random);
        for table in 0..tables {
            let value = p.variable(format!("value_{table}"), 32, Unit::Number);
            let action = |p: &mut Builder, n: u64| {
                p.action(format!("number_{table}_{n}"), |p| p.set(value, Operation::Copy((n + 1).into())))
            };
            let actions = (0..count).map(|n| action(&mut p, n)).collect();
            let entries = (0..count).map(|n| (vec![(n, n)], n as usize)).collect();
            let (name, keys) = (format!("table_{table}").into(), vec![drawn.slice(0, 8)]);
            p.choose_by(ActionTable { name, about: "The value".into(), keys, actions, entries });
        }
        Fit::new(&p.build().expect("it is valid").steps(), &Target::tofino())
    };
    let stages = |fit: Fit| fit.placement.expect("it can be placed").stages.len();
    assert_eq!(stages(chosen(2, 32)), 2);
    assert_eq!(stages(chosen(3, 32)), 3);
    assert_eq!(chosen(1, 33).room.as_deref(), Some("\"table_0\" takes more than a stage has"));
}

/// The actions of a register read two fields at most, whatever the packet.
#[test]
fn the_actions_of_a_register_read_two_fields() {
    let adding = |fields: usize| {
        let mut p = Builder::new("adding", "adds random numbers", "");
        let word = RegisterArray {
            name: "sum".into(),
            about: "A sum".into(),
            bits: 32,
            unit: Unit::Number,
            entries: 1,
            initial: 0,
        };
        let register = p.register(word);
        let chosen = p.compute("chosen", 8, Unit::Number, Operation::Random);
        let add = |p: &mut Builder, n: usize| {
            let drawn = p.compute(format!("drawn_{n}"), 32, Unit::Number, Operation::Random);
            let value = AluExpression::Add(AluTerm::Word, AluTerm::Value(drawn.into()));
            let updates = vec![AluUpdate { when: When::Always, value }];
            let output = AluOutput::Nothing;
            let action = RegisterAction { name: format!("add_{n}").into(), conditions: Vec::new(), updates, output };
            p.action(format!("do_add_{n}"), |p| p.access(register, 0, action, None))
        };
        let actions = (0..fields).map(|n| add(&mut p, n)).collect();
        let entries = (0..fields).map(|n| (vec![(n as u64, n as u64)], n)).collect();
        p.choose_by(ActionTable {
            name: "addend".into(),
            about: "Which number is added".into(),
            keys: vec![chosen.into()],
            actions,
            entries,
        });
        Fit::new(&p.build().expect("it is valid").steps(), &Target::tofino()).room
    };
    assert_eq!(adding(2), None);
    assert_eq!(adding(3).as_deref(), Some("the actions of sum read 3 fields, and the unit reads 2"));
}
