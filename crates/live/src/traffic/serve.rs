//! Whoever takes flows: reads what was said to come, forgets it, and says how much came.

use super::events::Events;
use super::{TrafficError, allow_files, close, ends_with_socket, heard, refused, said};
use crate::capabilities::raised;
use queuescope_wire::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown};
use std::net::{SocketAddr, TcpListener};

/// How flows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeParams {
    /// Connections at once; whoever comes to more is turned away.
    pub open: usize,
    /// A connection on which nothing happened for so long is closed.
    pub idle: Nanos,
    /// Ends after this time, if it is given.
    pub until: Option<Nanos>,
}

/// What was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Flows that came whole.
    pub flows: u64,
    /// Their bytes, and those of flows that did not.
    pub bytes: u64,
    /// Flows that ended before all that was said came.
    pub short: u64,
    /// Connections that broke, or were closed, before it was said how much follows, or what came was told.
    pub broken: u64,
    /// Connections of somebody who speaks of something else.
    pub foreign: u64,
    /// Connections that were closed since nothing happened on them.
    pub idle: u64,
    /// Connections that were turned away, since there were too many, or too many files were open.
    pub refused: u64,
    /// Connections that were open at the end.
    pub unfinished: u64,
}

impl Default for ServeParams {
    fn default() -> Self {
        Self { open: 10_000, idle: Nanos(60_000_000_000), until: None }
    }
}

/// A listener at an address.
///
/// # Errors
/// If nobody can listen there.
pub fn listen(at: SocketAddr) -> Result<TcpListener, TrafficError> {
    let wrong = |why| TrafficError::Listen { at, why };
    let listener = TcpListener::bind(at).map_err(wrong)?;
    listener.set_nonblocking(true).map_err(wrong)?;
    // Hundreds may come at once; the library lets 128 wait.
    rustix::net::listen(&listener, 4096).map_err(|why| wrong(why.into()))?;
    Ok(listener)
}

/// Whoever comes has this congestion control at the listener's end: DCTCP needs it there, for ECN and to be told of each mark.
///
/// # Errors
/// If there is none of the name, or not for this user.
pub fn take_with(listener: &TcpListener, congestion: &str) -> Result<(), TrafficError> {
    raised(|| set_tcp_congestion(listener, congestion)).map_err(refused(congestion))
}

/// Takes flows until its time is over, or there is something to read from `stop`.
///
/// # Errors
/// If sockets cannot be waited for.
pub fn serve(listener: &TcpListener, params: ServeParams, stop: BorrowedFd<'_>) -> Result<Served, TrafficError> {
    allow_files();
    let events = Events::new()?;
    events.add(listener, LISTENER, EventFlags::IN)?;
    let (slots, free, buffer) = (Vec::new(), Vec::new(), vec![0; PIECE]);
    let mut server = Server { params, events, slots, free, buffer, listens: true, served: Served::default() };
    let mut looked = Nanos::ZERO;
    loop {
        let now = server.events.now();
        let left = params.until.map(|until| until.saturating_sub(now));
        if left == Some(Nanos::ZERO) || server.events.wait(stop, Some(left.unwrap_or(LOOK).min(LOOK)))? {
            break;
        }
        let mut index = 0;
        while let Some((number, _)) = server.events.ready(index) {
            index += 1;
            if number == LISTENER {
                server.accept(listener)?;
            } else {
                server.go_on(number as usize)?;
            }
        }
        if server.events.now().saturating_sub(looked) >= LOOK {
            looked = server.events.now();
            server.close_idle();
            if !server.listens {
                // Perhaps there are files again.
                server.events.add(listener, LISTENER, EventFlags::IN)?;
                server.listens = true;
            }
        }
    }
    server.served.unfinished = server.slots.iter().flatten().filter(|it| it.state != State::Closing).count() as u64;
    Ok(server.served)
}

/// The number of the listener among the sockets.
const LISTENER: u64 = u64::MAX;
/// How often idle connections are looked for.
const LOOK: Nanos = Nanos(250_000_000);
/// Bytes that are taken at once.
const PIECE: usize = 1 << 18;
/// Connections that are taken at once, before those that are there are gone on with.
const ACCEPTS: usize = 64;

struct Server {
    params: ServeParams,
    events: Events,
    slots: Vec<Option<Connection>>,
    free: Vec<usize>,
    buffer: Vec<u8>,
    listens: bool,
    served: Served,
}

struct Connection {
    socket: OwnedFd,
    state: State,
    /// What was heard of what is said, or said of the answer.
    words: [u8; 8],
    passed: usize,
    /// Bytes of the flow.
    announced: u64,
    came: u64,
    last: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is not known yet how much comes.
    Hears,
    Takes,
    Answers,
    /// All is said; the sender closes, too.
    Closing,
}

