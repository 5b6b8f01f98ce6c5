//! What does not build: the errors name the statement and the rule.

use queuescope_p4::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Builder, Comparison, Condition, Input, Operation,
    RegisterAction, RegisterArray, Unit, Variable, When,
};

/// The error of a program, without its beginning.
fn error(build: impl FnOnce(&mut Builder)) -> String {
    let mut p = Builder::new("it", "", "");
    build(&mut p);
    let error = p.build().expect_err("it is not valid").to_string();
    error.strip_prefix("the program it: ").expect("the program is named").to_owned()
}

fn register(bits: u32, unit: Unit) -> RegisterArray {
    RegisterArray { name: "words", about: "", bits, unit, entries: 4, initial: 0 }
}

fn adding(value: Variable) -> RegisterAction {
    let sum = AluExpression::Add(AluTerm::Word, AluTerm::Value(value.into()));
    let updates = vec![AluUpdate { when: When::Always, value: sum }];
    RegisterAction { name: "add", conditions: Vec::new(), updates, output: AluOutput::After }
}

#[test]
fn widths_must_fit() {
    let wide = error(|p| {
        let long = p.input(Input::Dequeued);
        p.compute("short", 32, Unit::NANOS, Operation::Copy(long.into()));
    });
    assert_eq!(wide, "the assignment to short: reads 48 bits of dequeued into 32: take a slice");
    let slice = error(|p| {
        let ecn = p.input(Input::Ecn);
        p.compute("bits", 8, Unit::Number, Operation::Copy(ecn.slice(1, 2)));
    });
    assert_eq!(slice, "the assignment to bits: takes 2 bits from bit 1 on of ecn, which has 2");
    let constant = error(|p| {
        p.compute("byte", 8, Unit::Number, Operation::Copy(256.into()));
    });
    assert_eq!(constant, "the assignment to byte: 256 has more than 8 bits");
    let shift = error(|p| {
        let ecn = p.input(Input::Ecn);
        p.compute("byte", 8, Unit::Number, Operation::ShiftLeft(ecn.into(), 8));
    });
    assert_eq!(shift, "the assignment to byte: a shift by 8 leaves nothing of 8 bits");
    assert_eq!(
        error(|p| _ = p.variable("none", 0, Unit::Number)),
        "the variable none: has 0 bits; 1 to 64 are possible"
    );
}

#[test]
fn units_must_be_the_same() {
    let sum = error(|p| {
        let (port, time) = (p.input(Input::Port), p.input(Input::Dequeued));
        p.compute("sum", 48, Unit::Number, Operation::Add(time.into(), port.into()));
    });
    assert_eq!(sum, "the assignment to sum: combines nanoseconds and numbers");
    let result = error(|p| {
        let time = p.input(Input::Dequeued);
        p.compute("later", 48, Unit::NANOS, Operation::ShiftRight(time.into(), 10));
    });
    assert_eq!(result, "the assignment to later: the result is in units of 1024 ns, and the variable in nanoseconds");
    let compared = error(|p| {
        let (early, late) = (p.input(Input::Enqueued), p.input(Input::Dequeued));
        p.when(Condition::compare(early.slice(10, 32), Comparison::Less, late.slice(0, 32)), |_| ());
    });
    assert_eq!(compared, "a condition: compares units of 1024 ns with nanoseconds");
    let register_unit = error(|p| {
        let time = p.input(Input::Dequeued);
        let low = p.compute("low", 32, Unit::NANOS, Operation::Copy(time.slice(0, 32)));
        let words = p.register(register(32, Unit::Bytes));
        p.access(words, 0, adding(low), None);
    });
    assert_eq!(register_unit, "the action add: reads nanoseconds; the words are in bytes");
}

#[test]
fn a_packet_accesses_a_register_once() {
    let twice = error(|p| {
        let value = p.variable("value", 32, Unit::Number);
        let words = p.register(register(32, Unit::Number));
        p.access(words, 0, adding(value), None);
        p.access(words, 1, RegisterAction { name: "again", ..adding(value) }, None);
    });
    assert_eq!(twice, "the register words: 2 statements access it; a stage allows one access for each packet");
    // In different branches it is one for each packet.
    let mut p = Builder::new("it", "", "");
    let ecn = p.input(Input::Ecn);
    let value = p.variable("value", 32, Unit::Number);
    let words = p.register(register(32, Unit::Number));
    p.choose(
        Condition::compare(ecn, Comparison::Equal, 0),
        |p| p.access(words, 0, adding(value), None),
        |p| p.access(words, 1, RegisterAction { name: "again", ..adding(value) }, None),
    );
    assert!(p.build().is_ok());
}

#[test]
fn register_actions_are_small() {
    let word = AluExpression::Term(AluTerm::Word);
    let zero = AluTerm::Value(0.into());
    let condition = AluCondition { left: word, comparison: Comparison::Equal, right: zero };
    let with = |action: RegisterAction| {
        error(|p| {
            let words = p.register(register(8, Unit::Number));
            p.access(words, 0, action, None);
        })
    };
    let plain = RegisterAction { name: "it", conditions: Vec::new(), updates: Vec::new(), output: AluOutput::Before };
    let three = RegisterAction { conditions: vec![condition; 3], ..plain.clone() };
    assert_eq!(with(three), "the action it: has 3 conditions; the unit has 2");
    let missing = AluUpdate { when: When::Holds(0), value: word };
    let missing = RegisterAction { updates: vec![missing], ..plain.clone() };
    assert_eq!(with(missing), "the action it: names condition 0, which it does not have");
    let output = RegisterAction { output: AluOutput::Condition(1), conditions: vec![condition], ..plain.clone() };
    assert_eq!(with(output), "the action it: names condition 1, which it does not have");
    let constant = AluCondition { left: AluExpression::Term(zero), ..condition };
    let constant = RegisterAction { conditions: vec![constant], ..plain };
    assert_eq!(with(constant), "the action it: compares a constant");
    assert_eq!(
        error(|p| _ = p.register(register(12, Unit::Number))),
        "the register words: has words of 12 bits; 8, 16 and 32 are possible"
    );
}

#[test]
fn names_are_those_of_a_program() {
    let twice = error(|p| {
        p.variable("it", 1, Unit::Number);
        p.variable("it", 1, Unit::Number);
    });
    assert_eq!(twice, "the name 'it': is used twice");
    let dash = error(|p| _ = p.variable("a-b", 1, Unit::Number));
    assert_eq!(dash, "the name 'a-b': must be lower-case letters, digits and underscores, and begin with a letter");
    let keyword = error(|p| _ = p.variable("state", 1, Unit::Number));
    assert_eq!(keyword, "the name 'state': is a word of P4, or of the printed programs");
    let input = error(|p| {
        let port = p.input(Input::Port);
        p.set(port, Operation::Copy(1.into()));
    });
    assert_eq!(input, "the assignment to port: it is an input, which cannot be assigned");
}
