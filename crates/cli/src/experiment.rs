//! `queuescope experiment`: what a paper reports, run again: a table of ours beside the paper's, figures, and their data.
//!
//! An experiment is cells: a scenario with a seed each. What came of a cell is kept under a digest of its scenario and the
//! program's version, so that a run that was stopped goes on, and one that is repeated reads what is there.

mod abc;
mod conquest;
mod conquest_aqm;
mod egress_pi;
mod panels;
mod pie_tofino;
mod plot;
mod results;
mod study;
mod tell;
mod terminal;
mod two_worlds;

use crate::args::{Experiment, Paper};
use crate::outcome::{self, Outcome};
use crate::progress::Progress;
use crate::sweep::key::{key, sum};
use crate::sweep::store::{About, Found, Store};
use crate::sweep::work;
use crate::sweep::work::threads;
use crate::terminal::note;
use anyhow::{Context, Result, bail};
use results::{Results, Values, numbers};
use std::collections::BTreeSet;
use study::{Cell, ON_REAL_HOSTS, Study};

/// Runs an experiment.
///
/// # Errors
/// If a cell cannot be run, or what came of it cannot be written.
pub fn run(args: &Experiment) -> Result<Outcome> {
    if args.capture.is_some() && args.paper != Paper::Conquest {
        bail!("--capture is for conquest: the other experiments have traffic of their own");
    }
    if args.real && args.paper == Paper::Conquest {
        bail!(
            "--real is for experiments with flows that ask for more or less: conquest is about a given stream of packets"
        );
    }
    let study = study(args)?;
    let study = study.as_ref();
    if args.real && study.is_real() {
        bail!("{} runs on real hosts anyway: leave --real out", study.name());
    }
    let cells = cells(study, args)?;
    let folder = args.out.join(folder(study, args));
    let store = Store::create(&folder.join("cells"))?;
    let results = measure(study, &cells, args, &store)?;
    let mut told = study.tell(&results);
    if !args.figures.is_empty() {
        told.only(&results.figures());
    }
    told.tables.extend(tell::lacking(&results));
    let what = what(study, &cells, args);
    tell::write(&folder, &what, &told, &results)?;
    let head = [study.name(), study.source(), &what];
    outcome::print(false, |_| Ok(()), |out| terminal::write(head, &folder, &told, out))?;
    Ok(Outcome::Whole)
}

/// Where an experiment goes: a small one, or one on other traffic, has other files, and leaves those of another as they are.
fn folder(study: &dyn Study, args: &Experiment) -> String {
    let capture = args.capture.as_ref().and_then(|path| path.file_stem()).map(|stem| format!("-{}", stem.display()));
    let small = if args.small { "-small" } else { "" };
    let real = if args.real { "-real" } else { "" };
    format!("{}{}{real}{small}", study.name(), capture.unwrap_or_default())
}

/// What was run, in a sentence or two.
fn what(study: &dyn Study, cells: &[Cell], args: &Experiment) -> String {
    let seeds = |cells: &[Cell]| cells.iter().map(|cell| cell.seed).max().unwrap_or(0);
    let (run, all) = (seeds(cells), seeds(&study.cells(args.small)));
    let size = if args.small { "The small version, for a look and not for figures" } else { "The full version" };
    let of_all = if run < all { format!(" of {all}") } else { String::new() };
    let kind = match (study.is_real(), args.real) {
        (true, _) => "cells, each simulated and on real hosts",
        (false, true) => "runs on real hosts",
        (false, false) => "simulations",
    };
    let s = if run == 1 && run == all { "" } else { "s" };
    let percent = 100.0 * study.confidence();
    let remark = study.remark(args.small);
    let and = if remark.is_empty() { String::new() } else { format!(" {remark}") };
    let intervals = if run > 1 { format!(" Intervals are of {percent:.0} % confidence.") } else { String::new() };
    format!("{size}: {} {kind}, up to {run}{of_all} seed{s} of a kind.{and}{intervals}", cells.len())
}

/// What is to be run.
fn cells(study: &dyn Study, args: &Experiment) -> Result<Vec<Cell>> {
    let mut cells = study.cells(args.small);
    if let Some(most) = args.seeds {
        let has = cells.iter().map(|cell| cell.seed).max().unwrap_or(0);
        if most > has {
            bail!("--seeds {most}: {} has {has} at most", study.name());
        }
        cells.retain(|cell| cell.seed <= most);
    }
    if !args.figures.is_empty() {
        let known: BTreeSet<_> = cells.iter().map(|cell| cell.figure).collect();
        if let Some(other) = args.figures.iter().find(|figure| !known.contains(figure.as_str())) {
            let known: Vec<_> = known.into_iter().collect();
            bail!("--figures {other}: {} has {}", study.name(), known.join(", "));
        }
        cells.retain(|cell| args.figures.iter().any(|figure| figure == cell.figure));
    }
    if args.real {
        cells.iter_mut().for_each(|cell| cell.scenario.insert_str(0, ON_REAL_HOSTS));
    }
    Ok(cells)
}

fn study(args: &Experiment) -> Result<Box<dyn Study>> {
    Ok(match args.paper {
        Paper::Abc => Box::new(abc::Abc),
        Paper::Conquest => Box::new(conquest::ConQuest::new(args)?),
        Paper::ConquestAqm => Box::new(conquest_aqm::ConQuestAqm),
        Paper::EgressPi => Box::new(egress_pi::EgressPi),
        Paper::PieTofino => Box::new(pie_tofino::PieTofino),
        Paper::TwoWorlds => Box::new(two_worlds::TwoWorlds),
    })
}

/// Runs or finds all cells.
fn measure(study: &dyn Study, cells: &[Cell], args: &Experiment, store: &Store) -> Result<Results> {
    let version = env!("CARGO_PKG_VERSION");
    let one = |number: u64| {
        let cell = &cells[number as usize];
        let key = key(version, &sum(cell.scenario.as_bytes()), []);
        match store.load::<Values>(&key)? {
            Found::Whole(values) => return Ok((*values, true)),
            Found::Damaged(why) => note(&format!("{}: run again, since its result is damaged: {why}", cell.name())),
            Found::Nothing => (),
        }
        let values = numbers(study.measure(cell).with_context(|| cell.name())?);
        let (version, seed) = (version.to_owned(), cell.seed);
        let about = About { version, number, seed, parameters: cell.parameters() };
        store.keep_text(&format!("{key}.toml"), &cell.scenario)?;
        Ok((store.keep(&key, about, values)?, false))
    };
    let progress = Progress::cells(cells.len() as u64, "simulations");
    let (mut results, mut earlier) = (Results::new(study.confidence()), 0);
    let threads = if args.real || study.is_real() { 1 } else { threads(args.jobs) };
    let done = work::in_order(threads, cells.len() as u64, one, |number, (values, found)| {
        progress.one();
        earlier += u64::from(found);
        results.add(&cells[number as usize], values);
        Ok(())
    });
    progress.finish();
    done?;
    if earlier > 0 {
        note(&format!("{earlier} of {} simulations were there already", cells.len()));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Parser, ValueEnum};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Experiment,
    }

    /// A mistake in one would be found only when its turn comes.
    #[test]
    fn all_cells_are_scenarios_and_differ() {
        for paper in Paper::value_variants() {
            let name = paper.to_possible_value().unwrap();
            let study = study(&Line::parse_from(["experiment", name.get_name()]).args).unwrap();
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
