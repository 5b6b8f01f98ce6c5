//! Regression test: the counters of each program after the same traffic.

use crate::pipelines::driver::{Switch, headers, outlets, packet};
use queuescope_queue::{
    AbcParams, AckWindowParams, ActAt, ConQuestAqmParams, Curve, FlowLimit, HashToQueuesParams, Headers, HeldAction,
    HoldParams, MeterParams, Outlet, P4airParams, Pipeline, PipelineParams, QueueLength,
};
use queuescope_sketch::ConQuestParams;
use queuescope_tcp::{Flags, Segment};
use queuescope_wire::{Ecn, Nanos, Packet};

const MS: u64 = 1_000_000;

const EXPECTED: &str = include_str!("golden.txt");

/// Five flows through 50 Mb/s for half a second, and their ACKs at port 1. One flow sends more than all others
/// together.
fn run(params: &PipelineParams) -> String {
    let seeded = |(outlet, seed): (Outlet, u64)| Outlet { seed, ..outlet };
    let ports: Vec<_> = outlets(&[50_000_000, 1_000_000_000], 1).into_iter().zip(7..).map(seeded).collect();
    let program = params.build(&ports).unwrap();
    let queues = program.queues(params.queue().limit);
    let mut switch = Switch::new(program, &ports, queues.queues.get(), queues.limit, Nanos(2_000));
    let mut random = 3u64;
    for id in 0..5_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let flow = ((random >> 33) % 10).saturating_sub(5) as u32;
        let time = Nanos(id * 100_000 + (random >> 40) % 100_000);
        let segment =
            Segment { seq: id, ack: id, window: 1 << 20, length: 1448, flags: Flags::ACK, ..Segment::default() };
        if id % 5 == 0 {
            let ack = Headers { tcp: Some(Segment { length: 0, ..segment }), ..headers(50, flow) };
            switch.offer(time, 1, packet(id, 100 + flow, 40), ack);
        } else {
            let ecn = if flow.is_multiple_of(2) { Ecn::Ect0 } else { Ecn::NotEct };
            let data = Headers { tcp: Some(segment), ..headers(flow, 100 + flow) };
            switch.offer(time, 0, Packet { ecn, ..packet(id, flow, 500 + (random >> 50) % 1000) }, data);
        }
    }
    switch.run_out();
    switch.run_until(Nanos(5_000 * MS));
    let (sent, dropped, marked) = (switch.log.sent.len(), switch.log.dropped.len(), switch.log.marked.len());
    let counters = switch.program.counters().into_iter().map(|(name, count)| format!(" {name} {count}"));
    format!("{}: sent {sent} dropped {dropped} marked {marked} |{}\n", params.name(), counters.collect::<String>())
}

#[test]
fn the_same_traffic_gives_the_recorded_counters() {
    let conquest = ConQuestAqmParams {
        tau: Nanos(5 * MS),
        threshold: 10.0,
        curve: Curve::Linear { full: 60.0 },
        sketch: ConQuestParams { columns: 16, window: Nanos(8 * MS), ..ConQuestAqmParams::default().sketch },
        ..ConQuestAqmParams::default()
    };
    let held = |action| ActAt::Ingress(HoldParams { hold: Nanos(MS), registers: 2, action });
    let limit = HeldAction::Limit(FlowLimit { interval: Nanos(MS), burst: 2 });
    let fed_back = [HeldAction::Respond, limit, HeldAction::Reroute]
        .map(|action| PipelineParams::ConQuestAqm(ConQuestAqmParams { act_at: held(action), ..conquest.clone() }));
    let meter = MeterParams { memory: Nanos(50 * MS), ..MeterParams::default() };
    let [responds, limits, reroutes] = fed_back;
    let programs = [
        PipelineParams::HashToQueues(HashToQueuesParams::default()),
        PipelineParams::AckWindow(AckWindowParams::default()),
        PipelineParams::ConQuestAqm(conquest),
        responds,
        limits,
        reroutes,
        PipelineParams::Abc(AbcParams { meter, ..AbcParams::default() }),
        PipelineParams::Abc(AbcParams {
            meter,
            queue_length: QueueLength::Counted { buffer: 8 },
            ..AbcParams::default()
        }),
        PipelineParams::P4air(P4airParams::default()),
        PipelineParams::P4air(P4airParams::by_rtt()),
    ];
    let table = programs.iter().map(run).collect::<String>();
    assert_eq!(table, EXPECTED, "\n{table}");
}
