//! The result of matching captures, for the report.

use super::bridge::BridgeCounts;
use super::capture::Capture;
use super::options::Stamps;
use super::{Link, TapSurvey};
use crate::notes::noted;
use crate::source::Source;
use queuescope_meter::Share;
use queuescope_meter::tap::{Clock, LinkSurvey, TapStats};
use queuescope_report::model;
use queuescope_wire::parse::Nat;
use queuescope_wire::{FlowKey, Granularity, Nanos};

/// Number of flows with losses that the report names.
const MOST_LOST: usize = 10;

/// The result of matching the captures on both sides of a router.
pub struct Tapped<'p> {
    pub(super) survey: TapSurvey<'p>,
    pub(super) handed: BridgeCounts,
    pub(super) stats: TapStats,
    pub(super) granularity: Granularity,
}

impl Tapped<'_> {
    /// The source of the departures, with notes.
    pub fn source(&self) -> Source {
        let (survey, options) = (&self.survey, &self.survey.captures.options);
        let names: Vec<_> = survey.captures.ingress.iter().map(Capture::name).collect();
        let contents = || survey.links.iter().map(|link| &link.content).chain([&survey.egress]);
        let damage: Vec<_> = contents().filter_map(|content| Some(content.damage.as_ref()?.to_string())).collect();
        let mut skipped: Vec<model::Skipped> = Vec::new();
        for note in contents().flat_map(|content| &content.notes) {
            match skipped.iter_mut().find(|other| other.reason == note.reason) {
                Some(other) => other.count += note.count,
                None => skipped.push(note.clone()),
            }
        }
        let unused = survey.links.iter().filter(|link| link.clock.is_none());
        let unused: u64 = unused.map(|link| link.content.packets).sum();
        skipped.extend(noted("unused_ingress", unused, UNUSED));
        skipped.extend(noted("near_max_delay", self.handed.near_max_delay, NEAR_MAX_DELAY));
        skipped.extend(self.doubts());
        skipped.extend(noted("ingress_evicted", self.stats.ingress_evicted, EVICTED));
        let span = self.handed.span.unwrap_or((survey.egress.first, survey.egress.first));
        Source {
            input: model::Input {
                name: format!("{} > {}", names.join(", "), survey.captures.egress.name()),
                format: survey.egress.format.clone(),
                first_ns: span.0.0,
                damage: (!damage.is_empty()).then(|| damage.join("; ")),
            },
            packets: self.handed.packets,
            bytes: self.handed.bytes,
            span,
            read_error: None,
            super_packets: 0,
            rate: options.rate,
            aqm: None,
            limit: "unknown".to_owned(),
            speedup: "1".to_owned(),
            overhead: "none".to_owned(),
            on_link: 0,
            inner: options.inner,
            split_gso: false,
            only: options.only.clone(),
            knows_drops: true,
            skipped,
        }
    }

    /// Notes on what makes the result doubtful.
    fn doubts(&self) -> Vec<model::Skipped> {
        let (survey, options) = (&self.survey, &self.survey.captures.options);
        let clocks = || survey.links.iter().filter_map(|link| link.clock.as_ref());
        let weak = clocks().filter(|clock| {
            let (supporting, stretches) = (clock.estimate.supporting, clock.estimate.stretches);
            stretches >= 20 && supporting * 10 < stretches
        });
        let unmatched = self.handed.links.iter().filter(|(matched, _)| *matched == 0).count() as u64;
        let missed = self.stats.missed_arrival;
        let is_part = options.rate.is_none() && options.stamps == Stamps::Last;
        let doubts = [
            noted("weak_clocks", weak.count() as u64, WEAK_CLOCKS),
            noted("unmatched_ingress", unmatched, UNMATCHED),
            noted("many_missed", if missed * 10 > survey.egress.packets { missed } else { 0 }, MISSED),
            noted("own_time_in_delay", if is_part { self.handed.packets } else { 0 }, OWN_TIME),
        ];
        doubts.into_iter().flatten().collect()
    }

    /// Adds the part about the captures to a report. The flows of packets that were evicted from the table are not known.
    pub fn complete(&self, report: &mut model::Report) {
        report.totals.miss_flows_of(self.stats.ingress_evicted);
        report.tap = Some(self.tap());
    }

    /// The part of the report about the captures.
    fn tap(&self) -> model::Tap {
        let (survey, captures) = (&self.survey, &self.survey.captures);
        let mut counts = self.handed.links.iter();
        let ingress = survey.links.iter().zip(&captures.ingress).map(|(link, capture)| {
            // Only the links that are used have numbers.
            let (matched, lost) = link.clock.and_then(|_| counts.next()).copied().unwrap_or_default();
            self.link(link, capture, matched, lost)
        });
        let lost = self.handed.lost.sorted();
        let lost_flow = |(key, share): &(FlowKey, Share)| model::TapLost {
            flow: self.granularity.name(key),
            packets: share.packets,
            bytes: share.bytes,
        };
        model::Tap {
            ingress: ingress.collect(),
            egress: captures.egress.name(),
            egress_packets: survey.egress.packets,
            max_delay_ns: survey.params.max_delay.0,
            nat: nat_name(survey.invariant.nat).to_owned(),
            compared_bytes: survey.invariant.reach.into(),
            table_entries: survey.params.entries as u64,
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
            lost_omitted: lost.len() > MOST_LOST,
        }
    }

    fn link(&self, link: &Link, capture: &Capture, matched: u64, lost: u64) -> model::TapLink {
        model::TapLink {
            name: capture.name(),
            format: link.content.format.clone(),
            packets: link.content.packets,
            matched,
            lost,
            clock: link.clock.map(|clock| self.clock(&clock)),
        }
    }

    fn clock(&self, surveyed: &LinkSurvey) -> model::TapClock {
        let estimate = &surveyed.estimate;
        model::TapClock {
            offset_ns: ahead_at(&estimate.clock, self.survey.egress.first),
            drift_ppm: estimate.with_drift.then(|| estimate.clock.drift_ppm()),
            drift_error_ppm: estimate.drift_error_ppm(),
            within_ns: estimate.within.0,
            intervals: estimate.stretches.into(),
            intervals_supporting: estimate.supporting.into(),
            transit_at_most_ns: surveyed.transit.map(|transit| transit.0),
        }
    }
}

