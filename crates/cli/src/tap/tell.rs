//! What was found, for the report.

use super::{Link, Tapped};
use crate::args::{Stamps, Tap};
use queuescope_ingest::Source;
use queuescope_ingest::notes::noted;
use queuescope_meter::tap::{Clock, Surveyed};
use queuescope_report::model;
use queuescope_wire::Nanos;
use std::path::Path;

/// Flows told that lost packets.
const MOST_LOST: usize = 10;

impl Tapped<'_> {
    /// How packets came to the queue, and what was read.
    pub fn source(&self, args: &Tap) -> Source {
        let names: Vec<_> = args.ingress.iter().map(|path| path.display().to_string()).collect();
        let contents = || self.seen.links.iter().map(|link| &link.content).chain([&self.seen.egress]);
        let damage: Vec<_> = contents().filter_map(|content| Some(content.damage.as_ref()?.to_string())).collect();
        let mut skipped: Vec<model::Skipped> = Vec::new();
        for note in contents().flat_map(|content| &content.notes) {
            match skipped.iter_mut().find(|other| other.reason == note.reason) {
                Some(other) => other.count += note.count,
                None => skipped.push(note.clone()),
            }
        }
        let unused = self.seen.links.iter().filter(|link| link.clock.is_none());
        let unused: u64 = unused.map(|link| link.content.packets).sum();
        skipped.extend(noted("unused_ingress", unused, UNUSED));
        skipped.extend(noted("near_max_delay", self.told.near_max_delay, NEAR_MAX_DELAY));
        skipped.extend(self.doubts(args));
        skipped.extend(noted("ingress_evicted", self.stats.ingress_evicted, EVICTED));
        let span = self.told.span.unwrap_or((self.seen.egress.first, self.seen.egress.first));
        Source {
            input: model::Input {
                name: format!("{} > {}", names.join(", "), args.egress.display()),
                format: self.seen.egress.format.clone(),
                first_ns: span.0.0,
                damage: (!damage.is_empty()).then(|| damage.join("; ")),
            },
            packets: self.told.packets,
            bytes: self.told.bytes,
            span,
            super_packets: 0,
            rate: args.router.rate,
            aqm: None,
            limit: "unknown".to_owned(),
            speedup: "1".to_owned(),
            overhead: "none".to_owned(),
            on_link: 0,
            inner: args.keys.inner,
            split_gso: false,
            only: args.only.clone(),
            knows_drops: true,
            skipped,
        }
    }

    /// What makes the result doubtful: it is told, since no part of it can know what is true.
    fn doubts(&self, args: &Tap) -> Vec<model::Skipped> {
        let clocks = || self.seen.links.iter().filter_map(|link| link.clock.as_ref());
        let weak = clocks().filter(|clock| {
            let (supporting, stretches) = (clock.estimate.supporting, clock.estimate.stretches);
            stretches >= 20 && supporting * 10 < stretches
        });
        let unmatched = self.told.links.iter().filter(|(matched, _)| *matched == 0).count() as u64;
        let missed = self.stats.missed;
        let is_part = args.router.rate.is_none() && args.router.stamps == Stamps::Last;
        let doubts = [
            noted("weak_clocks", weak.count() as u64, WEAK_CLOCKS),
            noted("unmatched_ingress", unmatched, UNMATCHED),
            noted("many_missed", if missed * 10 > self.seen.egress.packets { missed } else { 0 }, MISSED),
            noted("own_time_in_delay", if is_part { self.told.packets } else { 0 }, OWN_TIME),
        ];
        doubts.into_iter().flatten().collect()
    }

    /// How the queue was seen.
    pub fn tell(&self, args: &Tap) -> model::Tap {
        let mut told = self.told.links.iter();
        let ingress = self.seen.links.iter().zip(&args.ingress).map(|(link, path)| {
            // Only those that are used were numbered.
            let (matched, lost) = link.clock.and_then(|_| told.next()).copied().unwrap_or_default();
            self.link(link, path, matched, lost)
        });
        let lost = self.told.lost.sorted();
        let lost_flow = |(key, share): &(_, queuescope_meter::Share)| model::TapLost {
            flow: self.granularity.name(key),
            packets: share.packets,
            bytes: share.bytes,
        };
        model::Tap {
            ingress: ingress.collect(),
            egress: args.egress.display().to_string(),
            egress_packets: self.seen.egress.packets,
            max_delay_ns: self.seen.params.max_delay.0,
            nat: clap::ValueEnum::to_possible_value(&args.router.nat)
                .map_or_else(String::new, |value| value.get_name().to_owned()),
            compared_bytes: self.seen.invariant.reach.into(),
            table_entries: self.seen.params.entries as u64,
            counts: self
                .stats
                .iter()
                .map(|(name, packets, meaning)| model::TapCount {
                    name: name.to_owned(),
                    packets,
                    meaning: meaning.to_owned(),
                })
                .collect(),
            lost: lost.iter().take(MOST_LOST).map(lost_flow).collect(),
            lost_more: lost.len() > MOST_LOST,
        }
    }

    fn link(&self, link: &Link, path: &Path, matched: u64, lost: u64) -> model::TapLink {
        model::TapLink {
            name: path.display().to_string(),
            format: link.content.format.clone(),
            packets: link.content.packets,
            matched,
            lost,
            clock: link.clock.map(|clock| self.clock(&clock)),
        }
    }

    fn clock(&self, surveyed: &Surveyed) -> model::TapClock {
        let estimate = &surveyed.estimate;
        model::TapClock {
            offset_ns: ahead_at(&estimate.clock, self.seen.egress.first),
            drift_ppm: estimate.with_drift.then(|| estimate.clock.drift_ppm()),
            drift_error_ppm: estimate.drift_error_ppm(),
            within_ns: estimate.within.0,
            stretches: estimate.stretches.into(),
            supporting: estimate.supporting.into(),
            transit_at_most_ns: surveyed.transit.map(|transit| transit.0),
        }
    }
}

const UNUSED: &str = "packets of ingress captures of which none came out at the egress; those captures were left out";
const NEAR_MAX_DELAY: &str = "packets with a delay close to --max-delay: others may have had a longer one and count as \
                              lost or missed; raise it";
const WEAK_CLOCKS: &str = "ingress captures whose clock agrees with few stretches of time: were the captures swapped, or of \
                           different routers? Then nothing here is true";
const UNMATCHED: &str = "ingress captures of which no packet was matched; were they stamped by clocks of their own \
                         (--shared-clock)?";
const MISSED: &str = "packets that came out and were not seen to come in, though others of their flows were: raise \
                      --max-delay, or the tap misses packets";
const OWN_TIME: &str = "packets whose own time on the link is part of their delay; --rate takes it out";
const EVICTED: &str = "packets whose place in the table was needed before they could have come out; lower --max-delay";

/// How far a clock is ahead as the clock behind the router shows `time`.
fn ahead_at(clock: &Clock, time: Nanos) -> i64 {
    let mut ahead = 0;
    // Drift is below a thousandth, so that each step takes three digits off what is wrong.
    for _ in 0..6 {
        ahead = clock.offset_at(Nanos(time.0.saturating_add_signed(-ahead)));
    }
    ahead
}
