//! The analysis of what passes links of a simulation.

use crate::args::{Keys, Output as OutputArgs, Question, Sketch};
use crate::outcome::both;
use crate::setup::{finish, params};
use crate::source;
use anyhow::{Error, Result};
use queuescope_analysis::{ALPHA, Analysis, DEPARTURES, FLOWS, Scale, Watcher};
use queuescope_ingest::records::{Departures, Unknown, as_departure, numbered, without_flow};
use queuescope_ingest::{Chosen, Listener, Source};
use queuescope_meter::History;
use queuescope_queue::{Dropped, Headers, MarkReason, Sink};
use queuescope_recording::{Outputs, SimulatedLog, Unwritten, Written};
use queuescope_report::model::{Burst, Input, NO_METER, OtherQueue, Report, Skipped};
use queuescope_scenario::{Meter, Overhead};
use queuescope_sim::{LinkId, Observer, OnItsWay, Output, Simulation};
use queuescope_wire::{Departure, FlowKey, Flows, Granularity, KeyMask, Nanos, Packet, QueueId, Rate};

/// What is asked of the queues of a run.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What is run.
    pub name: &'a str,
    /// What that is: a scenario, or the link of a command.
    pub format: &'a str,
    /// What a flow is.
    pub keys: &'a Keys,
    /// What is asked.
    pub question: &'a Question,
    /// The sketch.
    pub sketch: &'a Sketch,
    /// Where the answer goes.
    pub output: &'a OutputArgs,
}

/// All meters of a run.
pub struct Meters {
    /// The one that the report begins with.
    pub first: Metered,
    /// The others, in the order of the scenario.
    pub others: Vec<Metered>,
    /// What passes all links, if it is wanted.
    pub log: Option<SimulatedLog>,
}

/// The analysis of what passes one link.
pub struct Metered {
    link: LinkId,
    name: String,
    rate: Rate,
    /// Bytes that the link adds to each packet.
    on_link: u32,
    /// Whether anything is analysed.
    analyses: bool,
    /// What happens before does not count.
    from: Nanos,
    chosen: Option<Chosen<Departures>>,
    mask: KeyMask,
    analysis: Analysis<Flows, Outputs>,
    packets: u64,
    bytes: u64,
    span: Option<(Nanos, Nanos)>,
    /// What went wrong with the outputs.
    failure: Option<Error>,
}

/// A packet that something happens to, as meters know it.
pub trait Known {
    /// Whose it is.
    fn key(&self) -> FlowKey;

    /// Its bytes, if they are there, for the outputs of a meter that it counts for; told before what happens to it.
    ///
    /// # Errors
    /// Those of the outputs.
    fn read(&self, _packet: &Packet, _analysis: &mut Analysis<Flows, Outputs>) -> Result<()> {
        Ok(())
    }
}

impl Known for OnItsWay {
    fn key(&self) -> FlowKey {
        OnItsWay::key(self)
    }
}

impl Meters {
    /// What went wrong since the last call.
    ///
    /// # Errors
    /// That.
    pub fn check(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), SimulatedLog::check)?;
        self.first.failure.take().map_or(Ok(()), Err)?;
        Ok(self.first.analysis.watcher().check()?)
    }

    /// What was found of all queues, with what was `skipped` on the way here, and what was recorded.
    ///
    /// # Errors
    /// If not all could be written.
    pub fn report(self, asked: Asked<'_>, simulation: &Simulation, skipped: Vec<Skipped>) -> Result<(Report, Written)> {
        let Self { first, others, log } = self;
        let (mut report, outputs) = first.report(asked, simulation, skipped);
        let (written, recorded) = both(
            outputs.finish().map_err(Error::from),
            log.map(SimulatedLog::finish).transpose().map_err(Error::from),
        )?;
        let found = others.into_iter().map(|other| {
            let link = other.name().unwrap_or(NO_METER).to_owned();
            OtherQueue { link, report: other.report(asked, simulation, Vec::new()).0 }
        });
        report.others = found.collect();
        Ok((report, Written { recorded: recorded.or(written.recorded), unwritten: written.unwritten }))
    }

    #[inline]
    fn each(&mut self) -> impl Iterator<Item = &mut Metered> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}

