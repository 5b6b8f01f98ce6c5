//! Watching the queue of an interface: from the packets that the kernel hands over to bursts, a view, metrics and a report.

mod interface_state;
mod meanings;
mod options;
mod reporter;

pub use options::WatchOptions;
pub use reporter::Reporter;

use crate::acts::Acts;
use crate::error::WatchError;
use crate::feed::{Feed, Receivers};
use crate::metrics::Metrics;
use crate::owners::FlowOwners;
use crate::p4air::{P4airStatus, P4airWatch};
use crate::stopped::Stopped;
use crate::view::{Screen, View};
use interface_state::InterfaceState;
use queuescope_analysis::{Analysis, AnalysisParams, Error, FLOWS, Watcher};
use queuescope_ingest::{Listener, Stop};
use queuescope_live::capabilities::Seer;
use queuescope_live::{Counters, Headers, Probe, ProbeParams, Slice, now};
use queuescope_report::model::Report;
use queuescope_wire::{Backlog, ByteCount, Flows, Granularity, Nanos};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// How long to wait for packets, and how often everything else is updated.
const PAUSE: Duration = Duration::from_millis(20);
const LOOK: Nanos = Nanos(250_000_000);
/// The minimum time between two readings of the kernel's counters. It limits how precisely drops are assigned to bursts.
const COUNT: Nanos = Nanos(20_000_000);
/// The longest time for which a packet waits in a queue or comes from the kernel, as far as counts of missing packets take that into account.
const SETTLED: Nanos = Nanos(10_000_000_000);
/// The maximum number of keys per update.
const KEYS: usize = 64;
/// A burst has ended after this time and tau without a packet; the margin covers delays of the kernel.
const QUIET: Nanos = Nanos(50_000_000);

/// An interface with an attached probe whose packets are not read yet.
pub struct Attached {
    options: WatchOptions,
    probe: Probe,
    params: ProbeParams,
    analysed: AnalysisParams,
    feed: Feed,
    seer: Option<Seer>,
    stop: Stop,
}

/// An interface that is being watched. `W` receives its packets, and `R` receives its events.
pub struct Watch<W: Watcher, R: Reporter<W>> {
    probe: Probe,
    state: InterfaceState,
    analysis: Analysis<Flows, W>,
    reporter: R,
    stop: Stop,
    /// The view, and the terminal on which it is drawn.
    view: Option<View>,
    screen: Option<Screen>,
    /// The metrics server.
    metrics: Option<Metrics>,
    stopped: Stopped,
    /// The last counts of packets that were not seen to leave, and of those that left and were not handed over.
    unseen: VecDeque<(u64, u64)>,
}

impl Attached {
    /// Attaches a probe to the interface, unless `stop` is requested meanwhile. `seer` can look at the processes of other users.
    ///
    /// # Errors
    /// Fails if the interface does not exist, the kernel or the user's rights do not allow a probe, or the options are invalid.
    pub fn new(options: WatchOptions, stop: Stop, seer: Option<Seer>) -> Result<Self, WatchError> {
        let params = options.probe()?;
        let mut feed = Feed::new(options.only.as_deref(), options.asked.mask(), options.inner)?;
        let analysed = options.analysis()?;
        let probe = Probe::attach_unless(&options.interface, params, &|| stop.is_requested())?;
        feed.origin = probe.began();
        Ok(Self { options, probe, params, analysed, feed, seer, stop })
    }

    /// The offset from the times of departures, which count from boot, to the Unix epoch, in nanoseconds.
    pub fn to_epoch(&self) -> u64 {
        self.feed.to_epoch
    }

