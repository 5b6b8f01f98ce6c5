//! Waits for many sockets at once, until a time or a request to stop.

use super::{TrafficError, system};
use crate::{now, timespec};
use queuescope_wire::Nanos;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Registered sockets, each with a number.
pub(super) struct Events {
    epoll: OwnedFd,
    ready_events: Vec<Event>,
    began: Nanos,
}

/// The maximum number of sockets that one wait returns.
const ROOM: usize = 256;

impl Events {
    /// Creates an empty set. Its time starts at zero.
    pub fn new() -> Result<Self, TrafficError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(system("wait for sockets"))?;
        Ok(Self { epoll, ready_events: Vec::with_capacity(ROOM), began: now() })
    }

    /// The time since the set was created.
    pub fn now(&self) -> Nanos {
        now().saturating_sub(self.began)
    }

    /// Registers a socket until it is closed.
    pub fn add(&self, socket: &impl AsFd, number: u64, what: EventFlags) -> Result<(), TrafficError> {
        epoll::add(&self.epoll, socket, EventData::new_u64(number), what).map_err(system("wait for a socket"))
    }

    /// Changes the events of a registered socket.
    pub fn change(&self, socket: &impl AsFd, number: u64, what: EventFlags) -> Result<(), TrafficError> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(number), what).map_err(system("wait for a socket"))
    }

    /// Removes a socket that stays open.
    pub fn remove(&self, socket: &impl AsFd) -> Result<(), TrafficError> {
        epoll::delete(&self.epoll, socket).map_err(system("stop waiting for a socket"))
    }

    /// Waits until a socket is ready, `most` is over, or `stop` becomes readable. Returns whether `stop` did.
    pub fn wait(&mut self, stop: BorrowedFd<'_>, most: Option<Nanos>) -> Result<bool, TrafficError> {
        let most = most.map(timespec);
        self.ready_events.clear();
        // poll has a finer timeout than epoll, whose timeouts are in milliseconds.
        let mut either = [PollFd::new(&self.epoll, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        match poll(&mut either, most.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Err(why) => return Err(system("wait for sockets")(why)),
            Ok(_) => {}
        }
        if !either[1].revents().is_empty() {
            return Ok(true);
        }
        let at_once = timespec(Nanos::ZERO);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.ready_events), Some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => Ok(false),
            Err(why) => Err(system("wait for sockets")(why)),
        }
    }

    /// The number of a ready socket, and its events.
    pub fn ready(&self, index: usize) -> Option<(u64, EventFlags)> {
        self.ready_events.get(index).map(|event| (event.data.u64(), event.flags))
    }
}
