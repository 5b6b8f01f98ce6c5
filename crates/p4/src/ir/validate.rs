//! Checks of programs.

use super::action::{AluExpression, AluOutput, AluTerm, RegisterAction, RegisterArray, When};
use super::builder::{Does, Statement, SwitchProgram, VariableInfo};
use super::condition::Condition;
use super::operation::Operation;
use super::pair::{HALF_BITS, Half, PAIR_BITS, PairAction, PairCondition, PairOutput};
use super::table::{ActionTable, MatchTable, TableAction, TableEntries};
use super::uses::Uses;
use super::variable::{Input, Operand, Unit, Variable, ones};
use crate::Gress;
use std::collections::BTreeSet;
use std::fmt;

/// Why a program is not valid: the statement, and the rule that it breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidProgram {
    program: &'static str,
    place: String,
    why: String,
}

impl InvalidProgram {
    /// A parameter of an algorithm that its program cannot have.
    pub(crate) fn of_parameter(program: &'static str, key: &str, why: &str) -> Self {
        Self { program, place: format!("the parameter {key}"), why: why.to_owned() }
    }
}

impl fmt::Display for InvalidProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, place, why } = self;
        write!(f, "the program {program}: {place}: {why}")
    }
}

impl std::error::Error for InvalidProgram {}

/// Widths of a register's words. The last one is that of a pair.
const WORDS: [u32; 4] = [8, 16, 32, PAIR_BITS];
/// The conditions of a register action.
const CONDITIONS: usize = 2;
/// The bits of a hash.
const HASH_BITS: u32 = 32;
/// The bits of a queue's number.
const QUEUE_BITS: u32 = 7;
/// The widest variable.
const WIDEST: u32 = 64;

/// Words of P4_16, and names that the printed programs have.
const RESERVED: &str = "abstract action actions apply bit bool const control default default_action else entries enum error exit extern false \
                        for hdr header header_union if in inout int key list match_kind meta package parser priority result return select size \
                        state static string struct switch table this transition true tuple type typedef valueset varbit void word first second pair \
                        hash parse_ports parse_tcp parse_udp session kind mirror window_checksum tcp_sum tcp_rest sets_window ig_intr_md ig_prsr_md ig_dprsr_md ig_tm_md forward send discard mark_to_drop max min random standard_metadata eg_intr_md eg_prsr_md eg_dprsr_md eg_oport_md";

/// How names begin that the printed programs make.
const PREFIXES: [&str; 9] =
    ["bits_of_", "set_", "assign_", "compute_", "random_", "condition_", "compared_", "hash_of_", "polynomial_of_"];

/// A rule that is broken, in words.
type Broken = String;