    /// Starts to read packets. If a view is drawn, this takes the terminal.
    ///
    /// # Errors
    /// Fails if metrics cannot be served, flows cannot be acted on, or the terminal fails. Returns the errors of the reporter.
    pub fn begin<W: Watcher, R: Reporter<W>>(self, watcher: W, mut reporter: R) -> Result<Watch<W, R>, R::Error> {
        let Self { options, mut probe, params, analysed, feed, seer, stop } = self;
        let (tau, origin, show) = (options.tau(), feed.origin, analysed.show.clone());
        let sketch = |why| WatchError::Analysis(Error::Sketch(why));
        let new = |params| Analysis::new(options.asked.flows(FLOWS), params, ()).map_err(sketch);
        let blank = new(analysed.clone())?;
        // A flow's name needs the headers of one packet only. Everything else needs those of each.
        let needs_each = watcher.wants_packets() || watcher.wants_parts() || options.is_filtered() || options.inner;
        if !needs_each {
            probe.set(ProbeParams { headers: Headers::OfFlow, ..params }).map_err(WatchError::from)?;
        }
        let analysis = Analysis::new(options.asked.flows(FLOWS), analysed, watcher).map_err(sketch)?;
        let serve = |at| Metrics::serve(at, &options.interface, tau, options.asked.alpha).map_err(WatchError::from);
        let (metrics, address) = options.metrics.as_ref().map(serve).transpose()?.unzip();
        address.into_iter().for_each(|address| reporter.serves(address));
        // Acting starts last, when nothing else can fail.
        let shared = RefCell::new(&mut reporter);
        let note = |text: &str| shared.borrow_mut().note(text);
        let acts = Acts::new(&options.acting, &mut probe, origin, &note).map_err(WatchError::from)?;
        let begin = |asked| P4airWatch::new(&options.interface, asked, &note).map_err(WatchError::from);
        let p4air = options.p4air.as_ref().map(begin).transpose()?;
        let granularities = options.asked.granularities();
        let first = granularities.first().copied().unwrap_or(Granularity::FiveTuple);
        let state = InterfaceState {
            acts,
            p4air,
            owners: FlowOwners::new(&options.interface, granularities, seer),
            counters: Counters::default(),
            counted: origin,
            deepest: Backlog::default(),
            is_gone: false,
            ended: None,
            feed,
            options,
        };
        // The report before the first packet.
        reporter.begins(&state.report(blank.finish().0))?;
        // The terminal is taken only when there is something to draw.
        let options = &state.options;
        let is_coloured = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
        let view = || View::new(&options.interface, tau, first, show, origin, is_coloured);
        let view = options.is_drawn.then(view);
        let screen = options.is_drawn.then(Screen::new).transpose().map_err(WatchError::from)?;
        let stopped = Stopped::default();
        let unseen = VecDeque::new();
        Ok(Watch { probe, state, analysis, reporter, stop, view, screen, metrics, stopped, unseen })
    }
}

