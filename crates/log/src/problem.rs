//! What is wrong with a text, and where: shown in the text that the user wrote, under a caret.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;

/// Most problems of one text that are shown.
const MOST: usize = 20;

/// Why a text could not be read: every problem that was found, each in the text that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextError {
    name: String,
    text: String,
    problems: Vec<Problem>,
    /// How many more there were.
    more: usize,
}

impl TextError {
    /// What is wrong with `text`, which comes from `name`; at least one problem.
    pub(crate) fn new(name: &str, text: &str, mut problems: Vec<Problem>) -> Self {
        let more = problems.len().saturating_sub(MOST);
        problems.truncate(MOST);
        Self { name: name.to_owned(), text: text.to_owned(), problems, more }
    }

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
            let shown = Shown::new(problem, &self.name, &self.text);
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

/// As [`TextError::render`] shows it, 100 columns wide.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(100, false).trim_end())
    }
}

impl std::error::Error for TextError {}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    message: String,
    labels: Vec<(Range<usize>, String)>,
    help: Option<String>,
}

impl Problem {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), labels: Vec::new(), help: None }
    }

    /// Points at a stretch of the text, in bytes.
    pub fn at(mut self, span: &Range<usize>, label: impl Into<String>) -> Self {
        self.labels.push((span.clone(), label.into()));
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

/// Text from outside for a message: in one piece, not too long, nothing in it that a terminal would obey.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(40).map(|c| if c.is_control() { '·' } else { c }).collect();
    if text.chars().nth(40).is_some() {
        shown.push('…');
    }
    shown
}

/// A problem with the text that it is in, for miette.
struct Shown<'a> {
    problem: &'a Problem,
    source: NamedSource<String>,
    /// Where the labels are in what is shown.
    labels: Vec<LabeledSpan>,
}

impl<'a> Shown<'a> {
    fn new(problem: &'a Problem, name: &str, text: &str) -> Self {
        let at = problem.labels.first().map_or(0, |(span, _)| span.start);
        let mut cut = Cut::around(text, at);
        // Where the text ends, something is there to be pointed at.
        if at >= text.len() && !cut.text.ends_with('\n') {
            cut.text.push(' ');
        }
        let labels = problem.labels.iter().map(|(span, label)| {
            let end = cut.moved(span.end) + usize::from(span.start >= text.len());
            let span = within(&cut.text, &(cut.moved(span.start)..end));
            LabeledSpan::new((!label.is_empty()).then(|| label.clone()), span.start, span.len())
        });
        Self { problem, labels: labels.collect(), source: NamedSource::new(name, cut.text.clone()) }
    }
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
        (!self.labels.is_empty()).then_some(&self.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        (!self.labels.is_empty()).then(|| Box::new(self.labels.iter().cloned()) as Box<dyn Iterator<Item = _>>)
    }
}

/// Bytes of a line from which on it is cut, and what is kept of it before and behind the place that is pointed at.
const LONG: usize = 400;
const BEFORE: usize = 60;
const BEHIND: usize = 120;

/// A text as it can be shown: lines that are far too long are cut, and what a terminal would obey is taken out.
struct Cut {
    text: String,
    /// What was kept of the text, and where that is now.
    kept: Vec<(Range<usize>, usize)>,
}

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
                let at = if (start..=end).contains(&at) { at } else { start };
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

    /// Where a place of the text is in what was kept of it.
    fn moved(&self, at: usize) -> usize {
        let part = self.kept.partition_point(|(part, _)| part.start <= at).checked_sub(1);
        part.and_then(|part| self.kept.get(part)).map_or(0, |(part, now)| now + (at.min(part.end) - part.start))
    }
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
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        TextError::new("text", text, vec![Problem::new("wrong").at(&span, "here")]).render(100, false)
    }

    #[test]
    fn long_lines_are_cut_around_what_is_wrong() {
        let text = format!("{} wrong {}", "é".repeat(900), "x".repeat(5_000));
        let shown = shown(&text, 1801..1806);
        assert!(shown.len() < 1_500 && shown.contains("é wrong x"), "{shown}");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_is_shown() {
        let shown = shown("a \u{1b}[2J \u{9b} b", 0..1) + &quoted("\u{1b}[2J");
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }

    #[test]
    fn any_place_can_be_pointed_at() {
        for span in [0..0, 0..99, Range { start: 7, end: 3 }, 99..99, 1..2] {
            assert!(shown("é = \n1", span).contains("wrong"));
        }
        assert!(shown("", 0..0).contains("wrong"));
    }

    #[test]
    fn not_more_than_a_screen_of_problems_is_shown() {
        let error = TextError::new("text", "", vec![Problem::new("wrong"); 50]);
        assert_eq!((error.count(), error.messages().count()), (50, MOST));
        assert!(error.to_string().ends_with("and 30 more"));
    }
}