/// Checks that names are unique, widths and units fit, and each register is accessed by at most one statement of a packet.
pub(crate) fn validate(program: &SwitchProgram) -> Result<(), InvalidProgram> {
    let fail = |place: String| move |why| InvalidProgram { program: program.name, place, why };
    let variables = program.variables.iter().map(|it| &it.name);
    let registers = program.registers.iter().map(|it| &it.name);
    let actions = program.actions.iter().map(|it| &it.name);
    let tables = program.tables.iter().map(|it| &it.name);
    let choices = program.choices.iter().flat_map(|it| it.actions.iter().map(|it| &it.name).chain([&it.name]));
    let mut names = BTreeSet::new();
    let actions = actions.chain(program.pair_actions.iter().map(|it| &it.name));
    for name in variables.chain(registers).chain(actions).chain(tables).chain(choices) {
        check_name(name, &mut names).map_err(fail(format!("the name '{name}'")))?;
    }
    for info in &program.variables {
        check_variable(info).map_err(fail(format!("the variable {}", info.name)))?;
    }
    let reads = |some: &[Input]| program.inputs().any(|input| some.contains(&input));
    if reads(&Input::OF_NUMBERS) && reads(&Input::OF_TCP) {
        let why = "has numbers of TCP and its flags or window, which two parsers of TCP find".to_owned();
        return Err(fail("the inputs".to_owned())(why));
    }
    for register in &program.registers {
        check_register(register).map_err(fail(format!("the register {}", register.name)))?;
    }
    let mut accesses = vec![0; program.registers.len()];
    for gress in [Gress::Ingress, Gress::Egress] {
        let checked = check_all(program, program.at(gress), &mut accesses);
        checked.map_err(|(place, why)| InvalidProgram { program: program.name, place, why })?;
        check_gress(program, gress).map_err(fail(format!("the {}", gress.name())))?;
    }
    let mut hashed = BTreeSet::new();
    for variable in [Gress::Ingress, Gress::Egress].into_iter().flat_map(|gress| hashed_into(program.at(gress))) {
        if !hashed.insert(variable) {
            let place = format!("the variable {}", program.variables[variable.0].name);
            return Err(fail(place)("takes two hashes".to_owned()));
        }
    }
    match accesses.iter().position(|count| *count > 1) {
        Some(twice) => {
            let why = format!("{} statements access it; a stage allows one access for each packet", accesses[twice]);
            Err(fail(format!("the register {}", program.registers[twice].name))(why))
        }
        None => Ok(()),
    }
}

fn check_name<'a>(name: &'a str, names: &mut BTreeSet<&'a str>) -> Result<(), Broken> {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    if !name.starts_with(|letter: char| letter.is_ascii_lowercase()) || !name.chars().all(is_letter) {
        return Err("must be lower-case letters, digits and underscores, and begin with a letter".to_owned());
    }
    if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || name.ends_with("_of_entry") {
        return Err(format!(
            "begins or ends as names that the printed programs make: {}, _of_entry",
            PREFIXES.join(", ")
        ));
    }
    if RESERVED.split(' ').any(|word| word == name) {
        return Err("is a word of P4, or of the printed programs".to_owned());
    }
    if names.insert(name) { Ok(()) } else { Err("is used twice".to_owned()) }
}

fn check_variable(info: &VariableInfo) -> Result<(), Broken> {
    within(info.bits, 1..=WIDEST)?;
    if let Unit::Nanos { shift } = info.unit
        && shift >= u64::BITS
    {
        return Err(format!("is in units of 2^{shift} ns; at most 2^63 are possible"));
    }
    let is_other = |input: &&Input| info.input != Some(**input);
    if Input::ALL.iter().filter(is_other).any(|input| input.name() == info.name) {
        return Err("has the name of an input".to_owned());
    }
    Ok(())
}

fn within(bits: u32, range: std::ops::RangeInclusive<u32>) -> Result<(), Broken> {
    let (least, most) = (*range.start(), *range.end());
    if range.contains(&bits) { Ok(()) } else { Err(format!("has {bits} bits; {least} to {most} are possible")) }
}

fn check_register(register: &RegisterArray) -> Result<(), Broken> {
    if !WORDS.contains(&register.bits) {
        return Err(format!("has words of {} bits; 8, 16, 32, and 64 for a pair are possible", register.bits));
    }
    if register.entries == 0 {
        return Err("has no words".to_owned());
    }
    if register.initial > ones(register.bits) {
        return Err(format!("begins with {}, which has more than {} bits", register.initial, register.bits));
    }
    Ok(())
}

/// The variables that take hashes.
fn hashed_into(statements: &[Statement]) -> Vec<Variable> {
    let of = |statement: &Statement| match &statement.does {
        Does::If { then, otherwise, .. } => [hashed_into(then), hashed_into(otherwise)].concat(),
        Does::Set { variable, operation } if operation.hashes().is_some() => vec![*variable],
        _ => Vec::new(),
    };
    statements.iter().flat_map(of).collect()
}

