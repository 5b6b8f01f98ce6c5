//! Turns journals into volumes.

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

/// The most days that get folders of their own. Records of more days all go to the folder for records without a day.
const MOST_DAYS: usize = 31;
/// The folder of records without a day. Other programs use the same name.
const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";
/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// Writes the volumes of a folder.
#[derive(Debug)]
pub(crate) struct Archiver<'a> {
    folder: &'a Folder,
    columns: Columns,
    indexes: Vec<AttributeId>,
    /// The most records of a volume.
    most: u64,
}

/// Records of consecutive positions that become volumes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch<'a> {
    /// Records, one after another.
    pub rows: &'a [u8],
    /// The position of the first record.
    pub first: u64,
    /// The number of records lost before the first.
    pub lost: u64,
    /// Whether these volumes replace others, the first of which is named after the same position.
    pub joined: bool,
}

impl<'a> Archiver<'a> {
    /// Volumes get indexes of these attributes. `most` also limits how many records of a journal are in memory at once.
    pub fn new(folder: &'a Folder, indexes: Vec<AttributeId>, most: u64) -> Self {
        Self { folder, columns: Columns::new(&folder.schema), indexes, most }
    }

    /// Writes records as volumes, one for each day. They count only once they are in the catalogue.
    pub fn volumes(&self, stretch: Stretch<'_>) -> Result<Vec<Entry>, FolderError> {
        let schema = &self.folder.schema;
        let order = order(schema, stretch.rows);
        let mut volumes = Vec::new();
        let made = days(schema, stretch.rows, order).into_iter().try_for_each(|(day, order)| {
            volumes.push(self.entry(&day, stretch, &order));
            volumes.last_mut().map_or(Ok(()), |entry| self.fill(entry, stretch, &order))
        });
        // The catalogue lists none of the volumes written so far: they would only take up room.
        made.inspect_err(|_| drop(remove(self.folder, &volumes)))?;
        Ok(volumes)
    }

    /// Turns a journal into volumes and removes it. The volumes enter the catalogue together, so a journal is in volumes completely or not at all.
    /// Work that an error stopped earlier is repeated or completed.
    pub fn journal(&self, journal: &Closed) -> Result<(), FolderError> {
        self.folder.still_there()?;
        let mut catalogue = Catalogue::read(&self.folder.path)?;
        if journal.positions.end <= catalogue.end() {
            // The disk may not have this catalogue yet.
            catalogue.write(self.folder)?;
            return self.folder.remove(&journal.path);
        }
        let mut volumes = Vec::new();
        let made = self.pieces(journal, catalogue.end(), &mut volumes);
        // The catalogue lists none of the volumes written so far: they would only take up room.
        made.inspect_err(|_| drop(remove(self.folder, &volumes)))?;
        catalogue.volumes.extend(volumes);
        catalogue.write(self.folder)?;
        self.folder.remove(&journal.path)
    }

    /// Turns a journal into volumes in pieces that fit in memory. Earlier volumes end at `end`.
    fn pieces(&self, journal: &Closed, mut end: u64, volumes: &mut Vec<Entry>) -> Result<(), FolderError> {
        let size = self.folder.schema.record_size();
        let most = self.most.min(journal.positions.end - journal.positions.start).max(1) as usize * size;
        let (mut rows, mut next) = (Vec::with_capacity(most), end);
        // The position behind the last volume, and the position of the first of these rows.
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

    /// The catalogue entry of a volume, without its files.
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

    /// Puts a file in place together with its checksums.
    fn put(
        &self,
        path: &Path,
        write: impl FnOnce(Box<dyn Written>) -> parquet::errors::Result<(Box<dyn Written>, Sums)>,
    ) -> Result<Sums, FolderError> {
        self.folder.place(path, |file| write(file).map_err(|error| FolderError::written(path, &error)))
    }

    /// Writes the checksums of a volume's files.
    fn seal(&self, entry: &mut Entry, sums: &AllSums) -> Result<(), FolderError> {
        let text = serde_json::to_vec(sums).unwrap_or_else(|error| unreachable!("it has only numbers: {error}"));
        self.folder.whole(&entry.path(&self.folder.path, SUMS), &text)?;
        entry.sums = crc32fast::hash(&text);
        entry.bytes = sums.values().map(|sums| sums.bytes).sum::<u64>() + text.len() as u64;
        Ok(())
    }
}

/// Removes the files of volumes that are no longer in the catalogue, and the folders of days that are empty then. A file that
/// cannot be removed does not stop the others.
pub(crate) fn remove(folder: &Folder, volumes: &[Entry]) -> Result<(), FolderError> {
    let paths = volumes.iter().flat_map(|entry| entry.paths(&folder.path));
    let removed = paths.clone().map(|path| folder.remove(&path)).fold(Ok(()), Result::and);
    for day in paths.filter_map(|path| path.parent().map(Path::to_owned)) {
        // A folder with other volumes stays.
        folder.remove_folder(&day);
    }
    removed
}

/// The folders of the records' days, and the records of each day in order.
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

/// The folder name of a day, counted from 1970.
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
