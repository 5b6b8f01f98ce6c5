//! A fault in the network's tables: some packets go by a node that is not on their way.

use crate::packets::InFlight;
use crate::topology::NodeId;
use crate::workload::Random;

/// Which packets go by which node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DetourParams {
    /// Who sends them,
    pub from: NodeId,
    /// where they go by,
    pub via: NodeId,
    /// and who is to get them.
    pub to: NodeId,
    /// The connection, or source of datagrams, by its number; all, if it is not given.
    pub flow: Option<u32>,
    /// Which share of their packets, from 0 to 1: each by chance.
    pub share: f64,
}

/// A detour while a simulation runs.
#[derive(Debug)]
pub(crate) struct Detour {
    /// The way that packets have to be on,
    direct: u32,
    /// and the one that they are put on.
    by: u32,
    flow: Option<u32>,
    share: f64,
    chance: Random,
}

impl Detour {
    /// From one way to another.
    pub fn new(params: &DetourParams, direct: u32, by: u32, seed: u64) -> Self {
        Self { direct, by, flow: params.flow, share: params.share, chance: Random::new(seed) }
    }

    /// Puts a packet on the other way, if it is meant.
    pub fn take(&mut self, packet: &mut InFlight) {
        let meant = packet.route == self.direct && self.flow.is_none_or(|flow| flow == packet.number);
        if meant && self.chance.open() < self.share {
            packet.route = self.by;
        }
    }
}
