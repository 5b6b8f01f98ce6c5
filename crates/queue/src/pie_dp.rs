//! PIE_DP: PIE entirely in a switch's data plane, with shifts instead of multiplications (Kunze et al., IM 2021,
//! section VI.C).
//!
//! Generated packets come at a fixed period. Each reads the delay of the last packet that left, forms the differences
//! to the target and to the delay read before, shifts them left instead of multiplying, and adds the result to the
//! probability or subtracts it. The register saturates at its ends. There is no scaling of the update, no decay, no
//! burst allowance. Every other packet stores its delay behind the queue, and is dropped there if the probability is
//! above a random number. That number was drawn for the packet before it, because one access to a register returns the
//! old value and stores the new one. Generated packets draw too.
//!
//! Differences to the switch: a generated packet takes no room in a queue of its own and no time on the link (70 bytes
//! each 117 us, 0.05 % of 10 Gb/s). Timestamps are those of the queue, without the time in the pipeline.

use crate::pie_data_plane::{PieDataPlane, UpdateRule};
use crate::pie_switch::{QUEUE, TARGET, target_register};
use crate::{PieGains, PieStep, TailDropParams, Trend};
use queuescope_wire::Nanos;

/// The parameters of PIE_DP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PieDpParams {
    /// The queue of each port, which the driver keeps. Source: section VI.A, 500 us.
    pub queue: TailDropParams,
    /// The target delay. The register's unit of 1.024 us is taken as a microsecond, so that 125 us become 128 us.
    /// Source: table II.
    /// Longer ones than [`LONGEST_PIE_TARGET`](crate::LONGEST_PIE_TARGET) count as that.
    pub target: Nanos,
    /// The period of the packet generator. Source: section VI.A, 117 us.
    pub update: Nanos,
    /// The left shift of the distance to the target. Source: section VI.C, 9.
    pub alpha_shift: u32,
    /// The left shift of the change of the delay. Source: section VI.C, 19.
    pub beta_shift: u32,
    /// The sign of the change of the delay.
    pub trend: Trend,
    /// Whether packets are dropped. If not, the probability is only computed (section VII.A).
    pub act: bool,
}

impl Default for PieDpParams {
    fn default() -> Self {
        let (alpha_shift, beta_shift) = PieGains::tofino().shifts();
        Self {
            queue: QUEUE,
            target: TARGET,
            update: Nanos(117_000),
            alpha_shift,
            beta_shift,
            trend: Trend::AsStated,
            act: true,
        }
    }
}

/// PIE_DP on every port of a switch.
pub type PieDp = PieDataPlane<ShiftedUpdate>;

/// The update by shifts.
#[derive(Debug)]
pub struct ShiftedUpdate(PieDpParams);

impl UpdateRule for ShiftedUpdate {
    #[inline]
    fn step(&self, delay: u16, sampled: u16) -> PieStep {
        shifted_step(&self.0, delay, sampled)
    }
}

impl PieDp {
    /// Starts with all registers at 0.
    pub fn new(params: PieDpParams, ports: u16, seed: u64) -> Self {
        Self::with_rule(ShiftedUpdate(params), params.update, params.act, ports, seed)
    }

    /// The target, in the unit of the delay register.
    pub fn target_register(&self) -> u16 {
        target_register(self.rule.0.target)
    }
}

/// The update by shifts of 32 bits, as the egress pipeline does it: both parts as magnitude and sign, combined by
/// comparing the magnitudes. Bits that a shift moves out of the 32 bits are lost.
pub fn shifted_step(params: &PieDpParams, delay: u16, sampled: u16) -> PieStep {
    let target = i32::from(target_register(params.target));
    let (delay, sampled) = (i32::from(delay), i32::from(sampled));
    let from_target = delay - target;
    let change = match params.trend {
        Trend::AsStated => delay - sampled,
        Trend::AsPublished => sampled - delay,
    };
    let shift = |magnitude: u32, by: u32| magnitude.checked_shl(by).unwrap_or(0);
    let alpha = shift(from_target.unsigned_abs(), params.alpha_shift);
    let beta = shift(change.unsigned_abs(), params.beta_shift);
    match (from_target >= 0, change >= 0) {
        (alpha_up, beta_up) if alpha_up == beta_up => {
            PieStep { change: alpha.saturating_add(beta), increase: alpha_up }
        }
        (alpha_up, _) if alpha >= beta => PieStep { change: alpha - beta, increase: alpha_up },
        (_, beta_up) => PieStep { change: beta - alpha, increase: beta_up },
    }
}
