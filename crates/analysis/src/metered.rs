//! Analyses the queues of links of a simulation.

use crate::analysis::{Analysis, DEPARTURES, Scale, Watcher};
use crate::analyzer::Error;
use crate::index::FLOWS;
use crate::options::AnalysisOptions;
use queuescope_ingest::records::{Departures, Unknown, as_departure, numbered, without_flow};
use queuescope_ingest::{Listener, PacketFilter, Source};
use queuescope_meter::History;
use queuescope_queue::{Dropped, Headers, MarkReason, Sink};
use queuescope_report::model::{Burst, Input, NO_METER, OtherQueue, Report, Skipped};
use queuescope_scenario::{Meter, Overhead};
use queuescope_sim::{InFlight, LinkId, Observer, Output, Simulation};
use queuescope_wire::{Departure, FlowKey, Flows, KeyMask, Nanos, Packet, QueueId, Rate};

/// The name of a run, and how its queues are analysed.
#[derive(Debug, Clone)]
pub struct MeteringOptions {
    /// The name of the run, for the report.
    pub name: String,
    /// The kind of the run: a scenario, or the link of a command.
    pub format: &'static str,
    /// How queues are analysed.
    pub options: AnalysisOptions,
    /// Which packets are treated as being in the queues; all if it is `None`.
    pub chosen: Option<PacketFilter<Departures>>,
}

/// Which meters a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedMeters {
    /// The link whose queue the report is about first.
    pub first: LinkId,
    /// Whether its queue is analysed. If not, the report has only links and flows.
    pub analyses: bool,
    /// Whether the scenario's other meters analyse their queues too.
    pub others: bool,
}

/// All meters of a run. Each has a [`Watcher`].
pub struct Meters<W: Watcher> {
    /// The meter that the report is about first.
    pub first: Metered<W>,
    /// The others, in the order of the scenario.
    pub others: Vec<Metered<W>>,
}

/// A meter: the analysis of one link's queue.
pub struct Metered<W: Watcher> {
    link: LinkId,
    name: String,
    rate: Rate,
    /// Bytes that the link adds to each packet.
    on_link: u32,
    /// Whether the queue is analysed.
    analyses: bool,
    /// The end of the warm-up: earlier events do not count.
    from: Nanos,
    chosen: Option<PacketFilter<Departures>>,
    mask: KeyMask,
    analysis: Analysis<Flows, W>,
    packets: u64,
    bytes: u64,
    span: Option<(Nanos, Nanos)>,
    /// An error of the watcher that was not returned yet.
    failure: Option<W::Error>,
}

/// A packet of a simulation, as meters see it.
pub trait Known {
    /// The key of its flow.
    fn key(&self) -> FlowKey;

    /// Passes the bytes of the packet, if there are any, to the analysis of a meter. Called before the event of the packet,
    /// for each meter that counts it.
    ///
    /// # Errors
    /// Returns the error of the watcher.
    fn read<W: Watcher>(&self, _packet: &Packet, _analysis: &mut Analysis<Flows, W>) -> Result<(), W::Error> {
        Ok(())
    }
}

impl Known for InFlight {
    fn key(&self) -> FlowKey {
        InFlight::key(self)
    }
}

impl<W: Watcher> Meters<W> {
    /// Creates the meter of the first link, and those of the other links with meters in the scenario, if they are wanted.
    /// `links` are the links of the scenario's `meters`, in the same order. A link has the settings of its meter in the
    /// scenario even if it is the only one that is wanted.
    ///
    /// # Errors
    /// Fails if the dimensions of the sketch are invalid, or if an expression is invalid.
    pub fn new(
        asked: &MeteringOptions,
        simulation: &Simulation,
        wanted: WantedMeters,
        links: &[LinkId],
        meters: &[Meter],
        watcher: W,
    ) -> Result<Self, Error>
    where
        W: Default,
    {
        let pairs = || links.iter().zip(meters);
        let own = pairs().find_map(|(watched, own)| (*watched == wanted.first).then_some(own));
        let first = Metered::new(asked, simulation, wanted.first, wanted.analyses, own, watcher)?;
        let others = pairs().skip(1).filter(|_| wanted.others);
        let others = others.map(|(link, own)| Metered::new(asked, simulation, *link, true, Some(own), W::default()));
        Ok(Self { first, others: others.collect::<Result<_, _>>()? })
    }