impl Metered {
    /// Of a link, or of nothing: of all packets, or of those that are chosen. What the command line leaves as it is by
    /// default, the scenario's `own` meter says.
    ///
    /// # Errors
    /// If no sketch can be as asked for.
    pub fn new(
        args: Asked<'_>,
        simulation: &Simulation,
        (link, analyses): (LinkId, bool),
        own: Option<&Meter>,
        chosen: Option<Chosen<Departures>>,
        outputs: Outputs,
    ) -> Result<Self> {
        let here = simulation.topology().link(link);
        let rate = here.rate.mean();
        // What a packet met in the queue is not what was chosen of it.
        let is_whole = simulation.is_fifo(link) && chosen.is_none();
        let history = if is_whole { History::Fifo } else { History::Departures(DEPARTURES) };
        let (question, keys) = asked(args, own);
        let scale = Scale::of(Some(rate));
        let mut params = params((&question, args.sketch, args.output), Unknown::NOTHING, history, Some(rate), scale)?;
        if !simulation.is_fifo(link) {
            params = params.in_any_order();
        }
        Ok(Self {
            link,
            name: here.name.clone(),
            rate,
            on_link: here.overhead,
            analyses,
            from: simulation.warmup(),
            mask: source::mask(&keys, &question.focus),
            analysis: Analysis::new(source::flows(&keys, &question.focus, FLOWS), params, outputs)?,
            chosen,
            packets: 0,
            bytes: 0,
            span: None,
            failure: None,
        })
    }

    /// The name of the link, if it is analysed.
    pub fn name(&self) -> Option<&str> {
        self.analyses.then_some(&self.name)
    }

    /// Whether who looks on sees that a packet left the queue of a link: what is too early to count, too.
    pub fn is_seen(&mut self, link: LinkId, left: &Departure, passing: &impl Known) -> bool {
        let mut is_chosen = || {
            let chosen = self.chosen.as_mut();
            chosen.is_none_or(|chosen| chosen.holds_uncounted(&without_flow(left), &passing.key()))
        };
        link == self.link && self.analyses && is_chosen()
    }

    /// Whether this is the link whose queue it is about.
    pub fn is_of(&self, link: LinkId) -> bool {
        link == self.link && self.analyses
    }

    /// From now on each burst is handed out as it ends.
    pub fn hand_out_bursts(&mut self) {
        self.analysis.hand_out_bursts();
    }

    /// The bursts that have ended at `now`, and were not handed out before.
    pub fn ended(&mut self, now: Nanos) -> Vec<Burst> {
        self.analysis.nothing_before(now);
        self.analysis.ended(Nanos::ZERO)
    }

    /// From which delay on the queue is congested.
    pub fn tau(&self) -> Nanos {
        self.analysis.tau()
    }

    /// What could not be written so far.
    pub fn unwritten(&mut self) -> Vec<Unwritten> {
        self.analysis.watcher().unwritten()
    }

    /// What was found, with what was `skipped` on the way here.
    pub fn report(self, args: Asked<'_>, simulation: &Simulation, mut skipped: Vec<Skipped>) -> (Report, Outputs) {
        skipped.extend(self.chosen.as_ref().and_then(Chosen::note));
        let (discipline, _) = simulation.discipline(self.link);
        let source = Source {
            input: Input {
                name: args.name.to_owned(),
                format: args.format.to_owned(),
                first_ns: self.span.map_or(0, |(first, _)| first.0),
                damage: None,
            },
            packets: self.packets,
            bytes: self.bytes,
            span: self.span.unwrap_or_default(),
            super_packets: 0,
            rate: Some(self.rate),
            aqm: None,
            limit: discipline.to_owned(),
            speedup: "1".to_owned(),
            overhead: if self.on_link == 0 { Overhead::None } else { Overhead::Bytes(self.on_link) }.to_string(),
            on_link: self.on_link,
            inner: false,
            split_gso: false,
            only: self.chosen.as_ref().map(|chosen| chosen.text().to_owned()),
            knows_drops: true,
            skipped,
        };
        finish(self.analysis, source)
    }

