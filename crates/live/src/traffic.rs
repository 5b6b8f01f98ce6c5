//! Load over this machine's TCP: flows of known sizes that start at known times, and the server that receives them.
//!
//! Each flow has its own connection. The sender announces the number of bytes, sends them, and waits for the server's
//! acknowledgement of how many arrived; then the flow is complete. Flows start at their times, whatever happened to earlier
//! flows (an open loop). A late start is reported as late.
//!
//! Protocol: eight bytes, `qs` and the number of bytes that follow (48 bits, big-endian); then those bytes; then the server sends
//! the same eight bytes with the number that it received. The server closes first, so that its ports, not the sender's, stay in
//! TIME-WAIT.

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

/// Makes a connection end with a reset as soon as its socket is closed, even if the process is killed. Otherwise the kernel would keep
/// the connection, its namespace and its congestion control for minutes and retransmit to a link that may be gone.
fn ends_with_socket(socket: impl AsFd) -> Result<(), Errno> {
    set_socket_linger(socket, Some(Duration::ZERO))
}

/// Closes a connection without a reset, if the other side answers in time.
fn close(socket: OwnedFd) {
    /// How long the kernel tries, ms.
    const PATIENCE: u32 = 2_000;
    // If this fails, the connection ends with a reset, which is acceptable.
    let _ = set_tcp_user_timeout(&socket, PATIENCE).and_then(|()| set_socket_linger(&socket, None));
    drop(socket);
}

/// Why traffic failed.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The address cannot be listened at.
    #[error("cannot listen at {at}: {why}{}", hint(why))]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The system's reason.
        why: io::Error,
    },
    /// The server cannot be reached.
    #[error("cannot reach {to}: {why}{}", hint(why))]
    Connect {
        /// The server's address.
        to: SocketAddr,
        /// The system's reason.
        why: io::Error,
    },
    /// Another program answers.
    #[error("{to} does not answer like `queuescope traffic serve` ({why}); start that there")]
    Foreign {
        /// The server's address.
        to: SocketAddr,
        /// What is wrong with the answer.
        why: io::Error,
    },
    /// The kernel lacks the congestion control, or this user may not use it.
    #[error("cannot use the congestion control {name}: {why}; available are {known}")]
    Congestion {
        /// The name.
        name: String,
        /// The kernel's reason.
        why: io::Error,
        /// The kernel's congestion controls.
        known: String,
    },
    /// The kernel lacks the congestion control and does not accept its program.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// One end did not negotiate ECN.
    #[error(
        "ECN was not negotiated with {to}: the sender's network namespace needs `sysctl net.ipv4.tcp_ecn=1`, and the server's one that is \
         not 0"
    )]
    NoEcn {
        /// The other end.
        to: SocketAddr,
    },
    /// A system call failed that normally succeeds.
    #[error("cannot {what}: {why}")]
    System {
        /// The operation.
        what: &'static str,
        /// The system's reason.
        why: io::Error,
    },
}

/// Advice for an error of the system.
fn hint(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::ConnectionRefused => "; start `queuescope traffic serve` there",
        io::ErrorKind::AddrInUse => "; `ss -ltnp` shows by which program; port 0 selects a free port",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need the administrator",
        io::ErrorKind::AddrNotAvailable => "; `ip addr` lists the addresses of this machine",
        _ => "",
    }
}

/// The error for a system call that normally succeeds.
fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> TrafficError {
    move |why| TrafficError::System { what, why: why.into() }
}

/// The error for a congestion control that a socket does not accept.
fn refused<E: Into<io::Error>>(name: &str) -> impl Fn(E) -> TrafficError {
    move |why| TrafficError::Congestion { name: name.to_owned(), why: why.into(), known: known() }
}

/// The kernel's congestion controls.
#[expect(clippy::disallowed_methods, reason = "the kernel lists them in a file")]
fn known() -> String {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    known.map_or_else(
        |why| format!("unknown ones (cannot read their list: {why})"),
        |names| names.trim().replace(' ', ", "),
    )
}

/// The size of the largest flow, bytes.
pub const LARGEST: u64 = (1 << 48) - 1;

/// Encodes a number of bytes, at most [`LARGEST`].
fn encode(bytes: u64) -> [u8; 8] {
    let mut encoded = bytes.to_be_bytes();
    encoded[..2].copy_from_slice(b"qs");
    encoded
}

/// Decodes a number of bytes; none if the message is not one.
fn decode(encoded: [u8; 8]) -> Option<u64> {
    encoded.starts_with(b"qs").then(|| u64::from_be_bytes(encoded) & LARGEST)
}

/// Raises the limit of open files to the administrator's maximum; the default is lower for the sake of old programs.
fn allow_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If this is refused, connections beyond the limit are counted as failures.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_number_is_decoded() {
        for bytes in [0, 1, 255, 1 << 40, LARGEST] {
            assert_eq!(decode(encode(bytes)), Some(bytes));
        }
        assert_eq!(encode(258), *b"qs\0\0\0\0\x01\x02");
        assert_eq!([decode((1u64 << 63).to_be_bytes()), decode(*b"GET / HT")], [None, None]);
    }
}
