//! The sender of flows, which starts each flow at its time.

mod connection;

use super::events::Events;
use super::{TrafficError, allow_files, close, decode, encode, ends_with_socket, refused, system};
use crate::capabilities::raised;
use connection::{Connection, SendStep, closed_why};
use queuescope_wire::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_reuseaddr, set_tcp_congestion, tcp_congestion};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Parameters of the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendParams {
    /// The server's address.
    pub to: SocketAddr,
    /// The maximum number of open flows; flows beyond it do not start.
    pub open: usize,
    /// How long open flows may take after the last start.
    pub wait: Nanos,
    /// The congestion controls that flows select from; the kernel's default if empty.
    pub congestion: Vec<String>,
    /// Fail unless ECN is negotiated with the server.
    pub ecn: bool,
    /// Report the progress of the flows that are open at this time, too.
    pub midway: Option<Nanos>,
}

/// The start of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// When, since the beginning; starts are in order of time.
    pub at: Nanos,
    /// The number of bytes after the announcement; at most [`LARGEST`](super::LARGEST).
    pub bytes: u64,
    /// An index that the caller chooses.
    pub class: usize,
    /// The index of the congestion control.
    pub congestion: usize,
    /// The source and destination address; by default any source and the server's address.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// When the flow is stopped; the maximum time if never.
    pub stop: Nanos,
}

/// The progress of a flow, from the kernel's information on its connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Acknowledged bytes.
    pub acked: u64,
    /// Retransmitted segments.
    pub retransmitted: u32,
    /// Retransmission timeouts; 0 before Linux 6.7.
    pub timeouts: u32,
    /// The smoothed round-trip time; zero if there was no sample.
    pub rtt: Nanos,
}

/// A flow that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its index in the order of starts, from 0.
    pub number: u64,
    /// How it was to start.
    pub start: Start,
    /// The delay of its start.
    pub late: Nanos,
    /// Its progress midway and at its end.
    pub progress: [Progress; 2],
    /// Its outcome.
    pub result: Result<Completed, Failure>,
}

/// A complete flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Completed {
    /// The time from the connect call until the server's acknowledgement.
    pub took: Nanos,
    /// Retransmitted segments.
    pub retransmitted: u32,
    /// The shortest round-trip time; zero if the kernel does not report one.
    pub min_rtt: Nanos,
    /// Whether ECN was negotiated.
    pub ecn: bool,
}

/// Why a flow is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// Too many flows were open at its start.
    TooMany,
    /// Nothing listens at the server's address.
    Refused,
    /// The connection was reset.
    Reset,
    /// There is no route to the server.
    Unreachable,
    /// The server does not answer.
    TimedOut,
    /// The server closed the connection before its acknowledgement.
    Gone,
    /// The server acknowledged another number of bytes.
    Wrong,
    /// No local port is free.
    NoPort,
    /// Too many files are open.
    NoFile,
    /// The flow was open at the end.
    Unfinished,
    /// The flow was stopped.
    Stopped,
    /// Another error.
    Other,
}

/// The sender's counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// Flows that were to start.
    pub flows: u64,
    /// Whether sending was stopped before all flows started.
    pub stopped: bool,
    /// The duration.
    pub took: Nanos,
    /// The maximum number of flows that were open at once.
    pub most_open: usize,
}

impl Failure {
    /// The name in machine-readable output.
    pub fn name(self) -> &'static str {
        self.name_and_meaning().0
    }

    /// A description of the flows that failed so.
    pub fn meaning(self) -> &'static str {
        self.name_and_meaning().1
    }

    fn name_and_meaning(self) -> (&'static str, &'static str) {
        match self {
            Self::TooMany => ("too_many", "flows that did not start because too many were open (--flows)"),
            Self::Refused => ("refused", "flows that were refused: is the server still running?"),
            Self::Reset => {
                ("reset", "flows whose connection was reset: the server is gone or has too many connections")
            }
            Self::Unreachable => ("unreachable", "flows without a route to the server; `ip route` shows all routes"),
            Self::TimedOut => ("timed_out", "flows that the kernel gave up because nothing came back"),
            Self::Gone => ("gone", "flows that the server closed before its acknowledgement"),
            Self::Wrong => ("wrong", "flows of which the server acknowledged another number of bytes"),
            Self::NoPort => ("no_port", "flows without a free local port; see `sysctl net.ipv4.ip_local_port_range`"),
            Self::NoFile => ("no_file", "flows that did not start because too many files were open; see `ulimit -n`"),
            Self::Unfinished => ("unfinished", "flows that were open at the end"),
            Self::Stopped => ("stopped", "flows that were stopped"),
            Self::Other => ("other", "flows that failed for another reason"),
        }
    }

    fn from_errno(why: Errno) -> Self {
        match why {
            Errno::CONNREFUSED => Self::Refused,
            Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Self::Reset,
            Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => Self::Unreachable,
            Errno::TIMEDOUT => Self::TimedOut,
            Errno::ADDRNOTAVAIL => Self::NoPort,
            Errno::MFILE | Errno::NFILE => Self::NoFile,
            _ => Self::Other,
        }
    }
}

