//! ABC: traffic of constant rate at one bottleneck (section 6.2.1), and the roles of nodes.

mod roles;
mod shares;

use crate::pipelines::driver::{Switch, outlets, packet};
use queuescope_queue::{Abc, AbcParams, Headers, Host, Limit, Outlet, Pipeline};
use queuescope_wire::{FlowId, Nanos};

/// The rate of the bottleneck in bit/s: 4170 packets of 1500 bytes a second.
pub const BOTTLENECK: u64 = 4170 * 1500 * 8;
/// The payload of a packet, in bits. Rates of clients and goodputs count payload only.
pub const PAYLOAD: f64 = 1448.0 * 8.0;

pub fn ports() -> Vec<Outlet> {
    outlets(&[BOTTLENECK], 1)
}

pub fn abc(params: AbcParams) -> Switch<Abc> {
    switch(Abc::new(params, &ports()).unwrap())
}

/// A switch with the paper's buffer.
pub fn switch<P: Pipeline>(program: P) -> Switch<P> {
    Switch::new(program, &ports(), 1, Limit::Packets(24), Nanos(0))
}

/// Clients that send at constant rates, in Mb/s of payload. Each packet is delayed by a random part of the gap, so that
/// two clients of the same rate do not stay in phase.
pub struct Clients {
    gaps: Vec<u64>,
    next: Vec<u64>,
    random: u64,
    id: u64,
}

impl Clients {
    pub fn new(rates: &[f64], seed: u64) -> Self {
        let gap = |rate: &f64| if *rate == 0.0 { u64::MAX } else { (PAYLOAD / rate * 1e3) as u64 };
        let gaps = rates.iter().map(gap).collect::<Vec<_>>();
        Self { next: gaps.clone(), gaps, random: seed | 1, id: 0 }
    }

    /// Sends the packets up to `end`. Client n is host n, and its packets are flow n.
    pub fn send<P: Pipeline>(&mut self, switch: &mut Switch<P>, end: Nanos) {
        for client in 0..self.gaps.len() {
            while self.next[client] < end.0 {
                self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let late = ((u128::from(self.random) * u128::from(self.gaps[client])) >> 64) as u64;
                let headers = Headers::plain(Host(client as u32), Host(999), FlowId(1000 + client as u32));
                switch.offer(Nanos(self.next[client] + late), 0, packet(self.id, client as u32, 1500), headers);
                self.id += 1;
                self.next[client] += self.gaps[client];
            }
        }
    }
}

/// The goodput of each flow between two times, in Mb/s of payload.
pub fn goodputs<P: Pipeline>(switch: &Switch<P>, flows: u32, from: Nanos, to: Nanos) -> Vec<f64> {
    let goodput = |flow| switch.log.sent_between(flow, from, to).count() as f64 * PAYLOAD / (to - from).0 as f64 * 1e3;
    (0..flows).map(goodput).collect()
}
