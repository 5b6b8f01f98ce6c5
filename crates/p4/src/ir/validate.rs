//! Checks of programs.

mod access;
mod operands;
mod statements;
mod tables;

use super::action::RegisterArray;
use super::builder::{Does, Statement, SwitchProgram, VariableInfo};
use super::pair::PAIR_BITS;
use super::uses::Uses;
use super::variable::{Input, Unit, Variable, ones};
use crate::Gress;
pub(crate) use operands::bits;
use statements::check_all;
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

/// Whether packets have a note.
pub(crate) fn has_note(program: &SwitchProgram) -> bool {
    program.inputs().any(Input::is_note)
}
