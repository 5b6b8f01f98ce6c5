//! Algorithms as programs: what each needs of a switch. Constants are those of the parameters in `queuescope-queue`.
//! Each program names the type of that crate that it models, and how the two differ. Statements here about stages and
//! memory are about the program; results of simulations are about the type.

mod abc;
mod codel;
mod codel_dp;
mod common;
mod conquest;
mod conquest_legacy;
mod conquest_program;
mod drop_schedule;
mod ecn_sharp;
mod ecn_sharp_dp;
mod egress_pi;
mod p4air;
mod p4air_program;
mod pi2;
mod pie;
mod pie_cp;
mod pie_data_plane;
mod pie_dp;
mod pie_table;
mod printqueue;
mod red;
mod red_egress;
mod step;

pub use abc::{
    AbcCoreParams, AbcEdgeParams, abc_at_border, abc_core, abc_core_median, abc_core_with, abc_edge, abc_edge_with,
    abc_named, abc_strip, abc_strip_with,
};
pub use codel::codel;
pub use codel_dp::{codel_dp, codel_dp_with};
pub use conquest::{Snapshots, conquest, conquest_at_ingress, conquest_standing, conquest_with_feedback};
pub use conquest_legacy::{ConQuestLegacyParams, LEGACY_FATES, conquest_legacy, conquest_legacy_with};
pub(crate) use conquest_legacy::{EGRESS_TAP, INGRESS_TAP};
pub use conquest_program::{BEHIND, conquest_defaults, conquest_stands_defaults, conquest_stands_with, conquest_with};
use conquest_program::{conquest_stands_steps, conquest_steps, feedback};
pub use ecn_sharp::ecn_sharp;
pub use ecn_sharp_dp::{ecn_sharp_dp, ecn_sharp_dp_with};
pub use egress_pi::{egress_pi, egress_pi_with};
pub use p4air::{Flows, p4air, p4air_by_rtt};
pub use p4air_program::{p4air_control, p4air_with};
pub use pi2::pi2;
pub use pie::pie;
pub use pie_cp::{pie_cp, pie_cp_control, pie_cp_with};
pub use pie_dp::{pie_dp, pie_dp_with};
pub use pie_table::{pie_table, pie_table_with};
pub use printqueue::{printqueue_monitor, printqueue_monitor_with, printqueue_windows, printqueue_windows_with};
pub use red::red;
pub use red_egress::{red_egress, red_egress_with};
pub use step::{STEP_THRESHOLD, step, step_with};

use crate::Program;
use crate::ir::{InvalidProgram, SwitchProgram};
use queuescope_queue::{
    ActAt, CodelDpParams, ConQuestAqmParams, EcnSharpDpParams, EgressPiParams, HoldParams, PieCpParams, PieDpParams,
    PieTableParams, PipelineParams, SwitchP4airParams, SwitchRed,
};
use queuescope_sketch::{CellWindowsParams, DepthStackParams};

/// The dimensions of the algorithms that have any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dimensions {
    /// Of ConQuest.
    pub snapshots: Snapshots,
    /// Of P4air.
    pub flows: Flows,
}

/// The names of [`all`] algorithms, in its order. Making the algorithms takes much longer: PIE_TABLE has 88 367 table entries.
pub const NAMES: [&str; 26] = [
    "red",
    "red-egress",
    "codel",
    "codel-dp",
    "ecn-sharp",
    "ecn-sharp-dp",
    "pie",
    "pie-cp",
    "pie-dp",
    "pie-table",
    "pi2",
    "step",
    "egress-pi",
    "conquest",
    "conquest-stands",
    "conquest-ingress",
    "conquest-feedback",
    "conquest-legacy",
    "abc-edge",
    "abc-core",
    "abc-core-median",
    "abc-strip",
    "p4air",
    "p4air-by-rtt",
    "printqueue-windows",
    "printqueue-monitor",
];

/// The names of those that are [`executable`], in its order.
pub const EXECUTABLE: [&str; 20] = [
    "red-egress",
    "codel-dp",
    "ecn-sharp-dp",
    "pie-cp",
    "pie-dp",
    "pie-table",
    "step",
    "egress-pi",
    "conquest",
    "conquest-stands",
    "conquest-ingress",
    "conquest-feedback",
    "conquest-legacy",
    "abc-edge",
    "abc-core",
    "abc-core-median",
    "abc-strip",
    "p4air",
    "printqueue-windows",
    "printqueue-monitor",
];

