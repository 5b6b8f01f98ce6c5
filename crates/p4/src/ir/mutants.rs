//! Programs with one small error: tests show that comparing packets finds them.

mod equivalent;
mod equivalent_p4air;
mod flows;
mod packets;
mod programs;

use super::action::{AluExpression, AluOutput, AluTerm, RegisterAction, When};
use super::builder::{Does, Statement, SwitchProgram};
use super::condition::{Comparison, Condition};
use super::hash::Polynomial;
use super::operation::Operation;
use super::pair::{Half, PairAction, PairCondition};
use super::table::ActionTable;
use super::validate::validate;
use super::variable::Operand;
use equivalent::equivalent;
use equivalent_p4air::OF_P4AIR;
use packets::is_caught;
use programs::{programs, small_p4air};
use std::collections::BTreeMap;

/// Changes the `wanted`-th thing that can be changed. Counts down, so that one walk through a program makes one mutant.
struct Mutation {
    left: usize,
    made: Option<String>,
}

impl Mutation {
    /// Whether the next change is the one.
    fn here(&mut self) -> bool {
        let here = self.left == 0 && self.made.is_none();
        self.left = self.left.wrapping_sub(1);
        here
    }

    fn statements(&mut self, statements: &mut Vec<Statement>) {
        for place in 0..statements.len() {
            if !matches!(statements[place].does, Does::Comment(_)) && self.here() {
                self.made = Some(format!("without {:?}", statements.remove(place).does));
                return;
            }
            match &mut statements[place].does {
                Does::Comment(_)
                | Does::Mark
                | Does::Drop
                | Does::FeedBack
                | Does::Recirculate
                | Does::Push(_)
                | Does::Strip => {}
                Does::Report { delay, estimate, .. } => {
                    if self.here() {
                        self.made = Some("report with its values swapped".to_owned());
                        std::mem::swap(delay, estimate);
                    }
                }
                Does::Enqueue(value) | Does::SetWindow(value) => {
                    let others = constants(*value);
                    self.replace(value, others);
                }
                Does::Set { operation, .. } => self.operation(operation),
                Does::If { condition, then, otherwise } => {
                    self.condition(condition);
                    if self.here() {
                        self.made = Some(format!("branches of {condition:?}"));
                        std::mem::swap(then, otherwise);
                    }
                    self.statements(then);
                    self.statements(otherwise);
                }
                // Actions are changed by themselves, and entries by those who make them.
                Does::Access { .. } | Does::Swap { .. } | Does::Lookup(_) | Does::Choose(_) => {}
            }
        }
    }

    fn replace<T: Clone + std::fmt::Debug>(&mut self, place: &mut T, others: impl IntoIterator<Item = T>) {
        for other in others {
            if self.here() {
                self.made = Some(format!("{place:?} as {other:?}"));
                *place = other;
                return;
            }
        }
    }

    fn operation(&mut self, operation: &mut Operation) {
        use Operation::{
            Add, AddSaturating, And, Copy, Hash, HashReversed, Maximum, Minimum, Or, Random, ShiftLeft, ShiftRight,
            Subtract, SubtractSaturating, SubtractSigned, Xor,
        };
        let others = match *operation {
            Copy(one) => constants(one).into_iter().map(Copy).collect(),
            Operation::Gather(one, 0) => vec![ShiftLeft(one, 1), ShiftRight(one, 1)],
            Operation::Gather(one, by) => vec![ShiftLeft(one, by + 1), ShiftLeft(one, by - 1)],
            Operation::Join(one, other, by) => vec![Operation::Gather(one, by), Operation::Gather(other, 0)],
            Random => Vec::new(),
            Operation::HashPacket(polynomial) => {
                let others = Polynomial::ALL.into_iter().filter(|it| *it != polynomial);
                others.map(Operation::HashPacket).collect()
            }
            Hash(polynomial) => Polynomial::ALL.into_iter().map(Hash).filter(|it| *it != Hash(polynomial)).collect(),
            HashReversed(polynomial) => vec![Hash(polynomial)],
            ShiftLeft(one, by) => vec![ShiftLeft(one, by + 1), ShiftLeft(one, by.wrapping_sub(1)), ShiftRight(one, by)],
            ShiftRight(one, by) => {
                vec![ShiftRight(one, by + 1), ShiftRight(one, by.wrapping_sub(1)), ShiftLeft(one, by)]
            }
            Add(a, b) => vec![Subtract(a, b), AddSaturating(a, b), Copy(a), Copy(b)],
            AddSaturating(a, b) => vec![Add(a, b), Subtract(a, b), Copy(a), Copy(b)],
            Subtract(a, b) => vec![Subtract(b, a), Add(a, b), SubtractSigned(a, b), Copy(a)],
            SubtractSaturating(a, b) => vec![SubtractSaturating(b, a), Subtract(a, b), Copy(a)],
            SubtractSigned(a, b) => vec![SubtractSigned(b, a), Subtract(a, b), Add(a, b)],
            Minimum(a, b) => vec![Maximum(a, b), Copy(a), Copy(b)],
            Maximum(a, b) => vec![Minimum(a, b), Copy(a), Copy(b)],
            And(a, b) | Or(a, b) | Xor(a, b) => vec![And(a, b), Or(a, b), Xor(a, b), Copy(a)],
        };
        let same = *operation;
        let with_constant = |of: &dyn Fn(Operand) -> Operation, b| constants(b).into_iter().map(of).collect::<Vec<_>>();
        let more = match same {
            Subtract(a, b) => with_constant(&|b| Subtract(a, b), b),
            SubtractSaturating(a, b) => with_constant(&|b| SubtractSaturating(a, b), b),
            Minimum(a, b) => with_constant(&|b| Minimum(a, b), b),
            Xor(a, b) => with_constant(&|b| Xor(a, b), b),
            _ => Vec::new(),
        };
        self.replace(operation, others.into_iter().chain(more).filter(|other| *other != same));
    }

