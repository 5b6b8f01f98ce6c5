//! The short way from a capture to a report.

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
    /// Of a link that drains its queue at this rate.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            queue: Queue::default(),
            only: None,
            options: AnalysisOptions { details: true, ..AnalysisOptions::default() },
        }
    }

    /// What a flow is, at one granularity or several; unless set, five-tuples and destinations.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn by(mut self, granularities: impl IntoIterator<Item = Granularity>) -> Self {
        self.options.by = granularities.into_iter().collect();
        assert!(!self.options.by.is_empty(), "flows need a granularity");
        self
    }

    /// The queue that the packets of a capture pass, and how they come to it.
    #[must_use]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self
    }

    /// What the queue holds at most; unless set, what the link sends in a second.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.queue.limit = limit;
        self
    }

    /// What manages the queue that the packets of a capture pass; unless set, it is a tail-drop queue. The captured senders do not
    /// react to what it drops and marks; the report says so.
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

    /// Sends the packets of a capture so many times faster than they were captured.
    #[must_use]
    pub fn speedup(mut self, speedup: Speedup) -> Self {
        self.queue.speedup = speedup;
        self
    }

    /// Only packets of a capture of which an expression holds enter the queue, such as `tcp and dst_port == 443`.
    #[must_use]
    pub fn only(mut self, expression: impl Into<String>) -> Self {
        self.only = Some(expression.into());
        self
    }

    /// Examines only the waiting of packets of which an expression holds; culprits are any packets in the queue.
    #[must_use]
    pub fn victims(mut self, expression: impl Into<String>) -> Self {
        self.options.victims = Some(expression.into());
        self
    }

    /// Lists only flows of which an expression holds; shares are still of the whole queue.
    #[must_use]
    pub fn show(mut self, expression: impl Into<String>) -> Self {
        self.options.show = Some(expression.into());
        self
    }

    /// From which delay on the queue is congested; unless set, an eighth of the longest delay so far, and at least what ten full
    /// packets take.
    #[must_use]
    pub fn tau(mut self, tau: Nanos) -> Self {
        self.options.tau = Some(tau);
        self
    }

    /// The share of the queue from which on a flow is a culprit; [`ALPHA`](crate::ALPHA) unless set.
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

    /// The report of a capture: pcap or pcapng, plain or compressed. What is damaged, and what was skipped, is in the report.
    ///
    /// # Errors
    /// If it is no capture, or an expression means nothing.
    pub fn run(&self, capture: impl Read + Send + 'static) -> Result<Report, Error> {
        let only = self.only.as_deref();
        self.replay(OpenedCapture::from_reader(capture, "the capture", self.rate, only)?)
    }

    /// The report of a capture file; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be read or is no capture, or an expression means nothing.
    pub fn run_file(&self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.replay(OpenedCapture::open(path.as_ref(), self.rate, self.only.as_deref(), None)?)
    }

    /// The report of packets that left a queue, in the order in which they did. What a packet met in the queue
    /// (`backlog_in`) is worked out from the departures, and flow ids do not matter.
    ///
    /// # Errors
    /// If an expression means nothing.
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

    /// What of a packet's key is kept.
    fn mask(&self) -> KeyMask {
        if self.queue.managed().is_some() { KeyMask::WHOLE } else { self.options.mask() }
    }

    fn flows(&self) -> Flows {
        Flows::masked(self.mask(), &self.options.granularities(), FLOWS)
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input cannot be read, or the expression that chooses packets means nothing.
    #[error(transparent)]
    Input(#[from] ingest::Error),
    /// The expression that chooses flows means nothing.
    #[error(transparent)]
    Show(#[from] ShowError),
    /// No sketch can be as asked for.
    #[error(transparent)]
    Sketch(#[from] ParamsError),
}
