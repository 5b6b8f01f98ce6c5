//! The connection of one flow.

use super::{Completed, Ended, Failure, Progress};
use crate::option;
use crate::traffic::{decode, encode};
use queuescope_wire::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, IoSlice};
use rustix::net::sockopt::socket_error;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, sendmsg, shutdown};
use std::io;

/// The connection of a flow that has started.
pub(super) struct Connection {
    pub socket: OwnedFd,
    pub flow: Ended,
    pub began: Nanos,
    state: SendState,
    /// The announcement, or the partly received acknowledgement.
    message: [u8; 8],
    passed: usize,
    /// The number of bytes of the flow that were sent.
    sent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendState {
    Sends,
    Receives,
    /// The flow is complete or stopped; waits for the server to close.
    Done,
}

/// What to do with the connection next.
pub(super) enum SendStep {
    Wait,
    /// All bytes are sent; wait for the acknowledgement.
    Receive,
    Completed,
    Failed(Failure),
    /// The server closed the connection after the flow had completed or stopped.
    Closed,
}

impl Connection {
    pub fn new(socket: OwnedFd, flow: Ended, began: Nanos) -> Self {
        let message = encode(flow.start.bytes);
        Self { socket, flow, began, state: SendState::Sends, message, passed: 0, sent: 0 }
    }

    pub fn is_done(&self) -> bool {
        self.state == SendState::Done
    }

    /// Sends or receives what is possible now, one piece at most, so that other flows get their turn.
    pub fn go_on(&mut self, flags: EventFlags, piece: &[u8]) -> SendStep {
        if flags.contains(EventFlags::ERR)
            && self.state != SendState::Done
            && let Ok(Err(why)) = socket_error(&self.socket)
        {
            return SendStep::Failed(Failure::from_errno(why));
        }
        match self.state {
            SendState::Sends => self.send(piece),
            SendState::Receives => self.receive(),
            SendState::Done => match recv(&self.socket, &mut [0; 8], RecvFlags::empty()) {
                Err(Errno::AGAIN | Errno::INTR) => SendStep::Wait,
                _ => SendStep::Closed,
            },
        }
    }

    /// Sends nothing more, except what the kernel has accepted.
    pub fn stop(&mut self) {
        // If the connection is closed already, there is nothing to do.
        let _ = shutdown(&self.socket, Shutdown::Write);
        self.state = SendState::Done;
    }

    fn send(&mut self, piece: &[u8]) -> SendStep {
        let left = self.flow.start.bytes - self.sent;
        let most = piece.len().min(usize::try_from(left).unwrap_or(piece.len()));
        // One call for the announcement and the data, so that a small flow is one packet.
        let parts = [IoSlice::new(&self.message[self.passed..]), IoSlice::new(&piece[..most])];
        match sendmsg(&self.socket, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL) {
            Ok(sent) => {
                let message = sent.min(self.message.len() - self.passed);
                self.passed += message;
                self.sent += (sent - message) as u64;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(why) => return SendStep::Failed(Failure::from_errno(why)),
        }
        if self.passed == self.message.len() && self.sent == self.flow.start.bytes {
            (self.state, self.passed) = (SendState::Receives, 0);
            return SendStep::Receive;
        }
        SendStep::Wait
    }

    fn receive(&mut self) -> SendStep {
        match recv(&self.socket, &mut self.message[self.passed..], RecvFlags::empty()) {
            Ok((_, 0)) => return SendStep::Failed(Failure::Gone),
            Ok((_, decode)) => self.passed += decode,
            Err(Errno::AGAIN | Errno::INTR) => return SendStep::Wait,
            Err(why) => return SendStep::Failed(Failure::from_errno(why)),
        }
        if self.passed < self.message.len() {
            return SendStep::Wait;
        }
        if decode(self.message) == Some(self.flow.start.bytes) {
            self.state = SendState::Done;
            SendStep::Completed
        } else {
            SendStep::Failed(Failure::Wrong)
        }
    }

    /// The flow with its outcome.
    pub fn ended(&self, result: Result<Completed, Failure>) -> Ended {
        let [midway, _] = self.flow.progress;
        Ended { progress: [midway, self.progress()], result, ..self.flow }
    }

    /// The current progress.
    pub fn progress(&self) -> Progress {
        let Some(info) = tcp_info(&self.socket) else { return Progress::default() };
        Progress {
            // The kernel counts the SYN as one byte.
            acked: info.tcpi_bytes_acked.saturating_sub(1),
            retransmitted: info.tcpi_total_retrans,
            timeouts: u32::from(info.tcpi_total_rto),
            rtt: Nanos(u64::from(info.tcpi_rtt) * 1_000),
        }
    }

    /// The completed flow, with the kernel's information on its connection.
    pub fn completed(&self, took: Nanos) -> Completed {
        Completed { took, ..info(&self.socket).unwrap_or_default() }
    }
}

/// The kernel's information on a connection, without the duration.
pub(super) fn info(socket: &impl AsFd) -> Option<Completed> {
    /// ECN was negotiated (`TCPI_OPT_ECN` of linux/tcp.h).
    const ECN: u8 = 8;
    let info = tcp_info(socket)?;
    Some(Completed {
        took: Nanos::ZERO,
        retransmitted: info.tcpi_total_retrans,
        // In microseconds; the maximum means that there is no sample.
        min_rtt: Nanos(u64::from(info.tcpi_min_rtt) * 1_000),
        ecn: info.tcpi_options & ECN != 0,
    })
}

fn tcp_info(socket: &impl AsFd) -> Option<libc::tcp_info> {
    option::get(socket, libc::IPPROTO_TCP, libc::TCP_INFO).ok()
}

/// A server of another protocol closes the connection or waits for more; explains that to the user.
pub(super) fn closed_why(why: io::Error) -> io::Error {
    match why.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => io::Error::other("it closed the connection"),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::other("it did not answer for 5 s"),
        _ => why,
    }
}
