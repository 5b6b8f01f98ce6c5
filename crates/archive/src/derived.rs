//! What is derived from a folder's records: the values of its aggregates when recording ended.
//!
//! `aggregates.json` saves reading all records when recording continues. If it is missing, changed, or of other records or definitions, the aggregates
//! are computed from the records again.

use crate::definitions::{BY_HAND, DEFINITIONS, SEAL, read, read_sealed, write};
use crate::error::{Damage, FolderError, MISSING};
use crate::folder::Folder;
use crate::history::{ArchiveQuery, History};
use crate::names::AGGREGATES;
use crate::regular;
use queuescope_log::{Defined, Definitions, Dnf, Log, Memory, Number, Options, Schema, Snapshot, State};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;

/// The saved state of aggregates over the records before a position.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AggregatesFile {
    position: u64,
    /// The checksum of the definitions.
    definitions: u32,
    /// By name: four words each, in hexadecimal.
    states: BTreeMap<String, [String; 4]>,
    /// Checksum of this whole structure with 0 in its place.
    crc32: u32,
}

impl AggregatesFile {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| unreachable!("it has only texts: {error}"))
    }

    /// The same with its checksum set.
    fn sealed(self) -> Self {
        let open = Self { crc32: 0, ..self };
        Self { crc32: crc32fast::hash(open.text().as_bytes()), ..open }
    }
}

/// Checks that definitions may be replaced: they are as they were written, and were written to this folder. The saved aggregates
/// show that; if these are missing or damaged, aggregates are computed again.
pub(crate) fn check(folder: &Folder) -> Result<(), FolderError> {
    let (_, seal) = read_sealed(folder)?;
    let kept = match kept(folder) {
        Err(FolderError::Damaged(_)) => None,
        kept => kept?,
    };
    if agree(seal, kept.as_ref()) { Ok(()) } else { Err(foreign(folder).into()) }
}

/// Whether saved aggregates have definitions with this checksum. Definitions changed by hand have no checksum, and count as matching.
fn agree(seal: Option<u32>, kept: Option<&SavedAggregates>) -> bool {
    kept.zip(seal).is_none_or(|(kept, seal)| kept.definitions == seal)
}

fn foreign(folder: &Folder) -> Damage {
    let why = format!(
        "the saved aggregates are of other definitions, so it may be a file of another folder; to use these from now on, \
         write '{SEAL}{BY_HAND}' in its first line"
    );
    Damage::new(&folder.path.join(DEFINITIONS), why)
}

/// The values of a folder's aggregates.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregates {
    /// Whether they were saved when recording ended. Then they include records that were removed since. Otherwise nothing was saved, for
    /// example because the process was killed, and they were computed from the records that are there.
    pub kept: bool,
    /// Name and value of each aggregate.
    pub values: Vec<(String, Number)>,
}

/// The values of a folder's aggregates over all records before `position`. Saved values are used if they are of that position;
/// otherwise all records are read.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn aggregates(path: &Path, position: u64) -> Result<Aggregates, FolderError> {
    let folder = Folder::open(path)?;
    let definitions = read(&folder)?;
    let kept = known(&folder, &definitions).ok().flatten().filter(|(known, _)| *known == position);
    let (kept, states) = match kept {
        Some((_, states)) => (true, states),
        None => (false, work_out(&folder, &definitions)?),
    };
    let log = unbounded(&folder.schema)?;
    let defined = apply(&folder, &definitions, &log, &states)?;
    let snapshot = log.snapshot();
    let values = defined.aggregates().filter_map(|(name, id)| Some((name.to_owned(), snapshot.value(id)?)));
    Ok(Aggregates { kept, values: values.collect() })
}

/// Adds definitions to a log whose first record has this position in the folder, with the aggregates of the records
/// before it. Also returns what was wrong with the saved aggregates, if they had to be computed again.
pub(crate) fn define(
    folder: &Folder,
    definitions: &Definitions,
    log: &Log,
    position: u64,
) -> Result<(Defined, Option<Damage>), FolderError> {
    // Existing definitions are not overwritten unless they can be read.
    check(folder)?;
    let (known, damage) = match known(folder, definitions) {
        Err(FolderError::Damaged(damage)) => (None, Some(damage)),
        known => (known?, None),
    };
    let states = match known.filter(|(known, _)| *known == position) {
        Some((_, states)) => states,
        None => work_out(folder, definitions)?,
    };
    let defined = apply(folder, definitions, log, &states)?;
    // The saved aggregates are of other definitions. They must not come back beside the new ones after a loss of power.
    folder.remove(&folder.path.join(AGGREGATES))?;
    folder.sync()?;
    write(folder, definitions)?;
    Ok((defined, damage))
}