/// All algorithms, in these dimensions.
pub fn all(dimensions: Dimensions) -> Vec<Program> {
    let Dimensions { snapshots, flows } = dimensions;
    vec![
        red(),
        red_egress(),
        codel(),
        codel_dp(),
        ecn_sharp(),
        ecn_sharp_dp(),
        pie(),
        pie_cp(),
        pie_dp(),
        pie_table(),
        pi2(),
        step(),
        egress_pi(),
        conquest_steps(snapshots, ActAt::Egress),
        conquest_stands_steps(snapshots),
        conquest_steps(snapshots, ActAt::Ingress(HoldParams::default())),
        conquest_steps(snapshots, feedback()),
        conquest_legacy(),
        abc_edge(),
        abc_core(),
        abc_core_median(),
        abc_strip(),
        p4air(flows),
        p4air_by_rtt(flows),
        printqueue_windows(),
        printqueue_monitor(),
    ]
}

/// The algorithms that can be run and printed, with their default parameters; ConQuest with [`conquest_defaults`]. The others of [`all`] are steps only.
///
/// # Errors
/// Never fails with these parameters.
pub fn executable() -> Result<Vec<SwitchProgram>, InvalidProgram> {
    Ok(vec![
        red_egress_with(&SwitchRed::defaults())?,
        codel_dp_with(&CodelDpParams::default())?,
        ecn_sharp_dp_with(&EcnSharpDpParams::default())?,
        pie_cp_with(&PieCpParams::default())?,
        pie_dp_with(&PieDpParams::default())?,
        pie_table_with(&PieTableParams::default())?,
        step_with(STEP_THRESHOLD)?,
        egress_pi_with(&EgressPiParams::default())?,
        conquest_with(&conquest_defaults())?,
        conquest_stands_with(&conquest_stands_defaults(), BEHIND)?,
        conquest_with(&ConQuestAqmParams { act_at: ActAt::Ingress(HoldParams::default()), ..conquest_defaults() })?,
        conquest_with(&ConQuestAqmParams { act_at: feedback(), ..conquest_defaults() })?,
        conquest_legacy_with(&ConQuestLegacyParams::default())?,
        abc_edge_with(&AbcEdgeParams::default())?,
        abc_core_with(&AbcCoreParams::default())?,
        abc_core_with(&abc::median())?,
        abc_strip_with(&[])?,
        p4air_with(&SwitchP4airParams::default())?,
        printqueue_windows_with(&CellWindowsParams::default(), 0)?,
        printqueue_monitor_with(&DepthStackParams::default(), 0)?,
    ])
}

/// The program of one of the [`EXECUTABLE`] algorithms, with these parameters. None for the others. ABC has a program for each role: that of the
/// first port.
///
/// # Errors
/// Fails if a parameter does not fit its register.
pub fn executable_with(params: &PipelineParams) -> Result<Option<SwitchProgram>, InvalidProgram> {
    Ok(Some(match params {
        PipelineParams::PieCp(params) => pie_cp_with(params)?,
        PipelineParams::ConQuestAqm(params) => conquest_with(params)?,
        PipelineParams::PieDp(params) => pie_dp_with(params)?,
        PipelineParams::PieTable(params) => pie_table_with(params)?,
        PipelineParams::EgressPi(params) => egress_pi_with(params)?,
        PipelineParams::CodelDp(params) => codel_dp_with(params)?,
        PipelineParams::EcnSharpDp(params) => ecn_sharp_dp_with(params)?,
        PipelineParams::P4air(params) => {
            p4air_with(&SwitchP4airParams { p4air: params.clone(), ..SwitchP4airParams::default() })?
        }
        PipelineParams::Abc(params) => {
            let role = params.ports.first().copied().unwrap_or_default();
            let name = if role.meters {
                "abc-edge"
            } else if role.strips {
                "abc-strip"
            } else {
                "abc-core"
            };
            return abc_named(name, params);
        }
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_algorithms() {
        let all = all(Dimensions::default());
        assert_eq!(all.iter().map(Program::name).collect::<Vec<_>>(), NAMES);
        let executable = executable().expect("the defaults fit");
        assert_eq!(executable.iter().map(SwitchProgram::name).collect::<Vec<_>>(), EXECUTABLE);
    }
}
