//! `queuescope live`: what is in the queue of an interface now.

mod meanings;

use crate::args::Live;
use crate::expressions::{explained, of_analysis, show};
use crate::outcome::{Outcome, print};
use crate::outputs::Outputs;
use crate::paths::check_outputs;
use crate::queued::QueuedLog;
use crate::setup::{asked, focused};
use crate::spool::Unwritten;
use crate::terminal::note;
use anyhow::{Result, bail};
use meanings::{BULK, GONE, NOT_IP, REQUEUED, REQUEUED_UNSEEN, UNEXAMINED, UNSEEN, UNSTAMPED, UNTOLD};
use queuescope_analysis::{Analysis, AnalysisParams, FLOWS, Findings, Scale, Watcher};
use queuescope_ingest::notes::noted;
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{Listener, Source, Stop};
use queuescope_live::capabilities::Seer;
use queuescope_live::{Counters, Probe, ProbeError, ProbeParams, Slice, now, sketch};
use queuescope_meter::{History, Tau};
use queuescope_monitor::{Acts, Feed, FlowOwners, Listen, Metrics, Screen, Seen as SeenBy, Stopped, View, give_up};
use queuescope_report::model::{Input, Report, Skipped};
use queuescope_report::{json, text};
use queuescope_wire::{Backlog, ByteCount, Flows, Granularity, Nanos};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Packets told that are remembered, and flows.
const DEPARTURES: usize = (1 << 18) - 1;
const MOST_FLOWS: usize = 1 << 16;
/// How long it is waited for packets, and how often is looked for the rest.
const PAUSE: Duration = Duration::from_millis(20);
const LOOK: Nanos = Nanos(250_000_000);
/// How often the kernel's counters are read, at most: a burst loses what was dropped while it lasted, to this time.
const COUNT: Nanos = Nanos(20_000_000);
/// Keys that are read at once.
const KEYS: usize = 64;
/// The longest wait that the probe tells from shorter ones.
const LONGEST: Nanos = Nanos(137_000_000_000);
/// A burst of which nothing was heard for so long, and tau, has ended: who sends packets on may falter meanwhile.
const QUIET: Nanos = Nanos(50_000_000);

/// Runs `live`; `seer` sees the processes of other users.
///
/// # Errors
/// If nothing could be done: no such interface, a kernel or a user that may not look, an output that cannot be written.
pub fn run(args: &Live, seer: Option<Seer>) -> Result<Outcome> {
    check_outputs([], [&args.pcapng])?;
    if !(Nanos(1)..=LONGEST).contains(&tau(args)) {
        bail!("--tau is from 1ns to 137s: no longer waits are measured");
    }
    let mut watch = match Watch::begin(args, seer) {
        Err(why) if matches!(why.downcast_ref(), Some(ProbeError::Stopped)) => {
            note("a signal to stop came before anything was measured");
            return Ok(Outcome::Whole);
        }
        begun => begun?,
    };
    let end = args.time.map_or(Nanos::MAX, |time| now().saturating_add(time));
    let mut look = now();
    while !watch.stop.is_asked() && !watch.is_over() && now() < end {
        let came = watch.take()?;
        if now() >= look {
            look = now().saturating_add(LOOK);
            watch.look()?;
            watch.draw()?;
        }
        watch.keys()?;
        if watch.seen.is_gone || watch.seen.unread {
            break;
        }
        if came == 0 {
            watch.probe.wait(PAUSE)?;
        }
    }
    if watch.stop.is_asked() {
        watch.stop.obey();
    }
    watch.finish()
}

/// An interface that is watched.
struct Watch<'a> {
    probe: Probe,
    params: ProbeParams,
    seen: Seen<'a>,
    analysis: Analysis<Flows, Outputs>,
    stop: Stop,
    /// What a person sees meanwhile.
    view: Option<View>,
    screen: Option<Screen>,
    /// What who monitors is told.
    metrics: Option<Metrics>,
    stopped: Stopped,
}

