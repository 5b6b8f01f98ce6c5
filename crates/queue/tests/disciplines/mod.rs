//! The contract that every discipline keeps, and tests of single disciplines against their sources.
//!
//! To test more parameters of a discipline, add lines to [`contestants`]. The default parameters of every discipline in
//! `DisciplineParams` are included.

mod checked;
mod codel;
mod codel_model;
mod ecn_sharp;
mod fq_codel;
mod golden;
mod harness;
mod red;

use harness::{Contestant, Step, check_contract};
use proptest::prelude::*;
use queuescope_queue::{
    CodelFlavour, CodelParams, DisciplineParams, DropReason, DualPi2Params, DualPi2Scheduler, EcnSharpParams,
    FqCodelParams, HashQueuesParams, Limit, MarkReason, MultiQueueParams, Pi2Params, PieActivation, PieDelay,
    PieParams, Placement, RedAdaptation, RedParams, RedThresholds, RedUnit, Scheduler, TailDropParams,
};
use queuescope_wire::{ByteCount, Nanos};
use std::num::{NonZeroU16, NonZeroU32};

/// Parameters for which a few hundred packets exercise everything that the discipline does, the limit that they set,
/// and the reasons for drops and marks that a long run must show.
fn contestants() -> Vec<Contestant> {
    use DisciplineParams as Any;
    use DropReason::{Early, FattestFlow, Forced, Overlimit, Target};
    use MarkReason as Mark;
    let packets = Limit::Packets(20);
    let bytes = Limit::Bytes(ByteCount(20_000));
    let time = Limit::Time(Nanos(200_000_000));
    let queues = NonZeroU16::new(4).unwrap();
    let deficit = Scheduler::Deficit { quantum: ByteCount(1500) };
    let port = |scheduler| MultiQueueParams { queues, scheduler, limit: Limit::Packets(6), shared_limit: bytes };
    let thresholds = Some(RedThresholds { min: 4.0, max: 10.0 });
    let red =
        RedParams { thresholds, weight: Some(0.05), max_probability: 0.1, limit: packets, ..RedParams::default() };
    let in_bytes = Some(RedThresholds { min: 4e3, max: 10e3 });
    let codel = CodelParams { limit: packets, min_bytes: ByteCount(1000), ..CodelParams::default() };
    let ce_threshold = Some(Nanos(50_000_000));
    let fq = FqCodelParams {
        limit: packets,
        queues: NonZeroU16::new(5).unwrap(),
        quantum: ByteCount(300),
        ..Default::default()
    };
    let ecn_sharp = EcnSharpParams {
        limit: packets,
        instant_target: Nanos(150_000_000),
        persistent_target: Nanos(20_000_000),
        persistent_interval: Nanos(50_000_000),
    };
    let feng = RedAdaptation::SelfConfiguring { decrease: 3.0, increase: 2.0 };
    let pie = PieParams { limit: packets, ..PieParams::default() };
    let threshold = ByteCount(4096);
    let measured = PieParams { delay: PieDelay::DepartureRate { threshold }, limit: bytes, ..PieParams::appendix_b() };
    let on_delay = PieActivation::Delay(Nanos(50_000_000));
    let by_rate = PieParams { delay: PieDelay::LinkRate, activation: on_delay, limit: time, ..pie };
    let shifted = DualPi2Scheduler::TimeShiftedFifo(Nanos(50_000_000));
    let dual_pi2 = DualPi2Params { limit: bytes, ..DualPi2Params::default() };
    let with = Contestant::new;
    let mut all: Vec<_> = DisciplineParams::defaults().into_iter().map(|params| with(params, Limit::None)).collect();
    all.extend([
        with(Any::TailDrop(TailDropParams { limit: packets }), packets).drops(&[Overlimit]),
        with(Any::TailDrop(TailDropParams { limit: bytes }), bytes).drops(&[Overlimit]),
        with(Any::TailDrop(TailDropParams { limit: time }), time).drops(&[Overlimit]),
        with(Any::MultiQueue(port(Scheduler::RoundRobin)), bytes).drops(&[Overlimit]),
        with(Any::MultiQueue(port(deficit)), bytes).drops(&[Overlimit]),
        with(Any::MultiQueue(port(Scheduler::StrictPriority)), bytes).drops(&[Overlimit]),
        with(Any::HashQueues(HashQueuesParams { queues, limit: packets, shared_limit: packets }), packets)
            .drops(&[Overlimit]),
        with(Any::Red(red), packets).drops(&[Early]),
        with(Any::Red(RedParams { ecn: true, hard_drop: false, gentle: false, max_probability: 0.5, ..red }), packets)
            .drops(&[Early, Forced])
            .marks(&[Mark::Early, Mark::Forced]),
        with(
            Any::Red(RedParams { unit: RedUnit::Bytes, thresholds: in_bytes, wait: false, limit: bytes, ..red }),
            bytes,
        )
        .drops(&[Early]),
        with(Any::Red(RedParams { adaptation: feng, nonlinear: true, limit: time, ..red }), time).drops(&[Early]),
        with(Any::Red(RedParams::adaptive(packets)), packets).drops(&[Early]),
        with(Any::Red(RedParams::step(6, packets)), packets).drops(&[Forced]).marks(&[Mark::Threshold]),
        with(Any::Red(RedParams { at_egress: true, ..RedParams::step(6, packets) }), packets)
            .drops(&[Overlimit])
            .marks(&[Mark::Threshold]),
        with(Any::Codel(codel), packets).drops(&[Overlimit, Target]),
        with(Any::Codel(CodelParams { limit: time, ecn: true, ce_threshold, ..codel }), time)
            .drops(&[Target])
            .marks(&[Mark::Target, Mark::Threshold]),
        with(Any::Codel(CodelParams { limit: bytes, ecn: true, flavour: CodelFlavour::Linux, ..codel }), bytes)
            .drops(&[Overlimit, Target])
            .marks(&[Mark::Target]),
        with(Any::Codel(CodelParams { flavour: CodelFlavour::Ns3, ..codel }), packets).drops(&[Overlimit, Target]),
        with(Any::FqCodel(fq), packets).drops(&[FattestFlow, Target]).marks(&[Mark::Target]),
        with(Any::FqCodel(FqCodelParams { flavour: CodelFlavour::Ns3, placement: Placement::Number, ..fq }), packets)
            .drops(&[FattestFlow, Target])
            .marks(&[Mark::Target]),
        with(Any::FqCodel(FqCodelParams { limit: bytes, flavour: CodelFlavour::Linux, ecn: false, ..fq }), bytes)
            .drops(&[FattestFlow, Target]),
        with(Any::FqCodel(FqCodelParams { limit: time, drop_batch: NonZeroU32::MIN, ce_threshold, ..fq }), time)
            .drops(&[FattestFlow])
            .marks(&[Mark::Target, Mark::Threshold]),
        with(Any::EcnSharp(ecn_sharp), packets).drops(&[Overlimit]).marks(&[Mark::Target, Mark::Threshold]),
        with(Any::EcnSharp(EcnSharpParams { limit: time, instant_target: Nanos::MAX, ..ecn_sharp }), time)
            .drops(&[Overlimit])
            .marks(&[Mark::Target]),
        with(Any::Pie(PieParams { mark_below: Some(0.6), ..pie }), packets)
            .drops(&[Overlimit, Early])
            .marks(&[Mark::Early]),
        with(Any::Pie(PieParams { derandomise: false, mark_below: None, ..measured }), bytes).drops(&[Early]),
        with(Any::Pie(by_rate), time).drops(&[Early]),
        with(Any::Pie(PieParams::ns3_with_limit(bytes)), bytes).drops(&[Early]),
        with(Any::Pi2(Pi2Params { limit: packets, ..Pi2Params::default() }), packets)
            .drops(&[Overlimit, Early])
            .marks(&[Mark::Early]),
        with(Any::Pi2(Pi2Params { limit: time, ecn: false, max_classic: 1.0, ..Pi2Params::default() }), time)
            .drops(&[Early]),
        with(Any::DualPi2(dual_pi2), bytes).drops(&[Early]).marks(&[Mark::Early, Mark::Threshold]),
        with(Any::DualPi2(DualPi2Params { limit: time, even: false, spare_short: true, ..dual_pi2 }), time)
            .drops(&[Early])
            .marks(&[Mark::Early]),
        with(Any::DualPi2(DualPi2Params { limit: packets, scheduler: shifted, ..dual_pi2 }), packets)
            .drops(&[Early])
            .marks(&[Mark::Early]),
    ]);
    all
}

/// After up to 20 ms, a packet of one of eight flows arrives, or the link dequeues. In a paced run the link needs 0.3
/// to 24 ms for a packet.
fn step() -> impl Strategy<Value = Step> {
    let gap = prop_oneof![Just(0u64), 1..20_000_000u64];
    let packet = prop::option::weighted(0.7, (0..8u32, 40..3000u64));
    (gap, packet).prop_map(|(gap, packet)| Step { gap: Nanos(gap), packet })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_discipline_keeps_the_contract(
        steps in prop::collection::vec(step(), 0..400), paced: bool, seed: u64
    ) {
        for contestant in contestants() {
            check_contract(&contestant, &steps, paced, seed);
        }
    }
}

/// The cases that the properties check do occur: each contestant drops and marks for its expected reasons.
#[test]
fn a_long_run_has_drops_and_marks_for_each_expected_reason() {
    for contestant in contestants() {
        let steps = harness::long_run();
        let outcome = check_contract(&contestant, &steps, true, 1);
        assert_eq!(outcome.missing(&contestant), Vec::<String>::new(), "{}", contestant.name());
    }
}
