//! The parts of definitions before they are resolved: words, and where they were written.

use queuescope_text::{Place, Problem, did_you_mean};
use std::ops::Range;

/// The most names that an error lists.
const MOST_LISTED: usize = 24;

/// All parts of one text or several.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub indexes: Vec<Words>,
    pub filters: Vec<FilterPart>,
    pub aggregates: Vec<AggregatePart>,
    pub triggers: Vec<TriggerPart>,
}

#[derive(Debug)]
pub(super) struct FilterPart {
    pub name: Words,
    pub expression: Words,
}

#[derive(Debug)]
pub(super) struct AggregatePart {
    pub name: Words,
    pub function: Words,
    pub filter: Option<Words>,
}

#[derive(Debug)]
pub(super) struct TriggerPart {
    pub name: Words,
    pub condition: Words,
    pub period: Option<Words>,
    pub window: Option<Words>,
}

/// A piece of text, and where it was written.
#[derive(Debug, Clone)]
pub(super) struct Words {
    pub text: String,
    place: Place,
    /// Whether it is in the source letter by letter, so that positions in it are positions in the source.
    verbatim: bool,
}

impl Words {
    /// The text at a span of a source, without surrounding blanks.
    pub fn new(source: usize, text: &str, span: Range<usize>) -> Self {
        let part = &text[span.clone()];
        let start = span.start + (part.len() - part.trim_start().len());
        let text = part.trim().to_owned();
        Self { place: Place { source, span: start..start + text.len() }, text, verbatim: true }
    }

    /// A string of the first source, whose quotes are within the span. If it has escapes, positions in it are not known.
    pub fn in_quotes(value: &str, source: &str, span: Range<usize>) -> Self {
        let found = source.get(span.clone()).and_then(|quoted| quoted.find(value)).filter(|_| !value.is_empty());
        match found {
            Some(at) => Self {
                place: (span.start + at..span.start + at + value.len()).into(),
                text: value.to_owned(),
                verbatim: true,
            },
            None => Self { place: span.into(), text: value.to_owned(), verbatim: false },
        }
    }

    /// Where it is.
    pub fn place(&self) -> Place {
        self.place.clone()
    }

    /// Where a part of it is.
    pub fn part(&self, span: &Range<usize>) -> Place {
        let Place { source, span: whole } = &self.place;
        let span = if self.verbatim { whole.start + span.start..whole.start + span.end } else { whole.clone() };
        Place { source: *source, span }
    }

    /// Shifts the positions of a problem into the source.
    pub fn wrong(&self, problem: Problem) -> Problem {
        problem.moved(|span| self.part(span))
    }
}

/// Help for a wrong name: the nearest right one, or all of them.
pub(super) fn among<'a>(wrong: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    did_you_mean(wrong, names.clone()).or_else(|| {
        let shown: Vec<_> = names.clone().take(MOST_LISTED).collect();
        let more = names.skip(MOST_LISTED).count();
        match (shown.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(format!("there are {}", shown.join(", "))),
            (false, more) => Some(format!("there are {}, and {more} more", shown.join(", "))),
        }
    })
}