impl<'a> Watch<'a> {
    fn begin(args: &'a Live, seer: Option<Seer>) -> Result<Self> {
        let flows_asked = focused(&args.keys, &args.question.focus);
        let feed = Feed::new(args.only.as_deref(), flows_asked.mask(), args.keys.inner).map_err(explained)?;
        // Who is no person reads lines.
        let is_json = args.json || !io::stdout().is_terminal();
        let obstacle = if is_json { None } else { Screen::obstacle() };
        let is_drawn = !is_json && obstacle.is_none();
        let stop = if is_drawn { Stop::on_signals_but_first(give_up) } else { Stop::on_signals() }?;
        let params = ProbeParams {
            tau: tau(args),
            alpha: args.question.alpha.0,
            all: args.every_packet,
            ..ProbeParams::default()
        };
        let analysed = analysis_params(args, &params)?;
        let mut probe = Probe::attach_unless(&args.interface, params, &|| stop.is_asked())?;
        let log = QueuedLog::open(&args.queued)?;
        let outputs = Outputs::create(args.pcapng.as_deref(), None, log)?;
        let blank = Analysis::new(flows(args), analysed.clone(), Outputs::default())?;
        let analysis = Analysis::new(flows(args), analysed, outputs)?;
        let metrics = args.metrics.as_ref().map(|at| metrics_at(at, args)).transpose()?;
        // Last, when nothing else can fail.
        let acts = Acts::begin(&args.acting.options(), &mut probe, feed.origin, &note)?;
        let mut seen = Seen {
            args,
            unread: false,
            untold: None,
            is_torn: false,
            acts,
            is_json,
            counted: feed.origin,
            feed,
            owners: FlowOwners::new(&args.interface, flows_asked.granularities(), seer),
            counters: Counters::default(),
            deepest: Backlog::default(),
            is_gone: false,
        };
        // What is known before the first packet: which interface, and how it is watched.
        let blank = seen.report(blank.finish().0);
        seen.tell(|out| json::write_first(&blank, out))?;
        if let Some(obstacle) = obstacle {
            anstream::eprintln!("{obstacle}: bursts are told as they end, and the report at the end (Ctrl-C)");
        }
        // The terminal is taken when there is something to draw.
        let view = is_drawn.then(|| view_of(args, seen.feed.origin)).transpose()?;
        let screen = is_drawn.then(Screen::new).transpose()?;
        Ok(Self { probe, params, seen, analysis, stop, view, screen, metrics, stopped: Stopped::default() })
    }

    /// Takes what the kernel has told, and tells the bursts that ended; how many packets came.
    fn take(&mut self) -> Result<u64> {
        let at = now();
        if at >= self.seen.counted.saturating_add(COUNT) {
            self.count()?;
        }
        let Seen { feed, owners, .. } = &mut self.seen;
        let mut seen = SeenBy { analysis: &mut self.analysis, view: self.view.as_mut(), owners };
        let came = feed.take::<_, anyhow::Error>(&mut self.probe, &mut seen)?;
        self.seen.owners.look();
        // Of so many, there may be more that left before now.
        if came < Probe::AT_ONCE {
            self.analysis.nothing_before(at.saturating_sub(QUIET));
        }
        if came == 0 {
            self.analysis.hand_over()?;
        } else {
            self.analysis.watcher().check()?;
        }
        self.tell_bursts()?;
        Ok(came)
    }

    /// Reads what the kernel has counted. What it dropped since the last time was dropped in between.
    fn count(&mut self) -> Result<()> {
        let since = std::mem::replace(&mut self.seen.counted, now());
        let before = self.seen.counters.dropped;
        self.seen.counters = self.probe.counters()?;
        self.seen.feed.dropped(since, now(), self.seen.counters.dropped.saturating_sub(before));
        Ok(())
    }

