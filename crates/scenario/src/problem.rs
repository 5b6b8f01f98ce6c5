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
        let mut text = String::new();
        for problem in &self.problems {
            let place = problem.labels.first().map(|(place, _)| place);
            let source = place.and_then(|place| Some((self.sources.get(place.source)?, place.span.start)));
            let (source, kept) = source.map_or((None, Vec::new()), |(source, at)| {
                let Cut { text, kept } = Cut::around(&source.text, at);
                (Some(NamedSource::new(&source.name, text)), kept)
            });
            let shown = Shown { problem, source, kept };
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
    /// The text, and which parts it has of the user's.
    source: Option<NamedSource<String>>,
    kept: Vec<(Range<usize>, usize)>,
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
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (text, kept) = (self.source.as_ref()?.inner(), &self.kept);
        let first = self.problem.labels.first()?.0.source;
        let shown = self.problem.labels.iter().filter(move |(place, _)| place.source == first);
        Some(Box::new(shown.map(|(place, label)| {
            let span = within(text, &(moved(kept, place.span.start)..moved(kept, place.span.end)));
            LabeledSpan::new((!label.is_empty()).then(|| label.clone()), span.start, span.len())
        })))
    }
}

/// A text as it can be shown: lines that are far too long are cut, and what a terminal would obey is taken out.
struct Cut {
    text: String,
    /// What was kept of the text, and where that is now.
    kept: Vec<(Range<usize>, usize)>,
}

/// Bytes of a line from which on it is cut, and what is kept of it before and behind the place that is pointed at.
const LONG: usize = 400;
const BEFORE: usize = 60;
const BEHIND: usize = 120;

impl Cut {
    /// The text around a place. Where its line is cut, columns count in what is left of it.
    fn around(text: &str, at: usize) -> Self {
        let mut cut = Self { text: String::with_capacity(text.len().min(1 << 16)), kept: Vec::new() };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            if line.len() <= LONG {
                cut.keep(text, start..end);
            } else {
                let at = if (start..end).contains(&at) { at } else { start };
                let from = boundary(text, at.saturating_sub(BEFORE).max(start));
                let to = boundary(text, (at + BEHIND).min(end));
                if from > start {
                    cut.text.push('…');
                }
                cut.keep(text, from..to);
                if to < end {
                    cut.text.push_str("…\n");
                }
            }
            start = end;
        }
        cut
    }

    fn keep(&mut self, text: &str, part: Range<usize>) {
        let harmless = |c: char| match c {
            '\n' | '\r' | '\t' => c,
            // As many bytes, so that places stay.
            c if c.is_ascii_control() => '?',
            c if c.is_control() => '·',
            c => c,
        };
        self.kept.push((part.clone(), self.text.len()));
        self.text.extend(text[part].chars().map(harmless));
    }
}

/// Where a place of the text is in what was kept of it.
fn moved(kept: &[(Range<usize>, usize)], at: usize) -> usize {
    let part = kept.partition_point(|(part, _)| part.start <= at).checked_sub(1);
    part.and_then(|part| kept.get(part)).map_or(0, |(part, now)| now + (at.min(part.end) - part.start))
}

/// The part of a span that is in the text, on one line, and between characters.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = boundary(text, span.start);
    let end = boundary(text, span.end).max(start);
    let line = text[start..end].find(['\n', '\r']).map_or(end, |length| start + length);
    start..line
}

/// The place, or the one before it that is between characters.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    #[test]
    fn long_lines_are_cut_around_what_is_wrong() {
        let text = format!(
            "# {}\nname = \"{}\"\nlink = {{ rat = \"{}\" }}\n",
            "é".repeat(900),
            "x".repeat(5_000),
            "é".repeat(900)
        );
        let shown = Scenario::parse("long", &text, &[]).unwrap_err().render(100, false);
        assert!(shown.len() < 2_000, "{shown}");
        assert!(shown.contains("rat = \"é") && shown.contains(":3:"), "{shown}");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        for text in ["link = { \u{1b}[2J = 1 }", "nam\u{9b}e = 1", "name = \"a\u{7}\"\nrat = 1"] {
            let shown = Scenario::parse("text", text, &[]).unwrap_err().render(100, false);
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        }
    }
}
