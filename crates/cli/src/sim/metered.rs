//! The analysis of what passes links of a simulation.

use super::queued::Queued;
use crate::analysis::Analysis;
use crate::args::{DEFAULT_ALPHA, Keys, Question, Sim};
use crate::chosen::Chosen;
use crate::outputs::Outputs;
use crate::records::Departures;
use crate::setup::{FLOWS, Scale, finish, params};
use crate::source::{self, Listener, Source};
use anyhow::Result;
use queuescope_meter::History;
use queuescope_queue::{Dropped, Headers, MarkReason, Sink};
use queuescope_report::model::{Input, Report, Skipped};
use queuescope_scenario::Meter;
use queuescope_sim::{LinkId, Observer, OnItsWay, Output, Simulation, number};
use queuescope_wire::{
    Backlog, Departure, FlowId, Flows, Granularity, KeyMask, Nanos, Packet, PacketId, QueueId, Rate,
};

/// Departures that are remembered where packets leave in any order.
const DEPARTURES: usize = 1 << 20;
/// Where packets leave in any order, how fast the longest wait is forgotten unless told otherwise.
const ACROSS_CLASSES: Nanos = Nanos(100_000_000);

/// All meters of a run.
pub struct Meters {
    /// The one that the report begins with.
    pub first: Metered,
    /// The others, in the order of the scenario.
    pub others: Vec<Metered>,
    /// What passes all links, if it is wanted.
    pub log: Option<Queued>,
}

/// The analysis of what passes one link.
pub struct Metered {
    link: LinkId,
    name: String,
    rate: Rate,
    /// Whether anything is analysed.
    analyses: bool,
    /// What happens before does not count.
    from: Nanos,
    question: Question,
    chosen: Option<Chosen<Departures>>,
    mask: KeyMask,
    analysis: Analysis<Flows, Outputs>,
    packets: u64,
    bytes: u64,
    span: Option<(Nanos, Nanos)>,
}

impl Meters {
    /// What went wrong since the last call.
    ///
    /// # Errors
    /// That.
    pub fn check(&mut self) -> Result<()> {
        self.log.as_mut().map_or(Ok(()), Queued::check)?;
        self.first.analysis.check()
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
        args: &Sim,
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
        let granularities = source::granularities(&keys);
        let scale = Scale::of(Some(rate));
        let mut params = params((&question, &args.sketch, &args.output), history, Some(rate), scale)?;
        if !simulation.is_fifo(link) {
            // Packets of one queue pass those of another: a burst is when the slowest of them wait.
            params.across_classes = params.across_classes.or(Some(ACROSS_CLASSES));
        }
        Ok(Self {
            link,
            name: here.name.clone(),
            rate,
            analyses,
            from: simulation.warmup(),
            question,
            chosen,
            mask: KeyMask::covering(&granularities),
            analysis: Analysis::new(Flows::new(&granularities, FLOWS), params, outputs)?,
            packets: 0,
            bytes: 0,
            span: None,
        })
    }

    /// The name of the link, if it is analysed.
    pub fn name(&self) -> Option<&str> {
        self.analyses.then_some(&self.name)
    }

    /// What was found, with what was `skipped` on the way here.
    pub fn report(self, args: &Sim, simulation: &Simulation, mut skipped: Vec<Skipped>) -> (Report, Outputs) {
        skipped.extend(self.chosen.as_ref().and_then(Chosen::note));
        let (discipline, _) = simulation.discipline(self.link);
        let source = Source {
            input: Input {
                name: args.scenario.display().to_string(),
                format: "scenario".to_owned(),
                first_ns: self.span.map_or(0, |(first, _)| first.0),
                damage: None,
            },
            packets: self.packets,
            bytes: self.bytes,
            span: self.span.unwrap_or_default(),
            super_packets: 0,
            rate: Some(self.rate),
            limit: discipline.to_owned(),
            speedup: "1".to_owned(),
            overhead: "none".to_owned(),
            inner: false,
            split_gso: false,
            skipped,
        };
        finish(self.analysis, source, &self.question, &args.sketch)
    }

    /// Whether what happens on `link` at `at` counts here.
    #[inline]
    fn watches(&self, link: LinkId, at: Nanos) -> bool {
        link == self.link && self.analyses && at >= self.from
    }

