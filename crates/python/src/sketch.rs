//! Sketches over batches of packets.

use crate::arguments::{Arguments, wrong};
use crate::arrow::RawColumn;
use crate::failure::{Failure, Outcome};
use arrow_array::UInt64Array;
use arrow_schema::{DataType, Field};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::sketch::{
    ConQuest, ConQuestParams, CountMin, Estimator, Expiry, Passes, Weights, Windows, WindowsParams,
};
use queuescope::{ByteCount, FlowId, Nanos};
use std::sync::Arc;

/// ConQuest's snapshots.
#[pyclass(module = "queuescope._queuescope")]
pub struct RawConQuest {
    sketch: ConQuest,
}

#[pymethods]
impl RawConQuest {
    #[new]
    fn new(arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let params = params(&Arguments(arguments))?;
        Ok(Self { sketch: ConQuest::new(params).map_err(Failure::value)? })
    }

    /// Adds packets in order of their departures.
    fn record(
        &mut self,
        py: Python<'_>,
        flow: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        dequeued: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let packets = Packets::new([("flow", flow), ("size", size), ("dequeued", dequeued)])?;
        let sketch = &mut self.sketch;
        py.detach(move || packets.rows().for_each(|[flow, size, at]| sketch.record(flow, narrow(size), Nanos(at))));
        Ok(())
    }

    /// Estimates for each packet the weight of its flow that left in an interval.
    fn estimate(
        &mut self,
        py: Python<'_>,
        flow: &Bound<'_, PyAny>,
        enqueued: &Bound<'_, PyAny>,
        dequeued: &Bound<'_, PyAny>,
        estimator: &str,
    ) -> PyResult<RawColumn> {
        let estimator = named(estimator)?;
        let packets = Packets::new([("flow", flow), ("enqueued", enqueued), ("dequeued", dequeued)])?;
        let sketch = &mut self.sketch;
        let estimates = py.detach(move || {
            let one = |[flow, from, to]: [u64; 3]| sketch.estimate(flow, Nanos(from), Nanos(to), estimator);
            packets.rows().map(one).collect()
        });
        Ok(column("estimate", estimates))
    }

    /// Estimates for each packet before it is added.
    fn observe(
        &mut self,
        py: Python<'_>,
        flow: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        enqueued: &Bound<'_, PyAny>,
        dequeued: &Bound<'_, PyAny>,
        estimator: &str,
    ) -> PyResult<RawColumn> {
        let estimator = named(estimator)?;
        let packets = Packets::new([("flow", flow), ("size", size), ("enqueued", enqueued), ("dequeued", dequeued)])?;
        let sketch = &mut self.sketch;
        let estimates = py.detach(move || {
            let one = |[flow, size, from, to]: [u64; 4]| {
                sketch.observe(flow, narrow(size), Nanos(from), Nanos(to), estimator)
            };
            packets.rows().map(one).collect()
        });
        Ok(column("estimate", estimates))
    }

    /// Snapshots, rows, columns, the window in nanoseconds, and the bytes of memory.
    #[getter]
    fn dimensions(&self) -> (usize, usize, usize, u64, u64) {
        let params = self.sketch.params();
        (params.snapshots, params.rows, params.columns, params.window.0, params.memory().0)
    }

    /// The error bound `(epsilon, delta)` of section 3.5 of the paper.
    #[getter]
    fn error_bound(&self) -> (f64, f64) {
        self.sketch.params().error_bound()
    }
}

fn params(arguments: &Arguments<'_, '_>) -> Outcome<ConQuestParams> {
    let size = |name| Ok::<_, Failure>(arguments.count(name, 1, u64::from(u32::MAX))?.map(|count| count as usize));
    let snapshots = size("snapshots")?.unwrap_or(8);
    let rows = size("rows")?;
    let expiry = match arguments.text("expiry")?.as_deref() {
        None | Some("tag") => Expiry::Tag,
        Some("clean") => Expiry::Clean { passes: Passes::Generated },
        Some("clean-plain") => Expiry::Clean { passes: Passes::None },
        Some(other) => {
            return Err(Failure::Value(format!("expiry= is '{other}': it must be tag, clean or clean-plain")));
        }
    };
    let seed = arguments.count("seed", 0, u64::MAX)?.unwrap_or(0);
    match (arguments.time("longest")?, arguments.time("window")?, size("columns")?) {
        (Some(longest), None, None) => {
            let memory = arguments.bytes("memory")?.unwrap_or(ByteCount(64 << 10));
            let params = ConQuestParams::fit(longest, memory, snapshots, rows, expiry).map_err(Failure::value)?;
            Ok(ConQuestParams { seed, ..params })
        }
        (None, Some(window), Some(columns)) => {
            let (rows, weights) = (rows.unwrap_or(2), Weights::default());
            Ok(ConQuestParams { snapshots, rows, columns, window, expiry, weights, seed })
        }
        _ => Err(Failure::Value(
            "give longest= (and memory=), for dimensions that fit a delay, or window= and columns=".to_owned(),
        )),
    }
}

fn named(name: &str) -> Outcome<Estimator> {
    name.parse().map_err(|why| Failure::Value(format!("estimator=: {why}")))
}

/// A Count-Min Sketch.
#[pyclass(module = "queuescope._queuescope")]
pub struct RawCountMin {
    sketch: CountMin,
}

#[pymethods]
impl RawCountMin {
    #[new]
    fn new(rows: usize, columns: usize, seed: u64) -> PyResult<Self> {
        if !(1..=8).contains(&rows) || !(1..=1 << 26).contains(&columns) {
            let message = format!("{rows} rows of {columns} columns: a sketch has 1 to 8 rows of 1 to 2^26 columns");
            return Err(Failure::Value(message).into());
        }
        Ok(Self { sketch: CountMin::new(rows, columns, seed) })
    }

