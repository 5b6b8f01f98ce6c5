//! Values from Python, with their units: strings in the command's notation, or numbers whose unit the documentation states.

use crate::failure::{Failure, Outcome};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt, PyString};
use queuescope::analysis::AnalysisOptions;
use queuescope::ingest::Queue;
use queuescope::queue::Limit;
use queuescope::scenario::Overhead;
use queuescope::sim::{Aqm, Speedup};
use queuescope::sketch::{Estimator, Expiry, Passes};
use queuescope::table::{Columns, TableOptions, TimeUnit};
use queuescope::{ByteCount, Granularity, Nanos, Rate};
use std::error::Error;
use std::str::FromStr;

/// Keyword arguments by name. Those that are `None` are treated as absent.
#[derive(Debug)]
pub struct Arguments<'a, 'py>(pub &'a Bound<'py, PyDict>);

impl<'py> Arguments<'_, 'py> {
    /// The value of an argument, if it is given.
    pub fn get(&self, name: &str) -> Outcome<Option<Bound<'py, PyAny>>> {
        Ok(self.0.get_item(name)?.filter(|value| !value.is_none()))
    }

    /// Text.
    pub fn text(&self, name: &str) -> Outcome<Option<String>> {
        self.get(name)?.map(|value| text(name, &value)).transpose()
    }

    /// A choice.
    pub fn flag(&self, name: &str) -> Outcome<Option<bool>> {
        self.get(name)?.map(|value| value.extract().map_err(|_| wrong(name, "True or False", &value))).transpose()
    }

    /// A whole number within bounds.
    pub fn count(&self, name: &str, least: u64, most: u64) -> Outcome<Option<u64>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        match value.extract::<u64>() {
            Ok(number) if (least..=most).contains(&number) && !value.is_instance_of::<PyBool>() => Ok(Some(number)),
            _ => Err(wrong(name, &format!("a whole number from {least} to {most}"), &value)),
        }
    }

    /// A rate: text, or bits per second.
    pub fn rate(&self, name: &str) -> Outcome<Option<Rate>> {
        self.parsed(name, "a rate such as '20mbps', or a number of bits per second above 0", |number| {
            whole(number).and_then(Rate::from_bits_per_second)
        })
    }

    /// A time: text, a number of seconds, or a `datetime.timedelta`.
    pub fn time(&self, name: &str) -> Outcome<Option<Nanos>> {
        if let Some(value) = self.get(name)?
            && let Ok(delta) = value.cast::<PyDelta>()
        {
            let days = i64::from(delta.get_days()) * 86_400 + i64::from(delta.get_seconds());
            let nanos = i128::from(days) * 1_000_000_000 + i128::from(delta.get_microseconds()) * 1_000;
            let time = u64::try_from(nanos).map_err(|_| wrong(name, "a time that is not negative", &value))?;
            return Ok(Some(Nanos(time)));
        }
        self.parsed(name, "a time such as '50ms', or a number of seconds", seconds)
    }

    /// A size: text, or bytes.
    pub fn bytes(&self, name: &str) -> Outcome<Option<ByteCount>> {
        self.parsed(name, "a size such as '64KiB', or a number of bytes", |number| whole(number).map(ByteCount))
    }

    /// A limit of a queue: text, or bytes.
    pub fn limit(&self, name: &str) -> Outcome<Option<Limit>> {
        self.parsed(name, "a limit such as '1s', '100 packets', '64kB' or 'none', or a number of bytes", |number| {
            whole(number).map(|bytes| Limit::Bytes(ByteCount(bytes)))
        })
    }

    /// A share: text such as `1%`, or a number from 0 to 1.
    pub fn share(&self, name: &str) -> Outcome<Option<f64>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let share = match value.extract::<String>() {
            Ok(text) => match text.strip_suffix('%') {
                Some(percent) => percent.trim_end().parse().ok().map(|percent: f64| percent / 100.0),
                None => text.trim().parse().ok(),
            },
            Err(_) => value.extract().ok(),
        };
        let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
        share.map(Some).ok_or_else(|| wrong(name, "a share above 0 and up to 1, such as 0.01 or '1%'", &value))
    }

    /// A factor of at least 2: text such as `4x`, or a number.
    pub fn factor(&self, name: &str) -> Outcome<Option<f64>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let factor = match value.extract::<String>() {
            Ok(text) => text.trim().trim_end_matches(['x', 'X']).parse().ok(),
            Err(_) => value.extract().ok(),
        };
        let factor = factor.filter(|factor: &f64| *factor >= 2.0 && factor.is_finite());
        factor.map(Some).ok_or_else(|| wrong(name, "a factor of at least 2, such as 4 or '4x'", &value))
    }

    /// A list: text with commas, or a sequence of texts.
    pub fn list<T: FromStr<Err: Error>>(&self, name: &str) -> Outcome<Option<Vec<T>>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let parts: Vec<String> = match value.extract::<String>() {
            Ok(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
            Err(_) => value.extract().map_err(|_| wrong(name, "text, or a list of texts", &value))?,
        };
        let parts = parts.iter().map(|part| part.parse().map_err(|why: T::Err| named(name, &why)));
        let parts: Vec<T> = parts.collect::<Outcome<_>>()?;
        if parts.is_empty() { Err(wrong(name, "at least one name", &value)) } else { Ok(Some(parts)) }
    }

    /// Text that has a type of its own, or a number that `of_number` understands.
    fn parsed<T: FromStr<Err: Error>>(
        &self,
        name: &str,
        expected: &str,
        of_number: impl Fn(f64) -> Option<T>,
    ) -> Outcome<Option<T>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        if let Ok(text) = value.extract::<String>() {
            return text.parse().map(Some).map_err(|why: T::Err| named(name, &why));
        }
        let number =
            Some(&value).filter(|value| !value.is_instance_of::<PyBool>()).and_then(|value| value.extract().ok());
        number.and_then(of_number).map(Some).ok_or_else(|| wrong(name, expected, &value))
    }

    /// The options of an analysis.
    pub fn analysis(&self) -> Outcome<AnalysisOptions> {
        let mut options = AnalysisOptions::default();
        options.by = self.list::<Granularity>("by")?.unwrap_or(options.by);
        options.tau = self.time("tau")?;
        options.alpha = self.share("alpha")?.unwrap_or(options.alpha);
        options.ramped = self.factor("ramped")?;
        options.most_bursts =
            self.count("most_bursts", 1, 1_000_000)?.map_or(options.most_bursts, |most| most as usize);
        options.across_classes = self.time("across_classes")?;
        options.victims = self.text("victims")?;
        options.show = self.text("show")?;
        let size = |name| Ok::<_, Failure>(self.count(name, 1, u64::from(u32::MAX))?.map(|count| count as usize));
        options.sketch.snapshots = size("snapshots")?;
        options.sketch.rows = size("sketch_rows")?;
        options.sketch.columns = size("sketch_columns")?;
        options.sketch.window = self.time("window")?;
        let memory = self.bytes("memory")?;
        if memory.is_some() && options.sketch.columns.is_some() {
            return Err(Failure::Value(
                "sketch_columns= and memory= both decide the size of the sketch: leave one out".to_owned(),
            ));
        }
        options.sketch.memory = memory.unwrap_or(options.sketch.memory);
        options.sketch.expiry = match self.text("expiry")?.as_deref() {
            None | Some("tag") => Expiry::Tag,
            Some("clean") => Expiry::Clean { passes: Passes::Generated },
            Some("clean-plain") => Expiry::Clean { passes: Passes::None },
            Some(other) => {
                return Err(Failure::Value(format!("expiry= is '{other}': it must be tag, clean or clean-plain")));
            }
        };
        options.estimators = self.list::<Estimator>("estimator")?.unwrap_or(options.estimators);
        options.details = true;
        options.pictures = self.flag("depth")?.unwrap_or(true);
        Ok(options)
    }

    /// The queue that a capture passes.
    pub fn queue(&self) -> Outcome<Queue> {
        let mut queue = Queue::default();
        queue.aqm = self.text("aqm")?.map(|text| Aqm::parse("aqm=", &text)).transpose()?;
        queue.limit = self.limit("limit")?.unwrap_or(queue.limit);
        let speedup = "a factor above 0, such as 50 or '2.5x'";
        queue.speedup =
            self.parsed("speedup", speedup, |factor| Speedup::nearest(factor).ok())?.unwrap_or(queue.speedup);
        let overhead = "none, ethernet, or a number of bytes up to 256";
        queue.overhead = self
            .parsed("overhead", overhead, |bytes| {
                let bytes = whole(bytes).and_then(|bytes| u32::try_from(bytes).ok());
                bytes.filter(|bytes| *bytes <= Overhead::MOST).map(Overhead::Bytes)
            })?
            .unwrap_or(queue.overhead);
        queue.mtu = self.count("mtu", 68, 65_535)?.map_or(queue.mtu, |mtu| mtu as u32);
        queue.split_gso = self.flag("split_gso")?.unwrap_or(false);
        queue.inner = self.flag("inner")?.unwrap_or(false);
        Ok(queue)
    }

    /// How to read a table of departures.
    pub fn table(&self) -> Outcome<TableOptions> {
        let columns = match self.get("columns")? {
            None => Columns::default(),
            Some(value) => {
                let text = match value.cast::<PyDict>() {
                    Ok(names) => mapping(names)?,
                    Err(_) => text("columns", &value)?,
                };
                text.parse().map_err(|why| named("columns", &why))?
            }
        };
        let time_unit = self.text("time_unit")?.map(|unit| unit.parse::<TimeUnit>()).transpose();
        let time_unit = time_unit.map_err(|why| named("time_unit", &why))?.unwrap_or_default();
        Ok(TableOptions { columns, time_unit })
    }
}

