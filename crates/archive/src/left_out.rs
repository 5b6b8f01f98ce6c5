//! What a recording left out, and when.
//!
//! The process that records appends a line to `left_out.jsonl` for each reason and stretch of time, at most one a second. Queries report what was left out
//! in their time, also long afterwards. When there are many lines, neighbours become one: the file stays small, and its times become coarser.

use crate::names::LEFT_OUT;
use crate::regular;
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Lines of the file beyond which neighbours are joined.
const LINES: usize = 2_000;
/// The most bytes of a file that is read.
const BYTES: u64 = 1 << 22;
/// The least time between two writes, nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// How much a recording left out in a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The stretch, in nanoseconds since 1970, with both ends.
    #[serde(rename = "from_ns", with = "text")]
    pub from: u64,
    /// See `from`.
    #[serde(rename = "to_ns", with = "text")]
    pub to: u64,
    /// The reason, for programs.
    pub reason: String,
    /// How many packets, or other things.
    pub count: u64,
    /// What they are, for people: a text that follows the number.
    pub meaning: String,
}

impl LeftOut {
    /// Whether it may be about the records from one time on and before another.
    fn is_within(&self, from: u64, to: u64) -> bool {
        self.to >= from && (self.from < to || to == u64::MAX)
    }

    /// Joins a later one for the same reason.
    fn join(&mut self, other: Self) {
        (self.from, self.to) = (self.from.min(other.from), self.to.max(other.to));
        (self.count, self.meaning) = (self.count.saturating_add(other.count), other.meaning);
    }
}

/// What a recording left out of a folder from one time on and before another, in nanoseconds since 1970: one for each reason.
pub(crate) fn between(folder: &Path, from: u64, to: u64) -> Vec<LeftOut> {
    let mut all: BTreeMap<String, LeftOut> = BTreeMap::new();
    let (lines, unread) = match read(&folder.join(LEFT_OUT)) {
        Ok(read) => read,
        Err(_) => (Vec::new(), 1),
    };
    let unread = (unread > 0).then(|| LeftOut {
        from,
        to,
        reason: "left_out_unreadable".to_owned(),
        count: unread,
        meaning: format!("parts of {LEFT_OUT} cannot be read: the recording may have left out more"),
    });
    for line in lines.into_iter().filter(|line| line.is_within(from, to)).chain(unread) {
        match all.get_mut(&line.reason) {
            Some(known) => known.join(line),
            None => _ = all.insert(line.reason.clone(), line),
        }
    }
    all.into_values().collect()
}

/// The lines of a file, and the number of those that cannot be read. A file that is not there has none.
fn read(path: &Path) -> io::Result<(Vec<LeftOut>, u64)> {
    let bytes = match regular::read(path, BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        read => read?,
    };
    let (mut lines, mut unread) = (Vec::new(), 0);
    // The end behind the last line may be incomplete: its writer is writing, or was stopped.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<LeftOut>(line) {
            Ok(line) if line.from <= line.to => lines.push(line),
            _ => unread += 1,
        }
    }
    Ok((lines, unread))
}

/// Writes what a recording leaves out to its folder.
///
/// ```
/// use queuescope_archive::LeftOutFile;
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let mut file = LeftOutFile::in_folder(folder, 1_000_000_000)?;
/// file.note(2_000_000_000, 0, &[("shed", 10, "packets left out because they took more time than --cpu allows")])?;
/// file.end()?;
/// assert!(std::fs::read_to_string(folder.join("left_out.jsonl"))?.contains(r#""reason":"shed","count":10"#));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct LeftOutFile {
    path: PathBuf,
    /// The lines of the file.
    lines: Vec<LeftOut>,
    /// What is not written yet, by reason.
    pending: BTreeMap<String, LeftOut>,
    /// The totals so far, by reason.
    known: BTreeMap<String, u64>,
    /// When the totals were last noted, and when lines were last written.
    noted: u64,
    written: u64,
    /// Whether the file ends in the middle of a line, or has to be written as a whole for another reason.
    is_torn: bool,
}

