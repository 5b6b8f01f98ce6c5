//! Threads beside the one that watches: that one of them has stopped is told at once, and all else goes on.

use queuescope_report::model::Skipped;
use std::collections::BTreeSet;

/// What was told of threads that have stopped.
#[derive(Debug, Default)]
pub struct Stopped(BTreeSet<String>);

impl Stopped {
    /// Tells by `tell` what was not told before.
    pub fn tell(&mut self, stopped: impl IntoIterator<Item = Skipped>, mut tell: impl FnMut(&str)) {
        for note in stopped {
            if self.0.insert(note.reason) {
                tell(&note.meaning);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_ingest::notes::noted;

    #[test]
    fn each_is_told_once() {
        let (mut stopped, mut told) = (Stopped::default(), Vec::new());
        for notes in ["", "a", "a", "ab", "b"] {
            let notes = notes.chars().filter_map(|one| noted(&one.to_string(), 1, &format!("{one} has stopped")));
            stopped.tell(notes, |text| told.push(text.to_owned()));
        }
        assert_eq!(told, ["a has stopped", "b has stopped"]);
    }
}
