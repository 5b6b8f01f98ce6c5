//! The server of flows: reads and discards the announced bytes, and acknowledges how many arrived.

use super::events::Events;
use super::{TrafficError, allow_files, close, decode, encode, ends_with_socket, refused};
use crate::capabilities::raised;
use queuescope_wire::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_congestion;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags, accept_with, recv, send, shutdown};
use std::net::{SocketAddr, TcpListener};

/// Parameters of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeParams {
    /// The maximum number of open connections; further ones are refused.
    pub open: usize,
    /// Connections that are idle for this time are closed.
    pub idle: Nanos,
    /// The server ends after this time, if given.
    pub until: Option<Nanos>,
}

/// The server's counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Complete flows.
    pub flows: u64,
    /// Bytes of all flows, complete or not.
    pub bytes: u64,
    /// Flows that ended before all announced bytes arrived.
    pub short: u64,
    /// Connections that broke or closed before the announcement or the acknowledgement.
    pub broken: u64,
    /// Connections with another protocol.
    pub foreign: u64,
    /// Connections that were closed because they were idle.
    pub idle: u64,
    /// Connections that were refused because too many connections or files were open.
    pub refused: u64,
    /// Connections that were open at the end.
    pub unfinished: u64,
}

impl Default for ServeParams {
    fn default() -> Self {
        Self { open: 10_000, idle: Nanos(60_000_000_000), until: None }
    }
}

/// Creates a listener at an address.
///
/// # Errors
/// Fails if the address cannot be listened at.
pub fn listen(at: SocketAddr) -> Result<TcpListener, TrafficError> {
    let wrong = |why| TrafficError::Listen { at, why };
    let listener = TcpListener::bind(at).map_err(wrong)?;
    listener.set_nonblocking(true).map_err(wrong)?;
    // Hundreds of connections may arrive at once; the standard library's backlog is 128.
    rustix::net::listen(&listener, 4096).map_err(|why| wrong(why.into()))?;
    Ok(listener)
}

/// Sets the congestion control of accepted connections. DCTCP needs it at the receiver, too, for ECN and for accurate feedback of CE
/// marks.
///
/// # Errors
/// Fails if the kernel lacks the congestion control or this user may not use it.
pub fn take_with(listener: &TcpListener, congestion: &str) -> Result<(), TrafficError> {
    raised(|| set_tcp_congestion(listener, congestion)).map_err(refused(congestion))
}

/// Serves until the time is over or `stop` becomes readable.
///
/// # Errors
/// Fails if sockets cannot be waited for.
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
                // A file descriptor may be free again.
                server.events.add(listener, LISTENER, EventFlags::IN)?;
                server.listens = true;
            }
        }
    }
    server.served.unfinished =
        server.slots.iter().flatten().filter(|it| it.state != ServeState::Closing).count() as u64;
    Ok(server.served)
}

/// The listener's number among the sockets.
const LISTENER: u64 = u64::MAX;
/// How often idle connections are searched.
const LOOK: Nanos = Nanos(250_000_000);
/// The maximum number of bytes per read.
const PIECE: usize = 1 << 18;
/// The maximum number of accepted connections before existing ones get their turn.
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
    state: ServeState,
    /// The partly received announcement, or the partly sent acknowledgement.
    message: [u8; 8],
    passed: usize,
    /// The announced number of bytes.
    announced: u64,
    came: u64,
    last: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServeState {
    /// Reads the announcement.
    Announcement,
    Data,
    Acknowledgement,
    /// The acknowledgement is sent; waits for the sender to close.
    Closing,
}

/// What to do with a connection next.
enum ServeStep {
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
                // No further connection is waiting, or it has been reset already.
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
            // If this fails, the connection merely ends later.
            let _ = ends_with_socket(&socket);
            self.slots[number] = Some(Connection {
                socket,
                state: ServeState::Announcement,
                message: [0; 8],
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
            ServeStep::Wait if connection.state == ServeState::Acknowledgement => connection.answer(&mut self.served),
            other => other,
        };
        if matches!(next, ServeStep::Close) {
            self.slots[number].take().into_iter().for_each(|it| close(it.socket));
            self.free.push(number);
        } else if connection.state != before {
            let what = if connection.state == ServeState::Acknowledgement { EventFlags::OUT } else { EventFlags::IN };
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
                self.served.idle += u64::from(connection.state != ServeState::Closing);
                slot.take().into_iter().for_each(|it| close(it.socket));
                self.free.push(number);
            }
        }
    }
}

impl Connection {
    /// Reads what is available, one piece at most, so that other connections get their turn.
    fn read(&mut self, buffer: &mut [u8], served: &mut Served) -> ServeStep {
        loop {
            let result = match self.state {
                ServeState::Announcement => {
                    recv(&self.socket, &mut self.message[self.passed..], RecvFlags::empty()).map(|it| it.1)
                }
                ServeState::Data => {
                    let most = buffer.len().min(usize::try_from(self.announced - self.came).unwrap_or(buffer.len()));
                    // For TCP, this discards bytes without copying them.
                    recv(&self.socket, &mut buffer[..most], RecvFlags::TRUNC).map(|it| it.1)
                }
                ServeState::Acknowledgement => return ServeStep::Wait,
                ServeState::Closing => recv(&self.socket, &mut *buffer, RecvFlags::TRUNC).map(|it| it.1),
            };
            match (self.state, result) {
                (_, Err(Errno::AGAIN | Errno::INTR)) => return ServeStep::Wait,
                (ServeState::Closing, Ok(0) | Err(_)) => return ServeStep::Close,
                (ServeState::Closing, Ok(_)) => return ServeStep::Wait,
                (ServeState::Data, Ok(0)) => {
                    served.short += 1;
                    self.state = ServeState::Acknowledgement;
                }
                (_, Ok(0) | Err(_)) => {
                    served.broken += 1;
                    return ServeStep::Close;
                }
                (ServeState::Announcement, Ok(read)) => {
                    self.passed += read;
                    if self.passed == self.message.len() {
                        let Some(announced) = decode(self.message) else {
                            served.foreign += 1;
                            return ServeStep::Close;
                        };
                        self.announced = announced;
                        self.state = if announced == 0 { ServeState::Acknowledgement } else { ServeState::Data };
                    }
                }
                (_, Ok(read)) => {
                    self.came += read as u64;
                    served.bytes += read as u64;
                    if self.came < self.announced {
                        return ServeStep::Wait;
                    }
                    self.state = ServeState::Acknowledgement;
                }
            }
            if self.state == ServeState::Acknowledgement {
                (self.message, self.passed) = (encode(self.came), 0);
                return ServeStep::Wait;
            }
        }
    }

    fn answer(&mut self, served: &mut Served) -> ServeStep {
        match send(&self.socket, &self.message[self.passed..], SendFlags::NOSIGNAL) {
            Ok(sent) => self.passed += sent,
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => {
                served.broken += 1;
                return ServeStep::Close;
            }
        }
        if self.passed == self.message.len() {
            served.flows += u64::from(self.came == self.announced);
            // If the connection is closed already, the next read finds that out.
            let _ = shutdown(&self.socket, Shutdown::Write);
            self.state = ServeState::Closing;
        }
        ServeStep::Wait
    }
}