    /// Adds weights to keys.
    fn add(&mut self, py: Python<'_>, key: &Bound<'_, PyAny>, weight: &Bound<'_, PyAny>) -> PyResult<()> {
        let pairs = Packets::new([("key", key), ("weight", weight)])?;
        let sketch = &mut self.sketch;
        py.detach(move || pairs.rows().for_each(|[key, weight]| sketch.add(key, narrow(weight))));
        Ok(())
    }

    /// Estimates the weight of each key.
    fn estimate(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<RawColumn> {
        let keys = Packets::new([("key", key)])?;
        let sketch = &self.sketch;
        let estimates = py.detach(|| keys.rows().map(|[key]| u64::from(sketch.estimate(key))).collect());
        Ok(column("estimate", estimates))
    }
}

/// Time windows that become coarser with age.
#[pyclass(module = "queuescope._queuescope")]
pub struct RawWindows {
    windows: Windows,
}

#[pymethods]
impl RawWindows {
    #[new]
    fn new(arguments: &Bound<'_, PyDict>) -> PyResult<Self> {
        let arguments = Arguments(arguments);
        let mut params = WindowsParams::default();
        params.cell = arguments.time("cell")?.unwrap_or(params.cell);
        let size =
            |name, usual| Ok::<_, Failure>(arguments.count(name, 1, 1 << 24)?.map_or(usual, |count| count as usize));
        params.flows = size("flows", params.flows)?;
        params.windows = size("windows", params.windows)?;
        params.levels = size("levels", params.levels)?;
        params.seed = arguments.count("seed", 0, u64::MAX)?.unwrap_or(params.seed);
        Ok(Self { windows: Windows::new(params).map_err(Failure::value)? })
    }

    /// Adds packets in order of time.
    fn record(
        &mut self,
        py: Python<'_>,
        flow: &Bound<'_, PyAny>,
        size: &Bound<'_, PyAny>,
        at: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let packets = Packets::new([("flow", flow), ("size", size), ("at", at)])?;
        if let Some(flow) = packets.columns[0].iter().find(|flow| u32::try_from(**flow).is_err()) {
            return Err(Failure::Value(format!("flow= has {flow}: flows are numbered below 2^32")).into());
        }
        let windows = &mut self.windows;
        py.detach(move || {
            packets.rows().for_each(|[flow, size, at]| windows.record(FlowId(narrow(flow)), narrow(size), Nanos(at)));
        });
        Ok(())
    }

    /// The flows that passed in an interval with their estimated bytes, largest first; and all bytes.
    fn passed(&self, start: u64, end: u64) -> (RawColumn, RawColumn, u64) {
        let passed = self.windows.passed(Nanos(start), Nanos(end));
        let shares: Vec<_> = passed.at_least(0.0).map(|share| (u64::from(share.flow.0), share.bytes)).collect();
        let (flows, bytes): (Vec<_>, Vec<_>) = shares.into_iter().unzip();
        (column("flow", flows), column("bytes", bytes), passed.bytes)
    }

    /// How far back the history reaches, in nanoseconds, and its bytes of memory.
    #[getter]
    fn reach(&self) -> (u64, u64) {
        (self.windows.since().0, self.windows.memory().0)
    }
}

/// Columns of numbers of equal length.
struct Packets<const N: usize> {
    columns: [Vec<u64>; N],
}

impl<const N: usize> Packets<N> {
    fn new(columns: [(&str, &Bound<'_, PyAny>); N]) -> Outcome<Self> {
        let names = columns.map(|(name, _)| name);
        let mut read = Vec::with_capacity(N);
        for (name, values) in columns {
            read.push(numbers(name, values)?);
        }
        if let Some(place) = (1..N).find(|place| read[*place].len() != read[0].len()) {
            let (first, other) = (read[0].len(), read[place].len());
            return Err(Failure::Value(format!("{}= has {first} values, and {}= has {other}", names[0], names[place])));
        }
        let mut read = read.into_iter();
        Ok(Self { columns: std::array::from_fn(|_| read.next().unwrap_or_default()) })
    }

    fn rows(&self) -> impl Iterator<Item = [u64; N]> + '_ {
        let count = self.columns.first().map_or(0, Vec::len);
        (0..count).map(|row| self.columns.each_ref().map(|column| column[row]))
    }
}

/// Whole numbers of a buffer (numpy, array.array, memoryview) of any integer type, or of a sequence.
fn numbers(name: &str, values: &Bound<'_, PyAny>) -> Outcome<Vec<u64>> {
    let py = values.py();
    macro_rules! of_type {
        ($($kind:ty),*) => {$(
            if let Ok(buffer) = PyBuffer::<$kind>::get(values) {
                let read = buffer.to_vec(py)?;
                return read.into_iter().map(|value| u64::try_from(value).map_err(|_| negative(name))).collect();
            }
        )*};
    }
    of_type!(u64, u32, i64, i32, u16, i16, u8, i8);
    values
        .extract::<Vec<u64>>()
        .map_err(|_| wrong(name, "an array or a sequence of whole numbers, none below zero", values))
}

fn negative(name: &str) -> Failure {
    Failure::Value(format!("{name}= has a number below zero"))
}

/// A weight. Larger ones than 2^32 - 1 count as that.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn column(name: &str, values: Vec<u64>) -> RawColumn {
    RawColumn::new(Arc::new(Field::new(name, DataType::UInt64, false)), Arc::new(UInt64Array::from(values)))
}
