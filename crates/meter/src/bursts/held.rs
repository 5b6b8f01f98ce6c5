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
    fn add(&mut self, waited: Waited);

    /// A packet left.
    fn left(&mut self, held: Held)
    where
        K: Eq + Hash + Clone + Ord,
    {
        if self.tracker().is_over_with(&held) {
            self.cut();
            return self.left(held);
        }
        match held {
            Held::Waited(waited) if !self.tracker().is_open() => {
                if waited.examined && waited.departure.dequeued.saturating_sub(waited.from) >= waited.tau {
                    self.start(&waited);
                    self.add(waited);
                }
            }
            Held::Waited(waited) if self.tracker().is_part(&waited) => {
                for held in self.tracker().take_held() {
                    if let Held::Waited(waited) = held {
                        self.add(waited);
                    }
                }
                self.add(waited);
            }
            held => self.tracker().hold(held),
        }
    }

    /// The burst that is going on is over. What was held is no part of it, and may be of others.
    fn cut(&mut self)
    where
        K: Eq + Hash + Clone + Ord,
    {
        let held = self.tracker().take_held();
        self.close();
        held.into_iter().for_each(|held| self.left(held));
    }
}

/// Entries that are held, at most (6 MB).
const MOST_HELD: usize = 1 << 15;

impl<K: Eq + Hash + Clone + Ord> BurstTracker<K> {
    /// Whether the burst goes on until a packet left, with all that left before it. A packet that waited for less than half of tau
    /// ends a burst, unless it overtook one that waited for longer: then that packet came before it.
    fn is_part(&self, waited: &Waited) -> bool {
        let is_part = |open: &super::Open<K>| {
            let is_first = open.calm.is_none_or(|calm| waited.from < calm);
            is_first && waited.from.saturating_sub(open.burst.end) <= waited.tau
        };
        self.open.as_ref().is_some_and(is_part)
    }

    /// Whether a burst is over as a packet leaves that is no part of it.
    fn is_over_with(&self, held: &Held) -> bool {
        let (left, tau, is_part) = match held {
            Held::Calm { left, tau, .. } => (*left, *tau, false),
            Held::Waited(waited) => (waited.departure.dequeued, waited.tau, self.is_part(waited)),
        };
        !is_part && (self.is_over(left, tau) || self.is_open() && self.held.len() >= MOST_HELD)
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
