//! Records in memory or in a folder, and which of them are meant.

use super::company::Company;
use queuescope_archive::{Ask, FolderError, History, Sources};
use queuescope_ingest::notes::noted;
use queuescope_log::{AttributeId, Dnf, Explained, Log, Schema};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use std::io;
use std::ops::ControlFlow;

/// Records in memory or in a folder.
#[derive(Debug)]
pub enum Held {
    /// A capture, or a table.
    Memory(Box<Log>),
    /// What was recorded.
    Folder(Box<History>),
}

/// Which records are meant.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// What holds of them.
    pub expression: &'a Dnf,
    /// Their times, from this on, in nanoseconds as records have them.
    pub from: u64,
    /// Before this.
    pub to: u64,
    /// The attributes that are read of them.
    pub needed: &'a [AttributeId],
    /// In place of them, those that were in a queue with the ones that this has.
    pub company: Option<&'a Company>,
}

/// Gets records with their positions.
type Each<'t> = dyn FnMut(u64, &[u8]) -> io::Result<ControlFlow<()>> + 't;

/// What there was to answer from.
#[derive(Debug, Default)]
pub struct Seen {
    /// Records in all; none if that could not be read.
    pub records: Option<u64>,
    /// What was remarkable.
    pub skipped: Vec<Skipped>,
    /// What could not be read; the answer is of what could.
    pub damage: Option<String>,
    /// How records were found.
    pub steps: Vec<String>,
}

impl Held {
    /// What the records are made of.
    pub fn schema(&self) -> &Schema {
        match self {
            Self::Memory(log) => log.schema(),
            Self::Folder(history) => history.schema(),
        }
    }

    /// Calls `each` with the records that are meant, in their order, until that breaks.
    ///
    /// # Errors
    /// Those of `each`.
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

    /// The records of which the expression holds, with their positions.
    ///
    /// # Errors
    /// As of [`each`](Self::each).
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
    let sources = history.each(Ask { expression, from, to, needed }, &mut |position, record| {
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

const MISSING: &str = "packets that were written last are not there any more: a journal was emptied, cut short, damaged or taken away, or a loss of \
                       power took what was not synced";

const LOST: &str =
    "packets are not there: the disk could not keep up when they came, or they were missing when recording went on";

fn seen(sources: Result<Sources, FolderError>) -> Seen {
    let sources = match sources {
        Ok(sources) => sources,
        Err(error) => return Seen { damage: Some(error.to_string()), ..Seen::default() },
    };
    let (torn, behind) = sources.torn.as_ref().map_or((0, 0), |part| (part.bytes, part.records));
    let unfinished = "bytes at the end that are not whole: a record is being written, or who did was stopped; left out";
    let notes = [
        noted("lost", sources.lost, LOST),
        noted("removed", sources.removed, "packets before these were taken away, since they were old or too many"),
        noted("missing", sources.missing, MISSING),
        noted("torn", torn, unfinished),
        noted("torn_packets", behind, "packets among these bytes are whole, behind others that are not; left out, too"),
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
        steps.push(format!("{} passed by: they are of other times", groups(sources.other_times)));
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
