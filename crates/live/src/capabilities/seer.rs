//! The only thread that keeps the capabilities that open files of other users.

use super::{OWNERS, set};
use crate::owners::Holders;
use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// A thread that finds the processes that hold sockets, including those of other users. Its only input is socket numbers: it
/// never gets a name that a user chose, and it opens only files below `/proc/NUMBER`. It ends when this value is dropped.
#[derive(Debug)]
pub struct Seer {
    requests: Option<Sender<HoldersRequest>>,
    thread: Option<JoinHandle<()>>,
}

/// Inode numbers of sockets, and the channel for the answer.
struct HoldersRequest {
    sockets: BTreeSet<u32>,
    answer: Sender<Holders>,
}

impl Seer {
    /// Starts the thread, which keeps only [`OWNERS`].
    pub(super) fn begin() -> io::Result<Self> {
        let (requests, received) = channel();
        let (started, start_result) = channel();
        let thread = thread::Builder::new().name("owners".to_owned()).spawn(move || {
            let restrained = set(OWNERS, OWNERS);
            let goes_on = restrained.is_ok();
            if started.send(restrained).is_ok() && goes_on {
                answer(&received);
            }
        })?;
        let seer = Self { requests: Some(requests), thread: Some(thread) };
        start_result.recv().map_err(|_| io::Error::other("a thread stopped at its start"))??;
        Ok(seer)
    }

    /// The processes that hold these sockets; none if the thread has stopped, which happens only through a fault.
    pub(crate) fn holders(&self, sockets: BTreeSet<u32>) -> Option<Holders> {
        let (answer, answered) = channel();
        self.requests.as_ref()?.send(HoldersRequest { sockets, answer }).ok()?;
        answered.recv().ok()
    }
}

impl Drop for Seer {
    fn drop(&mut self) {
        drop(self.requests.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

fn answer(requests: &Receiver<HoldersRequest>) {
    for HoldersRequest { sockets, answer } in requests {
        // The requester may have stopped waiting.
        let _ = answer.send(Holders::find(&sockets));
    }
}
