//! Checks whether a catalogue is plausible. Its checksum shows that nothing has changed, but not who wrote it, and its contents are
//! used as paths and added up.

use super::{Catalogue, Entry, GroupEntry};
use crate::journal::POSITIONS;
use crate::volume::GROUP;

/// The most bytes of a volume.
const BYTES: u64 = 1 << 40;

/// Returns what is impossible about the catalogue.
pub(super) fn check(catalogue: &Catalogue) -> Result<(), String> {
    let mut places = PositionCheck { before: catalogue.removed.before, ..PositionCheck::default() };
    if places.before > POSITIONS || catalogue.removed.records > places.before {
        return Err("more records were removed than a log can have".to_owned());
    }
    for entry in &catalogue.volumes {
        let wrong = |why: &str| Err(format!("its volume '{}' {why}", entry.name.escape_default()));
        if !is_name(&entry.name) || !entry.indexes.iter().all(|name| is_word(name)) {
            return wrong("has a name that no volume has");
        }
        if entry.bytes > BYTES || entry.groups.is_empty() {
            return wrong("has a size that no volume has");
        }
        if !entry.groups.iter().all(|group| places.take(group)) {
            return wrong("has records at positions where they cannot be");
        }
    }
    Ok(())
}

/// Checks the positions of row groups in order.
#[derive(Debug, Default)]
struct PositionCheck {
    /// Where the positions before those of the last group end.
    before: u64,
    /// The positions of the last group, and how many of its records no volume has yet: the days of one stretch are separate volumes.
    last: Option<(u64, u64, u64)>,
    left: u64,
}

impl PositionCheck {
    /// Takes the next group; returns whether its positions are possible.
    fn take(&mut self, group: &GroupEntry) -> bool {
        let GroupEntry { first, end, lost, records, times, .. } = *group;
        if self.last != Some((first, end, lost)) {
            let is_behind = self.before <= first && lost <= first - self.before;
            if !is_behind || end <= first || end > POSITIONS || end - first > GROUP as u64 {
                return false;
            }
            (self.before, self.last, self.left) = (end, Some((first, end, lost)), end - first);
        }
        let is_there = records <= self.left && times.is_none_or(|(earliest, latest)| earliest <= latest);
        self.left -= records.min(self.left);
        is_there
    }
}

/// Whether a text is a valid volume name: the folder of a day, if any, and the positions of its records.
fn is_name(name: &str) -> bool {
    let (day, positions) = name.split_once('/').unwrap_or(("date=none", name));
    day.strip_prefix("date=").is_some_and(is_word) && Entry::is_positions(positions)
}

/// Whether the text is a plain name that leads to no other folder.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Removed;

    fn group(first: u64, end: u64, lost: u64, records: u64) -> GroupEntry {
        GroupEntry { first, end, lost, records, starts: None, times: None }
    }

    fn entry(name: &str, groups: Vec<GroupEntry>) -> Entry {
        Entry { name: name.to_owned(), bytes: 1, groups, indexes: vec!["src_ip".to_owned()], sums: 0 }
    }

    fn check_all(before: u64, volumes: Vec<Entry>) -> Result<(), String> {
        check(&Catalogue { removed: Removed { before, records: before }, noted: None, volumes })
    }

    const ONE: &str = "date=2026-11-22/00000000000000000000";

    #[test]
    fn what_is_written_can_be() {
        let joined = "date=__HIVE_DEFAULT_PARTITION__/00000000000000000005-00000000000000000012";
        let parts = || vec![entry(ONE, vec![group(5, 9, 0, 3)]), entry(joined, vec![group(5, 9, 0, 1)])];
        check_all(5, parts()).unwrap();
        let behind = entry("00000000000000000012", vec![group(12, 13, 3, 1)]);
        check_all(5, [parts(), vec![behind]].concat()).unwrap();
        check_all(0, Vec::new()).unwrap();
    }

    #[test]
    fn what_leads_elsewhere_is_refused() {
        for name in
            ["../00000000000000000000", "date=../00000000000000000000", "date=a/b/00000000000000000000", "/etc/x", ""]
        {
            let error = check_all(0, vec![entry(name, vec![group(0, 1, 0, 1)])]).unwrap_err();
            assert!(error.contains("a name that no volume has"), "{name}: {error}");
        }
        let mut index = entry(ONE, vec![group(0, 1, 0, 1)]);
        index.indexes = vec!["../../x".to_owned()];
        assert!(check_all(0, vec![index]).is_err());
    }

    #[test]
    fn positions_that_cannot_be_are_refused() {
        let groups = [
            (0, group(0, 0, 0, 0)),
            (0, group(5, 4, 0, 0)),
            (0, group(0, 4, 0, 5)),
            (0, group(3, 4, 4, 1)),
            (3, group(2, 4, 0, 2)),
            (0, group(0, GROUP as u64 + 1, 0, 1)),
            (0, group(u64::MAX - 1, u64::MAX, u64::MAX - 1, 1)),
            (u64::MAX, group(0, 1, 0, 1)),
        ];
        for (before, group) in groups {
            assert!(check_all(before, vec![entry(ONE, vec![group])]).is_err(), "{before}, {group:?}");
        }
        let twice = vec![entry(ONE, vec![group(0, 4, 0, 3)]), entry(ONE, vec![group(0, 4, 0, 3)])];
        assert!(check_all(0, twice).is_err());
        assert!(check_all(0, vec![entry(ONE, Vec::new())]).is_err());
        assert!(check_all(0, vec![Entry { bytes: u64::MAX, ..entry(ONE, vec![group(0, 1, 0, 1)]) }]).is_err());
        let times = GroupEntry { times: Some((2, 1)), ..group(0, 1, 0, 1) };
        assert!(check_all(0, vec![entry(ONE, vec![times])]).is_err());
    }
}