/// Checks that a half of the pipeline knows what it reads, and does what it can.
fn check_gress(program: &SwitchProgram, gress: Gress) -> Result<(), Broken> {
    let here = Uses::of(program, gress);
    // Off the path, generated packets are processed before the queue, too.
    let is_known = |input: &Input| input.is_known_at(gress) || program.is_off_path && *input == Input::Generated;
    let inputs = here.variables.iter().filter_map(|variable| program.variables[variable.0].input);
    if let Some(unknown) = inputs.into_iter().find(|input| !is_known(input)) {
        return Err(format!("reads {}, which is not known there", unknown.name()));
    }
    if program.is_off_path && gress == Gress::Egress && !program.statements.is_empty() {
        return Err("has statements: a switch off the path does all before the queue".to_owned());
    }
    if program.is_off_path && here.reads(program, Input::Port) {
        return Err("reads port: a switch off the path forwards nothing".to_owned());
    }
    if gress == Gress::Ingress {
        if (here.feeds_back || here.recirculates) && !has_note(program) {
            return Err("feeds a copy or the packet back without a note, which says why it comes".to_owned());
        }
        let there = Uses::of(program, Gress::Egress);
        let comes_back = here.feeds_back || here.recirculates || there.feeds_back;
        if here.reads(program, Input::FedBack) != comes_back {
            return Err("must read fed_back exactly if copies or packets come back".to_owned());
        }
        let of_both = here.variables.intersection(&there.variables).find(|it| program.variables[it.0].input.is_none());
        if let Some(variable) = of_both {
            let name = &program.variables[variable.0].name;
            return Err(format!(
                "has the variable {name} of the egress: variables do not stay with a packet in the queue"
            ));
        }
        if there.recirculates || there.enqueues || there.sets_windows {
            return Err(
                "is followed by an egress that chooses a queue, writes a window or recirculates a packet".to_owned()
            );
        }
        if let Some(register) = here.registers.intersection(&there.registers).next() {
            return Err(format!("accesses the register {} of the egress", program.registers[*register].name));
        }
    }
    Ok(())
}

/// The first broken rule, and the statement that breaks it.
fn check_all(
    program: &SwitchProgram,
    statements: &[Statement],
    accesses: &mut [usize],
) -> Result<(), (String, Broken)> {
    for statement in statements {
        match &statement.does {
            Does::Mark
            | Does::Drop
            | Does::FeedBack
            | Does::Recirculate
            | Does::Enqueue(_)
            | Does::SetWindow(_)
            | Does::Push(_)
            | Does::Strip
                if program.is_off_path =>
            {
                let why = "a switch off the path has copies of packets, and only reports".to_owned();
                return Err(("an act".to_owned(), why));
            }
            Does::Comment(_) | Does::Mark | Does::Drop | Does::FeedBack | Does::Recirculate => {}
            Does::Report { port, delay, estimate } => {
                let checked = check_report(program, *port, [*delay, *estimate]);
                checked.map_err(|why| ("a report".to_owned(), why))?;
            }
            Does::Enqueue(queue) => {
                fits(program, *queue, QUEUE_BITS).map_err(|why| ("the queue".to_owned(), why))?;
            }
            Does::SetWindow(window) => {
                check_window(program, *window).map_err(|why| ("the receive window".to_owned(), why))?;
            }
            Does::Push(activity) => {
                check_push(program, *activity).map_err(|why| ("a push of the activity".to_owned(), why))?;
            }
            Does::Strip => check_has_activity(program).map_err(|why| ("a removal of the activity".to_owned(), why))?,
            Does::Lookup(table) => {
                let table = &program.tables[*table];
                check_table(program, table).map_err(|why| (format!("the table {}", table.name), why))?;
            }
            Does::Choose(table) => {
                let table = &program.choices[*table];
                check_choice(program, table, accesses).map_err(|why| (format!("the table {}", table.name), why))?;
            }
            Does::Set { variable, operation } => {
                let name = program.variables.get(variable.0).map_or("a variable of another program", |it| &it.name);
                let place = format!("the assignment to {name}");
                check_operation(program, *variable, operation).map_err(|why| (place, why))?;
            }
            Does::If { condition, then, otherwise } => {
                check_condition(program, condition).map_err(|why| ("a condition".to_owned(), why))?;
                // A packet takes one of the branches.
                let mut other = accesses.to_vec();
                check_all(program, then, accesses)?;
                check_all(program, otherwise, &mut other)?;
                accesses.iter_mut().zip(other).for_each(|(count, other)| *count = (*count).max(other));
            }
            Does::Swap { register, index, action, result } => {
                let action = &program.pair_actions[*action];
                let place = format!("the action {}", action.name);
                check_swap(program, *register, *index, action, *result).map_err(|why| (place, why))?;
                accesses[*register] += 1;
            }
            Does::Access { register, index, action, result } => {
                let action = &program.actions[*action];
                let place = format!("the action {}", action.name);
                check_access(program, *register, *index, action, *result).map_err(|why| (place, why))?;
                accesses[*register] += 1;
            }
        }
    }
    Ok(())
}

