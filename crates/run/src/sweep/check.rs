//! Checks that each cell of a sweep can be run, before the first one runs, and computes its key.

use super::key::{self, FORMAT, Sum};
use super::plan::{Plan, shown};
use super::{cell, work};
use crate::error::Error;
use crate::files::open_regular;
use crate::scenario_file::ScenarioFile;
use queuescope_report::model::{Skipped, SweepParameter};
use queuescope_scenario::{Cell, Scenario};
use queuescope_sim::{Files, NamedFiles, files_of};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// A sweep that has been checked, and can be run.
#[derive(Debug)]
pub struct CheckedSweep {
    /// The plan of the sweep.
    pub plan: Plan,
    /// The variants of the scenario, in order.
    pub cells: Vec<Cell>,
    /// All files that the variants name.
    pub files: Files,
}

/// The most combinations that an error names besides the first, whose error is shown in full.
const MOST_NAMED: usize = 9;

/// Makes the plan of a sweep. Its figures are about the link `meter`, or about that of the scenario. Calls `progress` once for each
/// cell.
///
/// # Errors
/// Fails if a cell cannot be run, or a file cannot be read.
pub fn check(
    file: &ScenarioFile,
    scenario: &Scenario,
    meter: Option<&str>,
    threads: usize,
    progress: &mut dyn FnMut(),
) -> Result<CheckedSweep, Error> {
    let cells: Vec<_> = scenario.sweep.cells(scenario.seed).collect();
    let mut plan = plan(meter, file, scenario);
    let variants = cells.len() as u64;
    let (mut failures, mut checked) = (CellFailures::default(), Vec::with_capacity(cells.len()));
    let none = Files::default();
    let read = |number: u64| Ok::<_, Error>(check_variant(meter, file, &cells[number as usize], &none));
    work::in_order(threads, variants, read, |number, variant| {
        progress();
        match variant {
            Ok(variant) => checked.push(variant),
            Err(why) => failures.add(&plan, number, why),
        }
        Ok(())
    })?;
    failures.end(variants)?;
    let files = FileDigests::read(file, &checked)?;
    let with_files: Vec<_> =
        (0..).zip(&checked).filter(|(_, variant)| variant.has_files()).map(|(number, _)| number).collect();
    let build = |index: u64| {
        let number: u64 = with_files[index as usize];
        let built =
            file.variant(&cells[number as usize].overrides).and_then(|it| cell::check(meter, &it, &files.files));
        Ok::<_, Error>((number, built))
    };
    work::in_order(threads, with_files.len() as u64, build, |_, (number, built)| {
        if let Err(why) = built {
            failures.add(&plan, number, why);
        }
        Ok(())
    })?;
    failures.end(variants)?;
    plan.cells =
        checked.iter().map(|variant| key::key(&plan.version, &variant.scenario, files.digests(variant))).collect();
    plan.skipped = files.skipped;
    Ok(CheckedSweep { plan, cells, files: files.files })
}

/// The plan without its cells and the notes on files.
fn plan(meter: Option<&str>, file: &ScenarioFile, scenario: &Scenario) -> Plan {
    let sweep = &scenario.sweep;
    let parameter = |(path, values): &(String, Vec<String>)| SweepParameter {
        path: path.clone(),
        values: values.iter().map(|value| shown(value)).collect(),
    };
    let stem = Path::new(&file.name).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    Plan {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: if scenario.name.is_empty() { stem } else { scenario.name.clone() },
        about: Some(scenario.about.clone()).filter(|about| !about.is_empty()),
        scenario: scenario.explain(),
        seed: scenario.seed,
        seeds: sweep.seeds,
        meter: meter.map(str::to_owned),
        parameters: sweep.values.iter().map(parameter).collect(),
        skipped: Vec::new(),
        cells: Vec::new(),
    }
}

/// A variant of the scenario, before the files that it names are read.
struct Variant {
    /// The digest of the whole scenario.
    scenario: Sum,
    files: NamedFiles,
}

impl Variant {
    fn has_files(&self) -> bool {
        self.files.paths().next().is_some()
    }
}

