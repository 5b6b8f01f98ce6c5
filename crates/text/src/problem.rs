//! One thing that is wrong.

use std::ops::Range;

/// A stretch of a source, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Which of the sources, from 0.
    pub source: usize,
    /// Where in it. What is outside, or between characters, is moved to where something is.
    pub span: Range<usize>,
}

/// Of the only source, or the first.
impl From<Range<usize>> for Place {
    fn from(span: Range<usize>) -> Self {
        Self { source: 0, span }
    }
}

/// Of the only source, or the first.
impl From<&Range<usize>> for Place {
    fn from(span: &Range<usize>) -> Self {
        span.clone().into()
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub(crate) message: String,
    pub(crate) labels: Vec<(Place, String)>,
    pub(crate) help: Option<String>,
}

impl Problem {
    /// With what a user reads first.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), labels: Vec::new(), help: None }
    }

    /// Points at a place. The first decides which source is shown; those in other sources are not.
    #[must_use]
    pub fn at(mut self, place: impl Into<Place>, label: impl Into<String>) -> Self {
        self.labels.push((place.into(), label.into()));
        self
    }

    /// Points at a place before all others.
    #[must_use]
    pub fn first_at(mut self, place: impl Into<Place>, label: impl Into<String>) -> Self {
        self.labels.insert(0, (place.into(), label.into()));
        self
    }

    /// The same in a text that holds the one in which it was found: each place is where `to` says.
    #[must_use]
    pub fn moved(mut self, to: impl Fn(&Range<usize>) -> Place) -> Self {
        for (place, _) in &mut self.labels {
            *place = to(&place.span);
        }
        self
    }

    /// With what is to be done.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// With what is to be done, if it is known.
    #[must_use]
    pub fn help_if(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// The places that it points at; the first decides which source is shown.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.labels.iter().map(|(place, _)| place)
    }
}

/// A word from outside for a message: in one piece, not too long, nothing in it that a terminal would obey.
pub fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(40).map(|c| if c.is_control() { '·' } else { c }).collect();
    if text.chars().nth(40).is_some() {
        shown.push('…');
    }
    shown
}
