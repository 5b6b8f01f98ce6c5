//! CoDel_DP: CoDel behind the queues of a switch, with a table in place of the root.
//!
//! CoDel (RFC 8289) as a switch can run it that has no root in its registers: a [`DropSchedule`] and two registers a
//! port. The name follows PIE_DP (Kunze et al., IM 2021), whose authors leave CoDel to a switch with special units.
//!
//! Unlike CoDel, which does not drop if less than a packet of the largest size stays behind, it does not look at the
//! size of the queue. That makes a difference where such a packet takes longer than the target: below 2.4 Mb/s with 5 ms,
//! and below 96 Mb/s with 125 us. A chosen packet is dropped when it leaves, so the packet that follows it comes later by
//! the time that it took on the link.

use crate::counters::counters;
use crate::drop_schedule::{DropSchedule, ScheduledDrops};
use crate::pie_switch::{QUEUE, units};
use crate::{DropReason, Egress, Headers, MarkReason, Pipeline, Port, Sink, TailDropParams};
use queuescope_wire::{Departure, Ecn, Nanos};

/// The parameters of CoDel_DP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CodelDpParams {
    /// The queue of each port, which the driver keeps: 500 us, as in Kunze et al.
    pub queue: TailDropParams,
    /// The sojourn time that is acceptable for longer than an interval: 125 us, the target of Kunze et al.
    pub target: Nanos,
    /// The interval, about the longest usual round-trip time: 2.5 ms, twenty times the target, as in RFC 8289 (section 4).
    pub interval: Nanos,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CodelDpParams {
    fn default() -> Self {
        Self { queue: QUEUE, target: Nanos(125_000), interval: Nanos(2_500_000), ecn: true }
    }
}

/// CoDel_DP on every port of a switch.
///
/// ```
/// use queuescope_queue::{CodelDp, CodelDpParams, Egress, Headers, Host, Pipeline, Port};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{Departure, FlowId, Nanos};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &queuescope_wire::Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let mut program = CodelDp::new(CodelDpParams::default(), 1);
/// let mut dropped = Vec::new();
/// for n in 0..1_000 {
///     // One packet leaves every 12 us, and all but the first waited for 200 us.
///     let dequeued = Nanos(12_000 * n + 200_000);
///     let enqueued = if n == 0 { dequeued } else { Nanos(12_000 * n) };
///     let mut departure = Departure { enqueued, dequeued, ..Departure::default() };
///     let headers = &mut Headers::plain(Host(1), Host(2), FlowId(9));
///     if program.egress(Port(0), &mut departure, headers, &mut NoSink) != Egress::Send {
///         dropped.push(12 * n / 1_000);
///     }
/// }
/// // One interval after the start, one interval later, and then more and more often.
/// assert_eq!(dropped, [2, 5, 6, 8, 9, 10, 11]);
/// ```
#[derive(Debug)]
pub struct CodelDp {
    params: CodelDpParams,
    schedule: DropSchedule,
    ports: Vec<ScheduledDrops>,
    stats: CodelDpStats,
}

/// The counters of CoDel_DP, for all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CodelDpStats {
    /// Packets that came to egress.
    pub offered: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// Packets that were due a mark and carried CE already.
    pub marked_before: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

counters!(CodelDpStats { offered, marked, marked_before, dropped });

impl CodelDp {
    /// No port has a standing queue.
    pub fn new(params: CodelDpParams, ports: u16) -> Self {
        Self {
            params,
            schedule: DropSchedule::new(params.interval),
            ports: vec![ScheduledDrops::default(); usize::from(ports)],
            stats: CodelDpStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &CodelDpStats {
        &self.stats
    }

    /// The registers of a port; `None` for a port that does not exist.
    pub fn registers(&self, port: Port) -> Option<ScheduledDrops> {
        self.ports.get(usize::from(port.0)).copied()
    }
}

impl Pipeline for CodelDp {
    #[inline]
    fn egress(
        &mut self,
        port: Port,
        departure: &mut Departure,
        _headers: &mut Headers,
        sink: &mut impl Sink,
    ) -> Egress {
        self.stats.offered += 1;
        let Some(registers) = self.ports.get_mut(usize::from(port.0)) else { return Egress::Send };
        let below = departure.sojourn() < self.params.target;
        if !registers.decide(&self.schedule, below, units(departure.dequeued)) {
            return Egress::Send;
        }
        let packet = &mut departure.packet;
        match packet.ecn {
            Ecn::Ect0 | Ecn::Ect1 if self.params.ecn => {
                packet.ecn = Ecn::Ce;
                self.stats.marked += 1;
                sink.marked(packet, MarkReason::Target, departure.dequeued);
                Egress::Send
            }
            Ecn::Ce if self.params.ecn => {
                self.stats.marked_before += 1;
                Egress::Send
            }
            _ => {
                self.stats.dropped += 1;
                Egress::Drop(DropReason::Target)
            }
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}
