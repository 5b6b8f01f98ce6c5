//! One flow on its way.

use super::{Completed, Ended, Failure, Progress};
use crate::option;
use crate::traffic::{heard, said};
use queuescope_wire::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, IoSlice};
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, sendmsg, shutdown};
use std::io;

/// A flow that has started.
pub(super) struct Connection {
    pub socket: OwnedFd,
    pub flow: Ended,
    pub began: Nanos,
    state: State,
    /// What was said or heard of the number of bytes.
    words: [u8; 8],
    passed: usize,
    /// Bytes of the flow that were sent.
    sent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Sends,
    Hears,
    /// It is complete or was stopped; the server closes.
    Done,
}

/// What becomes of it.
pub(super) enum Next {
    Wait,
    /// All is sent.
    Hear,
    Completed,
    Failed(Failure),
    /// It was complete, or stopped, before.
    Closed,
}

impl Connection {
    pub fn new(socket: OwnedFd, flow: Ended, began: Nanos) -> Self {
        let words = said(flow.start.bytes);
        Self { socket, flow, began, state: State::Sends, words, passed: 0, sent: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Sends or hears what can be now, of one piece's size at most, so that others have their turn.
    pub fn go_on(&mut self, flags: EventFlags, piece: &[u8]) -> Next {
        if flags.contains(EventFlags::ERR)
            && self.state != State::Done
            && let Ok(Err(why)) = socket_error(&self.socket)
        {
            return Next::Failed(Failure::of(why));
        }
        match self.state {
            State::Sends => self.send(piece),
            State::Hears => self.hear(),
            State::Done => match recv(&self.socket, &mut [0; 8], RecvFlags::empty()) {
                Err(Errno::AGAIN | Errno::INTR) => Next::Wait,
                _ => Next::Closed,
            },
        }
    }

    /// No more is sent but what the kernel has.
    pub fn stop(&mut self) {
        // If it is closed already, there is nothing to send.
        let _ = shutdown(&self.socket, Shutdown::Write);
        self.state = State::Done;
    }

    fn send(&mut self, piece: &[u8]) -> Next {
        let left = self.flow.start.bytes - self.sent;
        let most = piece.len().min(usize::try_from(left).unwrap_or(piece.len()));
        // In one call, so that a small flow is one packet.
        let parts = [IoSlice::new(&self.words[self.passed..]), IoSlice::new(&piece[..most])];
        match sendmsg(&self.socket, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(sent) => {
                let words = sent.min(self.words.len() - self.passed);
                self.passed += words;
                self.sent += (sent - words) as u64;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(why) => return Next::Failed(Failure::of(why)),
        }
        if self.passed == self.words.len() && self.sent == self.flow.start.bytes {
            (self.state, self.passed) = (State::Hears, 0);
            return Next::Hear;
        }
        Next::Wait
    }

    fn hear(&mut self) -> Next {
        match recv(&self.socket, &mut self.words[self.passed..], RecvFlags::empty()) {
            Ok((_, 0)) => return Next::Failed(Failure::Gone),
            Ok((_, heard)) => self.passed += heard,
            Err(Errno::AGAIN | Errno::INTR) => return Next::Wait,
            Err(why) => return Next::Failed(Failure::of(why)),
        }
        if self.passed < self.words.len() {
            return Next::Wait;
        }
        if heard(self.words) == Some(self.flow.start.bytes) {
            self.state = State::Done;
            Next::Completed
        } else {
            Next::Failed(Failure::Wrong)
        }
    }

    /// It has ended so.
    pub fn ended(&self, result: Result<Completed, Failure>) -> Ended {
        let [midway, _] = self.flow.progress;
        Ended { progress: [midway, self.progress()], result, ..self.flow }
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let Some(info) = tcp_info(&self.socket) else { return Progress::default() };
        Progress {
            // The SYN counts for one.
            acked: info.tcpi_bytes_acked.saturating_sub(1),
            retransmitted: info.tcpi_total_retrans,
            timeouts: u32::from(info.tcpi_total_rto),
            rtt: Nanos(u64::from(info.tcpi_rtt) * 1_000),
        }
    }

    /// What the kernel says of it, now that it is complete.
    pub fn completed(&self, took: Nanos) -> Completed {
        Completed { took, ..info(&self.socket).unwrap_or_default() }
    }
}

/// What the kernel says of a connection, but how long it took.
pub(super) fn info(socket: &impl AsFd) -> Option<Completed> {
    /// ECN was agreed on (`TCPI_OPT_ECN` of linux/tcp.h).
    const ECN: u8 = 8;
    let info = tcp_info(socket)?;
    Some(Completed {
        took: Nanos::ZERO,
        retransmitted: info.tcpi_total_retrans,
        // In microseconds; the largest number is that there was none.
        min_rtt: Nanos(u64::from(info.tcpi_min_rtt) * 1_000),
        ecn: info.tcpi_options & ECN != 0,
    })
}

fn tcp_info(socket: &impl AsFd) -> Option<libc::tcp_info> {
    option::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO).ok()
}

/// Whoever speaks of something else closes, or waits for more; said so that it is understood.
pub(super) fn closed_why(why: io::Error) -> io::Error {
    match why.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => io::Error::other("it closed the connection"),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::other("it did not answer for 5 s"),
        _ => why,
    }
}
