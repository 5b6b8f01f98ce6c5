//! `queuescope capture`: copies the packets of an interface to a file or a folder.

use crate::args::Capture as CaptureArgs;
use crate::expressions::recording_error;
use crate::outcome::{Outcome, print};
use crate::paths::cannot_write;
use crate::terminal::note;
use anyhow::{Context, Result};
use queuescope_ingest::notes::noted;
use queuescope_ingest::records::{Frames, Records};
use queuescope_ingest::{Stop, is_standard_input};
use queuescope_live::capture::{Capture, CaptureParams, Captured, Counts, Direction, Woken};
use queuescope_monitor::Stopped;
use queuescope_pcap::{PcapngWriter, Record, Statistics};
use queuescope_recording::{CpuBudget, Error, Headers, IntoFolder, Kept, Spool, Unwritten, into_folder};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::Nanos;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Runs `capture`.
///
/// # Errors
/// Fails if nothing could be captured, or if the output cannot be created or read back.
pub fn run(args: &CaptureArgs) -> Result<Outcome> {
    let headers = Headers::of(args.recorded.chosen.as_deref(), args.recorded.inner, None)?;
    let stop = Stop::on_signals()?;
    let params = CaptureParams { snaplen: args.snaplen, direction: args.direction.into(), ring: args.buffer.0 };
    let most = args.count.map_or(u64::MAX, Into::into);
    let mut live_capture =
        LiveCapture::open(&args.interface, params, headers, stop, Limits { duration: args.run_time.duration, most })?;
    if let Some(folder) = &args.log {
        let put = |folder: &mut IntoFolder<'_>| live_capture.to_folder(folder, None);
        let (keeping, derived) = (args.keeping.options(Frames::schema())?, args.derived.options()?);
        let (ended, kept) = into_folder(folder, &keeping, &derived, Box::new(note), put).map_err(recording_error)?;
        let counted = live_capture.capture.counts();
        let to = kept.recorded.path.display().to_string();
        let notes = live_capture.notes(counted, Some(&kept));
        let missing = kept.recorded.unwritten.as_ref().map_or(0, |unwritten| unwritten.packets);
        print(false, |_| Ok(()), |out| live_capture.write_summary(&to, missing, &notes, out))?;
        return Ok(Outcome::from_damage(ended?.or_else(|| kept.recorded.damage())));
    }
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let is_standard_output = is_standard_input(path);
    let writer = match live_capture.begin(path, is_standard_output) {
        Err(error) if is_broken_pipe(&error) => return Ok(Outcome::Complete),
        begun => begun.with_context(|| cannot_write(path))?,
    };
    let written = live_capture.write(writer);
    let counted = live_capture.capture.counts();
    let unwritten = written.as_ref().ok().and_then(Option::as_ref);
    let missing = unwritten.map_or(0, |unwritten| unwritten.packets);
    let mut notes = live_capture.notes(counted, None);
    notes.extend(unwritten.into_iter().flat_map(Unwritten::notes));
    if is_standard_output {
        let mut text = Vec::new();
        live_capture.write_summary("standard output", missing, &notes, &mut text)?;
        String::from_utf8_lossy(&text).lines().for_each(note);
    } else {
        print(false, |_| Ok(()), |out| live_capture.write_summary(&path.display().to_string(), missing, &notes, out))?;
    }
    match written {
        // The reader closed the pipe, which is not an error.
        Err(error) if is_broken_pipe(&error) => Ok(Outcome::Complete),
        Err(error) => Err(error.context(cannot_write(path))),
        Ok(unwritten) => Ok(Outcome::from_damage(unwritten.as_ref().map(Unwritten::damage))),
    }
}

/// The number of the interface in the file, which has only one.
const INTERFACE: u32 = 0;

/// The time without packets after which triggers are checked all the same, and the time between two such checks.
const IDLE: Nanos = Nanos(100_000_000);
/// Packets of so long ago have come from the kernel by now.
const BEHIND: Nanos = Nanos(50_000_000);