/// What becomes of a connection.
enum Next {
    Wait,
    Close,
}

impl Server {
    fn accept(&mut self, listener: &TcpListener) -> Result<(), TrafficError> {
        for _ in 0..ACCEPTS {
            let socket = match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(socket) => socket,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.served.refused += 1;
                    self.events.remove(listener)?;
                    self.listens = false;
                    return Ok(());
                }
                // Nobody else; or somebody who is gone already.
                Err(_) => return Ok(()),
            };
            if self.slots.len() - self.free.len() >= self.params.open {
                self.served.refused += 1;
                continue;
            }
            let number = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
            self.events.add(&socket, number as u64, EventFlags::IN)?;
            // If it fails, it only ends later.
            let _ = ends_with_socket(&socket);
            self.slots[number] = Some(Connection {
                socket,
                state: State::Hears,
                words: [0; 8],
                passed: 0,
                announced: 0,
                came: 0,
                last: self.events.now(),
            });
        }
        Ok(())
    }

    fn go_on(&mut self, number: usize) -> Result<(), TrafficError> {
        let now = self.events.now();
        let Some(connection) = self.slots.get_mut(number).and_then(Option::as_mut) else { return Ok(()) };
        connection.last = now;
        let before = connection.state;
        let next = match connection.read(&mut self.buffer, &mut self.served) {
            Next::Wait if connection.state == State::Answers => connection.answer(&mut self.served),
            other => other,
        };
        if matches!(next, Next::Close) {
            self.slots[number].take().into_iter().for_each(|it| close(it.socket));
            self.free.push(number);
        } else if connection.state != before {
            let what = if connection.state == State::Answers { EventFlags::OUT } else { EventFlags::IN };
            self.events.change(&connection.socket, number as u64, what)?;
        }
        Ok(())
    }

    fn close_idle(&mut self) {
        let now = self.events.now();
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if let Some(connection) = slot
                && now.saturating_sub(connection.last) > self.params.idle
            {
                self.served.idle += u64::from(connection.state != State::Closing);
                slot.take().into_iter().for_each(|it| close(it.socket));
                self.free.push(number);
            }
        }
    }
}

impl Connection {
    /// Reads what there is, of one piece's size at most, so that others have their turn.
    fn read(&mut self, buffer: &mut [u8], served: &mut Served) -> Next {
        loop {
            let result = match self.state {
                State::Hears => recv(&self.socket, &mut self.words[self.passed..], RecvFlags::empty()).map(|it| it.1),
                State::Takes => {
                    let most = buffer.len().min(usize::try_from(self.announced - self.came).unwrap_or(buffer.len()));
                    // Of TCP, this takes bytes without copying them.
                    recv(&self.socket, &mut buffer[..most], RecvFlags::TRUNC).map(|it| it.1)
                }
                State::Answers => return Next::Wait,
                State::Closing => recv(&self.socket, &mut *buffer, RecvFlags::TRUNC).map(|it| it.1),
            };
            match (self.state, result) {
                (_, Err(Errno::AGAIN | Errno::INTR)) => return Next::Wait,
                (State::Closing, Ok(0) | Err(_)) => return Next::Close,
                (State::Closing, Ok(_)) => return Next::Wait,
                (State::Takes, Ok(0)) => {
                    served.short += 1;
                    self.state = State::Answers;
                }
                (_, Ok(0) | Err(_)) => {
                    served.broken += 1;
                    return Next::Close;
                }
                (State::Hears, Ok(read)) => {
                    self.passed += read;
                    if self.passed == self.words.len() {
                        let Some(announced) = heard(self.words) else {
                            served.foreign += 1;
                            return Next::Close;
                        };
                        self.announced = announced;
                        self.state = if announced == 0 { State::Answers } else { State::Takes };
                    }
                }
                (_, Ok(read)) => {
                    self.came += read as u64;
                    served.bytes += read as u64;
                    if self.came < self.announced {
                        return Next::Wait;
                    }
                    self.state = State::Answers;
                }
            }
            if self.state == State::Answers {
                (self.words, self.passed) = (said(self.came), 0);
                return Next::Wait;
            }
        }
    }

    fn answer(&mut self, served: &mut Served) -> Next {
        match send(&self.socket, &self.words[self.passed..], SendFlags::NOSIGNAL) {
            Ok(sent) => self.passed += sent,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                served.broken += 1;
                return Next::Close;
            }
        }
        if self.passed == self.words.len() {
            served.flows += u64::from(self.came == self.announced);
            // If it is closed already, reading tells so.
            let _ = shutdown(&self.socket, Shutdown::Write);
            self.state = State::Closing;
        }
        Next::Wait
    }
}
