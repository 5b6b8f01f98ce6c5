//! Conditions of triggers, as people write them: `strays > 0`.

use super::part::among;
use super::{AggregateDefinition, TriggerDefinition};
use crate::derive::Function;
use crate::expr::{Number, Relation};
use crate::schema::{Kind, Schema, integer};
use queuescope_text::{Problem, quoted};
use std::ops::Range;

/// A parsed condition.
#[derive(Debug)]
pub(super) struct Condition {
    pub aggregate: String,
    pub relation: Relation,
    pub threshold: Number,
}

/// Reads a condition over one of the named aggregates. `None`: the aggregate's function
/// is wrong, which has been reported already.
pub(super) fn read(
    text: &str,
    aggregates: &[(&str, Option<&Function>)],
    schema: &Schema,
) -> Result<Option<Condition>, Problem> {
    let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
    let Some(start) = text.find(is_sign) else {
        let problem = Problem::new("a condition compares an aggregate with a number").at(0..text.len(), "here");
        return Err(problem.help("strays > 0"));
    };
    let end = text[start..].find(|c| !is_sign(c)).map_or(text.len(), |length| start + length);
    let Some(relation) = relation(&text[start..end]) else {
        let problem = Problem::new(format!("'{}' compares nothing", quoted(&text[start..end])));
        return Err(problem.at(start..end, "not a comparison").help("there are <, <=, ==, !=, >= and >"));
    };
    let (name, name_at) = trimmed(text, 0..start);
    let (number, number_at) = trimmed(text, end..text.len());
    let Some((_, function)) = aggregates.iter().find(|(other, _)| *other == name) else {
        let message = match name {
            "" => "a condition begins with an aggregate".to_owned(),
            _ => format!("there is no aggregate `{}`", quoted(name)),
        };
        let help = among(name, aggregates.iter().map(|(name, _)| *name));
        return Err(Problem::new(message).at(name_at, "here").help_if(help));
    };
    let Some(function) = function else { return Ok(None) };
    let threshold = function
        .read_value(number, schema)
        .map_err(|why| Problem::new(why).at(number_at, format!("`{name}` is {}", function.text(schema))))?;
    Ok(Some(Condition { aggregate: name.to_owned(), relation, threshold }))
}

/// The text of a condition, which [`read`] reads.
pub(super) fn text(trigger: &TriggerDefinition, aggregates: &[AggregateDefinition], schema: &Schema) -> String {
    let TriggerDefinition { aggregate: name, relation, threshold, .. } = trigger;
    let function = aggregates.iter().find(|aggregate| aggregate.name == *name).map(|aggregate| &aggregate.function);
    let number = match (function, *threshold) {
        (Some(Function::Sum(id) | Function::Min(id) | Function::Max(id)), Number::Unsigned(number)) => {
            schema.attribute(*id).literal_of(number)
        }
        (_, Number::Unsigned(number)) => number.to_string(),
        (_, Number::Signed(number)) => number.to_string(),
        (_, Number::Float(number)) => format!("{number:?}"),
    };
    format!("{name} {} {number}", relation.symbol())
}

fn relation(symbol: &str) -> Option<Relation> {
    match symbol {
        "=" => Some(Relation::Equal),
        _ => Relation::ALL.into_iter().find(|relation| relation.symbol() == symbol),
    }
}

/// A part of a text without surrounding blanks, and its span.
fn trimmed(text: &str, span: Range<usize>) -> (&str, Range<usize>) {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    let part = part.trim();
    (part, start..start + part.len())
}

impl Function {
    /// Reads a number that a value of this function is compared with, in the unit of its attribute: `10kB` for a sum of lengths.
    ///
    /// # Errors
    /// Returns why the text is not one.
    pub fn read_value(&self, text: &str, schema: &Schema) -> Result<Number, String> {
        if text.is_empty() {
            return Err("a number is missing".to_owned());
        }
        let why = |what: &str| format!("'{}' is not {what}", quoted(text));
        let float = || text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Number::Float);
        match self {
            Self::Min(id) | Self::Max(id) => {
                let attribute = schema.attribute(*id);
                attribute.key_of(text).map(|key| Number::of_key(attribute, key))
            }
            Self::Sum(id) => {
                let attribute = schema.attribute(*id);
                let negative = text.strip_prefix('-').filter(|_| attribute.kind == Kind::Signed);
                match (attribute.kind, negative) {
                    (Kind::Float, _) => float().ok_or_else(|| why("a number")),
                    (Kind::Signed, Some(digits)) => attribute.amount_of(digits).map(|amount| Number::Signed(-amount)),
                    (Kind::Signed, None) => attribute.amount_of(text).map(Number::Signed),
                    _ => attribute.amount_of(text).map(|amount| Number::Unsigned(amount.unsigned_abs())),
                }
            }
            Self::Mean(id) | Self::Deviation(id) => match float() {
                Some(number) => Ok(number),
                None => schema.attribute(*id).amount_of(text).map(|amount| Number::Float(amount as f64)),
            },
            Self::Count | Self::Distinct(_) | Self::User(_) => {
                integer(text).map(Number::Unsigned).ok_or_else(|| why("a whole number"))
            }
        }
    }
}
