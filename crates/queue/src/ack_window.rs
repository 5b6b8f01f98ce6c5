//! Lowers the receive windows in ACKs on their way back, so that each flow has no more than its share of the bottleneck
//! in flight.
//!
//! The program learns a flow from its data on the way to the port of a bottleneck. It recognises the ACKs of that flow
//! on the way to any other port by [`Headers::reverse`], and lowers the window that they advertise to `rate x base RTT
//! / flows`, where rate and flows are those of the bottleneck that the data passes. It never raises a window. It never
//! moves the right edge of a window back either: a receiver should not shrink its window (RFC 9293, section 3.8.6). So
//! when shares become smaller, the edge stands still until acknowledgements have caught up.
//!
//! Flows are kept in a hash table of fixed size, one flow per entry. A flow whose entry belongs to another active flow
//! is not bounded. The program counts its packets, and the flow takes no share of the bottleneck.

use crate::counters::counters;
use crate::hash_to_queues::{digest, reduce};
use crate::{Egress, Headers, Ingress, Outlet, Pipeline, Port, Sink, TailDropParams};
use queuescope_tcp::Flags;
use queuescope_wire::{ByteCount, Departure, FlowId, Nanos, Packet};

/// The parameters of [`AckWindow`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckWindowParams {
    /// The ports in front of the bottleneck links. Flows whose data leaves through one of them share the rate of its
    /// link.
    pub bottlenecks: Vec<Port>,
    /// The round-trip time without queueing, the same for all bottlenecks.
    pub base_rtt: Nanos,
    /// The smallest window: below two segments a sender waits for delayed ACKs.
    pub least: ByteCount,
    /// A flow whose data has not been seen for this long loses its share. At least 1 ns.
    pub idle: Nanos,
    /// Entries of the table of flows; 0 counts as 1.
    pub entries: u32,
    /// The queue of each port, which the driver keeps. It has no limit by default.
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

/// A program that lowers receive windows.
///
/// ```
/// use queuescope_queue::{AckWindow, AckWindowParams, Headers, Host, Outlet, Pipeline, Port};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_tcp::Segment;
/// use queuescope_wire::{ByteCount, FlowId, Nanos, Packet, QueueId};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// // 40 ms of 20 Mb/s are 100 000 bytes, for all flows together.
/// let ports = [Outlet { rate: "20mbps".parse()?, overhead: 0, queue: QueueId(0), seed: 1 }];
/// let mut program = AckWindow::new(AckWindowParams::default(), &ports)?;
/// for flow in 0..4 {
///     let mut packet = Packet { flow: FlowId(flow), size: ByteCount(1500), ..Packet::default() };
///     let tcp = Some(Segment { seq: 1, length: 1448, ..Segment::default() });
///     let mut headers = Headers { tcp, ..Headers::plain(Host(flow), Host(9), FlowId(100 + flow)) };
///     program.ingress(Port(0), &mut packet, &mut headers, Nanos::ZERO, &mut NoSink);
/// }
/// assert_eq!(program.flows(Port(0)), 4);
/// assert_eq!(program.share(Port(0)), Some(ByteCount(25_000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct AckWindow {
    params: AckWindowParams,
    entries: Box<[Option<FlowEntry>]>,
    /// By port number.
    bottlenecks: Box<[Option<Bottleneck>]>,
    /// When to look for idle flows next.
    sweep: Option<Nanos>,
    stats: AckWindowStats,
}

/// A bottleneck, and the flows that share it.
#[derive(Debug, Clone, Copy)]
struct Bottleneck {
    /// Bytes that all flows together may have in flight.
    in_flight: u64,
    /// Number of flows to it in the table.
    flows: u64,
    /// Bytes that each of these flows may have in flight.
    share: u64,
}

/// The state of one flow of data.
#[derive(Debug, Clone, Copy)]
struct FlowEntry {
    flow: FlowId,
    /// The port that its data leaves through.
    port: Port,
    /// When its data last came.
    last_data: Nanos,
    /// The right edge of the window: the highest sequence number, exclusive, that the sender may send according to the
    /// ACKs so far.
    edge: u64,
}

