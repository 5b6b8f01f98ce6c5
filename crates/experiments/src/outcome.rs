//! The outcome of an experiment, as files for people and for programs.

use super::panels::{self, Panels};
use super::plot::{self, Plot};
use super::results::{Lacking, Point, Results, value_at};
use crate::error::{Error, Result};
use queuescope_run as run;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The outcome of an experiment.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its figures.
    pub plots: Vec<Plot>,
    /// The paper's statements, and ours.
    pub findings: Vec<Finding>,
    /// Results that the paper does not have.
    pub tables: Vec<Table>,
    /// Figures of many small plots.
    pub panels: Vec<Panels>,
    /// Data of figures with rows other than one per run.
    pub sheets: Vec<Sheet>,
}

impl Outcome {
    /// Removes everything that belongs to figures that were not run.
    pub fn only(&mut self, figures: &[&'static str]) {
        self.findings.retain(|finding| figures.contains(&finding.figure));
        self.plots.retain(|plot| plot.lines.iter().any(|line| !line.points.is_empty()));
        self.tables.retain(|table| !table.rows.is_empty());
    }
}

/// Data of a figure.
#[derive(Debug)]
pub struct Sheet {
    /// The name of its file, and of its cells.
    pub name: &'static str,
    /// Names with units.
    pub columns: Vec<String>,
    /// Each row has one value per column.
    pub rows: Vec<Vec<String>>,
}

/// A table of our own results.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows, in a sentence.
    pub title: String,
    /// Names with units.
    pub columns: Vec<String>,
    /// Each row has one value per column.
    pub rows: Vec<Vec<String>>,
}

/// A statement of the paper, and ours.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The figure or table.
    pub figure: &'static str,
    /// What is compared, with its unit.
    pub what: String,
    /// The paper's result.
    pub paper: String,
    /// Our result.
    pub ours: String,
    /// The relative difference of ours from the paper's, if both are numbers.
    pub difference: Option<f64>,
    /// A sentence: what agrees, or why it does not.
    pub why: String,
}

impl Finding {
    /// A finding in words.
    pub fn of_words(figure: &'static str, what: String, paper: &str, ours: String, why: String) -> Self {
        Self { figure, what, paper: paper.to_owned(), ours, difference: None, why }
    }

    /// Compares a number of the paper with a mean. If not all runs have the value, the finding states of how many runs
    /// it is the mean.
    pub fn of_mean(
        figure: &'static str,
        what: &str,
        paper: f64,
        point: Option<&Point>,
        value: &str,
        why: String,
    ) -> Self {
        let mut finding = Self::of_numbers(figure, what, paper, value_at(point, value), why);
        finding.ours.push_str(&point.map_or_else(String::new, |point| point.of_runs(value)));
        finding
    }

    /// Compares two numbers.
    pub fn of_numbers(figure: &'static str, what: &str, paper: f64, ours: f64, why: String) -> Self {
        let shown = |value: f64| format!("{value:.1}");
        Self {
            figure,
            what: what.to_owned(),
            paper: shown(paper),
            ours: shown(ours),
            difference: Some(ours / paper - 1.0),
            why,
        }
    }

    /// The difference in percent, with its sign; empty unless both are numbers.
    pub fn difference(&self) -> String {
        self.difference.map_or_else(String::new, |share| format!("{:+.1} %", 100.0 * share))
    }
}

/// Values that not all runs have. All studies share this table, because such a mean of a few runs stands for all of
/// them wherever another figure, difference or plot uses it.
pub fn lacking(results: &Results) -> Option<Table> {
    let row = |it: Lacking| {
        let (have, runs) = it.least;
        vec![it.figure.to_owned(), it.value, it.points.to_string(), format!("{have} of {runs}")]
    };
    let rows: Vec<_> = results.lacking().into_iter().map(row).collect();
    (!rows.is_empty()).then(|| Table {
        title: "Values that not all runs of a point have; means are of those that do".to_owned(),
        columns: ["figure", "value", "at points", "fewest runs"].map(str::to_owned).to_vec(),
        rows,
    })
}

/// Writes all files: the description and the tables as Markdown, the plots, and all runs of each figure.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write(folder: &Path, what: &str, outcome: &Outcome, results: &Results) -> Result<()> {
    for plot in &outcome.plots {
        write_file(&folder.join(format!("{}.svg", plot.name)), &plot::svg(plot)?)?;
    }
    for panels in &outcome.panels {
        write_file(&folder.join(format!("{}.svg", panels.name)), &panels::svg(panels)?)?;
    }
    for figure in results.figures() {
        let sheet = outcome.sheets.iter().find(|sheet| sheet.name == figure);
        let text = sheet.map_or_else(|| csv(results, figure), Sheet::csv)?;
        write_file(&folder.join(format!("{figure}.csv")), &text)?;
    }
    write_file(&folder.join("findings.md"), &markdown(what, outcome))
}

fn write_file(path: &Path, text: &str) -> Result<()> {
    let cannot = |why| run::Error::Write { name: path.display().to_string(), why };
    Ok(fs::write(path, text).map_err(cannot)?)
}

/// The runs of a figure as CSV, with a row for each.
fn csv(results: &Results, figure: &str) -> Result<String> {
    let points: Vec<_> = results.of(figure).collect();
    let Some(first) = points.first() else { return Ok(String::new()) };
    let parameters: Vec<_> = first.parameters.iter().map(|(name, _)| *name).collect();
    let names: BTreeSet<_> =
        points.iter().flat_map(|point| &point.runs).flat_map(|(_, values)| values.keys()).collect();
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(parameters.iter().copied().chain(["seed"]).chain(names.iter().map(|name| name.as_str())))?;
    for point in points {
        for (seed, values) in &point.runs {
            let own = point.parameters.iter().map(|(_, value)| value.clone());
            let measured = names.iter().map(|name| values.get(*name).map_or_else(String::new, f64::to_string));
            table.write_record(own.chain([seed.to_string()]).chain(measured))?;
        }
    }
    text_of(table)
}

fn text_of(table: csv::Writer<Vec<u8>>) -> Result<String> {
    let bytes = table.into_inner().map_err(|why| Error::Table(why.into()))?;
    String::from_utf8(bytes).map_err(|why| Error::Table(why.into()))
}

fn markdown(what: &str, outcome: &Outcome) -> String {
    let mut text =
        format!("{what}\n\n| figure | what | paper | ours | difference | |\n| --- | --- | --: | --: | --: | --- |\n");
    for finding in &outcome.findings {
        let Finding { figure, what, paper, ours, why, .. } = finding;
        // Writing to a string does not fail.
        _ = writeln!(text, "| {figure} | {what} | {paper} | {ours} | {} | {why} |", finding.difference());
    }
    for Table { title, columns, rows } in &outcome.tables {
        let rule = vec!["---"; columns.len()].join(" | ");
        _ = writeln!(text, "\n{title}\n\n| {} |\n| {rule} |", columns.join(" | "));
        rows.iter().for_each(|row| _ = writeln!(text, "| {} |", row.join(" | ")));
    }
    text
}

impl Sheet {
    fn csv(&self) -> Result<String> {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(&self.columns)?;
        self.rows.iter().try_for_each(|row| table.write_record(row))?;
        text_of(table)
    }
}
