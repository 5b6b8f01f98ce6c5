//! Keeps the headers of packets that entered the router, until they leave or are lost.

use crate::records::Frames;
use queuescope_log::packet;
use queuescope_meter::tap::TapPacket;
use queuescope_pcap::Record;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{Fingerprint, Frame};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The headers of a packet, as a record of the schema `packet`.
pub type PacketHeaders = Box<[u8; packet::SIZE]>;

/// The headers of packets that entered the router, by link. The readers and the bridge share this.
#[derive(Debug)]
pub struct Headers {
    inner: RefCell<StoredHeaders>,
    /// How long headers are kept, by the clock of their link.
    longest: Nanos,
}

#[derive(Debug, Default)]
struct StoredHeaders {
    frames: Frames,
    /// For each link, ordered by time, and then in the order in which they were read.
    links: Vec<BTreeMap<(Nanos, u64), WaitingHeaders>>,
    read: u64,
}

#[derive(Debug)]
struct WaitingHeaders {
    print: Fingerprint,
    headers: PacketHeaders,
}

impl Headers {
    /// Keeps headers for the matcher, which matches packets that came in up to `max_delay` before they left, or up to
    /// `early` after.
    pub fn new(max_delay: Nanos, early: Nanos) -> Self {
        // Twice the time, because clocks drift and one packet of each link is read ahead.
        let longest = Nanos(max_delay.saturating_add(early).0.saturating_mul(2));
        Self { inner: RefCell::new(StoredHeaders::default()), longest }
    }

    /// Stores the headers of a packet that was read on a link, at `time` by the clock of the link. Packets without a
    /// fingerprint are never matched, and are not stored.
    pub fn came(&self, link: usize, seen: &TapPacket, time: Nanos, record: &Record<'_>, frame: &Frame) {
        let Ok(print) = seen.print else { return };
        let StoredHeaders { frames, links, read } = &mut *self.inner.borrow_mut();
        if links.len() <= link {
            links.resize_with(link + 1, BTreeMap::new);
        }
        let waiting = &mut links[link];
        *read += 1;
        waiting.insert(
            (seen.time, *read),
            WaitingHeaders { print, headers: Box::new(*frames.fill(record, Some(time), frame)) },
        );
        while waiting.first_key_value().is_some_and(|((oldest, _), _)| oldest.saturating_add(self.longest) < seen.time)
        {
            waiting.pop_first();
        }
    }

    /// Removes and returns the headers of a packet that came on a link. If several packets look the same at one time, those
    /// of the first.
    pub fn take(&self, link: usize, seen: &TapPacket) -> Option<PacketHeaders> {
        let print = seen.print.ok()?;
        let waiting = &mut self.inner.borrow_mut().links;
        let waiting = waiting.get_mut(link)?;
        let mut there = waiting.range((seen.time, 0)..=(seen.time, u64::MAX));
        let key = *there.find(|(_, waiting)| waiting.print == print)?.0;
        waiting.remove(&key).map(|waiting| waiting.headers)
    }
}