/// What is wrong with the saved aggregates.
pub(crate) fn verify(folder: &Folder) -> Result<Option<Damage>, FolderError> {
    let path = folder.path.join(DEFINITIONS);
    let looked = || -> Result<bool, FolderError> {
        let (_, mut seal) = read_sealed(folder)?;
        loop {
            let kept = kept(folder)?;
            // A process that starts to record may have changed both in the meantime.
            let (_, now) = read_sealed(folder)?;
            if now == seal {
                return Ok(agree(now, kept.as_ref()));
            }
            seal = now;
        }
    };
    match looked() {
        Ok(false) => Ok(Some(foreign(folder))),
        Ok(true) => Ok(None),
        Err(FolderError::Damaged(damage)) => Ok(Some(damage)),
        Err(FolderError::Schema(error)) => Ok(Some(Damage::new(&path, error.to_string()))),
        Err(FolderError::NoDefinitions(path)) => Ok(Some(Damage::new(&path, MISSING))),
        Err(error) => Err(error),
    }
}

/// Saves the aggregates of all records before a position of the folder.
pub(crate) fn keep(
    folder: &Folder,
    definitions: &Definitions,
    defined: &Defined,
    snapshot: &Snapshot<'_>,
    position: u64,
) -> Result<(), FolderError> {
    folder.still_there()?;
    let words = |state: State| state.map(|word| format!("{word:x}"));
    let states = states(defined, snapshot).map(|(name, state)| (name.to_owned(), words(state))).collect();
    let known = AggregatesFile { position, definitions: checksum(definitions), states, crc32: 0 }.sealed();
    folder.whole(&folder.path.join(AGGREGATES), known.text().as_bytes())
}

type States = BTreeMap<String, State>;

/// The saved aggregates of the records before a position.
struct SavedAggregates {
    position: u64,
    /// The checksum of the definitions.
    definitions: u32,
    states: States,
}

fn apply(folder: &Folder, definitions: &Definitions, log: &Log, states: &States) -> Result<Defined, FolderError> {
    let defined = definitions.apply_from(log, |name| states.get(name).copied());
    defined.map_err(|error| FolderError::NotALog { path: folder.path.clone(), why: error.to_string() })
}

fn states<'a>(defined: &'a Defined, snapshot: &'a Snapshot<'_>) -> impl Iterator<Item = (&'a str, State)> {
    defined.aggregates().filter_map(|(name, id)| Some((name, snapshot.state_before(id, snapshot.len())?)))
}

fn checksum(definitions: &Definitions) -> u32 {
    crc32fast::hash(definitions.text().as_bytes())
}

/// The saved aggregates, if they are of these definitions.
fn known(folder: &Folder, definitions: &Definitions) -> Result<Option<(u64, States)>, FolderError> {
    let kept = kept(folder)?.filter(|kept| kept.definitions == checksum(definitions));
    Ok(kept.map(|kept| (kept.position, kept.states)))
}

/// The saved aggregates, as they were written.
fn kept(folder: &Folder) -> Result<Option<SavedAggregates>, FolderError> {
    let path = folder.path.join(AGGREGATES);
    let bytes = match regular::read(&path, regular::AGGREGATES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| FolderError::unread(&path, error))?,
    };
    let damaged = |why: String| FolderError::Damaged(Damage::new(&path, why));
    let known: AggregatesFile = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let crc32 = known.crc32;
    let known = known.sealed();
    if known.crc32 != crc32 {
        return Err(damaged("it is not as it was written".to_owned()));
    }
    let word = |text: &String| u128::from_str_radix(text, 16).map_err(|error| damaged(format!("'{text}': {error}")));
    let state = |(name, words): (String, [String; 4])| {
        let words = words.iter().map(word).collect::<Result<Vec<_>, _>>()?;
        Ok((name, State::try_from(words).unwrap_or_default()))
    };
    let states = known.states.into_iter().map(state).collect::<Result<_, FolderError>>()?;
    Ok(Some(SavedAggregates { position: known.position, definitions: known.definitions, states }))
}

/// Computes aggregates from all records of the folder.
fn work_out(folder: &Folder, definitions: &Definitions) -> Result<States, FolderError> {
    if definitions.aggregates().is_empty() {
        return Ok(States::new());
    }
    let (history, log) = (History::open(&folder.path)?, unbounded(&folder.schema)?);
    let defined = apply(folder, definitions, &log, &States::new())?;
    let needed: Vec<_> = folder.schema.iter().map(|(id, _)| id).collect();
    let everything = Dnf::all();
    let mut refused = 0;
    history.each(
        ArchiveQuery { expression: &everything, from: 0, to: u64::MAX, needed: &needed },
        &mut |_, record| {
            let appended = log.append(record);
            refused += appended.refused;
            if appended.positions.start.is_multiple_of(Log::BLOCK) {
                log.release(appended.positions.start);
            }
            ControlFlow::Continue(())
        },
    )?;
    if refused > 0 {
        let why = format!("it has {refused} records more than this machine can address");
        return Err(FolderError::NotALog { path: folder.path.clone(), why });
    }
    let snapshot = log.snapshot();
    Ok(states(&defined, &snapshot).map(|(name, state)| (name.to_owned(), state)).collect())
}

/// A log with more records than a run will have: 64 TiB. It takes memory and addresses only for records that are not released.
pub(crate) fn unbounded(schema: &Schema) -> Result<Log, FolderError> {
    let records = (1 << 46) / schema.record_size() as u64;
    Ok(Log::new(schema.clone(), Options { records, memory: Memory::Growing })?)
}
