//! Waiting for many sockets at once, until a time, or until somebody wants an end.

use super::{TrafficError, system};
use crate::{now, timespec};
use queuescope_wire::Nanos;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Sockets that are waited for, each by a number.
pub(super) struct Events {
    epoll: OwnedFd,
    found: Vec<Event>,
    began: Nanos,
}

/// Sockets that are told at once.
const ROOM: usize = 256;

impl Events {
    /// None yet; time begins now.
    pub fn new() -> Result<Self, TrafficError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(system("wait for sockets"))?;
        Ok(Self { epoll, found: Vec::with_capacity(ROOM), began: now() })
    }

    /// Time since it was made.
    pub fn now(&self) -> Nanos {
        now().saturating_sub(self.began)
    }

    /// Waits for a socket, too, until it is closed.
    pub fn add(&self, socket: &impl AsFd, number: u64, what: EventFlags) -> Result<(), TrafficError> {
        epoll::add(&self.epoll, socket, EventData::new_u64(number), what).map_err(system("wait for a socket"))
    }

    /// Waits for something else of a socket.
    pub fn change(&self, socket: &impl AsFd, number: u64, what: EventFlags) -> Result<(), TrafficError> {
        epoll::modify(&self.epoll, socket, EventData::new_u64(number), what).map_err(system("wait for a socket"))
    }

    /// Waits no longer for a socket that stays open.
    pub fn remove(&self, socket: &impl AsFd) -> Result<(), TrafficError> {
        epoll::delete(&self.epoll, socket).map_err(system("wait no longer for a socket"))
    }

    /// Returns once a socket is ready, this time is over, or there is something to read from `stop`: whether it was that.
    pub fn wait(&mut self, stop: BorrowedFd<'_>, most: Option<Nanos>) -> Result<bool, TrafficError> {
        let most = most.map(timespec);
        self.found.clear();
        // This way times are as fine as the kernel's timers; those of epoll are in milliseconds.
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
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.found), Some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => Ok(false),
            Err(why) => Err(system("wait for sockets")(why)),
        }
    }

    /// The number of one that is ready, and what for.
    pub fn ready(&self, index: usize) -> Option<(u64, EventFlags)> {
        self.found.get(index).map(|event| (event.data.u64(), event.flags))
    }
}
