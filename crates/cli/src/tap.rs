//! `queuescope tap`: from captures before and behind a router to a report of the queue in between.
//!
//! The captures are read four times: for how much of their packets they have, for the clocks, for the routes and better
//! clocks, and for the departures. Memory is that of the packets that can be in the router at once.

mod bridge;
mod capture;
mod headers;
mod tell;

use crate::args::{Stamps, Tap};
use crate::expressions::explained;
use crate::outcome::Outcome;
use crate::paths::{Place, check_outputs};
use crate::queued;
use crate::setup::{finish, params};
use crate::source;
use crate::views::Views;
use anyhow::{Result, anyhow, bail};
use bridge::{Bridge, Told};
use capture::{Capture, Content, Shift, Work};
use headers::Headers;
use queuescope_analysis::{Analysis, FLOWS, Scale};
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{Chosen, Flag, Stop};
use queuescope_meter::tap::{
    Clock, ClockEstimate, Matcher, Routes, Seen, Survey, SurveyParams, Surveyed, TapDeparture, TapOutput, TapParams,
    drive,
};
use queuescope_meter::{History, Tau};
use queuescope_recording::Outputs;
use queuescope_sketch::ConQuest;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{InvariantParams, Reach, Tunnel};

/// Passes over the captures.
const PASSES: u64 = 4;
/// Places in the table of packets that came in: at least, and at most (0.6 GB).
const ENTRIES: (u64, u64) = (1 << 12, 1 << 22);

/// Runs `tap`.
///
/// # Errors
/// If nothing could be done: no input, impossible arguments, nothing in common, or an output that cannot be written.
pub fn run(args: &Tap) -> Result<Outcome> {
    let captures = Captures::of(args)?;
    let output = &args.output;
    check_outputs(args.ingress.iter().chain([&args.egress]), [&output.html, &output.parquet])?;
    let (scale, longest) = (Scale::of(args.router.rate), args.router.max_delay);
    let history = |disorder| History::NearlyFifo { disorder, longest };
    let mut params =
        params((&args.question, &args.sketch, output), Unknown::OF_OUTSIDE, history(longest), args.router.rate, scale)?;
    // What is wrong with the sketch is told before anything is read.
    ConQuest::new(params.sketch.clone())?;
    let seen = captures.survey(args)?;
    let within = seen.links.iter().filter_map(|link| Some(link.clock?.estimate.within)).max().unwrap_or_default();
    // The clocks are not yet the better ones as the order is seen.
    params.order_tolerance = Nanos(2 * within.0);
    params.history = history(seen.disorder.saturating_add(Nanos(2 * within.0)).min(longest));
    // Before, there is nothing to keep.
    let stop = queued::stop(&args.queued)?;
    let log = queued::open(&args.queued)?;
    let views = Views::create(output)?;
    let outputs = Outputs::create(None, output.parquet.as_deref(), log)?;
    if args.question.tau.is_none() {
        params.tau = Tau::adaptive(scale.tau.max(Nanos(2 * within.0)));
    }
    let granularities = source::granularities(&args.keys);
    let focus = &args.question.focus;
    let mut analysis = Analysis::new(source::flows(&args.keys, focus, FLOWS), params, outputs)?;
    let used = seen.links.iter().filter_map(|link| Some(link.clock?.estimate.within));
    let headers = args.queued.log.as_ref().map(|_| Headers::new(seen.params.max_delay, seen.params.early));
    let mut bridge = Bridge::new(
        &mut analysis,
        (source::mask(&args.keys, focus), granularities[0]),
        longest,
        used.collect(),
        headers.as_ref(),
    );
    let matcher = captures.matched(&seen, Some(seen.routes.clone()), (headers.as_ref(), stop.as_ref()), &mut bridge)?;
    let told = bridge.finish();
    captures.work.finish();
    let tapped = Tapped { seen: &seen, told: &told, stats: matcher.stats(), granularity: granularities[0] };
    let (mut report, outputs) = finish(analysis, tapped.source(args));
    report.totals.miss_flows_of(tapped.stats.ingress_evicted);
    report.tap = Some(tapped.tell(args));
    let written = outputs.finish()?.ended_by(stop.as_ref());
    views.write(report, &written)
}

/// All captures of a router.
struct Captures {
    ingress: Vec<Capture>,
    egress: Capture,
    work: Work,
}

/// What is known before packets are matched for the report.
struct Known {
    links: Vec<Link>,
    egress: Content,
    invariant: InvariantParams,
    params: TapParams,
    routes: Routes,
    /// How much earlier a packet came than one that left before it, at most.
    disorder: Nanos,
}

/// A link into the router.
struct Link {
    content: Content,
    /// Its clock; none if none of its packets came out: it is left out then.
    clock: Option<Surveyed>,
}

/// What was found, for the report.
struct Tapped<'a> {
    seen: &'a Known,
    told: &'a Told,
    stats: &'a queuescope_meter::tap::TapStats,
    granularity: queuescope_wire::Granularity,
}

