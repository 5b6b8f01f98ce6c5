//! Experiments that repeat results of papers about queues: a table of our results beside the paper's, figures, and
//! their data.
//!
//! An experiment consists of cells, each a scenario with a seed. The result of a cell is stored under a digest of its
//! scenario and the program's version. So an interrupted run continues, and a repeated one reads the stored results.
//!
//! - [`run`] runs the experiment of a [`Paper`] with [`Options`] and returns [`Done`].
//! - [`truths`]: the true values of every departure, with which sketches are compared.

mod abc;
mod conquest;
mod conquest_aqm;
mod egress_pi;
mod error;
mod outcome;
mod p4air;
mod panels;
mod pie_tofino;
mod plot;
mod results;
mod study;
mod terminal;
pub mod truths;
mod two_worlds;

pub use error::{Error, Result};
use outcome::Outcome;
use queuescope_run::sweep::{About, Store, StoredCell, in_order, key, sum, threads};
use queuescope_sim::Speedup;
use queuescope_wire::Rate;
use results::{Results, Values, numbers};
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
pub use study::Setting;
use study::{Cell, ON_REAL_HOSTS, Study};

/// The papers whose figures can be reproduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Paper {
    /// ABC (Menth et al., Future Internet 2019): figures 4, 5 and 6, what they depend on, a domain of three bottlenecks.
    Abc,
    /// The accuracy of ConQuest (Chen et al., CoNEXT 2019): figures 6 to 9 and 15, on a workload or a capture.
    Conquest,
    /// ConQuest's AQM (Chen et al., CoNEXT 2019): figures 10 and 11, and a better marking function.
    ConquestAqm,
    /// Not from a paper: Egress PI, designed for switches, compared with all other ways to manage a queue.
    EgressPi,
    /// P4air (Turkovic and Kuipers, ICNP 2020): figures 1, 6, 7(d) and 7(e), and the options of section V.
    P4air,
    /// PIE on a switch (Kunze et al., IM 2021): figures 5 and 6.
    PieTofino,
    /// Not from a paper: the simulator compared with the kernel's TCP on real hosts (Linux, as root), on 60 links.
    TwoWorlds,
}

/// What to run, and how.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// The paper.
    pub paper: Paper,
    /// Whether to run only a few points, with few seeds and for a shorter time.
    pub small: bool,
    /// Run only the first seeds, up to this number.
    pub seeds: Option<u64>,
    /// Run only these figures and tables, by the names of their files; all if empty.
    pub figures: Vec<String>,
    /// Whether to run on real hosts in place of simulating.
    pub real: bool,
    /// A capture in place of the workload, for [`Paper::Conquest`].
    pub capture: Option<Capture>,
    /// The folder for tables and plots; `experiments` by default.
    pub out: PathBuf,
    /// How many cells run at a time; by default one per core, and one in all on real hosts.
    pub jobs: Option<u16>,
}

impl Options {
    /// Options for all of a paper's figures.
    pub fn new(paper: Paper) -> Self {
        Self {
            paper,
            small: false,
            seeds: None,
            figures: Vec::new(),
            real: false,
            capture: None,
            out: PathBuf::from("experiments"),
            jobs: None,
        }
    }
}

/// A capture whose packets pass a queue without a limit.
#[derive(Debug, Clone)]
pub struct Capture {
    /// The file.
    pub file: PathBuf,
    /// The rate of the link that drains the queue.
    pub rate: Rate,
    /// How many times faster than captured its packets arrive.
    pub speedup: Speedup,
}

/// A completed experiment, whose files are written.
#[derive(Debug)]
pub struct Done {
    head: [String; 3],
    folder: PathBuf,
    outcome: Outcome,
}

impl Done {
    /// The folder with tables and plots.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the findings, for a terminal with `wide` columns or, if `None`, for a file.
    ///
    /// # Errors
    /// Returns the first write error of `out`.
    pub fn write(&self, wide: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
        terminal::write(self.head.each_ref().map(String::as_str), &self.folder, &self.outcome, wide, out)
    }
}

/// Runs an experiment, and writes its tables and plots. `progress` receives the number of completed cells and of all
/// cells.
///
/// # Errors
/// Fails if a cell cannot be run, or its result cannot be written.
pub fn run(options: &Options, setting: &Setting<'_>, progress: &mut dyn FnMut(u64, u64)) -> Result<Done> {
    let study = study(options)?;
    let study = study.as_ref();
    if options.real && study.is_real() {
        return Err(Error::RealAnyway(study.name()));
    }
    let cells = cells(study, options)?;
    let folder = options.out.join(folder(study, options));
    let store = Store::create(&folder.join("cells"))?;
    let results = measure(study, &cells, options, &store, setting, progress)?;
    let mut outcome = study.outcome(&results);
    if !options.figures.is_empty() {
        outcome.only(&results.figures());
    }
    outcome.tables.extend(outcome::lacking(&results));
    let what = what(study, &cells, options);
    outcome::write(&folder, &what, &outcome, &results)?;
    Ok(Done { head: [study.name().to_owned(), study.source().to_owned(), what], folder, outcome })
}

/// The name of an experiment's folder. Small experiments and those on other traffic have their own folders, and do not
/// overwrite others.
fn folder(study: &dyn Study, options: &Options) -> String {
    let capture = options
        .capture
        .as_ref()
        .and_then(|capture| capture.file.file_stem())
        .map(|stem| format!("-{}", stem.display()));
    let small = if options.small { "-small" } else { "" };
    let real = if options.real { "-real" } else { "" };
    format!("{}{}{real}{small}", study.name(), capture.unwrap_or_default())
}

