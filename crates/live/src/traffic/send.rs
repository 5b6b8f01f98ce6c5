//! Whoever sends flows, when they are to start.

mod connection;

use super::events::Events;
use super::{TrafficError, allow_files, close, ends_with_socket, heard, refused, said, system};
use crate::capabilities::raised;
use connection::{Connection, Next, closed_why};
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

/// How flows are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendParams {
    /// To whom.
    pub to: SocketAddr,
    /// Flows at once; those that would be more do not start.
    pub open: usize,
    /// How long flows that are open may take when the last has started.
    pub wait: Nanos,
    /// Congestion controls, which flows choose from; the kernel's own choice, if there are none.
    pub congestion: Vec<String>,
    /// Fails unless ECN is agreed on with the server.
    pub ecn: bool,
    /// How far flows are that are open then is told of them, too.
    pub midway: Option<Nanos>,
}

/// A flow that is to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// When, from the beginning on; not before the one before.
    pub at: Nanos,
    /// Bytes, behind the eight that say how many; at most [`LARGEST`](super::LARGEST).
    pub bytes: u64,
    /// What the sender of it calls its kind.
    pub class: usize,
    /// Which of the congestion controls.
    pub congestion: usize,
    /// From which address to which, if it is not from any to that of all.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// When no more of it is sent; the latest time there is if never.
    pub stop: Nanos,
}

/// How far a flow is, by what the kernel says of its connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that the other side has acknowledged.
    pub acked: u64,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Expiries of the retransmission timer; 0 before Linux 6.7.
    pub timeouts: u32,
    /// The smoothed round trip; zero, if there was none.
    pub rtt: Nanos,
}

/// What became of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its number, from 0, in the order of starts.
    pub number: u64,
    /// What was wanted.
    pub start: Start,
    /// How much later than wanted it started.
    pub late: Nanos,
    /// How far it was when it was to be looked, and at its end.
    pub progress: [Progress; 2],
    /// That.
    pub result: Result<Completed, Failure>,
}

/// A flow whose bytes have all come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Completed {
    /// From the call that connects until the server's answer has come.
    pub took: Nanos,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// The shortest round trip; zero, if the kernel does not say.
    pub min_rtt: Nanos,
    /// Whether ECN was agreed on.
    pub ecn: bool,
}

/// Why a flow did not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// Too many were open when it was to start.
    TooMany,
    /// Nobody listens.
    Refused,
    /// The connection was reset.
    Reset,
    /// There is no way there.
    Unreachable,
    /// Nobody answers.
    TimedOut,
    /// The server closed before it told what came.
    Gone,
    /// The server says that something else came.
    Wrong,
    /// No port is free.
    NoPort,
    /// Too many files are open.
    NoFile,
    /// It was open at the end.
    Unfinished,
    /// No more of it was to be sent.
    Stopped,
    /// Something else.
    Other,
}

/// What was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// Flows that were to start.
    pub flows: u64,
    /// Whether it was stopped before all had started.
    pub stopped: bool,
    /// How long it took.
    pub took: Nanos,
    /// The most flows that were open at once.
    pub most_open: usize,
}

impl Failure {
    /// In a word.
    pub fn name(self) -> &'static str {
        self.told().0
    }

    /// What it means for flows.
    pub fn meaning(self) -> &'static str {
        self.told().1
    }

    fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::TooMany => ("too_many", "flows that did not start, since too many were open (--flows)"),
            Self::Refused => ("refused", "flows that nobody took: is the server still there?"),
            Self::Reset => ("reset", "flows whose connection was reset: the server is gone, or has too many"),
            Self::Unreachable => ("unreachable", "flows without a way to the server; ip route tells which there are"),
            Self::TimedOut => ("timed_out", "flows that were given up by the kernel, since nothing came back"),
            Self::Gone => ("gone", "flows that the server closed before it told what came"),
            Self::Wrong => ("wrong", "flows of which the server says that something else came"),
            Self::NoPort => ("no_port", "flows without a free port; sysctl net.ipv4.ip_local_port_range has them"),
            Self::NoFile => ("no_file", "flows that did not start, since too many files were open; ulimit -n"),
            Self::Unfinished => ("unfinished", "flows that were open at the end"),
            Self::Stopped => ("stopped", "flows that were stopped"),
            Self::Other => ("other", "flows that failed otherwise"),
        }
    }

    fn of(why: Errno) -> Self {
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

/// Sends flows until all have ended, or there is something to read from `stop`, and tells what became of each. Whether somebody
/// takes them, [`try_out`] tells.
///
/// # Errors
/// If sockets cannot be waited for, or who is told says so.
pub fn send(
    params: &SendParams,
    mut starts: impl Iterator<Item = Start>,
    stop: BorrowedFd<'_>,
    mut told: impl FnMut(&Ended) -> io::Result<()>,
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
            sender.start(start, &mut told)?;
            last = start.at.max(sender.events.now());
            next = starts.next();
        }
        let now = sender.events.now();
        sender.stop(now, &mut told)?;
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
            sender.go_on(number as usize, flags, &mut told)?;
        }
    }
    sender.finish(&mut told)
}

