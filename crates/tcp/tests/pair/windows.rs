//! What windows allow, what counts as limited by them, and how fast data is delivered.

use crate::pair::link::{Direction, Fate, Pair};
use crate::pair::reno::Reno;
use queuescope_tcp::TcpParams;
use queuescope_wire::Nanos;

const MS: u64 = 1_000_000;

#[test]
fn a_window_lowered_by_a_switch_is_obeyed() {
    for (params, segments) in [(TcpParams::linux(), 4), (TcpParams::ns3(), 4), (TcpParams::linux(), 1)] {
        let mss = u64::from(params.mss);
        let window = segments * mss;
        let plan = move |_, _, _: &_, _| Fate { window: Some(window), ..Fate::default() };
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(100 * mss), plan);
        pair.connect();
        let mut most = 0;
        while !pair.sender.is_done() && pair.step() {
            most = most.max(pair.sender.in_flight());
        }
        assert_eq!(pair.receiver.delivered(), 100 * mss);
        assert_eq!(most, window);
    }
}

#[test]
fn a_window_smaller_than_a_segment_allows_small_ones() {
    let params = TcpParams::linux();
    let plan = move |_, _, _: &_, _| Fate { window: Some(700), ..Fate::default() };
    let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(7_000), plan);
    pair.connect();
    assert!(pair.finish(Nanos(3_000 * MS)));
    assert_eq!(pair.data().len(), 10);
    assert_eq!(pair.sender.stats().timeouts, 0);
}

#[test]
fn the_buffer_bounds_unacknowledged_data() {
    let params = TcpParams { send_buffer: 20_000, ..TcpParams::linux() };
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 100), Some(100 * mss), |_, _, _, _| Fate::default());
    pair.connect();
    let mut most = 0;
    while !pair.sender.is_done() && pair.step() {
        most = most.max(pair.sender.in_flight());
    }
    assert_eq!(most, 20_000 / mss * mss);
}

#[test]
fn an_idle_connection_restarts_as_the_profile_says() {
    for (params, restarts) in [(TcpParams::linux(), true), (TcpParams::ns3(), false)] {
        let mss = u64::from(params.mss);
        let mut pair = Pair::new(&params, Reno::new(params.mss, 10), Some(200 * mss), |_, _, _, _| Fate::default());
        pair.sender.keep_open();
        pair.connect();
        pair.run_until(Nanos(10_000 * MS));
        let before = pair.sender.control().window;
        assert!(before > 40 * mss);
        pair.sender.supply(mss);
        pair.sender.close();
        pair.flush();
        assert!(pair.finish(Nanos(20_000 * MS)));
        let control = pair.sender.control();
        assert_eq!(control.idle.len(), usize::from(restarts));
        assert_eq!(control.window < before, restarts);
        assert_eq!(pair.receiver.delivered(), 201 * mss);
    }
}

#[test]
fn only_a_sender_that_fills_the_window_is_limited_by_it() {
    let params = TcpParams { quick_acks: 0, ..TcpParams::linux() };
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::new(params.mss, 40), Some(0), |_, _, _, _| Fate::default());
    pair.sender.keep_open();
    pair.connect();
    // Two segments every 5 ms: eight in flight.
    for step in 4..40 {
        pair.run_until(Nanos(step * 5 * MS));
        pair.sender.supply(2 * mss);
        pair.flush();
    }
    pair.run_until(Nanos(1_000 * MS));
    let acks = &pair.sender.control().acks;
    assert!(acks.len() > 30 && acks.iter().all(|ack| !ack.window_limited));
    // Their rates are those of the application.
    let rates: Vec<_> = acks.iter().filter_map(|ack| ack.rate).collect();
    assert!(rates.len() > 20 && rates.iter().skip(2).all(|rate| rate.application_limited));

    let mut pair = Pair::new(&params, Reno::new(params.mss, 4), Some(400 * mss), |_, _, _, _| Fate::default());
    pair.connect();
    pair.run_until(Nanos(100 * MS));
    let acks = &pair.sender.control().acks;
    assert!(acks.len() > 5 && acks.iter().all(|ack| ack.window_limited));
}

#[test]
fn the_delivery_rate_is_that_of_the_link() {
    let params = TcpParams { quick_acks: 0, ..TcpParams::linux() };
    let mss = u64::from(params.mss);
    let mut pair = Pair::new(&params, Reno::fixed(params.mss, 40), Some(1_000 * mss), |_, _, _, _| Fate::default());
    // 10 Mb/s: 1 502 bytes take 1.2 ms, so 40 segments fill the link more than twice.
    pair.byte_time = 800;
    pair.connect();
    assert!(pair.finish(Nanos(5_000 * MS)));
    let rates: Vec<_> = pair.sender.control().acks.iter().filter_map(|ack| ack.rate).collect();
    let expected = mss as f64 / (1_502.0 * 800.0);
    for rate in &rates[50..rates.len() - 25] {
        let measured = (rate.delivered - rate.prior_delivered) as f64 / rate.interval.0 as f64;
        assert!((measured / expected - 1.0).abs() < 0.001, "{measured} for {expected}: {rate:?}");
        assert!(!rate.application_limited && rate.lost == 0);
    }
    // The end of the flow does not measure the link.
    assert!(rates.last().is_some_and(|rate| rate.delivered == 1_000 * mss));
}

#[test]
fn the_counts_of_acks_add_up() {
    // Every thirteenth segment is lost.
    for params in [TcpParams::linux(), TcpParams::ns3(), TcpParams { sack: false, ..TcpParams::ns3() }] {
        let params = TcpParams { loss_end_counts_beyond: false, ..params };
        let mss = u64::from(params.mss);
        let plan = |direction, number: u64, _: &_, _| Fate {
            lost: direction == Direction::Forth && number % 13 == 5,
            ..Fate::default()
        };
        let mut pair = Pair::new(&params, Reno::new(params.mss, 20), Some(300 * mss), plan);
        pair.connect();
        assert!(pair.finish(Nanos(60_000 * MS)));
        let acks = &pair.sender.control().acks;
        assert_eq!(acks.iter().map(|ack| ack.acked).sum::<u64>(), 300 * mss);
        let delivered = acks.iter().map(|ack| ack.delivered).sum::<u64>();
        if params.sack {
            assert_eq!(delivered, 300 * mss);
        } else {
            // Guesses: only approximately right.
            assert!(delivered.abs_diff(300 * mss) < 30 * mss, "{delivered}");
        }
        for ack in acks {
            assert!(ack.unacknowledged <= ack.next && ack.in_flight <= ack.next - ack.unacknowledged);
        }
    }
}
