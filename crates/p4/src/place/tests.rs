//! Compares placements with the rules, by a plain reading of the program, and with all possible placements.

use super::plan::Plan;
use super::{MOST_LOOKS, planned, used};
use crate::algorithms::{Dimensions, Flows, Snapshots, all, conquest};
use crate::fold::bundles;
use crate::graph::{chains, nodes};
use crate::program::{Gress, KnownFrom, Micro, Op, Packets, StepAction};
use crate::{Aspect, Fit, Grade, PerStage, Placement, Program, RegisterUnit, Target};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const KINDS: [Packets; 4] = [Packets::Traffic, Packets::Generated, Packets::FedBack, Packets::FedBackAgain];

/// A program in a plain form.
struct Plain<'a> {
    program: &'a Program,
    /// Whether a step directly needs another's result, of the same packet in the same half.
    needs: Vec<Vec<bool>>,
    /// Whether it needs it directly or indirectly.
    needs_at_last: Vec<Vec<bool>>,
}

impl<'a> Plain<'a> {
    fn new(program: &'a Program) -> Self {
        let count = program.steps.len();
        let mut needs = vec![vec![false; count]; count];
        for (later, step) in program.steps.iter().enumerate() {
            for field in &step.reads {
                if let KnownFrom::By(earlier) = program.fields[field.0].known {
                    let other = &program.steps[earlier];
                    needs[later][earlier] = (other.gress, other.packets) == (step.gress, step.packets);
                }
            }
        }
        // Warshall's closure.
        let mut needs_at_last = needs.clone();
        for between in 0..count {
            for later in 0..count {
                for earlier in 0..count {
                    needs_at_last[later][earlier] |= needs_at_last[later][between] && needs_at_last[between][earlier];
                }
            }
        }
        Self { program, needs, needs_at_last }
    }

    fn accesses(&self, register: usize) -> Vec<usize> {
        let reaches = |step: &usize| match &self.program.steps[*step].does {
            StepAction::Access { entry, .. } => entry.register.0 == register,
            _ => false,
        };
        (0..self.program.steps.len()).filter(reaches).collect()
    }

    /// What a register must do for one kind of packet: its accesses, and the steps between them.
    fn done_by(&self, register: usize, kind: Packets) -> BTreeSet<usize> {
        let own: Vec<_> =
            self.accesses(register).into_iter().filter(|step| self.program.steps[*step].packets == kind).collect();
        let is_between = |step: usize| {
            own.iter().any(|first| self.needs_at_last[step][*first])
                && own.iter().any(|last| self.needs_at_last[*last][step])
        };
        (0..self.program.steps.len()).filter(|step| own.contains(step) || is_between(*step)).collect()
    }

    /// Whether that can be one access: to one entry, in one half, with nothing between but what the unit does.
    fn is_one_access(&self, register: usize, kind: Packets, unit: &RegisterUnit) -> bool {
        let steps: Vec<_> = self.done_by(register, kind).into_iter().map(|step| &self.program.steps[step]).collect();
        let (mut entries, mut halves, mut conditions, mut updates) = (Vec::new(), BTreeSet::new(), 0, 0);
        let is_done = steps.iter().all(|step| match &step.does {
            StepAction::Access { entry, micros } => {
                entries.push(*entry);
                halves.insert(step.gress);
                conditions += micros.iter().filter(|micro| **micro == Micro::Condition).count();
                updates += micros.iter().filter(|micro| **micro == Micro::Update).count();
                entry.register.0 == register
            }
            StepAction::Compute(Op::Simple) => {
                updates += 1;
                true
            }
            StepAction::Compute(Op::Compare(1)) => {
                conditions += 1;
                true
            }
            _ => false,
        });
        let is_one_entry = entries.iter().all(|entry| *entry == entries[0]) && halves.len() <= 1;
        is_done && is_one_entry && conditions <= unit.conditions && updates <= unit.updates
    }