/// A mapping of columns in the command's notation.
fn mapping(names: &Bound<'_, PyDict>) -> Outcome<String> {
    let parts = names.iter().map(|(field, name)| {
        let name = match name.extract::<Vec<String>>() {
            Ok(several) if !name.is_instance_of::<PyString>() => several.join("+"),
            _ => text("columns", &name)?,
        };
        Ok(format!("{}={name}", text("columns", &field)?))
    });
    Ok(parts.collect::<Outcome<Vec<_>>>()?.join(","))
}

/// Text from Python.
fn text(name: &str, value: &Bound<'_, PyAny>) -> Outcome<String> {
    value.extract().map_err(|_| wrong(name, "text", value))
}

/// A whole number that a double represents exactly.
fn whole(number: f64) -> Option<u64> {
    (number >= 0.0 && number.fract() == 0.0 && number < u64::MAX as f64).then_some(number as u64)
}

/// A time in seconds, rounded to a nanosecond.
fn seconds(number: f64) -> Option<Nanos> {
    let nanos = (number * 1e9).round();
    (nanos >= 0.0 && nanos < u64::MAX as f64).then_some(Nanos(nanos as u64))
}

/// The error of a value that cannot be parsed.
fn named(name: &str, why: &dyn Error) -> Failure {
    Failure::Value(format!("{name}=: {}", crate::failure::with_causes(why)))
}

/// The error of a value of another kind.
pub fn wrong(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> Failure {
    let shown = value.repr().map_or_else(|_| "it".to_owned(), |text| text.to_string_lossy().into_owned());
    let kind = value.get_type().name().map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned());
    let is_plain =
        [value.is_instance_of::<PyString>(), value.is_instance_of::<PyInt>(), value.is_instance_of::<PyFloat>()];
    let shown = if is_plain.contains(&true) { shown } else { format!("of type {kind}") };
    Failure::Value(format!("{name}= is {shown}: it must be {expected}"))
}