    /// Whether a departure is one of those that are chosen.
    #[inline]
    fn means(&mut self, departure: &Departure, packet: &OnItsWay) -> bool {
        self.chosen.as_mut().is_none_or(|chosen| chosen.holds(&as_told(departure), &packet.key()))
    }

    /// Whether a mark is of a packet that is chosen, as far as that is known when it is marked.
    #[inline]
    fn means_mark(&mut self, marked: &Packet, packet: &OnItsWay, now: Nanos) -> bool {
        self.chosen.as_mut().is_none_or(|chosen| {
            let left = departure(*marked, QueueId::default(), (now, now));
            chosen.holds_uncounted(&as_told(&left), &packet.key())
        })
    }

    /// The packet as the analysis knows it.
    fn packet(&mut self, packet: Packet, on_its_way: &OnItsWay, from: Nanos, now: Nanos) -> Packet {
        self.packets += 1;
        self.bytes += packet.size.0;
        let (first, _) = self.span.unwrap_or((from, now));
        self.span = Some((first.min(from), now));
        let flow = self.analysis.intern(&self.mask.mask(&on_its_way.key()), now);
        Packet { id: PacketId(number(packet.id)), flow, ..packet }
    }
}

impl Observer for Meters {
    #[inline]
    fn departed(&mut self, link: LinkId, departure: &Departure, packet: &OnItsWay, headers: &Headers) {
        if let Some(log) = &mut self.log {
            log.departed(link, departure, packet, headers);
        }
        for meter in self.each() {
            if meter.watches(link, departure.enqueued) && meter.means(departure, packet) {
                let known = meter.packet(departure.packet, packet, departure.enqueued, departure.dequeued);
                meter.analysis.departed(&Departure { packet: known, ..*departure });
            }
        }
    }

    fn dropped(&mut self, link: LinkId, dropped: &Dropped, packet: &OnItsWay, headers: &Headers) {
        if let Some(log) = &mut self.log {
            log.dropped(link, dropped, packet, headers);
        }
        for meter in self.each() {
            let enqueued = dropped.enqueued.unwrap_or(dropped.at);
            let left = departure(dropped.packet, dropped.queue, (enqueued, dropped.at));
            if meter.watches(link, dropped.at) && meter.means(&left, packet) {
                let known = meter.packet(dropped.packet, packet, enqueued, dropped.at);
                meter.analysis.dropped(&Dropped { packet: known, ..*dropped });
            }
        }
    }

    fn marked(&mut self, link: LinkId, marked: &Packet, reason: MarkReason, now: Nanos, packet: &OnItsWay) {
        if let Some(log) = &mut self.log {
            log.marked(link, marked, packet);
        }
        for meter in self.each() {
            if meter.watches(link, now) && meter.means_mark(marked, packet, now) {
                meter.analysis.marked(marked, reason, now);
            }
        }
    }
}

/// What is known of a packet that did not leave the queue, as if it had.
pub(super) fn departure(packet: Packet, queue: QueueId, (enqueued, dequeued): (Nanos, Nanos)) -> Departure {
    let none = Backlog::default();
    Departure { packet, queue, enqueued, dequeued, backlog_in: none, backlog_out: none }
}

/// A departure as expressions know it: by the packet's number, and without the simulation's own numbers of flows.
pub(super) fn as_told(departure: &Departure) -> Departure {
    let packet = departure.packet;
    Departure { packet: Packet { id: PacketId(number(packet.id)), flow: FlowId(0), ..packet }, ..*departure }
}

/// What is asked of the queue: what the command line leaves as it is by default, the scenario's meter says.
fn asked(args: &Sim, own: Option<&Meter>) -> (Question, Keys) {
    let (mut question, mut keys) = (args.question.clone(), args.keys.clone());
    if let Some(meter) = own {
        question.tau = question.tau.or(meter.tau);
        if question.alpha.0 == DEFAULT_ALPHA {
            question.alpha.0 = meter.alpha;
        }
        if keys.by == Keys::DEFAULT && meter.by != Granularity::FiveTuple {
            keys.by = vec![meter.by];
        }
    }
    (question, keys)
}
