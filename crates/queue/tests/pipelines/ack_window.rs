//! The receive windows that the program lowers in ACKs.

use crate::pipelines::driver::{Switch, headers, outlets, packet};
use proptest::prelude::*;
use queuescope_queue::{AckWindow, AckWindowParams, Headers, Limit, Port};
use queuescope_tcp::{Flags, Segment};
use queuescope_wire::{ByteCount, Nanos};

const MS: u64 = 1_000_000;
/// What the bottleneck's flows may have in flight together: 8 Mb/s x 100 ms, in bytes.
const IN_FLIGHT: u64 = 100_000;

fn params() -> AckWindowParams {
    AckWindowParams { base_rtt: Nanos(100 * MS), entries: 64, ..AckWindowParams::default() }
}

/// Port 0 is the bottleneck. ACKs leave through port 1.
fn switch(params: AckWindowParams) -> Switch<AckWindow> {
    let ports = outlets(&[8_000_000, 1_000_000_000], 1);
    let program = AckWindow::new(params, &ports).unwrap();
    Switch::new(program, &ports, 1, Limit::None, Nanos(1_000))
}

/// Data of flow `n`, whose ACKs are flow `1000 + n`.
fn data(flow: u32, seq: u64) -> Headers {
    let tcp = Segment { seq, length: 1448, flags: Flags::ACK, ..Segment::default() };
    Headers { tcp: Some(tcp), ..headers(1, 1000 + flow) }
}

fn ack(flow: u32, ack: u64, window: u64) -> Headers {
    Headers { tcp: Some(Segment { ack, window, flags: Flags::ACK, ..Segment::default() }), ..headers(2, flow) }
}

fn windows(switch: &Switch<AckWindow>) -> Vec<u64> {
    let back = switch.log.sent.iter().filter(|sent| sent.port == Port(1));
    back.map(|sent| sent.headers.tcp.unwrap().window).collect()
}

#[test]
fn each_flow_has_its_share_in_flight() {
    let mut switch = switch(params());
    switch.offer(Nanos(0), 0, packet(0, 7, 1500), data(7, 1));
    switch.offer(Nanos(MS), 1, packet(1, 1007, 40), ack(7, 1449, 1 << 20));
    // Not lowered: a window below the share, and an ACK of a flow whose data the program never saw.
    switch.offer(Nanos(2 * MS), 1, packet(2, 1007, 40), ack(7, 1449, 5_000));
    switch.offer(Nanos(2 * MS), 1, packet(3, 1008, 40), ack(8, 1, 1 << 20));
    switch.run_until(Nanos(10 * MS));
    assert_eq!(windows(&switch), [IN_FLIGHT, 5_000, 1 << 20]);

    // A second flow halves the share. The right edge stays at 1449 + 100 000 until acknowledgements have caught up.
    switch.offer(Nanos(20 * MS), 0, packet(4, 8, 1500), data(8, 1));
    switch.offer(Nanos(21 * MS), 1, packet(5, 1008, 40), ack(8, 1449, 1 << 20));
    switch.offer(Nanos(22 * MS), 1, packet(6, 1007, 40), ack(7, 31_449, 1 << 20));
    switch.offer(Nanos(23 * MS), 1, packet(7, 1007, 40), ack(7, 61_449, 1 << 20));
    switch.run_until(Nanos(30 * MS));
    assert_eq!(windows(&switch)[3..], [50_000, 70_000, 50_000]);
    let stats = *switch.program.stats();
    assert_eq!((stats.acks, stats.lowered, stats.untracked, stats.expired), (5, 4, 0, 0));
    switch.check();
}

#[test]
fn idle_flows_lose_their_share() {
    let mut switch = switch(AckWindowParams { idle: Nanos(50 * MS), ..params() });
    switch.offer(Nanos(0), 0, packet(0, 1, 1500), data(1, 1));
    for n in 0..40 {
        switch.offer(Nanos(n * 5 * MS), 0, packet(1 + n, 2, 1500), data(2, 1 + 1448 * n));
    }
    switch.run_until(Nanos(49 * MS));
    assert_eq!((switch.program.flows(Port(0)), switch.program.share(Port(0))), (2, Some(ByteCount(50_000))));
    switch.run_until(Nanos(50 * MS));
    assert_eq!((switch.program.flows(Port(0)), switch.program.share(Port(0))), (1, Some(ByteCount(100_000))));
    // The last data arrived at 195 ms. The control plane looks for idle flows every 50 ms until no flow is left.
    switch.run_until(Nanos(10_000 * MS));
    assert_eq!(switch.log.timers, [50, 100, 150, 200, 250].map(|at| Nanos(at * MS)));
    assert_eq!((switch.program.flows(Port(0)), switch.program.stats().expired), (0, 2));
}

#[test]
fn no_window_is_lowered_below_the_smallest_window() {
    let mut switch = switch(AckWindowParams { entries: 4096, ..params() });
    for flow in 0..500 {
        switch.offer(Nanos(0), 0, packet(u64::from(flow), flow, 1500), data(flow, 1));
    }
    switch.offer(Nanos(MS), 1, packet(500, 1000, 40), ack(0, 1449, 1 << 20));
    switch.run_until(Nanos(2 * MS));
    assert_eq!(windows(&switch), [2 * 1448]);
}