    fn condition(&mut self, condition: &mut Condition) {
        match condition {
            Condition::Compare { comparison, right, .. } => {
                self.comparison(comparison);
                let others = constants(*right);
                self.replace(right, others);
            }
            Condition::All(parts) => {
                parts.iter_mut().for_each(|part| self.condition(part));
                let any = Condition::Any(parts.clone());
                self.replace(condition, [any]);
            }
            Condition::Any(parts) => {
                parts.iter_mut().for_each(|part| self.condition(part));
                let all = Condition::All(parts.clone());
                self.replace(condition, [all]);
            }
        }
    }

    fn comparison(&mut self, comparison: &mut Comparison) {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let same = *comparison;
        let all = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual];
        self.replace(comparison, all.into_iter().filter(|other| *other != same));
    }

    /// The actions of a table, and its entries: each does without, takes another action, or ends elsewhere.
    fn table(&mut self, table: &mut ActionTable) {
        table.actions.iter_mut().for_each(|action| self.statements(&mut action.statements));
        for place in 0..table.entries.len() {
            if self.here() {
                self.made = Some(format!("without the entry {:?}", table.entries.remove(place)));
                return;
            }
            let (ranges, action) = table.entries[place].clone();
            let mut others: Vec<_> =
                (0..table.actions.len()).filter(|it| *it != action).map(|it| (ranges.clone(), it)).collect();
            for (key, (low, high)) in ranges.iter().enumerate() {
                let lower = [low.wrapping_sub(1), low + 1].map(|low| (low, *high));
                for range in lower.into_iter().chain([high.wrapping_sub(1), high + 1].map(|high| (*low, high))) {
                    let mut ranges = ranges.clone();
                    ranges[key] = range;
                    others.push((ranges, action));
                }
            }
            self.replace(&mut table.entries[place], others);
        }
    }

    fn action(&mut self, action: &mut RegisterAction) {
        for condition in &mut action.conditions {
            self.comparison(&mut condition.comparison);
            self.expression(&mut condition.left);
        }
        for place in 0..action.updates.len() {
            if self.here() {
                self.made = Some(format!("without {:?}", action.updates.remove(place)));
                return;
            }
            let when = match action.updates[place].when {
                When::Holds(condition) => vec![When::Fails(condition), When::Always],
                When::Fails(condition) => vec![When::Holds(condition), When::Always],
                When::Always => Vec::new(),
            };
            self.replace(&mut action.updates[place].when, when);
            self.expression(&mut action.updates[place].value);
        }
        let output = match action.output {
            AluOutput::Before => vec![AluOutput::After],
            AluOutput::After => vec![AluOutput::Before],
            AluOutput::Condition(_) | AluOutput::Computed(_) | AluOutput::Nothing => Vec::new(),
        };
        self.replace(&mut action.output, output);
        if let AluOutput::Computed(value) = &mut action.output {
            self.expression(value);
        }
    }

    fn pair(&mut self, action: &mut PairAction) {
        for place in 0..action.conditions.len() {
            if self.here() {
                self.made = Some(format!("without {:?}", action.conditions.remove(place)));
                return;
            }
            let PairCondition { of, condition } = &mut action.conditions[place];
            self.comparison(&mut condition.comparison);
            self.expression(&mut condition.left);
            if let AluTerm::Value(right) = &mut condition.right {
                let others = constants(*right);
                self.replace(right, others);
            }
            let other = if *of == Half::First { Half::Second } else { Half::First };
            self.replace(of, [other]);
        }
        for word in &mut action.words {
            let others = constants(*word);
            self.replace(word, others);
        }
    }

    fn expression(&mut self, expression: &mut AluExpression) {
        use AluExpression::{Add, AddSaturating, AddSigned, MoveTowards, Subtract, SubtractSaturating, Term};
        let same = *expression;
        let others = match same {
            Term(_) => Vec::new(),
            MoveTowards(to, shift) => vec![MoveTowards(to, shift + 1), MoveTowards(to, shift - 1), Term(to)],
            Add(a, b) | AddSaturating(a, b) | AddSigned(a, b) | Subtract(a, b) | SubtractSaturating(a, b) => {
                vec![
                    Add(a, b),
                    AddSaturating(a, b),
                    AddSigned(a, b),
                    Subtract(a, b),
                    SubtractSaturating(a, b),
                    Term(a),
                    Term(b),
                ]
            }
        };
        self.replace(expression, others.into_iter().filter(|other| *other != same));
    }
}