    /// What each register does, for all packets.
    fn groups(&self) -> Vec<BTreeSet<usize>> {
        let of = |register| KINDS.into_iter().flat_map(|kind| self.done_by(register, kind)).collect();
        (0..self.program.registers.len()).map(of).filter(|group: &BTreeSet<_>| !group.is_empty()).collect()
    }
}

/// Checks a placement against the rules. If `one_access`, each register must be in one stage.
fn check(program: &Program, target: &Target, placement: &Placement, one_access: bool) {
    let plain = Plain::new(program);
    // The first and the last stage of each step.
    let mut places: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    for (at, stage) in placement.stages.iter().enumerate() {
        for placed in &stage.placed {
            for &step in &placed.steps {
                assert_eq!(placed.gress, program.steps[step].gress);
                let place = places.entry(step).or_insert((at, at));
                assert_eq!(placed.continued, place.0 < at, "step {step} is there twice");
                place.1 = at;
            }
        }
    }
    assert_eq!(places.len(), program.steps.len(), "a step is missing");
    let groups: Vec<_> = (0..program.registers.len()).map(|register| plain.groups_of(register)).collect();
    for (later, needs) in plain.needs.iter().enumerate() {
        for earlier in (0..needs.len()).filter(|earlier| needs[*earlier]) {
            let (before, after) = (places[&earlier], places[&later]);
            let are_one = groups.iter().flatten().any(|group| group.contains(&earlier) && group.contains(&later));
            assert!(before.1 < after.0 || are_one && before == after, "{earlier} at {before:?}, {later} at {after:?}");
        }
    }
    for register in 0..program.registers.len() {
        let stages: BTreeSet<_> = plain.accesses(register).into_iter().map(|step| places[&step]).collect();
        assert!(!one_access || stages.len() <= 1, "register {register} is in {stages:?}");
        assert!(stages.iter().all(|(first, last)| first == last));
    }
    let PerStage { registers, tables, sram, tcam, sram_bits, .. } = target.per_stage;
    for (at, stage) in placement.stages.iter().enumerate() {
        let here: BTreeSet<_> = (0..program.registers.len())
            .filter(|register| plain.accesses(*register).iter().any(|step| places[step].0 == at))
            .collect();
        let blocks = |register: &usize| {
            let info = &program.registers[*register];
            let word = [1, 8, 16, 32].into_iter().find(|word| info.words.iter().all(|bits| bits <= word)).unwrap();
            (info.entries * info.words.len() as u64 * u64::from(word)).div_ceil(sram_bits) + 1
        };
        assert!(stage.used.registers >= here.len() as u64 && stage.used.registers <= registers);
        assert!(!one_access || stage.used.registers == here.len() as u64);
        assert!(stage.used.sram >= here.iter().map(blocks).sum() && stage.used.sram <= sram && stage.used.tcam <= tcam);
        assert!(stage.used.tables <= tables && stage.used.tables >= stage.placed.len() as u64);
    }
}

impl Plain<'_> {
    fn groups_of(&self, register: usize) -> Vec<BTreeSet<usize>> {
        KINDS.into_iter().map(|kind| self.done_by(register, kind)).collect()
    }
}

#[test]
fn all_algorithms_are_placed_by_the_rules() {
    let larger = Dimensions {
        snapshots: Snapshots { snapshots: 7, rows: 3, columns: 50_000 },
        flows: Flows { flows: 1 << 17, queues: 8, ports: 64 },
    };
    let dimensions = [Dimensions::default(), larger];
    for (target, dimensions) in Target::all().iter().flat_map(|target| dimensions.map(|it| (target, it))) {
        for program in all(dimensions) {
            let fit = Fit::new(&program, target);
            let one_access = fit.verdict(Aspect::Memory).grade == Grade::Feasible;
            check(&program, target, &fit.placement.unwrap(), one_access);
        }
    }
}

/// The number of stages in the reason is the smallest possible.
#[test]
fn no_algorithm_fits_in_one_stage_less_than_reported() {
    for target in Target::all() {
        for program in all(Dimensions::default()) {
            let stages = Fit::new(&program, &target).placement.unwrap().stages.len();
            let room = Fit::new(&program, &Target { stages: stages - 1, ..target.clone() }).room.unwrap();
            assert!(room.starts_with("it takes"), "{} on {}: {room}", program.name(), target.name);
        }
    }
}

