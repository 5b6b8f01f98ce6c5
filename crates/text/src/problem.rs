//! One error in a text.

use std::ops::Range;

/// A range of bytes of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The index of the source, from 0.
    pub source: usize,
    /// The range in it. A range outside of the text, or between the bytes of a character, is moved to the nearest valid
    /// one.
    pub span: Range<usize>,
}

/// In the only source, or the first.
impl From<Range<usize>> for Place {
    fn from(span: Range<usize>) -> Self {
        Self { source: 0, span }
    }
}

/// In the only source, or the first.
impl From<&Range<usize>> for Place {
    fn from(span: &Range<usize>) -> Self {
        span.clone().into()
    }
}

/// One error in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub(crate) message: String,
    pub(crate) labels: Vec<(Place, String)>,
    pub(crate) help: Option<String>,
}

impl Problem {
    /// With the message, which a user reads first.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), labels: Vec::new(), help: None }
    }

    /// Adds a position. The first one decides which source is shown; positions in other sources are not shown.
    #[must_use]
    pub fn at(mut self, place: impl Into<Place>, label: impl Into<String>) -> Self {
        self.labels.push((place.into(), label.into()));
        self
    }

    /// Adds a position before all others.
    #[must_use]
    pub fn first_at(mut self, place: impl Into<Place>, label: impl Into<String>) -> Self {
        self.labels.insert(0, (place.into(), label.into()));
        self
    }

    /// Moves the problem to an enclosing text: `to` maps each position.
    #[must_use]
    pub fn moved(mut self, to: impl Fn(&Range<usize>) -> Place) -> Self {
        for (place, _) in &mut self.labels {
            *place = to(&place.span);
        }
        self
    }

    /// Adds a hint how to correct it.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub fn help_if(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// The positions. The first one decides which source is shown.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.labels.iter().map(|(place, _)| place)
    }
}

/// Untrusted text for a message: on one line, shortened, without control characters.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(40).map(|c| if c.is_control() { '·' } else { c }).collect();
    if text.chars().nth(40).is_some() {
        shown.push('…');
    }
    shown
}
