//! How many packet hops a second one core simulates: `hops FLOWS RATE RTT SECONDS [DISCIPLINE] [ALGORITHM]`.
//!
//! A dumbbell, whose hosts have links of ten times the bottleneck's rate; a hop is one packet that leaves one link.

#![allow(clippy::disallowed_methods, reason = "it measures the time that it takes")]

use queuescope_queue::DisciplineParams;
use queuescope_sim::shapes::{Dumbbell, Wire};
use queuescope_sim::summary::Times;
use queuescope_sim::workload::FlowStart;
use queuescope_sim::{Simulation, Transport};
use queuescope_tcp::{Algorithm, Profile, TcpParams};
use queuescope_wire::{Nanos, Rate};
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let argument = |n: usize, default: &str| arguments.get(n).cloned().unwrap_or_else(|| default.to_owned());
    let flows: usize = argument(0, "10").parse()?;
    let rate: Rate = argument(1, "100mbps").parse()?;
    let rtt: Nanos = argument(2, "40ms").parse()?;
    let seconds: u64 = argument(3, "10").parse()?;
    let (discipline, algorithm) = (argument(4, "pie"), argument(5, "cubic"));
    let discipline = DisciplineParams::defaults().into_iter().find(|params| params.name() == discipline);
    let discipline = discipline.ok_or_else(|| format!("there are {:?}", DisciplineParams::NAMES))?;
    let access = Rate::from_bits_per_second(rate.bits_per_second().saturating_mul(10)).unwrap_or(rate);
    let hosts = (0..flows).map(|_| Wire::new(access, Nanos(rtt.0 / 8), DisciplineParams::default()));
    let dumbbell = Dumbbell::new(&Wire::new(rate, Nanos(rtt.0 / 4), discipline), None, hosts);
    let (left, right, bottleneck) = (dumbbell.left, dumbbell.right, dumbbell.bottleneck);
    let mut simulation = Simulation::new(dumbbell.topology, 1, Nanos::ZERO)?;
    for (n, (from, to)) in left.iter().zip(&right).enumerate() {
        let transport = Transport::new(TcpParams::linux(), algorithm.parse::<Algorithm>()?.params(Profile::Linux));
        let start = FlowStart { at: Nanos(n as u64 * 1_000_000), ..FlowStart::new(*from, *to) };
        simulation.add_flows(0, transport, None, std::iter::once(start)).unwrap();
    }
    let started = Instant::now();
    simulation.run_until(Nanos(seconds * 1_000_000_000), &mut ());
    let took = started.elapsed().as_secs_f64();
    let (hops, link) = (simulation.hops(), simulation.link(bottleneck));
    println!("{hops} hops in {took:.2} s: {:.2} million a second", hops as f64 / took / 1e6);
    println!(
        "bottleneck: {:.1} % busy, {} drops, mean sojourn {}",
        link.sent.bytes.0 as f64 * 800.0 / (rate.bits_per_second() as f64 * seconds as f64),
        link.drops.iter().sum::<u64>(),
        Nanos(link.sojourn().as_ref().and_then(Times::mean).unwrap_or(0.0) as u64)
    );
    Ok(())
}
