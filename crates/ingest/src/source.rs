//! Opens an input: a capture that is replayed, or a table of departures.

use crate::Progress;
use crate::capture::{self, CaptureFeed};
use crate::capture_input::{CaptureInput, NotOpened, length};
use crate::error::Error;
use crate::input::{How, Input, Queue};
use crate::listener::Listener;
use crate::managed::ManagedQueue;
use crate::notes::noted;
use crate::packet_filter::{Flag, PacketFilter};
use crate::records::Frames;
use crate::stop::Stop;
#[cfg(feature = "table")]
use crate::table::OpenedTable;
use queuescope_pcap::{CaptureReader, Damage};
use queuescope_queue::{Limit, Outlet, TailDrop, TailDropParams};
use queuescope_report::model::{self, AS_IT_WAS};
use queuescope_sim::Replay;
use queuescope_wire::{Departure, KeyMask, MaskedKey, Nanos, QueueId, Rate};
use std::io::Read;
use std::path::Path;

/// Opens an input. It is read to its end, or until a signal comes if `stop` is given.
///
/// # Errors
/// Fails if the expression is invalid, or if the input cannot be read or is not of the expected kind.
pub fn open(input: &Input, stop: Option<&Stop>) -> Result<Opened, Error> {
    Ok(match &input.how {
        How::Replayed(rate) => Opened::Capture(OpenedCapture::open(&input.file, *rate, input.only.as_deref(), stop)?),
        #[cfg(feature = "table")]
        How::Table(options) => Opened::Table(OpenedTable::open(input, options, stop)?),
    })
}

/// An opened input.
#[derive(Debug)]
pub enum Opened {
    /// A capture.
    Capture(OpenedCapture),
    /// A table of departures.
    #[cfg(feature = "table")]
    Table(OpenedTable),
}

/// An opened capture.
///
/// ```
/// use queuescope_ingest::{Listener, OpenedCapture, Queue};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_sim::Output;
/// use queuescope_wire::{Departure, FlowId, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet};
///
/// /// Counts packets that waited for more than 10 ms.
/// struct Late { packets: u64, flows: Flows }
///
/// impl Output for Late {
///     fn departed(&mut self, departure: &Departure) {
///         self.packets += u64::from(departure.sojourn() > Nanos(10_000_000));
///     }
/// }
/// # impl Sink for Late {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
/// # impl Listener for Late {
/// #     type Key = MaskedKey;
/// #     type Error = std::convert::Infallible;
/// #     fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId { self.flows.intern(key, now, |_, _| ()) }
/// # }
///
/// let by = [Granularity::FiveTuple];
/// let mut late = Late { packets: 0, flows: Flows::new(&by, 1 << 20) };
/// # let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/demo.pcap.xz");
/// let capture = OpenedCapture::open(trace.as_ref(), "20mbps".parse()?, Some("tcp"), None)?;
/// let source = capture.replay(&Queue::default(), KeyMask::covering(&by), &mut late, &mut |_, _| ())?;
/// println!("{} of {} packets were late", late.packets, source.packets);
/// assert!(late.packets > 0 && late.packets < source.packets);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenedCapture {
    /// `None` if a stop came before the kind of the capture was known.
    arriving: Option<CaptureInput>,
    chosen: Option<PacketFilter<Frames>>,
    rate: Rate,
    origin: Origin,
    /// Whether another thread reads ahead, if the caller decides it.
    reads_ahead: Option<bool>,
}

impl OpenedCapture {
    /// Opens a capture file; `-` is standard input. If `only` is given, only packets that match this expression enter the
    /// queue. The capture is read to its end, or until a signal comes if `stop` is given. If the stop came already, nothing is
    /// read, and the capture has no packets.
    ///
    /// # Errors
    /// Fails if the capture cannot be read or is not a capture, or if the expression is invalid.
    pub fn open(path: &Path, rate: Rate, only: Option<&str>, stop: Option<&Stop>) -> Result<Self, Error> {
        let chosen = PacketFilter::from_flag(Flag::Input, only)?;
        let arriving = match CaptureInput::open_unless_stopped(path, stop) {
            Ok(arriving) => Some(arriving),
            Err(NotOpened { is_stopped: true, .. }) => None,
            Err(NotOpened { why, .. }) => return Err(why.into()),
        };
        Ok(Self { arriving, chosen, rate, origin: Origin::new(path, only), reads_ahead: None })
    }

