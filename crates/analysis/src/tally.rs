//! Counts of what a queue does with packets, for comparing disciplines.

use crate::index::FLOWS;
use hdrhistogram::Histogram;
use queuescope_ingest::{Listener, Source};
use queuescope_queue::{DropReason, Dropped, MarkReason, Sink};
use queuescope_report::model::{AffectedFlow, AqmReplay, AqmSetup};
use queuescope_sim::Output;
use queuescope_wire::{
    ByteCount, Departure, FlowId, FlowKey, Flows, Granularity, KeyMask, MaskedKey, Nanos, Packet, Rate,
};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// Counts departures, drops, marks and delays, and the flows that pay: those whose packets are dropped or marked.
#[derive(Debug)]
pub struct Tally {
    flows: Flows,
    granularity: Granularity,
    /// Counts of live flows, by flow id.
    live: Vec<FlowTally>,
    /// Counts of flows whose ids were freed and that had paid.
    gone: BTreeMap<FlowKey, FlowTally>,
    drops: BTreeMap<DropReason, u64>,
    marks: BTreeMap<MarkReason, u64>,
    delays: Histogram<u64>,
    longest: Nanos,
    departed: u64,
    bytes: u64,
    last: Nanos,
    last_came: Nanos,
}

/// Counts of one flow.
#[derive(Debug, Clone, Copy, Default)]
struct FlowTally {
    packets: u64,
    dropped: u64,
    marked: u64,
    longest: Nanos,
}

/// Largest number of paying flows that are listed.
const PAYERS: usize = 20;
const PERCENTILES: [f64; 4] = [50.0, 90.0, 99.0, 100.0];

impl Tally {
    /// Creates an empty tally of flows at a granularity. `mask` is the part of flow keys that is kept.
    pub fn new(granularity: Granularity, mask: KeyMask) -> Self {
        Self {
            flows: Flows::masked(mask, &[granularity], FLOWS),
            granularity,
            live: Vec::new(),
            gone: BTreeMap::new(),
            drops: BTreeMap::new(),
            marks: BTreeMap::new(),
            delays: Histogram::new_with_max(1 << 62, 3).expect("three significant digits are allowed"),
            longest: Nanos::ZERO,
            departed: 0,
            bytes: 0,
            last: Nanos::ZERO,
            last_came: Nanos::ZERO,
        }
    }

    /// Returns the counts of a queue managed by `aqm`, and the setup, which replays of the same packets share.
    pub fn finish(mut self, aqm: &str, source: Source) -> (AqmReplay, AqmSetup) {
        let ids: Vec<_> = self.flows.level(0).ids().collect();
        for id in ids {
            keep(&mut self.gone, &mut self.live, id, self.flows.level(0).key(id));
        }
        let flows_affected = self.gone.len() as u64;
        let mut paid: Vec<_> = self.gone.iter().collect();
        paid.sort_unstable_by_key(|(key, paid)| (std::cmp::Reverse(paid.dropped + paid.marked), **key));
        let affected = paid.into_iter().take(PAYERS).map(|(key, paid)| AffectedFlow {
            flow: self.granularity.name(key),
            packets: paid.packets,
            dropped: paid.dropped,
            marked: paid.marked,
            dropped_share: paid.dropped as f64 / paid.packets.max(1) as f64,
            longest_delay_ns: paid.longest.0,
        });
        let affected = affected.collect();
        let dropped: u64 = self.drops.values().sum();
        let delay = |percentile: f64| {
            if percentile >= 100.0 {
                self.longest.0
            } else {
                self.delays.value_at_percentile(percentile).min(self.longest.0)
            }
        };
        let replay = AqmReplay {
            aqm: aqm.to_owned(),
            packets: self.departed + dropped,
            departed_packets: self.departed,
            departed_bytes: self.bytes,
            drops: self.drops.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            marks: self.marks.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
            delay_percentiles: PERCENTILES.iter().map(|&percentile| (percentile, delay(percentile))).collect(),
            utilisation: source.rate.map_or(0.0, |rate| self.utilisation(rate, &source)),
            flows_affected,
            affected,
        };
        let setup = AqmSetup {
            rate_bps: source.rate.map_or(0, Rate::bits_per_second),
            limit: source.limit,
            speedup: source.speedup,
            overhead: source.overhead,
            input_filter: source.only,
            granularity: self.granularity.to_string(),
            packets: replay.packets,
            bytes: source.bytes,
            duration_ns: source.span.1.saturating_sub(source.span.0).0,
            skipped: source.skipped,
            input: source.input,
        };
        (replay, setup)
    }

    /// The share of time that the link was busy, from the first packet until it had sent the last, from 0 to 1.
    fn utilisation(&self, rate: Rate, source: &Source) -> f64 {
        let sent = ByteCount(self.bytes.saturating_add(self.departed.saturating_mul(source.on_link.into())));
        let busy = sent.0 as f64 * 8.0 / rate.bits_per_second() as f64;
        let there = self.last.max(source.span.1).saturating_sub(source.span.0).as_secs_f64();
        if busy > 0.0 { (busy / there.max(busy)).min(1.0) } else { 0.0 }
    }

    fn paid(&mut self, flow: FlowId) -> &mut FlowTally {
        let flow = self.flows.project(0, flow).index();
        if self.live.len() <= flow {
            self.live.resize(flow + 1, FlowTally::default());
        }
        &mut self.live[flow]
    }
}

/// The id of a flow is freed: its counts are kept if it has paid.
fn keep(gone: &mut BTreeMap<FlowKey, FlowTally>, live: &mut [FlowTally], flow: FlowId, key: &FlowKey) {
    let Some(paid) = live.get_mut(flow.index()).map(std::mem::take) else { return };
    if paid.dropped + paid.marked > 0 || gone.contains_key(key) {
        let sum = gone.entry(*key).or_default();
        sum.packets += paid.packets;
        sum.dropped += paid.dropped;
        sum.marked += paid.marked;
        sum.longest = sum.longest.max(paid.longest);
    }
}

impl Listener for Tally {
    type Key = MaskedKey;
    type Error = Infallible;

    fn intern(&mut self, key: &MaskedKey, now: Nanos) -> FlowId {
        if self.flows.is_full() {
            // In a FIFO, no waiting packet came before the one that left last. Otherwise flows are looked up as packets
            // leave.
            let (gone, live) = (&mut self.gone, &mut self.live);
            self.flows.expire(self.last_came, |_, flow, key| keep(gone, live, flow, key));
        }
        self.flows.intern(key, now, |_, _| ())
    }

    fn wants_frames(&self) -> bool {
        false
    }
}

impl Output for Tally {
    fn departed(&mut self, departure: &Departure) {
        let waited = departure.sojourn();
        self.departed += 1;
        self.bytes += departure.packet.size.0;
        self.last = departure.dequeued;
        self.last_came = departure.enqueued;
        self.longest = self.longest.max(waited);
        self.delays.saturating_record(waited.0);
        let paid = self.paid(departure.packet.flow);
        paid.packets += 1;
        paid.longest = paid.longest.max(waited);
    }
}

impl Sink for Tally {
    fn dropped(&mut self, dropped: &Dropped) {
        *self.drops.entry(dropped.reason).or_default() += 1;
        let paid = self.paid(dropped.packet.flow);
        paid.packets += 1;
        paid.dropped += 1;
    }

    fn marked(&mut self, packet: &Packet, reason: MarkReason, _now: Nanos) {
        *self.marks.entry(reason).or_default() += 1;
        self.paid(packet.flow).marked += 1;
    }
}
