//! ECN#_DP: ECN# behind the queues of a switch, with a table in place of the root.
//!
//! ECN# (Zhang, Bai and Chen, CoNEXT 2019) as a switch can run it that has no root in its registers: a threshold, and a
//! [`DropSchedule`] with two registers a port for marks of a standing queue. [`EcnSharp`](crate::EcnSharp) has the
//! algorithm. Differences from it:
//!
//! - A persistent mark is due at a fixed time after the last packet below target left. There, it is due one spacing after
//!   the mark before it was made, which is later by the time between two packets.
//! - Times of persistent marks are in units of 1024 ns.

use crate::counters::counters;
use crate::drop_schedule::{DropSchedule, ScheduledDrops};
use crate::pie_switch::{QUEUE, units};
use crate::{EcnSharpParams, Egress, Headers, MarkReason, Pipeline, Port, Sink, TailDropParams};
use queuescope_wire::{Departure, Ecn, Nanos};

/// The parameters of ECN#_DP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EcnSharpDpParams {
    /// The queue of each port, which the driver keeps: 500 us, as in Kunze et al. (IM 2021).
    pub queue: TailDropParams,
    /// Packets with a longer sojourn time are marked: 200 us, as for [`EcnSharp`](crate::EcnSharp).
    pub instant_target: Nanos,
    /// The sojourn time that is acceptable for longer than an interval: 85 us.
    pub persistent_target: Nanos,
    /// How long the sojourn time may be at or above that target: 200 us.
    pub persistent_interval: Nanos,
}

impl Default for EcnSharpDpParams {
    fn default() -> Self {
        let EcnSharpParams { limit: _, instant_target, persistent_target, persistent_interval } =
            EcnSharpParams::default();
        Self { queue: QUEUE, instant_target, persistent_target, persistent_interval }
    }
}

/// ECN#_DP on every port of a switch.
///
/// ```
/// use queuescope_queue::{EcnSharpDp, EcnSharpDpParams, Headers, Host, Pipeline, Port};
/// # use queuescope_queue::{Dropped, MarkReason, Sink};
/// use queuescope_wire::{Departure, Ecn, FlowId, Nanos, Packet};
/// # struct NoSink;
/// # impl Sink for NoSink {
/// #     fn dropped(&mut self, _: &Dropped) {}
/// #     fn marked(&mut self, _: &Packet, _: MarkReason, _: Nanos) {}
/// # }
///
/// let mut program = EcnSharpDp::new(EcnSharpDpParams::default(), 1);
/// for n in 0..1_000 {
///     // All packets but the first wait for 100 us, which is not too long for one of them, but too long for all.
///     let packet = Packet { ecn: Ecn::Ect0, ..Packet::default() };
///     let dequeued = Nanos(1_200 * n + 100_000);
///     let enqueued = if n == 0 { dequeued } else { Nanos(1_200 * n) };
///     let mut departure = Departure { packet, enqueued, dequeued, ..Departure::default() };
///     program.egress(Port(0), &mut departure, &mut Headers::plain(Host(1), Host(2), FlowId(9)), &mut NoSink);
/// }
/// assert_eq!(program.stats().marked_threshold, 0);
/// assert!(program.stats().marked_target > 5);
/// ```
#[derive(Debug)]
pub struct EcnSharpDp {
    params: EcnSharpDpParams,
    schedule: DropSchedule,
    ports: Vec<ScheduledDrops>,
    stats: EcnSharpDpStats,
}

/// The counters of ECN#_DP, for all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EcnSharpDpStats {
    /// Packets that came to egress.
    pub offered: u64,
    /// Packets that were marked because the queue stood, and not because of their own sojourn time.
    pub marked_target: u64,
    /// Packets that were marked because of their own sojourn time.
    pub marked_threshold: u64,
    /// Packets that were due a mark and carried CE already.
    pub marked_before: u64,
    /// Packets that were due a mark and left without one, because they are not ECN-capable.
    pub not_capable: u64,
}

counters!(EcnSharpDpStats { offered, marked_target, marked_threshold, marked_before, not_capable });

impl EcnSharpDp {
    /// No port has a standing queue.
    pub fn new(params: EcnSharpDpParams, ports: u16) -> Self {
        Self {
            params,
            schedule: DropSchedule::new(params.persistent_interval),
            ports: vec![ScheduledDrops::default(); usize::from(ports)],
            stats: EcnSharpDpStats::default(),
        }
    }

    /// The counters so far.
    pub fn stats(&self) -> &EcnSharpDpStats {
        &self.stats
    }

    /// The registers of a port; `None` for a port that does not exist.
    pub fn registers(&self, port: Port) -> Option<ScheduledDrops> {
        self.ports.get(usize::from(port.0)).copied()
    }
}

impl Pipeline for EcnSharpDp {
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
        let sojourn = departure.sojourn();
        let stands =
            registers.decide(&self.schedule, sojourn < self.params.persistent_target, units(departure.dequeued));
        let is_late = sojourn > self.params.instant_target;
        if !stands && !is_late {
            return Egress::Send;
        }
        let packet = &mut departure.packet;
        match packet.ecn {
            Ecn::NotEct => self.stats.not_capable += 1,
            Ecn::Ce => self.stats.marked_before += 1,
            Ecn::Ect0 | Ecn::Ect1 => {
                packet.ecn = Ecn::Ce;
                let reason = if is_late { MarkReason::Threshold } else { MarkReason::Target };
                *(if is_late { &mut self.stats.marked_threshold } else { &mut self.stats.marked_target }) += 1;
                sink.marked(packet, reason, departure.dequeued);
            }
        }
        Egress::Send
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.stats.by_name()
    }
}
