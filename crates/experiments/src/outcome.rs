//! What an experiment amounts to: files for people and for programs.

use super::panels::{self, Panels};
use super::plot::{self, Plot};
use super::results::{Lacking, Point, Results, value_at};
use crate::error::{Error, Result};
use queuescope_run as run;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// What an experiment amounts to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its figures.
    pub plots: Vec<Plot>,
    /// What the paper says, and what comes out.
    pub findings: Vec<Finding>,
    /// What it does not say.
    pub tables: Vec<Table>,
    /// Figures of many small plots.
    pub panels: Vec<Panels>,
    /// Data of figures that are not a row for each run.
    pub sheets: Vec<Sheet>,
}

impl Outcome {
    /// Leaves out what is of other figures than those that were run.
    pub fn only(&mut self, figures: &[&'static str]) {
        self.findings.retain(|finding| figures.contains(&finding.figure));
        self.plots.retain(|plot| plot.lines.iter().any(|line| !line.points.is_empty()));
        self.tables.retain(|table| !table.rows.is_empty());
    }
}

/// Data of a figure.
#[derive(Debug)]
pub struct Sheet {
    /// Of its file, and of its cells.
    pub name: &'static str,
    /// With units.
    pub columns: Vec<String>,
    /// As many as there are columns in each.
    pub rows: Vec<Vec<String>>,
}

/// Figures of our own.
#[derive(Debug, Clone)]
pub struct Table {
    /// What it shows, in a sentence.
    pub title: String,
    /// With units.
    pub columns: Vec<String>,
    /// As many as there are columns in each.
    pub rows: Vec<Vec<String>>,
}

/// A statement of the paper, and ours.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The figure or table.
    pub figure: &'static str,
    /// What is compared, with its unit.
    pub what: String,
    /// What the paper has.
    pub paper: String,
    /// What comes out here.
    pub ours: String,
    /// By how much that is more, where both are numbers.
    pub difference: Option<f64>,
    /// A sentence: what is the same, or why it is not.
    pub why: String,
}

impl Finding {
    /// One of words.
    pub fn of_words(figure: &'static str, what: String, paper: &str, ours: String, why: String) -> Self {
        Self { figure, what, paper: paper.to_owned(), ours, difference: None, why }
    }

    /// One that compares a number of the paper with a mean, which says of how many runs it is if that is not all.
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

    /// One that compares numbers.
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

    /// In percent, with its sign; empty if not both are numbers.
    pub fn difference(&self) -> String {
        self.difference.map_or_else(String::new, |share| format!("{:+.1} %", 100.0 * share))
    }
}

/// Values that not all runs have: one table for all studies, since a mean of a few stands for all of them wherever it is part of
/// another figure, of a difference or of a plot.
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

/// Writes all files: what was run and the tables as Markdown, the plots, and of each figure all runs.
///
/// # Errors
/// If one cannot be written.
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

/// The runs of a figure: a row for each.
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
