//! Load over the TCP of this machine: flows of known sizes that start at known times, and whoever takes them.
//!
//! A flow is a connection of its own. Its sender says how many bytes follow, sends them, and waits until the server says how many
//! came: that is when it is complete. Flows start when they are to, whatever became of those before (an open loop); a start
//! that comes late is told as such.
//!
//! On the wire: eight bytes, `qs` and the number of bytes that follow (48 bits, the highest first); those bytes; from the server
//! then the same eight with the number that came. The server closes first, so that it is not the sender's ports that have to wait
//! before they are used again.

mod datagrams;
mod events;
mod send;
mod serve;

pub use datagrams::{DatagramSender, count_datagrams, send_datagrams};
pub use send::{Completed, Ended, Failure, Progress, SendParams, Sent, Start, find_controls, send, try_out};
pub use serve::{ServeParams, Served, listen, serve, take_with};

use crate::ControlError;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_linger, set_tcp_user_timeout};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// A connection ends at once when its socket is closed, by a reset: also if its process is no more. Otherwise the kernel keeps it, its
/// namespace and its congestion control for minutes, sending what was not sent to a link that may be gone.
fn ends_with_socket(socket: impl AsFd) -> Result<(), Errno> {
    set_socket_linger(socket, Some(Duration::ZERO))
}

/// Closes a connection on which nothing more is to come: in order, if the other side hears of it in time.
fn close(socket: OwnedFd) {
    /// How long the kernel tries, in ms.
    const PATIENCE: u32 = 2_000;
    // Where this fails, a reset does it, too.
    let _ = set_tcp_user_timeout(&socket, PATIENCE).and_then(|()| set_socket_linger(&socket, None));
    drop(socket);
}

/// Why there is no traffic.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// Nobody can listen there.
    #[error("cannot listen at {at}: {why}{}", hint(why))]
    Listen {
        /// Where.
        at: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
    /// Nobody takes flows there.
    #[error("cannot reach {to}: {why}{}", hint(why))]
    Connect {
        /// Where.
        to: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
    /// Somebody else answers.
    #[error("who answers at {to} takes no such flows ({why}); start `queuescope traffic serve` there")]
    Foreign {
        /// Where.
        to: SocketAddr,
        /// What was wrong with the answer.
        why: io::Error,
    },
    /// The kernel has no such congestion control, or not for this user.
    #[error("cannot use the congestion control {name}: {why}; there are {known}")]
    Congestion {
        /// Its name.
        name: String,
        /// What the kernel said.
        why: io::Error,
        /// Those that the kernel has.
        known: String,
    },
    /// The kernel has none of this name, and takes no program for it.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// One of both ends does not want it.
    #[error(
        "ECN was not agreed on with {to}: the sender's network namespace needs `sysctl net.ipv4.tcp_ecn=1`, and the server's one that is \
         not 0"
    )]
    NoEcn {
        /// With whom.
        to: SocketAddr,
    },
    /// A call that does not fail as a rule.
    #[error("cannot {what}: {why}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        why: io::Error,
    },
}

/// What to do about an error of the system.
fn hint(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => "; start `queuescope traffic serve` there",
        io::ErrorKind::AddrInUse => "; `ss -ltnp` tells by whom, and port 0 is any that is free",
        io::ErrorKind::PermissionDenied => "; ports below 1024 are the administrator's",
        io::ErrorKind::AddrNotAvailable => "; `ip addr` lists the addresses of this machine",
        _ => "",
    }
}

/// The error of a call that does not fail as a rule.
fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> TrafficError {
    move |why| TrafficError::System { what, why: why.into() }
}

/// A socket has no congestion control of this name.
fn refused<E: Into<io::Error>>(name: &str) -> impl Fn(E) -> TrafficError {
    move |why| TrafficError::Congestion { name: name.to_owned(), why: why.into(), known: known() }
}

/// The congestion controls that the kernel has.
#[expect(clippy::disallowed_methods, reason = "the kernel tells it in a file")]
fn known() -> String {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    known.map_or_else(|why| format!("some that cannot be read: {why}"), |names| names.trim().replace(' ', ", "))
}

/// The largest flow, bytes.
pub const LARGEST: u64 = (1 << 48) - 1;

/// How a number of bytes is said: at most [`LARGEST`].
fn said(bytes: u64) -> [u8; 8] {
    let mut said = bytes.to_be_bytes();
    said[..2].copy_from_slice(b"qs");
    said
}

/// The number that was said, if that is what it is.
fn heard(said: [u8; 8]) -> Option<u64> {
    said.starts_with(b"qs").then(|| u64::from_be_bytes(said) & LARGEST)
}

/// As many files may be open as the administrator allows; there are fewer for programs that know no better.
fn allow_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Where it is refused, it stays as it is, and who finds no more counts that.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        for bytes in [0, 1, 255, 1 << 40, LARGEST] {
            assert_eq!(heard(said(bytes)), Some(bytes));
        }
        assert_eq!(said(258), *b"qs\0\0\0\0\x01\x02");
        assert_eq!([heard((1u64 << 63).to_be_bytes()), heard(*b"GET / HT")], [None, None]);
    }
}
