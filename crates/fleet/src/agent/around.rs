//! Whether a host recorded at a time: what its records before and behind that time show.
//!
//! A host that has all of its records up to a time can still lack packets of that time: its recording had ended before, or did not run just then.

use super::source::OpenSource;
use crate::answer::{Asked, Extent, Merging, Texts};
use queuescope_log::{Number, date_text};
use queuescope_recording::query::PartLimits;
use queuescope_wire::Nanos;
use std::io;

/// A host without a record in this time before a moment may not have recorded then.
const GAP: u64 = 10_000_000_000;
/// How far records are looked for, in steps: most are near.
const STEPS: [u64; 4] = [GAP, 3_600_000_000_000, 86_400_000_000_000, u64::MAX];

/// What the records around a time show.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Around {
    /// Why records up to that time are missing although no more come.
    pub lacks: Option<String>,
    /// That there are none for some time before it.
    pub note: Option<String>,
}

impl Around {
    /// What the records of a source around a time in nanoseconds since 1970 show; `has_ended`: no more records come.
    ///
    /// # Errors
    /// Fails if it should not go on.
    pub fn of(
        source: &OpenSource<'_>,
        at: u64,
        has_ended: bool,
        limits: PartLimits,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> io::Result<Self> {
        let schema = source.schema();
        let Some(time) = schema.time().map(|time| &schema.attribute(time).name) else { return Ok(Self::default()) };
        let nearest = |function: &str, extent: Extent| -> io::Result<Option<u64>> {
            let texts = Texts { select: &format!("{function}({time})"), ..Texts::default() };
            // A time can be compared.
            let Ok(asked) = Asked::new(&texts, schema) else { return Ok(None) };
            let partial = asked.evaluate(source.records(), extent, limits, go_on)?;
            let mut merging = Merging::new(&asked);
            if partial.packets == 0 || merging.add(&partial).is_err() {
                return Ok(None);
            }
            match merging.finish().groups.first().and_then(|(_, values)| values.first()) {
                Some(Number::Unsigned(time)) => Ok(u64::try_from(*time).ok()),
                _ => Ok(None),
            }
        };
        let behind = at.saturating_add(1);
        let first = |step: u64| nearest("max", Extent { from: at.saturating_sub(step), to: behind, before: None });
        let last = |step: u64| nearest("min", Extent { from: behind, to: behind.saturating_add(step), before: None });
        let mut before = first(STEPS[0])?;
        if before.is_some() && !has_ended {
            return Ok(Self::default());
        }
        let mut after = None;
        for step in STEPS {
            after = if after.is_none() { last(step)? } else { after };
            before = if before.is_none() { first(step)? } else { before };
        }
        let date = |time: u64| date_text(Nanos(time));
        Ok(match (before, after) {
            (before, None) if has_ended => {
                let records =
                    before.map_or_else(|| "no records".to_owned(), |at| format!("no records after {}", date(at)));
                let why =
                    if before == Some(at) { None } else { Some(format!("its recording has ended: it has {records}")) };
                Self { lacks: why, note: None }
            }
            (Some(before), _) if at - before < GAP => Self::default(),
            (before, after) => {
                let (before, after) = (before.map(date), after.map(date));
                let when = match (before, after) {
                    (Some(before), Some(after)) => format!(" between {before} and {after}"),
                    (Some(before), None) => format!(" after {before}"),
                    (None, Some(after)) => format!(" before {after}"),
                    (None, None) => String::new(),
                };
                let note = format!("it has no records{when}: it had no packets, or did not record then");
                Self { lacks: None, note: Some(note) }
            }
        })
    }
}
