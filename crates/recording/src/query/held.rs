//! Records in memory or in a folder, and questions about them.

use super::queue_times::QueueTimes;
use queuescope_archive::{ArchiveQuery, FolderError, History, Sources};
use queuescope_ingest::notes::noted;
use queuescope_log::{AttributeId, Dnf, Explained, Log, Schema};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use std::io;
use std::ops::ControlFlow;

/// Records in memory or in a folder.
#[derive(Debug)]
pub enum Held {
    /// A capture or a table, in memory.
    Memory(Box<Log>),
    /// A recorded folder.
    Folder(Box<History>),
}

/// Which records are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Records must match this expression.
    pub expression: &'a Dnf,
    /// Records must have this time or a later one, in nanoseconds since the records' epoch,
    pub from: u64,
    /// and a time before this one.
    pub to: u64,
    /// The attributes that the caller reads.
    pub needed: &'a [AttributeId],
    /// If given, the records that were in a queue together with those of `QueueTimes`, in place of the matching ones.
    pub company: Option<&'a QueueTimes>,
}

/// Receives records with their positions.
type Each<'t> = dyn FnMut(u64, &[u8]) -> io::Result<ControlFlow<()>> + 't;

/// What was read for an answer.
#[derive(Debug, Default)]
pub struct Seen {
    /// Total number of records; `None` if it could not be read.
    pub records: Option<u64>,
    /// Notes.
    pub skipped: Vec<Skipped>,
    /// What could not be read; the answer covers the rest.
    pub damage: Option<String>,
    /// The steps by which records were found.
    pub steps: Vec<String>,
}

impl Held {
    /// The schema of the records.
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Memory(log) => log.schema(),
            Self::Folder(history) => history.schema(),
        }
    }

    /// Calls `each` with the wanted records, in order, until it returns `Break`.
    ///
    /// # Errors
    /// Returns errors of `each`.
    pub fn each(
        &self,
        question: Question<'_>,
        each: &mut dyn FnMut(&[u8]) -> io::Result<ControlFlow<()>>,
    ) -> io::Result<Seen> {
        match question.company {
            None => self.each_at(question, &mut |_, record| each(record)),
            Some(company) => self.each_at(question, &mut |position, record| {
                if company.has(position, record) { each(record) } else { Ok(ControlFlow::Continue(())) }
            }),
        }
    }

    /// The records that match the expression, with their positions.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub fn each_at(&self, question: Question<'_>, each: &mut Each<'_>) -> io::Result<Seen> {
        match self {
            Self::Memory(log) => in_memory(log, question, each),
            Self::Folder(history) => in_folder(history, question, each),
        }
    }
}

fn in_memory(log: &Log, question: Question<'_>, each: &mut Each<'_>) -> io::Result<Seen> {
    let snapshot = log.snapshot();
    let query = snapshot.query().matching(question.expression).from(question.from).to(question.to);
    for (position, record) in query.matched() {
        if each(position, record)?.is_break() {
            break;
        }
    }
    let Explained { steps, records } = query.explain();
    Ok(Seen { records: Some(records), steps: steps.iter().map(ToString::to_string).collect(), ..Seen::default() })
}

fn in_folder(history: &History, question: Question<'_>, each: &mut Each<'_>) -> io::Result<Seen> {
    let Question { expression, from, to, needed, .. } = question;
    let mut failed = None;
    let sources = history.each(ArchiveQuery { expression, from, to, needed }, &mut |position, record| {
        each(position, record).unwrap_or_else(|error| {
            failed = Some(error);
            ControlFlow::Break(())
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(seen(sources)),
    }
}

const MISSING: &str = "packets at the end that were written and are gone: a journal was emptied, cut short, damaged or removed, or a loss of \
                       power took what was not synced";

const LOST: &str =
    "packets are not there: the disk could not keep up when they came, or they were missing when recording continued";

fn seen(sources: Result<Sources, FolderError>) -> Seen {
    let sources = match sources {
        Ok(sources) => sources,
        Err(error) => return Seen { damage: Some(error.to_string()), ..Seen::default() },
    };
    let (torn, behind) = sources.torn.as_ref().map_or((0, 0), |part| (part.bytes, part.records));
    let unfinished = "incomplete bytes at the end: a record is being written, or its writer was stopped; left out";
    let notes = [
        noted("lost", sources.lost, LOST),
        noted("removed", sources.removed, "earlier packets were removed, because they were old or too many"),
        noted("missing", sources.missing, MISSING),
        noted("torn", torn, unfinished),
        noted("torn_packets", behind, "packets among these bytes are whole, but behind incomplete ones; left out, too"),
    ];
    let missing = (sources.missing > 0).then(|| format!("{} {MISSING}", count(sources.missing)));
    Seen {
        records: Some(sources.records),
        skipped: notes.into_iter().flatten().collect(),
        damage: missing.or_else(|| sources.note.as_ref().map(ToString::to_string)),
        steps: steps(&sources),
    }
}

/// What was read, and from where.
fn steps(sources: &Sources) -> Vec<String> {
    let of = |number: u64, one: &str, many: &str| format!("{} {}", count(number), if number == 1 { one } else { many });
    let mut steps = Vec::new();
    let groups = |number| of(number, "part of a volume", "parts of volumes");
    if sources.other_times > 0 {
        steps.push(format!("{} skipped: they are of other times", groups(sources.other_times)));
    }
    if sources.by_index > 0 {
        let pages = of(sources.pages, "page", "pages");
        steps.push(format!("{} through indexes: {pages} read", groups(sources.by_index)));
    }
    if sources.whole > 0 {
        steps.push(format!("{} read whole", groups(sources.whole)));
    }
    if sources.from_volumes > 0 {
        steps.push(format!("{} records read from volumes", count(sources.from_volumes)));
    }
    if sources.from_journals > 0 {
        steps.push(format!("{} records read from journals", count(sources.from_journals)));
    }
    steps
}
