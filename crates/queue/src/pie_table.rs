//! PIE_TABLE: PIE_DP with tables instead of shifts (Kunze et al., IM 2021, section VI.D).
//!
//! Two range lookups map the distance to the target and the change of the delay to numbered ranges. An exact match on
//! both numbers gives the change of the probability, which was computed beforehand with the exact gains. Everything
//! else is as in [`PieDp`](crate::PieDp): sampling by generated packets, no scaling, no decay, drop at egress.

mod layout;

pub use layout::{PieRange, PieTableLayout, PieUpdateTable};

use crate::pie_data_plane::{PieDataPlane, UpdateRule};
use crate::pie_switch::{QUEUE, TARGET, target_register};
use crate::{PieGains, PieStep, TailDropParams, Trend};
use queuescope_wire::Nanos;

/// The parameters of PIE_TABLE.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieTableParams {
    /// The queue of each port, which the driver keeps. Source: section VI.A, 500 us.
    pub queue: TailDropParams,
    /// The target delay. The register's unit of 1.024 us is taken as a microsecond. Source: table II, 125 us.
    /// Longer ones than [`LONGEST_PIE_TARGET`](crate::LONGEST_PIE_TARGET) count as that.
    pub target: Nanos,
    /// The longest delay that the tables cover; at most 4 ms. Source: section VI.D, 500 us.
    pub max_delay: Nanos,
    /// The period of the packet generator. Source: section VI.A, 117 us.
    pub update: Nanos,
    /// The gains. Source: table II.
    pub gains: PieGains,
    /// The layout of the tables.
    pub layout: PieTableLayout,
    /// The sign of the change of the delay.
    pub trend: Trend,
    /// Whether packets are dropped. If not, the probability is only computed (section VII.A).
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
pub type PieTable = PieDataPlane<TableUpdate>;

/// The update by tables.
#[derive(Debug)]
pub struct TableUpdate {
    target: u16,
    trend: Trend,
    table: PieUpdateTable,
}

impl UpdateRule for TableUpdate {
    /// Registers and differences have 16 bits here, and wrap.
    #[inline]
    fn step(&self, delay: u16, sampled: u16) -> PieStep {
        let change = match self.trend {
            Trend::AsStated => delay.wrapping_sub(sampled),
            Trend::AsPublished => sampled.wrapping_sub(delay),
        };
        self.table.step(delay.wrapping_sub(self.target).cast_signed(), change.cast_signed())
    }
}

impl PieTable {
    /// Starts with all registers at 0 and the tables filled.
    pub fn new(params: PieTableParams, ports: u16, seed: u64) -> Self {
        let PieTableParams { layout, gains, target, max_delay, trend, update, act, queue: _ } = params;
        let table = PieUpdateTable::new(layout, gains, target, max_delay);
        Self::with_rule(TableUpdate { target: target_register(target), trend, table }, update, act, ports, seed)
    }

    /// The tables.
    pub fn table(&self) -> &PieUpdateTable {
        &self.rule.table
    }
}
