//! PIE_CP, PIE_DP and PIE_TABLE: their arithmetic, their drops, and how fast the probability rises and falls (the
//! paper's section VII.A).

use crate::pie::{MS, RecordingSink, fire, outlet, packet};
use proptest::prelude::*;
use queuescope_queue::{
    AnyPipeline, Discipline, DropReason, Egress, Headers, Host, Ingress, Limit, Outlet, Pie, PieBurst, PieCpDecay,
    PieCpParams, PieDp, PieDpParams, PieGains, PieParams, PieScaling, PieStep, PieTableLayout, PieTableParams,
    Pipeline, PipelineParams, Port, TailDrop, Trend, shifted_step,
};
use queuescope_wire::{Backlog, Departure, Ecn, FlowId, Nanos, QueueId, Rate};

const US: u64 = 1_000;
const RATE: u64 = 10_000_000_000;

fn build(params: &PipelineParams) -> AnyPipeline {
    params.build(&ports(Rate::from_bits_per_second(RATE).unwrap(), 5)).unwrap()
}

fn headers() -> Headers {
    Headers::plain(Host(0), Host(1), FlowId(1))
}

/// Calls the timers that are due by `now`.
fn tick(program: &mut impl Pipeline, now: Nanos) {
    while let Some(due) = program.next_timer().filter(|due| *due <= now) {
        program.on_timer(due);
    }
}

/// A packet leaves `port` at `now` with this sojourn time.
fn leave(program: &mut impl Pipeline, port: Port, now: Nanos, sojourn: Nanos) -> Egress {
    let mut departure = Departure {
        packet: packet(0, 1250, Ecn::Ect0),
        queue: QueueId(0),
        enqueued: now - sojourn,
        dequeued: now,
        backlog_in: Backlog::default(),
        backlog_out: Backlog::default(),
    };
    program.egress(port, &mut departure, &mut headers(), &mut RecordingSink::default())
}

fn probability(program: &AnyPipeline) -> f64 {
    program.drop_probability(Port(0)).unwrap()
}

/// How long the probability takes from 0 to 100 % at this sojourn time, and back to 0 at a sojourn time of 0, in
/// seconds. The program must not drop. A packet leaves every 50 us.
fn rise_and_fall(params: &PipelineParams, sojourn: Nanos) -> (f64, f64) {
    let mut program = build(params);
    let mut now = Nanos(MS);
    let mut until = |program: &mut AnyPipeline, sojourn: Nanos, end: fn(f64) -> bool| {
        let begin = now;
        while !end(probability(program)) {
            now = now + Nanos(50 * US);
            tick(program, now);
            assert_eq!(leave(program, Port(0), now, sojourn), Egress::Send);
            assert!(now < Nanos(30_000 * MS), "it takes too long");
        }
        (now - begin).as_secs_f64()
    };
    let rise = until(&mut program, sojourn, |probability| probability == 1.0);
    let fall = until(&mut program, Nanos::ZERO, |probability| probability == 0.0);
    (rise, fall)
}

fn dp(trend: Trend) -> PipelineParams {
    PipelineParams::PieDp(PieDpParams { trend, act: false, ..PieDpParams::default() })
}

fn table(layout: PieTableLayout, trend: Trend) -> PipelineParams {
    PipelineParams::PieTable(PieTableParams { layout, trend, act: false, ..PieTableParams::default() })
}

fn cp() -> PieCpParams {
    PieCpParams { act: false, ..PieCpParams::default() }
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= expected * tolerance, "{value} is not {expected}");
}

/// Expected: 2^32 over (500 - 125) times the gain, times 117 us, at a delay of 500 in the register. The first update,
/// from 0 to 500, does not shorten it: with the published sign it lowers the probability.
#[test]
fn with_exact_gains_the_table_does_not_rise_faster_than_the_shifts() {
    let full = Nanos(500 * 1024);
    let (by_shift, _) = rise_and_fall(&dp(Trend::AsPublished), full);
    let (by_table, _) = rise_and_fall(&table(PieTableLayout::AsStated, Trend::AsPublished), full);
    near(by_shift, 2.62, 0.005);
    near(by_table, 2.67, 0.005);
    // With the stated sign, the first update alone adds 500 << 19, or 500 * 676 206 with the table.
    let (by_shift, _) = rise_and_fall(&dp(Trend::AsStated), full);
    let (by_table, _) = rise_and_fall(&table(PieTableLayout::AsStated, Trend::AsStated), full);
    near(by_shift, (1.0 - 500.0 * 524_288.0 / 4_294_967_295.0) * 2.617, 0.005);
    near(by_table, (1.0 - 499.5 * 676_206.0 / 4_294_967_295.0) * 2.662, 0.005);
}