impl<W: Watcher, R: Reporter<W>> Watch<W, R> {
    /// Watches until `end` (by the clock of [`now`]), a signal, or the end of the interface, the view or the reporter's readers. Returns
    /// the report, the watcher and the reporter, and restores the terminal.
    ///
    /// # Errors
    /// Returns the errors of the kernel, the terminal, the watcher and the reporter.
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
            if self.state.is_gone || self.reporter.is_unheard() {
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

    /// Passes on the packets that the kernel has ready, and reports the bursts that ended. Returns the number of packets.
    fn take(&mut self) -> Result<u64, R::Error> {
        let at = now();
        if self.state.ended.is_none() && at >= self.state.counted.saturating_add(COUNT) {
            self.count()?;
        }
        let InterfaceState { feed, owners, .. } = &mut self.state;
        let mut receivers = Receivers { analysis: &mut self.analysis, view: self.view.as_mut(), owners };
        let came = feed.take::<_, R::Error>(&mut self.probe, &mut receivers)?;
        self.state.owners.look();
        // After a full batch, more packets that left before now may be ready.
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

    /// Reads the kernel's counters. New drops happened at some time since the last reading.
    fn count(&mut self) -> Result<(), R::Error> {
        let since = std::mem::replace(&mut self.state.counted, now());
        let before = self.state.counters.dropped;
        self.state.counters = self.probe.counters()?;
        self.state.feed.dropped(since, now(), self.state.counters.dropped.saturating_sub(before));
        Ok(())
    }

    fn report_bursts(&mut self) -> Result<(), R::Error> {
        let mut ended = self.analysis.ended(self.state.feed.origin);
        self.state.owners.bursts(&mut ended);
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

    /// Updates everything except packets: acting, slices, metrics, and whether the interface still exists.
    fn look(&mut self) -> Result<(), R::Error> {
        self.state.acts.look(&mut self.probe).map_err(WatchError::from)?;
        for acting in self.state.acts.news() {
            // A view shows the change itself.
            if self.view.is_none() {
                self.reporter.acting(&acting)?;
            }
        }
        self.look_at_p4air()?;
        self.probe.compare();
        let deepest = &mut self.state.deepest;
        let mut slices = Vec::<Slice>::new();
        for queue in 0..Probe::QUEUES {
            slices.extend(self.probe.slices(queue)?);
        }
        for slice in &slices {
            deepest.packets = deepest.packets.max(u64::from(slice.length_max));
            deepest.bytes = deepest.bytes.max(ByteCount(u64::from(slice.backlog_max)));
        }
        self.note_missing();
        let unwritten = self.reporter.unwritten(self.analysis.watcher());
        if let Some(view) = &mut self.view {
            view.slices(&slices);
            view.counters(self.state.counters);
            view.owners(self.state.owners.first());
            view.acting(self.state.acts.status(&self.probe, now()).map_err(WatchError::from)?, now());
            view.unwritten(&unwritten.iter().map(|one| one.line.clone()).collect::<Vec<_>>());
        }
        if let Some(metrics) = &self.metrics {
            metrics.look(self.state.counters, &self.state.acts, &slices, now());
        }
        self.state.is_gone = !self.probe.is_there()?;
        // While a view is drawn, standard error would spoil it.
        if self.screen.is_none() {
            let metrics = self.metrics.as_ref().and_then(Metrics::stopped);
            let unwritten = unwritten.into_iter().map(|one| one.news);
            let stopped = self.state.owners.stopped().into_iter().chain(metrics).chain(unwritten);
            self.stopped.report_new(stopped, |text| self.reporter.stopped(text));
        }
        Ok(())
    }

    /// Reports what is missing from the packets that were handed over. Packets in the queue, or on their way from the kernel, are not: of the counts within the longest wait, the
    /// lowest has none of them.
    fn note_missing(&mut self) {
        if self.state.ended.is_some() {
            // The queue is not watched any more: what is in it was never going to be seen.
            self.unseen.clear();
        }
        self.unseen.push_back((self.state.counters.unseen(), self.state.not_handed_over()));
        let looks = (SETTLED.0 / LOOK.0) as usize;
        let excess = self.unseen.len().saturating_sub(looks);
        self.unseen.drain(..excess);
        let is_settled = self.unseen.len() == looks || self.state.ended.is_some();
        let least = |of: fn(&(u64, u64)) -> u64| self.unseen.iter().map(of).min().filter(|_| is_settled).unwrap_or(0);
        let (missing, shed) = self.state.missing(least(|counts| counts.0), least(|counts| counts.1));
        let at = Nanos(now().0.saturating_add(self.state.feed.to_epoch));
        self.reporter.left_out(self.analysis.watcher(), at, SETTLED, &missing, shed);
    }

    /// Renews P4air, and reports its changes.
    fn look_at_p4air(&mut self) -> Result<(), R::Error> {
        let Some(p4air) = &mut self.state.p4air else { return Ok(()) };
        let changes = |status: &P4airStatus| (status.is_real, status.counters.moves, status.division.given);
        let before = changes(p4air.status());
        // After the end, the kernel's state stays as it was read then.
        if self.state.ended.is_none() {
            p4air.look().map_err(WatchError::from)?;
        }
        if let Some(view) = &mut self.view {
            view.p4air(p4air.status().lines());
        } else if changes(p4air.status()) != before {
            let at = now().saturating_sub(self.state.feed.origin);
            self.reporter.p4air(p4air.status(), at)?;
        }
        if let Some(metrics) = &self.metrics {
            metrics.p4air(p4air.status());
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), R::Error> {
        if let (Some(screen), Some(view)) = (&mut self.screen, &self.view) {
            screen.draw(view, now()).map_err(WatchError::from)?;
        }
        Ok(())
    }

    /// Handles pressed keys.
    fn keys(&mut self) -> Result<(), R::Error> {
        let (Some(screen), Some(view)) = (&mut self.screen, &mut self.view) else { return Ok(()) };
        let mut pressed = false;
        // Limited, so that a flood of keys does not stop everything else.
        for _ in 0..KEYS {
            let Some(key) = screen.keys(Duration::ZERO).map_err(WatchError::from)? else { break };
            view.key(key, now());
            if view.takes_pause_request() {
                self.state.acts.pause(&mut self.probe).map_err(WatchError::from)?;
                view.acting(self.state.acts.status(&self.probe, now()).map_err(WatchError::from)?, now());
            }
            pressed = true;
        }
        if pressed { self.draw() } else { Ok(()) }
    }

    /// Whether the user ended the view.
    fn is_over(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_over)
    }

    fn finish(mut self) -> Result<(Report, W, R), R::Error> {
        // The report must appear on the normal screen.
        self.screen = None;
        self.state.acts.end(&mut self.probe).map_err(WatchError::from)?;
        if let Some(p4air) = &mut self.state.p4air {
            p4air.end().map_err(WatchError::from)?;
            let at = now().saturating_sub(self.state.feed.origin);
            self.reporter.p4air(p4air.status(), at)?;
        }
        // Detaching takes about a second. What leaves meanwhile is not part of the measurement, and neither is that second.
        self.probe.compare();
        self.count()?;
        self.state.ended = Some(self.state.counted);
        self.state.feed.until = self.state.counted;
        // Detached before the last packets are read: otherwise new ones could come without end.
        self.probe.detach()?;
        while self.take()? > 0 {}
        self.look()?;
        self.state.owners.settle();
        self.analysis.nothing_before(Nanos::MAX);
        self.report_bursts()?;
        let Self { state, mut analysis, reporter, metrics, .. } = self;
        for (packets, examined) in state.rest() {
            analysis.left_at_once(packets, examined);
        }
        let (findings, watcher) = analysis.finish();
        let mut report = state.report(findings);
        report.skipped.extend(metrics.iter().flat_map(Metrics::notes));
        Ok((report, watcher, reporter))
    }
}
