//! Notes on threads that have stopped: each is reported at once, and only once; everything else continues.

use queuescope_report::model::Skipped;
use std::collections::BTreeSet;

/// The notes that were reported.
#[derive(Debug, Default)]
pub struct Stopped(BTreeSet<String>);

impl Stopped {
    /// Calls `report` with the meanings of notes that were not reported before.
    pub fn report_new(&mut self, stopped: impl IntoIterator<Item = Skipped>, mut report: impl FnMut(&str)) {
        for note in stopped {
            if self.0.insert(note.reason) {
                report(&note.meaning);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_ingest::notes::noted;

    #[test]
    fn each_note_is_reported_once() {
        let (mut stopped, mut reported) = (Stopped::default(), Vec::new());
        for notes in ["", "a", "a", "ab", "b"] {
            let notes = notes.chars().filter_map(|one| noted(&one.to_string(), 1, &format!("{one} has stopped")));
            stopped.report_new(notes, |text| reported.push(text.to_owned()));
        }
        assert_eq!(reported, ["a has stopped", "b has stopped"]);
    }
}
