//! The exact culprits of any victim in the past: the flows that made this packet, this flow, or all packets of a time range wait.
//!
//! PrintQueue (Lei et al., SIGCOMM 2022, section 2) distinguishes three kinds, which complement each other:
//!
//! - *direct* culprits left while the victim waited;
//! - *indirect* culprits left before that, since the queue was last empty: without them the victim would have found a shorter queue;
//! - *original* culprits raised the queue to the levels that stood as the victim came: after a burst, the queue stays long if later
//!   traffic just keeps pace with the link.
//!
//! [`QueueLog`] remembers every departure of one queue in 32 bytes (40 where each packet finds the queue empty) and every drop in 24. It
//! answers queries for a packet, a drop, a flow, and a time range. Several classes on one link are one queue here: the effect of a strict
//! priority on the lower class shows in its direct culprits (ConQuest section 3.6).
//!
//! # Conventions
//!
//! A packet is in the queue from its arrival until the link starts to send it. At equal times, arrivals come before departures: a packet
//! that leaves at `t` is still in the queue for one that comes at `t` (ConQuest's `[a, d)`, and the order of the replay). Packets that come
//! at the same nanosecond come in the order of their numbers; those that leave at the same nanosecond, in the order of their records. So the
//! direct culprits of a packet are those that were recorded before it and left when it came or later. In a FIFO queue these are exactly the
//! packets in the queue as it came.
//!
//! The queue is *empty* when its depth is 0, even if the link is still sending (as PrintQueue counts). A packet that comes to an empty queue
//! and a busy link waits for the rest of one packet. That packet left the queue before, and is no culprit of any kind;
//! [`QueueLog::on_link`] returns it.

mod levels;
mod moment;
mod query;
mod ranking;
mod record;
mod unions;

pub use ranking::{Amount, Culprits, QueueSnapshot, Ranking, Victims};
pub use record::{Departed, Dropped};

use queuescope_wire::{ByteCount, FlowId, Nanos, PacketId, Rate};
use record::{PackedDeparture, PackedDrop};
use std::collections::VecDeque;
use std::ops::Range;

/// Every departure of one queue, and every drop, in order of time.
///
/// Query it when the stream has ended, or about a time for which no packet is still waiting: a packet that has not left is unknown. The
/// caller must use each [`FlowId`] for one flow only, for as long as the log exists.
#[derive(Debug)]
pub struct QueueLog {
    left: VecDeque<PackedDeparture>,
    lost: VecDeque<PackedDrop>,
    /// The starts of the times in which the queue was never empty: numbers of their first departures, from 0 for the first departure
    /// ever. The first start is at or before the oldest remembered departure.
    periods: VecDeque<u64>,
    /// Whether packets left in the order of their arrival.
    fifo: bool,
    /// Whether the numbers of packets increase in the order of departure.
    numbered: bool,
    most: usize,
    forgotten: u64,
    forgotten_drops: u64,
    /// The departure time of the last forgotten packet.
    forgotten_until: Nanos,
}

/// Why a record was refused; the log is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Records must be in order of time, departures and drops each for themselves.
    #[error(
        "packet {packet} left the queue or was dropped at {at} ns, before the last that was recorded ({last} ns): sort the records by that time"
    )]
    Disordered {
        /// The packet's number.
        packet: u64,
        /// Its departure or drop, ns.
        at: u64,
        /// The time of the last record, ns.
        last: u64,
    },
    /// A packet leaves before it comes.
    #[error(
        "packet {packet} left the queue at {dequeued} ns, before it came at {enqueued} ns: check that both times are of one clock"
    )]
    Backwards {
        /// The packet's number.
        packet: u64,
        /// Its arrival, ns.
        enqueued: u64,
        /// Its departure, ns.
        dequeued: u64,
    },
}

/// The packet that the link was sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnLink {
    /// The packet.
    pub departed: Departed,
    /// The time until the link had sent it.
    pub remaining: Nanos,
}

impl QueueLog {
    /// Creates a log that remembers everything.
    pub fn new() -> Self {
        Self::keeping(usize::MAX)
    }

    /// Creates a log that remembers the last `most` departures and the last `most` drops.
    pub fn keeping(most: usize) -> Self {
        Self {
            left: VecDeque::new(),
            lost: VecDeque::new(),
            periods: VecDeque::new(),
            fifo: true,
            numbered: true,
            most: most.max(1),
            forgotten: 0,
            forgotten_drops: 0,
            forgotten_until: Nanos::ZERO,
        }
    }

    /// Records a packet that left, no earlier than the one before it.
    pub fn record(&mut self, departed: &Departed) -> Result<(), LogError> {
        let &Departed { packet: PacketId(packet), enqueued, dequeued, .. } = departed;
        let left = PackedDeparture::from(departed);
        if dequeued < enqueued {
            return Err(LogError::Backwards { packet, enqueued: enqueued.0, dequeued: dequeued.0 });
        }
        if let Some(last) = self.left.back() {
            if dequeued < last.dequeued {
                return Err(LogError::Disordered { packet, at: dequeued.0, last: last.dequeued.0 });
            }
            self.fifo &= last.arrival() <= left.arrival();
            self.numbered &= last.packet() < departed.packet;
        }
        if self.left.len() == self.most {
            self.forget_first();
        }
        self.open_period(enqueued);
        self.left.push_back(left);
        Ok(())
    }

