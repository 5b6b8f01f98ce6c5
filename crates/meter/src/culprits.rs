//! The culprits of any victim in the past, exactly: who made this packet, this flow, this stretch of time wait?
//!
//! PrintQueue (Lei et al., SIGCOMM 2022, section 2) tells three kinds apart, of which each says what the others cannot:
//!
//! - *direct* culprits left while the victim waited;
//! - *indirect* culprits left before that, since the queue was last empty: without them it would have been shorter;
//! - *original* culprits raised the queue to the levels that stood as the victim came: a burst that is long gone keeps a
//!   queue standing when what comes later just keeps pace with the link.
//!
//! [`QueueLog`] remembers every departure of one queue in 32 bytes (40 where each packet finds the queue empty) and
//! every drop in 24, and answers for a packet, a drop, a flow, and a time range. Several classes on one link are one
//! queue here: what a strict priority does to the lower class is seen in its direct culprits (ConQuest section 3.6).
//!
//! # Conventions
//!
//! A packet is in the queue from when it comes until the link starts to send it. At one nanosecond, packets come before
//! packets leave: what leaves at `t` is still in the queue for one that comes at `t` (ConQuest's `[a, d)`, and the order
//! of the replay). Packets that come in one nanosecond come in the order of their numbers; those that leave, in the order
//! of their records. So the direct culprits of a packet are those recorded before it that left when it came or later; in a
//! FIFO these are what stood in the queue as it came, byte for byte.
//!
//! The queue is *empty* when its depth is 0, whether or not the link still sends (PrintQueue counts so). A packet that
//! comes to an empty queue and a busy link waits for the rest of one packet, which left before it came and is no culprit
//! of a kind; [`QueueLog::on_link`] names it.

mod levels;
mod moment;
mod query;
mod ranking;
mod record;
mod unions;

pub use ranking::{Amount, Culprits, Ranking, Standing, Victims};
pub use record::{Departed, Dropped};

use queuescope_wire::{ByteCount, FlowId, Nanos, PacketId, Rate};
use record::{Left, Lost};
use std::collections::VecDeque;
use std::ops::Range;

/// Every departure of one queue, and every drop, in order of time.
///
/// It is asked when the stream has ended, or about a time before which nothing still waits: a packet that has not left is
/// not known. Whoever records keeps a [`FlowId`] to one flow for as long as the log lives.
#[derive(Debug)]
pub struct QueueLog {
    left: VecDeque<Left>,
    lost: VecDeque<Lost>,
    /// Where the times start in which the queue was never empty: numbers of their first departures, from 0 for the
    /// first ever. The first of them is that of the oldest departure that is remembered, or lies before it.
    periods: VecDeque<u64>,
    /// Whether packets left in the order in which they came.
    fifo: bool,
    /// Whether the numbers of packets grow in the order of departure.
    numbered: bool,
    most: usize,
    forgotten: u64,
    forgotten_drops: u64,
    /// When the last that is forgotten left.
    forgotten_until: Nanos,
}

/// What could not be recorded: the log is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Departures, or drops, are recorded in order of time.
    #[error(
        "packet {packet} left the queue or was dropped at {at} ns, before the last that was recorded ({last} ns): sort the records by that time"
    )]
    Disordered {
        /// The packet's number.
        packet: u64,
        /// When it left, ns.
        at: u64,
        /// When the last one did, ns.
        last: u64,
    },
    /// A packet cannot leave before it comes.
    #[error(
        "packet {packet} left the queue at {dequeued} ns, before it came at {enqueued} ns: check that both times are of one clock"
    )]
    Backwards {
        /// The packet's number.
        packet: u64,
        /// When it came, ns.
        enqueued: u64,
        /// When it left, ns.
        dequeued: u64,
    },
}

/// The packet that the link was sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnLink {
    /// The packet.
    pub departed: Departed,
    /// How long it still took.
    pub remaining: Nanos,
}

impl QueueLog {
    /// A log that remembers everything.
    pub fn new() -> Self {
        Self::keeping(usize::MAX)
    }

    /// A log that remembers the last `most` departures and the last `most` drops.
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

