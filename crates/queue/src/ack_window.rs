//! Receive windows of ACKs are rewritten on their way back, so that each flow has no more than its share of the
//! bottleneck in flight.
//!
//! The program sees data on the way to the port of a bottleneck and learns the flow; it sees the ACKs of that flow on
//! the way to any other port, by [`Headers::reverse`], and lowers the window that they tell to
//! `rate x base RTT / flows`, where rate and flows are those of the bottleneck that the data passes. A window is never
//! raised. Its right edge is never moved back either: a receiver should not shrink its window (RFC 9293, section
//! 3.8.6), so when shares become smaller, the edge stands still until acknowledgements have caught up.
//!
//! Flows are kept in a table of fixed size, one to an entry found by hash. A flow whose entry is taken by another that
//! is active is not bounded; it is counted, and it does count for nobody's share.

use crate::counters::counters;
use crate::hash_to_queues::{digest, reduce};
use crate::{Egress, Headers, Ingress, Outlet, Pipeline, Port, Sink, TailDropParams};
use queuescope_tcp::Flags;
use queuescope_wire::{ByteCount, Departure, FlowId, Nanos, Packet};

/// How receive windows are bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckWindowParams {
    /// The ports behind which bottlenecks are: data comes to them, and the rate of each one's link is shared by its
    /// flows.
    pub bottlenecks: Vec<Port>,
    /// The round-trip time without queues, whichever bottleneck.
    pub base_rtt: Nanos,
    /// No window is made lower than this: below two segments a sender waits for delayed ACKs.
    pub least: ByteCount,
    /// A flow of which no data came for this long has no share any more. At least 1 ns.
    pub idle: Nanos,
    /// Entries of the table of flows; 0 is taken as 1.
    pub entries: u32,
    /// What the queue of each port is, which the driver keeps; without a limit by default.
    pub queue: TailDropParams,
}

/// Port 0 and 40 ms; two segments of 1448 bytes; a second.
impl Default for AckWindowParams {
    fn default() -> Self {
        Self {
            bottlenecks: vec![Port(0)],
            base_rtt: Nanos(40_000_000),
            least: ByteCount(2 * 1448),
            idle: Nanos(1_000_000_000),
            entries: 4096,
            queue: TailDropParams::default(),
        }
    }
}

/// A program that bounds receive windows.
#[derive(Debug, Clone)]
pub struct AckWindow {
    params: AckWindowParams,
    entries: Box<[Option<Entry>]>,
    /// By the number of the port.
    bottlenecks: Box<[Option<Bottleneck>]>,
    /// When idle flows are looked for.
    sweep: Option<Nanos>,
    stats: AckWindowStats,
}

/// A bottleneck and who shares it.
#[derive(Debug, Clone, Copy)]
struct Bottleneck {
    /// What all flows together may have in flight.
    in_flight: u64,
    /// Entries that are of flows to it.
    flows: u64,
    /// What one of them may have in flight.
    share: u64,
}

/// What is known of a flow of data.
#[derive(Debug, Clone, Copy)]
struct Entry {
    flow: FlowId,
    /// Where its data goes.
    port: Port,
    /// When data of it came.
    seen: Nanos,
    /// The highest sequence number, exclusive, that the sender was told to have room for.
    edge: u64,
}

/// What it counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AckWindowStats {
    /// ACKs of known flows.
    pub acks: u64,
    /// Those whose window was lowered.
    pub lowered: u64,
    /// Packets of data whose flow found its entry taken.
    pub untracked: u64,
    /// Flows that were forgotten because they were idle.
    pub expired: u64,
}

counters!(AckWindowStats { acks, lowered, untracked, expired });

impl AckWindow {
    /// A program that knows no flow yet, of a switch with these ports.
    ///
    /// # Errors
    /// If a bottleneck is none of them.
    pub fn new(params: AckWindowParams, ports: &[Outlet]) -> Result<Self, AckWindowError> {
        let mut bottlenecks = vec![None; ports.len()];
        for Port(port) in params.bottlenecks.iter().copied() {
            let Some(outlet) = ports.get(usize::from(port)) else {
                return Err(AckWindowError { bottleneck: port, ports: ports.len() });
            };
            let in_flight = outlet.rate.bytes_in(params.base_rtt).0;
            bottlenecks[usize::from(port)] = Some(Bottleneck { in_flight, flows: 0, share: in_flight });
        }
        let params = AckWindowParams { entries: params.entries.max(1), idle: params.idle.max(Nanos(1)), ..params };
        Ok(Self {
            entries: vec![None; params.entries as usize].into(),
            bottlenecks: bottlenecks.into(),
            sweep: None,
            stats: AckWindowStats::default(),
            params,
        })
    }

    /// What a flow to a bottleneck may have in flight at present; none of a port that is no bottleneck.
    pub fn share(&self, port: Port) -> Option<ByteCount> {
        let bottleneck = self.bottlenecks.get(usize::from(port.0))?.as_ref()?;
        Some(ByteCount(bottleneck.share.max(self.params.least.0)))
    }