/// However large a program is, the tries are bounded: those of a first placement plus those of the search.
#[test]
fn the_work_of_placing_is_bounded() {
    let largest = conquest(Snapshots { snapshots: 64, rows: 16, columns: 2048 });
    for target in Target::all() {
        let nodes = nodes(&largest, &bundles(&largest, &target));
        let needs: Vec<_> = nodes.iter().map(|node| used(&largest, node, &target)).collect();
        let chains = chains(&nodes).unwrap();
        let looks = |stages| {
            let target = Target { stages, ..target.clone() };
            let (plan, _) = planned(Plan::new(&nodes, &needs, &target), &chains, &target);
            (plan.looks, plan.stages())
        };
        let (once, whole) = looks(1000);
        assert!(once <= (nodes.len() * whole) as u64);
        // The switch's stages, which are far too few; one too few; enough.
        for stages in [target.stages, whole - 1, whole] {
            let (looks, _) = looks(stages);
            assert!(looks <= MOST_LOOKS + 3 * once, "{} of {stages}: {looks} looks", target.name);
        }
    }
}

/// A step of a random program: its kind, its half, its packets, and which earlier steps it needs, as bits.
#[derive(Debug, Clone, Copy)]
struct RandomStep {
    /// Additions, comparisons, hashes, and accesses to an entry of a register.
    what: StepKind,
    behind: bool,
    generated: bool,
    needs: u8,
}

#[derive(Debug, Clone, Copy)]
enum StepKind {
    Simple,
    Compare,
    Hash,
    Access { register: usize, entry: usize, writes: bool },
}

fn drawn() -> impl Strategy<Value = Vec<RandomStep>> {
    // One entry is more frequent than the other, so that many accesses can be one.
    let access = (0..2usize, prop_oneof![4 => Just(0usize), 1 => Just(1)], any::<bool>());
    let what = prop_oneof![
        3 => Just(StepKind::Simple),
        1 => Just(StepKind::Compare),
        1 => Just(StepKind::Hash),
        5 => access.prop_map(|(register, entry, writes)| StepKind::Access { register, entry, writes }),
    ];
    let kinds = (prop::bool::weighted(0.7), prop::bool::weighted(0.4));
    let step =
        (what, kinds, any::<u8>(), any::<u8>()).prop_map(|(what, (behind, generated), needs, others)| RandomStep {
            what,
            behind,
            generated,
            // Few, so that not everything is between accesses.
            needs: needs & others,
        });
    prop::collection::vec(step, 1..7)
}

fn program(steps: &[RandomStep]) -> Program {
    let mut program = Program::new("drawn", "");
    let registers = [program.register("one", 32, 16), program.register("other", 32, 16)];
    let indexes = [program.header("index", 4), program.header("another", 4)];
    let mut given = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        program.at(if step.behind { Gress::Egress } else { Gress::Ingress });
        program.by(if step.generated { Packets::Generated } else { Packets::Traffic });
        // What the same packet has by then.
        let is_known = |need: usize| steps[need].generated == step.generated && (step.behind || !steps[need].behind);
        let reads: Vec<_> = (0..number).filter(|need| step.needs >> need & 1 == 1 && is_known(*need)).collect();
        let reads: Vec<_> = reads.into_iter().map(|need| given[need]).collect();
        let name = number.to_string();
        given.push(match step.what {
            StepKind::Simple => program.simple(&name, &reads, 32),
            StepKind::Compare => program.compare(&name, &reads),
            StepKind::Hash => program.compute(&name, Op::Hash, &reads, 32),
            StepKind::Access { register, entry, writes } => {
                let entry = registers[register].at(indexes[entry]);
                if writes { program.write(entry, &name, &reads) } else { program.read(entry, &name, &reads) }
            }
        });
    }
    program
}