fn check_report(program: &SwitchProgram, port: Operand, values: [Operand; 2]) -> Result<(), Broken> {
    if !program.is_off_path {
        return Err("is for switches off the path: this one forwards packets".to_owned());
    }
    fits(program, port, Input::ArrivalPort.bits())?;
    values.into_iter().try_for_each(|value| fits(program, value, HALF_BITS))
}

/// Whether packets have a note.
pub(crate) fn has_note(program: &SwitchProgram) -> bool {
    program.inputs().any(Input::is_note)
}

/// Windows are written with the checksum.
fn check_window(program: &SwitchProgram, window: Operand) -> Result<(), Broken> {
    let missing = [Input::Window, Input::TcpChecksum].into_iter().find(|input| program.inputs().all(|it| it != *input));
    if let Some(missing) = missing {
        return Err(format!("the program does not have the input {}", missing.name()));
    }
    fits(program, window, Input::Window.bits())
}

/// Whether a variable is an input that cannot be assigned. Slots of the note can be.
fn is_fixed(info: &VariableInfo) -> bool {
    info.input.is_some_and(|input| !input.is_note())
}

fn check_push(program: &SwitchProgram, activity: Operand) -> Result<(), Broken> {
    check_has_activity(program)?;
    fits(program, activity, Input::Activity.bits())?;
    match bits(program, activity) {
        Some(bits) if bits < Input::Activity.bits() => {
            Err(format!("has {bits} bits; an activity has {}", Input::Activity.bits()))
        }
        _ => Ok(()),
    }
}

/// A program that changes activity headers reads whether there is one, so that it is parsed.
fn check_has_activity(program: &SwitchProgram) -> Result<(), Broken> {
    let reads = |it: &VariableInfo| it.input == Some(Input::HasActivity);
    let is_read = program.variables.iter().any(reads);
    if is_read { Ok(()) } else { Err("the program does not have the input has_activity".to_owned()) }
}

