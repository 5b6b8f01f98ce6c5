//! The queue of an interface while it is watched: from what the kernel hands over to bursts, a view, metrics and a report.

mod known;
mod meanings;
mod options;
mod reporter;

pub use options::WatchOptions;
pub use reporter::Reporter;

use crate::acts::Acts;
use crate::error::WatchError;
use crate::feed::{Feed, Seen};
use crate::metrics::Metrics;
use crate::owners::FlowOwners;
use crate::stopped::Stopped;
use crate::view::{Screen, View};
use known::Known;
use queuescope_analysis::{Analysis, AnalysisParams, Error, FLOWS, Watcher};
use queuescope_ingest::{Listener, Stop};
use queuescope_live::capabilities::Seer;
use queuescope_live::{Counters, Probe, ProbeParams, Slice, now};
use queuescope_report::model::Report;
use queuescope_wire::{Backlog, ByteCount, Flows, Granularity, Nanos};
use std::cell::RefCell;
use std::io;
use std::time::Duration;

/// How long it is waited for packets, and how often is looked for the rest.
const PAUSE: Duration = Duration::from_millis(20);
const LOOK: Nanos = Nanos(250_000_000);
/// How often the kernel's counters are read, at most: a burst loses what was dropped while it lasted, to this time.
const COUNT: Nanos = Nanos(20_000_000);
/// Keys that are read at once.
const KEYS: usize = 64;
/// A burst without a packet for so long, and tau, has ended: the kernel may falter meanwhile.
const QUIET: Nanos = Nanos(50_000_000);

/// An interface that the kernel looks at, before anybody takes what it sees.
pub struct Attached {
    options: WatchOptions,
    probe: Probe,
    params: ProbeParams,
    analysed: AnalysisParams,
    feed: Feed,
    seer: Option<Seer>,
    stop: Stop,
}

/// An interface that is watched: `W` watches its packets, and `R` hears what happens.
pub struct Watch<W: Watcher, R: Reporter<W>> {
    probe: Probe,
    params: ProbeParams,
    known: Known,
    analysis: Analysis<Flows, W>,
    reporter: R,
    stop: Stop,
    /// What a person sees meanwhile.
    view: Option<View>,
    screen: Option<Screen>,
    /// For a monitoring system.
    metrics: Option<Metrics>,
    stopped: Stopped,
}

impl Attached {
    /// Attaches a probe to the interface, unless somebody asks for an end meanwhile; `seer` sees the processes of other users.
    ///
    /// # Errors
    /// If there is no such interface, this kernel or this user may not look at it, or the options mean nothing.
    pub fn new(options: WatchOptions, stop: Stop, seer: Option<Seer>) -> Result<Self, WatchError> {
        let params = options.probe()?;
        let feed = Feed::new(options.only.as_deref(), options.asked.mask(), options.inner)?;
        let analysed = options.analysis(&params)?;
        let probe = Probe::attach_unless(&options.interface, params, &|| stop.is_requested())?;
        Ok(Self { options, probe, params, analysed, feed, seer, stop })
    }

