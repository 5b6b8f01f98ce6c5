//! Regression test: the outcome of the harness's long run, for a discipline of each kind.
//!
//! A change that alters behaviour on purpose updates this table and states why. A failing test prints the new table.

use crate::disciplines::harness::{Contestant, check_contract, long_run};
use queuescope_queue::{
    CodelFlavour, CodelParams, DisciplineParams, DualPi2Params, EcnSharpParams, FqCodelParams, HashQueuesParams, Limit,
    Pi2Params, PieParams, Placement, RedParams, RedThresholds, TailDropParams,
};
use queuescope_wire::{ByteCount, Nanos};
use std::fmt::Write;
use std::num::NonZeroU16;

const GOLDEN: &str = "\
tail drop: 2684 left after 440573 µs on average, 1316 dropped (overlimit)
hash queues: 2695 left after 439089 µs on average, 1305 dropped (overlimit)
RED: 2720 left after 331765 µs on average, 8 dropped (overlimit), 218 dropped (early), 1054 dropped (forced), 1219 marked (early)
RED, not gentle, no wait: 2662 left after 171923 µs on average, 21 dropped (early), 1317 dropped (forced), 98 marked (early)
ARED: 2682 left after 214002 µs on average, 1 dropped (overlimit), 1302 dropped (early), 15 dropped (forced)
CoDel: 2705 left after 353767 µs on average, 782 dropped (overlimit), 513 dropped (target), 2613 marked (target)
CoDel, Linux: 2689 left after 356890 µs on average, 804 dropped (overlimit), 507 dropped (target), 2598 marked (target)
CoDel, ns-3: 2703 left after 369715 µs on average, 886 dropped (overlimit), 411 dropped (target), 2148 marked (target)
FQ-CoDel: 2670 left after 165398 µs on average, 175 dropped (target), 1155 dropped (fattest-flow), 949 marked (target)
FQ-CoDel, ns-3: 2686 left after 225964 µs on average, 55 dropped (target), 1259 dropped (fattest-flow), 965 marked (target)
ECN#: 2684 left after 440573 µs on average, 1316 dropped (overlimit), 162 marked (target), 1890 marked (threshold)
PIE: 2653 left after 35357 µs on average, 1347 dropped (early)
PIE, all options: 2624 left after 43763 µs on average, 1376 dropped (early)
PIE, ns-3: 2641 left after 32080 µs on average, 1359 dropped (early)
PI2: 2677 left after 440371 µs on average, 1208 dropped (overlimit), 115 dropped (early), 1985 marked (early)
DualPI2: 2351 left after 11905 µs on average, 1649 dropped (early), 1583 marked (early), 23 marked (threshold)
";

fn contestants() -> [(&'static str, DisciplineParams); 16] {
    let limit = Limit::Packets(40);
    let queues = NonZeroU16::new(16).unwrap();
    let thresholds = Some(RedThresholds { min: 5.0, max: 15.0 });
    let red = RedParams {
        limit,
        thresholds,
        weight: Some(0.02),
        ecn: true,
        mean_packet: ByteCount(1440),
        ..RedParams::default()
    };
    let codel = CodelParams { limit, ecn: true, ..CodelParams::default() };
    let ecn_sharp = EcnSharpParams {
        limit,
        instant_target: Nanos(400_000_000),
        persistent_target: Nanos(20_000_000),
        persistent_interval: Nanos(200_000_000),
    };
    let fq_codel = FqCodelParams { limit, queues, ..FqCodelParams::default() };
    [
        ("tail drop", DisciplineParams::TailDrop(TailDropParams { limit })),
        (
            "hash queues",
            DisciplineParams::HashQueues(HashQueuesParams { queues, limit: Limit::None, shared_limit: limit }),
        ),
        ("RED", DisciplineParams::Red(red)),
        ("RED, not gentle, no wait", DisciplineParams::Red(RedParams { gentle: false, wait: false, ..red })),
        ("ARED", DisciplineParams::Red(RedParams { mean_packet: ByteCount(1440), ..RedParams::adaptive(limit) })),
        ("CoDel", DisciplineParams::Codel(codel)),
        ("CoDel, Linux", DisciplineParams::Codel(CodelParams { flavour: CodelFlavour::Linux, ..codel })),
        ("CoDel, ns-3", DisciplineParams::Codel(CodelParams { flavour: CodelFlavour::Ns3, ..codel })),
        ("FQ-CoDel", DisciplineParams::FqCodel(fq_codel)),
        (
            "FQ-CoDel, ns-3",
            DisciplineParams::FqCodel(FqCodelParams {
                flavour: CodelFlavour::Ns3,
                placement: Placement::Number,
                ..fq_codel
            }),
        ),
        ("ECN#", DisciplineParams::EcnSharp(ecn_sharp)),
        ("PIE", DisciplineParams::Pie(PieParams { limit, ..PieParams::default() })),
        ("PIE, all options", DisciplineParams::Pie(PieParams { limit, ..PieParams::appendix_b() })),
        ("PIE, ns-3", DisciplineParams::Pie(PieParams::ns3_with_limit(limit))),
        ("PI2", DisciplineParams::Pi2(Pi2Params { limit, ..Pi2Params::default() })),
        ("DualPI2", DisciplineParams::DualPi2(DualPi2Params { limit, ..DualPi2Params::default() })),
    ]
}

#[test]
fn the_long_run_gives_the_recorded_outcome() {
    let steps = long_run();
    let mut table = String::new();
    for (name, params) in contestants() {
        let outcome = check_contract(&Contestant::new(params, Limit::None), &steps, true, 1);
        let waited: u64 = outcome.left.iter().map(|left| left.sojourn().0).sum();
        let mean = Nanos(waited / outcome.left.len() as u64);
        write!(table, "{name}: {} left after {} µs on average", outcome.left.len(), mean.0 / 1000).unwrap();
        for (reason, count) in &outcome.drops {
            write!(table, ", {count} dropped ({})", reason.name()).unwrap();
        }
        for (reason, count) in &outcome.marks {
            write!(table, ", {count} marked ({})", reason.name()).unwrap();
        }
        table.push('\n');
    }
    assert!(table == GOLDEN, "the table is now\n{table}");
}
