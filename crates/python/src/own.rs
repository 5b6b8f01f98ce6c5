//! Disciplines and congestion controls that are written in Python.
//!
//! Each call from the engine takes the GIL, so that such a simulation is some hundred times slower. An exception ends the run: it unwinds
//! the engine's thread, and `task::run` returns it.

mod control;
mod discipline;

pub use control::{RawAck, RawCongestion};

use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::sim::Own;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Mutex;

/// The `disciplines` and `controls` of arguments: dictionaries of callables that return an object for each queue or connection.
pub fn named(arguments: &Arguments<'_, '_>) -> Outcome<Own> {
    let mut own = Own::default();
    for (name, class) in dictionary(arguments, "disciplines")? {
        own.disciplines.insert(name, discipline::factory(class)?);
    }
    for (name, class) in dictionary(arguments, "controls")? {
        own.controls.insert(name, control::factory(class)?);
    }
    Ok(own)
}

fn dictionary<'py>(arguments: &Arguments<'_, 'py>, name: &str) -> Outcome<Vec<(String, Bound<'py, PyAny>)>> {
    let Some(value) = arguments.get(name)? else { return Ok(Vec::new()) };
    let entries = value.cast::<PyDict>().map_err(PyErr::from)?;
    entries.iter().map(|(key, class)| Ok((key.extract()?, class))).collect()
}

/// A name that lives as long as the process, as reports need it. Equal names are kept once.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    // A poisoned lock still has all names.
    let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name);
    name
}

/// The name of a class or function.
fn name_of(class: &Bound<'_, PyAny>) -> Outcome<&'static str> {
    let name = class.getattr("__name__").or_else(|_| class.get_type().getattr("__name__"))?;
    Ok(kept(&name.extract::<String>()?))
}

/// Calls Python from the engine. An exception ends the run.
fn call<T>(what: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    Python::attach(what).unwrap_or_else(|error| resume_unwind(Box::new(Failure::Python(error))))
}