/// Sends flows until all have ended or `stop` becomes readable, and calls `report` with each flow that has ended. [`try_out`] checks
/// whether there is a server.
///
/// # Errors
/// Fails if sockets cannot be waited for. Returns the errors of `report`.
pub fn send(
    params: &SendParams,
    mut starts: impl Iterator<Item = Start>,
    stop: BorrowedFd<'_>,
    mut report: impl FnMut(&Ended) -> io::Result<()>,
) -> Result<Sent, TrafficError> {
    allow_files();
    let (slots, free, open) = (Vec::new(), Vec::new(), 0);
    let piece = vec![0; PIECE];
    let (stops, sent) = (BinaryHeap::new(), Sent::default());
    let mut sender = Sender { params, events: Events::new()?, slots, free, open, stops, piece, sent };
    let mut midway = params.midway;
    let mut next = starts.next();
    let mut last = Nanos::ZERO;
    loop {
        for _ in 0..STARTS {
            let Some(start) = next.filter(|start| start.at <= sender.events.now()) else { break };
            sender.start(start, &mut report)?;
            last = start.at.max(sender.events.now());
            next = starts.next();
        }
        let now = sender.events.now();
        sender.stop(now, &mut report)?;
        if midway.is_some_and(|at| at <= now) {
            midway = None;
            sender.look();
        }
        let until = match next {
            Some(start) => start.at,
            None if sender.open == 0 => break,
            None => last.saturating_add(params.wait),
        };
        if next.is_none() && until <= now {
            break;
        }
        let until = until.min(midway.unwrap_or(Nanos::MAX)).min(sender.next_stop());
        if sender.events.wait(stop, Some(until.saturating_sub(now)))? {
            sender.sent.stopped = true;
            break;
        }
        let mut index = 0;
        while let Some((number, flags)) = sender.events.ready(index) {
            index += 1;
            sender.go_on(number as usize, flags, &mut report)?;
        }
    }
    sender.finish(&mut report)
}

/// The maximum number of starts before open flows get their turn.
const STARTS: usize = 64;
/// The maximum number of bytes per write.
const PIECE: usize = 1 << 17;
/// How long the server may take to answer `try_out`.
const PATIENCE: Duration = Duration::from_secs(5);

struct Sender<'a> {
    params: &'a SendParams,
    events: Events,
    slots: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections whose flow has not ended.
    open: usize,
    /// Flows that are to be stopped: time, index and slot. They may have ended before.
    stops: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    piece: Vec<u8>,
    sent: Sent,
}

type Report<'a> = &'a mut dyn FnMut(&Ended) -> io::Result<()>;

