//! Resolves the parts of definitions: looks up names, parses expressions and functions, and finds an order in which
//! each definition comes after what it depends on.

use super::condition::{self, Condition};
use super::function::attribute;
use super::part::{FilterPart, Parts, TriggerPart, Words, among};
use super::work;
use super::{AggregateDefinition, DEFAULT_PERIOD, Definitions, FilterDefinition, TriggerDefinition};
use crate::derive::Function;
use crate::expr::{Expr, Scope, reserved};
use crate::schema::name_problem;
use crate::trigger::{TriggerError, periods};
use queuescope_text::{Problem, quoted};
use queuescope_wire::Nanos;
use std::collections::BTreeMap;

/// The existing definitions and those of the parts; or all errors in the parts.
pub(super) fn resolve(base: &Definitions, parts: &Parts) -> Result<Definitions, Vec<Problem>> {
    let mut all = base.clone();
    let mut problems = Vec::new();
    for index in &parts.indexes {
        match attribute(&index.text, 0..index.text.len(), &base.schema) {
            Ok(id) if !base.schema.attribute(id).is_comparable() => {
                let problem = Problem::new(format!("values of `{}` are not compared", index.text));
                problems.push(problem.at(index.place(), "it has no index"));
            }
            Ok(id) if all.indexes.contains(&id) => {}
            Ok(id) => all.indexes.push(id),
            Err(problem) => problems.push(index.wrong(problem)),
        }
    }
    // All names first, so that an error is reported where the wrong definition is, not where its name is used.
    let filters = Names::new("filter", base.filters.iter().map(|filter| &*filter.name));
    let filters = filters.with(parts.filters.iter().map(|filter| &filter.name), &mut problems);
    let triggers = Names::new("trigger", base.triggers.iter().map(|trigger| &*trigger.name));
    triggers.with(parts.triggers.iter().map(|trigger| &trigger.name), &mut problems);
    let mut scope = base.scope();
    let mut functions: Vec<_> =
        base.aggregates.iter().map(|aggregate| (aggregate.name.as_str(), Some(aggregate.function.clone()))).collect();
    for part in &parts.aggregates {
        let function =
            Function::read(&part.function.text, &base.schema).and_then(|read| of_aggregate(read, &part.function.text));
        let function = function.map_err(|problem| problems.push(part.function.wrong(problem))).ok();
        match scope.add_aggregate(&part.name.text) {
            Ok(_) => functions.push((&part.name.text, function)),
            Err(error) => {
                let message = format!("'{}' cannot name an aggregate: {}", quoted(&part.name.text), error.why);
                problems.push(Problem::new(message).at(part.name.place(), "not possible"));
            }
        }
        if let Some(filter) = &part.filter
            && !filters.known.contains_key(filter.text.as_str())
        {
            let problem = Problem::new(format!("there is no filter `{}`", quoted(&filter.text)));
            let help = among(&filter.text, filters.known.keys().copied());
            problems.push(problem.at(filter.place(), "here").help_if(help));
        }
    }
    for FilterPart { name, expression } in &parts.filters {
        match read_expression(expression, &scope) {
            Ok(expr) => {
                let text = expression.text.split_whitespace().collect::<Vec<_>>().join(" ");
                all.filters.push(FilterDefinition { name: name.text.clone(), text, expression: expr });
            }
            Err(problem) => problems.push(problem),
        }
    }
    let functions: Vec<_> = functions.iter().map(|(name, function)| (*name, function.as_ref())).collect();
    for part in &parts.triggers {
        match read_trigger(part, &functions, base) {
            Ok(trigger) => all.triggers.extend(trigger),
            Err(problem) => problems.push(problem),
        }
    }
    if let (Some(why), Some(last)) = (work::too_much(&all.triggers), parts.triggers.last()) {
        let place = last.period.as_ref().unwrap_or(&last.condition).place();
        problems.push(Problem::new(why).at(place, "with this one").help("make periods longer, or windows shorter"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    // No error so far, so these match the parts one to one.
    let new = functions.iter().skip(base.aggregates.len()).zip(&parts.aggregates);
    all.aggregates.extend(new.filter_map(|((name, function), part)| {
        let filter = part.filter.as_ref().map(|filter| filter.text.clone());
        Some(AggregateDefinition { name: (*name).to_owned(), function: (*function)?.clone(), filter })
    }));
    match order(&all) {
        Ok(_) => Ok(all),
        Err(circle) => Err(vec![circle_problem(&circle, &all, base, parts)]),
    }
}

/// The names of one kind of definition.
struct Names<'a> {
    kind: &'static str,
    /// With the place where they are written; `None` if that is in another text.
    known: BTreeMap<&'a str, Option<&'a Words>>,
}

impl<'a> Names<'a> {
    fn new(kind: &'static str, names: impl Iterator<Item = &'a str>) -> Self {
        Self { kind, known: names.map(|name| (name, None)).collect() }
    }

    fn with(mut self, names: impl Iterator<Item = &'a Words>, problems: &mut Vec<Problem>) -> Self {
        for name in names {
            let (kind, text) = (self.kind, name.text.as_str());
            let reserved = reserved::is_reserved(text).then(|| "it is a word of expressions".to_owned());
            if let Some(why) = name_problem(text).err().or(reserved) {
                let message = format!("'{}' cannot name a {kind}: {why}", quoted(text));
                problems.push(Problem::new(message).at(name.place(), "not possible"));
                continue;
            }
            if let Some(first) = self.known.get(text) {
                let problem = Problem::new(format!("two {kind}s are named '{text}'")).at(name.place(), "again");
                problems.push(match first {
                    Some(first) => problem.at(first.place(), "first here"),
                    None => problem.help("another text has it; take another name"),
                });
                continue;
            }
            self.known.insert(text, Some(name));
        }
        self
    }
}

/// Refuses a function that only queries compute.
fn of_aggregate(function: Function, text: &str) -> Result<Function, Problem> {
    match function {
        Function::Distinct(_) => {
            let problem = Problem::new("an aggregate does not count distinct values: its state would be too large");
            Err(problem.at(0..text.len(), "here").help("count them in a query: --select 'distinct(src_ip)'"))
        }
        other => Ok(other),
    }
}

fn read_expression(words: &Words, scope: &Scope) -> Result<Expr, Problem> {
    let expression = scope.read(&words.text).map_err(|problem| words.wrong(*problem))?;
    if let Err(error) = expression.dnf(scope) {
        return Err(Problem::new(error.to_string()).at(words.place(), "this expression"));
    }
    Ok(expression)
}

fn read_trigger(
    part: &TriggerPart,
    functions: &[(&str, Option<&Function>)],
    base: &Definitions,
) -> Result<Option<TriggerDefinition>, Problem> {
    let condition = condition::read(&part.condition.text, functions, &base.schema);
    let condition = condition.map_err(|problem| part.condition.wrong(problem))?;
    let time = |words: &Option<Words>| {
        let time = words.as_ref().map(|words| {
            let wrong = |error: queuescope_wire::UnitError| {
                Problem::new(error.to_string()).at(words.place(), "a time is expected").help("1ms, or 1s")
            };
            words.text.parse::<Nanos>().map(|time| time.0).map_err(wrong)
        });
        time.transpose()
    };
    let (period, window) = (time(&part.period)?.unwrap_or(DEFAULT_PERIOD), time(&part.window)?);
    if let Err(error) = periods(period, window) {
        let at = match error {
            TriggerError::LongWindow => part.window.as_ref(),
            _ => part.period.as_ref(),
        };
        return Err(Problem::new(error.to_string()).at(at.unwrap_or(&part.condition).place(), "not possible"));
    }
    if let Some(why) = work::too_short(period) {
        let at = part.period.as_ref().unwrap_or(&part.condition).place();
        return Err(Problem::new(why)
            .at(at, "too short")
            .help("the shortest period is 1us; many triggers do with 1ms"));
    }
    if let (Some(window), Some(words)) = (window, &part.window)
        && (window == 0 || !window.is_multiple_of(period))
    {
        let nearest = window.saturating_add(period / 2) / period * period;
        let why = format!("a window is one period or more, and whole ones; a period is {}", written(period));
        let problem = Problem::new(why).at(words.place(), "not possible");
        return Err(problem.help(format!("the nearest window is {}", written(nearest.max(period)))));
    }
    Ok(condition.map(|Condition { aggregate, relation, threshold }| {
        let name = part.name.text.clone();
        TriggerDefinition { name, aggregate, relation, threshold, period, window }
    }))
}

/// A duration as definitions write it, exactly.
fn written(nanos: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let whole = units.into_iter().find(|(unit, _)| nanos.is_multiple_of(*unit));
    whole.map_or_else(String::new, |(unit, name)| format!("{}{name}", nanos / unit))
}

/// A filter or aggregate to add to a log, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Filter(usize),
    Aggregate(usize),
}

/// Filters and aggregates, each after what it depends on; or some that depend on each other in a circle.
pub(super) fn order(all: &Definitions) -> Result<Vec<Step>, Vec<Step>> {
    let filter_at: BTreeMap<_, _> = (0..).zip(&all.filters).map(|(at, filter)| (filter.name.as_str(), at)).collect();
    let filters = (0..).zip(&all.filters).map(|(at, filter)| {
        let mut needed = Vec::new();
        filter.expression.for_each_aggregate(&mut |id| needed.push(Step::Aggregate(id.0 as usize)));
        (Step::Filter(at), needed)
    });
    let aggregates = (0..).zip(&all.aggregates).map(|(at, aggregate)| {
        let filter = aggregate.filter.as_deref().and_then(|name| filter_at.get(name));
        (Step::Aggregate(at), filter.map(|at| Step::Filter(*at)).into_iter().collect())
    });
    let needs: BTreeMap<Step, Vec<Step>> = filters.chain(aggregates).collect();
    let mut needed_by: BTreeMap<Step, Vec<Step>> = BTreeMap::new();
    let mut missing: BTreeMap<Step, usize> = BTreeMap::new();
    for (step, needs) in &needs {
        missing.insert(*step, needs.len());
        needs.iter().for_each(|need| needed_by.entry(*need).or_default().push(*step));
    }
    let mut order: Vec<_> = needs.keys().filter(|step| missing[step] == 0).copied().collect();
    let mut next = 0;
    while let Some(step) = order.get(next).copied() {
        next += 1;
        for other in needed_by.get(&step).into_iter().flatten() {
            if let Some(left) = missing.get_mut(other) {
                *left -= 1;
                if *left == 0 {
                    order.push(*other);
                }
            }
        }
    }
    let Some(start) = missing.iter().find_map(|(step, left)| (*left > 0).then_some(*step)) else { return Ok(order) };
    // Every step that is left depends on another one that is left: following these dependencies leads into a circle.
    let mut way = vec![start];
    loop {
        let last = way[way.len() - 1];
        let Some(need) = needs[&last].iter().find(|need| missing[need] > 0) else { return Err(way) };
        if let Some(first) = way.iter().position(|step| step == need) {
            return Err(way.split_off(first));
        }
        way.push(*need);
    }
}

/// An error about a circle, with the names from the text.
fn circle_problem(circle: &[Step], all: &Definitions, base: &Definitions, parts: &Parts) -> Problem {
    let name = |step: &Step| match *step {
        Step::Filter(at) => format!("`{}`", all.filters[at].name),
        Step::Aggregate(at) => format!("`{}`", all.aggregates[at].name),
    };
    let names: Vec<_> = circle.iter().chain(circle.first()).map(name).collect();
    let problem = Problem::new(format!("definitions need each other in a circle: {}", names.join(" needs ")));
    // Existing definitions depend on nothing in this text.
    let places = circle.iter().filter_map(|step| match *step {
        Step::Filter(at) => Some(parts.filters.get(at.checked_sub(base.filters.len())?)?.expression.place()),
        Step::Aggregate(at) => Some(parts.aggregates.get(at.checked_sub(base.aggregates.len())?)?.name.place()),
    });
    let problem = places.fold(problem, |problem, place| problem.at(place, "needs the next"));
    problem.help("a filter can name only aggregates whose own filters do not need it")
}