    fn tell_bursts(&mut self) -> Result<()> {
        let mut ended = self.analysis.ended(self.seen.feed.origin);
        self.seen.owners.bursts(&mut ended);
        if let Some(view) = &mut self.view {
            ended.iter().for_each(|burst| view.burst(burst));
        }
        if let Some(metrics) = &self.metrics {
            ended.iter().for_each(|burst| metrics.burst(burst));
        }
        if ended.is_empty() {
            return Ok(());
        }
        if self.view.is_none() && !self.seen.is_json {
            return print(
                false,
                |_| Ok(()),
                |mut out| ended.iter().try_for_each(|burst| text::write_burst(burst, &mut out)),
            );
        }
        self.seen.tell(|out| ended.iter().try_for_each(|burst| json::write_burst(burst, out)))
    }

    /// Looks at what the kernel has summed up, and whether the interface is there.
    fn look(&mut self) -> Result<()> {
        self.seen.acts.look(&mut self.probe)?;
        for acting in self.seen.acts.news() {
            // A view shows it.
            if self.view.is_none() {
                note(&acting.meaning);
            }
            self.seen.tell(|out| json::write_acting(&acting, out))?;
        }
        let deepest = &mut self.seen.deepest;
        let mut longest = Nanos::ZERO;
        let slices = slices(&self.probe)?;
        for slice in &slices {
            longest = longest.max(slice.delay_max);
            deepest.packets = deepest.packets.max(u64::from(slice.length_max));
            deepest.bytes = deepest.bytes.max(ByteCount(u64::from(slice.backlog_max)));
        }
        if let Some(view) = &mut self.view {
            view.slices(&slices);
            view.counters(self.seen.counters);
            view.owners(self.seen.owners.first());
            view.acting(self.seen.acts.doing(&self.probe, now())?, now());
            let unwritten: Vec<_> = self.analysis.watcher().unwritten().iter().map(Unwritten::line).collect();
            view.unwritten(&unwritten);
        }
        if let Some(metrics) = &self.metrics {
            metrics.look(self.seen.counters, &self.seen.acts, &slices, now());
        }
        let fitted = self.params.fitted(longest);
        if fitted != self.params {
            self.params = fitted;
            self.probe.set(fitted)?;
        }
        self.seen.is_gone = !self.probe.is_there()?;
        // Not where something is drawn, but when that is over.
        if self.screen.is_none() {
            let metrics = self.metrics.as_ref().and_then(Metrics::stopped);
            let unwritten = self.analysis.watcher().unwritten();
            let unwritten = unwritten.iter().map(Unwritten::news);
            let untold = self.seen.untold();
            let stopped = self.seen.owners.stopped().into_iter().chain(metrics).chain(unwritten).chain(untold);
            self.stopped.tell(stopped, |text| anstream::eprintln!("{text}"));
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<()> {
        match (&mut self.screen, &self.view) {
            (Some(screen), Some(view)) => Ok(screen.draw(view, now())?),
            _ => Ok(()),
        }
    }

    /// Does what keys ask for.
    fn keys(&mut self) -> Result<()> {
        let (Some(screen), Some(view)) = (&mut self.screen, &mut self.view) else { return Ok(()) };
        let mut pressed = false;
        // However fast keys come, the rest goes on.
        for _ in 0..KEYS {
            let Some(key) = screen.keys(Duration::ZERO)? else { break };
            view.key(key, now());
            if view.takes_other() {
                self.seen.acts.pause(&mut self.probe)?;
                view.acting(self.seen.acts.doing(&self.probe, now())?, now());
            }
            pressed = true;
        }
        if pressed { self.draw() } else { Ok(()) }
    }

    /// Who looks on wants no more.
    fn is_over(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_over)
    }

    fn finish(mut self) -> Result<Outcome> {
        // The report stands where the command was given.
        self.screen = None;
        self.seen.acts.end(&mut self.probe)?;
        // What comes from here on is not seen, so that there is an end.
        self.probe.detach()?;
        self.count()?;
        while self.take()? > 0 {}
        self.look()?;
        self.seen.owners.settle();
        self.analysis.nothing_before(Nanos::MAX);
        self.tell_bursts()?;
        let Self { seen, mut analysis, stop, metrics, .. } = self;
        analysis.left_at_once(seen.feed.rest(seen.left()), !seen.is_filtered());
        let (findings, outputs) = analysis.finish();
        let written = outputs.finish()?.ended_by(Some(&stop));
        let mut report = seen.report(findings);
        report.skipped.extend(metrics.iter().flat_map(Metrics::notes));
        report.skipped.extend(written.notes());
        if written.recorded.is_none() {
            report.skipped.extend(stop.note());
        }
        report.skipped.extend(seen.untold());
        let json = |mut out: &mut dyn Write| {
            if seen.is_torn {
                out.write_all(b"\n")?;
            }
            json::write_summary(&report, &mut out)
        };
        let untold = print(seen.is_json, json, |mut out| text::write(&report, &mut out)).err();
        if untold.is_some() {
            // What could not be printed is not lost for that.
            let _ = text::write(&report, &mut anstream::stderr().lock());
        }
        let untold = untold.map(|why| format!("{why:#}")).or_else(|| seen.untold().map(|note| note.meaning));
        let damage: Vec<_> = written.damage().into_iter().chain(untold).collect();
        Ok(Outcome::of((!damage.is_empty()).then(|| damage.join("; "))))
    }
}

/// What was summed up of all queues lately.
fn slices(probe: &Probe) -> Result<Vec<Slice>> {
    let mut slices = Vec::new();
    for queue in 0..Probe::QUEUES {
        slices.extend(probe.slices(queue)?);
    }
    Ok(slices)
}

/// What was seen so far, but for what the analysis makes of it.
struct Seen<'a> {
    args: &'a Live,
    is_json: bool,
    /// Whether nobody reads what is told any more.
    unread: bool,
    /// How many lines could not be told, and why; and whether a part of the last was.
    untold: Option<(u64, String)>,
    is_torn: bool,
    acts: Acts,
    feed: Feed,
    owners: FlowOwners,
    counters: Counters,
    /// When they were read.
    counted: Nanos,
    /// The most bytes and packets in the queue.
    deepest: Backlog,
    is_gone: bool,
}

