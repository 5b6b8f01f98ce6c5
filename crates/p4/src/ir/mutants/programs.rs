//! The programs that have mutants.

use super::super::builder::SwitchProgram;
use crate::algorithms::{
    AbcCoreParams, AbcEdgeParams, ConQuestLegacyParams, abc_core_with, abc_edge_with, abc_strip_with, codel_dp_with,
    conquest_defaults, conquest_legacy_with, conquest_stands_defaults, conquest_stands_with, conquest_with,
    ecn_sharp_dp_with, executable, p4air_with, printqueue_monitor_with, printqueue_windows_with, red_egress_with,
    step_with,
};
use queuescope_queue::{
    ActAt, CodelDpParams, ConQuestAqmParams, DropSchedule, EcnSharpDpParams, FlowLimit, FlowTable, HeldAction,
    HoldParams, P4airParams, RedParams, SwitchAqmParams, SwitchAverage, SwitchMeterParams, SwitchP4airParams,
    SwitchRed,
};
use queuescope_sketch::{CellWindowsParams, ConQuestParams, DepthStackParams, TappedConQuestParams};
use queuescope_wire::Nanos;

/// All programs, in dimensions for which values at the limits are common.
pub(super) fn programs() -> Vec<SwitchProgram> {
    let hold = HoldParams { registers: 2, hold: Nanos(2), action: HeldAction::Respond };
    let held = |action| ActAt::Ingress(HoldParams { action, ..hold });
    let limit = HeldAction::Limit(FlowLimit { interval: Nanos(2), burst: 2 });
    // A long interval, so that few are due behind the end of the table.
    let (short, interval) = (Nanos(1 << 14), DropSchedule::LONGEST);
    let codel = CodelDpParams { target: short, interval, ..CodelDpParams::default() };
    let ecn_sharp = EcnSharpDpParams {
        instant_target: Nanos(1 << 17),
        persistent_target: short,
        persistent_interval: interval,
        ..EcnSharpDpParams::default()
    };
    let cells = CellWindowsParams { cell_bits: 0, index_bits: 1, alpha: 1, windows: 2 };
    let steps = DepthStackParams { step_bits: 1, level_bits: 1 };
    let red = RedParams { ecn: true, ..SwitchRed::defaults() };
    let small = [
        red_egress_with(&red).expect("it fits"),
        codel_dp_with(&codel).expect("it fits"),
        ecn_sharp_dp_with(&ecn_sharp).expect("it fits"),
        printqueue_windows_with(&cells, 1).expect("it fits"),
        printqueue_monitor_with(&steps, 1).expect("it fits"),
        step_with(Nanos(1 << 14)).expect("it fits"),
        small_conquest(ActAt::Egress, 2),
        small_stands(),
        small_conquest(held(HeldAction::Respond), 1),
        small_conquest(held(HeldAction::Drop), 1),
        small_conquest(held(limit), 1),
        small_conquest(held(HeldAction::Reroute), 1),
        small_legacy(),
    ];
    let edge = AbcEdgeParams {
        meter: SwitchMeterParams { least_time: Nanos(1 << 13), ..SwitchMeterParams::default() },
        inside: vec![1],
        ..AbcEdgeParams::default()
    };
    let core = |average| {
        let aqm = SwitchAqmParams { average, ..SwitchAqmParams::default() };
        abc_core_with(&AbcCoreParams { aqm, outside: vec![1] }).expect("it fits")
    };
    let abc = [
        abc_edge_with(&edge).expect("it fits"),
        core(SwitchAverage::MEAN),
        core(SwitchAverage::MEDIAN),
        abc_strip_with(&[1]).expect("it fits"),
    ];
    let small: Vec<_> = abc.into_iter().chain(small).collect();
    let others = executable().expect("the defaults fit").into_iter();
    let others = others.filter(|program| program.name != "p4air" && small.iter().all(|it| it.name != program.name));
    small.clone().into_iter().rev().chain(others).collect()
}

/// ConQuest beside a router, with two places and columns, and delays and thresholds that packets of a few bytes are at.
fn small_legacy() -> SwitchProgram {
    let usual = ConQuestLegacyParams::default();
    let sketch = ConQuestParams { rows: 1, columns: 2, window: Nanos(1 << 16), ..usual.tapped.sketch.clone() };
    let (max_delay, tau) = (Nanos(1 << 18), Nanos(1 << 14));
    let tapped = TappedConQuestParams { sketch, slots: 2, max_delay, tau, threshold: 3, ..usual.tapped };
    let params = ConQuestLegacyParams { tapped, ingress: vec![0], egress: 1, collector: 2 };
    conquest_legacy_with(&params).expect("it fits")
}

/// P4air with eight queues and few flows.
pub(super) fn small_p4air() -> SwitchProgram {
    let table = FlowTable::Hashed { entries: 128, seed: 0 };
    let p4air = P4airParams { queues: 8, table, ..P4airParams::default() };
    p4air_with(&SwitchP4airParams { p4air, ..SwitchP4airParams::default() }).expect("it fits")
}

/// The mark for a standing queue with few columns.
fn small_stands() -> SwitchProgram {
    let mut params = conquest_stands_defaults();
    params.sketch.rows = 1;
    params.sketch.columns = 2;
    params.sketch.window = Nanos(1 << 16);
    params.tau = Nanos(1 << 17);
    conquest_stands_with(&params, 2).expect("it fits")
}

/// ConQuest with few columns, and a threshold that a few packets reach. `tau` is two windows, so that one window may or may not matter, and a
/// power of two, so that sojourn times are at it.
fn small_conquest(act_at: ActAt, rows: usize) -> SwitchProgram {
    let mut params = ConQuestAqmParams { act_at, ..conquest_defaults() };
    params.sketch.rows = rows;
    params.sketch.columns = 2;
    params.sketch.window = Nanos(1 << 16);
    params.tau = Nanos(1 << 17);
    params.threshold = 3.0;
    conquest_with(&params).expect("it fits")
}
