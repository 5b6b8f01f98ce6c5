//! Bursts where packets may overtake one another: departures are held until it is known which burst they belong to.

use super::BurstTracker;
use crate::Contribution;
use queuescope_wire::{Departure, Nanos};
use std::hash::Hash;

/// Departures after the last packet of a burst, where packets may overtake one another.
#[derive(Debug, Clone)]
pub enum HeldDepartures {
    /// Consecutive departures that waited for less than half of tau.
    Calm {
        /// The earliest arrival among them.
        came: Nanos,
        /// The departure of the last one.
        left: Nanos,
        /// Tau at that departure.
        tau: Nanos,
    },
    /// A departure that waited for at least half of tau.
    Waited(DetailedDeparture),
}

/// A departure, with its details.
#[derive(Debug, Clone)]
pub struct DetailedDeparture {
    /// The departure.
    pub departure: Departure,
    /// Whether its own sojourn time counts.
    pub examined: bool,
    /// The start of its waiting time.
    pub from: Nanos,
    /// Tau when it left.
    pub tau: Nanos,
    /// Its number in [`Recent`](crate::Recent).
    pub number: u64,
    /// For each granularity, the part of the queue that was its flow's when it came.
    pub parts: Vec<Contribution>,
}

/// Follows a queue with a [`BurstTracker`], and remembers departures.
pub trait BurstFollower<K> {
    /// The tracker.
    fn tracker(&mut self) -> &mut BurstTracker<K>;
    /// Closes the open burst.
    fn close(&mut self);
    /// Starts a burst with this packet, without adding it.
    fn start(&mut self, waited: &DetailedDeparture);
    /// Adds to the burst all departures since the last one that was added, up to and including this packet.
    fn add(&mut self, waited: &DetailedDeparture);

    /// Handles a departure.
    fn left(&mut self, held: HeldDepartures)
    where
        K: Eq + Hash + Clone + Ord,
    {
        if self.tracker().is_over_with(&held) {
            return self.handle_again(vec![held]);
        }
        match held {
            HeldDepartures::Waited(waited) if !self.tracker().is_open() => {
                if waited.examined && waited.departure.dequeued.saturating_sub(waited.from) >= waited.tau {
                    self.start(&waited);
                    self.add(&waited);
                }
            }
            HeldDepartures::Waited(waited) if self.tracker().goes_on(waited.from, waited.tau) => {
                for held in self.tracker().take_held() {
                    if let HeldDepartures::Waited(waited) = held {
                        self.add(&waited);
                    }
                }
                self.add(&waited);
            }
            held => self.tracker().hold(held),
        }
    }

    /// Ends the open burst. Held departures are not part of it, but may be part of later bursts.
    fn cut(&mut self)
    where
        K: Eq + Hash + Clone + Ord,
    {
        let mut held = self.tracker().take_held();
        self.close();
        held.reverse();
        self.handle_again(held);
    }

    /// Handles departures again, in reverse order of `rest`.
    fn handle_again(&mut self, mut rest: Vec<HeldDepartures>)
    where
        K: Eq + Hash + Clone + Ord,
    {
        while let Some(next) = rest.pop() {
            if self.tracker().is_over_with(&next) {
                rest.push(next);
                rest.extend(self.tracker().take_held().into_iter().rev());
                self.close();
            } else {
                self.left(next);
            }
        }
    }
}

/// The largest number of held entries (6 MB).
const MOST_HELD: usize = 1 << 15;

impl<K: Eq + Hash + Clone + Ord> BurstTracker<K> {
    /// Whether the burst lasts, with all held departures, until the departure of a packet that waited for at least half of tau since `from`.
    /// A packet that waited for less ends a burst, unless it overtook one that waited for longer and so came before it.
    fn goes_on(&self, from: Nanos, tau: Nanos) -> bool {
        let goes_on = |open: &super::OpenBurst<K>| {
            open.calm.is_none_or(|calm| from < calm) && from.saturating_sub(open.burst.end) <= tau
        };
        self.open.as_ref().is_some_and(goes_on)
    }

    /// Whether a burst lasts until the departure of a packet that waited since `from`, with no held departures to be added before it.
    pub fn goes_on_at_once(&self, waited: Nanos, from: Nanos, tau: Nanos) -> bool {
        waited.0 >= tau.0.div_ceil(2) && self.goes_on(from, tau) && !self.holds_waited()
    }

    /// Whether the open burst is over when a packet leaves that is not part of it.
    fn is_over_with(&self, held: &HeldDepartures) -> bool {
        let (left, tau, goes_on) = match held {
            HeldDepartures::Calm { left, tau, .. } => (*left, *tau, false),
            HeldDepartures::Waited(waited) => {
                (waited.departure.dequeued, waited.tau, self.goes_on(waited.from, waited.tau))
            }
        };
        !goes_on && (self.is_over(left, tau) || self.is_open() && self.held.len() >= MOST_HELD)
    }

    fn hold(&mut self, held: HeldDepartures) {
        let Some(open) = &mut self.open else { return };
        if let HeldDepartures::Calm { came, left, tau } = held {
            open.calm = Some(open.calm.map_or(came, |calm| calm.min(came)));
            if let Some(HeldDepartures::Calm { came: first, left: last, tau: latest }) = self.held.last_mut() {
                (*first, *last, *latest) = ((*first).min(came), left, tau);
                return;
            }
        }
        self.held.push(held);
    }

    fn take_held(&mut self) -> Vec<HeldDepartures> {
        std::mem::take(&mut self.held)
    }

    /// Whether held departures may form a burst of their own.
    pub fn holds_waited(&self) -> bool {
        self.held.iter().any(|held| matches!(held, HeldDepartures::Waited(_)))
    }
}
