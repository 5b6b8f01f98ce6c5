//! Follows bursts: which packets are part of one, and what is kept of it when it ends.

use super::Analysis;
use crate::analysis::BURST_PICTURES;
use crate::analysis::found::FoundBurst;
use crate::analysis::watcher::Watcher;
use crate::index::FlowIndex;
use crate::worst::WorstMeter;
use queuescope_meter::{
    Amount, Burst, BurstFlows, BurstFollower, BurstTracker, Contribution, DetailedDeparture, HeldDepartures, Sampled,
    Tau,
};
use queuescope_report::text;
use queuescope_wire::{Departure, Nanos};
use std::collections::BTreeSet;
use std::hash::Hash;

impl<D: FlowIndex, W: Watcher> Analysis<D, W> {
    /// Processes a packet that left during a burst, or that starts one.
    pub(super) fn follow(&mut self, departure: &Departure, examined: bool, from: Nanos, tau: Nanos) {
        let (number, came, left) = (self.recent.recorded(), departure.enqueued, departure.dequeued);
        if self.order.is_none() {
            if !self.bursts.is_open() {
                self.start_at(from, number);
            }
            // Nothing is held, so nothing else was processed meanwhile.
            return self.add_with(departure, examined, from, tau, number, None);
        }
        if left.saturating_sub(from).0 < tau.0.div_ceil(2) {
            self.left(HeldDepartures::Calm { came, left, tau });
        } else {
            let parts = self.parts.clone();
            self.left(HeldDepartures::Waited(DetailedDeparture {
                departure: *departure,
                examined,
                from,
                tau,
                number,
                parts,
            }));
        }
        // Held packets, which may have been processed meanwhile, are of other flows.
        self.project(departure.packet.flow);
    }

    /// Starts a burst with the packet with this number, which waited since `from`, without adding it.
    fn start_at(&mut self, from: Nanos, number: u64) {
        let (index, levels) = (&self.index, &mut self.levels);
        let fresh = |level: usize, flow| levels[level].in_bursts.insert(index.digest(level, flow));
        let (project, key) = (|level, flow| index.project(level, flow), |flow| index.key(0, flow).clone());
        self.bursts.start(from, &self.recent, number, project, key, fresh);
        self.joined = number;
    }

    /// Adds to the burst all departures since the last one that was added, up to and including this packet, which has the current flows. If
    /// its `parts` are `None`, they are the current ones, too.
    #[inline]
    fn add_with(
        &mut self,
        departure: &Departure,
        examined: bool,
        from: Nanos,
        tau: Nanos,
        number: u64,
        parts: Option<&[Contribution]>,
    ) {
        if self.joined < number {
            self.join_passed(number);
        }
        self.joined = number + 1;
        let (index, levels) = (&self.index, &mut self.levels);
        let fresh = |level: usize, flow| levels[level].in_bursts.insert(index.digest(level, flow));
        let key = |flow| index.key(0, flow).clone();
        let parts = parts.unwrap_or(&self.parts);
        self.bursts.departed(departure, examined, from, tau, &self.flows, parts, key, fresh);
    }

    pub(super) fn close_burst(&mut self) {
        let index = &self.index;
        let least = if self.params.hands_out { Nanos::ZERO } else { self.least_kept };
        let every = self.params.details || self.params.hands_out || self.params.across_classes.is_some();
        let longest = &mut self.longest;
        let mut groups = Vec::new();
        let whole = |burst: &Burst<D::Key>, level: usize, flows: &BurstFlows<D::Key>| {
            if level == 0 && (is_among_longest(longest, burst.peak_delay) || every) {
                groups = index.groups(flows.flows(), sampled(burst, flows));
            }
        };
        let Some(burst) = self.bursts.close(least, |level, flow| index.key(level, flow).clone(), whole) else {
            return;
        };
        let (mut ramps, mut worst) = (Vec::new(), None);
        let jumps = self.ramps.take();
        if burst.longest_wait > least {
            if !jumps.is_empty() {
                let found = burst.blamed.iter().take(1).flat_map(|blamed| &blamed.top);
                let found: BTreeSet<_> = found.map(|(key, _)| key).collect();
                let jumps = jumps.into_iter().map(|(flow, jump)| (index.key(0, flow), jump));
                ramps = jumps.filter(|(key, _)| found.contains(key)).map(|(key, jump)| (key.clone(), jump)).collect();
            }
            let of = |meter: &mut WorstMeter<D::Key>| meter.of(&burst, |flow| index.key(0, flow).clone());
            worst = self.worst.as_mut().and_then(of);
        }
        self.closed += 1;
        let found = FoundBurst { number: self.closed, burst, groups, ramps, worst };
        if self.params.hands_out {
            self.ended.push(found.clone());
        }
        self.kept.push(found);
        let crowded = self.kept.len() > 2 * self.params.most_bursts.max(BURST_PICTURES);
        if crowded || self.params.pictures && self.kept.len().is_multiple_of(BURST_PICTURES) {
            self.thin_out();
        }
    }

