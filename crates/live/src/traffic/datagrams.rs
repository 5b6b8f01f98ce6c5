//! Datagrams that are sent at known times, and their receiver.

use super::{TrafficError, system};
use crate::{now, timespec};
use queuescope_wire::{Backlog, ByteCount, Ecn, Nanos};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass, set_socket_recv_buffer_size};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recvfrom, send, socket_with,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, SocketAddr};

/// A sender of datagrams.
pub struct DatagramSender {
    /// The source and the destination.
    pub ends: (SocketAddr, SocketAddr),
    /// Their ECN codepoint.
    pub ecn: Ecn,
    /// The time of each datagram, by the clock of [`now`](crate::now), and its size from the IP header on; ordered by time.
    pub datagrams: Box<dyn Iterator<Item = (Nanos, ByteCount)> + Send>,
}

/// The size of the IP and UDP headers, bytes.
const HEADERS: [usize; 2] = [20 + 8, 40 + 8];
/// The size of the largest datagram, bytes.
const LARGEST: usize = 65_535;
/// The size of the receive buffer, bytes.
const ROOM: usize = 4 << 20;

/// Sends the datagrams of all senders when they are due, until none is left or `stop` becomes readable. Returns what each sender
/// sent from the time `from` on. A late datagram is sent at once.
///
/// # Errors
/// Fails if a sender cannot send.
pub fn send_datagrams(
    senders: Vec<DatagramSender>,
    from: Nanos,
    stop: BorrowedFd<'_>,
) -> Result<Vec<Backlog>, TrafficError> {
    let mut sent = vec![Backlog::default(); senders.len()];
    let mut sources = senders.into_iter().map(Source::new).collect::<Result<Vec<_>, _>>()?;
    let mut due: BinaryHeap<_> =
        sources.iter().enumerate().filter_map(|(n, source)| Some(Reverse((source.next?.0, n)))).collect();
    let zeros = vec![0; LARGEST];
    while let Some(Reverse((at, number))) = due.pop() {
        if is_stopped(at, stop)? {
            break;
        }
        let source = &mut sources[number];
        let Some((_, size)) = source.next else { continue };
        let payload = (size.0 as usize).saturating_sub(source.headers).min(LARGEST - source.headers);
        match send(&source.socket, &zeros[..payload], SendFlags::DONTWAIT) {
            // A datagram for which the kernel has no memory is lost, as in a full queue.
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::CONNREFUSED) => {}
            Err(why) => return Err(system("send datagrams")(why)),
        }
        if at >= from {
            sent[number].packets += 1;
            sent[number].bytes += size;
        }
        source.next = source.datagrams.next();
        due.extend(source.next.map(|(at, _)| Reverse((at, number))));
    }
    Ok(sent)
}

/// Counts the datagrams that arrive at an address from the time `from` on, by source, until `stop` becomes readable. Sizes count from
/// the IP header on.
///
/// # Errors
/// Fails if the address cannot be listened at.
pub fn count_datagrams(
    at: SocketAddr,
    from: Nanos,
    stop: BorrowedFd<'_>,
) -> Result<BTreeMap<SocketAddr, Backlog>, TrafficError> {
    let wrong = |why: Errno| TrafficError::Listen { at, why: why.into() };
    let socket = socket(at).map_err(wrong)?;
    // With a smaller buffer, more datagrams may be lost here; the caller sees that they did not arrive.
    let _ = set_socket_recv_buffer_size(&socket, ROOM);
    bind(&socket, &at).map_err(wrong)?;
    let headers = HEADERS[usize::from(at.is_ipv6())];
    let mut counts = BTreeMap::<SocketAddr, Backlog>::new();
    let mut buffer = vec![0; LARGEST];
    loop {
        let mut either = [PollFd::new(&socket, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        match poll(&mut either, None) {
            Ok(_) if !either[1].revents().is_empty() => return Ok(counts),
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(system("wait for datagrams")(why)),
        }
        while let Ok((length, _, Some(who))) = recvfrom(&socket, &mut *buffer, RecvFlags::DONTWAIT) {
            if now() < from {
                continue;
            }
            if let Ok(who) = SocketAddr::try_from(who) {
                let count = counts.entry(who).or_default();
                count.packets += 1;
                count.bytes += ByteCount((length + headers) as u64);
            }
        }
    }
}

struct Source {
    socket: OwnedFd,
    headers: usize,
    datagrams: Box<dyn Iterator<Item = (Nanos, ByteCount)> + Send>,
    next: Option<(Nanos, ByteCount)>,
}

impl Source {
    fn new(sender: DatagramSender) -> Result<Self, TrafficError> {
        let DatagramSender { ends: (from, to), ecn, mut datagrams } = sender;
        let made = || {
            let socket = socket(from)?;
            bind(&socket, &from)?;
            let ecn = u32::from(ecn.bits());
            match to.ip() {
                IpAddr::V4(_) => set_ip_tos(&socket, ecn as u8)?,
                IpAddr::V6(_) => set_ipv6_tclass(&socket, ecn)?,
            }
            connect(&socket, &to)?;
            Ok(socket)
        };
        let socket = made().map_err(|why: Errno| TrafficError::Connect { to, why: why.into() })?;
        let next = datagrams.next();
        Ok(Self { socket, headers: HEADERS[usize::from(from.is_ipv6())], datagrams, next })
    }
}

fn socket(at: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}

/// Waits until `at`. Returns whether `stop` became readable first.
fn is_stopped(at: Nanos, stop: BorrowedFd<'_>) -> Result<bool, TrafficError> {
    loop {
        let pause = timespec(at.saturating_sub(now()));
        let mut stop_events = [PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        match poll(&mut stop_events, Some(&pause)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(why) => return Err(system("wait until it is time")(why)),
        }
    }
}