    /// Opens a capture from any reader. The report and errors call it `name`. If `only` is given, only packets that match
    /// this expression enter the queue.
    ///
    /// # Errors
    /// Fails if the capture cannot be read or is not a capture, or if the expression is invalid.
    pub fn from_reader(
        source: impl Read + Send + 'static,
        name: &str,
        rate: Rate,
        only: Option<&str>,
    ) -> Result<Self, Error> {
        let chosen = PacketFilter::from_flag(Flag::Input, only)?;
        let origin = Origin { name: name.to_owned(), length: None, only: only.map(str::to_owned) };
        Ok(Self { arriving: Some(CaptureReader::new(source, name)?.into()), chosen, rate, origin, reads_ahead: None })
    }

    /// Sets whether another thread reads the capture, ahead of the queue. Unless set, one does if the process has more than one processor.
    /// The listener is called on the thread of the caller either way, in the same order and with the same values. If it
    /// [wants frames](Listener::wants_frames), there is no other thread.
    #[must_use]
    pub fn reads_ahead(self, ahead: bool) -> Self {
        Self { reads_ahead: Some(ahead), ..self }
    }

    /// Sends its packets through a queue, and what leaves it to `listener`. `mask` is the part of flow keys to keep; if the
    /// queue is [managed](Queue::managed), it must cover [`Queue::mask`].
    ///
    /// # Errors
    /// Returns the error of the listener. Damage of the capture is in [`Source::input`].
    pub fn replay<L: Listener<Key = MaskedKey>>(
        self,
        queue: &Queue,
        mask: KeyMask,
        listener: &mut L,
        progress: Progress<'_>,
    ) -> Result<Source, L::Error> {
        let on_link = queue.overhead.on_frame();
        let outlet = Outlet { rate: self.rate, overhead: on_link, queue: QueueId(0), seed: 0 };
        let feed = |arriving| CaptureFeed::new(arriving, queue, mask, self.chosen);
        let ahead = self.reads_ahead.unwrap_or_else(has_processors);
        let mut read = match (self.arriving, queue.managed()) {
            (None, _) => {
                progress(0, 0);
                capture::Read::NOTHING
            }
            (Some(arriving), Some(aqm)) => {
                let managed = ManagedQueue::new(aqm, queue.limit, &outlet);
                capture::replay(feed(arriving), managed, queue.overhead, listener, progress, ahead)?
            }
            (Some(arriving), None) => {
                let discipline = TailDrop::new(TailDropParams { limit: queue.limit }, outlet);
                let replay = Replay::new(discipline, &outlet);
                capture::replay(feed(arriving), replay, queue.overhead, listener, progress, ahead)?
            }
        };
        if queue.managed().is_some() {
            read.skipped.extend(noted("senders_do_not_react", read.packets, SENDERS_DO_NOT_REACT));
        }
        Ok(Source {
            input: model::Input {
                name: self.origin.name,
                format: read.format.map_or_else(|| "not read".to_owned(), |format| format.to_string()),
                first_ns: read.first.0,
                damage: read.damage.as_ref().map(ToString::to_string),
            },
            read_error: read.damage.as_ref().and_then(|error| match &error.damage {
                Damage::Io(why) => Some(why.kind()),
                _ => None,
            }),
            packets: read.packets,
            bytes: read.bytes,
            span: read.span,
            super_packets: read.super_packets,
            rate: Some(self.rate),
            aqm: queue.managed().map(ToString::to_string),
            limit: limit_name(queue.limit),
            speedup: queue.speedup.to_string(),
            overhead: queue.overhead.to_string(),
            on_link,
            inner: queue.inner,
            split_gso: queue.split_gso,
            only: self.origin.only,
            knows_drops: true,
            skipped: read.skipped,
        })
    }

