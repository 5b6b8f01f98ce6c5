//! Makes a report of a capture in one call.

use crate::analysis::{Analysis, AnalysisParams, DEPARTURES, Scale};
use crate::index::FLOWS;
use crate::options::AnalysisOptions;
use crate::show::ShowError;
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{self as ingest, Listener, OpenedCapture, Queue, Source};
use queuescope_meter::History;
use queuescope_queue::Limit;
use queuescope_report::model::Report;
use queuescope_sim::{Aqm, Output, Speedup};
use queuescope_sketch::ParamsError;
use queuescope_wire::{Departure, FlowKey, Flows, Granularity, KeyMask, Nanos, Packet, Rate};
use std::io::Read;
use std::path::Path;

/// Makes a report of a capture, or of departures, with the defaults of the command `queuescope analyze`.
///
/// ```
/// use queuescope_analysis::Analyzer;
/// use queuescope_wire::{ByteCount, Departure, Family, FlowKey, Nanos, Packet, PacketId};
///
/// // A bulk transfer sends 100 packets at once; each takes 0.12 ms on the link.
/// let bulk = FlowKey { src_port: 80, dst_port: 50_000, protocol: 6, family: Family::V4, ..FlowKey::default() };
/// let departures = (0..100).map(|n| {
///     let packet = Packet { id: PacketId(n), size: ByteCount(1500), ..Packet::default() };
///     (bulk, Departure { packet, dequeued: Nanos(n * 120_000), ..Departure::default() })
/// });
/// let report = Analyzer::new("100mbps".parse()?).run_departures(departures)?;
/// assert_eq!(report.bursts[0].peak_delay_ns, 99 * 120_000);
/// assert_eq!(report.bursts[0].culprits[0].flows[0].share, 1.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Analyzer {
    rate: Rate,
    queue: Queue,
    only: Option<String>,
    options: AnalysisOptions,
}

