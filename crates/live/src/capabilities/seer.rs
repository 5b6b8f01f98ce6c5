//! The one thread that keeps the capabilities that open files of others.

use super::{OWNERS, set};
use crate::owners::Holders;
use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// A thread that finds out which processes hold sockets, also those of other users. It takes numbers of sockets and nothing else: no name
/// that a user chose comes to it, and all that it opens is below `/proc/NUMBER`. It ends with this value.
#[derive(Debug)]
pub struct Seer {
    asks: Option<Sender<Ask>>,
    thread: Option<JoinHandle<()>>,
}

/// Sockets by their numbers, and where the answer goes.
struct Ask {
    sockets: BTreeSet<u32>,
    answer: Sender<Holders>,
}

impl Seer {
    /// Begins the thread, which keeps [`OWNERS`] alone.
    pub(super) fn begin() -> io::Result<Self> {
        let (asks, asked) = channel();
        let (tell, told) = channel();
        let thread = thread::Builder::new().name("owners".to_owned()).spawn(move || {
            let restrained = set(OWNERS, OWNERS);
            let goes_on = restrained.is_ok();
            if tell.send(restrained).is_ok() && goes_on {
                answer(&asked);
            }
        })?;
        let seer = Self { asks: Some(asks), thread: Some(thread) };
        told.recv().map_err(|_| io::Error::other("a thread has stopped as it began"))??;
        Ok(seer)
    }

    /// Who holds these sockets; nothing if the thread has stopped, which it does by a fault only.
    pub(crate) fn holders(&self, sockets: BTreeSet<u32>) -> Option<Holders> {
        let (answer, answered) = channel();
        self.asks.as_ref()?.send(Ask { sockets, answer }).ok()?;
        answered.recv().ok()
    }
}

impl Drop for Seer {
    fn drop(&mut self) {
        drop(self.asks.take());
        if let Some(thread) = self.thread.take() {
            // It has nothing to say about how it ended.
            let _ = thread.join();
        }
    }
}

fn answer(asked: &Receiver<Ask>) {
    for Ask { sockets, answer } in asked {
        // Who asked may have stopped waiting.
        let _ = answer.send(Holders::of(&sockets));
    }
}