/// Figure 5: PIE_CP rises most slowly, PIE_TABLE rises and falls faster than PIE_DP, and PIE_CP falls in a fraction of
/// their time.
#[test]
fn the_published_programs_are_ordered_as_in_figure_5() {
    let delay = Nanos(500 * US);
    for trend in [Trend::AsStated, Trend::AsPublished] {
        let (dp_rise, dp_fall) = rise_and_fall(&dp(trend), delay);
        let (table_rise, table_fall) = rise_and_fall(&table(PieTableLayout::AsPublished, trend), delay);
        for decay in [PieCpDecay::AsStated, PieCpDecay::AsPublished] {
            let (cp_rise, cp_fall) = rise_and_fall(&PipelineParams::PieCp(PieCpParams { decay, ..cp() }), delay);
            assert!(table_rise < dp_rise && dp_rise < cp_rise, "{table_rise} {dp_rise} {cp_rise}");
            assert!(table_fall < dp_fall, "{table_fall} {dp_fall}");
            assert!(cp_fall < table_fall / 10.0, "{cp_fall} {table_fall}");
        }
    }
}

/// With the ranges and representatives that the paper states, the table is slower than the shifts. So the published
/// scripts that fill the tables explain figure 5.
#[test]
fn the_stated_table_is_slower_than_the_shifts_both_ways() {
    let delay = Nanos(500 * US);
    let (dp_rise, dp_fall) = rise_and_fall(&dp(Trend::AsPublished), delay);
    let (table_rise, table_fall) = rise_and_fall(&table(PieTableLayout::AsStated, Trend::AsPublished), delay);
    assert!(table_rise > dp_rise && table_fall > dp_fall, "{table_rise} {dp_rise} {table_fall} {dp_fall}");
}

#[test]
fn the_rise_depends_on_the_period_of_the_control_plane_but_hardly_on_its_latency() {
    let delay = Nanos(500 * US);
    let rise = |period: u64, latency: u64| {
        let params = PieCpParams { period: Nanos(period), latency: Nanos(latency), ..cp() };
        rise_and_fall(&PipelineParams::PieCp(params), delay).0
    };
    let (prompt, late, intended) = (rise(125 * US, 0), rise(125 * US, 125 * US), rise(117 * US, 117 * US));
    near(late, prompt, 0.001);
    near(intended / late, 117.0 / 125.0, 0.001);
    // A loop cannot read before it has written.
    near(rise(125 * US, 250 * US) / late, 2.0, 0.001);
}

/// PIE with the paper's parameters, updated every 117 us, on a queue whose arrivals are twice the rate of the link. All
/// packets are ECN-capable, so that none is dropped early. Returns the time in seconds at which the probability is 1.
fn rise_of_pie(scaling: PieScaling) -> f64 {
    let gains = PieGains::tofino();
    let params = PieParams {
        limit: Limit::Time(Nanos(500 * US)),
        target: Nanos(125 * US),
        update: Nanos(117 * US),
        alpha: gains.alpha,
        beta: gains.beta,
        scaling,
        burst: PieBurst::None,
        mark_below: Some(1.1),
        ..PieParams::default()
    };
    // The link needs 10 us for 1250 bytes.
    let mut pie = Pie::new(params, outlet(1_000_000_000));
    let mut sink = RecordingSink::default();
    for step in 0.. {
        let now = Nanos(step * 5 * US);
        fire(&mut pie, now);
        pie.enqueue(packet(step, 1250, Ecn::Ect0), now, &mut sink);
        if step % 2 == 0 {
            pie.dequeue(now, &mut sink);
        }
        sink.dropped.clear();
        sink.marked.clear();
        if pie.drop_probability() == 1.0 {
            return now.as_secs_f64();
        }
        assert!(step < 1_000_000, "it takes too long");
    }
    unreachable!()
}

