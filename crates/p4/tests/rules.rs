//! What no switch does, and where parts go that both halves of the pipeline have to do with: small programs, placed by hand.

use queuescope_p4::algorithms::{pi2, pie};
use queuescope_p4::{Act, Aspect, Fit, Grade, Gress, Micro, Op, Packets, Placement, Program, Target};

/// The stage of a part, from 1, in a half.
fn stage(placement: &Placement, half: Gress, name: &str) -> usize {
    let has = |placed: &queuescope_p4::Placed| placed.gress == half && placed.name == name;
    1 + placement.stages.iter().position(|stage| stage.placed.iter().any(has)).unwrap()
}

/// A probability that packets of the generator form in two steps behind the queue, and that traffic is dropped by before it.
#[test]
fn what_is_formed_behind_the_queue_holds_its_register_there_for_both_halves() {
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

/// The sum of both products is in stage 6: the register behind it, and then the comparison and the drop before the queue.
#[test]
fn the_drops_of_pie_and_pi2_come_after_their_probabilities() {
    for (program, target) in [(pi2(), Target::tofino()), (pi2(), Target::generous()), (pie(), Target::generous())] {
        let placement = Fit::new(&program, &target).placement.unwrap();
        assert_eq!(placement.stages.len(), 9, "{} on {}", program.name(), target.name);
    }
}

/// A packet that is counted as it comes and as it leaves reaches the counter twice.
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

/// Every other packet is dropped, by a counter: before the queue, where the least switch has no steps, or behind it.
#[test]
fn the_least_switch_has_no_steps_before_the_queue() {
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
fn nothing_that_a_packet_learns_behind_the_queue_is_known_to_it_before() {
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
