//! An agent whose records are reports of switches.

use super::serve;
use crate::args::Agent as AgentArgs;
use crate::capture_live::clock;
use crate::expressions::recording_error;
use crate::fleet::Access;
use crate::outcome::{Outcome, print};
use crate::terminal::note;
use anyhow::{Context, Result};
use queuescope_fleet::agent::{LeftOutReasons, Served};
use queuescope_ingest::records::Frames;
use queuescope_ingest::{CaptureInput, Stop};
use queuescope_log::queued;
use queuescope_monitor::Stopped;
use queuescope_recording::{HopLog, QueuedLog, Unwritten};
use queuescope_report::format::count;
use queuescope_report::model::Skipped;
use queuescope_wire::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest datagram.
const LONGEST: usize = 1 << 16;
/// Datagrams that are read before the records are written.
const ROUND: usize = 256;
/// Bytes of datagrams that the kernel keeps, as far as it allows.
const BUFFER: usize = 8 << 20;
/// How long records wait to be written.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Runs an agent that records reports of switches.
///
/// # Errors
/// Fails if nothing could be recorded, or if the coordinator refuses this host.
pub fn run(args: &AgentArgs) -> Result<Outcome> {
    let access = Access::open(&args.access)?;
    let stop = Stop::on_signals()?;
    let source = Source::open(args, &stop)?;
    let log = QueuedLog::open(args.log(), &args.keeping.options(queued::schema())?, Box::new(note));
    let mut hops = HopLog::new(log.map_err(recording_error)?, args.reports.options());
    let shed = Arc::new(AtomicU64::new(0));
    let left_out = LeftOutReasons::default();
    let served = Served::new(hops.recorder(), args.log().to_owned(), source.name(), Arc::clone(&shed));
    let (network, refused) = serve(served.leaving_out(left_out.clone()), access, &stop)?;
    let until = match args.run_time.duration {
        Some(duration) => Some(clock()?.saturating_add(duration)),
        None => None,
    };
    let mut sink = HopSink { hops: &mut hops, stopped: Stopped::default(), shed: &shed, left_out: &left_out };
    let ended = match source {
        Source::Socket(socket, _) => sink.receive(&socket, &stop, until).map(|()| None),
        Source::Capture(mut capture, port, _) => {
            let ended = sink.read_all(&mut capture, port);
            if ended.is_ok() {
                wait(&stop, until)?;
            }
            ended
        }
    };
    network.end();
    let counts = *hops.counts();
    let recorded = hops.finish().map_err(recording_error)?;
    let damage = ended?.or_else(|| recorded.damage());
    let to = recorded.path.display();
    let notes: Vec<Skipped> = recorded.short().chain(recorded.others.clone()).chain(stop.note()).collect();
    print(
        false,
        |_| Ok(()),
        |out| {
            let (hops, reports, switches) = (count(counts.hops), count(counts.reports), count(counts.switches));
            writeln!(out, "{hops} hops of {reports} reports of {switches} switches recorded to {to}")?;
            notes.iter().try_for_each(|note| writeln!(out, "{} {}", count(note.count), note.meaning))
        },
    )?;
    refused.check()?;
    Ok(Outcome::from_damage(damage))
}

/// Where reports come from.
enum Source {
    Socket(UdpSocket, SocketAddr),
    Capture(Box<CaptureInput>, u16, String),
}

impl Source {
    fn open(args: &AgentArgs, stop: &Stop) -> Result<Self> {
        let reports = &args.reports;
        if let Some(address) = reports.int {
            let socket = UdpSocket::bind(address).with_context(|| format!("cannot listen on UDP {address}"))?;
            socket.set_nonblocking(true)?;
            // A kernel that allows less gives less, and reports that it drops are counted by their numbers.
            let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, BUFFER);
            let address = socket.local_addr()?;
            note(&format!("listens for reports on UDP {address}"));
            if !address.ip().is_loopback() && reports.int_from.is_empty() {
                note(
                    "reports are not authenticated: whatever reaches this port can forge them; --int-from names the switches",
                );
            }
            return Ok(Self::Socket(socket, address));
        }
        let path = reports.int_capture.as_deref().unwrap_or(Path::new("-"));
        let capture = CaptureInput::open(path, Some(stop))?;
        Ok(Self::Capture(Box::new(capture), reports.int_port.unwrap_or(0), path.display().to_string()))
    }

    /// The source, for people.
    fn name(&self) -> String {
        match self {
            Self::Socket(_, address) => format!("reports to UDP {address}"),
            Self::Capture(_, port, path) => format!("reports to UDP port {port} in {path}"),
        }
    }
}

/// Records what comes.
struct HopSink<'a> {
    hops: &'a mut HopLog,
    /// What could not be written, as far as it was reported.
    stopped: Stopped,
    shed: &'a AtomicU64,
    /// What else was left out.
    left_out: &'a LeftOutReasons,
}

impl HopSink<'_> {
    /// Records the reports that come, until a stop or the end.
    fn receive(&mut self, socket: &UdpSocket, stop: &Stop, until: Option<Nanos>) -> Result<()> {
        let mut buffer = vec![0; LONGEST];
        loop {
            let now = clock()?;
            if stop.is_requested() || until.is_some_and(|until| now >= until) {
                return self.flush();
            }
            let mut either =
                [PollFd::new(socket, PollFlags::IN), PollFd::from_borrowed_fd(stop.waker(), PollFlags::IN)];
            match poll(&mut either, Some(&PAUSE)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(why) => return Err(why).context("cannot wait for reports"),
            }
            for _ in 0..ROUND {
                match socket.recv_from(&mut buffer) {
                    Ok((length, from)) => self.hops.datagram(from.ip(), clock()?, &buffer[..length])?,
                    Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                    Err(why) if why.kind() == ErrorKind::Interrupted => {}
                    Err(why) => return Err(why).context("cannot receive reports"),
                }
            }
            self.flush()?;
        }
    }

    /// Records all reports of a capture; returns what ended it early, if anything did.
    fn read_all(&mut self, capture: &mut CaptureInput, port: u16) -> Result<Option<String>> {
        let mut frames = Frames::default();
        let damage = loop {
            if capture.may_wait() {
                self.flush()?;
            }
            match capture.reader.next_record() {
                Ok(Some(frame)) => {
                    let time = frames.time(&frame).unwrap_or_default();
                    self.hops.frame(&frame, time, port)?;
                }
                Ok(None) => break None,
                Err(error) => break capture.damage(error).map(|error| error.to_string()),
            }
        };
        self.flush()?;
        Ok(damage)
    }

    fn flush(&mut self) -> Result<()> {
        self.hops.hand_over()?;
        self.shed.store(self.hops.counts().shed(), Ordering::Relaxed);
        self.left_out.set(self.hops.counts().notes());
        self.hops.note_left_out(clock()?);
        self.stopped.report_new(self.hops.unwritten().iter().map(Unwritten::news), note);
        Ok(())
    }
}

/// Waits for a stop or the end, while the coordinator is answered.
pub fn wait(stop: &Stop, until: Option<Nanos>) -> Result<()> {
    loop {
        let now = clock()?;
        if stop.is_requested() || until.is_some_and(|until| now >= until) {
            return Ok(());
        }
        match poll(&mut [PollFd::from_borrowed_fd(stop.waker(), PollFlags::IN)], Some(&PAUSE)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(why).context("cannot wait for a signal"),
        }
    }
}