/// The paper's simulations take roughly 2 s to 3 s; ns-3's old scaling takes less than the RFC's. PIE_CP takes longer
/// than both, because its update interval is longer.
#[test]
fn pie_cp_rises_more_slowly_than_pie() {
    let (rfc, old) = (rise_of_pie(PieScaling::Rfc8033), rise_of_pie(PieScaling::Ns3Old));
    let (control_plane, _) = rise_and_fall(&PipelineParams::PieCp(cp()), Nanos(500 * US));
    assert!(old < rfc && rfc < control_plane, "{old} {rfc} {control_plane}");
    assert!((1.7..3.1).contains(&old) && (1.7..3.1).contains(&rfc), "{old} {rfc}");
}

/// A queue of 500 us on a link of 1 Gb/s with arrivals at twice that rate: the delay stays at the limit.
#[test]
fn a_queue_at_its_limit_gives_the_same_rise_as_a_constant_delay() {
    let params = dp(Trend::AsStated);
    let mut queue = TailDrop::new(params.queue(), outlet(1_000_000_000));
    let mut program = build(&params);
    let mut sink = RecordingSink::default();
    let mut rise = None;
    for step in 0..1_000_000u64 {
        let now = Nanos(MS + step * 5 * US);
        tick(&mut program, now);
        let mut arriving = packet(step, 1250, Ecn::NotEct);
        assert_eq!(program.ingress(Port(0), &mut arriving, &mut headers(), now, &mut sink), Ingress::Enqueue(0));
        queue.enqueue(arriving, now, &mut sink);
        if step % 2 == 0
            && let Some(mut departure) = queue.dequeue(now, &mut sink)
        {
            assert_eq!(program.egress(Port(0), &mut departure, &mut headers(), &mut sink), Egress::Send);
        }
        sink.dropped.clear();
        if probability(&program) == 1.0 {
            rise = Some(now.as_secs_f64());
            break;
        }
    }
    let (constant, _) = rise_and_fall(&params, Nanos(500 * US));
    near(rise.unwrap(), constant, 0.03);
}

proptest! {
    /// If no bit is shifted out, the step equals the controller's in exact integers.
    #[test]
    fn a_shifted_step_equals_the_exact_step(delay in 0..8_000u16, sampled in 0..8_000u16, published: bool) {
        let trend = if published { Trend::AsPublished } else { Trend::AsStated };
        let params = PieDpParams { trend, ..PieDpParams::default() };
        let (now, old) = (i64::from(delay), i64::from(sampled));
        let change = if published { old - now } else { now - old };
        let exact = (now - 125) * 512 + change * 524_288;
        let step = shifted_step(&params, delay, sampled);
        let signed = if step.increase { i64::from(step.change) } else { -i64::from(step.change) };
        let clamped = exact.clamp(-i64::from(u32::MAX), i64::from(u32::MAX));
        prop_assert_eq!(signed, clamped);
    }

    /// Two runs with the same seed give the same result, and a probability of 0 drops nothing.
    #[test]
    fn programs_are_deterministic(
        waits in prop::collection::vec((0..300 * US, 0..600 * US, 0..3u16), 1..200), seed: u64, which in 0..3usize
    ) {
        let published = PieTableParams { layout: PieTableLayout::AsPublished, ..PieTableParams::default() };
        let all = [
            PipelineParams::PieCp(PieCpParams::default()),
            PipelineParams::PieDp(PieDpParams::default()),
            PipelineParams::PieTable(published),
        ];
        let rate = Rate::from_bits_per_second(RATE).unwrap();
        let run = || {
            let mut program = all[which].build(&ports(rate, seed)).unwrap();
            let mut now = Nanos(MS);
            let mut results = Vec::new();
            for (gap, wait, port) in &waits {
                now = now + Nanos(*gap);
                tick(&mut program, now);
                let before = program.drop_probability(Port(*port));
                let came = program.ingress(
                    Port(*port), &mut packet(0, 1250, Ecn::NotEct), &mut headers(), now, &mut RecordingSink::default(),
                );
                let left = leave(&mut program, Port(*port), now, Nanos(*wait));
                if before.is_none_or(|probability| probability == 0.0) {
                    assert_eq!((came, left), (Ingress::Enqueue(0), Egress::Send));
                }
                results.push((before, came, left));
            }
            results
        };
        prop_assert_eq!(run(), run());
    }
}