/// Port 0 has 8 Mb/s and port 1 has 4 Mb/s. There are hosts behind all three ports.
#[test]
fn each_bottleneck_is_shared_by_its_own_flows() {
    let ports = outlets(&[8_000_000, 4_000_000, 1_000_000_000], 1);
    let params = AckWindowParams { bottlenecks: vec![Port(0), Port(1)], ..params() };
    let program = AckWindow::new(params, &ports).unwrap();
    let mut switch = Switch::new(program, &ports, 1, Limit::None, Nanos(1_000));
    for (time, (port, flow)) in [(0, 7), (0, 8), (1, 9)].into_iter().enumerate() {
        switch.offer(Nanos(time as u64), port, packet(time as u64, flow, 1500), data(flow, 1));
    }
    // An ACK of flow 9 is not bounded at the port of the flow's data. It is bounded at every other port, also at the
    // other bottleneck.
    for (id, (port, flow)) in (10..).zip([(2, 7), (1, 8), (2, 9), (0, 9), (1, 9)]) {
        switch.offer(Nanos(id * MS), port, packet(id, 1000 + flow, 40), ack(flow, 1449, 1 << 20));
    }
    switch.run_until(Nanos(50 * MS));
    let shares = [0, 1, 2].map(|port| (switch.program.flows(Port(port)), switch.program.share(Port(port))));
    assert_eq!(shares, [(2, Some(ByteCount(50_000))), (1, Some(ByteCount(50_000))), (0, None)]);
    let window_of = |id: u64| {
        let sent = switch.log.sent.iter().find(|sent| sent.departure.packet.id.0 == id).unwrap();
        sent.headers.tcp.unwrap().window
    };
    assert_eq!([10, 11, 12, 13, 14].map(window_of), [50_000, 50_000, 50_000, 50_000, 1 << 20]);

    // A data packet may carry an ACK: here one of flow 9, on its way to the other bottleneck.
    let tcp = Segment { seq: 1, length: 1448, ack: 1449, window: 1 << 20, flags: Flags::ACK, ..Segment::default() };
    let data_with_ack = Headers { tcp: Some(tcp), ..headers(2, 9) };
    switch.offer(Nanos(60 * MS), 0, packet(20, 1009, 1500), data_with_ack);
    // Flow 7 moves to the other bottleneck.
    switch.offer(Nanos(61 * MS), 1, packet(21, 7, 1500), data(7, 1449));
    switch.run_until(Nanos(70 * MS));
    let flows = |switch: &Switch<AckWindow>| [0, 1].map(|port| switch.program.flows(Port(port)));
    let sent = switch.log.sent.iter().find(|sent| sent.departure.packet.id.0 == 20).unwrap();
    assert_eq!((sent.headers.tcp.unwrap().window, flows(&switch)), (50_000, [2, 2]));
    switch.run_until(Nanos(5_000 * MS));
    assert_eq!((flows(&switch), switch.program.stats().expired), ([0, 0], 4));
    switch.check();
}

#[test]
fn a_bottleneck_that_is_not_a_port_is_an_error() {
    let bottlenecks = vec![Port(0), Port(2)];
    let error = AckWindow::new(AckWindowParams { bottlenecks, ..params() }, &outlets(&[1, 1], 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "receive windows cannot be bounded for port 2: the switch has 2 ports, numbered from 0"
    );
}

proptest! {
    /// The program never raises a window, never lowers one below the smallest window, and never moves the right edge of
    /// a flow back.
    #[test]
    fn windows_are_only_lowered_and_edges_never_move_back(
        steps in prop::collection::vec((0..20u64, 0..6u32, prop::option::of((0..60_000u64, 0..1u64 << 18))), 1..120)
    ) {
        let mut switch = switch(AckWindowParams { idle: Nanos(100_000 * MS), entries: 4096, ..params() });
        let (mut time, mut acked, mut known, mut offered) = (0, [1u64; 6], [false; 6], Vec::new());
        for (id, (gap, flow, step)) in steps.iter().enumerate() {
            time += gap * MS;
            match step {
                None => {
                    switch.offer(Nanos(time), 0, packet(id as u64, *flow, 1500), data(*flow, 1));
                    known[*flow as usize] = true;
                }
                Some((more, window)) => {
                    let acked = &mut acked[*flow as usize];
                    *acked += more;
                    switch.offer(Nanos(time), 1, packet(id as u64, 1000 + flow, 40), ack(*flow, *acked, *window));
                    offered.push((*flow, *acked, *window, known[*flow as usize]));
                }
            }
        }
        switch.run_out();
        let rewritten = windows(&switch);
        prop_assert_eq!(rewritten.len(), offered.len());
        let mut edges = [0; 6];
        let mut lowered = 0;
        for (new, (flow, acked, window, known)) in rewritten.iter().zip(&offered) {
            prop_assert!(*new <= *window && *new >= (*window).min(2 * 1448));
            let edge = &mut edges[*flow as usize];
            if *known {
                prop_assert!(acked + new >= (*edge).min(acked + window));
                *edge = (*edge).max(acked + new);
            } else {
                prop_assert_eq!(new, window);
            }
            lowered += u64::from(new < window);
        }
        prop_assert_eq!(switch.program.stats().lowered, lowered);
    }
}
