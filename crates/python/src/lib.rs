//! The extension module `queuescope._queuescope` of the Python package `queuescope`.
//!
//! It is private: `python/queuescope` has the public functions, with their documentation and types, and calls this module with values that
//! may still be wrong. So this module parses them, runs the engine, and turns its errors into those of the package.
//!
//! - [`task`]: runs the engine in a thread of its own while Python handles signals and shows progress.
//! - [`failure`]: errors of the engine as exceptions.
//! - [`arguments`]: values from Python, with their units.
//! - [`own`]: disciplines and congestion controls that are written in Python.
//! - [`arrow`]: arrays in and out, by the Arrow PyCapsule interface.

mod analyze;
mod arguments;
mod arrow;
mod failure;
mod log;
mod own;
mod p4;
mod packet;
mod queue;
mod report;
mod simulate;
mod sketch;
mod sweep;
mod tap;
mod task;
mod why;

use pyo3::prelude::*;

/// The engine of the package `queuescope`. Use that package: this module may change at any time.
#[pymodule]
mod _queuescope {
    #[pymodule_export]
    use crate::analyze::{analyze, analyze_departures};
    #[pymodule_export]
    use crate::arrow::{RawColumn, RawTable, import_table};
    #[pymodule_export]
    use crate::log::{RawAlerts, RawAnswer, RawWriter, attributes, check_folder, query, record};
    #[pymodule_export]
    use crate::own::{RawAck, RawCongestion};
    #[pymodule_export]
    use crate::p4::{p4_fit, p4_names};
    #[pymodule_export]
    use crate::packet::{RawDeparture, RawPacket};
    #[pymodule_export]
    use crate::queue::{RawQueue, discipline_names};
    #[pymodule_export]
    use crate::report::RawReport;
    #[pymodule_export]
    use crate::simulate::{explain, simulate};
    #[pymodule_export]
    use crate::sketch::{RawConQuest, RawCountMin, RawWindows};
    #[pymodule_export]
    use crate::sweep::{RawSweep, sweep_};
    #[pymodule_export]
    use crate::tap::tap;
    #[pymodule_export]
    use crate::task::panic_for_tests;
    #[pymodule_export]
    use crate::why::{RawWhy, why};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        task::remember_panics();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
