//! Removes old records: whole volumes, those with the lowest positions first.
//!
//! The catalogue is written before files are removed, so that readers know. A process that is stopped in between leaves files that no
//! catalogue lists; they are removed when the folder is recorded to again. The volumes of the newest records always stay.
//!
//! Age counts from the newest time that is plausible: at most a day after the clock of this machine. So a record of a host with a wrong
//! clock does not make all other records old. If no time is plausible, the clock of this machine is the wrong one, and all times count.

use crate::archive::remove;
use crate::catalogue::{Catalogue, Entry};
use crate::error::FolderError;
use crate::folder::Folder;
use crate::history::{ArchiveQuery, History};
use crate::strays::remove_archived;
use crate::uploads::UploadList;
use queuescope_log::Dnf;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// How far a plausible time may be after the clock of this machine, in nanoseconds: a day, because captures may be in local time.
const AHEAD: u64 = 86_400_000_000_000;

/// Which volumes to keep. Records in journals stay in any case. The default keeps all volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Keep volumes with a record that is at most this many nanoseconds older than the newest record of a volume, where times more
    /// than a day after the clock of this machine do not count. Records without a time are never too old.
    pub age: Option<u64>,
    /// Keep volumes of at most this many bytes in total, but those of the newest records in any case.
    pub bytes: Option<u64>,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pruned {
    /// The number of removed volumes.
    pub volumes: u64,
    /// The number of their records.
    pub records: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
    /// The size in bytes of the volumes that stay.
    pub left: u64,
    /// Volumes that stay only because they, or others before them, are not confirmed by object storage.
    pub held: Held,
}

/// Volumes that were not removed because they wait to be uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// The number of volumes.
    pub volumes: u64,
    /// The size of their files in bytes.
    pub bytes: u64,
}

/// Removes the volumes of a folder that are too old or too many. If the folder is [uploaded](crate::Uploads), volumes that are not confirmed
/// stay, with all behind them.
///
/// # Errors
/// Fails if the folder is not a log, is being recorded to, or cannot be written.
pub fn prune(path: &Path, retention: Retention) -> Result<Pruned, FolderError> {
    let folder = Folder::open(path)?;
    let _lock = Folder::lock(path)?;
    // While the volumes to compare them with are still there.
    remove_archived(&folder, &Catalogue::read(&folder.path)?)?;
    // This does not check whether volumes are whole: damaged ones may be removed.
    prune_locked(&folder, retention)
}

/// Like [`prune`], for a folder that is locked.
pub(crate) fn prune_locked(folder: &Folder, retention: Retention) -> Result<Pruned, FolderError> {
    folder.still_there()?;
    let mut catalogue = Catalogue::read(&folder.path)?;
    let wanted = too_old(&catalogue, retention, latest_plausible());
    let uploads = UploadList::read(&folder.path)?;
    let gone = uploads.map_or(wanted, |list| list.confirmed_first(&catalogue.volumes[..wanted]));
    let held = &catalogue.volumes[gone..wanted];
    let held = Held { volumes: held.len() as u64, bytes: bytes(held) };
    let gone: Vec<_> = catalogue.volumes.drain(..gone).collect();
    let left = bytes(&catalogue.volumes);
    let Some(before) = gone.iter().map(Entry::end).max() else { return Ok(Pruned { left, held, ..Pruned::default() }) };
    let taken = Pruned {
        volumes: gone.len() as u64,
        records: gone.iter().map(Entry::records).sum(),
        bytes: bytes(&gone),
        left,
        held,
    };
    catalogue.removed.before = before;
    catalogue.removed.records += taken.records;
    catalogue.write(folder)?;
    remove(folder, &gone)?;
    Ok(taken)
}

/// The number of records of a folder whose times are more than a day after the clock of this machine. [`prune()`] does not count age
/// from such times.
///
/// # Errors
/// Fails if the folder is not a log, or if a file that may have such records cannot be read or is damaged.
pub fn in_future(path: &Path) -> Result<u64, FolderError> {
    let history = History::open(path)?;
    if history.schema().time().is_none() {
        return Ok(0);
    }
    let mut records = 0;
    let from = latest_plausible().saturating_add(1);
    let ask = ArchiveQuery { expression: &Dnf::all(), from, to: u64::MAX, needed: &[] };
    history.each(ask, &mut |_, _| {
        records += 1;
        ControlFlow::Continue(())
    })?;
    Ok(records)
}

/// The latest time that a record can plausibly have, in nanoseconds since 1970: a day from now.
#[allow(clippy::disallowed_methods, reason = "retention compares times of records with the clock of this machine")]
fn latest_plausible() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).saturating_add(AHEAD)
}

