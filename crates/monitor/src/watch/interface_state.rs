//! The state of a watched interface, from which its report is made.

use super::meanings::{
    BULK, GONE, HARDLY_WAITED, NOT_IP, REQUEUED, REQUEUED_UNSEEN, TC_DROPS, UNEXAMINED, UNJUDGED, UNSEEN, UNSEEN_GONE,
    UNSTAMPED, UNTOLD,
};
use super::options::WatchOptions;
use crate::acts::Acts;
use crate::feed::Feed;
use crate::owners::FlowOwners;
use crate::p4air::P4airWatch;
use queuescope_analysis::Findings;
use queuescope_ingest::Source;
use queuescope_ingest::notes::noted;
use queuescope_live::{Counters, now};
use queuescope_report::model::{Input, Report, Skipped};
use queuescope_wire::{Backlog, ByteCount, Flows, Nanos};

/// Everything that is known of the interface so far, except the state of the analysis.
pub struct InterfaceState {
    /// The options.
    pub options: WatchOptions,
    /// The state of acting on flows.
    pub acts: Acts,
    /// P4air, if it runs.
    pub p4air: Option<P4airWatch>,
    /// The source of packets.
    pub feed: Feed,
    /// The owners of flows.
    pub owners: FlowOwners,
    /// The kernel's counters at the last reading, and the time of that reading.
    pub counters: Counters,
    /// See `counters`.
    pub counted: Nanos,
    /// The largest backlog so far.
    pub deepest: Backlog,
    /// Whether the interface is gone.
    pub is_gone: bool,
    /// When measuring ended, if it has.
    pub ended: Option<Nanos>,
}

impl InterfaceState {
    /// All packets and bytes that left the queue, handed over or not.
    pub fn left(&self) -> Backlog {
        Backlog { packets: self.counters.packets, bytes: ByteCount(self.counters.bytes) }
    }

    /// The packets that were not handed over, in two parts, and whether each is examined: those with a short delay, and those with an
    /// unknown delay.
    pub fn rest(&self) -> [(Backlog, bool); 2] {
        let mut rest = self.feed.rest(self.left());
        let unknown = self.feed.unstamped_rest(self.counters.unstamped).min(rest.packets);
        rest.packets -= unknown;
        // The kernel does not count the bytes of the second part, so the first has them.
        [(rest, !self.options.is_filtered()), (Backlog { packets: unknown, ..Backlog::default() }, false)]
    }

    /// The report: the findings of the analysis, with the kernel's counters and all notes.
    pub fn report(&self, findings: Findings<Flows>) -> Report {
        let Counters { packets, bytes, dropped, drops, marked, .. } = self.counters;
        let (input, skipped) = (self.input(), self.skipped());
        let source = Source {
            input,
            // The kernel does not count the bytes of dropped packets, so neither count has them.
            packets,
            bytes,
            span: (self.feed.origin, self.ended.unwrap_or_else(now)),
            super_packets: self.feed.super_packets,
            rate: None,
            aqm: None,
            limit: "the interface's".to_owned(),
            speedup: "1".to_owned(),
            overhead: "none".to_owned(),
            on_link: 0,
            inner: self.options.inner,
            split_gso: true,
            only: self.options.only.clone(),
            knows_drops: false,
            skipped,
            read_error: None,
        };
        let mut report = findings.report(source);
        "not used".clone_into(&mut report.setup.sketch.window_source);
        self.owners.report(&mut report);
        let totals = &mut report.totals;
        let drops = Counters::REASONS.into_iter().zip(drops).filter(|(_, packets)| *packets > 0);
        // The flows of these packets are unknown; only their number is known.
        totals.miss_flows_of(self.feed.rest(self.left()).packets + dropped + self.counters.unseen());
        totals.drops_unfiltered = self.options.only.is_some();
        totals.drops.extend(drops.map(|(reason, packets)| (reason.to_owned(), packets)));
        if marked > 0 {
            totals.marks.insert("qdisc".to_owned(), marked);
        }
        totals.peak_depth_packets = totals.peak_depth_packets.max(self.deepest.packets);
        totals.peak_depth_bytes = totals.peak_depth_bytes.max(self.deepest.bytes.0);
        report
    }

    /// Packets that left and were not handed over, except for want of room.
    pub fn not_handed_over(&self) -> u64 {
        self.feed.rest(self.left()).packets.saturating_sub(self.counters.untold)
    }

    /// What is missing from the packets that were handed over, by reason, and the number of packets that should not be missing. `unseen` are packets that were not seen to
    /// leave, without those in the queue; `hardly_waited` are those that were not handed over, without those on their way.
    pub fn missing(&self, unseen: u64, hardly_waited: u64) -> (Vec<Skipped>, u64) {
        let Counters { requeued_unseen, unstamped, untold, bulk, .. } = self.counters;
        let notes = [
            noted("unseen", unseen, UNSEEN_GONE),
            noted("requeued_unseen", requeued_unseen, REQUEUED_UNSEEN),
            noted("unstamped", unstamped, UNSTAMPED),
            noted("not_handed_over", untold, UNTOLD),
            noted("bulk_dequeues", bulk, BULK),
            noted("hardly_waited", hardly_waited, HARDLY_WAITED),
        ];
        // Packets that pass an empty queue are unseen on a healthy host, too.
        (notes.into_iter().flatten().collect(), requeued_unseen + untold)
    }

    fn input(&self) -> Input {
        Input {
            name: self.options.interface.clone(),
            format: "interface".to_owned(),
            first_ns: self.feed.origin.0.saturating_add(self.feed.to_epoch),
            damage: None,
        }
    }

    /// Notes on what was not seen or not handed over, and why.
    fn skipped(&self) -> Vec<Skipped> {
        let counters = &self.counters;
        let unexamined = if self.options.is_filtered() { self.feed.rest(self.left()).packets } else { 0 };
        let notes = [
            noted("unseen", counters.unseen(), UNSEEN),
            noted("requeued", counters.requeued, REQUEUED),
            noted("requeued_unseen", counters.requeued_unseen, REQUEUED_UNSEEN),
            noted("unstamped", counters.unstamped, UNSTAMPED),
            noted("unjudged", counters.unjudged, UNJUDGED),
            noted("not_handed_over", counters.untold, UNTOLD),
            noted("tc_drops", if counters.tc_drops == counters.dropped { 0 } else { counters.tc_drops }, TC_DROPS),
            noted("bulk_dequeues", counters.bulk, BULK),
            noted("not_ip", counters.other, NOT_IP),
            noted("interface_gone", self.is_gone.into(), GONE),
            noted("unexamined", unexamined, UNEXAMINED),
        ];
        self.feed
            .notes()
            .chain(notes.into_iter().flatten())
            .chain(self.acts.notes())
            .chain(self.p4air.iter().flat_map(P4airWatch::notes))
            .chain(self.owners.notes())
            .collect()
    }
}
