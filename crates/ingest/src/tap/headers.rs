//! Headers of what came into the router, until it is known what became of it.

use crate::records::Frames;
use queuescope_log::packet;
use queuescope_meter::tap::Seen;
use queuescope_pcap::Record;
use queuescope_wire::Nanos;
use queuescope_wire::parse::{Fingerprint, Frame};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The headers of a packet, as a record of the schema `packet`.
pub type PacketHeaders = Box<[u8; packet::SIZE]>;

/// The headers of packets by their links, as they were read. The readers and the bridge share it.
#[derive(Debug)]
pub struct Headers {
    inner: RefCell<Inner>,
    /// For how long, by the clock of a link, the packets of that can be asked for.
    longest: Nanos,
}

#[derive(Debug, Default)]
struct Inner {
    frames: Frames,
    /// By time, and then in the order in which they were read.
    links: Vec<BTreeMap<(Nanos, u64), Waiting>>,
    read: u64,
}

#[derive(Debug)]
struct Waiting {
    print: Fingerprint,
    headers: PacketHeaders,
}

impl Headers {
    /// Packets are matched that were seen up to `max_delay` before, or `early` after they came out.
    pub fn new(max_delay: Nanos, early: Nanos) -> Self {
        // Clocks drift, and one packet of each link is read ahead.
        let longest = Nanos(max_delay.saturating_add(early).0.saturating_mul(2));
        Self { inner: RefCell::new(Inner::default()), longest }
    }

    /// A packet was read on a link, at `time` by its own clock. What has no fingerprint is never matched.
    pub fn came(&self, link: usize, seen: &Seen, time: Nanos, record: &Record<'_>, frame: &Frame) {
        let Ok(print) = seen.print else { return };
        let Inner { frames, links, read } = &mut *self.inner.borrow_mut();
        if links.len() <= link {
            links.resize_with(link + 1, BTreeMap::new);
        }
        let waiting = &mut links[link];
        *read += 1;
        waiting
            .insert((seen.time, *read), Waiting { print, headers: Box::new(*frames.fill(record, Some(time), frame)) });
        while waiting.first_key_value().is_some_and(|((oldest, _), _)| oldest.saturating_add(self.longest) < seen.time)
        {
            waiting.pop_first();
        }
    }

    /// The headers of a packet that came on a link, which are not asked for again. Of several that look the same at one time,
    /// those of the first.
    pub fn take(&self, link: usize, seen: &Seen) -> Option<PacketHeaders> {
        let print = seen.print.ok()?;
        let waiting = &mut self.inner.borrow_mut().links;
        let waiting = waiting.get_mut(link)?;
        let mut there = waiting.range((seen.time, 0)..=(seen.time, u64::MAX));
        let key = *there.find(|(_, waiting)| waiting.print == print)?.0;
        waiting.remove(&key).map(|waiting| waiting.headers)
    }
}