/// How many of the first volumes to remove. They go in the order of positions: an old record behind a new one stays. Times after
/// `latest` are not plausible.
fn too_old(catalogue: &Catalogue, retention: Retention, latest: u64) -> usize {
    // If no time is plausible, all count.
    let latest = if newest(&catalogue.volumes, latest).is_some() { latest } else { u64::MAX };
    let stretches = catalogue.stretches().collect::<Vec<_>>();
    let oldest = retention.age.zip(newest(&catalogue.volumes, latest)).map(|(age, newest)| newest.saturating_sub(age));
    let ages = ages(&stretches, latest);
    let mut left = bytes(&catalogue.volumes);
    let mut gone = 0;
    // The last stretch stays: a limit that is smaller than it does not mean an empty folder.
    for (stretch, newest) in stretches.iter().zip(ages).take(stretches.len().saturating_sub(1)) {
        let is_old = oldest.zip(newest).is_some_and(|(oldest, newest)| newest < oldest);
        if !is_old && retention.bytes.is_none_or(|most| left <= most) {
            break;
        }
        gone += stretch.len();
        left -= bytes(stretch);
    }
    gone
}

/// The time for the age of each stretch: that of its newest record. If a stretch has times that are not plausible, the newest of its
/// plausible times is unknown, and the next stretch counts in its place, as records are mostly in the order of their times.
fn ages(stretches: &[&[Entry]], latest: u64) -> Vec<Option<u64>> {
    let mut next = None;
    let mut ages: Vec<_> = stretches
        .iter()
        .rev()
        .map(|stretch| {
            let own = newest(stretch, latest);
            let has_others = newest(stretch, u64::MAX).is_some_and(|newest| newest > latest);
            let age = if has_others { own.max(next) } else { own };
            next = age.or(next);
            age
        })
        .collect();
    ages.reverse();
    ages
}

/// The latest plausible time of their records. Of a row group that has times after `latest`, only the earliest time and that of
/// the first record are known.
fn newest(volumes: &[Entry], latest: u64) -> Option<u64> {
    let groups = volumes.iter().flat_map(|entry| &entry.groups);
    let times = groups.filter_map(|group| Some((group.times?, group.starts)));
    let known = times.flat_map(|((first, last), starts)| {
        let inner = starts.filter(|starts| (first..=last).contains(starts));
        [Some(last), inner, Some(first)].into_iter().flatten()
    });
    known.filter(|time| *time <= latest).max()
}

fn bytes(volumes: &[Entry]) -> u64 {
    volumes.iter().map(|entry| entry.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::GroupEntry;

    const DAY: u64 = 86_400_000_000_000;

    /// A catalogue of volumes with records of these days, from the first to the last.
    fn volumes(days: &[(u64, u64)]) -> Catalogue {
        let entry = |(number, (first, last)): (usize, &(u64, u64))| {
            let (at, times) = (number as u64, Some((first * DAY, last * DAY)));
            let group = GroupEntry { first: at, end: at + 1, lost: 0, records: 1, starts: Some(first * DAY), times };
            Entry { name: at.to_string(), bytes: 1, groups: vec![group], indexes: Vec::new(), sums: 0 }
        };
        Catalogue { volumes: days.iter().enumerate().map(entry).collect(), ..Catalogue::default() }
    }

    /// How many volumes are removed on day 100.
    fn removed(days: &[(u64, u64)], age: u64) -> usize {
        too_old(&volumes(days), Retention { age: Some(age * DAY), bytes: None }, 101 * DAY)
    }

    #[test]
    fn times_in_the_future_make_no_records_old() {
        let usual = [(90, 91), (92, 93), (94, 95), (96, 100)];
        assert_eq!(removed(&usual, 7), 1);
        for (at, expected) in [(0, 2), (1, 1), (2, 1), (3, 1), (4, 1)] {
            let mut days = usual.to_vec();
            days.insert(at, (46_000, 46_000));
            assert_eq!(removed(&days, 7), expected, "a volume from the future at {at}");
            // It blocks nothing: with a smaller age, volumes after it go.
            assert_eq!(removed(&days, 1), if at < 3 { 4 } else { 3 }, "{at}");
        }
        // One record of a volume has a wrong time.
        let mixed = [(90, 91), (92, 46_000), (94, 95), (96, 100)];
        assert_eq!(removed(&mixed, 7), 1);
        assert_eq!(removed(&mixed, 3), 3);
        assert_eq!(removed(&[(80, 81), (90, 91), (92, 100), (99, 46_000)], 7), 2);
    }

    #[test]
    fn without_a_plausible_time_the_newest_time_counts() {
        assert_eq!(removed(&[(200, 201), (205, 206), (210, 212)], 7), 1);
        // A day ahead of the clock is plausible.
        assert_eq!(removed(&[(90, 91), (95, 101)], 7), 1);
        // Relative times begin at 0.
        assert_eq!(removed(&[(0, 0), (1, 1), (2, 2)], 1), 1);
    }
}
