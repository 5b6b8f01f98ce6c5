//! A dumbbell with TCP over it.

use queuescope_queue::DisciplineParams;
use queuescope_sim::shapes::{Dumbbell, Wire};
use queuescope_sim::workload::FlowStart;
use queuescope_sim::{NodeId, Simulation, Transport};
use queuescope_tcp::{Algorithm, Profile, TcpParams};
use queuescope_wire::{Nanos, Rate};

/// Long flows over a bottleneck.
pub struct Setting {
    pub flows: usize,
    pub rate: u64,
    pub rtt: Nanos,
    pub discipline: DisciplineParams,
    pub algorithm: Algorithm,
    pub ecn: bool,
    pub seed: u64,
    pub seconds: u64,
    /// Seconds of these that belong to the warm-up.
    pub warmup: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            flows: 1,
            rate: 20_000_000,
            rtt: Nanos(20_000_000),
            discipline: DisciplineParams::default(),
            algorithm: Algorithm::Cubic,
            ecn: false,
            seed: 1,
            seconds: 8,
            warmup: 3,
        }
    }
}

impl Setting {
    /// The hosts' transport.
    pub fn transport(&self) -> Transport {
        let tcp = TcpParams { ecn: self.ecn, ..TcpParams::linux() };
        Transport::new(tcp, self.algorithm.params(Profile::Linux))
    }

    /// The network without flows, and the hosts.
    pub fn network(&self) -> (Simulation, Vec<NodeId>, Vec<NodeId>) {
        let wire = |bits, delay, discipline: DisciplineParams| {
            Wire::new(Rate::from_bits_per_second(bits).unwrap(), Nanos(delay), discipline)
        };
        let hosts = (0..self.flows).map(|_| wire(10 * self.rate, self.rtt.0 / 8, DisciplineParams::default()));
        let dumbbell = Dumbbell::new(&wire(self.rate, self.rtt.0 / 4, self.discipline.clone()), None, hosts);
        let simulation = Simulation::new(dumbbell.topology, self.seed, Nanos(self.warmup * 1_000_000_000)).unwrap();
        (simulation, dumbbell.left, dumbbell.right)
    }
}

/// Runs the setting.
pub fn run(setting: &Setting) -> Simulation {
    let (mut simulation, left, right) = setting.network();
    for (n, (from, to)) in (0u64..).zip(left.iter().zip(&right)) {
        let at = Nanos(n * 10_000_000);
        let start = FlowStart { at, ..FlowStart::new(*from, *to) };
        simulation.add_flows(0, setting.transport(), None, std::iter::once(start)).unwrap();
    }
    simulation.run_until(Nanos(setting.seconds * 1_000_000_000), &mut ());
    simulation
}