/// Reads a variant, and builds it if it names no files.
fn check_variant(meter: Option<&str>, file: &ScenarioFile, cell: &Cell, none: &Files) -> Result<Variant, Error> {
    let scenario = file.variant(&cell.overrides)?;
    let variant = Variant { scenario: key::sum(scenario.canonical().as_bytes()), files: files_of(&scenario) };
    if !variant.has_files() {
        cell::check(meter, &scenario, none)?;
    }
    Ok(variant)
}

/// The files that variants name, each read once, with digests of their bytes.
struct FileDigests {
    files: Files,
    skipped: Vec<Skipped>,
    sums: BTreeMap<String, Sum>,
}

impl FileDigests {
    fn read(file: &ScenarioFile, variants: &[Variant]) -> Result<Self, Error> {
        let mut named = NamedFiles::default();
        for variant in variants {
            named.traces.extend(variant.files.traces.iter().cloned());
            named.captures.extend(variant.files.captures.iter().cloned());
        }
        let mut sums = BTreeMap::new();
        for path in named.paths() {
            let sum = open_regular(&file.beside(path)).and_then(key::sum_of);
            sums.insert(path.clone(), sum.map_err(Error::read(path.as_ref()))?);
        }
        let (files, skipped) = file.files(named)?;
        Ok(Self { files, skipped, sums })
    }

    /// The paths and digests of the files that a variant names.
    fn digests<'a>(&'a self, variant: &'a Variant) -> impl Iterator<Item = (&'a str, &'a Sum)> {
        variant.files.paths().filter_map(|path| Some((path.as_str(), self.sums.get(path)?)))
    }
}

/// Cells that cannot be run.
#[derive(Default)]
struct CellFailures {
    count: u64,
    first: Option<(String, Error)>,
    /// The combination of the last one, and how many combinations there are.
    last: Option<u64>,
    combinations: u64,
    more: Vec<String>,
}

impl CellFailures {
    fn add(&mut self, plan: &Plan, cell: u64, why: Error) {
        self.count += 1;
        // Another seed of the same combination seldom fails in another way.
        if self.last.replace(plan.row(cell)) == Some(plan.row(cell)) {
            return;
        }
        self.combinations += 1;
        if self.first.is_none() {
            self.first = Some((plan.name(cell), why));
        } else if self.more.len() < MOST_NAMED {
            self.more.push(plan.combination(cell));
        }
    }

    /// Returns the error if there were failures.
    fn end(&mut self, cells: u64) -> Result<(), Error> {
        let Some((name, first)) = self.first.take() else { return Ok(()) };
        let rest = self.combinations - 1 - self.more.len() as u64;
        let more = std::mem::take(&mut self.more);
        Err(Error::Cells(Box::new(CellsError { count: self.count, cells, name, first, more, rest })))
    }
}

/// The error of a sweep some of whose cells cannot be run. None was run.
#[derive(Debug)]
pub struct CellsError {
    /// How many cells cannot be run.
    pub count: u64,
    /// How many cells the sweep has.
    pub cells: u64,
    /// The name of the first that cannot be run.
    pub name: String,
    /// The error of that cell.
    pub first: Error,
    /// Other combinations of values that cannot be run.
    pub more: Vec<String>,
    /// How many more combinations there are.
    pub rest: u64,
}

impl CellsError {
    /// The whole message. `shown` is the first error as text.
    pub fn message(&self, shown: &str) -> String {
        let Self { count, cells, name, more, rest, .. } = self;
        let shown = format!("{name}:\n{shown}");
        let mut others = more.clone();
        others.extend((*rest > 0).then(|| format!("and {rest} more")));
        let others = if others.is_empty() { String::new() } else { format!("\nand\n{}", others.join("\n")) };
        format!("{count} of the sweep's {cells} cells cannot be run, so nothing is:\n{}{others}", shown.trim_end())
    }
}

impl fmt::Display for CellsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = std::iter::successors(Some(&self.first as &dyn std::error::Error), |error| error.source());
        let causes: Vec<_> = causes.map(ToString::to_string).collect();
        f.pad(&self.message(&causes.join(": ")))
    }
}

impl std::error::Error for CellsError {}