    /// Begins to take what it sees. Where it is drawn, the terminal is taken from here on.
    ///
    /// # Errors
    /// If metrics cannot be served, flows cannot be acted on, or the terminal refuses; and those of the reporter.
    pub fn begin<W: Watcher, R: Reporter<W>>(self, watcher: W, mut reporter: R) -> Result<Watch<W, R>, R::Error> {
        let Self { options, mut probe, params, analysed, feed, seer, stop } = self;
        let (tau, origin, show) = (options.tau(), feed.origin, analysed.show.clone());
        let sketch = |why| WatchError::Analysis(Error::Sketch(why));
        let new = |params| Analysis::new(options.asked.flows(FLOWS), params, ()).map_err(sketch);
        let blank = new(analysed.clone())?;
        let analysis = Analysis::new(options.asked.flows(FLOWS), analysed, watcher).map_err(sketch)?;
        let serve = |at| Metrics::serve(at, &options.interface, tau, options.asked.alpha).map_err(WatchError::from);
        let (metrics, address) = options.metrics.as_ref().map(serve).transpose()?.unzip();
        address.into_iter().for_each(|address| reporter.serves(address));
        // Last, when nothing else can fail.
        let heard = RefCell::new(&mut reporter);
        let note = |text: &str| heard.borrow_mut().note(text);
        let acts = Acts::begin(&options.acting, &mut probe, origin, &note).map_err(WatchError::from)?;
        let granularities = options.asked.granularities();
        let first = granularities.first().copied().unwrap_or(Granularity::FiveTuple);
        let known = Known {
            acts,
            owners: FlowOwners::new(&options.interface, granularities, seer),
            counters: Counters::default(),
            counted: origin,
            deepest: Backlog::default(),
            is_gone: false,
            feed,
            options,
        };
        // What is known before the first packet.
        reporter.begins(&known.report(blank.finish().0))?;
        // The terminal is taken when there is something to draw.
        let options = &known.options;
        let is_coloured = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let view = || View::new(&options.interface, tau, first, show, origin, is_coloured);
        let view = options.is_drawn.then(view);
        let screen = options.is_drawn.then(Screen::new).transpose().map_err(WatchError::from)?;
        let stopped = Stopped::default();
        Ok(Watch { probe, params, known, analysis, reporter, stop, view, screen, metrics, stopped })
    }
}

impl<W: Watcher, R: Reporter<W>> Watch<W, R> {
    /// Watches until `end`, by the clock that [`now`] reads, or until a signal comes, the interface is gone, or nobody looks on or hears
    /// it any more: what was found, the watcher and the reporter. The terminal is as before.
    ///
    /// # Errors
    /// Those of the kernel, the terminal, the watcher and the reporter.
    pub fn run(mut self, end: Nanos) -> Result<(Report, W, R), R::Error> {
        let mut look = now();
        while !self.stop.is_requested() && !self.is_over() && now() < end {
            let came = self.take()?;
            if now() >= look {
                look = now().saturating_add(LOOK);
                self.look()?;
                self.draw()?;
            }
            self.keys()?;
            if self.known.is_gone || self.reporter.is_unheard() {
                break;
            }
            if came == 0 {
                self.probe.wait(PAUSE)?;
            }
        }
        if self.stop.is_requested() {
            self.stop.obey();
        }
        self.finish()
    }

    /// Takes what the kernel has handed over, and reports the bursts that ended; how many packets came.
    fn take(&mut self) -> Result<u64, R::Error> {
        let at = now();
        if at >= self.known.counted.saturating_add(COUNT) {
            self.count()?;
        }
        let Known { feed, owners, .. } = &mut self.known;
        let mut seen = Seen { analysis: &mut self.analysis, view: self.view.as_mut(), owners };
        let came = feed.take::<_, R::Error>(&mut self.probe, &mut seen)?;
        self.known.owners.look();
        // Of so many, there may be more that left before now.
        if came < Probe::AT_ONCE {
            self.analysis.nothing_before(at.saturating_sub(QUIET));
        }
        if came == 0 {
            self.analysis.hand_over()?;
        } else {
            self.analysis.watcher().check()?;
        }
        self.report_bursts()?;
        Ok(came)
    }

    /// Reads what the kernel has counted. What it dropped since the last time was dropped in between.
    fn count(&mut self) -> Result<(), R::Error> {
        let since = std::mem::replace(&mut self.known.counted, now());
        let before = self.known.counters.dropped;
        self.known.counters = self.probe.counters()?;
        self.known.feed.dropped(since, now(), self.known.counters.dropped.saturating_sub(before));
        Ok(())
    }

    fn report_bursts(&mut self) -> Result<(), R::Error> {
        let mut ended = self.analysis.ended(self.known.feed.origin);
        self.known.owners.bursts(&mut ended);
        if let Some(metrics) = &self.metrics {
            ended.iter().for_each(|burst| metrics.burst(burst));
        }
        match &mut self.view {
            Some(view) => ended.iter().for_each(|burst| view.burst(burst)),
            None if ended.is_empty() => {}
            None => self.reporter.bursts(&ended)?,
        }
        Ok(())
    }

