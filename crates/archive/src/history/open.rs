//! A volume that a query reads, and what its indexes leave of it.

use super::{ArchiveQuery, Sources};
use crate::catalogue::{AllSums, Catalogue, Entry, PARQUET, index_end};
use crate::error::{Damage, FolderError};
use crate::folder::Folder;
use crate::volume::read::Volume;
use crate::volume::{Columns, PAGES, extremes, index};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The most pages of a row group that are read one by one. With more, the whole row group is read.
const MOST_PAGES: usize = PAGES / 2;

/// A volume that is open.
pub(super) struct Open {
    name: String,
    pub path: PathBuf,
    pub volume: Volume,
    /// The pages that indexes leave; `None`: all.
    pages: Option<Vec<u32>>,
    /// Whether the extremes of pages may exclude some.
    has_extremes: bool,
}

impl Open {
    /// Opens a volume, unless `open` is that one, and looks up the query in its indexes.
    pub fn volume<'o>(
        open: &'o mut Option<Self>,
        entry: &Entry,
        folder: &Folder,
        columns: &Columns,
        ask: &ArchiveQuery<'_>,
    ) -> Result<&'o Self, FolderError> {
        let is_open = open.as_ref().is_some_and(|open| open.name == entry.name);
        let opened = match open.take().filter(|_| is_open) {
            Some(same) => same,
            None => {
                let sums = entry.sums(&folder.path)?;
                let file = entry.open(&folder.path, PARQUET, &sums)?;
                let path = entry.path(&folder.path, PARQUET);
                let has_extremes = extremes::can_exclude(ask.expression, &folder.schema);
                let volume =
                    Volume::open(file, columns, has_extremes).map_err(|error| FolderError::volume(&path, &error))?;
                if volume.groups() != entry.groups.len() {
                    let why = format!(
                        "it has {} row groups, and the catalogue lists {}",
                        volume.groups(),
                        entry.groups.len()
                    );
                    return Err(Damage::new(&path, why).into());
                }
                let pages = pages(entry, &sums, folder, ask)?;
                Self { name: entry.name.clone(), path, volume, pages, has_extremes }
            }
        };
        Ok(open.insert(opened))
    }

    /// The pages of a row group that have to be read; `None`: all of them. Counts them in `sources`.
    pub fn pages(
        &self,
        group: usize,
        folder: &Folder,
        columns: &Columns,
        ask: &ArchiveQuery<'_>,
        sources: &mut Sources,
    ) -> Option<Cow<'_, [u32]>> {
        if let Some(pages) = self.by_index(group) {
            sources.by_index += 1;
            sources.pages += pages.len() as u64;
            return Some(pages.into());
        }
        let found = self.has_extremes.then(|| self.volume.by_extremes(group, ask.expression, &folder.schema, columns));
        match found.flatten().filter(|pages| pages.len() <= MOST_PAGES) {
            Some(pages) => {
                sources.by_extremes += 1;
                sources.extreme_pages += pages.len() as u64;
                Some(pages.into_iter().map(|page| index::page(group, page)).collect())
            }
            None => {
                sources.whole += 1;
                None
            }
        }
    }

    /// The pages of a row group that its indexes leave, if these are few.
    fn by_index(&self, group: usize) -> Option<&[u32]> {
        let pages = self.pages.as_deref()?;
        let from = |group: usize| pages.partition_point(|page| index::place(*page).0 < group);
        Some(&pages[from(group)..from(group + 1)]).filter(|pages| pages.len() <= MOST_PAGES)
    }
}

/// The pages of a volume that may have matching records, according to its indexes; `None` if these cannot say.
fn pages(
    entry: &Entry,
    sums: &AllSums,
    folder: &Folder,
    ask: &ArchiveQuery<'_>,
) -> Result<Option<Vec<u32>>, FolderError> {
    if entry.indexes.is_empty() {
        return Ok(None);
    }
    let most = MOST_PAGES * entry.groups.len();
    let mut all = Vec::new();
    for term in ask.expression.terms() {
        let mut of_term: Option<Vec<u32>> = None;
        for name in &entry.indexes {
            let Some(ranges) = folder.schema.find(name).and_then(|id| term.ranges(id)) else { continue };
            let end = index_end(name);
            let file = entry.open(&folder.path, &end, sums)?;
            let found = index::find(file, ranges, most);
            let found = found.map_err(|error| FolderError::volume(&entry.path(&folder.path, &end), &error))?;
            of_term = match (of_term, found) {
                (Some(known), Some(found)) => {
                    Some(known.into_iter().filter(|page| found.binary_search(page).is_ok()).collect())
                }
                (known, found) => known.or(found),
            };
        }
        match of_term {
            Some(pages) => all.extend(pages),
            None => return Ok(None),
        }
    }
    all.sort_unstable();
    all.dedup();
    Ok((!ask.expression.is_true()).then_some(all))
}

/// The records of one stretch of positions, which may be in several volumes: one for each day.
pub(super) struct Unit<'c> {
    pub first: u64,
    pub end: u64,
    /// Records lost before these.
    pub lost: u64,
    /// The volumes, and the number of the row group in each.
    pub parts: Vec<(&'c Entry, usize)>,
}

impl<'c> Unit<'c> {
    /// All units of a catalogue, in order.
    pub fn all(catalogue: &'c Catalogue) -> Vec<Self> {
        let mut units: BTreeMap<(u64, u64), Vec<(&Entry, usize)>> = BTreeMap::new();
        for entry in &catalogue.volumes {
            for (number, group) in entry.groups.iter().enumerate() {
                units.entry((group.first, group.end)).or_default().push((entry, number));
            }
        }
        let lost = |parts: &[(&Entry, usize)]| parts.first().map_or(0, |(entry, number)| entry.groups[*number].lost);
        units.into_iter().map(|((first, end), parts)| Self { first, end, lost: lost(&parts), parts }).collect()
    }

    /// Whether its first records were passed on already: it was joined with others since. An error if records are missing between it and
    /// the position up to which records were passed on.
    pub fn was_passed_on(&self, at: u64, folder: &Folder) -> Result<bool, FolderError> {
        let was_passed_on = self.first.saturating_sub(self.lost) < at;
        if !was_passed_on && self.first != at + self.lost {
            let why = format!("it begins at record {}, and the one before it ends at {at}", self.first);
            return Err(self.damage(folder, why));
        }
        Ok(was_passed_on)
    }

    /// An error about its volumes.
    pub fn damage(&self, folder: &Folder, why: String) -> FolderError {
        let path = self.parts.first().map(|(entry, _)| entry.path(&folder.path, PARQUET)).unwrap_or_default();
        Damage::new(&path, why).into()
    }

    /// An error: it does not have its records.
    pub fn incomplete(&self, folder: &Folder) -> FolderError {
        self.damage(folder, format!("it does not have the records {} to {}", self.first, self.end))
    }
}
