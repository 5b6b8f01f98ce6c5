//! From journals to volumes.

use crate::catalogue::{AllSums, Catalogue, Entry, FOLDERS, GroupEntry, PARQUET, SUMS, index_end};
use crate::error::FolderError;
use crate::folder::Folder;
use crate::journal::Closed;
use crate::reader::{State, look};
use crate::store::Written;
use crate::volume::order::order;
use crate::volume::sums::Sums;
use crate::volume::{Columns, index, write};
use queuescope_log::{AttributeId, Schema};
use std::collections::BTreeMap;
use std::path::Path;

/// Days of records that lie together: of more, all lie where those without a day do.
const MOST_DAYS: usize = 31;
/// What the folder of records without a day is called, as other programs do.
const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";
/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// Makes volumes of a folder.
#[derive(Debug)]
pub(crate) struct Archiver<'a> {
    folder: &'a Folder,
    columns: Columns,
    indexes: Vec<AttributeId>,
    /// Records of a volume, at most.
    most: u64,
}

/// Records that become volumes, at one stretch of positions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch<'a> {
    /// One behind the other.
    pub rows: &'a [u8],
    /// The position of the first.
    pub first: u64,
    /// How many before it were lost.
    pub lost: u64,
    /// Whether they take the place of other volumes, of which the first is named after the same position.
    pub joined: bool,
}

impl<'a> Archiver<'a> {
    /// With indexes of these attributes; of a journal it takes so many records into memory at once.
    pub fn new(folder: &'a Folder, indexes: Vec<AttributeId>, most: u64) -> Self {
        Self { folder, columns: Columns::of(&folder.schema), indexes, most }
    }

    /// Writes records as volumes, one for each day; they count once they are in the catalogue.
    pub fn volumes(&self, stretch: Stretch<'_>) -> Result<Vec<Entry>, FolderError> {
        let schema = &self.folder.schema;
        let order = order(schema, stretch.rows);
        let mut volumes = Vec::new();
        let made = days(schema, stretch.rows, order).into_iter().try_for_each(|(day, order)| {
            volumes.push(self.entry(&day, stretch, &order));
            volumes.last_mut().map_or(Ok(()), |entry| self.fill(entry, stretch, &order))
        });
        // No catalogue knows of those that are there already; they would only take room.
        made.inspect_err(|_| drop(remove(self.folder, &volumes)))?;
        Ok(volumes)
    }

    /// Makes volumes of a journal, which goes. They count together, so that a journal is in volumes whole or not at all. What
    /// was stopped by an error before is done again, or to its end.
    pub fn journal(&self, journal: &Closed) -> Result<(), FolderError> {
        self.folder.still_there()?;
        let mut catalogue = Catalogue::read(&self.folder.path)?;
        if journal.positions.end <= catalogue.end() {
            // Perhaps the disk does not know of this catalogue yet.
            catalogue.write(self.folder)?;
            return self.folder.remove(&journal.path);
        }
        let mut volumes = Vec::new();
        let made = self.pieces(journal, catalogue.end(), &mut volumes);
        // No catalogue knows of those that are there already; they would only take room.
        made.inspect_err(|_| drop(remove(self.folder, &volumes)))?;
        catalogue.volumes.extend(volumes);
        catalogue.write(self.folder)?;
        self.folder.remove(&journal.path)
    }

    /// Makes volumes of a journal in pieces that there is memory for; those before it end at a position.
    fn pieces(&self, journal: &Closed, mut end: u64, volumes: &mut Vec<Entry>) -> Result<(), FolderError> {
        let size = self.folder.schema.record_size();
        let most = self.most.min(journal.positions.end - journal.positions.start).max(1) as usize * size;
        let (mut rows, mut next) = (Vec::with_capacity(most), end);
        // Up to where there are volumes, and the position of the first of these rows.
        let mut make = |rows: &mut Vec<u8>, first: u64| -> Result<u64, FolderError> {
            if !rows.is_empty() {
                volumes.extend(self.volumes(Stretch { rows, first, lost: first - end, joined: false })?);
                end = first + (rows.len() / size) as u64;
                rows.clear();
            }
            Ok(end)
        };
        let file = look(self.folder, &journal.path, next, false, &mut |first, mut records| {
            if rows.is_empty() {
                next = first;
            }
            while !records.is_empty() {
                let part;
                (part, records) = records.split_at(records.len().min(most - rows.len()));
                rows.extend_from_slice(part);
                if rows.len() == most {
                    next = make(&mut rows, next)?;
                }
            }
            Ok(())
        })?;
        if let State::Damaged(damage) = file.state {
            return Err(damage.into());
        }
        make(&mut rows, next)?;
        Ok(())
    }