const DROPPED: &str = "packets that found no room in the kernel's buffer (--buffer, --snaplen)";

/// When a capture ends, if nothing else ends it.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// After this time.
    pub duration: Option<Nanos>,
    /// After this many packets.
    pub most: u64,
}

/// What a capture has done so far.
#[derive(Debug, Clone, Copy)]
pub struct CaptureProgress {
    /// Packets that were not recorded.
    pub shed: u64,
    /// Packets with times before this have been recorded, unless they were left out.
    pub complete: Nanos,
}

/// A capture in progress.
pub struct LiveCapture<'a> {
    interface: &'a str,
    params: CaptureParams,
    limits: Limits,
    budget: Option<CpuBudget>,
    capture: Capture,
    headers: Headers,
    stop: Stop,
    counts: CaptureCounts,
    from: Nanos,
    is_gone: bool,
}

/// The output of a capture.
enum CaptureSink<'a, 'b> {
    Folder(&'a mut IntoFolder<'b>),
    File(&'a mut PcapngWriter<Spool>),
}

/// Counts of captured packets.
#[derive(Debug, Default)]
struct CaptureCounts {
    all: u64,
    /// Packets that `--where` matches; `supers` and `unsummed` are the super-packets and the packets without a checksum
    /// among them.
    kept: u64,
    supers: u64,
    unsummed: u64,
}

impl<'a> LiveCapture<'a> {
    /// Starts to capture.
    ///
    /// # Errors
    /// Fails if the interface cannot be captured.
    pub fn open(
        interface: &'a str,
        params: CaptureParams,
        headers: Headers,
        stop: Stop,
        limits: Limits,
    ) -> Result<Self> {
        let capture = Capture::open(interface, params)?;
        let counts = CaptureCounts::default();
        Ok(Self {
            interface,
            params,
            limits,
            budget: None,
            capture,
            headers,
            stop,
            counts,
            from: clock()?,
            is_gone: false,
        })
    }

    /// Takes at most this share of a processor: beyond it, fewer packets are recorded.
    pub fn limit(&mut self, budget: CpuBudget) {
        self.budget = Some(budget);
    }

    /// Captures to a folder. Packets that cannot be written are counted. `progress` is called now and then, also without packets.
    ///
    /// # Errors
    /// Fails if the interface cannot be read.
    pub fn to_folder(
        &mut self,
        folder: &mut IntoFolder<'_>,
        progress: Option<&mut dyn FnMut(CaptureProgress)>,
    ) -> Result<Option<String>, Error> {
        folder.go_on();
        self.run(CaptureSink::Folder(folder), progress).map(|()| None).map_err(capture_error)
    }

    /// The kernel's counts.
    pub fn counted(&mut self) -> Counts {
        self.capture.counts()
    }

