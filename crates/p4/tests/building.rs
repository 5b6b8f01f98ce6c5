//! What does not build: the errors name the statement and the rule.

use queuescope_p4::Gress;
use queuescope_p4::ir::{
    AluCondition, AluExpression, AluOutput, AluTerm, AluUpdate, Architecture, Builder, Comparison, Condition, Half,
    Input, MatchTable, Operation, PairAction, PairCondition, PairOutput, Polynomial, RegisterAction, RegisterArray,
    TableEntries, Unit, Variable, When, print, refusal,
};

/// The error of a program, without its beginning.
fn error(build: impl FnOnce(&mut Builder)) -> String {
    let mut p = Builder::new("it", "", "");
    build(&mut p);
    let error = p.build().expect_err("it is not valid").to_string();
    error.strip_prefix("the program it: ").expect("the program is named").to_owned()
}

fn register(bits: u32, unit: Unit) -> RegisterArray {
    RegisterArray { name: "words".into(), about: "".into(), bits, unit, entries: 4, initial: 0 }
}

fn adding(value: Variable) -> RegisterAction {
    let sum = AluExpression::Add(AluTerm::Word, AluTerm::Value(value.into()));
    let updates = vec![AluUpdate { when: When::Always, value: sum }];
    RegisterAction { name: "add".into(), conditions: Vec::new(), updates, output: AluOutput::After }
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
        p.access(words, 1, RegisterAction { name: "again".into(), ..adding(value) }, None);
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
        |p| p.access(words, 1, RegisterAction { name: "again".into(), ..adding(value) }, None),
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
    let plain =
        RegisterAction { name: "it".into(), conditions: Vec::new(), updates: Vec::new(), output: AluOutput::Before };
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
        "the register words: has words of 12 bits; 8, 16, 32, and 64 for a pair are possible"
    );
}

/// The open-source compiler subtracts the constant of a comparison, as a number of 32 bits with a sign.
#[test]
fn a_tofinos_register_compares_with_constants_of_31_bits() {
    let program = |constant: u64| {
        let mut p = Builder::new("it", "", "");
        let words = p.register(register(32, Unit::Number));
        let left = AluExpression::Term(AluTerm::Word);
        let condition = AluCondition { left, comparison: Comparison::Less, right: AluTerm::Value(constant.into()) };
        let updates = vec![AluUpdate { when: When::Holds(0), value: left }];
        let action =
            RegisterAction { name: "it".into(), conditions: vec![condition], updates, output: AluOutput::Nothing };
        p.access(words, 0, action, None);
        p.build().expect("it is valid")
    };
    let refused = "it compares with a constant above 2147483648, which a Tofino's register unit lacks";
    assert_eq!(refusal(&program((1 << 31) + 1), Architecture::Tna).as_deref(), Some(refused));
    assert_eq!(refusal(&program(1 << 31), Architecture::Tna), None);
    assert_eq!(refusal(&program((1 << 31) + 1), Architecture::V1model), None);
}

/// The open-source compiler rejects a condition of 102 bits. Without another branch it becomes a condition in another.
#[test]
fn a_long_condition_is_printed_in_parts_for_a_tofino() {
    let program = |has_other: bool| {
        let mut p = Builder::new("it", "", "");
        let fields = ["one", "two", "three"].map(|name| p.variable(name, 32, Unit::Number));
        let parts = fields.map(|field| Condition::compare(field, Comparison::Equal, 7)).to_vec();
        let condition = Condition::All(parts);
        if has_other {
            p.choose(condition, Builder::mark_packet, Builder::drop_packet);
        } else {
            p.when(condition, Builder::drop_packet);
        }
        p.build().expect("it is valid")
    };
    let count = |text: &str| text.matches("== 32w7").count();
    let in_parts = print(&program(false), Architecture::Tna);
    assert_eq!((count(&in_parts), in_parts.matches("if (one == 32w7) {").count()), (3, 1), "{in_parts}");
    assert!(print(&program(false), Architecture::V1model).contains("&& two == 32w7 &&"));
    let refused = "a condition tests 96 bits at once, and the gateways of a Tofino 64";
    assert_eq!(refusal(&program(true), Architecture::Tna).as_deref(), Some(refused));
    assert_eq!(refusal(&program(false), Architecture::Tna), None);
}

#[test]
fn averages_shift_some_of_the_bits() {
    let shifted = |shift| {
        error(|p| {
            let words = p.register(register(8, Unit::Number));
            let value = AluExpression::MoveTowards(AluTerm::Value(1.into()), shift);
            let updates = vec![AluUpdate { when: When::Always, value }];
            let action =
                RegisterAction { name: "it".into(), conditions: Vec::new(), updates, output: AluOutput::After };
            p.access(words, 0, action, None);
        })
    };
    for shift in [0, 8] {
        let why = format!("the action it: a shift by {shift} leaves nothing of a change of 8 bits, or all of it");
        assert_eq!(shifted(shift), why);
    }
}