    /// Records a packet that was dropped on arrival, no earlier than the drop before it.
    pub fn record_drop(&mut self, dropped: &Dropped) -> Result<(), LogError> {
        if let Some(last) = self.lost.back().filter(|last| dropped.at < last.at) {
            return Err(LogError::Disordered { packet: dropped.packet.0, at: dropped.at.0, last: last.at.0 });
        }
        if self.lost.len() == self.most {
            self.lost.pop_front();
            self.forgotten_drops += 1;
        }
        self.lost.push_back(PackedDrop::from(dropped));
        Ok(())
    }

    /// The number of remembered departures.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether no departure is remembered.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The number of departures and drops that are no longer remembered.
    pub fn forgotten(&self) -> u64 {
        self.forgotten + self.forgotten_drops
    }

    /// The bytes of the records, without reserved memory.
    pub fn record_bytes(&self) -> usize {
        self.left.len() * size_of::<PackedDeparture>()
            + self.lost.len() * size_of::<PackedDrop>()
            + self.periods.len() * size_of::<u64>()
    }

    /// The departure of a packet: by binary search if packets leave in the order of their numbers, otherwise by linear search.
    pub fn find(&self, packet: PacketId) -> Option<Departed> {
        let left = if self.numbered {
            self.left.get(self.left.partition_point(|left| left.packet() < packet))
        } else {
            self.left.iter().find(|left| left.packet() == packet)
        };
        left.filter(|left| left.packet() == packet).map(Departed::from)
    }

    /// The departure that waited longest (the first if several are equal) among those of `flows` that waited within `[from, to)`.
    pub fn longest_wait(&self, flows: impl Fn(FlowId) -> bool, during: Range<Nanos>) -> Option<Departed> {
        let mut longest: Option<&PackedDeparture> = None;
        for left in self.left.range(self.candidates(&during)) {
            let sojourn = |left: &PackedDeparture| left.dequeued - left.enqueued;
            if left.waits(&during).is_some()
                && flows(left.flow)
                && longest.is_none_or(|longest| sojourn(longest) < sojourn(left))
            {
                longest = Some(left);
            }
        }
        longest.map(Departed::from)
    }

    /// The drops in `[from, to)`, in order of time.
    pub fn drops(&self, during: Range<Nanos>) -> impl Iterator<Item = Dropped> {
        let start = self.lost.partition_point(|lost| lost.at < during.start);
        self.lost.range(start..).take_while(move |lost| lost.at < during.end).map(Dropped::from)
    }

    /// The drop of a packet, by linear search.
    pub fn find_drop(&self, packet: PacketId) -> Option<Dropped> {
        self.lost.iter().find(|lost| lost.packet() == packet).map(Dropped::from)
    }

    /// The packet that a link of `rate`, which adds `overhead` bytes to each packet, was still sending at `at`. A packet that came then
    /// waited for the rest of it, too.
    pub fn on_link(&self, at: Nanos, rate: Rate, overhead: u32) -> Option<OnLink> {
        let last = self.left.get(self.position(at).checked_sub(1)?)?;
        let departed = Departed::from(last);
        let free =
            departed.dequeued.saturating_add(rate.time_for(ByteCount(u64::from(departed.size) + u64::from(overhead))));
        (free > at).then(|| OnLink { departed, remaining: free - at })
    }

    /// Opens a period for a packet that came at `enqueued` and leaves next. If another packet left after that arrival, the queue was not empty
    /// in between, and earlier periods are joined with this one.
    fn open_period(&mut self, enqueued: Nanos) {
        self.periods.push_back(self.forgotten + self.left.len() as u64);
        while let Some(&first) = self.periods.back()
            && self.end_before(first).is_some_and(|end| end >= enqueued)
        {
            self.periods.pop_back();
            if self.periods.is_empty() {
                // The period began before the oldest remembered departure.
                self.periods.push_back(first - 1);
                break;
            }
        }
    }

    /// The departure time of the packet before number `number`, if it is known.
    fn end_before(&self, number: u64) -> Option<Nanos> {
        if number == self.forgotten {
            return (number > 0).then_some(self.forgotten_until);
        }
        let index = number.checked_sub(self.forgotten + 1)?;
        self.left.get(index as usize).map(|left| left.dequeued)
    }

    fn forget_first(&mut self) {
        let Some(first) = self.left.pop_front() else { return };
        self.forgotten += 1;
        self.forgotten_until = first.dequeued;
        while self.periods.get(1).is_some_and(|second| *second <= self.forgotten) {
            self.periods.pop_front();
        }
    }

    /// The index of the first departure at `time` or later.
    fn position(&self, time: Nanos) -> usize {
        self.left.partition_point(|left| left.dequeued < time)
    }
}

impl Default for QueueLog {
    fn default() -> Self {
        Self::new()
    }
}
