//! What no switch can do, and where parts go that concern both halves of the pipeline: small programs, placed by hand.

use queuescope_p4::algorithms::{pi2, pie};
use queuescope_p4::{Act, Aspect, Field, Fit, Grade, Gress, Micro, Op, Packets, Placement, Program, Register, Target};

/// The stage of a part in a half, counted from 1.
fn stage(placement: &Placement, half: Gress, name: &str) -> usize {
    let has = |placed: &queuescope_p4::Placed| placed.gress == half && placed.name == name;
    1 + placement.stages.iter().position(|stage| stage.placed.iter().any(has)).unwrap()
}

/// Generated packets compute a probability in two steps behind the queue, and traffic is dropped by it before the
/// queue.
#[test]
fn a_register_computed_behind_the_queue_is_in_the_same_stage_for_both_halves() {
    let mut program = Program::new("two halves", "");
    let p = &mut program;
    p.at(Gress::Ingress).of(Aspect::Reaction);
    let probability = p.register("probability", 32, 1);
    let read = p.read(probability, "read", &[]);
    let chosen = p.compare("compare", &[read]);
    p.act("drop", Act::Drop, &[chosen]);
    p.at(Gress::Egress).by(Packets::Generated);
    let length = p.header("length", 32);
    let one = p.simple("one", &[length], 32);
    let two = p.simple("two", &[one], 32);
    p.update(probability, "update", &[Micro::Update], &[two]);
    let placement = Fit::new(&program, &Target::generous()).placement.unwrap();
    // By hand: one, two, the register in both halves, the comparison, the drop.
    let at = |half, name| stage(&placement, half, name);
    assert_eq!([at(Gress::Egress, "one"), at(Gress::Egress, "two")], [1, 2]);
    assert_eq!([at(Gress::Ingress, "read"), at(Gress::Egress, "update")], [3, 3]);
    assert_eq!([at(Gress::Ingress, "compare"), at(Gress::Ingress, "drop")], [4, 5]);
    assert_eq!(placement.stages.len(), 5);
}

/// The sum of both products is in stage 6. The register is behind it, and then the comparison and the drop before the
/// queue.
#[test]
fn the_drops_of_pie_and_pi2_come_after_their_probabilities() {
    for (program, target) in [(pi2(), Target::tofino()), (pi2(), Target::generous()), (pie(), Target::generous())] {
        let placement = Fit::new(&program, &target).placement.unwrap();
        assert_eq!(placement.stages.len(), 9, "{} on {}", program.name(), target.name);
    }
}

/// A packet that is counted at arrival and departure reaches the counter twice.
#[test]
fn no_packet_reaches_a_register_before_and_behind_the_queue() {
    let mut program = Program::new("length of the queue", "");
    let p = &mut program;
    let length = p.register("length", 32, 64);
    p.at(Gress::Ingress).update(length, "length + 1", &[Micro::Update], &[]);
    p.at(Gress::Egress).update(length, "length - 1", &[Micro::Update], &[]);
    for target in Target::all() {
        let fit = Fit::new(&program, &target);
        assert_eq!(fit.verdict(Aspect::Memory).grade, Grade::Infeasible, "{}", target.name);
    }
}

/// Every other packet is dropped by a counter: before the queue, where the plain switch has no steps, or behind it.
#[test]
fn the_plain_switch_has_no_steps_before_the_queue() {
    for (half, grade) in [(Gress::Ingress, Grade::Infeasible), (Gress::Egress, Grade::Feasible)] {
        let mut program = Program::new("every other", "");
        let p = &mut program;
        p.at(half).of(Aspect::Reaction);
        let count = p.register("count", 1, 1);
        let count = p.update(count, "count + 1", &[Micro::Update], &[]);
        p.act("drop", Act::Drop, &[count]);
        assert_eq!(Fit::new(&program, &Target::plain()).grade(), grade, "{}", half.name());
    }
}

#[test]
fn nothing_learnt_behind_the_queue_is_known_to_the_packet_before_it() {
    let mut program = Program::new("tomorrow", "");
    let p = &mut program;
    let key = p.header("key", 16);
    p.at(Gress::Egress);
    let hash = p.compute("hash", Op::Hash, &[key], 16);
    p.at(Gress::Ingress).act("drop", Act::Drop, &[hash]);
    for target in Target::all() {
        assert_eq!(Fit::new(&program, &target).verdict(Aspect::Backflow).grade, Grade::Infeasible, "{}", target.name);
    }
}

/// Adds accesses to a register, with two fields that name entries.
type Accesses = fn(&mut Program, Register, [Field; 2]);