    /// What the catalogue will say of a volume, but for its files.
    fn entry(&self, day: &str, stretch: Stretch<'_>, order: &[u32]) -> Entry {
        let (schema, Stretch { rows, first, lost, joined }) = (&self.folder.schema, stretch);
        let size = schema.record_size();
        let end = first + (rows.len() / size) as u64;
        let within = if day.is_empty() { String::new() } else { format!("{day}/") };
        Entry {
            name: if joined { format!("{within}{first:020}-{end:020}") } else { format!("{within}{first:020}") },
            bytes: 0,
            groups: vec![GroupEntry {
                first,
                end,
                lost,
                records: order.len() as u64,
                starts: schema.time().map(|time| schema.key(time, &rows[..size]) as u64),
                times: times(schema, rows, order),
            }],
            indexes: self.indexes.iter().map(|id| schema.attribute(*id).name.clone()).collect(),
            sums: 0,
        }
    }

    /// Writes the files of a volume.
    fn fill(&self, entry: &mut Entry, stretch: Stretch<'_>, order: &[u32]) -> Result<(), FolderError> {
        let (schema, Stretch { rows, first, .. }) = (&self.folder.schema, stretch);
        let within = Path::new(&entry.name).parent().unwrap_or(Path::new(""));
        FOLDERS.iter().try_for_each(|name| self.folder.make_folder(&Path::new(name).join(within)))?;
        let mut sums = AllSums::new();
        let group = write::Group { rows, size: schema.record_size(), first, order };
        let path = entry.path(&self.folder.path, PARQUET);
        sums.insert(PARQUET.to_owned(), self.put(&path, |file| write::write(file, &self.columns, group))?);
        for id in &self.indexes {
            let end = index_end(&schema.attribute(*id).name);
            let entries = index::entries(schema, *id, rows, order);
            let path = entry.path(&self.folder.path, &end);
            sums.insert(end, self.put(&path, |file| index::write(file, &entries))?);
        }
        self.seal(entry, &sums)
    }

    /// Puts a file in its place with its checksums.
    fn put(
        &self,
        path: &Path,
        write: impl FnOnce(Box<dyn Written>) -> parquet::errors::Result<(Box<dyn Written>, Sums)>,
    ) -> Result<Sums, FolderError> {
        self.folder.place(path, |file| write(file).map_err(|error| FolderError::written(path, &error)))
    }

    /// Writes the checksums of a volume's files, which are there.
    fn seal(&self, entry: &mut Entry, sums: &AllSums) -> Result<(), FolderError> {
        let text = serde_json::to_vec(sums).unwrap_or_else(|error| unreachable!("it has only numbers: {error}"));
        self.folder.whole(&entry.path(&self.folder.path, SUMS), &text)?;
        entry.sums = crc32fast::hash(&text);
        entry.bytes = sums.values().map(|sums| sums.bytes).sum::<u64>() + text.len() as u64;
        Ok(())
    }
}

/// Takes the files of volumes away that are not in the catalogue any more, and the folders of days that have none left. One
/// that cannot be removed does not keep the others.
pub(crate) fn remove(folder: &Folder, volumes: &[Entry]) -> Result<(), FolderError> {
    let paths = volumes.iter().flat_map(|entry| entry.paths(&folder.path));
    let removed = paths.clone().map(|path| folder.remove(&path)).fold(Ok(()), Result::and);
    for day in paths.filter_map(|path| path.parent().map(Path::to_owned)) {
        // One that has others stays.
        folder.remove_folder(&day);
    }
    removed
}

/// The folders of records' days, and which records are of each, in their order.
fn days(schema: &Schema, rows: &[u8], order: Vec<u32>) -> Vec<(String, Vec<u32>)> {
    let Some(time) = schema.time().map(|id| schema.reader(id)) else { return vec![(String::new(), order)] };
    let size = schema.record_size();
    let day = |place: &u32| time.key(&rows[*place as usize * size..]) as u64 / DAY;
    let first = order.first().map(day);
    if order.iter().all(|place| Some(day(place)) == first) {
        return first.map(|first| (name(first), order)).into_iter().collect();
    }
    let mut days: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for place in &order {
        days.entry(day(place)).or_default().push(*place);
    }
    if days.len() > MOST_DAYS {
        return vec![(format!("date={NO_DAY}"), order)];
    }
    days.into_iter().map(|(day, order)| (name(day), order)).collect()
}

/// What the folder of a day since 1970 is called.
fn name(day: u64) -> String {
    let time = chrono::DateTime::from_timestamp((day * (DAY / 1_000_000_000)) as i64, 0);
    let date = time.map_or_else(|| NO_DAY.to_owned(), |time| time.format("%Y-%m-%d").to_string());
    format!("date={date}")
}

/// The earliest and the latest time of records.
fn times(schema: &Schema, rows: &[u8], order: &[u32]) -> Option<(u64, u64)> {
    let (time, size) = (schema.reader(schema.time()?), schema.record_size());
    let times = order.iter().map(|place| time.key(&rows[*place as usize * size..]) as u64);
    times.fold(None, |known, at| {
        let (first, last) = known.unwrap_or((at, at));
        Some((first.min(at), last.max(at)))
    })
}