    /// Creates the file and writes its header. If that fails, nothing is captured.
    fn begin(&self, path: &Path, is_standard_output: bool) -> Result<PcapngWriter<Spool>> {
        let out = match is_standard_output {
            true => Spool::shared(path, File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            false => Spool::new(path, File::create(path)?),
        };
        let application = concat!("queuescope ", env!("CARGO_PKG_VERSION"));
        let mut writer = PcapngWriter::new(out, application)?;
        writer.named_interface(self.capture.dlt(), self.params.snaplen, self.interface)?;
        writer.flush()?;
        writer.get_mut().go_on();
        Ok(writer)
    }

    /// Captures to the file. Returns what could not be written.
    fn write(&mut self, mut writer: PcapngWriter<Spool>) -> Result<Option<Unwritten>> {
        self.run(CaptureSink::File(&mut writer), None)?;
        let Counts { passed, dropped, .. } = self.capture.counts();
        let counted =
            Statistics { from: self.from, until: clock()?, received: passed, dropped, delivered: self.counts.all };
        writer.statistics(INTERFACE, &counted)?;
        Ok(writer.finish()?.unwritten().cloned())
    }

    /// Captures until a signal comes, `--for` or `--count` is reached, or the interface is gone.
    fn run(&mut self, to: CaptureSink<'_, '_>, mut progress: Option<&mut dyn FnMut(CaptureProgress)>) -> Result<()> {
        let until = self.limits.duration.map(|duration| self.from.saturating_add(duration));
        let most = self.limits.most;
        let (headers, counts, link) = (&mut self.headers, &mut self.counts, self.capture.dlt());
        let stopped = Stopped::default();
        let (last, mut reported) = (self.from, self.from);
        let is_followed = progress.is_some() || matches!(to, CaptureSink::Folder(_));
        let mut sink = PacketSink {
            to,
            is_followed,
            headers,
            counts,
            link,
            until,
            most,
            last,
            is_over: false,
            failed: None,
            stopped,
        };
        loop {
            while !sink.is_over && self.capture.block(|captured| sink.pass(captured))? {
                if let Some(budget) = &mut self.budget
                    && let Some(one_of) = budget.measured(steady_clock(), processor_time())
                {
                    sink.headers.shed(one_of)?;
                }
                // With packets all the time, there is no moment without.
                if sink.is_followed && sink.last.saturating_sub(reported) >= IDLE {
                    reported = sink.last;
                    sink.flush()?;
                    let shed = sink.left_out(self.capture.counts().dropped, sink.last);
                    if let Some(progress) = &mut progress {
                        progress(CaptureProgress { shed, complete: sink.last.saturating_sub(BEHIND) });
                    }
                }
            }
            if sink.is_over {
                break;
            }
            let now = clock()?;
            let look = sink.idle(now)?;
            // Flush before waiting, for a reader that follows the output.
            sink.flush()?;
            let mut look = look;
            let shed = sink.left_out(self.capture.counts().dropped, now);
            if let Some(progress) = &mut progress {
                progress(CaptureProgress { shed, complete: now.saturating_sub(BEHIND) });
                (look, reported) = (Some(IDLE), now);
            }
            let left = until.map(|until| until.saturating_sub(now));
            match self.capture.wait(self.stop.waker(), left.into_iter().chain(look).min())? {
                Woken::Packets if left != Some(Nanos::ZERO) => continue,
                Woken::Packets => {}
                Woken::Stop => self.stop.obey(),
                Woken::Gone => self.is_gone = true,
            }
            self.capture.finish(|captured| sink.pass(captured))?;
            break;
        }
        sink.left_out(self.capture.counts().dropped, clock()?);
        sink.failed.map_or(Ok(()), Err)
    }

    /// The notes on a capture.
    pub fn notes(&self, counted: Counts, kept: Option<&Kept>) -> Vec<Skipped> {
        let CaptureCounts { supers, unsummed, .. } = self.counts;
        let gone = "interface is gone; packets that were captured before are kept";
        let notes = [
            noted("dropped", counted.dropped, DROPPED),
            noted("super_packets", supers, "super-packets of segmentation offload; analyze --split-gso splits them"),
            noted(
                "checksum_pending",
                unsummed,
                "packets whose checksum the network card fills in later, so it is wrong here",
            ),
            noted("went_down", counted.went_down, "times that the interface was down"),
            noted("gone", self.is_gone.into(), gone),
        ];
        let loopback = self.capture.is_loopback() && self.params.direction == Direction::Both;
        let loopback = noted(
            "loopback",
            loopback.into(),
            "loopback interface: each packet is captured as it comes in, and not as it goes out",
        );
        self.headers
            .left_out()
            .chain(kept.into_iter().flat_map(Kept::notes))
            .chain(notes.into_iter().flatten())
            .chain(loopback)
            .chain(self.headers.notes())
            .chain(self.stop.note())
            .collect()
    }

    /// Writes the number of packets and the notes.
    pub fn write_summary(&self, to: &str, missing: u64, notes: &[Skipped], out: &mut dyn Write) -> io::Result<()> {
        let kept = self.counts.kept.saturating_sub(missing);
        writeln!(out, "{} packets of {} captured to {to}", count(kept), self.interface)?;
        notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
    }
}

/// Filters and writes captured packets, until the end of the capture.
struct PacketSink<'a, 'b> {
    to: CaptureSink<'a, 'b>,
    /// Whether somebody follows what is recorded: it is written now and then.
    is_followed: bool,
    headers: &'a mut Headers,
    counts: &'a mut CaptureCounts,
    link: u32,
    until: Option<Nanos>,
    most: u64,
    /// The time of the last packet.
    last: Nanos,
    is_over: bool,
    failed: Option<anyhow::Error>,
    /// What could not be written, as far as it was reported.
    stopped: Stopped,
}

impl PacketSink<'_, '_> {
    #[inline]
    fn pass(&mut self, captured: &Captured<'_>) -> ControlFlow<()> {
        let Captured { at, original_len, data, is_super, is_unsummed, .. } = *captured;
        if self.is_over || self.until.is_some_and(|until| at >= until) {
            self.is_over = true;
            return ControlFlow::Break(());
        }
        self.last = at;
        let frame = Record { time: Some(at), link: self.link, interface: 0, original_len, data };
        let kept = match &mut self.to {
            CaptureSink::Folder(folder) => self.headers.keep(&frame, folder).map_err(Into::into),
            CaptureSink::File(writer) if self.headers.holds(&frame) => {
                writer.packet(INTERFACE, at, original_len, data, None).map(|()| true).map_err(Into::into)
            }
            CaptureSink::File(_) => Ok(false),
        };
        self.counts.all += 1;
        match kept {
            Ok(true) => {
                self.counts.kept += 1;
                self.counts.supers += u64::from(is_super);
                self.counts.unsummed += u64::from(is_unsummed);
                self.is_over = self.counts.kept >= self.most;
            }
            Ok(false) => {}
            Err(error) => {
                self.failed = Some(error);
                self.is_over = true;
            }
        }
        if self.is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Notes in the folder what was left out so far; returns the number of these packets. `dropped` found no room in the kernel's buffer.
    fn left_out(&self, dropped: u64, now: Nanos) -> u64 {
        if let CaptureSink::Folder(folder) = &self.to {
            let totals: Vec<_> =
                noted("dropped", dropped, DROPPED).into_iter().chain(self.headers.sampled_out()).collect();
            if !totals.is_empty() {
                folder.left_out(now, &totals);
            }
        }
        dropped + self.headers.shed_frames()
    }

    /// Checks triggers if no packet has come for a while. Returns after which time to do so again, if there are any.
    fn idle(&mut self, now: Nanos) -> Result<Option<Nanos>> {
        let CaptureSink::Folder(folder) = &mut self.to else { return Ok(None) };
        if !folder.has_triggers() {
            return Ok(None);
        }
        if now.saturating_sub(self.last) >= IDLE {
            folder.look(now.saturating_sub(BEHIND))?;
        }
        Ok(Some(IDLE))
    }

    fn flush(&mut self) -> Result<()> {
        let unwritten = match &mut self.to {
            CaptureSink::Folder(folder) => {
                folder.flush()?;
                folder.unwritten()
            }
            CaptureSink::File(writer) => {
                writer.flush()?;
                writer.get_mut().unwritten().cloned()
            }
        };
        self.stopped.report_new(unwritten.iter().map(Unwritten::news), note);
        Ok(())
    }
}

/// The error as one of the recording: its own, or that of the source.
fn capture_error(error: anyhow::Error) -> Error {
    error.downcast().unwrap_or_else(|other| Error::Source(other.into()))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The clock that the kernel takes the timestamps of packets from.
#[expect(clippy::disallowed_methods, reason = "packets have timestamps of this clock")]
///
/// # Errors
/// Fails if it shows a time before 1970.
pub fn clock() -> Result<Nanos> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(Nanos(u64::try_from(since.as_nanos()).context("the clock is after 2554")?))
}

/// Time that never goes back.
fn steady_clock() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// The processor time of this process so far.
fn processor_time() -> Nanos {
    nanos(clock_gettime(ClockId::ProcessCPUTime))
}

fn nanos(time: Timespec) -> Nanos {
    Nanos(u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}
