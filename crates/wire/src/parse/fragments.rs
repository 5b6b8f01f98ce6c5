//! The flows of fragmented datagrams, for their later fragments.

use super::network::{Datagram, Network};
use crate::{Family, FlowKey};

/// Datagrams that are stored at once. The fragments of a datagram follow each other closely, so few are enough.
const SLOTS: usize = 1024;

/// A direct-mapped table: a new datagram replaces an old one in the same slot. Entries do not expire otherwise, so a
/// later fragment without a first one may match an older datagram with its addresses and identifier.
#[derive(Debug)]
pub(super) struct Fragments {
    slots: Vec<Option<Slot>>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    name: FlowKey,
    key: FlowKey,
}

impl Fragments {
    pub fn new() -> Self {
        Self { slots: vec![None; SLOTS] }
    }

    /// Stores that the datagram whose first fragment was seen belongs to `key`.
    #[cold]
    pub fn remember(&mut self, network: &Network, datagram: Datagram, key: FlowKey) {
        let name = name(network, datagram);
        if let Some(slot) = self.slots.get_mut(index(&name)) {
            *slot = Some(Slot { name, key });
        }
    }

    /// The flow of a datagram whose first fragment was seen.
    #[cold]
    pub fn recall(&self, network: &Network, datagram: Datagram) -> Option<FlowKey> {
        let name = name(network, datagram);
        let slot = self.slots.get(index(&name))?.as_ref()?;
        (slot.name == name).then_some(slot.key)
    }
}

/// A datagram as a flow key, to use its digest: the ports are the halves of the identifier.
fn name(network: &Network, datagram: Datagram) -> FlowKey {
    debug_assert!(network.family != Family::Link);
    FlowKey {
        src: network.src,
        dst: network.dst,
        src_port: (datagram.id >> 16) as u16,
        dst_port: datagram.id as u16,
        protocol: datagram.protocol,
        family: network.family,
        ..FlowKey::default()
    }
}

fn index(name: &FlowKey) -> usize {
    name.digest() as usize % SLOTS
}
