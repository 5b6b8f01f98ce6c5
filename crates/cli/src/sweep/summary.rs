//! The summary of a sweep, made from its cells in order, and its outputs.

use crate::args::Output;
use crate::outcome::print;
use crate::paths::{cannot_write, create};
use anyhow::{Context, Result};
use queuescope_recording::AtomicFile;
use queuescope_report::model::SweepFigures;
use queuescope_report::{html, json, text};
use queuescope_run::sweep::{CellSummary, Plan, Rows};
use queuescope_table::{CellRow, CellWriter};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// A summary in progress, and its outputs.
pub struct Summary<'a> {
    plan: &'a Plan,
    json: bool,
    html: Option<AtomicFile>,
    table: Option<(PathBuf, CellWriter<BufWriter<AtomicFile>>)>,
    rows: Rows<'a>,
}

impl<'a> Summary<'a> {
    /// Creates the files, so that an output that cannot be written fails before the work is done.
    ///
    /// # Errors
    /// Fails if a file cannot be created.
    pub fn create(plan: &'a Plan, output: &Output) -> Result<Self> {
        let html = output.html.as_deref().map(create).transpose()?;
        let table = output.parquet.as_ref().map(|path| {
            let paths = plan.parameters.iter().map(|parameter| parameter.path.as_str());
            let out = BufWriter::new(create(path)?);
            let writer =
                CellWriter::new(out, paths, &SweepFigures::<f64>::NAMES).with_context(|| cannot_write(path))?;
            anyhow::Ok((path.clone(), writer))
        });
        Ok(Self { plan, json: output.json, html, table: table.transpose()?, rows: Rows::new(plan) })
    }

    /// Whether cells are to be printed as lines of JSON.
    pub fn wants_lines(&self) -> bool {
        self.json
    }

    /// Adds the next cell, in order.
    ///
    /// # Errors
    /// Fails if an output cannot be written.
    pub fn add(&mut self, cell: u64, summed: CellSummary) -> Result<()> {
        let CellSummary { figures, meter, line } = summed;
        if let Some((path, table)) = &mut self.table {
            let (values, figures) = (self.plan.values(self.plan.row(cell)), figures.to_array());
            let row = CellRow {
                index: cell,
                key: &self.plan.cells[cell as usize],
                seed: self.plan.seed(cell),
                values: &values,
                figures: &figures,
            };
            table.write(&row).with_context(|| cannot_write(path))?;
        }
        if let Some(line) = line {
            io::stdout().lock().write_all(&line).context(NO_OUTPUT)?;
        }
        self.rows.add(cell, &figures, meter);
        Ok(())
    }

    /// Writes the summary.
    ///
    /// # Errors
    /// Fails if an output cannot be written.
    pub fn finish(self) -> Result<()> {
        let sweep = self.rows.finish();
        if let Some((path, table)) = self.table {
            AtomicFile::commit_written(table.finish().with_context(|| cannot_write(&path))?)?;
        }
        if let Some(page) = self.html {
            page.write_whole(|out| html::write_sweep(&sweep, out))?;
        }
        print(self.json, |mut out| json::write_sweep(&sweep, &mut out), |mut out| text::write_sweep(&sweep, &mut out))
    }
}

const NO_OUTPUT: &str = "cannot write to standard output";

/// Whether the error is a closed pipe on standard output, which is not a failure.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.to_string() == NO_OUTPUT
        && error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
