//! Answers questions.

use super::Served;
use super::around::Around;
use super::folder::OtherFolder;
use crate::answer::Asked;
use crate::clock;
use crate::cut::Freezer;
use crate::locked::lock;
use crate::protocol::{Part, Question};
use queuescope_archive::Recorder;
use queuescope_log::FilterId;
use queuescope_recording::query::{PartLimits, Records};
use queuescope_wire::{ByteCount, Nanos};
use std::error::Error;
use std::io::{self, ErrorKind};
use std::sync::Mutex;
use std::time::Duration;

/// Memory for the groups of an answer.
const MEMORY: ByteCount = ByteCount(256_000_000);
/// The longest time for an answer, whatever the question says.
const LONGEST: u64 = 600_000;

/// Time between two looks at whether records are complete.
const LOOK: Duration = Duration::from_millis(5);

impl Served {
    /// Waits until all records with the times of a question are recorded and visible, if the question wants that and the source says when it is so.
    ///
    /// # Errors
    /// If that takes longer than four fifths of the question's time, returns the answer without groups, which says up to where records are complete.
    pub(super) async fn completed<T>(
        &self,
        question: &Question,
        until: Nanos,
        freezer: &Mutex<Freezer<T>>,
    ) -> Result<(), Part> {
        let Some(at) = question.at else { return Ok(()) };
        let last = until.saturating_sub(Nanos(question.within.min(LONGEST) * 1_000_000 / 5));
        loop {
            let Some(complete) = self.complete() else { return Ok(()) };
            // Records that were appended while the tail is frozen are visible when it thaws.
            if complete > at && lock(freezer).until().is_none() {
                return Ok(());
            }
            if clock::steady() >= last {
                return Err(Part { complete: Some(complete.min(at)), ..Part::default() });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// When the answer to a question that came now must be ready.
    pub(super) fn deadline(question: &Question) -> Nanos {
        clock::steady().saturating_add(Nanos(question.within.min(LONGEST) * 1_000_000))
    }

    /// This host's part of the answer to a question, which must be ready at `until`.
    ///
    /// # Errors
    /// Returns why there is none, for people.
    pub(super) fn part(&self, question: &Question, until: Nanos) -> Result<Part, String> {
        if let Some(why) = self.source.folder().and_then(OtherFolder::trouble) {
            return Err(why);
        }
        let source = self.source.open();
        let (asked, mut extent) = Asked::of_question(question, source.schema()).map_err(|error| error.to_string())?;
        // Before the records: what comes meanwhile may be missing.
        let complete = self.complete();
        extent.to = question.at.map_or(extent.to, |at| extent.to.min(at.saturating_add(1)));
        let limits = PartLimits { groups: usize::try_from(question.groups).unwrap_or(usize::MAX), memory: MEMORY };
        let records = match question.filter.as_str() {
            "" => source.records(),
            name => {
                let recorder = self.source.own().map(|records| &*records.0);
                let found = recorder.and_then(|recorder| Some((recorder, installed_filter(recorder, name)?)));
                let (recorder, filter) =
                    found.ok_or_else(|| format!("no program has installed a filter `{name}` here"))?;
                Records::Filtered(recorder, filter)
            }
        };
        let go_on = || clock::steady() < until && !self.is_ending();
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::Interrupted => "it had not read all of its records when the time was over".to_owned(),
            _ => with_causes(&error),
        };
        let partial = asked.evaluate(records, extent, limits, &go_on).map_err(failed)?;
        let part = partial.to_part(&asked).map_err(|error| with_causes(&error))?;
        let Some(at) = question.at else { return Ok(part) };
        let around = Around::of(&source, at, complete == Some(u64::MAX), limits, &go_on).map_err(failed)?;
        let notes = part.notes.into_iter().chain(around.note).collect();
        Ok(Part { complete, notes, lacks: around.lacks.unwrap_or_default(), ..part })
    }
}

/// A filter that a program installed, by the names of both: `program.filter`.
fn installed_filter(recorder: &Recorder, name: &str) -> Option<FilterId> {
    let (program, filter) = name.split_once('.')?;
    let (_, all) = recorder.installed();
    all.iter().find(|installed| installed.name == program)?.defined.filter(filter)
}

/// An error and its causes.
fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