impl Analyzer {
    /// Creates an analyzer for a queue that a link of this rate drains.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            queue: Queue::default(),
            only: None,
            options: AnalysisOptions { details: true, ..AnalysisOptions::default() },
        }
    }

    /// Sets what a flow is, at one granularity or several. The default is five-tuples and destinations.
    ///
    /// # Panics
    /// Panics if there is no granularity.
    #[must_use]
    pub fn by(mut self, granularities: impl IntoIterator<Item = Granularity>) -> Self {
        self.options.by = granularities.into_iter().collect();
        assert!(!self.options.by.is_empty(), "flows need a granularity");
        self
    }

    /// Sets the queue that the packets of a capture pass, and how they arrive at it.
    #[must_use]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the limit of the queue. The default is what the link sends in a second.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.queue.limit = limit;
        self
    }

    /// Sets the discipline or switch program that manages the queue of a capture. The default is tail-drop. The captured
    /// senders do not react to drops and marks; the report has a note on that.
    ///
    /// ```no_run
    /// use queuescope_analysis::Analyzer;
    ///
    /// let report = Analyzer::new("100mbps".parse()?).aqm("codel,target=10ms".parse()?).run_file("trace.pcap.gz")?;
    /// println!("CoDel drops {:?}", report.totals.drops);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn aqm(mut self, aqm: Aqm) -> Self {
        self.queue.aqm = Some(aqm);
        self
    }

    /// Sends the packets of a capture faster than they were captured, by a factor.
    #[must_use]
    pub fn speedup(mut self, speedup: Speedup) -> Self {
        self.queue.speedup = speedup;
        self
    }

    /// Lets only packets of a capture that match an expression enter the queue, such as `tcp and dst_port == 443`.
    #[must_use]
    pub fn only(mut self, expression: impl Into<String>) -> Self {
        self.only = Some(expression.into());
        self
    }

    /// Examines only the waiting of packets that match an expression. Culprits are any packets in the queue.
    #[must_use]
    pub fn victims(mut self, expression: impl Into<String>) -> Self {
        self.options.victims = Some(expression.into());
        self
    }

    /// Lists only flows that match an expression. Shares are still of the whole queue.
    #[must_use]
    pub fn show(mut self, expression: impl Into<String>) -> Self {
        self.options.show = Some(expression.into());
        self
    }

    /// Sets the least delay at which the queue is congested. The default is an eighth of the longest delay so far, and at
    /// least the transmission time of ten full packets.
    #[must_use]
    pub fn tau(mut self, tau: Nanos) -> Self {
        self.options.tau = Some(tau);
        self
    }

    /// Sets the least share of the queue at which a flow is a culprit, from 0 to 1. The default is [`ALPHA`](crate::ALPHA).
    #[must_use]
    pub fn alpha(mut self, share: f64) -> Self {
        self.options.alpha = share;
        self
    }

    /// Draws the depth of the queue over time, as the report's `series`.
    #[must_use]
    pub fn pictures(mut self) -> Self {
        self.options.pictures = true;
        self
    }

    /// Makes the report of a capture: pcap or pcapng, plain or compressed. Damage of the capture, and what was skipped, is
    /// in the report.
    ///
    /// # Errors
    /// Fails if the input is not a capture, or if an expression is invalid.
    pub fn run(&self, capture: impl Read + Send + 'static) -> Result<Report, Error> {
        let only = self.only.as_deref();
        self.replay(OpenedCapture::from_reader(capture, "the capture", self.rate, only)?)
    }

    /// Makes the report of a capture file; `-` is standard input.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a capture, or if an expression is invalid.
    pub fn run_file(&self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.replay(OpenedCapture::open(path.as_ref(), self.rate, self.only.as_deref(), None)?)
    }

    /// Makes the report of packets that left a queue, in the order in which they left. The backlog that a packet met is
    /// computed from the departures; their `backlog_in` and flow ids are ignored.
    ///
    /// # Errors
    /// Fails if an expression is invalid.
    pub fn run_departures(&self, departures: impl IntoIterator<Item = (FlowKey, Departure)>) -> Result<Report, Error> {
        let scale = Scale::of(Some(self.rate));
        let params = self.params(History::Departures(DEPARTURES), scale)?;
        let mut analysis = Analysis::new(self.flows(), params, ())?;
        let mask = self.mask();
        let mut source = Source::of_departures("departures", self.rate);
        for (key, departure) in departures {
            let flow = analysis.intern(&mask.mask(&key), departure.dequeued);
            source.left(&departure);
            analysis.departed(&Departure { packet: Packet { flow, ..departure.packet }, ..departure });
        }
        Ok(analysis.finish().0.report(source))
    }

    fn replay(&self, capture: OpenedCapture) -> Result<Report, Error> {
        let params = self.params(History::Fifo, Scale::of_queue(self.rate, self.queue.limit))?;
        let params = if self.queue.is_fifo() { params } else { params.in_any_order() };
        let mut analysis = Analysis::new(self.flows(), params, ())?;
        let Ok(source) = capture.replay(&self.queue, self.mask(), &mut analysis, &mut |_, _| ());
        Ok(analysis.finish().0.report(source))
    }

    fn params(&self, history: History, scale: Scale) -> Result<AnalysisParams, Error> {
        self.options.params(Unknown::NOTHING, history, Some(self.rate), scale)
    }

    /// The parts of flow keys to keep.
    fn mask(&self) -> KeyMask {
        if self.queue.managed().is_some() { KeyMask::WHOLE } else { self.options.mask() }
    }

    fn flows(&self) -> Flows {
        Flows::masked(self.mask(), &self.options.granularities(), FLOWS)
    }
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input cannot be read, or the expression that chooses packets is invalid.
    #[error(transparent)]
    Input(#[from] ingest::Error),
    /// The expression that chooses flows is invalid.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// The dimensions of the sketch are invalid.
    #[error(transparent)]
    Sketch(#[from] ParamsError),
}