    /// The rate of the link that drains the queue.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The size of its file in bytes, if it is a regular file.
    pub fn length(&self) -> Option<u64> {
        self.origin.length
    }
}

/// Whether the process has more than one processor.
fn has_processors() -> bool {
    std::thread::available_parallelism().is_ok_and(|count| count.get() > 1)
}

/// The note on a replay through a discipline.
const SENDERS_DO_NOT_REACT: &str = "packets of captured senders, which do not react to drops and marks. This shows what the discipline does with this traffic, not what TCP would do";

/// The origin of an input.
#[derive(Debug)]
pub(crate) struct Origin {
    pub name: String,
    pub length: Option<u64>,
    pub only: Option<String>,
}

impl Origin {
    /// The origin of a file, or of packets of it.
    pub fn new(path: &Path, only: Option<&str>) -> Self {
        Self { name: path.display().to_string(), length: length(path), only: only.map(str::to_owned) }
    }
}

/// The input of an analysis, how its packets came to the queue, and what was skipped.
#[derive(Debug)]
pub struct Source {
    /// The input.
    pub input: model::Input,
    /// The kind of the error of the system or of the decompressor that ended reading early, such as
    /// [`ConnectionReset`](std::io::ErrorKind::ConnectionReset). Compressed data that is cut has
    /// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof). `None` for all other damage, and for inputs other than captures.
    pub read_error: Option<std::io::ErrorKind>,
    /// Number of packets that came to the queue, or left it.
    pub packets: u64,
    /// Their bytes, as counted in the queue.
    pub bytes: u64,
    /// The arrival times of the first and the last packet, on the clock of the replay.
    pub span: (Nanos, Nanos),
    /// Number of super-packets of segmentation offload.
    pub super_packets: u64,
    /// The rate of the link that drains the queue; `None` if it is not known.
    pub rate: Option<Rate>,
    /// The discipline or switch program that manages the queue, unless it is tail-drop.
    pub aqm: Option<String>,
    /// The queue's limit, the speedup and the overhead, as the user wrote them.
    pub limit: String,
    /// See `limit`.
    pub speedup: String,
    /// See `limit`.
    pub overhead: String,
    /// Bytes that the link adds to each packet as it sends it.
    pub on_link: u32,
    /// Whether flows inside tunnels are separate flows, and whether super-packets are split.
    pub inner: bool,
    /// See `inner`.
    pub split_gso: bool,
    /// The expression that chose the packets that entered the queue, if there is one.
    pub only: Option<String>,
    /// Whether the flows of dropped packets are known.
    pub knows_drops: bool,
    /// Notes on what was skipped before the queue.
    pub skipped: Vec<model::Skipped>,
}

impl Source {
    /// A source of departures from a queue that a link of this rate drains. Call [`left`](Self::left) for each departure.
    pub fn of_departures(name: &str, rate: Rate) -> Self {
        Self {
            input: model::Input { name: name.to_owned(), format: "departures".to_owned(), first_ns: 0, damage: None },
            packets: 0,
            bytes: 0,
            span: (Nanos::ZERO, Nanos::ZERO),
            super_packets: 0,
            rate: Some(rate),
            aqm: None,
            limit: AS_IT_WAS.to_owned(),
            speedup: "1".to_owned(),
            overhead: "none".to_owned(),
            on_link: 0,
            inner: false,
            split_gso: false,
            only: None,
            knows_drops: false,
            skipped: Vec::new(),
            read_error: None,
        }
    }

    /// Counts a departure.
    pub fn left(&mut self, departure: &Departure) {
        let came = departure.enqueued;
        let (first, last) = if self.packets == 0 { (came, came) } else { self.span };
        self.span = (first.min(came), last.max(came));
        self.input.first_ns = self.span.0.0;
        self.packets += 1;
        self.bytes += departure.packet.size.0;
    }
}

/// A limit as the report shows it.
fn limit_name(limit: Limit) -> String {
    match limit {
        Limit::None => "none".to_owned(),
        Limit::Bytes(bytes) => bytes.to_string(),
        Limit::Packets(1) => "1 packet".to_owned(),
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Time(time) => time.to_string(),
    }
}
