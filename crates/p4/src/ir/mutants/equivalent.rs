//! Mutants that do what the program does, with proofs.

use super::super::builder::SwitchProgram;

/// Changes that change nothing, how many there are, and the proof. Variables are numbered as in the program. Three dots stand for any beginning.
pub(super) type Equivalent = [(&'static str, usize, &'static str)];

/// Those of PIE in the data plane.
const OF_PIE: [(&str, usize, &str); 7] = [
    ("Equal as GreaterOrEqual", 1, "one bit: generated == 1"),
    ("Before as After", 1, "an action without updates: read_delay"),
    ("Fails(0) as Always", 1, "the first update is made where the condition holds"),
    ("After as Before", 1, "the output is not used: change_probability"),
    ("Before as After", 1, "the output is not used: keep_random_here"),
    ("Before as After", 1, "the output is not used: store_delay"),
    ("Equal as GreaterOrEqual", 1, "one bit: chosen == 1"),
];

/// Those of the tables of PIE_TABLE.
const OF_TABLES: [(&str, usize, &str); 1] = [("Equal as GreaterOrEqual", 1, "one bit: up == 1")];

/// Those of the shifts of PIE_DP.
const OF_SHIFTS: [(&str, usize, &str); 6] = [
    ("Equal as LessOrEqual", 6, "below == 0 twice, decline == 0 three times, down == 0"),
    (
        "SubtractSaturating(Variable(Variable(5)), Constant(125)) as Subtract(Variable(Variable(5)), Constant(125))",
        1,
        "above is read where delay >= 125",
    ),
    (
        "SubtractSaturating(Variable(Variable(5)), Variable(Variable(6))) as Subtract(Variable(Variable(5)), Variable(Variable(6)))",
        1,
        "growth is read where delay >= before",
    ),
    (
        "AddSaturating(Variable(Variable(9)), Variable(Variable(12))) as Add(Variable(Variable(9)), Variable(Variable(12)))",
        1,
        "downwards, alpha is at most 125 * 2^9, and beta at most 2^32 - 2^19",
    ),
    (
        "SubtractSaturating(Variable(Variable(9)), Variable(Variable(12))) as Subtract(Variable(Variable(9)), Variable(Variable(12)))",
        1,
        "if alpha < beta where it is up, down is beta - alpha, and up is not read",
    ),
    (
        "SubtractSaturating(Variable(Variable(12)), Variable(Variable(9))) as Subtract(Variable(Variable(12)), Variable(Variable(9)))",
        1,
        "if beta < alpha where it is up, down is alpha - beta, and up is not read",
    ),
];

/// Those of PIE_CP.
const OF_PIE_CP: [(&str, usize, &str); 2] = [
    ("Before as After", 1, "an action without updates: read_probability"),
    ("Before as After", 1, "the output is not used: store_delay"),
];

/// Those of the step.
const OF_STEP: [(&str, usize, &str); 1] = [("NotEqual as Greater", 1, "ecn != 0")];

/// Those of RED behind the queue.
const OF_RED: [(&str, usize, &str); 2] =
    [("Equal as GreaterOrEqual", 1, "one bit: certain == 1"), ("Equal as LessOrEqual", 1, "ecn == 0")];

/// Those of CoDel_DP and ECN#_DP.
const OF_SCHEDULE: [(&str, usize, &str); 6] = [
    ("Before as After", 2, "the output is not used: keep_time, begin_count"),
    ("Equal as GreaterOrEqual", 1, "one bit: due == 1"),
    (
        "Minimum(Variable(Variable(6)), Constant(2104328192)) as Minimum(Variable(Variable(6)), Constant(2104328193))",
        1,
        "the key has the bits from 2^15 on, and the end is a multiple of that",
    ),
    (
        "AddSaturating(Variable(Variable(8)), Variable(Variable(11))) as Add(Variable(Variable(8)), Variable(Variable(11)))",
        1,
        "at most 512 and at most 2^32 / 2^21",
    ),
    ("Add(Word, Value(Constant(1))) as AddSaturating(Word, Value(Constant(1)))", 1, "the word is below scheduled"),
    ("Add(Word, Value(Constant(1))) as AddSigned(Word, Value(Constant(1)))", 1, "the same, which is below 2^31"),
];

