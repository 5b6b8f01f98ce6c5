//! Merges the results of a sweep from several folders, such as those of its shards.

use super::cell::CellSummary;
use super::plan::Plan;
use super::store::{CellResult, Store, StoredCell};
use super::work::{in_order, threads};
use crate::error::Error;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// Folders with results of one sweep.
#[derive(Debug)]
pub struct Shards {
    stores: Vec<Store>,
    plan: Plan,
}

impl Shards {
    /// Opens folders, which must hold results of the same sweep.
    ///
    /// # Errors
    /// Fails if a folder has no results, if they are of different sweeps, or if `folders` is empty.
    pub fn open<P: AsRef<Path>>(folders: &[P]) -> Result<Self, Error> {
        let mut stores = Vec::new();
        let mut first: Option<Plan> = None;
        for folder in folders {
            let (store, plan) = Store::open(folder.as_ref())?;
            if let Some(why) = first.as_ref().and_then(|first| first.difference(&plan)) {
                let name = |folder: &P| folder.as_ref().display().to_string();
                return Err(Error::OtherSweep { one: name(&folders[0]), other: name(folder), why });
            }
            stores.push(store);
            first.get_or_insert(plan);
        }
        first.map(|plan| Self { stores, plan }).ok_or(Error::NoFolder)
    }

    /// The plan of the sweep.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Looks up each cell, and passes it to `take` in order, with its number in the sweep. A cell that no folder has is passed as `None`.
    /// With `with_lines`, the cell's summary has the whole cell as a line of JSON.
    ///
    /// # Errors
    /// Fails if a folder cannot be read. Returns the first error of `take`.
    pub fn merge<E: From<Error> + Send>(
        &self,
        with_lines: bool,
        mut take: impl FnMut(u64, Option<CellSummary>) -> Result<(), E>,
    ) -> Result<MergeGaps, E> {
        let plan = &self.plan;
        let mut gaps = MergeGaps::default();
        let one = |cell: u64| {
            let MergedCell { result, defects } = self.find(&plan.cells[cell as usize])?;
            let summed = result.map(|result| CellSummary::new(plan, cell, result, with_lines)).transpose()?;
            Ok((summed, defects))
        };
        in_order(threads(None), plan.count(), one, |cell, (summed, defects)| {
            gaps.add(plan, cell, summed.is_none(), defects);
            take(cell, summed)
        })?;
        Ok(gaps)
    }

    fn find(&self, key: &str) -> Result<MergedCell, Error> {
        let mut found = MergedCell { result: None, defects: CellDefects::default() };
        for store in &self.stores {
            match (store.load(key)?, &found.result) {
                (StoredCell::Nothing, _) => {}
                (StoredCell::Whole(result), None) => found.result = Some(*result),
                (StoredCell::Whole(result), Some(first)) => {
                    found.defects.double = true;
                    found.defects.differs |= *result != *first;
                }
                (StoredCell::Damaged(why), _) => {
                    found.defects.damaged.push(format!("{} ({why})", store.path(key).display()));
                }
            }
        }
        Ok(found)
    }

    /// The number of results that belong to no cell of the sweep.
    fn unknown(&self) -> Result<usize, Error> {
        let known: BTreeSet<_> = self.plan.cells.iter().map(String::as_str).collect();
        let mut unknown = BTreeSet::new();
        for store in &self.stores {
            unknown.extend(store.keys()?.into_iter().filter(|key| !known.contains(key.as_str())));
        }
        Ok(unknown.len())
    }
}

/// Cells that are missing, damaged or not unique in a merged sweep.
#[derive(Debug, Default)]
pub struct MergeGaps {
    missing: CellNames,
    differ: CellNames,
    damaged: CellNames,
    doubles: u64,
}

impl MergeGaps {
    fn add(&mut self, plan: &Plan, cell: u64, missing: bool, defects: CellDefects) {
        if missing {
            self.missing.add(plan.name(cell));
        }
        if defects.differs {
            self.differ.add(plan.name(cell));
        }
        self.doubles += u64::from(defects.double);
        defects.damaged.into_iter().for_each(|name| self.damaged.add(name));
    }

    /// Notes on findings that leave out no cell, one sentence each.
    ///
    /// # Errors
    /// Fails if a folder cannot be read.
    pub fn notes(&self, shards: &Shards) -> Result<Vec<String>, Error> {
        let mut notes = Vec::new();
        let unknown = shards.unknown()?;
        if unknown > 0 {
            notes.push(format!("{unknown} results belong to no cell of this sweep, and were ignored"));
        }
        let same = self.doubles - self.differ.count;
        if same > 0 {
            let all = shards.plan.count();
            notes.push(format!("{same} of {all} cells are in more than one folder, with the same result"));
        }
        Ok(notes)
    }

    /// Cells that are missing, damaged or different between folders: a line for each kind, followed by the first names.
    pub fn damage(&self, shards: &Shards) -> Option<String> {
        let all = shards.plan.count();
        let kinds = [
            (&self.damaged, "results are damaged".to_owned()),
            (&self.differ, format!("of {all} cells have different results in different folders; the first was taken")),
            (&self.missing, format!("of {all} cells are missing")),
        ];
        let wrong: Vec<_> = kinds
            .into_iter()
            .filter(|(names, _)| names.count > 0)
            .map(|(names, what)| format!("{} {what}:{names}", names.count))
            .collect();
        (!wrong.is_empty()).then(|| wrong.join("\n"))
    }
}

/// The results that all folders have of one cell.
struct MergedCell {
    /// The first complete result.
    result: Option<CellResult>,
    defects: CellDefects,
}

/// Defects of a cell's results.
#[derive(Default)]
struct CellDefects {
    /// More than one folder has a complete result.
    double: bool,
    /// These results are not all the same.
    differs: bool,
    /// The damaged files, each with the reason.
    damaged: Vec<String>,
}

/// A count of names, and the first of them.
#[derive(Debug, Default)]
struct CellNames {
    count: u64,
    first: Vec<String>,
}

impl CellNames {
    /// The most names that are kept.
    const MOST: usize = 10;

    fn add(&mut self, name: String) {
        self.count += 1;
        if self.first.len() < Self::MOST {
            self.first.push(name);
        }
    }
}

impl fmt::Display for CellNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.first {
            write!(f, "\n  {name}")?;
        }
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