/// One entry is reached once, whatever the unit does with it at once. A second entry is a second access on every
/// switch, whatever is done with either.
#[test]
fn a_packet_reaches_one_entry_of_a_register() {
    let on_one: [(&str, Accesses); 2] = [
        ("read, read", |p, register, [index, _]| {
            p.read(register.at(index), "one", &[]);
            p.read(register.at(index), "other", &[]);
        }),
        ("read, write", |p, register, [index, _]| {
            let read = p.read(register.at(index), "one", &[]);
            p.write(register.at(index), "other", &[read]);
        }),
    ];
    let on_two: [(&str, Accesses); 6] = [
        ("read, read", |p, register, [one, other]| {
            p.read(register.at(one), "one", &[]);
            p.read(register.at(other), "other", &[]);
        }),
        ("update, read", |p, register, [one, other]| {
            p.update(register.at(one), "one", &[Micro::Update], &[]);
            p.read(register.at(other), "other", &[]);
        }),
        ("read, write", |p, register, [one, other]| {
            let read = p.read(register.at(one), "one", &[]);
            p.write(register.at(other), "other", &[read]);
        }),
        ("write, write", |p, register, [one, other]| {
            p.write(register.at(one), "one", &[]);
            p.write(register.at(other), "other", &[]);
        }),
        ("the port's, another", |p, register, [_, other]| {
            p.read(register, "one", &[]);
            p.read(register.at(other), "other", &[]);
        }),
        ("one that the first names", |p, register, [one, _]| {
            let first = p.read(register.at(one), "one", &[]);
            let next = p.simple("next", &[first], 16);
            p.read(register.at(next), "other", &[]);
        }),
    ];
    for target in Target::all() {
        for (name, accesses, grade) in on_one
            .map(|(name, accesses)| (name, accesses, Grade::Feasible))
            .into_iter()
            .chain(on_two.map(|(name, accesses)| (name, accesses, Grade::Infeasible)))
        {
            let mut program = Program::new("entries", "");
            program.at(Gress::Egress).of(Aspect::Metric);
            let indexes = [program.header("one", 16), program.header("another", 16)];
            let register = program.register("counts", 32, 1 << 16);
            accesses(&mut program, register, indexes);
            let fit = Fit::new(&program, &target);
            // The verdict on memory, and no other.
            let grades = fit.aspects.each_ref().map(|(_, verdict)| verdict.grade);
            let expected = [Grade::Feasible, Grade::Feasible, Grade::Feasible, grade];
            assert_eq!(grades, expected, "{name} on {}: {:?}", target.name, fit.verdict(Aspect::Memory).reasons);
        }
    }
}

/// Two packets differ: each may reach another entry.
#[test]
fn other_packets_may_reach_other_entries() {
    let mut program = Program::new("flows", "");
    let p = &mut program;
    p.at(Gress::Egress);
    let [one, other] = [p.header("flow", 16), p.header("number", 16)];
    let counts = p.register("counts", 32, 1 << 16);
    p.update(counts.at(one), "count", &[Micro::Update], &[]);
    p.by(Packets::Generated).write(counts.at(other), "clean", &[]);
    assert_eq!(Fit::new(&program, &Target::tofino_registers_only()).grade(), Grade::Feasible);
}

/// What another packet knows does not help, but a packet that is sent back keeps its fields.
#[test]
fn fields_stay_with_their_packet() {
    for (packets, grade) in [(Packets::Generated, Grade::Infeasible), (Packets::FedBack, Grade::Feasible)] {
        let mut program = Program::new("fields", "");
        let p = &mut program;
        let key = p.header("key", 16);
        p.at(Gress::Egress);
        let hash = p.compute("hash", Op::Hash, &[key], 16);
        p.at(Gress::Ingress).by(packets).of(Aspect::Metric);
        let seen = p.register("seen", 1, 1 << 16);
        p.write(seen.at(hash), "seen", &[]);
        let fit = Fit::new(&program, &Target::tofino());
        assert_eq!(fit.verdict(Aspect::Metric).grade, grade, "{packets:?}");
    }
}

/// The length of the queue can be known before it, on a switch that provides it there. When a packet will depart
/// cannot.
#[test]
fn what_is_known_before_the_queue() {
    let grade = |length: bool, target: &Target| {
        let mut program = Program::new("early", "");
        let field = if length { program.queue_state("length", 19) } else { program.leaving("time of leaving", 48) };
        program.at(Gress::Ingress).act("drop", Act::Drop, &[field]);
        Fit::new(&program, target).verdict(Aspect::Backflow).grade
    };
    let grades =
        [Target::tofino(), Target::generous()].map(|target| [true, false].map(|length| grade(length, &target)));
    assert_eq!(grades, [[Grade::Infeasible; 2], [Grade::Feasible, Grade::Infeasible]]);
}

/// Each comparison side by side takes a table.
#[test]
fn comparisons_take_tables() {
    let mut program = Program::new("ranges", "");
    program.at(Gress::Egress);
    let key = program.header("key", 32);
    program.compute("range", Op::Compare(7), &[key], 3);
    let placement = Fit::new(&program, &Target::tofino()).placement.unwrap();
    assert_eq!((placement.stages.len(), placement.used().tables), (1, 7));
}