fn check_operation(program: &SwitchProgram, to: Variable, operation: &Operation) -> Result<(), Broken> {
    let info = program.variables.get(to.0).ok_or("it does not exist here")?;
    if is_fixed(info) {
        return Err("it is an input, which cannot be assigned".to_owned());
    }
    for operand in operation.operands() {
        fits(program, operand, info.bits)?;
    }
    if let Operation::ShiftLeft(_, by) | Operation::Gather(_, by) | Operation::ShiftRight(_, by) = operation
        && *by >= info.bits
    {
        return Err(format!("a shift by {by} leaves nothing of {} bits", info.bits));
    }
    if let Operation::Join(one, other, by) = *operation {
        let [one, other] = [one, other].map(|operand| bits(program, operand).unwrap_or(0));
        if other != by || one == 0 || one + by > info.bits {
            return Err(format!("joins {one} and {other} bits into {}, with {by} behind", info.bits));
        }
    }
    if let Some((parts, _)) = operation.hashes() {
        let has = |input: &Input| program.variables.iter().any(|it| it.input == Some(*input));
        if let Some(missing) = parts.iter().find(|input| !has(input)) {
            let what = if parts == Input::FLOW { "flow" } else { "packet" };
            return Err(format!("hashes the {what}, and the program does not have the input {}", missing.name()));
        }
        if info.bits > HASH_BITS {
            return Err(format!("takes {} bits of a hash, which has {HASH_BITS}", info.bits));
        }
    }
    let units: Vec<_> = operation.operands().iter().filter_map(|operand| unit(program, *operand)).collect();
    let expected = match *operation {
        Operation::ShiftRight(_, by) => units.first().map(|unit| unit.without_low_bits(by)),
        // A product is a plain number.
        Operation::ShiftLeft(..)
        | Operation::Join(..)
        | Operation::Random
        | Operation::Hash(_)
        | Operation::HashReversed(_)
        | Operation::HashPacket(_) => None,
        _ => units.first().copied(),
    };
    if let Some(other) = units.iter().find(|unit| Some(**unit) != units.first().copied()) {
        return Err(format!("combines {} and {}", units[0], other));
    }
    let is_drawn = matches!(operation, Operation::Random) || operation.hashes().is_some();
    let is_constant = units.is_empty() && !is_drawn;
    match expected.unwrap_or(Unit::Number) {
        _ if is_constant => Ok(()),
        // A copy of bits as a plain number is possible.
        unit if unit == info.unit || info.unit == Unit::Number => Ok(()),
        unit => Err(format!("the result is in {unit}, and the variable in {}", info.unit)),
    }
}

fn check_condition(program: &SwitchProgram, condition: &Condition) -> Result<(), Broken> {
    if let Condition::All(parts) | Condition::Any(parts) = condition {
        if parts.is_empty() {
            return Err("has no parts".to_owned());
        }
        return parts.iter().try_for_each(|part| check_condition(program, part));
    }
    for (left, right) in condition.comparisons() {
        let widest = [left, right].map(|operand| bits(program, operand).unwrap_or(0)).into_iter().max();
        let widest = widest.filter(|bits| *bits > 0).ok_or("compares constants")?;
        [left, right].into_iter().try_for_each(|operand| fits(program, operand, widest))?;
        if let (Some(left), Some(right)) = (unit(program, left), unit(program, right))
            && left != right
        {
            return Err(format!("compares {left} with {right}"));
        }
    }
    Ok(())
}

/// A register, all of whose indexes are possible.
fn indexed(program: &SwitchProgram, register: usize, index: Operand) -> Result<&RegisterArray, Broken> {
    let register = program.registers.get(register).ok_or("accesses a register that does not exist")?;
    fits(program, index, u64::BITS)?;
    let highest = match index {
        Operand::Constant(index) => index,
        index => ones(bits(program, index).unwrap_or(0)),
    };
    if highest >= register.entries {
        return Err(format!("its index can be {highest}, and {} has {} words", register.name, register.entries));
    }
    Ok(register)
}

