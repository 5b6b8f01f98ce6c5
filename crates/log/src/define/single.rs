//! Definitions that are written one by one, as arguments of a command.

use super::part::{AggregatePart, FilterPart, Parts, TriggerPart, Words};
use super::{Single, SingleKind};
use queuescope_text::Problem;

/// The parts of these definitions.
pub(super) fn parts(singles: &[Single<'_>]) -> Result<Parts, Vec<Problem>> {
    let (mut parts, mut problems) = (Parts::default(), Vec::new());
    for (source, single) in singles.iter().enumerate() {
        problems.extend(part(source, single, &mut parts).err());
    }
    if problems.is_empty() { Ok(parts) } else { Err(problems) }
}

fn part(source: usize, Single { text, kind, .. }: &Single<'_>, parts: &mut Parts) -> Result<(), Problem> {
    let words = |from, to| Words::new(source, text, from..to);
    // `a == 7` has no name, nor has a text without `=`.
    let Some((name, _)) = text
        .split_once('=')
        .filter(|(name, rest)| !rest.starts_with('=') && !name.ends_with(['<', '>', '!']) && !name.trim().is_empty())
    else {
        let problem = Problem::new(format!("{} begins with its name", kind.describe()));
        return Err(problem.at(words(0, text.len()).place(), "no name").help(kind.example()));
    };
    let (name, from) = (words(0, name.len()), name.len() + 1);
    // The text behind the last `@` applies to everything before it.
    let at = text[from..].rfind('@').map(|at| from + at).filter(|_| *kind != SingleKind::Filter);
    let before = words(from, at.unwrap_or(text.len()));
    let behind = at.map(|at| at + 1);
    match kind {
        SingleKind::Filter => parts.filters.push(FilterPart { name, expression: before }),
        SingleKind::Aggregate => {
            let filter = behind.map(|from| words(from, text.len()));
            parts.aggregates.push(AggregatePart { name, function: before, filter });
        }
        SingleKind::Trigger => {
            let slash = behind.and_then(|from| text[from..].find('/').map(|at| from + at));
            let period = behind.map(|from| words(from, slash.unwrap_or(text.len())));
            let window = slash.map(|slash| words(slash + 1, text.len()));
            parts.triggers.push(TriggerPart { name, condition: before, period, window });
        }
    }
    Ok(())
}

impl SingleKind {
    fn describe(self) -> &'static str {
        match self {
            Self::Filter => "a filter",
            Self::Aggregate => "an aggregate",
            Self::Trigger => "a trigger",
        }
    }

    fn example(self) -> &'static str {
        match self {
            Self::Filter => "web=dst_port == 443",
            Self::Aggregate => "bytes=sum(length)@web, or without @ of all records",
            Self::Trigger => "much=bytes > 10MB@1ms/1s, or without @ every millisecond, of all records so far",
        }
    }
}
