//! Reports all problems of a text for people.

use crate::cut::Cut;
use crate::problem::Problem;
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use textwrap::WordSplitter;

/// The most problems that are shown; the others are only counted.
const MOST: usize = 20;

/// A text that a user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name: a file, an option.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// Why a text could not be parsed: every problem that was found, each with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    sources: Vec<Source>,
    problems: Vec<Problem>,
    /// How many more problems there are.
    more: usize,
}

impl TextError {
    /// The problems of one text; at least one.
    pub fn new(name: &str, text: &str, problems: Vec<Problem>) -> Self {
        Self::of_sources(vec![Source { name: name.to_owned(), text: text.to_owned() }], problems, 0)
    }

    /// The problems of several texts. `more` is the number of problems that are not in `problems`.
    pub fn of_sources(sources: Vec<Source>, mut problems: Vec<Problem>, more: usize) -> Self {
        let more = more + problems.len().saturating_sub(MOST);
        problems.truncate(MOST);
        Self { sources, problems, more }
    }

    /// The number of problems found.
    pub fn count(&self) -> usize {
        self.problems.len() + self.more
    }

    /// The problems, one sentence each, without the text around them.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().map(|problem| problem.message.as_str())
    }

    /// All problems for display, `width` columns wide, with colours or without.
    pub fn render(&self, width: usize, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_width(width)
            .with_context_lines(1)
            .without_cause_chain()
            // Names with hyphens stay whole, so that they can be copied.
            .with_word_splitter(WordSplitter::NoHyphenation);
        let mut text = String::new();
        for problem in &self.problems {
            let shown = ProblemReport::new(problem, &self.sources);
            // Writing to a string does not fail. If it did, the sentence alone would still be useful.
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

/// As [`TextError::render`] without colours, 100 columns wide.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(100, false).trim_end())
    }
}

impl std::error::Error for TextError {}

/// A problem with the text that it is in, for miette.
struct ProblemReport<'a> {
    problem: &'a Problem,
    /// The text, and where the labels are in the shown part; none if the problem has no position.
    source: Option<(NamedSource<String>, Vec<LabeledSpan>)>,
}

impl<'a> ProblemReport<'a> {
    fn new(problem: &'a Problem, sources: &[Source]) -> Self {
        let source = problem.places().next().and_then(|first| {
            let source = sources.get(first.source)?;
            let cut = Cut::around(&source.text, first.span.start);
            let here = problem.labels.iter().filter(|(place, _)| place.source == first.source);
            let labels = here.map(|(place, label)| {
                let span = cut.within(&place.span);
                LabeledSpan::new((!label.is_empty()).then(|| label.clone()), span.start, span.len())
            });
            let labels = labels.collect();
            Some((NamedSource::new(&source.name, cut.text), labels))
        });
        Self { problem, source }
    }
}

impl fmt::Debug for ProblemReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl fmt::Display for ProblemReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for ProblemReport<'_> {}

impl Diagnostic for ProblemReport<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|(source, _)| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, labels) = self.source.as_ref()?;
        Some(Box::new(labels.iter().cloned()))
    }
}