impl Seen<'_> {
    /// JSON Lines are told as they come, as long as somebody reads; a person is told at the end.
    fn tell(&mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<()> {
        if !self.is_json || self.unread {
            return Ok(());
        }
        // What a disk took of a line before it was full ends there.
        let mut lines = if self.is_torn { vec![b'\n'] } else { Vec::new() };
        write(&mut lines)?;
        let mut out = io::stdout().lock();
        match out.write_all(&lines).and_then(|()| out.flush()) {
            Ok(()) => self.is_torn = false,
            Err(why) if why.kind() == io::ErrorKind::BrokenPipe => self.unread = true,
            Err(why) => {
                let count = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64;
                let (lost, _) = self.untold.get_or_insert_with(|| (0, why.to_string()));
                *lost += count;
                self.is_torn = true;
            }
        }
        Ok(())
    }

    /// Lines that could not be told, since standard output could not be written.
    fn untold(&self) -> Option<Skipped> {
        let (lines, why) = self.untold.as_ref()?;
        noted("lines_unwritten", *lines, &format!("lines that could not be written to standard output: {why}"))
    }

    /// Whether some packets are not examined: of those that are only counted it is not known which are.
    fn is_filtered(&self) -> bool {
        self.args.only.is_some() || self.args.question.focus.victims.is_some()
    }

    /// What left the queue, told or not.
    fn left(&self) -> Backlog {
        Backlog { packets: self.counters.packets, bytes: ByteCount(self.counters.bytes) }
    }

    /// What was found, with what the kernel counted.
    fn report(&self, findings: Findings<Flows>) -> Report {
        let Counters { packets, bytes, dropped, drops, marked, .. } = self.counters;
        let (input, skipped) = (self.input(), self.skipped());
        let source = Source {
            input,
            packets: packets + dropped,
            bytes,
            span: (self.feed.origin, now()),
            super_packets: self.feed.super_packets,
            rate: None,
            aqm: None,
            limit: "the interface's".to_owned(),
            speedup: "1".to_owned(),
            overhead: "none".to_owned(),
            on_link: 0,
            inner: self.args.keys.inner,
            split_gso: true,
            only: self.args.only.clone(),
            knows_drops: false,
            skipped,
        };
        let mut report = findings.report(source);
        "the probe's".clone_into(&mut report.setup.sketch.window_source);
        self.owners.report(&mut report);
        let totals = &mut report.totals;
        let drops = Counters::REASONS.into_iter().zip(drops).filter(|(_, packets)| *packets > 0);
        // Of these it is only known how many there were.
        totals.miss_flows_of(self.feed.rest(self.left()).packets + dropped + self.counters.unseen());
        totals.drops_of_all = self.args.only.is_some();
        totals.drops.extend(drops.map(|(reason, packets)| (reason.to_owned(), packets)));
        if marked > 0 {
            totals.marks.insert("qdisc".to_owned(), marked);
        }
        totals.peak_depth_packets = totals.peak_depth_packets.max(self.deepest.packets);
        totals.peak_depth_bytes = totals.peak_depth_bytes.max(self.deepest.bytes.0);
        report
    }

    fn input(&self) -> Input {
        Input {
            name: self.args.interface.clone(),
            format: "interface".to_owned(),
            first_ns: self.feed.origin.0.saturating_add(self.feed.to_epoch),
            damage: None,
        }
    }

    /// What was not seen, or not told, and why.
    fn skipped(&self) -> Vec<Skipped> {
        let counters = &self.counters;
        let notes = [
            noted("unseen", counters.unseen(), UNSEEN),
            noted("requeued", counters.requeued, REQUEUED),
            noted("requeued_unseen", counters.requeued_unseen, REQUEUED_UNSEEN),
            noted("unstamped", counters.unstamped, UNSTAMPED),
            noted("untold", counters.untold, UNTOLD),
            noted("bulk", counters.bulk, BULK),
            noted("not_ip", counters.other, NOT_IP),
            noted("interface_gone", self.is_gone.into(), GONE),
            noted("unexamined", if self.is_filtered() { self.feed.rest(self.left()).packets } else { 0 }, UNEXAMINED),
        ];
        self.feed
            .notes()
            .chain(notes.into_iter().flatten())
            .chain(self.acts.notes())
            .chain(self.owners.notes())
            .collect()
    }
}