/// What was run, in one or two sentences.
fn what(study: &dyn Study, cells: &[Cell], options: &Options) -> String {
    let seeds = |cells: &[Cell]| cells.iter().map(|cell| cell.seed).max().unwrap_or(0);
    let (run, all) = (seeds(cells), seeds(&study.cells(options.small)));
    let size = if options.small { "The small version, for a look and not for figures" } else { "The full version" };
    let of_all = if run < all { format!(" of {all}") } else { String::new() };
    let kind = match (study.is_real(), options.real) {
        (true, _) => "cells, each simulated and on real hosts",
        (false, true) => "runs on real hosts",
        (false, false) => "simulations",
    };
    let s = if run == 1 && run == all { "" } else { "s" };
    let percent = 100.0 * study.confidence();
    let remark = study.remark(options.small);
    let and = if remark.is_empty() { String::new() } else { format!(" {remark}") };
    let intervals = if run > 1 { format!(" Intervals are of {percent:.0} % confidence.") } else { String::new() };
    format!("{size}: {} {kind}, up to {run}{of_all} seed{s} of a kind.{and}{intervals}", cells.len())
}

/// The cells to run.
fn cells(study: &dyn Study, options: &Options) -> Result<Vec<Cell>> {
    let mut cells = study.cells(options.small);
    if let Some(most) = options.seeds {
        let has = cells.iter().map(|cell| cell.seed).max().unwrap_or(0);
        if most > has {
            return Err(Error::Seeds { wanted: most, study: study.name(), has });
        }
        cells.retain(|cell| cell.seed <= most);
    }
    if !options.figures.is_empty() {
        let known: BTreeSet<_> = cells.iter().map(|cell| cell.figure).collect();
        if let Some(other) = options.figures.iter().find(|figure| !known.contains(figure.as_str())) {
            let known = known.into_iter().collect();
            return Err(Error::Figure { wanted: other.clone(), study: study.name(), known });
        }
        cells.retain(|cell| options.figures.iter().any(|figure| figure == cell.figure));
    }
    if options.real {
        cells.iter_mut().for_each(|cell| cell.scenario.insert_str(0, ON_REAL_HOSTS));
    }
    Ok(cells)
}

fn study(options: &Options) -> Result<Box<dyn Study>> {
    Ok(match options.paper {
        Paper::Abc => Box::new(abc::Abc),
        Paper::Conquest => Box::new(conquest::ConQuest::new(options.capture.as_ref())?),
        Paper::ConquestAqm => Box::new(conquest_aqm::ConQuestAqm),
        Paper::EgressPi => Box::new(egress_pi::EgressPi),
        Paper::P4air => Box::new(p4air::P4air),
        Paper::PieTofino => Box::new(pie_tofino::PieTofino),
        Paper::TwoWorlds => Box::new(two_worlds::TwoWorlds),
    })
}

/// Runs all cells, or reads their stored results.
fn measure(
    study: &dyn Study,
    cells: &[Cell],
    options: &Options,
    store: &Store,
    setting: &Setting<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Results> {
    let version = env!("CARGO_PKG_VERSION");
    let one = |number: u64| {
        let cell = &cells[number as usize];
        let key = key(version, &sum(cell.scenario.as_bytes()), []);
        match store.load::<Values>(&key)? {
            StoredCell::Whole(values) => return Ok((*values, true)),
            StoredCell::Damaged(why) => {
                (setting.note)(&format!("{}: run again, since its result is damaged: {why}", cell.name()));
            }
            StoredCell::Nothing => (),
        }
        let values =
            numbers(study.measure(cell, setting).map_err(|why| Error::Cell { name: cell.name(), why: Box::new(why) })?);
        let (version, seed) = (version.to_owned(), cell.seed);
        let about = About { version, number, seed, parameters: cell.parameters() };
        store.keep_text(&format!("{key}.toml"), &cell.scenario)?;
        Ok::<_, Error>((store.keep(&key, about, values)?, false))
    };
    let all = cells.len() as u64;
    progress(0, all);
    let (mut results, mut earlier) = (Results::new(study.confidence()), 0);
    // Runs on real hosts have the machine to themselves, unless the caller asks for more at a time.
    let jobs = if options.real || study.is_real() { options.jobs.or(Some(1)) } else { options.jobs };
    in_order(threads(jobs), all, one, |number, (values, found)| {
        progress(number + 1, all);
        earlier += u64::from(found);
        results.add(&cells[number as usize], values);
        Ok(())
    })?;
    if earlier > 0 {
        (setting.note)(&format!("{earlier} of {} simulations were there already", cells.len()));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Paper; 7] = [
        Paper::Abc,
        Paper::Conquest,
        Paper::ConquestAqm,
        Paper::EgressPi,
        Paper::P4air,
        Paper::PieTofino,
        Paper::TwoWorlds,
    ];

    /// A mistake in a scenario would otherwise be found only when its turn comes.
    #[test]
    fn all_cells_are_valid_scenarios_and_differ() {
        for paper in ALL {
            let study = study(&Options::new(paper)).unwrap();
            for cells in [study.cells(true), study.cells(false)] {
                let mut seen = BTreeSet::new();
                for cell in cells {
                    cell.parsed().unwrap_or_else(|why| panic!("{}, {}: {why:?}", study.name(), cell.name()));
                    assert!(seen.insert(cell.name()), "{}", cell.name());
                }
            }
        }
    }
}