/// Checks an access to a pair: what is compared with a word, or becomes one, is in its unit.
fn check_swap(
    program: &SwitchProgram,
    register: usize,
    index: Operand,
    action: &PairAction,
    result: Variable,
) -> Result<(), Broken> {
    let register = indexed(program, register, index)?;
    if register.bits != PAIR_BITS {
        return Err(format!("swaps the words of {}, which has no pairs", register.name));
    }
    if !(1..=CONDITIONS).contains(&action.conditions.len()) {
        return Err(format!("has {} conditions; 1 to {CONDITIONS} are possible", action.conditions.len()));
    }
    let unit_of = |half: Half| if half == Half::First { Unit::Number } else { register.unit };
    let value = |operand, half| {
        fits(program, operand, HALF_BITS)?;
        match unit(program, operand) {
            Some(unit) if unit != unit_of(half) => {
                Err(format!("reads {unit}; the {} words are in {}", half.name(), unit_of(half)))
            }
            _ => Ok(()),
        }
    };
    value(action.words[0], Half::First)?;
    value(action.words[1], Half::Second)?;
    for PairCondition { of, condition } in &action.conditions {
        if matches!(condition.left, AluExpression::MoveTowards(..)) {
            return Err("averages in a condition".to_owned());
        }
        if !condition.reads_word() {
            return Err("has a condition that does not read a word".to_owned());
        }
        let terms = condition.left.terms().into_iter().chain([condition.right]);
        let operands = terms.filter_map(|term| if let AluTerm::Value(operand) = term { Some(operand) } else { None });
        operands.into_iter().try_for_each(|operand| value(operand, *of))?;
    }
    let (bits, unit) = match action.output {
        PairOutput::Changed => (1, Unit::Number),
        PairOutput::Before(half) => (HALF_BITS, unit_of(half)),
    };
    returns(program, result, bits, unit)
}

fn check_access(
    program: &SwitchProgram,
    register: usize,
    index: Operand,
    action: &RegisterAction,
    result: Option<Variable>,
) -> Result<(), Broken> {
    let register = indexed(program, register, index)?;
    if register.bits == PAIR_BITS {
        return Err(format!("accesses {}, whose entries are pairs of words: swap them", register.name));
    }
    if action.conditions.len() > CONDITIONS {
        return Err(format!("has {} conditions; the unit has {CONDITIONS}", action.conditions.len()));
    }
    if matches!(action.output, AluOutput::Computed(_)) && !action.updates.is_empty() {
        return Err("returns a value that it computes, and changes the word too".to_owned());
    }
    for operand in action.operands() {
        fits(program, operand, register.bits)?;
        if let Some(unit) = unit(program, operand)
            && unit != register.unit
        {
            return Err(format!("reads {unit}; the words are in {}", register.unit));
        }
    }
    let named = action.updates.iter().filter_map(|update| match update.when {
        When::Always => None,
        When::Holds(condition) | When::Fails(condition) => Some(condition),
    });
    let of_output = match action.output {
        AluOutput::Condition(condition) => Some(condition),
        AluOutput::Before | AluOutput::After | AluOutput::Computed(_) | AluOutput::Nothing => None,
    };
    if let Some(missing) = named.chain(of_output).find(|condition| *condition >= action.conditions.len()) {
        return Err(format!("names condition {missing}, which it does not have"));
    }
    let is_constant = |expression: AluExpression| {
        expression.terms().iter().all(|term| matches!(term, AluTerm::Value(Operand::Constant(_))))
    };
    if action.conditions.iter().any(|condition| is_constant(condition.left)) {
        return Err("compares a constant".to_owned());
    }
    let of_conditions = action.conditions.iter().map(|condition| condition.left);
    for expression in action.updates.iter().map(|update| update.value).chain(of_conditions) {
        if let AluExpression::MoveTowards(_, shift) = expression
            && !(1..register.bits).contains(&shift)
        {
            return Err(format!(
                "a shift by {shift} leaves nothing of a change of {} bits, or all of it",
                register.bits
            ));
        }
    }
    let Some(result) = result else { return Ok(()) };
    let (bits, unit) = match action.output {
        AluOutput::Condition(_) => (1, Unit::Number),
        AluOutput::Before | AluOutput::After | AluOutput::Computed(_) => (register.bits, register.unit),
        AluOutput::Nothing => return Ok(()),
    };
    returns(program, result, bits, unit)
}

