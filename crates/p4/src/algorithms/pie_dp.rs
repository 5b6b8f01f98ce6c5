//! PIE_DP: PIE in the data plane, with shifts for products (Kunze et al., section VI.C).

use super::pie_data_plane::{UNITS, pie_in_the_data_plane};
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
    let source = "Kunze et al., Tofino + P4, IM 2021, section VI.C (PIE_DP)";
    let p = Builder::new("pie-dp", "PIE in the data plane, with shifts for products", source);
    pie_in_the_data_plane(p, (params.act, params.update), |p, delays| step(p, params, delays))
}

/// The step of the probability, and whether it is upwards.
fn step(p: &mut Builder, params: &PieDpParams, [delay, before]: [Variable; 2]) -> [Variable; 2] {
    p.comment("The register's unit of 1024 ns counts as a microsecond.");
    let target = u64::from(PieDp::new(*params, 1, 0).target_register());
    let (distance, above) = magnitude(p, ["distance", "above"], delay.into(), target.into());
    let (new, old) = match params.trend {
        Trend::AsStated => (delay, before),
        Trend::AsPublished => (before, delay),
    };
    let (change, grows) = magnitude(p, ["change", "grows"], new.into(), old.into());
    let alpha = p.compute("alpha", 32, Unit::Number, Operation::ShiftLeft(distance.into(), params.alpha_shift));
    let beta = p.compute("beta", 32, Unit::Number, Operation::ShiftLeft(change.into(), params.beta_shift));
    p.comment("If the signs differ, the smaller is subtracted from the larger.");
    let step = p.variable("step", 32, Unit::Number);
    let up = p.variable("up", 1, Unit::Number);
    p.choose(
        Condition::compare(above, Comparison::Equal, grows),
        |p| {
            p.set(step, Operation::AddSaturating(alpha.into(), beta.into()));
            p.set(up, Operation::Copy(above.into()));
        },
        |p| {
            p.choose(
                Condition::compare(alpha, Comparison::GreaterOrEqual, beta),
                |p| {
                    p.set(step, Operation::Subtract(alpha.into(), beta.into()));
                    p.set(up, Operation::Copy(above.into()));
                },
                |p| {
                    p.set(step, Operation::Subtract(beta.into(), alpha.into()));
                    p.set(up, Operation::Copy(grows.into()));
                },
            );
        },
    );
    [step, up]
}

/// The difference of two delays, and whether the first is at least the second.
fn magnitude(p: &mut Builder, names: [&'static str; 2], new: Operand, old: Operand) -> (Variable, Variable) {
    let difference = p.variable(names[0], 16, UNITS);
    let is_up = p.variable(names[1], 1, Unit::Number);
    p.choose(
        Condition::compare(new, Comparison::GreaterOrEqual, old),
        |p| {
            p.set(difference, Operation::Subtract(new, old));
            p.set(is_up, Operation::Copy(1.into()));
        },
        |p| p.set(difference, Operation::Subtract(old, new)),
    );
    (difference, is_up)
}
