//! `queuescope tap`: a report of the queue in a router, from captures before and behind it.

use crate::args::{Stamps, Tap};
use crate::expressions::{analysis_error, expression_error};
use crate::outcome::Outcome;
use crate::paths::check_outputs;
use crate::progress::Progress;
use crate::queued;
use crate::setup::{finish, options};
use crate::views::Views;
use anyhow::{Result, bail};
use queuescope_analysis::{Analysis, FLOWS, Scale};
use queuescope_ingest::records::Unknown;
use queuescope_ingest::tap::{Captures, FinalPass, Ingress, TapError};
use queuescope_meter::{History, Tau};
use queuescope_recording::Outputs;
use queuescope_sketch::ConQuest;
use queuescope_wire::Nanos;

/// Runs `tap`.
///
/// # Errors
/// Fails if an input cannot be read, if arguments contradict each other, if the captures have no packets in common, or if an
/// output cannot be written.
pub fn run(args: &Tap) -> Result<Outcome> {
    let captures = Captures::open(ingress(args)?, &args.egress, args.options()).map_err(|error| match error {
        TapError::Expression(error) => expression_error(error),
        error => error.into(),
    })?;
    let output = &args.output;
    check_outputs(args.ingress.iter().chain([&args.egress]), [&output.html, &output.parquet])?;
    let (scale, longest) = (Scale::from_rate(args.router.rate), args.router.max_delay);
    let history = |disorder| History::NearlyFifo { disorder, longest };
    let analysis_options = options(&args.keys, &args.question, &args.sketch, output);
    let params = analysis_options.params(Unknown::OF_OUTSIDE, history(longest), args.router.rate, scale);
    let mut params = params.map_err(analysis_error)?;
    // Check the parameters of the sketch before anything is read.
    ConQuest::new(params.sketch.clone())?;
    let progress = Progress::new(captures.length());
    let mut update = |read, packets| progress.update(read, packets);
    let survey = captures.survey(&mut update)?;
    params.order_tolerance = survey.tolerance();
    params.history = history(survey.disorder());
    params.not_judged = None;
    // Signals end the process until here, as there is nothing to keep yet.
    let stop = queued::stop(&args.queued)?;
    let log = queued::open(&args.queued)?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(None, output.parquet.as_deref(), log)?;
    if args.question.tau.is_none() {
        params.tau = Tau::adaptive(Nanos::max(scale.tau, survey.tolerance()));
    }
    let mut analysis = Analysis::new(analysis_options.flows(FLOWS), params, outputs)?;
    let mut wanted = FinalPass::new(analysis_options.mask(), analysis_options.granularities()[0]);
    wanted.headers = args.queued.log.is_some();
    wanted.stop = stop.as_ref();
    let tapped = survey.read(&wanted, &mut analysis)?;
    let (mut report, outputs) = finish(analysis, tapped.source());
    tapped.complete(&mut report);
    progress.finish();
    let written = outputs.finish()?.ended_by(stop.as_ref());
    views.write(report, &written)
}

/// The captures before the router, with the rates of their links.
fn ingress(args: &Tap) -> Result<Vec<Ingress>> {
    let rates = &args.router.ingress_rate;
    if !rates.is_empty() && args.router.stamps == Stamps::Last {
        bail!(
            "--ingress-rate has no effect with --stamps last: packets have arrived when they are stamped. Leave it out"
        );
    }
    if rates.len() > 1 && rates.len() != args.ingress.len() {
        bail!(
            "--ingress-rate has {} rates for {} captures; give one rate, or one for each capture",
            rates.len(),
            args.ingress.len()
        );
    }
    let ingress = args.ingress.iter().enumerate().map(|(link, path)| {
        let rate = rates.get(link).or(rates.first()).copied();
        Ingress { path: path.clone(), rate }
    });
    Ok(ingress.collect())
}
