//! The results of a sweep in several folders, such as those of its shards, joined.

use super::cell::Summed;
use super::plan::Plan;
use super::store::{CellResult, Found, Store};
use super::work::{in_order, threads};
use crate::error::Error;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// Folders that have results of one sweep.
#[derive(Debug)]
pub struct Shards {
    stores: Vec<Store>,
    plan: Plan,
}

impl Shards {
    /// Opens folders, which must be of one sweep.
    ///
    /// # Errors
    /// If one has no results, or they are of different sweeps; if there are none.
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

    /// What the sweep is.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Finds each cell, and hands it to `take` in order, by its number in the sweep, or none if no folder has it; with the whole cell as a
    /// line of JSON if it is `with_lines`.
    ///
    /// # Errors
    /// If a folder cannot be read; those of `take`.
    pub fn merge<E: From<Error> + Send>(
        &self,
        with_lines: bool,
        mut take: impl FnMut(u64, Option<Summed>) -> Result<(), E>,
    ) -> Result<Gaps, E> {
        let plan = &self.plan;
        let mut gaps = Gaps::default();
        let one = |cell: u64| {
            let FoundCell { result, about } = self.find(&plan.cells[cell as usize])?;
            let summed = result.map(|result| Summed::of(plan, cell, result, with_lines)).transpose()?;
            Ok((summed, about))
        };
        in_order(threads(None), plan.count(), one, |cell, (summed, about)| {
            gaps.add(plan, cell, summed.is_none(), about);
            take(cell, summed)
        })?;
        Ok(gaps)
    }

    fn find(&self, key: &str) -> Result<FoundCell, Error> {
        let mut found = FoundCell { result: None, about: About::default() };
        for store in &self.stores {
            match (store.load(key)?, &found.result) {
                (Found::Nothing, _) => {}
                (Found::Whole(result), None) => found.result = Some(*result),
                (Found::Whole(result), Some(first)) => {
                    found.about.double = true;
                    found.about.differs |= *result != *first;
                }
                (Found::Damaged(why), _) => found.about.damaged.push(format!("{} ({why})", store.path(key).display())),
            }
        }
        Ok(found)
    }

    /// Results that are of no cell of the sweep.
    fn strange(&self) -> Result<usize, Error> {
        let known: BTreeSet<_> = self.plan.cells.iter().map(String::as_str).collect();
        let mut strange = BTreeSet::new();
        for store in &self.stores {
            strange.extend(store.keys()?.into_iter().filter(|key| !known.contains(key.as_str())));
        }
        Ok(strange.len())
    }
}

/// What keeps a merged sweep from being whole.
#[derive(Debug, Default)]
pub struct Gaps {
    missing: Names,
    differ: Names,
    damaged: Names,
    doubles: u64,
}

impl Gaps {
    fn add(&mut self, plan: &Plan, cell: u64, missing: bool, about: About) {
        if missing {
            self.missing.add(plan.name(cell));
        }
        if about.differs {
            self.differ.add(plan.name(cell));
        }
        self.doubles += u64::from(about.double);
        about.damaged.into_iter().for_each(|name| self.damaged.add(name));
    }

    /// What is remarkable and leaves nothing out: a sentence each.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn notes(&self, shards: &Shards) -> Result<Vec<String>, Error> {
        let mut notes = Vec::new();
        let strange = shards.strange()?;
        if strange > 0 {
            notes.push(format!("{strange} results are of no cell of this sweep, and were left aside"));
        }
        let same = self.doubles - self.differ.count;
        if same > 0 {
            let all = shards.plan.count();
            notes.push(format!("{same} of {all} cells are there more than once, with the same result"));
        }
        Ok(notes)
    }

    /// What is missing, damaged or not the same everywhere: a line for each kind, with the first of them below it.
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

/// What all folders have of a cell.
struct FoundCell {
    /// The first that is whole.
    result: Option<CellResult>,
    about: About,
}

/// What is remarkable in it.
#[derive(Default)]
struct About {
    /// It is whole in more than one folder.
    double: bool,
    /// And not the same in all.
    differs: bool,
    /// Files that are damaged, and why.
    damaged: Vec<String>,
}

/// How many there are, and the first of them.
#[derive(Debug, Default)]
struct Names {
    count: u64,
    first: Vec<String>,
}

impl Names {
    /// So many are named.
    const MOST: usize = 10;

    fn add(&mut self, name: String) {
        self.count += 1;
        if self.first.len() < Self::MOST {
            self.first.push(name);
        }
    }
}

impl fmt::Display for Names {
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