impl Sender<'_> {
    fn start(&mut self, start: Start, report: Report<'_>) -> Result<(), TrafficError> {
        let began = self.events.now();
        let (number, late) = (self.sent.flows, began.saturating_sub(start.at));
        self.sent.flows += 1;
        let progress = [Progress::default(); 2];
        let flow = Ended { number, start, late, progress, result: Err(Failure::TooMany) };
        // Completed connections that wait for the server to close count, too: each has an open file.
        if self.slots.len() - self.free.len() >= self.params.open {
            return report(&flow).map_err(system("report a flow"));
        }
        let to = start.ends.map_or(self.params.to, |(_, to)| to);
        let made = outgoing(self.params, start.congestion, to).and_then(|socket| {
            if let Some((from, _)) = start.ends {
                // The events of an earlier connection in this slot may still arrive.
                set_socket_reuseaddr(&socket, true)?;
                bind(&socket, &from)?;
            }
            match connect(&socket, &to) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
                Err(why) => Err(why),
            }
        });
        let socket = match made {
            Ok(socket) => socket,
            Err(why) => {
                return report(&Ended { result: Err(Failure::from_errno(why)), ..flow })
                    .map_err(system("report a flow"));
            }
        };
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.events.add(&socket, number as u64, EventFlags::OUT)?;
        if start.stop < Nanos::MAX {
            self.stops.push(Reverse((start.stop, flow.number, number)));
        }
        self.slots[number] = Some(Connection::new(socket, flow, began));
        self.open += 1;
        self.sent.most_open = self.sent.most_open.max(self.open);
        Ok(())
    }

    fn go_on(&mut self, number: usize, flags: EventFlags, report: Report<'_>) -> Result<(), TrafficError> {
        let Some(connection) = self.slots.get_mut(number).and_then(Option::as_mut) else { return Ok(()) };
        let next = connection.go_on(flags, &self.piece);
        match next {
            SendStep::Wait => return Ok(()),
            SendStep::Receive => return self.events.change(&connection.socket, number as u64, EventFlags::IN),
            SendStep::Completed => {
                let took = self.events.now().saturating_sub(connection.began);
                let flow = connection.ended(Ok(connection.completed(took)));
                report(&flow).map_err(system("report a flow"))?;
                self.open -= 1;
                return Ok(());
            }
            SendStep::Failed(why) => {
                report(&connection.ended(Err(why))).map_err(system("report a flow"))?;
                self.open -= 1;
            }
            SendStep::Closed => {}
        }
        if let Some(connection) = self.slots[number].take().filter(Connection::is_done) {
            close(connection.socket);
        }
        self.free.push(number);
        Ok(())
    }

    /// The time at which the next flow is stopped.
    fn next_stop(&self) -> Nanos {
        self.stops.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at)
    }

    /// Stops the flows that are due. Bytes that the kernel has accepted are still sent.
    fn stop(&mut self, now: Nanos, report: Report<'_>) -> Result<(), TrafficError> {
        while self.next_stop() <= now {
            let Some(Reverse((_, number, slot))) = self.stops.pop() else { break };
            let here = self.slots[slot].as_mut().filter(|it| it.flow.number == number && !it.is_done());
            if let Some(connection) = here {
                report(&connection.ended(Err(Failure::Stopped))).map_err(system("report a flow"))?;
                connection.stop();
                self.events.change(&connection.socket, slot as u64, EventFlags::IN)?;
                self.open -= 1;
            }
        }
        Ok(())
    }

    /// Records the progress of all flows.
    fn look(&mut self) {
        for connection in self.slots.iter_mut().flatten().filter(|connection| !connection.is_done()) {
            connection.flow.progress[0] = connection.progress();
        }
    }

    fn finish(mut self, report: Report<'_>) -> Result<Sent, TrafficError> {
        self.sent.took = self.events.now();
        for connection in self.slots.iter().flatten().filter(|connection| !connection.is_done()) {
            report(&connection.ended(Err(Failure::Unfinished))).map_err(system("report a flow"))?;
        }
        Ok(self.sent)
    }
}

/// Creates a socket with one of the congestion controls.
fn outgoing(params: &SendParams, congestion: usize, to: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    ends_with_socket(&socket)?;
    if let Some(name) = params.congestion.get(congestion) {
        raised(|| set_tcp_congestion(&socket, name))?;
    }
    Ok(socket)
}

/// Sends a flow of zero bytes with each congestion control. Returns the congestion controls that flows will use, even if the kernel
/// selects them.
///
/// # Errors
/// Fails if the server does not answer, or a requested feature is not available.
pub fn try_out(params: &SendParams) -> Result<Vec<String>, TrafficError> {
    let to = params.to;
    find_controls(params)?;
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).map_err(|why| TrafficError::Connect { to, why })?;
    let mut answer = [0; 8];
    let exchange = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.write_all(&encode(0)))
        .and_then(|()| stream.read_exact(&mut answer))
        .and_then(|()| {
            decode(answer).filter(|came| *came == 0).ok_or_else(|| io::Error::other("it sends another answer"))
        });
    exchange.map_err(|why| TrafficError::Foreign { to, why: closed_why(why) })?;
    if params.ecn && !connection::info(&stream).is_some_and(|info| info.ecn) {
        return Err(TrafficError::NoEcn { to });
    }
    if params.congestion.is_empty() {
        let name = tcp_congestion(&stream).map_err(system("find out the congestion control"))?;
        return Ok(vec![name]);
    }
    Ok(params.congestion.clone())
}

/// Selects the congestion controls of the flows on a socket, as a test.
///
/// # Errors
/// Fails if the kernel lacks one, or this user may not use it.
pub fn find_controls(params: &SendParams) -> Result<(), TrafficError> {
    for (index, name) in params.congestion.iter().enumerate() {
        outgoing(params, index, params.to).map_err(refused(name))?;
    }
    Ok(())
}
