//! A congestion control of your own: additive increase, multiplicative decrease, with steps of your choice, beside CUBIC on
//! one bottleneck: `cargo run --release -p queuescope --features sim --example own_congestion_control`.

use queuescope::queue::{DisciplineParams, Limit, TailDropParams};
use queuescope::sim::shapes::{Dumbbell, Wire};
use queuescope::sim::workload::FlowStart;
use queuescope::sim::{Simulation, Transport};
use queuescope::tcp::{
    Ack, Algorithm, Congestion, CongestionControl, ControlFactory, InitialValues, Phase, Profile, TcpParams,
};
use queuescope::wire::Nanos;
use std::error::Error;
use std::iter::once;

/// The window grows by `increase` segments a round trip, and `decrease` of it is left after a loss.
struct Aimd {
    increase: f64,
    decrease: f64,
    mss: f64,
    window: f64,
    threshold: f64,
}

impl Aimd {
    fn new(increase: f64, decrease: f64, opening: InitialValues) -> Self {
        let (mss, window) = (f64::from(opening.mss), opening.initial_window as f64);
        Self { increase, decrease, mss, window, threshold: f64::INFINITY }
    }
}

impl CongestionControl for Aimd {
    fn on_ack(&mut self, ack: &Ack, _now: Nanos) {
        let acked = ack.acked as f64;
        match ack.phase {
            Phase::Open | Phase::Loss if self.window < self.threshold => self.window += acked,
            Phase::Open | Phase::Loss => self.window += self.increase * self.mss * acked / self.window,
            Phase::Disorder | Phase::Reduced | Phase::Recovery => {}
        }
    }

    fn on_congestion(&mut self, _congestion: &Congestion, _now: Nanos) {
        self.threshold = (self.decrease * self.window).max(2.0 * self.mss);
        self.window = self.threshold;
    }

    fn on_timeout(&mut self, _congestion: &Congestion, _now: Nanos) {
        self.threshold = (self.decrease * self.window).max(2.0 * self.mss);
        self.window = self.mss;
    }

    fn on_recovered(&mut self, _now: Nanos) {}

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn slow_start_threshold(&self) -> u64 {
        self.threshold as u64
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let buffer = DisciplineParams::TailDrop(TailDropParams { limit: Limit::Packets(100) });
    let bottleneck = Wire::new("20mbps".parse()?, "10ms".parse()?, buffer);
    let host = Wire::new("200mbps".parse()?, "1ms".parse()?, DisciplineParams::default());
    let dumbbell = Dumbbell::new(&bottleneck, None, [host.clone(), host]);
    let mut simulation = Simulation::new(dumbbell.topology, 1, Nanos::ZERO)?;

    let aimd = ControlFactory::new("aimd", |opening| Aimd::new(2.0, 0.8, opening));
    let cubic = Algorithm::Cubic.params(Profile::Linux);
    let transports = [Transport::new(TcpParams::linux(), aimd), Transport::new(TcpParams::linux(), cubic)];
    for (n, transport) in transports.into_iter().enumerate() {
        let start = FlowStart::new(dumbbell.left[n], dumbbell.right[n]);
        simulation.add_flows(n as u32, transport, None, once(start))?;
    }
    simulation.run_until("60s".parse()?, &mut ());

    for (name, flow) in ["aimd", "cubic"].iter().zip(simulation.flows()) {
        let rate = flow.delivered as f64 * 8.0 / 60e6;
        println!("{name}: {rate:.1} Mb/s, {} segments sent again", flow.retransmissions);
    }
    Ok(())
}