    /// Whether what happens on `link` at `at` counts here.
    #[inline]
    fn watches(&self, link: LinkId, at: Nanos) -> bool {
        link == self.link && self.analyses && at >= self.from
    }

    /// Whether a departure is one of those that are chosen.
    #[inline]
    fn means(&mut self, departure: &Departure, passing: &impl Known) -> bool {
        self.chosen.as_mut().is_none_or(|chosen| chosen.holds(&without_flow(departure), &passing.key()))
    }

    /// Whether a mark is of a packet that is chosen, as far as that is known when it is marked.
    #[inline]
    fn means_mark(&mut self, marked: &Packet, passing: &impl Known, now: Nanos) -> bool {
        self.chosen.as_mut().is_none_or(|chosen| {
            let left = as_departure(*marked, QueueId::default(), (now, now));
            chosen.holds_uncounted(&without_flow(&left), &passing.key())
        })
    }

    /// The packet as the analysis knows it, which is told what it is.
    fn packet(&mut self, packet: Packet, passing: &impl Known, from: Nanos, now: Nanos) -> Packet {
        self.packets += 1;
        self.bytes += packet.size.0;
        let (first, _) = self.span.unwrap_or((from, now));
        self.span = Some((first.min(from), now));
        if self.failure.is_none() {
            self.failure = passing.read(&packet, &mut self.analysis).err();
        }
        let flow = self.analysis.intern(&self.mask.mask(&passing.key()), now);
        Packet { flow, ..packet }
    }
}

/// What meters are told, whoever the packet is known to be.
impl Meters {
    /// A packet left the queue of a link.
    #[inline]
    pub fn left(&mut self, link: LinkId, departure: &Departure, passing: &impl Known) {
        for meter in self.each() {
            if meter.watches(link, departure.enqueued) && meter.means(departure, passing) {
                let known = meter.packet(departure.packet, passing, departure.enqueued, departure.dequeued);
                meter.analysis.departed(&Departure { packet: known, ..*departure });
            }
        }
    }

    /// A packet was dropped there.
    pub fn got_dropped(&mut self, link: LinkId, dropped: &Dropped, passing: &impl Known) {
        for meter in self.each() {
            let enqueued = dropped.enqueued.unwrap_or(dropped.at);
            let left = as_departure(dropped.packet, dropped.queue, (enqueued, dropped.at));
            if meter.watches(link, dropped.at) && meter.means(&left, passing) {
                let known = meter.packet(dropped.packet, passing, enqueued, dropped.at);
                meter.analysis.dropped(&Dropped { packet: known, ..*dropped });
            }
        }
    }

    /// A packet was marked there; `marked` shows it as it is now.
    pub fn got_marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, passing: &impl Known) {
        for meter in self.each() {
            if meter.watches(link, now) && meter.means_mark(marked, passing, now) {
                meter.analysis.marked(marked, reason, now);
            }
        }
    }
}

impl Observer for Meters {
    #[inline]
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &OnItsWay, headers: &Headers) {
        if let Some(log) = &mut self.log {
            log.departed(link, departure, packet, headers);
        }
        let departure = Departure { packet: numbered(departure.packet), ..*departure };
        self.left(link, &departure, packet);
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &OnItsWay, headers: &Headers) {
        if let Some(log) = &mut self.log {
            log.dropped(link, dropped, packet, headers);
        }
        self.got_dropped(link, &Dropped { packet: numbered(dropped.packet), ..*dropped }, packet);
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &OnItsWay) {
        if let Some(log) = &mut self.log {
            log.marked(link, marked, packet);
        }
        self.got_marked(link, &numbered(*marked), reason, now, packet);
    }
}

/// What is asked of the queue: what the command line leaves as it is by default, the scenario's meter says.
fn asked(args: Asked<'_>, own: Option<&Meter>) -> (Question, Keys) {
    let (mut question, mut keys) = (args.question.clone(), args.keys.clone());
    if let Some(meter) = own {
        question.tau = question.tau.or(meter.tau);
        if question.alpha.0 == ALPHA {
            question.alpha.0 = meter.alpha;
        }
        if keys.by == Keys::DEFAULT && meter.by != Granularity::FiveTuple {
            keys.by = vec![meter.by];
        }
    }
    (question, keys)
}
