//! Reads a capture on a thread of its own, some batches ahead of the queue.
//!
//! The thread ends with the capture, with a stop, or at the next batch after the receiver is gone. It takes no part in the analysis: all calls of
//! the listener come from the thread of the caller, in the same order and with the same values as without it.

use super::batch::Batch;
use super::channel::{Empty, Full, channel};
use super::feed::{CaptureFeed, Downstream, ReadCapture};
use super::send::{AT_ONCE, CaptureQueue, Sender};
use crate::listener::Listener;
use queuescope_pcap::Record;
use queuescope_wire::parse::Frame;
use queuescope_wire::{MaskedKey, Nanos};
use std::ops::Range;
use std::panic;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// The number of arrivals in a batch: 24 KiB of them. A multiple of those that are sent at once, so that flows are looked up in the same groups.
const BATCH: usize = 16 * AT_ONCE;
/// The number of batches between the threads: half a megabyte, if each packet has a new flow.
const AHEAD: usize = 6;

/// A thread that reads.
pub(super) struct Ahead {
    messages: Empty<Message>,
    used: Used,
    thread: JoinHandle<()>,
}

/// Batches that were sent, to be used again.
type Used = Arc<Mutex<Vec<Batch>>>;

enum Message {
    Progress { read: u64, frames: u64 },
    Arrivals(Batch),
    Wait,
    End(Box<ReadCapture>),
}

/// Starts to read; or returns `feed` if there can be no thread. Arrivals name their flows `by_place`, or else by key.
pub(super) fn start(feed: Box<CaptureFeed>, by_place: bool) -> Result<Ahead, Box<CaptureFeed>> {
    // The thread takes the feed only once it runs: if it cannot be started, the feed is still here.
    let (give, take) = channel::<Box<CaptureFeed>>(1);
    let (full, messages) = channel(AHEAD);
    let used = Used::default();
    let mut down = OtherThread { full, used: Arc::clone(&used) };
    let read = move || {
        let Some(mut feed) = take.take() else { return };
        if by_place {
            feed.name_by_place();
        }
        if let Ok(read) = feed.run(&mut down) {
            // If this fails, the receiver is gone.
            down.full.put(Message::End(Box::new(read)));
        }
    };
    match Builder::new().name("reader".to_owned()).spawn(read) {
        Ok(thread) => {
            give.put(feed);
            Ok(Ahead { messages, used, thread })
        }
        Err(_) => Err(feed),
    }
}

/// Sends what the thread reads, to the end.
///
/// # Errors
/// Returns the error of the listener.
///
/// # Panics
/// Panics as the thread does.
pub(super) fn receive<L: Listener<Key = MaskedKey>, Q: CaptureQueue<L>>(
    ahead: Ahead,
    sender: &mut Sender<'_, L, Q>,
) -> Result<ReadCapture, L::Error> {
    if Q::TAKES_FLOWS {
        sender.keep_places();
    }
    while let Some(message) = ahead.messages.take() {
        match message {
            Message::Progress { read, frames } => sender.progress(read, frames),
            Message::Arrivals(mut batch) => {
                sender.send(&mut batch);
                lock(&ahead.used).push(batch);
            }
            Message::Wait => sender.hand_over()?,
            Message::End(read) => return Ok(*read),
        }
    }
    match ahead.thread.join() {
        Err(panicked) => panic::resume_unwind(panicked),
        Ok(()) => unreachable!("the thread ends with a message"),
    }
}

/// No code panics while it holds the lock.
fn lock(used: &Used) -> MutexGuard<'_, Vec<Batch>> {
    used.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes arrivals on to the thread that called.
struct OtherThread {
    full: Full<Message>,
    used: Used,
}

/// The receiver is gone.
struct Gone;

impl OtherThread {
    fn pass(&self, message: Message) -> Result<(), Gone> {
        if self.full.put(message) { Ok(()) } else { Err(Gone) }
    }
}

impl Downstream for OtherThread {
    type Error = Gone;
    const BATCH: usize = BATCH;

    fn progress(&mut self, read: u64, frames: u64) -> Result<(), Gone> {
        self.pass(Message::Progress { read, frames })
    }

    #[inline(always)]
    fn read(&mut self, _: &Record<'_>, _: Frame, _: Nanos, _: Range<u64>) -> Result<(), Gone> {
        Ok(())
    }

    fn arrivals(&mut self, batch: &mut Batch) -> Result<(), Gone> {
        if batch.arrivals.is_empty() {
            return Ok(());
        }
        let next = lock(&self.used).pop().unwrap_or_else(|| Batch::with_capacity(BATCH));
        self.pass(Message::Arrivals(std::mem::replace(batch, next)))
    }

    fn wait(&mut self) -> Result<(), Gone> {
        self.pass(Message::Wait)
    }
}