    /// A packet left, no earlier than the one before it.
    pub fn record(&mut self, departed: &Departed) -> Result<(), LogError> {
        let &Departed { packet: PacketId(packet), enqueued, dequeued, .. } = departed;
        let left = Left::from(departed);
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

    /// A packet was dropped as it came, no earlier than the drop before it.
    pub fn record_drop(&mut self, dropped: &Dropped) -> Result<(), LogError> {
        if let Some(last) = self.lost.back().filter(|last| dropped.at < last.at) {
            return Err(LogError::Disordered { packet: dropped.packet.0, at: dropped.at.0, last: last.at.0 });
        }
        if self.lost.len() == self.most {
            self.lost.pop_front();
            self.forgotten_drops += 1;
        }
        self.lost.push_back(Lost::from(dropped));
        Ok(())
    }

    /// How many departures are remembered.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether no departure is remembered.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// How many departures and drops are no longer remembered.
    pub fn forgotten(&self) -> u64 {
        self.forgotten + self.forgotten_drops
    }

    /// Bytes that the records take, without what is reserved for more.
    pub fn record_bytes(&self) -> usize {
        self.left.len() * size_of::<Left>()
            + self.lost.len() * size_of::<Lost>()
            + self.periods.len() * size_of::<u64>()
    }

    /// The departure of a packet: by bisection where packets leave in the order of their numbers, else by search.
    pub fn find(&self, packet: PacketId) -> Option<Departed> {
        let left = if self.numbered {
            self.left.get(self.left.partition_point(|left| left.packet() < packet))
        } else {
            self.left.iter().find(|left| left.packet() == packet)
        };
        left.filter(|left| left.packet() == packet).map(Departed::from)
    }

    /// The departure that waited longest (the first of equals) among those of `flows` that waited within `[from, to)`.
    pub fn longest_wait(&self, flows: impl Fn(FlowId) -> bool, during: Range<Nanos>) -> Option<Departed> {
        let mut longest: Option<&Left> = None;
        for left in self.left.range(self.candidates(&during)) {
            let sojourn = |left: &Left| left.dequeued - left.enqueued;
            if left.waits(&during).is_some()
                && flows(left.flow)
                && longest.is_none_or(|longest| sojourn(longest) < sojourn(left))
            {
                longest = Some(left);
            }
        }
        longest.map(Departed::from)
    }

    /// The drops of `[from, to)`, in order of time.
    pub fn drops(&self, during: Range<Nanos>) -> impl Iterator<Item = Dropped> {
        let start = self.lost.partition_point(|lost| lost.at < during.start);
        self.lost.range(start..).take_while(move |lost| lost.at < during.end).map(Dropped::from)
    }

    /// The drop of a packet, by search.
    pub fn find_drop(&self, packet: PacketId) -> Option<Dropped> {
        self.lost.iter().find(|lost| lost.packet() == packet).map(Dropped::from)
    }

    /// What a link of `rate`, which adds `overhead` bytes to each packet, was still sending as a packet came at `at`: who came
    /// waited for that, too.
    pub fn on_link(&self, at: Nanos, rate: Rate, overhead: u32) -> Option<OnLink> {
        let last = self.left.get(self.position(at).checked_sub(1)?)?;
        let departed = Departed::from(last);
        let free =
            departed.dequeued.saturating_add(rate.time_for(ByteCount(u64::from(departed.size) + u64::from(overhead))));
        (free > at).then(|| OnLink { departed, remaining: free - at })
    }

    /// A packet that came at `enqueued` leaves next. It starts a period of its own; but where another left when it had
    /// come, the queue was not empty in between, whatever was thought before.
    fn open_period(&mut self, enqueued: Nanos) {
        self.periods.push_back(self.forgotten + self.left.len() as u64);
        while let Some(&first) = self.periods.back()
            && self.end_before(first).is_some_and(|end| end >= enqueued)
        {
            self.periods.pop_back();
            if self.periods.is_empty() {
                // It goes on from what is forgotten.
                self.periods.push_back(first - 1);
                break;
            }
        }
    }

    /// When the departure before number `number` was, if that can be known.
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

    /// Where the departures since `time` start.
    fn position(&self, time: Nanos) -> usize {
        self.left.partition_point(|left| left.dequeued < time)
    }
}

impl Default for QueueLog {
    fn default() -> Self {
        Self::new()
    }
}