/// Those of CoDel_DP alone.
const OF_CODEL: [(&str, usize, &str); 1] = [("Equal as LessOrEqual", 1, "ecn == 0")];

/// Those of ConQuest.
const OF_CONQUEST: [(&str, usize, &str); 8] = [
    ("Before as After", 8, "an action without updates: read"),
    ("...(0, 1)], 1)", 16, "a generated packet is dropped, whatever it reads"),
    ("...(0, 32767), (0, 0)], 1)", 8, "read in one row only: the count of the other is zero, and so is the least"),
    ("...(1, 32767), (0, 0)], 1)", 8, "the same"),
    ("...(1, 32768), (0, 0)], 1)", 8, "the same"),
    ("...(2, 32768), (0, 0)], 1)", 8, "the same"),
    ("Equal as GreaterOrEqual", 1, "one bit: generated == 1"),
    ("NotEqual as Greater", 1, "ecn != 0"),
];

/// Those of the mark for a standing queue, with one row.
const OF_STANDING: [(&str, usize, &str); 6] = [
    (
        "Add(Variable(Variable(8)), Constant(1)) as AddSaturating(Variable(Variable(8)), Constant(1))",
        1,
        "a queue length has 19 bits",
    ),
    ("Before as After", 4, "an action without updates: read"),
    ("...(0, 1)], 1)", 8, "a generated packet is dropped, whatever it reads"),
    ("...(0, 32767), (0, 0)], 1)", 4, "a packet that covers no whole window waited no longer than tau, which is two"),
    ("Equal as GreaterOrEqual", 1, "one bit: generated == 1"),
    ("NotEqual as Greater", 2, "ecn != 0, queue_length != 0"),
];

/// Those of ConQuest that acts at ingress, with one row.
const OF_CONQUEST_INGRESS: [(&str, usize, &str); 6] = [
    ("Equal as GreaterOrEqual", 3, "one bit: generated == 1, fed_back == 1, is_same == 1"),
    ("NotEqual as Greater", 1, "ecn != 0"),
    ("...(0, 32767), (0, 0)], 1)", 4, "a packet that covers no whole window waited no longer than tau, which is two"),
    ("Before as After", 5, "an action without updates: read, read_until"),
    ("...(0, 1)], 1)", 8, "a generated packet is dropped, whatever it reads"),
    (
        "Or(Variable(Variable(26)), Constant(2147483648)) as Xor(Variable(Variable(26)), Constant(2147483648))",
        1,
        "the hash has 31 bits",
    ),
];

/// Those of ConQuest that drops, limits or re-routes at ingress, with one row.
const OF_CONQUEST_FEEDBACK: [(&str, usize, &str); 5] = [
    ("Equal as GreaterOrEqual", 3, "one bit: generated == 1, fed_back == 1, is_same == 1"),
    ("...(0, 32767), (0, 0)], 1)", 4, "a packet that covers no whole window waited no longer than tau, which is two"),
    ("Before as After", 5, "an action without updates: read, read_until"),
    ("...(0, 1)], 1)", 8, "a generated packet is dropped, whatever it reads"),
    (
        "Or(Variable(Variable(26)), Constant(2147483648)) as Xor(Variable(Variable(26)), Constant(2147483648))",
        1,
        "the hash has 31 bits",
    ),
];

/// Those of a limit.
const OF_LIMIT: [(&str, usize, &str); 2] = [
    ("Equal as LessOrEqual", 1, "one bit: passes == 0"),
    (
        "Less as LessOrEqual",
        2,
        "a time that is now, and neither behind nor ahead, is the same either way: begin_time, pass_time",
    ),
];