    /// Looks at what the kernel has summed up, and whether the interface is there.
    fn look(&mut self) -> Result<(), R::Error> {
        self.known.acts.look(&mut self.probe).map_err(WatchError::from)?;
        for acting in self.known.acts.news() {
            // A view shows it.
            if self.view.is_none() {
                self.reporter.acting(&acting)?;
            }
        }
        let deepest = &mut self.known.deepest;
        let mut longest = Nanos::ZERO;
        let mut slices = Vec::<Slice>::new();
        for queue in 0..Probe::QUEUES {
            slices.extend(self.probe.slices(queue)?);
        }
        for slice in &slices {
            longest = longest.max(slice.delay_max);
            deepest.packets = deepest.packets.max(u64::from(slice.length_max));
            deepest.bytes = deepest.bytes.max(ByteCount(u64::from(slice.backlog_max)));
        }
        let unwritten = self.reporter.unwritten(self.analysis.watcher());
        if let Some(view) = &mut self.view {
            view.slices(&slices);
            view.counters(self.known.counters);
            view.owners(self.known.owners.first());
            view.acting(self.known.acts.doing(&self.probe, now()).map_err(WatchError::from)?, now());
            view.unwritten(&unwritten.iter().map(|one| one.line.clone()).collect::<Vec<_>>());
        }
        if let Some(metrics) = &self.metrics {
            metrics.look(self.known.counters, &self.known.acts, &slices, now());
        }
        let fitted = self.params.fitted(longest);
        if fitted != self.params {
            self.params = fitted;
            self.probe.set(fitted)?;
        }
        self.known.is_gone = !self.probe.is_there()?;
        // Not where something is drawn, but when that is over.
        if self.screen.is_none() {
            let metrics = self.metrics.as_ref().and_then(Metrics::stopped);
            let unwritten = unwritten.into_iter().map(|one| one.news);
            let stopped = self.known.owners.stopped().into_iter().chain(metrics).chain(unwritten);
            self.stopped.tell(stopped, |text| self.reporter.stopped(text));
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), R::Error> {
        if let (Some(screen), Some(view)) = (&mut self.screen, &self.view) {
            screen.draw(view, now()).map_err(WatchError::from)?;
        }
        Ok(())
    }

    /// Does what keys ask for.
    fn keys(&mut self) -> Result<(), R::Error> {
        let (Some(screen), Some(view)) = (&mut self.screen, &mut self.view) else { return Ok(()) };
        let mut pressed = false;
        // However fast keys come, the rest goes on.
        for _ in 0..KEYS {
            let Some(key) = screen.keys(Duration::ZERO).map_err(WatchError::from)? else { break };
            view.key(key, now());
            if view.takes_other() {
                self.known.acts.pause(&mut self.probe).map_err(WatchError::from)?;
                view.acting(self.known.acts.doing(&self.probe, now()).map_err(WatchError::from)?, now());
            }
            pressed = true;
        }
        if pressed { self.draw() } else { Ok(()) }
    }

    /// The viewer wants an end.
    fn is_over(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_over)
    }

    fn finish(mut self) -> Result<(Report, W, R), R::Error> {
        // The report stands where the command was given.
        self.screen = None;
        self.known.acts.end(&mut self.probe).map_err(WatchError::from)?;
        // What comes from here on is not seen, so that there is an end.
        self.probe.detach()?;
        self.count()?;
        while self.take()? > 0 {}
        self.look()?;
        self.known.owners.settle();
        self.analysis.nothing_before(Nanos::MAX);
        self.report_bursts()?;
        let Self { known, mut analysis, reporter, metrics, .. } = self;
        analysis.left_at_once(known.feed.rest(known.left()), !known.options.is_filtered());
        let (findings, watcher) = analysis.finish();
        let mut report = known.report(findings);
        report.skipped.extend(metrics.iter().flat_map(Metrics::notes));
        Ok((report, watcher, reporter))
    }
}
