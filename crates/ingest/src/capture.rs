//! Turns a capture file into arrivals at the queue.
//!
//! `feed` reads frames and makes batches of arrivals of them, `send` looks their flows up and sends them to the queue. With more than one
//! processor, `ahead` runs the first on a thread of its own, a few batches ahead of the second. Both ways call the listener equally.

mod ahead;
mod batch;
mod channel;
mod feed;
mod send;

use crate::Progress;
use crate::listener::Listener;
pub use feed::CaptureFeed;
use queuescope_pcap::{Format, ReadError};
use queuescope_report::model::Skipped;
use queuescope_scenario::Overhead;
use queuescope_wire::{MaskedKey, Nanos};
pub use send::CaptureQueue;
use send::{Direct, Sender};

/// Counts and notes of a capture that was read.
#[derive(Debug)]
pub struct Read {
    /// Number of frames that came to the queue.
    pub packets: u64,
    /// Their bytes, as counted in the queue.
    pub bytes: u64,
    /// The timestamp of the first frame.
    pub first: Nanos,
    /// The arrival times of the first and the last packet, on the clock of the replay.
    pub span: (Nanos, Nanos),
    /// Number of frames larger than the MTU.
    pub super_packets: u64,
    /// Notes on the capture.
    pub skipped: Vec<Skipped>,
    /// What ended the capture early.
    pub damage: Option<ReadError>,
    /// The kind of file, unless nothing of it was read.
    pub format: Option<Format>,
}

impl Read {
    /// Of a capture of which nothing was read.
    pub const NOTHING: Self = Self {
        packets: 0,
        bytes: 0,
        first: Nanos::ZERO,
        span: (Nanos::ZERO, Nanos::ZERO),
        super_packets: 0,
        skipped: Vec::new(),
        damage: None,
        format: None,
    };
}

/// Sends what `feed` reads through a queue. If it is to be read `ahead`, that is on another thread, unless the listener needs the frames or
/// there can be no thread.
///
/// # Errors
/// Returns the error of the listener.
pub fn replay<L: Listener<Key = MaskedKey>, Q: CaptureQueue<L>>(
    feed: CaptureFeed,
    queue: Q,
    overhead: Overhead,
    listener: &mut L,
    progress: Progress<'_>,
    ahead: bool,
) -> Result<Read, L::Error> {
    progress(feed.bytes_read(), 0);
    let mut sender = Sender::new(queue, overhead, listener, progress);
    let feed = Box::new(feed);
    let ahead = if ahead && !sender.wants_frames() { ahead::start(feed, Q::TAKES_FLOWS) } else { Err(feed) };
    let read = match ahead {
        Ok(ahead) => ahead::receive(ahead, &mut sender)?,
        Err(feed) => feed.run(&mut Direct(&mut sender))?,
    };
    Ok(sender.finish(read))
}