impl LeftOutFile {
    /// The file of a folder, for a recording that begins now, in nanoseconds since 1970. The file is made when there is something to write.
    ///
    /// # Errors
    /// Fails if there is a file that cannot be read.
    pub fn in_folder(folder: &Path, now: u64) -> io::Result<Self> {
        let path = folder.join(LEFT_OUT);
        let (lines, unread) = read(&path)?;
        let is_torn = unread > 0 || fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n'));
        Ok(Self { path, lines, pending: BTreeMap::new(), known: BTreeMap::new(), noted: now, written: 0, is_torn })
    }

    /// Notes what has been left out so far, by reason, with its meaning: what is new was left out since the last call, or up to `slack` nanoseconds before it. Writes at most
    /// once a second.
    ///
    /// # Errors
    /// Fails if the file cannot be written; then the next call tries again.
    pub fn note(&mut self, now: u64, slack: u64, totals: &[(&str, u64, &str)]) -> io::Result<()> {
        let from = self.noted.saturating_sub(slack).min(now);
        self.noted = now;
        for &(reason, total, meaning) in totals {
            let known = self.known.entry(reason.to_owned()).or_default();
            let count = total.saturating_sub(*known);
            *known = total.max(*known);
            if count == 0 {
                continue;
            }
            let left_out = LeftOut { from, to: now, reason: reason.to_owned(), count, meaning: meaning.to_owned() };
            match self.pending.get_mut(reason) {
                Some(pending) => pending.join(left_out),
                None => _ = self.pending.insert(reason.to_owned(), left_out),
            }
        }
        if self.pending.is_empty() || now.abs_diff(self.written) < SECOND {
            return Ok(());
        }
        self.written = now;
        self.end()
    }

    /// Writes what has been noted.
    ///
    /// # Errors
    /// Fails if the file cannot be written; then another call tries again.
    pub fn end(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let first = self.lines.len();
        self.lines.extend(self.pending.values().cloned());
        let written = if self.is_torn || self.lines.len() > LINES {
            self.join_neighbours();
            self.replace()
        } else {
            self.append(first)
        };
        match written {
            Ok(()) => {
                self.pending.clear();
                self.is_torn = false;
            }
            Err(error) => {
                // A part of a line may be there. What is pending is among the lines already.
                self.pending.clear();
                self.is_torn = true;
                return Err(error);
            }
        }
        Ok(())
    }

    fn append(&self, first: usize) -> io::Result<()> {
        let mut file = regular::open_with(&self.path, OpenOptions::new().create(true).append(true))?;
        file.write_all(&text_of(&self.lines[first..])?)
    }

    /// Writes the file again, and puts it in place of the old one.
    fn replace(&self) -> io::Result<()> {
        let new = self.path.with_extension("jsonl.new");
        regular::create(&new)?.write_all(&text_of(&self.lines)?)?;
        fs::rename(&new, &self.path)
    }

    /// Makes one of the lines for the same reason that begin in the same part of the time, until there are few. All parts are of one length, so
    /// that no time is much coarser than others.
    fn join_neighbours(&mut self) {
        let first = self.lines.iter().map(|line| line.from).min().unwrap_or(0);
        let last = self.lines.iter().map(|line| line.to).max().unwrap_or(0);
        let reasons = self.lines.iter().map(|line| line.reason.as_str()).collect::<BTreeSet<_>>().len();
        let parts = (LINES / 2 / reasons.max(1)).max(1) as u64;
        let length = last.saturating_sub(first) / parts + 1;
        let mut places: BTreeMap<(String, u64), usize> = BTreeMap::new();
        let mut joined: Vec<LeftOut> = Vec::new();
        for line in self.lines.drain(..) {
            let part = (line.from - first) / length;
            match places.entry((line.reason.clone(), part)) {
                Entry::Occupied(place) => joined[*place.get()].join(line),
                Entry::Vacant(place) => {
                    place.insert(joined.len());
                    joined.push(line);
                }
            }
        }
        self.lines = joined;
    }
}

