//! A custom congestion control.

use queuescope_tcp::{Ack, Congestion, CongestionControl, InitialValues};
use queuescope_wire::Nanos;

/// A congestion window that never changes.
#[derive(Debug)]
pub struct FixedWindow {
    bytes: u64,
}

impl FixedWindow {
    /// A window of this many segments.
    pub fn new(segments: u64, opening: InitialValues) -> Self {
        Self { bytes: segments * u64::from(opening.mss) }
    }
}

impl CongestionControl for FixedWindow {
    fn on_ack(&mut self, _ack: &Ack, _now: Nanos) {}
    fn on_congestion(&mut self, _congestion: &Congestion, _now: Nanos) {}
    fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {}
    fn on_recovered(&mut self, _now: Nanos) {}

    fn window(&self) -> u64 {
        self.bytes
    }

    fn slow_start_threshold(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use queuescope_queue::DisciplineParams;
    use queuescope_sim::shapes::{Dumbbell, Wire};
    use queuescope_sim::workload::FlowStart;
    use queuescope_sim::{Simulation, Transport};
    use queuescope_tcp::{ControlFactory, TcpParams};
    use queuescope_wire::Rate;
    use std::sync::{Arc, Mutex};

    const MS: u64 = 1_000_000;
    const SEGMENTS: u64 = 20;
    const SECONDS: u64 = 8;

    /// A flow with at most one window in flight delivers a window per round-trip time: 20 segments in 40 ms, through links
    /// that are fast enough to be neglected. A constant window is sent at once, not paced.
    #[test]
    fn a_window_arrives_each_round_trip() {
        for tcp in [TcpParams { pacing: None, ..TcpParams::linux() }, TcpParams::ns3()] {
            let (simulation, openings) = simulate(&tcp);
            let expected = SECONDS * 1_000 / 40 * SEGMENTS * u64::from(tcp.mss);
            for flow in simulation.flows() {
                let delivered = flow.counted().delivered;
                // The transmission of a segment takes some microseconds of 40 ms; and the last window may be in flight.
                assert!((expected * 98 / 100..=expected).contains(&delivered), "{delivered} of {expected}");
                assert_eq!((flow.retransmissions, flow.timeouts), (0, 0));
            }
            let [one, other] = openings[..] else { panic!("{openings:?}") };
            assert_ne!(one.seed, other.seed);
            assert_eq!((one.mss, one.initial_window), (tcp.mss, u64::from(tcp.initial_window) * u64::from(tcp.mss)));
        }
    }

    /// Two flows over a path of 40 ms, with a warm-up of one second; and the initial state of their controls.
    fn simulate(tcp: &TcpParams) -> (Simulation, Vec<InitialValues>) {
        let rate = Rate::from_bits_per_second(10_000_000_000).unwrap();
        let wire = |delay| Wire::new(rate, Nanos(delay), DisciplineParams::default());
        let dumbbell = Dumbbell::new(&wire(10 * MS), None, (0..2).map(|_| wire(5 * MS)));
        let mut simulation = Simulation::new(dumbbell.topology, 1, Nanos(1_000 * MS)).unwrap();
        let openings = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&openings);
        let control = ControlFactory::new("fixed-window", move |opening| {
            seen.lock().unwrap().push(opening);
            FixedWindow::new(SEGMENTS, opening)
        });
        for (from, to) in dumbbell.left.iter().zip(&dumbbell.right) {
            let transport = Transport::new(*tcp, control.clone());
            simulation.add_flows(0, transport, None, std::iter::once(FlowStart::new(*from, *to))).unwrap();
        }
        simulation.run_until(Nanos((1 + SECONDS) * 1_000 * MS), &mut ());
        let openings = openings.lock().unwrap().clone();
        (simulation, openings)
    }
}
