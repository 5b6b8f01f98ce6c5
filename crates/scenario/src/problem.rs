//! What is wrong with a scenario, and where: shown in the text that the user wrote, under a caret.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;

/// Why a scenario cannot be run. It shows every problem that was found, each in the text that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    pub(crate) sources: Vec<Source>,
    pub(crate) problems: Vec<Problem>,
    /// How many more there were.
    pub(crate) more: usize,
}

impl ScenarioError {
    /// How many problems were found.
    pub fn count(&self) -> usize {
        self.problems.len() + self.more
    }

    /// What is wrong, one sentence a problem, without the text around it.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(|problem| problem.message.as_str())
    }

    /// All problems as a person reads them, `width` columns wide, with colours or without.
    pub fn render(&self, width: usize, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler =
            GraphicalReportHandler::new_themed(theme).with_width(width).with_context_lines(1).without_cause_chain();
        let sources: Vec<_> =
            self.sources.iter().map(|source| NamedSource::new(&source.name, source.text.clone())).collect();
        let mut text = String::new();
        for problem in &self.problems {
            let shown = Shown { problem, source: problem.labels.first().and_then(|label| sources.get(label.0.source)) };
            // Writing to a string does not fail; if it did, the sentence alone would still be of use.
            if handler.render_report(&mut text, &shown).is_err() {
                text.push_str(&problem.message);
            }
            text.push('\n');
        }
        if self.more > 0 {
            text.push_str(&format!("and {} more\n", self.more));
        }
        // Some of the lines are padded.
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        format!("{}\n", lines.join("\n").trim_end())
    }
}

/// As [`ScenarioError::render`] shows it, 100 columns wide.
impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(100, false).trim_end())
    }
}

impl std::error::Error for ScenarioError {}

/// A text that a user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
}

/// A stretch of a source, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// 0 is the file; an override is the next by its number from 1.
    pub source: usize,
    pub span: Range<usize>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub message: String,
    pub labels: Vec<(Place, String)>,
    pub help: Option<String>,
}

impl Problem {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), labels: Vec::new(), help: None }
    }

    /// Points at a place. The first decides which source is shown; those in other sources are not.
    pub fn at(mut self, place: Place, label: impl Into<String>) -> Self {
        self.labels.push((place, label.into()));
        self
    }

    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub fn help_if(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }
}

/// A problem with the text that it is in, for miette.
struct Shown<'a> {
    problem: &'a Problem,
    source: Option<&'a NamedSource<String>>,
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let text = self.source?.inner();
        let first = self.problem.labels.first()?.0.source;
        let shown = self.problem.labels.iter().filter(move |(place, _)| place.source == first);
        Some(Box::new(shown.map(|(place, label)| {
            let span = within(text, &place.span);
            LabeledSpan::new((!label.is_empty()).then(|| label.clone()), span.start, span.len())
        })))
    }
}

/// The part of a span that is in the text, on one line, and between characters.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(span.start);
    let end = boundary(span.end).max(start);
    let line = text[start..end].find(['\n', '\r']).map_or(end, |length| start + length);
    start..line
}
