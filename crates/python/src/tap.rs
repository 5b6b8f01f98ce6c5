//! `tap`: the queue in a router, from captures before and behind it.

use crate::analyze::Watched;
use crate::arguments::Arguments;
use crate::failure::{Failure, Outcome};
use crate::report::RawReport;
use crate::task::{self, Task};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use queuescope::analysis::{Analysis, AnalysisOptions, FLOWS, Scale};
use queuescope::ingest::records::Unknown;
use queuescope::ingest::tap::{Captures, FinalPass, Ingress, Stamps, TapError, TapOptions};
use queuescope::meter::tap::Unseen;
use queuescope::meter::{History, Tau};
use queuescope::recording::Outputs;
use queuescope::wire::parse::Nat;
use queuescope::{Nanos, Rate};
use std::path::PathBuf;

/// Makes the report of the queue in a router.
#[pyfunction]
#[pyo3(signature = (ingress, egress, arguments, progress=None))]
pub fn tap(
    py: Python<'_>,
    ingress: Vec<PathBuf>,
    egress: PathBuf,
    arguments: &Bound<'_, PyDict>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<RawReport> {
    let job = Job::new(ingress, egress, &Arguments(arguments))?;
    task::run(py, progress, move |task| job.run(task))
}

/// What is to be done.
struct Job {
    ingress: Vec<Ingress>,
    egress: PathBuf,
    tap: TapOptions,
    options: AnalysisOptions,
    keeps: bool,
    parquet: Option<PathBuf>,
}

impl Job {
    fn new(ingress: Vec<PathBuf>, egress: PathBuf, arguments: &Arguments<'_, '_>) -> Outcome<Self> {
        let rates = arguments.list::<Rate>("ingress_rate")?.unwrap_or_default();
        let mut tap = TapOptions::default();
        tap.only = arguments.text("input")?;
        tap.inner = arguments.flag("inner")?.unwrap_or(tap.inner);
        tap.rate = arguments.rate("rate")?;
        tap.stamps = choice(arguments, "stamps", &[("last", Stamps::Last), ("first", Stamps::First)])?;
        tap.nat = choice(
            arguments,
            "nat",
            &[("none", Nat::None), ("addresses", Nat::Addresses), ("payload", Nat::AllButPayload)],
        )?;
        tap.unseen =
            choice(arguments, "unseen", &[("unknown", Unseen::Unknown), ("neighbours", Unseen::FromNeighbours)])?;
        tap.checksums = arguments.flag("checksums")?.unwrap_or(tap.checksums);
        tap.shared_clock = arguments.flag("shared_clock")?.unwrap_or(tap.shared_clock);
        tap.max_delay = arguments.time("max_delay")?.unwrap_or(tap.max_delay);
        if tap.max_delay == Nanos::ZERO {
            return Err(Failure::Value(
                "max_delay= is 0: a packet needs some time in a router, such as '200ms'".to_owned(),
            ));
        }
        if !rates.is_empty() && tap.stamps == Stamps::Last {
            return Err(Failure::Value(
                "ingress_rate= has no effect with stamps='last': packets have arrived when they are stamped".to_owned(),
            ));
        }
        if rates.len() > 1 && rates.len() != ingress.len() {
            return Err(Failure::Value(format!(
                "ingress_rate= has {} rates for {} captures: give one rate, or one for each capture",
                rates.len(),
                ingress.len()
            )));
        }
        let with_rate = |(link, path)| Ingress { path, rate: rates.get(link).or(rates.first()).copied() };
        Ok(Self {
            ingress: ingress.into_iter().enumerate().map(with_rate).collect(),
            egress,
            tap,
            options: arguments.analysis()?,
            keeps: arguments.flag("packets")?.unwrap_or(false),
            parquet: arguments.get("parquet")?.map(|value| value.extract()).transpose()?,
        })
    }

    fn run(self, task: &Task) -> Outcome<RawReport> {
        let (rate, longest) = (self.tap.rate, self.tap.max_delay);
        let captures = Captures::open(self.ingress, &self.egress, self.tap)?;
        let history = |disorder| History::NearlyFifo { disorder, longest };
        let scale = Scale::from_rate(rate);
        let mut params = self.options.params(Unknown::OF_OUTSIDE, history(longest), rate, scale)?;
        let mut update = |bytes, packets| task.progress(bytes, packets);
        let survey = captures.survey(&mut update)?;
        params.order_tolerance = survey.tolerance();
        params.history = history(survey.disorder());
        params.not_judged = None;
        let outputs = Outputs::create(None, self.parquet.as_deref(), None).map_err(Failure::input)?;
        if self.options.tau.is_none() {
            params.tau = Tau::adaptive(Nanos::max(scale.tau, survey.tolerance()));
        }
        let watched = Watched::new(outputs, self.keeps);
        let mut analysis = Analysis::new(self.options.flows(FLOWS), params, watched).map_err(Failure::value)?;
        let granularity = self.options.granularities().first().copied();
        let granularity = granularity.ok_or_else(|| Failure::Value("by= names no granularity".to_owned()))?;
        let mut wanted = FinalPass::new(self.options.mask(), granularity);
        wanted.stop = Some(task.stop());
        let tapped = survey.read(&wanted, &mut analysis).map_err(Failure::input)?;
        let (findings, watched) = analysis.finish();
        let mut report = findings.report(tapped.source());
        tapped.complete(&mut report);
        let (written, packets) = watched.finish()?;
        report.skipped.extend(written.notes());
        Ok(RawReport::new(report, packets))
    }
}

/// One of several values, by its name; the first if none is given.
fn choice<T: Copy>(arguments: &Arguments<'_, '_>, name: &str, known: &[(&str, T)]) -> Outcome<T> {
    let text = arguments.text(name)?;
    let found = known.iter().find(|(word, _)| text.as_deref().is_none_or(|text| text == *word));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = known.iter().map(|(word, _)| *word).collect();
        Failure::Value(format!("{name}= is '{}': it must be {}", text.unwrap_or_default(), known.join(" or ")))
    })
}

impl From<TapError> for Failure {
    fn from(error: TapError) -> Self {
        match error {
            TapError::Expression(error) => error.into(),
            TapError::Capture(error) => error.into(),
            error @ (TapError::Twice { .. } | TapError::Once { .. }) => Self::value(error),
            error => Self::input(error),
        }
    }
}