/// Flows that start before those that are open are gone on with.
const STARTS: usize = 64;
/// Bytes that are sent at once.
const PIECE: usize = 1 << 17;
/// How long the server may take at first.
const PATIENCE: Duration = Duration::from_secs(5);

struct Sender<'a> {
    params: &'a SendParams,
    events: Events,
    slots: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections whose flow has not ended.
    open: usize,
    /// Flows that are stopped, with their slots, and when; they may have ended before.
    stops: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    piece: Vec<u8>,
    sent: Sent,
}

type Told<'a> = &'a mut dyn FnMut(&Ended) -> io::Result<()>;

impl Sender<'_> {
    fn start(&mut self, start: Start, told: Told<'_>) -> Result<(), TrafficError> {
        let began = self.events.now();
        let (number, late) = (self.sent.flows, began.saturating_sub(start.at));
        self.sent.flows += 1;
        let progress = [Progress::default(); 2];
        let flow = Ended { number, start, late, progress, result: Err(Failure::TooMany) };
        // Those that only wait for the server to close count, too: they have a file.
        if self.slots.len() - self.free.len() >= self.params.open {
            return told(&flow).map_err(system("tell of a flow"));
        }
        let to = start.ends.map_or(self.params.to, |(_, to)| to);
        let made = outgoing(self.params, start.congestion, to).and_then(|socket| {
            if let Some((from, _)) = start.ends {
                // Others had it before whose last packets may still come.
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
                return told(&Ended { result: Err(Failure::of(why)), ..flow }).map_err(system("tell of a flow"));
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

    fn go_on(&mut self, number: usize, flags: EventFlags, told: Told<'_>) -> Result<(), TrafficError> {
        let Some(connection) = self.slots.get_mut(number).and_then(Option::as_mut) else { return Ok(()) };
        let next = connection.go_on(flags, &self.piece);
        match next {
            Next::Wait => return Ok(()),
            Next::Hear => return self.events.change(&connection.socket, number as u64, EventFlags::IN),
            Next::Completed => {
                let took = self.events.now().saturating_sub(connection.began);
                let flow = connection.ended(Ok(connection.completed(took)));
                told(&flow).map_err(system("tell of a flow"))?;
                self.open -= 1;
                return Ok(());
            }
            Next::Failed(why) => {
                told(&connection.ended(Err(why))).map_err(system("tell of a flow"))?;
                self.open -= 1;
            }
            Next::Closed => {}
        }
        if let Some(connection) = self.slots[number].take().filter(Connection::is_done) {
            close(connection.socket);
        }
        self.free.push(number);
        Ok(())
    }

    /// When the next flow is stopped.
    fn next_stop(&self) -> Nanos {
        self.stops.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at)
    }

    /// Ends the flows that are to be stopped; what was handed to the kernel is sent on.
    fn stop(&mut self, now: Nanos, told: Told<'_>) -> Result<(), TrafficError> {
        while self.next_stop() <= now {
            let Some(Reverse((_, number, slot))) = self.stops.pop() else { break };
            let here = self.slots[slot].as_mut().filter(|it| it.flow.number == number && !it.is_done());
            if let Some(connection) = here {
                told(&connection.ended(Err(Failure::Stopped))).map_err(system("tell of a flow"))?;
                connection.stop();
                self.events.change(&connection.socket, slot as u64, EventFlags::IN)?;
                self.open -= 1;
            }
        }
        Ok(())
    }

    /// Looks how far flows are.
    fn look(&mut self) {
        for connection in self.slots.iter_mut().flatten().filter(|connection| !connection.is_done()) {
            connection.flow.progress[0] = connection.progress();
        }
    }

    fn finish(mut self, told: Told<'_>) -> Result<Sent, TrafficError> {
        self.sent.took = self.events.now();
        for connection in self.slots.iter().flatten().filter(|connection| !connection.is_done()) {
            told(&connection.ended(Err(Failure::Unfinished))).map_err(system("tell of a flow"))?;
        }
        Ok(self.sent)
    }
}

/// A socket with one of the congestion controls.
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

/// Sends a flow of no bytes, after all was asked for that flows will ask for: the congestion controls, also where the kernel chose.
///
/// # Errors
/// If nobody takes flows, or what is asked for cannot be.
pub fn try_out(params: &SendParams) -> Result<Vec<String>, TrafficError> {
    let to = params.to;
    find_controls(params)?;
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE).map_err(|why| TrafficError::Connect { to, why })?;
    let mut answer = [0; 8];
    let exchange = stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.write_all(&said(0)))
        .and_then(|()| stream.read_exact(&mut answer))
        .and_then(|()| {
            heard(answer).filter(|came| *came == 0).ok_or_else(|| io::Error::other("it says something else"))
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

/// Asks for the congestion controls that flows will ask for.
///
/// # Errors
/// If the kernel does not have one, or not for this user.
pub fn find_controls(params: &SendParams) -> Result<(), TrafficError> {
    for (index, name) in params.congestion.iter().enumerate() {
        outgoing(params, index, params.to).map_err(refused(name))?;
    }
    Ok(())
}