/// A constant that is one larger or smaller.
fn constants(operand: Operand) -> Vec<Operand> {
    match operand {
        Operand::Constant(value) => {
            [value.checked_add(1), value.checked_sub(1)].into_iter().flatten().map(Operand::Constant).collect()
        }
        Operand::Variable(_) | Operand::Slice { .. } => Vec::new(),
    }
}

/// All valid programs that differ in one place, with what is changed.
fn mutants(program: &SwitchProgram) -> Vec<(String, SwitchProgram)> {
    let mut mutants = Vec::new();
    for left in 0.. {
        let mut mutant = program.clone();
        let mut mutation = Mutation { left, made: None };
        mutation.statements(&mut mutant.ingress);
        mutation.statements(&mut mutant.statements);
        mutant.actions.iter_mut().for_each(|action| mutation.action(action));
        mutant.pair_actions.iter_mut().for_each(|action| mutation.pair(action));
        mutant.choices.iter_mut().for_each(|table| mutation.table(table));
        let Some(made) = mutation.made else { return mutants };
        if validate(&mutant).is_ok() {
            mutants.push((made, mutant));
        }
    }
    mutants
}

/// Every change of one operation, constant, comparison, branch, statement or register action is seen, except those that change nothing.
#[test]
fn mutants_are_caught() {
    for program in programs() {
        let mutants = mutants(&program);
        let mut proven: BTreeMap<&str, usize> = BTreeMap::new();
        let equivalent = equivalent(&program).into_iter().flatten();
        equivalent.for_each(|(made, count, _)| *proven.entry(made).or_default() += count);
        let is = |made: &str, proven: &str| {
            proven.strip_prefix("...").map_or(made == proven, |ending| made.ends_with(ending))
        };
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for (made, mutant) in &mutants {
            let proven = proven.keys().find(|proven| is(made, proven));
            // Fewer packets for those that change nothing, and for the others with the same description.
            let packets = if proven.is_some() { 20_000 } else { 200_000 };
            if !is_caught(&program, mutant, packets) {
                *found.entry(proven.copied().unwrap_or(made)).or_default() += 1;
            }
        }
        println!("{}: of {} mutants, {} change nothing", program.name, mutants.len(), proven.values().sum::<usize>());
        assert_eq!(found, proven, "{}", program.name);
        assert!(mutants.len() > 10, "{}", mutants.len());
    }
}

/// The same for P4air. The table of groups that give a queue has mutants of its own, which are judged by all keys that there can be.
#[test]
fn mutants_of_p4air_are_caught() {
    let program = small_p4air();
    let giver = |it: &SwitchProgram| it.choices.iter().find(|table| table.name == "group_that_gives").cloned();
    let keys = flows::keys_of_givers();
    let mut missed: BTreeMap<&str, usize> = BTreeMap::new();
    let (mutants, mut of_table, mut proven) = (mutants(&program), 0, 0);
    for (made, mutant) in &mutants {
        let [before, after] = [giver(&program), giver(mutant)].map(|table| table.expect("it is there"));
        if before.entries != after.entries {
            of_table += 1;
            let acts = |table: &ActionTable, key: &[u64]| table.action(key).map(|action| action.name.clone());
            proven += usize::from(keys.iter().all(|key| acts(&before, key) == acts(&after, key)));
        } else {
            // Fewer packets for those that change nothing, and for the others with the same description.
            let is_proven = OF_P4AIR.iter().any(|(proven, ..)| proven == made);
            if !flows::is_caught(&program, mutant, if is_proven { 4_000 } else { 30_000 }) {
                *missed.entry(made).or_default() += 1;
            }
        }
    }
    let others = mutants.len() - of_table;
    // Those that change nothing are missed for certain.
    for (made, count, why) in OF_P4AIR {
        let missed = missed.entry(made).or_default();
        assert!(*missed >= *count, "{made} is caught, although {why}");
        *missed -= count;
        proven += count;
    }
    missed.retain(|_, count| *count > 0);
    let left: usize = missed.values().sum();
    println!(
        "p4air: of {} mutants, {of_table} of them of one table, {proven} change nothing, and {left} are missed: {missed:?}",
        mutants.len()
    );
    assert!(others > 1_000 && left * 100 <= mutants.len() - proven, "{missed:?}");
}
