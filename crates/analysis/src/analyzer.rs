//! Makes a report of a capture in one call.

use crate::analysis::{Analysis, AnalysisParams, DEPARTURES, Scale};
use crate::index::FLOWS;
use crate::options::AnalysisOptions;
use crate::show::ShowError;
use queuescope_ingest::notes::noted;
use queuescope_ingest::records::Unknown;
use queuescope_ingest::{self as ingest, DepartureSorter, Listener, OpenedCapture, Progress, Queue, Source, Stop};
use queuescope_meter::History;
use queuescope_queue::Limit;
use queuescope_report::model::Report;
use queuescope_sim::{Aqm, Speedup};
use queuescope_sketch::ParamsError;
use queuescope_wire::{Departure, FlowKey, Flows, Granularity, KeyMask, Nanos, Packet, Rate};
use std::io::Read;
use std::path::Path;

/// Makes a report of a capture, or of departures, with the defaults of the command `queuescope analyze`.
///
/// ```
/// # mod queuescope { pub use queuescope_analysis::*; pub use queuescope_wire::*; }
/// use queuescope::{Analyzer, ByteCount, Departure, Family, FlowKey, Nanos, Packet, PacketId};
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
    /// The methods that were called and that apply to captures only.
    capture_only: Vec<&'static str>,
}

impl Analyzer {
    /// Creates an analyzer for a queue that a link of this rate drains.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            queue: Queue::default(),
            only: None,
            options: AnalysisOptions { details: true, ..AnalysisOptions::default() },
            capture_only: Vec::new(),
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

    /// Sets the queue that the packets of a capture pass, and how they arrive at it. This, and [`limit`](Self::limit),
    /// [`aqm`](Self::aqm), [`speedup`](Self::speedup) and [`only`](Self::only), apply to captures only.
    #[must_use]
    pub fn queue(mut self, queue: Queue) -> Self {
        self.queue = queue;
        self.capture_only.push("queue");
        self
    }

