//! PIE_DP: PIE in the data plane, with shifts for products (Kunze et al., section VI.C).

use super::pie_data_plane::{Change, UNITS, check_target, pie_in_the_data_plane};
use crate::Program;
use crate::ir::{Builder, Comparison, Condition, InvalidProgram, Operand, Operation, SwitchProgram, Unit, Variable};
use queuescope_queue::{PieDp, PieDpParams, Trend};

/// PIE_DP with its default parameters, as steps.
pub fn pie_dp() -> Program {
    pie_dp_with(&PieDpParams::default()).expect("the default parameters fit").steps()
}

/// PIE_DP: generated packets change the probability by shifts of the distance of the delay to its target, and of its change. There is no
/// scaling and no decay.
///
/// Models [`PieDp`], step for step.
///
/// # Errors
/// Fails if a parameter does not fit its register.
pub fn pie_dp_with(params: &PieDpParams) -> Result<SwitchProgram, InvalidProgram> {
    check_target("pie-dp", params.target)?;
    let source = "Kunze et al., Tofino + P4, IM 2021, section VI.C (PIE_DP)";
    let p = Builder::new("pie-dp", "PIE in the data plane, with shifts for products", source);
    pie_in_the_data_plane(p, (params.act, params.update), |p, delays, up| step(p, params, delays, up))
}

/// By how much the probability grows or falls. A saturating difference is 0 or the distance, so that both of them give the distance and its sign.
fn step(p: &mut Builder, params: &PieDpParams, [delay, before]: [Variable; 2], up: Variable) -> Change {
    p.comment("The register's unit of 1024 ns counts as a microsecond.");
    let target = u64::from(PieDp::new(*params, 1, 0).target_register());
    let (alpha, below) = shifted(p, ["above", "below", "alpha"], delay.into(), target.into(), params.alpha_shift);
    let (new, old) = match params.trend {
        Trend::AsStated => (delay, before),
        Trend::AsPublished => (before, delay),
    };
    let (beta, declines) = shifted(p, ["growth", "decline", "beta"], new.into(), old.into(), params.beta_shift);
    let sum = Operation::AddSaturating(alpha.into(), beta.into());
    let [more_alpha, more_beta] =
        [(alpha, beta), (beta, alpha)].map(|(one, other)| Operation::SubtractSaturating(one.into(), other.into()));
    let down = p.variable("down", 32, Unit::Number);
    let set = |p: &mut Builder, pairs: &[(Variable, Operation)]| {
        pairs.iter().for_each(|(variable, operation)| p.set(*variable, *operation));
    };
    let is_up = |under| Condition::compare(under, Comparison::Equal, 0);
    p.comment("If the signs differ, the larger decides, by what it has more.");
    p.choose(
        is_up(below),
        |p| {
            p.choose(is_up(declines), |p| set(p, &[(up, sum)]), |p| set(p, &[(up, more_alpha), (down, more_beta)]));
        },
        |p| {
            p.choose(is_up(declines), |p| set(p, &[(up, more_beta), (down, more_alpha)]), |p| set(p, &[(down, sum)]));
        },
    );
    Change { down, is_up: (down, 0) }
}

/// The distance of two delays, shifted, and a variable that is zero if the first is at least the second.
fn shifted(
    p: &mut Builder,
    [over, under, result]: [&'static str; 3],
    new: Operand,
    old: Operand,
    shift: u32,
) -> (Variable, Variable) {
    let over = p.compute(over, 16, UNITS, Operation::SubtractSaturating(new, old));
    let under = p.compute(under, 16, UNITS, Operation::SubtractSaturating(old, new));
    let result = p.variable(result, 32, Unit::Number);
    p.choose(
        Condition::compare(under, Comparison::Equal, 0),
        |p| p.set(result, Operation::ShiftLeft(over.into(), shift)),
        |p| p.set(result, Operation::ShiftLeft(under.into(), shift)),
    );
    (result, under)
}