#[test]
fn activities_have_the_width_of_their_header() {
    let narrow = error(|p| {
        p.input(Input::HasActivity);
        let value = p.variable("value", 8, Unit::Number);
        p.push_activity(value);
    });
    assert_eq!(narrow, "a push of the activity: has 8 bits; an activity has 16");
    let wide = error(|p| {
        p.input(Input::HasActivity);
        let value = p.variable("value", 32, Unit::Number);
        p.push_activity(value);
    });
    assert_eq!(wide, "a push of the activity: reads 32 bits of value into 16: take a slice");
    let unread = "the program does not have the input has_activity";
    assert_eq!(error(|p| p.push_activity(1)), format!("a push of the activity: {unread}"));
    assert_eq!(error(Builder::strip_activity), format!("a removal of the activity: {unread}"));
}

#[test]
fn an_index_stays_within_its_register() {
    let beyond = error(|p| {
        let port = p.input(Input::Port);
        let value = p.variable("value", 32, Unit::Number);
        let words = p.register(register(32, Unit::Number));
        p.access(words, port.slice(0, 3), adding(value), None);
    });
    assert_eq!(beyond, "the action add: its index can be 7, and words has 4 words");
    let constant = error(|p| {
        let value = p.variable("value", 32, Unit::Number);
        let words = p.register(register(32, Unit::Number));
        p.access(words, 4, adding(value), None);
    });
    assert_eq!(constant, "the action add: its index can be 4, and words has 4 words");
}

#[test]
fn conditions_have_parts() {
    assert_eq!(error(|p| p.when(Condition::All(Vec::new()), |_| ())), "a condition: has no parts");
    let constants = error(|p| p.when(Condition::compare(1, Comparison::Less, 2), |_| ()));
    assert_eq!(constants, "a condition: compares constants");
}

#[test]
fn tables_are_consistent() {
    let table = |entries: TableEntries, keys: usize, results: usize| {
        error(|p| {
            let (key, result) = (p.variable("code", 8, Unit::Number), p.variable("value", 4, Unit::Number));
            p.look_up(MatchTable {
                name: "table_of_values".into(),
                about: "".into(),
                keys: vec![key.into(); keys],
                entries,
                results: vec![result; results],
                otherwise: vec![0; results],
            });
        })
    };
    let exact = |entries: &[(u64, u64)]| {
        TableEntries::Exact(entries.iter().map(|(key, value)| (vec![*key], vec![*value])).collect())
    };
    let ranges = |ranges: &[(u64, u64)]| TableEntries::Ranges(ranges.iter().map(|range| (*range, vec![1])).collect());
    let of = "the table table_of_values: ";
    assert_eq!(table(exact(&[(256, 1)]), 1, 1), format!("{of}[256] does not fit [8] bits"));
    assert_eq!(table(exact(&[(1, 16)]), 1, 1), format!("{of}[16] does not fit [4] bits"));
    assert_eq!(table(exact(&[(1, 1), (1, 2)]), 1, 1), format!("{of}has two entries for [1]"));
    assert_eq!(table(ranges(&[(0, 5), (5, 6)]), 1, 1), format!("{of}5 to 6 is not after the range before it"));
    assert_eq!(table(ranges(&[(0, 5)]), 0, 1), format!("{of}needs variables as keys"));
    assert_eq!(table(exact(&[]), 2, 1), format!("{of}has a variable twice as key"));
    assert_eq!(table(exact(&[]), 1, 2), format!("{of}gives value two values"));
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
    let prefix = error(|p| _ = p.variable("random_one", 1, Unit::Number));
    let made = "begins or ends as names that the printed programs make: bits_of_, set_, assign_, compute_, random_, condition_, compared_, hash_of_, polynomial_of_, _of_entry";
    assert_eq!(prefix, format!("the name 'random_one': {made}"));
    assert_eq!(error(|p| _ = p.variable("ecn", 2, Unit::Number)), "the variable ecn: has the name of an input");
    let input = error(|p| {
        let port = p.input(Input::Port);
        p.set(port, Operation::Copy(1.into()));
    });
    assert_eq!(input, "the assignment to port: it is an input, which cannot be assigned");
}

/// An access of a pair that swaps plain numbers.
fn swapping() -> PairAction {
    PairAction {
        name: "it".into(),
        conditions: vec![PairCondition::of_word(Half::First, Comparison::Equal, 1)],
        words: [2.into(), 3.into()],
        output: PairOutput::Changed,
    }
}