    /// Renumbers bursts, including those that were not kept: tau may have risen above some, which are no longer bursts.
    pub(super) fn number(&mut self) {
        if let Tau::Given(_) = self.params.tau {
            return;
        }
        let mut left_out: Vec<_> = self.perhaps_left_out.iter().map(|(number, _)| *number).collect();
        left_out.sort_unstable();
        for (kept, found) in (1..).zip(&mut self.kept) {
            found.number = kept + left_out.partition_point(|number| *number < found.number) as u64;
        }
    }

    /// Keeps the bursts with the longest delays, and pictures only of the longest of those.
    pub(super) fn thin_out(&mut self) {
        let tau = self.params.tau.value();
        self.kept.retain(|found| found.burst.longest_wait >= tau);
        self.kept.sort_unstable_by_key(|found| (std::cmp::Reverse(found.burst.longest_wait), found.burst.start));
        let most = self.params.most_bursts.min(self.kept.len());
        if most == self.params.most_bursts {
            self.least_kept =
                self.kept.get(most.saturating_sub(1)).map_or(Nanos::ZERO, |found| found.burst.longest_wait);
        }
        let left_out = self.kept.drain(most..).map(|found| (found.number, found.burst.longest_wait));
        match self.params.tau {
            Tau::Given(_) => self.left_out += left_out.count() as u64,
            // Tau may still rise above them; it never falls.
            Tau::EighthOfLongest { .. } => {
                self.perhaps_left_out.extend(left_out);
                self.perhaps_left_out.retain(|(_, peak)| *peak >= tau);
            }
        }
        for found in self.kept.iter_mut().skip(BURST_PICTURES) {
            found.burst.picture = None;
        }
    }

    /// Adds the packets that left since the last one that was added, and before the one with this number, to the current
    /// burst.
    #[cold]
    pub(super) fn join_passed(&mut self, number: u64) {
        let (index, levels, joined) = (&self.index, &mut self.levels, std::mem::replace(&mut self.joined, number));
        self.counts.unjoined += self.recent.first().min(number).saturating_sub(joined);
        for past in self.recent.numbered(joined..number) {
            let fresh = |level: usize, flow| levels[level].in_bursts.insert(index.digest(level, flow));
            self.bursts.passed(
                past,
                |level, flow| index.project(level, flow),
                |flow| index.key(0, flow).clone(),
                fresh,
            );
        }
    }
}

impl<D: FlowIndex, W: Watcher> BurstFollower<D::Key> for Analysis<D, W> {
    fn tracker(&mut self) -> &mut BurstTracker<D::Key> {
        &mut self.bursts
    }

    fn close(&mut self) {
        self.close_burst();
    }

    fn start(&mut self, waited: &DetailedDeparture) {
        self.start_at(waited.from, waited.number);
    }

    fn add(&mut self, waited: &DetailedDeparture) {
        let DetailedDeparture { departure, examined, from, tau, number, parts } = waited;
        self.project(departure.packet.flow);
        self.add_with(departure, *examined, *from, *tau, *number, Some(parts));
    }
}

/// Whether a burst with this delay is among the longest so far, which the text shows. Flows of others are not grouped, since
/// that takes time.
fn is_among_longest(longest: &mut Vec<Nanos>, delay: Nanos) -> bool {
    let place = longest.partition_point(|other| *other >= delay);
    longest.insert(place, delay);
    longest.truncate(text::MOST_BURSTS);
    place < text::MOST_BURSTS
}

/// The sampling of a burst's flows, if not all of them are known.
fn sampled<'a, K: Eq + Hash + Clone + Ord>(burst: &Burst<K>, flows: &'a BurstFlows<K>) -> Option<Sampled<'a>> {
    let total = Amount { bytes: burst.bytes, packets: burst.packets };
    flows.sampled().map(|(stand_for, unit)| Sampled { stand_for, unit, total })
}
