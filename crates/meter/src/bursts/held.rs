//! Bursts where packets may overtake one another: what leaves is held until it is known what it is part of.

use super::BurstTracker;
use crate::Contribution;
use queuescope_wire::{Departure, Nanos};
use std::hash::Hash;

/// What left after the last packet of a burst, where packets may overtake one another.
#[derive(Debug, Clone)]
pub enum Held {
    /// Packets that waited for less than half of tau, with no other between.
    Calm {
        /// When the first of them came.
        came: Nanos,
        /// When the last of them left.
        left: Nanos,
        /// Tau then.
        tau: Nanos,
    },
    /// One that waited for half of tau or more.
    Waited(Waited),
}

/// A packet that left, and what is known of it.
#[derive(Debug, Clone)]
pub struct Waited {
    /// The packet.
    pub departure: Departure,
    /// Whether its own waiting counts.
    pub examined: bool,
    /// Since when it waited.
    pub from: Nanos,
    /// Tau as it left.
    pub tau: Nanos,
    /// Its number in [`Recent`](crate::Recent).
    pub number: u64,
    /// For each granularity, what its flow held as it came.
    pub parts: Vec<Contribution>,
}

/// Who follows a queue with a [`BurstTracker`], and remembers what left.
pub trait Follower<K> {
    /// The tracker.
    fn tracker(&mut self) -> &mut BurstTracker<K>;
    /// The burst that is going on ends: closes it.
    fn close(&mut self);
    /// A burst starts with this packet, which is then added.
    fn start(&mut self, waited: &Waited);
    /// Adds all that left since the last packet that was added, and this packet, to the burst.
    fn add(&mut self, waited: &Waited);

    /// A packet left.
    fn left(&mut self, held: Held)
    where
        K: Eq + Hash + Clone + Ord,
    {
        if self.tracker().is_over_with(&held) {
            return self.judge_anew(vec![held]);
        }
        match held {
            Held::Waited(waited) if !self.tracker().is_open() => {
                if waited.examined && waited.departure.dequeued.saturating_sub(waited.from) >= waited.tau {
                    self.start(&waited);
                    self.add(&waited);
                }
            }
            Held::Waited(waited) if self.tracker().goes_on(waited.from, waited.tau) => {
                for held in self.tracker().take_held() {
                    if let Held::Waited(waited) = held {
                        self.add(&waited);
                    }
                }
                self.add(&waited);
            }
            held => self.tracker().hold(held),
        }
    }

    /// The burst that is going on is over. What was held is no part of it, and may be of others.
    fn cut(&mut self)
    where
        K: Eq + Hash + Clone + Ord,
    {
        let mut held = self.tracker().take_held();
        self.close();
        held.reverse();
        self.judge_anew(held);
    }

    /// Judges what left, last first, once more.
    fn judge_anew(&mut self, mut rest: Vec<Held>)
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

/// Entries that are held, at most (6 MB).
const MOST_HELD: usize = 1 << 15;

impl<K: Eq + Hash + Clone + Ord> BurstTracker<K> {
    /// Whether the burst goes on, with all that is held, until a packet left that waited for half of tau or more since `from`. One that
    /// waited for less ends a burst, unless it overtook one that waited for longer: then that came before it.
    fn goes_on(&self, from: Nanos, tau: Nanos) -> bool {
        let goes_on = |open: &super::Open<K>| {
            open.calm.is_none_or(|calm| from < calm) && from.saturating_sub(open.burst.end) <= tau
        };
        self.open.as_ref().is_some_and(goes_on)
    }

    /// Whether a burst goes on until a packet left that waited since `from`, and nothing is held that has to be added before it.
    pub fn goes_on_at_once(&self, waited: Nanos, from: Nanos, tau: Nanos) -> bool {
        waited.0 >= tau.0.div_ceil(2) && self.goes_on(from, tau) && !self.holds_waited()
    }

    /// Whether a burst is over as a packet leaves that is no part of it.
    fn is_over_with(&self, held: &Held) -> bool {
        let (left, tau, goes_on) = match held {
            Held::Calm { left, tau, .. } => (*left, *tau, false),
            Held::Waited(waited) => (waited.departure.dequeued, waited.tau, self.goes_on(waited.from, waited.tau)),
        };
        !goes_on && (self.is_over(left, tau) || self.is_open() && self.held.len() >= MOST_HELD)
    }

    fn hold(&mut self, held: Held) {
        let Some(open) = &mut self.open else { return };
        if let Held::Calm { came, left, tau } = held {
            open.calm = Some(open.calm.map_or(came, |calm| calm.min(came)));
            if let Some(Held::Calm { came: first, left: last, tau: latest }) = self.held.last_mut() {
                (*first, *last, *latest) = ((*first).min(came), left, tau);
                return;
            }
        }
        self.held.push(held);
    }

    fn take_held(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }

    /// Whether packets are held that may be a burst of their own.
    pub fn holds_waited(&self) -> bool {
        self.held.iter().any(|held| matches!(held, Held::Waited(_)))
    }
}