/// What a person sees. Colours as everywhere else in the command.
fn view_of(args: &Live, origin: Nanos) -> Result<View> {
    let is_coloured = anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never;
    let granularity = args.keys.by.first().copied().unwrap_or(Granularity::FiveTuple);
    Ok(View::new(
        &args.interface,
        tau(args),
        (granularity, show(args.question.focus.show.as_deref())?),
        origin,
        is_coloured,
    ))
}

/// Says where the metrics are: a port may have been left to the kernel.
fn metrics_at(at: &Listen, args: &Live) -> Result<Metrics> {
    let (metrics, address) = Metrics::serve(at, &args.interface, tau(args), args.question.alpha.0)?;
    anstream::eprintln!("metrics of {}: http://{address}/metrics", args.interface);
    Ok(metrics)
}

fn tau(args: &Live) -> Nanos {
    args.question.tau.unwrap_or(Nanos(1_000_000))
}

fn flows(args: &Live) -> Flows {
    focused(&args.keys, &args.question.focus).flows(FLOWS)
}

fn analysis_params(args: &Live, probe: &ProbeParams) -> Result<AnalysisParams> {
    let asked = asked(&args.keys, &args.question);
    let params = asked.params(Unknown::OF_OUTSIDE, History::Departures(DEPARTURES), None, Scale::of(None));
    let mut params = params.map_err(of_analysis)?;
    params.tau = Tau::Given(tau(args));
    params.estimators = Vec::new();
    params.sketch = sketch(probe.window_shift);
    params.window_grows = false;
    params.details = true;
    params.hands_out = true;
    params.most_flows = Some(MOST_FLOWS);
    // Processors stamp packets before they wait for the queue's lock, and may be held up in between.
    params.order_tolerance = tau(args);
    Ok(params)
}