/// Checks the variable that takes what an access returns.
fn returns(program: &SwitchProgram, result: Variable, bits: u32, unit: Unit) -> Result<(), Broken> {
    let info = program.variables.get(result.0).ok_or("returns into a variable of another program")?;
    if is_fixed(info) {
        return Err(format!("{} is an input, which cannot be assigned", info.name));
    }
    if info.bits != bits || info.unit != unit {
        return Err(format!("returns {bits} bits in {unit}; {} has {} in {}", info.name, info.bits, info.unit));
    }
    Ok(())
}

fn check_table(program: &SwitchProgram, table: &MatchTable) -> Result<(), Broken> {
    table.keys.iter().try_for_each(|key| fits(program, *key, u64::BITS))?;
    let widths: Vec<_> = table.keys.iter().filter_map(|key| bits(program, *key)).collect();
    if widths.is_empty() && !table.entries.is_empty() || widths.len() != table.keys.len() {
        return Err("needs variables as keys".to_owned());
    }
    for result in &table.results {
        let info = program.variables.get(result.0).ok_or("gives a value to a variable of another program")?;
        if is_fixed(info) {
            return Err(format!("{} is an input, which cannot be assigned", info.name));
        }
        if table.results.iter().filter(|other| *other == result).count() > 1 {
            return Err(format!("gives {} two values", info.name));
        }
    }
    check_keys(&table.keys)?;
    let results: Vec<_> = table.results.iter().map(|result| program.variables[result.0].bits).collect();
    let all_fit = |values: &[u64], widths: &[u32]| {
        let fit = values.len() == widths.len() && values.iter().zip(widths).all(|(value, bits)| *value <= ones(*bits));
        if fit { Ok(()) } else { Err(format!("{values:?} does not fit {widths:?} bits")) }
    };
    all_fit(&table.otherwise, &results)?;
    match &table.entries {
        TableEntries::Exact(entries) => {
            let mut keys = BTreeSet::new();
            for (key, values) in entries {
                all_fit(key, &widths)?;
                all_fit(values, &results)?;
                if !keys.insert(key) {
                    return Err(format!("has two entries for {key:?}"));
                }
            }
        }
        TableEntries::Ranges(entries) => {
            let mut next = 0;
            for ((low, high), values) in entries {
                all_fit(&[*high], &widths)?;
                all_fit(values, &results)?;
                if low > high || *low < next {
                    return Err(format!("{low} to {high} is not after the range before it"));
                }
                next = high.saturating_add(1);
            }
        }
    }
    Ok(())
}

/// A variable names its key in a control plane.
fn check_keys(keys: &[Operand]) -> Result<(), Broken> {
    let variables: BTreeSet<_> = keys.iter().filter_map(|key| key.variable()).collect();
    if variables.len() == keys.len() { Ok(()) } else { Err("has a variable twice as key".to_owned()) }
}

fn check_choice(program: &SwitchProgram, table: &ActionTable, accesses: &mut [usize]) -> Result<(), Broken> {
    table.keys.iter().try_for_each(|key| fits(program, *key, u64::BITS))?;
    let widths: Vec<_> = table.keys.iter().filter_map(|key| bits(program, *key)).collect();
    if widths.is_empty() || widths.len() != table.keys.len() {
        return Err("needs variables as keys".to_owned());
    }
    check_keys(&table.keys)?;
    if table.entries.is_empty() {
        return Err("has no entries".to_owned());
    }
    let mut most = accesses.to_vec();
    for action in &table.actions {
        let mut own = accesses.to_vec();
        check_action(program, action, &mut own).map_err(|why| format!("{}: {why}", action.name))?;
        most.iter_mut().zip(own).for_each(|(count, own)| *count = (*count).max(own));
    }
    accesses.copy_from_slice(&most);
    for (number, (ranges, action)) in table.entries.iter().enumerate() {
        let fit = |((low, high), bits): (&(u64, u64), &u32)| low <= high && *high <= ones(*bits);
        if ranges.len() != widths.len() || !ranges.iter().zip(&widths).all(fit) {
            return Err(format!("{ranges:?} does not fit {widths:?} bits"));
        }
        if *action >= table.actions.len() {
            return Err(format!("names action {action}, which it does not have"));
        }
        let meet =
            |other: &[(u64, u64)]| ranges.iter().zip(other).all(|(one, other)| one.0 <= other.1 && other.0 <= one.1);
        if let Some((other, _)) = table.entries[..number].iter().find(|(other, _)| meet(other)) {
            return Err(format!("packets can match both {other:?} and {ranges:?}"));
        }
    }
    Ok(())
}

