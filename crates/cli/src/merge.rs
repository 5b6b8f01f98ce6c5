//! `queuescope merge`: the results of a sweep's shards, as one run of the whole would tell them.

use crate::args::Merge;
use crate::outcome::Outcome;
use crate::paths::check_outputs;
use crate::progress::Progress;
use crate::sweep::summary::{Summary, unread};
use crate::terminal::note;
use anyhow::{Result, bail};
use queuescope_run::sweep::{CellResult, Found, Plan, Store, Summed, in_order, threads};
use std::collections::BTreeSet;

/// Runs `merge`.
///
/// # Errors
/// If nothing could be done: a folder has no results, or they are of different sweeps.
pub fn run(args: &Merge) -> Result<Outcome> {
    let output = args.output();
    check_outputs([], [&output.html, &output.parquet])?;
    let (stores, plan) = open(args)?;
    let mut summary = Summary::create(&plan, &output)?;
    let mut wrong = Wrong::default();
    let with_lines = summary.wants_lines();
    let progress = Progress::cells(plan.count(), "cells");
    let one = |cell: u64| {
        let key = &plan.cells[cell as usize];
        let found = find(&stores, key)?;
        let result = found.result.map(|result| Summed::of(&plan, cell, result, with_lines)).transpose()?;
        anyhow::Ok((result, found.about))
    };
    let merged = in_order(threads(None), plan.count(), one, |cell, (told, about)| {
        progress.one();
        wrong.add(&plan, cell, told.is_none(), about);
        told.map_or(Ok(()), |told| summary.add(cell, told))
    });
    progress.finish();
    match merged.and_then(|()| summary.finish()) {
        Err(error) if unread(&error) => return Ok(Outcome::Whole),
        other => other?,
    }
    wrong.tell(&stores, &plan)
}

/// Opens all folders, which must be of one sweep.
fn open(args: &Merge) -> Result<(Vec<Store>, Plan)> {
    let mut stores = Vec::new();
    let mut first: Option<Plan> = None;
    for folder in &args.results {
        let (store, plan) = Store::open(folder)?;
        if let Some(why) = first.as_ref().and_then(|first| first.difference(&plan)) {
            let (one, other) = (args.results[0].display(), folder.display());
            bail!("{one} and {other} do not hold results of the same sweep: {why}");
        }
        stores.push(store);
        first.get_or_insert(plan);
    }
    let Some(plan) = first else { bail!("no folder is named") };
    Ok((stores, plan))
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

fn find(stores: &[Store], key: &str) -> Result<FoundCell> {
    let mut found = FoundCell { result: None, about: About::default() };
    for store in stores {
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

/// What keeps a merged sweep from being whole.
#[derive(Default)]
struct Wrong {
    missing: Names,
    differ: Names,
    damaged: Names,
    doubles: u64,
}

impl Wrong {
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

    /// Tells of it, what is wrong last.
    fn tell(&self, stores: &[Store], plan: &Plan) -> Result<Outcome> {
        let known: BTreeSet<_> = plan.cells.iter().map(String::as_str).collect();
        let mut strange = BTreeSet::new();
        for store in stores {
            strange.extend(store.keys()?.into_iter().filter(|key| !known.contains(key.as_str())));
        }
        if !strange.is_empty() {
            note(&format!("{} results are of no cell of this sweep, and were left aside", strange.len()));
        }
        let same = self.doubles - self.differ.count;
        if same > 0 {
            note(&format!("{same} of {} cells are there more than once, with the same result", plan.count()));
        }
        let all = plan.count();
        let told = [
            (&self.damaged, "results are damaged".to_owned()),
            (&self.differ, format!("of {all} cells have different results in different folders; the first was taken")),
            (&self.missing, format!("of {all} cells are missing")),
        ];
        let wrong: Vec<_> = told
            .into_iter()
            .filter(|(names, _)| names.count > 0)
            .map(|(names, what)| format!("{} {what}:{names}", names.count))
            .collect();
        Ok(Outcome::of((!wrong.is_empty()).then(|| wrong.join("\n"))))
    }
}

/// How many there are, and the first of them.
#[derive(Default)]
struct Names {
    count: u64,
    first: Vec<String>,
}

impl Names {
    /// So many are told.
    const MOST: usize = 10;

    fn add(&mut self, name: String) {
        self.count += 1;
        if self.first.len() < Self::MOST {
            self.first.push(name);
        }
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for name in &self.first {
            write!(f, "\n  {name}")?;
        }
        match self.count - self.first.len() as u64 {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}