    /// Sets the limit of the queue. The default is what the link sends in a second.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.queue.limit = limit;
        self.capture_only.push("limit");
        self
    }

    /// Sets the discipline or switch program that manages the queue of a capture. The default is tail-drop. The captured
    /// senders do not react to drops and marks; the report has a note on that.
    ///
    /// ```no_run
    /// # use queuescope_analysis as queuescope;
    /// use queuescope::Analyzer;
    ///
    /// let report = Analyzer::new("100mbps".parse()?).aqm("codel,target=10ms".parse()?).run_file("trace.pcap.gz")?;
    /// println!("CoDel drops {:?}", report.totals.drops);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn aqm(mut self, aqm: Aqm) -> Self {
        self.queue.aqm = Some(aqm);
        self.capture_only.push("aqm");
        self
    }

    /// Sends the packets of a capture faster than they were captured, by a factor.
    #[must_use]
    pub fn speedup(mut self, speedup: Speedup) -> Self {
        self.queue.speedup = speedup;
        self.capture_only.push("speedup");
        self
    }

    /// Lets only packets of a capture that match an expression enter the queue, such as `tcp and dst_port == 443`.
    #[must_use]
    pub fn only(mut self, expression: impl Into<String>) -> Self {
        self.only = Some(expression.into());
        self.capture_only.push("only");
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

    /// Sets the least share of the queue at which a flow is a culprit, from 0 to 1; the run fails with any other number. The
    /// default is [`ALPHA`](crate::ALPHA).
    #[must_use]
    pub fn alpha(mut self, share: f64) -> Self {
        self.options.alpha = share;
        self
    }

    /// Sets all options of the analysis at once: also those that have no method here, such as the sketch and the number of
    /// bursts. [`AnalysisOptions::details`] is off by default there.
    ///
    /// # Panics
    /// Panics if there is no granularity.
    #[must_use]
    pub fn options(mut self, options: AnalysisOptions) -> Self {
        assert!(!options.by.is_empty(), "flows need a granularity");
        self.options = options;
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
    /// Fails if the input is not a capture, if `alpha` is not a share, or if an expression is invalid.
    pub fn run(&self, capture: impl Read + Send + 'static) -> Result<Report, Error> {
        let only = self.only.as_deref();
        self.replay(OpenedCapture::from_reader(capture, "the capture", self.rate, only)?)
    }

    /// Makes the report of a capture file; `-` is standard input.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a capture, if `alpha` is not a share, or if an expression is invalid.
    pub fn run_file(&self, path: impl AsRef<Path>) -> Result<Report, Error> {
        self.replay(OpenedCapture::open(path.as_ref(), self.rate, self.only.as_deref(), None)?)
    }

    /// The same, with a progress callback and a way to stop early. The callback gets the bytes of the file and the packets
    /// read so far: before the first packet, after every 65 536 packets, and once at the end. After a
    /// [`request`](Stop::request), the report covers what was read, and has the note `stopped`. If the request came before the
    /// run, that is nothing.
    ///
    /// ```
    /// # use queuescope_analysis as queuescope;
    /// use queuescope::Analyzer;
    /// use queuescope_ingest::Stop;
    ///
    /// # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
    /// let stop = Stop::manual()?;
    /// let mut progress = |bytes: u64, packets: u64| {
    ///     println!("{packets} packets, {bytes} bytes");
    ///     if bytes > 10_000 {
    ///         stop.request();
    ///     }
    /// };
    /// let report = Analyzer::new("20mbps".parse()?).run_file_with(trace, Some(&stop), &mut progress)?;
    /// # assert!(report.totals.packets > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`run_file`](Self::run_file).
    pub fn run_file_with(
        &self,
        path: impl AsRef<Path>,
        stop: Option<&Stop>,
        progress: Progress<'_>,
    ) -> Result<Report, Error> {
        let capture = OpenedCapture::open(path.as_ref(), self.rate, self.only.as_deref(), stop)?;
        let mut report = self.replay_with(capture, progress)?;
        report.skipped.extend(stop.and_then(Stop::note));
        Ok(report)
    }

    /// Makes the report of packets that left a queue. The backlog that a packet met is computed from the departures; their
    /// `backlog_in` and flow ids are ignored.
    ///
    /// Departures are sorted by `dequeued`, within a window of 65 536 of them. Notes of the report count those that were out of order
    /// (`out_of_order`), and those that were too far out of order to be sorted (`too_late`), which count as leaving with the
    /// departure before them.
    ///
    /// # Errors
    /// Fails if a departure left before it arrived, if an option was set that applies to captures only, if `alpha` is not a
    /// share, or if an expression is invalid.
    pub fn run_departures(&self, departures: impl IntoIterator<Item = (FlowKey, Departure)>) -> Result<Report, Error> {
        if let Some(option) = self.capture_only.first() {
            return Err(Error::CaptureOnly { option });
        }
        let scale = Scale::from_rate(Some(self.rate));
        let mut params = self.params(History::Departures(DEPARTURES), scale)?;
        params.not_judged = None;
        let mut analysis = Analysis::new(self.flows(), params, ())?;
        let mask = self.mask();
        let mut source = Source::of_departures("departures", self.rate);
        let mut order = DepartureSorter::default();
        for (index, (key, departure)) in (0..).zip(departures) {
            let Departure { enqueued, dequeued, packet, .. } = departure;
            if enqueued > dequeued {
                return Err(Error::LeftBeforeItCame { index, enqueued, dequeued });
            }
            let flow = analysis.intern(&mask.mask(&key), dequeued);
            source.left(&departure);
            order.push(Departure { packet: Packet { flow, ..packet }, ..departure }, &mut analysis);
        }
        order.finish(&mut analysis);
        let notes = [
            noted("out_of_order", order.out_of_order(), "departures before that of an earlier packet; sorted"),
            noted(
                "too_late",
                order.too_late(),
                "departures too far out of order to be sorted; treated as leaving with the one before",
            ),
        ];
        source.skipped.extend(notes.into_iter().flatten());
        Ok(analysis.finish().0.report(source))
    }

    fn replay(&self, capture: OpenedCapture) -> Result<Report, Error> {
        self.replay_with(capture, &mut |_, _| ())
    }

    fn replay_with(&self, capture: OpenedCapture, progress: Progress<'_>) -> Result<Report, Error> {
        let params = self.params(History::Fifo, Scale::of_queue(self.rate, self.queue.limit))?;
        let params = if self.queue.is_fifo() { params } else { params.in_any_order() };
        let mut analysis = Analysis::new(self.flows(), params, ())?;
        let Ok(source) = capture.replay(&self.queue, self.mask(), &mut analysis, progress);
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
    /// The least share of a culprit is not a share.
    #[error("alpha is {alpha}: it must be a share of the queue, from 0 to 1")]
    Alpha {
        /// The number.
        alpha: f64,
    },
    /// An option applies to captures only: departures have left their queue already.
    #[error("`{option}` applies to captures only, and departures have left their queue already: {}", hint(option))]
    CaptureOnly {
        /// The method of [`Analyzer`] that set it.
        option: &'static str,
    },
    /// A departure has impossible times.
    #[error("departure {index} (counted from 0) left at {} ns, before it arrived at {} ns", dequeued.0, enqueued.0)]
    LeftBeforeItCame {
        /// Its position in the input, from 0.
        index: u64,
        /// When it arrived.
        enqueued: Nanos,
        /// When it left.
        dequeued: Nanos,
    },
}

/// What to do in place of an option that applies to captures only.
fn hint(option: &str) -> &'static str {
    match option {
        "only" => "choose the departures before run_departures",
        "aqm" => "run a discipline on a capture (run_file), or in a simulation",
        "speedup" => "change their times before run_departures",
        // `limit` and `queue`.
        _ => "omit it, because nothing waits in another queue",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_wire::{ByteCount, PacketId};

    fn analyzer() -> Analyzer {
        Analyzer::new("100mbps".parse().unwrap())
    }

    /// Packets of 1500 bytes come every 0.13 ms to a link that needs 0.12 ms for each.
    fn departures() -> Vec<(FlowKey, Departure)> {
        let departure = |n: u64| {
            let packet = Packet { id: PacketId(n), size: ByteCount(1500), ..Packet::default() };
            let came = Nanos(n * 130_000);
            Departure { packet, enqueued: came, dequeued: came + Nanos(10_000), ..Departure::default() }
        };
        (0..1_000).map(|n| (FlowKey { src_port: (n % 7) as u16, ..FlowKey::default() }, departure(n))).collect()
    }

    fn notes(report: &Report) -> Vec<(&str, u64)> {
        report.skipped.iter().map(|note| (note.reason.as_str(), note.count)).collect()
    }

    #[test]
    fn departures_are_sorted() {
        let mut departures = departures();
        let sorted = analyzer().run_departures(departures.clone()).unwrap();
        assert!(notes(&sorted).iter().all(|(reason, _)| *reason != "out_of_order"), "{:?}", notes(&sorted));
        departures.swap(400, 600);
        let swapped = analyzer().run_departures(departures).unwrap();
        assert!(notes(&swapped).contains(&("out_of_order", 200)), "{:?}", notes(&swapped));
        assert_eq!(swapped.totals, sorted.totals);
        assert_eq!(swapped.bursts, sorted.bursts);
    }

    #[test]
    fn the_text_of_departures_names_no_queue_and_no_flag() {
        let report = analyzer().victims("udp").run_departures(departures()).unwrap();
        let mut text = Vec::new();
        queuescope_report::text::write(&report, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("departures\u{1b}").count(), 1, "the title has the word once: {text}");
        assert!(text.contains("departures from elsewhere at 100 Mb/s, link ") && !text.contains("FIFO"), "{text}");
        assert!(text.contains("packets that the filter of victims, 'udp', does not match; they are"), "{text}");
        assert!(!text.contains("--"), "{text}");
    }

    #[test]
    fn what_is_too_far_out_of_order_is_counted() {
        let mut departures: Vec<_> = std::iter::repeat_n(departures(), 70).flatten().collect();
        for (n, (_, departure)) in (0..).zip(&mut departures) {
            (departure.enqueued, departure.dequeued) = (Nanos(n * 130_000), Nanos(n * 130_000 + 10_000));
        }
        let first = departures.remove(0);
        departures.push(first);
        let report = analyzer().run_departures(departures).unwrap();
        assert!(notes(&report).contains(&("out_of_order", 1)), "{:?}", notes(&report));
        assert!(notes(&report).contains(&("too_late", 1)), "{:?}", notes(&report));
    }

    #[test]
    fn a_departure_before_its_arrival_is_an_error() {
        let mut departures = departures();
        departures[17].1.enqueued = Nanos(u64::MAX);
        let error = analyzer().run_departures(departures).unwrap_err();
        assert!(matches!(error, Error::LeftBeforeItCame { index: 17, .. }), "{error}");
        assert!(
            error.to_string().starts_with("departure 17 (counted from 0) left at 2220000 ns, before it arrived at "),
            "{error}"
        );
    }

    #[test]
    fn options_of_captures_do_not_apply_to_departures() {
        for (analyzer, name, hint) in [
            (analyzer().aqm("codel".parse().unwrap()), "aqm", "run a discipline on a capture"),
            (analyzer().limit(Limit::Packets(3)), "limit", "omit it"),
            (analyzer().only("not an expression (("), "only", "choose the departures before"),
            (analyzer().speedup("2".parse().unwrap()), "speedup", "change their times before"),
            (analyzer().queue(Queue::default()), "queue", "omit it"),
        ] {
            let error = analyzer.run_departures(departures()).unwrap_err();
            assert!(matches!(error, Error::CaptureOnly { option } if option == name), "{error}");
            let start =
                format!("`{name}` applies to captures only, and departures have left their queue already: {hint}");
            assert!(error.to_string().starts_with(&start), "{error}");
        }
    }

    /// The callback may stop the run itself.
    #[test]
    fn a_run_can_be_watched_and_stopped() {
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
        let whole = analyzer().run_file(demo).unwrap();
        let mut calls = Vec::new();
        assert_eq!(analyzer().run_file_with(demo, None, &mut |_, packets| calls.push(packets)).unwrap(), whole);
        assert_eq!((calls.first(), calls.last()), (Some(&0), Some(&whole.totals.packets)), "{calls:?}");
        let stop = Stop::manual().unwrap();
        let report = analyzer().run_file_with(demo, Some(&stop), &mut |_, _| stop.request()).unwrap();
        assert!(stop.is_requested() && stop.is_obeyed());
        assert!(notes(&report).contains(&("stopped", 1)), "{:?}", notes(&report));
        assert!(report.totals.packets < whole.totals.packets);
        assert_eq!(report.input.damage, None);
    }

    #[test]
    fn a_stop_before_the_run_makes_a_report_of_nothing() {
        let demo = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
        let stop = Stop::manual().unwrap();
        stop.request();
        for analyzer in [analyzer(), analyzer().aqm("codel".parse().unwrap()), analyzer().pictures()] {
            let mut calls = Vec::new();
            let report = analyzer.run_file_with(demo, Some(&stop), &mut |_, packets| calls.push(packets)).unwrap();
            assert!(notes(&report).contains(&("stopped", 1)), "{:?}", notes(&report));
            assert_eq!((report.totals.packets, report.bursts.len(), calls), (0, 0, vec![0]));
        }
        let missing = analyzer().run_file_with("missing.pcap", Some(&stop), &mut |_, _| ()).unwrap_err();
        assert!(missing.to_string().contains("missing.pcap"), "{missing}");
    }

    #[test]
    fn alpha_is_a_share() {
        for alpha in [f64::NAN, -1.0, 2.0, f64::INFINITY] {
            let error = analyzer().alpha(alpha).run_departures(departures()).unwrap_err();
            assert_eq!(error.to_string(), format!("alpha is {alpha}: it must be a share of the queue, from 0 to 1"));
        }
        for alpha in [0.0, 1.0] {
            analyzer().alpha(alpha).run_departures(departures()).unwrap();
        }
    }
}
