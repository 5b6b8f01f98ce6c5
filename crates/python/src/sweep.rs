//! `sweep`: many variants of a scenario, on all cores.

use crate::arguments::Arguments;
use crate::arrow::{Columns, RawTable};
use crate::failure::{Failure, Outcome};
use crate::report::written;
use crate::simulate::file;
use crate::task::{self, Task};
use anstream::adapter::strip_str;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::report::model::{Sweep, SweepFigures};
use queuescope::report::{html, json, text};
use queuescope::run::sweep::{self, CellSummary, CheckedSweep, Rows, Shard, Store, check, threads};
use std::path::PathBuf;

/// Runs all cells of a sweep, and compares them.
#[pyfunction]
#[pyo3(name = "sweep", signature = (scenario, arguments, progress=None))]
pub fn sweep_(
    py: Python<'_>,
    scenario: &Bound<'_, PyDict>,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawSweep> {
    let arguments = Arguments(arguments);
    let file = file(&Arguments(scenario))?;
    let (meter, jobs) = (arguments.text("meter")?, arguments.count("jobs", 1, 1024)?);
    let results: Option<PathBuf> = arguments.get("results")?.map(|value| value.extract()).transpose()?;
    task::run(py, progress, move |task| {
        let scenario = file.scenario()?;
        if scenario.sweep.is_empty() {
            return Err(Failure::Value(
                "nothing is swept: give values, such as sweep(scenario, over={'link.rate': ['5mbps', '10mbps']}), or seeds="
                    .to_owned(),
            ));
        }
        let threads = threads(jobs.map(|jobs| jobs as u16));
        let checked = check(&file, &scenario, meter.as_deref(), threads, &mut || ())?;
        let store = results.as_deref().map(Store::create).transpose()?;
        if let Some(store) = &store {
            store.keep_plan(&checked.plan)?;
        }
        let mut done = Done { task, checked: &checked, cells: Vec::new(), rows: Rows::new(&checked.plan) };
        sweep::run(&file, &checked, store.as_ref(), Shard::WHOLE, threads, false, |cell, summed, _| {
            done.add(cell, summed)
        })?;
        done.finish()
    })
}

/// Cells that were run.
struct Done<'a> {
    task: &'a Task,
    checked: &'a CheckedSweep,
    cells: Vec<(u64, SweepFigures<f64>)>,
    rows: Rows<'a>,
}

impl Done<'_> {
    fn add(&mut self, cell: u64, summed: CellSummary) -> Outcome<()> {
        let CellSummary { figures, meter, .. } = summed;
        self.cells.push((cell, figures));
        self.rows.add(cell, &figures, meter);
        self.task.progress(self.cells.len() as u64, 0);
        if self.task.stop().is_requested() {
            return Err(Failure::Input("the sweep was stopped".to_owned()));
        }
        Ok(())
    }

    fn finish(self) -> Outcome<RawSweep> {
        let plan = &self.checked.plan;
        let values: Vec<_> = self.cells.iter().map(|(cell, _)| plan.values(plan.row(*cell))).collect();
        let columns = parameters(Columns::default(), &self.rows_parameters(), &values);
        let columns = columns.counts("seed", self.cells.iter().map(|(cell, _)| plan.seed(*cell)));
        let figures: Vec<_> = self.cells.iter().map(|(_, figures)| figures.to_array()).collect();
        let names = SweepFigures::<f64>::NAMES.iter().enumerate();
        let columns = names.fold(columns, |columns, (place, name)| {
            columns.numbers_if_known(name, figures.iter().map(|figures| figures[place]))
        });
        let cells = columns.table().map_err(Failure::value)?;
        Ok(RawSweep { sweep: self.rows.finish(), cells })
    }

    fn rows_parameters(&self) -> Vec<String> {
        self.checked.plan.parameters.iter().map(|parameter| parameter.path.clone()).collect()
    }
}

/// A column for each parameter.
fn parameters(columns: Columns, paths: &[String], values: &[Vec<String>]) -> Columns {
    paths.iter().enumerate().fold(columns, |columns, (place, path)| {
        columns.texts(path, values.iter().map(|values| values.get(place).map_or("", String::as_str)))
    })
}

/// The results of a sweep.
#[pyclass(frozen, module = "queuescope._queuescope")]
#[derive(Debug)]
pub struct RawSweep {
    sweep: Sweep,
    cells: RawTable,
}

#[pymethods]
impl RawSweep {
    /// One row for each simulation.
    #[getter]
    fn cells(&self) -> RawTable {
        self.cells.clone()
    }

    /// One row for each combination of values: means over its seeds, and half the widths of their 95 % confidence intervals.
    #[getter]
    fn rows(&self) -> PyResult<RawTable> {
        let rows = &self.sweep.rows;
        let values: Vec<_> = rows.iter().map(|row| row.values.clone()).collect();
        let paths: Vec<_> = self.sweep.parameters.iter().map(|parameter| parameter.path.clone()).collect();
        let columns = parameters(Columns::default(), &paths, &values);
        let columns = columns.counts("cells", rows.iter().map(|row| row.cells));
        let columns = columns.texts("meter", rows.iter().map(|row| row.meter.as_str()));
        let figures: Vec<_> = rows.iter().map(|row| row.figures.to_array()).collect();
        let names = SweepFigures::<f64>::NAMES.iter().enumerate();
        let columns = names.fold(columns, |columns, (place, name)| {
            let half = format!("{name}_half_width");
            columns
                .numbers_if_known(name, figures.iter().map(|figures| figures[place].map(|mean| mean.mean)))
                .numbers_if_known(&half, figures.iter().map(|figures| figures[place].and_then(|mean| mean.half_width)))
        });
        Ok(columns.table().map_err(Failure::value)?)
    }

    /// The sweep's fields as JSON.
    fn fields(&self) -> PyResult<String> {
        Ok(serde_json::to_string(&self.sweep).map_err(Failure::value)?)
    }

    /// The last line that `queuescope sim --json` prints of a sweep.
    fn json(&self) -> PyResult<String> {
        Ok(written(|out| json::write_sweep(&self.sweep, out))?)
    }

    /// What `queuescope sim` prints of a sweep, without colours.
    fn text(&self) -> PyResult<String> {
        Ok(strip_str(&written(|out| text::write_sweep(&self.sweep, out))?).to_string())
    }

    /// The page that `queuescope sim --html` writes of a sweep.
    fn html(&self) -> PyResult<String> {
        Ok(written(|out| html::write_sweep(&self.sweep, out))?)
    }
}