fn text_of(lines: &[LeftOut]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// Whole numbers as text, which programs with floating point read exactly.
mod text {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MEANING: &str = "packets left out";

    fn sum(all: &[LeftOut]) -> u64 {
        all.iter().map(|one| one.count).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(50) })]

        #[test]
        fn everything_is_reported_in_its_time(steps in prop::collection::vec((1..3_000u64, 0..5u64, any::<bool>(), prop::bool::weighted(0.05)), 1..300)) {
            let folder = tempfile::tempdir().expect("there is room");
            let start = 1_000 * SECOND;
            let mut file = LeftOutFile::in_folder(folder.path(), start).expect("there is none yet");
            let (mut now, mut totals, mut truth) = (start, [0; 2], Vec::new());
            for (ms, count, is_first, ends) in steps {
                let before = now;
                now += ms * 1_000_000;
                totals[usize::from(is_first)] += count;
                truth.push((before, now, count));
                file.note(now, 0, &[("a", totals[0], MEANING), ("b", totals[1], MEANING)]).expect("there is room");
                if ends {
                    // Another process goes on.
                    file.end().expect("there is room");
                    file = LeftOutFile::in_folder(folder.path(), now).expect("it can be read");
                    totals = [0; 2];
                }
            }
            file.end().expect("there is room");
            let all: u64 = truth.iter().map(|(.., count)| count).sum();
            prop_assert_eq!(sum(&between(folder.path(), 0, u64::MAX)), all);
            // A question about a part gets at least what was left out in it.
            let middle = start.midpoint(now);
            let later: u64 = truth.iter().filter(|(from, ..)| *from >= middle).map(|(.., count)| count).sum();
            prop_assert!(sum(&between(folder.path(), middle, u64::MAX)) >= later);
            prop_assert_eq!(between(folder.path(), now + 1, u64::MAX), vec![]);
            prop_assert_eq!(between(folder.path(), 0, start), vec![]);
        }
    }

    #[test]
    fn the_file_stays_small_and_loses_nothing() {
        let folder = tempfile::tempdir().expect("there is room");
        let mut file = LeftOutFile::in_folder(folder.path(), 0).expect("there is none yet");
        for second in 1..10_000 {
            file.note(second * SECOND, 0, &[("a", second, MEANING), ("b", 2 * second, MEANING)])
                .expect("there is room");
            assert!(file.lines.len() <= LINES + 2);
        }
        let (lines, unread) = read(&folder.path().join(LEFT_OUT)).expect("it can be read");
        assert!(lines.len() <= LINES && unread == 0, "{} lines", lines.len());
        let all = between(folder.path(), 0, u64::MAX);
        assert_eq!(
            all.iter().map(|one| (one.reason.as_str(), one.count)).collect::<Vec<_>>(),
            [("a", 9_999), ("b", 19_998)]
        );
        // The first times are coarser, and still the first.
        assert!(sum(&between(folder.path(), 0, 2 * SECOND)) < 3 * 9_999 / 4);
    }

    #[test]
    fn a_damaged_file_is_reported_and_repaired() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join(LEFT_OUT);
        let good = r#"{"from_ns":"5","to_ns":"9","reason":"shed","count":3,"meaning":"packets left out"}"#;
        fs::write(&path, format!("{good}\nnonsense\n{{\"from_ns\":\"9\",\"to_ns\":\"5\",\"reason\":\"x\",\"count\":1,\"meaning\":\"y\"}}\n{{\"from")).expect("there is room");
        let all = between(folder.path(), 0, u64::MAX);
        let found: Vec<_> = all.iter().map(|one| (one.reason.as_str(), one.count)).collect();
        assert_eq!(found, [("left_out_unreadable", 2), ("shed", 3)]);
        let mut file = LeftOutFile::in_folder(folder.path(), 10).expect("it can be read");
        file.note(3 * SECOND, 0, &[("shed", 4, MEANING)]).expect("there is room");
        let (lines, unread) = read(&path).expect("it can be read");
        assert_eq!((sum(&lines), unread), (7, 0));
        // A pipe in its place is not opened.
        fs::remove_file(&path).expect("it is there");
        fs::create_dir(&path).expect("there is room");
        assert_eq!(between(folder.path(), 0, 5)[0].reason, "left_out_unreadable");
        assert!(LeftOutFile::in_folder(folder.path(), 0).is_err());
    }
}