/// Those of ConQuest beside a router, with one row.
const OF_CONQUEST_LEGACY: [(&str, usize, &str); 9] = [
    (
        "Equal as GreaterOrEqual",
        7,
        "one bit: generated == 1, inserted == 1, seen == 1, long == 1; role is at most 2: role == 2, three times",
    ),
    ("Equal as LessOrEqual", 1, "one bit: generated == 0"),
    ("NotEqual as Greater", 6, "ip_length != 0, four times; role != 0; came != 0"),
    (
        "Subtract(Value(Variable(Variable(12))), Word) as SubtractSaturating(Value(Variable(Variable(12))), Word)",
        1,
        "where the word is larger, the other condition holds",
    ),
    ("Before as After", 4, "an action without updates: read"),
    ("...(1, 32766), (0, 0)], 1)", 4, "max_delay is 4 windows, and no packet that waited longer is reported"),
    ("...(1, 32768), (0, 0)], 1)", 4, "the same"),
    ("...(2, 32766), (0, 0)], 1)", 4, "the same"),
    ("...(2, 32768), (0, 0)], 1)", 4, "the same"),
];

/// Those of the check of arrivals of ABC.
const OF_ARRIVALS: [(&str, usize, &str); 1] =
    [("Equal as GreaterOrEqual", 3, "one bit: malformed == 1, has_activity == 1, outside == 1")];

/// Those of ABC's edge.
const OF_ABC_EDGE: [(&str, usize, &str); 8] = [
    ("Before as After", 4, "an action without updates: keep_bytes_even, keep_bytes_odd, keep_time_even, keep_time_odd"),
    ("Equal as GreaterOrEqual", 1, "one bit: outside == 1"),
    ("Equal as LessOrEqual", 1, "one bit: the parity of the epoch is 0"),
    (
        "Or(Variable(Variable(8)), Constant(1048576)) as Xor(Variable(Variable(8)), Constant(1048576))",
        1,
        "within has 20 bits",
    ),
    (
        "Subtract(Constant(1048576), Variable(Variable(23))) as SubtractSigned(Constant(1048576), Variable(Variable(23)))",
        1,
        "before was shifted by 4: both numbers are below 2^31",
    ),
    (
        "Subtract(Variable(Variable(7)), Variable(Variable(11))) as SubtractSigned(Variable(Variable(7)), Variable(Variable(11)))",
        1,
        "the epoch has 15 bits, so that a difference stops at its upper end only, where both results are 2 or more",
    ),
    (
        "SubtractSigned(Variable(Variable(30)), Variable(Variable(29))) as Subtract(Variable(Variable(30)), Variable(Variable(29)))",
        1,
        "the logarithm of bytes is below 2^13, and that of the reference is -2204",
    ),
    (
        "SubtractSigned(Variable(Variable(31)), Variable(Variable(32))) as Subtract(Variable(Variable(31)), Variable(Variable(32)))",
        1,
        "the same: the result is between -2^13 and 2^14",
    ),
];

/// Those of ABC's core, with either average.
const OF_ABC_CORE: [(&str, usize, &str); 2] = [
    ("Equal as GreaterOrEqual", 1, "one bit: has_activity == 1"),
    (
        "Subtract(Constant(20), Variable(Variable(8))) as SubtractSigned(Constant(20), Variable(Variable(8)))",
        1,
        "the queue counts as at most 511",
    ),
];

/// That of the mean.
const OF_ABC_MEAN: [(&str, usize, &str); 2] =
    [("Equal as LessOrEqual", 1, "word == 0"), ("NotEqual as Greater", 1, "average != 0")];

/// That of ABC's exit.
const OF_ABC_STRIP: [(&str, usize, &str); 1] = [("Equal as GreaterOrEqual", 1, "one bit: has_activity == 1")];