impl Captures {
    fn of(args: &Tap) -> Result<Self> {
        let router = &args.router;
        let chosen = Chosen::of(Flag::Input, args.only.as_deref()).map_err(explained)?;
        let tunnel = if args.keys.inner { Tunnel::Inner } else { Tunnel::Outer };
        let rates = &router.ingress_rate;
        if !rates.is_empty() && router.stamps == Stamps::Last {
            bail!("--ingress-rate is of no use with --stamps last: packets have come when they are stamped");
        }
        if rates.len() > 1 && rates.len() != args.ingress.len() {
            bail!(
                "--ingress-rate has {} rates for {} captures; give one, or one each",
                rates.len(),
                args.ingress.len()
            );
        }
        let ingress = args.ingress.iter().enumerate().map(|(link, path)| {
            let rate = rates.get(link).or(rates.first());
            let shift = rate.map_or(Shift::None, |rate| Shift::ToEnd(*rate));
            Capture { path: path.clone(), tunnel, shift, chosen: chosen.clone() }
        });
        let shift = router.rate.filter(|_| router.stamps == Stamps::Last).map_or(Shift::None, Shift::ToStart);
        let ingress: Vec<_> = ingress.collect();
        let egress = Capture { path: args.egress.clone(), tunnel, shift, chosen: chosen.clone() };
        let mut places = Vec::new();
        for capture in ingress.iter().chain([&egress]) {
            capture.check()?;
            let place = Place::of(&capture.path);
            if places.contains(&place) {
                bail!("{} is given twice; each link has a capture of its own", capture.path.display());
            }
            places.push(place);
        }
        let work = Work::new(ingress.iter().chain([&egress]), PASSES);
        Ok(Self { ingress, egress, work })
    }

    /// The passes before the last: the reach, the clocks, and then the routes and better clocks.
    fn survey(&self, args: &Tap) -> Result<Known> {
        let router = &args.router;
        let params = TapParams {
            max_delay: router.max_delay,
            shared_clock: router.shared_clock,
            unseen: router.unseen.into(),
            ..TapParams::default()
        };
        let stretch = params.max_delay.saturating_add(params.early);
        let content = |capture: &Capture| capture.content(stretch, &self.work);
        let egress = content(&self.egress)?;
        let contents = self.ingress.iter().map(content).collect::<Result<Vec<_>>>()?;
        let reach = contents.iter().chain([&egress]).map(|content| content.reach).min().unwrap_or(Reach::MOST);
        let entries: u64 = contents.iter().map(|content| content.busiest).sum();
        let entries = entries.clamp(ENTRIES.0, ENTRIES.1) as usize;
        let invariant = InvariantParams { nat: router.nat.into(), reach, checksums: router.checksums };
        let clocks = self.clocks(&params, invariant)?;
        let links = contents.into_iter().zip(clocks).map(|(content, clock)| Link { content, clock }).collect();
        let routes = Routes::new(params.routes, params.most_routes);
        let mut known =
            Known { links, egress, invariant, params: TapParams { entries, ..params }, routes, disorder: Nanos::ZERO };
        let mut order = Order::default();
        let matcher = self.matched(&known, None, (None, None), &mut order)?;
        known.disorder = order.disorder;
        known.routes = matcher.routes();
        let used = known.links.iter_mut().filter_map(|link| link.clock.as_mut());
        for (clock, better) in used.zip(matcher.clocks()) {
            clock.estimate = better.unwrap_or(clock.estimate);
        }
        Ok(known)
    }

    /// The clocks of the links, by a sample of packets.
    fn clocks(&self, params: &TapParams, invariant: InvariantParams) -> Result<Vec<Option<Surveyed>>> {
        let survey =
            SurveyParams { max_delay: params.max_delay, shared_clock: params.shared_clock, ..SurveyParams::default() };
        let mut survey = Survey::new(survey, self.ingress.len());
        let mut reading = self.egress.read(invariant, &self.work, None)?;
        while let Some(seen) = reading.next_seen() {
            survey.egress(&seen);
        }
        for (link, capture) in self.ingress.iter().enumerate() {
            let mut reading = capture.read(invariant, &self.work, None)?;
            while let Some(seen) = reading.next_seen() {
                survey.ingress(link, &seen);
            }
        }
        let found = survey.finish();
        if let Some(error) = found.iter().find_map(|found| found.err()).filter(|_| found.iter().all(Result::is_err)) {
            let [before, behind] = [&self.ingress[0], &self.egress].map(|capture| capture.path.display());
            return Err(anyhow!("cannot match {before} with {behind}: {error}"));
        }
        Ok(found.into_iter().map(Result::ok).collect())
    }

    /// A pass that matches packets, until a signal comes if one may stop it, and keeps headers of what comes in if they are wanted.
    fn matched(
        &self,
        known: &Known,
        routes: Option<Routes>,
        (headers, stop): (Option<&Headers>, Option<&Stop>),
        output: &mut impl TapOutput,
    ) -> Result<Matcher> {
        let used = self.ingress.iter().zip(&known.links);
        let used = used.filter_map(|(capture, link)| Some((capture, link.clock?.estimate)));
        let (captures, clocks): (Vec<_>, Vec<ClockEstimate>) = used.unzip();
        let clocks: Vec<Clock> = clocks.iter().map(|estimate| estimate.clock).collect();
        let ingress = captures.iter().enumerate().map(|(link, capture)| {
            let reading = capture.read(known.invariant, &self.work, stop)?;
            Ok(reading.keeping(headers.map(|headers| (headers, link))))
        });
        let mut ingress = ingress.collect::<Result<Vec<_>>>()?;
        let mut egress = self.egress.read(known.invariant, &self.work, stop)?;
        let mut matcher = match routes {
            Some(routes) => Matcher::with_routes(known.params, &clocks, routes),
            None => Matcher::new(known.params, &clocks),
        };
        let Ok(()) = drive(&mut ingress, &mut egress, &mut matcher, output);
        Ok(matcher)
    }
}

/// Finds how far the router is from a FIFO.
#[derive(Default)]
struct Order {
    latest: Nanos,
    disorder: Nanos,
}

impl TapOutput for Order {
    fn departed(&mut self, departure: &TapDeparture) {
        if let Some(enqueued) = departure.enqueued() {
            self.disorder = self.disorder.max(self.latest.saturating_sub(enqueued));
            self.latest = self.latest.max(enqueued);
        }
    }

    fn lost(&mut self, _packet: &Seen, _link: usize, _enqueued: Nanos) {}
}
