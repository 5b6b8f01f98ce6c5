//! PIE_TABLE: PIE_DP with tables in place of shifts (Kunze et al., IM 2021, section VI.D).
//!
//! Two range lookups put the distance to the target and the change of the delay into numbered ranges; an exact match on
//! both numbers gives the change of the probability, computed beforehand with the exact gains. All else is as in
//! [`PieDp`](crate::PieDp): sampling by generated packets, no scaling, no decay, drop at egress.

mod layout;

pub use layout::{PieRange, PieTableLayout, PieUpdateTable};

use crate::pie_dp::DpPort;
use crate::pie_switch::{QUEUE, TARGET, fraction, target_register};
use crate::random::Random;
use crate::update_clock::UpdateClock;
use crate::{DropReason, Egress, Headers, Ingress, PieGains, Pipeline, Port, Sink, TailDropParams, Trend};
use queuescope_wire::{Departure, Nanos, Packet};

/// What PIE_TABLE is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieTableParams {
    /// The queue of each port, which the driver keeps. Source: section VI.A, 500 us.
    pub queue: TailDropParams,
    /// The delay to be held. The register's unit of 1.024 us is taken for a microsecond. Source: table II, 125 us.
    pub target: Nanos,
    /// The longest delay that the tables cover; 4 ms at most. Source: section VI.D, 500 us.
    pub max_delay: Nanos,
    /// How often the generator makes a packet. Source: section VI.A, 117 us.
    pub update: Nanos,
    /// The gains. Source: table II.
    pub gains: PieGains,
    /// The layout of the tables.
    pub layout: PieTableLayout,
    /// Which way the change of the delay is taken.
    pub trend: Trend,
    /// Whether packets are dropped. Without, the probability is only computed (section VII.A).
    pub act: bool,
}

impl Default for PieTableParams {
    fn default() -> Self {
        Self {
            queue: QUEUE,
            target: TARGET,
            max_delay: Nanos(500_000),
            update: Nanos(117_000),
            gains: PieGains::tofino(),
            layout: PieTableLayout::AsStated,
            trend: Trend::AsStated,
            act: true,
        }
    }
}

/// PIE_TABLE on every port of a switch.
#[derive(Debug)]
pub struct PieTable {
    params: PieTableParams,
    target: u16,
    table: PieUpdateTable,
    ports: Vec<DpPort>,
    clock: UpdateClock,
    random: Random,
    stats: PieTableStats,
}

/// What PIE_TABLE counted, on all ports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieTableStats {
    /// Packets that came to egress.
    pub offered: u64,
    /// Packets that were dropped there.
    pub early: u64,
    /// Packets of the generator, each counted once for all ports.
    pub updates: u64,
}

impl PieTable {
    /// With all registers at 0 and the tables filled.
    pub fn new(params: PieTableParams, ports: u16, seed: u64) -> Self {
        Self {
            params,
            target: target_register(params.target),
            table: PieUpdateTable::new(params.layout, params.gains, params.target, params.max_delay),
            ports: vec![DpPort::default(); usize::from(ports)],
            clock: UpdateClock::new(params.update, None),
            random: Random::new(seed),
            stats: PieTableStats::default(),
        }
    }

    /// The tables.
    pub fn table(&self) -> &PieUpdateTable {
        &self.table
    }

    /// What was counted so far.
    pub fn stats(&self) -> &PieTableStats {
        &self.stats
    }

    /// The probability with which `port` drops, where 2^32 - 1 is one; none of a port that is not there.
    pub fn probability_register(&self, port: Port) -> Option<u32> {
        self.ports.get(usize::from(port.0)).map(|port| port.probability)
    }

    /// The probability with which `port` drops.
    pub fn drop_probability(&self, port: Port) -> Option<f64> {
        self.probability_register(port).map(fraction)
    }
}

impl Pipeline for PieTable {
    #[inline]
    fn ingress(
        &mut self,
        _port: Port,
        _packet: &mut Packet,
        _headers: &mut Headers,
        _now: Nanos,
        _sink: &mut impl Sink,
    ) -> Ingress {
        Ingress::Enqueue(0)
    }

    #[inline]
    fn egress(
        &mut self,
        port: Port,
        departure: &mut Departure,
        _headers: &mut Headers,
        _sink: &mut impl Sink,
    ) -> Egress {
        let Some(port) = self.ports.get_mut(usize::from(port.0)) else { return Egress::Send };
        self.clock.wake(departure.dequeued);
        self.stats.offered += 1;
        let drop = port.leave(departure.sojourn(), self.random.bits());
        if drop && self.params.act {
            self.stats.early += 1;
            return Egress::Drop(DropReason::Early);
        }
        Egress::Send
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        self.clock.next()
    }

    fn on_timer(&mut self, _now: Nanos) {
        self.stats.updates += 1;
        let (table, target, trend) = (&self.table, self.target, self.params.trend);
        let step = |delay: u16, sampled: u16| {
            // Registers and differences have 16 bits here, and wrap.
            let change = match trend {
                Trend::AsStated => delay.wrapping_sub(sampled),
                Trend::AsPublished => sampled.wrapping_sub(delay),
            };
            table.step(delay.wrapping_sub(target).cast_signed(), change.cast_signed())
        };
        let mut changed = false;
        for port in &mut self.ports {
            changed |= port.sample(step, self.random.bits());
        }
        if changed { self.clock.tick() } else { self.clock.rest() }
    }
}
