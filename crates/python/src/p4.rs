//! Whether an algorithm fits the pipeline of a switch.

use crate::failure::Failure;
use pyo3::prelude::*;
use queuescope::p4::algorithms::{self, Dimensions};
use queuescope::p4::{Fit, Target};
use serde_json::json;

/// The names of all algorithms and of all switches.
#[pyfunction]
pub fn p4_names() -> (Vec<&'static str>, Vec<&'static str>) {
    (algorithms::NAMES.to_vec(), Target::all().into_iter().map(|target| target.name).collect())
}

/// The fit of an algorithm on a switch, as JSON.
#[pyfunction]
pub fn p4_fit(py: Python<'_>, algorithm: &str, target: &str) -> PyResult<String> {
    let programs = algorithms::all(Dimensions::default());
    let unknown = |what: &str, name: &str, known: Vec<&str>| {
        Failure::Value(format!("{what}= is '{name}': it must be one of {}", known.join(", ")))
    };
    let found = programs.iter().find(|program| program.name() == algorithm);
    let program = found.ok_or_else(|| unknown("algorithm", algorithm, algorithms::NAMES.to_vec()))?;
    let targets = Target::all();
    let found = targets.iter().find(|known| known.name == target);
    let target = found.ok_or_else(|| unknown("target", target, targets.iter().map(|target| target.name).collect()))?;
    let fit = py.detach(|| Fit::new(program, target));
    let aspects: Vec<_> = fit.aspects.iter().map(|(aspect, verdict)| {
        json!({ "aspect": aspect.name(), "grade": verdict.grade.name(), "reasons": verdict.reasons })
    }).collect();
    let stages: Option<Vec<_>> = fit.placement.as_ref().map(|placement| {
        placement
            .stages
            .iter()
            .map(|stage| {
                json!({
                    "registers": stage.used.registers,
                    "tables": stage.used.tables,
                    "sram": stage.used.sram,
                    "tcam": stage.used.tcam,
                    "placed": stage.placed.iter().map(|placed| json!({
                        "name": placed.name,
                        "gress": placed.gress.name(),
                        "continued": placed.continued,
                    })).collect::<Vec<_>>(),
                })
            })
            .collect()
    });
    Ok(json!({
        "algorithm": program.name(),
        "target": target.name,
        "target_stages": target.stages,
        "grade": fit.grade().name(),
        "aspects": aspects,
        "exhausted": fit.room,
        "refused": fit.refused,
        "stages": stages,
    })
    .to_string())
}
