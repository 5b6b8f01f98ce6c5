//! Prepares a text for display.

use std::ops::Range;

/// Overlong lines are cut, and control characters are removed, since a terminal would obey them.
pub(crate) struct Cut {
    pub text: String,
    /// The ranges of the text that were kept, each with its offset in the result.
    kept: Vec<(Range<usize>, usize)>,
}

/// A line of more bytes is cut, to this many before and behind the marked position.
const LONG: usize = 400;
const BEFORE: usize = 60;
const BEHIND: usize = 120;

impl Cut {
    /// The text around a position. In a line that is cut, columns count in the remaining part.
    pub fn around(text: &str, at: usize) -> Self {
        let mut cut = Self { text: String::with_capacity(text.len().min(1 << 16)), kept: Vec::new() };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            if line.len() <= LONG {
                cut.keep(text, start..end);
            } else {
                // The position behind the last byte belongs to this line only if no other line begins there.
                let ends_there = at == end && !line.ends_with('\n');
                let at = if (start..end).contains(&at) || ends_there { at } else { start };
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
        // At the end of the text, add something to point at.
        if at >= text.len() && !cut.text.ends_with('\n') {
            cut.text.push(' ');
        }
        cut
    }

    fn keep(&mut self, text: &str, part: Range<usize>) {
        let harmless = |c: char| match c {
            '\n' | '\r' | '\t' => c,
            // One byte each, so that offsets stay valid.
            c if c.is_ascii_control() => '?',
            c if c.is_control() => '·',
            c => c,
        };
        self.kept.push((part.clone(), self.text.len()));
        self.text.extend(text[part].chars().map(harmless));
    }

    /// Where a range of the text is in the result: on one line, between characters.
    pub fn within(&self, span: &Range<usize>) -> Range<usize> {
        let whole = self.kept.last().map_or(0, |(part, _)| part.end);
        let end = self.moved(span.end) + usize::from(span.start >= whole);
        let start = boundary(&self.text, self.moved(span.start));
        let end = boundary(&self.text, end).max(start);
        let line = self.text[start..end].find(['\n', '\r']).map_or(end, |length| start + length);
        start..line
    }

    fn moved(&self, at: usize) -> usize {
        let part = self.kept.partition_point(|(part, _)| part.start <= at).checked_sub(1);
        part.and_then(|part| self.kept.get(part)).map_or(0, |(part, now)| now + (at.min(part.end) - part.start))
    }
}

/// The position, or the nearest one before it that is between characters.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