const OF_EGRESS_PI: [(&str, usize, &str); 14] = [
    (
        "Minimum(Variable(Variable(4)), Constant(8388607)) as Minimum(Variable(Variable(4)), Constant(8388606))",
        1,
        "the lowest ten bits are not read, and both ends have the same others",
    ),
    (
        "Minimum(Variable(Variable(4)), Constant(1048575)) as Minimum(Variable(Variable(4)), Constant(1048574))",
        1,
        "the same",
    ),
    ("Equal as GreaterOrEqual", 1, "one bit: long == 1"),
    (
        "Add(Variable(Variable(9)), Variable(Variable(10))) as AddSaturating(Variable(Variable(9)), Variable(Variable(10)))",
        1,
        "alpha < 2^19 and beta < 2^30",
    ),
    (
        "Subtract(Variable(Variable(11)), Constant(62464)) as SubtractSigned(Variable(Variable(11)), Constant(62464))",
        1,
        "both numbers are below 2^31",
    ),
    ("Equal as GreaterOrEqual", 1, "one bit: due == 1"),
    (
        "Xor(Variable(Variable(19)), Constant(2147483648)) as Or(Variable(Variable(19)), Constant(2147483648))",
        1,
        "half is below 2^31",
    ),
    ("Equal as LessOrEqual", 1, "ecn == 0"),
    ("Equal as GreaterOrEqual", 1, "one bit: larger[31:31] == 1"),
    ("NotEqual as Greater", 1, "excess != 0"),
    ("Equal as LessOrEqual", 1, "one bit: excess[31:31] == 0"),
    ("Equal as LessOrEqual", 1, "where p' is an eighth or more, delay >= short holds if delay >= calm does"),
    ("Equal as GreaterOrEqual", 1, "the same"),
    ("Equal as LessOrEqual", 1, "ecn == 0"),
];

/// Those of PrintQueue's time windows.
const OF_WINDOWS: [(&str, usize, &str); 1] = [("NotEqual as Greater", 1, "old_times_0 != 0")];

/// Those of its queue monitor.
const OF_MONITOR: [(&str, usize, &str); 2] = [
    ("Holds(0) as Always", 1, "the word is the level otherwise"),
    ("Equal as GreaterOrEqual", 1, "one bit: changes == 1"),
];

pub(super) fn equivalent(program: &SwitchProgram) -> Vec<&'static Equivalent> {
    let has_limit = program.registers.iter().any(|register| register.name == "flow_time");
    match program.name {
        "conquest-feedback" if has_limit => vec![&OF_CONQUEST_FEEDBACK, &OF_LIMIT],
        "conquest-feedback" => vec![&OF_CONQUEST_FEEDBACK],
        "red-egress" => vec![&OF_RED],
        "pie-cp" => vec![&OF_PIE_CP],
        "pie-dp" => vec![&OF_PIE, &OF_SHIFTS],
        "pie-table" => vec![&OF_PIE, &OF_TABLES],
        "egress-pi" => vec![&OF_EGRESS_PI],
        "conquest" => vec![&OF_CONQUEST],
        "conquest-stands" => vec![&OF_STANDING],
        "conquest-ingress" => vec![&OF_CONQUEST_INGRESS],
        "conquest-legacy" => vec![&OF_CONQUEST_LEGACY],
        "codel-dp" => vec![&OF_SCHEDULE, &OF_CODEL],
        "ecn-sharp-dp" => vec![&OF_SCHEDULE, &OF_STEP],
        "step" => vec![&OF_STEP],
        "printqueue-windows" => vec![&OF_WINDOWS],
        "printqueue-monitor" => vec![&OF_MONITOR],
        "abc-edge" => vec![&OF_ARRIVALS, &OF_ABC_EDGE],
        "abc-core" => vec![&OF_ARRIVALS, &OF_ABC_CORE, &OF_ABC_MEAN],
        "abc-core-median" => vec![&OF_ARRIVALS, &OF_ABC_CORE],
        "abc-strip" => vec![&OF_ARRIVALS, &OF_ABC_STRIP],
        _ => Vec::new(),
    }
}