const UNUSED: &str =
    "packets of ingress captures that share no packet with the egress capture; these captures were left out";
const NEAR_MAX_DELAY: &str = "packets with a delay close to --max-delay: others may have had a longer delay, and count as lost or missed; raise --max-delay";
const WEAK_CLOCKS: &str = "ingress captures whose clock matches in few time intervals: were the captures swapped, or are they of different routers? Then this result is wrong";
const UNMATCHED: &str =
    "ingress captures without a matched packet; does each have its own clock, so that --shared-clock is wrong?";
const MISSED: &str = "packets that came out and were not captured on their way in, although others of their flows were: raise --max-delay, or the tap misses packets";
const OWN_TIME: &str = "packets whose transmission time is part of their delay; --rate subtracts it";
const EVICTED: &str = "packets that were evicted from the table before they could have come out; lower --max-delay";

/// How far a clock is ahead, in nanoseconds, when the clock behind the router shows `time`.
fn ahead_at(clock: &Clock, time: Nanos) -> i64 {
    let mut ahead = 0;
    // Drift is below a thousandth, so each step reduces the error by three digits.
    for _ in 0..6 {
        ahead = clock.offset_at(Nanos(time.0.saturating_add_signed(-ahead)));
    }
    ahead
}

/// What the router changes in packets, in the words of the command line.
fn nat_name(nat: Nat) -> &'static str {
    match nat {
        Nat::None => "none",
        Nat::Addresses => "addresses",
        Nat::AllButPayload => "payload",
    }
}
