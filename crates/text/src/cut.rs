//! A text as it can be shown.

use std::ops::Range;

/// Lines that are far too long are cut, and what a terminal would obey is taken out.
pub(crate) struct Cut {
    pub text: String,
    /// What was kept of the text, and where that is now.
    kept: Vec<(Range<usize>, usize)>,
}

/// Bytes of a line from which on it is cut, and what is kept of it before and behind the place that is pointed at.
const LONG: usize = 400;
const BEFORE: usize = 60;
const BEHIND: usize = 120;

impl Cut {
    /// The text around a place. Where its line is cut, columns count in what is left of it.
    pub fn around(text: &str, at: usize) -> Self {
        let mut cut = Self { text: String::with_capacity(text.len().min(1 << 16)), kept: Vec::new() };
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let end = start + line.len();
            if line.len() <= LONG {
                cut.keep(text, start..end);
            } else {
                // Behind its last byte is a place of the line only where no other begins there.
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
        // Where the text ends, something is there to be pointed at.
        if at >= text.len() && !cut.text.ends_with('\n') {
            cut.text.push(' ');
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

    /// Where a stretch of the text is in what was kept of it: on one line, between characters.
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

/// The place, or the one before it that is between characters.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
