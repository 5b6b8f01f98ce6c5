//! A fault in the network's tables: some packets go through a node that is not on their route.

use crate::packets::InFlight;
use crate::topology::NodeId;
use crate::workload::Random;

/// Which packets take a detour, and through which node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetourParams {
    /// The source of the packets.
    pub from: NodeId,
    /// The node that they go through, which is not on their route.
    pub via: NodeId,
    /// The destination of the packets.
    pub to: NodeId,
    /// The number of the connection or source of datagrams; `None`: all.
    pub flow: Option<u32>,
    /// The share of these packets, from 0 to 1, chosen at random.
    pub share: f64,
}

/// A detour in a running simulation.
#[derive(Debug)]
pub(crate) struct Detour {
    /// The route that packets must be on,
    direct: u32,
    /// and the route that they are moved to.
    by: u32,
    flow: Option<u32>,
    share: f64,
    chance: Random,
}

impl Detour {
    /// From one route to another.
    pub fn new(params: &DetourParams, direct: u32, by: u32, seed: u64) -> Self {
        Self { direct, by, flow: params.flow, share: params.share, chance: Random::new(seed) }
    }

    /// Moves a packet to the other route, if it is chosen.
    pub fn take(&mut self, packet: &mut InFlight) {
        let meant = packet.route == self.direct && self.flow.is_none_or(|flow| flow == packet.number);
        if meant && self.chance.open() < self.share {
            packet.route = self.by;
        }
    }
}