/// At a constant probability, that fraction of the packets is dropped: at egress for PIE in the data plane, at ingress
/// for PIE_CP. Only the congested port drops.
#[test]
fn a_port_drops_packets_with_its_own_probability() {
    for params in [
        PipelineParams::PieCp(PieCpParams::default()),
        PipelineParams::PieDp(PieDpParams::default()),
        PipelineParams::PieTable(PieTableParams::default()),
    ] {
        let mut program = build(&params);
        let mut now = Nanos(MS);
        while probability(&program) < 0.3 {
            now = now + Nanos(50 * US);
            tick(&mut program, now);
            leave(&mut program, Port(0), now, Nanos(400 * US));
        }
        let mut dropped = [0; 2];
        for _ in 0..20_000 {
            for port in [0, 1] {
                let came = program.ingress(
                    Port(port),
                    &mut packet(0, 1250, Ecn::NotEct),
                    &mut headers(),
                    now,
                    &mut RecordingSink::default(),
                );
                let left = leave(&mut program, Port(port), now, Nanos(130 * US));
                let drops = came == Ingress::Drop(DropReason::Early) || left == Egress::Drop(DropReason::Early);
                dropped[usize::from(port)] += u64::from(drops);
            }
        }
        assert!((5_700..6_400).contains(&dropped[0]) && dropped[1] == 0, "{params:?}: {dropped:?}");
    }
}

/// The register of the random number returns the number drawn for the packet before, which is 0 at first. So the first
/// packet after the probability has risen from 0 is dropped, however low the probability is.
#[test]
fn a_packet_is_judged_by_the_number_drawn_before() {
    let mut program = PieDp::new(PieDpParams { update: Nanos(u64::MAX / 4), ..PieDpParams::default() }, 1, 1);
    assert_eq!(leave(&mut program, Port(0), Nanos(MS), Nanos(200 * US)), Egress::Send);
    assert_eq!(program.target_register(), 125);
    // A sample of 195 units: 70 above the target adds 70 << 9, and 195 above the last delay of 0 adds 195 << 19.
    program.on_timer(Nanos(MS));
    assert_eq!(program.probability_register(Port(0)), Some((70 << 9) + (195 << 19)));
    assert_eq!(shifted_step(&PieDpParams::default(), 195, 195), PieStep { change: 70 << 9, increase: true });
    assert_eq!(
        shifted_step(&PieDpParams::default(), 0, 195),
        PieStep { change: (125 << 9) + (195 << 19), increase: false }
    );
    assert_eq!(program.probability_register(Port(1)), None);
}

/// Once nothing changes any more, a program has no timer. The next packet starts it again.
#[test]
fn an_idle_program_rests() {
    for params in [
        PipelineParams::PieCp(PieCpParams::default()),
        dp(Trend::AsStated),
        table(PieTableLayout::AsStated, Trend::AsStated),
    ] {
        let mut program = build(&params);
        assert_eq!(program.next_timer(), None);
        leave(&mut program, Port(0), Nanos(MS), Nanos(0));
        assert!(program.next_timer().is_some());
        tick(&mut program, Nanos(2 * MS));
        assert_eq!(program.next_timer(), None);
        leave(&mut program, Port(0), Nanos(3 * MS), Nanos(300 * US));
        assert!(program.next_timer().is_some_and(|due| due > Nanos(3 * MS) && due <= Nanos(3 * MS + 125 * US)));
    }
}

/// Once PIE_CP drops every packet at ingress, no packet leaves that could report a shorter queue, and the last delay
/// stays in the register. PIE in the data plane goes on measuring, because it drops behind the queue.
#[test]
fn pie_cp_at_a_probability_of_1_does_not_learn_that_the_queue_is_empty() {
    let mut program = build(&PipelineParams::PieCp(PieCpParams::default()));
    let mut now = Nanos(MS);
    while probability(&program) < 1.0 {
        now = now + Nanos(50 * US);
        tick(&mut program, now);
        leave(&mut program, Port(0), now, Nanos(500 * US));
    }
    for _ in 0..10_000 {
        now = now + Nanos(50 * US);
        tick(&mut program, now);
        let came = program.ingress(
            Port(0),
            &mut packet(0, 1250, Ecn::NotEct),
            &mut headers(),
            now,
            &mut RecordingSink::default(),
        );
        assert_eq!(came, Ingress::Drop(DropReason::Early));
    }
    assert_eq!(probability(&program), 1.0);
}

/// Two ports of this rate.
fn ports(rate: Rate, seed: u64) -> [Outlet; 2] {
    [0, 1].map(|port| Outlet { overhead: 0, rate, queue: QueueId(0), seed: seed + port })
}