/// The counters of [`AckWindow`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AckWindowStats {
    /// ACKs of known flows.
    pub acks: u64,
    /// ACKs whose window was lowered.
    pub lowered: u64,
    /// Data packets whose flow found its entry taken.
    pub untracked: u64,
    /// Flows that were removed because they were idle.
    pub expired: u64,
}

counters!(AckWindowStats { acks, lowered, untracked, expired });

impl AckWindow {
    /// Creates the program for a switch with these ports. It knows no flow yet.
    ///
    /// # Errors
    /// Fails if a bottleneck is not one of the ports.
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

    /// Bytes that each flow to a bottleneck may have in flight now; `None` for a port that is not a bottleneck.
    pub fn share(&self, port: Port) -> Option<ByteCount> {
        let bottleneck = self.bottlenecks.get(usize::from(port.0))?.as_ref()?;
        Some(ByteCount(bottleneck.share.max(self.params.least.0)))
    }

    /// Flows that share a bottleneck now; 0 for a port that is not a bottleneck.
    pub fn flows(&self, port: Port) -> u64 {
        self.bottlenecks.get(usize::from(port.0)).and_then(Option::as_ref).map_or(0, |bottleneck| bottleneck.flows)
    }

    /// The counters so far.
    pub fn stats(&self) -> &AckWindowStats {
        &self.stats
    }

    #[inline]
    fn entry(&mut self, flow: FlowId) -> &mut Option<FlowEntry> {
        &mut self.entries[reduce(digest(u64::from(flow.0)), self.params.entries) as usize]
    }

    /// Records data of a flow on its way to a bottleneck.
    fn learn(&mut self, flow: FlowId, port: Port, now: Nanos) {
        let idle = self.params.idle;
        let entry = self.entry(flow);
        let before = *entry;
        match entry {
            Some(known) if known.flow == flow => (known.port, known.last_data) = (port, now),
            Some(other) if now.saturating_sub(other.last_data) < idle => {
                self.stats.untracked += 1;
                return;
            }
            other => *other = Some(FlowEntry { flow, port, last_data: now, edge: 0 }),
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

    /// The window that an ACK up to `ack` on its way to `port` may advertise to the sender of `data`, if that is lower
    /// than `window`.
    fn bound(&mut self, data: FlowId, port: Port, ack: u64, window: u64) -> Option<u64> {
        let theirs = |entry: &FlowEntry| entry.flow == data && entry.port != port;
        let passed = self.entry(data).filter(theirs)?.port;
        let share = self.share(passed)?.0;
        let entry = self.entry(data).as_mut()?;
        let edge = ack.saturating_add(share).max(entry.edge).min(ack.saturating_add(window));
        entry.edge = entry.edge.max(edge);
        self.stats.acks += 1;
        // An ACK that arrives out of order keeps its own window.
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
        // A pure ACK needs no share. A SYN gets a share at once, because data follows and the window in the answer must
        // be bounded already.
        if managed && (tcp.length > 0 || tcp.flags.contains(Flags::SYN)) {
            self.learn(packet.flow, port, now);
        }
        // With a single bottleneck, no ACK of its flows leaves through its port.
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

    /// Removes idle flows, as a control plane would.
    fn on_timer(&mut self, now: Nanos) {
        if self.sweep.is_none_or(|sweep| now < sweep) {
            return;
        }
        let mut gone = Vec::new();
        let mut active = false;
        for entry in &mut self.entries {
            if let Some(idle) = entry.take_if(|entry| now.saturating_sub(entry.last_data) >= self.params.idle) {
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

/// A bottleneck at a port that the switch does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("receive windows cannot be bounded for port {bottleneck}: the switch has {ports} ports, numbered from 0")]
pub struct AckWindowError {
    /// The port number that was given.
    pub bottleneck: u16,
    /// The number of ports of the switch.
    pub ports: usize,
}