/// The fewest stages in which a program fits, found by trying all placements; `None` if it fits none. It reaches each
/// of its registers once.
fn fewest(program: &Program, target: &Target) -> Option<usize> {
    let plain = Plain::new(program);
    let mut units = plain.groups();
    let in_groups: Vec<_> = units.iter().flatten().copied().collect();
    if in_groups.iter().collect::<BTreeSet<_>>().len() < in_groups.len() {
        // Two registers would have to do this step.
        return None;
    }
    let single = (0..program.steps.len()).filter(|step| !in_groups.contains(step));
    units.extend(single.map(|step| BTreeSet::from([step])));
    let fits = |stages| has_place(&plain, target, &units, stages, &mut Vec::new());
    (1..=units.len()).find(|stages| fits(*stages))
}

fn has_place(plain: &Plain, target: &Target, units: &[BTreeSet<usize>], stages: usize, at: &mut Vec<usize>) -> bool {
    let is_register = |unit: &BTreeSet<usize>| plain.groups().contains(unit);
    let halves = |unit: &BTreeSet<usize>| {
        unit.iter().map(|step| plain.program.steps[*step].gress).collect::<BTreeSet<_>>().len() as u64
    };
    for stage in 0..stages {
        let here = at.iter().zip(units).filter(|(other, _)| **other == stage).map(|(_, unit)| unit);
        let here: Vec<_> = here.chain([&units[at.len()]]).collect();
        let (registers, tables) =
            (here.iter().filter(|unit| is_register(unit)).count(), here.iter().map(|unit| halves(unit)));
        if registers as u64 > target.per_stage.registers || tables.sum::<u64>() > target.per_stage.tables {
            continue;
        }
        let need = |later: &BTreeSet<usize>, earlier: &BTreeSet<usize>| {
            later.iter().any(|later| earlier.iter().any(|earlier| plain.needs[*later][*earlier]))
        };
        let own = &units[at.len()];
        let in_order = at.iter().zip(units).all(|(other_stage, other)| {
            (!need(own, other) || *other_stage < stage) && (!need(other, own) || stage < *other_stage)
        });
        if in_order {
            at.push(stage);
            let fits = at.len() == units.len() || has_place(plain, target, units, stages, at);
            at.pop();
            if fits {
                return true;
            }
        }
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    /// Programs in both halves, with two kinds of packets and registers reached any number of times: each register has
    /// one access where possible, otherwise the verdict on memory; parts are in order; and a placement is found if
    /// there is one.
    #[test]
    fn placements_follow_the_rules_and_are_found_if_there_is_one(
        steps in drawn(), registers in 1u64..3, tables in 1u64..4, updates in 1usize..4
    ) {
        let program = program(&steps);
        let per_stage = PerStage { registers, tables, ..Target::generous().per_stage };
        let register = RegisterUnit { conditions: 1, updates, ..Target::generous().register };
        let target = Target { per_stage, register, stages: 100, ..Target::generous() };
        let plain = Plain::new(&program);
        let pairs = (0..2).flat_map(|register| KINDS.map(|kind| (register, kind)));
        let one_access = pairs.into_iter().all(|(register, kind)| plain.is_one_access(register, kind, &target.register));
        let fit = Fit::new(&program, &target);
        let memory = if one_access { Grade::Feasible } else { Grade::Infeasible };
        prop_assert_eq!(fit.verdict(Aspect::Memory).grade, memory, "{:?}", fit.verdict(Aspect::Memory).reasons);
        if let Some(placement) = &fit.placement {
            check(&program, &target, placement, one_access);
        }
        if one_access {
            let fewest = fewest(&program, &target);
            prop_assert_eq!(fit.placement.is_some(), fewest.is_some(), "{:?}", fit.room);
            if let Some(fewest) = fewest {
                let exact = Fit::new(&program, &Target { stages: fewest, ..target.clone() });
                prop_assert_eq!(exact.room, None);
                check(&program, &target, &exact.placement.unwrap(), true);
                let fewer = Fit::new(&program, &Target { stages: fewest - 1, ..target.clone() });
                prop_assert!(fewer.room.unwrap().starts_with("it takes"));
            }
        }
    }
}