    /// Flows that have a share of a bottleneck at present; 0 of a port that is none.
    pub fn flows(&self, port: Port) -> u64 {
        self.bottlenecks.get(usize::from(port.0)).and_then(Option::as_ref).map_or(0, |bottleneck| bottleneck.flows)
    }

    /// What was counted so far.
    pub fn stats(&self) -> &AckWindowStats {
        &self.stats
    }

    #[inline]
    fn entry(&mut self, flow: FlowId) -> &mut Option<Entry> {
        &mut self.entries[reduce(digest(u64::from(flow.0)), self.params.entries) as usize]
    }

    /// Data of a flow comes to a bottleneck.
    fn learn(&mut self, flow: FlowId, port: Port, now: Nanos) {
        let idle = self.params.idle;
        let entry = self.entry(flow);
        let before = *entry;
        match entry {
            Some(known) if known.flow == flow => (known.port, known.seen) = (port, now),
            Some(other) if now.saturating_sub(other.seen) < idle => {
                self.stats.untracked += 1;
                return;
            }
            other => *other = Some(Entry { flow, port, seen: now, edge: 0 }),
        }
        self.stats.expired += u64::from(before.is_some_and(|before| before.flow != flow));
        if before.is_none() {
            self.sweep.get_or_insert(now.saturating_add(idle));
        }
        if before.is_none_or(|before| before.port != port) {
            self.add_flow(port, 1);
            if let Some(before) = before {
                self.add_flow(before.port, -1);
            }
        }
    }

    /// The window that an ACK up to `ack` on its way to `port` may tell the sender of `data`, if that is lower than
    /// `window`.
    fn bound(&mut self, data: FlowId, port: Port, ack: u64, window: u64) -> Option<u64> {
        let theirs = |entry: &Entry| entry.flow == data && entry.port != port;
        let passed = self.entry(data).filter(theirs)?.port;
        let share = self.share(passed)?.0;
        let entry = self.entry(data).as_mut()?;
        let edge = ack.saturating_add(share).max(entry.edge).min(ack.saturating_add(window));
        entry.edge = entry.edge.max(edge);
        self.stats.acks += 1;
        // An ACK that was overtaken tells the window that it came with.
        Some(edge - ack).filter(|bounded| *bounded < window)
    }

    fn add_flow(&mut self, port: Port, more: i64) {
        if let Some(Some(bottleneck)) = self.bottlenecks.get_mut(usize::from(port.0)) {
            bottleneck.set_flows(bottleneck.flows.saturating_add_signed(more));
        }
    }
}

impl Bottleneck {
    fn set_flows(&mut self, flows: u64) {
        self.flows = flows;
        self.share = self.in_flight / flows.max(1);
    }
}

impl Pipeline for AckWindow {
    fn ingress(
        &mut self,
        port: Port,
        packet: &mut Packet,
        headers: &mut Headers,
        now: Nanos,
        _: &mut impl Sink,
    ) -> Ingress {
        let Some(tcp) = &mut headers.tcp else { return Ingress::Enqueue(0) };
        let managed = matches!(self.bottlenecks.get(usize::from(port.0)), Some(Some(_)));
        // A pure ACK needs no share. A SYN announces data: the window in its answer is bounded already.
        if managed && (tcp.length > 0 || tcp.flags.contains(Flags::SYN)) {
            self.learn(packet.flow, port, now);
        }
        // Towards the only bottleneck there are no ACKs of data that passes it.
        let passes = managed && self.params.bottlenecks.len() == 1;
        if !passes
            && tcp.flags.contains(Flags::ACK)
            && let Some(window) = self.bound(headers.reverse, port, tcp.ack, tcp.window)
        {
            tcp.window = window;
            self.stats.lowered += 1;
        }
        Ingress::Enqueue(0)
    }

    #[inline]
    fn egress(&mut self, _: Port, _: &mut Departure, _: &mut Headers, _: &mut impl Sink) -> Egress {
        Egress::Send
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.sweep
    }

    /// Forgets idle flows, as a control plane would.
    fn on_timer(&mut self, now: Nanos) {
        if self.sweep.is_none_or(|sweep| now < sweep) {
            return;
        }
        let mut gone = Vec::new();
        let mut active = false;
        for entry in &mut self.entries {
            if let Some(idle) = entry.take_if(|entry| now.saturating_sub(entry.seen) >= self.params.idle) {
                gone.push(idle.port);
            }
            active |= entry.is_some();
        }
        self.stats.expired += gone.len() as u64;
        for port in gone {
            self.add_flow(port, -1);
        }
        self.sweep = active.then(|| now.saturating_add(self.params.idle));
    }

    fn sees_all_ports(&self) -> bool {
        true
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}

/// A bottleneck that the switch does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("receive windows cannot be bounded for port {bottleneck}: the switch has {ports} ports, numbered from 0")]
pub struct AckWindowError {
    /// As asked.
    pub bottleneck: u16,
    /// How many there are.
    pub ports: usize,
}