/// Checks what an entry does: a stage does all of it at once.
fn check_action(program: &SwitchProgram, action: &TableAction, accesses: &mut [usize]) -> Result<(), Broken> {
    let mut assigned = BTreeSet::new();
    for statement in &action.statements {
        let (reads, sets) = match &statement.does {
            Does::Set { operation, .. } if *operation == Operation::Random || operation.hashes().is_some() => {
                return Err("random numbers and hashes are drawn before a table, not in it".to_owned());
            }
            Does::Set { variable, operation } => (operation.operands(), Some(*variable)),
            Does::Access { index, action, result, .. } => {
                (program.actions[*action].operands().into_iter().chain([*index]).collect(), *result)
            }
            _ => return Err("does more than assignments and accesses".to_owned()),
        };
        let read = reads.into_iter().filter_map(Operand::variable).find(|read| assigned.contains(read));
        if let Some(read) = read {
            return Err(format!(
                "reads {}, which it assigns: that takes another stage",
                program.variables[read.0].name
            ));
        }
        if let Some(twice) = sets.filter(|set| !assigned.insert(*set)) {
            return Err(format!("assigns {} twice", program.variables[twice.0].name));
        }
    }
    check_all(program, &action.statements, accesses).map_err(|(place, why)| format!("{place}: {why}"))
}

/// Whether an operand exists and has at most these bits.
fn fits(program: &SwitchProgram, operand: Operand, most: u32) -> Result<(), Broken> {
    match operand {
        Operand::Constant(value) if value > ones(most) => Err(format!("{value} has more than {most} bits")),
        Operand::Constant(_) => Ok(()),
        Operand::Variable(of) | Operand::Slice { of, .. } => {
            let info = program.variables.get(of.0).ok_or("reads a variable of another program")?;
            if let Operand::Slice { low, bits, .. } = operand
                && (bits == 0 || low.saturating_add(bits) > info.bits)
            {
                return Err(format!("takes {bits} bits from bit {low} on of {}, which has {}", info.name, info.bits));
            }
            let has = bits(program, operand).unwrap_or(0);
            if has > most {
                return Err(format!("reads {has} bits of {} into {most}: take a slice", info.name));
            }
            Ok(())
        }
    }
}

/// The width of an operand; none for a constant.
pub(crate) fn bits(program: &SwitchProgram, operand: Operand) -> Option<u32> {
    match operand {
        Operand::Variable(variable) => program.variables.get(variable.0).map(|it| it.bits),
        Operand::Slice { bits, .. } => Some(bits),
        Operand::Constant(_) => None,
    }
}

/// The unit of an operand; none for a constant, which has that of what it is combined with.
fn unit(program: &SwitchProgram, operand: Operand) -> Option<Unit> {
    let of = |variable: Variable| program.variables.get(variable.0).map(|it| it.unit);
    match operand {
        Operand::Variable(variable) => of(variable),
        Operand::Slice { of: variable, low, .. } => of(variable).map(|unit| unit.without_low_bits(low)),
        Operand::Constant(_) => None,
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number => f.write_str("numbers"),
            Self::Nanos { shift: 0 } => f.write_str("nanoseconds"),
            Self::Nanos { shift } => write!(f, "units of {} ns", 1u64 << shift),
            Self::Bytes => f.write_str("bytes"),
            Self::Packets => f.write_str("packets"),
            Self::Cells => f.write_str("cells"),
        }
    }
}