#[test]
fn pairs_are_swapped_by_small_actions() {
    let with = |bits: u32, action: PairAction, unit: Unit| {
        error(|p| {
            let result = p.variable("swapped", 1, Unit::Number);
            let words = p.register(register(bits, unit));
            p.swap(words, 0, action, result);
        })
    };
    assert_eq!(with(32, swapping(), Unit::Number), "the action it: swaps the words of words, which has no pairs");
    let none = PairAction { conditions: Vec::new(), ..swapping() };
    assert_eq!(with(64, none, Unit::Number), "the action it: has 0 conditions; 1 to 2 are possible");
    let returned = PairAction { output: PairOutput::Before(Half::Second), ..swapping() };
    assert_eq!(
        with(64, returned, Unit::NANOS),
        "the action it: returns 32 bits in nanoseconds; swapped has 1 in numbers"
    );
    let mut blind = PairCondition::of_word(Half::Second, Comparison::Equal, 1);
    blind.condition.left = AluExpression::Term(AluTerm::Value(4.into()));
    let blind = PairAction { conditions: vec![blind], ..swapping() };
    assert_eq!(with(64, blind, Unit::Number), "the action it: has a condition that does not read a word");
    assert_eq!(
        with(64, PairAction { words: [2.into(), (1 << 32).into()], ..swapping() }, Unit::Number),
        "the action it: 4294967296 has more than 32 bits"
    );
    let mixed = error(|p| {
        let (size, result) = (p.input(Input::IpLength), p.variable("swapped", 1, Unit::Number));
        let words = p.register(register(64, Unit::NANOS));
        p.swap(words, 0, PairAction { words: [2.into(), size.into()], ..swapping() }, result);
    });
    assert_eq!(mixed, "the action it: reads bytes; the second words are in nanoseconds");
    let accessed = error(|p| {
        let value = p.variable("value", 32, Unit::Number);
        let words = p.register(register(64, Unit::Number));
        p.access(words, 0, adding(value), None);
    });
    assert_eq!(accessed, "the action add: accesses words, whose entries are pairs of words: swap them");
}

#[test]
fn a_switch_off_the_path_reports_and_does_nothing_else() {
    let reports = error(|p| p.report(1, 2, 3));
    assert_eq!(reports, "a report: is for switches off the path: this one forwards packets");
    let drops = error(|p| {
        p.off_path();
        p.drop_packet();
    });
    assert_eq!(drops, "an act: a switch off the path has copies of packets, and only reports");
    let behind = error(|p| {
        p.off_path().at(Gress::Egress);
        p.compute("one", 1, Unit::Number, Operation::Copy(1.into()));
    });
    assert_eq!(behind, "the egress: has statements: a switch off the path does all before the queue");
    let forwards = error(|p| {
        p.off_path();
        let port = p.input(Input::Port);
        p.compute("one", 9, Unit::Number, Operation::Copy(port.into()));
    });
    assert_eq!(forwards, "the ingress: reads port: a switch off the path forwards nothing");
    let hashed = error(|p| {
        p.off_path();
        Input::FLOW.into_iter().for_each(|input| _ = p.input(input));
        p.compute("hashed", 32, Unit::Number, Operation::HashPacket(Polynomial::Ethernet));
    });
    assert_eq!(
        hashed,
        "the assignment to hashed: hashes the packet, and the program does not have the input ip_length"
    );
}

#[test]
fn a_program_has_one_parser_of_tcp() {
    let both = error(|p| [Input::Sequence, Input::Window].into_iter().for_each(|input| _ = p.input(input)));
    assert_eq!(both, "the inputs: has numbers of TCP and its flags or window, which two parsers of TCP find");
}

/// What packets bring back needs a note, queues and windows are of the half before the queue, and only notes are written.
#[test]
fn packets_come_back_with_a_note() {
    let again = error(|p| {
        p.at(Gress::Ingress);
        p.recirculate();
    });
    assert_eq!(again, "the ingress: feeds a copy or the packet back without a note, which says why it comes");
    let unread = error(|p| {
        let note = p.note("why", 4);
        p.at(Gress::Ingress);
        p.set(note, Operation::Copy(1.into()));
        p.feed_back();
    });
    assert_eq!(unread, "the ingress: must read fed_back exactly if copies or packets come back");
    let behind = error(|p| {
        let [port, note] = [p.input(Input::Port), p.note("why", 4)];
        p.at(Gress::Ingress);
        p.set(note, Operation::Copy(1.into()));
        p.at(Gress::Egress);
        p.enqueue(port.slice(0, 3));
    });
    assert_eq!(
        behind,
        "the ingress: is followed by an egress that chooses a queue, writes a window or recirculates a packet"
    );
    let queue = error(|p| {
        let port = p.input(Input::Port);
        p.at(Gress::Ingress);
        p.enqueue(port);
    });
    assert_eq!(queue, "the queue: reads 9 bits of port into 7: take a slice");
    let window = error(|p| {
        p.input(Input::Window);
        p.at(Gress::Ingress);
        p.set_window(1);
    });
    assert_eq!(window, "the receive window: the program does not have the input tcp_checksum");
    let input = error(|p| {
        let port = p.input(Input::Port);
        p.set(port, Operation::Copy(1.into()));
    });
    assert_eq!(input, "the assignment to port: it is an input, which cannot be assigned");
    let joined = error(|p| {
        let port = p.input(Input::Port);
        p.compute("both", 12, Unit::Number, Operation::Join(port.slice(0, 7), port.slice(0, 5), 4));
    });
    assert_eq!(joined, "the assignment to both: joins 7 and 5 bits into 12, with 4 behind");
}