    /// Reports an error of the first meter's watcher since the last call.
    ///
    /// # Errors
    /// Returns that error.
    pub fn check(&mut self) -> Result<(), W::Error> {
        self.first.failure.take().map_or(Ok(()), Err)?;
        self.first.analysis.watcher().check()
    }

    /// Makes the report on all queues, with notes on what was `skipped` before. Also returns the watcher of the first meter.
    pub fn report(self, asked: &MeteringOptions, simulation: &Simulation, skipped: Vec<Skipped>) -> (Report, W) {
        let (mut report, watcher) = self.first.report(asked, simulation, skipped);
        let others = self.others.into_iter().map(|other| {
            let link = other.name().unwrap_or(NO_METER).to_owned();
            OtherQueue { link, report: other.report(asked, simulation, Vec::new()).0 }
        });
        report.others = others.collect();
        (report, watcher)
    }

    #[inline]
    fn each(&mut self) -> impl Iterator<Item = &mut Metered<W>> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }
}

impl<W: Watcher> Metered<W> {
    /// Creates the meter of a link, which analyses nothing if `analyses` is false. Values of the scenario's `own` meter
    /// replace options that have their defaults.
    ///
    /// # Errors
    /// Fails if the dimensions of the sketch are invalid, or if an expression is invalid.
    pub fn new(
        asked: &MeteringOptions,
        simulation: &Simulation,
        link: LinkId,
        analyses: bool,
        own: Option<&Meter>,
        watcher: W,
    ) -> Result<Self, Error> {
        let here = simulation.topology().link(link);
        let rate = here.rate.mean();
        let is_whole = simulation.is_fifo(link) && asked.chosen.is_none();
        let history = if is_whole { History::Fifo } else { History::Departures(DEPARTURES) };
        let options = own.map_or_else(|| asked.options.clone(), |meter| asked.options.with_meter(meter));
        let mut params = options.params(Unknown::NOTHING, history, Some(rate), Scale::from_rate(Some(rate)))?;
        if !simulation.is_fifo(link) {
            params = params.in_any_order();
        }
        // The link knows the backlog of its queue, but not how much of it the chosen packets are.
        params.backlog_is_known = asked.chosen.is_none();
        params.not_judged = None;
        Ok(Self {
            link,
            name: here.name.clone(),
            rate,
            on_link: here.overhead,
            analyses,
            from: simulation.warmup(),
            mask: options.mask(),
            analysis: Analysis::new(options.flows(FLOWS), params, watcher)?,
            chosen: asked.chosen.clone(),
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

    /// Whether a view shows a packet that left the queue of a link. This includes packets of the warm-up, which do not
    /// count.
    pub fn is_seen(&mut self, link: LinkId, left: &Departure, passing: &impl Known) -> bool {
        let mut is_chosen = || {
            let chosen = self.chosen.as_mut();
            chosen.is_none_or(|chosen| chosen.holds_uncounted(&without_flow(left), &passing.key()))
        };
        link == self.link && self.analyses && is_chosen()
    }

    /// Whether this meter analyses the queue of a link.
    pub fn is_of(&self, link: LinkId) -> bool {
        link == self.link && self.analyses
    }

    /// Makes [`ended`](Self::ended) return bursts from now on.
    pub fn hand_out_bursts(&mut self) {
        self.analysis.hand_out_bursts();
    }

    /// The bursts that have ended by `now`, and were not returned before.
    pub fn ended(&mut self, now: Nanos) -> Vec<Burst> {
        self.analysis.nothing_before(now);
        self.analysis.ended(Nanos::ZERO)
    }

    /// The least delay at which the queue is congested.
    pub fn tau(&self) -> Nanos {
        self.analysis.tau()
    }

    /// Its watcher.
    pub fn watcher(&mut self) -> &mut W {
        self.analysis.watcher()
    }

    /// Makes the report on the queue, with notes on what was `skipped` before. Also returns the watcher.
    pub fn report(self, asked: &MeteringOptions, simulation: &Simulation, mut skipped: Vec<Skipped>) -> (Report, W) {
        skipped.extend(self.chosen.as_ref().and_then(PacketFilter::note));
        let (discipline, _) = simulation.discipline(self.link);
        let source = Source {
            input: Input {
                name: asked.name.clone(),
                format: asked.format.to_owned(),
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
            read_error: None,
        };
        let (findings, watcher) = self.analysis.finish();
        (findings.report(source), watcher)
    }

    /// Whether an event on `link` at `at` counts for this meter.
    #[inline]
    fn watches(&self, link: LinkId, at: Nanos) -> bool {
        link == self.link && self.analyses && at >= self.from
    }

    /// Whether the filter of packets matches a departure.
    #[inline]
    fn means(&mut self, departure: &Departure, passing: &impl Known) -> bool {
        self.chosen.as_mut().is_none_or(|chosen| chosen.holds(&without_flow(departure), &passing.key()))
    }

    /// Whether the filter of packets matches a marked packet, by what is known when it is marked.
    #[inline]
    fn means_mark(&mut self, marked: &Packet, passing: &impl Known, now: Nanos) -> bool {
        self.chosen.as_mut().is_none_or(|chosen| {
            let left = as_departure(*marked, QueueId::default(), now, now);
            chosen.holds_uncounted(&without_flow(&left), &passing.key())
        })
    }

    /// The packet with the flow id of the analysis. Passes its bytes to the analysis first.
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

/// Events of packets.
impl<W: Watcher> Meters<W> {
    /// A packet left the queue of `link`.
    #[inline]
    pub fn left(&mut self, link: LinkId, departure: &Departure, passing: &impl Known) {
        for meter in self.each() {
            if meter.watches(link, departure.enqueued) && meter.means(departure, passing) {
                let known = meter.packet(departure.packet, passing, departure.enqueued, departure.dequeued);
                meter.analysis.departed(&Departure { packet: known, ..*departure });
            }
        }
    }

    /// A packet was dropped at the queue of `link`.
    pub fn got_dropped(&mut self, link: LinkId, dropped: &Dropped, passing: &impl Known) {
        for meter in self.each() {
            let enqueued = dropped.enqueued.unwrap_or(dropped.at);
            let left = as_departure(dropped.packet, dropped.queue, enqueued, dropped.at);
            if meter.watches(link, dropped.at) && meter.means(&left, passing) {
                let known = meter.packet(dropped.packet, passing, enqueued, dropped.at);
                meter.analysis.dropped(&Dropped { packet: known, ..*dropped });
            }
        }
    }

    /// A packet was marked at the queue of `link`; `marked` is the packet after that.
    pub fn got_marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, passing: &impl Known) {
        for meter in self.each() {
            if meter.watches(link, now) && meter.means_mark(marked, passing, now) {
                meter.analysis.marked(marked, reason, now);
            }
        }
    }
}

impl<W: Watcher> Observer for Meters<W> {
    #[inline]
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &InFlight, _headers: &Headers) {
        let departure = Departure { packet: numbered(departure.packet), ..*departure };
        self.left(link, &departure, packet);
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &InFlight, _headers: &Headers) {
        self.got_dropped(link, &Dropped { packet: numbered(dropped.packet), ..*dropped }, packet);
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &InFlight) {
        self.got_marked(link, &numbered(*marked), reason, now, packet);
    }
}
